"""The last kernels of a first map, compiled by a process of its own.

The compiler uses one core, and a map needs its kernels one after the other:

    this process     costs of rectangles, noise         |  (from disk)  | picture
    the other one    fits, order of cells, boxes, sums  |  ends

Modules that pip did not compile are shared in the same way: whoever imports one first
leaves its bytecode to the other. So the second process begins with Numba, while the
first loads the package.

What is compiled is on disk, where the first process looks before it compiles anything:
it finds it there, or does it itself. Nothing here reads data or depends on any, and the
first process needs none of it: where no other can be started, it goes on alone.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from blowfish_fast._support.compiler_watch import (
    COMPILER,
    can_keep_kernels,
    compiled_before,
)
from blowfish_fast._support.machine import usable_cores


@contextmanager
def compiling_beside() -> Iterator[None]:
    """Have the last kernels of a map compiled beside what runs here, if they are not.

    Only for a process that runs one command, on two cores or more. The other process
    is ended with what runs here. If this one is killed, the other ends by itself when
    these kernels are compiled.

    Yields
    ------
    None
        While the other process compiles.
    """
    # Python that is part of another program may not know its own.
    needed = COMPILER.alone and usable_cores() >= 2 and sys.executable
    # The other process hands its work over by the disk: where nothing can be written,
    # it would compile in vain each time.
    if not needed or compiled_before("tree.fit") or not can_keep_kernels():
        yield
        return
    # -P: what lies in the folder where the command was typed is not imported.
    words = [sys.executable, "-P", "-m", __name__]
    silent, other = subprocess.DEVNULL, None
    # A full table of processes, little memory, or a platform that starts none.
    with suppress(OSError):
        other = subprocess.Popen(words, stdin=silent, stdout=silent, stderr=silent)
    try:
        yield
    finally:
        if other is not None:
            other.terminate()
            other.wait()


def compile_last_kernels() -> None:
    """Run what comes after the choice of buckets on a map, on sixteen cells."""
    import blowfish_fast as bf

    # It loads the compiler before anything else does that the first process loads too.
    tree_fit = bf.kernels.tree_fit

    import numpy as np

    from blowfish_fast.measure.strategies.trees.box_tree import BoxTree
    from blowfish_fast.measure.strategies.trees.tree import halved_non_negative
    from blowfish_fast.mechanisms.maps.grids import leaves_alone

    grid = bf.Domain((4, 4))
    parts = np.array([[2, 2]])
    with COMPILER.for_everything():
        # The largest first, then in the order in which a release needs them: what the
        # first process comes to while it is being compiled here is compiled twice.
        cells = halved_non_negative(np.zeros(grid.size), grid)
        whole = BoxTree.whole(grid.shape)
        strategy = leaves_alone(whole.divided(whole.leaves, parts).arranged(grid.shape))
        nodes = strategy.tree.nodes
        tree_fit(np.zeros(nodes), np.ones(nodes), strategy.tree)
        bf.workloads.Rectangles.random(grid, 2, rng=1).answer(cells.reshape(grid.shape))


if __name__ == "__main__":
    compile_last_kernels()

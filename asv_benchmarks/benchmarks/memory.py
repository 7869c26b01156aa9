"""Memory: the peak of whole releases, and what a large one adds to a small one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, ClassVar

from blowfish_fast import Dawa, Laplace, policies, workloads

from .common import EPSILON, SMALL, grid, line, ranges, rectangles

CELLS = 2**12 if SMALL else 2**20

# Runs in a process of its own: a small release, then a large one; prints how far the
# peak rose above what the process held after the small one.
ADDED = """
import resource, sys
from benchmarks.memory import one_release

def held(field):
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith(field):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    # Elsewhere only the peak is known.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

what, cells = sys.argv[1], int(sys.argv[2])
one_release(what, 2**10)
before = held("VmRSS")
one_release(what, cells)
sys.stdout.write(str(held("VmHWM") - before))
"""


def one_release(what: str, cells: int) -> None:
    """Generate data and release it once: `what` is the mechanism and the data."""
    name, data = what.split()
    if name == "laplace":
        domain, histogram = line(cells, data)
        identity = workloads.Identity(domain)
        Laplace(policies.AddRemove(domain), identity, epsilon=EPSILON).release(
            histogram
        )
        return
    if data == "map":
        domain, histogram = grid(cells)
        asked: workloads.Workload = rectangles(domain)
    else:
        domain, histogram = line(cells, data)
        asked = ranges(domain)
    Dawa(policies.AddRemove(domain), asked, epsilon=EPSILON).release(histogram)


class ReleaseMemory:
    """Peak of the process, interpreter and compiled code included."""

    timeout = 300
    params: ClassVar[list[Any]] = [
        ["laplace dense", "dawa dense", "dawa sparse", "dawa distinct", "dawa map"]
    ]
    param_names: ClassVar[list[str]] = ["release"]

    def setup(self, release: str) -> None:
        one_release(release, 2**10)

    def peakmem_release(self, release: str) -> None:
        one_release(release, CELLS)

    def track_added(self, release: str) -> int:
        ran = subprocess.run(
            [sys.executable, "-c", ADDED, release, str(CELLS)],
            cwd=_suite_folder(),
            check=True,
            capture_output=True,
            text=True,
        )
        return int(ran.stdout)

    track_added.unit = "bytes"  # type: ignore[attr-defined]


def _suite_folder() -> str:
    """Return the folder from which `benchmarks` can be imported."""
    from pathlib import Path

    return str(Path(__file__).resolve().parent.parent)

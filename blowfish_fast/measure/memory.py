"""The memory that a release needs, from public sizes, beside what there is.

A mechanism says what it needs before anything is charged or drawn: a refusal says
nothing about data. ``tests/measure/test_memory.py`` holds releases against the bounds.
"""

from __future__ import annotations

import os
import sys

import numpy as np

from blowfish_fast.errors import SizeError
from blowfish_fast.workloads import (
    AllRanges,
    Identity,
    Linear,
    Marginals,
    Prefixes,
    Rectangles,
    Sum,
    Tables,
    Total,
    Union,
    Workload,
)

BASE_BYTES = 2**26
"""What a small release takes: stacks of threads, tables, matrices of bounded size."""

COMPILER_BYTES = 640 * 2**20
"""Address space taken when the compiler is loaded and kernels are built."""

PIECE_BYTES = 128
"""What one piece of a query, or one edge of a policy, takes in a release."""

NODE_BYTES = 128
"""What a node of a tree takes while intervals are asked for the first time."""

ROW_BYTES = 192
"""What is kept of a node besides, unless nodes that are alike share it."""


def kept_noise_bytes(cells: int, fan_out: int, *, alike: bool) -> int:
    """Bound what the noise in a tree takes; `alike`: each level has one scale."""
    each = NODE_BYTES if alike else NODE_BYTES + ROW_BYTES
    return each * (cells * fan_out // (fan_out - 1) + 64)


def query_pieces(workload: Workload) -> int:
    """Bound the runs of cells, along a curve, that all queries together consist of.

    A rectangle crosses the curve at most as often as half its surface has cells.
    """
    if isinstance(workload, AllRanges | Identity | Prefixes | Total):
        return 0
    if isinstance(workload, Rectangles):
        sides = np.maximum(np.ceil(workload.highs - workload.lows), 1.0)
        return int((sides.prod(axis=1) * (1.0 / sides).sum(axis=1)).sum())
    if isinstance(workload, Linear):
        return int(workload.matrix.nnz)
    if isinstance(workload, Marginals | Sum):
        return workload.domain.size
    if isinstance(workload, Tables):
        return len(workload.tables) * int(workload.domain.size)
    if isinstance(workload, Union):
        # Listed, whatever formulas the parts have by themselves.
        return sum(max(query_pieces(one), one.queries) for one in workload.parts)
    return workload.queries


def check_memory(needed: int, what: str, consequence: str) -> None:
    """Refuse `what` if it needs more bytes, beside a small release, than there are."""
    needed += BASE_BYTES if "numba" in sys.modules else BASE_BYTES + COMPILER_BYTES
    room = memory_room()
    if needed > room:
        raise SizeError(
            f"{what} may need {_mebibytes(needed)} of memory, and {_mebibytes(room)} "
            f"can be had; {consequence}. Use fewer cells, ask fewer queries, or give "
            "the process more memory"
        )


def memory_room() -> float:
    """Return how many bytes this process can still have; infinite if nobody says."""
    return max(min(_address_room(), _container_room(), _free_memory()), 0.0)


def _address_room() -> float:
    """Return what ``ulimit -v`` leaves."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return float("inf")
        pages = int(_contents("/proc/self/statm").split()[0])
        return float(limit - pages * resource.getpagesize())
    except (ImportError, OSError, ValueError):
        return float("inf")


def _container_room(folder: str = "/sys/fs/cgroup") -> float:
    """Return what the control group of a container leaves, its file cache counted."""
    try:
        limit = int(_contents(f"{folder}/memory.max"))
        used = int(_contents(f"{folder}/memory.current"))
        lines = _contents(f"{folder}/memory.stat").splitlines()
        counts = dict(line.split() for line in lines)
        return float(limit - used + int(counts[b"inactive_file"]))
    except (KeyError, OSError, ValueError):
        return float("inf")


def _free_memory(table: str = "/proc/meminfo") -> float:
    """Return what the system can give without swapping."""
    try:
        for line in _contents(table).splitlines():
            if line.startswith(b"MemAvailable:"):
                return float(int(line.split()[1]) * 1024)
    except (IndexError, OSError, ValueError):
        pass
    return float("inf")


def _contents(path: str) -> bytes:
    """Read a small file of the kernel; every release asks, so without layers."""
    file = os.open(path, os.O_RDONLY)
    try:
        parts = iter(lambda: os.read(file, 2**16), b"")
        return b"".join(parts)
    finally:
        os.close(file)


def _mebibytes(count: float) -> str:
    return f"{count / 2**20:,.0f} MiB"

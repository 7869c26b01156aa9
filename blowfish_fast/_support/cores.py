"""How many cores this process may use: those it is allowed on, not all there are."""

from __future__ import annotations

import os

MANY_CELLS = 2**16
"""Below, starting a thread takes longer than its work."""


def usable_cores(most: int = 8) -> int:
    """Return how many threads or processes are worth starting.

    Containers and schedulers bind a process to some of the cores of a machine; more
    threads than these take memory and turns from each other.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min(cores, most))


def threads_for(cells: int) -> int:
    """Return the threads for work over so many cells."""
    return usable_cores() if cells >= MANY_CELLS else 1

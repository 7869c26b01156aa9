"""How many cores this process may use, and processes that share long work."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context

MANY_CELLS = 2**16
"""Below, starting a thread takes longer than its work."""


def usable_cores(most: int = 8) -> int:
    """Return how many threads are worth starting, where a process is bound to cores."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min(cores, most))


def threads_for(cells: int) -> int:
    """Return the threads for work over so many cells."""
    return usable_cores() if cells >= MANY_CELLS else 1


@contextmanager
def worker_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Offer a pool of fresh processes; what has not begun is dropped at the end."""
    pool = ProcessPoolExecutor(count, get_context("spawn"), initializer=_be_quiet)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _be_quiet() -> None:
    """Leave interruptions to the parent, which knows what is finished."""
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)

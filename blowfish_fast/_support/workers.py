"""Processes that share long work and stop quietly: for audits and experiments."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context


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

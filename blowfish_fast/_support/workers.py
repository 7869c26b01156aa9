"""How many cores this process may use, and work that is shared among them.

Blocks are worked off by a few threads in an order that none of them can change: a job
waits for the same job of the block before and for its buffer, a closing step for its
jobs and the step before. All wait only for tasks earlier in one fixed list, so nothing
locks up, and results do not depend on which thread does what.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from typing import TypeVar

Room = TypeVar("Room")

CLOSE = -1

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


def buffers_needed(blocks: int, threads: int) -> int:
    """Return how many buffers `run_blocks` uses in turn."""
    return min(blocks, 1 if threads == 1 else threads + 1)


def _tasks(blocks: int, jobs: int, threads: int) -> Iterator[tuple[int, int]]:
    """Yield (block, job) in the order in which threads take them."""
    for block in range(blocks):
        for job in range(jobs):
            yield block, job
            # Closing is sequential: with helpers, it overlaps the next block's jobs.
            if threads > 1 and job == 0 and block > 0:
                yield block - 1, CLOSE
        if threads == 1:
            yield block, CLOSE
    if threads > 1:
        yield blocks - 1, CLOSE


def run_blocks(
    blocks: int,
    jobs: Sequence[Callable[[int, Room], None]],
    close: Callable[[int, Room], None],
    *,
    threads: int,
    make_room: Callable[[], Room],
) -> None:
    """Run every job of every block, and close the blocks in order.

    Block ``q`` may write to buffer ``q % buffers_needed(blocks, threads)``. The
    caller's own thread is one of `threads`; each calls `make_room` once.
    """
    buffers = buffers_needed(blocks, threads)
    tasks = _tasks(blocks, len(jobs), threads)
    turn = threading.Condition()
    last_done = [-1] * len(jobs)
    last_closed = -1
    failures: list[BaseException] = []

    def may_start(block: int, job: int) -> bool:
        if failures:
            return True
        if job == CLOSE:
            return last_closed == block - 1 and min(last_done) >= block
        return last_done[job] == block - 1 and last_closed >= block - buffers

    def work() -> None:
        nonlocal last_closed
        try:
            room = make_room()
            while True:
                with turn:
                    task = next(tasks, None)
                    if task is None:
                        return
                    turn.wait_for(partial(may_start, *task))
                    if failures:
                        return
                block, job = task
                if job == CLOSE:
                    close(block, room)
                else:
                    jobs[job](block, room)
                with turn:
                    if job == CLOSE:
                        last_closed = block
                    else:
                        last_done[job] = block
                    turn.notify_all()
        except BaseException as failure:
            with turn:
                failures.append(failure)
                turn.notify_all()

    helpers = [threading.Thread(target=work) for _ in range(threads - 1)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[0]

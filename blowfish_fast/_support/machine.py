"""What this process may use: cores, work shared among them, memory, a cache folder.

Blocks are worked off by a few threads, each of which takes the first task of one fixed
list that may start: a job waits for its buffer and, if it carries a state, for the same
job of the block before; a closing step waits for its jobs and the step before. All wait
only for tasks earlier in the list, so nothing locks up, and results do not depend on
which thread does what.

What a mechanism needs follows from public sizes, and is asked before anything is
charged or drawn: a refusal says nothing about data.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from blowfish_fast.errors import SizeError

Room = TypeVar("Room")

CLOSE = -1

MANY_CELLS = 2**16
"""Below, starting a thread takes longer than its work."""

BASE_BYTES = 2**26
"""What a small release takes: stacks of threads, tables, matrices of bounded size."""

COMPILER_BYTES = 640 * 2**20
"""Address space taken when the compiler is loaded and kernels are built."""


FEW_THREADS = 8
"""So many serve any work of `MANY_CELLS`; more of them need more cells each."""
CELLS_PER_THREAD = 2**17


def cache_folder() -> Path:
    """Return where what follows from public facts is kept for other processes.

    Returns
    -------
    Path
        The folder that ``BLOWFISH_CACHE_DIR`` names, else the one among the user's
        caches.

    Raises
    ------
    FileNotFoundError
        If it is set to nothing, or nobody's home is known: nothing is kept then.
    """
    named = os.environ.get("BLOWFISH_CACHE_DIR")
    if named == "":
        raise FileNotFoundError("nothing is kept: BLOWFISH_CACHE_DIR is empty")
    if named is not None:
        return Path(named)
    try:
        folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as problem:
        raise FileNotFoundError("nothing is kept: no home is known") from problem
    return Path(folder) / "blowfish_fast"


def usable_cores(most: int = FEW_THREADS) -> int:
    """Return how many threads are worth starting, where a process is bound to cores."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min(cores, most))


def threads_for(cells: int) -> int:
    """Return the threads for work over so many cells."""
    if cells < MANY_CELLS:
        return 1
    return usable_cores(max(FEW_THREADS, cells // CELLS_PER_THREAD))


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
    """Return how many buffers `run_blocks` uses in turn.

    Parameters
    ----------
    blocks : int
        Blocks that are worked on.
    threads : int
        Threads that work.

    Returns
    -------
    int
        One buffer for a single thread; else one for each thread and one that is closed
        meanwhile.
    """
    return min(blocks, 1 if threads == 1 else threads + 1)


def _tasks(blocks: int, jobs: int, threads: int) -> Iterator[tuple[int, int]]:
    """Yield (block, job) in the order in which threads look for one that may start."""
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
    in_order: Sequence[bool] | None = None,
) -> None:
    """Run every job of every block, and close the blocks in order.

    Block ``q`` may write to buffer ``q % buffers_needed(blocks, threads)``. With three
    blocks, two jobs and two threads, time runs to the right::

        caller   0.first   0.second  close 0   1.second  close 1   close 2
        helper             1.first   2.first             2.second

    A job that carries a state takes the blocks in order; jobs of one block, and of
    neighbouring ones, overlap.

    Parameters
    ----------
    blocks : int
        How many blocks there are.
    jobs : sequence of callable
        Each takes a block's number and the room of its thread.
    close : callable
        Takes the same, once all jobs of the block are done and the block before is
        closed.
    threads : int
        How many threads work; the caller's own is one of them.
    make_room : callable
        Makes the working memory of a thread; each thread calls it once.
    in_order : sequence of bool, optional
        For each job whether it carries a state from block to block. Where False, it may
        run on a block before it has run on the one before. By default all carry one.

    Raises
    ------
    BaseException
        The first failure of a job; no other task begins after it.
    """
    buffers = buffers_needed(blocks, threads)
    tasks = _tasks(blocks, len(jobs), threads)
    passed_over: list[tuple[int, int]] = []
    turn = threading.Condition()
    carries_state = [True] * len(jobs) if in_order is None else list(in_order)
    last_done = [-1] * len(jobs)
    # Of the blocks that may be worked on; later ones take the places of closed ones.
    jobs_left = [len(jobs)] * buffers
    last_closed = -1
    failures: list[BaseException] = []

    def may_start(block: int, job: int) -> bool:
        if job == CLOSE:
            return last_closed == block - 1 and jobs_left[block % buffers] == 0
        if last_closed < block - buffers:
            return False
        return not carries_state[job] or last_done[job] == block - 1

    def next_task() -> tuple[int, int] | None:
        """Take the first task that may start; None if none may yet, or none is left."""
        for place, task in enumerate(passed_over):
            if may_start(*task):
                return passed_over.pop(place)
        # No buffer is free for later ones.
        while not passed_over or last_closed >= passed_over[-1][0] - buffers:
            task_after = next(tasks, None)
            if task_after is None or may_start(*task_after):
                return task_after
            passed_over.append(task_after)
        return None

    def work() -> None:
        nonlocal last_closed
        try:
            room = make_room()
            while True:
                with turn:
                    task = next_task()
                    while task is None and passed_over and not failures:
                        turn.wait()
                        task = next_task()
                    if task is None or failures:
                        return
                block, job = task
                if job == CLOSE:
                    close(block, room)
                else:
                    jobs[job](block, room)
                with turn:
                    if job == CLOSE:
                        last_closed = block
                        jobs_left[block % buffers] = len(jobs)
                    else:
                        last_done[job] = block
                        jobs_left[block % buffers] -= 1
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


def check_memory(needed: int, what: str, consequence: str) -> None:
    """Refuse `what` if it needs more bytes, beside a small release, than there are.

    Parameters
    ----------
    needed : int
        Bytes that it may need.
    what : str
        What is refused; the message begins with it.
    consequence : str
        What has not happened because of the refusal.

    Raises
    ------
    SizeError
        If there is less memory than that.
    """
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
    return max(min(_address_room(), _left_by_others(int(20 * time.monotonic()))), 0.0)


@lru_cache(maxsize=1)
def _left_by_others(_moment: int) -> float:
    """Return what is free; read once a moment: who starts at once sees the same."""
    return min(_container_room(), _free_memory())


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

from __future__ import annotations

import threading
import time

import pytest

from blowfish_fast._support.machine import buffers_needed, run_blocks


def record(blocks, jobs, threads, in_order=None):
    """Run jobs that note what they do, and what had been done before them."""
    log = []
    lock = threading.Lock()

    def note(*what):
        with lock:
            log.append(what)

    def job_of(index):
        def job(block, room):
            note("begin", block, index)
            time.sleep(0.0005 * ((block + index) % 3))
            room.append((block, index))
            note("end", block, index)

        return job

    def close(block, room):
        note("begin", block, "close")
        note("end", block, "close")

    run_blocks(
        blocks,
        [job_of(index) for index in range(jobs)],
        close,
        threads=threads,
        make_room=list,
        in_order=in_order,
    )
    return log


@pytest.mark.parametrize("overtaking", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize(("blocks", "jobs"), [(1, 1), (1, 4), (7, 1), (6, 4)])
def test_everything_runs_once_and_in_order(blocks, jobs, threads, overtaking):
    in_order = [not overtaking or job % 2 == 1 for job in range(jobs)]
    log = record(blocks, jobs, threads, in_order if overtaking else None)
    place = {what: index for index, what in enumerate(log)}
    assert len(place) == len(log) == 2 * blocks * (jobs + 1)
    buffers = buffers_needed(blocks, threads)
    for block in range(blocks):
        for job in range(jobs):
            begin = place["begin", block, job]
            assert place["end", block, job] < place["begin", block, "close"]
            if block > 0 and in_order[job]:
                assert place["end", block - 1, job] < begin
            if block >= buffers:
                assert place["end", block - buffers, "close"] < begin
        if block > 0:
            before = place["end", block - 1, "close"]
            assert before < place["begin", block, "close"]


def test_jobs_without_a_state_overtake():
    second_began = threading.Event()

    def job(block, room):
        if block == 1:
            second_began.set()
        elif block == 0:
            assert second_began.wait(timeout=60)

    def close(block, room):
        pass

    run_blocks(3, [job], close, threads=2, make_room=list, in_order=[False])
    assert second_began.is_set()


def test_one_thread_needs_one_buffer():
    assert buffers_needed(10, 1) == 1
    assert buffers_needed(10, 2) == 3
    assert buffers_needed(2, 8) == 2


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("where", ["job", "close", "room"])
def test_a_failure_reaches_the_caller_and_stops_the_others(threads, where):
    ran = []
    before = set(threading.enumerate())

    def job(block, room):
        ran.append(block)
        if where == "job" and block == 2:
            raise KeyError("broken")

    def close(block, room):
        if where == "close" and block == 2:
            raise KeyError("broken")

    def make_room():
        if where == "room":
            raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        run_blocks(50, [job, job], close, threads=threads, make_room=make_room)
    assert len(ran) < 50
    assert set(threading.enumerate()) <= before


def test_each_thread_has_its_own_room():
    rooms = []
    owners = []

    def make_room():
        rooms.append(object())
        return rooms[-1]

    def job(block, room):
        owners.append((threading.get_ident(), id(room)))
        time.sleep(0.001)

    run_blocks(12, [job, job], lambda block, room: None, threads=3, make_room=make_room)
    assert len(rooms) == 3
    assert len(set(owners)) == len({thread for thread, _ in owners})

"""Prices that take long: beside the server, one per person, ended with their client."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict

import pytest
from fastapi import HTTPException

from blowfish_fast.accounting.composition import EPSILON
from blowfish_fast.apps.explorer import all_tables, planning, planning_work
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.explorer.planning import Planner
from blowfish_fast.apps.explorer.questions import read_question
from blowfish_fast.apps.server import curator_routes, price_workers
from blowfish_fast.apps.server.keys import CURATOR
from blowfish_fast.apps.server.price_workers import (
    CLIENT_WENT,
    PriceTask,
    PriceWorkers,
    Worker,
    answer_task,
)

from .serving import AGES, TABLE, TOTALS

PLANNER = Planner(EPSILON, 50)
TASK = PriceTask.of("price", PLANNER, as_table(TABLE), read_question(AGES))


class SlowWorker(Worker):
    """A worker that answers when it is told to, or is ended before."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.told = threading.Event(), threading.Event()
        self.ended = 0

    def answer(self, task):
        self.begun.set()
        assert self.told.wait(20)
        if self.ended:
            raise EOFError
        return True, task

    def end(self) -> None:
        self.ended += 1
        self.told.set()


def slow_workers(number=1, quick=0):
    workers = PriceWorkers(number, quick)
    workers._workers = [SlowWorker() for _ in range(quick + number)]
    return workers


async def stays() -> bool:
    return False


def test_the_work_ends_when_the_client_goes(monkeypatch):
    monkeypatch.setattr(price_workers, "SECONDS_BETWEEN_LOOKS", 0.01)
    workers = slow_workers()
    (slow,) = workers._workers

    async def went() -> bool:
        return slow.begun.is_set()

    async def ask() -> None:
        with pytest.raises(HTTPException) as gone:
            await workers.run(TASK, "ann", went)
        assert gone.value.status_code == CLIENT_WENT
        assert slow.ended == 1
        # The worker is there for the next one.
        slow.ended = 0
        assert await workers.run(TASK, "bob", stays) == TASK

    asyncio.run(ask())
    workers.close()


def test_whoever_went_while_waiting_costs_no_work():
    workers = slow_workers()
    (slow,) = workers._workers

    async def gone() -> bool:
        return True

    async def ask() -> None:
        with pytest.raises(HTTPException):
            await workers.run(TASK, "ann", gone)

    asyncio.run(ask())
    assert not slow.begun.is_set()
    workers.close()


def test_one_person_has_one_price_worked_out_and_others_pass():
    workers = slow_workers(2)

    async def ask() -> None:
        by_ann = [asyncio.create_task(workers.run(TASK, "ann", stays)) for _ in "abc"]
        await asyncio.sleep(0.05)
        assert sum(slow.begun.is_set() for slow in workers._workers) == 1
        by_bob = asyncio.create_task(workers.run(TASK, "bob", stays))
        await asyncio.sleep(0.05)
        assert all(slow.begun.is_set() for slow in workers._workers)
        for slow in workers._workers:
            slow.told.set()
        assert await asyncio.gather(*by_ann, by_bob) == [TASK] * 4

    asyncio.run(ask())
    assert not workers._turns
    workers.close()


def test_more_than_may_wait_are_refused(monkeypatch):
    monkeypatch.setattr(price_workers, "WAITING", 1)
    workers = slow_workers()

    async def ask() -> None:
        first = asyncio.create_task(workers.run(TASK, "ann", stays))
        await asyncio.sleep(0.05)
        with pytest.raises(HTTPException, match="ask again in a moment"):
            await workers.run(TASK, "bob", stays)
        workers._workers[0].told.set()
        await first

    asyncio.run(ask())
    workers.close()


def test_middling_prices_pass_eight_large_ones():
    workers = slow_workers(2, quick=1)
    reserved, *others = workers._workers
    reserved.told.set()

    async def ask() -> None:
        large = [
            asyncio.create_task(workers.run(TASK, f"a{number}", stays))
            for number in range(8)
        ]
        await asyncio.sleep(0.05)
        assert all(slow.begun.is_set() for slow in others)
        # Large ones leave it alone, however many of them wait.
        assert not reserved.begun.is_set()
        # Her own large price does not hold her up either.
        for who in ("ann", "a0", "a7"):
            assert await workers.run(TASK, who, stays, quick=True) == TASK
        assert reserved.begun.is_set()
        assert not any(task.done() for task in large)
        for slow in others:
            slow.told.set()
        assert await asyncio.gather(*large) == [TASK] * 8

    asyncio.run(ask())
    assert not workers._turns
    assert not workers._line
    assert not workers._busy
    workers.close()


def test_middling_prices_take_any_worker_that_is_free():
    workers = slow_workers(1, quick=1)

    async def ask() -> None:
        both = [
            asyncio.create_task(workers.run(TASK, who, stays, quick=True))
            for who in ("ann", "bob")
        ]
        await asyncio.sleep(0.05)
        assert all(slow.begun.is_set() for slow in workers._workers)
        for slow in workers._workers:
            slow.told.set()
        assert await asyncio.gather(*both) == [TASK] * 2

    asyncio.run(ask())
    workers.close()


def test_whoever_gives_up_in_line_keeps_no_worker():
    workers = slow_workers()
    (slow,) = workers._workers

    async def ask() -> None:
        first = asyncio.create_task(workers.run(TASK, "ann", stays))
        behind = [
            asyncio.create_task(workers.run(TASK, who, stays)) for who in ("bob", "eve")
        ]
        await asyncio.sleep(0.05)
        behind[0].cancel()
        await asyncio.sleep(0)
        assert len(workers._line) == 1
        # Handed over and given up in the same turn of the loop.
        workers._given_back(slow)
        behind[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await behind[1]
        assert not workers._busy
        slow.told.set()
        assert await first == TASK
        assert await workers.run(TASK, "eve", stays) == TASK

    asyncio.run(ask())
    assert not workers._line
    workers.close()


def test_a_task_gives_what_the_planner_gives():
    planners: OrderedDict[str, Planner] = OrderedDict()
    done, (plan, without) = answer_task(TASK, planners)
    assert done
    assert plan.cost == PLANNER.plan(as_table(TABLE), read_question(AGES)).cost
    assert without is None
    (planner,) = planners.values()
    assert answer_task(TASK, planners)[1][0] is plan
    curve = TASK._replace(wanted="trade_off", options={"thetas": [4]})
    assert [row["theta"] for row in answer_task(curve, planners)[1]] == [None, 4]
    bought = {**AGES, "cost": {"epsilon": 0.5}}
    asked = TASK._replace(wanted="accuracy", question=bought, options={"beta": 0.1})
    told = planner.accuracy(as_table(TABLE), read_question(bought), beta=0.1)
    assert answer_task(asked, planners) == (True, told)
    alone = TASK._replace(wanted="plan")
    assert answer_task(alone, planners)[1] == (plan, None)
    every = {"budget": {"epsilon": 1}, "columns": ["age"], "ways": 1}
    tables = TASK._replace(wanted="all_tables", question={}, options=every)
    assert len(answer_task(tables, planners)[1]["tables"]) == 1
    assert PriceTask.of("all_tables", PLANNER, as_table(TABLE), None).question == {}


def test_reasons_travel_and_words_of_unforeseen_errors_do_not(monkeypatch):
    strange = TASK._replace(question={**AGES, "attribute": "height"})
    done, problem = answer_task(strange, OrderedDict())
    assert not done
    with pytest.raises(Exception, match="height"):
        raise problem

    def fail(*_, **__):
        raise ValueError("a record")

    monkeypatch.setattr(Planner, "plan", fail)
    done, problem = answer_task(TASK, OrderedDict())
    assert not done
    assert str(problem) == "ValueError"


def test_a_worker_remembers_few_tables(monkeypatch):
    monkeypatch.setattr(price_workers, "PLANNERS", 1)
    monkeypatch.setattr(PriceTask, "result", lambda *_: None)
    planners: OrderedDict[str, Planner] = OrderedDict()
    for samples in (10, 20):
        answer_task(TASK._replace(samples=samples), planners)
    (planner,) = planners.values()
    assert planner.samples == 20


@pytest.mark.long
def test_large_prices_are_worked_out_in_another_process(own_server, monkeypatch):
    monkeypatch.setattr(planning_work, "SMALL", 0)
    monkeypatch.setattr(planning_work, "MIDDLING", 0)

    def refuse(*_):
        raise AssertionError("planned beside what is charged")

    monkeypatch.setattr(planning.Planner, "_planned", refuse)
    used: set[Worker] = set()
    answer_of = Worker.answer

    def note(worker, task):
        used.add(worker)
        return answer_of(worker, task)

    monkeypatch.setattr(Worker, "answer", note)
    monkeypatch.setattr(all_tables, "FEW_TABLES", 0)
    bought = {"question": {**TOTALS, "cost": {"epsilon": 0.5}}}
    curve = {"question": TOTALS, "thetas": [2]}
    near = {"age": {"kind": "threshold", "theta": 2}}
    shown = {"question": TOTALS, "epsilon": 0.5, "compared": [near]}
    with own_server.client("ann") as ann, own_server.client(CURATOR) as curator:
        # A new process loads what it needs, which takes long on a busy machine.
        ann.timeout = curator.timeout = 400
        told = ann.post("/api/explain", json={"question": TOTALS}).json()
        answer = ann.post("/api/ask", json={"question": TOTALS}).json()
        assert answer["epsilon"] == told["cost"] > 0
        assert ann.post("/api/accuracy", json=bought).json()["alpha"] > 0
        lines = curator.post("/api/curator/trade-off", json=curve).text.splitlines()
        assert len(lines) == 2
        preview = curator.post("/api/curator/preview", json=shown).json()
        assert len(preview["compared"]) == 1
        monkeypatch.setattr(curator_routes, "predict_tables", refuse)
        body = {"table": "people", "epsilon": 1, "columns": ["age", "sex"]}
        predicted = curator.post("/api/curator/all-tables", json=body).json()
        assert len(predicted["tables"]) == 3
    # Who worked last worked again, and can be ended at any time.
    (worker,) = used
    worker.end()
    assert worker._process is None


@pytest.mark.long
def test_small_prices_meet_no_worker(own_server, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("sent to a worker")

    monkeypatch.setattr(PriceWorkers, "run", refuse)
    with own_server.client("ann") as ann:
        assert ann.post("/api/explain", json={"question": AGES}).status_code == 200


@pytest.mark.long
def test_what_was_answered_stays_readable_when_it_would_be_refused(
    own_server, monkeypatch
):
    with own_server.client("ann") as ann:
        given = ann.post("/api/ask", json={"question": AGES}).json()
        explorer = own_server.workspace.explorer("people")
        explorer.planner = Planner(EPSILON, 50)
        monkeypatch.setattr(planning_work, "MOST_SINGLE_BINS", 3)
        refused = ann.post("/api/explain", json={"question": AGES})
        assert refused.json()["error"]["code"] == "price_takes_too_long"
        asked = {"table": "people", "request": given["request"]}
        again = ann.get("/api/answer", params=asked).json()
        replayed = ann.post("/api/ask", json={"question": AGES}).json()
    assert again["values"] == replayed["values"] == given["values"]


def test_all_workers_start_and_end_with_their_server(monkeypatch):
    workers, begun = PriceWorkers(2), []
    # Only large prices give way to whatever else the machine does.
    nicer = [worker.nicer for worker in workers._workers]
    assert nicer == [0, price_workers.LOWER_PRIORITY, price_workers.LOWER_PRIORITY]
    monkeypatch.setattr(Worker, "start", lambda worker, **_: begun.append(worker))
    workers.start()
    assert begun == workers._workers
    workers.close()

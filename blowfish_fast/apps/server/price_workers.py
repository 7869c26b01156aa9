"""Prices that take long are worked out in processes beside the one that charges.

    request --> small       a thread of the server                       at once
            --> middling    a turn of the person --> any free worker     up to WAITING
            --> large       a turn of the person --> a free worker,      up to WAITING
                            but for those that are left to middling ones
                                                        |
    client hangs up ------------------------------ the worker is ended

A worker is told the description of a table and a question, which are public, and sends
back a plan. It knows no ledger, no records and no secrets. Small questions never wait
for others, and neither does what is charged; middling ones never wait for large ones
alone. A person has one price of each size worked out at a time, so that whoever sends
many waits for his own.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Literal, NamedTuple

from fastapi import HTTPException

from blowfish_fast.accounting.composition import EPSILON, RHO, Currency
from blowfish_fast.apps.explorer.all_tables import predict_tables
from blowfish_fast.apps.explorer.catalog import TableSpec, as_table
from blowfish_fast.apps.explorer.planning import Planner, rehearse
from blowfish_fast.apps.explorer.questions import Question, read_question
from blowfish_fast.apps.explorer.remembered.broader import cheapest_broader
from blowfish_fast.errors import BlowfishError

WORKERS = 2
"""Processes that work out prices of any size."""
QUICK_WORKERS = 1
"""Processes that work out middling prices alone."""
WAITING = 64
"""Prices of each size that may wait; more are refused."""
SECONDS_BETWEEN_LOOKS = 0.2
"""How often a waiting request asks whether its client is still there."""
LOWER_PRIORITY = 10
"""By how much workers for prices of any size are nicer than the server."""
PLANNERS = 16
"""Tables whose shapes a worker remembers."""
CLIENT_WENT = 499
"""The status of a request whose client has hung up: nobody receives it."""

Wanted = Literal["price", "plan", "accuracy", "trade_off", "all_tables", "broad"]


class PriceTask(NamedTuple):
    """What a worker is told; all of it is public.

    Attributes
    ----------
    wanted : {"price", "plan", "accuracy", "trade_off", "all_tables", "broad"}
        What is worked out. A plan is a price that nobody compares with others; broad is
        the cheapest broader question, at its price.
    table : dict
        The description of the table.
    question : dict
        The question with its cost; empty where all tables are meant.
    currency : str
        That of the table's ledger.
    samples : int
        Draws that sharpen a price.
    options : dict
        What else the method of the planner takes. A price with options is that of a
        stored answer: nobody compares it with the price without policies.
    """

    wanted: Wanted
    table: dict[str, Any]
    question: dict[str, Any]
    currency: str
    samples: int
    options: dict[str, Any]

    @classmethod
    def of(
        cls,
        wanted: Wanted,
        planner: Planner,
        table: TableSpec,
        asked: Question | None,
        **options: Any,
    ) -> PriceTask:
        """Return the task of one method of a planner.

        Parameters
        ----------
        wanted : {"price", "plan", "accuracy", "trade_off", "all_tables", "broad"}
            The method.
        planner : Planner
            Its currency and its samples are taken over.
        table : TableSpec
            The described table with its policies.
        asked : Question or None
            The question with its cost; None where all tables are meant.
        **options : object
            What else the method takes.

        Returns
        -------
        PriceTask
            The task, in plain data.
        """
        plain = {} if asked is None else asked.model_dump(mode="json")
        name = planner.currency.name
        described = table.without_borders().to_dict()
        return cls(wanted, described, plain, name, planner.samples, options)

    def result(self, planner: Planner) -> Any:
        """Work out what is wanted."""
        table = as_table(self.table)
        if self.wanted == "all_tables":
            return predict_tables(table, **self.options)
        asked = read_question(self.question)
        if self.wanted == "accuracy":
            return planner.accuracy(table, asked, **self.options)
        if self.wanted == "trade_off":
            return list(planner.trade_off(table, asked, **self.options))
        if self.wanted == "broad":
            return cheapest_broader(planner, table, asked)
        plan = planner.plan(table, asked, **self.options)
        compared = self.wanted == "price" and not self.options
        return plan, planner.without_policies(table, asked) if compared else None


def work_on_prices(
    connection: Connection, rehearsed: bool, nicer: int = LOWER_PRIORITY
) -> None:
    """Answer task after task, until the other end of the connection is closed.

    Parameters
    ----------
    connection : Connection
        Where tasks come from and answers go.
    rehearsed : bool
        Whether what is compiled is loaded first, while nobody waits yet.
    nicer : int
        By how much the process is nicer than the server.
    """
    with suppress(AttributeError, OSError):
        os.nice(nicer)
    if rehearsed:
        rehearse()
    planners: OrderedDict[str, Planner] = OrderedDict()
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            task: PriceTask = connection.recv()
            connection.send(answer_task(task, planners))


def answer_task(
    task: PriceTask, planners: OrderedDict[str, Planner]
) -> tuple[bool, Any]:
    """Return whether a task was done, and its result or the reason why not.

    Parameters
    ----------
    task : PriceTask
        What is wanted.
    planners : OrderedDict
        Planners by table, the latest last; a new table is entered.

    Returns
    -------
    done : bool
        Whether it was worked out.
    result : object
        The result, or the error that says why there is none.
    """
    key = f"{task.currency} {task.samples} {task.table}"
    try:
        if key not in planners:
            currency: Currency = {
                currency_kind.name: currency_kind for currency_kind in (EPSILON, RHO)
            }[task.currency]
            planners[key] = Planner(currency, task.samples)
            while len(planners) > PLANNERS:
                planners.popitem(last=False)
        return True, task.result(planners[key])
    except BlowfishError as problem:
        return False, problem
    except Exception as problem:
        # Its words stay here: nobody has read them for what they might tell.
        return False, RuntimeError(type(problem).__name__)


class Worker:
    """One process, started when it is first needed and again after it was ended.

    Parameters
    ----------
    nicer : int
        By how much it is nicer than the server.
    """

    def __init__(self, nicer: int = LOWER_PRIORITY) -> None:
        self.nicer = nicer
        """By how much it is nicer than the server."""
        self._process: Any = None
        self._connection: Connection | None = None

    def start(self, *, rehearsed: bool = False) -> None:
        """Start the process, unless it runs; it may load what it needs beforehand."""
        if self._connection is not None:
            return
        kinds = multiprocessing.get_all_start_methods()
        # Never a plain fork: it would share ledgers and locks with the server.
        kind = "forkserver" if "forkserver" in kinds else "spawn"
        context: Any = multiprocessing.get_context(kind)
        self._connection, other = context.Pipe()
        self._process = context.Process(
            target=work_on_prices, args=(other, rehearsed, self.nicer), daemon=True
        )
        self._process.start()
        other.close()

    def answer(self, task: PriceTask) -> tuple[bool, Any]:
        """Have a task answered; raise EOFError or OSError if the process has ended."""
        self.start()
        connection = self._connection
        assert connection is not None
        connection.send(task)
        done, result = connection.recv()
        return bool(done), result

    def end(self) -> None:
        """End the process, whatever it does; the next task starts another."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if process is not None:
            process.kill()
            process.join()
        if connection is not None:
            connection.close()


class PriceWorkers:
    """The workers of one server, and the order in which people get them.

    Parameters
    ----------
    workers : int
        How many processes work on prices of any size; they start when they are needed.
    quick : int
        How many more work on middling prices alone.
    """

    def __init__(self, workers: int = WORKERS, quick: int = QUICK_WORKERS) -> None:
        # What is middling is short, and somebody waits for it: it is not held back.
        self._workers = [Worker(0) for _ in range(quick)]
        self._workers += [Worker() for _ in range(workers)]
        self._quick = quick
        self._threads = ThreadPoolExecutor(quick + workers, "prices")
        self._busy: set[Worker] = set()
        self._line: list[tuple[bool, asyncio.Future[Worker]]] = []
        self._turns: dict[str, asyncio.Lock] = {}
        self._waiting = {True: 0, False: 0}

    def start(self) -> None:
        """Start all workers now, so that the first large price need not wait."""
        for worker in self._workers:
            worker.start(rehearsed=True)

    async def run(
        self,
        task: PriceTask,
        who: str,
        gone: Callable[[], Awaitable[bool]],
        *,
        quick: bool = False,
    ) -> Any:
        """Return the result of a task, worked out in a process of its own.

        Parameters
        ----------
        task : PriceTask
            What is wanted.
        who : str
            For whom; a person has one task of each size worked out at a time.
        gone : callable
            Tells whether the client has hung up.
        quick : bool
            Whether it takes so little that it waits for nothing large.

        Returns
        -------
        object
            What the task gives.

        Raises
        ------
        HTTPException
            If too many tasks wait, or the client has gone.
        BlowfishError
            If the question cannot be priced.
        """
        if self._waiting[quick] >= WAITING:
            raise HTTPException(
                503, "many prices are being worked out; ask again in a moment"
            )
        self._waiting[quick] += 1
        turns = f"{who}, quick" if quick else who
        turn = self._turns.setdefault(turns, asyncio.Lock())
        try:
            async with turn:
                done, result = await self._answered(task, gone, quick=quick)
        finally:
            self._waiting[quick] -= 1
            if not turn.locked():
                self._turns.pop(turns, None)
        if not done:
            raise result
        return result

    def _serves(self, worker: Worker, *, quick: bool) -> bool:
        """Return whether a worker may have a task: the first ones have quick ones."""
        return quick or worker not in self._workers[: self._quick]

    async def _taken(self, *, quick: bool) -> Worker:
        """Return a worker that is free, once there is one for the task.

        The first that fits is taken, so that what it has loaded stays at hand. Whoever
        comes while others wait for the same workers waits behind them.
        """
        for worker in self._workers:
            if worker not in self._busy and self._serves(worker, quick=quick):
                self._busy.add(worker)
                return worker
        waiter: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        place = (quick, waiter)
        self._line.append(place)
        try:
            return await waiter
        except asyncio.CancelledError:
            if place in self._line:
                self._line.remove(place)
            elif not waiter.cancelled():
                self._given_back(waiter.result())
            raise

    def _given_back(self, worker: Worker) -> None:
        """Hand a worker to the first in line whom it serves, or let it rest."""
        for place in self._line:
            quick, waiter = place
            if self._serves(worker, quick=quick) and not waiter.done():
                self._line.remove(place)
                waiter.set_result(worker)
                return
        self._busy.discard(worker)

    async def _answered(
        self, task: PriceTask, gone: Callable[[], Awaitable[bool]], *, quick: bool
    ) -> tuple[bool, Any]:
        worker = await self._taken(quick=quick)
        try:
            if await gone():
                raise HTTPException(CLIENT_WENT, "the client has hung up")
            loop = asyncio.get_running_loop()
            reply = loop.run_in_executor(self._threads, worker.answer, task)
            try:
                while not (await asyncio.wait({reply}, timeout=SECONDS_BETWEEN_LOOKS))[
                    0
                ]:
                    if await gone():
                        raise HTTPException(CLIENT_WENT, "the client has hung up")
                return reply.result()
            except BaseException:
                worker.end()
                # Its thread sees the end of the connection, and is free again.
                await asyncio.wait({reply})
                with suppress(EOFError, OSError, TypeError):
                    reply.result()
                raise
        finally:
            self._given_back(worker)

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.end()
        self._threads.shutdown(wait=False, cancel_futures=True)


if sys.platform != "win32":  # pragma: no branch
    with suppress(ValueError):
        # The parent of workers loads this once, and every worker starts with it.
        multiprocessing.get_context("forkserver").set_forkserver_preload([__name__])

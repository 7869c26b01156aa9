"""Who may call what, and the record of who did.

Failures are the same whether a secret was forged, revoked or never made. Logs hold
names, times and amounts of budget, never data; only the owner reads them.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache, partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, HTTPException, Request
from starlette.concurrency import run_in_threadpool

from blowfish_fast.apps.explorer.catalog import TableSpec
from blowfish_fast.apps.explorer.exploration import Explorer
from blowfish_fast.apps.explorer.questions import Question
from blowfish_fast.apps.explorer.same_question import canonical

from .keys import ROLES, Caller, Login, Logins, RateLimit, Role
from .price_workers import PriceTask, PriceWorkers, Wanted
from .workspace import Workspace

COOKIE = "blowfish_session"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
LONGEST = 200
"""Characters of a value that is logged."""
HELP = {
    "blowfish_requests_total": "Requests by status.",
    "blowfish_request_seconds": "Seconds until a response began, by route.",
    "blowfish_questions_total": "Questions: charged, read, replayed, refused.",
    "blowfish_logins_total": "Attempts to log in, by outcome.",
    "blowfish_budget": "Budget of a table.",
    "blowfish_charged_total": "Charged to a table so far.",
    "blowfish_databases_away": "Databases that do not answer.",
    "blowfish_disk_free_bytes": "Bytes that are free where ledgers are written.",
}
SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper ends of the classes of seconds; what takes longer counts in the last one."""
HISTOGRAM = ("_bucket", "_sum", "_count")
"""How the names of a histogram's numbers end."""


class EventLog:
    """Appends events to a file, each as one line of JSON.

    Parameters
    ----------
    path : Path
        The file; it is made when the first event is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, **fields: Any) -> None:
        """Append an event; a full disk does not stop the server.

        Parameters
        ----------
        **fields : object
            What happened, by name: these are the keys of the line, beside "time".
            Fields that are None are left out, and long texts are cut.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        plain = {
            name: value[:LONGEST] if isinstance(value, str) else value
            for name, value in fields.items()
            if value is not None
        }
        line = json.dumps({"time": now, **plain}) + "\n"
        own = partial(os.open, mode=0o600)
        # Opened anew, so that whoever moves the file away gets a new one.
        with suppress(OSError), open(self.path, "ab", 0, opener=own) as file:
            file.write(line.encode())


class Metrics:
    """Counters of one server, since it started, as Prometheus reads them."""

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter.

        Parameters
        ----------
        name : str
            One of the counters of `HELP`.
        amount : float
            What is added.
        **labels : str
            Prometheus labels by name, such as ``status="200"``; each set of labels
            counts alone.
        """
        with self._lock:
            self._counts[name, _labels(*labels.items())] += amount

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Count a duration in the histogram of its labels.

        Parameters
        ----------
        name : str
            One of the histograms of `HELP`.
        seconds : float
            The duration.
        **labels : str
            Prometheus labels by name; each set of labels has a histogram of its own.
        """
        pairs = tuple(labels.items())
        with self._lock:
            for end in (*SECONDS, math.inf):
                text = "+Inf" if end == math.inf else f"{end:g}"
                below = int(seconds <= end)
                self._counts[f"{name}_bucket", _labels(*pairs, ("le", text))] += below
            self._counts[f"{name}_sum", _labels(*pairs)] += seconds
            self._counts[f"{name}_count", _labels(*pairs)] += 1

    def text(self, work: Workspace) -> str:
        """Return all counters, and the budgets as they stand.

        Parameters
        ----------
        work : Workspace
            Its tables' budgets and its databases are read at this moment.

        Returns
        -------
        str
            Lines in the format that Prometheus scrapes.
        """
        with self._lock:
            # In the order of their first use: classes of a histogram stay together.
            rows = dict(self._counts)
        for table in work.tables:
            ledger = work.explorer(table).ledger
            labels = _labels(("table", table), ("currency", ledger.currency.name))
            rows["blowfish_budget", labels] = float(ledger.budget)
            rows["blowfish_charged_total", labels] = float(ledger.spent)
        rows["blowfish_databases_away", ""] = len(work.away())
        rows["blowfish_disk_free_bytes", ""] = work.free_bytes()
        lines = []
        for name, words in HELP.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            keys = [name]
            if name.endswith("_seconds"):
                kind, keys = "histogram", [f"{name}{end}" for end in HISTOGRAM]
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
            lines += [
                f"{key}{labels} {value:.10g}"
                for (key, labels), value in rows.items()
                if key in keys
            ]
        return "\n".join(lines) + "\n"


@lru_cache(maxsize=2048)
def _labels(*labels: tuple[str, str]) -> str:
    # JSON escapes quotes, backslashes and breaks as Prometheus does.
    inside = [f"{name}={json.dumps(text, ensure_ascii=False)}" for name, text in labels]
    return "{" + ",".join(inside) + "}" if inside else ""


class Gate:
    """The locks and the logs of one server.

    The right secret always opens: nobody is locked out by others who try wrong secrets
    from the same address.

    Parameters
    ----------
    workspace : Workspace
        It holds the secrets and the folder of the logs.
    requests : RateLimit, optional
        How often each person may ask; by default 40 a second, 120 at once.
    logins : RateLimit, optional
        How often each address may try wrong secrets; by default every two seconds,
        10 at once.
    trusted_proxies : sequence of str
        Addresses or networks whose X-Forwarded-For is believed.
    """

    def __init__(
        self,
        workspace: Workspace,
        requests: RateLimit | None = None,
        logins: RateLimit | None = None,
        trusted_proxies: Sequence[str] = (),
    ) -> None:
        self.workspace = workspace
        self.sessions = Logins()
        self.metrics = Metrics()
        self.prices = PriceWorkers()
        self.access = EventLog(workspace.folder / "logs" / "access.log")
        self.audit = EventLog(workspace.folder / "logs" / "audit.log")
        self.requests = requests or RateLimit(capacity=120, per_second=40)
        self.logins = logins or RateLimit(capacity=10, per_second=0.5)
        self._proxies = [
            ip_network(network, strict=False) for network in trusted_proxies
        ]

    def address(self, request: Request) -> str:
        """Return the nearest address of a request that is no trusted proxy's.

        What stands before it in the header was written by whoever sent the request.

        Parameters
        ----------
        request : Request
            A request, directly or through proxies.

        Returns
        -------
        str
            An address, or "unknown".
        """
        nearest = request.client.host if request.client else "unknown"
        stated = request.headers.get("x-forwarded-for", "").split(",")
        passed = [address.strip() for address in stated if address.strip()]
        while passed and self._is_proxy(nearest):
            nearest = passed.pop()
        return nearest

    def _is_proxy(self, address: str) -> bool:
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._proxies)

    def identify_secret(self, secret: str, request: Request) -> Caller | None:
        """Return whose secret it is; wrong ones are counted, and slowed down.

        Parameters
        ----------
        secret : str
            What somebody sent as her secret.
        request : Request
            Where it came from; its address is logged if the secret is wrong.

        Returns
        -------
        Caller or None
            Role and name; None if the secret is nobody's.

        Raises
        ------
        HTTPException
            With status 429, if the address tried too many wrong ones.
        """
        caller = self.workspace.keys.identify(secret)
        outcome = "wrong" if caller is None else "right"
        self.metrics.add("blowfish_logins_total", outcome=outcome)
        if caller is None:
            self.audit.write(what="wrong secret", origin=self.address(request))
            _limit(self.logins, self.address(request))
        return caller

    def session(self, request: Request) -> Login | None:
        """Return the session of a browser.

        Parameters
        ----------
        request : Request
            Its cookie names the session.

        Returns
        -------
        Login or None
            None if there is no cookie, or the session has ended.
        """
        return self.sessions.find(request.cookies.get(COOKIE))

    def identify(self, request: Request) -> Caller:
        """Return who is asking, or refuse.

        Parameters
        ----------
        request : Request
            It carries a bearer secret, or a session's cookie (and its token where
            it changes something).

        Returns
        -------
        Caller
            Role and name.

        Raises
        ------
        HTTPException
            With status 401 if nobody is known by it, 403 if the token is missing,
            429 if she asks too often.
        """
        secret = _bearer_secret(request)
        who = None if secret is None else self.identify_secret(secret, request)
        session = self.session(request) if who is None else None
        if session is not None:
            who = session.identity
            changes = request.method not in SAFE_METHODS
            if changes and not session.allows(request.headers.get("x-csrf-token")):
                words = "the request lacks the token of this page; reload"
                raise HTTPException(403, words)
        if who is None:
            raise HTTPException(401, "log in first, or send a valid bearer secret")
        request.state.who = who.name
        _limit(self.requests, f"{who.role} {who.name}")
        return who

    def is_curator(self, request: Request) -> bool:
        """Return whether a request comes with the curator's secret or session."""
        secret, session = _bearer_secret(request), self.session(request)
        if secret is not None:
            who = self.workspace.keys.identify(secret)
        else:
            who = None if session is None else session.identity
        return who is not None and who.role == "curator"


def _limit(limit: RateLimit, caller: str) -> None:
    waits = limit.wait(caller)
    if waits > 0.0:
        headers = {"Retry-After": str(max(1, round(waits)))}
        raise HTTPException(429, "too many requests; wait a moment", headers=headers)


def _bearer_secret(request: Request) -> str | None:
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret if kind.lower() == "bearer" else None


class Visit(NamedTuple):
    """Who calls a route, and the server that is called.

    Attributes
    ----------
    who : Caller
        The role and the name that the caller's secret stands for.
    gate : Gate
        The server's checks, and through it the workspace behind them.
    """

    who: Caller
    gate: Gate

    @property
    def work(self) -> Workspace:
        """What the server keeps."""
        return self.gate.workspace

    @property
    def payer(self) -> str | None:
        """Whose allotment pays: a curator spends from the budget itself."""
        return self.who.name if self.who.role == "analyst" else None

    @property
    def saver(self) -> str:
        """Under which name questions are saved: role and name together."""
        return f"{self.who.role} {self.who.name}"

    def explorer(self, table: str) -> Explorer:
        """Return a table's explorer."""
        return self.gate.workspace.explorer(table)

    async def beside(
        self,
        wanted: Wanted,
        table: TableSpec,
        question: Question,
        request: Request,
        **options: Any,
    ) -> Any:
        """Have what takes long worked out in another process; None if it is small.

        Parameters
        ----------
        wanted : {"price", "plan", "accuracy", "trade_off"}
            What is worked out. A price and a plan are remembered, and read from there.
        table : TableSpec
            The described table with its policies.
        question : Question
            The question with its cost.
        request : Request
            While its client waits, the work goes on.
        **options : object
            What else the planner's method takes.

        Returns
        -------
        object
            The result, or None where the caller may as well work it out.
        """
        planner = self.explorer(table.name).planner
        if wanted == "price":
            # A price is that of all words for a question.
            question = canonical(table, question)
        limited = bool(options.get("limited", True))
        effort = await run_in_threadpool(
            planner.effort, table, question, limited=limited
        )
        if effort == "small":
            return None
        task = PriceTask.of(wanted, planner, table, question, **options)
        # A curve is as much work as ten prices.
        quick = effort == "middling" and wanted != "trade_off"
        result = await self.worked_out(task, request, quick=quick)
        if wanted in ("price", "plan"):
            planner.remember(table, question, *result)
        return result

    async def broader(
        self, table: TableSpec, question: Question, request: Request
    ) -> None:
        """Have the broader question that may be bought worked out beside; remembered.

        Parameters
        ----------
        table : TableSpec
            The described table; where its `broad` is 0, there is nothing to work out.
        question : Question
            The question with its cost.
        request : Request
            While its client waits, the work goes on.
        """
        if not table.broad:
            return
        explorer, form = self.explorer(table.name), canonical(table, question)
        effort = await run_in_threadpool(explorer.broadening.effort, form)
        if effort == "small":
            return
        task = PriceTask.of("broad", explorer.planner, table, form)
        cheapest = await self.worked_out(task, request, quick=effort == "middling")
        explorer.broadening.remember(form, cheapest)

    async def worked_out(
        self, task: PriceTask, request: Request, *, quick: bool = False
    ) -> Any:
        """Have a task worked out in another process.

        Parameters
        ----------
        task : PriceTask
            What is wanted.
        request : Request
            While its client waits, the work goes on.
        quick : bool
            Whether it takes so little that it waits for nothing large.

        Returns
        -------
        object
            What the task gives.
        """
        who = f"{self.who.role} {self.who.name}"
        return await self.gate.prices.run(
            task, who, request.is_disconnected, quick=quick
        )


def _required(refusal: str, *roles: Role) -> Any:
    """Require somebody who is known, in one of some roles."""

    # Awaited where it is asked for: else it would be sent to a thread and back.
    async def visit(request: Request) -> Visit:
        gate: Gate = request.app.state.gate
        who = gate.identify(request)
        if who.role not in roles:
            raise HTTPException(403, refusal)
        return Visit(who, gate)

    return Depends(visit)


FOR_PEOPLE = "this is for people; a monitor reads /metrics"
CURATOR_ONLY = _required("this is for the curator alone", "curator")
Anyone = Annotated[Visit, _required("", *ROLES)]
Person = Annotated[Visit, _required(FOR_PEOPLE, "analyst", "curator")]
Operator = Annotated[
    Visit, _required("this is for monitors and curators", "monitor", "curator")
]
Curator = Annotated[Visit, CURATOR_ONLY]

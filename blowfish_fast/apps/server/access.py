"""Who may call what, and the record of who did.

Failures are the same whether a secret was forged, revoked or never made. Logs hold
names, times and amounts of budget, never data; only the owner reads them.
"""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, HTTPException, Request

from blowfish_fast.apps.explorer.exploration import Explorer

from .keys import Caller, Login, Logins, RateLimit
from .workspace import Workspace

COOKIE = "blowfish_session"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
LONGEST = 200
"""Characters of a value that is logged."""
HELP = {
    "blowfish_requests_total": "Requests by status.",
    "blowfish_request_seconds_sum": "Seconds spent on requests.",
    "blowfish_questions_total": "Questions by outcome: charged, replayed, refused.",
    "blowfish_logins_total": "Attempts to log in, by outcome.",
    "blowfish_budget": "Budget of a table.",
    "blowfish_charged_total": "Charged to a table so far.",
    "blowfish_databases_away": "Databases that do not answer.",
}
GAUGES = ("blowfish_budget", "blowfish_databases_away")


class EventLog:
    """Appends events to a file, each as one line of JSON."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, **fields: Any) -> None:
        """Append an event; a full disk does not stop the server."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        plain = {
            name: one[:LONGEST] if isinstance(one, str) else one
            for name, one in fields.items()
            if one is not None
        }
        line = json.dumps({"time": now, **plain}) + "\n"
        try:
            # Opened anew, so that whoever moves the file away gets a new one.
            mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            handle = os.open(self.path, mode, 0o600)
            try:
                os.write(handle, line.encode())
            finally:
                os.close(handle)
        except OSError:
            return


class Metrics:
    """Counters of one server, since it started, as Prometheus reads them."""

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[name, _labels(labels)] += amount

    def text(self, work: Workspace) -> str:
        """Return all counters, and the budgets as they stand."""
        with self._lock:
            rows = dict(self._counts)
        for table in work.tables:
            ledger = work.explorer(table).ledger
            labels = _labels({"table": table, "currency": ledger.currency.name})
            rows["blowfish_budget", labels] = float(ledger.budget)
            rows["blowfish_charged_total", labels] = float(ledger.spent)
        rows["blowfish_databases_away", ""] = len(work.away())
        lines = []
        for name, words in HELP.items():
            kind = "gauge" if name in GAUGES else "counter"
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
            lines += [
                f"{key}{labels} {value:.10g}"
                for (key, labels), value in sorted(rows.items())
                if key == name
            ]
        return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    # JSON escapes quotes, backslashes and breaks as Prometheus does.
    inside = [
        f"{name}={json.dumps(one, ensure_ascii=False)}" for name, one in labels.items()
    ]
    return "{" + ",".join(inside) + "}" if inside else ""


class Gate:
    """The locks and the logs of one server.

    `requests` limits how often each person may ask, `logins` how often each address may
    try wrong secrets. A right one always opens: nobody is locked out by others behind
    the same address. X-Forwarded-For is believed of `trusted_proxies` alone.
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
        self.access = EventLog(workspace.folder / "logs" / "access.log")
        self.audit = EventLog(workspace.folder / "logs" / "audit.log")
        self.requests = requests or RateLimit(capacity=120, per_second=40)
        self.logins = logins or RateLimit(capacity=10, per_second=0.5)
        self._proxies = [ip_network(one, strict=False) for one in trusted_proxies]

    def address(self, request: Request) -> str:
        """Return the nearest address of a request that is no trusted proxy's.

        What stands before it in the header was written by whoever sent the request.
        """
        nearest = request.client.host if request.client else "unknown"
        stated = request.headers.get("x-forwarded-for", "").split(",")
        for one in reversed([each.strip() for each in stated if each.strip()]):
            if not self._is_proxy(nearest):
                break
            nearest = one
        return nearest

    def _is_proxy(self, address: str) -> bool:
        try:
            found = ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._proxies)

    def known(self, secret: str, request: Request) -> Caller | None:
        """Return whose secret it is; wrong ones are counted, and slowed down."""
        found = self.workspace.keys.identify(secret)
        outcome = "wrong" if found is None else "right"
        self.metrics.add("blowfish_logins_total", outcome=outcome)
        if found is None:
            self.audit.write(what="wrong secret", origin=self.address(request))
            _limit(self.logins, self.address(request))
        return found

    def session(self, request: Request) -> Login | None:
        """Return the session of a browser."""
        return self.sessions.find(request.cookies.get(COOKIE))

    def identify(self, request: Request) -> Caller:
        """Return who is asking, or refuse."""
        secret = _bearer_secret(request)
        who = None if secret is None else self.known(secret, request)
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
        secret = _bearer_secret(request)
        if secret is not None:
            who = self.workspace.keys.identify(secret)
        else:
            session = self.session(request)
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
    """Who calls a route, and the server that is called."""

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

    def explorer(self, table: str) -> Explorer:
        """Return a table's explorer."""
        return self.gate.workspace.explorer(table)


# Awaited where they are asked for: one that is not would be sent to a thread and back.
async def anyone(request: Request) -> Visit:
    """Require somebody who is known."""
    gate: Gate = request.app.state.gate
    return Visit(gate.identify(request), gate)


async def person(request: Request) -> Visit:
    """Require an analyst or a curator."""
    visit = await anyone(request)
    if visit.who.role == "monitor":
        raise HTTPException(403, "this is for people; a monitor reads /metrics")
    return visit


async def curator(request: Request) -> Visit:
    """Require a curator."""
    visit = await anyone(request)
    if visit.who.role != "curator":
        raise HTTPException(403, "this is for the curator alone")
    return visit


Anyone = Annotated[Visit, Depends(anyone)]
Person = Annotated[Visit, Depends(person)]
Curator = Annotated[Visit, Depends(curator)]

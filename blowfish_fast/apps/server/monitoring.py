"""What the server did: lines of a log, and counts in Prometheus's text format.

    logs/access.log   {"time": ..., "who": "ann", "origin": "10.0.0.7", "status": 200,
                       "method": "POST", "path": "/api/ask", "ms": 4.1}
    logs/audit.log    {"time": ..., "who": "ann", "what": "ask", "table": "visits",
                       "request": "q-...", "cost": 0.05, "currency": "epsilon"}
    /metrics          blowfish_requests_total{status="200"} 412

Names, times and amounts of budget only, never data. Only the owner reads the logs, and
they may be moved away while the server runs.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .workspace import Workspace

LONGEST = 200
"""Characters of a value that is logged."""


class EventLog:
    """Appends events to a file, each as one line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def write(self, **fields: Any) -> None:
        """Append an event; a full disk does not stop the server."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        plain = {
            name: one[:LONGEST] if isinstance(one, str) else one
            for name, one in fields.items()
            if one is not None
        }
        line = json.dumps({"time": now, **plain}) + "\n"
        with self._lock:
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


class Metrics:
    """Counters of one server, since it started."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[name, _labels(labels)] += amount  # type: ignore[assignment]

    def text(self, work: Workspace) -> str:
        """Return all counters, and the budgets as they stand."""
        with self._lock:
            rows = dict(self._counts)
        for table in work.tables:
            ledger = work.explorer(table).ledger
            labels = _labels({"table": table, "currency": ledger.currency.name})
            rows["blowfish_budget", labels] = float(ledger.budget)  # type: ignore[assignment]
            rows["blowfish_charged_total", labels] = float(ledger.spent)  # type: ignore[assignment]
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
    if not labels:
        return ""
    escaped = (
        (name, one.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
        for name, one in labels.items()
    )
    return "{" + ",".join(f'{name}="{one}"' for name, one in escaped) + "}"

"""Counts of what the server did, in Prometheus's text format.

    blowfish_requests_total{status="200"} 412
    blowfish_request_seconds_sum 3.51
    blowfish_charged_total{table="visits",currency="epsilon"} 0.7

Numbers of requests and amounts of budget only: no question and no data.
"""

from __future__ import annotations

import threading
from collections import Counter

from .workspace import Workspace

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

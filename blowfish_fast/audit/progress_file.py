"""What a long audit has found so far, on disk, so that it can be taken up again.

A line per stop, appended when the stop is done; the first line says by which plan and
version the others were found. A file of another plan or version is begun anew.

    {"version": "...", "plan": "..."}
    {"task": ["selector", "least_cost", 4, "full"], "seconds": 7.1, "verdicts": ...}
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from .plan import AuditPlan, AuditTask
from .verdicts import Verdict

NAME = "progress.jsonl"


class ProgressFile:
    """Verdicts by task, kept in a folder.

    Parameters
    ----------
    folder : Path
        Made if it does not exist.
    plan : AuditPlan
        What is walked: verdicts of another plan do not count.
    version : str
        Of the package: verdicts of another version do not count.

    Examples
    --------
    >>> import tempfile
    >>> from blowfish_fast.audit import QUICK
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = ProgressFile(Path(folder), QUICK, "0.1")
    ...     print(kept.path.name, len(kept.found))
    progress.jsonl 0
    """

    def __init__(self, folder: Path, plan: AuditPlan, version: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / NAME
        self.found: dict[AuditTask, list[Verdict]] = {}
        self.seconds = 0.0
        self._last = time.perf_counter()
        head = {"version": version, "plan": str(plan)}
        if not self._load(head):
            self.path.write_text(json.dumps(head) + "\n", encoding="utf-8")

    def add(self, task: AuditTask, verdicts: list[Verdict]) -> None:
        """Append what was found at one stop, and the time since the last one."""
        self.found[task] = verdicts
        now = time.perf_counter()
        passed, self._last = now - self._last, now
        self.seconds += passed
        line = {
            "task": list(task),
            "seconds": round(passed, 3),
            "verdicts": [list(one) for one in verdicts],
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _load(self, head: dict[str, str]) -> bool:
        if not self.path.exists():
            return False
        lines = self.path.read_text(encoding="utf-8").splitlines()
        known = [one for one in map(_parse_line, lines) if one is not None]
        if not known or known[0] != head:
            return False
        for one in known[1:]:
            self.seconds += one.get("seconds", 0.0)
            kind, name, shape, family = one["task"]
            task = AuditTask(
                kind, name, tuple(shape) if isinstance(shape, list) else shape, family
            )
            self.found[task] = [Verdict(*verdict) for verdict in one["verdicts"]]
        return True


def _parse_line(line: str) -> Any:
    """Read a line; the last one may have been cut off when the audit was."""
    try:
        return json.loads(line)
    except ValueError:
        return None

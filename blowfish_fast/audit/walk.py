"""The walk over everything that is registered, and what it has found so far on disk.

A stop of the walk is one mechanism or selector under one family of policies on one
domain: an `AuditTask`. The file of progress has a line for each stop that is done,
below a first line that names version and plan. A file of another plan or version is
begun anew, since its verdicts say nothing of this one:

    {"version": ..., "plan": "AuditPlan(priced=(1, 2, ...), ...)"}
    {"task": ["mechanism", "laplace", 4, "full"], "seconds": ..., "verdicts": [...]}
    {"task": ["mechanism", "laplace", [2, 2], "full"], "sec      cut off with the audit:
                                                        this stop is made again
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import as_completed
from contextlib import suppress
from pathlib import Path
from typing import Any

from blowfish_fast._support.machine import worker_processes
from blowfish_fast.mechanisms.registry import find_mechanism

from .plan import AuditPlan, AuditTask, tasks
from .verdicts import (
    GENEROUS,
    ORDINARY,
    Verdict,
    judge_selector,
    mechanism_verdicts,
    outside_verdicts,
    power_verdicts,
    selector_power_verdicts,
    timing_verdict,
    unfinished_verdict,
)
from .witness import is_admitted, watch_example

Progress = Callable[[int, int, str], None]
"""Is told how many stops are done, how many there are, and the name of the last one."""

FILE_NAME = "progress.jsonl"


def examine(
    task: AuditTask, plan: AuditPlan, open_ledger: Callable[..., Any] | None = None
) -> list[Verdict]:
    """Run every check of a task; a failure to run is a violation.

    A mechanism that does not admit the policy of the task has nothing to be checked.

    Parameters
    ----------
    task : AuditTask
        The stop.
    plan : AuditPlan
        How thoroughly to walk.
    open_ledger : Callable[..., object], optional
        Makes a ledger, for the order of charges; None to leave that out.

    Returns
    -------
    list[Verdict]
        The verdicts; none where the policy is not admitted.
    """
    try:
        return _examine_whole(task, plan, open_ledger)
    except Exception as problem:
        return [unfinished_verdict(task, problem)]


def _examine_whole(
    task: AuditTask, plan: AuditPlan, open_ledger: Callable[..., Any] | None
) -> list[Verdict]:
    """Return what `examine` does, unless something fails.

    A mechanism is watched while it releases made-up data, at two budgets and with every
    seed of the plan; what was seen is judged.
    """
    if task.kind == "timing":
        return [timing_verdict(task, plan)]
    if task.kind == "selector":
        return list(judge_selector(task, plan))
    if task.kind == "selector power":
        return list(selector_power_verdicts(task, plan))
    kind, policy = find_mechanism(task.name), task.policy
    if not is_admitted(kind, policy, ORDINARY):
        return []
    try:
        testimonies = [
            watch_example(kind, policy, epsilon, seed)
            for epsilon in (ORDINARY, GENEROUS)
            for seed in range(plan.seeds)
        ]
    except Exception as problem:
        # Public values admitted it: its failures are outputs, and are compared.
        failing, _ = kind.example(policy.domain, policy, ORDINARY)
        seen = outside_verdicts(task, plan, failing)
        return [unfinished_verdict(task, problem), *seen]
    if task.kind == "power":
        return list(power_verdicts(task, plan, testimonies))
    return list(mechanism_verdicts(task, plan, testimonies, open_ledger))


def audit_everything(
    plan: AuditPlan,
    *,
    mechanisms: Iterable[str] | None = None,
    open_ledger: Callable[..., Any] | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    progress_file: ProgressFile | None = None,
) -> list[Verdict]:
    """Examine everything and return all verdicts, in the order of the tasks.

    Parameters
    ----------
    plan : AuditPlan
        How thoroughly to walk.
    mechanisms : Iterable[str], optional
        The names to visit; all mechanisms and selectors by default.
    open_ledger : Callable[..., object], optional
        Makes a ledger, ``blowfish_fast.Ledger``, in which the order of charges is
        audited.
    workers : int, default 1
        How many processes work.
    progress : Progress, optional
        Gets tasks done, tasks in all and the last name.
    progress_file : ProgressFile, optional
        What it holds is not looked for again, and what is seen now is added.

    Returns
    -------
    list[Verdict]
        The verdicts.

    Examples
    --------
    >>> from blowfish_fast.audit import QUICK
    >>> plan = QUICK._replace(sampled=(), priced=(2,))
    >>> all(seen.passed for seen in audit_everything(plan, mechanisms=["ordered"]))
    True
    """
    listed = tasks(plan, mechanisms)
    verdicts_by_task = {} if progress_file is None else dict(progress_file.found)
    waiting = [task for task in listed if task not in verdicts_by_task]

    def add(task: AuditTask, verdicts: list[Verdict]) -> None:
        verdicts_by_task[task] = verdicts
        if progress_file is not None:
            progress_file.add(task, verdicts)
        if progress is not None:
            done = sum(1 for task in listed if task in verdicts_by_task)
            progress(done, len(listed), str(task))

    if workers == 1:
        for task in waiting:
            add(task, examine(task, plan, open_ledger))
    else:
        with worker_processes(workers) as pool:
            running = {
                pool.submit(examine, task, plan, open_ledger): task for task in waiting
            }
            for finished in as_completed(running):
                add(running[finished], finished.result())
    return [verdict for task in listed for verdict in verdicts_by_task[task]]


class ProgressFile:
    """Verdicts by task of a plan and a version of the package, in a folder.

    Parameters
    ----------
    folder : Path
        The folder.
    plan : AuditPlan
        How thorough the walk is.
    version : str
        The version of the package.

    Attributes
    ----------
    path : Path
        The file.
    found : dict of AuditTask to list of Verdict
        The verdicts of every stop that is done.
    seconds : float
        How long all of them took, in this run and in those before it.
    """

    def __init__(self, folder: Path, plan: AuditPlan, version: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE_NAME
        self.found: dict[AuditTask, list[Verdict]] = {}
        self.seconds = 0.0
        self._last = time.perf_counter()
        head = {"version": version, "plan": str(plan)}
        if not self._load(head):
            self.path.write_text(json.dumps(head) + "\n", encoding="utf-8")

    def add(self, task: AuditTask, verdicts: list[Verdict]) -> None:
        """Append what was seen at one stop, and the time since the last one.

        Parameters
        ----------
        task : AuditTask
            The stop.
        verdicts : list[Verdict]
            Its verdicts.
        """
        self.found[task] = verdicts
        now = time.perf_counter()
        passed, self._last = now - self._last, now
        self.seconds += passed
        line = {
            "task": list(task),
            "seconds": round(passed, 3),
            "verdicts": [list(verdict) for verdict in verdicts],
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _load(self, head: dict[str, str]) -> bool:
        """Read the file, without what was cut off; False if it is not of this plan."""
        if not self.path.exists():
            return False
        lines = self.path.read_text(encoding="utf-8").splitlines()
        entries: list[Any] = []
        # The last line may have been cut off when the audit was. `extend` keeps what
        # it was given before the line that fails.
        with suppress(ValueError):
            entries.extend(map(json.loads, lines))
        if not entries or entries[0] != head:
            return False
        whole = [f"{line}\n" for line in lines[: len(entries)]]
        self.path.write_text("".join(whole), encoding="utf-8")
        for entry in entries[1:]:
            self.seconds += entry.get("seconds", 0.0)
            kind, name, shape, family = entry["task"]
            # JSON knows lists alone, and a task is a key.
            task = AuditTask(
                kind, name, tuple(shape) if isinstance(shape, list) else shape, family
            )
            self.found[task] = [Verdict(*verdict) for verdict in entry["verdicts"]]
        return True

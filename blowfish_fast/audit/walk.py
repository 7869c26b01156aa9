"""The walk over everything that is registered: mechanisms, partitions, policy families.

tasks(plan) --> examine(task) --> verdicts      one process, or several
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

from ..domain import Domain
from ..errors import BlowfishError
from ..mechanisms.registry import MECHANISMS
from .families import policy_families
from .plan import Plan, Task, tasks
from .verdicts import (
    GENEROUS,
    ORDINARY,
    Verdict,
    mechanism_verdicts,
    partition_verdicts,
    power_verdicts,
    timing_verdict,
)
from .witness import watch

Progress = Callable[[int, int, str], None]


def examine(
    task: Task, plan: Plan, open_ledger: Callable[..., Any] | None = None
) -> list[Verdict]:
    """Run every check of one task; a refusal on public grounds has no verdicts."""
    if task.kind == "timing":
        return [timing_verdict(task, plan)]
    try:
        if task.kind == "partition":
            return list(partition_verdicts(task, plan))
        policy = policy_families(Domain(task.shape))[task.family]
        testimonies = [
            watch(*MECHANISMS[task.name].example(policy.domain, policy, epsilon), seed)
            for epsilon in (ORDINARY, GENEROUS)
            for seed in range(plan.seeds)
        ]
    except BlowfishError:
        return []
    if task.kind == "power":
        return list(power_verdicts(task, plan, testimonies))
    return list(mechanism_verdicts(task, plan, testimonies, open_ledger))


def audit_everything(
    plan: Plan,
    *,
    mechanisms: Iterable[str] | None = None,
    open_ledger: Callable[..., Any] | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Examine everything and return all verdicts, in the order of the tasks.

    Parameters
    ----------
    plan : Plan
        `QUICK`, `LONG` or one's own.
    mechanisms : iterable of str, optional
        Names to visit; None visits all mechanisms and all partitions.
    open_ledger : callable, optional
        Makes the ledger whose order of charges is audited, ``blowfish_fast.Ledger``.
    workers : int
        Processes to share the work.
    progress : callable, optional
        Called with tasks done, tasks in all and the name of the last one.
    """
    listed = tasks(plan, mechanisms)
    found: list[list[Verdict]] = [[] for _ in listed]
    if workers == 1:
        for number, task in enumerate(listed):
            found[number] = examine(task, plan, open_ledger)
            if progress is not None:
                progress(number + 1, len(listed), str(task))
        return [verdict for one in found for verdict in one]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        waiting = {
            pool.submit(examine, task, plan, open_ledger): number
            for number, task in enumerate(listed)
        }
        for done, finished in enumerate(as_completed(waiting), 1):
            number = waiting[finished]
            found[number] = finished.result()
            if progress is not None:
                progress(done, len(listed), str(listed[number]))
    return [verdict for one in found for verdict in one]


def usable_workers() -> int:
    """Return how many processes are worth starting."""
    return min(os.cpu_count() or 1, 8)

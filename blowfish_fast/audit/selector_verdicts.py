"""Checks of a selector by itself: its choices on neighbours, and their power."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blowfish_fast.audit.choices.listed import instances
from blowfish_fast.audit.choices.power import selector_power
from blowfish_fast.audit.random_pairs import observe_choice
from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.randomness import Randomness

from .plan import AuditPlan, AuditTask
from .verdicts import (
    MORE,
    ORDINARY,
    PROMISED_POWER,
    Verdict,
    _is_sampled,
    _observed_verdict,
    _power_verdict,
    choice_verdicts,
)


def judge_selector(task: AuditTask, plan: AuditPlan) -> Iterator[Verdict]:
    """Audit a selector at several epsilons: whole batches as it tells most."""
    if not _is_sampled(task, plan, _selects):
        return
    policy = task.policy
    made = instances(task.name, policy)
    for less, selector in enumerate(made):
        for epsilon in plan.epsilons:
            asked = selector, policy, epsilon
            yield from choice_verdicts(task, plan, asked, less > 0)
    seen = observe_choice(
        made[0],
        policy,
        charged=ORDINARY,
        pairs=plan.pairs,
        generator=np.random.default_rng(0),
    )
    if seen is not None:
        yield _observed_verdict(task, [seen], task.name)


def selector_power_verdicts(task: AuditTask, plan: AuditPlan) -> Iterator[Verdict]:
    """Plant an excess in a selector, on the worst pair known, and count who sees it."""
    policy = task.policy
    for selector in instances(task.name, policy)[:1]:
        for samples in (plan.batch, MORE * plan.batch):
            power = selector_power(
                selector,
                policy,
                samples=samples,
                trials=plan.excesses,
                confidence=plan.each,
            )
            if power is None or power.share >= PROMISED_POWER:
                break
        if power is not None:
            yield _power_verdict(task, power)


def _selects(task: AuditTask) -> bool:
    policy = task.policy
    counts = np.arange(policy.domain.size)
    try:
        made = instances(task.name, policy)
        for one in made:
            one.select(counts, policy=policy, epsilon=ORDINARY, rng=Randomness(0))
    except BlowfishError:
        return False
    return bool(made)

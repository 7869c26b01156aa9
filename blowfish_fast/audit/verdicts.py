"""All checks of one mechanism or partition under one policy, and their verdicts.

prices       every edge of the policy, exactly, against what was charged
sensitivity  random neighbours on random backgrounds, against the noise declared
constraints  neighbours from the definition, where records move together
invariants   of a watched run: charged first, noise as declared, no counts kept ...
budget       a ledger charges first
noise        black box: what is measured, in batches, along the worst edge
rho          the same for a release paid in rho: prices by squares, and the noise in
             (epsilon, delta) form
choice       black box: what is chosen, enumerated or in batches, pairs searched
release      black box: whole releases
power        an excess of 5 %, planted: how often it is seen
timing       time against noise
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.audit.choices.search import audit_selector
from blowfish_fast.audit.neighbours.families import policy_families
from blowfish_fast.audit.neighbours.moves_together import most_moves, price_together
from blowfish_fast.audit.neighbours.pairs import Pair, all_edges
from blowfish_fast.audit.random_pairs import (
    Observed,
    observe_choice,
    observe_measurement,
)
from blowfish_fast.audit.sampling.noise_batches import audit_noise
from blowfish_fast.audit.sampling.power import Power, detection_power
from blowfish_fast.audit.sampling.selections import Finding, audit_release
from blowfish_fast.audit.sampling.timing import STANDARD_ERRORS, timing_correlation
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.selectors.partitions.base import Partition
from blowfish_fast.mechanisms.base import Mechanism, made_up
from blowfish_fast.mechanisms.registry import find_mechanism
from blowfish_fast.policies import ABSENT, Policy
from blowfish_fast.release.tables.tables_release import TablesRelease

from .charge_order import audit_charges
from .invariants import (
    SMALL_EPSILON,
    Breach,
    audit_disclosure,
    audit_invariants,
    audit_testimony,
)
from .measurements import Price, RowPrices, _price
from .plan import AuditPlan, AuditTask
from .witness import Step, Testimony, watch_example

PROMISED_POWER = 0.9

MORE, FEW_ROWS = 4, 2
"""Times the samples, where an excess hides in the tails of more than so many rows."""

IN_RHO = Budget(Fraction(1, 2), 2)
"""What a watched release pays in rho."""

ORDINARY, GENEROUS = Fraction(1), Fraction(16)
"""Epsilon of the runs: as promised to people, and so large that choices are varied."""


class Verdict(NamedTuple):
    """What one check found, as plain data.

    Examples
    --------
    >>> from blowfish_fast.audit import QUICK, audit_everything
    >>> plan = QUICK._replace(sampled=(), priced=(2,))
    >>> found = audit_everything(plan, mechanisms=["efpa"])
    >>> found[0].subject, found[0].passed
    ('efpa', True)
    """

    check: str
    subject: str
    family: str
    domain: str
    epsilon: float
    found: float
    samples: int
    events: int
    passed: bool
    note: str


def _verdict(
    check: str,
    task: AuditTask,
    epsilon: Fraction | float,
    found: Fraction | float,
    passed: bool,
    note: str = "",
    *,
    samples: int = 0,
    events: int = 0,
) -> Verdict:
    domain, numbers = repr(Domain(task.shape)), (float(epsilon), float(found))
    return Verdict(
        *(check, task.name, task.family, domain, *numbers),
        *(samples, events, passed, note),
    )


def _choice_verdict(check: str, task: AuditTask, finding: Finding) -> Verdict:
    return _verdict(
        check,
        task,
        finding.epsilon,
        finding.evidence.log_ratio,
        finding.passed,
        f"{finding}; strongest event: {finding.evidence.event!r}",
        samples=finding.samples,
        events=finding.evidence.events,
    )


def _breach_verdict(check: str, task: AuditTask, breaches: list[Breach]) -> Verdict:
    note = "; ".join(dict.fromkeys(f"{task.name}: {one}" for one in breaches))
    return _verdict(check, task, 0, len(breaches), not breaches, note)


def mechanism_verdicts(
    task: AuditTask,
    plan: AuditPlan,
    testimonies: list[Testimony],
    open_ledger: Callable[..., Any] | None,
) -> Iterator[Verdict]:
    """Check everything about a mechanism under one policy."""
    mechanism = testimonies[0].mechanism
    kind, policy = type(mechanism), mechanism.policy
    priced = [
        (step, _edge_price(task, step, mechanism.policy))
        for testimony in testimonies
        for step in testimony.measured
    ]
    yield _price_verdict(task, mechanism, priced)
    yield from _pair_verdicts(task, plan, testimonies)
    if mechanism.policy.has_constraints or mechanism.policy.person_rule is not None:
        yield _together_verdict(task, mechanism, priced)
    faint, data = kind.example(mechanism.domain, policy, SMALL_EPSILON)
    data = made_up(policy, data)
    breaches = audit_disclosure(faint) + audit_invariants(faint, data)
    breaches += [
        breach for testimony in testimonies for breach in audit_testimony(testimony)
    ]
    yield _breach_verdict("invariants", task, breaches)
    if open_ledger is not None and task.shape in plan.sampled:
        broken = audit_charges(open_ledger, mechanism, data)
        yield _breach_verdict("budget", task, broken)
    sampled = _is_sampled(task, plan, _runs)
    if sampled and mechanism.budget.power == 1:
        yield from _sampled_verdicts(task, plan, testimonies, priced)
    yield from rho_verdicts(task, plan)


def rho_verdicts(task: AuditTask, plan: AuditPlan) -> Iterator[Verdict]:
    """Price a release paid in rho, and look at its noise in (epsilon, delta) form."""
    policy = task.policy
    try:
        testimony = watch_example(find_mechanism(task.name), policy, IN_RHO)
    except BlowfishError:
        return
    priced = [(step, _edge_price(task, step, policy)) for step in testimony.measured]
    price = _price_verdict(task, testimony.mechanism, priced)
    yield price._replace(check="rho prices")
    yield _breach_verdict("rho invariants", task, audit_testimony(testimony))
    if _is_sampled(task, plan, _runs):
        yield from _noise_verdicts("rho noise", task, plan, _costly_edges(priced, 2))


def _noise_verdicts(
    check: str,
    task: AuditTask,
    plan: AuditPlan,
    costly: list[tuple[Step, tuple[int, int]]],
) -> Iterator[Verdict]:
    """Draw the dearest of some measurements on both sides of its worst edge."""
    for step, edge in costly[:1]:
        many = step.charged.power == 1 and _moves_many(step.result, edge)
        finding = audit_noise(
            task.name,
            step.result,
            edge,
            budget=step.charged.over(task.policy.group_size),
            samples=plan.noise * (MORE if many else 1),
            confidence=plan.each,
        )
        yield _choice_verdict(check, task, finding)


def _is_sampled(
    task: AuditTask, plan: AuditPlan, offers: Callable[[AuditTask], bool]
) -> bool:
    """Whether black boxes are sampled here: each family once, on its first domain."""
    if not plan.samples(task.family):
        return False
    for shape in plan.sampled:
        if task.family in policy_families(Domain(shape)) and offers(
            task._replace(shape=shape)
        ):
            return shape == task.shape
    return False


def _runs(task: AuditTask) -> bool:
    try:
        watch_example(find_mechanism(task.name), task.policy, ORDINARY)
    except BlowfishError:
        return False
    return True


def _edge_price(task: AuditTask, step: Step, policy: Policy) -> Price | str:
    try:
        return _price(task.name, step.result, step.charged, policy)
    except AssertionError as refusal:
        # No epsilon pays for this edge.
        return str(refusal)


def _costly_edges(
    priced: list[tuple[Step, Price | str]], power: int
) -> list[tuple[Step, tuple[int, int]]]:
    """Return the worst edge of each measurement in a currency, the dearest first."""
    found = [
        (price.worst / price.charged, step, price.edge)
        for step, price in priced
        if isinstance(price, Price) and price.edge and step.charged.power == power
    ]
    found.sort(key=lambda one: one[0], reverse=True)
    return [(step, edge) for _, step, edge in found]


def _price_verdict(
    task: AuditTask, mechanism: Mechanism, priced: list[tuple[Step, Price | str]]
) -> Verdict:
    edges = mechanism.policy.edge_count
    worst = Price(task.name, mechanism.budget.amount, Fraction(0), None)
    for _, price in priced:
        if isinstance(price, str):
            note = f"{task.name}: {price}"
            return _verdict("prices", task, 1, np.inf, False, note, events=edges)
        if price.worst / price.charged > worst.worst / worst.charged:
            worst = price
    note = f"{worst.subject}: edge {worst.edge} costs {float(worst.worst):.9g} of "
    note += f"{float(worst.charged):.9g} charged"
    return _verdict(
        "prices", task, worst.charged, worst.worst, worst.passed, note, events=edges
    )


def _pair_verdicts(
    task: AuditTask, plan: AuditPlan, testimonies: list[Testimony]
) -> Iterator[Verdict]:
    """Price random neighbours in every measurement, and in the choices met first."""
    generator = np.random.default_rng(plan.pairs)
    policy = testimonies[0].mechanism.policy
    measured = [step for testimony in testimonies for step in testimony.measured]
    observed = [
        observe_measurement(
            step.result,
            policy,
            charged=step.charged.amount,
            pairs=-(-plan.pairs // len(measured)),
            generator=generator,
        )
        for step in measured
    ]
    if observed:
        yield _observed_verdict(task, observed)
    for step in _first_choices(testimonies):
        seen = observe_choice(
            step.asked,
            step.policy,
            charged=step.calibrated or step.charged.amount,
            pairs=max(plan.pairs // 4, 1),
            generator=generator,
        )
        if seen is not None:
            yield _observed_verdict(task, [seen], step.asked.name)


def _observed_verdict(
    task: AuditTask, observed: list[Observed], name: str = "measurements"
) -> Verdict:
    worst = max(observed, key=lambda one: one.share)
    pairs = sum(one.pairs for one in observed)
    note = f"{task.name}, {name}: {worst.worst:.9g} of {float(worst.charged):.9g} "
    note += f"charged, the most of {pairs} random neighbours; {worst.where}"
    return _verdict(
        "sensitivity",
        task,
        worst.charged,
        worst.worst,
        all(one.passed for one in observed),
        note,
        events=pairs,
    )


def _first_choices(testimonies: list[Testimony]) -> Iterator[Step]:
    """Yield the first step of each selector; generous runs come later."""
    seen = set()
    for testimony in testimonies:
        for step in testimony.selected:
            if step.calibrated is not None and step.asked.name not in seen:
                seen.add(step.asked.name)
                yield step


def _together_verdict(
    task: AuditTask, mechanism: Mechanism, priced: list[tuple[Step, Price | str]]
) -> Verdict:
    """Several records at once: neighbours from the definition, not the group size."""
    policy = mechanism.policy
    number, moves = most_moves(policy)
    passed = number <= policy.group_size
    worst: Fraction | float = Fraction(0)
    charged = mechanism.budget.amount
    for step, _ in priced:
        cost = price_together(step.result, policy)
        passed = passed and cost <= step.charged.amount
        if cost / step.charged.amount > worst / charged:
            worst, charged = cost, step.charged.amount
    note = f"{task.name}: neighbours may differ in {number} moves, such as {moves}; "
    note += f"calibrated to {policy.group_size}"
    return _verdict("constraints", task, charged, worst, passed, note)


def _sampled_verdicts(
    task: AuditTask,
    plan: AuditPlan,
    testimonies: list[Testimony],
    priced: list[tuple[Step, Price | str]],
) -> Iterator[Verdict]:
    mechanism = testimonies[0].mechanism
    costly = [
        (step, edge)
        for step, edge in _costly_edges(priced, 1)
        if step.charged <= ORDINARY
    ]
    yield from _noise_verdicts("noise", task, plan, costly)
    for step in _first_choices(testimonies):
        # Partitions have tasks of their own.
        less, epsilon = isinstance(step.asked, Partition), step.calibrated
        yield from choice_verdicts(
            task, plan, (step.asked, step.policy, epsilon or ORDINARY), less
        )
    moved = [edge for _, edge in costly] or all_edges(mechanism.policy)
    if moved and plan.releases:
        finding = _release_finding(mechanism, moved[0], plan)
        yield _choice_verdict("release", task, finding)


def _moves_many(measurement: Measurement, edge: tuple[int, int]) -> bool:
    """Whether an edge moves many rows: then the tails that tell are rare."""
    first, second = map(RowPrices(measurement).rows, edge)
    return int(np.count_nonzero(first - second)) > FEW_ROWS


def _release_finding(
    mechanism: Mechanism, edge: tuple[int, int], plan: AuditPlan
) -> Finding:
    """Compare whole releases by what they say about the two cells of an edge."""
    domain = mechanism.domain
    background: IntArray = (2 * np.arange(domain.size) >= domain.size) * 4
    first, second = (
        Histogram(domain, counts.reshape(domain.shape))
        for counts in Pair(tuple(background.tolist()), edge).sides
    )
    watched = [cell for cell in edge if cell != ABSENT]

    def event(release: Any) -> Hashable:
        if isinstance(release, TablesRelease):
            release = release.table(*release.asked[-1])
        shown = getattr(release, "centers", None)
        values = (
            release.estimate.reshape(-1)[watched] - background[watched]
            if shown is None
            else np.asarray(shown).reshape(-1)[:2]
        )
        coarse = np.clip(np.floor(values / 2.0), -2, 2).astype(int)
        return tuple(coarse.tolist()), release.details.get("buckets")

    return audit_release(
        mechanism,
        (first, second),
        event=event,
        samples=plan.releases,
        confidence=plan.each,
    )


def choice_verdicts(
    task: AuditTask, plan: AuditPlan, asked: tuple[Any, Policy, Fraction], less: bool
) -> Iterator[Verdict]:
    """Audit a selector under a policy at an epsilon; if `less`, in a tenth."""
    selector, policy, epsilon = asked
    for finding in audit_selector(
        selector,
        policy,
        epsilon=epsilon,
        samples=_fewer(plan.batch_under(task.family), less),
        runs=_fewer(plan.runs, less),
        steps=_fewer(plan.steps, less, 1),
        confidence=plan.each,
    ):
        yield _choice_verdict("choice", task, finding)


def _fewer(samples: int, less: bool, least: int = 100) -> int:
    return max(samples // 10, least) if less else samples


def power_verdicts(
    task: AuditTask, plan: AuditPlan, testimonies: list[Testimony]
) -> Iterator[Verdict]:
    """Plant an excess in a mechanism's first measurement that costs anything."""
    steps = [step for testimony in testimonies for step in testimony.measured]
    for step in steps:
        price = _edge_price(task, step, testimonies[0].mechanism.policy)
        if isinstance(price, str) or price.edge is None:
            continue
        for samples in (plan.noise, MORE * plan.noise):
            power = detection_power(
                step.result,
                step.policy,
                price.edge,
                samples=samples,
                trials=plan.trials,
                confidence=plan.each,
            )
            if power.share >= PROMISED_POWER:
                break
        yield _power_verdict(task, power)
        return


def _power_verdict(task: AuditTask, power: Power) -> Verdict:
    return _verdict(
        "power",
        task,
        PROMISED_POWER,
        power.share,
        power.share >= PROMISED_POWER,
        f"{task.name}: {power}",
        samples=power.samples,
        events=power.planted,
    )


def timing_verdict(task: AuditTask, plan: AuditPlan) -> Verdict:
    """Say whether the time of drawing follows the noise drawn."""
    timing = timing_correlation(plan.timing)
    found = timing.standard_errors
    return _verdict("timing", task, STANDARD_ERRORS, found, timing.passed, str(timing))


def unfinished_verdict(task: AuditTask, problem: Exception) -> Verdict:
    """Say that a check could not be carried out."""
    note = f"{task.name}: {type(problem).__name__}: {problem}"
    return _verdict("run", task, 0, np.inf, False, note)

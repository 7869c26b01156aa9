"""All checks of a mechanism or a selector under one policy, and their verdicts.

``docs/audit.md`` lists the checks by name, and what each would show.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions.base import Partition
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.example_data import data_for
from blowfish_fast.mechanisms.registry import find_mechanism
from blowfish_fast.policies import Policy

from .black_box import (
    STANDARD_ERRORS,
    Power,
    audit_edge,
    audit_noise,
    detection_power,
    timing_correlation,
)
from .choices import audit_selector, instances, selector_power
from .confidence import Finding
from .grey_box import (
    Price,
    RowPrices,
    observe_choice,
    observe_measurement,
    price_edges,
    price_together,
)
from .invariants import (
    SMALL_EPSILON,
    Breach,
    audit_charges,
    audit_disclosure,
    audit_invariants,
    audit_testimony,
)
from .lists import compare_with_law, noise_of_list
from .many_choices.choice_twins import over_cells
from .neighbours import all_edges, most_moves, policy_families
from .outside import audit_outside, backgrounds
from .plan import AuditPlan, AuditTask
from .witness import Step, Testimony, is_admitted, watch_example

PROMISED_POWER = 0.9

MORE, FEW_ROWS = 4, 2
"""Times the samples, where an excess hides in the tails of more than so many rows."""

LISTS = 20
"""Times as many lists are compared with their law as releases are drawn."""

IN_RHO = Budget(Fraction(1, 2), 2)
"""What a watched release pays in rho."""

ORDINARY, GENEROUS = Fraction(1), Fraction(16)
"""Epsilon of the runs: as promised to people, and so large that choices are varied."""


class Verdict(NamedTuple):
    """What one check found, as plain data.

    Parameters
    ----------
    check : str
        What was checked.
    subject : str
        Of which mechanism or partition.
    family : str
        Under which family of policies.
    domain : str
        Over which domain.
    epsilon : float
        The promise.
    found : float
        The loss that was seen.
    samples : int
        How often it was run.
    events : int
        How many events were compared.
    passed : bool
        Whether the promise may hold.
    note : str
        What else is to be said.

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
    loss: Fraction | float,
    passed: bool,
    note: str = "",
    *,
    samples: int = 0,
    events: int = 0,
) -> Verdict:
    domain, numbers = repr(Domain(task.shape)), (float(epsilon), float(loss))
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
    note = "; ".join(dict.fromkeys(f"{task.name}: {breach}" for breach in breaches))
    return _verdict(check, task, 0, len(breaches), not breaches, note)


def mechanism_verdicts(
    task: AuditTask,
    plan: AuditPlan,
    testimonies: list[Testimony],
    open_ledger: Callable[..., Any] | None,
) -> Iterator[Verdict]:
    """Check everything about a mechanism under one policy.

    Parameters
    ----------
    task : AuditTask
        The stop.
    plan : AuditPlan
        How thoroughly to walk.
    testimonies : list[Testimony]
        Watched runs of the mechanism.
    open_ledger : Callable[..., object] or None
        Makes a ledger, for the order of charges; None to leave that out.

    Yields
    ------
    Verdict
        A verdict.
    """
    mechanism = testimonies[0].mechanism
    kind, policy = type(mechanism), mechanism.policy
    priced = [
        (step, price_edges(task.name, step.result, step.charged, policy))
        for testimony in testimonies
        for step in _with_noise(testimony)
    ]
    yield _price_verdict(task, mechanism, priced)
    yield from _pair_verdicts(task, plan, testimonies)
    if mechanism.policy.has_constraints or mechanism.policy.person_rule is not None:
        yield _together_verdict(task, mechanism, priced)
    faint, data = kind.example(mechanism.domain, policy, SMALL_EPSILON)
    data = data_for(policy, data)
    breaches = audit_disclosure(faint) + audit_invariants(faint, data)
    breaches += [
        breach for testimony in testimonies for breach in audit_testimony(testimony)
    ]
    yield _breach_verdict("invariants", task, breaches)
    if open_ledger is not None and task.shape in plan.sampled:
        broken = audit_charges(open_ledger, mechanism, data)
        yield _breach_verdict("budget", task, broken)
    sampled = _is_sampled(task, plan, _runs)
    if sampled:
        yield from _law_verdicts(task, plan, testimonies[0])
    if sampled and mechanism.budget.power == 1:
        yield from _sampled_verdicts(task, plan, testimonies, priced)
    yield from outside_verdicts(task, plan, mechanism)
    yield from rho_verdicts(task, plan)


def _with_noise(testimony: Testimony) -> list[Step]:
    """Return the steps that added noise to rows, those among them that list cells."""
    whole = [
        step._replace(kind="measure", charged=testimony.whole_price(step))
        for step in testimony.refined
    ]
    return [*testimony.measured, *whole, *map(noise_of_list, testimony.listed)]


def _law_verdicts(
    task: AuditTask, plan: AuditPlan, testimony: Testimony
) -> Iterator[Verdict]:
    """Compare lists of a few cells with their law, found by enumeration."""
    for step in testimony.listed:
        counts = np.zeros(task.policy.domain.size, dtype=np.int64)
        counts[step.counts.keys] = step.counts.counts
        lists = LISTS * plan.releases
        law = compare_with_law(step.asked, counts, step.result.scales, lists, lists)
        yield _verdict(
            *("law", task, 0, law.chance, law.passed, f"{task.name}: {law}"),
            samples=law.lists,
        )


def rho_verdicts(task: AuditTask, plan: AuditPlan) -> Iterator[Verdict]:
    """Price a release paid in rho, and look at its noise in (epsilon, delta) form.

    Parameters
    ----------
    task : AuditTask
        The stop.
    plan : AuditPlan
        How thoroughly to walk.

    Yields
    ------
    Verdict
        A verdict.
    """
    kind, policy = find_mechanism(task.name), task.policy
    if not is_admitted(kind, policy, IN_RHO):
        return
    testimony = watch_example(kind, policy, IN_RHO)
    priced = [
        (step, price_edges(task.name, step.result, step.charged, policy))
        for step in _with_noise(testimony)
    ]
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
        first, second = map(RowPrices(step.result).rows, edge)
        # Where an edge moves many rows, the tails that tell are rare.
        many = np.count_nonzero(first - second) > FEW_ROWS and step.charged.power == 1
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
    return is_admitted(find_mechanism(task.name), task.policy, ORDINARY)


def _costly_edges(
    priced: list[tuple[Step, Price]], power: int
) -> list[tuple[Step, tuple[int, int]]]:
    """Return the worst edge of each measurement in a currency, the dearest first."""
    edges = [
        (price.worst / price.charged, step, price.edge)
        for step, price in priced
        if price.edge and price.worst < math.inf and step.charged.power == power
    ]
    edges.sort(key=lambda rated: rated[0], reverse=True)
    return [(step, edge) for _, step, edge in edges]


def _price_verdict(
    task: AuditTask, mechanism: Mechanism, priced: list[tuple[Step, Price]]
) -> Verdict:
    edges = mechanism.policy.edge_count
    worst = Price(task.name, mechanism.budget.amount, Fraction(0), None)
    for _, price in priced:
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
    measured = [step for testimony in testimonies for step in _with_noise(testimony)]
    each = -(-plan.pairs // max(len(measured), 1))
    observed = [
        observe_measurement(step.result, policy, step.charged.amount, each, generator)
        for step in measured
    ]
    if observed:
        yield _observed_verdict(task, observed)
    for step in _first_choices(testimonies):
        charged, some = step.calibrated or step.charged.amount, max(plan.pairs // 4, 1)
        asked = over_cells(step.asked)
        seen = observe_choice(asked, step.policy, charged, some, generator)
        if seen is not None:
            yield _observed_verdict(task, [seen], step.asked.name)


def _observed_verdict(
    task: AuditTask, observed: list[Price], name: str = "measurements"
) -> Verdict:
    worst = max(observed, key=lambda price: price.worst / float(price.charged))
    pairs = sum(price.pairs for price in observed)
    note = f"{task.name}, {name}: {worst.worst:.9g} of {float(worst.charged):.9g} "
    note += f"charged, the most of {pairs} random neighbours; {worst.where}"
    return _verdict(
        "sensitivity",
        task,
        worst.charged,
        worst.worst,
        all(price.passed for price in observed),
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
    task: AuditTask, mechanism: Mechanism, priced: list[tuple[Step, Price]]
) -> Verdict:
    """Price several records at once: neighbours as defined, not by the group size."""
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
    priced: list[tuple[Step, Price]],
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
        asked = over_cells(step.asked)
        yield from choice_verdicts(
            task, plan, (asked, step.policy, epsilon or ORDINARY), less
        )
    moved = [edge for _, edge in costly] or all_edges(mechanism.policy)
    if moved and plan.releases:
        finding = audit_edge(
            mechanism, moved[0], samples=plan.releases, confidence=plan.each
        )
        yield _choice_verdict("release", task, finding)


def outside_verdicts(
    task: AuditTask, plan: AuditPlan, mechanism: Mechanism
) -> Iterator[Verdict]:
    """Look at failures, progress and numbers of calls of whole releases.

    Parameters
    ----------
    task : AuditTask
        The stop.
    plan : AuditPlan
        How thoroughly to walk.
    mechanism : Mechanism
        What is released there.

    Yields
    ------
    Verdict
        A verdict.
    """
    edges = all_edges(mechanism.policy)
    # On lines and on maps, since recipes branch in different ways.
    sampled = task.shape in plan.sampled and plan.samples(task.family)
    if not (sampled and edges and plan.outside) or mechanism.budget.power != 1:
        return
    seen = audit_outside(
        mechanism,
        backgrounds(mechanism.policy, edges[0]),
        samples=plan.outside,
        confidence=plan.each,
    )
    yield _breach_verdict("outside", task, seen.breaches)
    yield _choice_verdict("outside", task, seen.finding)


def choice_verdicts(
    task: AuditTask, plan: AuditPlan, asked: tuple[Any, Policy, Fraction], less: bool
) -> Iterator[Verdict]:
    """Audit a selector under a policy at an epsilon.

    Parameters
    ----------
    task : AuditTask
        The stop.
    plan : AuditPlan
        How thoroughly to walk.
    asked : tuple[object, Policy, Fraction]
        Selector, policy and epsilon.
    less : bool
        Whether a tenth of the samples is enough.

    Yields
    ------
    Verdict
        A verdict.
    """
    selector, policy, epsilon = asked
    samples, runs, steps = plan.batch_under(task.family), plan.runs, plan.steps
    if less:
        samples, runs = max(samples // 10, 100), max(runs // 10, 100)
        steps = max(steps // 10, 1)
    for finding in audit_selector(
        selector,
        policy,
        epsilon=epsilon,
        samples=samples,
        runs=runs,
        steps=steps,
        confidence=plan.each,
    ):
        yield _choice_verdict("choice", task, finding)


def power_verdicts(
    task: AuditTask, plan: AuditPlan, testimonies: list[Testimony]
) -> Iterator[Verdict]:
    """Plant an excess in a mechanism's first measurement that costs anything.

    Parameters
    ----------
    task : AuditTask
        The stop.
    plan : AuditPlan
        How thoroughly to walk.
    testimonies : list[Testimony]
        Watched runs of the mechanism.

    Yields
    ------
    Verdict
        A verdict.
    """
    policy = testimonies[0].mechanism.policy
    for step in (step for testimony in testimonies for step in _with_noise(testimony)):
        edge = price_edges(task.name, step.result, step.charged, policy).edge
        if edge is not None:
            plant = functools.partial(detection_power, step.result, step.policy, edge)
            yield from _power_verdicts(task, plan, plan.noise, plan.trials, plant)
            return


def selector_power_verdicts(task: AuditTask, plan: AuditPlan) -> Iterator[Verdict]:
    """Plant an excess in a selector, on the worst pair known, and count who sees it.

    Parameters
    ----------
    task : AuditTask
        The stop.
    plan : AuditPlan
        How thoroughly to walk.

    Yields
    ------
    Verdict
        A verdict.
    """
    if _is_sampled(task, plan, _selects):
        selector = instances(task.name, task.policy)[0]
        plant = functools.partial(selector_power, selector, task.policy)
        yield from _power_verdicts(task, plan, plan.batch, plan.excesses, plant)


def _power_verdicts(
    task: AuditTask,
    plan: AuditPlan,
    samples: int,
    trials: int,
    plant: Callable[..., Power | None],
) -> Iterator[Verdict]:
    """Say how often an excess is seen, in as few samples as show it often enough."""
    for size in (samples // 16, samples, MORE * samples):
        power = plant(samples=size, trials=trials, confidence=plan.each)
        if power is None or power.share >= PROMISED_POWER:
            break
    if power is None:
        return
    yield _verdict(
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
    """Say whether the time of drawing follows the noise drawn.

    Parameters
    ----------
    task : AuditTask
        The stop.
    plan : AuditPlan
        How thoroughly to walk.

    Returns
    -------
    Verdict
        The verdict.
    """
    timing = timing_correlation(plan.timing)
    standard_errors = timing.standard_errors
    return _verdict(
        "timing", task, STANDARD_ERRORS, standard_errors, timing.passed, str(timing)
    )


def unfinished_verdict(task: AuditTask, problem: Exception) -> Verdict:
    """Say that a check could not be carried out.

    Parameters
    ----------
    task : AuditTask
        The stop.
    problem : Exception
        What went wrong.

    Returns
    -------
    Verdict
        The verdict.
    """
    note = f"{task.name}: {type(problem).__name__}: {problem}"
    return _verdict("run", task, 0, np.inf, False, note)


def judge_selector(task: AuditTask, plan: AuditPlan) -> Iterator[Verdict]:
    """Audit a selector at several epsilons: whole batches as it tells most.

    Parameters
    ----------
    task : AuditTask
        The stop.
    plan : AuditPlan
        How thoroughly to walk.

    Yields
    ------
    Verdict
        A verdict.
    """
    if not _is_sampled(task, plan, _selects):
        return
    policy = task.policy
    selectors = instances(task.name, policy)
    for less, selector in enumerate(selectors):
        for epsilon in plan.epsilons:
            asked = selector, policy, epsilon
            yield from choice_verdicts(task, plan, asked, less > 0)
    generator = np.random.default_rng(0)
    seen = observe_choice(selectors[0], policy, ORDINARY, plan.pairs, generator)
    if seen is not None:
        yield _observed_verdict(task, [seen], task.name)


def _selects(task: AuditTask) -> bool:
    policy = task.policy
    counts = np.arange(policy.domain.size)
    try:
        selectors = instances(task.name, policy)
        for selector in selectors:
            selector.select(counts, policy=policy, epsilon=ORDINARY, rng=Randomness(0))
    except BlowfishError:
        return False
    return bool(selectors)

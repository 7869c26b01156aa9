"""The walk over everything that is registered: mechanisms, partitions, policy families.

Nothing is audited by name. A mechanism enters through its ``example``, a partition by
being one, a policy family through ``policy_families``; each combination is a task, and
each task yields verdicts:

    prices       every edge of the policy, exactly, against what was charged
    invariants   of a watched run: charged first, noise as declared, no counts kept ...
    noise        black box: what is measured, in batches, along the worst edge
    choice       black box: what is chosen, enumerated or in batches, pairs searched
    release      black box: whole releases
    budget       a ledger charges first
    power        an excess of 5 %, planted: how often it is seen
    timing       time against noise
"""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from fractions import Fraction
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from .._typing import IntArray
from ..domain import Domain
from ..errors import BlowfishError, InputError
from ..histogram import Histogram
from ..mechanisms.base import Mechanism
from ..mechanisms.registry import MECHANISMS
from ..partitions.base import Partition
from ..policies import ABSENT, Policy
from ..release import Release
from .charge_order import audit_charges
from .choices import audit_selector
from .families import policy_families
from .invariants import SMALL_EPSILON, audit_disclosure, audit_invariants
from .measurements import Price, _price
from .moves_together import most_moves, price_together
from .noise_batches import audit_noise
from .power import detection_power
from .selections import Finding, audit_release
from .timing import timing_correlation
from .witness import Step, Testimony, watch

Shape = int | tuple[int, ...]
Progress = Callable[[int, int, str], None]

MOST_AUDITS = 4000
"""Sampled audits among which the confidence of the whole walk is shared."""

PROMISED_POWER = 0.9

ORDINARY, GENEROUS = Fraction(1), Fraction(16)
"""Epsilon of the runs: as promised to people, and so large that choices are varied."""

PRICES = (8.0, 1.0)
"""What a bucket costs when partitions are audited: as much as a step, and little."""


class Plan(NamedTuple):
    """How thoroughly to walk."""

    priced: tuple[Shape, ...] = (1, 2, 7, (3, 4))
    """Domains on which every edge is priced and invariants are checked."""
    sampled: tuple[Shape, ...] = (4, (2, 2))
    """Domains on which black boxes are sampled."""
    families: tuple[str, ...] | None = None
    """Families that are sampled; None for all."""
    seeds: int = 3
    batch: int = 10_000_000
    """Choices per side, in batches."""
    noise: int = 400_000
    """Measurements per side, in batches."""
    runs: int = 10_000
    """Choices per side that are made one by one."""
    releases: int = 2_000
    """Whole releases per side."""
    trials: int = 20
    """Planted excesses per mechanism."""
    timing: int = 10_000
    """Batches of the timing audit; 0 for none."""
    epsilons: tuple[Fraction, ...] = (Fraction(1), Fraction(4))
    """At which partitions choose."""
    confidence: float = 0.999
    """Of all statements together."""

    @property
    def each(self) -> float:
        """Confidence of one audit, so that all together keep theirs (Bonferroni)."""
        return 1.0 - (1.0 - self.confidence) / MOST_AUDITS


LONG = Plan()
QUICK = Plan(
    sampled=(4,),
    families=("add_remove", "full", "line"),
    seeds=2,
    batch=1_000_000,
    noise=40_000,
    runs=300,
    releases=200,
    trials=0,
    timing=0,
)


class Task(NamedTuple):
    """One stop of the walk."""

    kind: str
    name: str
    shape: Shape
    family: str

    def __str__(self) -> str:
        return f"{self.name} under {self.family} on {Domain(self.shape)!r}"


class Verdict(NamedTuple):
    """What one check found, as plain data."""

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


def tasks(plan: Plan, mechanisms: Iterable[str] | None = None) -> list[Task]:
    """List every stop; `mechanisms` names those to visit, None for everything."""
    chosen = sorted(MECHANISMS) if mechanisms is None else list(mechanisms)
    unknown = [name for name in chosen if name not in MECHANISMS]
    if unknown:
        raise InputError(
            f"there is no mechanism {unknown[0]!r}; registered are {sorted(MECHANISMS)}"
        )
    listed = [
        Task("mechanism", name, shape, family)
        for name in chosen
        for shape in dict.fromkeys((*plan.priced, *plan.sampled))
        for family in policy_families(Domain(shape))
    ]
    if plan.trials:
        listed += [Task("power", name, 4, "add_remove") for name in chosen]
    if mechanisms is None:
        listed += [
            Task("partition", name, shape, family)
            for name in sorted(all_partitions())
            for shape, family in _sampled_places(plan)
            if not policy_families(Domain(shape))[family].has_constraints
        ]
    if plan.timing and mechanisms is None:
        listed.append(Task("timing", "discrete noise", 1, "any"))
    return listed


def all_partitions() -> dict[str, type[Partition]]:
    """Return every partition class by name."""
    from .. import partitions

    classes = [getattr(partitions, name) for name in partitions.__all__]
    return {
        one.name: one
        for one in (*classes, *_descendants(Partition))
        if isinstance(one, type) and issubclass(one, Partition) and "name" in vars(one)
    }


def _descendants(kind: type[Any]) -> Iterator[type[Any]]:
    for one in kind.__subclasses__():
        if one.__module__.startswith("blowfish_fast."):
            yield one
            yield from _descendants(one)


def examine(
    task: Task, plan: Plan, open_ledger: Callable[..., Any] | None = None
) -> list[Verdict]:
    """Run every check of one task; a refusal on public grounds has no verdicts."""
    if task.kind == "timing":
        timing = timing_correlation(plan.timing)
        found = timing.standard_errors
        note = str(timing)
        return [_verdict("timing", task, 3.0, found, timing.passed, note)]
    try:
        if task.kind == "partition":
            return list(_partition_verdicts(task, plan))
        policy = policy_families(Domain(task.shape))[task.family]
        testimonies = [
            watch(*MECHANISMS[task.name].example(policy.domain, policy, epsilon), seed)
            for epsilon in (ORDINARY, GENEROUS)
            for seed in range(plan.seeds)
        ]
    except BlowfishError:
        return []
    if task.kind == "power":
        return list(_power_verdicts(task, plan, testimonies))
    return list(_mechanism_verdicts(task, plan, testimonies, open_ledger))


def walk(
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


def _verdict(
    check: str,
    task: Task,
    epsilon: Fraction | float,
    found: Fraction | float,
    passed: bool,
    note: str = "",
    *,
    samples: int = 0,
    events: int = 0,
) -> Verdict:
    domain = repr(Domain(task.shape))
    return Verdict(
        check,
        task.name,
        task.family,
        domain,
        float(epsilon),
        float(found),
        samples,
        events,
        passed,
        note,
    )


def _found(check: str, task: Task, finding: Finding) -> Verdict:
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


def _mechanism_verdicts(
    task: Task,
    plan: Plan,
    testimonies: list[Testimony],
    open_ledger: Callable[..., Any] | None,
) -> Iterator[Verdict]:
    mechanism = testimonies[0].mechanism
    kind, policy = type(mechanism), mechanism.policy
    priced = [
        (step, _edge_price(task, step, mechanism.policy))
        for testimony in testimonies
        for step in testimony.measured
    ]
    yield _price_verdict(task, mechanism, priced)
    if mechanism.policy.has_constraints:
        yield _together_verdict(task, mechanism, priced)
    faint, data = kind.example(mechanism.domain, policy, SMALL_EPSILON)
    breaches = audit_disclosure(faint) + audit_invariants(faint, data)
    breaches += [
        breach
        for epsilon in (ORDINARY, GENEROUS)
        for breach in audit_invariants(*kind.example(mechanism.domain, policy, epsilon))
    ]
    yield _verdict(
        "invariants",
        task,
        0,
        len(breaches),
        not breaches,
        "; ".join(dict.fromkeys(f"{task.name}: {one}" for one in breaches)),
    )
    if open_ledger is not None and task.shape == plan.sampled[0]:
        broken = audit_charges(open_ledger, mechanism, data)
        note = "; ".join(f"{task.name}: {one}" for one in broken)
        yield _verdict("budget", task, 0, len(broken), not broken, note)
    if (task.shape, task.family) in _sampled_places(plan):
        yield from _sampled_verdicts(task, plan, testimonies, priced)


def _edge_price(task: Task, step: Step, policy: Policy) -> Price | str:
    try:
        return _price(task.name, step.result, step.charged, policy)
    except AssertionError as refusal:
        # No epsilon pays for this edge.
        return str(refusal)


def _price_verdict(
    task: Task, mechanism: Mechanism, priced: list[tuple[Step, Price | str]]
) -> Verdict:
    edges = mechanism.policy.edge_count
    worst = Price(task.name, mechanism.epsilon, Fraction(0), None)
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


def _together_verdict(
    task: Task, mechanism: Mechanism, priced: list[tuple[Step, Price | str]]
) -> Verdict:
    """Under constraints: neighbours from the definition, not from the factor."""
    policy = mechanism.policy
    number, moves = most_moves(policy)
    passed = number <= policy.factor
    worst, charged = Fraction(0), mechanism.epsilon
    for step, _ in priced:
        cost = price_together(step.result, policy)
        passed = passed and cost <= step.charged
        if cost / step.charged > worst / charged:
            worst, charged = cost, step.charged
    note = f"{task.name}: neighbours may differ in {number} moves, such as {moves}; "
    note += f"calibrated to {policy.factor}"
    return _verdict("constraints", task, charged, worst, passed, note)


def _sampled_verdicts(
    task: Task,
    plan: Plan,
    testimonies: list[Testimony],
    priced: list[tuple[Step, Price | str]],
) -> Iterator[Verdict]:
    mechanism = testimonies[0].mechanism
    costly = [
        (price.worst / price.charged, step, price.edge)
        for step, price in priced
        if isinstance(price, Price)
        and price.edge is not None
        and step.charged <= ORDINARY
    ]
    if costly:
        _, step, edge = max(costly, key=lambda one: one[0])
        yield _found(
            "noise",
            task,
            audit_noise(
                task.name,
                step.result,
                edge,
                epsilon=step.charged / mechanism.policy.factor,
                samples=plan.noise,
                confidence=plan.each,
            ),
        )
    seen = set()
    for testimony in testimonies:
        for step in testimony.selected:
            if step.calibrated is None or step.asked.name in seen:
                # Generous runs come later and are skipped; they prove less.
                continue
            seen.add(step.asked.name)
            for finding in audit_selector(
                step.asked,
                step.policy,
                epsilon=step.calibrated,
                # Partitions have tasks of their own.
                samples=_fewer(plan.batch, isinstance(step.asked, Partition)),
                runs=plan.runs,
                confidence=plan.each,
            ):
                yield _found("choice", task, finding)
    edge = costly[0][2] if costly else _some_edge(mechanism.policy)
    if edge is not None and plan.releases:
        yield _found("release", task, _release_finding(mechanism, edge, plan))


def _some_edge(policy: Policy) -> tuple[int, int] | None:
    for edges in policy.edges():
        for start, end in edges.tolist():
            return start, end
    return None


def _release_finding(mechanism: Mechanism, edge: tuple[int, int], plan: Plan) -> Finding:
    """Compare whole releases by what they say about the two cells of an edge."""
    cells = mechanism.domain.size
    background = (2 * np.arange(cells) >= cells) * 4
    sides: list[Any] = []
    for cell in edge:
        counts: IntArray = background.copy()
        if cell != ABSENT:
            counts[cell] += 1
        sides.append(Histogram(mechanism.domain, counts.reshape(mechanism.domain.shape)))
    watched = [cell for cell in edge if cell != ABSENT]

    def event(release: Release) -> Hashable:
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
        (sides[0], sides[1]),
        event=event,
        samples=plan.releases,
        confidence=plan.each,
    )


def _partition_verdicts(task: Task, plan: Plan) -> Iterator[Verdict]:
    policy = policy_families(Domain(task.shape))[task.family]
    cases = itertools.product(_instances(all_partitions()[task.name]), plan.epsilons)
    for number, (partition, epsilon) in enumerate(cases):
        for finding in audit_selector(
            partition,
            policy,
            epsilon=epsilon,
            samples=_fewer(plan.batch, number > 0),
            runs=_fewer(plan.runs, number > 0),
            confidence=plan.each,
        ):
            yield _found("choice", task, finding)


def _fewer(samples: int, less: bool) -> int:
    return max(samples // 10, 100) if less else samples


def _instances(kind: type[Partition]) -> list[Partition]:
    """Return a partition with its defaults, and without an offset where it has one."""
    made: Callable[..., Partition] = kind
    bare = {"offset": 0} if "offset" in inspect.signature(kind).parameters else {}
    return [made(**bare).priced(PRICES[0]), made().priced(PRICES[1])]


def _sampled_places(plan: Plan) -> list[tuple[Shape, str]]:
    """Return where black boxes are sampled: each family once, on its first domain."""
    places: dict[str, Shape] = {}
    for shape in plan.sampled:
        for family in policy_families(Domain(shape)):
            if plan.families is None or family in plan.families:
                places.setdefault(family, shape)
    return [(shape, family) for family, shape in places.items()]


def _power_verdicts(
    task: Task, plan: Plan, testimonies: list[Testimony]
) -> Iterator[Verdict]:
    steps = [step for testimony in testimonies for step in testimony.measured]
    for step in steps:
        price = _edge_price(task, step, testimonies[0].mechanism.policy)
        if isinstance(price, str) or price.edge is None:
            continue
        power = detection_power(
            step.result,
            step.policy,
            price.edge,
            samples=plan.noise,
            trials=plan.trials,
            confidence=plan.each,
        )
        yield _verdict(
            "power",
            task,
            PROMISED_POWER,
            power.share,
            True,
            f"{task.name}: {power}",
            samples=plan.noise,
            events=plan.trials,
        )
        return

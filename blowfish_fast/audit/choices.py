"""Audit of private choices: neighbouring pairs searched, laws enumerated or sampled.

Laws of the exponential mechanism are enumerated; other choices are made in batches, by
the real sampler or by a plain twin; what allows neither is run thousands of times.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.tables.merged_tables import CountedTables, Grouping, MergedTable
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors import partitions
from blowfish_fast.measure.selectors.partitions.base import Partition
from blowfish_fast.measure.selectors.partitions.descent import Descent
from blowfish_fast.measure.selectors.partitions.matching_pairs import MatchingPairs
from blowfish_fast.measure.selectors.selections import (
    FirstBelow,
    KeptFrequencies,
    Medians,
    PairTest,
    RoughnessTest,
    ScatterTest,
    SpikeTest,
    WorstQuery,
)
from blowfish_fast.measure.selectors.worst_table import TableChoices, WorstTable
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Identity

from .black_box import EXCESS, Power
from .confidence import (
    BOUND_ERRORS,
    Evidence,
    Finding,
    evidence_from_counts,
    pilot_size,
    promise,
)
from .many_choices.choice_twins import (
    CANDIDATES,
    Case,
    Tally,
    cheapest_choices,
    descents,
    in_batches,
    inexact_matchings,
    noise_on_cells,
    noisy_count_choices,
    one_by_one,
    over_cells,
)
from .many_choices.many_draws import Law, draws_at_once
from .neighbours import Pair, search_worst_pair, standard_pairs

ROUNDING = 1e-9
"""Subtracted from exact log-ratios: what adding up probabilities can err by."""

PILOT_BATCH = 20_000
"""Choices per side with which a pair is tried, where they are made in batches."""
PILOT_SORTED = 1_000
"""The same where each distinct draw of noise is a run of the selector itself."""
MANY = 10**6
"""Samples from which on a thorough audit is meant, whose number is not cut down."""
FEW = 1_000
"""Samples that are left of a shorter audit, at least."""
PILOT_RUNS = 40
"""Choices per side with which a pair is tried, where they are made one by one."""
PILOT_PAIRS = 10
"""Pairs that are tried, where trying takes long."""
EXACT_RUNS = 60
"""Runs in which a selector has to agree with its plain twin, or with the minimum."""
FEW_SEEN = 50
"""Events met less often in a pilot say nothing about their log-ratio."""


def audit_selector(
    selector: Any,
    policy: Policy,
    *,
    epsilon: Fraction,
    samples: int,
    runs: int,
    steps: int = 0,
    seed: int = 0,
    confidence: float = 0.999,
) -> Iterator[Finding]:
    """Compare the choices of a selector on many neighbouring pairs of a tiny domain.

    Parameters
    ----------
    selector : Selector
        What chooses.
    policy : Policy
        At most about eight cells, and no constraints.
    epsilon : Fraction
        What the choice may use.
    samples : int
        Choices per side, where they are made in batches.
    runs : int
        Choices per side, where they are made one by one.
    steps : int, default 0
        How many pairs are tried in search of a worse one, beyond the chosen pairs.
    seed : int, default 0
        The seed of every draw.
    confidence : float, default 0.999
        How surely a violation is one.

    Yields
    ------
    Finding
        What was seen on one pair.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> findings = audit_selector(
    ...     bf.partitions.LeastCost().priced(2.0),
    ...     bf.policies.AddRemove(bf.Domain(3)),
    ...     epsilon=Fraction(1),
    ...     samples=2000,
    ...     runs=0,
    ... )
    >>> all(finding.passed for finding in findings)
    True
    """
    case = Case(selector, policy, epsilon)
    pairs = standard_pairs(policy, case.heights)
    if not pairs:
        return
    tried = len(pairs) + steps

    def drawn(how: str, pair: Pair, size: int, tally: Tally) -> Finding:
        tallies = tally_both_sides(
            case, pair, size, seed + (tally is one_by_one), tally
        )
        evidence = evidence_from_counts(*tallies, confidence=confidence)
        return Finding(f"{selector.name}, {how}", epsilon, evidence, size, tried)

    laws = _Laws(case, samples)
    if laws.worst(pairs, steps, seed):
        evidence = Evidence(
            max(0.0, laws.ratio - ROUNDING), str(laws.pair), laws.choices
        )
        yield Finding(f"{selector.name}, enumerated", epsilon, evidence, 0, tried)
        yield drawn(
            "in batches", laws.visible, samples, batch_tally(case) or one_by_one
        )
        if isinstance(selector, Descent):
            # Its law is that of a twin: runs of its own must agree with the twin.
            differs = case.descent(laws.pair.sides[0]).differs(EXACT_RUNS, seed)
            evidence = Evidence(math.inf if differs else 0.0, "runs of the twin", 1)
            name = f"{selector.name}, repeated"
            yield Finding(name, epsilon, evidence, EXACT_RUNS)
        return
    twin, size = batch_tally(case), PILOT_BATCH
    if twin is noisy_count_choices:
        # Every distinct draw is a run of the selector itself.
        size = PILOT_SORTED
        samples = samples if samples >= MANY else max(samples // 4, FEW)
        pairs = pairs[:: max(1, len(pairs) // PILOT_PAIRS)]
        tried = len(pairs) + steps
    if twin is None:
        stride = max(1, len(pairs) // PILOT_PAIRS)
        apart = _pilots(case, PILOT_RUNS, runs, seed, one_by_one)
        pair = max(pairs[::stride], key=apart)
        tried = len(pairs[::stride])
    else:
        apart = _pilots(case, size, samples, seed, twin)
        best = max(pairs, key=apart)
        pair = search_worst_pair(best, policy, apart, case.heights, steps, seed)
        yield drawn("in batches", pair, samples, twin)
    if runs:
        yield drawn("run by run", pair, runs, one_by_one)
    if isinstance(selector, MatchingPairs) and selector.window is None:
        wrong = inexact_matchings(case, pair.sides[0], EXACT_RUNS)
        evidence = Evidence(math.inf if wrong else 0.0, f"{wrong} not cheapest", 1)
        yield Finding(f"{selector.name}, exact minimum", epsilon, evidence, EXACT_RUNS)


class _Laws:
    """Exact laws of a choice, the largest log-ratio found and where it was found."""

    def __init__(self, case: Case, samples: int) -> None:
        self.case = case
        self.samples = samples
        self.ratio, self.choices = -1.0, 0
        self.visibility = -math.inf

    def worst(self, pairs: list[Pair], steps: int, seed: int) -> bool:
        """Try all pairs, then search on from the worst; False if there is no law."""
        self.pair = self.visible = pairs[0]
        if any(math.isnan(self._apart(pair)) for pair in pairs):
            return False
        policy, heights = self.case.policy, self.case.heights
        search_worst_pair(self.pair, policy, self._apart, heights, steps, seed)
        return True

    def _apart(self, pair: Pair) -> float:
        first, second = map(self.case.law, pair.sides)
        if first is None or second is None:
            return math.nan
        ratio = _largest_log_ratio(first, second)
        if ratio > self.ratio:
            self.ratio, self.pair, self.choices = ratio, pair, len(first)
        # A rare choice may tell most, and not be seen in any number of samples.
        seen = _best_bound(first, second, self.samples)
        if seen > self.visibility:
            self.visibility, self.visible = seen, pair
        return ratio


def _largest_log_ratio(first: Law, second: Law) -> float:
    if first.keys() != second.keys():
        return math.inf
    return max(abs(math.log(first[choice] / second[choice])) for choice in first)


def _best_bound(first: Law, second: Law, samples: int) -> float:
    """Return the best lower bound on a log-ratio that so many samples would give."""
    errors = BOUND_ERRORS / math.sqrt(max(samples - pilot_size(samples), 1))
    ratios = _log_ratios(first, second)
    return max((ratio - errors * spread for ratio, spread in ratios), default=math.inf)


def _log_ratios(first: Law, second: Law) -> Iterator[tuple[float, float]]:
    """Yield the log-ratio of each common choice, and its error in a single draw."""
    for choice in first.keys() & second.keys():
        chance, other = first[choice], second[choice]
        yield abs(math.log(chance / other)), math.sqrt(1 / chance + 1 / other)


def _pilots(
    case: Case, runs: int, samples: int, seed: int, tally: Tally
) -> Callable[[Pair], float]:
    """Return what small samples of a pair promise of its log-ratio in large ones."""
    tallies: dict[bytes, Counter[Hashable]] = {}
    counted = max(samples - pilot_size(samples), 1)

    def pilot(counts: IntArray) -> Counter[Hashable]:
        key = counts.tobytes()
        if key not in tallies:
            rng = Randomness(2**32 + seed + len(tallies))
            tallies[key] = tally(case, counts, runs, rng)
        return tallies[key]

    def apart(pair: Pair) -> float:
        first, second = map(pilot, pair.sides)
        return max(
            promise((first, second), choice, counted) for choice in {*first, *second}
        )

    return apart


def tally_both_sides(
    case: Case, pair: Pair, samples: int, seed: int, tally: Tally | None = None
) -> tuple[Any, Any]:
    """Return pilots and counts of both sides, all independent of each other.

    Parameters
    ----------
    case : Case
        What chooses.
    pair : Pair
        Two neighbours.
    samples : int
        Samples per side, those of the pilots included.
    seed : int
        The seed of every draw.
    tally : Tally, optional
        How choices are made; chosen by the selector if None.

    Returns
    -------
    pilots : tuple of two Counters
        The pilots.
    counted : tuple of two Counters
        The counts.
    """
    named = pilot_size(samples)
    count = tally or batch_tally(case) or one_by_one
    pilots, counted = (
        tuple(
            count(case, side, size, Randomness(_seed(seed, side, part)))
            for side in pair.sides
        )
        for part, size in enumerate((named, samples - named))
    )
    return pilots, counted


def _seed(seed: int, counts: IntArray, part: int) -> int:
    return int.from_bytes(counts.tobytes(), "little") * 2**33 + 2 * seed + part


def batch_tally(case: Case) -> Tally | None:
    """Return how choices are made in batches; None where they are not."""
    selector = case.selector
    if type(selector) in CANDIDATES and getattr(selector, "lengths", "all") == "all":
        return cheapest_choices
    if draws_at_once(selector):
        return in_batches
    if hasattr(selector, "group") and noise_on_cells(case) is not None:
        return noisy_count_choices
    some = standard_pairs(case.policy)[0].sides[0]
    if case.law(some) is None:
        return None
    return descents if isinstance(selector, Descent) else in_batches


def visible_loss(case: Case, pair: Pair, pilot: int) -> tuple[float, float]:
    """Return the log-ratio that stands out most from chance, and how far it does.

    Parameters
    ----------
    case : Case
        What chooses.
    pair : Pair
        Two neighbours.
    pilot : int
        How many choices are made per side, where no law is known.

    Returns
    -------
    ratio : float
        The log-ratio.
    distance : float
        How many standard errors it is away from 0.
    """
    first, second = map(case.law, pair.sides)
    if first is not None and second is not None:
        ratio = _largest_log_ratio(first, second)
        return ratio, ratio
    ratios = _log_ratios(*(_pilot_law(case, side, pilot) for side in pair.sides))
    standing = ((ratio, ratio / spread) for ratio, spread in ratios)
    return max(standing, key=operator.itemgetter(1), default=(0.0, 0.0))


def _pilot_law(case: Case, side: IntArray, pilot: int) -> Law:
    tally = batch_tally(case) or one_by_one
    tallied = tally(case, side, pilot, Randomness(_seed(7, side, 3)))
    return {
        choice: number / pilot
        for choice, number in tallied.items()
        if number > FEW_SEEN
    }


STEPS = 40
"""Pairs that are tried in search of one that shows the planted excess best."""
ROUNDS = 8
"""Steps by the rule of three, at most, until the planted epsilon is met."""
PILOT = 400_000
"""Draws that find the loss where it has no exact law."""


def selector_power(
    selector: Any,
    policy: Policy,
    *,
    samples: int,
    trials: int,
    excess: Fraction = EXCESS,
    confidence: float = 0.999,
) -> Power | None:
    """Plant an excess many times, and count the audits that notice.

    Few pairs attain what a proof allows, so the selector is given as much more epsilon
    as makes the log-ratio of its most visible event, on the worst pair known, exceed
    epsilon by 5 %.

    Parameters
    ----------
    selector : Selector
        What chooses.
    policy : Policy
        What is secret.
    samples : int
        Samples per side of each audit.
    trials : int
        How many audits.
    excess : Fraction, default EXCESS
        By which part epsilon is exceeded.
    confidence : float, default 0.999
        How surely a violation is one.

    Returns
    -------
    Power or None
        How many noticed; None where choices are not made in batches.
    """
    epsilon = Fraction(1)
    case = Case(selector, policy, epsilon)
    pairs = standard_pairs(policy, case.heights)
    if not pairs or batch_tally(case) is None:
        return None

    def apart(pair: Pair) -> float:
        return visible_loss(case, pair, PILOT // 20)[1]

    best = max(pairs, key=apart)
    pair = search_worst_pair(best, policy, apart, case.heights, STEPS)
    goal = float(epsilon * (1 + excess))
    bad = case.at(_planted_epsilon(case, pair, goal))
    first, second = map(bad.law, pair.sides)
    if first is not None and second is not None:
        caught = _largest_log_ratio(first, second) > float(epsilon)
        return Power(trials * caught, trials, 0, excess)
    seen = 0
    for trial in range(trials):
        seen_on_both_sides = tally_both_sides(bad, pair, samples, 1000 + trial)
        evidence = evidence_from_counts(*seen_on_both_sides, confidence=confidence)
        seen += evidence.log_ratio > float(epsilon)
    return Power(seen, trials, samples, excess)


def _planted_epsilon(case: Case, pair: Pair, goal: float) -> Fraction:
    """Return an epsilon at which the visible loss is `goal`, by the rule of three."""
    planted = case.epsilon
    for _ in range(ROUNDS):
        loss, _ = visible_loss(case.at(planted), pair, PILOT)
        if loss <= 0 or abs(loss / goal - 1) < 0.002:
            break
        step = min(max(goal / loss, 0.5), 2.0)
        # What a pilot shows above epsilon is chance.
        raised = max(float(planted) * step, goal)
        planted = Fraction(raised).limit_denominator(10**6)
    return planted


PRICES = (8.0, 1.0)
"""What a bucket costs when partitions are audited: as much as a step, and little."""

TELLING = {"offset": 0, "largest_count": 8, "fan_out": 2}
"""Settings with which one record tells most, for partitions that have them."""


def _worst_query(policy: Policy) -> WorstQuery:
    asked = WorstQuery(Identity(policy.domain))
    cells = policy.domain.size
    return asked.against(
        np.arange(0.0, 2.0 * cells, 2.0), np.zeros(cells, dtype=np.bool_)
    )


def _worst_table(policy: Policy) -> Any:
    """Return a choice among all single tables, and all pairs, at two levels each."""
    sizes = policy.domain.shape
    counted = CountedTables(sizes, [tuple(range(len(sizes)))])
    choices = []
    for axes in [
        axes for ways in (1, 2) for axes in combinations(range(len(sizes)), ways)
    ]:
        groupings = tuple(Grouping.single_cells(sizes[axis]) for axis in axes)
        table = MergedTable(axes, groupings)
        levels = tuple(
            (grouping, Grouping(grouping.labels // 2)) for grouping in groupings
        )
        estimate = 96 * np.arange(table.cells).reshape(table.shape)
        weight = 64 if len(axes) == 1 else 24
        choices.append(
            TableChoices(table, levels, estimate, [40] * 2 ** len(axes), weight)
        )
    return over_cells(WorstTable(counted, choices))


SELECTIONS: dict[str, Callable[[Policy], Any]] = {
    "kept_frequencies": lambda policy: KeptFrequencies(
        np.arange(1.0, policy.domain.size // 2 + 2)
    ),
    "medians": lambda policy: Medians(policy.domain.shape, levels=2),
    "worst_query": _worst_query,
    "worst_table": _worst_table,
    "first_below": lambda policy: FirstBelow(bar=8),
    "scatter": lambda policy: ScatterTest([[1.0] * 3] * 3, price=1.0, threshold=0.25),
    "roughness": lambda policy: RoughnessTest(
        [1.0] * policy.domain.size.bit_length(), price=1.0, steps=(0.3, 0.8)
    ),
    "spikes": lambda policy: SpikeTest(
        [1.0] * policy.domain.size.bit_length(),
        price=1.0,
        largest=2,
        steps=(-0.5, 0.2),
    ),
    "pairs": lambda policy: PairTest(steps=(0.4, 1.2)),
}
"""Private choices that are not partitions, by name."""

ATTRIBUTES = {"scatter": 2, "roughness": 1, "spikes": 1, "pairs": 1}
"""Choices that are made on so many attributes alone."""


def selector_names() -> list[str]:
    """Return the names of all selectors that are audited by themselves."""
    return [*sorted(all_partitions()), *SELECTIONS]


def instances(name: str, policy: Policy) -> list[Any]:
    """Return a selector in telling and default settings; none if axes do not fit.

    Parameters
    ----------
    name : str
        The name of the selector.
    policy : Policy
        What is secret.

    Returns
    -------
    list
        The selectors.
    """
    if name in SELECTIONS:
        fits = ATTRIBUTES.get(name, policy.domain.ndim) == policy.domain.ndim
        return [SELECTIONS[name](policy)] if fits else []
    build: Callable[..., Partition] = all_partitions()[name]
    parameters = inspect.signature(build).parameters
    bare = {name: value for name, value in TELLING.items() if name in parameters}
    return [build(**bare).priced(PRICES[0]), build().priced(PRICES[1])]


def all_partitions() -> dict[str, type[Partition]]:
    """Return every partition class by name."""
    classes = [getattr(partitions, name) for name in partitions.__all__]
    return {
        kind.name: kind
        for kind in (*classes, *_descendants(Partition))
        if isinstance(kind, type)
        and issubclass(kind, Partition)
        and "name" in vars(kind)
    }


def _descendants(kind: type[Any]) -> Iterator[type[Any]]:
    for subclass in kind.__subclasses__():
        if subclass.__module__.startswith("blowfish_fast."):
            yield subclass
            yield from _descendants(subclass)

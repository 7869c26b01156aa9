"""Audit of private choices: neighbouring pairs searched, laws enumerated or sampled.

A selector sees counts and returns something public; two neighbours must return it with
probabilities within e^epsilon of each other. Three ways to find out, the best that the
selector allows:

    enumerated   every choice with its exact probability (exponential mechanism)
    in batches   millions of runs at once, by the real sampler or by a plain twin
    run by run   the selector itself, thousands of times
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .._typing import IntArray
from ..errors import SizeError
from ..partitions.least_cost import LeastCost
from ..partitions.matching_pairs import Matching
from ..policies import ABSENT, Policy
from ..randomness import Randomness
from .choice_tree import Law, exact_law, public_key, sampled_choices
from .confidence import Evidence, strongest_evidence
from .enumeration import least_cost_choices
from .matching_choices import chosen_matchings, inexact_matchings
from .selections import Finding

Pair = tuple[IntArray, IntArray]

ROUNDING = 1e-9
"""Subtracted from exact log-ratios: what adding up probabilities can err by."""

PILOT_BATCH = 20_000
PILOT_RUNS = 40
BOUND_ERRORS = 6.0
PILOT_PAIRS = 10
EXACT_RUNS = 60


class Case(NamedTuple):
    """A selector under a policy at an epsilon."""

    selector: Any
    policy: Policy
    epsilon: Fraction

    def law(self, counts: IntArray) -> Law | None:
        """Return the exact law of the choice, where there is one."""
        return exact_law(
            self.selector, counts, policy=self.policy, epsilon=self.epsilon
        )


Tally = Callable[[Case, IntArray, int, Randomness], "Counter[Hashable]"]
"""Counts the choices of many runs."""


def neighbour_pairs(policy: Policy, heights: tuple[int, ...] = (8,)) -> list[Pair]:
    """Return neighbours along every edge of a small policy, on telling backgrounds.

    Nothing, a plain, a step, teeth and a spike, each with one record that moves. A
    choice by cost hangs in the balance where a step is about as high as a bucket is
    dear, so `heights` should hold that price.
    """
    cells = policy.domain.size
    place = np.arange(cells)
    shapes = [
        place * 0,
        place * 0 + 1,
        (2 * place >= cells).astype(np.int64),
        place % 2,
        (place == cells - 1).astype(np.int64),
    ]
    backgrounds = {
        tuple((height * shape).tolist()) for height in heights for shape in shapes
    }
    return [
        (_with_record(background, int(start)), _with_record(background, int(end)))
        for background in sorted(backgrounds)
        for edges in policy.edges()
        for start, end in edges
    ]


def _with_record(background: tuple[int, ...], cell: int) -> IntArray:
    counts = np.array(background, dtype=np.int64)
    if cell != ABSENT:
        counts[cell] += 1
    return counts


def audit_selector(
    selector: Any,
    policy: Policy,
    *,
    epsilon: Fraction,
    samples: int,
    runs: int,
    seed: int = 0,
    confidence: float = 0.999,
) -> Iterator[Finding]:
    """Compare the choices of a selector on many neighbouring pairs of a tiny domain.

    Parameters
    ----------
    selector : Selector
        A partition, or any other private choice.
    policy : Policy
        Over at most about eight cells, without constraints.
    epsilon : Fraction
        What the choice may cost.
    samples : int
        Runs per side where they can be made in batches.
    runs : int
        Runs per side of the selector itself, where they cannot; 0 for none.
    """
    case = Case(selector, policy, epsilon)
    price = min(max(round(getattr(selector, "bucket_cost", 8.0)), 1), 1000)
    pairs = neighbour_pairs(policy, tuple({8, price}))
    if not pairs:
        return
    enumerated = _enumerated(case, pairs)
    if enumerated is not None:
        worst, pair, choices = enumerated
        evidence = Evidence(max(0.0, worst - ROUNDING), _shown(pair), choices)
        yield Finding(f"{selector.name}, enumerated", epsilon, evidence, 0)
        sides = [_halves(case, one, samples, seed, _drawn_together) for one in pair]
        found = strongest_evidence(*sides, confidence=confidence)
        yield Finding(f"{selector.name}, in batches", epsilon, found, samples)
        return
    twin = TWINS.get(type(selector))
    tally = _one_by_one if twin is None else twin
    if twin is None:
        stride = max(1, len(pairs) // PILOT_PAIRS)
        pair = _most_telling(case, pairs[::stride], PILOT_RUNS, runs, seed, tally)
    else:
        pair = _most_telling(case, pairs, PILOT_BATCH, samples, seed, tally)
        sides = [_halves(case, one, samples, seed, twin) for one in pair]
        found = strongest_evidence(*sides, confidence=confidence)
        yield Finding(f"{selector.name}, in batches", epsilon, found, samples)
    if runs:
        sides = [_halves(case, one, runs, seed + 1, _one_by_one) for one in pair]
        found = strongest_evidence(*sides, confidence=confidence)
        yield Finding(f"{selector.name}, run by run", epsilon, found, runs)
    if isinstance(selector, Matching) and selector.window is None:
        wrong = inexact_matchings(
            selector, pair[0], policy=policy, epsilon=epsilon, runs=EXACT_RUNS
        )
        evidence = Evidence(math.inf if wrong else 0.0, f"{wrong} not cheapest", 1)
        yield Finding(f"{selector.name}, exact minimum", epsilon, evidence, EXACT_RUNS)


def _enumerated(case: Case, pairs: list[Pair]) -> tuple[float, Pair, int] | None:
    """Return the largest exact log-ratio, where it is reached, and over how much."""
    laws: dict[bytes, Law] = {}
    worst, where, choices = -1.0, pairs[0], 0
    for pair in pairs:
        for counts in pair:
            if counts.tobytes() not in laws:
                try:
                    law = case.law(counts)
                except SizeError:
                    law = None
                if law is None:
                    return None
                laws[counts.tobytes()] = law
        first, second = (laws[counts.tobytes()] for counts in pair)
        ratio = _largest_log_ratio(first, second)
        if ratio > worst:
            worst, where, choices = ratio, pair, len(first)
    return worst, where, choices


def _largest_log_ratio(first: Law, second: Law) -> float:
    if first.keys() != second.keys():
        return math.inf
    return max(abs(math.log(first[one] / second[one])) for one in first)


def _most_telling(
    case: Case, pairs: list[Pair], runs: int, samples: int, seed: int, tally: Tally
) -> Pair:
    """Return the pair that promises the strongest evidence, from a small sample.

    What is promised is a log-ratio less the standard errors that a bound will lose on
    `samples` runs, of which one half is counted.
    """
    lost = 1.0 + BOUND_ERRORS * math.sqrt(2 * runs / max(samples, 2 * runs))
    seen: dict[bytes, Counter[Hashable]] = {}

    def apart(pair: Pair) -> float:
        for number, counts in enumerate(pair):
            if counts.tobytes() not in seen:
                rng = Randomness(2**32 + seed + number)
                seen[counts.tobytes()] = tally(case, counts, runs, rng)
        first, second = (seen[counts.tobytes()] for counts in pair)
        return max(
            _log_ratio_less(first[one] + 0.5, second[one] + 0.5, lost)
            for one in {*first, *second}
        )

    return max(pairs, key=apart)


def _log_ratio_less(often: float, other: float, errors: float) -> float:
    """Return a log-ratio less some of its standard errors."""
    return abs(math.log(often / other)) - errors * math.sqrt(1 / often + 1 / other)


def _halves(
    case: Case, counts: IntArray, samples: int, seed: int, tally: Tally
) -> list[Hashable]:
    """Return choices whose first half is independent of the second."""
    first = tally(case, counts, samples // 2, Randomness(_seed(seed, counts, 0)))
    second = tally(
        case, counts, samples - samples // 2, Randomness(_seed(seed, counts, 1))
    )
    return [*first.elements(), *second.elements()]


def _seed(seed: int, counts: IntArray, half: int) -> int:
    return int.from_bytes(counts.tobytes(), "little") * 2**33 + 2 * seed + half


def _drawn_together(
    case: Case, counts: IntArray, samples: int, rng: Randomness
) -> Counter[Hashable]:
    made = sampled_choices(
        case.selector,
        counts,
        policy=case.policy,
        epsilon=case.epsilon,
        samples=samples,
        rng=rng,
    )
    assert made is not None, "the law was enumerated before"
    return made


def _one_by_one(
    case: Case, counts: IntArray, samples: int, rng: Randomness
) -> Counter[Hashable]:
    # One source for all runs: every call opens streams of its own.
    return Counter(
        public_key(
            case.selector.select(
                counts, policy=case.policy, epsilon=case.epsilon, rng=rng
            )
        )
        for _ in range(samples)
    )


def _numbered(twin: Callable[..., IntArray]) -> Tally:
    def tally(
        case: Case, counts: IntArray, samples: int, rng: Randomness
    ) -> Counter[Hashable]:
        chosen = twin(
            case.selector,
            counts,
            policy=case.policy,
            epsilon=case.epsilon,
            samples=samples,
            rng=rng,
        )
        return Counter(dict(enumerate(np.bincount(chosen).tolist())))

    return tally


TWINS: dict[type, Tally] = {
    LeastCost: _numbered(lambda *given, **named: least_cost_choices(*given, **named)),
    Matching: _numbered(lambda *given, **named: chosen_matchings(*given, **named)),
}
"""Plain twins of selectors that draw noise of their own."""


def _shown(pair: Pair) -> str:
    return " | ".join(str(counts.tolist()) for counts in pair)

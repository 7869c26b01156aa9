"""Grey box: declared noise against what random neighbours really change.

Prices of edges are found once per edge, for a record alone (``audit.measurements``).
Here neighbours lie on random backgrounds, hundreds for each measurement and each
choice, so that a sensitivity that hides behind other records shows.

    measurement   rows of both sides --> change of every row --> price at its scale
    choice        exponential mechanism: a run's probability on both sides
                  noisy costs: change of every candidate, against its own scale
                  noisy counts: as a measurement
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.audit.choices.case import Case
from blowfish_fast.audit.choices.cheapest import CANDIDATES, groups_offered
from blowfish_fast.audit.choices.sorted_choices import noise_on_cells
from blowfish_fast.audit.measurements import RowPrices
from blowfish_fast.audit.neighbours.pairs import Pair, pairs_at_random
from blowfish_fast.audit.witness import Draw, Note, WatchedRandomness
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.selectors.many_draws import path_log_ratio
from blowfish_fast.measure.selectors.partitions.matching_pairs import MatchingPairs
from blowfish_fast.measure.selectors.partitions.noisy_sort import CellNoise
from blowfish_fast.policies import ABSENT, Policy

ROUNDING = 1e-9
"""What adding up logarithms can err by."""

Cost = Callable[[Pair], float]
"""What a pair costs."""


class Observed(NamedTuple):
    """The largest price seen on random pairs, against what was charged.

    Examples
    --------
    >>> seen = Observed(worst=0.4, charged=Fraction(1, 2), pairs=1000, where=None)
    >>> seen.share
    0.8
    """

    worst: float
    charged: Fraction
    pairs: int
    where: Pair | None

    @property
    def share(self) -> float:
        """Part of the charge that was seen to be spent."""
        return self.worst / float(self.charged)

    @property
    def passed(self) -> bool:
        """Whether no pair costs more than was charged."""
        return self.worst <= float(self.charged) * (1 + ROUNDING)


def observe_measurement(
    measurement: Measurement,
    policy: Policy,
    *,
    charged: Fraction,
    pairs: int,
    generator: np.random.Generator,
) -> Observed:
    """Price what random neighbours under `policy` change in the rows measured.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.Line(bf.Domain(4))
    >>> mechanism, data = bf.Ordered.example(policy.domain, policy, Fraction(1))
    >>> seen = observe_measurement(
    ...     mechanism.release(data, rng=1).measurements[0],
    ...     policy,
    ...     charged=Fraction(1),
    ...     pairs=20,
    ...     generator=np.random.default_rng(1),
    ... )
    >>> seen.pairs > 0, seen.share <= 1
    (True, True)
    """
    prices = RowPrices(measurement)
    times: int = policy.group_size**measurement.scales.power

    def cost(pair: Pair) -> float:
        first, second = map(prices.rows_of, pair.sides)
        return float(times * prices.price(first - second))

    return _largest(cost, pairs_at_random(policy, pairs, generator), charged)


def observe_choice(
    selector: Any,
    policy: Policy,
    *,
    charged: Fraction,
    pairs: int,
    generator: np.random.Generator,
) -> Observed | None:
    """Price what random neighbours change in a choice; None if nothing is declared.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> seen = observe_choice(
    ...     bf.partitions.LeastCost().priced(3.0),
    ...     bf.policies.AddRemove(bf.Domain(4)),
    ...     charged=Fraction(1),
    ...     pairs=20,
    ...     generator=np.random.default_rng(1),
    ... )
    >>> seen.share <= 1
    True
    """
    drawn = pairs_at_random(policy, pairs, generator)
    if policy.domain.size == 1 or not drawn:
        return None
    case = Case(selector, policy, charged)
    on_cells = noise_on_cells(case)
    if type(selector) in CANDIDATES or on_cells is not None:
        cost = _cell_price(on_cells) if on_cells is not None else _cheapest_price(case)
        worst = _largest(cost, drawn, charged)
        wrong = _draws_otherwise(case, drawn[0])
        return worst._replace(worst=math.inf) if wrong else worst

    def ratio(pair: Pair) -> float | None:
        return path_log_ratio(
            selector, pair.sides, policy=policy, epsilon=charged, generator=generator
        )

    if ratio(drawn[0]) is None:
        return None
    return _largest(lambda pair: ratio(pair) or 0.0, drawn, charged)


def _largest(cost: Cost, pairs: list[Pair], charged: Fraction) -> Observed:
    worst, where = 0.0, None
    for pair in pairs:
        found = cost(pair)
        if found > worst:
            worst, where = found, pair
    return Observed(worst, charged, len(pairs), where)


def _cheapest_price(case: Case) -> Cost:
    """Return the price of a pair for the cheapest of noisy costs.

    A candidate b wins if its noise exceeds a threshold, which moves by the change of
    its own cost less that of the best competitor. A move is a removal and an addition.
    """
    offer = CANDIDATES[type(case.selector)]

    def step(first: IntArray, second: IntArray) -> float:
        _, before, scales = offer(case, first)
        change = offer(case, second).costs - before
        apart = np.maximum(change - change.min(), change.max() - change)
        return max(
            float(Fraction(far) / scale)
            for far, scale in zip(apart.tolist(), scales, strict=True)
        )

    def cost(pair: Pair) -> float:
        background = np.array(pair.background, dtype=np.int64)
        return sum(
            step(background, side)
            for side, cell in zip(pair.sides, pair.edge, strict=True)
            if cell != ABSENT
        )

    return cost


def _cell_price(noise: CellNoise) -> Cost:
    scales, edges = noise
    rate = int(scales.rates[0]) / scales.unit
    joined = None if edges is None else {frozenset(edge) for edge in edges.tolist()}

    def cost(pair: Pair) -> float:
        if joined is None:
            return rate * float(np.abs(pair.sides[0] - pair.sides[1]).sum())
        return rate if frozenset(pair.edge) in joined else math.inf

    return cost


def _draws_otherwise(case: Case, pair: Pair) -> bool:
    """Whether a watched run draws noise of another scale than was declared."""
    selector, counts = case.selector, pair.sides[0]
    diary: list[Note] = []
    case.select(counts, WatchedRandomness(0, diary))
    declared: set[Fraction] = set()
    if isinstance(selector, MatchingPairs) and selector.rounds == 1:
        declared.update(groups_offered(case, counts).scales)
    elif (noise := noise_on_cells(case)) is not None:
        declared.add(Fraction(noise.scales.unit, int(noise.scales.rates[0])))
    else:
        return False
    drawn = {
        Fraction(int(note.numerators), int(note.denominators))
        for note in diary
        if isinstance(note, Draw)
    }
    return not drawn <= declared

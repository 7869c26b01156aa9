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

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.audit.choices.cheapest import least_cost_candidates
from blowfish_fast.audit.choices.matching_choices import all_groups
from blowfish_fast.audit.choices.sorted_choices import noise_on_cells
from blowfish_fast.audit.measurements import _reaches_several
from blowfish_fast.audit.neighbours.pairs import Pair, pairs_at_random
from blowfish_fast.audit.sampling.noise_batches import _draws_to_rows
from blowfish_fast.audit.witness import Draw, Note, WatchedRandomness
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.selectors.many_draws import path_log_ratio
from blowfish_fast.measure.selectors.partitions.least_cost import LeastCost
from blowfish_fast.measure.selectors.partitions.matching_pairs import MatchingPairs
from blowfish_fast.measure.selectors.partitions.noisy_sort import CellNoise
from blowfish_fast.policies import ABSENT, Policy

ROUNDING = 1e-9
"""What adding up logarithms can err by."""


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
    price = _row_price(measurement)

    def cost(pair: Pair) -> float:
        rows = [
            measurement.strategy.rows(measurement.buckets.sum(side))
            for side in pair.sides
        ]
        times: int = policy.group_size**measurement.scales.power
        return times * price(rows[0] - rows[1])

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
    declared = DECLARED.get(type(selector))
    on_cells = noise_on_cells(selector, policy, charged)
    if declared is not None or on_cells is not None:
        cost = (
            declared(selector, policy, charged)
            if declared is not None
            else _cell_price(on_cells)
        )
        worst = _largest(cost, drawn, charged)
        wrong = _draws_otherwise(selector, drawn[0], policy, charged)
        return worst._replace(worst=math.inf) if wrong else worst

    def ratio(pair: Pair) -> float | None:
        return path_log_ratio(
            selector, pair.sides, policy=policy, epsilon=charged, generator=generator
        )

    if ratio(drawn[0]) is None:
        return None
    return _largest(lambda pair: ratio(pair) or 0.0, drawn, charged)


def _largest(
    cost: Callable[[Pair], float], pairs: list[Pair], charged: Fraction
) -> Observed:
    worst, where = 0.0, None
    for pair in pairs:
        found = cost(pair)
        if found > worst:
            worst, where = found, pair
    return Observed(worst, charged, len(pairs), where)


def _row_price(measurement: Measurement) -> Callable[[IntArray], float]:
    """Return the price of a change of rows under the scales declared."""
    scales = measurement.scales
    rates: FloatArray = np.where(
        scales.exact, np.inf, scales.rates / float(scales.unit)
    )
    rows = measurement.strategy.rows(np.zeros(measurement.buckets.count, np.int64))
    if rows.size == rates.size and not _reaches_several(measurement):
        # A row that is not published at all has rate 0 and costs nothing.
        def of_own_draws(change: IntArray) -> float:
            moves = np.abs(change[change != 0]).astype(np.float64) ** scales.power
            return float(rates[change != 0] @ moves)

        return of_own_draws
    spread = _draws_to_rows(measurement)

    def of_one_draw(change: IntArray) -> float:
        if not change.any():
            return 0.0
        equal = (spread == change).all(axis=1) | (spread == -change).all(axis=1)
        return float(rates[equal & scales.measured].min(initial=np.inf))

    return of_one_draw


Cost = Callable[[Pair], float]


def _between(
    costs: Callable[[IntArray], tuple[Any, list[Fraction]]],
) -> Cost:
    """Return the price of a pair for the cheapest of noisy costs.

    A candidate b wins if its noise exceeds a threshold, which moves by the change of
    its own cost less that of the best competitor. A move is a removal and an addition.
    """

    def step(first: IntArray, second: IntArray) -> float:
        before, scales = costs(first)
        after, _ = costs(second)
        change = np.array([int(b) - int(a) for a, b in zip(before, after, strict=True)])
        apart = np.maximum(change - change.min(), change.max() - change)
        return max(
            float(Fraction(int(far)) / scale)
            for far, scale in zip(apart, scales, strict=True)
        )

    def cost(pair: Pair) -> float:
        background = np.array(pair.background, dtype=np.int64)
        return sum(
            step(background, side)
            for side, cell in zip(pair.sides, pair.edge, strict=True)
            if cell != ABSENT
        )

    return cost


def _least_cost(selector: LeastCost, policy: Policy, epsilon: Fraction) -> Cost:
    def costs(counts: IntArray) -> tuple[Any, list[Fraction]]:
        offered = least_cost_candidates(
            selector, counts, policy=policy, epsilon=epsilon
        )
        return offered.costs, offered.scales

    return _between(costs)


def _matching(selector: MatchingPairs, policy: Policy, epsilon: Fraction) -> Cost:
    def costs(counts: IntArray) -> tuple[Any, list[Fraction]]:
        offered = all_groups(selector, counts, policy, epsilon)
        return offered.costs, offered.scales

    return _between(costs)


def _cell_price(noise: CellNoise | None) -> Cost:
    assert noise is not None, "checked before"
    scales, edges = noise
    rate = int(scales.rates[0]) / scales.unit
    joined = None if edges is None else {frozenset(edge) for edge in edges.tolist()}

    def cost(pair: Pair) -> float:
        if joined is None:
            return rate * float(np.abs(pair.sides[0] - pair.sides[1]).sum())
        return rate if frozenset(pair.edge) in joined else math.inf

    return cost


DECLARED: dict[type, Callable[[Any, Policy, Fraction], Cost]] = {
    LeastCost: _least_cost,
    MatchingPairs: _matching,
}
"""Choices that draw noise of their own, and what their noise pays for."""


def _draws_otherwise(
    selector: Any, pair: Pair, policy: Policy, epsilon: Fraction
) -> bool:
    """Whether a watched run draws noise of another scale than was declared."""
    diary: list[Note] = []
    rng = WatchedRandomness(0, diary)
    selector.select(pair.sides[0], policy=policy, epsilon=epsilon, rng=rng)
    declared: set[Fraction] = set()
    if isinstance(selector, MatchingPairs) and selector.rounds == 1:
        declared.update(all_groups(selector, pair.sides[0], policy, epsilon).scales)
    elif (noise := noise_on_cells(selector, policy, epsilon)) is not None:
        declared.add(Fraction(noise.scales.unit, int(noise.scales.rates[0])))
    else:
        return False
    drawn = {
        Fraction(int(note.numerators), int(note.denominators))
        for note in diary
        if isinstance(note, Draw)
    }
    return not drawn <= declared

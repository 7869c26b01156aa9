"""The least-cost choice on a tiny domain, from its definition and many times at once.

A plain twin of ``partitions.least_cost``: every candidate and every partition is
written out, costs come from exact fractions, and noise of the scales that the partition
declares is drawn in one batch. Tests hold the compiled kernel equal to such a twin, so
sampling the twin audits the law of the choice a thousand times faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import as_epsilon
from blowfish_fast.audit.sampling.confidence import strongest_evidence
from blowfish_fast.audit.sampling.selections import Finding
from blowfish_fast.errors import SizeError
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions.base import record_distance
from blowfish_fast.measure.selectors.partitions.least_cost import QUANTILE, LeastCost
from blowfish_fast.policies import Policy

MOST_CELLS = 8
CHUNK = 2**16


def audit_least_cost(
    partition: LeastCost,
    policy: Policy,
    pair: tuple[IntArray, IntArray],
    *,
    epsilon: Any,
    samples: int,
    seed: int = 0,
    confidence: float = 0.999,
    clamp: bool = False,
) -> Finding:
    """Compare the choices on two neighbouring vectors of at most eight cells.

    `clamp` cuts noisy costs off at the price of a bucket, as public code does: a
    planted bug that the audit must catch.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> found = audit_least_cost(
    ...     bf.partitions.LeastCost().priced(2.0),
    ...     bf.policies.AddRemove(bf.Domain(3)),
    ...     (np.array([4, 0, 0]), np.array([3, 0, 0])),
    ...     epsilon=1,
    ...     samples=2000,
    ... )
    >>> found.passed
    True
    """
    exact = as_epsilon(epsilon)
    sides = [
        least_cost_choices(
            partition,
            counts,
            policy=policy,
            epsilon=exact,
            samples=samples,
            rng=Randomness(seed + side),
            clamp=clamp,
        ).tolist()
        for side, counts in enumerate(pair)
    ]
    evidence = strongest_evidence(*sides, confidence=confidence)
    return Finding(partition.name, exact, evidence, samples)


def least_cost_choices(
    partition: LeastCost,
    counts: IntArray,
    *,
    policy: Policy,
    epsilon: Fraction,
    samples: int,
    rng: Randomness,
    clamp: bool = False,
) -> IntArray:
    """Return the number of the partition chosen in each of `samples` runs.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> chosen = least_cost_choices(
    ...     bf.partitions.LeastCost().priced(2.0),
    ...     np.array([9, 0, 0]),
    ...     policy=bf.policies.AddRemove(bf.Domain(3)),
    ...     epsilon=Fraction(1),
    ...     samples=100,
    ...     rng=Randomness(1),
    ... )
    >>> chosen.shape
    (100,)
    """
    cells = counts.size
    if cells > MOST_CELLS:
        raise SizeError(
            f"there are 2^{cells - 1} partitions of {cells} cells; the audit writes "
            f"them all out and takes at most {MOST_CELLS}"
        )
    offered = least_cost_candidates(partition, counts, policy=policy, epsilon=epsilon)
    member = _members(_windows(partition, cells), cells)
    floors = offered.prices if clamp else None
    return sample_cheapest(
        offered.costs, offered.scales, member, samples, rng, floors=floors
    )


def sample_cheapest(
    costs: Sequence[int] | IntArray,
    scales: Sequence[Fraction],
    member: IntArray,
    samples: int,
    rng: Randomness,
    *,
    floors: Sequence[int] | None = None,
) -> IntArray:
    """Return which choice has the least noisy cost, in each of `samples` runs.

    Geometric noise is subtracted from the cost of every candidate; a choice costs what
    its candidates cost together.

    Parameters
    ----------
    costs, scales
        Of each candidate, in steps.
    member : int64, (choices, candidates)
        1 for each candidate that a choice is made of.
    floors : optional
        Noisy costs are cut off from below there.
    """
    chosen = np.empty(samples, dtype=np.int64)
    for begin in range(0, samples, CHUNK):
        size = min(CHUNK, samples - begin)
        noisy = np.empty((size, len(scales)), dtype=np.int64)
        for column, scale in enumerate(scales):
            drawn = rng.geometric(scale.numerator, scale.denominator, size=size)
            noisy[:, column] = costs[column] - drawn
        if floors is not None:
            noisy = np.maximum(noisy, np.array(floors))
        chosen[begin : begin + size] = (noisy @ member.T).argmin(axis=1)
    return chosen


class PartitionCandidates(NamedTuple):
    """Cost, price without cells, and noise scale of every candidate, in steps."""

    costs: list[int]
    prices: list[int]
    scales: list[Fraction]


def least_cost_candidates(
    partition: LeastCost, counts: IntArray, *, policy: Policy, epsilon: Fraction
) -> PartitionCandidates:
    """Write out every candidate bucket, with its cost from exact fractions."""
    cells = counts.size
    noise = partition.noise(cells, epsilon / record_distance(policy))
    step = Fraction(noise.step)
    offered = PartitionCandidates([], [], [])
    for start, end in _windows(partition, cells):
        length = end - start
        index = length if partition.lengths == "all" else length.bit_length() - 1
        scale = float(noise.scales[index])
        price = round((partition.bucket_cost + partition.offset * scale) / noise.step)
        cost = _cost(partition, [int(one) for one in counts[start:end]])
        offered.costs.append(math.floor(cost / step) + price)
        offered.prices.append(price)
        offered.scales.append(Fraction(scale) / step)
    return offered


def _windows(partition: LeastCost, cells: int) -> list[tuple[int, int]]:
    lengths = list(range(1, cells + 1))
    if partition.lengths == "powers":
        lengths = [2**power for power in range(cells.bit_length())]
    return [
        (start, start + length)
        for length in lengths
        for start in range(cells - length + 1)
    ]


def _members(windows: list[tuple[int, int]], cells: int) -> IntArray:
    """Return a row of zeros and ones per partition: the windows it is made of."""
    column = {window: number for number, window in enumerate(windows)}
    rows = []
    for cuts in range(2 ** (cells - 1)):
        edges = [0, *(i + 1 for i in range(cells - 1) if cuts >> i & 1), cells]
        buckets = list(pairwise(edges))
        if all(bucket in column for bucket in buckets):
            row = np.zeros(len(windows), dtype=np.int64)
            row[[column[bucket] for bucket in buckets]] = 1
            rows.append(row)
    return np.array(rows)


def _cost(partition: LeastCost, cells: list[int]) -> Fraction:
    if partition.cost == "deviation":
        mean = Fraction(sum(cells), len(cells))
        return sum((abs(one - mean) for one in cells), Fraction(0))
    quantile = Fraction(*QUANTILE)
    return min(
        sum(
            (
                quantile * max(one - centre, 0) + (1 - quantile) * max(centre - one, 0)
                for one in cells
            ),
            Fraction(0),
        )
        for centre in cells
    )

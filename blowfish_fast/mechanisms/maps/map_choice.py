"""Which way of dividing a map suits the data: a private test for a few percent.

    epsilon   [count 1 %][test .2 to 6 %][ the rest: rectangles, or an adaptive grid ]
    few records:  [count 1 %][again 5 %][test 6 %, if it can tell][ the rest ]

Rectangles follow evenness, the adaptive grid follows density; neither serves scattered
and concentrated data alike. Pieces: number of records from ``strategies.grid_plan``,
the test ``selections.scatter``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.selectors.partitions import DyadicRectangles
from blowfish_fast.measure.selectors.selections import ScatterTest
from blowfish_fast.measure.strategies.counted_buckets import mean_noise
from blowfish_fast.measure.strategies.trees.grid_plan import (
    count_epsilon,
    rough_total,
)
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Rectangles, Union, Workload

RECORDS_SHARE, AGAIN_SHARE = Fraction(1, 100), Fraction(5, 100)
# Chosen on four maps and on thinned versions of them.
THRESHOLD, LEAST_THRESHOLD, MOST_THRESHOLD = 2.0, 0.002, 0.25
SHARE, LEAST_SHARE, MOST_SHARE = 3.0, 0.002, 0.06
PRICE = 0.3
SHARE_BITS = 20
FEWEST_PARTS = 10


class MapChoice(NamedTuple):
    """Whether a map is scattered, how many records it has, and what that cost.

    An adaptive grid is cut into `fewest_parts` along each axis, at least.
    """

    scattered: bool
    records: float
    fewest_parts: int
    bought: list[Measurement]


def asks_boxes(workload: Workload) -> bool:
    """Return whether all queries are rectangles, for which the choice was measured."""
    if isinstance(workload, Union):
        return all(asks_boxes(one) for one in workload.parts)
    return isinstance(workload, Rectangles)


def chosen_map(
    private: Handle, partition: DyadicRectangles, policy: Policy, share: Fraction
) -> MapChoice:
    """Count the records, if their number is private, and test for scatter: Lemma SC5.

    `share` is what the rectangles would spend on their partition; it sets the price of
    a bucket. What is left of the budget is for whoever comes next.
    """
    budget = private.remaining
    scale = count_epsilon(policy, budget)
    records, bought = rough_total(private, None, budget=RECORDS_SHARE * budget)
    off = 1 / RECORDS_SHARE if bought else Fraction(0)
    if bought and records * scale < 2 * off:
        # Less than twice the scale of its noise: next to nothing is known.
        records, more = rough_total(private, None, budget=AGAIN_SHARE * budget)
        bought, off = bought + more, 1 / AGAIN_SHARE
    mass = records * scale
    # A grid of more boxes has fewer records in a box than the scale of its noise.
    parts = min(math.isqrt(max(int(mass - off), 1)), FEWEST_PARTS)
    part, threshold = _settings(mass)
    noise = mean_noise(policy, budget - share * budget)
    test = ScatterTest(
        partition.level_weights(private.policy.domain.shape),
        price=PRICE * partition.price * noise,
        threshold=threshold,
    )
    if test.threshold * mass * part <= test.sensitivity(policy):
        # The noise of the test is above its threshold: it could not tell.
        return MapChoice(True, records, parts, bought)
    scattered = private.select(test, budget=part * budget)
    return MapChoice(scattered, records, parts, bought)


def _settings(mass: float) -> tuple[Fraction, float]:
    """Return share and threshold for a number of records times epsilon; public."""
    root = math.sqrt(max(mass, 1.0))
    share = min(max(SHARE / root, LEAST_SHARE), MOST_SHARE)
    threshold = min(max(THRESHOLD / root, LEAST_THRESHOLD), MOST_THRESHOLD)
    return Fraction(math.floor(share * 2**SHARE_BITS), 2**SHARE_BITS), threshold

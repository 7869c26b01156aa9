"""Laws of the sampled rectangles by enumeration of all derivations.

A law maps a partition, the sorted tuple of its boxes (top, left, bottom, right), to a
number.
"""

from __future__ import annotations

import itertools
import math

from . import exponential_choice
from .aligned_costs import pinball_cost

BUCKET, ROWS, COLUMNS, QUARTERS, WINDOWS = range(5)


def derived_law(shape, share, bucket):
    """Return the law of all derivations.

    `share(kind, levels, place)` weighs a choice of a node and `bucket(box, levels)` a
    bucket; kinds are those of the package, WINDOWS + r for windows r halvings down.
    """

    def box_of(levels, place):
        start = [at << level for at, level in zip(place, levels, strict=True)]
        end = [
            min((at + 1) << level, side)
            for at, level, side in zip(place, levels, shape, strict=True)
        ]
        return (*start, *end)

    def inside(levels, place, smaller):
        """List the nodes of smaller levels inside a node that have a cell."""
        ranges = [
            range(at << (level - below), (at + 1) << (level - below))
            for at, level, below in zip(place, levels, smaller, strict=True)
        ]
        return [
            spot
            for spot in itertools.product(*ranges)
            if all(
                at << below < side
                for at, below, side in zip(spot, smaller, shape, strict=True)
            )
        ]

    def law_of(levels, place):
        tall, wide = levels
        row, column = place
        if tall and ((2 * row + 1) << (tall - 1)) >= shape[0]:
            return law_of((tall - 1, wide), (2 * row, column))
        if wide and ((2 * column + 1) << (wide - 1)) >= shape[1]:
            return law_of((tall, wide - 1), (row, 2 * column))
        box = box_of(levels, place)
        if levels == (0, 0):
            return {(box,): bucket(box, levels)}
        law = {(box,): share(BUCKET, levels, place) * bucket(box, levels)}
        divisions = {ROWS: (1, 0), COLUMNS: (0, 1), QUARTERS: (1, 1)}
        for kind, (down, across) in divisions.items():
            if tall < down or wide < across:
                continue
            smaller = (tall - down, wide - across)
            laws = [law_of(smaller, spot) for spot in inside(levels, place, smaller)]
            chance = share(kind, levels, place)
            for parts in itertools.product(*(one.items() for one in laws)):
                boxes = tuple(sorted(itertools.chain(*(part[0] for part in parts))))
                weight = math.prod(part[1] for part in parts)
                law[boxes] = law.get(boxes, 0.0) + chance * weight
        for halvings in range(1, max(levels) + 1):
            smaller = (max(tall - halvings, 0), max(wide - halvings, 0))
            spots = inside(levels, place, smaller)
            boxes = tuple(sorted(box_of(smaller, spot) for spot in spots))
            weight = math.prod(bucket(one, smaller) for one in boxes)
            chance = share(WINDOWS + halvings, levels, place)
            law[boxes] = law.get(boxes, 0.0) + chance * weight
        return law

    rows, columns = shape
    return law_of(((rows - 1).bit_length(), (columns - 1).bit_length()), (0, 0))


def intended_law(
    counts,
    rate,
    penalty,
    quantile=(3, 4),
    base=(0.5, 0.43, 0.04, 0.03),
    level_weights=None,
):
    """Return the law that the documentation states."""

    def bucket(box, levels):
        top, left, bottom, right = box
        inside = counts[top:bottom, left:right].ravel().tolist()
        cost = pinball_cost(inside, *quantile) / quantile[1]
        if level_weights is not None:
            cost *= level_weights[levels[0]][levels[1]]
        return math.exp(-rate * (cost + penalty))

    def share(kind, levels, place):
        one, halves, quarters, windows = base
        if kind == BUCKET:
            return one
        if kind in (ROWS, COLUMNS):
            return halves / 2 if min(levels) else halves + quarters
        if kind == QUARTERS:
            return quarters
        return windows * 2 ** (kind - WINDOWS - 1) / (2 ** max(levels) - 1)

    law = derived_law(counts.shape, share, bucket)
    total = math.fsum(law.values())
    return {partition: weight / total for partition, weight in law.items()}


def stored_law(shape, rows, kinds, fraction_bits):
    """Return the law of the walk, given the stored log-weights of every node.

    `rows` maps (levels, place) to log-weights, `kinds` levels to what they stand for.
    """
    chances = {
        node: exponential_choice.probabilities(row, fraction_bits)
        for node, row in rows.items()
    }

    def share(kind, levels, place):
        if kind not in kinds[levels]:
            return 0.0  # the same as another choice, which has its weight
        return float(chances[levels, place][kinds[levels].index(kind)])

    return derived_law(shape, share, lambda box, levels: 1.0)


def largest_log_ratio(law, other):
    """Return the largest |ln P(partition) / P'(partition)|."""
    assert law.keys() == other.keys()
    return max(abs(math.log(law[key] / other[key])) for key in law)

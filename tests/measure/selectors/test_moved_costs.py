"""Hand-derived bounds on how far one record moves a cost, on all small counts.

x = (1, 0, 2)  --one record more in cell 1-->  x' = (1, 1, 2)
costs of all candidates before and after       |change| <= the bound of the proof
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from blowfish_fast import kernels
from blowfish_fast.kernels.window_costs.baseline_costs import split_table
from blowfish_fast.measure.selectors.partitions.bisection import SENSITIVITY, KBuckets


def neighbours(cells, largest):
    """Yield all small counts with one record more in each cell in turn."""
    for counts in product(range(largest + 1), repeat=cells):
        for cell in range(cells):
            if counts[cell] < largest:
                before, after = np.array(counts), np.array(counts)
                after[cell] += 1
                yield before, after


def bucket_costs(counts, selector, bits):
    """Return the costs of the candidates of every draw, whatever was drawn before."""
    cells, buckets = counts.size, selector.count(counts.size)
    errors = kernels.bucket_errors(counts, np.arange(cells + 1), bits)
    heads = kernels.best_heads(errors, buckets - 1)
    for rest in range(buckets - 1, 0, -1):
        for end in range(rest + 1, cells + 1):
            candidates = np.arange(rest, end)
            yield heads[rest - 1, candidates] + errors[end, candidates]


@pytest.mark.parametrize(("cells", "largest", "buckets"), [(4, 3, 2), (4, 3, 3)])
def test_no_record_parts_errors_of_buckets_further_than_stated(cells, largest, buckets):
    # Lemma SF3: the changes of all candidates of a draw lie within `reach`.
    selector = KBuckets(buckets, largest_count=largest)
    bits = kernels.squares_grid(cells, largest)
    widest = 0
    for before, after in neighbours(cells, largest):
        draws = zip(
            bucket_costs(before, selector, bits),
            bucket_costs(after, selector, bits),
            strict=True,
        )
        widest = max(widest, *(int(np.ptp(b - a)) for a, b in draws))
    assert widest <= selector.reach * 2**bits
    # And not by luck: half of it is reached.
    assert widest > selector.reach * 2**bits / 2


def splits(counts, bits):
    """Return the deviations of both sides of every cut, floored on the grid."""

    def cost(part):
        return np.abs(part - part.mean()).sum() if part.size else 0.0

    sides = range(counts.size)
    before = [np.floor(cost(counts[:at]) * 2**bits) for at in sides]
    after = [np.floor(cost(counts[at:]) * 2**bits) for at in sides]
    return np.array(before, dtype=np.int64), np.array(after, dtype=np.int64)


def test_no_record_moves_a_split_further_than_stated():
    # Lemma BI2: the deviations of the two sides of a cut, floored, move by at most 2.
    bits, _ = kernels.bisection_grid(4)
    whole = np.array([0]), np.array([4])
    furthest = 0
    for before, after in neighbours(4, 3):
        costs = [split_table(*splits(one, bits), *whole, 0) for one in (before, after)]
        furthest = max(furthest, int(np.abs(costs[1] - costs[0]).max()))
    assert furthest <= SENSITIVITY * 2**bits
    assert furthest > SENSITIVITY * 2**bits / 2


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("numerator", "denominator"), [(1, 2), (3, 4), (7, 8)])
def test_no_record_moves_a_pinball_cost_further_than_stated(
    length, numerator, denominator
):
    # Lemma DT2: the cost moves by an amount in [-(1 - tau), tau].
    changes = {
        int(costs[1] - costs[0])
        for before, after in neighbours(length, 2)
        for costs in [
            np.concatenate(
                [
                    kernels.window_pinball_costs(one, length, numerator, denominator)
                    for one in (before, after)
                ]
            )
        ]
    }
    assert min(changes) >= -(denominator - numerator)
    assert max(changes) <= numerator
    if length > 1:
        assert min(changes) < 0 < max(changes)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_no_record_moves_a_deviation_further_than_stated(length):
    # Lemma LC4: 2 - 2 / L, and this is reached.
    moved = [
        abs(
            kernels.window_deviations(after, length)
            - kernels.window_deviations(before, length)
        ).max()
        for before, after in neighbours(length, 2)
    ]
    assert max(moved) <= 2 - 2 / length + 1e-12
    assert max(moved) == pytest.approx(2 - 2 / length, abs=1e-9)

"""Least cost by halving against recursion, and what one record changes."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.kernels.window_costs.rectangle_costs import (
    counts_within,
    least_even_cost,
    price_within,
)

pytestmark = pytest.mark.kernel

SHAPES = [(1, 4), (2, 2), (2, 3), (3, 3), (4, 4)]


def pinball(values):
    """Return four times the least pinball cost at the quantile 3/4."""
    return min(
        int((3 * np.maximum(values - at, 0) + np.maximum(at - values, 0)).sum())
        for at in values.reshape(-1)
    )


def least(counts, weights, price, row, column, tall, wide):
    """Return the least cost of the lattice's node at a place, by recursion."""
    box = counts[row << tall : (row + 1) << tall, column << wide : (column + 1) << wide]
    if box.size == 0:
        return 0
    found = int(weights[tall][wide] * 2**16) * pinball(box) + price
    if tall:
        halves = [(2 * row + half, column, tall - 1, wide) for half in (0, 1)]
        found = min(found, sum(least(counts, weights, price, *one) for one in halves))
    if wide:
        halves = [(row, 2 * column + half, tall, wide - 1) for half in (0, 1)]
        found = min(found, sum(least(counts, weights, price, *one) for one in halves))
    return found


def problem(shape, seed):
    rng = np.random.default_rng(seed)
    levels = [(side - 1).bit_length() + 1 for side in shape]
    weights = rng.random(levels).tolist()
    price = int(rng.integers(0, 3) * rng.integers(0, 2**18))
    counts = rng.integers(0, 9, shape) * (rng.random(shape) < 0.5)
    return counts, weights, price, levels


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(10))
def test_equals_recursion_over_halves(shape, seed):
    counts, weights, price, (tall, wide) = problem(shape, seed)
    expected = least(counts, weights, price, 0, 0, tall - 1, wide - 1)
    assert least_even_cost(counts, weights, price) == expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(10))
def test_one_record_moves_it_within_the_lemma(shape, seed):
    counts, weights, price, _ = problem(shape, seed)
    before = least_even_cost(counts, weights, price)
    for cell in np.ndindex(*shape):
        more = counts.copy()
        more[cell] += 1
        change = least_even_cost(more, weights, price) - before
        assert -(2**16) <= change <= 3 * 2**16


def test_full_cells_and_dear_buckets_are_cut_in_public():
    counts = np.full((2, 2), 2**62)
    cut = counts_within(counts)
    assert (cut == 2**40).all()
    cut[0, 0] = 0
    price = price_within(1e300, 4)
    assert price == 2**58
    assert 0 < least_even_cost(cut, [[1.0, 1.0]] * 2, price) < 2**62
    assert price_within(0.5, 4) == 2**17

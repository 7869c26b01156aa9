"""The one-dimensional choice that every node makes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast.errors import WorkloadError
from blowfish_fast.kernels.tree_scaling.budget_shares import (
    level_decays,
    optimal_share,
    regular_levels,
    scaling_from_shares,
    squared_weights,
)
from tests.generated import example_count

pytestmark = pytest.mark.kernel


def local_error(share, error, variance, residual):
    """Eq. 9 of the paper, with (1-s)^-2 [E - s^2 m / ((1-s)^2 + s^2 k)] rearranged."""
    odds = (share / (1.0 - share)) ** 2
    return (error + residual * odds) / (1.0 + variance * odds) / (1.0 - share) ** 2


@settings(deadline=None, max_examples=example_count(150))
@given(st.floats(1e-6, 1e6), st.floats(1.0, 1e5), st.floats(-9.0, -0.01), st.booleans())
def test_no_other_share_does_better(error, variance, exponent, near_one):
    # The residual lies between nothing and all of `variance * error`.
    part = 1.0 - 10.0**exponent if near_one else 10.0**exponent
    residual = part * variance * error
    share = optimal_share(error, variance, residual)
    assert 0.0 <= share < 1.0
    grid = np.r_[np.linspace(0.0, 0.999, 4000), 1.0 - np.geomspace(1e-6, 0.01, 500)]
    least = local_error(grid, error, variance, residual).min()
    assert local_error(share, error, variance, residual) <= least * (1.0 + 1e-9)


@settings(deadline=None, max_examples=example_count(100))
@given(st.floats(1.0, 1e4), st.floats(-6.0, 0.0))
def test_equals_the_best_root_of_the_slope(variance, exponent):
    residual = 10.0**exponent * variance
    roots = np.roots([residual * variance, 0, 2 * residual, residual - variance, 1.0])
    real = [r.real for r in roots if abs(r.imag) < 1e-9 * abs(r) and r.real > 0]
    candidates = [0.0, *(x / (1.0 + x) for x in real)]
    values = [local_error(s, 1.0, variance, residual) for s in candidates]
    best = candidates[int(np.argmin(values))]
    order = np.sort(values)
    if len(order) == 1 or order[1] > order[0] * (1.0 + 1e-9):
        assert optimal_share(1.0, variance, residual) == pytest.approx(best, rel=1e-9)


def test_takes_nothing_when_there_is_nothing_to_gain():
    assert optimal_share(0.0, 4.0, 0.0) == 0.0
    assert optimal_share(1.0, 2.0, 2.0) == 0.0
    # Single cells: all that stays is one cell in `variance` of them.
    for cells in (2.0, 3.0, 64.0, 1e6):
        assert optimal_share(1.0, cells, cells - 1.0) == 0.0


def test_takes_all_when_nothing_stays():
    assert optimal_share(1.0, 2.0, 0.0) == 1.0
    assert optimal_share(1.0, 1.0, 0.0) == 0.0


def test_decays_follow_the_depth():
    np.testing.assert_allclose(level_decays(4, 4, True), [1 / 8, 1 / 4, 1 / 2, 1.0])
    assert level_decays(4, 4, False).tolist() == [1.0] * 4


def test_weights_are_squared_and_default_to_ones():
    assert squared_weights(None, 2).tolist() == [1.0, 1.0]
    assert squared_weights(np.array([2.0, -3.0]), 2).tolist() == [4.0, 9.0]
    with pytest.raises(WorkloadError, match="one weight per query"):
        squared_weights(np.ones(3), 2)


def test_a_root_known_exactly_is_not_measured():
    tree, shares = regular_levels(1, 2), np.zeros(1)
    assert scaling_from_shares(shares, 1, tree, False).weights == 1.0
    assert scaling_from_shares(shares, 1, tree, True).weights == 0.0

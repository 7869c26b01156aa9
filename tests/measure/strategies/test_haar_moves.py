"""The dearest move over Haar rows of a grid, against all pairs of cells."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.errors import PrivacyError
from blowfish_fast.kernels.transform.haar_transform import haar_path_sums
from blowfish_fast.measure.strategies import Haar, haar
from blowfish_fast.measure.strategies.haar import worst_grid_move
from tests.reference.haar_transform import worst_move


def found(weights):
    return worst_grid_move(weights, haar_path_sums(weights))


@pytest.mark.parametrize(
    "shape", [(1, 1), (2, 2), (4, 8), (3, 3), (3, 4), (1, 3, 2), (2, 2, 2), (3, 3, 3)]
)
def test_equal_weights_on_powers_of_two_and_threes_give_the_exact_price(shape):
    ones = np.ones(shape, dtype=np.int64)
    assert found(ones) == worst_move(ones, shape)


@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (2, 3, 2), (4, 6), (1, 7)])
def test_the_price_is_a_bound_for_any_weights(shape, generator):
    for _ in range(10):
        weights = generator.integers(0, 100, shape)
        assert found(weights) >= worst_move(weights, shape)


@pytest.mark.parametrize("shape", [(5, 5), (6, 7), (3, 9), (2, 3, 7)])
def test_the_weights_in_use_meet_the_bound_up_to_rounding(shape):
    weights = Haar(shape).weights().reshape(shape)
    exact = worst_move(weights, shape)
    assert exact <= found(weights) <= exact + 100


def test_the_total_costs_a_move_nothing():
    weights = np.zeros((4, 4), dtype=np.int64)
    weights[0, 0] = 7
    assert found(weights) == 0


def test_very_many_axes_of_three_cells_are_bounded_more_coarsely(monkeypatch):
    ones = np.ones((3, 3, 3), dtype=np.int64)
    exact = found(ones)
    monkeypatch.setattr(haar, "MOST_WAYS", 8)
    assert found(ones) > exact


def test_weights_that_no_multiple_covers_have_no_price():
    strategy = Haar((2, 2))
    own = np.array([4, 4, 4, 0])
    assert strategy._covered(np.array([4, 4, 4, 0]), own) > 0
    assert strategy._covered(np.zeros(4, dtype=np.int64), own) == 0
    with pytest.raises(PrivacyError, match="does not weigh"):
        strategy._covered(np.array([4, 4, 4, 1]), own)


@pytest.mark.parametrize(
    ("shape", "close"),
    [
        ((3,) * 8, True),
        ((3,) * 9, False),
        ((3,) * 8 + (1,) * 9, True),
        ((3,) * 8 + (4,), True),
        ((3,) * 8 + (2, 4), False),
    ],
)
def test_sides_of_three_are_looked_at_while_ways_to_move_are_few(shape, close):
    # Five ways along a side of three, two along others, none along a single cell.
    assert 5**8 * 2**1 < haar.MOST_WAYS < 5**9
    assert haar._looked_at_closely(shape) == [close and side == 3 for side in shape]

"""Directions of walks through a plane."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from blowfish_fast.kernels.space.hilbert import hilbert_order
from blowfish_fast.kernels.space.walk_directions import NO_STEP, step_directions
from tests.reference import curve_intervals as reference

pytestmark = pytest.mark.kernel
SHAPE = (9, 7)
WALKS = {
    "hilbert": hilbert_order(SHAPE),
    "zigzag": reference.zigzag_order(*SHAPE),
    "snake": reference.snake_order(*SHAPE),
}


@pytest.mark.parametrize("name", WALKS)
def test_directions_lead_along_the_walk(name):
    order = WALKS[name]
    directions = step_directions(order, SHAPE[1])
    assert directions.size == order.size
    assert directions[order[0]] & 15 == NO_STEP
    assert directions[order[-1]] >> 4 == NO_STEP
    for cell, after in pairwise(order):
        ahead = int(directions[cell]) >> 4
        down, right = (ahead & 3) - 1, (ahead >> 2) - 1
        assert cell + down * SHAPE[1] + right == after
        behind = int(directions[after]) & 15
        assert ((behind & 3) - 1, (behind >> 2) - 1) == (-down, -right)


@pytest.mark.parametrize("name", WALKS)
def test_walks_that_jump_have_none(name):
    assert step_directions(np.roll(WALKS[name], 5), SHAPE[1]).size == 0
    # A step from the end of a row to the next row changes the index by one only.
    assert step_directions(np.arange(63), SHAPE[1]).size == 0

"""Names beside lines move apart; missing packages are named."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast._support.optional import require
from blowfish_fast.errors import MissingExtraError
from blowfish_fast.plotting.canvas import apart
from tests.generated import example_count


@settings(max_examples=example_count(60))
@given(st.lists(st.floats(0, 1), max_size=12))
def test_heights_keep_their_order_and_their_distance(heights):
    moved = apart(heights, 0.05)
    order = sorted(range(len(heights)), key=lambda one: (heights[one], one))
    for low, high in itertools.pairwise(order):
        assert moved[high] - moved[low] >= 0.05 - 1e-8


def test_heights_that_are_apart_stay():
    assert apart([0.9, 0.1, 0.5], 0.1) == [0.9, 0.1, 0.5]


def test_a_missing_extra_is_named():
    with pytest.raises(MissingExtraError, match=r"blowfish_fast\[plot\]"):
        require("no_such_module", extra="plot", purpose="Drawing")

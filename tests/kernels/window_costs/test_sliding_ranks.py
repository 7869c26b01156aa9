from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfish_fast.kernels.window_costs.moving_pointer import (
    ABOVE_ALL,
    BELOW_ALL,
    dense_ranks,
    rank_stretch,
)

pytestmark = pytest.mark.kernel

# Small values are ranked by a bitmap, larger ones by a sort of packed words, the
# largest (and a lone cell among them) by a sort of positions.
VALUES = st.one_of(
    st.lists(st.integers(0, 300), min_size=1, max_size=60),
    st.lists(st.integers(0, 2**40), min_size=1, max_size=60),
    st.lists(st.integers(0, 2**62), min_size=1, max_size=60),
)


@given(VALUES)
def test_ranks_are_the_places_among_the_sorted_values(values):
    cells = np.array(values, dtype=np.int64)
    ranks, table = dense_ranks(cells)
    expected, places = np.unique(cells, return_inverse=True)
    assert ranks.dtype == np.int32
    np.testing.assert_array_equal(ranks, places + 1)
    np.testing.assert_array_equal(table[1:-1], expected)
    assert (table[0], table[-1]) == (BELOW_ALL, ABOVE_ALL)


@given(VALUES, st.data())
def test_a_stretch_is_ranked_like_an_array_of_its_own(values, data):
    cells = np.array(values, dtype=np.int64)
    ranks, table = dense_ranks(cells)
    begin = data.draw(st.integers(0, cells.size - 1))
    end = data.draw(st.integers(begin + 1, cells.size))
    words = (table.size - 2 >> 6) + 1
    own_ranks = np.empty(end - begin, dtype=np.int32)
    own_table = np.empty(end - begin + 2, dtype=np.int64)
    distinct = rank_stretch(
        ranks[begin:end],
        table.size - 2,
        cells[begin:end],
        np.empty(words, dtype=np.uint64),
        np.empty(words, dtype=np.int32),
        own_ranks,
        own_table,
    )
    expected_ranks, expected_table = dense_ranks(cells[begin:end])
    np.testing.assert_array_equal(own_ranks, expected_ranks)
    np.testing.assert_array_equal(own_table[: distinct + 2], expected_table)


def test_many_ranks_cross_the_words_of_the_bitmap():
    cells = np.random.default_rng(4).permutation(1000).astype(np.int64)
    ranks, table = dense_ranks(cells)
    np.testing.assert_array_equal(ranks, cells + 1)
    np.testing.assert_array_equal(table[1:-1], np.arange(1000))

"""The cheapest partition for costs of the caller's own, against the plain recursion."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfish_fast import kernels
from blowfish_fast.errors import InputError
from blowfish_fast.kernels import least_cost_partition_of_costs
from tests.reference.interval_partition import bucket_cost, cheapest, hashed_words

pytestmark = pytest.mark.kernel

LENGTHS = st.sets(st.integers(2, 9), max_size=4).map(lambda more: sorted({1, *more}))


def by_bucket(table, lengths):
    """Return the costs by start and end."""
    return {
        (end - length, end): table[row][end]
        for row, length in enumerate(lengths)
        for end in range(length, len(table[row]))
    }


@pytest.mark.long
@given(st.data(), LENGTHS, st.integers(1, 24), st.booleans())
def test_the_cheapest_partition_is_found_and_ties_go_to_the_longest(
    data, lengths, cells, floats
):
    numbers = st.integers(-4, 4)
    rows = st.lists(numbers, min_size=cells + 1, max_size=cells + 1)
    table = [data.draw(rows) for _ in lengths]
    noise = [data.draw(rows) for _ in lengths]
    kind = np.float64 if floats else np.int64
    noisy = (np.array(table) - np.array(noise)).tolist()
    wanted, cost = cheapest(cells, by_bucket(noisy, lengths))
    found = least_cost_partition_of_costs(
        np.array(table, dtype=kind), lengths, np.array(noise)
    )
    assert found.tolist() == wanted
    plain = by_bucket(noisy, lengths)
    assert sum(plain[ends] for ends in pairwise(found.tolist())) == cost


def test_our_own_costs_handed_over_give_our_own_partition():
    counts = np.random.default_rng(4).poisson(3, 50)
    lengths, step = [1, 2, 4, 8, 16, 32], 2.0**-8
    scales, prices = np.full(6, 1.5), np.full(6, 6.0)
    costs = np.zeros((6, 51), dtype=np.int64)
    noise = np.zeros_like(costs)
    for level, length in enumerate(lengths):
        ends = range(length, 51)
        costs[level, length:] = [
            bucket_cost(counts[end - length : end].tolist(), step) + int(6 / step)
            for end in ends
        ]
        row = np.zeros(len(ends), dtype=np.int64)
        place = (level << 40) + length
        kernels.subtract_geometric(row, hashed_words(7), place, 1.5 / step)
        noise[level, length:] = -row
    ours = kernels.least_cost_partition(
        counts, prices, scales, hashed_words(7), step=step
    )
    handed = least_cost_partition_of_costs(costs, lengths, noise)
    assert handed.tolist() == ours.tolist()
    assert handed.size > 3


def test_places_before_the_first_end_of_a_length_are_not_read():
    costs = np.array([[np.nan, 1.0, 1.0], [np.inf, -np.inf, 1.0]])
    assert least_cost_partition_of_costs(costs, [1, 2]).tolist() == [0, 2]


def test_lengths_need_not_hold_one_cell_where_they_fill_the_line():
    costs = np.zeros((2, 8))
    assert least_cost_partition_of_costs(costs, [2, 5]).tolist() == [0, 2, 7]
    with pytest.raises(InputError, match=r"\[2, 4\] fill 7 cells"):
        least_cost_partition_of_costs(costs, [2, 4])


ONES = np.ones((2, 4))


@pytest.mark.parametrize(
    ("costs", "lengths", "noise", "reason"),
    [
        (ONES[0], [1, 2], None, "shape"),
        (ONES[:, :1], [1, 2], None, "shape"),
        (ONES > 0, [1, 2], None, "got bool"),
        (ONES, [2, 1], None, "increase"),
        (ONES, [0, 1], None, "increase"),
        (ONES, [], None, "increase"),
        (ONES, [1], None, "for 2 rows"),
        (ONES, [1, 2], ONES[:1], "the shape of costs"),
        (ONES * np.nan, [1, 2], None, "finite"),
        (ONES, [1, 2], ONES * np.inf, "finite"),
        (np.full((1, 4), 2**61), [1], None, "coarser grid"),
        (np.full((1, 4), -(2**63)), [1], None, "coarser grid"),
        (np.ones((1, 4), int), [1], np.full((1, 4), 2**61), "coarser grid"),
        (np.full((1, 4), 2**63, dtype=np.uint64), [1], None, r"below 2\^62"),
    ],
)
def test_what_cannot_be_added_up_is_refused(costs, lengths, noise, reason):
    with pytest.raises(InputError, match=reason):
        least_cost_partition_of_costs(costs, lengths, noise)

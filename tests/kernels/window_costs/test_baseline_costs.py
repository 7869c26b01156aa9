"""Costs of all splits of clusters, against exact fractions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.sampling.exponential_choice import NO_CANDIDATE
from blowfish_fast.kernels.window_costs.baseline_costs import (
    AFTER,
    BEFORE,
    bisection_grid,
    part_clusters,
    split_table,
    sweep_clusters,
)
from tests.generated import example_count
from tests.reference import bisection_costs as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 15 if config.DISABLE_JIT else example_count(80)
COUNTS = st.one_of(st.integers(0, 9), st.integers(0, 2**40))


def swept(values, starts, ends, bits, sides=BEFORE | AFTER):
    values = np.asarray(values, dtype=np.int64)
    before, after = np.full((2, values.size), -1)
    ranked = np.empty(values.size, dtype=np.int64)
    for start, end in zip(starts, ends, strict=True):
        ranked[start:end] = start + np.argsort(values[start:end], kind="stable")
    starts, ends = np.asarray(starts), np.asarray(ends)
    all_sides = np.full(starts.size, sides)
    sweep_clusters(values, ranked, starts, ends, all_sides, bits, before, after)
    return before, after


@settings(max_examples=EXAMPLES)
@given(st.lists(COUNTS, min_size=1, max_size=40), st.sampled_from([0, 3, 8]))
def test_prefixes_and_suffixes_equal_the_definition(values, bits):
    before, after = swept(values, [0], [len(values)], bits)
    assert before.tolist() == reference.prefix_costs(values, bits)
    assert after.tolist() == reference.suffix_costs(values, bits)


@settings(max_examples=EXAMPLES)
@given(st.lists(COUNTS, min_size=6, max_size=30), st.data())
def test_clusters_do_not_see_each_other(values, data):
    cells = len(values)
    cuts = data.draw(st.lists(st.integers(1, cells - 1), unique=True, max_size=4))
    edges = [0, *sorted(cuts), cells]
    before, after = swept(values, edges[:-1], edges[1:], 8)
    for start, end in pairwise(edges):
        part = values[start:end]
        assert before[start:end].tolist() == reference.prefix_costs(part, 8)
        assert after[start:end].tolist() == reference.suffix_costs(part, 8)
    table = split_table(before, after, np.array(edges[:-1]), np.array(edges[1:]), 700)
    for row, (start, end) in zip(table, pairwise(edges), strict=True):
        expected = reference.split_costs(values[start:end], 700, 8)
        assert row[: end - start].tolist() == expected
        assert (row[end - start :] == NO_CANDIDATE).all()


def test_only_the_sides_asked_for_are_filled_in():
    before, after = swept([4, 1, 3], [0], [3], 0, sides=BEFORE)
    assert before.tolist() == [0, 3, 3]
    assert after.tolist() == [-1, -1, -1]
    before, after = swept([4, 1, 3], [0], [3], 0, sides=AFTER)
    assert before.tolist() == [-1, -1, -1]
    assert after.tolist() == [3, 2, 0]


@settings(max_examples=EXAMPLES)
@given(st.lists(COUNTS, min_size=2, max_size=40), st.data())
def test_parted_clusters_stay_sorted(values, data):
    values = np.array(values)
    middle = data.draw(st.integers(1, values.size - 1))
    ranked = np.argsort(values, kind="stable")
    part_clusters(ranked, np.array([0]), np.array([middle]), np.array([values.size]))
    left, right = ranked[:middle], ranked[middle:]
    assert sorted(left.tolist()) == list(range(middle))
    assert sorted(right.tolist()) == list(range(middle, values.size))
    assert (np.diff(values[left]) >= 0).all()
    assert (np.diff(values[right]) >= 0).all()


@pytest.mark.parametrize("cells", [1, 2, 3, 4096, 2**20, 2**20 + 1, 2**28])
def test_the_grid_leaves_room_for_the_largest_cost(cells):
    bits, cap = bisection_grid(cells)
    assert 2 * cells * cap << bits <= 2**61
    assert (cells * cells) << (bits + 1) <= 2**61
    assert cap >= 2**23


def test_the_largest_counts_are_exact():
    cells = 6
    bits, cap = bisection_grid(cells)
    values = [cap, 0, cap, 0, cap - 1, 3]
    before, after = swept(values, [0], [cells], bits)
    assert before.tolist() == reference.prefix_costs(values, bits)
    assert after.tolist() == reference.suffix_costs(values, bits)


def test_bad_shapes_are_refused():
    values = np.arange(4)
    costs = np.zeros((2, 4), dtype=np.int64)
    one = np.array([0])
    with pytest.raises(InputError, match="each cell"):
        sweep_clusters(values, values[:3], one, one + 4, one + 3, 8, *costs)
    with pytest.raises(InputError, match="stretches"):
        sweep_clusters(values, values, one, one + 5, one + 3, 8, *costs)
    with pytest.raises(InputError, match="stretches"):
        part_clusters(values.copy(), one, one + 1, one + 9)
    with pytest.raises(InputError, match="a start, a middle"):
        part_clusters(values.copy(), one, np.array([1, 2]), one + 4)
    with pytest.raises(InputError, match="one cell or more"):
        split_table(*costs, one, one, 0)
    with pytest.raises(InputError, match="stretches"):
        split_table(*costs, one, one + 5, 0)
    with pytest.raises(InputError, match="coarser"):
        bisection_grid(2**28 + 1)
    sweep_clusters(values, values, one[:0], one[:0], one[:0], 8, *costs)

"""Ranges as queries of a tree: their order, their demand, and how they climb."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast.errors import WorkloadError
from blowfish_fast.kernels.tree_scaling.budget_shares import (
    leaf_level,
    level_above,
    regular_levels,
)
from blowfish_fast.kernels.tree_scaling.range_queries import (
    climb_ranges,
    demand_of_ranges,
    order_by_first,
    sorted_ranges,
)
from tests.reference.greedy_weights import range_rows

from .test_greedy_weights import fan_outs, ranges

pytestmark = pytest.mark.kernel


@settings(deadline=None)
@given(st.lists(st.integers(0, 9)))
def test_queries_are_ordered_by_their_first_leaf_and_ties_stay(first):
    first = np.array(first, dtype=np.int64)
    np.testing.assert_array_equal(
        order_by_first(first, 10), np.argsort(first, kind="stable")
    )


@settings(deadline=None)
@given(ranges(leaves=30), fan_outs)
def test_demand_is_the_summed_squared_coverage_of_each_leaf(queries, fan_out):
    *ends, weights, leaves = queries
    rows = weights[:, None] * range_rows(*ends, leaves)
    sorted_ = sorted_ranges(*ends, weights, leaves)
    wanted = demand_of_ranges(sorted_, regular_levels(leaves, fan_out))
    np.testing.assert_allclose(wanted.demand, (rows**2).sum(axis=0), atol=1e-12)
    first, last = np.asarray(ends[0]), np.asarray(ends[2])
    assert wanted.active == ((first < last) & (weights != 0)).sum()


@settings(deadline=None)
@given(ranges(leaves=30), fan_outs)
def test_above_the_leaves_demand_is_the_squared_mean_coverage(queries, fan_out):
    *ends, weights, leaves = queries
    tree = regular_levels(leaves, fan_out)
    sorted_ = sorted_ranges(*ends, weights, leaves)
    wanted = demand_of_ranges(sorted_, tree)
    if leaves == 1:
        return
    level = level_above(leaf_level(tree, wanted.demand, wanted.inside), tree)
    climb_ranges(sorted_, wanted.active, level)
    starts = np.arange(0, leaves, fan_out)
    widths = np.diff(np.r_[starts, leaves])
    rows = weights[:, None] * range_rows(*ends, leaves)
    means = np.add.reduceat(rows, starts, axis=1) / widths
    here = slice(tree.offsets[1], tree.offsets[2])
    found = wanted.cover[here] + (level.partial + level.inside[: starts.size])
    np.testing.assert_allclose(found, (means**2).sum(axis=0), atol=1e-12)


def test_ranges_beyond_the_leaves_are_refused():
    with pytest.raises(WorkloadError, match="0 <= first <= last < 4"):
        sorted_ranges([0], [1.0], [4], [1.0], None, 4)
    with pytest.raises(WorkloadError, match="vectors of one length"):
        sorted_ranges([0], [1.0, 1.0], [3], [1.0], None, 4)

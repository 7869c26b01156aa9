"""The core of DAWA into arrays of the caller: the same as the public kernels."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core import config

from blowfish_fast import kernels
from blowfish_fast.kernels.capi import into_buffers as into
from blowfish_fast.kernels.tree_scaling.greedy_weights import greedy_scaling_fractions
from blowfish_fast.kernels.window_costs import count_grid
from tests.generated import example_count
from tests.kernels.public_calls import words

pytestmark = pytest.mark.kernel

NONE = np.zeros(0, dtype=np.int64)
MANY = 40 if config.DISABLE_JIT else 200
EXAMPLES = 8 if config.DISABLE_JIT else example_count(60)


def partitioned(counts, prices, noise=NONE, grid=0):
    boundaries = np.full(counts.size + 1, -7, dtype=np.int64)
    buckets = into.partition_into(counts, prices, noise, grid, boundaries)
    assert (boundaries[buckets + 1 :] == -7).all()
    return boundaries[: buckets + 1]


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    st.lists(st.integers(0, 50) | st.integers(0, 10**6), min_size=1, max_size=MANY),
    st.integers(0, 10**4),
    st.integers(-6, 3),
)
def test_partitions_are_those_of_the_kernel(counts, price, grid):
    cells = np.array(counts, dtype=np.int64)
    prices = np.full(cells.size.bit_length(), price)
    step = 2.0**grid
    expected = kernels.least_cost_partition(cells, prices * step, step=step)
    np.testing.assert_array_equal(partitioned(cells, prices, NONE, grid), expected)


@settings(deadline=None, max_examples=EXAMPLES // 2)
@given(st.integers(1, MANY), st.integers(0, 2**32))
def test_noise_takes_the_place_of_words(cells, seed):
    generator = np.random.default_rng(seed)
    counts = generator.poisson(20, size=cells)
    levels = cells.bit_length()
    scales = generator.uniform(2, 9, size=levels)
    shifted = lambda position, count: words(position + seed, count)  # noqa: E731
    expected = kernels.least_cost_partition(
        counts, np.full(levels, 12.0), scales, shifted, step=2.0**-8
    )
    noise = np.zeros((levels, cells + 1), dtype=np.int64)
    for level, scale in enumerate(scales):
        exact = Fraction(float(scale)) * 2**8
        ends = cells + 1 - (1 << level)
        if ends > 0:
            noise[level, 1 << level :] = kernels.geometric(
                shifted,
                (level << 40) + (1 << level),
                exact.numerator,
                exact.denominator,
                size=ends,
            )
    prices = np.full(levels, 12 << 8)
    result = partitioned(counts, prices, noise.reshape(-1), -8)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("cells", "most"), [(40_000, 3), (70_000, 10**9), (33_000, 40_000), (100_000, 1)]
)
def test_long_arrays_cross_blocks_and_tiles(cells, most):
    cells = cells // 200 if config.DISABLE_JIT else cells
    generator = np.random.default_rng(cells)
    counts = generator.integers(0, most, size=cells)
    counts[cells // 3 : cells // 2] //= 50
    prices = np.full(cells.bit_length(), 30 * most)
    expected = kernels.least_cost_partition(counts, prices.astype(float), step=1.0)
    np.testing.assert_array_equal(partitioned(counts, prices), expected)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"counts": [-1, 2]}, into.BAD_VALUE),
        ({"counts": [0, 1 << 60]}, into.TOO_LARGE),
        ({"counts": [0, 1], "grid": -50}, into.TOO_LARGE),
        ({"prices": [1 << 60, 0]}, into.TOO_LARGE),
        ({"prices": [-(1 << 59), 0]}, into.TOO_LARGE),
        ({"noise": [0, 0, -1, 0, 0, 0]}, into.BAD_VALUE),
        ({"noise": [0, 0, 1 << 61, 0, 0, 0]}, into.TOO_LARGE),
    ],
)
def test_what_could_overflow_is_refused(changes, code):
    given_ = {"counts": [1, 2], "prices": [3, 3], "noise": [], "grid": 0, **changes}
    counts, prices, noise = (
        np.array(given_[name], dtype=np.int64) for name in ("counts", "prices", "noise")
    )
    boundaries = np.zeros(3, dtype=np.int64)
    result = into.partition_into(counts, prices, noise, given_["grid"], boundaries)
    assert result == code
    assert code in into.ERRORS


def test_the_lowest_price_is_paid_by_every_cell_without_overflow():
    counts = np.zeros(64, dtype=np.int64)
    lowest = np.array([-(1 << count_grid.DATA_BITS) // 64])
    assert into._check_partition(counts, lowest, NONE, 0) == 0
    assert into._check_partition(counts, lowest - 1, NONE, 0) == into.TOO_LARGE


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    st.integers(1, 40),
    st.integers(2, 5),
    st.integers(0, 7),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12),
    st.booleans(),
)
def test_weights_are_those_of_the_kernel(leaves, fan_out, flags, pairs, weighted):
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2) % (leaves + 1)
    ends.sort(axis=1)
    starts, stops = ends[:, 0].copy(), ends[:, 1].copy()
    given_ = np.arange(len(ends), dtype=np.float64) / 4 if weighted else np.zeros(0)
    nodes = into.tree_nodes(leaves, fan_out)
    scaling = np.empty(nodes + 1)
    assert (
        into.weights_into(starts, stops, given_, leaves, fan_out, flags, scaling) == 0
    )
    filled = starts < stops
    whole = np.ones(int(filled.sum()))
    expected = greedy_scaling_fractions(
        starts[filled],
        whole,
        stops[filled] - 1,
        whole,
        given_[filled] if weighted else None,
        leaves,
        fan_out,
        decay=bool(flags & into.DECAY),
        root_exact=bool(flags & into.ROOT_EXACT),
        prune=bool(flags & into.PRUNE),
    )
    np.testing.assert_allclose(scaling[:-1], expected.weights, rtol=1e-9, atol=1e-12)
    assert scaling[-1] == pytest.approx(expected.objective, rel=1e-9)


def test_ranges_out_of_the_tree_are_refused():
    room = np.empty(4)
    for start, end in ((-1, 1), (0, 3), (2, 1)):
        ends = np.array([start]), np.array([end])
        result = into.weights_into(*ends, np.zeros(0), 2, 2, 0, room)
        assert result == into.BAD_VALUE
    ends = np.array([0]), np.array([1])
    result = into.weights_into(*ends, np.array([np.nan]), 2, 2, 0, room)
    assert result == into.BAD_VALUE


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 30), st.integers(2, 4), st.integers(0, 2**32))
def test_leaves_are_those_of_the_kernel(leaves, fan_out, seed):
    generator = np.random.default_rng(seed)
    nodes = into.tree_nodes(leaves, fan_out)
    assert nodes == kernels.tree_levels(leaves, fan_out)[1][-1]
    noisy = generator.normal(size=nodes)
    variances = generator.choice([0.5, 1.0, 3.0, np.inf, 0.0], size=nodes)
    estimate = np.empty(leaves)
    assert into.leaves_into(noisy, variances, fan_out, estimate) == 0
    expected = kernels.tree_fit(
        noisy, variances, kernels.regular_tree(leaves, fan_out)
    )[:leaves]
    np.testing.assert_array_equal(estimate, expected)


def test_negative_variances_and_trees_without_leaves_are_refused():
    result = into.leaves_into(np.zeros(1), np.array([-1.0]), 2, np.empty(1))
    assert result == into.BAD_VALUE
    for leaves, fan_out in ((0, 2), (3, 1), (1 << 40, 2), (2, 1 << 40)):
        assert into.tree_nodes(leaves, fan_out) == into.BAD_SIZE

"""Exact variances of answers from a chain of block trees, and leverages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.block_spread import (
    block_noise,
    hat_diagonal,
    hierarchy_variances,
    lift_cuts,
    moment_bounds,
    range_cuts,
)
from blowfish_fast.kernels.tree.block_trees import trees_over_blocks
from tests.generated import example_count
from tests.reference import ordered_hierarchy as reference
from tests.reference.hierarchy_problems import problems

pytestmark = pytest.mark.kernel

EXAMPLES = 25 if config.DISABLE_JIT else example_count(120)


def queries_of(cuts, cells):
    """Return the dense queries behind lists of (cell, fraction, amount)."""
    dense = np.zeros((len(cuts), cells))
    for query, row in enumerate(cuts):
        for cell, fraction, amount in row:
            dense[query, :cell] += amount
            if cell < cells:
                dense[query, cell] += amount * fraction
    return dense


def packed(cuts):
    flat = [cut for row in cuts for cut in row]
    pointers = np.append(0, np.cumsum([len(row) for row in cuts]))
    columns = zip(*flat, strict=True) if flat else ([], [], [])
    cells, fractions, amounts = (np.array(list(one)) for one in columns)
    return pointers, cells.astype(np.int64), fractions, amounts


@settings(deadline=None, max_examples=EXAMPLES)
@given(problems(), st.data())
def test_equals_the_dense_variance(problem, data):
    trees, rows, variances = problem
    cells = rows.shape[1]
    cut = st.tuples(
        st.integers(0, cells),
        st.sampled_from([0.0, 0.25, 0.9]),
        st.sampled_from([-2.0, -1.0, 1.0, 0.5]),
    )
    cuts = data.draw(
        st.lists(st.lists(cut, max_size=6).map(sorted), min_size=1, max_size=6)
    )
    noise = block_noise(variances, trees)
    coefficients = reference.dense_coefficients(
        variances, rows, queries_of(cuts, cells)
    )
    expected = (coefficients**2 * variances).sum(axis=1)
    for known in (noise, lift_cuts(noise, trees)):
        found = hierarchy_variances(known, trees, *packed(cuts))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_all_ranges_of_a_long_line_keep_their_digits():
    cells, length = (40, 4) if config.DISABLE_JIT else (400, 7)
    edges = np.append(np.arange(0, cells, length), cells)
    blocks = edges.size - 1
    trees = trees_over_blocks(edges, np.full(blocks, 3))
    rows = reference.dense_rows(edges, [3] * blocks)
    variances = np.full(trees.rows, 30.0)
    variances[:blocks] = 2000.0
    variances[blocks - 1] = 0.0
    rng = np.random.default_rng(1)
    ends = np.sort(rng.integers(0, cells + 1, (200, 2)), axis=1)
    cuts = [[(int(a), 0.0, -1.0), (int(b), 0.0, 1.0)] for a, b in ends]
    noise = block_noise(variances, trees)
    coefficients = reference.dense_coefficients(
        variances, rows, queries_of(cuts, cells)
    )
    expected = (coefficients**2 * variances).sum(axis=1)
    for known in (noise, lift_cuts(noise, trees)):
        found = hierarchy_variances(known, trees, *packed(cuts))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-7)


def test_o7_a_block_total_has_four_thirds_of_a_nodes_variance():
    trees = trees_over_blocks(np.array([0, 4]), np.array([2]))
    noise = block_noise(np.append(np.inf, np.full(6, 3.0)), trees)
    assert noise.subtree_variance[trees.tops[0]] == pytest.approx(4 * 3.0 / 3)


def test_nothing_passes_an_exact_border():
    trees = trees_over_blocks(np.array([0, 3, 5, 9]), np.full(3, 2))
    variances = np.random.default_rng(5).uniform(1, 2, trees.rows)
    variances[[1, 2]] = 0.0
    noise = block_noise(variances, trees)
    assert noise.given_all[trees.nodes[[1, 2]]].tolist() == [0.0, 0.0]


@settings(deadline=None, max_examples=EXAMPLES)
@given(problems())
def test_leverage_bounds_every_coefficient_of_a_range(problem):
    trees, rows, variances = problem
    leverage = hat_diagonal(variances, block_noise(variances, trees), trees)
    own = reference.dense_coefficients(variances, rows, rows)
    np.testing.assert_allclose(leverage, np.diagonal(own), atol=1e-6)
    cells = rows.shape[1]
    ranges = np.array(
        [
            (np.arange(cells) >= start) & (np.arange(cells) < end)
            for start in range(cells)
            for end in range(start + 1, cells + 1)
        ]
    ).astype(float)
    largest = np.abs(reference.dense_coefficients(variances, rows, ranges)).max(axis=0)
    assert (largest <= leverage + 1e-6).all()


def test_a_row_that_stands_alone_follows_itself():
    trees = trees_over_blocks(np.arange(4), np.full(3, 2))
    variances = np.array([3.0, 5.0, 0.0])
    found = hat_diagonal(variances, block_noise(variances, trees), trees)
    assert found.tolist() == [1.0, 1.0, 0.0]


def test_nothing_asked_has_no_variance():
    trees = trees_over_blocks(np.array([0, 2]), np.array([2]))
    empty = np.zeros(0, dtype=np.int64)
    found = hierarchy_variances(
        block_noise(np.ones(3), trees),
        trees,
        np.array([0, 0]),
        empty,
        np.zeros(0),
        np.zeros(0),
    )
    assert found.tolist() == [0.0]


def test_misfits_are_refused():
    trees = trees_over_blocks(np.array([0, 2]), np.array([2]))
    with pytest.raises(InputError, match="3 rows"):
        block_noise(np.ones(2), trees)
    with pytest.raises(InputError, match="0 or more"):
        block_noise(np.array([1.0, -1.0, 1.0]), trees)


def test_a_range_is_the_cut_at_its_end_less_the_cut_at_its_start():
    first, last = np.triu_indices(4)
    for start, end in ((1.0, 1.0), (0.5, 0.25), (0.25, 1.0)):
        parts = np.full(first.size, start), np.full(first.size, end)
        *cuts, largest = range_cuts(first, parts[0], last, parts[1])
        pointers, *columns = (one.tolist() for one in cuts)
        flat = list(zip(*columns, strict=True))
        rows = [flat[pointers[at] : pointers[at + 1]] for at in range(first.size)]
        dense = np.zeros((first.size, 4))
        for query, (left, right) in enumerate(zip(first, last, strict=True)):
            dense[query, left : right + 1] = 1.0
            dense[query, right] = end
            dense[query, left] = start
        np.testing.assert_allclose(queries_of(rows, 4), dense, atol=1e-15)
        assert largest.tolist() == dense.max(axis=1).tolist()


def test_bounds_are_the_least_of_what_rows_and_variances_allow():
    # Nodes have (scale)^2 / variance of 0.5 at most, borders 0.75 and variance 8.
    arrays = np.array([4.0, 100.0, 0.0]), np.ones(3), np.full(3, 2.0)
    found = moment_bounds(*arrays, (0.5, 0.75, 8.0, 3.0, 5.0), 2.0)
    square = [0.5 * 4 + 0.25 * 4, 45.0, 0.0]
    assert found[0].tolist() == square
    np.testing.assert_allclose(found[1], [np.sqrt(3.0), 3.0, 0.0])
    assert found[2].tolist() == [0.75, 11.25, 0.0]
    unknown = moment_bounds(*arrays, (0.5, 0.75, 8.0, 3.0, 5.0), 0.0)
    assert unknown[2].tolist() == [np.inf, np.inf, 0.0]

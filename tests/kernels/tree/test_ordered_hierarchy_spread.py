"""Exact variances of answers from a chain of block trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.block_trees import trees_over_blocks
from blowfish_fast.kernels.tree.ordered_hierarchy_spread import hierarchy_variances
from tests.reference import ordered_hierarchy as reference
from tests.reference.hierarchy_problems import problems

pytestmark = pytest.mark.kernel

EXAMPLES = 25 if config.DISABLE_JIT else 120


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
    found = hierarchy_variances(variances, trees, *packed(cuts))
    coefficients = reference.dense_coefficients(
        variances, rows, queries_of(cuts, cells)
    )
    expected = (coefficients**2 * variances).sum(axis=1)
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
    found = hierarchy_variances(variances, trees, *packed(cuts))
    coefficients = reference.dense_coefficients(
        variances, rows, queries_of(cuts, cells)
    )
    expected = (coefficients**2 * variances).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-7)


def test_nothing_asked_has_no_variance():
    trees = trees_over_blocks(np.array([0, 2]), np.array([2]))
    empty = np.zeros(0, dtype=np.int64)
    found = hierarchy_variances(
        np.ones(3), trees, np.array([0, 0]), empty, np.zeros(0), np.zeros(0)
    )
    assert found.tolist() == [0.0]


def test_misfits_are_refused():
    trees = trees_over_blocks(np.array([0, 2]), np.array([2]))
    one = np.ones(1)
    with pytest.raises(InputError, match="within 0"):
        hierarchy_variances(
            np.ones(3), trees, np.array([0, 1]), np.array([3]), one, one
        )
    with pytest.raises(InputError, match="rising from 0"):
        hierarchy_variances(
            np.ones(3), trees, np.array([0, 2]), np.array([1]), one, one
        )
    with pytest.raises(InputError, match="one length"):
        hierarchy_variances(
            np.ones(3), trees, np.array([0, 1]), np.array([1]), np.ones(2), one
        )

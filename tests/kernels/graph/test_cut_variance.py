from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.graph.edge_line_noise import cut_variances
from tests.generated import example_count
from tests.reference import cut_variance as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else example_count(150)


def runs(queries):
    """Write dense rows as sorted runs of equal values that are not 0."""
    pointers, starts, ends, values = [0], [], [], []
    for row in queries:
        for cell, value in enumerate(row):
            if value == 0:
                continue
            joins = cell > 0 and row[cell - 1] == value and len(starts) > pointers[-1]
            if joins and ends[-1] == cell:
                ends[-1] = cell + 1
            else:
                starts.append(cell)
                ends.append(cell + 1)
                values.append(value)
        pointers.append(len(starts))
    return (
        np.array(pointers),
        np.array(starts, dtype=np.int64),
        np.array(ends, dtype=np.int64),
        np.array(values, dtype=np.float64),
    )


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 8), st.data())
def test_equals_the_definition(cells, data):
    value = st.sampled_from([0.0, 0.0, 1.0, 1.0, -2.0, 0.25])
    row = st.lists(value, min_size=cells, max_size=cells)
    queries = np.array(data.draw(st.lists(row, min_size=1, max_size=5)))
    cell = st.integers(0, cells - 1)
    ends = st.tuples(cell, st.integers(-1, cells - 1))
    edges = data.draw(st.lists(ends.filter(lambda e: e[0] != e[1]), max_size=12))
    heads, tails = np.array(edges, dtype=np.int64).reshape(-1, 2).T.copy()
    variances = np.arange(1.0, heads.size + 1)
    widths = np.arange(1.0, heads.size + 1) ** 0.5 + 0.5
    noise = heads, tails, variances, widths
    found = cut_variances(*runs(queries), *noise, cells)
    np.testing.assert_allclose(found, reference.cut_variance(queries, *noise))


@pytest.mark.parametrize("without_tail", [0, 3, 80])
def test_long_runs_are_looked_at_where_they_begin_and_end(without_tail):
    rng = np.random.default_rng(without_tail)
    cells, queries = 120, np.zeros((6, 120))
    for row, (start, end) in zip(queries, rng.integers(0, 120, (6, 2)), strict=True):
        row[start:] += 1.0
        row[end:] += 0.5
    heads = rng.integers(0, cells - 4, 300)
    tails = heads + rng.integers(1, 5, 300)
    tails[:without_tail] = -1
    noise = heads, tails, rng.uniform(1, 2, 300), rng.uniform(1, 2, 300)
    found = cut_variances(*runs(queries), *noise, cells)
    np.testing.assert_allclose(found, reference.cut_variance(queries, *noise))


def test_a_rectangle_of_nine_cells_cuts_twelve_edges():
    # Oracle T3: the 3 x 3 square inside a grid.
    side = 5
    cells = np.arange(side * side).reshape(side, side)
    heads = np.concatenate([cells[:, :-1].ravel(), cells[:-1].ravel()])
    tails = np.concatenate([cells[:, 1:].ravel(), cells[1:].ravel()])
    square = np.zeros((side, side))
    square[1:4, 1:4] = 1
    one = np.ones(heads.size)
    found = cut_variances(*runs(square.reshape(1, -1)), heads, tails, one, one, side**2)
    assert found.T.tolist() == [[12.0, 12.0, 1.0, 12.0, 1.0]]


def test_what_does_not_fit_is_refused():
    query = np.array([0, 1]), np.array([0]), np.array([2]), np.ones(1)
    edge = np.array([0]), np.array([1]), np.ones(1), np.ones(1)
    with pytest.raises(InputError, match="runs of cells"):
        cut_variances(*query, *edge, 1)
    for head, tail in ((0, 2), (2, 0), (-1, 0), (0, -2)):
        two = np.array([0, head]), np.array([1, tail]), np.ones(2), np.ones(2)
        with pytest.raises(InputError, match="edges must join cells from 0 to 1"):
            cut_variances(*query, *two, 2)
    with pytest.raises(InputError, match="each with its own noise"):
        cut_variances(*query, *edge[:3], np.ones(2), 2)
    with pytest.raises(InputError, match="runs of cells"):
        cut_variances(np.array([0, 2]), *query[1:], *edge, 2)

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.graph.edge_line_noise import line_energies, line_levels
from tests.generated import example_count
from tests.reference import edge_line_noise as reference

from .test_cut_variance import runs

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else example_count(150)


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 1), st.data())
def test_equals_the_definition(rows, columns, across, data):
    value = st.sampled_from([0.0, 0.0, 1.0, 1.0, 1.0, -2.0, 0.5])
    cells = st.lists(value, min_size=rows * columns, max_size=rows * columns)
    queries = np.array(data.draw(st.lists(cells, min_size=1, max_size=4)))
    found = line_energies(*runs(queries), (rows, columns), across)
    for number, query in enumerate(queries):
        grid = query.reshape(rows, columns)
        expected = reference.line_energies(grid, across)
        got = np.stack([part[number] for part in found])
        np.testing.assert_allclose(got, expected, atol=1e-12)


def test_pieces_may_run_over_the_ends_of_rows():
    query = np.array([0, 1]), np.array([1]), np.array([8]), np.ones(1)
    grid = np.zeros(12)
    grid[1:8] = 1
    for across in (0, 1):
        found = line_energies(*query, (4, 3), across)
        expected = reference.line_energies(grid.reshape(4, 3), across)
        np.testing.assert_allclose(np.stack([part[0] for part in found]), expected)


def test_levels_reach_over_the_whole_line():
    assert [line_levels(length) for length in (1, 2, 3, 4, 5, 1024)] == [
        1,
        2,
        3,
        3,
        4,
        11,
    ]


def test_what_does_not_fit_is_refused():
    query = np.array([0, 1]), np.array([0]), np.array([5]), np.ones(1)
    with pytest.raises(InputError, match="runs of cells"):
        line_energies(*query, (2, 2), 0)
    with pytest.raises(InputError, match="axis 0 or 1"):
        line_energies(*query, (3, 2), 2)

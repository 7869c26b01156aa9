"""Records placed in cells."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.space.record_cells import (
    Targets,
    cells_between_edges,
    count_into,
    edge_guide,
)
from tests.generated import example_count
from tests.reference.record_cells import cell_of

pytestmark = pytest.mark.kernel

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SMALL = st.integers(-20, 20).map(lambda whole: whole / 4)
EDGES = st.lists(st.one_of(SMALL, NUMBERS), min_size=2, max_size=12, unique=True).map(
    lambda listed: np.unique(np.array(listed) + 0.0)
)


@settings(deadline=None, max_examples=example_count(100))
@given(
    EDGES.filter(lambda edges: edges.size > 1),
    st.lists(st.one_of(SMALL, st.floats()), max_size=20),
    st.booleans(),
)
def test_equals_the_definition(edges, values, closed):
    just_below = [math.nextafter(one, -math.inf) for one in edges]
    asked = np.array([*values, *edges, *just_below])
    cells, strays = cells_between_edges(
        asked, edge_guide(edges), Targets(-1, -2, -3), closed=closed
    )
    expected = [cell_of(one, edges, -1, -2, -3, closed=closed) for one in asked]
    assert cells.tolist() == expected
    assert strays.tolist() == [
        any(cell in (-1, -2) for cell in expected),
        -3 in expected,
    ]


def test_uneven_edges_are_placed_like_even_ones(generator):
    edges = np.concatenate([[0.0], np.cumsum(10.0 ** generator.uniform(-6, 6, 200))])
    values = generator.uniform(-1, edges[-1] + 1, 500)
    cells, _ = cells_between_edges(
        values, edge_guide(edges), Targets(0, 199, 0), closed=True
    )
    inside = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, 199)
    assert (cells == inside).all()


def test_edges_at_both_ends_of_the_doubles_are_placed():
    edges = np.array([-1.7e308, 0.0, 1.7e308])
    cells, _ = cells_between_edges(
        np.array([-1e308, 1e308]), edge_guide(edges), Targets(0, 0, 0), closed=True
    )
    assert cells.tolist() == [0, 1]


def test_no_values_have_no_cells():
    cells, strays = cells_between_edges(
        np.empty(0), edge_guide(np.array([0.0, 1.0])), Targets(0, 0, 0), closed=True
    )
    assert cells.size == 0
    assert not strays.any()


def test_records_are_counted_in_place(generator):
    cells = generator.integers(0, 9, 300)
    counts = np.zeros(9, dtype=np.int64)
    count_into(counts, cells[:100])
    count_into(counts, cells[100:])
    assert (counts == np.bincount(cells, minlength=9)).all()
    with pytest.raises(InputError, match="between 0 and 8"):
        count_into(counts, np.array([9]))

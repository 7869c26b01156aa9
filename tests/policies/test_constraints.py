"""Constraints: what is known, which moves lift or lower it, and refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, PolicyError
from blowfish_fast.policies import Constraints
from tests.generated import example_count

LINE = bf.Domain(6)
GRID = bf.Domain((2, 3, 2))


def sets_of(constraints):
    """Return the cells of each query, read back from the kinds of cells."""
    kinds = constraints.cell_kinds
    sets = [set() for _ in range(constraints.queries)]
    for cell, kind in enumerate(kinds.labels):
        for query in kinds.members[kinds.pointers[kind] : kinds.pointers[kind + 1]]:
            sets[query].add(cell)
    return sets


@settings(deadline=None, max_examples=example_count(60))
@given(
    st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=5)
)
def test_kinds_of_cells_hold_exactly_the_marked_cells(masks):
    known = bf.policies.CountConstraints(LINE, masks)
    assert sets_of(known) == [set(np.flatnonzero(mask)) for mask in masks]
    kinds = known.cell_kinds
    # Cells share a kind exactly when they share all queries.
    marks = np.array(masks).T
    same = (marks[:, None] == marks[None]).all(axis=2)
    np.testing.assert_array_equal(same, kinds.labels[:, None] == kinds.labels[None])
    assert set(kinds.labels) == set(range(kinds.absent))
    assert known.are_disjoint == (marks.sum(axis=1) <= 1).all()
    assert known.cover == (marks.sum(axis=1) >= 1).all()


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=4),
    st.integers(-1, 5),
    st.integers(-1, 5),
)
def test_lift_and_lower_follow_the_definition(masks, start, end):
    known = bf.policies.CountConstraints(LINE, masks)
    sets = [set(np.flatnonzero(mask)) for mask in masks]
    lifted = [q for q, one in enumerate(sets) if start not in one and end in one]
    lowered = [q for q, one in enumerate(sets) if start in one and end not in one]
    assert known.lifts(start, end).tolist() == lifted
    assert known.lowers(start, end).tolist() == lowered


def test_marginals_count_every_combination():
    known = bf.policies.MarginalConstraints(GRID, [(2, 0), 1])
    cells = np.stack(np.unravel_index(np.arange(12), GRID.shape), axis=1)
    expected = [
        {cell for cell in range(12) if (cells[cell, [2, 0]] == value).all()}
        for value in ([0, 0], [0, 1], [1, 0], [1, 1])
    ]
    expected += [{cell for cell in range(12) if cells[cell, 1] == v} for v in range(3)]
    assert sets_of(known) == expected
    assert known.queries == 7
    assert known.cover
    assert not known.are_disjoint
    assert known.share_no_attribute
    assert bf.policies.MarginalConstraints(GRID, 0).are_disjoint
    assert bf.policies.MarginalConstraints(GRID, (0, 1)).marginals == ((0, 1),)
    assert not bf.policies.MarginalConstraints(GRID, [(0, 1), (1,)]).share_no_attribute


def test_attributes_may_be_named():
    people = bf.Domain((2, 3), names=["sex", "age"])
    by_name = bf.policies.MarginalConstraints(people, "age")
    assert by_name == bf.policies.MarginalConstraints(people, 1)
    assert "age" in by_name.describe()
    with pytest.raises(DomainError, match="no attribute"):
        bf.policies.MarginalConstraints(people, "height")


def test_rectangles_hold_their_cells():
    grid = bf.Domain((3, 4))
    known = bf.policies.RectangleConstraints(grid, [[0, 0], [0, 1]], [[2, 2], [3, 4]])
    first = {0, 1, 4, 5}
    second = {1, 2, 3, 5, 6, 7, 9, 10, 11}
    assert sets_of(known) == [first, second]
    assert not known.are_disjoint
    on_line = bf.policies.RectangleConstraints(LINE, [0, 4], [2, 6])
    assert sets_of(on_line) == [{0, 1}, {4, 5}]
    assert on_line.are_disjoint
    assert not on_line.cover


def test_many_rectangles_on_a_large_grid_are_cheap():
    grid = bf.Domain((1024, 1024))
    corner = np.stack(np.meshgrid(*[np.arange(0, 1024, 8)] * 2), axis=-1).reshape(-1, 2)
    known = bf.policies.RectangleConstraints(grid, corner, corner + 8)
    assert known.are_disjoint
    assert known.cover
    assert known.cell_kinds.absent == known.queries == 128**2


@pytest.mark.parametrize(
    "known",
    [
        bf.policies.CountConstraints(LINE, np.eye(6, dtype=bool)[:3]),
        bf.policies.CountConstraints(GRID, np.ones((1, *GRID.shape), dtype=int)),
        bf.policies.MarginalConstraints(GRID, [(0, 2), (1,)]),
        bf.policies.RectangleConstraints(LINE, [0, 4], [2, 6]),
    ],
)
def test_constraints_survive_json(known):
    again = Constraints.from_dict(json.loads(json.dumps(known.to_dict())))
    assert again == known
    assert hash(again) == hash(known)
    assert sets_of(again) == sets_of(known)
    assert str(known.queries) in repr(known)
    assert known != bf.policies.MarginalConstraints(GRID, 0)
    assert known != "constraints"


def test_bad_input_is_refused_with_the_rule():
    with pytest.raises(DomainError, match="over a Domain"):
        bf.policies.CountConstraints(6, [[1] * 6])
    for masks in ([], [1, 0, 0, 0, 0, 0], [[1, 0]], [[1], [0, 1]]):
        with pytest.raises(PolicyError, match=r"shape \(queries, 6\)"):
            bf.policies.CountConstraints(LINE, masks)
    with pytest.raises(PolicyError, match="True and False"):
        bf.policies.CountConstraints(LINE, [[0.5] * 6])
    with pytest.raises(PolicyError, match="True and False"):
        bf.policies.CountConstraints(LINE, [[2] * 6])
    with pytest.raises(DomainError, match="at least one attribute"):
        bf.policies.MarginalConstraints(GRID, [])
    with pytest.raises(DomainError, match="numbered from 0 to 2"):
        bf.policies.MarginalConstraints(GRID, 3)
    with pytest.raises(DomainError, match="each once"):
        bf.policies.MarginalConstraints(GRID, (1, 1))
    with pytest.raises(PolicyError, match="holds a cell and lies in the domain"):
        bf.policies.RectangleConstraints(LINE, [4], [7])
    with pytest.raises(PolicyError, match="holds a cell"):
        bf.policies.RectangleConstraints(LINE, [4], [4])
    with pytest.raises(PolicyError, match="one start and one end"):
        bf.policies.RectangleConstraints(LINE, [4, 1], [5])
    with pytest.raises(PolicyError, match=r"shape \(rectangles, 3\)"):
        bf.policies.RectangleConstraints(GRID, [[0, 0]], [[1, 1]])
    with pytest.raises(PolicyError, match="whole numbers"):
        bf.policies.RectangleConstraints(LINE, [0.5], [2])
    with pytest.raises(PolicyError, match="no such constraints"):
        Constraints.from_dict({"kind": "hearsay"})
    with pytest.raises(PolicyError, match="numbered from 0 to 5"):
        bf.policies.CountConstraints(LINE, [[1] * 6]).lifts(0, 6)

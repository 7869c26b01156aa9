"""The one projection: sums, expansion, nesting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets, cell_order
from blowfish_fast.errors import DomainError


@st.composite
def labellings(draw, most=12):
    raw = draw(st.lists(st.integers(0, 4), min_size=1, max_size=most))
    return np.unique(raw, return_inverse=True)[1]


@given(labellings())
def test_labels_survive_the_round_trip(labels):
    assert Buckets.from_labels(labels).labels.tolist() == labels.tolist()


@given(labellings())
def test_sums_and_expansion_equal_the_definition(labels):
    buckets = Buckets.from_labels(labels)
    counts = np.arange(labels.size) ** 2
    totals = buckets.sum(counts)
    assert totals.tolist() == [
        counts[labels == label].sum() for label in range(labels.max() + 1)
    ]
    spread = buckets.expand(totals.astype(float))
    for cell, label in enumerate(labels):
        assert spread[cell] == pytest.approx(totals[label] / (labels == label).sum())


@given(labellings(), st.data())
def test_nesting_is_composition_of_labels(labels, data):
    outer = Buckets.from_labels(labels)
    raw = data.draw(
        st.lists(st.integers(0, 2), min_size=outer.count, max_size=outer.count)
    )
    inner = Buckets.from_labels(np.unique(raw, return_inverse=True)[1])
    both = outer.then(inner)
    assert both.labels.tolist() == inner.labels[outer.labels].tolist()


def test_expand_of_the_papers_example():
    # Oracle D3.
    buckets = Buckets(np.array([0, 2, 3, 7, 10]))
    cells = buckets.expand(np.array([6.3, 7.1, 3.6, 8.4]))
    expected = [3.15, 3.15, 7.1, 0.9, 0.9, 0.9, 0.9, 2.8, 2.8, 2.8]
    assert cells == pytest.approx(expected)


@pytest.mark.parametrize("edges", [[0], [1, 2], [0, 2, 2], [0, 3, 1]])
def test_bad_edges_are_refused(edges):
    with pytest.raises(DomainError, match="must start at 0"):
        Buckets(np.array(edges))


@pytest.mark.parametrize("labels", [[], [0.5], [-1, 0], [0, 2]])
def test_bad_labels_are_refused(labels):
    with pytest.raises(DomainError, match="labels must"):
        Buckets.from_labels(np.array(labels))


def test_a_number_that_no_label_uses_is_named():
    with pytest.raises(DomainError, match="1 is missing"):
        Buckets.from_labels([0, 2, 2, 4, 4])


def test_orders_and_partitions_must_fit():
    with pytest.raises(DomainError, match="cover the domain"):
        Buckets(np.array([0, 3]), np.array([0, 1]))
    with pytest.raises(DomainError, match="cannot group"):
        Buckets.single_cells(3).then(Buckets.single_cells(2))


@pytest.mark.parametrize("label", [8, 2**62, 2**63 - 1])
def test_labels_beyond_the_cells_are_refused_before_they_are_counted(label):
    with pytest.raises(DomainError, match="cannot go up to"):
        Buckets.from_labels(np.array([0, 1, label]))
    with pytest.raises(DomainError, match="cannot go up to"):
        Buckets.from_labels([label])


def test_one_attribute_keeps_its_order():
    along = cell_order(Domain(7))
    assert along.order is None
    assert along.are_single_cells


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (2, 3, 4)])
def test_several_attributes_visit_every_cell_once(shape):
    along = cell_order(Domain(shape))
    assert along.are_single_cells
    assert sorted(along.order) == list(range(int(np.prod(shape))))
    assert along.curve == (len(shape) == 2)


def test_neighbours_on_the_curve_are_neighbours_on_the_grid():
    places = np.stack(
        np.unravel_index(cell_order(Domain((8, 8))).order, (8, 8)), axis=1
    )
    assert (np.abs(np.diff(places, axis=0)).sum(axis=1) == 1).all()


def test_an_order_is_found_once():
    assert cell_order(Domain((5, 6))) is cell_order(Domain((5, 6), names=["x", "y"]))

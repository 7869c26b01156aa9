"""Histograms whose cells could never be listed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast.data.sparse as module
from blowfish_fast import Domain, Histogram, SparseHistogram, WideDomain
from blowfish_fast.errors import DomainError, SizeError
from tests.generated import example_count

SMALL = Domain.product(
    Domain.from_edges([0, 1, 2, 3, 4], name="x"),
    Domain.from_levels(["a", "b", "c"], name="kind"),
    Domain(5, names=["y"]),
)
PLACES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("abc"), st.integers(0, 4)), max_size=30
)


def columns(records):
    return [list(one) for one in zip(*records, strict=True)] or [[], [], []]


@settings(deadline=None, max_examples=example_count(40))
@given(PLACES)
def test_equals_the_dense_histogram(records):
    dense = Histogram.from_records(SMALL, columns(records))
    sparse = SparseHistogram.from_records(SMALL, columns(records))
    assert (sparse.dense().counts == dense.counts).all()
    for kept in (["x"], ["kind", "y"], ["y", "x"]):
        one, two = sparse.marginal(*kept), dense.marginal(*kept)
        assert one.domain == two.domain
        assert (one.counts == two.counts).all()
    merged = {"x": [0, 2, 4], "kind": {"ab": ["a", "b"], "c": "c"}}
    one, two = sparse.coarsened(merged), dense.coarsened(merged)
    assert one.domain == two.domain
    assert (one.counts == two.counts).all()


def test_a_domain_of_a_trillion_cells_is_counted(generator, monkeypatch):
    monkeypatch.setattr(module, "WAITING", 50)
    people = Domain(2**20, names=["person"])
    places = Domain(2**20, names=["place"])
    wide = WideDomain.product(
        people, Domain.from_levels(["a", "b"], name="kind"), places
    )
    chunks = [
        {
            "person": generator.integers(0, 2**20, 40),
            "kind": generator.choice(["a", "b"], 40),
            "place": generator.integers(0, 3, 40),
        }
        for _ in range(5)
    ]
    data = SparseHistogram.from_records(wide, iter(chunks))
    place = np.concatenate([one["place"] for one in chunks])
    kind = np.concatenate([one["kind"] for one in chunks])
    by_place = data.marginal("place")
    assert (by_place.counts[:3] == np.bincount(place, minlength=3)).all()
    by_kind = data.marginal("kind")
    assert by_kind.counts.tolist() == [(kind == "a").sum(), (kind == "b").sum()]
    still_wide = data.marginal("person", "place")
    assert isinstance(still_wide, SparseHistogram)
    assert still_wide.counts.sum() == 200
    coarse = data.coarsened(person=[0, 2**19, 2**20], place=range(0, 2**20 + 1, 2**10))
    assert coarse.domain.shape == (2, 2, 1024)
    with pytest.raises(SizeError, match=r"2,199,023,255,552 cells; .* marginal"):
        data.dense()
    with pytest.raises(DomainError, match=r"2,199,023,255,552 .* SparseHistogram"):
        Histogram.from_records(wide, chunks[0])
    again = pickle.loads(pickle.dumps(data))
    assert (again.keys == data.keys).all()


def test_it_prints_no_count_and_never_changes():
    data = SparseHistogram.from_records(SMALL, [[1] * 77, ["a"] * 77, [2] * 77])
    assert "77" not in repr(data)
    with pytest.raises(AttributeError, match="never changes"):
        data.counts = None
    with pytest.raises(ValueError, match="read-only"):
        data.counts[0] = 1
    with pytest.raises(DomainError, match="from_records"):
        SparseHistogram()
    with pytest.raises(DomainError, match="WideDomain"):
        SparseHistogram.from_records(3, [[1]])


def test_no_records_are_no_cells():
    wide = WideDomain.product(Domain(2**20), Domain(2**20))
    data = SparseHistogram.from_records(wide, [[], []])
    assert data.keys.size == 0
    assert data.marginal(0).counts.sum() == 0

"""Histograms: the only private object, and it never prints."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from blowfish_fast import Domain, Histogram
from blowfish_fast.errors import CountsError, DomainError, InputError


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int32, np.float32, float])
def test_counts_of_any_dtype_become_read_only_int64(dtype):
    data = Histogram(Domain(3), np.array([1, 0, 5], dtype=dtype))
    assert data.counts.dtype == np.int64
    assert data.counts.tolist() == [1, 0, 5]
    with pytest.raises(ValueError, match="read-only"):
        data.counts[0] = 9


def test_the_histogram_keeps_its_own_copy():
    counts = np.array([1, 2])
    data = Histogram(Domain(2), counts)
    counts[0] = 99
    assert data.counts[0] == 1


def test_printing_shows_no_count():
    assert "77" not in repr(Histogram(Domain(2), [77, 77]))


def test_a_histogram_can_be_pickled_between_processes():
    data = pickle.loads(pickle.dumps(Histogram(Domain(2), [3, 4])))
    assert data.counts.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([1, 2], "shape of the domain"),
        ([[1, 2, 3]], "shape of the domain"),
        ([1, 2, -1], "not be negative"),
        ([1, 2, float("nan")], "finite"),
        ([1, 2, float("inf")], "finite"),
        ([1, 2, 0.5], "whole numbers"),
        ([2**62, 0, 0], "below 2\\^62"),
        ([2**80, 0, 0], "below 2\\^62"),
        ([2**61, 2**61, 2**61], "below 2\\^62"),
        (["a", "b", "c"], "must be numbers"),
        ([None, 1, 2], "must be numbers"),
        ([1 + 2j, 1, 2], "must be numbers"),
    ],
)
def test_bad_counts_are_refused_with_a_reason(counts, words):
    with pytest.raises(CountsError, match=words):
        Histogram(Domain(3), counts)


def test_the_domain_comes_first():
    with pytest.raises(DomainError, match="must be a Domain"):
        Histogram(3, [1, 2, 3])


def test_records_are_counted_by_public_edges():
    ages = Domain.from_edges([0, 18, 65, 120], name="age")
    data = Histogram.from_records(ages, [0, 17.9, 18, 64, 65, 120])
    assert data.counts.tolist() == [2, 2, 2]


def test_records_of_several_attributes_fill_a_table():
    domain = Domain.product(
        Domain.from_edges([0, 10, 20], name="x"),
        Domain.from_levels(["a", "b"], name="kind"),
    )
    data = Histogram.from_records(
        domain, {"x": [1, 11, 12], "kind": np.array(["b", "a", "a"])}
    )
    assert data.counts.tolist() == [[0, 1], [2, 0]]


def test_cell_numbers_serve_attributes_without_edges():
    assert Histogram.from_records(Domain(3), [2, 2, 0]).counts.tolist() == [1, 0, 2]


def test_values_outside_are_refused_or_clamped_and_never_dropped():
    ages = Domain.from_edges([0, 10, 20], name="age")
    with pytest.raises(CountsError, match="outside age") as caught:
        Histogram.from_records(ages, [1, 25, 25, 25])
    assert "3" not in str(caught.value)
    clamped = Histogram.from_records(ages, [-1, 25, 25], outside="clamp")
    assert clamped.counts.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([1.0, float("nan")], "missing values"),
        ([[1], [2]], "one column per attribute"),
        (["x", "y"], "must be numbers"),
        ({"weight": [1]}, "lack the attributes"),
    ],
)
def test_bad_records_are_refused_with_a_reason(columns, words):
    with pytest.raises(InputError, match=words):
        Histogram.from_records(Domain.from_edges([0, 1, 2], name="x"), columns)


def test_one_clamp_for_all_is_about_numbers_and_leaves_levels_alone():
    towns = Domain.from_levels(["Bern", "Basel"], name="town")
    both = Domain.product(towns, Domain.from_edges([0, 10, 20], name="age"))
    records = {"town": ["Bern", "Basel"], "age": [99, None]}
    counted = Histogram.from_records(both, records, outside="clamp", missing="clamp")
    assert counted.domain == both
    assert counted.counts.tolist() == [[0, 1], [1, 0]]
    with pytest.raises(CountsError, match="no level of town"):
        Histogram.from_records(both, {"town": ["Chur"], "age": [3]}, outside="clamp")
    with pytest.raises(CountsError, match="missing values of town"):
        Histogram.from_records(both, {"town": [None], "age": [3]}, missing="clamp")
    # A cell that the domain has stays where values go.
    wide = both.with_extra_cells(outside="town")
    stray = Histogram.from_records(
        wide, {"town": ["Chur"], "age": [-1]}, outside="clamp"
    )
    assert stray.counts.tolist() == [[0, 0], [0, 0], [1, 0]]


def test_unknown_levels_and_options_are_refused():
    towns = Domain.from_levels(["Bern", "Basel"], name="town")
    with pytest.raises(CountsError, match="no level of town"):
        Histogram.from_records(towns, ["Bern", "Chur"])
    with pytest.raises(InputError, match="nearest cell"):
        Histogram.from_records(towns, ["Bern"], outside="clamp")
    both = Domain.product(towns, Domain.from_edges([0, 10, 20], name="age"))
    with pytest.raises(InputError, match="nearest cell"):
        Histogram.from_records(both, [["Bern"], [3]], outside={"town": "clamp"})
    with pytest.raises(InputError, match="outside must be"):
        Histogram.from_records(towns, ["Bern"], outside="drop")
    with pytest.raises(InputError, match="cell numbers"):
        Histogram.from_records(Domain(3), [0.5])
    with pytest.raises(InputError, match="same length"):
        Histogram.from_records(Domain((2, 2)), [[0, 1], [0]])


def test_marginals_and_coarser_cells_add_up(generator):
    domain = Domain.product(
        Domain.from_edges([0, 10, 20, 30], name="age"),
        Domain.from_levels(["F", "M"], name="sex"),
    )
    data = Histogram(domain, generator.integers(0, 9, domain.shape))
    assert data.marginal("sex").counts.tolist() == data.counts.sum(axis=0).tolist()
    assert data.marginal("sex", "age").domain == domain
    merged = data.coarsened(age=[0, 10, 30])
    assert merged.counts.tolist() == [
        data.counts[0].tolist(),
        data.counts[1:].sum(axis=0).tolist(),
    ]
    assert merged.domain.attributes[0].edges == (0.0, 10.0, 30.0)
    with pytest.raises(ValueError, match="read-only"):
        merged.counts[0, 0] = 1


def test_a_quarter_of_a_billion_cells_are_refused_one_by_one_above():
    with pytest.raises(DomainError, match="would have 536,870,912"):
        Domain((2**28, 2))

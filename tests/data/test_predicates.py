"""Conditions in values, as intervals of cells."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.predicates import (
    attribute_cover,
    cell_name,
    extent,
    groups_of,
    intersection,
    is_within,
    read_conditions,
    union,
)
from blowfish_fast.errors import DomainError, InputError

AGES = Domain.from_edges(range(0, 101, 10), name="age").attributes[0]
EAST = datetime.timezone(datetime.timedelta(hours=1))
YEARS = Domain.from_edges(range(102), name="year").attributes[0]
TOWNS = Domain.from_levels(["Bern", "Basel", "Chur"], name="town").attributes[0]
NUMBERS = Domain(5, names=["number"]).attributes[0]
DAYS = Domain.from_dates(
    np.arange("2024-01-01", "2024-03-02", dtype="M8[D]"), name="day"
).attributes[0]


@pytest.mark.parametrize(
    ("attribute", "condition", "expected"),
    [
        (AGES, slice(20, 45), ((2, 4.5),)),
        (AGES, slice(None, 5), ((0, 0.5),)),
        (AGES, slice(95, None), ((9.5, 10),)),
        (AGES, slice(-100, 1000), ((0, 10),)),
        (AGES, slice(200, 300), ()),
        (AGES, [slice(0, 10), slice(5, 25), slice(50, 60)], ((0, 2.5), (5, 6))),
        (YEARS, 30, ((30, 31),)),
        (YEARS, [1, 2, 5], ((1, 3), (5, 6))),
        (YEARS, np.int64(3), ((3, 4),)),
        (TOWNS, "Chur", ((2, 3),)),
        (TOWNS, {"Bern", "Basel"}, ((0, 2),)),
        (TOWNS, slice(None), ((0, 3),)),
        (TOWNS, np.array(["Bern", "Chur"]), ((0, 1), (2, 3))),
        (NUMBERS, 3, ((3, 4),)),
        (NUMBERS, slice(1, 2.5), ((1, 2.5),)),
        (DAYS, "2024-01-02", ((1, 2),)),
        (DAYS, "2024-02", ((31, 60),)),
        (DAYS, datetime.date(2024, 1, 3), ((2, 3),)),
        # A moment stands for the unit of the axis that holds it, never for an instant.
        (DAYS, datetime.datetime(2024, 1, 3), ((2, 3),)),
        (DAYS, datetime.datetime(2024, 1, 3, 17, 30), ((2, 3),)),
        (DAYS, np.datetime64("2024-01-03", "ns"), ((2, 3),)),
        (DAYS, "2024-01-03 00:00:00", ((2, 3),)),
        (DAYS, np.array(["2024-01-03", "2024-01-05"], "M8[ns]"), ((2, 3), (4, 5))),
        # Zones are read in UTC, as records are.
        (DAYS, datetime.datetime(2024, 1, 3, 0, 30, tzinfo=EAST), ((1, 2),)),
        (YEARS, range(3, 6), ((3, 6),)),
        (TOWNS, {"Bern": 1, "Chur": 2}.keys(), ((0, 1), (2, 3))),
        (TOWNS, (one for one in ["Chur"]), ((2, 3),)),
        (TOWNS, np.array("Chur"), ((2, 3),)),
        (DAYS, slice(datetime.datetime(2024, 1, 1, 6), "2024-01-03"), ((0.25, 2),)),
    ],
)
def test_conditions_become_intervals(attribute, condition, expected):
    assert attribute_cover(attribute, condition) == expected


@pytest.mark.parametrize(
    ("attribute", "condition", "words"),
    [
        (AGES, 25, "no cell of width 1; age goes from 0 to 100"),
        (AGES, 20, "slice\\(low, high\\)"),
        (AGES, "20", "is no number"),
        (AGES, True, "is no number"),
        (AGES, float("nan"), "NaN"),
        (AGES, slice(0, 10, 2), "no step"),
        (AGES, slice(10, 0), "start before it ends"),
        (TOWNS, "Genf", "'Genf' is not known here; town has the levels 'Bern', "),
        (TOWNS, slice("Basel", "Chur"), "no ranges"),
        (NUMBERS, 5, "the cells 0 to 4"),
        (NUMBERS, 1.5, "no cell of width 1"),
        (DAYS, 3, "texts like 2024-05-31"),
        (DAYS, "soon", "texts like 2024-05-31"),
        (DAYS, "today", "texts like 2024-05-31"),
        (DAYS, "2024-01-03T00:00Z", "texts like 2024-05-31"),
        (DAYS, "2024-01-03T00:00+01:00", "texts like 2024-05-31"),
        (TOWNS, {"Bern": 1}, "is not known here"),
        (DAYS, np.datetime64("NaT", "D"), "missing date"),
    ],
)
def test_conditions_that_make_no_sense_are_refused(attribute, condition, words):
    with pytest.raises(InputError, match=words):
        attribute_cover(attribute, condition)


def test_conditions_name_attributes_that_exist():
    domain = Domain.from_levels(["a"], name="kind")
    with pytest.raises(DomainError, match=r"no attribute 'age'; .*\['kind'\]"):
        read_conditions(domain, {"age": 3})
    assert read_conditions(domain, {"kind": "a"}) == {0: ((0.0, 1.0),)}


def test_conditions_on_one_attribute_meet_and_must_leave_something():
    domain = Domain.from_edges(range(0, 101, 10), name="age")
    both = {"age": slice(0, 30), 0: slice(20, 50)}
    assert read_conditions(domain, both) == {0: ((2.0, 3.0),)}
    with pytest.raises(InputError, match="selects no part of any cell; age goes"):
        read_conditions(domain, {"age": slice(0, 20), 0: slice(30, 50)})


def test_intervals_are_united_intersected_and_compared():
    assert union([(3, 4), (0, 1), (1, 2), (5, 5)]) == ((0, 2), (3, 4))
    assert intersection(((0, 2), (3, 6)), ((1, 4),)) == ((1, 2), (3, 4))
    assert is_within(((1, 2), (4, 5)), ((0, 3), (4, 6)))
    assert not is_within(((2, 5),), ((0, 3), (4, 6)))


def test_groups_are_cells_edges_or_named_conditions():
    assert groups_of(AGES, ((1.5, 3.0),)) == [
        ((10.0, 20.0), ((1.5, 2.0),)),
        ((20.0, 30.0), ((2.0, 3.0),)),
    ]
    assert groups_of(AGES, ((1.2, 1.5), (1.7, 1.9))) == [
        ((10.0, 20.0), ((1.2, 1.5), (1.7, 1.9)))
    ]
    assert groups_of(AGES, ((0.0, 10.0),), [0, 15, 20]) == [
        ((0, 15), ((0.0, 1.5),)),
        ((15, 20), ((1.5, 2.0),)),
    ]
    assert groups_of(TOWNS, ((0.0, 3.0),), {"west": ["Bern"], "none": []}) == [
        ("west", ((0.0, 1.0),))
    ]
    assert groups_of(TOWNS, ((0.0, 3.0),), ["Chur", "Bern"]) == [
        ("Chur", ((2.0, 3.0),)),
        ("Bern", ((0.0, 1.0),)),
    ]
    with pytest.raises(DomainError, match="at least two edges"):
        groups_of(AGES, ((0.0, 10.0),), [5])
    with pytest.raises(InputError, match="edges in values"):
        groups_of(AGES, ((0.0, 10.0),), 5)


def test_columns_of_frames_list_conditions():
    pandas = pytest.importorskip("pandas")
    for listed in (pandas.Series(["Bern", "Chur"]), pandas.Index(["Bern", "Chur"])):
        assert attribute_cover(TOWNS, listed) == ((0, 1), (2, 3))
    assert attribute_cover(DAYS, pandas.Timestamp("2024-01-03")) == ((2, 3),)


def test_cells_have_names_and_attributes_an_extent():
    extended = Domain.from_edges([0, 1], name="x").with_extra_cells(missing=True)
    attribute = extended.attributes[0]
    assert [cell_name(attribute, cell) for cell in (0, 1)] == [(0.0, 1.0), "(missing)"]
    assert cell_name(NUMBERS, 3) == 3
    assert cell_name(TOWNS, 2) == "Chur"
    assert cell_name(DAYS, 0) == (
        np.datetime64("2024-01-01"),
        np.datetime64("2024-01-02"),
    )
    assert extent(attribute) == "x goes from 0 to 1, and the cell '(missing)'"
    assert extent(DAYS) == "day goes from 2024-01-01 to 2024-03-01"

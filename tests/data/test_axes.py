"""Attributes: merging cells, dates of every kind."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from blowfish_fast import Domain, Histogram
from blowfish_fast.data.axes import (
    MISSING,
    Axis,
    as_dates,
    as_moments,
    extend_axis,
    from_cuts,
    from_date_cuts,
    from_level_list,
    is_blank,
    merge_cells,
)
from blowfish_fast.errors import DomainError, InputError


def test_cells_are_merged_along_edges_that_stay():
    ages = extend_axis(from_cuts([0, 10, 20, 30, 40], "age"), [MISSING])
    merged, labels = merge_cells(ages, [0, 20, 40])
    assert merged.cuts == (0.0, 20.0, 40.0)
    assert merged.extras == (MISSING,)
    assert labels.tolist() == [0, 0, 1, 1, 2]


def test_cells_without_edges_are_merged_by_number():
    merged, labels = merge_cells(Axis(5, "x"), [0, 2, 5])
    assert (merged.size, merged.cuts) == (2, None)
    assert labels.tolist() == [0, 0, 1, 1, 1]


def test_dates_are_merged_whatever_their_unit():
    days = from_date_cuts(np.arange("2024-01-01", "2024-03-02", dtype="M8[D]"), "day")
    merged, labels = merge_cells(days, ["2024-01", "2024-02", "2024-03"])
    assert np.bincount(labels).tolist() == [31, 29]
    assert merged.unit == "D"


def test_levels_are_merged_by_name():
    towns = from_level_list(["Bern", "Basel", "Chur"], "town")
    merged, labels = merge_cells(
        towns, {"plain": ["Bern", "Basel"], "mountains": "Chur"}
    )
    assert merged.levels == ("plain", "mountains")
    assert labels.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([0, 15, 20], "some of its edges"),
        ([0, 10], "some of its edges"),
        ([10, 20], "some of its edges"),
        ([20, 0], "increase strictly"),
    ],
)
def test_cells_are_never_split(groups, words):
    with pytest.raises(DomainError, match=words):
        merge_cells(from_cuts([0, 10, 20], "age"), groups)


@pytest.mark.parametrize(
    "groups", [{"a": ["x"]}, {"a": ["x", "y"], "b": ["y"]}, {"a": ["x", "y", "z"]}]
)
def test_every_level_goes_to_one_group(groups):
    with pytest.raises(DomainError, match="exactly one"):
        merge_cells(from_level_list(["x", "y"], None), groups)
    with pytest.raises(DomainError, match="by a mapping"):
        merge_cells(from_level_list(["x", "y"], None), ["x", "y"])


def test_moments_of_every_kind_agree():
    expected = np.array(["2024-05-31", "NaT"], dtype="M8[us]")
    for given in (
        np.array(["2024-05-31", "NaT"], dtype="M8[D]"),
        np.array([datetime.date(2024, 5, 31), None], dtype=object),
        np.array([datetime.datetime(2024, 5, 31), float("nan")], dtype=object),
        np.array(["2024-05-31", ""]),
    ):
        np.testing.assert_array_equal(as_moments(given), expected)


def test_moments_finer_than_a_microsecond_are_rounded_down():
    fine = np.array(["1969-12-31T23:59:59.999999999", "2024-01-01T00:00:00.000000001"])
    moments = as_moments(fine.astype("M8[ns]"))
    assert moments.astype(str).tolist() == [
        "1969-12-31T23:59:59.999999",
        "2024-01-01T00:00:00.000000",
    ]


def test_date_objects_are_read_as_numpy_reads_their_texts():
    days = [(1, 1, 1), (1969, 12, 31), (1970, 1, 1), (2024, 2, 29), (9999, 12, 31)]
    objects = np.array([datetime.date(*day) for day in days], dtype=object)
    texts = np.array([one.isoformat() for one in objects])
    assert (as_moments(objects) == as_moments(texts)).all()


def test_dates_come_back_from_whole_units():
    assert str(as_dates([19723.0], "D")[0]) == "2024-01-01"


def test_blanks_are_none_and_nan():
    pandas = pytest.importorskip("pandas")
    assert all(map(is_blank, [None, float("nan"), pandas.NA, pandas.NaT]))
    assert not any(map(is_blank, [0, "", "nan", False]))


@pytest.mark.parametrize(
    "change",
    [
        {"size": 3},
        {"size": 0},
        {"edges": [0, 2, 1]},
        {"levels": ["a"]},
        {"unit": "fortnight"},
        {"extras": ["(other)"]},
    ],
)
def test_plain_data_that_does_not_fit_together_is_refused(change):
    domain = Domain.from_edges([0, 1, 2], name="x")
    (plain,) = domain.to_dict()["attributes"]
    assert Domain.from_dict({"attributes": [plain]}) == domain
    with pytest.raises(DomainError):
        Domain.from_dict({"attributes": [plain | change]})


@pytest.mark.parametrize("text", ["20240105", "1704412800", "5"])
def test_digits_alone_are_no_dates(text):
    days = Domain.from_dates(["2024-01-01", "2024-02-01", "2024-03-01"], name="day")
    with pytest.raises(InputError, match="digits alone"):
        Histogram.from_records(days, {"day": ["2024-01-05", text]}, outside="clamp")


@pytest.mark.parametrize("text", ["2024-01-05T10:00Z", "2024-01-05T10:00+02:00"])
def test_times_with_a_zone_are_refused(text):
    days = Domain.from_dates(["2024-01-01", "2024-02-01", "2024-03-01"], name="day")
    with pytest.raises(InputError, match="without a zone"):
        Histogram.from_records(days, {"day": [text, None]}, missing="clamp")

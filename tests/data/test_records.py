"""Records to cells: nothing dropped, nothing told."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast import Domain, Histogram
from blowfish_fast.data.domain import MISSING, OUTSIDE
from blowfish_fast.data.records import Rule, cell_blocks, domain_with_rules
from blowfish_fast.errors import CountsError, DomainError, InputError
from tests.generated import example_count

AGES = Domain.from_edges([0, 10, 20], name="age")
TOWNS = Domain.from_levels(["Bern", "Basel"], name="town")
DAYS = Domain.from_dates(["2024-01-01", "2024-02-01", "2024-03-01"], name="day")
PLAIN = Domain(3, names=["number"])


def counted(domain, column, **rules):
    return Histogram.from_records(domain, [column], **rules).counts.tolist()


@pytest.mark.parametrize(
    ("domain", "column", "cells"),
    [
        (AGES, [5, -1, 25, float("nan"), 20], [1, 1, 2, 1]),
        (TOWNS, ["Bern", "Chur", None, "Basel", "Chur"], [1, 1, 2, 1]),
        (DAYS, ["2024-01-31T23:59", "2024-03-01", None, "2023-01-01"], [1, 0, 2, 1]),
        (PLAIN, [0, 2, 7, -1, None], [1, 0, 1, 2, 1]),
    ],
)
def test_stray_values_have_cells_of_their_own_when_asked(domain, column, cells):
    data = Histogram.from_records(domain, [column], outside="cell", missing="cell")
    assert data.counts.tolist() == cells
    assert data.domain == domain.with_extra_cells(outside=True, missing=True)
    again = Histogram.from_records(data.domain, [column])
    assert again.counts.tolist() == cells


def test_the_domain_gains_cells_whether_or_not_any_value_strays():
    data = Histogram.from_records(AGES, [[1]], outside="cell", missing="cell")
    assert data.domain.attributes[0].extras == (OUTSIDE, MISSING)
    assert data.counts.tolist() == [1, 0, 0, 0]


def test_stray_values_are_clamped_when_asked():
    assert counted(AGES, [-5, 99, np.inf, -np.inf], outside="clamp") == [2, 2]
    assert counted(PLAIN, [-5, 99, 1], outside="clamp") == [1, 1, 1]
    late = ["2030-01-01", "1999-01-01"]
    assert counted(DAYS, late, outside="clamp") == [1, 1]
    assert counted(AGES, [np.nan, 15], missing="clamp") == [1, 1]
    assert counted(PLAIN, [None, 2], missing="clamp") == [1, 0, 1]


@pytest.mark.parametrize(
    ("domain", "column", "words"),
    [
        (AGES, [1] * 3 + [-1] * 77, "records lie outside age"),
        (AGES, [1] * 3 + [None] * 77, "missing values of age"),
        (TOWNS, ["Bern"] * 3 + ["Chur"] * 77, "no level of town"),
        (TOWNS, ["Bern"] * 3 + [None] * 77, "missing values of town"),
        (DAYS, ["2024-03-01"] * 77, "records lie outside day"),
        (DAYS, ["NaT"] * 77, "missing values of day"),
        (PLAIN, [9] * 77, "records lie outside number"),
    ],
)
def test_refusals_say_what_is_wrong_and_never_how_often(domain, column, words):
    with pytest.raises(CountsError, match=words) as caught:
        counted(domain, column)
    told = str(caught.value).replace("a .0 behind whole numbers", "")
    assert not any(sign.isdigit() for sign in told)
    assert '"cell"' in str(caught.value)


def test_each_attribute_may_have_its_own_treatment():
    both = Domain.product(AGES, TOWNS)
    domain, rules = domain_with_rules(both, {"age": "clamp"}, {"town": "cell"})
    assert rules == [Rule("clamp", "refuse"), Rule("refuse", "cell")]
    assert domain.shape == (2, 3)
    # One word for all columns leaves categories alone, which have no nearest cell.
    _, rules = domain_with_rules(both, "clamp", None)
    assert rules == [Rule("clamp", "refuse"), Rule("refuse", "refuse")]
    with pytest.raises(InputError, match="nearest cell"):
        domain_with_rules(both, {"town": "clamp"}, None)
    with pytest.raises(InputError, match='outside must be "refuse"'):
        domain_with_rules(both, {"age": "drop"}, None)
    for no_word in (np.array([], dtype=object), np.array(["clamp", "cell"]), 3):
        with pytest.raises(InputError, match='outside must be "refuse"'):
            domain_with_rules(both, no_word, None)
    with pytest.raises(DomainError, match="no attribute"):
        domain_with_rules(both, {"size": "clamp"}, None)


def test_numbers_of_any_type_are_numbers():
    for column in (
        np.array([1, 15], dtype=np.uint8),
        np.array([1, 15], dtype=np.float32),
        np.array([Decimal(1), Decimal("15.5")], dtype=object),
        np.array([True, 15], dtype=object),
        np.ma.array([1, 15, 99], mask=[0, 0, 0])[:2],
    ):
        assert counted(AGES, column) == [1, 1]
    masked = np.ma.array([1, 15], mask=[0, 1])
    assert counted(AGES, masked, missing="cell") == [1, 0, 1]


@pytest.mark.parametrize(
    ("domain", "column"),
    [
        (AGES, ["1", "2"]),
        (AGES, np.array(["1", 2], dtype=object)),
        (AGES, np.array(["2024-01-01"], dtype="M8[D]")),
        (AGES, np.array([1j])),
        (DAYS, [1, 2]),
        (DAYS, ["soon"]),
        (TOWNS, np.array([["a"], "b"], dtype=object)),
    ],
)
def test_values_of_another_kind_are_refused(domain, column):
    with pytest.raises(InputError):
        counted(domain, column)


def test_levels_of_every_kind_are_matched():
    assert counted(Domain.from_levels([3, 1, 7]), np.array([7, 7, 1])) == [0, 1, 2]
    assert counted(Domain.from_levels([0.5, 1.5]), [1.5]) == [0, 1]
    assert counted(Domain.from_levels([False, True]), np.array([True])) == [0, 1]
    mixed = Domain.from_levels(["1", 1])
    assert counted(mixed, np.array(["1", 1, 1], dtype=object)) == [1, 2]
    assert counted(mixed, ["1", 1, 1]) == [1, 2]
    short = Domain.from_levels(["a", "bb"])
    assert counted(short, np.array(["bb", "a", "bbb"]), outside="cell") == [1, 1, 1]


CODES = [2**53, 2**53 + 1, 2**53 + 2, None]
"""Codes that doubles do not tell apart, and one that is missing."""


def whole_from(library, kind):
    """Return the codes as a library holds whole numbers that may be missing."""
    module = pytest.importorskip(library)
    if library == "polars":
        return module.Series(CODES, dtype=getattr(module, kind))
    if library == "pandas":
        return module.Series(CODES, dtype=kind)
    return module.array(CODES, getattr(module, kind)())


@pytest.mark.parametrize("others", [[], [0.5], [-1]])
@pytest.mark.parametrize(
    "held_as",
    [
        lambda: np.array(CODES[:3], dtype=np.uint64),
        lambda: np.array(CODES[:3], dtype=np.int64),
        lambda: CODES,
        lambda: whole_from("polars", "Int64"),
        lambda: whole_from("polars", "UInt64"),
        lambda: whole_from("pandas", "Int64"),
        lambda: whole_from("pyarrow", "int64"),
    ],
)
def test_long_codes_are_matched_to_their_last_digit(held_as, others):
    domain = Domain.from_levels([*CODES[:3], *others], name="account")
    column = {"account": held_as()}
    *found, outside, missing = counted_by_name(domain, column)
    assert found == [1, 1, 1] + [0] * len(others)
    assert (outside, missing) == (0, len(column["account"]) - 3)


def counted_by_name(domain, table):
    counts = Histogram.from_records(domain, table, outside="cell", missing="cell")
    return counts.counts.tolist()


def test_a_double_is_no_code_that_it_cannot_hold():
    domain = Domain.from_levels([2**53 + 1, 10**17], name="account")
    for column in (np.array([2.0**53, 1e17]), [2.0**53, 1e17]):
        assert counted_by_name(domain, {"account": column}) == [0, 1, 1, 0]
    ibis, pyarrow = pytest.importorskip("ibis"), pytest.importorskip("pyarrow")
    table = ibis.memtable(pyarrow.table({"account": [2.0**53, 1e17]}))
    found = Histogram.from_ibis(domain, table, outside="cell")
    assert found.counts.tolist() == [0, 1, 1]
    alone = Domain.from_levels([2**53 + 1], name="account")
    found = Histogram.from_ibis(alone, table, outside="cell")
    assert found.counts.tolist() == [0, 2]


LEVELS = ["Be", "Bern", "Bernex", "a\u0301", ""]
TEXTS = ["Bern", "Be", "", "Ber", "Bern", "a\u0301", "Berne"]


@pytest.mark.parametrize("arrow", [True, False])
@pytest.mark.parametrize(
    "held_as",
    [
        np.array,
        lambda texts: np.array(texts, dtype=">U5"),
        lambda texts: np.array([one for text in texts for one in (text, "")])[::2],
        lambda texts: np.array(texts, dtype=object),
        lambda texts: pytest.importorskip("pandas").Series(texts, dtype=object),
        lambda texts: pytest.importorskip("pandas").Series(texts, dtype="string"),
        lambda texts: pytest.importorskip("pandas").Series(texts, dtype="category"),
        lambda texts: pytest.importorskip("polars").Series(texts),
        lambda texts: pytest.importorskip("pyarrow").chunked_array([texts, []]),
        lambda texts: pytest.importorskip("pyarrow").array(texts).dictionary_encode(),
        lambda texts: pytest.importorskip("pyarrow").array(texts, "string_view"),
    ],
)
def test_texts_are_matched_alike_however_they_are_held(held_as, arrow, monkeypatch):
    """Levels that are longer than any text of an array are not cut to its width."""
    column = held_as(TEXTS)
    if not arrow:
        monkeypatch.setattr("blowfish_fast.data.columns.find_spec", lambda _: None)
    domain = Domain.from_levels(LEVELS, name="town")
    assert counted(domain, column, outside="cell") == [1, 2, 0, 1, 1, 2]
    with pytest.raises(CountsError, match="no level of town"):
        counted(domain, column)


def test_words_for_the_present_are_no_dates():
    """Numpy reads them by the clock: the same records would move from day to day."""
    for word in ("today", "now", "Today", "NOW"):
        for column in ([word], np.array([word, None], dtype=object)):
            with pytest.raises(InputError, match="dates must read like 2024-05-31"):
                counted(DAYS, column, outside="cell", missing="cell")
        with pytest.raises(DomainError, match="dates must read like 2024-05-31"):
            Domain.from_dates(["2024-01-01", word])


def test_zero_records_are_a_histogram_of_zeros():
    for domain in (AGES, TOWNS, DAYS, PLAIN):
        assert sum(counted(domain, [])) == 0
        assert sum(counted(domain, np.array([], dtype=object))) == 0


@settings(deadline=None, max_examples=example_count(60))
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.floats(-5, 25)),
            st.sampled_from(["Bern", "Basel", "Chur", None]),
            st.integers(-1, 4),
        ),
        max_size=30,
    )
)
def test_every_record_is_counted_once(records):
    domain = Domain.product(AGES, TOWNS, PLAIN)
    columns = [np.array(one, dtype=object) for one in zip(*records, strict=True)]
    columns = columns or [[], [], []]
    full, rules = domain_with_rules(domain, "cell", "cell")
    cells = [one for block in cell_blocks(full, rules, columns) for one in block]
    expected = []
    for age, town, number in records:
        row = 3 if age is None else 2 if not 0 <= age <= 20 else min(int(age // 10), 1)
        side = {"Bern": 0, "Basel": 1, "Chur": 2, None: 3}[town]
        last = number if 0 <= number < 3 else 3
        expected.append((row * 4 + side) * 5 + last)
    assert cells == expected


def test_dates_before_1970_fall_into_the_cell_that_holds_them():
    """Units are counted from 1970; before it, rounding down is away from zero."""
    edges = ["1969-12-30", "1969-12-31", "1970-01-01", "1970-01-02"]
    days = Domain.from_dates(edges, name="day")
    moments = np.array(
        ["1969-12-30T23:59:59", "1969-12-31T00:00", "1969-12-31T12:00", "1970-01-01"],
        dtype="M8[s]",
    )
    assert Histogram.from_records(days, moments).counts.tolist() == [1, 2, 1]


def test_one_date_is_one_record():
    for days, counts in ((["2024-01-31"], [1, 0]), ([], [0, 0])):
        column = np.array(days, dtype="datetime64[D]")
        counted = Histogram.from_records(DAYS, [column])
        assert counted.counts.tolist() == counts

"""Histograms counted in a database equal those of the same records at hand.

Beside the explorer's tests because the three databases are at hand here.
"""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data import sql, sql_cells
from blowfish_fast.errors import CountsError, DomainError, EngineError, InputError
from tests.apps.duckdb_tables import insert_rows

from .engines_at_hand import POSTGRES
from .people import SIZE, columns

ibis = pytest.importorskip("ibis")

# What the databases and their drivers warn of is theirs.
pytestmark = pytest.mark.filterwarnings("ignore")

AGES = bf.Domain.from_edges(range(101), name="age")
PAYS = bf.Domain.from_edges([0, 500, 1000, 1500, 2000, 5000], name="pay")
SEXES = bf.Domain.from_levels(["f", "m"], name="sex")
ROOMS = bf.Domain.from_levels([0, 1, 2, 3, 4], name="rooms")
NUMBERED = bf.Domain(4, names=["rooms"])
DAYS = bf.Domain.from_dates(["2024-01-01", "2024-02-01", "2025-01-01"], name="day")
HOURS = bf.Domain.from_dates(
    np.arange("2024-01-01", "2025-01-01", 6, dtype="datetime64[h]"), name="day"
)

CASES = {
    "numbers, clamped": (AGES, {"outside": "clamp", "missing": "clamp"}),
    "numbers, with cells": (AGES, {"outside": "cell", "missing": "cell"}),
    "unequal edges": (PAYS, {"outside": "cell"}),
    "levels": (SEXES, {"outside": "cell", "missing": "cell"}),
    "whole levels": (ROOMS, {"outside": "cell"}),
    "cell numbers": (NUMBERED, {"outside": "clamp"}),
    "months": (DAYS, {"outside": "cell"}),
    "quarters of days": (HOURS, {"outside": "clamp"}),
    "all at once": (
        bf.Domain.product(DAYS, AGES, SEXES, NUMBERED),
        {"outside": {"day": "cell", "age": "clamp", "sex": "cell", "rooms": "cell"}}
        | {"missing": {"age": "cell", "sex": "cell"}},
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_the_outcome_is_that_of_the_records_at_hand(engine, case):
    domain, rules = CASES[case]
    people = {name: columns()[name] for name in domain.names}
    table = engine.backend.table("people")
    found = bf.Histogram.from_ibis(domain, table, **rules)
    expected = bf.Histogram.from_records(domain, people, **rules)
    assert found.domain == expected.domain
    assert found.counts.sum() == SIZE, "nobody is dropped"
    assert (found.counts == expected.counts).all()
    assert not found.counts.flags.writeable


@pytest.mark.parametrize(
    ("domain", "rules", "words"),
    [
        (AGES, {"outside": "clamp"}, "missing values of age"),
        (AGES, {"missing": "cell"}, "outside age"),
        (SEXES, {"missing": "cell"}, "no level of sex"),
        (SEXES, {"outside": "cell"}, "missing values of sex"),
        (NUMBERED, {}, "outside rooms"),
        (DAYS, {}, "outside day"),
        (bf.Domain.product(AGES, DAYS), {"outside": {"age": "clamp"}}, "values of age"),
    ],
    ids=str,
)
def test_what_is_refused_at_hand_is_refused_in_the_database(
    engine, domain, rules, words
):
    people = {name: columns()[name] for name in domain.names}
    table = engine.backend.table("people")
    said = []
    for count in (
        lambda: bf.Histogram.from_records(domain, people, **rules),
        lambda: bf.Histogram.from_ibis(domain, table, **rules),
    ):
        with pytest.raises(CountsError, match=words) as caught:
            count()
        said.append(str(caught.value))
    assert len(set(said)) == 1


def test_filters_and_other_names_go_along(engine):
    table = engine.backend.table("people")
    people = columns()
    home = bf.Domain(6, names=["home"])
    found = bf.Histogram.from_ibis(
        home, table.filter(table.sex == "f"), columns={"home": "rooms"}
    )
    nameless = bf.Histogram.from_ibis(
        bf.Domain(6), table.filter(table.sex == "f"), columns={0: "rooms"}
    )
    expected = np.bincount(people["rooms"][people["sex"] == "f"], minlength=6)
    assert found.counts.tolist() == nameless.counts.tolist() == expected.tolist()


def test_counted_cells_come_in_pieces(engine, monkeypatch):
    monkeypatch.setattr(sql, "ROWS_AT_ONCE", 40)
    monkeypatch.setattr(sql, "PIECE_ROWS", 40)
    table = engine.backend.table("people")
    rules = {"outside": "clamp", "missing": "cell"}
    found = bf.SparseHistogram.from_ibis(AGES, table, **rules)
    expected = bf.SparseHistogram.from_records(AGES, {"age": columns()["age"]}, **rules)
    assert found.keys.tolist() == expected.keys.tolist()
    assert found.counts.tolist() == expected.counts.tolist()
    with pytest.raises(CountsError, match="missing values of age"):
        bf.SparseHistogram.from_ibis(AGES, table, outside="clamp")


def listed(engine, name, kind, texts):
    """Return a table of one column, without writing to the database."""
    one = engine.backend.table("people").limit(1)
    rows = [ibis.literal(text, "string").cast(kind) for text in texts]
    return ibis.union(*(one.select(**{name: row}) for row in rows))


# Spark has neither infinite dates nor far years.
@pytest.mark.parametrize("engine", ["duckdb", POSTGRES], indirect=True)
@pytest.mark.parametrize("kind", ["timestamp", "date"])
@pytest.mark.parametrize("edges", [DAYS, HOURS], ids=["months", "quarters of days"])
def test_no_date_makes_a_count_fail(engine, kind, edges):
    # That it failed would tell of one record, free of charge, as often as one likes.
    far = ["infinity", "-infinity"] + ["400000-01-01"] * (kind == "date")
    table = listed(engine, "day", kind, [*far, "2024-01-01", None])
    found = counts(edges, table, outside="cell", missing="cell")
    assert [found[0], *found[-2:]] == [1, len(far), 1]
    clamped = counts(edges, table, outside="clamp", missing="cell")
    assert [clamped[0], *clamped[-2:]] == [2, len(far) - 1, 1]


# Decimals of any length are PostgreSQL's.
@pytest.mark.parametrize("engine", [POSTGRES], indirect=True)
def test_no_decimal_makes_a_count_fail(engine):
    values = ["1e1000", "-1e1000", "1e-1000", "Infinity", "NaN", "500.5", None]
    table = listed(engine, "pay", "decimal", values)
    assert counts(PAYS, table, outside="cell", missing="cell") == [1, 1, 0, 0, 0, 4, 1]


@pytest.fixture
def duck():
    pytest.importorskip("duckdb")
    backend = ibis.duckdb.connect()
    yield backend
    backend.disconnect()


def counts(domain, table, **rules):
    return bf.Histogram.from_ibis(domain, table, **rules).counts.tolist()


@pytest.mark.long
def test_cells_of_one_width_agree_with_numpy_next_to_every_edge(duck):
    edges = np.linspace(-3.0, 7.0, 641)
    awkward = bf.Domain.from_edges(edges, name="x")
    values = np.concatenate(
        [edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)]
    )
    duck.con.execute("CREATE TABLE points (x DOUBLE)")
    rows = values.reshape(-1, 1).tolist()
    insert_rows(duck.con, "points", rows)
    expected = bf.Histogram.from_records(awkward, values, outside="clamp")
    found = bf.Histogram.from_ibis(awkward, duck.table("points"), outside="clamp")
    assert (found.counts == expected.counts).all()


@pytest.mark.parametrize(
    ("width", "bins"),
    [(1, [4, 4, 4, 0, 1, 2, 3, 4, 4]), (2, [4, 4, 4, 0, 0, 1, 1, 4, 4])],
)
def test_bins_are_numbered_from_the_first_cell_of_a_stretch(duck, width, bins):
    duck.con.execute("CREATE TABLE cells AS SELECT range AS cell FROM range(9)")
    cells = duck.table("cells").order_by("cell")
    merged = sql_cells._merge_cells(cells.cell, sql_cells.Stretch(3, 7, width, 4), 9)
    assert cells.mutate(found=merged).to_pandas().found.tolist() == bins


def test_dates_are_cut_at_the_instant_whatever_the_zone(duck):
    duck.con.execute("SET TimeZone = 'Asia/Tokyo'")
    moments = ["2024-01-31 23:59:59.9", "2024-02-01 00:00:00", "1969-12-31 23:59:59.5"]
    duck.con.execute(
        "CREATE TABLE visits AS SELECT t::TIMESTAMP AS plain, (t || '+00')::TIMESTAMPTZ"
        f" AS zoned, t::TIMESTAMP::DATE AS day FROM unnest({moments}) AS v(t)"
    )
    table = duck.table("visits")
    edges = ["1969-12-01", "1970-01-01", "2024-02-01", "2024-03-01"]
    for name in ("plain", "zoned", "day"):
        domain = bf.Domain.from_dates(edges, name=name)
        assert counts(domain, table) == [1, 1, 1], name
    seconds = bf.Domain.from_dates(
        ["2024-01-31T23:59:59", "2024-02-01T00:00:00", "2024-02-01T00:00:01"],
        name="zoned",
    )
    assert counts(seconds, table, outside="cell") == [1, 1, 1]
    fine = bf.Domain.from_dates(
        ["2024-01-01T00:00:00.1", "2024-01-01T00:00:00.2"], name="plain"
    )
    with pytest.raises(InputError, match="to the second"):
        counts(fine, table)


def test_the_finest_and_the_coarsest_timestamps_fit_any_edges(duck):
    edges = bf.Domain.from_dates(["0001-01-01", "2024-01-01", "9999-12-31"], name="t")
    for kind in ("TIMESTAMP_NS", "TIMESTAMP_S", "TIMESTAMPTZ"):
        rows = [f"'{one}'::{kind}" for one in ("2023-05-05", "2024-05-05", "infinity")]
        table = duck.sql(f"SELECT unnest([{', '.join(rows)}]) AS t")
        assert counts(edges, table, outside="cell") == [1, 1, 1], kind


def test_truth_values_fractions_and_decimals_are_numbers(duck):
    table = duck.sql(
        "SELECT * FROM (VALUES (true, 1.5::DECIMAL(4, 2), 2.0::DOUBLE, 7), "
        "(false, 0.25, 1.0, NULL), (NULL, 3, 'nan'::DOUBLE, 7)) v(yes, d, cell, level)"
    )
    truth = bf.Domain.from_levels([False, True], name="yes")
    assert counts(truth, table, missing="cell") == [1, 1, 1]
    assert counts(bf.Domain(2, names=["yes"]), table, missing="cell") == [1, 1, 1]
    assert counts(bf.Domain.from_edges([0, 1, 3], name="d"), table) == [1, 2]
    assert counts(bf.Domain(3, names=["cell"]), table, missing="cell") == [0, 1, 1, 1]
    seven = bf.Domain.from_levels([7.0], name="level")
    assert counts(seven, table, missing="cell") == [2, 1]
    with pytest.raises(InputError, match="expects cell numbers"):
        counts(bf.Domain(4, names=["d"]), table)


def test_more_cells_than_memory_holds_stay_listed(duck):
    table = duck.sql(
        "SELECT i * 7919 % 1048576 AS person, i * 104729 % 1048576 AS place "
        "FROM range(10000) t(i)"
    )
    wide = bf.WideDomain.product(
        bf.Domain(2**20, names=["person"]), bf.Domain(2**20, names=["place"])
    )
    at_hand = np.arange(10000)
    expected = bf.SparseHistogram.from_records(
        wide, {"person": at_hand * 7919 % 2**20, "place": at_hand * 104729 % 2**20}
    )
    found = bf.SparseHistogram.from_ibis(wide, table)
    assert (found.keys == expected.keys).all()
    assert (found.counts == expected.counts).all()
    with pytest.raises(DomainError, match="SparseHistogram"):
        bf.Histogram.from_ibis(wide, table)


def test_an_empty_table_has_empty_cells(duck):
    nobody = duck.sql("SELECT 1 AS age WHERE false")
    assert counts(AGES, nobody) == [0] * 100
    assert bf.SparseHistogram.from_ibis(AGES, nobody).keys.size == 0


def test_what_does_not_fit_is_said_before_the_database_is_asked(duck):
    table = duck.sql("SELECT 'f' AS sex, 3 AS age, '2024-01-01' AS day")
    with pytest.raises(InputError, match="from_records"):
        bf.Histogram.from_ibis(AGES, {"age": [3]})
    with pytest.raises(DomainError, match="WideDomain or a Domain"):
        bf.SparseHistogram.from_ibis(100, table)
    with pytest.raises(InputError, match="no column 'pay'"):
        counts(PAYS, table)
    with pytest.raises(InputError, match="no column None"):
        counts(bf.Domain(4), table)
    with pytest.raises(InputError, match="stated as a category"):
        counts(SEXES, table, columns={"sex": "age"})
    with pytest.raises(InputError, match="stated as a number"):
        counts(AGES, table, columns={"age": "sex"})
    with pytest.raises(InputError, match="stated as a date"):
        counts(DAYS, table)
    with pytest.raises(InputError, match="unequal width"):
        counts(bf.Domain.from_edges(np.arange(5000.0) ** 2, name="age"), table)
    with pytest.raises(InputError, match="5,000 levels"):
        counts(bf.Domain.from_levels(range(5000), name="age"), table)


def test_errors_of_the_database_lose_their_words(duck):
    broken = duck.sql("SELECT CAST(t AS INTEGER) AS age FROM unnest(['Ann']) v(t)")
    with pytest.raises(EngineError, match="could not count") as caught:
        counts(AGES, broken)
    assert "Ann" not in str(caught.value)
    assert caught.value.__cause__ is None

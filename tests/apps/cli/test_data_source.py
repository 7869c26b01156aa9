"""Every source counts the same records the same way, and quotes none of them."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.files.data_source import (
    made_up_people,
    open_source,
    write_demo_people,
)
from blowfish_fast.apps.cli.files.record_files import domain_as_stored
from blowfish_fast.apps.cli.parsing.domain import parse_domain
from blowfish_fast.data.csv_files import load_csv
from blowfish_fast.data.histogram import Counting
from blowfish_fast.errors import BlowfishError, InputError

duckdb = pytest.importorskip("duckdb")

CASES = {
    "numbers and categories": (
        ["age=16:91:5", "district=categories:centre,east,north,south,west"],
        None,
    ),
    "dates": (["joined=2020-01-01:2024-01-01:month"], None),
    "clamped": (["income=0:60000:2000"], "clamp"),
    "own cells": (["income=10000:60000:2000"], "cell"),
    "cell numbers": (["age=80"], "clamp"),
    "unequal": (["age=edges:0,18,30,65,120"], None),
}


def counts(source, domain, outside=None, missing=None, count_column=None, **options):
    counting = Counting.read(parse_domain(domain), outside=outside, missing=missing)
    counting = counting._replace(weight=count_column)
    found = open_source(source, **options)
    found.check(counting)
    parts = []
    made = found.histogram(counting, parts.append)
    assert made.domain == counting.domain
    assert all(0 <= one <= 1 for one in parts)
    return made.counts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("people")
    write_demo_people(where / "people.csv")
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    table = arrow.table(
        {k: arrow.array(v.tolist()) for k, v in made_up_people().items()}
    )
    pyarrow.parquet.write_table(table, where / "people.parquet")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("people")
    sheet.append([*made_up_people()])
    for row in zip(*(v.tolist() for v in made_up_people().values()), strict=True):
        sheet.append(row)
    book.save(where / "people.xlsx")
    return where


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("file", ["people.csv", "people.parquet"])
def test_files_are_counted_as_the_columns_are(file, case, folder):
    domain, outside = CASES[case]
    expected = counts("demo", domain, outside)
    assert expected.sum() == 10_000
    found = counts(str(folder / file), domain, outside)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.long
@pytest.mark.parametrize("case", ["numbers and categories", "dates"])
def test_a_sheet_is_counted_as_the_columns_are(case, folder):
    domain, outside = CASES[case]
    expected = counts("demo", domain, outside)
    for source in ({}, {"table": "people"}):
        found = counts(str(folder / "people.xlsx"), domain, outside, **source)
        np.testing.assert_array_equal(found, expected)


@pytest.fixture(scope="module")
def databases(folder):
    pytest.importorskip("ibis")
    pytest.importorskip("pydantic")
    made = duckdb.connect(str(folder / "people.duckdb"))
    made.execute(f"CREATE TABLE people AS SELECT * FROM '{folder}/people.csv'")
    made.execute("CREATE TABLE other AS SELECT 1 AS one")
    made.close()
    columns = made_up_people()
    lite = sqlite3.connect(folder / "people.sqlite")
    lite.execute("CREATE TABLE people (age INT, income INT, district TEXT)")
    rows = zip(
        *(columns[one].tolist() for one in ("age", "income", "district")), strict=True
    )
    lite.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    lite.commit()
    lite.close()
    return {
        "duckdb": (str(folder / "people.duckdb"), {"table": "people"}),
        "duckdb url": (f"duckdb://{folder}/people.duckdb", {"table": "people"}),
        "sqlite": (f"sqlite://{folder}/people.sqlite", {}),
        "sqlite file": (str(folder / "people.sqlite"), {}),
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "case"),
    [
        *(("duckdb", case) for case in CASES),
        ("duckdb url", "dates"),
        # SQLite has no dates.
        *(("sqlite", case) for case in CASES if case != "dates"),
        ("sqlite file", "unequal"),
    ],
)
def test_databases_count_as_the_columns_are(name, case, databases):
    address, options = databases[name]
    domain, outside = CASES[case]
    found = counts(address, domain, outside, **options)
    np.testing.assert_array_equal(found, counts("demo", domain, outside))


def test_real_numbers_of_sqlite_are_counted(databases, tmp_path):
    lite = sqlite3.connect(tmp_path / "real.sqlite")
    lite.execute("CREATE TABLE people (height REAL)")
    rows = [(1.5,), (1.7,), (None,), (float("nan"),)]
    lite.executemany("INSERT INTO people VALUES (?)", rows)
    lite.commit()
    lite.close()
    found = counts(str(tmp_path / "real.sqlite"), ["height=1:2:0.5"], None, "cell")
    assert found.tolist() == [0, 2, 2]


@pytest.mark.parametrize("written", ["true,false", "TRUE,FALSE"])
def test_truth_values_are_categories(written, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    table = arrow.table({"member": [True, False, True, None]})
    pyarrow.parquet.write_table(table, tmp_path / "few.parquet")
    domain = [f"member=categories:{written}"]
    found = counts(str(tmp_path / "few.parquet"), domain, missing="cell")
    assert found.tolist() == [2, 1, 1]
    pytest.importorskip("ibis")
    pytest.importorskip("pydantic")
    made = duckdb.connect(str(tmp_path / "few.duckdb"))
    made.execute(f"CREATE TABLE few AS SELECT * FROM '{tmp_path}/few.parquet'")
    made.close()
    found = counts(str(tmp_path / "few.duckdb"), domain, missing="cell")
    assert found.tolist() == [2, 1, 1]


def test_a_table_without_records_is_counted_as_any_other(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    table = arrow.table({"age": arrow.array([], arrow.int64())})
    pyarrow.parquet.write_table(table, tmp_path / "none.parquet")
    assert counts(str(tmp_path / "none.parquet"), ["age=0:10:5"]).tolist() == [0, 0]


def test_categories_of_a_database_cannot_be_clamped(databases):
    address, options = databases["duckdb"]
    with pytest.raises(BlowfishError, match='outside="cell"') as refused:
        counts(address, ["district=categories:centre,east"], **options)
    assert "clamp" not in str(refused.value)


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


MISSING = "n;age;sex;day\n2;3;f;2024-01-05\n1;;m;2024-02-01\n3;NA;;\n1;9;m;2024-01-31\n"


def test_missing_values_go_where_they_are_told(tmp_path):
    path = write(tmp_path / "few.csv", MISSING)
    ages = ["age=0:10:5"]
    assert counts(path, ages, missing="cell").tolist() == [1, 1, 2]
    assert counts(path, ages, missing="clamp").tolist() == [3, 1]
    sexes = counts(path, ["sex=categories:f,m"], missing="cell")
    assert sexes.tolist() == [1, 2, 1]
    days = counts(path, ["day=2024-01-01:2024-03-01:month"], missing="cell")
    assert days.tolist() == [2, 1, 1]
    weighed = counts(path, ages, missing="cell", count_column="n")
    assert weighed.tolist() == [2, 1, 4]
    with pytest.raises(BlowfishError, match="missing values of age"):
        counts(path, ages)


def test_missing_values_in_a_database_go_where_they_are_told(tmp_path):
    pytest.importorskip("ibis")
    path = tmp_path / "few.duckdb"
    made = duckdb.connect(str(path))
    made.execute(
        "CREATE TABLE few AS SELECT * FROM (VALUES (2, 3, 'f', '1'), (1, NULL, 'm', "
        "'2'), (3, NULL, NULL, '2'), (1, 9, 'm', '1')) few(n, age, sex, code)"
    )
    made.close()
    ages = ["age=0:10:5"]
    assert counts(str(path), ages, missing="cell").tolist() == [1, 1, 2]
    assert counts(str(path), ages, missing="clamp").tolist() == [3, 1]
    sexes = counts(str(path), ["sex=categories:f,m"], missing="cell")
    assert sexes.tolist() == [1, 2, 1]
    weighed = counts(str(path), ages, missing="cell", count_column="n")
    assert weighed.tolist() == [2, 1, 4]
    # Categories that read like numbers, in a column of texts.
    assert counts(str(path), ["code=categories:1,2"]).tolist() == [2, 2]
    for bad, outside, message in (
        (ages, None, "missing values of age"),
        (["age=0:5:5"], None, "records"),
        (["age=4"], None, "records"),
        (["sex=categories:f"], "cell", "missing values of sex"),
        (["agee=0:5:5"], None, "did you mean 'age'"),
        (["sex=0:5:5"], None, "stated as a number"),
        (["sex=4"], None, "stated as a whole cell number"),
        (["age=categories:a,b"], None, "stated as a category"),
    ):
        with pytest.raises(BlowfishError, match=message):
            counts(str(path), bad, outside)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age\n17\nsecret\n", "must be a number"),
        ("age,b\n17,1\n4\n", "more or fewer fields"),
        ("years\n17\n", "no column 'age'"),
        ("agee\n17\n", "did you mean 'agee'"),
        ("age,age\n17,18\n", "more than one column 'age'"),
        ("", "must name the columns"),
        ("170,secret\n18,x\n", "must name the columns"),
        ("age\n170\n", "outside age"),
        ('age,b\n17,"1\n18,2\n19,3\n', "must be closed"),
    ],
)
def test_what_cannot_be_read_is_not_quoted(text, message, tmp_path):
    path = write(tmp_path / "bad.csv", text)
    with pytest.raises(BlowfishError, match=message) as caught:
        counts(path, ["age=0:101:1"])
    assert "secret" not in str(caught.value)
    assert "170" not in str(caught.value)


def test_a_byte_order_mark_and_odd_delimiters_are_read(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_bytes("\ufeffage\tsex\n3\tf\n".encode())
    assert counts(str(path), ["age=0:5:5"]).tolist() == [1]
    path.write_bytes(b"age\n3\n\xff\n")
    with pytest.raises(BlowfishError):
        counts(str(path), ["age=0:5:5"])


def test_a_quotation_mark_inside_a_value_loses_nobody(tmp_path):
    path = write(tmp_path / "pipes.csv", 'age,b\n3,5" pipe\n4,"a ""b"""\n4,c\n')
    assert counts(path, ["age=0:5:5"]).tolist() == [3]


@pytest.mark.parametrize(
    "text", ["20240105", "1704412800", "1999", "1999-01", "05.01.2024", "2024-13-01Z"]
)
def test_dates_of_another_form_are_refused_even_where_others_are_clamped(
    text, tmp_path
):
    path = write(tmp_path / "days.csv", f"day\n{text}\n")
    with pytest.raises(BlowfishError, match="values of day: dates must read") as caught:
        counts(path, ["day=2024-01-01:2025-01-01:month"], "clamp")
    assert text not in str(caught.value)


def test_moments_with_a_zone_are_taken_at_greenwich(tmp_path):
    lines = ["2024-02-01T00:30:00Z", "2024-02-01 00:30:00+02:00", "2024-02-01"]
    path = write(tmp_path / "days.csv", "\n".join(["day", *lines, ""]))
    found = counts(path, ["day=2024-01-01:2024-03-01:month"])
    assert found.tolist() == [1, 2]


def test_counts_are_read_from_arrays_and_tables(tmp_path):
    path = tmp_path / "c.npy"
    np.save(path, np.arange(6).reshape(2, 3))
    assert counts(str(path), "2x3").tolist() == [[0, 1, 2], [3, 4, 5]]
    text = write(tmp_path / "c.csv", "counts\n1\n2\n3\n")
    assert counts(text, "3", named=False).tolist() == [1, 2, 3]
    with pytest.raises(BlowfishError, match="shape of the domain"):
        counts(str(path), "3x2")
    with pytest.raises(BlowfishError, match="neither missing"):
        counts(str(path), "2x3", missing="clamp")
    with pytest.raises(BlowfishError, match="holds counts already"):
        counts(str(path), "2x3", count_column="n")
    bad = write(tmp_path / "bad.csv", "1\nsecret,4\n")
    with pytest.raises(BlowfishError, match="not like that") as caught:
        counts(bad, "2", named=False)
    assert "secret" not in str(caught.value)
    (tmp_path / "no.npy").write_text("nothing")
    with pytest.raises(BlowfishError, match=r"numpy\.save"):
        counts(str(tmp_path / "no.npy"), "2")
    np.savez(tmp_path / "several.npz", a=np.ones(2))
    (tmp_path / "several.npz").rename(tmp_path / "several.npy")
    with pytest.raises(BlowfishError, match="several arrays"):
        counts(str(tmp_path / "several.npy"), "2")


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        ("people.xls", {}, "save it as .xlsx"),
        ("nowhere.xlsx", {}, "there is no file nowhere.xlsx"),
        ("nowhere.xlsx#East", {}, "there is no file nowhere.xlsx"),
        ("people.xlsx#East", {"table": "West"}, "named once"),
        ("people.xlsx", {"named": False}, "whose columns have names"),
        ("nowhere.csv", {}, "there is no file"),
        ("nowhere.npy", {}, "there is no file"),
        ("nowhere.duckdb", {}, "no database"),
        ("sqlite://nowhere.sqlite", {}, "no database"),
        ("nowhere.sqlite", {}, "no database"),
        ("people.csv", {"table": "t"}, "table of a database"),
    ],
)
def test_sources_that_are_none_are_refused(
    words, options, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    if "sqlite" in words or "duckdb" in words:
        pytest.importorskip("ibis")
    with pytest.raises(BlowfishError, match=message):
        open_source(words, **options)


def test_a_table_must_be_named_where_there_are_several(databases):
    address, _ = databases["duckdb"]
    with pytest.raises(BlowfishError, match="--data-table"):
        open_source(address)
    with pytest.raises(BlowfishError, match="did you mean 'people'"):
        open_source(address, table="peoples")


def test_a_schema_of_another_kind_is_refused_before_a_row_is_read(folder):
    for domain, message in (
        (["district=0:5:1"], "is a number, and its column"),
        (["age=categories:a,b"], "is a category"),
        (["age=2020-01-01:2021-01-01:month"], "is a date"),
        (["agee=0:5:1"], "did you mean 'age'"),
    ):
        with pytest.raises(BlowfishError, match=message):
            counts(str(folder / "people.parquet"), domain)


def test_long_files_are_read_in_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("blowfish_fast.apps.cli.files.record_files.ROWS", 2048)
    monkeypatch.setattr("blowfish_fast.data.csv_files.BYTES_AT_ONCE", 1000)
    lines = "".join(f"{i % 10},1\n" for i in range(9500))
    path = write(tmp_path / "long.csv", "age,n\n" + lines)
    assert counts(path, ["age=0:10:5"]).tolist() == [4750, 4750]
    assert counts(path, ["age=0:10:5"], count_column="n").tolist() == [4750, 4750]


def test_what_is_wrong_with_the_data_is_told_at_once(tmp_path):
    path = write(tmp_path / "few.csv", "age,day,sex\n170,x,f\n3,2024-01-05,z\n,,m\n")
    with pytest.raises(BlowfishError, match=r"no column 'ages'.* and no column 'days'"):
        counts(path, ["ages=0:101:1", "days=2024-01-01:2024-03-01:month"])
    with pytest.raises(BlowfishError, match=r"(?s)2 problems.*of age.*of day: dates"):
        counts(
            path, ["age=2024-01-01:2024-03-01:month", "day=2024-01-01:2025-01-01:day"]
        )
    with pytest.raises(
        BlowfishError, match=r"(?s)problems.*outside age.*no level of sex"
    ):
        counts(path, ["age=0:101:1", "sex=categories:f,m"], None, {"age": "cell"})


def test_only_columns_of_truths_are_spelt_as_truths():
    said = bf.Domain.from_levels(["true", "false"], name="said")
    domain = bf.Domain.product(said, bf.Domain.from_edges([0, 1, 2], name="flag"))
    assert domain_as_stored(domain, texts=[], truths=["flag"]) == domain
    spelt = domain_as_stored(domain, texts=[], truths=["said"])
    assert spelt.attributes[0].levels == (True, False)
    assert spelt.attributes[1] == domain.attributes[1]


@pytest.mark.parametrize(
    ("text", "names", "first"),
    [
        ("a,A\n1,x\n", ["a (column 1)", "A (column 2)"], (1, "x")),
        ("b,b,\n1,2,3\n", ["b (column 1)", "b (column 2)", "column 3"], (1, 2, 3)),
        ("a,t,z\nyes,12:00,01\n", ["a", "t", "z"], ("yes", "12:00", "01")),
        ("a\0b\nTRUE\n", ["a b"], ("TRUE",)),
    ],
)
def test_a_table_of_a_csv_file_keeps_its_texts(text, names, first, tmp_path):
    path = tmp_path / "upload.csv"
    path.write_text(text)
    with duckdb.connect() as connection:
        load_csv(connection, path, "t")
        found = connection.execute("FROM t")
        assert [column[0] for column in found.description] == names
        assert found.fetchone() == first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1\n", "more or fewer fields"),
        ("a,b\n1,2,3\n", "more or fewer fields"),
        ('a\n"x\n', "quotation mark is not closed"),
    ],
)
def test_a_table_is_made_of_whole_lines(text, message, tmp_path):
    path = tmp_path / "upload.csv"
    path.write_text(text)
    with duckdb.connect() as connection:
        with pytest.raises(InputError, match=message):
            load_csv(connection, path, "t")
        assert not connection.execute("SHOW TABLES").fetchall()

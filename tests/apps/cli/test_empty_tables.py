"""A table without records is released like any other (issue 32, hole 8).

Hole 8 was a refusal before the charge: "holds no record" beside the release of one
record is, under add/remove, an exact bit that nobody paid for.
"""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

import blowfish_fast as bf
from tests.apps.cli.asking import refused, told

HEAD = "patient,visit,age,received"
ROW = "1,1,25,2026-11-10"
FACTS = [
    *("--domain", "age=0:100:10", "--policy", "add_remove", "--workload", "identity"),
    *("--epsilon", "0.5", "--mechanism", "laplace", "--overwrite"),
]
BOOK = ["--ledger", "book", "--budget", "9"]
PEOPLE = ["--person", "patient", "--record", "visit", "--at-most", "2"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _csv(path, rows, end="\n"):
    path.write_text("\n".join([HEAD, *rows]) + end)
    return [str(path)]


def _bare(path, rows):
    return _csv(path, rows, end="")


def _parquet(path, rows):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    columns = {
        "patient": arrow.array([1] * len(rows), arrow.int64()),
        "visit": arrow.array([1] * len(rows), arrow.int64()),
        "age": arrow.array([25] * len(rows), arrow.int64()),
        "received": arrow.array(["2026-11-10"] * len(rows), arrow.string()),
    }
    pyarrow.parquet.write_table(arrow.table(columns), path.with_suffix(".parquet"))
    return [str(path.with_suffix(".parquet"))]


def _duckdb(path, rows):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("ibis")
    with duckdb.connect(str(path.with_suffix(".duckdb"))) as connection:
        kinds = "patient INT, visit INT, age INT, received DATE"
        connection.execute(f"CREATE TABLE visits ({kinds})")
        if rows:
            connection.execute("INSERT INTO visits VALUES (1, 1, 25, '2026-11-10')")
    return [str(path.with_suffix(".duckdb"))]


def _sqlite(path, rows):
    pytest.importorskip("ibis")
    with sqlite3.connect(path.with_suffix(".sqlite")) as connection:
        kinds = "patient INT, visit INT, age INT, received TEXT"
        connection.execute(f"CREATE TABLE visits ({kinds})")
        if rows:
            connection.execute("INSERT INTO visits VALUES (1, 1, 25, '2026-11-10')")
    return [str(path.with_suffix(".sqlite"))]


WRITERS = [_csv, _bare, _parquet, _duckdb]
CASES = [(one, more) for one in WRITERS for more in ([], PEOPLE)]
# SQLite has no function by which a person's records are chosen.
CASES.append((_sqlite, []))


@pytest.mark.long
@pytest.mark.parametrize(("write", "more"), CASES)
def test_no_record_and_one_record_look_alike(folder, write, more):
    heard = []
    for number, rows in enumerate(([], [ROW])):
        book = ["--ledger", f"book{number}", "--budget", "9"]
        source = ["--data", *write(folder / f"visits{number}.csv", rows)]
        found = told("release", *source, *FACTS, *more, *book)
        heard.append((sorted(found), found["remaining"]))
    assert heard[0] == heard[1]
    assert heard[0][1] == 8.5


def test_series_choices_and_certificates_of_nobody(folder):
    source = ["--data", *_csv(folder / "visits.csv", [])]
    week = told("release", *source, *FACTS, *BOOK, "--series", "received:week:2026-W46")
    assert week["remaining"] == 8.5
    bought = ["--ledger", "other", "--budget", "9", "--certify", "0.5"]
    assert told("release", *source, *FACTS, *bought)["remaining"] == 8.5
    held = ["--ledger", "people", "--budget", "9", "--price", "1"]
    chosen = told("persons", *source, *FACTS[:4], *PEOPLE[:4], "--epsilon", "1", *held)
    assert chosen["ledger"]["after"] == 8


def test_a_file_or_a_column_that_is_not_there_is_public_and_refused(folder):
    _csv(folder / "visits.csv", [])
    (folder / "void.csv").write_bytes(b"")
    lacking = [*FACTS]
    lacking[1] = "height=0:100:10"
    for source, facts in (
        ("nothing.csv", FACTS),
        ("void.csv", FACTS),
        ("visits.csv", lacking),
    ):
        refused("release", "--data", source, *facts, *BOOK)
    assert not (folder / "book").exists()


def test_tables_in_memory_may_be_empty():
    ages = bf.Domain.from_edges(range(0, 101, 10), name="age")
    policy = bf.policies.AddRemove(ages)
    for data in ({"age": []}, {"age": np.empty(0)}):
        counted = bf.Histogram.from_records(ages, data)
        ledger = bf.Ledger(None, epsilon=1, policy=policy)
        laplace = bf.Laplace(policy, bf.workloads.Identity(ages), epsilon=1)
        ledger.release(laplace, counted, rng=1)
        assert ledger.spent == 1
    nobody = bf.KMeans(policy, 2, epsilon=1).release(np.empty((0, 1)), rng=1)
    assert nobody.centers.shape == (2, 1)
    chosen = bf.choose_at_most([], cells=10, epsilon=1, then=1, rng=1)
    assert int(chosen) >= 1
    lost = bf.truncation_loss([], at_most=2, up_to=4, epsilon=1, rng=1)
    assert lost[0].low <= 0 <= lost[0].high

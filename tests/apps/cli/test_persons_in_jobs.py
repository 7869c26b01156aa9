"""``blowfish release`` about persons."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.main import run_command
from tests.apps.cli.asking import told

FACTS = [
    *("release", "--data", "visits.csv", "--domain", "age=0:100:10"),
    *("--policy", "add_remove", "--workload", "identity", "--epsilon", "50"),
    *("--mechanism", "laplace", "--overwrite"),
]
PEOPLE = ["--person", "patient", "--record", "visit", "--at-most", "3"]


@pytest.fixture(autouse=True)
def visits(tmp_path, monkeypatch):
    """Write visits: patient p0 has 1000 at the age of 95, 200 others have 2 each."""
    monkeypatch.chdir(tmp_path)
    rows = [("p0", at, 95) for at in range(1000)]
    rows += [(f"p{1 + at // 2}", 1000 + at, 20 + at % 60) for at in range(400)]
    lines = ["patient,visit,age", *(",".join(map(str, one)) for one in rows)]
    (tmp_path / "visits.csv").write_text("\n".join(lines))
    return tmp_path


def refused(capsys, *words):
    assert run_command([*words]) != 0
    return " ".join(capsys.readouterr().err.split())


def _estimate():
    return bf.Release.load("release.blowfish").estimate


def test_a_person_with_many_records_counts_as_few():
    report = told(*FACTS, *PEOPLE)
    assert "one person (column patient) with all her records" in report["promise"]
    assert _estimate()[9] == pytest.approx(3, abs=3)
    told(*FACTS)
    assert _estimate()[9] == pytest.approx(1000, abs=3)


def test_each_person_counts_once():
    told(*FACTS, *PEOPLE, "--count", "persons")
    assert _estimate()[9] == pytest.approx(1, abs=1)
    assert _estimate().sum() == pytest.approx(201, abs=3)


def test_databases_and_job_files_name_persons(visits):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(visits / "visits.duckdb")) as connection:
        connection.execute("CREATE TABLE visits AS FROM 'visits.csv'")
    (visits / "job.toml").write_text(
        '[data]\nsource = "visits.duckdb"\nperson = "patient"\nrecord = "visit"\n'
        'at_most = 3\n[domain]\nage = "0:100:10"\n[policy]\nkind = "add_remove"\n'
        '[workload]\nkind = "identity"\n[mechanism]\nname = "laplace"\n'
        "[budget]\nepsilon = 50\n"
    )
    told("release", "job.toml")
    assert _estimate()[9] == pytest.approx(3, abs=3)
    assert _estimate().sum() == pytest.approx(403, abs=6)


def test_a_ledger_made_for_persons_refuses_records(capsys):
    ledger = ["--ledger", "book", "--budget", "120"]
    told(*FACTS, *PEOPLE, *ledger)
    with bf.Ledger("book") as book:
        assert book.policy.person_rule.person == "patient"
        assert book.policy.at_most is None
    told_why = refused(capsys, *FACTS, "--ledger", "book")
    assert "protects persons with all their records" in told_why
    told(*FACTS, *PEOPLE, "--ledger", "book")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--at-most", "3"], "say whose records they are"),
        (["--person", "patient"], "say how many records of a person"),
        (["--person", "age", "--at-most", "3"], "beside the attributes"),
        (["--person", "nobody", "--at-most", "3"], "nobody"),
        ([*PEOPLE, "--count-column", "visit"], "one per line"),
        ([*PEOPLE, "--data", "demo"], "one record each"),
    ],
)
def test_what_does_not_fit_together_is_refused(capsys, words, reason):
    assert reason in refused(capsys, *FACTS, *words)


@pytest.mark.parametrize("source", ["visits.csv", "visits.duckdb"])
def test_tables_of_all_columns_count_few_records_of_a_person(visits, source):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(visits / "visits.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT *, visit % 2 AS even FROM 'visits.csv'"
        )
        connection.execute("COPY visits TO 'visits.csv' (HEADER)")
    facts = [one if one != "visits.csv" else source for one in FACTS]
    facts[facts.index("identity")] = "tables:2"
    for option in ("--mechanism", "laplace"):
        facts.remove(option)
    report = told(*facts, "--domain", "even=2", *PEOPLE)
    assert report["tables"] == 3
    assert "one person (column patient) with all her records" in report["promise"]
    out = bf.TablesRelease.load("release.blowfish")
    assert out.table("age").estimate[9] == pytest.approx(3, abs=3)
    assert out.table("age", "even").estimate.sum() == pytest.approx(403, abs=12)

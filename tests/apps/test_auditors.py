"""Wherever a ledger is made, somebody may be named who can open its draws later."""

from __future__ import annotations

import pytest

from blowfish_fast.accounting import make_recipient_keys, verify_opened
from blowfish_fast.accounting.population import Population
from blowfish_fast.apps.cli.commands.serve import open_workspace
from blowfish_fast.apps.explorer import Explorer
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.server.backups import back_up, restore
from blowfish_fast.apps.server.workspace import Workspace
from blowfish_fast.errors import InputError
from blowfish_fast.mechanisms.certifier import Certifier
from tests.accounting.test_opened_ledger import alter_stored, with_row
from tests.apps.cli.asking import refused as problem_of
from tests.apps.cli.asking import run, told

AGES = {
    "name": "visits",
    "attributes": [{"name": "age", "cells": {"start": 0, "stop": 90, "width": 10}}],
}
ASKED = {"kind": "histogram", "table": "visits", "attribute": "age"}
JOB = """
[data]
source = "visits.csv"
[domain]
age = "0:90:10"
[policy]
kind = "add_remove"
[workload]
kind = "identity"
[mechanism]
name = "laplace"
[budget]
epsilon = 0.5
ledger = "book"
total = 9.0
auditor = "public.pem"
"""


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    """A folder with the keys of an auditor, visits in a file and in a database."""
    import duckdb

    monkeypatch.chdir(tmp_path)
    make_recipient_keys("private.pem", "public.pem")
    with duckdb.connect("visits.duckdb") as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT i % 40 AS patient, i AS number, "
            "10 * (i % 8) AS age, DATE '2026-11-02' + CAST(i % 14 AS INTEGER) AS day "
            "FROM range(200) AS t(i)"
        )
        connection.execute("COPY visits TO 'visits.csv' (HEADER)")
    return tmp_path


def paid(epsilon):
    return {**ASKED, "cost": {"epsilon": epsilon}}


def opened(ledger, *more, code=0):
    words = [
        *("ledger", "verify", str(ledger), "--opened", f"{ledger}.keys"),
        *("--key", "private.pem", *more),
    ]
    found = told(*words, code=code)["opened"]
    return {one["request"]: (one["checked"], not one["problems"]) for one in found}


def refused(*words):
    return str(problem_of(*words))


def job_file(name, budget, data=""):
    with open(name, "w") as file:
        text = JOB.replace("[budget]", f"[budget]\n{budget}")
        file.write(text.replace("[data]", f"[data]\n{data}"))
    return name


@pytest.mark.long
def test_a_job_file_names_an_auditor_and_is_drawn_again(desk, monkeypatch):
    march = job_file("march.toml", 'request = "March"')
    told("release", march, "--dry-run")
    assert not (desk / "book").exists()
    told("release", march)
    april = job_file("april.toml", 'request = "April"')
    with monkeypatch.context() as changed:
        alter_stored(changed, lambda release: with_row(release, 2, 1))
        told("release", april, "--out", "april")
    assert told("ledger", "status", "book")["auditor"] is not None
    # Cells under add/remove: without the data the altered number may be true.
    assert opened("book") == {"March": ("rows", True), "April": ("rows", True)}
    with_data = opened("book", "--job", march, "--job", april, code=1)
    assert with_data == {"March": ("data", True), "April": ("data", False)}


@pytest.mark.long
def test_weeks_and_certificates_of_jobs_are_drawn_again(desk):
    week = job_file("week.toml", "", 'series = "day:week:2026-W45"')
    told("release", week)
    sure = job_file("sure.toml", 'certify = 0.2\nrequest = "sure"')
    told("release", sure, "--overwrite")
    unnamed = job_file("unnamed.toml", "")
    (request,) = {told("release", unnamed, "--overwrite")["request"]}
    found = opened("book", "--job", week, "--job", sure, "--job", unnamed)
    assert found == {
        "day/week/2026-W45": ("data", True),
        "sure": ("data", True),
        "sure, certified": ("data", True),
        request: ("data", True),
    }
    told("release", unnamed, "--overwrite")
    words = ["ledger", "verify", "book", "--opened", "book.keys"]
    words += ["--key", "private.pem", "--job", unnamed]
    assert "has 2 answers to its question" in refused(*words)


def test_the_command_line_names_an_auditor_for_a_new_ledger_or_an_old_one(desk):
    facts = ["--cells", "age=0:90:10", "--policy", "add_remove", "--epsilon", "2"]
    run("ledger", "create", "new", *facts, "--auditor", "public.pem")
    run("ledger", "create", "old", *facts)
    assert told("ledger", "status", "old")["auditor"] is None
    asked = [
        *("release", "--data", "visits.csv", "--domain", "age=0:90:10"),
        *("--workload", "identity", "--epsilon", "0.5", "--request", "ages"),
    ]
    told(*asked, "--ledger", "new")
    told(*asked, "--ledger", "old", "--auditor", "public.pem", "--overwrite")
    for name in ("new", "old"):
        assert list(opened(name)) == ["ages"]
    assert "belong to a ledger" in refused(
        *asked[:-2], "--policy", "line", "--overwrite", "--auditor", "public.pem"
    )
    assert "a public key" in refused(
        *asked, "--ledger", "new", "--auditor", "private.pem", "--overwrite"
    )
    assert "go with --opened" in refused("ledger", "verify", "new", "--data", "x")
    job = [*("ledger", "verify", "new", "--opened", "new.keys", "--key")]
    job += ["private.pem", "--data", "visits.duckdb"]
    assert "describes no table" in refused(*job)


def test_every_answer_of_a_table_is_drawn_again_from_its_database(monkeypatch):
    explorer = Explorer(
        AGES, "visits.duckdb", ledger="ages.ledger", epsilon=9, auditor="public.pem"
    )
    explorer.ask(paid(1), request="one")
    explorer.certify("r-one", epsilon=1)
    assert explorer.drawn_again("nobody asked") is None
    with monkeypatch.context() as changed:
        alter_stored(changed, lambda release: with_row(release, 0, 1))
        explorer.ask(paid(1), request="altered")
    explorer.ledger.close()
    explorer.engine.close()
    found = opened("ages.ledger", "--data", "visits.duckdb", code=1)
    assert {checked for checked, _ in found.values()} == {"data"}
    assert [passed for _, passed in found.values()] == [True, True, False]
    assert list(found)[-1] == "r-altered"


def test_what_the_log_does_not_describe_is_not_drawn_again():
    explorer = Explorer(
        AGES, "visits.duckdb", ledger="ages.ledger", epsilon=9, auditor="public.pem"
    )
    ledger, asked = explorer.ledger, explorer.plan(paid(1)).mechanism
    counts = [1] * asked.domain.size
    release = ledger.release(asked, counts, request="in Python")
    assert explorer.drawn_again("in Python") is None
    ledger.release(
        Certifier(release, asked.workload, policy=asked.policy, epsilon=1),
        counts,
        request="certified",
        note={"certifies": "in Python"},
    )
    assert explorer.drawn_again("certified") is None
    ledger.close()
    explorer.engine.close()


def test_a_population_and_the_explorers_of_its_tables_name_an_auditor(desk):
    person = {"person": "patient", "record": "number", "at_most": 2}
    table = {**AGES, **person, "population": "patients"}
    spec = as_table(table)
    people = Population(
        "patients",
        person="patient",
        tables={"visits": spec.policy()},
        path="patients.ledger",
        epsilon=9,
        auditor="public.pem",
    )
    explorer = Explorer(spec, "visits.duckdb", ledger=people)
    explorer.ask(paid(1), request="one")
    questions = {"r-one": explorer.drawn_again("r-one")}
    (found,) = verify_opened(
        people.ledger, "patients.ledger.keys", "private.pem", questions
    )
    assert (found.checked, found.passed) == ("data", True)
    make_recipient_keys("b.pem", "b_public.pem")
    Explorer(spec, "visits.duckdb", ledger=people, auditor="b_public.pem")
    explorer.ask(paid(1), request="two")
    _, second = verify_opened(people.ledger, "patients.ledger.keys", "b.pem")
    assert second.passed
    people.close()
    explorer.engine.close()


def test_a_server_names_an_auditor_for_all_its_tables(desk):
    work, _ = open_workspace(
        desk / "state",
        demo=False,
        database="visits.duckdb",
        tables=None,
        budget={},
        auditor=desk / "public.pem",
    )
    person = {"person": "patient", "record": "number", "at_most": 2}
    shared = {**AGES, **person, "name": "ages", "source": "visits"}
    work.add_table({**shared, "population": "patients"}, epsilon=5)
    work.explorer("ages").ask({**paid(1), "table": "ages"})
    work.close()
    back_up(desk / "state", desk / "backup")
    restore(desk / "backup", desk / "copy", nothing_since=True)
    path = desk / "copy" / "ledgers" / "patients.ledger"
    assert [passed for _, passed in opened(path).values()] == [True]
    # The ledgers remember; nobody is named again.
    work = Workspace(desk / "copy", database="visits.duckdb")
    work.explorer("ages").ask({**paid(2), "table": "ages"})
    work.close()
    assert len(opened(path)) == 2
    with pytest.raises(InputError, match="a public key"):
        Workspace(desk / "third", auditor=desk / "private.pem")
    assert not (desk / "third").exists()


def test_sealed_keys_stay_beside_the_ledger_of_a_deleted_table(desk):
    work = Workspace(
        desk / "state", database="visits.duckdb", auditor=desk / "public.pem"
    )
    work.add_table(AGES, epsilon=5)
    work.explorer("visits").ask(paid(1))
    work.delete_table("visits")
    work.close()
    path = desk / "state" / "deleted" / "visits-1.ledger"
    assert [passed for _, passed in opened(path).values()] == [True]

"""``blowfish release``, as a curator would use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.exit_codes import reword
from blowfish_fast.apps.cli.files.data_source import made_up_people
from blowfish_fast.apps.cli.main import application, run_command
from blowfish_fast.errors import (
    BudgetError,
    InputError,
    LedgerError,
    PolicyError,
)
from tests.apps.cli.asking import RUN, refused, run, told

pytestmark = pytest.mark.usefixtures("empty_folder")

AGES = bf.Domain.from_edges(range(16, 92), name="age")
FACTS = [
    *("release", "--data", "demo", "--domain", "age=16:91:1", "--policy", "line"),
    *("--workload", "prefixes", "--epsilon", "0.5"),
]


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_name_of_another_question_is_refused_with_one_way_out():
    paid = [*FACTS, "--ledger", "book", "--budget", "2", "--overwrite"]
    run(*paid, "--request", "ages")
    for other in (["--epsilon", "0.25"], ["--mechanism", "laplace"]):
        for dry in ([], ["--dry-run"]):
            problem = refused(*paid, "--request", "ages", *other, *dry)
            assert "choose another name" in str(problem)
            assert not getattr(problem, "__notes__", [])
    problem = refused(*paid, "--request", "ages", "--workload", "identity")
    assert not getattr(problem, "__notes__", [])
    with bf.Ledger("book") as ledger:
        assert float(ledger.spent) == 0.5


def test_terms_of_a_ledger_are_told_in_the_words_of_flags():
    paid = [*FACTS, "--ledger", "book"]
    run(*paid, "--budget", "1/3", "--epsilon", "0.1")
    run(*paid, "--budget", "1/3", "--epsilon", "0.1", "--out", "second")
    assert "Leave --budget" in str(refused(*paid, "--budget", "5", "--out", "x"))
    assert "must be greater than 0" in str(
        refused(*paid, "--budget", "-1", "--out", "x")
    )
    other = [*paid, "--policy", "threshold:2", "--out", "x"]
    other[other.index("age=16:91:1")] = "age=16:91:0.5"
    problem = str(refused(*other))
    assert "blowfish ledger status book" in problem
    assert "neither the same nor unions" in problem
    assert "another ledger" not in problem


def test_no_interval_is_announced_that_will_not_come():
    found = told(*FACTS, "--mechanism", "mwem", "--dry-run")
    assert found["error"] == "depends on the data, and is not known beforehand"


def test_made_up_people_have_columns_with_names():
    words = [*FACTS]
    words[words.index("age=16:91:1")] = "75"
    assert "--cells age=" in str(refused(*words))


def test_cells_are_named_as_in_every_other_command():
    words = [*FACTS, "--dry-run"]
    words[words.index("--domain")] = "--cells"
    assert told(*words) == told(*FACTS, "--dry-run")


def test_from_an_empty_folder_in_two_commands(empty_folder):
    said = run("release", "--demo-data")
    assert "blowfish release blowfish-people.toml" in said
    said = run("release", "blowfish-people.toml")
    for words in ("Released", "ordered_hierarchical", "1.5 of 2 remains", "5,000"):
        assert words in said
    assert files(empty_folder) == [
        "blowfish-people-released.csv",
        *("blowfish-people.blowfish", "blowfish-people.csv"),
        *("blowfish-people.ledger", "blowfish-people.png", "blowfish-people.toml"),
    ]
    release = bf.Release.load("blowfish-people.blowfish")
    assert release.private
    assert release.domain.size == 120
    with bf.Ledger("blowfish-people.ledger") as ledger:
        assert float(ledger.spent) == 0.5
    table = (empty_folder / "blowfish-people-released.csv").read_text().splitlines()
    assert table[0] == "income_from,income_to,estimate,low,high"
    assert len(table) == 121
    assert (empty_folder / "blowfish-people.png").read_bytes().startswith(b"\x89PNG")
    assert isinstance(refused("release", "--demo-data"), InputError)


def test_the_estimate_is_that_of_the_records(empty_folder):
    found = told(*FACTS, "--epsilon", "1000", "--mechanism", "laplace")
    assert found["mechanism"] == "laplace"
    release = bf.Release.load("release.blowfish")
    counts = np.histogram(made_up_people()["age"], bins=range(16, 92))[0]
    np.testing.assert_allclose(release.estimate, counts, atol=1)


def test_a_dry_run_reads_charges_and_writes_nothing(empty_folder):
    run("release", "--demo-data")
    bf.Ledger(
        "book",
        epsilon=1,
        policy=bf.policies.Line(bf.Domain.from_edges(range(0, 91, 10), name="age")),
    ).close()
    # A value that would be refused: a dry run never sees it.
    (empty_folder / "few.csv").write_text("age\n17\nsecret\n")
    before = {path: path.read_bytes() for path in empty_folder.iterdir()}
    words = [
        *("release", "--data", "few.csv", "--domain", "age=0:90:10", "--policy"),
        *("line", "--workload", "prefixes", "--epsilon", "0.4", "--ledger", "book"),
        *("--table", "t.parquet", "--picture", "p.png"),
    ]
    found = told(*words, "--dry-run")
    assert found["dry_run"]
    assert found["ledger"]["before"] == 1.0
    assert found["ledger"]["after"] == 0.6
    assert found["promise"].startswith("With eps = 0.4: two people whose age")
    assert found["expected_error"] > 0
    assert found["files"] == {
        "release": "release.blowfish",
        "table": "t.parquet",
        "picture": "p.png",
    }
    said = run(*words, "--dry-run")
    for part in (
        "nothing was read, charged or written",
        "MiB",
        "0.6 of 1 would remain",
    ):
        assert part in said
    new = told("release", "blowfish-people.toml", "--dry-run")
    assert new["ledger"]["new"]
    assert new["ledger"]["after"] == 1.5
    assert {path: path.read_bytes() for path in empty_folder.iterdir()} == before
    assert "must be a number" in str(refused(*words))
    assert {path: path.read_bytes() for path in empty_folder.iterdir()} == before


def test_what_the_ledger_cannot_pay_is_refused(empty_folder):
    words = [*FACTS, "--ledger", "book", "--budget", "0.8"]
    found = told(*words)
    assert found["remaining"] == pytest.approx(0.3)
    assert found["request"].startswith("release-")
    before = (empty_folder / "book").read_bytes()
    for extra in ([], ["--dry-run"]):
        problem = refused(*words, "--out", "two.blowfish", *extra)
        assert isinstance(problem, BudgetError)
        assert "0.3 of 0.8 remains. Nothing was charged" in str(problem)
    other = refused(*words, "--out", "two.blowfish", "--policy", "blocks:5")
    assert isinstance(other, PolicyError)
    assert (empty_folder / "book").read_bytes() == before
    assert files(empty_folder) == ["book", "release.blowfish"]


def test_a_request_is_paid_once(empty_folder):
    words = [*FACTS, "--ledger", "book", "--budget", "0.8", "--request", "ages"]
    told(*words)
    first = bf.Release.load("release.blowfish").estimate
    again = told(*words, "--out", "again.blowfish")
    assert again["ledger"]["replayed"]
    assert again["remaining"] == pytest.approx(0.3)
    np.testing.assert_array_equal(bf.Release.load("again.blowfish").estimate, first)
    again = run(*words, "--overwrite")
    assert "nothing: this request was answered before" in again
    # Whoever runs a job again on new data must not take old numbers for new ones.
    assert again.startswith("Written again")
    assert "new data needs a new name, --request" in again


def test_a_release_that_broke_off_goes_on_under_its_charge(empty_folder, monkeypatch):
    from blowfish_fast.accounting import ledger as module

    def interrupted(*_):
        raise KeyboardInterrupt

    words = [*FACTS, "--ledger", "book", "--budget", "0.5"]
    with monkeypatch.context() as patch:
        patch.setattr(module, "draw_parts", interrupted)
        done = RUN.invoke(application, words)
        assert done.exit_code == 130
    assert files(empty_folder) == ["book"]
    with bf.Ledger("book") as ledger:
        (entry,) = ledger.history()
        assert ledger.remaining == 0
    assert f"--request {entry.request}" in done.output
    found = told(*words, "--request", entry.request)
    assert found["remaining"] == 0.0
    assert bf.Release.load("release.blowfish").private


def test_a_picture_that_fails_loses_nothing(empty_folder, monkeypatch):
    import blowfish_fast.plotting as plotting

    def broken(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(plotting, "histogram", broken)
    words = [*FACTS, "--picture", "p.png", "--table", "t.json"]
    found = told(*words, code=1)
    assert "no space left" in found["problems"][0]
    assert found["files"] == {"release": "release.blowfish", "table": "t.json"}
    assert bf.Release.load("release.blowfish").private
    table = json.loads((empty_folder / "t.json").read_text())
    assert len(table["estimate"]) == 75


def test_a_release_whose_place_is_gone_is_saved_elsewhere(empty_folder, monkeypatch):
    replace = os.replace

    def full(temporary, path):
        if "elsewhere" not in str(path):
            raise OSError(28, "No space left on device")
        replace(temporary, path)

    (empty_folder / "elsewhere").mkdir()
    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr("tempfile.tempdir", str(empty_folder / "elsewhere"))
    problem = refused(*FACTS)
    assert "nothing is lost" in str(problem)
    (kept,) = (empty_folder / "elsewhere").iterdir()
    assert str(kept) in str(problem)
    assert bf.Release.load(kept).private


def test_a_seed_marks_an_experiment():
    found = told(*FACTS, "--seed", "3", "--out", "one.blowfish")
    assert not found["private"]
    assert "protects nobody" in found["promise"]
    told(*FACTS, "--seed", "3", "--out", "two.blowfish")
    one, two = bf.Release.load("one.blowfish"), bf.Release.load("two.blowfish")
    np.testing.assert_array_equal(one.estimate, two.estimate)
    assert not one.private
    paid = [*FACTS, "--seed", "3", "--ledger", "book", "--budget", "1"]
    assert "no ledger pays for" in str(refused(*paid))


def test_accuracy_beside_a_delta_becomes_the_least_rho():
    words = [*FACTS[:-2], "--alpha", "40", "--beta", "0.05", "--delta", "1e-9"]
    found = told(*words, "--seed", "1", "--out", "r.blowfish")
    asked = bf.policies.Line(AGES), bf.workloads.Prefixes(AGES)
    least = bf.translate(*asked, alpha=40, beta=0.05, currency="rho")
    assert found["rho"] == str(least.rho)
    assert bf.Release.load("r.blowfish").guarantee.rho == least.rho
    implied = float(bf.budgets.epsilon_of(least.rho, "1e-9"))
    said = " ".join(found["because"])
    assert f"which is eps = {implied:.6g} at delta = 1e-9" in said
    for wrong in (["--epsilon", "1"], ["--risk", "0.1:0.3"]):
        assert "state either --epsilon" in str(refused(*words, *wrong, "--out", "d"))


def test_accuracy_becomes_the_least_epsilon():
    words = [*FACTS[:-2], "--alpha", "40", "--beta", "0.05"]
    found = told(*words)
    line = bf.policies.Line(AGES)
    asked = bf.workloads.Prefixes(AGES)
    meant = bf.translate(line, asked, alpha=40, beta=0.05)
    assert found["epsilon"] == str(meant.epsilon)
    assert "cheapest of" in " ".join(found["because"])
    named = told(*words, "--mechanism", "cells", "--out", "v.blowfish")
    assert named["mechanism"] == "cells"
    assert "these do: " in str(refused(*words, "--mechanism", "dawa", "--out", "d"))
    wrong = refused(*words[:-4], "--alpha", "x", "--beta", "0.1", "--out", "d")
    assert "alpha must be a number" in str(wrong)


def test_the_best_is_found_without_looking_at_the_data(monkeypatch):
    from blowfish_fast.apps.cli.files import data_source

    def unread(*_):
        raise AssertionError("the data was read")

    monkeypatch.setattr(data_source.MadeUp, "histogram", unread)
    found = told(*FACTS, "--dry-run")
    assert "least predicted error" in found["because"][0]
    guessed = told(*FACTS[:-2], "--epsilon", "0.01", "--records", "500", "--dry-run")
    assert "Use ordered: " in guessed["because"][0]
    assert not any("`" in one for one in guessed["because"])


def test_stray_values_are_treated_as_stated(empty_folder):
    words = [*FACTS[:3], "--domain", "age=20:60:1", *FACTS[5:]]
    problem = refused(*words)
    assert "--outside clamp" in reword(problem)["message"]
    assert problem.__notes__ == ["Nothing was charged"]
    found = told(*words, "--outside", "cell")
    assert found["extra_cells"] == ["(outside) of age"]
    assert bf.Release.load("release.blowfish").domain.size == 41
    told(*words, "--outside", "age=clamp", "--overwrite")
    assert bf.Release.load("release.blowfish").domain.size == 40


def test_counts_and_grids_are_released_with_a_map(empty_folder):
    np.save("counts.npy", np.arange(64).reshape(8, 8))
    found = told(
        *("release", "--data", "counts.npy", "--domain", "8x8", "--policy"),
        *("add_remove", "--workload", "rectangles:20", "--epsilon", "1"),
        *("--mechanism", "dawa", "--picture", "map.svg", "--table", "t.parquet"),
    )
    assert found["expected_error"] is None
    assert found["drawn_error"] > 0
    assert "<svg" in (empty_folder / "map.svg").read_text()
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table("t.parquet").num_rows == 64


def test_noise_on_queries_leaves_cells_without_intervals(empty_folder):
    (empty_folder / "asked.csv").write_text("start,end\n0,40\n40,60\n")
    words = [*FACTS[:5], "--policy", "add_remove", "--workload", "asked.csv"]
    words += ["--epsilon", "1", "--table", "t.csv", "--picture", "p.png"]
    said = run(*words)
    assert "noise on the queries themselves" in said
    assert "blowfish answer release.blowfish --workload asked.csv" in said
    assert (empty_folder / "t.csv").read_text().startswith("age_from,age_to,estimate\n")
    named = told(*words, "--mechanism", "queries", "--overwrite", "--dry-run")
    assert named["recipe"] == "laplace"


@pytest.mark.parametrize(
    ("domain", "question"),
    [
        ("income=0:200000:50000", "--where income=50000:100000"),
        ("age=edges:0,120", "--where age=0:120"),
        ("district=categories:centre,east,north,south,west", "--where district=centre"),
        ("joined=2020-01-01:2024-01-01:year", "--by joined"),
    ],
)
def test_the_question_that_is_suggested_can_be_asked(domain, question):
    words = ["--policy", "full", "--workload", "identity", "--epsilon", "1"]
    said = run("release", "--data", "demo", "--domain", domain, *words)
    assert f"blowfish answer release.blowfish {question}" in said
    run("answer", "release.blowfish", *question.split())


@pytest.mark.long
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--out", "no/where.blowfish"], "there is no folder no"),
        (["--out", "taken"], "taken exists already"),
        (["--out", "folder", "--overwrite"], "folder exists already"),
        (["--table", "t.ods"], "a table is written as"),
        (["--picture", "p.bmp"], "a picture is written as"),
        (["--table", "x.csv", "--out", "x.csv"], "files of their own"),
        (["--data", "few.csv", "--out", "few.csv", "--overwrite"], "which is read"),
        (["--confidence", "1.5"], "confidence"),
        (["--mechanism", "dawwa"], "did you mean 'dawa'"),
        (["--mechanism", "kmeans"], "does not release counts"),
        (["--alpha", "4"], "state either --epsilon"),
        (["--epsilon", "-1"], "epsilon"),
        (["--ledger", "none"], "blowfish ledger create"),
        (["--request", "x"], "name its file, --ledger"),
        (["--data", "nowhere.csv"], "there is no file nowhere.csv"),
        (["--missing", "drop"], "refuse"),
        (["--workload", "total", "--alpha", "1", "--beta", "0.1"], "state either"),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
def test_words_that_make_no_sense_cost_nothing(changed, message, dry, empty_folder):
    (empty_folder / "taken").write_text("here")
    (empty_folder / "few.csv").write_text("age\n17\n")
    (empty_folder / "folder").mkdir()
    before = files(empty_folder)
    problem = refused(*FACTS, *changed, *(["--dry-run"] if dry else []))
    assert message in str(problem)
    assert files(empty_folder) == before
    assert (empty_folder / "taken").read_text() == "here"


def test_what_is_public_needs_no_epsilon():
    words = [*FACTS[:7], "--workload", "total", "--alpha", "1", "--beta", "0.1"]
    assert "answers are public" in str(refused(*words))


def test_a_ledger_without_a_budget_is_not_made(empty_folder):
    assert isinstance(refused(*FACTS, "--ledger", "book"), LedgerError)
    assert isinstance(
        refused(*FACTS, "--ledger", "no/book", "--budget", "1"), LedgerError
    )
    assert files(empty_folder) == []


def test_an_example_can_be_printed():
    assert "[policy]" in RUN.invoke(application, ["release", "--example"]).stdout
    assert "[policy]" in told("release", "--example")["example"]
    made = told("release", "--demo-data", "--overwrite")
    assert made == {"people": "blowfish-people.csv", "job": "blowfish-people.toml"}


@pytest.mark.long
def test_a_process_ends_quietly(empty_folder):
    words = [*FACTS, "--ledger", "book", "--budget", "0.8", "--table", "t.csv"]
    done = subprocess.run(
        [sys.executable, "-m", "blowfish_fast", *words],
        capture_output=True,
        text=True,
        cwd=empty_folder,
        env={
            **os.environ,
            "COLUMNS": "80",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONWARNINGS": "ignore",
        },
        check=False,
    )
    # Nothing but which columns the new ledger covers, in one line.
    assert done.returncode == 0
    assert done.stderr.startswith("NOTE: the new ledger book covers age")
    assert done.stderr.count("\n") == 1
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_refusals_end_with_codes_and_without_tracebacks(capsys):
    assert run_command([*FACTS, "--ledger", "book", "--budget", "0.1", "--json"]) == 3
    assert json.loads(capsys.readouterr().err)["error"]["kind"] == "BudgetError"
    assert run_command([*FACTS, "--policy", "lines", "--dry-run"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "Traceback" not in said
    assert "did you mean 'line'" in said


def test_tables_open_in_a_spreadsheet_with_their_letters(empty_folder):
    (empty_folder / "towns.csv").write_text("town\nKöniz\nBern\n", encoding="utf-8")
    for levels, mark in (("Köniz,Bern", True), ("Bern", False)):
        run(
            *("release", "--data", "towns.csv", "--policy", "full", "--epsilon", "1"),
            *("--cells", f"town=categories:{levels}", "--workload", "identity"),
            *("--outside", "cell", "--table", "out.csv", "--overwrite"),
        )
        begins = (empty_folder / "out.csv").read_bytes()
        assert begins.startswith(b"\xef\xbb\xbf") == mark


def test_a_job_states_how_its_table_is_written(empty_folder):
    (empty_folder / "office.csv").write_bytes(
        "Alter;Bezirk\n1,5;Zürich\n-;Zürich\n".encode("cp1252")
    )
    (empty_folder / "job.toml").write_text(
        """
[data]
source = "office.csv"
encoding = "cp1252"
decimal = ","
blanks = ["-"]
missing = {Alter = "cell"}
[domain]
Alter = "0:2:1"
Bezirk = ["Zürich", "Bern"]
[policy]
kind = "full"
known = ["Bezirk"]
[workload]
kind = "identity"
[budget]
epsilon = 1000
""",
        encoding="utf-8",
    )
    found = told("release", "job.toml")
    assert "marginal over Bezirk" in found["promise"]
    made = bf.Release.load(empty_folder / "release.blowfish")
    assert np.rint(made.estimate).tolist() == [[0, 0], [1, 0], [1, 0]]


def test_an_order_of_categories_is_pointed_out():
    district = "district=categories:centre,east,north,south,west"
    facts = ["release", "--data", "demo", "--workload", "identity", "--epsilon", "1"]
    facts += ["--dry-run", "--cells", district]
    for policy in ("line", "threshold:2", "product:line"):
        said = run(*facts, "--policy", policy)
        assert "categories of district are neighbours in the order" in said
    for policy in ("full", "blocks:2", "add_remove"):
        assert "neighbours in the order" not in run(*facts, "--policy", policy)

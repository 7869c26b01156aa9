"""``blowfish experiment`` as it is typed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from blowfish_fast.advice.experiments import runner
from blowfish_fast.apps.cli.main import application
from blowfish_fast.errors import InputError
from experiments.row_statistics import read_csv

FOLDERS = ("1d", "2d")


@pytest.fixture
def folder(tmp_path, generator):
    for name in FOLDERS:
        (tmp_path / "data" / name).mkdir(parents=True)
    np.save(tmp_path / "data" / "1d" / "mine.npy", generator.integers(0, 50, 32))
    np.save(tmp_path / "data" / "2d" / "map.npy", generator.integers(0, 50, (4, 8)))
    return tmp_path / "data"


def typed(out, *words, policy="full", workload="identity", processes=1):
    given = ["--policy", policy, "--workload", workload, "--processes", processes]
    given += ["--epsilon", "1", "--epsilon", "0.1", "--out", out, *words]
    return CliRunner().invoke(application, ["experiment", *map(str, given)])


def mechanisms(*names):
    return [word for name in names for word in ("--mechanism", name)]


def test_every_set_of_a_folder_is_compared_at_every_epsilon(tmp_path, folder):
    out = tmp_path / "out"
    words = [*mechanisms("laplace", "privelet", "ordered"), "--data", folder]
    done = typed(out, *words, "--seed", 3, "--trials", 2, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["results"][0]
    places = [(line["set"], line["epsilon"]) for line in found["table"]]
    assert places == [
        ("1d/mine", "1"),
        ("1d/mine", "0.1"),
        ("2d/map", "1"),
        ("2d/map", "0.1"),
    ]
    assert found["private"] is False
    assert found["table"][2]["ordered"] is None
    assert "verdict" not in found
    assert any(note.startswith("ordered was skipped") for note in found["notes"])
    rows = read_csv(out / "comparison.csv")
    assert len([row for row in rows if row["error"] is not None]) == 2 * (2 * 3 + 2 * 2)
    assert {path.suffix for path in out.iterdir()} == {
        ".csv",
        ".journal",
        ".md",
        ".png",
    }


@pytest.mark.long
def test_budgets_in_rho_are_compared_beside_epsilons(tmp_path):
    words = [*mechanisms("laplace", "gaussian", "ordered"), "--set", "1d/steps"]
    words += ["--max-cells", 16, "--seed", 3, "--trials", 2, "--rho", "0.01"]
    done = typed(tmp_path, *words, "--delta", "1e-9", "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    table = json.loads(done.stdout)["results"][0]["table"]
    implied = "rho=0.014973057673"
    asked = ["1", "0.1", implied, "rho=0.000177138447", "rho=0.01"]
    assert [line["epsilon"] for line in table] == asked
    for line in table:
        in_rho = line["epsilon"].startswith("rho")
        assert (line["laplace"] is None, line["gaussian"] is None) == (
            in_rho,
            not in_rho,
        )
        assert line["ordered"] is not None
    bare = CliRunner().invoke(
        application,
        ["experiment", "--policy", "full", "--workload", "identity"],
    )
    assert "state the budget" in str(bare.exception)


def test_a_plain_folder_is_taken_and_what_was_found_is_said(tmp_path):
    (tmp_path / "ages.csv").write_text("count\n" + "4\n" * 16)
    np.save(tmp_path / "incomes.npy", np.arange(16))
    words = [*mechanisms("laplace"), "--data", tmp_path, "--trials", 1]
    done = typed(tmp_path / "out", *words)
    assert done.exit_code == 0, (done.output, done.exception)
    said = " ".join(done.stderr.split())
    assert "2 data sets in" in said
    assert "ages.csv, incomes" in said
    assert "ages.csv" in done.stdout


def test_results_of_others_are_not_replaced(tmp_path):
    (tmp_path / "comparison.csv").write_text("mine")
    words = [*mechanisms("laplace"), "--set", "1d/steps", "--max-cells", 8]
    done = typed(tmp_path, *words, "--trials", 1)
    assert "not from such a run" in str(done.exception)
    assert (tmp_path / "comparison.csv").read_text() == "mine"
    assert typed(tmp_path, *words, "--trials", 1, "--anew").exit_code == 0


def test_the_table_names_the_lowest_error(tmp_path):
    words = [*mechanisms("laplace", "ordered"), "--set", "1d/steps", "--max-cells", 64]
    done = typed(tmp_path, *words, "--seed", 3, policy="line", workload="prefixes")
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[2][:3] == ["1d/steps", "(generated)", "1"]
    assert lines[2][-1] == lines[3][-1] == "ordered"
    assert "The paper" not in done.stdout


@pytest.mark.long
def test_processes_do_not_change_the_rows(tmp_path, folder):
    words = [*mechanisms("laplace"), "--data", folder, "--seed", 7]
    typed(tmp_path / "one", *words)
    typed(tmp_path / "two", *words, processes=2)
    first = (tmp_path / "one" / "comparison.csv").read_bytes()
    assert (tmp_path / "two" / "comparison.csv").read_bytes() == first


@pytest.mark.long
def test_a_seed_is_drawn_noted_and_kept_by_the_next_run(tmp_path, folder):
    words = [*mechanisms("laplace"), "--data", folder]
    typed(tmp_path / "a", *words)
    typed(tmp_path / "b", *words)
    noted = [
        json.loads((tmp_path / one / "comparison.journal").read_text().splitlines()[0])
        for one in "ab"
    ]
    assert noted[0]["seed"] != noted[1]["seed"]
    before = (tmp_path / "a" / "comparison.csv").read_bytes()
    assert typed(tmp_path / "a", *words).exit_code == 0
    assert (tmp_path / "a" / "comparison.csv").read_bytes() == before
    other = typed(tmp_path / "a", *words, workload="total")
    assert isinstance(other.exception, InputError)
    assert "workload 'identity' there, 'total' asked" in str(other.exception)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (mechanisms("laplase"), "did you mean 'laplace'"),
        (mechanisms("laplace", "laplace"), "each named once"),
        (["--set", "1d/nothing"], "there is no generated data set"),
        (["--data", "no-such-folder"], "does not exist"),
        (["--data", "."], "which holds none"),
        (["--set", "2d/bells"], "Ranges asks for one ordered attribute"),
        ([*mechanisms("laplace"), "--trials", 0], "trials must lie"),
    ],
    ids=["name", "twice", "set", "folder", "empty", "workload", "trials"],
)
def test_bad_input_is_refused_before_any_work(tmp_path, monkeypatch, words, match):
    monkeypatch.chdir(tmp_path)
    words = ["--set", "1d/steps", *words] if "--set" not in words else words
    words = words[2:] if "--data" in words else words
    done = typed(tmp_path / "out", *words, workload="ranges:5")
    assert isinstance(done.exception, InputError)
    assert match in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_an_interruption_says_how_to_go_on(tmp_path, monkeypatch):
    original = runner.work
    words = [*mechanisms("laplace"), "--set", "1d/steps", "--max-cells", 8]
    words += ["--seed", 1, "--trials", 1]

    def interrupt(experiment, task, settings):
        if task.key.endswith("/0.1"):
            raise KeyboardInterrupt
        return original(experiment, task, settings)

    monkeypatch.setattr(runner, "work", interrupt)
    result = typed(tmp_path, *words)
    assert result.exit_code == 130
    assert len((tmp_path / "comparison.csv").read_text().splitlines()) == 2
    monkeypatch.setattr(runner, "work", original)
    assert typed(tmp_path, *words).exit_code == 0
    assert len((tmp_path / "comparison.csv").read_text().splitlines()) == 3

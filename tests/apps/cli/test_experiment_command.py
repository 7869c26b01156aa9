"""``blowfish experiment`` as it is typed."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

from blowfish_fast.advice.experiments import runner
from blowfish_fast.apps.cli import main
from blowfish_fast.apps.cli.application import application
from blowfish_fast.errors import InputError

NAME = "dawa-table1"


def typed(*words):
    return CliRunner().invoke(
        application, ["experiment", *(str(word) for word in words)]
    )


def short(*words):
    return typed(NAME, "--quick", "--processes", 1, "--seed", 2, *words)


def test_a_run_prints_table_claim_and_verdict(tmp_path):
    result = short("--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "Table 1" in result.output
    assert "The paper:" in result.output
    assert "reproduced:" in result.output
    assert {path.suffix for path in tmp_path.iterdir()} >= {".csv", ".md", ".journal"}


def test_json_is_for_programs(tmp_path):
    result = short("--out", tmp_path, "--json")
    found = json.loads(result.output)["results"][0]
    assert found["experiment"] == NAME
    assert found["private"] is False
    assert found["generated_data"] is True
    assert found["outcome"] in ("reproduced", "not reproduced", "beaten")
    assert found["table"]


def test_the_page_follows_the_results(tmp_path):
    short("--out", tmp_path)
    result = typed("page", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "results.md").exists()
    again = typed("page", "--out", tmp_path, "--json")
    assert json.loads(again.output)["experiments"] == [NAME]


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["dawa-table9"], "Did you mean dawa-table"),
        ([NAME, "--trials", 0], "trials must lie"),
        ([NAME, "--data", "no-such-folder"], "does not exist"),
        ([NAME, "--processes", 0], "processes"),
        (["all", "--data", "no-such-folder"], "does not exist"),
        (["page", "--out", "no-such-folder"], "no results"),
    ],
    ids=["name", "trials", "data", "processes", "all", "page"],
)
def test_bad_input_is_refused(tmp_path, monkeypatch, words, match):
    monkeypatch.chdir(tmp_path)
    result = typed(*words)
    assert isinstance(result.exception, InputError)
    assert match in str(result.exception)


def test_a_refusal_ends_with_code_2_and_no_traceback(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["blowfish", "experiment", "nothing"])
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 2
    told = capsys.readouterr().err
    assert "refused" in told
    assert "Traceback" not in told


def test_an_interruption_says_how_to_go_on(tmp_path, monkeypatch):
    original = runner.work

    def interrupted(name, task, settings):
        if task.key.startswith("adult"):
            raise KeyboardInterrupt
        return original(name, task, settings)

    monkeypatch.setattr(runner, "work", interrupted)
    result = short("--out", tmp_path)
    assert result.exit_code == 130
    assert len((tmp_path / f"{NAME}.csv").read_text().splitlines()) == 4
    monkeypatch.setattr(runner, "work", original)
    assert short("--out", tmp_path).exit_code == 0

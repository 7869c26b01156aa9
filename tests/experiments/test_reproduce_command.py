"""``python -m experiments`` as it is typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blowfish_fast.errors import InputError
from experiments.__main__ import application

NAME = "dawa-table1"
ROOT = Path(__file__).parents[2]


def typed(*words):
    return CliRunner().invoke(application, [str(word) for word in words])


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
    assert found["claim"]
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
        ([NAME, "--processes", 0], "processes must be at least 1"),
        (["all", "--data", "no-such-folder"], "does not exist"),
        (["page", "--out", "no-such-folder"], "there are no results"),
    ],
    ids=["name", "trials", "data", "processes", "all", "page"],
)
def test_bad_input_is_refused(tmp_path, monkeypatch, words, match):
    monkeypatch.chdir(tmp_path)
    result = typed(*words)
    assert isinstance(result.exception, InputError)
    assert match in str(result.exception)


@pytest.mark.long
def test_a_refusal_ends_with_code_2_and_no_traceback():
    done = subprocess.run(
        [sys.executable, "-m", "experiments", "nothing"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "there is no experiment 'nothing'" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr

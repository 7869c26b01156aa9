"""Nobody who types commands is told to write Python."""

from __future__ import annotations

import re

import pytest

from blowfish_fast.apps.cli.main import run_command

PYTHON = re.compile(r"slice\(|Domain\.|Histogram\.|policies\.|numpy|\w+=\"|mapping")
PEOPLE = ["release", "--data", "demo", "--workload", "identity", "--epsilon", "1"]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["income=0:9000:1000", "--policy", "full"], "state --outside clamp"),
        (["income=9000", "--policy", "full"], "--outside clamp"),
        (["district=categories:east", "--policy", "full"], "no category of district"),
        (
            ["district=categories:a,b", "--policy", "threshold:1:value"],
            "LOW:HIGH:WIDTH",
        ),
        (["age=0:99:1", "--policy", "full", "--outside", "drop"], "never dropped"),
    ],
)
def test_refusals_of_a_release(words, message, capsys):
    assert run_command([*PEOPLE, "--cells", *words]) == 2
    said = capsys.readouterr().err
    assert message in " ".join(said.split())
    assert not PYTHON.search(said)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--where", "age=200:300"], "200:300 selects no part"),
        (["--where", "age=20"], "age=LOW:HIGH"),
        (["--mean", "district"], "no sum"),
        (["--quantile", "0.5"], "Release that column alone"),
    ],
)
def test_refusals_of_a_question(words, message, capsys):
    cells = ["--cells", "age=0:100:10", "--cells"]
    cells.append("district=categories:centre,east,north,south,west")
    made = ["--policy", "full", "--seed", "1", "--out", "two.blowfish"]
    assert run_command([*PEOPLE, *cells, *made]) == 0
    capsys.readouterr()
    assert run_command(["answer", "two.blowfish", *words]) == 2
    said = capsys.readouterr().err
    assert message in " ".join(said.split())
    assert not PYTHON.search(said)

"""Small jobs do without the compiler: nobody waits for it in the first minutes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from blowfish_fast._support.compiler_watch import (
    COMPILER,
    SHORT_FILE,
    CompilerWatch,
    is_short,
)
from blowfish_fast.apps.cli import mechanism_choice
from blowfish_fast.apps.cli.files import survey_file
from blowfish_fast.apps.cli.main import run_command
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.release_job import read_facts

pytestmark = pytest.mark.long

IN_A_ROW = """
import json, sys
from blowfish_fast._support.compiler_watch import COMPILER
from blowfish_fast.apps.cli.main import run_command

COMPILER.alone = True
for words in json.loads(sys.argv[1]):
    code = run_command(words)
    assert code == 0, (words, code)
    assert "numba" not in sys.modules, words
"""
ALONE = [sys.executable, "-W", "error::RuntimeWarning", "-c", IN_A_ROW]
FACTS = ["--cells", "income=0:120000:4000", "--policy", "threshold:8000:value"]
FACTS += ["--workload", "ranges:100", "--epsilon", "0.5"]


def run_alone(folder, *commands):
    """Run commands in one new process, in which nothing was compiled before."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "kernels")}
    environment |= {"BLOWFISH_CACHE_DIR": str(folder / "caches")}
    environment.pop("NUMBA_DISABLE_JIT", None)
    done = subprocess.run(
        [*ALONE, json.dumps(commands)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ten_commands_of_a_first_hour_compile_nothing(tmp_path):
    saved = "blowfish-people.blowfish"
    shown = run_alone(
        tmp_path,
        ["release", "--demo-data"],
        ["release", "blowfish-people.toml", "--dry-run"],
        ["release", "blowfish-people.toml"],
        ["answer", saved, "--where", "income=30000:60000"],
        ["explain", saved],
        ["report", saved, "--out", "people.html"],
        ["draw", saved, "--out", "again.png"],
        ["compare", *FACTS],
        ["recommend", *FACTS, "--records", "10000"],
        ["first-look", "blowfish-people.csv", "--epsilon", "1"],
        ["ledger", "status", "blowfish-people.ledger"],
    )
    assert "Released" in shown
    assert {path.name for path in tmp_path.iterdir()} >= {saved, "people.html"}


def test_what_was_released_in_plain_python_is_the_same_request_to_compiled_kernels(
    tmp_path, capsys, monkeypatch
):
    release = ["release", "blowfish-people.toml", "--json"]
    run_alone(tmp_path, ["release", "--demo-data"], release)
    monkeypatch.chdir(tmp_path)
    # This process is not alone: it uses compiled kernels, as a program would.
    assert run_command([*release, "--overwrite"]) == 0
    assert json.loads(capsys.readouterr().out)["ledger"]["replayed"] is True


@pytest.mark.parametrize(
    ("words", "plainly"),
    [
        ([], True),
        (["--seed", "5"], False),
        (["--mechanism", "structure_first"], False),
    ],
    ids=["secure", "seeded", "long"],
)
def test_draws_of_a_seed_are_those_of_compiled_kernels(
    words, plainly, tmp_path, monkeypatch
):
    chosen = []

    def noted(facts, job):
        chosen.append(not COMPILER.wanted)
        raise mechanism_choice.InputError("enough")

    for name in ("alone", "wanted"):
        monkeypatch.setattr(COMPILER, name, True)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(mechanism_choice, "choose_mechanism", noted)
    (tmp_path / "few.csv").write_text("age\n20\n30\n")
    data = ["--data", str(tmp_path / "few.csv"), "--domain", "age=0:100:10"]
    stated = ["--policy", "full", "--workload", "identity", "--epsilon", "1"]
    assert run_command(["release", *data, *stated, *words]) == 2
    assert chosen == [plainly]


@pytest.mark.parametrize("rows", [2, 2**18], ids=["short", "long"])
@pytest.mark.parametrize("command", ["release", "first-look"])
def test_nobody_is_told_of_compiling_where_the_size_of_a_table_decides(
    command, rows, tmp_path, monkeypatch
):
    """That a long table is counted by compiled kernels tells that it is long."""
    told_of = []

    def noted(*_, **__):
        told_of.append(COMPILER.tell)
        raise mechanism_choice.InputError("enough")

    for name in ("alone", "wanted"):
        monkeypatch.setattr(COMPILER, name, True)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(mechanism_choice, "choose_mechanism", noted)
    monkeypatch.setattr(survey_file, "columns_of", noted)
    data = tmp_path / "people.csv"
    data.write_text("age\n" + "20\n30000\n" * (rows // 2))
    words = ["release", "--data", str(data), "--domain", "age=0:100:10"]
    words += ["--policy", "full", "--workload", "identity"]
    if command == "first-look":
        words = ["first-look", str(data)]
    assert run_command([*words, "--epsilon", "1"]) == 2
    assert told_of == [None]


def test_a_table_side_by_side_counts_as_often_as_it_is_predicted(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    stated = {"data": "demo", "domain": ["100"], "policy": "full", "epsilon": "1"}
    job = Job(workload="ranges:200", **stated)
    asked = read_facts(job).workload
    assert mechanism_choice.is_little(asked, 100)
    assert mechanism_choice.is_little(asked, 100, 2)
    assert not mechanism_choice.is_little(asked, 100, 3)
    assert not mechanism_choice.is_little(asked, 1025)


@pytest.mark.parametrize("predicted", [False, True])
def test_ranges_that_were_predicted_before_are_answered_without(
    predicted, empty_memory, monkeypatch
):
    chosen = []

    def noted(facts, job):
        chosen.append(COMPILER.wanted)
        raise mechanism_choice.InputError("enough")

    monkeypatch.setattr(mechanism_choice, "compiled_before", lambda module: True)
    job = Job(domain=["40"], policy="line", workload="ranges:300", epsilon="1")
    facts = read_facts(job)
    if predicted:
        mechanism_choice.choose_mechanism(facts, job)
    for name in ("alone", "wanted"):
        monkeypatch.setattr(COMPILER, name, True)
    monkeypatch.setattr(mechanism_choice, "choose_mechanism", noted)
    with pytest.raises(mechanism_choice.InputError):
        mechanism_choice.choose_with_progress(facts, job, short=True)
    assert chosen == [not predicted]


def test_only_a_process_of_one_command_does_without(tmp_path):
    watch = CompilerWatch()
    watch.spare(True)
    assert watch.wanted
    watch.alone = True
    watch.spare(True)
    assert not watch.wanted
    watch.spare(False)
    assert watch.wanted


def test_what_is_no_file_is_not_short(tmp_path):
    short, long = tmp_path / "short", tmp_path / "long"
    short.write_bytes(b"x" * SHORT_FILE)
    long.write_bytes(b"x" * (SHORT_FILE + 1))
    assert is_short(short, SHORT_FILE)
    assert not is_short(long, SHORT_FILE)
    assert not is_short(tmp_path, SHORT_FILE)
    assert not is_short("postgres://somewhere/table", SHORT_FILE)
    assert not is_short("\0", SHORT_FILE)

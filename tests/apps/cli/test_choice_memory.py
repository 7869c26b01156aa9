"""What was predicted for a job is kept: the same facts find it, others do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import blowfish_fast as bf
from blowfish_fast._support.compiler_watch import COMPILER
from blowfish_fast._support.source_stamps import source_stamp
from blowfish_fast.apps.cli import mechanism_choice
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.release_job import read_facts

SOURCES = mechanism_choice._sources.__wrapped__
"""What it is before a fixture replaces it, and as another process would find it."""
STATED = Job(domain=["32"], policy="threshold:3", workload="ranges:40", epsilon="1")


def chosen(**changed):
    job = STATED.overridden(Job(**changed))
    return mechanism_choice.choose_mechanism(read_facts(job), job)


@pytest.fixture
def predictions(monkeypatch):
    """Count how often mechanisms are predicted."""
    counted = []

    def compare(*words, **more):
        counted.append(1)
        return bf.compare(*words, **more)

    monkeypatch.setattr(mechanism_choice, "compare", compare)
    return counted


@pytest.mark.parametrize(
    "stated",
    [
        {},
        {"policy": "line", "workload": "prefixes"},
        {"policy": "full", "workload": "all_ranges"},
        {"policy": "add_remove", "workload": "identity"},
        {"workload": "ranges:40 | total", "rho": "0.1"},
        *({"mechanism": one} for one in ("laplace", "dawa", "queries", "edges")),
        {"mechanism": "ordered", "policy": "line"},
    ],
    ids=lambda one: "-".join(one.values()) or "best",
)
def test_the_same_facts_give_the_same_choice_without_predicting(stated, predictions):
    first, second = chosen(**stated), chosen(**stated)
    assert first[1:] == second[1:]
    assert first.mechanism.to_dict() == second.mechanism.to_dict()
    assert len(predictions) == ("mechanism" not in stated)


@pytest.mark.parametrize(
    "changed",
    [
        {"epsilon": "2"},
        {"policy": "full"},
        {"workload": "ranges:41"},
        {"domain": ["33"]},
        {"mechanism": "laplace"},
    ],
    ids=lambda one: next(iter(one)),
)
def test_other_facts_are_predicted(changed, empty_memory):
    chosen()
    chosen(**changed)
    assert len(json.loads(empty_memory.read_text())) == 2


def test_an_edit_of_the_package_is_noticed(predictions, monkeypatch):
    chosen()
    monkeypatch.setattr(mechanism_choice, "_sources", lambda: (1, 2, 3))
    chosen()
    assert len(predictions) == 2


@pytest.mark.parametrize("content", ["", "[1, 2]", "{", "\x00"])
def test_a_damaged_file_is_replaced(content, predictions, empty_memory):
    empty_memory.write_text(content)
    chosen()
    chosen()
    assert len(predictions) == 1


def test_a_folder_that_cannot_be_written_costs_time_only(predictions, monkeypatch):
    nowhere = Path("/dev/null/choices.json")
    monkeypatch.setattr(mechanism_choice, "memory_file", lambda: nowhere)
    assert chosen()[1:] == chosen()[1:]
    assert len(predictions) == 2


def test_only_the_latest_are_kept(empty_memory):
    for at in range(mechanism_choice.MOST_KEPT + 5):
        mechanism_choice.remember(f"key {at}", {"at": at})
    assert len(json.loads(empty_memory.read_text())) == mechanism_choice.MOST_KEPT
    assert mechanism_choice.recall("key 0") is None
    assert mechanism_choice.recall(f"key {at}") == {"at": at}


def test_many_queries_and_mechanisms_of_others_are_not_kept(empty_memory):
    line = bf.Domain(9)
    many = bf.workloads.Ranges.random(line, mechanism_choice.MOST_QUERIES + 1, rng=1)
    budget = bf.Laplace(bf.policies.Full(line), many, epsilon=1).budget
    assert mechanism_choice.key_of(bf.policies.Full(line), many, budget, "best") is None
    mechanism_choice.remember(None, {})
    assert not empty_memory.exists()


@pytest.mark.long
def test_a_second_dry_run_loads_no_compiler(tmp_path):
    code = (
        "import sys\n"
        "from blowfish_fast.apps.cli import mechanism_choice\n"
        "from blowfish_fast.apps.cli.main import run_command\n"
        "mechanism_choice._sources = lambda: (0, 0, 0)\n"
        "words = 'release --data demo --domain age=16:91:5 --policy line --workload '\n"
        "words += 'prefixes --epsilon 1 --dry-run --picture ages.png'\n"
        "assert run_command(words.split()) == 0\n"
        "heavy = ('numba', 'scipy', 'matplotlib', 'ibis', 'pandas', 'duckdb')\n"
        "print([one for one in heavy if one in sys.modules], file=sys.stderr)"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "BLOWFISH_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        for _ in range(2)
    ]
    assert found[0].stdout == found[1].stdout
    assert "numba" in found[0].stderr
    assert found[1].stderr.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "stated",
    [
        {"policy": "full"},
        {"policy": "add_remove"},
        {"policy": "line"},
        {"policy": "blocks:4"},
        {"policy": "threshold:3", "rho": "0.1"},
        {"policy": "full", "domain": ["6x7"]},
        {"policy": "attribute", "domain": ["a=0:4:1", "b=0:5:1"]},
    ],
    ids=lambda one: "-".join(map(str, one.values())),
)
def test_of_cells_noise_on_the_queries_need_not_be_weighed(stated):
    spent = {"rho": "0.1"} if "rho" in stated else {"epsilon": "1"}
    job = Job(**{"domain": ["32"], "workload": "identity", **spent, **stated})
    facts = read_facts(job)
    found = mechanism_choice.choose_mechanism(facts, job)
    whole = bf.compare(facts.policy, facts.workload, **spent)
    assert found.name == whole.best.name
    assert found.error == pytest.approx(whole.best.mean**0.5)


@pytest.mark.parametrize(
    ("workload", "cold", "warm"),
    [
        ("identity", False, False),
        ("ranges:100", False, False),
        ("ranges:500", False, True),
        ("all_ranges", True, True),
    ],
)
def test_a_dry_run_loads_the_compiler_only_where_that_pays(
    tmp_path, monkeypatch, workload, cold, warm
):
    for name in ("alone", "wanted"):
        monkeypatch.setattr(COMPILER, name, True)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(mechanism_choice, "choose_mechanism", lambda *words: words)
    stated = {"data": "demo", "domain": ["100"], "policy": "full", "epsilon": "1"}
    job = Job(workload=workload, **stated)
    facts = read_facts(job)
    mechanism_choice.choose_with_progress(facts, job)
    assert COMPILER.wanted
    mechanism_choice.choose_with_progress(facts, job, short=True)
    assert COMPILER.wanted is cold
    # As Numba names what it keeps of the kernels that predictions need.
    (tmp_path / "folder").mkdir()
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    index = tmp_path / "folder" / f"weight_sweeps._sweep-84.{python}.nbi"
    index.write_text(source_stamp("blowfish_fast.kernels.tree_scaling.weight_sweeps"))
    mechanism_choice.choose_with_progress(facts, job, short=True)
    assert COMPILER.wanted is warm


@pytest.mark.parametrize(
    ("stated", "shown"),
    [
        ({}, "spinner"),
        ({"records": 300}, "counter"),
        ({"records": 300, "mechanism": "best"}, "counter"),
        ({"records": 300, "mechanism": "laplace"}, "spinner"),
    ],
    ids=["facts", "records", "best", "named"],
)
def test_steps_are_counted_where_several_mechanisms_are_tried(
    stated, shown, monkeypatch
):
    asked = []

    def noted(name):
        original = getattr(mechanism_choice, name)
        return lambda text: asked.append(name) or original(text)

    for name in ("spinner", "counter"):
        monkeypatch.setattr(mechanism_choice, name, noted(name))
    job = STATED.overridden(Job(**stated))
    mechanism_choice.choose_with_progress(read_facts(job), job)
    assert asked == [shown]


def test_an_edit_of_any_file_is_seen(tmp_path, monkeypatch):
    old, new = tmp_path / "old.py", tmp_path / "room" / "new.py"
    new.parent.mkdir()
    for path, at in ((old, 7), (new, 9)):
        path.write_text("pass\n")
        os.utime(path, ns=(at, at))
    monkeypatch.setattr(bf, "__file__", str(tmp_path / "__init__.py"))
    assert SOURCES() == (2, 10, 9)
    os.utime(old, ns=(11, 11))
    assert SOURCES() == (2, 10, 11)

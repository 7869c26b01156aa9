"""``blowfish ledger``: what a ledger says, and whether it still says it."""

from __future__ import annotations

import json
import sqlite3

import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.cli.application import application

RUN = CliRunner()


@pytest.fixture
def path(tmp_path):
    line = bf.Domain(4)
    policy = bf.policies.Full(line)
    found = tmp_path / "some.ledger"
    with bf.Ledger(found, epsilon=1, policy=policy) as ledger:
        ledger.allot("ann", 0.5)
        laplace = bf.Laplace(policy, bf.workloads.Identity(line), epsilon=0.25)
        ledger.release(laplace, [3, 0, 2, 5], "first", analyst="ann")
    return found


def run(*words):
    return RUN.invoke(application, ["ledger", *map(str, words)], env={"COLUMNS": "200"})


def test_an_intact_ledger_shows_its_head(path):
    done = run("verify", path)
    assert done.exit_code == 0, done.output
    assert "intact: 1 charges, eps = 0.25 of 1 spent" in done.output
    found = json.loads(run("verify", path, "--json").output)
    assert found["intact"]
    assert found["head"] in done.output
    assert run("verify", path, "--head", found["head"]).exit_code == 0


def test_a_head_that_is_gone_and_a_changed_entry_are_told(path):
    done = run("verify", path, "--head", "00" * 32)
    assert done.exit_code == 1
    assert "cut off" in " ".join(done.output.split())
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER log_is_fixed")
    connection.execute("UPDATE log SET cost = 1 WHERE kind = 'charge'")
    connection.commit()
    connection.close()
    done = run("verify", path, "--json")
    assert done.exit_code == 1
    assert not json.loads(done.output)["intact"]


def test_a_file_that_is_none_is_told(tmp_path):
    assert run("verify", tmp_path / "nothing").exit_code == 1
    (tmp_path / "text").write_text("no ledger")
    done = run("verify", tmp_path / "text")
    assert done.exit_code == 1
    assert not (tmp_path / "nothing").exists()


def test_the_history_lists_every_charge(path):
    done = run("history", path)
    assert done.exit_code == 0, done.output
    for word in ("laplace", "ann", "0.25", "stored", "first"):
        assert word in done.output
    (charge,) = json.loads(run("history", path, "--json").output)["charges"]
    assert charge["request"] == "first"

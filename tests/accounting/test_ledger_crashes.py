"""Processes that die at every point: nothing refunded, nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import sys
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import PolicyError
from tests.own_process import printed_by

from . import crashing

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.long,
]

STATES = {
    "inside the reserve": None,
    "between reserve and draw": "reserved",
    "between draw and store": "reserved",
    "inside the store": "reserved",
    "between store and return": "stored",
}


def run(scenario, folder):
    printed_by(crashing, scenario, folder)


@pytest.fixture(scope="module")
def remains(tmp_path_factory):
    folder = tmp_path_factory.mktemp("points")
    run("points", folder)
    return folder


@pytest.mark.parametrize(("point", "state"), STATES.items())
def test_a_kill_leaves_the_charge_and_a_retry_finishes_it(remains, point, state):
    charged = Fraction(0) if state is None else Fraction(1, 100)
    noted = remains / f"{point}.drawn"
    with bf.Ledger(remains / point, epsilon=1, policy=crashing.FULL) as ledger:
        ledger.verify()
        assert ledger.spent == charged
        assert [entry.state for entry in ledger.history()] == ([state] if state else [])
        release = ledger.release(crashing.mechanism(), crashing.COUNTS, "question")
        assert ledger.spent == Fraction(1, 100)
        assert [entry.state for entry in ledger.history()] == ["stored"]
        ledger.verify()
    drawn_before = noted.exists()
    assert drawn_before == (point not in list(STATES)[:2])
    if drawn_before:
        same = np.array_equal(release.estimate, json.loads(noted.read_text()))
        assert same == (state == "stored")


def test_a_kill_leaves_all_of_a_batch_charged_or_nothing(tmp_path):
    run("together", tmp_path)
    states = {
        "inside the reserve": [],
        "between reserve and draw": ["reserved"] * 3,
        "inside the store": ["reserved"] * 3,
        "between store and return": ["stored"] * 3,
    }
    asked = [(crashing.mechanism(), crashing.COUNTS, day) for day in crashing.TOGETHER]
    for point, state in states.items():
        with bf.Ledger(tmp_path / point) as ledger:
            ledger.verify()
            assert [entry.state for entry in ledger.history()] == state, point
            assert ledger.spent == Fraction(len(state), 100)
            # One alone finishes under its own charge, and the rest under theirs.
            first = ledger.release(*asked[0])
            releases = ledger.release_together(asked)
            assert np.array_equal(releases[0].estimate, first.estimate)
            assert [entry.state for entry in ledger.history()] == ["stored"] * 3
            assert ledger.spent == Fraction(3, 100)
            ledger.verify()


def test_after_a_kill_the_charged_people_finish_and_others_are_refused_unpaid(tmp_path):
    run("of_people", tmp_path)
    mechanism = crashing.mechanism(policy=crashing.PERSONS)
    with bf.Ledger(tmp_path / "people") as ledger:
        assert [entry.state for entry in ledger.history()] == ["reserved"]
        for request in ("another", "question"):
            with pytest.raises(PolicyError, match="about whom 'patient' names"):
                ledger.release(mechanism, crashing.people("doctor"), request)
        ledger.release(mechanism, crashing.people("patient"), "question")
        assert ledger.spent == Fraction(1, 100), "paid once, by whoever was charged"
        assert [entry.state for entry in ledger.history()] == ["stored"]
        ledger.verify()


def test_a_storm_of_kills_loses_and_repeats_nothing(tmp_path):
    run("storm", tmp_path)
    crashing.check_storm(tmp_path)


def test_processes_that_ask_the_same_get_the_same_for_one_charge(tmp_path):
    run("same", tmp_path)
    found = [json.loads(one.read_text()) for one in tmp_path.glob("found *")]
    assert len(found) == 4
    assert all(one == found[0] for one in found)
    with bf.Ledger(tmp_path / "same") as ledger:
        ledger.verify()
        assert ledger.spent == Fraction(6, 100)
        assert [entry.state for entry in ledger.history()] == ["stored"] * 6


def test_processes_that_race_for_the_last_epsilon_never_overspend(tmp_path):
    run("race", tmp_path)
    assert sum(json.loads((tmp_path / "paid").read_text())) == 5
    with bf.Ledger(tmp_path / "race") as ledger:
        assert ledger.remaining == 0
        assert len(ledger.history()) == 5
        ledger.verify()
    assert not list(tmp_path.glob(".race*"))


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and address limits")
def test_too_little_memory_is_refused_uncharged(tmp_path):
    run("memory", tmp_path)
    assert (tmp_path / "refused").read_text() == "both"

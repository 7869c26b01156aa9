"""The measurements of the table, small: each can fail."""

from __future__ import annotations

import os
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

import blowfish_fast as bf

from . import bad_inputs, coverage, ledger_stress, measure

LINE = bf.Domain(16)
LAPLACE = bf.Laplace(bf.policies.Full(LINE), bf.workloads.Identity(LINE), epsilon=1)


def test_every_measurement_has_goal_figure_and_verdict():
    with patch.object(bad_inputs, "COUNTS", {"NaN": bad_inputs.COUNTS["NaN"]}):
        entry = measure.measure_inputs()
    assert {"goal", "measured", "passed"} <= entry.keys()
    assert entry["passed"], entry["otherwise"]
    assert set(measure.MEASURES) >= {"mutants", "coverage", "kills", "concurrency"}


def test_an_input_that_is_taken_by_mistake_is_counted():
    good = {"good after all": bad_inputs.GOOD}
    with patch.object(bad_inputs, "COUNTS", good):
        entry = measure.measure_inputs()
    assert not entry["passed"]
    assert {one[2] for one in entry["otherwise"]} == {"accepted"}


def test_intervals_miss_as_rarely_as_they_say():
    data = np.arange(16)
    misses = coverage.missed(LAPLACE, data, 200)
    assert misses.max() <= coverage.allowed(200)


def test_intervals_that_are_too_short_are_seen():
    right = bf.Release.intervals

    def short(self, workload, confidence=0.95, *, of):
        return right(self, workload, confidence=0.7, of=of)

    with patch.object(bf.Release, "intervals", short):
        misses = coverage.missed(LAPLACE, np.arange(16), 200)
    assert misses.max() > coverage.allowed(200)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_few_kills_lose_nothing(tmp_path):
    found = ledger_stress.kills(tmp_path, 3, 30)
    assert found["kills"] >= 3
    assert found["uncharged"] == found["lost"] == found["changed"] == 0


def test_analysts_share_one_budget(tmp_path):
    with patch.object(ledger_stress, "ANALYSTS", 4):
        paid, rate, spent = ledger_stress.analysts(tmp_path, budget=12)
    assert (paid, spent) == (12, Fraction(12, 100))
    assert rate > 0
    assert min(ledger_stress.both_rates(tmp_path, rounds=1)) > 0


def test_charges_are_timed_in_tenths(tmp_path):
    first, last = ledger_stress.many_charges(tmp_path, 20)
    assert first > 0
    assert last > 0

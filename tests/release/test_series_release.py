"""Totals, windows and epochs of a series as releases."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import IntervalError

AGES = bf.Domain(3, names=["age"])
POLICY = bf.policies.AddRemove(AGES)
CELLS = bf.workloads.Identity(AGES)


def _rows(*, frozen):
    ledger = bf.Ledger(None, rho=1, policy=POLICY)
    weeks = bf.Series(
        ledger, column="received", every="week", totals=True, frozen=frozen
    )
    gaussian = bf.Gaussian(POLICY, CELLS, rho="0.1")
    counts = [[5, 0, 1], [7, 7, 7]]
    for number in (1, 2):
        weeks.release(f"2026-W{number:02}", gaussian, counts[:number], rng=number)
    return weeks


def test_what_may_have_changed_grants_intervals_of_the_noise_only():
    total = _rows(frozen=False).total("2026-W02")
    assert total.interval_kind(CELLS) == "noise"
    assert not total.holds_truth(CELLS).any()
    assert total.intervals(CELLS).shape == (3, 2)
    with pytest.raises(IntervalError, match="come late"):
        total.intervals(CELLS, of="truth")
    assert "come late" in total.interval_sentence("noise")


def test_what_is_frozen_grants_intervals_of_the_truth():
    weeks = _rows(frozen=True)
    total = weeks.total("2026-W02")
    assert total.interval_kind(CELLS) == "truth"
    bounds = total.intervals(CELLS, of="truth")
    assert bounds.min() >= 0
    together = total.intervals(CELLS, together=True)
    assert (np.diff(together) >= np.diff(bounds)).all()
    assert "true count" in total.interval_sentence("truth")
    assert total.where(age=0).count() == pytest.approx(total.estimate[0])


def test_a_total_promises_what_the_whole_series_costs():
    total = _rows(frozen=True).total("2026-W02")
    assert total.guarantee.rho == Fraction(1, 10)
    assert "Of a series of releases one record is protected" in str(total.guarantee)
    assert "2026-W01 to 2026-W02, from 2 releases, rho = 0.1" in repr(total)

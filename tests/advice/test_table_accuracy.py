"""Typical shares of misplaced records, on made-up surveys."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.advice import table_accuracy
from blowfish_fast.errors import InputError, WorkloadError

SURVEY = bf.Domain((6, 5, 4), names=["age", "job", "pay"])
ASKED = bf.workloads.Tables(SURVEY, ways=2)
POLICY = bf.policies.AddRemove(SURVEY)


@pytest.mark.long
def test_larger_budgets_misplace_less_and_the_least_that_suffices_is_named():
    terms = {"records": 3_000, "amounts": ["2", "0.05"]}
    found = bf.translate_tables(POLICY, ASKED, misplaced=0.1, **terms)
    few, many = found
    assert (few.amount, many.amount, len(found)) == (0.05, 2.0, 2)
    assert many.plan < few.plan
    assert many.data < few.data
    assert found.least == many
    assert many.misplaced == (many.plan if many.best == "plan" else many.data)
    assert "at most 0.1: 2" in str(found)
    hard = bf.translate_tables(POLICY, ASKED, misplaced=0, **terms)
    assert hard.least is None
    assert "none of these" in str(hard)
    assert bf.translate_tables(POLICY, ASKED, **terms).least is None


def test_many_records_are_tried_with_fewer_and_as_much_less_noise(monkeypatch):
    monkeypatch.setattr(table_accuracy, "MOST_RECORDS", 2_000)
    terms = {"amounts": ["0.001"], "currency": "rho"}
    (many,) = bf.translate_tables(POLICY, ASKED, records=20_000, **terms)
    (few,) = bf.translate_tables(POLICY, ASKED, records=2_000, **terms)
    assert many.plan < few.plan / 3


def test_made_up_records_lie_in_their_cells_and_depend_on_each_other():
    cells = table_accuracy.made_up_cells((6, 5), 4_000, np.random.default_rng(1))
    assert cells.shape == (2, 4_000)
    assert (cells.min(axis=1) >= 0).all()
    assert (cells.max(axis=1) < [6, 5]).all()
    together = np.histogram2d(*cells, bins=(6, 5))[0] / 4_000
    alone = np.outer(together.sum(axis=1), together.sum(axis=0))
    assert np.abs(together - alone).sum() / 2 > 0.03


def test_bad_terms_are_refused():
    with pytest.raises(WorkloadError, match="which tables are asked"):
        bf.translate_tables(POLICY, bf.workloads.Identity(SURVEY), records=10)
    with pytest.raises(InputError, match="at least one budget"):
        bf.translate_tables(POLICY, ASKED, records=10, amounts=[])
    with pytest.raises(InputError, match="misplaced must"):
        bf.translate_tables(POLICY, ASKED, records=10, misplaced=2)
    with pytest.raises(InputError, match="currency must be"):
        bf.translate_tables(POLICY, ASKED, records=10, currency="coins")

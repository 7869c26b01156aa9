"""The rows of sums, means and shares: every edge of every policy is paid for."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.accounting.composition import EPSILON, RHO
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.explorer.planning import Planner
from blowfish_fast.apps.explorer.questions import read_question
from blowfish_fast.apps.explorer.same_question import canonical
from blowfish_fast.audit import audit_measurements
from blowfish_fast.measure.strategies.answers import Answers

WARD = {"name": "ward", "levels": ["a", "b", "c"]}
COST = {"name": "cost", "cells": {"start": 0, "stop": 40, "width": 5}}
NEAR = {"kind": "threshold", "theta": 2}
TABLES = {
    "whole records": {},
    "values that move a little": {"policies": {"cost": NEAR}},
    "who is there": {"presence": True},
    "a little, and who is there": {"policies": {"cost": NEAR}, "presence": True},
}


def planned(table, kind, currency=EPSILON):
    about = {"kind": kind, "table": "visits", "attribute": "cost", "by": "ward"}
    more = {"low": 20} if kind == "share" else {}
    cost = {currency.name: 0.5}
    question = read_question({**about, **more, "cost": cost})
    return Planner(currency).plan(table, canonical(table, question))


def prices(plan):
    counts = np.arange(plan.policy.domain.size).reshape(plan.policy.domain.shape)
    return audit_measurements(plan.mechanism, counts, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("currency", [EPSILON, RHO], ids=lambda one: one.name)
@pytest.mark.parametrize("kind", ["mean", "sum", "share"])
@pytest.mark.parametrize("policy", TABLES)
def test_no_edge_costs_more_than_was_charged(policy, kind, currency):
    table = {"name": "visits", "attributes": [WARD, COST], **TABLES[policy]}
    audited = prices(planned(as_table(table), kind, currency))
    assert audited
    assert all(price.passed for price in audited)


def test_a_record_that_leaves_one_group_for_another_counts_twice(monkeypatch):
    # The plant: noise for the record that comes, none for the one that goes.
    plain = Answers._reach
    monkeypatch.setattr(
        Answers, "_reach", lambda self, policy: plain(self, policy) // 2
    )
    table = as_table({"name": "visits", "attributes": [WARD, COST]})
    plan = planned(table, "mean")
    assert not all(price.passed for price in prices(plan))

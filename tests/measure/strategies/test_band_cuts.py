"""Edges that queries cut, in closed form: against every edge, one by one."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.strategies.edge_cuts import cut_edges, is_forest
from blowfish_fast.policies import ABSENT

LINE = bf.Domain(9)
POLICIES = [
    bf.policies.AddRemove(LINE),
    bf.policies.Full(LINE),
    bf.policies.Line(LINE),
    bf.policies.Threshold(LINE, theta=3),
    bf.policies.WithAbsent(bf.policies.Threshold(LINE, theta=3)),
    bf.policies.WithAbsent(bf.policies.Line(LINE)),
    bf.policies.Blocks(LINE, [0, 0, 0, 1, 1, 2, 2, 2, 2]),
]
WORKLOADS = [
    bf.workloads.Identity(LINE),
    bf.workloads.Prefixes(LINE),
    bf.workloads.AllRanges(LINE),
    bf.workloads.Total(LINE),
    bf.workloads.Ranges.random(LINE, 60, rng=1),
]


def slowly(policy, workload):
    """Follow every query along every edge."""
    rows = np.array([workload.answer(one) for one in np.eye(9)])
    found = 0.0
    for start, end in np.concatenate(list(policy.edges())).tolist():
        ends = [one for one in (start, end) if one != ABSENT]
        seen = rows[ends[0]] - (rows[ends[1]] if len(ends) == 2 else 0.0)
        found += (seen**2).sum()
    return found


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: type(one).__name__)
def test_closed_forms_count_what_is_cut(policy, workload):
    form = workload.form(Buckets.single_cells(9))
    assert cut_edges(policy, form) == pytest.approx(slowly(policy, workload))


def test_other_edges_and_queries_have_no_closed_form():
    ring = bf.policies.Graph(LINE, [[i, (i + 1) % 9] for i in range(9)])
    cells = Buckets.single_cells(9)
    assert cut_edges(ring, WORKLOADS[0].form(cells)) is None
    apart = bf.policies.Blocks(LINE, [0, 1, 0, 1, 0, 1, 0, 1, 0])
    assert cut_edges(apart, WORKLOADS[0].form(cells)) is None
    weighted = bf.workloads.Linear(LINE, np.arange(9)[None, :])
    assert cut_edges(POLICIES[1], weighted.form(cells)) is None
    pairs = Buckets(np.array([0, 2, 4, 9]))
    halves = bf.workloads.Prefixes(LINE).form(pairs)
    assert cut_edges(bf.policies.Line(bf.Domain(3)), halves) is None


def test_forests_are_known():
    forests = [is_forest(one) for one in POLICIES]
    assert forests == [True, False, True, False, False, False, False]
    assert is_forest(bf.policies.Blocks(LINE, [0, 0, 1, 1, 2, 2, 3, 3, 4]))

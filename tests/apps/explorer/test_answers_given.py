"""Quantile intervals of the explorer hold the truth whenever its totals do."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.explorer import Plan, TableSpec, read_question
from blowfish_fast.apps.explorer.answers_given import (
    _alpha_of_all,
    _never_falling,
    _quantiles,
    answer_from,
)
from blowfish_fast.apps.explorer.layout import lay_out
from blowfish_fast.apps.explorer.planning_work import weigh

PARTS = [0.1, 0.5, 0.9]
SMALL = TableSpec(name="t", attributes=[{"name": "a", "edges": [0, 1, 4, 5]}])
ASKED = {"kind": "quantiles", "table": "t", "attribute": "a", "q": PARTS}
SPENDING = {**ASKED, "cost": {"epsilon": 1}}
TOGETHER = {**ASKED, "cost": {"alpha": 30, "beta": 0.1, "scope": "simultaneous"}}
EACH = {**ASKED, "cost": {"alpha": 30, "beta": 0.1, "scope": "per_query"}}


def places_reached(counts, edges):
    """Return where each part of all records is reached: exactly, bin by bin."""
    found = []
    for part in PARTS:
        wanted, before = part * sum(counts), 0
        for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
            if count and before + count >= wanted:
                found.append(low + (wanted - before) / count * (high - low))
                break
            before += count
    return np.array(found)


@pytest.mark.long
@pytest.mark.parametrize("fitted", [False, True])
def test_every_small_histogram_and_every_noise_within_alpha_is_covered(fitted):
    layout = lay_out(SMALL, read_question(SPENDING))
    widths = []
    for counts in itertools.product(range(4), repeat=3):
        if not sum(counts):
            continue
        truth = places_reached(counts, [0, 1, 4, 5])
        for noise in itertools.product((-1.5, -0.5, 0.0, 1.5), repeat=3):
            totals = np.cumsum(counts) + np.array(noise)
            totals = _never_falling(totals) if fitted else totals
            values, intervals = _quantiles(totals, 1.5, layout, PARTS)
            assert (intervals[:, 0] <= truth).all(), (counts, noise)
            assert (truth <= intervals[:, 1]).all(), (counts, noise)
            assert (intervals[:, 0] <= values).all()
            assert (values <= intervals[:, 1]).all()
            widths.append(np.diff(intervals))
    # They tell something: not all of them span the whole axis.
    assert np.mean(widths) < 4.9


def release_of(epsilon):
    ages = bf.Domain.from_edges([0, 1, 4, 5], name="a")
    asked = bf.workloads.Prefixes(ages)
    mechanism = bf.Laplace(bf.policies.AddRemove(ages), asked, epsilon=epsilon)
    return mechanism.release([300, 900, 40], rng=1), asked


@pytest.mark.parametrize(
    ("question", "miss"), [(SPENDING, 0.05 / 3), (EACH, 0.1 / 3), (TOGETHER, None)]
)
def test_all_totals_lie_within_alpha_at_once(question, miss):
    """One interval for each total would hold all of them less often."""
    release, asked = release_of(1)
    read = read_question(question)
    confidence = 0.95 if question is SPENDING else 0.9
    alpha = _alpha_of_all(release, asked, read.cost, confidence)
    if miss is None:
        assert alpha == 30
        return
    low, high = release.intervals(asked, 1 - miss).T
    assert alpha == pytest.approx((high - low).max() / 2)


def test_exact_totals_have_exact_quantiles():
    release, asked = release_of(10**6)
    layout = lay_out(SMALL, read_question(SPENDING))
    exact = bf.Laplace(bf.policies.AddRemove(asked.domain), asked, epsilon=10**6)
    work = weigh(layout, exact.policy)
    plan = Plan(layout, exact.policy, asked, exact, Fraction(0), True, [], work)
    answer = answer_from(plan, release, "x")
    truth = places_reached([300, 900, 40], [0, 1, 4, 5])
    np.testing.assert_allclose(answer.values, truth)
    assert (answer.intervals[:, 0] <= truth).all()
    assert (truth <= answer.intervals[:, 1]).all()

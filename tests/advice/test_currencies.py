"""Advice in both currencies: comparisons, accuracies, recommendations, risk."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import EpsilonError, InputError
from blowfish_fast.measure.strategies import Answers
from tests.reference.table_algebra import table_matrix

LINE = bf.Domain(64)
FULL = bf.policies.Full(LINE)
RANGES = bf.workloads.AllRanges(LINE)
FULL_BUDGET = bf.budgets.Budget.stated(epsilon=1, delta="1e-9")


def test_comparisons_in_rho_predict_gaussian_noise():
    table = bf.compare(FULL, RANGES, rho="0.01")
    assert "rho = 0.01" in table.heading
    assert table["cells"].mechanism.budget.power == 2
    # Two cells move by one: sigma^2 = 1 / rho for each.
    cells = bf.compare(FULL, bf.workloads.Identity(LINE), rho="0.01")["cells"]
    assert cells.mean == pytest.approx(100 * 63 / 64, rel=1e-6)
    assert table["queries"].mechanism is None or table["queries"].total > 0


def test_accuracies_in_rho_hold_at_the_rho_that_is_named():
    line = bf.policies.Line(LINE)
    asked = bf.workloads.Prefixes(LINE)
    found = bf.translate(line, asked, alpha=50, beta=0.05, currency="rho")
    assert found.currency == "rho"
    assert found.best.name == "ordered"
    assert 0.0015 < float(found.rho) < 0.003
    # Draws lower a price in epsilon alone.
    drawn = bf.translate(line, asked, alpha=50, beta=0.05, currency="rho", samples=200)
    assert drawn.rho == found.rho
    with pytest.raises(EpsilonError, match="has no epsilon of its own"):
        _ = found.epsilon
    recipe = found.best.mechanism
    assert recipe.budget.amount == found.rho
    missed = sum(
        np.abs(
            asked.answer(recipe.release(np.zeros(64, dtype=int), rng=seed).estimate)
        ).max()
        > 50
        for seed in range(60)
    )
    assert missed <= 8
    with pytest.raises(InputError, match='currency must be "epsilon" or "rho"'):
        bf.translate(line, asked, alpha=50, beta=0.05, currency="delta")


def test_comparisons_set_both_currencies_side_by_side():
    table = bf.compare(FULL, RANGES, epsilon=1, delta="1e-9")
    alone = {
        "cells": bf.compare(FULL, RANGES, epsilon=1)["cells"].total,
        "cells (rho)": bf.compare(
            FULL, RANGES, epsilon=FULL_BUDGET, mechanisms=["cells"]
        )["cells"].total,
    }
    for name, total in alone.items():
        assert table[name].total == pytest.approx(total)
    assert table["cells (rho)"].mechanism.budget.delta == Fraction(1, 10**9)
    assert table.best.mechanism.budget.power == 1
    assert "eps = 1, or rho = 0.0149731" in table.heading
    assert "Laplace noise is better for this one release" in str(table)
    assert table.to_dict()["because"] == list(table.because)
    line = bf.Domain(2048)
    far = bf.policies.Threshold(line, theta=256)
    asked = bf.workloads.Prefixes(line)
    long_edges = bf.compare(far, asked, epsilon=1, delta="1e-9", mechanisms=["ordered"])
    assert long_edges.best.name == "ordered (rho)"
    assert "Gaussian noise is better for this one release" in str(long_edges)


def test_accuracies_are_priced_in_both_currencies_at_a_delta():
    asked = bf.workloads.Prefixes(LINE)
    line = bf.policies.Line(LINE)
    both = bf.translate(line, asked, alpha=50, beta=0.05, delta="1e-9")
    assert both.epsilon == bf.translate(line, asked, alpha=50, beta=0.05).epsilon
    assert both.in_rho.currency == "rho"
    implied = float(bf.budgets.epsilon_of(both.in_rho.rho, "1e-9"))
    said = str(both)
    assert f"epsilon {implied:.6g} at delta = 1e-09: Laplace noise costs less" in said
    assert said.count("mechanism") == 2
    with pytest.raises(EpsilonError, match="delta must lie above 0"):
        bf.translate(line, asked, alpha=50, beta=0.05, delta=2)
    apart = bf.policies.Blocks(LINE, np.arange(64))
    free = bf.translate(apart, asked, alpha=50, beta=0.05, delta="1e-9")
    assert free.free
    assert free.in_rho is None


def test_recommendations_show_both_currencies_and_say_which_is_better():
    advice = bf.recommend(FULL, RANGES, epsilon=1, delta="1e-9")
    assert advice["dawa"].mechanism.budget.power == 1
    assert advice["dawa (rho)"].mechanism.budget.power == 2
    assert advice["laplace (rho)"].mechanism.name == "gaussian"
    assert advice.best.mechanism.budget.power == 1
    assert any("Laplace noise is better for this one release" in one
               for one in advice.because)  # fmt: skip
    assert "delta = 1e-09" in " ".join(advice.because)
    alone = bf.recommend(FULL, RANGES, rho="0.01")
    assert alone.best.mechanism.budget.power == 2
    line = bf.Domain(512)
    long_edges = bf.policies.Threshold(line, theta=100)
    prefixes = bf.workloads.Prefixes(line)
    advice = bf.recommend(long_edges, prefixes, epsilon=1, delta="1e-9")
    noise = [
        bf.mechanisms.OrderedHierarchical(
            long_edges, prefixes, fit=None, **budget
        ).expected_total_error()
        for budget in ({"epsilon": 1}, {"epsilon": 1, "delta": "1e-9"})
    ]
    gaussian = noise[0] > 1.05**2 * noise[1]
    assert (advice.best.mechanism.budget.power == 2) == gaussian


def test_long_edges_call_for_gaussian_noise():
    """All rows of one edge at once: the ordered strategy on a long threshold."""
    line = bf.Domain(512)
    policy = bf.policies.Threshold(line, theta=256)
    asked = bf.workloads.Prefixes(line)
    pure = bf.Ordered(policy, asked, epsilon=1, fit=None)
    concentrated = bf.Ordered(policy, asked, epsilon=1, delta="1e-9", fit=None)
    times = pure.expected_total_error() / concentrated.expected_total_error()
    assert times == pytest.approx(15.3, rel=0.05)


def test_a_hundred_questions_from_one_ledger_gain_six_times():
    policy = bf.policies.AddRemove(LINE)
    cells = bf.workloads.Identity(LINE)
    rho = bf.budgets.rho_of(epsilon=1, delta="1e-9")
    pure = bf.Laplace(policy, cells, epsilon="0.01").expected_error()[0]
    concentrated = bf.Gaussian(policy, cells, rho=rho / 100).expected_error()[0]
    assert pure / concentrated == pytest.approx(5.99, rel=0.05)


def test_all_tables_up_to_three_ways_gain_five_times():
    """41 tables of 6 attributes: squares add up where absolute moves do."""
    domain = bf.Domain((2,) * 6, names=list("abcdef"))
    policy = bf.policies.Full(domain)
    ways = [one for n in (1, 2, 3) for one in itertools.combinations(range(6), n)]
    rows = [table_matrix(domain.shape, one) for one in ways]
    asked = bf.workloads.Linear(domain, np.concatenate(rows))
    pure = Answers.under(policy, asked)
    gaussian = bf.budgets.Budget.stated(epsilon=1, delta="1e-9")
    each = [pure.scales(policy, one).variances.max() for one in (Fraction(1), gaussian)]
    assert len(ways) == 41
    assert each[0] / each[1] == pytest.approx(4.91, rel=0.05)


def test_beliefs_in_rho_need_a_delta_and_grow_with_the_square_of_the_distance():
    with pytest.raises(EpsilonError, match="state delta"):
        bf.risk(0.1, rho="0.01")
    near = bf.risk(0.1, rho="0.01", delta="1e-9")
    far = bf.risk(0.1, rho="0.01", delta="1e-9", steps=2)
    same = bf.risk(0.1, rho="0.04", delta="1e-9")
    assert 0.1 < near < far == same
    assert near.delta == Fraction(1, 10**9)
    both = bf.risk(0.1, epsilon=1, delta="1e-9")
    assert both == bf.risk(
        0.1, rho=bf.budgets.rho_of(epsilon=1, delta="1e-9"), delta="1e-9"
    )
    spread = bf.risk([0.25] * 4, rho="0.01", delta="1e-9",
                     policy=bf.policies.Line(bf.Domain(4)))  # fmt: skip
    assert spread.shape == (4,)
    assert (spread > 0.25).all()


def test_beliefs_are_told_for_both_noises_where_epsilon_and_delta_are_stated():
    both = bf.risk(0.1, epsilon=1, delta="1e-9", queries=2, policy=FULL)
    assert both.pure == bf.risk(0.1, epsilon=1, queries=2, policy=FULL)
    assert both < both.pure
    once = bf.risk(0.1, epsilon=1, delta="1e-9", policy=FULL)
    assert once > once.pure
    assert repr(both).endswith(f"but for 1e-09; {float(both.pure):.6g} without delta)")
    assert bf.risk(0.1, rho="0.01", delta="1e-9").pure is None
    assert bf.risk([0.5, 0.5], epsilon=1, delta="1e-9").shape == (2,)


@pytest.mark.parametrize(
    ("prior", "over"),
    [
        ([0.5, 0.6], 2),
        ([1.5, -0.5], 2),
        ([float("nan"), 1.0], 2),
        ([0.5, 0.5], 3),
        ([[0.5], [0.5]], 2),
        ([], None),
        ([0.5, 0.1], None),
    ],
)
def test_beliefs_that_are_no_distribution_are_refused_in_rho_too(prior, over):
    policy = None if over is None else bf.policies.Full(bf.Domain(over))
    for budget in ({"rho": "0.01"}, {"epsilon": 1}):
        with pytest.raises(InputError, match="add up to 1"):
            bf.risk(prior, **budget, delta="1e-9", policy=policy)
    with pytest.raises(InputError, match="one for each cell"):
        bf.risk(["many"], rho="0.01", delta="1e-9", policy=policy)

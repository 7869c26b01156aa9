"""Advice in both currencies: comparisons, accuracies, recommendations, risk."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import EpsilonError, InputError

LINE = bf.Domain(64)
FULL = bf.policies.Full(LINE)
RANGES = bf.workloads.AllRanges(LINE)


def test_comparisons_in_rho_predict_gaussian_noise():
    table = bf.compare(FULL, RANGES, rho="0.01")
    assert "rho = 0.01" in table.heading
    assert table["vertex"].mechanism.budget.power == 2
    # Two cells move by one: sigma^2 = 1 / rho for each.
    cells = bf.compare(FULL, bf.workloads.Identity(LINE), rho="0.01")["vertex"]
    assert cells.mean == pytest.approx(100 * 63 / 64, rel=1e-6)
    assert table["queries"].mechanism is None or table["queries"].total > 0


def test_accuracies_in_rho_hold_at_the_rho_that_is_named():
    line = bf.policies.Line(LINE)
    asked = bf.workloads.Prefixes(LINE)
    found = bf.translate(line, asked, alpha=50, beta=0.05, currency="rho")
    assert found.currency == "rho"
    assert found.best.name == "ordered"
    assert 0.0015 < float(found.rho) < 0.003
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
    rho = float(bf.budgets.rho_of(epsilon=1, delta="1e-9"))
    moves = 2 * 41
    assert 2 * moves**2 / (moves / (2 * rho)) == pytest.approx(4.91, rel=0.05)


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

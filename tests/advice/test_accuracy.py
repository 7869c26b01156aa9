"""From accuracy to epsilon: promises are kept, cheapest first, and nothing is read."""

from __future__ import annotations

import math

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.advice import calibration as translation
from blowfish_fast.errors import EpsilonError, InputError

LINE = bf.Domain(40)
PREFIXES = bf.workloads.Prefixes(LINE)
CELLS = bf.workloads.Identity(LINE)


def misses(mechanism, workload, alpha, releases=150):
    """Return how often the largest error of a release exceeds alpha."""
    data = np.arange(LINE.size) * 3
    truth = workload.answer(data)
    missed = 0
    for seed in range(releases):
        answer = mechanism.release(data, rng=seed).answer(workload)
        missed += np.abs(answer - truth).max() > alpha
    return missed


@pytest.mark.parametrize("samples", [0, 1000], ids=["bound", "simulation"])
@pytest.mark.parametrize("workload", [PREFIXES, CELLS], ids=["prefixes", "cells"])
@pytest.mark.parametrize("policy", ["line", "threshold", "full", "add_remove"])
def test_a_promise_is_kept_and_costs_little_more_than_needed(policy, workload, samples):
    over = {
        "line": bf.policies.Line(LINE),
        "threshold": bf.policies.Threshold(LINE, theta=5),
        "full": bf.policies.Full(LINE),
        "add_remove": bf.policies.AddRemove(LINE),
    }[policy]
    found = bf.translate(over, workload, alpha=30, beta=0.1, samples=samples)
    missed = misses(found.best.mechanism, workload, 30)
    assert missed <= 15 + 3 * math.sqrt(150 * 0.1 * 0.9)
    # At two thirds of the epsilon the promise of a simulation would be broken.
    if samples:
        less = found.best.mechanism.at_epsilon(found.best.epsilon * 2 / 3)
        assert misses(less, workload, 30) > 15


def test_the_single_draw_needs_the_epsilon_of_its_law():
    one = bf.Domain(2)
    total = bf.workloads.Ranges(one, [0], [1])
    found = bf.translate(bf.policies.Line(one), total, alpha=100, beta=0.05)
    # P(|Z| > 100) = 2 q^101 / (1 + q) <= .05 just at epsilon.
    decay = math.exp(-float(found.epsilon))
    assert 2 * decay**101 / (1 + decay) <= 0.05
    less = math.exp(-float(found.epsilon) * 0.98)
    assert 2 * less**101 / (1 + less) > 0.05


def test_per_query_promises_are_cheaper_than_simultaneous_ones():
    full = bf.policies.Full(LINE)
    each = bf.translate(full, CELLS, alpha=20, beta=0.05, scope="per_query")
    together = bf.translate(full, CELLS, alpha=20, beta=0.05)
    assert each.epsilon < together.epsilon / 2


def test_simulation_never_costs_more_than_the_bound():
    full = bf.policies.Full(LINE)
    bound = bf.translate(full, PREFIXES, alpha=20, beta=0.05)
    drawn = bf.translate(full, PREFIXES, alpha=20, beta=0.05, samples=1500)
    assert drawn.epsilon < bound.epsilon
    assert drawn.best.found_by == "simulation"
    assert (
        drawn.epsilon
        == bf.translate(full, PREFIXES, alpha=20, beta=0.05, samples=1500).epsilon
    ), "the same whoever asks"


def test_costs_fall_with_the_policy():
    costs = [
        bf.translate(policy, PREFIXES, alpha=20, beta=0.05).epsilon
        for policy in (
            bf.policies.Line(LINE),
            bf.policies.Threshold(LINE, theta=4),
            bf.policies.Full(LINE),
        )
    ]
    assert costs == sorted(costs)
    assert costs[0] < costs[1] < costs[2]


def test_public_answers_are_free_and_say_so():
    blocks = bf.policies.Blocks(LINE, np.arange(40) // 10)
    sums = bf.workloads.Ranges(LINE, [0, 10, 0], [10, 30, 40])
    found = bf.translate(blocks, sums, alpha=1, beta=0.01)
    assert found.free
    assert found.epsilon == 0
    assert "exact and free" in str(found)
    with pytest.raises(EpsilonError, match="no mechanism is needed"):
        _ = found.best


def test_mechanisms_that_choose_from_the_data_promise_nothing():
    found = bf.translate(bf.policies.Full(LINE), CELLS, alpha=20, beta=0.05)
    dawa = next(one for one in found if one.name == "dawa")
    assert dawa.epsilon is None
    assert "depends on the data" in dawa.reason
    table = str(found)
    assert "no promise" in table
    assert found.rows[0]["epsilon"] == float(found.epsilon)


def test_constraints_raise_the_price_by_the_group_size():
    free = bf.policies.Full(LINE)
    halves = bf.policies.CountConstraints(LINE, [np.arange(40) < 20])
    known = free.with_constraints(halves)
    plain = bf.translate(free, CELLS, alpha=20, beta=0.05)
    dear = bf.translate(known, CELLS, alpha=20, beta=0.05)
    by_name = {one.name: one.epsilon for one in plain}
    vertex = next(one for one in dear if one.name == "vertex")
    assert vertex.epsilon == pytest.approx(
        by_name["vertex"] * known.group_size, rel=1e-3
    )


def test_the_rank_covers_the_quantile_with_the_confidence_stated():
    from scipy.stats import binom

    for samples, beta in ((1000, 0.05), (3000, 0.02), (10_000, 0.05)):
        rank = translation.lowest_safe_rank(samples, beta, 8)
        below = 1 - beta * 0.99
        assert binom.sf(rank - 1, samples, below) <= beta * 0.01 / 8
        assert binom.sf(rank - 2, samples, below) > beta * 0.01 / 8
    assert translation.lowest_safe_rank(50, 0.01, 8) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"alpha": 0}, "alpha, the largest error, must be a positive number"),
        ({"alpha": math.nan}, "alpha, the largest error, must be a positive number"),
        ({"alpha": "much"}, "alpha, the largest error, must be a positive number"),
        ({"beta": 0}, "beta, the probability .* must be a positive number"),
        ({"beta": 1.5}, "strictly between 0 and 1"),
        ({"beta": None}, "beta, the probability .* must be a positive number"),
        ({"scope": "each"}, "scope must be one of"),
        ({"samples": -1}, "samples must be at least 0; received -1"),
        ({"samples": 2.5}, "samples must be one whole number"),
    ],
    ids=str,
)
def test_bad_input_gets_the_rule_and_the_value(change, words):
    asked = {"alpha": 10, "beta": 0.05, **change}
    with pytest.raises(InputError, match=words):
        bf.translate(bf.policies.Full(LINE), CELLS, **asked)

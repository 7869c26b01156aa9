"""The audit of a descent: the law of its trees, real runs against it, planted bugs."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from scipy import stats

import blowfish_fast as bf
from blowfish_fast.audit import audit_selector, policy_families
from blowfish_fast.audit.choices import batch_tally
from blowfish_fast.audit.grey_box import observe_choice
from blowfish_fast.audit.many_choices.choice_twins import Case, descents, one_by_one
from blowfish_fast.errors import SizeError
from blowfish_fast.kernels.window_costs.node_unevenness import raise_scores
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import descent
from blowfish_fast.measure.selectors.partitions.descent import Descent
from tests.reference.descent import tree_law

LINE = bf.Domain(8)
STEP = np.array([0, 1, 3, 0, 0, 0, 2, 5])
SETTINGS = {"samples": 20_000, "runs": 0, "steps": 10}


def findings(selector, policy, epsilon=Fraction(1)):
    return list(audit_selector(selector, policy, epsilon=epsilon, **SETTINGS))


def labels_of(starts, cells):
    inside = np.zeros(cells, dtype=int)
    inside[list(starts)] = 1
    return tuple((np.cumsum(inside) - 1).tolist())


@pytest.mark.parametrize("fan_out", [2, 4, 8])
def test_the_law_of_the_twin_is_that_of_the_reference(fan_out):
    # Of sixteen parts of eight cells, and of other sizes, the reference has no tree.
    case = Case(Descent(fan_out=fan_out), bf.policies.AddRemove(LINE), Fraction(1))
    scale, bias = descent.calibrated(Fraction(1), fan_out, moves=False)
    wanted = tree_law(STEP.tolist(), float(scale), bias, fan_out)
    expected = {labels_of(starts, 8): chance for starts, chance in wanted.items()}
    assert case.law(STEP) == pytest.approx(expected, rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("cells", [2, 5, 7])
@pytest.mark.parametrize("fan_out", [2, 4])
def test_the_twin_and_the_descent_follow_the_law(cells, fan_out):
    policy = bf.policies.Full(bf.Domain(cells))
    case = Case(Descent(fan_out=fan_out), policy, Fraction(2))
    counts = STEP[-cells:]
    law = case.law(counts)
    assert sum(law.values()) == pytest.approx(1)
    assert not case.descent(counts).differs(runs=50)
    for tally, samples in ((descents, 40_000), (one_by_one, 600)):
        seen = tally(case, counts, samples, Randomness(3))
        assert set(seen) <= set(law)
        often = [tree for tree in law if samples * law[tree] >= 8]
        observed = [seen[tree] for tree in often]
        expected = [samples * law[tree] for tree in often]
        observed.append(samples - sum(observed))
        expected.append(samples - sum(expected))
        if expected[-1] < 1e-6:
            observed, expected = observed[:-1], expected[:-1]
        square = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
        assert stats.chi2.sf(square, len(observed) - 1) > 1e-4


@pytest.mark.long
@pytest.mark.parametrize("family", ["add_remove", "full"])
def test_a_descent_by_unevenness_costs_at_most_epsilon(family):
    policy = policy_families(LINE)[family]
    found = findings(Descent(fan_out=2, score="unevenness"), policy)
    assert [one for one in found if not one.passed] == []
    case = Case(Descent(score="unevenness"), policy, Fraction(2))
    assert not case.descent(STEP).differs(runs=30)


def test_the_audit_finds_costs_that_leave_out_what_lies_below():
    # Of two windows each: single cells would cost more in a node than in its parts.
    coarse = partial(raise_scores, resolution=1)

    def forgetful(keys, counts, raised, height):
        return coarse(keys, counts, np.zeros_like(raised), height)

    scores = "blowfish_fast.kernels.window_costs.node_unevenness.raise_scores"
    case = Case(
        Descent(fan_out=2, score="unevenness"),
        bf.policies.AddRemove(LINE),
        Fraction(4),
    )
    counts = np.array([9, 0, 9, 0, 9, 0, 9, 0])
    with patch("blowfish_fast.audit.many_choices.descent_twin.RESOLUTION", 1):
        with patch(scores, coarse):
            assert not case.descent(counts).differs(runs=30)
        with patch(scores, forgetful):
            assert case.descent(counts).differs(runs=30)


@pytest.mark.long
@pytest.mark.parametrize("family", ["add_remove", "full", "line", "threshold_absent"])
@pytest.mark.parametrize("fan_out", [2, 4])
def test_a_descent_costs_at_most_epsilon(family, fan_out):
    found = findings(Descent(fan_out=fan_out), policy_families(LINE)[family])
    assert [str(one).split(":")[0] for one in found] == [
        "descent, enumerated",
        "descent, in batches",
        "descent, repeated",
    ]
    assert all(one.passed for one in found), found


def test_a_move_at_the_price_of_a_record_is_caught():
    right = descent.calibrated

    def cheap(epsilon, fan_out, *, moves, score):
        return right(epsilon, fan_out, moves=False, score=score)

    with patch.object(descent, "calibrated", cheap):
        found = findings(Descent(fan_out=2), bf.policies.Full(LINE))
    assert not found[0].passed


def by_weights(weigh):
    """Return a descent of fan-out 2 on eight cells that weighs nodes otherwise."""

    def descend(self, filled, cells, noise, rng):
        scale, bias = noise
        counts = np.zeros(cells, dtype=np.int64)
        counts[filled.keys] = filled.counts
        level, starts, width, depth = [0], [], cells, 0
        while level and width > 1:
            drawn = rng.laplace(scale.numerator, scale.denominator, size=len(level))
            inside = [int(counts[one : one + width].sum()) for one in level]
            divided = [
                weigh(c, depth, bias) + z >= 0
                for c, z in zip(inside, drawn, strict=True)
            ]
            starts += [one for one, cut in zip(level, divided, strict=True) if not cut]
            cut = [one for one, cut in zip(level, divided, strict=True) if cut]
            width //= 2
            level = [part for one in cut for part in (one, one + width)]
            depth += 1
        return np.sort(np.array(starts + level, dtype=np.int64))

    return patch.object(Descent, "_descend", descend)


WEIGHTS = {
    "right": lambda inside, depth, bias: max(inside - depth * bias, -bias),
    "no bias by depth": lambda inside, depth, bias: max(inside, -bias),
    "no clamp": lambda inside, depth, bias: inside - depth * bias,
    "strict": lambda inside, depth, bias: max(inside - depth * bias, -bias) - 1,
}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_nodes_that_are_weighed_otherwise_are_caught(weights):
    policy = bf.policies.AddRemove(LINE)
    with by_weights(WEIGHTS[weights]):
        found = findings(Descent(fan_out=2), policy, Fraction(2))
    assert all(one.passed for one in found) == (weights == "right")


def test_noise_other_than_declared_is_caught():
    right = Descent.select

    def careless(self, counts, *, policy, epsilon, rng):
        return right(self, counts, policy=policy, epsilon=2 * epsilon, rng=rng)

    policy = bf.policies.AddRemove(LINE)
    settings = {"charged": Fraction(1), "pairs": 5}
    generator = np.random.default_rng(2)
    assert observe_choice(Descent(), policy, generator=generator, **settings).passed
    with patch.object(Descent, "select", careless):
        found = observe_choice(Descent(), policy, generator=generator, **settings)
    assert found.worst == math.inf


def test_trees_that_are_too_many_are_not_written_out():
    wide = Case(Descent(), bf.policies.AddRemove(bf.Domain(17)), Fraction(1))
    with pytest.raises(SizeError, match=r"at most 16 cells.*received 17 cells"):
        wide.descent(np.zeros(17, dtype=np.int64))
    limited = Descent(most_buckets=9)
    case = Case(limited, bf.policies.AddRemove(LINE), Fraction(1))
    assert case.law(STEP) is None
    assert batch_tally(case) is None

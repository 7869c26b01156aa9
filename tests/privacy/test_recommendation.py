"""The private look before a choice: exact laws on neighbours, planted bugs caught."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.advice.private_choice import ChosenPrivately
from blowfish_fast.audit import (
    audit_disclosure,
    audit_invariants,
    audit_measurements,
    policy_families,
)
from blowfish_fast.audit.choices.choice_tree import exact_law
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.selectors.selections import NearestShape
from blowfish_fast.policies import ABSENT
from tests.reference.selection_laws import largest_log_ratio, log_chances

pytestmark = pytest.mark.audit

LINE = bf.Domain(3)
SHAPES = np.array([[1, 1, 1], [0, 0, 3], [4, 0, 4]])
EPSILON = Fraction(4)
FAMILIES = sorted(
    name
    for name, policy in policy_families(LINE).items()
    if policy.edge_count and not policy.has_constraints
)


def pairs(policy):
    """Yield neighbours along every edge, on every background of small counts."""
    for background in itertools.product(range(5), repeat=3):
        for start, end in np.concatenate(list(policy.edges())).tolist():
            sides = []
            for cell in (start, end):
                counts = list(background)
                if cell != ABSENT:
                    counts[cell] += 1
                sides.append(tuple(counts))
            yield sides


def worst_ratio(policy, epsilon=EPSILON):
    """Return the largest exact log-ratio of the real choice over all pairs."""
    selector = NearestShape(SHAPES)

    @cache
    def law(counts):
        chances = exact_law(selector, np.array(counts), policy=policy, epsilon=epsilon)
        return {one: math.log(chance) for one, chance in chances.items()}

    return max(largest_log_ratio(law(one), law(other)) for one, other in pairs(policy))


def slow_law(counts, sensitivity):
    def features(cells):
        return sorted(cells), sorted(
            abs(a - b) for a, b in zip(cells[1:], cells, strict=False)
        )

    costs = []
    for shape in SHAPES.tolist():
        mine, theirs = features(list(counts)), features(shape)
        far = [
            sum(abs(a - b) for a, b in zip(one, other, strict=True))
            for one, other in zip(mine, theirs, strict=True)
        ]
        costs.append(2 * far[0] + far[1])
    return log_chances(costs, EPSILON / (2 * sensitivity))


def test_the_choice_follows_the_law_of_its_definition():
    policies = {4: bf.policies.AddRemove(LINE), 8: bf.policies.Full(LINE)}
    for sensitivity, policy in policies.items():
        for counts in ((0, 0, 0), (5, 1, 0), (2, 7, 2)):
            real = exact_law(
                NearestShape(SHAPES), np.array(counts), policy=policy, epsilon=EPSILON
            )
            expected = slow_law(counts, sensitivity)
            for number, chance in enumerate(expected):
                assert real[number] == pytest.approx(math.exp(chance), rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_two_neighbours_exceed_epsilon(family):
    worst = worst_ratio(policy_families(LINE)[family])
    assert 0.2 * float(EPSILON) < worst <= float(EPSILON) + 1e-9


def test_a_rate_without_its_factor_two_is_caught():
    right = NearestShape.rate
    policy = bf.policies.AddRemove(LINE)
    with patch.object(
        NearestShape, "rate", lambda self, policy, eps: 2 * right(self, policy, eps)
    ):
        assert worst_ratio(policy) > float(EPSILON)


def test_a_look_that_forgets_steps_and_moves_is_caught():
    # 2 for the cell alone, as if its neighbours' steps and its old place were free.
    with patch.object(NearestShape, "sensitivity", lambda self, policy: 2):
        assert worst_ratio(bf.policies.Full(LINE)) > float(EPSILON)


@pytest.mark.parametrize("shape", [2, 7, (3, 4)])
def test_all_that_follows_the_choice_is_within_what_is_left(shape):
    domain = bf.Domain(shape)
    for policy in policy_families(domain).values():
        mechanism, data = ChosenPrivately.example(domain, policy, "0.7")
        for seed in range(2):
            prices = audit_measurements(mechanism, data, seed=seed)
            assert all(price.passed for price in prices), policy
        assert audit_invariants(mechanism, data) == []


def test_nothing_of_the_data_is_disclosed():
    line = bf.Domain(7)
    policy = bf.policies.AddRemove(line)
    faint, _ = ChosenPrivately.example(line, policy, Fraction(1, 100))
    assert audit_disclosure(faint) == []


def test_a_choice_that_is_not_charged_is_caught():
    def free(self, selector, *, budget):
        return selector.select(
            self._counts, policy=self.policy, epsilon=budget.amount, rng=self._rng
        )

    line = bf.Domain(7)
    policy = bf.policies.AddRemove(line)
    with patch.object(Handle, "select", free):
        breaches = audit_invariants(*ChosenPrivately.example(line, policy, 1))
    assert breaches

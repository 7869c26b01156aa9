"""Promises are put together in the currency that was paid, and never edited."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given, settings

import blowfish_fast as bf
from blowfish_fast import policies
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.policies import protocol as promises
from blowfish_fast.policies.presence import WithAbsent
from tests.generated import example_count
from tests.reference import policy_examples as examples

EPSILON = Budget(Fraction(1, 2))
RHO = Budget(Fraction(1, 2), 2)


@settings(max_examples=example_count(60))
@given(examples.any_policy())
def test_every_policy_speaks_of_what_was_paid_and_of_nothing_else(policy):
    assert policy.describe() == policy.describe(EPSILON)
    told = policy.describe(RHO)
    assert not re.search(r"\beps\b", told)
    assert "rho" not in policy.describe()
    assert told.endswith(policy.describe_totals())
    assert ("rho" in told) == bool(re.search(r"\beps\b", policy.describe()))


@pytest.mark.parametrize(
    ("words", "in_epsilon", "in_rho"),
    [
        (promises.beyond, "beyond e^eps", "beyond what rho allows"),
        (promises.beyond_factor, "beyond a factor e^eps", "beyond what rho allows"),
        (promises.at_distance, "e^(eps*d)", "rho d^2"),
        (lambda one: promises.at_length(one, 3), "e^(3*eps)", "9 rho"),
        (lambda one: promises.shared(one, 1200), "eps / 1,200", "rho / 1,200^2"),
    ],
)
def test_a_limit_is_said_in_either_currency(words, in_epsilon, in_rho):
    assert words(None) == words(EPSILON) == in_epsilon
    assert words(RHO) == in_rho


def test_the_name_of_a_column_is_left_as_it_is():
    name = "eps / 3 group beyond e^eps"
    line = bf.Domain.from_edges([0, 1, 2, 3], name=name)
    release = bf.Gaussian(policies.Line(line), rho="0.1").release([1, 2, 3], rng=1)
    told = str(release.guarantee)
    assert f"two people whose {name} values lie in neighbouring cells" in told
    assert "beyond what rho allows; d cells apart, rho d^2" in told


def test_presence_that_lies_farther_away_is_said_in_squares():
    far = WithAbsent(policies.Line(bf.Domain(4)), 3)
    assert "cannot be told beyond a factor e^(3*eps)" in far.describe()
    assert "cannot be told beyond 9 rho, and" in far.describe(RHO)

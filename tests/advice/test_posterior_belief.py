"""What an attacker may come to believe."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.advice.posterior_belief import (
    Belief,
    largest_epsilon,
    most_steps,
    risk,
)
from blowfish_fast.errors import EpsilonError, InputError, PolicyError, SizeError
from tests.generated import example_count

PRIORS = st.fractions(
    Fraction(1, 10**6), Fraction(999_999, 10**6), max_denominator=10**6
)
EPSILONS = st.fractions(Fraction(1, 1000), 5, max_denominator=1000)


@settings(deadline=None, max_examples=example_count(100))
@given(PRIORS, EPSILONS, st.integers(1, 50))
def test_the_bound_is_the_formula_rounded_up(prior, epsilon, queries):
    belief = risk(prior, epsilon=epsilon, queries=queries)
    with mpmath.workdps(60):
        p = mpmath.mpf(prior.numerator) / prior.denominator
        x = mpmath.mpf(epsilon.numerator) / epsilon.denominator * queries
        exact = p / (p + (1 - p) * mpmath.e**-x)
        assert mpmath.mpf(float(belief)) >= exact
        assert float(belief) - float(exact) <= 2 * math.ulp(1.0)
    assert prior < Fraction(float(belief)) <= 1
    # Far below 1 both agree; the printed bound is never below ours.
    assert belief <= belief.loose * (1 + 1e-12)


@settings(deadline=None, max_examples=example_count(100))
@given(PRIORS, PRIORS, st.integers(1, 1000), st.integers(1, 9))
def test_the_inverse_is_the_largest_epsilon(first, second, queries, steps):
    prior, belief = min(first, second), max(first, second)
    try:
        epsilon = largest_epsilon(prior, belief, queries=queries, steps=steps)
    except InputError:
        odds = belief * (1 - prior) / (prior * (1 - belief))
        assert math.log(odds) < 2e-9 * queries * steps
        return
    assert epsilon.denominator <= 10**9
    reached = risk(prior, epsilon=epsilon, queries=queries, steps=steps)
    assert Fraction(float(reached)) <= belief
    more = epsilon + Fraction(2, 10**9)
    assert risk(prior, epsilon=more, queries=queries, steps=steps) >= float(belief)


def test_randomised_response_reaches_the_bound():
    epsilon = 0.7
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    prior = 0.3
    # Two answers that both say "yes", about a person who may hold "yes" or "no".
    yes, no = prior * truth**2, (1 - prior) * (1 - truth) ** 2
    assert yes / (yes + no) == pytest.approx(float(risk(prior, epsilon=0.7, queries=2)))


@pytest.mark.parametrize("family", ["add_remove", "full", "line", "threshold", "graph"])
def test_no_answer_beats_the_bound_of_any_policy(family):
    domain = bf.Domain(4)
    policy = bf.audit.policy_families(domain)[family]
    prior = np.array([0.1, 0.4, 0.2, 0.3])
    bounds = risk(prior, epsilon=1, policy=policy)
    laplace = bf.Laplace(policy, bf.workloads.Identity(domain), epsilon=1)
    measurement = laplace.release(np.ones(4, dtype=int), rng=1).measurements[0]
    scales, strategy = measurement.scales, measurement.strategy
    # One unknown person in an otherwise empty table: the likelihood of noisy rows.
    rows = np.array([strategy.rows(one) for one in np.eye(4, dtype=np.int64)])
    noisy = scales.measured
    widths = scales.widths[noisy]
    for answer in itertools.product(range(-1, 3), repeat=int(noisy.sum())):
        distance = np.abs(np.array(answer) - rows[:, noisy]) / widths
        likelihood = np.exp(-distance.sum(axis=1))
        posterior = prior * likelihood / (prior @ likelihood)
        assert (posterior <= bounds + 1e-12).all()


def test_policies_set_the_steps_between_values():
    line = bf.Domain(5)
    under = {
        policy: risk(0.2, epsilon=0.5, policy=policy(line)).exponent
        for policy in (bf.policies.Full, bf.policies.AddRemove, bf.policies.Line)
    }
    assert list(under.values()) == [Fraction(1, 2), 1, 2]
    blocks = bf.policies.Blocks(line, [0, 0, 1, 1, 1])
    assert risk(0.2, epsilon=0.5, policy=blocks) == 1.0
    nothing = bf.policies.Graph(line, np.empty((0, 2), dtype=int))
    assert risk(0.2, epsilon=0.5, policy=nothing) == 1.0
    with pytest.raises(PolicyError, match="no path"):
        largest_epsilon(0.2, 0.5, policy=blocks)
    one = bf.policies.AddRemove(bf.Domain(1))
    assert risk(0.2, epsilon=0.5, policy=one).exponent == Fraction(1, 2)


def test_a_distribution_gives_a_sharper_bound_than_its_parts():
    policy = bf.policies.Line(bf.Domain(30))
    prior = np.full(30, 1 / 30)
    bounds = risk(prior, epsilon=0.3, policy=policy)
    assert (bounds <= risk(1 / 30, epsilon=0.3, policy=policy)).all()
    assert (bounds >= prior).all()
    certain = np.eye(30)[3]
    np.testing.assert_allclose(risk(certain, epsilon=0.3, policy=policy), certain)


def test_the_ends_are_the_ends():
    assert risk(0, epsilon=1) == 0.0
    assert risk(1, epsilon=1) == 1.0
    assert risk("0.5", epsilon=10**9) == 1.0
    assert risk(0.5, epsilon=800).loose == math.inf
    assert risk(0, epsilon=800).loose == 0.0
    belief = risk(0.1, epsilon=0.5)
    again = pickle.loads(pickle.dumps(belief))
    assert isinstance(again, Belief)
    assert (again, again.exponent) == (belief, belief.exponent)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"prior": 1.5}, InputError, "probability"),
        ({"prior": "many"}, InputError, "finite number"),
        ({"epsilon": 0}, EpsilonError, "greater than 0"),
        ({"queries": 0}, InputError, "at least 1"),
        ({"steps": 0}, InputError, "at least 1"),
        ({"policy": 3}, PolicyError, "state a policy"),
        ({"prior": [0.5, 0.5]}, InputError, "needs the policy"),
        (
            {"prior": [0.5, 0.6], "policy": bf.policies.Full(bf.Domain(2))},
            InputError,
            "add up to 1",
        ),
        (
            {"policy": bf.policies.Full(bf.Domain(2)), "steps": 2},
            InputError,
            "and a policy",
        ),
        (
            {"policy": bf.policies.Line(bf.Domain(10**4))},
            SizeError,
            "steps=",
        ),
        (
            {"policy": bf.audit.policy_families(bf.Domain(7))["constrained"]},
            PolicyError,
            "tie people",
        ),
    ],
)
def test_bad_questions_are_refused_with_a_reason(arguments, error, words):
    given = {"prior": 0.2, "epsilon": 0.5} | arguments
    with pytest.raises(error, match=words):
        risk(given.pop("prior"), **given)


@pytest.mark.parametrize(
    ("prior", "belief"), [(0.5, 0.5), (0.5, 0.4), (0, 0.5), (0.5, 1)]
)
def test_beliefs_that_cannot_be_kept_are_refused(prior, belief):
    with pytest.raises(InputError, match="between the prior and 1"):
        largest_epsilon(prior, belief)
    with pytest.raises(EpsilonError, match="billionth"):
        largest_epsilon(0.5, "0.5000000001", queries=10**6)


def test_known_counts_are_refused_in_both_directions():
    domain = bf.Domain(4)
    known = bf.policies.CountConstraints(domain, [[True, True, False, False]])
    policy = bf.policies.Full(domain).with_constraints(known)
    for asked in (
        lambda: risk(0.1, epsilon=1, policy=policy),
        lambda: largest_epsilon(0.1, belief=0.5, policy=policy),
    ):
        with pytest.raises(PolicyError, match="tie people to each other"):
            asked()
    with pytest.raises(PolicyError, match="state a policy"):
        largest_epsilon(0.1, belief=0.5, policy="full")


FEW = bf.Domain((4, 2, 3), names=["age", "sex", "job"])


@pytest.mark.parametrize("presence", [False, True, 1.5, 4, "only"])
@pytest.mark.parametrize("kind", ["whole", "any", "line", "public"])
def test_steps_between_records_of_a_survey_are_those_of_its_cells(kind, presence):
    ages = FEW.marginal(["age"])
    stated = {
        "whole": None,
        "any": {},
        "line": {"age": bf.policies.Line(ages)},
        "public": {
            name: bf.policies.Blocks(FEW.marginal([name]), np.arange(size))
            for name, size in zip(FEW.names, FEW.shape, strict=True)
        },
    }[kind]
    if presence == "only" and stated is not None:
        return
    survey = bf.policies.TablePolicy(FEW, stated, presence)
    cells = survey.through(list(FEW.names))
    every = np.arange(FEW.size)
    longest = max(float(cells.distance(every, one).max()) for one in every)
    steps = math.ceil(longest) if math.isfinite(longest) else math.inf
    assert most_steps(survey) == most_steps(cells) == steps


def test_surveys_that_nobody_could_list_have_a_risk_too():
    wide = bf.WideDomain.product(*(bf.Domain(50, names=[f"a{at}"]) for at in range(9)))
    assert most_steps(bf.policies.Full(wide)) == 1
    assert most_steps(bf.policies.AddRemove(wide)) == 2
    assert most_steps(bf.policies.TablePolicy(wide, {})) == 9
    assert most_steps(bf.policies.TablePolicy(wide, {}, presence=3)) == 6


def test_nobody_moves_and_absent_lies_far_away():
    line = bf.Domain(4)
    apart = bf.policies.WithAbsent(bf.policies.Blocks(line, np.arange(4)), 4)
    assert most_steps(apart) == most_steps(apart.per_person(2)) == 8


def test_wide_domains_are_never_listed():
    wide = bf.WideDomain(2**60, names="time")
    out = bf.policies.AddRemove(wide)
    assert bf.risk(0.5, epsilon=1, policy=out) == bf.risk(0.5, epsilon=1, steps=2)
    for policy in (
        bf.policies.Line(wide),
        bf.policies.WithAbsent(bf.policies.Line(wide)),
    ):
        with pytest.raises(SizeError, match="State the most steps"):
            bf.risk(0.5, epsilon=1, policy=policy)

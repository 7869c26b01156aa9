"""Random neighbours along policy edges: what they change, against what was declared."""

from __future__ import annotations

import functools
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import policy_families
from blowfish_fast.audit.choices import all_partitions, instances
from blowfish_fast.audit.grey_box import (
    observe_choice,
    observe_measurement,
)
from blowfish_fast.audit.neighbours import Pair
from blowfish_fast.audit.witness import watch
from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.selectors.partitions import DyadicTree, LeastCost, NoisySort
from blowfish_fast.measure.selectors.partitions.matching_pairs import MatchingPairs
from blowfish_fast.measure.strategies import PrefixSums
from blowfish_fast.mechanisms.registry import MECHANISMS

LINE = bf.Domain(7)
GRID = bf.Domain((3, 4))
PAIRS = 1000


def watched(name):
    """Run a mechanism where it is offered: on a line, else on a grid."""
    for domain, family in ((LINE, "threshold"), (GRID, "threshold_linf")):
        policy = policy_families(domain)[family]
        try:
            return watch(*MECHANISMS[name].example(domain, policy, 1), seed=1)
        except BlowfishError:
            continue
    raise AssertionError(f"{name} is offered nowhere")


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_a_thousand_neighbours_cost_no_more_than_was_charged(name):
    testimony = watched(name)
    generator = np.random.default_rng(5)
    steps = testimony.measured[:5]
    found = [
        observe_measurement(
            step.result,
            testimony.mechanism.policy,
            charged=step.charged,
            pairs=-(-PAIRS // len(steps)),
            generator=generator,
        )
        for step in steps
    ]
    assert sum(one.pairs for one in found) >= PAIRS
    assert all(one.passed for one in found), found


@pytest.mark.long
@pytest.mark.parametrize("family", ["add_remove", "threshold"])
@pytest.mark.parametrize("name", sorted(all_partitions()))
def test_choices_cost_no_more_than_was_charged(name, family):
    domain = LINE
    policy = policy_families(domain)[family]
    for partition in instances(name, policy):
        try:
            found = observe_choice(
                partition,
                policy,
                charged=Fraction(1),
                pairs=60,
                generator=np.random.default_rng(2),
            )
        except BlowfishError:
            continue
        assert found is not None
        assert found.passed, found
        assert found.pairs == 60


@pytest.mark.parametrize("kind", [LeastCost, MatchingPairs, NoisySort])
@pytest.mark.parametrize("family", ["add_remove", "full"])
def test_noise_of_candidates_is_not_more_than_needed(kind, family):
    # The declared scales are tight, so an excess of five percent shows for certain.
    policy = policy_families(LINE)[family]
    settings = {"pairs": 80, "generator": np.random.default_rng(2)}
    found = observe_choice(kind().priced(8.0), policy, charged=Fraction(1), **settings)
    assert 0.97 < found.worst <= 1 + 1e-9


def at_more(kind, excess=Fraction(105, 100)):
    right = kind.noise

    @functools.wraps(right)
    def generous(self, first, epsilon, *rest):
        return right(self, first, excess * epsilon, *rest)

    return patch.object(kind, "noise", generous)


@pytest.mark.parametrize("kind", [LeastCost, MatchingPairs, NoisySort])
def test_an_excess_of_five_percent_in_a_choice_is_caught(kind):
    policy = bf.policies.AddRemove(LINE)
    settings = {"pairs": 80, "generator": np.random.default_rng(2)}
    with at_more(kind):
        found = observe_choice(
            kind().priced(8.0), policy, charged=Fraction(1), **settings
        )
    assert not found.passed


def test_noise_other_than_declared_is_caught():
    # Declared right, drawn at half the scale: the watched run says so.
    right = NoisySort.select

    def careless(self, counts, *, policy, epsilon, rng):
        return right(self, counts, policy=policy, epsilon=2 * epsilon, rng=rng)

    policy = bf.policies.AddRemove(LINE)
    settings = {"pairs": 5, "generator": np.random.default_rng(2)}
    with patch.object(NoisySort, "select", careless):
        found = observe_choice(NoisySort(), policy, charged=Fraction(1), **settings)
    assert found.worst == np.inf


def test_a_doubled_rate_shows_in_the_probability_of_a_run():
    right = DyadicTree.rate
    policy = bf.policies.AddRemove(LINE)
    settings = {"pairs": 60, "generator": np.random.default_rng(2)}
    with patch.object(
        DyadicTree, "rate", lambda self, cells, epsilon: 3 * right(self, cells, epsilon)
    ):
        found = observe_choice(
            DyadicTree().priced(2.0), policy, charged=Fraction(1), **settings
        )
    assert not found.passed


def test_a_sensitivity_that_hides_behind_other_records_is_caught():
    # Squares: one record alone moves a row by 1, among others by much more.
    right = PrefixSums.rows

    def squared(self, counts):
        return right(self, counts) ** 2

    policy = bf.policies.Line(LINE)
    testimony = watch(*bf.Ordered.example(LINE, policy, 1))
    step = testimony.measured[0]
    settings = {"charged": step.charged, "pairs": 50}
    generator = np.random.default_rng(4)
    assert observe_measurement(
        step.result, policy, generator=generator, **settings
    ).passed
    with patch.object(PrefixSums, "rows", squared):
        found = observe_measurement(
            step.result, policy, generator=generator, **settings
        )
    assert not found.passed
    assert isinstance(found.where, Pair)

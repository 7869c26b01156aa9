"""Choices of the baselines: exact laws on neighbours, and public bugs caught."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import policy_families
from blowfish_fast.audit.confidence import Evidence, Finding, strongest_evidence
from blowfish_fast.audit.many_choices.many_draws import exact_law
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import (
    Bisection,
    KBuckets,
    ThresholdedSort,
)
from blowfish_fast.measure.selectors.partitions.base import record_distance
from blowfish_fast.measure.selectors.partitions.noisy_sort import SortedCounts, on_cells
from blowfish_fast.measure.selectors.selections import KeptFrequencies, WorstQuery
from blowfish_fast.measure.strategies.hierarchy_plan import tree_depth
from blowfish_fast.mechanisms.hierarchy import best_fan_out
from blowfish_fast.policies import ABSENT
from tests.reference import selection_laws as reference

from .mutants_of_baselines import (
    LAWS,
    STOPS,
    choice_that_ignores_the_seed,
    noisy_maximum_with_half_of_the_noise,
    verdicts,
)

pytestmark = pytest.mark.audit

LINE = bf.Domain(4)
FAMILIES = ("add_remove", "full", "line", "graph_absent")
BASELINES = (
    *("ahp", "efpa", "hierarchy", "mwem", "noise_first"),
    *("php", "privelet", "structure_first"),
)
NOISE = np.array([0.3, 1.7, 2.9])
RANGES = bf.workloads.Ranges(LINE, [0, 0, 1, 2], [1, 2, 4, 3])
ROWS = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 1, 0]]
ESTIMATED = [3.0, 0.4, 6.7, 0.0]


def kept_frequencies(counts, policy, epsilon):
    return reference.frequencies_law(counts, NOISE, epsilon, moves=policy.has_moves)


def bisections(counts, policy, epsilon):
    granted = epsilon / record_distance(policy)
    return reference.bisection_law(counts, price=1.0, levels=2, epsilon=granted)


def borders(counts, policy, epsilon):
    granted = epsilon / record_distance(policy)
    return reference.k_buckets_law(counts, buckets=3, largest=8, epsilon=granted)


def worst_query(counts, policy, epsilon):
    return reference.worst_query_law(counts, ROWS, ESTIMATED, epsilon=epsilon, reach=1)


NONE_ASKED = np.zeros(4, dtype=bool)
CHOICES = {
    "efpa": (KeptFrequencies(NOISE), kept_frequencies, (0, 1, 7)),
    "php": (Bisection().priced(1.0), bisections, (0, 7)),
    "structure_first": (KBuckets(3, largest_count=8), borders, (0, 1, 7)),
    "mwem": (
        WorstQuery(RANGES).against(np.array(ESTIMATED), NONE_ASKED),
        worst_query,
        (0, 1, 7),
    ),
}
"""The choice, its law from the definition, and counts that its neighbours have."""


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", CHOICES)
def test_the_choice_follows_the_law_of_its_definition(name, family):
    selector, law, _ = CHOICES[name]
    policy = policy_families(LINE)[family]
    for counts in ([0, 0, 0, 0], [0, 1, 8, 8], [5, 0, 0, 9], [3, 3, 2, 40]):
        expected = law(counts, policy, Fraction(2))
        steered = exact_law(
            selector, np.array(counts), policy=policy, epsilon=Fraction(2)
        )
        assert steered.keys() == expected.keys(), name
        for choice, chance in expected.items():
            assert steered[choice] == pytest.approx(math.exp(chance), rel=1e-6), name


def neighbours(policy, heights):
    """Yield all neighbours along all edges, on all backgrounds of these heights."""
    cells = policy.domain.size
    edges = np.concatenate(list(policy.edges())).tolist()
    for background in itertools.product(heights, repeat=cells):
        for edge in edges:
            pair = []
            for cell in edge:
                counts = list(background)
                if cell != ABSENT:
                    counts[cell] += 1
                pair.append(tuple(counts))
            yield tuple(pair)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", CHOICES)
def test_no_two_neighbours_exceed_epsilon(name, family):
    _, law, heights = CHOICES[name]
    policy = policy_families(LINE)[family]
    epsilon = Fraction(4)
    known = cache(lambda counts: law(counts, policy, epsilon))
    worst = max(
        reference.largest_log_ratio(known(first), known(second))
        for first, second in neighbours(policy, heights)
    )
    assert worst <= float(epsilon) + 1e-9, name
    # The audit sees something: the proofs do not ask for many times the noise.
    assert worst > 0.08 * float(epsilon), (name, worst)


def audit_pair(doubtful):
    """Return the exact finding on two neighbours, under the mechanism's name."""
    laws = [
        exact_law(
            doubtful.selector(),
            np.array(counts),
            policy=doubtful.policy(bf.Domain(len(counts))),
            epsilon=doubtful.epsilon,
        )
        for counts in doubtful.pair
    ]
    logs = [{one: math.log(chance) for one, chance in law.items()} for law in laws]
    ratio = reference.largest_log_ratio(*logs)
    evidence = Evidence(ratio - 1e-9, str(doubtful.pair), len(laws[0]))
    return Finding(doubtful.mechanism, doubtful.epsilon, evidence, 0)


@pytest.mark.parametrize("name", LAWS)
def test_a_bug_in_a_choice_is_caught_by_its_exact_law(name):
    doubtful = LAWS[name]
    right = audit_pair(doubtful)
    assert right.passed, str(right)
    with doubtful.plant():
        wrong = audit_pair(doubtful)
    assert not wrong.passed, str(wrong)
    assert str(wrong).startswith(f"{doubtful.mechanism}: ")
    assert "ABOVE" in str(wrong)


def stop_of(mutant):
    """Return where the walk meets a bug."""
    return mutant.subject, mutant.shape, mutant.family


@pytest.mark.parametrize("name", STOPS)
def test_a_public_bug_is_caught_by_the_walk(name):
    mutant = STOPS[name]
    with mutant.plant():
        failed = [one for one in verdicts(mutant) if not one.passed]
    assert mutant.check in {one.check for one in failed}, failed
    assert {one.subject for one in failed} == {mutant.subject}
    assert all(one.note for one in failed)


@pytest.mark.parametrize("stop", sorted({stop_of(one) for one in STOPS.values()}))
def test_without_a_bug_the_same_stop_passes(stop):
    there = [one for one in STOPS.values() if stop_of(one) == stop]
    found = verdicts(there[0])
    assert {one.check for one in there} <= {one.check for one in found}
    assert [one for one in found if not one.passed] == []


# A record that moves from cell 3 to 0 spoils one answer and mends the other two.
MOVED = ((0, 7, 7, 1), (1, 7, 7, 0))
SPOILT = bf.workloads.Ranges(LINE, [0, 3, 3], [1, 4, 4])


def test_a_noisy_maximum_needs_twice_the_noise():
    rows = [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]]
    for scale, low, high in ((2.0, 0.5, 1.0), (1.0, 1.5, 2.0)):
        laws = []
        for counts in MOVED:
            errors = reference.query_errors(counts, rows, [-8, -12, -12])
            laws.append(reference.noisy_max_law(errors, scale))
        assert low < reference.largest_log_ratio(*laws) <= high


def audit_runs(mechanism, selector, epsilon, runs=3000):
    """Compare the choices of many real runs on two neighbours."""
    sides = []
    for number, counts in enumerate(MOVED):
        rng = Randomness(number)
        given = {"policy": bf.policies.Full(LINE), "epsilon": epsilon, "rng": rng}
        sides.append([selector.select(np.array(counts), **given) for _ in range(runs)])
    return Finding(mechanism, epsilon, strongest_evidence(*sides), runs)


def test_a_noisy_maximum_with_half_of_the_noise_is_caught():
    estimated = np.array([-10.0, -11.0, -11.0])
    selector = WorstQuery(SPOILT).against(estimated, np.zeros(3, dtype=bool))
    right = audit_runs("mwem", selector, Fraction(2))
    assert right.passed, str(right)
    with noisy_maximum_with_half_of_the_noise():
        wrong = audit_runs("mwem", selector, Fraction(2))
    assert not wrong.passed, str(wrong)
    assert str(wrong).startswith("mwem: ")


# AHP: all noise written out on two cells.

PAIR = bf.Domain(2)


def clusters_audit(policy, epsilon, most=20):
    """Return a function that finds the exact log-ratio of clusters on two neighbours.

    Full noise on cells is a draw for each; one edge between two cells has one draw.
    """
    partition = ThresholdedSort(0.0).priced(2.0)
    noise = partition.noise(policy, epsilon)

    @cache
    def clusters(noisy):
        return tuple(partition.group(np.array([noisy]), policy, noise)[0].tolist())

    @cache
    def law(counts):
        found, left_out = reference.clusters_law(
            counts,
            lambda drawn: on_cells(drawn, noise.edges, 2),
            noise.scales.rates.size,
            clusters,
            float(noise.scales.widths[0]),
            most,
        )
        assert left_out < 1e-9
        return found

    return lambda pair: reference.largest_log_ratio(*(law(one) for one in pair))


@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_clusters_of_noisy_counts_stay_within_epsilon(policy):
    stated = policy(PAIR)
    ratio = clusters_audit(stated, Fraction(2))
    worst = max(ratio(pair) for pair in neighbours(stated, (0, 3)))
    assert 1 < worst <= 2 + 1e-6


@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_clusters_with_half_of_the_noise_are_caught(policy):
    right = SortedCounts.noise
    stated = policy(PAIR)
    with patch.object(
        SortedCounts, "noise", lambda self, policy, eps: right(self, policy, 2 * eps)
    ):
        ratio = clusters_audit(stated, Fraction(2))
        assert max(ratio(pair) for pair in neighbours(stated, (0, 3))) > 2.2


# Bugs that cost no privacy.


@pytest.mark.parametrize("name", ["efpa", "mwem", "php", "structure_first"])
def test_a_choice_that_ignores_the_seed_is_seen(name):
    def repeats():
        line = bf.Domain(64)
        mechanism, _ = bf.mechanisms.registry.MECHANISMS[name].example(
            line, bf.policies.AddRemove(line), 1
        )
        counts = np.arange(64) % 7
        first, *others = [mechanism.release(counts, rng=3).estimate for _ in range(6)]
        return all(np.array_equal(first, other) for other in others)

    assert repeats()
    with choice_that_ignores_the_seed():
        assert not repeats()


def test_levels_are_counted_in_whole_numbers():
    # In floating point log(125, 5) is above 3, and public trees have a level too many.
    assert math.ceil(math.log(125, 5)) == 4
    for cells, fan_out, levels in ((125, 5, 3), (126, 5, 4), (3**5, 3, 5)):
        assert tree_depth(cells, fan_out) == levels
    assert best_fan_out(125) == min(
        range(2, 126),
        key=lambda f: (
            (f - 1) * tree_depth(125, f) ** 3
            - Fraction(2 * (f + 1) * tree_depth(125, f) ** 2, 3)
        ),
    )


@pytest.mark.parametrize("name", BASELINES)
def test_defaults_work_as_they_are(name):
    # dpcomp's adaptive MWEM and AHP cannot be built: their default key is misspelt.
    ranges = bf.workloads.Ranges.random(LINE, 5, rng=1)
    kind = bf.mechanisms.registry.MECHANISMS[name]
    release = kind(bf.policies.AddRemove(LINE), ranges, epsilon=1).release([3, 0, 9, 9])
    assert np.isfinite(release.estimate).all()

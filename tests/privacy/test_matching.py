"""Pairings on neighbouring counts: within epsilon, and planted bugs caught."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
import blowfish_fast.measure.selectors.partitions.noisy_sort as noisy_sort
from blowfish_fast.audit import audit_release, policy_families
from blowfish_fast.audit.confidence import clopper_pearson, strongest_evidence
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import MatchingPairs, NoisySort
from blowfish_fast.measure.selectors.partitions.base import record_distance
from blowfish_fast.measure.selectors.partitions.noisy_sort import on_cells
from tests.reference import matching_pairs as reference

pytestmark = pytest.mark.audit

SAMPLES = 150_000
CALLS = 1200
LINE = bf.Domain(4)
ADD_REMOVE = bf.policies.AddRemove(LINE)
FULL = bf.policies.Full(LINE)

# {0, 1}, {2, 3} ties with {0, 3}, {1, 2}. A record less in cell 0 makes the first
# dearer and the second cheaper, and so does a record more in cell 2.
TIED = np.array([6, 12, 6, 0])
REMOVED = (TIED, np.array([5, 12, 6, 0]))
MOVED = (TIED, np.array([5, 12, 7, 0]))
SPARSE = (np.zeros(4, dtype=np.int64), np.array([0, 1, 0, 0]))
SWAPPED = (np.array([1, 0, 8, 8]), np.array([0, 1, 8, 8]))
CASES = [
    pytest.param(ADD_REMOVE, REMOVED, id="removed"),
    pytest.param(ADD_REMOVE, SPARSE, id="sparse"),
    pytest.param(FULL, MOVED, id="moved"),
    pytest.param(FULL, SWAPPED, id="swapped"),
]
NOTHING = {"scale": Fraction(1), "single": Fraction(1), "greedy": False}


def evidence(partition, policy, pair, epsilon=1, samples=SAMPLES, **planted):
    """Bound the log-ratio of the choices on two neighbours from below, over epsilon.

    Planted bugs: noise times `scale`, noise of cells alone times `single`, the pair
    that saves most taken again and again (`greedy`).
    """
    bugs = {**NOTHING, **planted}
    cells = pair[0].size
    ones = np.ones(cells, dtype=np.int64)
    budget = Fraction(epsilon) / record_distance(policy)
    noise = partition.noise(cells, budget, ones)
    noise = noise._replace(
        single=noise.single * bugs["scale"] * bugs["single"],
        pair=noise.pair * bugs["scale"],
    )
    sides = []
    for number, counts in enumerate(pair):
        rng = Randomness(number)
        costs = reference.noisy_costs(noise, counts, samples, rng, partition.window)
        chosen = (
            reference.greedy_choices(costs, cells)
            if bugs["greedy"]
            else reference.exact_choices(costs, cells, partition.window)
        )
        sides.append(chosen.tolist())
    return strongest_evidence(*sides).log_ratio / epsilon


@pytest.mark.parametrize("window", [None, 1])
@pytest.mark.parametrize("price", [1.0, 8.0, 64.0])
@pytest.mark.parametrize(("policy", "pair"), CASES)
def test_the_choice_stays_within_epsilon(window, price, policy, pair):
    assert evidence(MatchingPairs(window).priced(price), policy, pair) <= 1


@pytest.mark.parametrize("epsilon", [1, 3])
def test_the_noise_of_the_proof_is_hardly_too_much(epsilon):
    partition = MatchingPairs().priced(64.0)
    assert 0.4 < evidence(partition, ADD_REMOVE, REMOVED, epsilon) <= 1


def test_halved_noise_is_caught():
    partition = MatchingPairs().priced(64.0)
    half = Fraction(1, 2)
    assert evidence(partition, ADD_REMOVE, REMOVED, 3, scale=half) > 1.2


def test_a_forgotten_half_under_moves_is_caught():
    # A budget that `record_distance` did not divide is half the noise.
    partition = MatchingPairs().priced(64.0)
    assert evidence(partition, FULL, MOVED, 3) <= 1
    assert evidence(partition, FULL, MOVED, 3, scale=Fraction(1, 2)) > 1.2


def test_a_cell_alone_without_noise_is_caught():
    pair = (np.array([0, 5]), np.array([0, 6]))
    policy = bf.policies.AddRemove(bf.Domain(2))
    partition = MatchingPairs().priced(5.0)
    assert evidence(partition, policy, pair) <= 1
    assert evidence(partition, policy, pair, single=Fraction(1, 2**20)) > 1


def greedy_pair(unit):
    """Return neighbours that a greedy matching tells apart, six cells.

    One more record in cell 0 brings it nearer to cells 2 and 4 and takes it away from
    cell 1. Pairs {2, 3}, {0, 1}, {4, 5}, taken in this order, must beat {0, 2} (one
    dearer now by one) and {0, 4} (by two), each with the noise of its own pair: three
    half epsilons, where the exact minimum asks for two.
    """
    middle = 4 * unit
    counts = np.array([middle, 0, 5 * unit, 6 * unit, 8 * unit, 14 * unit])
    added = counts.copy()
    added[0] += 1
    return counts, added


def test_a_greedy_matching_is_caught():
    policy = bf.policies.AddRemove(bf.Domain(6))
    partition = MatchingPairs().priced(60.0)
    pair = greedy_pair(3)
    settings = {"epsilon": 2, "samples": 40_000}
    assert evidence(partition, policy, pair, **settings) <= 1
    assert evidence(partition, policy, pair, **settings, greedy=True) > 1.1


def real_choices(partition, policy, counts, epsilon=1, first=0):
    """Return the choices of `CALLS` calls, with seeds from `first` on."""
    return [
        tuple(
            partition.select(
                counts, policy=policy, epsilon=Fraction(epsilon), rng=Randomness(seed)
            ).labels.tolist()
        )
        for seed in range(first, first + CALLS)
    ]


@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("policy", [ADD_REMOVE, FULL], ids=["added", "moved"])
def test_real_choices_follow_the_law_of_the_twin(window, policy):
    partition = MatchingPairs(window).priced(8.0)
    counts = np.array([2, 7, 3, 0])
    noise = partition.noise(4, Fraction(1) / record_distance(policy), np.ones(4, int))
    costs = reference.noisy_costs(noise, counts, SAMPLES, Randomness(9), window)
    numbers = reference.exact_choices(costs, 4, window)
    frequency = np.bincount(numbers, minlength=10) / SAMPLES
    seen = real_choices(partition, policy, counts)
    for mates, expected in zip(reference.pairings(4, window), frequency, strict=False):
        names = np.minimum(np.arange(4), mates)
        labels = tuple(np.unique(names, return_inverse=True)[1].tolist())
        low, high = clopper_pearson(seen.count(labels), CALLS, 0.9999)
        assert low - 0.01 <= expected <= high + 0.01


@pytest.mark.parametrize(("policy", "pair"), CASES)
def test_repeated_rounds_stay_within_epsilon(policy, pair):
    partition = MatchingPairs(2, rounds=2).priced(16.0)
    sides = [
        real_choices(partition, policy, counts, 2, first)
        for counts, first in zip(pair, (0, CALLS), strict=True)
    ]
    assert strongest_evidence(*sides).log_ratio <= 2


def worst_price(partition, policy, epsilon):
    """Return what the worst edge costs, from the definition, over epsilon."""
    scales, edges = partition.noise(policy, epsilon)
    cells = policy.domain.size
    worst = Fraction(0)
    for start, end in np.concatenate(list(policy.edges())).tolist():
        change = np.zeros(cells + 1, dtype=np.int64)
        change[start] += 1
        change[end] -= 1
        # The last entry stands for "absent", which is not published.
        moved = change[:cells]
        if edges is None:
            price = Fraction(int(np.abs(moved) @ scales.rates), scales.unit)
        else:
            price = min(
                Fraction(int(scales.rates[draw]), scales.unit)
                for draw, unit in enumerate(np.eye(len(edges), dtype=np.int64))
                if abs(on_cells(unit, edges, cells) @ moved) == moved @ moved
                and np.abs(on_cells(unit, edges, cells)).sum() == moved @ moved
            )
        worst = max(worst, price)
    return worst / epsilon


FAMILIES = [
    (shape, family)
    for shape in (2, 7, (3, 4))
    for family in policy_families(bf.Domain(shape))
]


@pytest.mark.parametrize(("shape", "family"), FAMILIES)
def test_noise_before_the_sort_pays_for_every_edge(shape, family):
    policy = policy_families(bf.Domain(shape))[family]
    for epsilon in (Fraction(7, 10), Fraction(1, 1000), Fraction(30)):
        assert Fraction(99, 100) < worst_price(NoisySort(), policy, epsilon) <= 1


def test_noise_for_added_records_under_moves_is_caught(monkeypatch):
    monkeypatch.setattr(noisy_sort, "record_distance", lambda policy: 1)
    policy = bf.policies.Full(bf.Domain(7))
    assert worst_price(NoisySort(), policy, Fraction(1)) > 1


@pytest.mark.parametrize(
    ("policy", "pair"), [*CASES, pytest.param(bf.policies.Line(LINE), SWAPPED)]
)
def test_groups_of_sorted_noisy_counts_stay_within_epsilon(policy, pair):
    partition = NoisySort().priced(2.0)
    sides = [
        real_choices(partition, policy, counts, 1, first)
        for counts, first in zip(pair, (0, CALLS), strict=True)
    ]
    assert strongest_evidence(*sides).log_ratio <= 1


@pytest.mark.parametrize("policy", [ADD_REMOVE, FULL], ids=["added", "moved"])
@pytest.mark.parametrize("partition", [MatchingPairs(), NoisySort()])
def test_whole_releases_stay_within_epsilon(policy, partition):
    matching = bf.mechanisms.Matching(
        policy, bf.workloads.Identity(LINE), epsilon=1, partition=partition
    )
    pair = REMOVED if policy is ADD_REMOVE else MOVED

    def event(release):
        first = int(release.measurements[0].noisy[0]) // 6
        return tuple(release.details["labels"].tolist()), min(max(first, -2), 4)

    finding = audit_release(matching, pair, event=event, samples=300)
    assert finding.passed, str(finding)

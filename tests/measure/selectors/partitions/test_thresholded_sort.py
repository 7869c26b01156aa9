"""ThresholdedSort: noise of NoisySort, clusters by noisy counts alone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain, kernels
from blowfish_fast.audit import policy_families
from blowfish_fast.errors import InputError
from blowfish_fast.measure.selectors.partitions import NoisySort, ThresholdedSort
from blowfish_fast.policies import AddRemove, Blocks, Full, Graph, Line

from .choosing import chosen


@pytest.mark.parametrize("policy", [AddRemove, Full, Line])
def test_the_noise_is_that_of_noisy_sort(policy):
    own = ThresholdedSort().noise(policy(Domain(9)), Fraction(1, 8))
    other = NoisySort().noise(policy(Domain(9)), Fraction(1, 8))
    assert (own.scales.rates == other.scales.rates).all()
    assert own.scales.unit == other.scales.unit
    assert (own.edges is None) == (other.edges is None)


@pytest.mark.parametrize("policy", [AddRemove, Full, Line])
def test_large_epsilons_find_the_heights(policy):
    counts = [7, 900, 0, 0, 901, 7, 2000, 899]
    buckets = chosen(ThresholdedSort().priced(1.0), counts, policy, epsilon=200)
    assert buckets.labels.tolist() == [0, 1, 2, 2, 1, 0, 3, 1]


def test_the_threshold_takes_small_counts_for_empty():
    counts = np.zeros(1000, dtype=np.int64)
    counts[::100] = 500
    lenient = chosen(ThresholdedSort(0.0).priced(4.0), counts)
    strict = chosen(ThresholdedSort(2.0).priced(4.0), counts)
    assert np.unique(lenient.labels[counts == 0]).size > 1
    assert np.unique(strict.labels[counts == 0]).size == 1


def test_dear_clusters_are_few():
    counts = np.arange(300)
    few = chosen(ThresholdedSort().priced(1000.0), counts).count
    many = chosen(ThresholdedSort().priced(0.1), counts).count
    assert few < 5 < 50 < many


@pytest.mark.parametrize("shape", [1, 2, 7, (3, 4)])
def test_every_policy_is_served(shape):
    domain = Domain(shape)
    for policy in policy_families(domain).values():
        partition = ThresholdedSort().priced(2.0)
        buckets = chosen(partition, np.arange(domain.size), policy)
        assert buckets.cells == domain.size


def test_connected_parts_are_never_joined():
    labels = np.arange(30) % 4
    policy = Blocks(Domain(30), labels)
    buckets = chosen(ThresholdedSort().priced(50.0), np.zeros(30, np.int64), policy)
    assert buckets.count < 30
    for bucket in range(buckets.count):
        assert np.unique(labels[buckets.labels == bucket]).size == 1


def test_a_policy_without_edges_keeps_every_cell():
    policy = Graph(Domain(4), np.empty((0, 2), dtype=np.int64))
    assert chosen(ThresholdedSort(), [1, 1, 1, 1], policy).are_single_cells


def test_an_epsilon_that_tells_nothing_reads_nothing():
    tiny = Fraction(1, 10**15)
    one, two = (
        chosen(ThresholdedSort().priced(3.0), counts, epsilon=tiny)
        for counts in (np.zeros(8, dtype=np.int64), np.arange(8) * 10**6)
    )
    assert one.labels.tolist() == two.labels.tolist() == [0] * 8


def test_buckets_are_numbered_by_their_first_cell():
    labels = chosen(ThresholdedSort().priced(2.0), np.arange(50) * 7 % 11).labels
    firsts = [int(np.flatnonzero(labels == one)[0]) for one in range(labels.max() + 1)]
    assert firsts == sorted(firsts)


def test_bad_thresholds_are_refused():
    for threshold in (-0.1, np.nan, np.inf):
        with pytest.raises(InputError, match="threshold must be"):
            ThresholdedSort(threshold)


@pytest.mark.parametrize(("policy", "draws"), [(AddRemove, 1.0), (Line, 16 / 9)])
def test_what_is_small_counts_as_empty_and_clusters_pay_for_their_noise(
    monkeypatch, policy, draws
):
    asked = []

    def keep(values, variance, price, stretches):
        asked.append((values.tolist(), variance, price))
        return stretches

    monkeypatch.setattr(kernels, "group_squares", keep)
    partition, over = ThresholdedSort(0.5).priced(3.0), policy(Domain(9))
    noise = partition.noise(over, Fraction(1, 4))
    # Discrete Laplace noise of scale 4 on each draw; a cell of the line has two edges
    # but for those at its ends, on average 16/9.
    odds = math.exp(-1 / 4)
    variance = draws * 2 * odds / (1 - odds) ** 2
    cutoff = 0.5 * math.log(9) * math.sqrt(variance / 2)
    below, above = math.floor(cutoff), math.floor(cutoff) + 1
    noisy = np.array([above, -5, below, 1, 0, 40, above, 7 * below, -above])
    partition.group(noisy[None], over, noise)
    ((values, spread, price),) = asked
    assert values == sorted([0] * 5 + [above, above, 7 * below, 40])
    assert spread == pytest.approx(variance, rel=1e-9)
    assert price == 2 * 3.0**2

"""NoisySort: noise that pays for every edge, groups by noisy counts alone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain, kernels
from blowfish_fast.audit import policy_families
from blowfish_fast.errors import InputError
from blowfish_fast.measure.selectors.partitions import NoisySort
from blowfish_fast.measure.selectors.partitions.noisy_sort import on_cells
from blowfish_fast.policies import AddRemove, Blocks, Full, Graph, Line, Threshold

from .choosing import chosen

VARIANTS = [NoisySort(), NoisySort(2), NoisySort(5)]


@pytest.mark.parametrize(
    ("policy", "per_edge", "width"),
    [
        (AddRemove(Domain(9)), False, 1),
        (Full(Domain(9)), False, 2),
        (Threshold(Domain(9), theta=3), False, 2),
        (Line(Domain(9)), True, 1),
        (Graph(Domain(3), [[0, 1], [1, 2], [2, 0], [0, -1]]), True, 1),
    ],
)
def test_noise_is_calibrated_to_the_policy(policy, per_edge, width):
    epsilon = Fraction(1, 8)
    scales, edges = NoisySort().noise(policy, epsilon)
    assert (edges is not None) == per_edge
    assert scales.rates.size == (policy.edge_count if per_edge else policy.domain.size)
    np.testing.assert_allclose(scales.widths, float(width / epsilon))


def test_noise_on_edges_is_added_at_one_end_and_taken_from_the_other():
    edges = np.array([[0, 1], [1, 2], [-1, 2]])
    drawn = np.array([5, 7, 100])
    assert on_cells(drawn, edges, 3).tolist() == [5, 2, -107]
    assert on_cells(drawn, None, 3) is drawn


def test_large_epsilons_find_the_heights():
    counts = [7, 900, 40, 41, 900, 7, 2000, 899]
    buckets = chosen(NoisySort().priced(3.0), counts, epsilon=200)
    assert buckets.labels.tolist() == [0, 1, 2, 2, 1, 0, 3, 1]
    pairs = chosen(NoisySort(2).priced(3.0), counts, epsilon=200)
    assert pairs.labels.tolist() == [0, 1, 2, 2, 1, 0, 3, 4]


def test_a_limit_is_kept():
    counts = np.zeros(100, dtype=np.int64)
    assert chosen(NoisySort(7).priced(9.0), counts).sizes.max() == 7


def test_empty_cells_fall_together():
    counts = np.zeros(1000, dtype=np.int64)
    buckets = chosen(NoisySort().priced(4.0), counts)
    assert buckets.sizes.max() > 400


def test_buckets_are_numbered_by_their_first_cell():
    counts = np.arange(50) * 7 % 11
    labels = chosen(NoisySort().priced(2.0), counts).labels
    firsts = [int(np.flatnonzero(labels == one)[0]) for one in range(labels.max() + 1)]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize("partition", VARIANTS, ids=lambda one: str(vars(one)))
@pytest.mark.parametrize("shape", [1, 2, 7, (3, 4)])
def test_every_policy_is_served(partition, shape):
    domain = Domain(shape)
    for policy in policy_families(domain).values():
        buckets = chosen(partition.priced(2.0), np.arange(domain.size), policy)
        assert buckets.cells == domain.size


@pytest.mark.parametrize("partition", VARIANTS, ids=lambda one: str(vars(one)))
def test_connected_parts_are_never_joined(partition):
    labels = np.arange(30) % 4
    policy = Blocks(Domain(30), labels)
    buckets = chosen(partition.priced(50.0), np.zeros(30, dtype=np.int64), policy)
    assert buckets.count < 30
    for bucket in range(buckets.count):
        assert np.unique(labels[buckets.labels == bucket]).size == 1


def test_a_policy_without_edges_keeps_every_cell():
    policy = Graph(Domain(4), np.empty((0, 2), dtype=np.int64))
    assert chosen(NoisySort(), [1, 1, 1, 1], policy).are_single_cells


def test_an_epsilon_that_tells_nothing_reads_nothing():
    tiny = Fraction(1, 10**15)
    one, two = (
        chosen(NoisySort().priced(3.0), counts, epsilon=tiny)
        for counts in (np.zeros(8, dtype=np.int64), np.arange(8) * 10**6)
    )
    assert one.labels.tolist() == two.labels.tolist() == [0] * 8


def test_giant_counts_work():
    giant = np.zeros(64, dtype=np.int64)
    giant[[7, 40]] = 2**60
    buckets = chosen(NoisySort().priced(50.0), giant)
    assert buckets.labels[7] == buckets.labels[40]


@pytest.mark.parametrize("policy", [AddRemove, Line])
def test_the_same_seed_gives_the_same_buckets(policy):
    counts = np.arange(200) % 13
    one, two = (chosen(NoisySort(), counts, policy, seed=4) for _ in range(2))
    assert (one.labels == two.labels).all()


def test_most_of_epsilon_goes_here():
    assert NoisySort().default_share == Fraction(3, 4)


def test_bad_settings_are_refused():
    for largest in (0, 1.5, False):
        with pytest.raises(InputError, match="largest must be"):
            NoisySort(largest)


def test_groups_of_one_cell_may_be_asked_for():
    assert NoisySort(1).largest == 1
    buckets = chosen(NoisySort(1), [5, 5, 5, 0])
    assert buckets.count == 4


def test_counts_below_zero_are_sorted_as_zeros_and_others_as_they_are(monkeypatch):
    asked = []

    def keep(values, price, largest, stretches):
        asked.append((values.tolist(), price, largest))
        return stretches

    monkeypatch.setattr(kernels, "group_sorted", keep)
    partition, over = NoisySort(3).priced(2.0), AddRemove(Domain(5))
    noisy = np.array([[4, 0, -9, 1, 2]])
    partition.group(noisy, over, partition.noise(over, Fraction(1)))
    assert asked == [([0, 0, 1, 2, 4], 2.0, 3)]


@pytest.mark.parametrize(
    "policy", [AddRemove(Domain(6)), Blocks(Domain(6), [0, 1] * 3)]
)
def test_many_rows_are_grouped_as_each_is_alone(policy):
    partition = NoisySort().priced(2.0)
    noise = partition.noise(policy, Fraction(1))
    rows = np.random.default_rng(3).integers(-2, 30, (20, 6))
    together = partition.group(rows, policy, noise)
    alone = [partition.group(row[None], policy, noise)[0] for row in rows]
    assert together.tolist() == np.array(alone).tolist()
    assert together.min(axis=1).tolist() == [0] * 20
    assert np.unique(together.max(axis=1)).size > 1


def test_noise_goes_on_edges_while_there_are_fewer_than_two_to_a_cell():
    pairs = np.array(np.triu_indices(5, 1)).T
    assert NoisySort().noise(Full(Domain(5)), Fraction(1)).edges is None
    few = NoisySort().noise(Graph(Domain(5), pairs[1:]), Fraction(1))
    assert few.edges.tolist() == pairs[1:].tolist()

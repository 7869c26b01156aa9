"""MatchingPairs: the noise its proof needs, pairs wherever they lie, any policy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast import Domain
from blowfish_fast.audit import policy_families
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.kernels.window_costs.sorted_groups import group_sorted
from blowfish_fast.measure.selectors.partitions import MatchingPairs
from blowfish_fast.measure.selectors.partitions.matching_pairs import pair_deviations
from blowfish_fast.policies import AddRemove, Blocks, Full, Graph
from tests.generated import example_count
from tests.reference.window_matching import deviation

from .choosing import chosen

SINGLES = np.ones(8, dtype=np.int64)
VARIANTS = [
    MatchingPairs(),
    MatchingPairs(1),
    MatchingPairs(3),
    MatchingPairs(8, rounds=2),
    MatchingPairs(20),
    MatchingPairs(rounds=3),
]


@pytest.mark.parametrize("partition", [MatchingPairs(), MatchingPairs(4)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1), Fraction(70)])
def test_pairs_get_twice_and_cells_once_the_sensitivity(partition, epsilon):
    noise = partition.noise(8, epsilon, SINGLES)
    step = Fraction(2) ** noise.grid
    assert step <= 1
    assert noise.single * step == 1 / epsilon
    assert noise.pair * step == 2 / epsilon


@pytest.mark.parametrize("partition", [MatchingPairs(), MatchingPairs(4)])
def test_buckets_of_different_sizes_get_the_noise_of_the_worst_pair(partition):
    sizes = np.array([1, 2, 4, 1])
    noise = partition.noise(8, Fraction(1), sizes)
    step = Fraction(2) ** noise.grid
    # A bucket of 4 with one of 1: 2 * 4 / 5 per record of the small one.
    assert noise.single * step >= Fraction(8, 5)
    assert noise.pair == 2 * noise.single
    assert noise.single * step < Fraction(8, 5) + step


@settings(max_examples=example_count(200))
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 5)), min_size=2, max_size=2),
    st.integers(-6, 0),
)
def test_one_record_changes_a_pair_by_at_most_the_declared_amount(pair, grid):
    totals = np.array([total for total, _ in pair])
    sizes = np.array([size for _, size in pair])
    change = Fraction(2 * int(sizes.max()), int(sizes.sum()))
    steps = -(-change // Fraction(2) ** grid)
    ends = np.array([0]), np.array([1])
    before = pair_deviations(totals, sizes, *ends, grid)[0]
    assert before == deviation(totals.tolist(), sizes.tolist(), 0, 1) // (
        Fraction(2) ** grid
    )
    for cell in (0, 1):
        added = totals.copy()
        added[cell] += 1
        after = pair_deviations(added, sizes, *ends, grid)[0]
        assert abs(after - before) <= steps


def test_grid_and_cap_depend_on_public_facts_alone():
    for partition in (MatchingPairs(), MatchingPairs(2)):
        noise = partition.noise(8, Fraction(1), SINGLES)
        assert noise == partition.noise(8, Fraction(1), SINGLES)
        assert noise.cap >= 2**20


@pytest.mark.parametrize("partition", VARIANTS, ids=lambda one: str(vars(one)))
@pytest.mark.parametrize("cells", [1, 2, 3, 31, 100])
def test_buckets_hold_at_most_two_cells_a_round(partition, cells):
    for policy in (AddRemove, Full):
        buckets = chosen(partition.priced(2.0), np.arange(cells) % 7, policy)
        assert buckets.cells == cells
        assert buckets.sizes.max() <= 2**partition.rounds


def test_large_epsilons_pair_equal_counts_far_apart():
    counts = [7, 900, 40, 40, 900, 7, 2000]
    buckets = chosen(MatchingPairs().priced(3.0), counts, epsilon=200)
    assert buckets.labels.tolist() == [0, 1, 2, 2, 1, 0, 3]
    near = chosen(MatchingPairs(3).priced(3.0), counts, epsilon=200)
    assert near.labels.tolist() == [0, 1, 2, 2, 1, 3, 4]


@pytest.mark.parametrize("policy", [AddRemove, Full])
def test_the_cost_stays_within_the_promised_bound(policy, generator):
    counts, price, delta = generator.integers(0, 60, 40), 10.0, 0.01
    values = np.sort(counts)
    edges = group_sorted(values, price, largest=2)
    optimum = (
        price * (edges.size - 1) + (values[edges[1:] - 1] - values[edges[:-1]]).sum()
    )
    bound = 40 * np.log(40 * 41 / 2 / delta) * (1 if policy is AddRemove else 2)
    for seed in range(30):
        buckets = chosen(MatchingPairs().priced(price), counts, policy, seed=seed)
        gaps = [np.ptp(counts[buckets.labels == one]) for one in range(buckets.count)]
        assert optimum <= price * buckets.count + sum(gaps) <= optimum + bound


def test_rounds_join_pairs_of_pairs():
    counts = [5, 800, 5, 800, 5, 800, 5, 800]
    buckets = chosen(MatchingPairs(rounds=2).priced(3.0), counts, epsilon=400)
    assert buckets.labels.tolist() == [0, 1] * 4
    within = chosen(MatchingPairs(2, rounds=2).priced(3.0), counts, epsilon=400)
    assert within.labels.tolist() == [0, 1] * 4


def test_connected_parts_are_never_joined():
    counts = np.zeros(12, dtype=np.int64)
    labels = np.arange(12) % 3
    for partition in (MatchingPairs(), MatchingPairs(4), MatchingPairs(4, rounds=3)):
        buckets = chosen(
            partition.priced(50.0), counts, Blocks(Domain(12), labels), epsilon=5
        )
        assert buckets.count < 12
        for bucket in range(buckets.count):
            assert np.unique(labels[buckets.labels == bucket]).size == 1


@pytest.mark.parametrize("shape", [2, 7, (3, 4)])
def test_every_policy_is_served(shape):
    domain = Domain(shape)
    for policy in policy_families(domain).values():
        for partition in VARIANTS:
            buckets = chosen(partition.priced(2.0), np.arange(domain.size), policy)
            assert buckets.cells == domain.size


def test_a_policy_without_edges_keeps_every_cell():
    policy = Graph(Domain(4), np.empty((0, 2), dtype=np.int64))
    assert chosen(MatchingPairs(), [1, 1, 1, 1], policy).are_single_cells


@pytest.mark.parametrize(
    "partition", [MatchingPairs(), MatchingPairs(2), MatchingPairs(rounds=4)]
)
def test_counts_beyond_the_cap_are_clipped_and_not_refused(partition):
    giant = np.zeros(64, dtype=np.int64)
    giant[7] = giant[40] = 2**60
    assert chosen(partition.priced(1.0), giant).cells == 64


@pytest.mark.parametrize("partition", [MatchingPairs(), MatchingPairs(2)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), 100])
@pytest.mark.parametrize("price", [0.0, 1e30])
def test_any_price_works(partition, epsilon, price):
    buckets = chosen(partition.priced(price), np.arange(50) % 7, epsilon=epsilon)
    assert buckets.cells == 50
    if price:
        assert buckets.count == 25


@pytest.mark.parametrize("partition", [MatchingPairs(), MatchingPairs(5, rounds=2)])
def test_the_same_seed_gives_the_same_buckets(partition):
    counts = np.arange(200) % 13
    one, two = (chosen(partition.priced(1.0), counts, seed=4) for _ in range(2))
    assert (one.labels == two.labels).all()


def test_prices_make_new_partitions():
    partition = MatchingPairs(3, rounds=2)
    dear = partition.priced(100.0)
    assert (dear.bucket_cost, dear.window, dear.rounds) == (100.0, 3, 2)
    assert partition.bucket_cost == 1.0
    assert dear.default_share == Fraction(1, 3)


def test_bad_settings_are_refused():
    for window in (0, 1.5, True):
        with pytest.raises(InputError, match="window must be"):
            MatchingPairs(window)
    for rounds in (0, 9, 2.5):
        with pytest.raises(InputError, match="rounds must"):
            MatchingPairs(rounds=rounds)
    many = np.zeros(513, dtype=np.int64)
    for partition in (MatchingPairs(), MatchingPairs(9)):
        with pytest.raises(SizeError, match="NoisySort"):
            chosen(partition, many)
    assert chosen(MatchingPairs(8), many).cells == 513

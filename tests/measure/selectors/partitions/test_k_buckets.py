"""KBuckets: as many buckets as asked, drawn by their squared error."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.errors import InputError
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import KBuckets
from blowfish_fast.measure.selectors.partitions.bisection import evenly_spaced
from blowfish_fast.policies import AddRemove, Blocks, Full

from .choosing import chosen


@pytest.mark.parametrize("policy", [AddRemove, Full])
@pytest.mark.parametrize("cells", [1, 2, 3, 31, 100, 1500])
def test_there_are_as_many_buckets_as_asked(policy, cells):
    for buckets in (1, 2, 7, 40):
        drawn = chosen(KBuckets(buckets), np.arange(cells) % 9, policy)
        assert drawn.cells == cells
        assert drawn.count == min(buckets, cells)


def test_large_epsilons_find_the_steps():
    steps = np.repeat([0, 500, 20, 900], [8, 4, 15, 5])
    buckets = chosen(KBuckets(4), steps, epsilon=10**4)
    assert buckets.edges.tolist() == [0, 8, 12, 27, 32]


@pytest.mark.long
def test_without_signal_all_partitions_are_equally_likely():
    counts = np.zeros(5, dtype=int)
    seen = {}
    for seed in range(1200):
        edges = tuple(chosen(KBuckets(3), counts, seed=seed).edges.tolist())
        seen[edges] = seen.get(edges, 0) + 1
    assert len(seen) == 6
    # 200 of each are expected, with a standard deviation of 13.
    assert min(seen.values()) > 140
    assert max(seen.values()) < 260


def test_counts_above_the_largest_are_alike():
    low = np.array([0, 0, 7, 7, 7, 0])
    high = np.array([0, 0, 7, 700, 70, 0])
    for seed in range(20):
        partition = KBuckets(3, largest_count=7)
        one = chosen(partition, low, seed=seed, epsilon=5)
        two = chosen(partition, high, seed=seed, epsilon=5)
        assert one.edges.tolist() == two.edges.tolist()


def test_the_rate_spends_epsilon_in_all():
    partition = KBuckets(5, largest_count=20)
    rate = partition.rate(100, Fraction(1))
    assert partition.reach == 40
    assert 4 * (40 * rate) == 1
    assert KBuckets().count(4096) == 256
    assert KBuckets().count(2**20) == 512
    assert KBuckets().count(9) == 5
    assert KBuckets(5000).count(2**20) == 1024
    assert KBuckets().default_share == Fraction(1, 10)


def test_candidates_are_evenly_spaced_on_long_domains():
    borders = evenly_spaced(1500, 1024)
    assert borders[0] == 0
    assert borders[-1] == 1500
    assert set(np.diff(borders)) == {1, 2}
    buckets = chosen(KBuckets(3), np.zeros(1500, dtype=int))
    assert np.isin(buckets.edges, borders).all()


def test_giant_counts_and_zeros_work():
    giant = np.eye(1, 64, 3, dtype=np.int64)[0] * 2**61
    for counts in (np.zeros(64, int), giant):
        assert chosen(KBuckets(4), counts).count == 4


def test_nothing_is_merged_where_nothing_moves():
    buckets = KBuckets(2).select(
        np.array([3, 3, 3]),
        policy=Blocks(Domain(3), [0, 1, 2]),
        epsilon=Fraction(1),
        rng=Randomness(1),
    )
    assert buckets.are_single_cells


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="buckets must be"):
        KBuckets(0)
    with pytest.raises(InputError, match="largest_count must be"):
        KBuckets(largest_count=0)
    with pytest.raises(InputError, match="cut the counts at"):
        chosen(KBuckets(largest_count=2**40), np.zeros(100, dtype=int))

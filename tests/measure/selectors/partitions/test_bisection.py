"""Bisection: cuts by level, rates by budget, any number of cells."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.errors import InputError
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import Bisection
from blowfish_fast.policies import AddRemove, Blocks, Full

from .choosing import chosen


@pytest.mark.parametrize("policy", [AddRemove, Full])
@pytest.mark.parametrize("cells", [1, 2, 3, 31, 100, 1000])
def test_edges_cover_the_domain(policy, cells):
    for epsilon in (Fraction(1, 100), 10**6):
        buckets = chosen(Bisection().priced(2.0), np.arange(cells), policy, epsilon)
        assert buckets.edges[0] == 0
        assert buckets.cells == cells


def test_large_epsilons_find_the_steps():
    steps = np.repeat([0, 500, 20, 900], 8)
    buckets = chosen(Bisection().priced(3.0), steps, epsilon=10**4)
    assert buckets.edges.tolist() == [0, 8, 16, 24, 32]


def test_equal_cells_stay_together_where_buckets_cost():
    buckets = chosen(Bisection().priced(50.0), np.full(64, 7), epsilon=100)
    assert buckets.count == 1


def test_free_buckets_split_everything():
    counts = np.arange(32) ** 2
    buckets = chosen(Bisection(32).priced(0.0), counts, epsilon=10**7)
    assert buckets.count == 32


def test_one_level_cuts_at_most_once():
    for seed in range(20):
        counts = np.arange(50) % 7
        assert chosen(Bisection(1).priced(1.0), counts, seed=seed).count <= 2


def test_the_rates_spend_epsilon_in_all():
    partition = Bisection(5, share=Fraction(1, 4))
    for_split, for_number = partition.rates(100, Fraction(1))
    # Weights e^(-rate cost) with costs that move by 2 cost 4 rates.
    assert 5 * 4 * for_split + 4 * for_number == 1
    assert 4 * for_number == Fraction(1, 4)
    assert Bisection().levels_over(4096) == 12
    assert Bisection().levels_over(4097) == 13
    assert Bisection().levels_over(2) == 1


def test_the_default_share_is_a_third_or_so():
    assert Bisection().default_share == Fraction(3, 10)


def test_giant_counts_zeros_and_prices_work():
    giant = np.eye(1, 64, 3, dtype=np.int64)[0] * 2**61
    for counts in (np.zeros(64, int), giant):
        for price in (0.0, 1.0, 1e12):
            assert chosen(Bisection().priced(price), counts).cells == 64


def test_nothing_is_merged_where_nothing_moves():
    counts = np.array([3, 3, 3])
    cells = Domain(3)
    buckets = Bisection().select(
        counts,
        policy=Blocks(cells, [0, 1, 2]),
        epsilon=Fraction(1),
        rng=Randomness(1),
    )
    assert buckets.are_single_cells


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="levels must lie"):
        Bisection(0)
    with pytest.raises(InputError, match="share must lie"):
        Bisection(share=Fraction(1))

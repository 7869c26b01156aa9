"""LeastCost: the noise its proof needs, on a public grid, any domain."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain, kernels
from blowfish_fast._support.validation import float_above
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.measure.selectors.partitions import LeastCost, least_cost
from blowfish_fast.measure.selectors.partitions.least_cost import QUANTILE
from blowfish_fast.policies import AddRemove, Blocks, Full

from .choosing import chosen


@pytest.mark.parametrize("cells", [2, 3, 8, 100, 4096])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(50)])
def test_every_length_has_the_scale_of_the_proof(cells, epsilon):
    noise = LeastCost().noise(cells, epsilon)
    longest = 2 ** (cells.bit_length() - 1)
    for power, scale in enumerate(noise.scales):
        needed = (4 - Fraction(2, 2**power) - Fraction(2, longest)) / epsilon
        assert Fraction(scale) >= needed
        assert scale <= float(needed) * 1.01 + 2 * noise.step / float(epsilon)
    assert noise.scales[0] > 0


def test_pinball_noise_is_four_times_smaller():
    deviation = LeastCost().noise(1024, Fraction(1)).scales[-1]
    pinball = LeastCost(cost="pinball").noise(1024, Fraction(1)).scales[-1]
    assert deviation / pinball == pytest.approx(4, rel=0.01)


def test_grid_and_cap_depend_on_public_facts_alone():
    partition = LeastCost()
    assert partition.noise(64, Fraction(1)).cap == partition.noise(64, Fraction(1)).cap
    assert partition.noise(2**20, Fraction(1)).cap > 2**20


@pytest.mark.parametrize("settings", [{}, {"lengths": "all"}, {"cost": "pinball"}])
@pytest.mark.parametrize("policy", [AddRemove, Full])
@pytest.mark.parametrize("cells", [1, 2, 3, 31, 100])
def test_edges_cover_the_domain(settings, policy, cells):
    buckets = chosen(LeastCost(**settings).priced(2.0), np.arange(cells), policy)
    assert buckets.edges[0] == 0
    assert buckets.cells == cells


@pytest.mark.parametrize("settings", [{}, {"lengths": "all"}, {"cost": "pinball"}])
def test_large_epsilons_find_the_steps(settings):
    steps = np.repeat([0, 500, 20, 900], 8)
    buckets = chosen(LeastCost(**settings).priced(3.0), steps, epsilon=200)
    assert buckets.edges.tolist() == [0, 8, 16, 24, 32]


def test_counts_beyond_the_cap_are_clipped_and_not_refused():
    giant = np.zeros(64, dtype=np.int64)
    giant[7] = 2**61
    assert chosen(LeastCost().priced(1.0), giant).cells == 64


def test_the_same_seed_gives_the_same_buckets():
    counts = np.arange(200) % 13
    one, two = (chosen(LeastCost().priced(1.0), counts, seed=4) for _ in range(2))
    assert (one.edges == two.edges).all()


def test_prices_make_new_partitions():
    partition = LeastCost()
    dear = partition.priced(100.0)
    assert dear.bucket_cost == 100.0
    assert partition.bucket_cost == 1.0
    assert dear.default_share == Fraction(1, 4)


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="lengths must be"):
        LeastCost("some")
    with pytest.raises(InputError, match="cost must be"):
        LeastCost(cost="squares")
    with pytest.raises(InputError, match="offset must lie"):
        LeastCost(offset=-1)
    with pytest.raises(SizeError, match="12,502,500 intervals"):
        chosen(LeastCost("all"), np.zeros(5000, dtype=np.int64))
    with pytest.raises(InputError, match="offset must lie"):
        LeastCost(offset=1024.5)
    for offset in (0, 0.5, 1024):
        assert LeastCost(offset=offset).offset == offset


def test_all_lengths_are_offered_up_to_their_limit(monkeypatch):
    monkeypatch.setattr(least_cost, "MOST_CELLS_ALL_LENGTHS", 6)
    assert chosen(LeastCost("all"), np.zeros(6, dtype=np.int64)).cells == 6
    with pytest.raises(SizeError, match="offered up to 6 cells"):
        chosen(LeastCost("all"), np.zeros(7, dtype=np.int64))


@pytest.mark.parametrize(("policy", "distance"), [(AddRemove, 1), (Full, 2)])
@pytest.mark.parametrize(
    ("cost", "quantile"), [("deviation", None), ("pinball", QUANTILE)]
)
def test_a_move_costs_a_removal_and_an_addition(policy, distance, cost, quantile):
    partition = LeastCost(offset=3, cost=cost).priced(5.0)
    counts = np.array([2**61, 3, 0, 1, 7, 2, 2, 9])
    (clipped, prices, scales), rest = partition.candidates(
        counts, policy(Domain(8)), Fraction(1, 3)
    )
    noise = partition.noise(8, Fraction(1, 3 * distance))
    assert scales.tolist() == noise.scales.tolist()
    assert prices.tolist() == (5.0 + 3.0 * noise.scales).tolist()
    assert clipped.tolist() == [noise.cap, *counts[1:]]
    assert rest == {"step": noise.step, "quantile": quantile}


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(50)])
def test_pinball_scales_are_those_of_the_proof(epsilon):
    share = Fraction(*QUANTILE)
    other = max(share, 1 - share)
    noise = LeastCost(cost="pinball").noise(64, epsilon)
    # A single cell never changes its cost; longer ones by one in all.
    for scale, moved in zip(noise.scales, [other] + [Fraction(1)] * 6, strict=True):
        assert moved / epsilon <= Fraction(scale)
        assert scale <= float(moved / epsilon) + 2 * noise.step / float(epsilon)
    smallest = float(other) / float(epsilon)
    assert (noise.step, noise.cap) == kernels.partition_grid(64, smallest)


def test_the_grid_follows_the_smallest_noise():
    noise = LeastCost().noise(64, Fraction(1, 100))
    # Of a single cell: its competitor's 2 - 2/64.
    smallest = float(2 - Fraction(2, 64)) / 0.01
    assert (noise.step, noise.cap) == kernels.partition_grid(64, smallest)


def test_scales_are_rounded_up():
    assert float_above(Fraction(1, 2)) == 0.5
    for value in (Fraction(1, 3), Fraction(2, 3), Fraction(10**20 + 1)):
        assert value < Fraction(float_above(value)) <= value * (1 + Fraction(1, 2**52))


@pytest.mark.parametrize(
    "counts", [[4], [2**61], [0, 0, 500, 500, 20, 20, 2**61, 2**61]]
)
def test_public_counts_are_divided_without_noise(counts):
    cells = len(counts)
    alone = Blocks(Domain(cells), np.arange(cells))
    buckets = chosen(LeastCost().priced(3.0), counts, alone)
    assert buckets.edges.tolist() == ([0, 1] if cells == 1 else [0, 2, 4, 6, 8])

"""LeastCost: the noise its proof needs, on a public grid, any domain."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.measure.selectors.partitions import LeastCost
from blowfish_fast.policies import AddRemove, Full

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

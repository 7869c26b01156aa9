"""DyadicTree: rate, weights and any number of cells."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast.errors import EpsilonError, InputError
from blowfish_fast.measure.selectors.partitions import DyadicTree
from blowfish_fast.policies import AddRemove, Full

from .choosing import chosen


@pytest.mark.parametrize("policy", [AddRemove, Full])
@pytest.mark.parametrize("cells", [1, 2, 3, 31, 100, 1000])
def test_edges_cover_the_domain(policy, cells):
    buckets = chosen(DyadicTree().priced(2.0), np.arange(cells), policy)
    assert buckets.edges[0] == 0
    assert buckets.cells == cells


def test_large_epsilons_find_the_steps():
    steps = np.repeat([0, 500, 20, 900], 8)
    buckets = chosen(DyadicTree().priced(3.0), steps, epsilon=200)
    assert buckets.edges.tolist() == [0, 8, 16, 24, 32]


def test_the_rate_is_epsilon_less_the_slack_of_the_sampler():
    partition = DyadicTree()
    for cells in (2, 4096, 2**20):
        rate = partition.rate(cells, Fraction(1, 100))
        assert 0 < Fraction(1, 100) - rate < Fraction(1, 10**6)


def test_an_epsilon_below_the_slack_is_refused():
    with pytest.raises(EpsilonError, match="sampler's rounding"):
        DyadicTree().rate(2**24, Fraction(1, 10**9))


@pytest.mark.parametrize("dimensions", [1, 2])
def test_weights_are_at_most_one_and_grow_with_length(dimensions):
    weights = DyadicTree(query_cells=300, dimensions=dimensions).length_weights(4096)
    assert len(weights) == 13
    assert max(weights) == 1.0
    assert weights == sorted(weights)
    assert DyadicTree().length_weights(4096) == [1.0] * 13


def test_the_default_share_grows_with_dimension():
    assert DyadicTree().default_share == Fraction(1, 5)
    assert DyadicTree(dimensions=2).default_share == Fraction(1, 4)


def test_giant_counts_and_zeros_work():
    for counts in (np.zeros(64, int), np.eye(1, 64, 3, dtype=np.int64)[0] * 2**61):
        assert chosen(DyadicTree().priced(1.0), counts).cells == 64


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="price must be a positive"):
        DyadicTree(price=0)
    with pytest.raises(InputError, match="price must be at most 1024"):
        DyadicTree(price=2000)
    with pytest.raises(InputError, match="at least 1"):
        DyadicTree(query_cells=0)
    with pytest.raises(InputError, match="at least 1"):
        DyadicTree(dimensions=0)


@pytest.mark.parametrize("cells", [100, 1000, 1024, 4096, 5000])
def test_long_buckets_are_cut_at_public_multiples(cells):
    tree = DyadicTree(longest="1/16").priced(1e6)
    most = tree.most_cells(cells)
    assert most == {100: 64, 1000: 64, 1024: 64, 4096: 256, 5000: 256}[cells]
    drawn = chosen(DyadicTree().priced(1e6), np.zeros(cells, int)).edges
    cut = chosen(tree, np.zeros(cells, int)).edges
    assert np.diff(cut).max() <= most
    added = np.setdiff1d(cut, drawn)
    assert set(drawn) <= set(cut)
    assert not (added % most).any()


def test_short_buckets_are_left_alone():
    tree = DyadicTree(longest="1/2")
    edges = np.array([0, 100, 200, 230, 1024])
    # Of 1,024 cells a bucket has at most 512; only the last one is longer.
    assert tree._cut_long(edges).tolist() == [0, 100, 200, 230, 512, 1024]
    assert DyadicTree()._cut_long(edges) is edges
    assert tree._cut_long(np.array([0, 50])).tolist() == [0, 50]


def test_buckets_may_be_longer_where_long_ones_cover_two_thirds_beside_fine_ones():
    tree = DyadicTree(longest="1/8", loosens=True)
    # Of 768 cells a bucket has at most 64, or 128 where longer ones cover 512 of them
    # and two have at most 4.
    mostly = np.array([0, 200, 252, 256, 260, 768])
    cut = [0, 128, 200, 252, 256, 260, 384, 512, 640, 768]
    assert tree._cut_long(mostly).tolist() == cut
    strict = DyadicTree(longest="1/8")
    for drawn in (
        [0, 200, 251, 256, 260, 768],
        [0, 200, 256, 768],
        [0, 64, 128, 192, 252, 256, 260, 768],
    ):
        edges = np.array(drawn)
        assert tree._cut_long(edges).tolist() == strict._cut_long(edges).tolist()
        assert np.diff(tree._cut_long(edges)).max() == 64
    assert not strict.loosens
    assert DyadicTree(loosens=True)._cut_long(mostly) is mostly
    with pytest.raises(InputError, match="loosens is True or False"):
        DyadicTree(loosens="yes")


@pytest.mark.parametrize("longest", [0, -1, "1.01", 2])
def test_the_longest_bucket_is_a_part_of_the_line(longest):
    with pytest.raises(InputError, match="part of the line"):
        DyadicTree(longest=longest)


def test_short_buckets_are_cut_into_single_cells():
    edges = np.array([0, 2, 5, 6, 8, 16])
    tree = DyadicTree().without_shorter(3)
    assert tree._cut_short(edges).tolist() == [0, 1, 2, 5, 6, 7, 8, 16]
    assert DyadicTree().without_shorter(4)._cut_short(edges).tolist() == [*range(9), 16]
    assert DyadicTree()._cut_short(edges) is edges
    assert tree._cut_short(edges[[0, 2, 4]]).tolist() == [0, 5, 8]

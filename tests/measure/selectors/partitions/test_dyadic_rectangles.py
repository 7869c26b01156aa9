"""DyadicRectangles: rate, weights, grids of any shape."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import cell_order
from blowfish_fast.errors import EpsilonError, InputError
from blowfish_fast.kernels.partition.rectangle_prior import rectangle_slack
from blowfish_fast.kernels.space.box_buckets import bucket_boxes
from blowfish_fast.measure.selectors.partitions import DyadicRectangles
from blowfish_fast.policies import AddRemove, Blocks, Full, Threshold

from .choosing import chosen

POLICIES = [AddRemove, Full, lambda grid: Threshold(grid, theta=1, metric="l1")]


@pytest.mark.parametrize("policy", POLICIES, ids=["added", "full", "threshold"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (2, 2), (3, 5), (31, 18), (64, 64)])
def test_buckets_are_rectangles_that_cover_the_grid(policy, shape):
    counts = np.arange(shape[0] * shape[1]).reshape(shape) % 7
    buckets = chosen(DyadicRectangles().priced(2.0), counts, policy)
    assert buckets.cells == counts.size
    boxes = bucket_boxes(buckets.order, buckets.edges, shape)
    assert boxes is not None
    assert buckets.sum(counts).sum() == counts.sum()


def test_buckets_follow_the_first_visits_of_the_hilbert_curve():
    counts = np.random.default_rng(1).poisson(3, size=(16, 16)) ** 2
    buckets = chosen(DyadicRectangles().priced(2.0), counts)
    position = cell_order(Domain((16, 16))).position
    assert buckets.count > 3
    assert (np.diff(position[buckets.order[buckets.edges[:-1]]]) > 0).all()


def test_large_epsilons_find_the_blocks():
    counts = np.kron([[0, 500, 500, 500], [20, 900, 3, 70]], np.ones((4, 4), int))
    buckets = chosen(DyadicRectangles().priced(3.0), counts, epsilon=200)
    boxes = bucket_boxes(buckets.order, buckets.edges, counts.shape)
    # The aligned half above on the right is one rectangle, the rest single blocks.
    assert sorted(boxes.reshape(-1, 4).tolist()) == [
        [0, 0, 4, 4],
        [0, 4, 4, 8],
        [0, 8, 4, 16],
        [4, 0, 8, 4],
        [4, 4, 8, 8],
        [4, 8, 8, 12],
        [4, 12, 8, 16],
    ]


def test_nothing_that_moves_needs_no_choice():
    apart = chosen(
        DyadicRectangles(),
        np.ones((3, 3), int),
        lambda grid: Blocks(grid, np.arange(9)),
    )
    assert apart.are_single_cells
    assert apart.curve


def test_the_rate_is_epsilon_less_the_slack_of_the_sampler():
    partition = DyadicRectangles()
    for shape in ((1, 2), (64, 64), (1024, 1024)):
        rate = partition.rate(shape, Fraction(1, 100))
        assert Fraction(1, 100) - rate == rectangle_slack(shape)
        assert 0 < rectangle_slack(shape) < Fraction(1, 10**6)


def test_an_epsilon_below_the_slack_of_all_rates_has_a_smaller_one():
    shape, epsilon = (4096, 4096), Fraction(1, 10**9)
    assert epsilon <= 2 * rectangle_slack(shape)
    slack = rectangle_slack(shape, rate=epsilon, penalty=DyadicRectangles().price)
    assert 0 < 2 * slack < epsilon
    assert DyadicRectangles().rate(shape, epsilon) == epsilon - slack


def test_an_epsilon_below_the_slack_is_refused():
    with pytest.raises(EpsilonError, match="sampler's rounding"):
        DyadicRectangles().rate((4096, 4096), Fraction(1, 10**12))


@pytest.mark.parametrize("shape", [(64, 64), (7, 300)])
def test_weights_are_at_most_one_and_grow_with_both_sides(shape):
    cells = shape[0] * shape[1]
    weights = np.array(DyadicRectangles(query_cells=cells / 9).level_weights(shape))
    assert weights.shape == tuple((side - 1).bit_length() + 1 for side in shape)
    assert weights.max() == weights[-1, -1] == 1.0
    assert (np.diff(weights, axis=0) >= 0).all()
    assert (np.diff(weights, axis=1) >= 0).all()


def test_single_cells_count_in_full_and_large_queries_leave_small_buckets_out():
    assert np.array(DyadicRectangles().level_weights((64, 64))).min() == 1.0
    # The published choice: the root of eight mean sides, for queries of a ninth.
    asked = DyadicRectangles(query_cells=256 * 256 / 9).level_weights((256, 256))
    for tall, wide in ((0, 0), (3, 1), (2, 5), (8, 8)):
        side = (2**tall + 2**wide) / 2 / 256
        assert asked[tall][wide] == pytest.approx(min(1, 8 * side) ** 0.5)


def test_buckets_are_dearer_where_queries_are_small():
    prices = [DyadicRectangles(query_cells=cells).price for cells in (1, 16, 10**6)]
    assert prices == pytest.approx([0.5, 0.275, 0.2], abs=1e-3)
    assert DyadicRectangles(price=3, query_cells=16).price == 3.0


def test_the_share_is_the_one_that_was_tuned():
    assert DyadicRectangles().default_share == Fraction(3, 10)


def test_giant_counts_and_zeros_work():
    spike = np.zeros((8, 8), dtype=np.int64)
    spike[3, 4] = 2**61
    for counts in (spike * 0, spike):
        assert chosen(DyadicRectangles().priced(1.0), counts).cells == 64


def test_choices_repeat_with_the_seed():
    counts = np.random.default_rng(2).poisson(5, size=(20, 13))
    one, two = (chosen(DyadicRectangles().priced(2.0), counts) for _ in range(2))
    assert (one.labels == two.labels).all()


@pytest.mark.parametrize("shape", [(8,), (2, 2, 2)])
def test_other_dimensions_are_refused_with_the_way_out(shape):
    with pytest.raises(InputError, match=r"two attributes.*Use DyadicTree"):
        chosen(DyadicRectangles(), np.ones(shape, int))


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="price must be a positive"):
        DyadicRectangles(price=0)
    with pytest.raises(InputError, match="at least 1"):
        DyadicRectangles(query_cells=0)

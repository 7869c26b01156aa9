"""Boxes from noisy cells: thresholds relative to noise, buckets within parts."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.errors import InputError
from blowfish_fast.measure.selectors.partitions.kd_cells import (
    Boxes,
    GainRule,
    NoisyCells,
    UniformityRule,
    box_buckets,
    default_levels,
)

NOISE = np.random.default_rng(5).laplace(0, 10, size=(64, 64)).round()
STEP = NOISE + 40 * (np.arange(64) < 16)[:, None]


def number_of_boxes(cells, *given):
    found = UniformityRule(*given).boxes(NoisyCells(cells, 10.0, 0.0), 60)
    return len(found.lows)


def test_noise_alone_is_uniform_and_a_step_is_not():
    assert number_of_boxes(NOISE, "uniformity") == 1
    assert 1 < number_of_boxes(STEP, "uniformity") < 200


def test_the_three_thresholds_nest():
    count = {
        thresholds: number_of_boxes(STEP, thresholds)
        for thresholds in ("or", "and", "uniformity")
    }
    assert count["and"] <= count["uniformity"] <= count["or"]
    assert count["and"] < count["or"]


def test_a_higher_threshold_leaves_fewer_boxes():
    boxes = [number_of_boxes(STEP, "uniformity", times) for times in (0.8, 1.2, 2.5)]
    assert boxes[0] > boxes[1] >= boxes[2]


def test_without_noise_only_equal_cells_stay_together():
    cells = np.repeat([[3.0, 3.0, 8.0, 8.0]], 4, axis=0)
    exact = NoisyCells(cells, 0.0, 0.0)
    paying = GainRule(price=1, caution=1).boxes(exact, 9)
    assert paying.lows.tolist() == [[0, 0], [0, 2]]
    even = UniformityRule("uniformity", count=1).boxes(exact, 9)
    for low, high in zip(even.lows, even.highs, strict=True):
        assert np.ptp(cells[low[0] : high[0], low[1] : high[1]]) == 0


def test_a_negative_total_is_never_crowded_below_zero():
    cells = NoisyCells(np.full((4, 4), -5.0), 1.0, 0.0)
    assert len(UniformityRule("or", count=1).boxes(cells, 9).lows) == 1


@pytest.mark.parametrize(
    ("rule", "given_"),
    [
        (GainRule, {"price": float("nan")}),
        (GainRule, {"caution": 0}),
        (UniformityRule, {"thresholds": "median"}),
        (UniformityRule, {"uniformity": 0}),
        (UniformityRule, {"count": -1}),
    ],
)
def test_rules_refuse_thresholds_that_are_none(rule, given_):
    (name,) = given_
    with pytest.raises(InputError, match=f"{name} must be"):
        rule(**given_)


def test_buckets_stay_within_parts_that_stand_together():
    boxes = Boxes(np.array([[0, 0], [0, 2]]), np.array([[2, 2], [2, 4]]))
    parts = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    buckets = box_buckets(boxes, (2, 4), parts)
    assert buckets.labels.tolist() == [0, 0, 1, 3, 2, 2, 3, 3]
    whole = box_buckets(boxes, (2, 4), None)
    assert whole.labels.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


@pytest.mark.parametrize("cells", [1, 2, 65536])
def test_the_default_depth_exceeds_a_balanced_tree(cells):
    assert 2 ** default_levels(cells) >= cells**4

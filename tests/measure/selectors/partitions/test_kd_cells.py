"""Boxes from noisy cells: thresholds relative to noise, buckets within parts."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.measure.selectors.partitions.kd_cells import (
    Boxes,
    box_buckets,
    default_depth,
    paying_boxes,
    uniform_boxes,
)

NOISE = np.random.default_rng(5).laplace(0, 10, size=(64, 64)).round()
EASY = {"width": 10.0, "count": 0.01, "depth": 60}


def test_noise_alone_is_uniform_and_a_step_is_not():
    quiet = uniform_boxes(NOISE, mode="uniformity", uniformity=None, **EASY)
    assert len(quiet.lows) == 1
    step = NOISE.copy()
    step[:16] += 40
    found = uniform_boxes(step, mode="uniformity", uniformity=None, **EASY)
    assert 1 < len(found.lows) < 200


def test_the_three_modes_nest():
    step = NOISE.copy()
    step[:16] += 40
    count = {
        mode: len(uniform_boxes(step, mode=mode, uniformity=None, **EASY).lows)
        for mode in ("or", "and", "uniformity")
    }
    assert count["and"] <= count["uniformity"] <= count["or"]
    assert count["and"] < count["or"]


def test_a_higher_threshold_leaves_fewer_boxes():
    step = NOISE.copy()
    step[:16] += 40
    boxes = [
        len(uniform_boxes(step, mode="uniformity", uniformity=times, **EASY).lows)
        for times in (0.8, 1.2, 2.5)
    ]
    assert boxes[0] > boxes[1] >= boxes[2]


def test_without_noise_only_equal_cells_stay_together():
    cells = np.repeat([[3.0, 3.0, 8.0, 8.0]], 4, axis=0)
    paying = paying_boxes(
        cells, width=0.0, bucket_variance=0.0, price=1, caution=1, depth=9
    )
    assert paying.lows.tolist() == [[0, 0], [0, 2]]
    even = uniform_boxes(
        cells, width=0.0, mode="uniformity", uniformity=None, count=1, depth=9
    )
    for low, high in zip(even.lows, even.highs, strict=True):
        assert np.ptp(cells[low[0] : high[0], low[1] : high[1]]) == 0


def test_a_negative_total_is_never_crowded_below_zero():
    boxes = uniform_boxes(
        np.full((4, 4), -5.0), width=1.0, mode="or", uniformity=None, count=1, depth=9
    )
    assert len(boxes.lows) == 1


def test_buckets_stay_within_parts_that_stand_together():
    boxes = Boxes(np.array([[0, 0], [0, 2]]), np.array([[2, 2], [2, 4]]))
    parts = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    buckets = box_buckets(boxes, (2, 4), parts)
    assert buckets.labels.tolist() == [0, 0, 1, 3, 2, 2, 3, 3]
    whole = box_buckets(boxes, (2, 4), None)
    assert whole.labels.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


@pytest.mark.parametrize("cells", [1, 2, 65536])
def test_the_default_depth_exceeds_a_balanced_tree(cells):
    assert 2 ** default_depth(cells) >= cells**4

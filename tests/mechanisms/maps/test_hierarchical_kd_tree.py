"""The hierarchical kd-tree: levels, budget, medians."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit.witness import watch
from blowfish_fast.errors import InputError

GRID = bf.Domain((16, 20))
ASKED = bf.workloads.Rectangles.random(GRID, 40, rng=2)
COUNTS = np.zeros((16, 20), dtype=np.int64)
COUNTS[:4, :5] = 60


def tree(policy=bf.policies.AddRemove, epsilon="0.6", **given):
    return bf.mechanisms.HierarchicalKdTree(
        policy(GRID), ASKED, epsilon=epsilon, **given
    )


@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_levels_and_leaves_get_equal_parts(policy):
    testimony = watch(tree(policy, levels=5), COUNTS)
    assert [call.budget for call in testimony.account.calls] == [Fraction(1, 10)] * 6
    widths = {
        float(step.result.scales.widths.max()).__round__(3)
        for step in testimony.measured
    }
    assert widths == {10.0 if policy is bf.policies.AddRemove else 20.0}


def test_cuts_are_medians_when_epsilon_is_large():
    release = tree(epsilon=1000, levels=2).release(COUNTS, rng=1)
    lows, highs = release.details["lows"], release.details["highs"]
    totals = [
        COUNTS[low[0] : high[0], low[1] : high[1]].sum()
        for low, high in zip(lows, highs, strict=True)
    ]
    # 1200 records in a block of 4 x 5: three fifths, two fifths, then halves.
    assert totals == [360, 360, 240, 240]


def test_single_cells_are_not_cut():
    release = tree(epsilon=9, levels=20).release(COUNTS, rng=1)
    assert release.details["buckets"] <= GRID.size
    line = bf.Domain(1)
    one = bf.mechanisms.HierarchicalKdTree(
        bf.policies.AddRemove(line), bf.workloads.Identity(line), epsilon=1, levels=3
    )
    assert one.release([5], rng=1).details["buckets"] == 1


def test_the_default_height_reaches_cells_up_to_a_limit():
    assert tree().levels == 9
    wide = bf.Domain((256, 256))
    policy = bf.policies.AddRemove(wide)
    asked = bf.workloads.Rectangles.random(wide, 4, rng=1)
    assert bf.mechanisms.HierarchicalKdTree(policy, asked, epsilon=1).levels == 13


def test_without_levels_there_is_one_count():
    root = tree(levels=0)
    assert root.expected_error().shape == (40,)
    assert root.release(COUNTS, rng=1).details["buckets"] == 1


def test_public_totals_are_exact_and_intervals_are_those_of_the_leaves():
    release = tree(bf.policies.Full, levels=4).release(COUNTS, rng=1)
    assert release.estimate.sum() == pytest.approx(COUNTS.sum())
    assert release.intervals(ASKED, of="noise").shape == (40, 2)
    assert len(release.measurements) == 1


@pytest.mark.parametrize("levels", [-1, 65, 2.5])
def test_refuses_bad_levels(levels):
    with pytest.raises(InputError):
        tree(levels=levels)

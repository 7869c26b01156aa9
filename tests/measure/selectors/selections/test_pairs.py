"""The test how far neighbours differ, and what follows from it for ranges."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.measure.selectors.selections import ONE, PairTest
from blowfish_fast.mechanisms import dawa as recipe

LINE = bf.Domain(4096)
RANGES = bf.workloads.Ranges.random(LINE, 100, rng=1)


@pytest.mark.parametrize("cells", [1, 2, 7, 64])
def test_the_statistic_is_the_sum_of_differences_inside_pairs(cells):
    counts = np.random.default_rng(cells).integers(0, 50, cells)
    wanted = sum(
        abs(int(counts[i]) - int(counts[i + 1])) for i in range(0, cells - 1, 2)
    )
    assert PairTest(steps=(1.0,)).statistic(counts, (cells,)) == ONE * wanted


def test_what_an_edge_changes():
    test = PairTest(steps=(1.0,))
    assert test.sensitivity(bf.policies.AddRemove(LINE)) == ONE
    assert test.sensitivity(bf.policies.Full(LINE)) == 2 * ONE
    alone = bf.policies.Blocks(LINE, np.arange(4096))
    assert test.sensitivity(alone) == 0


def rough_line(even_pairs):
    """Return a line that needs many buckets, whose pairs are alike or not."""
    rng = np.random.default_rng(3)
    heights = np.zeros(2048, dtype=np.int64)
    heights[rng.choice(2048, 40, replace=False)] = 2_500
    counts = np.repeat(heights, 2)
    if not even_pairs:
        counts[1::2] = 0
    return counts


@pytest.mark.parametrize(
    ("policy", "epsilon"), [(bf.policies.AddRemove, "0.1"), (bf.policies.Full, "0.2")]
)
def test_pairs_are_cut_where_they_differ_and_nowhere_else(policy, epsilon):
    dawa = bf.Dawa(policy(LINE), RANGES, epsilon=epsilon)
    lengths = {}
    for even in (True, False):
        lengths[even] = set()
        for seed in range(4):
            release = dawa.release(rough_line(even), rng=seed)
            assert release.details["roughness"] in (1, 2)
            lengths[even] |= set(np.diff(release.details["edges"]).tolist())
    assert 2 in lengths[True]
    assert 2 not in lengths[False]


def test_an_epsilon_that_cannot_pay_the_test_leaves_pairs(monkeypatch):
    monkeypatch.setattr(recipe, "can_select", lambda test, *_: test.name != "pairs")
    dawa = bf.Dawa(bf.policies.AddRemove(LINE), RANGES, epsilon="0.1")
    edges = dawa.release(rough_line(even_pairs=False), rng=1).details["edges"]
    assert 2 in np.diff(edges)

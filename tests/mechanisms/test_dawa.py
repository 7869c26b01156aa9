"""DAWA end to end: every variant, both policies, one and several attributes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import EpsilonError, InputError
from blowfish_fast.measure.selectors.partitions import (
    DyadicRectangles,
    DyadicTree,
    LeastCost,
)
from blowfish_fast.mechanisms import dawa

LINE = bf.Domain(64)
RANGES = bf.workloads.Ranges.random(LINE, 200, rng=1)
STEPS = np.repeat([5, 90, 0, 40], 16)

POLICIES = [bf.policies.AddRemove, bf.policies.Full]
PARTITIONS = [
    None,
    "best",
    DyadicTree(),
    LeastCost(),
    LeastCost("all"),
    LeastCost(cost="pinball"),
]
STRATEGIES = ["greedy", "uniform", "geometric", "cells"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_variant_finds_the_steps(policy, partition, strategy):
    dawa = bf.Dawa(
        policy(LINE), RANGES, epsilon=20, partition=partition, strategy=strategy
    )
    release = dawa.release(STEPS, rng=2)
    assert np.abs(release.estimate - STEPS).mean() < 3
    assert release.guarantee.epsilon == 20
    assert release.details["edges"][-1] == 64
    low, high = release.intervals(RANGES, of="noise").T
    assert (low <= high).all()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shape", [(8, 8), (7, 11), (1, 9), (4, 3, 5)])
def test_grids_of_any_shape_work(policy, shape):
    grid = bf.Domain(shape)
    rectangles = bf.workloads.Rectangles.random(grid, 50, rng=3)
    counts = np.arange(grid.size).reshape(shape) % 5
    release = bf.Dawa(policy(grid), rectangles, epsilon=50).release(counts, rng=1)
    assert release.estimate.shape == shape
    assert np.abs(release.answer(rectangles) - rectangles.answer(counts)).mean() < 12
    assert release.intervals(rectangles, of="noise").shape == (50, 2)


def test_grids_are_cut_into_rectangles_and_lines_into_intervals():
    grid = bf.Domain((16, 16))
    asked = bf.workloads.Rectangles.random(grid, 50, rng=3)
    dawa = bf.Dawa(bf.policies.AddRemove(grid), asked, epsilon=5)
    assert isinstance(dawa.partition, DyadicRectangles)
    assert dawa.share == dawa.partition.default_share
    assert dawa.partition.query_cells == asked.mean_cells()
    counts = np.kron([[0, 90], [40, 9]], np.ones((8, 8), int))
    release = dawa.release(counts, rng=1)
    corners = release.details["boxes"]
    assert corners.shape == (release.details["buckets"], 2, 2)
    assert np.prod(corners[:, 1] - corners[:, 0], axis=1).sum() == grid.size
    along = bf.Dawa(
        bf.policies.AddRemove(grid), asked, epsilon=5, partition=DyadicTree()
    ).release(counts, rng=1)
    assert "boxes" not in along.details
    line = bf.Dawa(bf.policies.AddRemove(LINE), RANGES, epsilon=5)
    assert isinstance(line.partition, DyadicTree)
    cube = bf.Domain((4, 4, 4))
    boxes = bf.workloads.Rectangles.random(cube, 10, rng=1)
    deep = bf.Dawa(bf.policies.AddRemove(cube), boxes, epsilon=5)
    assert isinstance(deep.partition, DyadicTree)
    for shape, partition, tested in (
        ((4096, 4096), DyadicRectangles, True),
        ((4096, 4097), DyadicRectangles, False),
        ((8192, 8192), DyadicRectangles, False),
        ((8192, 8193), DyadicTree, False),
    ):
        large = bf.Domain(shape)
        boxes = bf.workloads.Rectangles.random(large, 10, rng=1)
        wide = bf.Dawa(bf.policies.AddRemove(large), boxes, epsilon=5)
        assert isinstance(wide.partition, partition)
        assert wide.tests_scatter is tested


def test_a_map_too_large_for_the_test_is_cut_into_rectangles(monkeypatch):
    monkeypatch.setattr(dawa, "MOST_GRID_CELLS", 63)
    grid = bf.Domain((8, 8))
    counts = np.kron([[0, 90], [40, 9]], np.ones((4, 4), int))
    asked = bf.workloads.Rectangles.random(grid, 20, rng=1)
    policy = bf.policies.AddRemove(grid)
    default = bf.Dawa(policy, asked, epsilon=5)
    by_name = DyadicRectangles(query_cells=asked.mean_cells())
    named = bf.Dawa(policy, asked, epsilon=5, partition=by_name)
    first, second = (one.release(counts, rng=1) for one in (default, named))
    assert "chosen" not in first.details
    assert np.array_equal(first.estimate, second.estimate)
    # Public values can tell that the sampler could not draw.
    monkeypatch.setattr(bf.Dawa, "_can_divide", lambda *_: False)
    assert default.release(counts, rng=1).details["buckets"] == grid.size


@pytest.mark.parametrize("policy", POLICIES)
def test_rectangles_serve_every_workload_and_strategy_on_a_grid(policy):
    grid = bf.Domain((8, 8))
    counts = np.kron([[0, 90], [40, 9]], np.ones((4, 4), int))
    asked = [
        bf.workloads.Identity(grid),
        bf.workloads.Marginals(grid, [0]),
        bf.workloads.Rectangles(grid, [[0.5, 1]], [[6, 7.25]]),
    ]
    for workload in asked:
        for strategy in STRATEGIES:
            dawa = bf.Dawa(policy(grid), workload, epsilon=50, strategy=strategy)
            release = dawa.release(counts, rng=1)
            wrong = release.answer(workload) - workload.answer(counts)
            assert np.abs(wrong).mean() < 2
            low, high = release.intervals(workload, of="noise").T
            assert (low <= high).all()


def test_rectangles_beside_uneven_blocks_beat_the_curve():
    # Tall and wide blocks, which stretches of a Hilbert curve cut into pieces.
    grid = bf.Domain((64, 64))
    counts = np.zeros(grid.shape, dtype=int)
    counts[:, 3], counts[40, :], counts[8:16, 32:64] = 60, 45, 30
    asked = bf.workloads.Rectangles.random(grid, 200, rng=5)
    truth = asked.answer(counts)
    error = {}
    for name, partition in {
        "rectangles": "best",
        "curve": DyadicTree(query_cells=asked.mean_cells(), dimensions=2),
    }.items():
        dawa = bf.Dawa(
            bf.policies.AddRemove(grid), asked, epsilon=0.3, partition=partition
        )
        answers = [dawa.release(counts, rng=seed).answer(asked) for seed in range(5)]
        error[name] = np.abs(np.array(answers) - truth).mean()
    assert error["rectangles"] < 0.8 * error["curve"]


def test_public_totals_stay_exact_and_fits_are_free():
    dawa = bf.Dawa(bf.policies.Full(LINE), RANGES, epsilon=0.1, fit=None)
    assert dawa.release(STEPS, rng=1).estimate.sum() == pytest.approx(STEPS.sum())
    fitted = bf.Dawa(
        bf.policies.Full(LINE), RANGES, epsilon=0.1, fit="non_negative"
    ).release(STEPS, rng=1)
    assert fitted.estimate.min() >= 0
    assert fitted.estimate.sum() == pytest.approx(STEPS.sum())
    assert (fitted.unfitted == dawa.release(STEPS, rng=1).estimate).all()
    assert (
        fitted.intervals(RANGES, of="noise")
        == dawa.release(STEPS, rng=1).intervals(RANGES, of="noise")
    ).all()


def test_shrinkage_helps_sparse_cells():
    line = bf.Domain(512)
    cells = bf.workloads.Identity(line)
    counts = np.zeros(512, dtype=int)
    counts[[5, 77, 300]] = [400, 900, 650]
    error = {}
    for fit in (None, "shrink"):
        dawa = bf.Dawa(
            bf.policies.AddRemove(line),
            cells,
            epsilon=0.1,
            strategy="cells",
            partition=None,
            fit=fit,
        )
        releases = [dawa.release(counts, rng=seed).estimate for seed in range(5)]
        error[fit] = np.mean(np.square(np.array(releases) - counts))
    assert error["shrink"] < 0.5 * error[None]


def test_a_large_epsilon_without_partition_gives_back_the_counts():
    dawa = bf.Dawa(bf.policies.AddRemove(LINE), RANGES, epsilon=1e7, partition=None)
    np.testing.assert_allclose(dawa.release(STEPS).estimate, STEPS, atol=1e-3)


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"partition": "good"}, InputError, "partition must be"),
        ({"strategy": "fast"}, InputError, "strategy must be"),
        ({"fit": "nice"}, InputError, "fit must be"),
        ({"fit": "shrink"}, InputError, "single cells"),
        ({"fit": "runs"}, InputError, "single cells"),
        ({"share": 0}, EpsilonError, "strictly between"),
        ({"share": 1}, EpsilonError, "strictly between"),
        ({"partition": None, "share": 0.5}, InputError, "needs a partition"),
        ({"epsilon": 0}, EpsilonError, "greater than 0"),
        ({"partition": DyadicRectangles()}, InputError, "Use DyadicTree"),
    ],
)
def test_bad_settings_are_refused(settings, kind, words):
    arguments = {"epsilon": 1, **settings}
    with pytest.raises(kind, match=words):
        bf.Dawa(bf.policies.Full(LINE), RANGES, **arguments)


def test_buckets_are_cut_where_ranges_of_a_line_are_asked():
    line, asked_by = bf.Domain(4096), bf.workloads
    policy = bf.policies.AddRemove(line)
    cells = asked_by.Identity(line)
    single = asked_by.Ranges(line, [3, 9], [4, 10])
    some = asked_by.Ranges(line, [3, 9], [400, 10])
    for asked, longest in (
        (some, Fraction(1, 16)),
        (asked_by.Prefixes(line), Fraction(1, 16)),
        (asked_by.AllRanges(line), Fraction(1, 16)),
        (asked_by.Union(some, asked_by.Prefixes(line)), Fraction(1, 16)),
        (asked_by.Union(some, cells), None),
        (single, None),
        (cells, None),
        (asked_by.Total(line), None),
    ):
        dawa = bf.Dawa(policy, asked, epsilon=1)
        assert dawa.partition.longest == longest
        assert dawa.partition.loosens == (longest is not None)
        assert dawa.share == Fraction(1, 5)
    assert not bf.Dawa(policy, some, rho="0.01").partition.loosens
    release = bf.Dawa(policy, some, epsilon="0.01").release([0] * 4096, rng=1)
    assert np.diff(release.details["edges"]).max() <= 256


def test_buckets_may_be_an_eighth_of_a_line_whose_records_stand_together():
    line = bf.Domain(4096)
    some = bf.workloads.Ranges(line, [3, 9], [400, 10])
    counts = np.zeros(4096, dtype=np.int64)
    counts[:32] = 50 * np.arange(1, 33)
    dawa = bf.Dawa(bf.policies.AddRemove(line), some, epsilon="0.1")
    edges = [dawa.release(counts, rng=seed).details["edges"] for seed in range(8)]
    longest = [np.diff(each).max() for each in edges]
    assert set(longest) <= {256, 512}
    # Whether long buckets cover two thirds is drawn.
    assert np.median(longest) == 512

"""Free fits: where they are on, that sums stay, and that sparse data gain."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast import kernels
from blowfish_fast.errors import InputError, ShrunkCellsWarning
from blowfish_fast.measure.strategies.cells import mean_noise
from blowfish_fast.measure.strategies.trees.tree import halved_non_negative
from blowfish_fast.mechanisms.dawa import MOST_UNEVEN
from blowfish_fast.workloads import asks_ranges

LINE = bf.Domain(256)
RANGES = bf.workloads.Ranges.random(LINE, 200, rng=1)
SPARSE = np.zeros(256, dtype=int)
SPARSE[[3, 40, 41, 199]] = [300, 20, 500, 80]


def made(kind, policy, asked, **options):
    """Build a mechanism over one attribute by name."""
    kinds = {
        "tree": bf.Hierarchy,
        "tuned tree": bf.Hierarchy,
        "dawa": bf.Dawa,
        "privelet": bf.mechanisms.Privelet,
        "blocks": bf.mechanisms.OrderedHierarchical,
    }
    if kind == "tuned tree":
        options["strategy"] = "greedy"
    return kinds[kind](policy, asked, epsilon=0.1, **options)


@pytest.mark.parametrize("kind", ["tree", "tuned tree", "dawa", "privelet", "blocks"])
@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_no_cell_is_negative_the_total_stays_and_ranges_gain(kind, policy):
    truth = RANGES.answer(SPARSE)
    errors = []
    for seed in range(5):
        release = made(kind, policy(LINE), RANGES).release(SPARSE, rng=seed)
        plain = made(kind, policy(LINE), RANGES, fit=None).release(SPARSE, rng=seed)
        assert release.estimate.min() >= 0
        total = max(plain.estimate.sum(), 0.0)
        assert release.estimate.sum() == pytest.approx(total, abs=1e-6)
        np.testing.assert_array_equal(release.unfitted, plain.estimate)
        errors.append(
            [np.abs(one.answer(RANGES) - truth).mean() for one in (release, plain)]
        )
    fitted, unfitted = np.mean(errors, axis=0)
    assert fitted < unfitted


def test_prefixes_totals_and_maps_keep_the_linear_estimate():
    grid = bf.Domain((8, 8))
    line, maps = bf.policies.AddRemove(LINE), bf.policies.AddRemove(grid)
    boxes = bf.workloads.Rectangles.random(grid, 9, rng=1)
    assert bf.Hierarchy(line, bf.workloads.Prefixes(LINE), epsilon=1).fit is None
    assert bf.Dawa(line, bf.workloads.Total(LINE), epsilon=1).fit is None
    assert bf.Dawa(maps, boxes, epsilon=1).fit is None
    assert bf.AdaptiveGrid(maps, boxes, epsilon=1).fit == "non_negative"
    from_start = bf.workloads.Ranges(LINE, [0, 0], [9, 40])
    assert not asks_ranges(from_start)
    assert asks_ranges(RANGES | bf.workloads.Identity(LINE))
    assert not asks_ranges(RANGES | bf.workloads.Prefixes(LINE))


HILL = (60 * np.exp(-(((np.arange(256) - 90) / 30) ** 2))).astype(int)


@pytest.mark.parametrize("policy_of", [bf.policies.AddRemove, bf.policies.Full])
def test_cells_that_follow_their_neighbours_are_read_off_published_numbers(policy_of):
    """The same buckets, noise and totals of buckets; ranges of a hill gain."""
    policy = policy_of(LINE)
    smooth = bf.Dawa(policy, RANGES, epsilon="0.1")
    even = bf.Dawa(policy, RANGES, epsilon="0.1", fit="non_negative")
    truth, off = RANGES.answer(HILL), []
    for seed in range(8):
        release, plain = (each.release(HILL, rng=seed) for each in (smooth, even))
        measured = [each.measurements[-1].noisy for each in (release, plain)]
        np.testing.assert_array_equal(*measured)
        assert release.details["fit"] == "smooth"
        edges = plain.details["edges"]
        np.testing.assert_array_equal(edges, release.details["edges"])
        totals = np.add.reduceat(plain.estimate, edges[:-1])
        # No count is handed over: all of it follows from what was published.
        noise = mean_noise(policy, smooth.budget)
        most = MOST_UNEVEN * noise / float(smooth.share)
        cells = kernels.smooth_buckets(totals, edges, noise, most)
        np.testing.assert_allclose(release.estimate, cells, atol=1e-9)
        assert release.estimate.min() >= 0
        np.testing.assert_array_equal(release.unfitted, plain.unfitted)
        off.append(
            [np.abs(each.answer(RANGES) - truth).mean() for each in (release, plain)]
        )
    mean_off = np.mean(off, axis=0)
    assert mean_off[0] < 0.98 * mean_off[1]


def test_how_uneven_buckets_may_become_follows_budget_and_share():
    policy = bf.policies.AddRemove(LINE)
    dawa = bf.Dawa(policy, RANGES, epsilon=1)
    _, most = dawa._smoothing
    tenth = dawa.at_epsilon("0.1")
    assert tenth._smoothing == bf.Dawa(policy, RANGES, epsilon="0.1")._smoothing
    assert tenth._smoothing[1] > 9 * most
    rough = dawa._with_share(dawa.share / 4)
    assert rough._smoothing[1] == pytest.approx(4 * most)


def test_cells_follow_their_neighbours_where_ranges_are_asked_of_buckets():
    policy = bf.policies.AddRemove(LINE)
    mechanisms = {
        "smooth": bf.Dawa(policy, RANGES, epsilon=1),
        "no buckets": bf.Dawa(policy, RANGES, epsilon=1, partition=None),
        "stated": bf.Dawa(policy, RANGES, epsilon=1, fit="non_negative"),
        "cells": bf.Dawa(
            bf.policies.Full(LINE), bf.workloads.Identity(LINE), epsilon=1
        ),
    }
    for name, dawa in mechanisms.items():
        fit = dawa.release(HILL, rng=1).details["fit"]
        assert fit == ("smooth" if name == "smooth" else "non_negative")


@pytest.mark.parametrize("paid", [{"rho": "0.125"}, {"epsilon": 1, "delta": "1e-6"}])
def test_buckets_stay_even_in_rho(paid):
    """Level steps were off by up to 1.67 times as much where cells followed there."""
    policy, steps = bf.policies.AddRemove(LINE), np.repeat([0, 150, 20, 90], 64)
    release = bf.Dawa(policy, RANGES, **paid).release(steps, rng=1)
    even = bf.Dawa(policy, RANGES, fit="non_negative", **paid).release(steps, rng=1)
    np.testing.assert_array_equal(release.estimate, even.estimate)
    assert release.details["fit"] == "non_negative"


def test_buckets_of_cells_that_lie_apart_stay_even():
    """The planted error: such buckets have no neighbours, and edges are no places."""
    policy = bf.policies.AddRemove(LINE)
    combs = np.tile([0, 400], LINE.size // 2)
    options = {"epsilon": 5, "partition": bf.partitions.NoisySort()}
    release = bf.Dawa(policy, RANGES, **options).release(combs, rng=1)
    even = bf.Dawa(policy, RANGES, fit="non_negative", **options).release(combs, rng=1)
    np.testing.assert_array_equal(release.estimate, even.estimate)
    assert release.details["buckets"] < LINE.size / 2
    assert release.details["fit"] == "non_negative"


def test_a_sentence_says_how_the_records_of_buckets_are_spread():
    policy = bf.policies.AddRemove(LINE)
    words = {"best": "spreads the records of", "non_negative": "takes records as even"}
    for fit, said in words.items():
        release = bf.Dawa(policy, RANGES, epsilon=1, fit=fit).release(HILL, rng=1)
        assert said in release.interval_sentence("noise")
    # A bucket for every cell is none that is spread.
    single = bf.Dawa(policy, RANGES, epsilon=1).release(np.arange(256) * 997, rng=1)
    assert single.details["buckets"] == LINE.size
    assert single.details["fit"] == "non_negative"


TOTALS = bf.workloads.Prefixes(LINE)
ONE_OF_THREE = np.where(np.arange(LINE.size) % 3 == 0, 2, 0)


@pytest.mark.parametrize("policy_of", [bf.policies.AddRemove, bf.policies.Full])
@pytest.mark.parametrize("counts", [SPARSE, ONE_OF_THREE, 0 * SPARSE])
@pytest.mark.parametrize("paid", [{"epsilon": "0.05"}, {"rho": "0.002"}])
def test_running_totals_are_fitted_and_no_release_is_worse_for_it(
    policy_of, counts, paid
):
    assert bf.Dawa(policy_of(LINE), TOTALS, **paid).fit == "isotonic"
    dawa = bf.Dawa(policy_of(LINE), TOTALS, partition=None, **paid)
    linear = bf.Dawa(policy_of(LINE), TOTALS, partition=None, fit=None, **paid)
    better = 0
    for seed in range(6):
        # The noise is the same: a fit draws nothing.
        fitted, plain = dawa.release(counts, rng=seed), linear.release(counts, rng=seed)
        assert fitted.details["fit"] == "isotonic"
        assert fitted.estimate.min() >= 0
        if policy_of is bf.policies.Full:
            assert fitted.estimate.sum() == pytest.approx(counts.sum())
        off, plainly = (
            np.abs(np.cumsum(release.estimate) - np.cumsum(counts))
            for release in (fitted, plain)
        )
        for power in (1, 2, np.inf):
            most = np.linalg.norm(plainly, power)
            assert np.linalg.norm(off, power) <= most + 1e-6
        better += off.sum() < 0.99 * plainly.sum()
    assert better > 0


def test_cells_cut_at_zero_would_be_worse_for_running_totals():
    """The planted error: what Lemma DA13 says holds of no other cut."""
    options = {"epsilon": "0.05", "partition": None, "fit": None}
    linear = bf.Dawa(bf.policies.AddRemove(LINE), TOTALS, **options)
    worse = 0
    for seed in range(6):
        estimate = linear.release(SPARSE, rng=seed).estimate
        off, plainly = (
            np.abs(np.cumsum(cells) - np.cumsum(SPARSE)).mean()
            for cells in (estimate.clip(0), estimate)
        )
        worse += off > plainly
    assert worse > 0


def test_running_totals_of_blocks_are_not_fitted_by_default():
    halves = bf.policies.Blocks(LINE, np.arange(LINE.size) // (LINE.size // 2))
    assert bf.Dawa(halves, TOTALS, epsilon=1).fit is None
    assert bf.Dawa(halves, TOTALS, epsilon=1, fit="isotonic").fit == "isotonic"


def test_running_totals_of_a_map_are_refused():
    grid = bf.Domain((4, 4))
    with pytest.raises(InputError, match="one attribute"):
        bf.Dawa(
            bf.policies.Full(grid),
            bf.workloads.Identity(grid),
            epsilon=1,
            fit="isotonic",
        )


def test_a_map_is_fitted_by_halves_when_asked():
    grid = bf.Domain((16, 16))
    counts = np.zeros((16, 16), dtype=int)
    counts[3, 4] = 200
    asked = bf.workloads.Rectangles.random(grid, 50, rng=1)
    policy = bf.policies.Full(grid)
    dawa = bf.Dawa(policy, asked, epsilon=0.1, partition=None, fit="non_negative")
    release = dawa.release(counts, rng=2)
    assert release.estimate.min() >= 0
    assert release.estimate.sum() == pytest.approx(200)


def test_halves_of_a_grid_keep_the_total_of_each_positive_half():
    values = np.zeros((4, 4))
    values[0, 0], values[0, 1], values[3, 3] = 5, -2, 7
    fit = halved_non_negative(values.reshape(-1), bf.Domain((4, 4))).reshape(4, 4)
    assert fit.min() >= 0
    assert fit[:2, :2].sum() == pytest.approx(3)
    assert fit[2:, 2:].sum() == pytest.approx(7)


def test_declared_cells_are_shrunk_and_warn_when_ranges_are_asked():
    cells = bf.workloads.Identity(LINE)
    shrunk = bf.Dawa(bf.policies.AddRemove(LINE), cells, epsilon=0.1)
    release = shrunk.release(SPARSE, rng=1)
    assert release.details["fit"] == "shrink"
    release.answer(cells)
    with pytest.warns(ShrunkCellsWarning, match="declare the ranges"):
        release.answer(RANGES)
    errors = {"best": [], None: []}
    for seed in range(5):
        for fit, found in errors.items():
            dawa = bf.Dawa(bf.policies.AddRemove(LINE), cells, epsilon=0.1, fit=fit)
            estimate = dawa.release(SPARSE, rng=seed).estimate
            found.append(np.abs(estimate - SPARSE).mean())
    assert np.mean(errors["best"]) < np.mean(errors[None])


def level_steps():
    """Return steps of one height each that begin anywhere in 512 cells."""
    heights, lengths = [60, 400, 20, 250, 0, 120], [77, 131, 43, 90, 101, 70]
    return np.repeat(heights, lengths)


def test_cells_of_level_steps_are_fitted_in_runs_at_any_offset():
    line, counts = bf.Domain(512), level_steps()
    policy, cells = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    default = bf.Dawa(policy, cells, epsilon=0.5)
    shrunk = bf.Dawa(policy, cells, epsilon=0.5, strategy="cells", fit="shrink")
    assert default.fit == "runs"
    errors = []
    for seed in range(5):
        joined, alone = (
            default.release(counts, rng=seed),
            shrunk.release(counts, rng=seed),
        )
        # The same draws: a fit reads what was measured, and nothing else.
        assert (joined.details["fit"], alone.details["fit"]) == ("runs", "shrink")
        assert (joined.measurements[0].noisy == alone.measurements[0].noisy).all()
        assert (joined.unfitted == alone.unfitted).all()
        some = bf.workloads.Ranges(line, [3, 200], [90, 400])
        np.testing.assert_array_equal(
            joined.intervals(some, of="noise"), alone.intervals(some, of="noise")
        )
        errors.append(
            [np.abs(each.estimate - counts).mean() for each in (joined, alone)]
        )
        with pytest.warns(ShrunkCellsWarning, match="declare the ranges"):
            joined.answer(some)
    own, before = np.mean(errors, axis=0)
    assert own < 0.6 * before


def test_totals_that_are_nearly_known_are_not_joined():
    line, counts = bf.Domain(512), level_steps()
    policy, cells = bf.policies.AddRemove(line), bf.workloads.Identity(line)
    release = bf.Dawa(policy, cells, epsilon=50).release(counts, rng=1)
    assert release.details["fit"] == "shrink"
    np.testing.assert_allclose(release.estimate, counts, atol=0.1)


def test_known_totals_and_gaussian_noise_keep_the_non_negative_fit_for_cells():
    cells = bf.workloads.Identity(LINE)
    full = bf.Dawa(bf.policies.Full(LINE), cells, epsilon=0.1)
    gaussian = bf.Dawa(bf.policies.AddRemove(LINE), cells, rho=0.1)
    assert (full.fit, full.strategy) == ("non_negative", "greedy")
    assert gaussian.fit == "non_negative"
    release = full.release(SPARSE, rng=1)
    assert release.answer(RANGES).shape == (200,)
    assert release.estimate.sum() == pytest.approx(SPARSE.sum())


def test_long_level_steps_stay_nearly_even():
    """The planted error: without a bound, curves go through flat steps."""
    counts = np.repeat([5, 90, 30, 10], [64, 80, 64, 48])
    ranges = bf.workloads.Ranges.random(LINE, 100, rng=2)
    dawa = bf.Dawa(
        bf.policies.AddRemove(LINE),
        ranges,
        epsilon=20,
        partition=bf.partitions.LeastCost(),
    )
    release = dawa.release(counts, rng=0)
    totals = np.add.reduceat(release.estimate, release.details["edges"][:-1])
    unbounded = kernels.smooth_buckets(
        totals, release.details["edges"], dawa._smoothing[0]
    )
    off = np.abs(release.estimate - counts).mean()
    assert off < 0.5
    assert np.abs(unbounded - counts).mean() > 5

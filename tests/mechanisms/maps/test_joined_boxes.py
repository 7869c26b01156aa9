"""Coarse boxes that seem alike are joined: what is read, what is paid, what is kept."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements
from blowfish_fast.audit.invariants import audit_invariants
from blowfish_fast.mechanisms.maps import grids, joined_boxes
from blowfish_fast.mechanisms.maps.joined_boxes import (
    CoarseGrid,
    Counted,
    Halves,
    RegionLayout,
    joined_regions,
    settle,
)
from tests.reference.trees import dense_fit

GRID = bf.Domain((40, 30))
BOXES = bf.workloads.Rectangles.random(GRID, 12, rng=1)
EVEN = np.random.default_rng(3).poisson(2, (40, 30))
SPLIT = 1
"""A seed with which some boxes stay alone."""
POLICIES = [bf.policies.AddRemove, bf.policies.Full]


def joining(policy=bf.policies.AddRemove, fewest_parts=6, epsilon="0.3", **given):
    return bf.AdaptiveGrid(
        policy(GRID),
        BOXES,
        epsilon=epsilon,
        fewest_parts=fewest_parts,
        joins=True,
        **given,
    )


def grid_of(parts, side=20):
    """Return a grid of boxes of `side` cells each way."""
    corners = np.stack(np.indices(parts), axis=-1).reshape(-1, len(parts)) * side
    return CoarseGrid(np.array(parts), corners, corners + side)


def test_grids_are_halved_down_to_their_boxes():
    halves = Halves.of(np.array([[3, 2], [1, 1], [2, 2]]))
    bottom = halves.bottom
    assert halves.lows[bottom].tolist() == [
        *([0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]),
        *([0, 0], [0, 0], [0, 1], [1, 0], [1, 1]),
    ]
    values = np.zeros(halves.first.size)
    values[bottom] = 1.0
    assert halves.added_up(values)[:3].tolist() == [6.0, 1.0, 4.0]


def test_finer_grids_hang_under_their_boxes():
    halves = Halves.of(np.array([[2, 2]]))
    ends = halves.bottom
    both, finest = halves.refined(ends[[1, 3]], np.array([[1, 1], [2, 3]]))
    values = np.zeros(both.first.size)
    values[ends[[0, 2]]] = 10.0
    values[finest] = np.arange(1.0, 8.0)
    sums = both.added_up(values)
    assert finest[0] == ends[1]
    assert sums[ends[3]] == 27.0
    assert sums[0] == 48.0
    inner = np.flatnonzero(both.first >= 0)
    assert (both.depths[both.first[inner]] == both.depths[inner] + 1).all()


def test_shares_of_random_queries_are_those_of_a_sample():
    places = np.sort(np.random.default_rng(1).random((200_000, 2)), axis=1)

    def covered(low, high):
        ends = np.minimum(places[:, 1], high) - np.maximum(places[:, 0], low)
        return np.maximum(ends, 0) / (high - low)

    low, middle, high = (np.array([[x]]) for x in (0.2, 0.3, 0.55))
    square = joined_boxes._square_covered(low, high)
    assert square[0, 0] == pytest.approx((covered(0.2, 0.55) ** 2).mean(), rel=0.02)
    differ = joined_boxes._square_difference(low, middle, high)
    sampled = (covered(0.2, 0.3) - covered(0.3, 0.55)) ** 2
    assert differ[0, 0] == pytest.approx(sampled.mean(), rel=0.02)


@pytest.mark.parametrize("variance", [0.0, 1e-6])
def test_counts_without_noise_are_kept(variance):
    grid = grid_of((4, 3))
    halves, sizes, boxes = grid.halved()
    held = np.random.default_rng(2).integers(0, 2_000, 12).astype(float)
    rows = Counted.of_rows(halves.first.size, boxes, held, np.full(12, variance))
    settled = settle(halves, rows, sizes)
    np.testing.assert_allclose(settled.records[boxes], held, atol=0.05)


def test_halves_add_up_and_none_is_negative():
    grid = grid_of((5, 4))
    halves, sizes, boxes = grid.halved()
    noisy = np.random.default_rng(5).laplace(scale=300.0, size=20)
    rows = Counted.of_rows(halves.first.size, boxes, noisy, np.full(20, 2.0 * 300**2))
    records = settle(halves, rows, sizes).records
    assert records.min() >= 0.0
    cut = np.flatnonzero(halves.first >= 0)
    left = halves.first[cut]
    np.testing.assert_allclose(records[left] + records[left + 1], records[cut])


def test_several_rows_of_a_node_are_weighed():
    rows = Counted.of_rows(
        2, np.array([0, 0, 1]), np.array([4.0, 10.0, 7.0]), np.array([1.0, 2.0, 0.0])
    )
    assert rows.totals.tolist() == [6.0, 7.0]
    assert rows.variances.tolist() == [pytest.approx(2 / 3), 0.0]


def test_even_boxes_are_joined_and_uneven_ones_are_not():
    grid, noise = grid_of((10, 10)), 2.0 * 300**2
    drawn = np.random.default_rng(1)
    finer = np.full((100, 2), 2)
    even = 1_000 + drawn.laplace(scale=300.0, size=100)
    regions = joined_regions(grid, even, np.full(100, noise), finer, noise)
    assert regions is not None
    assert 1 <= len(regions.joined) < 40
    lumps = 1e5 * (drawn.random(100) < 0.05) + drawn.laplace(scale=300.0, size=100)
    dense = np.where(lumps > 5e4, 11, 1)[:, None] * np.ones((1, 2), dtype=np.int64)
    assert joined_regions(grid, lumps, np.full(100, noise), dense, noise) is None
    # Every coarse box lies in one thing that is measured.
    layout = RegionLayout.of(grid, regions, finer)
    sides = layout.measured.highs - layout.measured.lows
    assert np.prod(sides[1:], axis=1).sum() == 200 * 200
    assert layout.sizes[0] == 200 * 200


@pytest.mark.parametrize("policy", POLICIES, ids=["add_remove", "full"])
def test_all_rows_are_fitted_together(policy):
    release = joining(policy).release(EVEN, rng=2)
    assert release.details["joined"] > 0
    (single,) = release.measurements
    rows = single.noisy.astype(float)
    leaves = dense_fit(rows, single.scales.variances, single.strategy.tree.row_parents)
    estimate = single.buckets.expand(leaves).reshape(40, 30)
    np.testing.assert_allclose(release.unfitted, estimate, atol=1e-3)
    assert release.estimate.min() >= 0
    if policy is bf.policies.Full:
        assert release.estimate.sum() == pytest.approx(EVEN.sum())


def test_every_step_is_charged():
    prices = audit_measurements(joining(records=2_400), EVEN)
    charged = [price.charged for price in prices[:2]]
    assert charged == [Fraction(12, 100), Fraction(18, 100)]
    assert all(price.passed for price in prices)


def test_joining_by_exact_counts_is_caught(monkeypatch):
    """Planted: which boxes are joined follows true counts."""
    mechanism = joining()
    assert audit_invariants(mechanism, EVEN) == []
    right = bf.AdaptiveGrid._joined

    def exact(self, private, bought, levels, coarse, held, parts):
        totals = coarse.placed.buckets.sum(private._counts)
        held = totals[coarse.placed.numbers[coarse.tree.leaves]].astype(float)
        return right(self, private, bought, levels, coarse, held, parts)

    monkeypatch.setattr(bf.AdaptiveGrid, "_joined", exact)
    found = [breach.invariant for breach in audit_invariants(mechanism, EVEN)]
    assert "post-processing only" in found


def test_regions_measured_twice_are_caught(monkeypatch):
    """Planted: joined regions and their boxes are both measured by the second step."""
    right = RegionLayout.of.__func__

    def overlapping(cls, grid, regions, finer):
        layout = right(cls, grid, regions, finer)
        tree, places = layout.tree, np.arange(layout.tree.parents.size)
        parents = np.append(-1, np.zeros(places.size - 1, int))
        twice = layout.measured._replace(
            parents=parents, lows=tree.lows, highs=tree.highs
        )
        return layout._replace(measured=twice, places=places)

    monkeypatch.setattr(RegionLayout, "of", classmethod(overlapping))
    with pytest.raises(Exception, match="each cell once"):
        joining().release(EVEN, rng=2)


@pytest.mark.long
def test_intervals_hold_over_all_releases():
    """The noise of both steps: at 90 %, of 300 releases and 12 boxes each."""
    mechanism, missed = joining(), []
    # Buckets are single boxes of one density, so that noise alone is off.
    level = np.full((40, 30), 2)
    truth = BOXES.answer(level)
    for seed in range(300):
        release = mechanism.release(level, rng=seed)
        held = release.intervals(BOXES, confidence=0.9, of="noise")
        missed.append(((held[:, 0] > truth) | (truth > held[:, 1])).mean())
    assert np.mean(missed) < 0.1


def test_an_even_map_has_a_fraction_of_the_error():
    grid = bf.Domain((64, 64))
    asked = bf.workloads.Rectangles.random(grid, 200, rng=1)
    counts = np.random.default_rng(7).poisson(5, (64, 64))
    truth, policy = asked.answer(counts), bf.policies.AddRemove(grid)

    def error(**given):
        made = bf.AdaptiveGrid(policy, asked, epsilon="0.05", **given)
        releases = [made.release(counts, rng=seed) for seed in range(8)]
        return np.mean([np.abs(one.answer(asked) - truth).mean() for one in releases])

    assert error(joins=True) < 0.5 * error()


def test_dawa_joins_boxes_of_even_maps():
    grid = bf.Domain((64, 64))
    asked = bf.workloads.Rectangles.random(grid, 50, rng=1)
    counts = np.random.default_rng(7).poisson(5, (64, 64))
    dawa = bf.Dawa(bf.policies.AddRemove(grid), asked, epsilon="0.05")
    details = dawa.release(counts, rng=3).details
    assert details["chosen"] == "adaptive_grid"
    assert details["joined"] > 0


def test_the_whole_as_one_box_is_drawn_towards_evenness():
    release = joining(fewest_parts=1, records=200).release(EVEN // 4, rng=1)
    assert release.details["joined"] == 0
    assert release.details["parts"].tolist() == [1, 1]
    plain = joining(fewest_parts=1, records=200, fit=None).release(EVEN // 4, rng=1)
    np.testing.assert_allclose(release.unfitted, plain.estimate, atol=1e-6)
    assert release.estimate.std() < 0.5 * plain.estimate.std()


@pytest.mark.parametrize(("shape", "parts"), [((400,), 40), ((12, 10, 8), 6)])
def test_other_numbers_of_attributes_are_joined_too(shape, parts):
    domain = bf.Domain(shape)
    counts = np.random.default_rng(1).poisson(2, shape)
    mechanism = bf.AdaptiveGrid(
        bf.policies.AddRemove(domain),
        bf.workloads.Identity(domain),
        rho="0.005",
        fewest_parts=parts,
        joins=True,
    )
    release = mechanism.release(counts, rng=1)
    assert release.details["joined"] > 0
    assert release.estimate.shape == shape


@pytest.mark.parametrize("limit", ["MOST_BOXES", "MOST_FINER"])
def test_grids_of_many_boxes_are_as_before(monkeypatch, limit):
    mechanism = joining()
    monkeypatch.setattr(grids, limit, 1)
    monkeypatch.setattr(grids, "FINER_CELLS", 10_000)
    release = mechanism.release(EVEN, rng=SPLIT)
    assert "joined" not in release.details
    plain = bf.AdaptiveGrid(
        bf.policies.AddRemove(GRID), BOXES, epsilon="0.3", fewest_parts=6
    )
    np.testing.assert_array_equal(
        release.estimate, plain.release(EVEN, rng=SPLIT).estimate
    )


def test_a_grid_that_does_not_join_keeps_its_fingerprint():
    assert "joins" not in vars(
        bf.AdaptiveGrid(bf.policies.Full(GRID), BOXES, epsilon=1)
    )
    assert joining().joins

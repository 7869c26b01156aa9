"""AdaptiveGrid end to end: two levels, one fit, every step paid for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements
from blowfish_fast.audit.invariants import audit_invariants
from blowfish_fast.measure.strategies import TreeStrategy
from blowfish_fast.measure.strategies.trees.box_tree import RoughTotal
from blowfish_fast.mechanisms.maps import grids
from tests.reference.trees import dense_fit

GRID = bf.Domain((40, 30))
BOXES = bf.workloads.Rectangles.random(GRID, 12, rng=1)
COUNTS = np.random.default_rng(3).poisson(1, (40, 30))
COUNTS[5:15, 5:15] += 60
POLICIES = [bf.policies.AddRemove, bf.policies.Full]


def small(policy, fewest_parts=4, **given):
    return bf.AdaptiveGrid(
        policy(GRID), BOXES, epsilon="0.5", fewest_parts=fewest_parts, **given
    )


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES, ids=["add_remove", "full"])
def test_both_levels_are_fitted_together(policy):
    release = small(policy).release(COUNTS, rng=1)
    (single,) = release.measurements
    rows = single.noisy.astype(float)
    leaves = dense_fit(rows, single.scales.variances, single.strategy.tree.row_parents)
    estimate = single.buckets.expand(leaves).reshape(40, 30)
    np.testing.assert_allclose(release.unfitted, estimate, atol=1e-3)
    assert release.estimate.min() >= 0
    if policy is bf.policies.Full:
        assert release.estimate.sum() == pytest.approx(COUNTS.sum())
        assert single.scales.exact[-1]


def test_dense_boxes_are_cut_finer():
    release = small(bf.policies.AddRemove).release(COUNTS, rng=1)
    sizes = release.measurements[0].buckets.sizes
    labels = release.measurements[0].buckets.labels.reshape(40, 30)
    assert release.details["parts"].tolist() == [4, 4]
    assert sizes[labels[10, 10]] < sizes[labels[35, 25]]
    assert release.details["buckets"] == sizes.size


def test_every_step_is_charged():
    mechanism = small(bf.policies.AddRemove, share="0.25")
    prices = audit_measurements(mechanism, COUNTS)
    charged = [price.charged for price in prices[:3]]
    assert charged == [Fraction(1, 200), Fraction(99, 800), Fraction(297, 800)]
    assert all(price.passed for price in prices)
    given = small(bf.policies.AddRemove, records=1000)
    assert [price.charged for price in audit_measurements(given, COUNTS)[:2]] == [
        Fraction(1, 5),
        Fraction(3, 10),
    ]


def test_the_whole_as_one_box_is_not_counted_again():
    """Its records are known: all that is left of epsilon goes to the finer grid."""
    for records, charged in ((100, ["1/2"]), (None, ["1/200", "99/200"])):
        mechanism = small(bf.policies.AddRemove, 1, records=records)
        prices = audit_measurements(mechanism, COUNTS // 30)
        assert [str(price.charged) for price in prices[:-1]] == charged
        assert all(price.passed for price in prices)
    release = small(bf.policies.AddRemove, 1, records=100).release(COUNTS, rng=1)
    # 100 records times 1/2, over 5/2 in a box: 20 boxes, so four parts of an axis.
    assert release.details["parts"].tolist() == [1, 1]
    assert release.details["buckets"] == 16
    exact = small(bf.policies.Full, 1).release(COUNTS // 30, rng=1)
    assert exact.estimate.sum() == pytest.approx((COUNTS // 30).sum())


@pytest.mark.long
@pytest.mark.parametrize("fewest_parts", [4, 1])
def test_a_second_level_that_reads_exact_counts_is_caught(monkeypatch, fewest_parts):
    """Planted: the finer grid follows true counts of the coarse boxes."""
    mechanism = small(bf.policies.AddRemove, fewest_parts)
    assert audit_invariants(mechanism, COUNTS) == []
    right = bf.AdaptiveGrid._fine

    def exact(self, private, coarse, held):
        placed = coarse.arranged(GRID.shape)
        totals = placed.buckets.sum(private._counts)
        return right(self, private, coarse, totals[placed.numbers[coarse.leaves]])

    monkeypatch.setattr(bf.AdaptiveGrid, "_fine", exact)
    found = [breach.invariant for breach in audit_invariants(mechanism, COUNTS)]
    assert "post-processing only" in found


def test_an_exact_number_of_records_is_caught(monkeypatch):
    """Planted, as in public code."""

    def exact(private, records, *, budget):
        counts = private._counts  # A rehearsal has none.
        return RoughTotal(0.0 if counts is None else float(counts.sum()), [])

    monkeypatch.setattr(grids, "rough_total", exact)
    found = audit_invariants(small(bf.policies.AddRemove), COUNTS)
    assert "post-processing only" in [breach.invariant for breach in found]


def test_parallel_composition_across_regions_is_caught(monkeypatch):
    """Planted: a move pays in one region only."""
    right = TreeStrategy.worst_edge

    def one_side(self, weights, policy, power=1):
        return right(self, weights, bf.policies.AddRemove(policy.domain), power)

    monkeypatch.setattr(TreeStrategy, "worst_edge", one_side)
    mechanism, data = bf.AdaptiveGrid.example(
        bf.Domain(7), bf.policies.Full(bf.Domain(7)), 1
    )
    assert not all(price.passed for price in audit_measurements(mechanism, data))


def test_large_epsilon_gives_back_the_cells():
    for policy in POLICIES:
        mechanism = bf.AdaptiveGrid(policy(GRID), BOXES, epsilon=100_000)
        found = mechanism.release(COUNTS + 1, rng=1).estimate
        np.testing.assert_allclose(found, COUNTS + 1, atol=1e-3)


def test_zero_records_are_no_trouble():
    for policy in POLICIES:
        release = small(policy).release(np.zeros((40, 30), int), rng=1)
        assert np.isfinite(release.estimate).all()

"""UniformGrid end to end: its size, the number of records, both paid for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements
from blowfish_fast.audit.invariants import audit_invariants
from blowfish_fast.errors import DataDependentError, InputError
from blowfish_fast.measure.strategies.trees.box_tree import RoughTotal
from blowfish_fast.mechanisms.maps import grids

GRID = bf.Domain((30, 20))
BOXES = bf.workloads.Rectangles.random(GRID, 12, rng=1)
COUNTS = np.random.default_rng(3).poisson(4, (30, 20))
POLICIES = [bf.policies.AddRemove, bf.policies.Full]


def test_b8_a_million_records_at_a_tenth_make_a_hundred_parts():
    domain = bf.Domain((300, 200))
    mechanism = bf.mechanisms.UniformGrid(
        bf.policies.AddRemove(domain),
        bf.workloads.Total(domain),
        epsilon="0.1",
        records=10**6,
    )
    release = mechanism.release(np.zeros((300, 200), int), rng=1)
    assert release.details["parts"].tolist() == [100, 100]


def test_a_private_number_of_records_is_bought_and_used():
    mechanism = bf.mechanisms.UniformGrid(
        bf.policies.AddRemove(GRID), BOXES, epsilon="0.5"
    )
    prices = audit_measurements(mechanism, COUNTS)
    charged = [price.charged for price in prices[:2]]
    assert charged == [Fraction(1, 200), Fraction(99, 200)]
    assert all(price.passed for price in prices)
    release = mechanism.release(COUNTS, rng=1)
    (single,) = release.measurements
    assert single.scales.measured.all()
    assert release.details["records"] == single.noisy[-1]
    total = release.standard_errors(bf.workloads.Total(GRID))[0]
    assert total < np.sqrt(single.scales.variances[-1])


def test_a_public_number_is_free_and_the_total_exact():
    mechanism = bf.mechanisms.UniformGrid(bf.policies.Full(GRID), BOXES, epsilon=1)
    release = mechanism.release(COUNTS, rng=1)
    assert release.details["records"] == COUNTS.sum()
    assert release.estimate.sum() == pytest.approx(COUNTS.sum())
    small = bf.Domain((4, 3))
    mechanism, data = bf.mechanisms.UniformGrid.example(
        small, bf.policies.Full(small), 1
    )
    assert len(audit_measurements(mechanism, data)) == 2


def test_an_exact_number_of_records_is_caught(monkeypatch):
    """Planted, as in public code: the size of the grid follows the exact number."""

    def exact(private, records, *, budget):
        return RoughTotal(float(private._counts.sum()), [])

    mechanism = bf.mechanisms.UniformGrid(bf.policies.AddRemove(GRID), BOXES, epsilon=1)
    assert audit_invariants(mechanism, COUNTS) == []
    monkeypatch.setattr(grids, "rough_total", exact)
    assert any(
        breach.invariant == "post-processing only"
        for breach in audit_invariants(mechanism, COUNTS)
    )


def test_zero_records_make_one_box():
    release = bf.mechanisms.UniformGrid(
        bf.policies.Full(GRID), BOXES, epsilon=1
    ).release(np.zeros((30, 20), int), rng=1)
    assert release.details["parts"].tolist() == [1, 1]
    np.testing.assert_allclose(release.estimate, 0.0, atol=1e-12)


def test_large_epsilon_gives_back_the_cells():
    for policy in POLICIES:
        mechanism = bf.mechanisms.UniformGrid(policy(GRID), BOXES, epsilon=10_000)
        found = mechanism.release(COUNTS, rng=1).estimate
        np.testing.assert_allclose(found, COUNTS, atol=1e-6)


def test_the_error_is_predicted_if_the_number_is_given():
    policy = bf.policies.AddRemove(GRID)
    with pytest.raises(DataDependentError, match="records="):
        bf.mechanisms.UniformGrid(policy, BOXES, epsilon=1).expected_error()
    with pytest.raises(InputError, match="records"):
        bf.mechanisms.UniformGrid(policy, BOXES, epsilon=1, records=-3)

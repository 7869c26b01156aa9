"""Privelet end to end: error as predicted, intervals that hold, every edge paid for."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements, policy_families
from blowfish_fast.errors import SizeError
from blowfish_fast.measure.strategies import Haar, haar

POLICIES = [bf.policies.AddRemove, bf.policies.Full]
DOMAINS = [bf.Domain(21), bf.Domain((4, 6))]


def asked(domain, count=15):
    kind = bf.workloads.Ranges if domain.ndim == 1 else bf.workloads.Rectangles
    return kind.random(domain, count, rng=1)


def counts_over(domain):
    return (np.arange(domain.size) * 3 % 17).reshape(domain.shape)


def test_noise_shifts_with_the_counts():
    domain = bf.Domain((3, 5))
    mechanism = bf.mechanisms.Privelet(
        bf.policies.AddRemove(domain), asked(domain), epsilon=0.3
    )
    one = mechanism.release(np.zeros((3, 5)), rng=5).estimate
    other = mechanism.release(np.ones((3, 5)), rng=5).estimate
    np.testing.assert_allclose(other - one, 1.0)


@pytest.mark.parametrize("cells", [4096, 4097, 3000])
def test_the_cells_have_the_variance_of_the_paper_or_less(cells):
    line = bf.Domain(cells)
    privelet = bf.mechanisms.Privelet(
        bf.policies.AddRemove(line), bf.workloads.Identity(line), epsilon="0.001"
    )
    levels = (cells - 1).bit_length()
    per_cell = 2 * (levels + 1) ** 2 * (4.0**-levels + (1 - 4.0**-levels) / 3) * 1e6
    worst = privelet.expected_error().max()
    if cells == 4096:
        assert worst == pytest.approx(per_cell, rel=1e-4)
    # One cell of an axis may end a level early, below a node that does not.
    assert worst <= per_cell * 1.0001
    assert privelet.expected_total_error() <= cells * per_cell * 1.0001


def test_one_cell_more_than_a_power_of_two_costs_next_to_nothing():
    totals = []
    for cells in (1024, 1025):
        line = bf.Domain(cells)
        ranges = bf.workloads.AllRanges(line)
        mechanism = bf.mechanisms.Privelet(
            bf.policies.AddRemove(line), ranges, epsilon=0.1
        )
        totals.append(mechanism.expected_total_error() / ranges.queries)
    # A level more for every cell would be (12 / 11)^2 = 1.19 before its own noise.
    assert totals[1] < 1.12 * totals[0]


@pytest.mark.parametrize("shape", [(4,), (5,), (2, 2), (4, 4), (3, 3), (2, 3, 2)])
def test_every_policy_is_paid_for(shape):
    domain = bf.Domain(shape)
    for policy in policy_families(domain).values():
        mechanism, data = bf.mechanisms.Privelet.example(domain, policy, "0.7")
        assert all(price.passed for price in audit_measurements(mechanism, data))


@pytest.mark.parametrize("shape", [(4, 4), (2, 2, 2)])
def test_twice_the_product_of_levels_would_be_too_little_on_a_grid(shape, monkeypatch):
    levels = int(np.prod([side.bit_length() - 1 for side in shape]))

    def wrong(weights, paid):
        return 2 * levels * int(weights.max())

    monkeypatch.setattr(haar, "worst_grid_move", wrong)
    domain = bf.Domain(shape)
    mechanism, data = bf.mechanisms.Privelet.example(
        domain, bf.policies.Full(domain), "0.7"
    )
    assert not all(price.passed for price in audit_measurements(mechanism, data))


def test_forgetting_that_the_meeting_row_changes_by_two_is_caught(monkeypatch):
    levels_only = Haar.worst_edge

    def wrong(self, weights, policy, power=1):
        return levels_only(self, weights, bf.policies.AddRemove(policy.domain), power)

    monkeypatch.setattr(Haar, "worst_edge", wrong)
    line = bf.Domain(8)
    mechanism, data = bf.mechanisms.Privelet.example(line, bf.policies.Full(line), 1)
    assert not all(price.passed for price in audit_measurements(mechanism, data))


def test_a_million_cells_are_predicted_and_released():
    line = bf.Domain(2**20)
    ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    mechanism = bf.mechanisms.Privelet(bf.policies.AddRemove(line), ranges, epsilon=0.1)
    release = mechanism.release(np.ones(2**20, dtype=np.int64), rng=1)
    truth = ranges.ends - ranges.starts
    deviation = np.sqrt(mechanism.expected_error())
    assert (np.abs(release.answer(ranges) - truth) < 8 * deviation).all()
    every = bf.workloads.AllRanges(line)
    assert mechanism.expected_total_error(every) > 0
    with pytest.raises(SizeError):
        mechanism.expected_error(every)

"""NoiseFirst end to end."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, InputError

LINE = bf.Domain(64)
RANGES = bf.workloads.Ranges.random(LINE, 200, rng=1)
STEPS = np.repeat([5, 90, 0, 40], 16)
POLICIES = [bf.policies.AddRemove, bf.policies.Full]


@pytest.mark.parametrize("policy", POLICIES)
def test_merging_improves_cells_that_are_alike(policy):
    mechanism = bf.mechanisms.NoiseFirst(policy(LINE), RANGES, epsilon=1, price=8)
    merged, linear = [], []
    for seed in range(20):
        release = mechanism.release(STEPS, rng=seed)
        merged.append(np.square(release.estimate - STEPS).mean())
        linear.append(np.square(release.unfitted - STEPS).mean())
    assert np.mean(merged) < 0.5 * np.mean(linear)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_error_before_the_merge_is_that_of_laplace(policy):
    one = bf.mechanisms.NoiseFirst(policy(LINE), RANGES, epsilon=1)
    other = bf.Laplace(policy(LINE), RANGES, epsilon=1)
    assert (one.expected_error() == other.expected_error()).all()
    assert one.expected_total_error() == other.expected_total_error()
    first, second = one.release(STEPS, rng=3), other.release(STEPS, rng=3)
    assert (first.unfitted == second.estimate).all()
    assert (first.intervals(RANGES) == second.intervals(RANGES)).all()


def test_buckets_are_means_of_the_noisy_cells():
    release = bf.mechanisms.NoiseFirst(
        bf.policies.AddRemove(LINE), RANGES, epsilon=1
    ).release(STEPS, rng=1)
    for start, end in zip(
        release.details["edges"][:-1], release.details["edges"][1:], strict=True
    ):
        np.testing.assert_allclose(
            release.estimate[start:end], release.unfitted[start:end].mean()
        )


def test_public_totals_stay_exact_in_every_part():
    labels = np.repeat([0, 1, 2], [30, 1, 33])
    for policy in (bf.policies.Full(LINE), bf.policies.Blocks(LINE, labels)):
        release = bf.mechanisms.NoiseFirst(policy, RANGES, epsilon=0.1).release(
            STEPS, rng=1
        )
        assert release.estimate.sum() == pytest.approx(STEPS.sum())
    for part in range(3):
        inside = labels == part
        assert release.estimate[inside].sum() == pytest.approx(STEPS[inside].sum())


def test_without_edges_the_counts_are_public():
    alone = bf.policies.Blocks(LINE, np.arange(64))
    release = bf.mechanisms.NoiseFirst(alone, RANGES, epsilon=1).release(STEPS)
    assert (release.estimate == STEPS).all()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("epsilon", [1e-6, 1e6])
def test_extreme_data_and_epsilons_work(policy, epsilon):
    for counts in (np.zeros(64, int), np.eye(1, 64, 13)[0] * 2.0**60):
        mechanism = bf.mechanisms.NoiseFirst(policy(LINE), RANGES, epsilon=epsilon)
        assert np.isfinite(mechanism.release(counts).estimate).all()


def test_bad_settings_are_refused():
    full = bf.policies.Full(LINE)
    for price in (0, -1, np.inf):
        with pytest.raises(InputError, match="price must be"):
            bf.mechanisms.NoiseFirst(full, RANGES, epsilon=1, price=price)
    grid = bf.Domain((4, 4))
    with pytest.raises(DomainError, match="one ordered attribute"):
        bf.mechanisms.NoiseFirst(
            bf.policies.Full(grid), bf.workloads.Identity(grid), epsilon=1
        )

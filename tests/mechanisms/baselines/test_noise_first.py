"""NoiseFirst end to end."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.release.grants import with_answers

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
    held = with_answers(first.intervals(RANGES), second.answer(RANGES))
    assert (with_answers(second.intervals(RANGES), first.answer(RANGES)) == held).all()


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


def test_without_edges_the_counts_are_public():
    alone = bf.policies.Blocks(LINE, np.arange(64))
    release = bf.mechanisms.NoiseFirst(alone, RANGES, epsilon=1).release(STEPS)
    assert (release.estimate == STEPS).all()

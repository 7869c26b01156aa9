"""StructureFirst end to end."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf

LINE = bf.Domain(64)
RANGES = bf.workloads.Ranges.random(LINE, 200, rng=1)
STEPS = np.repeat([5, 90, 0, 40], 16)
POLICIES = [bf.policies.AddRemove, bf.policies.Full]


@pytest.mark.parametrize("policy", POLICIES)
def test_it_finds_the_steps(policy):
    mechanism = bf.mechanisms.StructureFirst(
        policy(LINE), RANGES, epsilon=200, buckets=4, largest_count=90
    )
    release = mechanism.release(STEPS, rng=2)
    assert release.details["edges"].tolist() == [0, 16, 32, 48, 64]
    assert np.abs(release.estimate - STEPS).mean() < 0.1
    assert release.guarantee.epsilon == 200


def test_cut_counts_are_measured_in_full():
    counts = np.zeros(64, dtype=int)
    counts[:32] = 10_000
    mechanism = bf.mechanisms.StructureFirst(
        bf.policies.AddRemove(LINE), RANGES, epsilon=100, buckets=2, largest_count=50
    )
    assert mechanism.release(counts, rng=1).estimate.sum() == pytest.approx(
        320_000, abs=5
    )

"""StructureFirst end to end."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import (
    DataDependentError,
    DomainError,
    EpsilonError,
    InputError,
)

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


@pytest.mark.parametrize("policy", POLICIES)
def test_intervals_cover_the_bucketed_truth(policy):
    mechanism = bf.mechanisms.StructureFirst(policy(LINE), RANGES, epsilon=1, buckets=6)
    trials, confidence = 200, 0.9
    held = np.zeros(RANGES.queries)
    for seed in range(trials):
        release = mechanism.release(STEPS, rng=seed)
        buckets = release.measurements[0].buckets
        truth = RANGES.answer(buckets.expand(buckets.sum(STEPS).astype(float)))
        low, high = release.intervals(RANGES, confidence).T
        held += (low <= truth + 1e-9) & (truth <= high + 1e-9)
    slack = 4 * np.sqrt(confidence * (1 - confidence) / trials)
    assert held.min() / trials >= confidence - slack


def test_cut_counts_are_measured_in_full():
    counts = np.zeros(64, dtype=int)
    counts[:32] = 10_000
    mechanism = bf.mechanisms.StructureFirst(
        bf.policies.AddRemove(LINE), RANGES, epsilon=100, buckets=2, largest_count=50
    )
    assert mechanism.release(counts, rng=1).estimate.sum() == pytest.approx(
        320_000, abs=5
    )


def test_the_error_depends_on_the_data():
    with pytest.raises(DataDependentError, match="chooses from the data"):
        bf.mechanisms.StructureFirst(
            bf.policies.Full(LINE), RANGES, epsilon=1
        ).expected_error()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("epsilon", [1e-6, 1e6])
def test_extreme_data_and_epsilons_work(policy, epsilon):
    for counts in (np.zeros(64, int), np.eye(1, 64, 13)[0] * 2.0**60):
        mechanism = bf.mechanisms.StructureFirst(policy(LINE), RANGES, epsilon=epsilon)
        assert np.isfinite(mechanism.release(counts).estimate).all()


def test_releases_repeat_and_survive_a_file(tmp_path):
    mechanism = bf.mechanisms.StructureFirst(
        bf.policies.Full(LINE), RANGES, epsilon=0.5
    )
    one, two = mechanism.release(STEPS, rng=9), mechanism.release(STEPS, rng=9)
    assert (one.estimate == two.estimate).all()
    one.save(tmp_path / "structure.release")
    loaded = bf.Release.load(tmp_path / "structure.release")
    assert (loaded.intervals(RANGES) == one.intervals(RANGES)).all()


def test_bad_settings_are_refused():
    full = bf.policies.Full(LINE)
    for name in ("buckets", "largest_count"):
        with pytest.raises(InputError, match=f"{name} must be"):
            bf.mechanisms.StructureFirst(full, RANGES, epsilon=1, **{name: 0})
    with pytest.raises(EpsilonError, match="share"):
        bf.mechanisms.StructureFirst(full, RANGES, epsilon=1, share=1)
    grid = bf.Domain((4, 4))
    with pytest.raises(DomainError, match="one ordered attribute"):
        bf.mechanisms.StructureFirst(
            bf.policies.Full(grid), bf.workloads.Identity(grid), epsilon=1
        )

"""Laplace end to end: error as predicted, intervals that hold, limits."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import BlowfishError, DomainError, InputError, PolicyError

LINE = bf.Domain(32)
RANGES = bf.workloads.Ranges.random(LINE, 20, rng=1)
COUNTS = np.arange(32) * 3 % 17


@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_measured_error_is_the_predicted_one(policy):
    mechanism = bf.Laplace(policy(LINE), RANGES, epsilon=0.5)
    truth = RANGES.answer(COUNTS)
    errors = [
        mechanism.release(COUNTS, rng=seed).answer(RANGES) - truth
        for seed in range(1500)
    ]
    measured = np.square(errors).mean(axis=0)
    assert measured / mechanism.expected_error() == pytest.approx(1.0, abs=0.25)
    assert measured.sum() == pytest.approx(mechanism.expected_total_error(), rel=0.06)


@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_intervals_hold_at_least_their_confidence(policy, confidence):
    mechanism = bf.Laplace(policy(LINE), RANGES, epsilon=1)
    truth = RANGES.answer(COUNTS)
    trials = 600
    held = np.zeros(RANGES.queries)
    for seed in range(trials):
        low, high = mechanism.release(COUNTS, rng=seed).intervals(RANGES, confidence).T
        held += (low <= truth) & (truth <= high)
    slack = 3 * np.sqrt(confidence * (1 - confidence) / trials)
    assert held.min() / trials >= confidence - slack


def test_a_large_epsilon_gives_back_the_counts():
    mechanism = bf.Laplace(bf.policies.AddRemove(LINE), RANGES, epsilon=1e6)
    assert (mechanism.release(COUNTS).estimate == COUNTS).all()


def test_the_public_total_is_exact_and_the_private_one_is_not():
    bounded = bf.Laplace(bf.policies.Full(LINE), RANGES, epsilon=0.1)
    assert bounded.release(COUNTS, rng=1).estimate.sum() == pytest.approx(COUNTS.sum())
    unbounded = bf.Laplace(bf.policies.AddRemove(LINE), RANGES, epsilon=0.1)
    assert unbounded.release(COUNTS, rng=1).estimate.sum() != COUNTS.sum()


def test_noise_shifts_with_the_counts():
    mechanism = bf.Laplace(bf.policies.AddRemove(LINE), RANGES, epsilon=0.3)
    one = mechanism.release(COUNTS, rng=5).estimate
    other = mechanism.release(COUNTS + 1, rng=5).estimate
    assert (other - one == 1).all()


def test_secure_releases_differ_and_seeded_ones_repeat():
    mechanism = bf.Laplace(bf.policies.AddRemove(LINE), RANGES, epsilon=0.1)
    first, second = mechanism.release(COUNTS), mechanism.release(COUNTS)
    assert first.private
    assert (first.estimate != second.estimate).any()
    seeded = mechanism.release(COUNTS, rng=3)
    assert not seeded.private
    assert (seeded.estimate == mechanism.release(COUNTS, rng=3).estimate).all()
    assert "experiment" in str(seeded.guarantee)
    assert "experiment" not in str(first.guarantee)


@pytest.mark.parametrize("counts", [[7], [0]])
@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_one_cell_works(counts, policy):
    domain = bf.Domain(1)
    asked = bf.workloads.Identity(domain)
    release = bf.Laplace(policy(domain), asked, epsilon=1).release(counts)
    assert release.intervals(asked).shape == (1, 2)


def test_a_grid_keeps_its_shape():
    grid = bf.Domain((3, 5))
    asked = bf.workloads.Identity(grid)
    release = bf.Laplace(bf.policies.Full(grid), asked, epsilon=1).release(
        np.ones((3, 5))
    )
    assert release.estimate.shape == (3, 5)


def test_all_ranges_are_predicted_at_any_size():
    line = bf.Domain(2**20)
    laplace = bf.Laplace(
        bf.policies.AddRemove(line), bf.workloads.AllRanges(line), epsilon=1
    )
    cells = 2.0**20
    variance = laplace.expected_error(bf.workloads.Ranges(line, [0], [1]))[0]
    assert laplace.expected_total_error() == pytest.approx(
        variance * cells * (cells + 1) * (cells + 2) / 6
    )


def test_bad_arguments_are_refused_before_anything_is_drawn():
    policy = bf.policies.AddRemove(LINE)
    with pytest.raises(InputError, match="on must be"):
        bf.Laplace(policy, RANGES, epsilon=1, strategy="queries of mine")
    with pytest.raises(PolicyError, match="state the policy first"):
        bf.Laplace(RANGES, policy, epsilon=1)
    with pytest.raises(BlowfishError, match="state the workload second"):
        bf.Laplace(policy, policy, epsilon=1)
    with pytest.raises(DomainError, match="share one domain"):
        bf.Laplace(bf.policies.AddRemove(bf.Domain(3)), RANGES, epsilon=1)
    laplace = bf.Laplace(policy, RANGES, epsilon=1)
    with pytest.raises(DomainError, match="build both over one Domain"):
        laplace.release(bf.Histogram(bf.Domain(3), [1, 2, 3]))
    with pytest.raises(DomainError, match="lies over"):
        laplace.expected_error(bf.workloads.Identity(bf.Domain(3)))
    with pytest.raises(BlowfishError, match="shape of the domain"):
        laplace.release([1, 2, 3])
    with pytest.raises(BlowfishError):
        laplace.release(COUNTS, rng=-1)

"""Baselines of buckets end to end: AHP, P-HP, StructureFirst, NoiseFirst."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.release.grants import with_answers

LINE = bf.Domain(64)
CELLS = bf.workloads.Identity(LINE)
RANGES = bf.workloads.Ranges.random(LINE, 200, rng=1)
TEETH = np.tile([5, 90, 0, 40], 16)
STEPS = np.repeat([5, 90, 0, 40], 16)
POLICIES = [bf.policies.AddRemove, bf.policies.Full]


@pytest.mark.parametrize("policy", [*POLICIES, bf.policies.Line])
def test_it_finds_cells_of_one_height_wherever_they_lie(policy):
    release = bf.mechanisms.Ahp(policy(LINE), CELLS, epsilon=50).release(TEETH, rng=2)
    assert np.abs(release.estimate - TEETH).mean() < 1
    assert release.guarantee.epsilon == 50
    assert release.details["labels"].tolist()[:8] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert release.details["buckets"] == 4


@pytest.mark.parametrize("policy", [*POLICIES, bf.policies.Line])
def test_clusters_beat_noise_on_every_cell_where_cells_are_alike(policy):
    line = bf.Domain(1024)
    counts = np.zeros(1024, dtype=np.int64)
    counts[::8] = 400
    error = {}
    for kind in (bf.mechanisms.Ahp, bf.Laplace):
        mechanism = kind(policy(line), bf.workloads.Identity(line), epsilon="0.1")
        releases = [mechanism.release(counts, rng=seed) for seed in range(5)]
        squares = [np.square(one.estimate - counts).mean() for one in releases]
        error[kind] = np.mean(squares)
    assert error[bf.mechanisms.Ahp] < 0.2 * error[bf.Laplace]


@pytest.mark.parametrize("policy", POLICIES)
def test_bisection_finds_the_steps(policy):
    release = bf.mechanisms.Php(policy(LINE), RANGES, epsilon=50).release(STEPS, rng=2)
    assert np.abs(release.estimate - STEPS).mean() < 3
    assert release.guarantee.epsilon == 50
    assert release.details["edges"].tolist()[-1] == 64
    assert release.details["buckets"] == release.details["edges"].size - 1


def test_bisection_beats_noise_on_every_cell_where_cells_are_alike():
    line = bf.Domain(512)
    ranges = bf.workloads.Ranges.random(line, 200, rng=1)
    steps = np.repeat([5, 90], 256)
    truth = ranges.answer(steps)
    error = {}
    for kind in (bf.mechanisms.Php, bf.Laplace):
        mechanism = kind(bf.policies.AddRemove(line), ranges, epsilon=0.1)
        releases = [mechanism.release(steps, rng=seed) for seed in range(30)]
        errors = [np.abs(one.answer(ranges) - truth).mean() for one in releases]
        error[kind] = np.mean(errors)
    assert error[bf.mechanisms.Php] < 0.8 * error[bf.Laplace]


@pytest.mark.parametrize("policy", POLICIES)
def test_borders_are_drawn_at_the_steps(policy):
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

"""EFPA end to end."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DataDependentError, DomainError, EpsilonError

LINE = bf.Domain(64)
RANGES = bf.workloads.Ranges.random(LINE, 200, rng=1)
WAVE = np.rint(100 + 80 * np.cos(2 * np.pi * 3 * np.arange(64) / 64)).astype(int)
POLICIES = [bf.policies.AddRemove, bf.policies.Full, bf.policies.Line]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_wave_is_found(policy):
    release = bf.mechanisms.Efpa(policy(LINE), RANGES, epsilon=40).release(WAVE, rng=2)
    assert release.details["frequencies"] >= 3
    assert np.abs(release.estimate - WAVE).mean() < 2
    assert release.guarantee.epsilon == 40


@pytest.mark.parametrize("policy", POLICIES)
def test_smooth_counts_beat_noise_on_every_cell(policy):
    line = bf.Domain(512)
    ranges = bf.workloads.Ranges.random(line, 50, rng=1)
    smooth = np.rint(300 + 200 * np.sin(np.arange(512) * np.pi / 128)).astype(int)
    error = {}
    for kind in (bf.mechanisms.Efpa, bf.Laplace):
        mechanism = kind(policy(line), ranges, epsilon=0.1)
        releases = [mechanism.release(smooth, rng=seed) for seed in range(10)]
        squares = [np.square(one.estimate - smooth).mean() for one in releases]
        error[kind] = np.mean(squares)
    assert error[bf.mechanisms.Efpa] < 0.5 * error[bf.Laplace]


@pytest.mark.parametrize("policy", POLICIES)
def test_intervals_cover_the_noise_of_what_was_kept(policy):
    efpa = bf.mechanisms.Efpa(policy(LINE), RANGES, epsilon=1)
    trials, confidence = 200, 0.9
    held = np.zeros(RANGES.queries)
    for seed in range(trials):
        release = efpa.release(WAVE, rng=seed)
        (measurement,) = release.measurements
        strategy = measurement.strategy
        kept = strategy.infer(strategy.rows(WAVE), measurement.scales)
        truth = RANGES.answer(kept)
        low, high = release.intervals(RANGES, confidence).T
        held += (low <= truth + 1e-6) & (truth <= high + 1e-6)
    slack = 4 * np.sqrt(confidence * (1 - confidence) / trials)
    assert held.min() / trials >= confidence - slack


def test_the_error_depends_on_the_data():
    for policy in POLICIES:
        with pytest.raises(DataDependentError, match="chooses from the data"):
            bf.mechanisms.Efpa(policy(LINE), RANGES, epsilon=1).expected_error()


def test_public_totals_stay_exact():
    efpa = bf.mechanisms.Efpa(bf.policies.Full(LINE), RANGES, epsilon=0.1)
    assert efpa.release(WAVE, rng=1).estimate.sum() == pytest.approx(WAVE.sum())


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("epsilon", [1e-6, 1e6])
def test_extreme_data_and_epsilons_work(policy, epsilon):
    for counts in (np.zeros(64, int), np.eye(1, 64, 13)[0] * 2.0**60):
        efpa = bf.mechanisms.Efpa(policy(LINE), RANGES, epsilon=epsilon)
        assert np.isfinite(efpa.release(counts).estimate).all()


def test_releases_repeat_and_survive_a_file(tmp_path):
    efpa = bf.mechanisms.Efpa(bf.policies.AddRemove(LINE), RANGES, epsilon=0.5)
    one, two = efpa.release(WAVE, rng=9), efpa.release(WAVE, rng=9)
    assert (one.estimate == two.estimate).all()
    one.save(tmp_path / "efpa.release")
    loaded = bf.Release.load(tmp_path / "efpa.release")
    assert (loaded.intervals(RANGES) == one.intervals(RANGES)).all()


def test_bad_settings_are_refused():
    full = bf.policies.Full(LINE)
    with pytest.raises(EpsilonError, match="share"):
        bf.mechanisms.Efpa(full, RANGES, epsilon=1, share=1)
    grid = bf.Domain((4, 4))
    with pytest.raises(DomainError, match="one ordered attribute"):
        bf.mechanisms.Efpa(
            bf.policies.Full(grid), bf.workloads.Identity(grid), epsilon=1
        )

"""EFPA end to end."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf

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

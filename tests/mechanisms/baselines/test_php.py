"""P-HP end to end."""

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
    release = bf.mechanisms.Php(policy(LINE), RANGES, epsilon=50).release(STEPS, rng=2)
    assert np.abs(release.estimate - STEPS).mean() < 3
    assert release.guarantee.epsilon == 50
    assert release.details["edges"].tolist()[-1] == 64
    assert release.details["buckets"] == release.details["edges"].size - 1


def test_it_beats_noise_on_every_cell_where_cells_are_alike():
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

"""AHP end to end."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf

LINE = bf.Domain(64)
CELLS = bf.workloads.Identity(LINE)
TEETH = np.tile([5, 90, 0, 40], 16)
POLICIES = [bf.policies.AddRemove, bf.policies.Full, bf.policies.Line]


@pytest.mark.parametrize("policy", POLICIES)
def test_it_finds_cells_of_one_height_wherever_they_lie(policy):
    release = bf.mechanisms.Ahp(policy(LINE), CELLS, epsilon=50).release(TEETH, rng=2)
    assert np.abs(release.estimate - TEETH).mean() < 1
    assert release.guarantee.epsilon == 50
    assert release.details["labels"].tolist()[:8] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert release.details["buckets"] == 4


@pytest.mark.parametrize("policy", POLICIES)
def test_it_beats_noise_on_every_cell_where_cells_are_alike(policy):
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

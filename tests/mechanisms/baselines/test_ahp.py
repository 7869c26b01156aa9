"""AHP end to end."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import policy_families
from blowfish_fast.errors import DataDependentError, EpsilonError, InputError

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


@pytest.mark.parametrize("policy", POLICIES)
def test_intervals_cover_the_clustered_truth(policy):
    ahp = bf.mechanisms.Ahp(policy(LINE), CELLS, epsilon=1)
    trials, confidence = 200, 0.9
    held = np.zeros(64)
    for seed in range(trials):
        release = ahp.release(TEETH, rng=seed)
        buckets = release.measurements[0].buckets
        truth = buckets.expand(buckets.sum(TEETH).astype(float))
        low, high = release.intervals(CELLS, confidence).T
        held += (low <= truth + 1e-9) & (truth <= high + 1e-9)
    slack = 4 * np.sqrt(confidence * (1 - confidence) / trials)
    assert held.min() / trials >= confidence - slack


@pytest.mark.parametrize("shape", [1, 2, 7, (3, 4)])
def test_every_policy_is_served_and_public_totals_stay_exact(shape):
    domain = bf.Domain(shape)
    counts = np.arange(domain.size).reshape(domain.shape) % 3 * 50
    for policy in policy_families(domain).values():
        ahp = bf.mechanisms.Ahp(policy, bf.workloads.Identity(domain), epsilon="0.5")
        release = ahp.release(counts, rng=4)
        assert release.estimate.shape == domain.shape
        components = policy.components()
        labels = components.labels
        if labels is None:
            labels = np.zeros(domain.size, dtype=np.int64)
        sums = np.bincount(labels, release.estimate.reshape(-1))
        truth = np.bincount(labels, counts.reshape(-1))
        known = ~components.private
        np.testing.assert_allclose(sums[known], truth[known], atol=1e-6)


def test_the_error_depends_on_the_data():
    with pytest.raises(DataDependentError, match="chooses from the data"):
        bf.mechanisms.Ahp(bf.policies.Full(LINE), CELLS, epsilon=1).expected_error()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("epsilon", [1e-6, 1e6])
def test_extreme_data_and_epsilons_work(policy, epsilon):
    for counts in (np.zeros(64, int), np.eye(1, 64, 13)[0] * 2.0**60):
        ahp = bf.mechanisms.Ahp(policy(LINE), CELLS, epsilon=epsilon)
        assert np.isfinite(ahp.release(counts).estimate).all()


def test_releases_repeat_and_survive_a_file(tmp_path):
    ahp = bf.mechanisms.Ahp(bf.policies.Full(LINE), CELLS, epsilon=0.5)
    one, two = ahp.release(TEETH, rng=9), ahp.release(TEETH, rng=9)
    assert (one.estimate == two.estimate).all()
    one.save(tmp_path / "ahp.release")
    loaded = bf.Release.load(tmp_path / "ahp.release")
    assert (loaded.intervals(CELLS) == one.intervals(CELLS)).all()


def test_bad_settings_are_refused():
    full = bf.policies.Full(LINE)
    with pytest.raises(InputError, match="threshold must be"):
        bf.mechanisms.Ahp(full, CELLS, epsilon=1, threshold=-1)
    with pytest.raises(EpsilonError, match="share"):
        bf.mechanisms.Ahp(full, CELLS, epsilon=1, share=1)

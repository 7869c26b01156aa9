"""P-HP end to end."""

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
    release = bf.mechanisms.Php(policy(LINE), RANGES, epsilon=50).release(STEPS, rng=2)
    assert np.abs(release.estimate - STEPS).mean() < 3
    assert release.guarantee.epsilon == 50
    assert release.details["edges"].tolist()[-1] == 64
    assert release.details["buckets"] == release.details["edges"].size - 1


@pytest.mark.parametrize("policy", POLICIES)
def test_intervals_cover_the_bucketed_truth(policy):
    php = bf.mechanisms.Php(policy(LINE), RANGES, epsilon=1)
    trials, confidence = 200, 0.9
    held = np.zeros(RANGES.queries)
    for seed in range(trials):
        release = php.release(STEPS, rng=seed)
        buckets = release.measurements[0].buckets
        truth = RANGES.answer(buckets.expand(buckets.sum(STEPS).astype(float)))
        low, high = release.intervals(RANGES, confidence).T
        held += (low <= truth + 1e-9) & (truth <= high + 1e-9)
    slack = 4 * np.sqrt(confidence * (1 - confidence) / trials)
    assert held.min() / trials >= confidence - slack


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


def test_the_error_depends_on_the_data():
    with pytest.raises(DataDependentError, match="chooses from the data"):
        bf.mechanisms.Php(bf.policies.Full(LINE), RANGES, epsilon=1).expected_error()


def test_public_totals_stay_exact():
    php = bf.mechanisms.Php(bf.policies.Full(LINE), RANGES, epsilon=0.1)
    assert php.release(STEPS, rng=1).estimate.sum() == pytest.approx(STEPS.sum())


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("epsilon", [1e-6, 1e6])
def test_extreme_data_and_epsilons_work(policy, epsilon):
    for counts in (np.zeros(64, int), np.eye(1, 64, 13)[0] * 2.0**60):
        php = bf.mechanisms.Php(policy(LINE), RANGES, epsilon=epsilon)
        assert np.isfinite(php.release(counts).estimate).all()


def test_releases_repeat_and_survive_a_file(tmp_path):
    php = bf.mechanisms.Php(bf.policies.Full(LINE), RANGES, epsilon=0.5, levels=4)
    one, two = php.release(STEPS, rng=9), php.release(STEPS, rng=9)
    assert (one.estimate == two.estimate).all()
    one.save(tmp_path / "php.release")
    loaded = bf.Release.load(tmp_path / "php.release")
    assert (loaded.intervals(RANGES) == one.intervals(RANGES)).all()


def test_bad_settings_are_refused():
    full = bf.policies.Full(LINE)
    with pytest.raises(InputError, match="levels must lie"):
        bf.mechanisms.Php(full, RANGES, epsilon=1, levels=0)
    with pytest.raises(EpsilonError, match="share"):
        bf.mechanisms.Php(full, RANGES, epsilon=1, share=1)
    grid = bf.Domain((4, 4))
    with pytest.raises(DomainError, match="one ordered attribute"):
        bf.mechanisms.Php(
            bf.policies.Full(grid), bf.workloads.Identity(grid), epsilon=1
        )

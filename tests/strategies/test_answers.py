"""Noise on the answers themselves."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements
from blowfish_fast.errors import IntervalError, WorkloadError

LINE = bf.Domain(8)
RANGES = bf.workloads.Ranges(LINE, [0, 2, 5], [4, 6, 8])
COUNTS = np.array([3, 1, 4, 1, 5, 9, 2, 6])


@pytest.mark.parametrize(
    "policy",
    [
        bf.policies.AddRemove(LINE),
        bf.policies.Full(LINE),
        bf.policies.Line(LINE),
        bf.policies.Threshold(LINE, theta=3),
        bf.policies.Blocks(LINE, [0, 0, 0, 0, 1, 1, 1, 1]),
    ],
)
def test_the_price_is_the_sensitivity_of_the_workload(policy):
    laplace = bf.Laplace(policy, RANGES, epsilon="0.4", on="queries")
    for price in audit_measurements(laplace, COUNTS):
        assert price.passed, price


def test_errors_are_those_of_one_draw_and_fall_with_sparser_policies():
    full = bf.Laplace(bf.policies.Full(LINE), RANGES, epsilon=1, on="queries")
    line = bf.Laplace(bf.policies.Line(LINE), RANGES, epsilon=1, on="queries")
    assert (full.expected_error() > line.expected_error()).all()
    truth = RANGES.answer(COUNTS)
    errors = [
        full.release(COUNTS, rng=seed).measurements[0].noisy - truth
        for seed in range(2000)
    ]
    assert np.square(errors).mean(axis=0) == pytest.approx(
        full.expected_error(), rel=0.15
    )


def test_the_histogram_fits_the_noisy_answers():
    laplace = bf.Laplace(bf.policies.Full(LINE), RANGES, epsilon=1e6, on="queries")
    release = laplace.release(COUNTS)
    assert release.answer(RANGES) == pytest.approx(RANGES.answer(COUNTS), abs=1e-6)
    low, high = release.intervals(RANGES).T
    assert (low <= high).all()


def test_only_declared_queries_have_intervals():
    laplace = bf.Laplace(bf.policies.Full(LINE), RANGES, epsilon=1, on="queries")
    release = laplace.release(COUNTS)
    with pytest.raises(IntervalError, match="only those have intervals"):
        release.intervals(bf.workloads.Identity(LINE))
    part = bf.workloads.Ranges(LINE, [2], [6])
    assert release.intervals(part).shape == (1, 2)


def test_fractional_coefficients_are_refused():
    halves = bf.workloads.Linear(LINE, np.full((1, 8), 0.5))
    with pytest.raises(WorkloadError, match="whole-number coefficients"):
        bf.Laplace(bf.policies.Full(LINE), halves, epsilon=1, on="queries").release(
            COUNTS
        )


def test_queries_that_nothing_moves_are_exact():
    total = bf.workloads.Total(LINE)
    release = bf.Laplace(
        bf.policies.Full(LINE), total, epsilon=1, on="queries"
    ).release(COUNTS)
    assert release.answer(total) == pytest.approx([31])


def test_releases_survive_saving(tmp_path):
    release = bf.Laplace(
        bf.policies.Full(LINE), RANGES, epsilon=1, on="queries"
    ).release(COUNTS)
    release.save(tmp_path / "answers")
    again = bf.Release.load(tmp_path / "answers")
    assert (again.intervals(RANGES) == release.intervals(RANGES)).all()

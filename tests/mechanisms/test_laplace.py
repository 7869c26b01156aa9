"""Laplace end to end: error as predicted, intervals that hold, limits."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError

LINE = bf.Domain(32)
RANGES = bf.workloads.Ranges.random(LINE, 20, rng=1)
COUNTS = np.arange(32) * 3 % 17


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


def test_workloads_over_another_domain_are_refused():
    laplace = bf.Laplace(bf.policies.AddRemove(LINE), RANGES, epsilon=1)
    with pytest.raises(DomainError, match="lies over"):
        laplace.expected_error(bf.workloads.Identity(bf.Domain(3)))

"""Typical errors: from the definition, repeatable."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.advice.typical_error import mean_square, typical_errors

LINE = bf.Domain(12)
GRID = bf.Domain((3, 4))


@pytest.mark.parametrize(
    "workload",
    [
        bf.workloads.AllRanges(LINE),
        bf.workloads.Prefixes(LINE),
        bf.workloads.Identity(LINE),
        bf.workloads.Total(LINE),
        bf.workloads.Ranges.random(LINE, 30, rng=1),
        bf.workloads.Rectangles.random(GRID, 30, rng=1),
        bf.workloads.Identity(GRID),
    ],
    ids=lambda one: f"{type(one).__name__}-{one.domain.ndim}",
)
def test_all_queries_count(workload, generator):
    errors = generator.normal(size=workload.domain.shape)
    answers = workload.answer(errors)
    assert mean_square(workload, errors) == pytest.approx(np.mean(answers**2))


def test_errors_are_those_of_seeded_releases():
    ranges = bf.workloads.Ranges.random(LINE, 30, rng=1)
    mechanism = bf.Dawa(bf.policies.AddRemove(LINE), ranges, epsilon=1)
    counts = np.arange(12) * 3
    found = typical_errors(mechanism, {"ramp": counts}, trials=2, rng=5)
    truth = ranges.answer(counts)
    squares = [
        np.mean((mechanism.release(counts, rng=seed).answer(ranges) - truth) ** 2)
        for seed in (5_000_000, 5_000_001)
    ]
    assert found == {"ramp": pytest.approx(np.sqrt(np.mean(squares)))}


def test_noise_that_is_predicted_is_found():
    cells = bf.workloads.Identity(LINE)
    laplace = bf.Laplace(bf.policies.AddRemove(LINE), cells, epsilon=1)
    found = typical_errors(laplace, {"none": np.zeros(12, int)}, trials=400, rng=1)
    predicted = np.sqrt(laplace.expected_error().mean())
    assert found["none"] == pytest.approx(predicted, rel=0.1)

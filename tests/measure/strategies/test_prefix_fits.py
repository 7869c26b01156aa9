"""Fits of noisy running totals."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.measure.handle import Account, Handle
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies import PrefixSums
from blowfish_fast.measure.strategies.hierarchy_plan import planned_hierarchy
from blowfish_fast.measure.strategies.prefix_sums import (
    Totals,
    _knotted,
    monotone_buckets,
    smoothed_cells,
)

STEPS = np.repeat([3, 40, 0, 12], 64)


def measured(strategy, policy, counts, epsilon):
    account = Account(epsilon)
    handle = Handle(counts, policy, account, Randomness(1))
    return handle.measure(strategy, budget=account.granted)


def noisy_line(counts, epsilon, seed):
    generator = np.random.default_rng(seed)
    totals = np.cumsum(counts).astype(np.float64)
    known = np.arange(counts.size) == counts.size - 1
    totals[~known] += generator.laplace(scale=1 / epsilon, size=counts.size - 1)
    outlier = np.log(20.0 * counts.size) / epsilon
    return Totals(totals, known, 2 / epsilon**2, 1 / epsilon, outlier)


def test_running_totals_come_from_either_strategy_that_measures_them():
    from fractions import Fraction

    domain = bf.Domain(12)
    policy = bf.policies.Threshold(domain, 3)
    counts = np.arange(12)
    epsilon = Fraction(1000)
    for strategy in (PrefixSums(12), planned_hierarchy(policy)):
        rows = measured(strategy, policy, counts, epsilon)
        totals = strategy.totals(rows.noisy, rows.scales)
        np.testing.assert_allclose(totals.values, np.cumsum(counts), atol=1e-6)
        assert totals.known[-1]
        assert totals.values[-1] == counts.sum()


@pytest.mark.parametrize("query_cells", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("epsilon", [0.002, 0.05, 1.0])
def test_counts_are_never_negative_and_meet_the_total(query_cells, epsilon):
    totals = noisy_line(STEPS, epsilon, 1)
    found = smoothed_cells(totals, query_cells)
    assert (found >= -1e-9).all()
    assert found.sum() == pytest.approx(STEPS.sum())


def test_single_cells_gain_from_windows_of_all_sizes():
    errors = {"smooth": 0.0, "monotone": 0.0}
    for seed in range(5):
        totals = noisy_line(STEPS, 0.05, seed)
        errors["smooth"] += ((smoothed_cells(totals, 1.0) - STEPS) ** 2).sum()
        errors["monotone"] += ((monotone_buckets(totals) - STEPS) ** 2).sum()
    assert errors["smooth"] < 0.3 * errors["monotone"]


def test_even_data_are_exact_and_steps_are_found():
    even = np.full(1000, 50)
    # One row of noise in twenty has an outlier that counts as a knot.
    exact = [
        np.abs(smoothed_cells(noisy_line(even, 0.1, seed), 1.0) - even).max() < 1e-9
        for seed in range(20)
    ]
    assert sum(exact) >= 17
    levels = np.random.default_rng(3).integers(0, 200, 16)
    steps = np.repeat(levels, 64)
    errors = [
        np.abs(smoothed_cells(noisy_line(steps, 0.1, seed), 1.0) - steps).mean()
        for seed in range(10)
    ]
    assert np.mean(errors) <= 0.3


@pytest.mark.long
@pytest.mark.parametrize("asked", ["cells", "ranges"])
@pytest.mark.parametrize("shape", ["steps of 64", "steps of 16", "even"])
@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_the_line_policy_is_no_worse_than_all_moves_on_steps(asked, shape, epsilon):
    domain = bf.Domain(512)
    rng = np.random.default_rng(5)
    counts = {
        "steps of 64": np.repeat(rng.integers(0, 200, 8), 64),
        "steps of 16": np.repeat(rng.integers(0, 200, 32), 16),
        "even": np.full(512, 50),
    }[shape]
    workload = {
        "cells": bf.workloads.Identity(domain),
        "ranges": bf.workloads.Ranges.random(domain, 200, rng=1),
    }[asked]

    def error(policy):
        mechanism = bf.Transformed(policy, workload, epsilon=epsilon)
        return np.mean(
            [
                np.abs(
                    mechanism.release(counts, rng=seed).answer(workload)
                    - workload.answer(counts)
                ).mean()
                for seed in range(6)
            ]
        )

    on_line = error(bf.policies.Line(domain))
    assert on_line <= error(bf.policies.Full(domain)) + 1e-6


def test_data_that_are_nowhere_even_keep_the_other_fits():
    rough = np.random.default_rng(4).poisson(30, 1024) * np.arange(1, 1025) // 64
    totals = noisy_line(rough, 1.0, 1)
    assert (smoothed_cells(totals, 100.0) == monotone_buckets(totals)).all()
    # Queries of the stated lengths belong to the shorter ones.
    cells, both, long = (smoothed_cells(totals, one) for one in (1.5, 64.0, 64.01))
    assert (cells == smoothed_cells(totals, 1.0)).all()
    assert (both == smoothed_cells(totals, 1.51)).all()
    assert (cells != both).any()
    assert (both != long).any()


def test_exact_totals_keep_the_monotone_fit():
    exact = Totals(np.cumsum(STEPS) * 1.0, np.full(STEPS.size, True), 0.0, 0.0, 0.0)
    assert (smoothed_cells(exact, 1.0) == STEPS).all()


def test_residuals_that_go_together_are_not_straightened():
    totals = noisy_line(STEPS, 0.5, seed=4)
    straight = _knotted(totals)
    assert straight is not None
    # A wave too low for a knot, far above what noise without memory leaves together.
    wave = 1.5 * np.sin(np.arange(STEPS.size) / 9.0)
    waving = np.where(totals.known, totals.values, np.cumsum(STEPS) + wave)
    assert _knotted(totals._replace(values=waving)) is None

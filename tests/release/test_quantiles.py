"""Distribution functions and quantiles of releases, with intervals that hold."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, InputError, IntervalError
from blowfish_fast.release.quantiles import (
    cdf_values,
    monotone_totals,
    quantile_places,
)

CELLS = 60
LINE = bf.Domain(CELLS)
ASKED = bf.workloads.Prefixes(LINE)
COUNTS = np.concatenate([np.zeros(10), np.arange(40), np.full(10, 3)]).astype(int)
PARTS = np.array([0.0, 0.1, 0.25, 0.5, 0.9, 1.0])


def mechanisms():
    policies = bf.policies
    wide, narrow = policies.Threshold(LINE, theta=6), policies.Line(LINE)
    parts = policies.Blocks(LINE, np.repeat([0, 1, 2], 20))
    return {
        "ordered": bf.Ordered(narrow, ASKED, epsilon=0.3),
        "unfitted": bf.Ordered(narrow, ASKED, epsilon=0.3, fit=None),
        "hierarchical": bf.mechanisms.OrderedHierarchical(wide, ASKED, epsilon=1),
        "stretches": bf.mechanisms.OrderedHierarchical(parts, ASKED, epsilon=1),
        "private total": bf.mechanisms.OrderedHierarchical(
            policies.AddRemove(LINE), ASKED, epsilon=2
        ),
        "cells": bf.Laplace(policies.Full(LINE), ASKED, epsilon=2),
    }


MECHANISMS = mechanisms()


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_cdf_rises_to_one_and_is_close(name):
    release = MECHANISMS[name].release(COUNTS, rng=1)
    cdf = release.cdf()
    assert cdf.shape == (CELLS,)
    assert cdf[0] >= 0
    assert (np.diff(cdf) >= 0).all()
    assert cdf[-1] == 1.0
    assert np.abs(cdf - np.cumsum(COUNTS) / COUNTS.sum()).max() < 0.1
    bounds = release.cdf_intervals()
    assert bounds.shape == (CELLS, 2)
    assert (bounds[:, 0] <= bounds[:, 1]).all()
    assert bounds.min() >= 0
    assert bounds.max() <= 1
    assert bounds[-1].tolist() == [1.0, 1.0]


@pytest.mark.long
@pytest.mark.parametrize("name", MECHANISMS)
def test_intervals_of_the_cdf_hold_one_by_one(name):
    truth = np.cumsum(COUNTS) / COUNTS.sum()
    held = np.zeros(CELLS)
    for seed in range(80):
        low, high = MECHANISMS[name].release(COUNTS, rng=seed).cdf_intervals(0.9).T
        held += (low <= truth + 1e-12) & (truth <= high + 1e-12)
    assert held.min() / 80 >= 0.9 - 4 * np.sqrt(0.09 / 80)


@pytest.mark.long
@pytest.mark.parametrize("name", MECHANISMS)
def test_intervals_of_quantiles_hold_together(name):
    totals = np.cumsum(COUNTS)
    truth = np.searchsorted(totals, PARTS * totals[-1])
    held = 0
    for seed in range(80):
        release = MECHANISMS[name].release(COUNTS, rng=seed)
        low, high = release.quantile_intervals(PARTS, 0.8).T
        assert (low <= high).all()
        held += bool(((low <= truth) & (truth <= high)).all())
    assert held / 80 >= 0.8 - 4 * np.sqrt(0.16 / 80)


@pytest.mark.parametrize("name", MECHANISMS)
def test_quantiles_are_the_first_cells_to_reach_their_part(name):
    release = MECHANISMS[name].release(COUNTS, rng=2)
    found = release.quantile(PARTS)
    assert found.dtype == np.int64
    cdf = release.cdf()
    for part, cell in zip(PARTS.tolist(), found.tolist(), strict=True):
        assert cdf[cell] >= part - 1e-12
        assert cell == 0 or cdf[cell - 1] < part + 1e-12
    assert release.quantile(0.5) == found[3]
    assert release.quantile_intervals(0.5).shape == (2,)


def test_without_noise_everything_is_exact():
    release = bf.Ordered(bf.policies.Line(LINE), ASKED, epsilon=1e6).release(COUNTS)
    totals = np.cumsum(COUNTS)
    np.testing.assert_allclose(release.cdf(), totals / totals[-1], atol=1e-12)
    parts = np.linspace(0.01, 1, 50)
    truth = np.searchsorted(totals, parts * totals[-1])
    assert (release.quantile(parts) == truth).all()
    low, high = release.quantile_intervals(parts).T
    assert (low <= truth).all()
    assert (truth <= high).all()
    assert (high - low).max() <= 1


def test_public_stretches_pin_the_quantiles_at_their_ends():
    counts = np.repeat([10, 20, 10], 20)
    release = MECHANISMS["stretches"].release(counts, rng=1)
    # Exactly a quarter of all records lie in the first stretch.
    assert release.quantile_intervals([0.25]).tolist()[0][1] == 19
    np.testing.assert_allclose(release.cdf_intervals()[19], [0.25, 0.25])


def test_edges_give_values_along_the_axis():
    ages = bf.Domain.from_edges(np.arange(0, 121, 2), name="age")
    asked = bf.workloads.Prefixes(ages)
    ordered = bf.Ordered(bf.policies.Line(ages), asked, epsilon=1e6)
    release = ordered.release(np.full(CELLS, 10))
    # Uniform inside cells: the median of a uniform distribution is the middle.
    np.testing.assert_allclose(
        release.quantile([0.0, 0.25, 0.5, 1.0]), [0, 30, 60, 120]
    )
    low, high = release.quantile_intervals([0.255]).T
    assert low.tolist() == [30.0]
    assert high.tolist() == [32.0]


def test_negative_estimates_become_monotone_totals():
    estimate = np.array([3.0, -2.0, 4.0, -1.0])
    np.testing.assert_allclose(monotone_totals(estimate), [2, 2, 4, 4])
    np.testing.assert_allclose(cdf_values(estimate), [0.5, 0.5, 1, 1])
    assert quantile_places(bf.Domain(4), estimate, 0.6) == 2


def test_no_records_are_taken_as_uniform():
    np.testing.assert_allclose(cdf_values(np.zeros(4)), [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(cdf_values(np.array([1.0, -4.0])), [0.5, 1.0])
    release = MECHANISMS["ordered"].release(np.zeros(CELLS, dtype=int), rng=1)
    assert release.cdf_intervals()[:-1].tolist() == [[0.0, 1.0]] * (CELLS - 1)
    assert release.quantile_intervals(0.5).tolist()[0] == 0


def test_saved_releases_have_quantiles_too(tmp_path):
    release = MECHANISMS["hierarchical"].release(COUNTS, rng=3)
    release.save(tmp_path / "saved.release")
    again = bf.Release.load(tmp_path / "saved.release")
    assert (again.quantile_intervals(PARTS) == release.quantile_intervals(PARTS)).all()
    assert (again.cdf() == release.cdf()).all()


def test_misfits_are_refused():
    release = MECHANISMS["ordered"].release(COUNTS, rng=1)
    for wrong in (1.5, [-0.1], np.nan):
        with pytest.raises(InputError, match="from 0 to 1"):
            release.quantile(wrong)
    grid = bf.Domain((3, 4))
    flat = bf.Laplace(
        bf.policies.Full(grid), bf.workloads.Identity(grid), epsilon=1
    ).release(np.ones((3, 4)))
    for call in (
        flat.cdf,
        flat.cdf_intervals,
        lambda: flat.quantile(0.5),
        lambda: flat.quantile_intervals(0.5),
    ):
        with pytest.raises(DomainError, match="one ordered attribute"):
            call()
    from dataclasses import replace

    with pytest.raises(IntervalError):
        replace(release, interval_scope="nothing").cdf_intervals()


def test_the_example_of_an_index_runs_and_prefers_the_weaker_policy():
    script = Path(__file__).parents[2] / "examples" / "quantile_index.py"
    found = runpy.run_path(str(script))["main"]()
    near, everything = found.values()
    assert near < 0.05
    assert near < 0.3 * everything


def test_quantiles_of_dates_are_dates():
    days = bf.Domain.from_dates(
        np.arange("1969-12-01", "1970-02-01", dtype="M8[D]"), name="day"
    )
    release = bf.Ordered(
        bf.policies.Line(days), bf.workloads.Prefixes(days), epsilon=10**6
    ).release(np.ones(days.size, int), rng=1)
    assert release.quantile(0.25) == np.datetime64("1969-12-16")
    low, high = release.quantile_intervals([0.1, 0.5])[1]
    assert low.dtype == np.dtype("M8[D]")
    assert low <= release.quantile(0.5) <= high
    with pytest.raises(InputError, match="parts from 0 to 1"):
        release.quantile(2.0)
    with pytest.raises(InputError, match="there is no attribute 'x'"):
        release.quantile("x")

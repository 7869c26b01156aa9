"""The figures of the kd-tree paper: short forms, verdicts, the generated census."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from blowfish_fast.advice.experiments.experiment import Settings
from blowfish_fast.advice.experiments.runner import run_experiment
from experiments.collection import all_experiments
from experiments.kdtree_setup import (
    NAMES,
    STAND_IN,
    Scale,
    census,
    census_counts,
    error_columns,
)
from experiments.kdtree_sweeps import EXPERIMENTS as SWEEPS

FIGURES = [f"kdtree-fig{number}" for number in range(3, 17)]
SETTINGS = Settings(trials=1, seed=5, quick=True)
SWEPT = {one.name: one for one in SWEEPS}


def test_all_figures_are_there():
    assert set(FIGURES) <= set(all_experiments())


@pytest.mark.parametrize("name", FIGURES)
def test_the_short_form_names_the_stand_in_and_gives_a_verdict(name):
    experiment = all_experiments()[name]
    tasks = experiment.tasks(SETTINGS)
    rows = [row for task in tasks for row in experiment.run(task, SETTINGS)]
    assert {row["set"] for row in rows} == {STAND_IN}
    assert STAND_IN in experiment.protocol
    assert all(
        math.isfinite(value)
        for row in rows
        for value in row.values()
        if isinstance(value, float)
    )
    assert len({tuple(row) for row in rows}) <= 2
    summary = experiment.summary(rows, SETTINGS)
    assert summary.lines
    assert all(len(line) == len(summary.columns) for line in summary.lines)
    again = [row for task in tasks for row in experiment.run(task, SETTINGS)]
    assert again == rows


@pytest.mark.parametrize("name", FIGURES)
def test_parts_of_the_rows_can_be_shown(name):
    from matplotlib.figure import Figure

    experiment = all_experiments()[name]
    rows = experiment.run(experiment.tasks(SETTINGS)[0], SETTINGS)
    assert experiment.summary([], SETTINGS).verdict.outcome == "not reproduced"
    experiment.summary(rows, SETTINGS)
    experiment.draw(rows, Figure(layout="constrained"))
    experiment.draw([], Figure(layout="constrained"))


@pytest.mark.long
@pytest.mark.parametrize("name", ["kdtree-fig6", "kdtree-fig13"])
def test_the_command_writes_table_picture_and_words(name, tmp_path):
    finished = run_experiment(all_experiments()[name], SETTINGS, tmp_path)
    assert finished.rows
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert finished.summary.verdict.outcome in (tmp_path / f"{name}.md").read_text()


def test_the_census_has_the_shape_it_stands_for():
    scale = Scale((79, 14, 23, 100), 50_000, 10)
    columns = census(scale)
    for column, cells in zip(columns, scale.shape, strict=True):
        assert column.size == 50_000
        assert column.min() >= 0
        assert column.max() < cells
        assert np.unique(column).size > cells / 2
    counts = census_counts(scale, "age", "income")
    assert counts.shape == (79, 100)
    assert counts.sum() == 50_000
    again = census(scale)
    assert all((one == two).all() for one, two in zip(columns, again, strict=True))
    by_income = counts.sum(axis=0)
    assert by_income.max() > 4 * np.median(by_income)
    learned = NAMES.index("education")
    assert np.corrcoef(columns[learned], columns[3])[0, 1] > 0.2


def test_relative_errors_are_bounded_for_empty_answers():
    found = error_columns(np.array([5.0, 110.0]), np.array([0, 100]), 1000)
    assert found["absolute"] == pytest.approx(7.5)
    assert found["relative"] == pytest.approx((5 / 1 + 10 / 100) / 2)


def rows_of(method, column, errors):
    return [
        {"method": method, column: place, "absolute": error, "relative": error}
        for place, error in errors.items()
    ]


def outcome(name, rows):
    return SWEPT[name].summary(rows, SETTINGS).verdict.outcome


def test_heights_are_judged_by_where_the_error_is_least():
    low = rows_of("hierarchical kd-tree", "height", {8: 3.0, 13: 1.0, 16: 2.0})
    assert outcome("kdtree-fig9", low) == "reproduced"
    high = rows_of("hierarchical kd-tree", "height", {8: 0.3, 13: 1.0})
    assert outcome("kdtree-fig10", high) == "not reproduced"


def test_thresholds_are_judged_by_how_far_errors_range():
    rows = rows_of("uniformity 1.5", "count", {0.01: 1.0, 0.1: 9.0})
    rows += rows_of("uniformity 2.0", "count", {0.01: 1.1, 0.1: 9.9})
    assert outcome("kdtree-fig11", rows) == "reproduced"
    flat = rows_of("uniformity 1.5", "count", {0.01: 1.0, 0.1: 1.1})
    assert outcome("kdtree-fig12", flat) == "not reproduced"


@pytest.mark.parametrize(
    ("printed", "ours", "expected"),
    [(0.5, 0.6, "reproduced"), (3.0, 0.6, "beaten"), (3.0, 2.6, "not reproduced")],
)
def test_methods_are_judged_at_every_epsilon(printed, ours, expected):
    rows = [
        row
        for method, error in {
            "cells": 1.0,
            "hierarchical kd-tree": 2.0,
            "kd-tree": printed,
            "kd-tree (ours)": ours,
        }.items()
        for row in rows_of(method, "alpha", {0.05: error, 0.5: error / 10})
    ]
    assert outcome("kdtree-fig13", rows) == expected
    assert outcome("kdtree-fig14", rows[:4]) == "not reproduced"


def test_queries_one_by_one_are_judged_by_the_crossing():
    alone = {queries: 20.0 * queries for queries in range(1, 12)}
    rows = rows_of("interactive", "queries", alone)
    kd = rows_of("kd-tree", "queries", dict.fromkeys(alone, 55.0))
    assert outcome("kdtree-fig15", rows + kd) == "reproduced"
    assert outcome("kdtree-fig16", rows + kd) == "not reproduced"
    slow = rows_of("kd-tree", "queries", dict.fromkeys(alone, 1e6))
    fast = rows_of("kd-tree (ours)", "queries", dict.fromkeys(alone, 30.0))
    assert outcome("kdtree-fig16", rows + slow + fast) == "beaten"
    assert outcome("kdtree-fig15", rows) == "not reproduced"

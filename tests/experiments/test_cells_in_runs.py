"""Cells in runs beside shrunk ones, in short form, and the record of it."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from experiments import cells_in_runs as runs


def test_every_set_has_its_cells(tmp_path):
    (tmp_path / "2d").mkdir()
    for name in runs.STRIPS:
        np.save(tmp_path / "2d" / f"{name}.npy", np.ones((32, 256), dtype=np.int64))
    sets = list(runs.judged_sets(tmp_path))
    assert len(sets) == 12
    assert {counts.shape for _, _, counts in sets} == {(runs.CELLS,)}
    assert all(counts.min() >= 0 and counts.sum() > 0 for _, _, counts in sets)
    kinds = [kind for _, kind, _ in sets]
    assert kinds == [runs.LEVEL] * 3 + [runs.OTHER] * 9


@pytest.mark.parametrize("row", [0, 9, 31])
def test_rows_of_a_map_are_those_around_its_records(row):
    cells = np.zeros((32, 256), dtype=np.int64)
    cells[row, 7] = 5
    strip = runs.busy_rows(cells)
    assert strip.shape == (runs.STRIP_ROWS, 256)
    assert strip.sum() == 5


@pytest.mark.long
def test_what_was_measured_is_recorded(monkeypatch, tmp_path):
    steps = ("8 steps", runs.LEVEL, runs.level_steps("8 steps"))
    monkeypatch.setattr(runs, "judged_sets", lambda data: [steps])
    path = tmp_path / "cells" / "runs.csv"
    lines = list(runs.write_runs(None, 2, path))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(lines) == 3
    for line, row in zip(lines, rows, strict=True):
        assert float(row["ratio"]) == pytest.approx(line.ratio, rel=1e-3)
        assert line.ratio == pytest.approx(line.default / line.shrunk)
        assert line.default < line.shrunk
        assert line.set in str(line)


def test_the_record_says_that_level_steps_gain_and_others_hardly_lose():
    with runs.DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    level = [row for row in rows if row["kind"] == runs.LEVEL]
    assert all(float(row["default"]) < float(row["least_cost"]) for row in level)
    assert all(float(row["ratio"]) < 1.1 for row in rows)
    # Every line was measured on records: some maps have none in their middle rows.
    assert all(float(row["least_cost"]) > 0.01 for row in rows)

"""Cells under short moves, in short form, and the record of it."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from experiments import short_moves as moves


def test_what_was_measured_is_recorded(monkeypatch, tmp_path):
    counts = np.repeat([0, 40], moves.CELLS // 2)
    sets = [("halves", moves.ANEW, counts), ("left out", "siblings", counts)]
    monkeypatch.setattr(moves, "measured_sets", lambda data: sets)
    path = tmp_path / "cells" / "moves.csv"
    lines = list(moves.write_moves(1, path))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(lines) == len(moves.THETAS) * len(moves.EPSILONS)
    assert {line.set for line in lines} == {"halves"}
    for line, row in zip(lines, rows, strict=True):
        assert float(row["transformed"]) == pytest.approx(line.transformed, rel=1e-2)
        # Two level halves are what buckets find, and blocks do not look for.
        assert line.transformed < line.ordered
        assert line.ordered <= line.ordered_rms
        assert line.set in str(line)


def test_the_record_has_every_line_once():
    with moves.DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    places = {(row["set"], row["theta"], row["epsilon"]) for row in rows}
    assert len(places) == len(rows) == 90

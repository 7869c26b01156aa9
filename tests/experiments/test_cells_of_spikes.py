"""Cells after a test for spikes, in short form, and the record of it."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from experiments import cells_of_spikes as spikes


@pytest.mark.long
def test_every_set_has_its_cells(tmp_path):
    (tmp_path / "1d").mkdir()
    for name in spikes.GIVEN_SETS:
        counts = np.full(spikes.CELLS, 9_000, dtype=np.int64)
        np.save(tmp_path / "1d" / f"{name}.npy", counts)
    assert len(list(spikes.measured_sets(None))) == 15
    sets = list(spikes.measured_sets(tmp_path))
    assert len({name for name, _, _ in sets}) == len(sets) == 22
    kinds = [kind for _, kind, _ in sets]
    assert kinds == [spikes.ANEW] * 10 + [spikes.SIBLINGS] * 5 + [spikes.GIVEN] * 7
    assert {counts.shape for _, _, counts in sets} == {(spikes.CELLS,)}
    assert all(counts.min() >= 0 and counts.sum() > 0 for _, _, counts in sets)


@pytest.mark.long
def test_what_was_measured_is_recorded(monkeypatch, tmp_path):
    counts = np.where(np.arange(spikes.CELLS) % 97 == 3, 4_000, 0)
    monkeypatch.setattr(
        spikes, "measured_sets", lambda data: [("spikes", spikes.ANEW, counts)]
    )
    path = tmp_path / "cells" / "spikes.csv"
    lines = list(spikes.write_spikes(None, 2, path))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(lines) == 3
    for line, row in zip(lines, rows, strict=True):
        assert float(row["ratio"]) == pytest.approx(line.ratio, rel=1e-2)
        assert line.ratio == pytest.approx(line.default / line.before)
        assert line.kept == 1.0
        assert line.default < line.sibling
        assert line.set in str(line)


@pytest.mark.long
def test_what_was_timed_is_recorded(monkeypatch, tmp_path):
    path = tmp_path / "cells" / "time.csv"
    report = spikes.time_report
    monkeypatch.setattr(spikes, "time_report", lambda trials: report(trials, 4096))
    lines = list(spikes.write_times(1, path))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["set"] for row in rows] == [line.set for line in lines]
    assert len({line.set for line in lines}) == 3
    for line, row in zip(lines, rows, strict=True):
        assert 0 < line.default == pytest.approx(float(row["default"]), rel=1e-2)
        assert line.set in str(line)


def test_the_record_says_that_spikes_gain():
    with spikes.DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    equal = [row for row in rows if row["set"].endswith("equal spikes")]
    assert len(equal) == 6
    assert all(float(row["default"]) < float(row["sibling"]) for row in equal)
    forty = [float(row["ratio"]) for row in equal if row["set"].startswith("40")]
    assert max(forty) < 1

"""The record of ranges whose cells follow neighbouring buckets."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from experiments import own_methods, smooth_ranges


def test_what_buckets_say_of_cells_is_recorded(monkeypatch, tmp_path):
    at = np.arange(own_methods.CELLS)
    hill = (300 * np.exp(-(((at - 1500) / 600) ** 2))).astype(np.int64)
    judged = [("hill", own_methods.JUDGED, hill)]
    monkeypatch.setattr(smooth_ranges, "all_sets", lambda _: judged)
    monkeypatch.setattr(smooth_ranges, "EPSILONS", ("0.5",))
    path = tmp_path / "smooth.csv"
    lines = list(smooth_ranges.write_smooth(None, 3, path))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["policy"] for row in rows] == ["AddRemove", "Full"]
    for line in lines:
        assert line.set in str(line)
        assert line.ratio == pytest.approx(line.smooth / line.even)
        assert line.buckets > 1
        # The noise is the same, so that few releases tell.
        assert line.ratio < 1

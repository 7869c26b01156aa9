"""Intervals of wide domains against the truth, in their short form."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from blowfish_fast.release.wide.listed_intervals import Bounds
from experiments import wide_coverage as wide


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(wide, "EACH", 60)
    monkeypatch.setattr(wide, "RECORDS", 2000)
    monkeypatch.setattr(wide, "QUERIES", 30)


def test_intervals_hold_as_often_as_they_say(small, tmp_path):
    path = tmp_path / "wide.csv"
    rows = wide.write_wide_coverage(path, trials=3)
    assert len(rows) == 2 * 8
    assert [row for row in rows if not row.enough] == []
    assert path.read_text().startswith("release,asked,budget,intervals,held,error\n")


def test_plain_intervals_of_listed_cells_are_seen_to_be_wrong(small):
    def plain(noisy, threshold, tail, miss):
        half = tail.half_width(miss)
        return Bounds(np.maximum(noisy - half, 0), noisy + half)

    home = "blowfish_fast.release.wide.sparse_release.listed_bounds"
    with patch(home, plain):
        rows = list(wide.list_rows(3, "epsilon 0.5"))
    wrong = {row.asked: row.held for row in rows if not row.enough}
    assert wrong["empty, taken from the list"] == 0.0

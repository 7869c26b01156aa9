"""Errors, intervals, times and memory of wide domains, in their short form."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import wide_domains as wide


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(wide, "RECORDS", 3000)
    monkeypatch.setattr(wide, "QUERIES", 40)
    monkeypatch.setattr(wide, "COARSE_BITS", (8,))
    monkeypatch.setattr(wide, "FILLED", 2000)
    monkeypatch.setattr(wide, "MANY_RANGES", 20)


@pytest.mark.parametrize("kind", ["addresses", "moments", "metres"])
def test_every_kind_of_records_has_a_line(kind, small):
    line = wide.line_report(kind, 1)
    assert list(line.errors) == [
        "descent by records",
        "descent by unevenness",
        "2^8 coarse cells",
    ]
    assert all(np.isfinite(error) and error > 0 for error in line.errors.values())
    assert line.missed <= 0.2
    assert f"{kind}, 2^" in str(line)


def test_maps_are_compared_with_coarser_cells(small):
    line = wide.map_report(1)
    assert "1024 x 1024 coarse cells" in str(line)
    assert line.missed <= 0.2


def test_releases_are_timed_and_their_memory_is_told(small):
    lines = list(wide.cost_report(1))
    assert [line.seconds > 0 and line.bytes_each > 0 for line in lines] == [True] * 2
    assert "bytes for each filled cell" in str(lines[0])

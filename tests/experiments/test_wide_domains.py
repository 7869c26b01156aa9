"""Errors, intervals, times and memory of wide domains, in their short form."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from experiments import wide_domains as wide


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(wide, "RECORDS", 3000)
    monkeypatch.setattr(wide, "QUERIES", 40)
    monkeypatch.setattr(wide, "COARSE_BITS", (8, 10))
    monkeypatch.setattr(wide, "FILLED", 2000)
    monkeypatch.setattr(wide, "MANY_RANGES", 20)
    monkeypatch.setattr(wide, "SETS", 2)


@pytest.mark.parametrize("kind", ["addresses", "moments", "metres"])
def test_every_kind_of_records_has_a_line(kind, small):
    line = wide.line_report(kind, 1)
    assert list(line.errors) == [
        "descent by records",
        "descent by unevenness",
        "2^8 coarse cells",
        "2^10 coarse cells",
    ]
    assert all(len(each) == 2 and min(each) > 0 for each in line.errors.values())
    assert np.mean(line.missed) <= 0.2
    assert f"{kind}, 2^" in str(line)
    row = line.row()
    least = min(float(row["coarse_8"]), float(row["coarse_10"]))
    assert float(row["ratio"]) == pytest.approx(float(row["descent"]) / least, rel=0.05)
    assert row["wanted"] == ("0.2" if kind == "addresses" else "0.7")


def test_what_was_measured_is_recorded(small, tmp_path):
    lines = list(wide.write_wide_report(1, tmp_path))
    with (tmp_path / "errors.csv").open(newline="") as file:
        errors = list(csv.DictReader(file))
    with (tmp_path / "costs.csv").open(newline="") as file:
        costs = list(csv.DictReader(file))
    assert [row["records"] for row in errors][-1] == "a map"
    assert "32 x 32 coarse cells" in str(lines[3])
    assert len(errors) + len(costs) == len(lines)
    assert [row["amount"] for row in costs[:2]] == ["42", "410"]
    assert "saving" in costs[-2]["what"]
    assert all(float(row["amount"]) > 0 for row in costs)


def test_the_record_keeps_what_was_asked_for():
    with (wide.DATA / "errors.csv").open(newline="") as file:
        errors = list(csv.DictReader(file))
    with (wide.DATA / "costs.csv").open(newline="") as file:
        costs = list(csv.DictReader(file))
    for row in errors:
        assert float(row["ratio"]) <= float(row["wanted"])
        assert float(row["missed"]) <= 0.05 + 3 * float(row["missed_error"])
        assert int(row["releases"]) >= 10
    assert all(float(row["amount"]) <= float(row["wanted"]) for row in costs)

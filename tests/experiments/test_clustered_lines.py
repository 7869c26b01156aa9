"""Descent beside the default on long lines, in its short form, and the record of it."""

from __future__ import annotations

import csv

import pytest

from experiments import clustered_lines as clustered


@pytest.mark.parametrize("kind", [*clustered.CHOSEN_ON, *clustered.JUDGED])
def test_every_set_has_all_its_records(kind, monkeypatch):
    monkeypatch.setattr(clustered, "RECORDS", 5000)
    counts = clustered.counts_of(kind, 12)
    assert counts.shape == (2**12,)
    assert counts.sum() == 5000


def test_what_was_measured_is_recorded(monkeypatch, tmp_path):
    monkeypatch.setattr(clustered, "RECORDS", 20_000)
    monkeypatch.setattr(clustered, "QUERIES", 20)
    monkeypatch.setattr(clustered, "LINE_BITS", (12,))
    monkeypatch.setattr(clustered, "CHOSEN_ON", ("spikes",))
    monkeypatch.setattr(clustered, "JUDGED", ("accounts",))
    path = tmp_path / "wide" / "clustered.csv"
    lines = list(clustered.write_clustered(2, path))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(lines) == 4
    assert [row["role"] for row in rows[:2]] == ["chosen on", "judged"]
    for line, row in zip(lines, rows, strict=True):
        assert float(row["ratio"]) == pytest.approx(line.ratio, rel=1e-2)
        assert line.ratio == pytest.approx(line.descent / line.default)
        assert line.records in str(line)


def test_the_record_says_that_clustered_sets_gain():
    with clustered.DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    advised = [row for row in rows if row["advised"] == "dawa (descent)"]
    others = [row for row in rows if row["advised"] == "dawa"]
    judged = [float(row["ratio"]) for row in advised if row["role"] == "judged"]
    assert sum(judged) < len(judged)
    assert all(float(row["ratio"]) > 1 for row in others)

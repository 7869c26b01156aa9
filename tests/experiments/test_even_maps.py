"""Maps with few records, in short form, and the record of it."""

from __future__ import annotations

import csv

import pytest

from experiments import even_maps as maps


def test_what_was_measured_is_recorded(monkeypatch, tmp_path):
    right = maps.densities

    def some(rng):
        drawn = right(rng)
        assert all(density.sum() == pytest.approx(1.0) for density in drawn.values())
        return {name: drawn[name] for name in ("even", "roads")}

    monkeypatch.setattr(maps, "SIDE", 64)
    monkeypatch.setattr(maps, "densities", some)
    monkeypatch.setattr(maps, "MASSES", (1_000,))
    monkeypatch.setattr(maps, "EPSILONS", ("0.1",))
    path = tmp_path / "places" / "maps.csv"
    lines = list(maps.write_maps(3, path))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [line.set for line in lines] == ["even", "roads"]
    for line, row in zip(lines, rows, strict=True):
        assert float(row["joining"]) == pytest.approx(line.joining, rel=1e-2)
        assert line.set in str(line)
    even = lines[0]
    assert even.joined > 0
    assert even.joining < even.grid


def test_the_record_has_every_line_once():
    with maps.DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    places = {(row["set"], row["mass"], row["epsilon"]) for row in rows}
    kinds = {row["set"] for row in rows}
    wanted = len(kinds) * len(maps.MASSES) * len(maps.EPSILONS)
    assert len(places) == len(rows) == wanted

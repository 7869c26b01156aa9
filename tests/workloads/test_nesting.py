"""Districts inside districts: how they are read, cut, ordered and refused."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, InputError, WorkloadError

TABLE = {
    "state": ["B", "A", "A", "B", "A"],
    "county": ["01", "01", "02", "01", "01"],
    "block": ["b1", "a1", "a3", "b2", "a2"],
}


def test_codes_that_repeat_in_other_districts_are_told_apart():
    nest = bf.Nesting.from_columns(TABLE, ["state", "county", "block"])
    assert nest.names == ("all", "state", "county", "block")
    assert nest.ids("county") == ("A/01", "A/02", "B/01")
    assert nest.labels("county").tolist() == [2, 0, 1, 2, 0]
    assert nest.domain.attributes[0].levels == ("b1", "a1", "a3", "b2", "a2")
    assert repr(nest) == "Nesting(1 all, 2 state, 3 county, 5 block)"


def test_the_tree_visits_cells_district_by_district_whatever_their_order():
    nest = bf.Nesting.from_columns(TABLE, ["state", "county", "block"])
    rows = nest.rows
    along = np.arange(5) if rows.order is None else rows.order
    starts, ends = rows.tree.by_row(rows.tree.starts), rows.tree.by_row(rows.tree.ends)
    for at, level in enumerate(nest.levels):
        for number, row in enumerate(rows.rows[at]):
            cells = along[starts[row] : ends[row]]
            expected = np.flatnonzero(level.labels == number)
            assert sorted(cells) == expected.tolist()


def test_codes_lists_and_parents_make_the_same_districts():
    ids = ["0101", "0102", "0201", "0202"]
    by_codes = bf.Nesting.from_codes(ids, [2, 4], names=["county", "block"])
    parents = [-1, 0, 0, 1, 1, 2, 2]
    names = ["all", "01", "02", *ids]
    by_parents = bf.Nesting.of_parents(
        parents, ids=names, names=["all", "county", "block"]
    )
    assert by_codes == by_parents
    assert by_codes != bf.Nesting.from_codes(ids, [1, 4], names=["county", "block"])
    assert hash(by_codes) == hash(by_parents)


def test_districts_of_different_depth_are_levels_by_depth():
    nest = bf.Nesting.of_parents([-1, 0, 0, 1, 1, 3])
    assert nest.names == ("depth_0", "depth_1", "depth_2", "cell")
    assert nest.ids("cell") == (2, 4, 5)
    assert nest.labels("depth_2").tolist() == [-1, -1, 0]
    assert nest.rows.tree.nodes == 6


def test_a_single_district_above_all_is_the_top_itself():
    nest = bf.Nesting.from_columns(
        {"land": ["x", "x"], "town": [1, 2]}, ["land", "town"]
    )
    assert nest.names == ("land", "town")
    single = bf.Nesting.from_columns({"town": ["a"]}, ["town"])
    assert single.names == ("town",)
    assert single.rows.tree.nodes == 1


def test_a_level_that_cuts_others_leaves_their_districts_whole():
    nest = bf.Nesting.from_codes(
        ["A1", "A2", "B1", "B2"], [1, 2], names=["tract", "block"]
    )
    cut = nest.with_level(["s", "s", "s", "t"], above="tract", name="school")
    assert cut.names == ("all", "school", "tract", "block")
    assert cut.ids("school") == ("s", "t")
    counts = [5, 1, 7, 2]
    assert cut.level("tract").answer(counts).tolist() == [6, 9]
    assert cut.level("school").answer(counts).tolist() == [13, 2]
    # Tract B is cut: three nodes stand for two tracts.
    assert cut.rows.rows[2].size == 3
    assert not cut.levels[2].is_whole
    assert cut.levels[1].is_whole


def test_another_order_of_the_same_ids_is_followed():
    nest = bf.Nesting.from_columns(TABLE, ["state", "county", "block"])
    place = bf.Domain.from_levels(["a1", "a2", "a3", "b1", "b2"], name="block")
    assert nest.over(place).labels("state").tolist() == [0, 0, 0, 1, 1]
    with pytest.raises(DomainError, match="ids of the smallest districts"):
        nest.over(bf.Domain.from_levels(["a1", "a2"]))
    with pytest.raises(DomainError, match="ids of the smallest districts"):
        nest.over(bf.Domain(5))


def test_a_cell_of_strays_lies_below_the_top_alone():
    nest = bf.Nesting.from_codes(["A1", "B1"], [1, 2])
    place = nest.domain.with_extra_cells(outside=True)
    over = nest.over(place)
    assert over.labels("digits_1").tolist() == [0, 1, -1]
    assert over.labels("all").tolist() == [0, 0, 0]
    lone = bf.Nesting.from_columns(
        {"land": ["x", "x"], "town": ["a", "b"]}, ["land", "town"]
    )
    assert lone.over(lone.domain.with_extra_cells(outside=True)).names == (
        "land",
        "town",
    )


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: bf.Nesting.from_columns(TABLE, []), "from the largest districts down"),
        (lambda: bf.Nesting.from_columns(TABLE, ["all"]), "none is called 'all'"),
        (lambda: bf.Nesting.from_columns(TABLE, ["land"]), "a column for each level"),
        (lambda: bf.Nesting.from_columns(TABLE, ["state"]), "stands in the table once"),
        (
            lambda: bf.Nesting.from_columns({"a": [1, 2], "b": [1]}, ["a", "b"]),
            "of one length",
        ),
        (lambda: bf.Nesting.from_columns({"a": [0.5, 2]}, ["a"]), "none missing"),
        (lambda: bf.Nesting.from_columns({"a": [["x"], "y"]}, ["a"]), "texts or"),
        (lambda: bf.Nesting.from_codes(["A", "AB"], [1, 2]), "each code has 2 symbols"),
        (lambda: bf.Nesting.from_codes(["AB"], [2, 1]), "rising numbers"),
        (
            lambda: bf.Nesting.from_codes(["AB"], [2], names=["a", "b"]),
            "one name for each",
        ),
        (lambda: bf.Nesting.of_parents([5]), "numbers of districts"),
        (lambda: bf.Nesting.of_parents([-1, -1]), "one root"),
        (lambda: bf.Nesting.of_parents([-1, 0], ids=[1]), "one id for each"),
        (lambda: bf.Nesting.of_parents([-1, 0], names=["a"]), "different names"),
    ],
)
def test_what_is_no_nesting_is_refused(build, reason):
    with pytest.raises(InputError, match=reason):
        build()


def test_levels_are_named_right_or_refused():
    nest = bf.Nesting.from_codes(["A1", "B1"], [1, 2], names=["county", "block"])
    with pytest.raises(InputError, match="there is no level 'country'"):
        nest.labels("country")
    with pytest.raises(WorkloadError, match="some importance"):
        nest.workload(county=0)
    with pytest.raises(InputError, match="county"):
        nest.workload(county=-1)
    with pytest.raises(InputError, match="a name of its own"):
        nest.with_level([0, 1], above="block", name="county")
    with pytest.raises(InputError, match="one label for each"):
        nest.with_level([0, 1, 2], above="block")


def test_a_district_that_lies_in_two_above_is_refused():
    nest = bf.Nesting.from_codes(["A1", "B1"], [1, 2])
    level = nest.levels[1]._replace(
        name="wrong", labels=np.zeros(2, int), parts=np.zeros(2, int)
    )
    broken = bf.Nesting(nest.domain, [*nest.levels[:2], level, nest.levels[2]])
    with pytest.raises(InputError, match="lies in one district of every level above"):
        _ = broken.rows

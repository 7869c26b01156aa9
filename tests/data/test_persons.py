"""At most k records of each person, and the five ways to choose them wrongly."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data import persons
from blowfish_fast.data.persons import (
    choose_records,
    key_column,
    person_codes,
    units_per_person,
)
from blowfish_fast.errors import BlowfishError, CountsError, InputError
from tests.reference.chosen_records import kept_rows

AGES = bf.Domain(6, names=["age"])


def chosen(persons, records, at_most, key):
    whose = key_column(persons, "person")
    which = None if records is None else key_column(records, "record")
    return choose_records(*person_codes(whose), whose, which, at_most, key)


def _visits(rows=60, seed=3):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(0, 6, rows),
        "patient": rng.integers(0, 9, rows),
        "visit": rng.integers(0, 25, rows),
    }


def _wanted(visits, most, key):
    kept = kept_rows(visits["patient"], visits["visit"], most, key)
    return np.bincount(np.asarray(visits["age"])[kept], minlength=6)


def _count(visits, most=3, **options):
    return bf.Histogram.from_records(
        AGES, visits, person="patient", record="visit", at_most=most, **options
    )


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_counts_what_the_definition_keeps(most):
    visits = _visits()
    found = _count(visits, most, key="a")
    np.testing.assert_array_equal(found.counts, _wanted(visits, most, "a"))
    assert (found.at_most, found.count, found.person) == (most, "records", "patient")


def _frames(visits):
    texts = {**visits, "patient": [f"p{one}" for one in visits["patient"]]}
    pandas, polars, arrow = (
        pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow")
    )
    for table in (visits, texts):
        yield table, table
        yield table, pandas.DataFrame(table)
        yield table, polars.DataFrame(table)
        yield table, arrow.table(table)
        half = {name: one[:30] for name, one in table.items()}
        rest = {name: one[30:] for name, one in table.items()}
        yield table, iter([half, rest])
        yield table, iter([pandas.DataFrame(half), pandas.DataFrame(rest)])


def test_every_kind_of_table_keeps_the_same_records():
    for plain, table in _frames(_visits()):
        found = _count(table, 2, key="a")
        np.testing.assert_array_equal(found.counts, _wanted(plain, 2, "a"))


def test_sparse_histograms_keep_the_same_records():
    visits = _visits()
    options = {"person": "patient", "record": "visit", "at_most": 2, "key": "a"}
    sparse = bf.SparseHistogram.from_records(AGES, visits, **options)
    np.testing.assert_array_equal(sparse.dense().counts, _wanted(visits, 2, "a"))
    assert (sparse.at_most, sparse.dense().person) == (2, "patient")
    once = bf.SparseHistogram.from_records(AGES, visits, count="persons", **options)
    dense = _count(visits, 2, key="a", count="persons")
    np.testing.assert_array_equal(once.dense().counts, dense.counts)


def test_columns_may_be_handed_over_themselves():
    visits = _visits()
    found = bf.Histogram.from_records(
        AGES,
        visits["age"],
        person=visits["patient"],
        record=visits["visit"],
        at_most=2,
        key="a",
    )
    np.testing.assert_array_equal(found.counts, _wanted(visits, 2, "a"))


@pytest.mark.parametrize("most", [1, 3, 4, 12])
def test_each_person_counts_once(most):
    visits = _visits()
    once = _count(visits, most, key="a", count="persons")
    kept = kept_rows(visits["patient"], visits["visit"], most, "a")
    units = units_per_person(most)
    wanted = np.zeros(6, dtype=np.int64)
    for row in kept:
        held = sum(visits["patient"][one] == visits["patient"][row] for one in kept)
        wanted[visits["age"][row]] += units // held
    np.testing.assert_array_equal(once.counts, wanted)
    persons = len({int(visits["patient"][row]) for row in kept})
    assert once.counts.sum() == units * persons


def test_what_is_derived_from_counts_keeps_the_bound():
    people = _count(_visits(), 2)
    for one in (
        people.marginal("age"),
        people.coarsened(age=[0, 3, 6]) if AGES.attributes[0].cuts else people,
        people.part([0, 4]),
        pickle.loads(pickle.dumps(people)),
    ):
        assert one.bound == people.bound


# The neighbours of one person: every record stays or moves to a cell beside it.


def _edges_apart(one, two):
    """Least number of steps of one record to a cell beside it."""
    return int(np.abs(np.cumsum(one - two)).sum())


def _kept_counts(ages, choose):
    kept = choose(ages)
    return np.bincount(np.asarray(ages)[kept], minlength=6)


def _worst_move(choose, records=4):
    """Return the most edges between what is kept of two neighbours, on a few lives."""
    rng = np.random.default_rng(1)
    worst = 0
    for _ in range(300):
        before = rng.integers(0, 6, records)
        after = np.clip(before + rng.integers(-1, 2, records), 0, 5)
        counts = [_kept_counts(ages, choose) for ages in (before, after)]
        worst = max(worst, _edges_apart(*counts))
    return worst


@pytest.mark.long
def test_moves_of_one_person_change_at_most_k_records():
    for key in "abcdef":
        by_key = lambda ages: chosen([7] * len(ages), range(len(ages)), 2, key)  # noqa: B023, E731
        assert _worst_move(by_key) <= 2


def test_trap_an_order_by_protected_values_changes_more():
    by_value = lambda ages: chosen([7] * len(ages), ages, 2, "a")  # noqa: E731
    assert _worst_move(by_value) > 2
    with pytest.raises(InputError, match="beside the attributes"):
        bf.Histogram.from_records(
            AGES, _visits(), person="patient", record="age", at_most=2
        )


@pytest.mark.long
def test_without_record_keys_the_choice_is_uniform_over_rows_not_over_values():
    # {a, a, far} against {a, b, far}, one kept: "far" with probability 1/3 in both; a
    # hash of contents keeps it with 1/2 and 1/3, a log ratio of 0.405 at any epsilon.
    found = []
    for ages in ([0, 0, 5], [0, 1, 5]):
        table = {"age": ages, "patient": [1, 1, 1]}
        far = sum(
            int(
                bf.Histogram.from_records(
                    AGES, table, person="patient", at_most=1
                ).counts[5]
            )
            for _ in range(3000)
        )
        found.append(far / 3000)
    assert abs(math.log(found[0] / found[1])) < 0.2
    assert found[0] == pytest.approx(1 / 3, abs=0.05)


def test_what_is_kept_of_one_person_depends_on_nobody_else():
    visits = _visits(200)
    without = {name: one[visits["patient"] != 4] for name, one in visits.items()}
    for key in map(str, range(20)):
        kept = [
            {
                (int(table["patient"][row]), int(table["visit"][row]))
                for row in chosen(table["patient"], table["visit"], 3, key)
            }
            for table in (visits, without)
        ]
        assert {one for one in kept[0] if one[0] != 4} == kept[1]


def test_trap_filters_come_after_the_bound():
    # Keys 1 (age 4) and 2 (age 5), one kept; a filter "age >= 4" and then the bound
    # would swap the kept record when the first moves from 4 to 3: no edge leads there.
    def kept(ages):
        table = {"age": ages, "patient": [7, 7], "visit": [1, 2]}
        return _count(table, 1, key="a").counts

    for ages, moved in itertools.pairwise([[4, 5], [3, 5]]):
        whole, other = kept(ages), kept(moved)
        assert _edges_apart(whole, other) <= 1
    first = next(
        key
        for key in map(str, range(20))
        if chosen([7, 7], [1, 2], 1, key).tolist() == [0]
    )
    filtered = [
        np.bincount(np.array(ages)[chosen(who, which, 1, first)], minlength=6)
        for ages, who, which in (([4, 5], [7, 7], [1, 2]), ([5], [7], [2]))
    ]
    assert np.abs(filtered[0] - filtered[1]).sum() == 2


def test_trap_missing_ids_are_not_one_person():
    table = {"age": [1, 2], "patient": [None, "a"], "visit": [1, 2]}
    with pytest.raises(CountsError, match="do not say whose they are"):
        _count(table)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(CountsError, match="do not say whose they are"):
        _count(pandas.DataFrame(table))
    table = {"age": [1, 2], "patient": ["a", "a"], "visit": [1.0, float("nan")]}
    with pytest.raises(CountsError, match="do not say which of a person's"):
        _count(table)


def test_equal_keys_are_kept_or_dropped_together():
    ages = [0, 1, 2, 3]
    for visits in itertools.permutations([1, 1, 2, 2]):
        for key in "abc":
            kept = chosen([7] * 4, list(visits), 3, key)
            assert len(kept) == 2
            assert len({visits[row] for row in kept}) == 1
    assert chosen([7] * 4, [1] * 4, 3, "a").size == 0
    assert len(ages) == 4


# Theorem A1 by enumeration: k = 2, four record keys, values absent, 0 or 3.


def _kept_values(life, most, key):
    keys = [number for number, value in enumerate(life) if value is not None]
    if not keys:
        return ()
    kept = chosen([7] * len(keys), keys, most, key)
    return tuple(sorted(life[keys[row]] for row in kept))


def _star(one, two):
    common = sum(min(one.count(value), two.count(value)) for value in set(one))
    return len(one) + len(two) - 2 * common


def test_a_person_who_comes_or_goes_changes_at_most_k_records():
    lives = list(itertools.product([None, 0, 3], repeat=4))
    single = worst = 0
    for key in map(str, range(10)):
        kept = {life: _kept_values(life, 2, key) for life in lives}
        single = max(single, max(_star(one, ()) for one in kept.values()))
        for one, two in itertools.combinations(lives, 2):
            changes = list(zip(one, two, strict=True))
            # Records that each appear or disappear by themselves.
            if all(a == b or None in (a, b) for a, b in changes):
                worst = max(worst, _star(kept[one], kept[two]))
    assert single == 2
    assert worst == 4


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"at_most": 2}, "say whose records they are"),
        ({"person": "patient"}, "say how many records of a person"),
        ({"person": "patient", "at_most": 0}, "at_most"),
        ({"person": "patient", "at_most": 2, "count": "people"}, 'count is "records"'),
        ({"person": "nobody", "at_most": 2}, "there is no 'nobody'"),
        ({"person": "age", "at_most": 2}, "beside the attributes"),
        ({"person": [1, 2], "at_most": 2}, "as long as the others"),
        ({"person": "patient", "at_most": 17, "count": "persons"}, "at most 16"),
    ],
)
def test_what_is_not_said_of_persons_is_asked_for(options, reason):
    with pytest.raises(BlowfishError, match=reason):
        bf.Histogram.from_records(AGES, _visits(), **options)


def test_keys_are_whole_numbers_or_text():
    visits = {**_visits(), "visit": np.linspace(0, 1, 60)}
    with pytest.raises(InputError, match="whole numbers or text"):
        _count(visits, 2)


def test_a_histogram_says_its_bound_and_hides_its_counts():
    shown = repr(_count(_visits(), 2, count="persons"))
    assert "at most 2 records of one patient, each person once" in shown
    assert "counts hidden" in shown


def test_a_dictionary_that_holds_a_person_twice_makes_one_person_of_her():
    arrow = pytest.importorskip("pyarrow")
    numbers = arrow.array([0, 1, 2, 1, 0])
    names = arrow.DictionaryArray.from_arrays(numbers, arrow.array(["a", "a", "b"]))
    visits = {"age": [0, 1, 2, 3, 4], "patient": names, "visit": [1, 2, 3, 4, 5]}
    found = _count(arrow.table(visits), most=1, key="a")
    assert found.counts[2] == 1
    assert found.counts.sum() == 2
    blank = arrow.DictionaryArray.from_arrays(numbers, arrow.array(["a", None, "b"]))
    with pytest.raises(CountsError, match="do not say whose they are"):
        _count(arrow.table({**visits, "patient": blank}), most=1)


@pytest.mark.parametrize("persons", [[0, 0, 0, 1, 1], [0, 1, 2, 3, 4]])
@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (np.arange(5.0), "record is a column of whole numbers or text"),
        ([1, "a", 2, 3, 4], "record is a column of whole numbers or text"),
        ([1, 2], "record must be a column as long as the others"),
        ([[1], [2], [3], [4], [5]], "record is one column"),
    ],
)
def test_what_is_refused_does_not_depend_on_who_has_how_many_records(
    persons, records, reason
):
    with pytest.raises(InputError, match=reason):
        bf.Histogram.from_records(
            AGES, np.arange(5), person=persons, record=records, at_most=2
        )


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_nobody_above_the_bound_is_seen_without_numbering_persons(library, monkeypatch):
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    held = {"age": [1, 1, 2, 0, 0], "who": ["a", "b", "a", "c", "ab"]}
    frame = pl.DataFrame({**held, "which": ["1", "2", "3", "4", "5"]})
    made = {"pandas": frame.to_pandas, "pyarrow": frame.to_arrow}
    table = made.get(library, frame.clone)()

    def counts(at_most):
        ages = bf.Domain(3, names=("age",))
        keys = {"person": "who", "record": "which", "at_most": at_most}
        return bf.Histogram.from_records(ages, table, **keys).counts.tolist()

    with monkeypatch.context() as patched:
        patched.setattr(persons, "person_codes", None)
        assert counts(2) == [2, 2, 1]
        with pytest.raises(InputError, match="not callable"):
            counts(1)
    # Texts that share a hash are then told apart, not taken for one person.
    monkeypatch.setattr(np, "sort", np.zeros_like)
    assert counts(2) == [2, 2, 1]


@pytest.mark.parametrize("library", ["list", "object", "pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("name", ["patient", "visit"])
def test_texts_that_end_in_nul_are_not_those_without(library, name):
    texts = ["a", "a\0", "a\0\0", "b", "b"]
    visits = {"age": [0, 1, 2, 3, 4], "patient": ["x"] * 5, "visit": list("vwxyz")}
    visits[name] = texts
    wanted = _wanted(visits, 1, "k")
    if library == "object":
        visits[name] = np.array(texts, dtype=object)
    elif library != "list":
        frames = pytest.importorskip(library)
        make = frames.table if library == "pyarrow" else frames.DataFrame
        visits = make(visits)
    np.testing.assert_array_equal(_count(visits, 1, key="k").counts, wanted)


def test_texts_of_many_kinds_and_lengths_are_hashed_as_they_are():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    texts = ["é", "e\u0301", "", " ", "a" * 70, "A" * 70, "患者", "é", "", "a" * 70] * 3
    visits = {"age": np.arange(30) % 6, "patient": texts, "visit": np.arange(30)}
    wanted = _wanted({**visits, "visit": visits["visit"].tolist()}, 2, "k")
    views = pa.array(texts, pa.string_view())
    coded = pa.array(texts).dictionary_encode()
    for column in (texts, np.array(texts), pl.Series(texts), views, coded):
        found = _count({**visits, "patient": column}, 2, key="k")
        np.testing.assert_array_equal(found.counts, wanted)
    halves = [
        pl.DataFrame({k: v[part] for k, v in visits.items()})
        for part in (slice(17), slice(17, 30))
    ]
    np.testing.assert_array_equal(_count(iter(halves), 2, key="k").counts, wanted)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "int64"])
def test_persons_of_small_types_are_numbered_beyond_them(kind):
    """Hole 9 of issue 32, a failure: persons of int8 that span more than 127."""
    ends = np.iinfo(kind)
    numbers = np.array([ends.min, ends.max, 0, ends.min, ends.max], dtype=kind)
    codes, groups = person_codes(numbers)
    assert codes.dtype == np.int64
    assert (codes.min(), codes.max() < groups) == (0, True)
    assert len(set(codes.tolist())) == len(set(numbers.tolist()))
    assert (codes[0] == codes[3]) & (codes[1] == codes[4])


def test_whole_numbers_of_any_size_are_persons():
    pl = pytest.importorskip("polars")
    for numbers in ([2**70, -(2**80), 2**70], [2**64 - 1, 0, 2**64 - 1], [-5, 5, -5]):
        visits = {"age": [0, 1, 2], "patient": numbers, "visit": [7, 8, 9]}
        wanted = _wanted(visits, 1, "k")
        np.testing.assert_array_equal(_count(visits, 1, key="k").counts, wanted)
    ends = np.array([-(2**63), 2**63 - 1, -(2**63)])
    found = _count({**visits, "patient": ends}, 1, key="k")
    wanted_ends = _wanted({**visits, "patient": ends.tolist()}, 1, "k")
    np.testing.assert_array_equal(found.counts, wanted_ends)
    wide = pl.Series([-5, 5, -5], dtype=pl.Int128)
    found = _count({**visits, "patient": wide}, 1, key="k")
    np.testing.assert_array_equal(found.counts, wanted)


def test_one_and_the_text_of_one_are_refused_as_one_column():
    pd = pytest.importorskip("pandas")
    mixed = ["1"] * 150 + [1] * 150
    visits = {"age": [0] * 300, "visit": range(300)}
    for column in (mixed, pd.Series(mixed, dtype=object), pd.Categorical(mixed)):
        with pytest.raises(InputError, match="whole numbers or text"):
            _count({**visits, "patient": column}, 1)


def test_an_empty_table_of_a_frame_has_nobody():
    pd = pytest.importorskip("pandas")
    empty = pd.DataFrame({"age": [], "patient": [], "visit": []})
    assert _count(empty, 2, count="persons").counts.sum() == 0


def test_a_key_is_a_text():
    with pytest.raises(InputError, match="key is a text"):
        _count(_visits(), key=3)


@pytest.mark.parametrize("texts", [False, True])
def test_the_same_records_are_kept_without_arrow(monkeypatch, texts):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    visits = _visits()
    if texts:
        visits["patient"] = [f"p{one}" for one in visits["patient"].tolist()]
    wanted = _wanted(visits, 2, "k")
    monkeypatch.setattr("blowfish_fast.data.columns.find_spec", lambda _: None)
    monkeypatch.setattr("blowfish_fast.data.persons.find_spec", lambda _: None)
    columns = [visits["patient"], np.array(visits["patient"], dtype=object)]
    columns += [pd.Categorical(columns[0]), pl.Series(columns[0])]
    for column in columns:
        found = _count({**visits, "patient": column}, 2, key="k")
        np.testing.assert_array_equal(found.counts, wanted)
    with pytest.raises(InputError, match="hold NUL"):
        _count({**visits, "patient": ["a\0"] * 60}, 2)

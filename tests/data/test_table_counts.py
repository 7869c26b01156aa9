"""Counts of several tables from records and from a database."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import CountsError, DomainError, InputError

SURVEY = bf.WideDomain.product(
    bf.Domain.from_edges([0, 18, 40, 65, 120], name="age"),
    bf.Domain.from_levels(["F", "M"], name="sex"),
    bf.Domain.from_levels(["north", "south", "west"], name="region"),
)
ASKED = bf.workloads.Tables(SURVEY, ways=2)
MECHANISM = bf.Contingency(bf.policies.AddRemove(SURVEY), ASKED, epsilon=1)


@pytest.fixture(name="people")
def some_people(generator):
    return {
        "age": generator.integers(0, 121, 500),
        "sex": generator.choice(["F", "M"], 500),
        "region": generator.choice(["north", "south", "west"], 500),
    }


def test_tables_are_the_marginals_of_the_histogram_of_all_cells(people):
    data = bf.TableCounts.from_records(MECHANISM, people)
    small = bf.Domain._of(SURVEY.attributes)
    full = bf.Histogram.from_records(small, people)
    assert data.tables == MECHANISM.measured_tables
    same = bf.TableCounts.from_histogram(full, data.tables)
    assert (same.counts == data.counts).all()
    assert "hidden" in repr(data)


def test_chunks_count_like_one_table(people):
    halves = (
        {name: one[part] for name, one in people.items()}
        for part in (slice(0, 123), slice(123, None))
    )
    data = bf.TableCounts.from_records(MECHANISM, halves)
    whole = bf.TableCounts.from_records(MECHANISM, people)
    assert (data.counts == whole.counts).all()


def test_a_database_counts_like_records_at_hand(people):
    ibis = pytest.importorskip("ibis")
    arrow = pytest.importorskip("pyarrow")
    connection = ibis.duckdb.connect()
    connection.con.register("people", arrow.table(people))
    table = connection.table("people")
    data = bf.TableCounts.from_ibis(MECHANISM, table)
    whole = bf.TableCounts.from_records(MECHANISM, people)
    assert (data.counts == whole.counts).all()
    renamed = table.rename(years="age")
    again = bf.TableCounts.from_ibis(MECHANISM, renamed, columns={"age": "years"})
    assert (again.counts == whole.counts).all()


def test_strays_are_refused_from_records_and_from_a_database(people):
    ibis = pytest.importorskip("ibis")
    arrow = pytest.importorskip("pyarrow")
    people["region"][7] = "east"
    connection = ibis.duckdb.connect()
    connection.con.register("people", arrow.table(people))
    table = connection.table("people")
    with pytest.raises(CountsError, match="no level of region"):
        bf.TableCounts.from_records(MECHANISM, people)
    with pytest.raises(CountsError, match="no level of region"):
        bf.TableCounts.from_ibis(MECHANISM, table)
    with pytest.raises(DomainError, match="must be part of the domain"):
        bf.TableCounts.from_records(MECHANISM, people, outside="cell")


def test_cells_for_missing_values_belong_to_the_domain(people):
    wider = SURVEY.with_extra_cells(missing=["age"])
    asked = bf.workloads.Tables(wider, ways=1)
    mechanism = bf.Contingency(bf.policies.AddRemove(wider), asked, epsilon=1)
    ages = people["age"].astype(float)
    ages[:9] = np.nan
    data = bf.TableCounts.from_records(mechanism, {**people, "age": ages})
    ages = data.vector(wider, [(0,)])
    assert (ages[-1], ages.sum()) == (9, 500)


def test_tables_at_hand_must_agree_on_what_they_share():
    small = bf.Domain((2, 3), names=["sex", "age"])
    tables = {"sex": [4, 2], ("sex", "age"): [[1, 2, 1], [0, 1, 1]], (): 6}
    data = bf.TableCounts(small, tables)
    assert data.tables == ((0,), (0, 1), ())
    with pytest.raises(CountsError, match="differ on attributes"):
        bf.TableCounts(small, {**tables, "sex": [3, 3]})
    with pytest.raises(CountsError, match="differ on attributes"):
        bf.TableCounts(small, {"sex": [3, 3], "age": [1, 2, 4]})
    with pytest.raises(InputError, match="mapping from attributes"):
        bf.TableCounts(small, [[1, 2]])
    with pytest.raises(DomainError, match="Domain or WideDomain"):
        bf.TableCounts("survey", tables)


def test_data_of_other_tables_or_attributes_is_refused(people):
    other = bf.Contingency(
        bf.policies.AddRemove(SURVEY),
        bf.workloads.Tables(SURVEY, ["age"]),
        epsilon=1,
    )
    data = bf.TableCounts.from_records(other, people)
    with pytest.raises(CountsError, match="every table that the mechanism measures"):
        MECHANISM.release(data)
    small = bf.TableCounts(bf.Domain(4, names=["age"]), {"age": [1, 2, 3, 4]})
    with pytest.raises(DomainError, match="the same attributes"):
        MECHANISM.release(small)
    with pytest.raises(InputError, match="released from TableCounts"):
        MECHANISM.release([1, 2, 3])
    with pytest.raises(InputError, match="name the mechanism first"):
        bf.TableCounts.from_records(people, people)


def test_counts_are_private_and_fixed(people):
    data = bf.TableCounts.from_records(MECHANISM, people)
    with pytest.raises(AttributeError, match="never change"):
        data.counts = None
    with pytest.raises(ValueError, match="read-only"):
        data.counts[0] = 1
    same = pickle.loads(pickle.dumps(data))
    assert (same.counts == data.counts).all()


def test_persons_are_refused_where_nobody_bounded_them(people):
    policy = bf.policies.AddRemove(SURVEY).per_person(3)
    mechanism = bf.Contingency(policy, ASKED, epsilon=1)
    data = bf.TableCounts.from_records(mechanism, people)
    with pytest.raises(bf.BlowfishError, match="do not say how many records"):
        mechanism.release(data)


def test_persons_are_bounded_once_for_all_tables(people, generator):
    policy = bf.policies.AddRemove(SURVEY).per_person(2, person="who")
    mechanism = bf.Contingency(policy, ASKED, epsilon=1)
    visits = {**people, "who": generator.integers(0, 90, 500), "visit": np.arange(500)}
    options = {"person": "who", "record": "visit", "at_most": 2, "key": "k"}
    data = bf.TableCounts.from_records(mechanism, visits, **options)
    assert data.bound.at_most == 2
    totals = [data.vector(SURVEY, [one]).sum() for one in mechanism.measured_tables]
    kept = np.minimum(np.bincount(visits["who"]), 2).sum()
    assert set(totals) == {kept}
    same = bf.TableCounts.from_records(mechanism, iter([visits]), **options)
    assert (same.counts == data.counts).all()
    assert mechanism.release(data, rng=1).guarantee.epsilon == 1
    single = bf.Contingency(bf.policies.AddRemove(SURVEY), ASKED, epsilon="0.5")
    assert mechanism.plan().rms == pytest.approx(single.plan().rms, rel=1e-6)


def test_a_database_bounds_persons_in_its_one_statement(people, generator):
    ibis = pytest.importorskip("ibis")
    arrow = pytest.importorskip("pyarrow")
    who = generator.integers(0, 90, 500)
    visits = {**people, "who": who, "visit": np.arange(500)}
    connection = ibis.duckdb.connect()
    connection.con.register("visits", arrow.table(visits))
    data = bf.TableCounts.from_ibis(
        MECHANISM,
        connection.table("visits"),
        person="who",
        record="visit",
        at_most=2,
    )
    kept = np.minimum(np.bincount(who), 2).sum()
    totals = {data.vector(SURVEY, [one]).sum() for one in data.tables}
    assert totals == {kept}


def test_records_of_nobody_are_refused_by_a_database(people):
    ibis = pytest.importorskip("ibis")
    arrow = pytest.importorskip("pyarrow")
    who = [None, *range(499)]
    connection = ibis.duckdb.connect()
    connection.con.register("visits", arrow.table({**people, "who": who}))
    table = connection.table("visits")
    with pytest.raises(CountsError, match="do not say whose they are"):
        bf.TableCounts.from_ibis(MECHANISM, table, person="who", at_most=1)
    with pytest.raises(InputError, match="beside the attributes"):
        bf.TableCounts.from_ibis(
            MECHANISM, table, columns={"age": "who"}, person="who", at_most=1
        )

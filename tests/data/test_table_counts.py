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

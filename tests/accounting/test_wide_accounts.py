"""Wide domains and words in series and populations: counted, priced, replayed."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import NoEstimateError

P, W = bf.policies, bf.workloads
TIME = bf.WideDomain(2**60, names="time")
WORDS = bf.KeyDomain("a-z", longest=4, name="word")
RECEIVED = ["2026-11-04"] * 300 + ["2026-11-10"] * 300
WEEKS = ("2026-W45", "2026-W46")


def weekly(policy, budget, **terms):
    ledger = bf.Ledger(policy=policy, **budget)
    terms = {"level": "event", **terms}
    return ledger, bf.Series(ledger, column="received", every="week", **terms)


@pytest.mark.parametrize(
    ("kind", "budget"),
    [(bf.SparseLaplace, {"epsilon": 2}), (bf.SparseGaussian, {"rho": 2})],
)
def test_words_are_listed_week_by_week_for_the_price_of_one(kind, budget):
    policy = P.AddRemove(WORDS)
    ledger, weeks = weekly(policy, budget)
    records = {"word": ["ab"] * 300 + ["cd"] * 300, "received": RECEIVED}
    spend = dict.fromkeys(budget, 1)
    mechanism = kind(policy, false_cells="0.000001", **spend)
    lists = [weeks.release(week, mechanism, records) for week in WEEKS]
    assert [one.cells()["word"].tolist() for one in lists] == [["ab"], ["cd"]]
    assert float(ledger.spent) == 1
    # An epoch by itself may be handed over, too.
    alone = bf.SparseHistogram.from_records(WORDS, {"word": ["xy"] * 300})
    third = weeks.release("2026-W47", mechanism, alone)
    assert third.cells()["word"].tolist() == ["xy"]
    with pytest.raises(NoEstimateError, match="lists heavy cells"):
        weeks.total(upto="2026-W46")


def test_a_persons_first_words_count_and_no_more():
    policy = P.AddRemove(WORDS).per_person(2, person="who")
    ledger, weeks = weekly(
        policy, {"epsilon": 20}, level="person", epochs_at_most=1, frozen=True
    )
    records = {
        "word": ["ab"] * 300 + ["cd"] * 300,
        "who": np.arange(600) % 100,
        "received": RECEIVED,
    }
    mechanism = bf.SparseLaplace(policy, epsilon=10, false_cells="0.000001")
    first, second = (weeks.release(week, mechanism, records) for week in WEEKS)
    # Two of the three words of each of 100 persons, and none in the second week.
    assert abs(first.cells()["count"][0] - 200) < 50
    assert second.cells()["word"].tolist() == []
    assert float(ledger.spent) == 10


def test_ranges_of_nanoseconds_are_released_week_by_week():
    policy = P.AddRemove(TIME)
    ledger, weeks = weekly(policy, {"epsilon": 2})
    asked = W.Ranges(TIME, [0], [2**59])
    records = {"time": [2**40] * 300 + [2**59 + 5] * 300, "received": RECEIVED}
    mechanism = bf.Dawa(policy, asked, epsilon=1)
    first, second = (weeks.release(week, mechanism, records) for week in WEEKS)
    assert abs(first.answer(asked)[0] - 300) < 150
    assert abs(second.answer(asked)[0]) < 150
    assert float(ledger.spent) == 1


def test_a_table_of_a_database_is_counted_by_arrival():
    ibis = pytest.importorskip("ibis")
    database = ibis.duckdb.connect()
    database.raw_sql(
        "create table log as select case when i < 300 then 2**40 else 7 end::bigint "
        "as time, case when i < 300 then date '2026-11-04' else date '2026-11-10' end "
        "as received from range(600) as t(i)"
    )
    table = database.table("log")
    policy = P.AddRemove(TIME)
    _, weeks = weekly(policy, {"epsilon": 2})
    lister = bf.SparseLaplace(policy, epsilon=1, false_cells="0.000001")
    lists = [weeks.release(week, lister, table) for week in WEEKS]
    assert [one.cells()["time"].tolist() for one in lists] == [[2**40], [7]]


def test_tables_of_a_population_may_be_wide():
    people = bf.Population(
        "visitors",
        person="who",
        tables={"times": P.AddRemove(TIME), "words": P.AddRemove(WORDS)},
        epsilon=3,
    )
    who = np.arange(900) // 3
    policy = people.policy("words", at_most=3)
    data = bf.SparseHistogram.from_records(
        WORDS, {"word": ["ab"] * 900, "who": who}, person="who", at_most=3
    )
    lister = bf.SparseLaplace(policy, epsilon=1, false_cells="0.000001")
    listed = people.release("words", lister, data, snapshot="November")
    assert listed.cells()["word"].tolist() == ["ab"]
    policy, asked = people.policy("times", at_most=3), W.Ranges(TIME, [0], [2**59])
    data = bf.SparseHistogram.from_records(
        TIME, {"time": [5] * 900, "who": who}, person="who", at_most=3
    )
    dawa = bf.Dawa(policy, asked, epsilon=1)
    release = people.release("times", dawa, data, snapshot="November")
    low, high = release.intervals(asked, of="truth", confidence=0.999999)[0]
    assert low <= 900 <= high
    assert float(people.remaining) == 1

"""Questions are answered from stored answers: free, from public values, as promised."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from blowfish_fast.accounting.composition import EPSILON
from blowfish_fast.apps.explorer import Explorer, past_answers
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.explorer.layout import lay_out
from blowfish_fast.apps.explorer.past_answers import (
    PastRelease,
    boxed_queries,
    log_family,
    rows_over,
    terms_of,
)
from blowfish_fast.apps.explorer.planning import Planner
from blowfish_fast.apps.explorer.questions import Accuracy, read_question
from blowfish_fast.apps.explorer.same_question import canonical
from blowfish_fast.errors import CatalogError

ibis = pytest.importorskip("ibis", reason="pip install 'blowfish_fast[sql]'")

AGE = {"name": "age", "cells": {"start": 0, "stop": 60, "width": 5}}
SEX = {"name": "sex", "levels": ["f", "m"], "missing": "none"}
WARD = {"name": "ward", "levels": ["a", "b", "c"]}
PEOPLE = {"name": "people", "attributes": [AGE, SEX, WARD]}
TABLE = as_table(PEOPLE)


def asked(kind="histogram", alpha=40, **more):
    cost = {"alpha": alpha, **more.pop("cost", {})}
    if kind in ("histogram", "cumulative", "ranges", "quantiles"):
        more.setdefault("attribute", "age")
    return {"kind": kind, "table": "people", "cost": cost, **more}


def stretch(low, high):
    return {"attribute": "age", "low": low, "high": high}


def levels(name, *values):
    return {"attribute": name, "values": list(values)}


def filled_database(rows):
    made = ibis.duckdb.connect()
    made.raw_sql("create table people (age double, sex text not null, ward text)")
    made.raw_sql(f"insert into people {rows}")
    return made


@pytest.fixture(scope="module")
def database():
    return filled_database(
        "select (i * 7) % 60 as age, ['f', 'm'][1 + i % 2] as sex, "
        "['a', 'b', 'c'][1 + (i * 5) % 3] as ward from range(900) as t(i)"
    )


PLANNER = Planner(EPSILON, 0)


def exploring(database, table=PEOPLE, ledger=None, epsilon=50):
    made = Explorer(table, database, ledger=ledger, epsilon=epsilon, samples=0)
    # Plans depend on no records: all explorers of this file share them.
    made.planner = PLANNER
    return made


@pytest.fixture
def explorer(database):
    return exploring(database)


QUESTIONS = [
    asked(),
    asked(width=2),
    asked(width=4, filters=[stretch(20, 60)]),
    asked("cumulative", width=3),
    asked("cumulative", filters=[levels("ward", "a")]),
    asked("ranges", ranges=[[0, 20], [20, 60], [10, 15]]),
    asked("ranges", width=4, ranges=[[0, 60]], filters=[levels("sex", "f", "m")]),
    asked(attribute="sex"),
    asked(attribute="ward", filters=[levels("ward", "c", "a")]),
    asked("marginal", attributes=["sex", "ward"]),
    asked("marginal", attributes=["age", "ward"], granularity=[4, 1]),
    asked("marginal", attributes=["age", "sex"], filters=[levels("ward", "b")]),
    asked("marginal", attributes=["ward", "age", "sex"], granularity=[1, 2, 1]),
]


def laid_out(question):
    return lay_out(TABLE, canonical(TABLE, read_question(question)))


def bins_of_all_records(layout):
    """Return the bin of each cell of the whole table, by the definition of a layout."""
    names = [axis.spec.name for axis in layout.axes]
    sizes = [spec.domain().attributes[0].size for spec in TABLE.attributes]
    order = [spec.name for spec in TABLE.attributes]
    places = []
    for record in itertools.product(*map(range, sizes)):
        coarse = [
            int(axis.labels[record[order.index(name)]])
            for name, axis in zip(names, layout.axes, strict=True)
        ]
        flat = int(np.ravel_multi_index(coarse, layout.shape))
        places.append(flat if layout.labels is None else int(layout.labels[flat]))
    return np.array(places)


def members_of(layout):
    """Mark which records each query counts."""
    bins = bins_of_all_records(layout)
    policy = layout.policy(TABLE.policy())
    queries = layout.workload(policy.domain)
    each = np.eye(layout.bins).reshape(layout.bins, *policy.domain.shape)
    matrix = np.column_stack([np.asarray(queries.answer(one)) for one in each])
    return matrix[:, bins]


@pytest.mark.parametrize("stored", range(len(QUESTIONS)))
def test_rows_are_those_of_the_definition_over_all_records(stored):
    source = laid_out(QUESTIONS[stored])
    bins = bins_of_all_records(source)
    whole = np.bincount(bins, minlength=source.bins)
    fitting = 0
    for question in QUESTIONS:
        new = laid_out(question)
        inside = np.array(
            [np.bincount(bins, row, minlength=source.bins) for row in members_of(new)]
        )
        is_union = ((inside == 0) | (inside == whole)).all()
        rows = rows_over(source, new)
        assert (rows is not None) == is_union, question
        if rows is not None:
            fitting += 1
            assert np.array_equal(rows, inside > 0)
    assert fitting


def test_a_question_too_large_to_be_written_down_is_not_read(monkeypatch):
    source = laid_out(asked())
    assert rows_over(source, source) is not None
    monkeypatch.setattr(past_answers, "MOST_WORK", 10)
    assert rows_over(source, source) is None


@pytest.mark.parametrize(
    ("stored", "question", "terms"),
    [
        (asked(), asked(width=4), [4, 4, 4]),
        (asked("cumulative"), asked(width=6), [1, 2]),
        (asked("cumulative"), asked("ranges", ranges=[[0, 60], [5, 15]]), [1, 2]),
        (
            asked("ranges", ranges=[[0, 20], [10, 20], [20, 60]]),
            asked("ranges", width=2, ranges=[[0, 60], [0, 10], [10, 60]]),
            [2, 2, 2],
        ),
        (asked("ranges", ranges=[[0, 20]]), asked("ranges", ranges=[[0, 10]]), None),
        (asked("quantiles"), asked("cumulative", width=12), [1]),
        # Those without an age are in both sexes, and in no bin that was asked for.
        (asked("marginal", attributes=["age", "sex"]), asked(attribute="sex"), None),
        (
            asked("marginal", attributes=["age", "ward"]),
            asked(width=6, filters=[levels("ward", "a", "b", "c")]),
            [18, 18],
        ),
    ],
)
def test_sums_and_differences_of_stored_numbers_are_counted(stored, question, terms):
    source = laid_out(stored)
    rows = rows_over(source, laid_out(question))
    found = None if rows is None else terms_of(source, rows)
    assert (None if found is None else found.tolist()) == terms


def test_boxes_are_read_only_as_they_were_asked_for():
    table = as_table(
        {
            "name": "people",
            "attributes": [
                {**AGE, "missing": "none"},
                {"name": "cost", "cells": {"start": 0, "stop": 9, "width": 3}},
            ],
        }
    )

    def boxes(*rectangles):
        attributes = ["age", "cost"]
        question = asked("rectangles", attributes=attributes, rectangles=rectangles)
        return lay_out(table, read_question(question))

    first, second = [[0, 20], [0, 9]], [[20, 60], [0, 6]]
    source = boxes(first, second)
    assert boxed_queries(source).lows.tolist() == [[0, 0], [4, 0]]
    again = rows_over(source, boxes(second))
    assert terms_of(source, again).tolist() == [1]
    half = rows_over(source, boxes([[0, 10], [0, 9]]))
    assert terms_of(source, half) is None


def test_the_family_counts_stretches_sets_of_levels_and_the_rest():
    # 78 stretches of 12 cells, without and with what is missing; below, above, missing;
    # what is there; everything. Ward: 2^(3 + 1).
    ages = laid_out(asked())
    extras = ages.axes[0].bins - 12
    assert np.isclose(log_family(ages), np.log(2 * 78 + 1 + extras + 1))
    both = laid_out(asked("marginal", attributes=["age", "ward"]))
    wards = both.axes[1].bins
    assert np.isclose(log_family(both), log_family(ages) + wards * np.log(2))


CELLS = 30
LINE = {
    "name": "line",
    "attributes": [
        {
            "name": "day",
            "cells": {"start": 0, "stop": CELLS, "width": 1},
            "missing": "none",
            "outside": "clamp",
        }
    ],
    "policies": {"day": {"kind": "threshold", "theta": 1}},
}


def line_question(kind, **more):
    cost = more.pop("cost", {"alpha": 30})
    question = {"kind": kind, "table": "line", "attribute": "day", **more}
    return read_question({**question, "cost": cost})


@pytest.fixture(scope="module")
def line():
    """Running totals of a line, and a question for all of its stretches."""
    table = as_table(LINE)
    plan = Planner(EPSILON, 0).plan(table, line_question("cumulative"))
    pairs = [list(pair) for pair in itertools.combinations(range(CELLS + 1), 2)]
    stretches = lay_out(table, line_question("ranges", ranges=pairs))
    return plan, stretches


def errors_of(line, seeds):
    """Yield how far off all stretches are, draw after draw."""
    plan, stretches = line
    zeros = np.zeros(plan.policy.domain.shape, dtype=np.int64)
    rows = rows_over(plan.layout, stretches)
    for seed in seeds:
        release = plan.mechanism.release(zeros, rng=seed)
        linear = release.estimate if release.unfitted is None else release.unfitted
        yield np.abs(rows @ linear.reshape(-1))


def half_widths(line, cost, place=1):
    """Return what is promised of the stretches; it is the same for every draw."""
    plan, stretches = line
    zeros = np.zeros(plan.policy.domain.shape, dtype=np.int64)
    release = plan.mechanism.release(zeros, rng=0)
    reading = PastRelease(None, plan.layout, release).read(stretches, cost, place)
    return reading.half_widths


def test_whoever_asks_for_what_stands_out_is_told_the_truth_as_often_as_promised(line):
    """The trap of all caches: stored noise that led to a question tells less of it."""
    plan, _ = line
    trials, beta = 150, 0.2
    promised = half_widths(line, Accuracy(alpha=30, beta=beta))
    # Half-widths that would hold for the numbers that were asked for first, planted.
    each = beta / len(boxed_queries(plan.layout).lows)
    cost = Accuracy(alpha=30, beta=each, scope="per_query", chosen=False)
    naive = half_widths(line, cost)
    # The analyst takes whichever stretch is farthest off.
    errors = list(errors_of(line, range(trials)))
    missed = sum((error > promised).any() for error in errors)
    planted = sum((error > naive).any() for error in errors)
    sigma = np.sqrt(trials * beta * (1 - beta))
    assert missed <= trials * beta + 3 * sigma
    assert planted > trials * beta + 6 * sigma


@pytest.mark.long
def test_whoever_reads_the_worst_of_many_sources_is_promised_the_same(line):
    trials, sources, beta = 40, 8, 0.2
    cost = Accuracy(alpha=30, beta=beta)
    promised = [half_widths(line, cost, place) for place in range(1, sources + 1)]
    errors = np.array(list(errors_of(line, range(trials * sources))))
    errors = errors.reshape(trials, sources, -1)
    missed = (errors > np.array(promised)).any(axis=(1, 2)).sum()
    assert missed <= trials * beta + 3 * np.sqrt(trials * beta * (1 - beta))
    # Every later source has a smaller share of beta, so no narrower intervals.
    widest = [widths.max() for widths in promised]
    assert widest == sorted(widest)


def test_a_question_fixed_before_is_read_with_the_intervals_of_its_own_numbers(line):
    plan, _ = line
    release = plan.mechanism.release(
        np.zeros(plan.policy.domain.shape, dtype=np.int64), rng=1
    )
    source = PastRelease(None, plan.layout, release)
    new = lay_out(as_table(LINE), line_question("histogram", width=3))
    chosen = source.read(new, Accuracy(alpha=30), 1)
    fixed = source.read(new, Accuracy(alpha=30, chosen=False), 1)
    each = source.read(new, Accuracy(alpha=30, chosen=False, scope="per_query"), 1)
    assert each.alpha < fixed.alpha < chosen.alpha
    assert (fixed.holds, chosen.holds) == ("fixed", "any")
    far = source.read(new, Accuracy(alpha=30, beta=1e-9), 10**200)
    assert far is None or far.by == "sum"


# Through the explorer.


@pytest.mark.long
def test_follow_ups_of_a_paid_answer_are_free_and_noted(explorer):
    first = explorer.ask(asked("cumulative", alpha=30))
    spent = explorer.ledger.spent
    for question in (
        asked("cumulative", alpha=31),
        asked("cumulative", alpha=30, width=2),
        asked("ranges", alpha=60, ranges=[[0, 20]]),
        asked("quantiles", alpha=30, q=[0.5]),
        asked("ranges", alpha=30, ranges=[[0, 20]]),
    ):
        told = explorer.explain(question)
        assert (told["cost"], told["how"]) == (0.0, "read")
        assert told["known"]["alpha"] <= question["cost"]["alpha"]
        assert told["known"]["sources"] == [first.request]
        assert told["price_alone"] > 0
        assert "earlier answers tell" in told["why"]
        answer = explorer.ask(question)
        assert (answer.holds, answer.sources) == ("any", (first.request,))
        assert float(answer.budget) == 0.0
        assert answer.as_of == first.as_of
        assert "however the question was chosen" in answer.promise
        assert answer.to_dict()["sources"] == [first.request]
    assert explorer.ledger.spent == spent
    entry = explorer.history()[-1]
    assert entry.mechanism == "read"
    assert entry.note["read"] == {
        "rule": past_answers.RULE,
        "holds": "any",
        "by": "sum",
        "sources": [first.request],
    }


def test_numbers_that_are_read_lie_where_the_promise_says(explorer):
    fine = explorer.ask(asked("marginal", attributes=["age", "ward"], alpha=20))
    free = explorer.ask(asked(filters=[levels("ward", "a", "c")], alpha=45))
    assert free.holds == "any"
    # The linear numbers of the two wards, added up; noise is shown cut at 0.
    sums = np.maximum(fine.values[:, 0], 0) + np.maximum(fine.values[:, 2], 0)
    assert np.abs(free.values - sums).max() <= 2 * 20
    width = free.intervals[:, 1] - free.intervals[:, 0]
    assert (width <= 2 * 45).all()
    assert (free.values >= 0).all()


def test_a_better_answer_than_what_is_known_is_charged_and_says_what_is_known(explorer):
    explorer.ask(asked("cumulative", alpha=40))
    told = explorer.explain(asked("cumulative", alpha=20))
    assert told["how"] == "fresh"
    assert told["cost"] == told["price_alone"] > 0
    assert 20 < told["known"]["alpha"] <= 40
    assert explorer.ask(asked("cumulative", alpha=20)).holds == "fresh"
    assert explorer.explain(asked(attribute="sex"))["known"] is None


def test_a_stated_budget_and_a_name_of_ones_own_are_wishes_for_fresh_noise(explorer):
    explorer.ask(asked("cumulative", alpha=30))
    spent = explorer.ledger.spent
    budget = {**asked(width=2), "cost": {"epsilon": 0.1}}
    told = explorer.explain(budget)
    assert told["cost"] == pytest.approx(0.1)
    assert told["known"]["alpha"] > 0
    assert explorer.ask(budget).holds == "fresh"
    named = explorer.ask(asked("cumulative", alpha=35), request="anew")
    assert named.holds == "fresh"
    assert explorer.ledger.spent > spent


def test_a_smaller_beta_and_single_promises_do_not_follow_from_what_was_promised(
    explorer, monkeypatch
):
    # What was promised alone: the noise is not asked.
    monkeypatch.setattr(PastRelease, "_noise", lambda *_: None)
    each = {"scope": "per_query"}
    explorer.ask(asked("cumulative", alpha=30, cost=each))
    wider = asked("cumulative", alpha=35, cost=each)
    assert explorer.known(wider).by == "sum"
    assert explorer.known(asked("cumulative", alpha=99)) is None
    assert explorer.known(asked(width=6, alpha=99, cost=each)) is None
    one = asked("ranges", ranges=[[0, 20]], alpha=99)
    assert explorer.known(one).alpha == 30
    small = asked("cumulative", alpha=99, cost={**each, "beta": 0.01})
    assert explorer.known(small) is None


def test_prices_and_decisions_are_the_same_whatever_the_records(explorer):
    """Only the public transcript decides: Lemma PA1."""
    other = filled_database("select 17, 'f', 'b' from range(5) as t(i)")
    transcripts = []
    for made in (explorer, exploring(other)):
        transcript = []
        for question in (
            asked("cumulative"),
            asked(width=6, alpha=90),
            asked("marginal", attributes=["age", "ward"]),
            asked(filters=[levels("ward", "a", "c")], alpha=85),
            asked("ranges", ranges=[[0, 20]], alpha=30),
        ):
            told = made.explain(question)
            known = told["known"] and told["known"]["alpha"]
            answer = made.ask(question)
            transcript.append((told["how"], told["cost"], known, answer.holds))
            assert float(answer.budget) == pytest.approx(told["cost"])
        transcripts.append(transcript)
    assert transcripts[0] == transcripts[1]
    assert {how for how, *_ in transcripts[0]} >= {"read", "fresh"}


@pytest.mark.parametrize("share", ["own", "all", "published"])
def test_whose_answers_are_read_is_the_rule_of_the_table(database, share):
    explorer = exploring(database, {**PEOPLE, "share": share})
    for name in ("ann", "bob"):
        explorer.ledger.allot(name, 20)
    before = explorer.explain(asked(width=2), "bob")
    first = explorer.ask(asked("cumulative", alpha=10), analyst="ann")
    wider = asked("cumulative", alpha=12)
    assert explorer.explain(wider, "ann")["how"] == "read"
    assert explorer.explain(wider, "bob")["how"] == (
        "read" if share == "all" else "fresh"
    )
    if share == "own":
        assert explorer.explain(asked(width=2), "bob") == before
    explorer.publish(first.request)
    told = explorer.explain(wider, "bob")["how"]
    assert told == ("fresh" if share == "own" else "read")
    with pytest.raises(CatalogError, match="no answer under this name"):
        explorer.publish("q-nothing")


def test_what_was_read_stays_as_it_was_shown(database, tmp_path):
    path = tmp_path / "ledger"
    explorer = exploring(database, ledger=path)
    explorer.ask(asked("cumulative", alpha=40))
    wide = asked("ranges", alpha=85, ranges=[[0, 20], [20, 35]])
    shown = explorer.ask(wide)
    assert not shown.replayed
    # A sharper source comes later: what was shown stays, and says so.
    explorer.ask(asked("cumulative", alpha=5))
    explorer.ledger.close()
    again = exploring(database, None, path, None)
    for later in (again.ask(wide), again.answered(shown.request)):
        assert later.replayed
        assert (later.values == shown.values).all()
        assert (later.intervals == shown.intervals).all()
        assert later.sources == shown.sources
    told = again.explain(wide)
    assert told["how"] == "stored"
    assert told["known"]["alpha"] < 20
    again.ledger.verify()
    again.ledger.close()


@pytest.mark.long
def test_long_logs_are_read_from_their_end_and_places_never_change(
    explorer, monkeypatch
):
    monkeypatch.setattr(past_answers, "FIRST_PAGE", 2)
    places = {}

    def now():
        readable = past_answers.PastAnswers(explorer.ledger)
        for past in (explorer._past, readable):
            for entry, place in past.readable(TABLE, None):
                assert places.setdefault(entry.request, place) == place
        return len(readable.readable(TABLE, None))

    explorer.ledger.allot("ann", 20)
    totals, sexes = asked("cumulative", alpha=40), asked(attribute="sex", alpha=40)
    for count in range(1, 8):
        explorer.ask(totals, request=f"{count}")
        explorer.ask(asked("cumulative", alpha=60 + count))
        explorer.ask(sexes, analyst="ann", request=f"hers {count}")
        assert now() == count
    monkeypatch.setattr(past_answers, "MOST_LISTED", 6)
    assert 1 <= now() < 7
    explorer.ask(totals, request="8")
    assert now() >= 1
    assert places["r-8"] == 8


def test_a_charge_that_is_not_answered_yet_is_read_once_it_is(explorer, monkeypatch):
    question = asked("cumulative", alpha=30)

    def broken(*_, **__):
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(explorer.ledger, "_keep", broken)
        with pytest.raises(OSError, match="disk is full"):
            explorer.ask(question)
    assert explorer.known(asked("cumulative", alpha=50)) is None
    explorer.ask(question)
    assert explorer.known(asked("cumulative", alpha=50)) is not None


def test_the_same_bins_are_held_against_a_source_once(explorer, monkeypatch):
    explorer.ask(asked(alpha=40))
    looks = []
    look = PastRelease.read

    def counted(source, *given):
        looks.append(source.entry.request)
        return look(source, *given)

    monkeypatch.setattr(PastRelease, "read", counted)
    first = explorer.explain(asked(alpha=30))
    for alpha in (31, 32, 33):
        again = explorer.explain(asked(alpha=alpha))
        assert again["known"] == first["known"]
    assert len(looks) == 1
    # Other bins, another beta or a question fixed before are other readings.
    explorer.explain(asked(alpha=30, width=2))
    explorer.explain(asked(alpha=30, cost={"beta": 0.2}))
    explorer.explain(asked(alpha=30, cost={"chosen": False}))
    assert len(looks) == 4
    monkeypatch.setattr(past_answers, "MOST_REMEMBERED", 1)
    explorer.explain(asked(alpha=30, width=3))
    explorer.explain(asked(alpha=31))
    assert len(looks) == 6
    monkeypatch.setattr(past_answers, "LONGEST_REMEMBERED", 1)
    explorer.explain(asked(alpha=30, width=2))
    explorer.explain(asked(alpha=30, width=2))
    assert len(looks) == 8


def test_bins_that_the_data_chose_are_no_source(explorer):
    explorer.ask({**asked(), "cost": {"epsilon": 1, "mechanism": "dawa"}})
    assert explorer.known(asked(width=2, alpha=900)) is None
    assert list(explorer._past._loaded.values()) == [None]

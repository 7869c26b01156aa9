"""Sums, means and shares by group: intervals hold, and prices see no records."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.accounting.composition import EPSILON
from blowfish_fast.apps.explorer import Explorer, amounts
from blowfish_fast.apps.explorer.answers_given import answer_from
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.explorer.layout import lay_out
from blowfish_fast.apps.explorer.planning import Planner
from blowfish_fast.apps.explorer.questions import read_question
from blowfish_fast.apps.explorer.same_question import canonical, request_name
from blowfish_fast.errors import CatalogError, QuestionError, SizeError

ibis = pytest.importorskip("ibis", reason="pip install 'blowfish_fast[sql]'")

WARD = {"name": "ward", "levels": ["a", "b", "c"]}
COST = {
    "name": "cost",
    "cells": {"start": 0, "stop": 100, "width": 10},
    "unit": "EUR",
    "outside": "cell",
}
AGE = {"name": "age", "cells": {"start": 0, "stop": 20, "width": 1}, "whole": True}
VISITS = {"name": "visits", "attributes": [WARD, COST, AGE], "records": 600}
TABLE = as_table(VISITS)
DRAWS = 60
"""Seeded releases; an interval that holds with 95 % misses some 3 of them."""


def asked(kind="mean", **more):
    more.setdefault("attribute", "cost")
    more.setdefault("by", "ward")
    more.setdefault("cost", {"alpha": 20})
    return read_question({"kind": kind, "table": "visits", **more})


RNG = np.random.default_rng(20141)
SIZE = 400
WARDS = RNG.choice(3, SIZE, p=[0.6, 0.35, 0.05])
COSTS = RNG.gamma(2.0, 18.0, SIZE)
AGES = RNG.integers(0, 20, SIZE)
KNOWN = COSTS <= 100.0


def counts_of(layout, wards, values, kept):
    """Return the bins of records, one record at a time."""
    counts = np.zeros(layout.shape, dtype=np.int64)
    (attribute,) = layout.axes[-1].spec.domain().attributes
    outside = attribute.extra_cell("(outside)")
    cuts = np.asarray(attribute.cuts)
    for ward, value, inside in zip(wards, values, kept, strict=True):
        cell = int(np.searchsorted(cuts, value, side="right")) - 1
        cell = min(cell, attribute.regular - 1) if inside else outside
        counts[layout.axes[0].labels[ward], layout.axes[-1].labels[cell]] += 1
    flat = counts.reshape(-1)
    return np.bincount(layout.labels, flat, minlength=layout.bins).astype(np.int64)


def truth(kind, values, kept, wards):
    groups = [values[(wards == ward) & kept] for ward in range(3)]
    if kind == "sum":
        return np.array([group.sum() for group in groups])
    if kind == "share":
        return np.array([(group >= 50).mean() for group in groups])
    return np.array([group.mean() for group in groups])


@pytest.mark.long
@pytest.mark.parametrize(
    "question",
    [
        asked(cost={"alpha": 15}),
        asked("sum", cost={"alpha": 900}),
        asked("share", low=50, cost={"alpha": 0.15}),
        asked(attribute="age", cost={"alpha": 2}),
        asked(cost={"epsilon": 1.0}),
    ],
    ids=lambda question: f"{question.kind} of {question.attribute}",
)
def test_intervals_hold_the_truth_as_often_as_stated(question):
    plan = Planner(EPSILON).plan(TABLE, canonical(TABLE, question))
    ages = question.attribute == "age"
    values, kept = (AGES, AGES >= 0) if ages else (COSTS, KNOWN)
    counts = counts_of(plan.layout, WARDS, values, kept)
    true = truth(question.kind, values, kept, WARDS)
    data = counts.reshape(plan.policy.domain.shape)
    missed, far = np.zeros(3), 0
    for seed in range(DRAWS):
        release = plan.mechanism.release(data, rng=seed)
        answer = answer_from(plan, release, "test")
        low, high = answer.intervals.T
        missed += (true < low - 1e-9) | (true > high + 1e-9)
        assert ((low <= answer.values) & (answer.values <= high)).all()
        assert (high > low).all()
        if question.kind == "mean" and hasattr(question.cost, "alpha"):
            # The promise is about groups of at least 600 / 3 records: the first.
            far += abs(answer.values[0] - true[0]) > question.cost.alpha
    assert (missed <= 0.05 * DRAWS + 3 * np.sqrt(0.05 * DRAWS)).all(), missed
    assert far <= 0.05 * DRAWS + 3 * np.sqrt(0.05 * DRAWS)


def test_a_forgotten_slack_is_noticed(monkeypatch):
    plain = amounts.places_of
    monkeypatch.setattr(
        amounts, "places_of", lambda layout: plain(layout)._replace(slack=0.0)
    )
    # All at the lower ends of cells: middles are half a cell too large.
    wards, values = np.repeat([0, 1, 2], 3000), np.full(9000, 40.0)
    question = asked(cost={"epsilon": 3.0})
    plan = Planner(EPSILON).plan(TABLE, canonical(TABLE, question))
    counts = counts_of(plan.layout, wards, values, values >= 0)
    data = counts.reshape(plan.policy.domain.shape)
    answer = answer_from(plan, plan.mechanism.release(data, rng=1), "test")
    assert (answer.intervals[:, 0] > 40.0).all()
    monkeypatch.undo()
    answer = answer_from(plan, plan.mechanism.release(data, rng=1), "test")
    assert (answer.intervals[:, 0] <= 40.0).all()
    assert (answer.intervals[:, 1] >= 40.0).all()


def test_small_groups_get_wide_intervals_and_large_ones_narrow():
    plan = Planner(EPSILON).plan(TABLE, canonical(TABLE, asked()))
    counts = counts_of(plan.layout, WARDS, COSTS, KNOWN)
    data = counts.reshape(plan.policy.domain.shape)
    answer = answer_from(plan, plan.mechanism.release(data, rng=4), "test")
    low, high = answer.intervals.T
    assert (high - low)[0] < (high - low)[2]
    assert (high - low)[0] <= 2 * 20
    empty = answer_from(plan, plan.mechanism.release(0 * data, rng=5), "test")
    assert (empty.intervals >= 0).all()
    assert (empty.intervals <= 100).all()


def test_rows_are_steps_above_and_below_the_bounds():
    layout = lay_out(TABLE, asked())
    places = amounts.places_of(layout)
    assert (places.low, places.high, places.steps, places.slack) == (0, 100, 20, 5)
    assert places.above.tolist() == list(range(1, 20, 2))
    policy = layout.policy(TABLE.policy())
    rows = amounts.workload_of(layout, policy.domain)
    counts = counts_of(layout, WARDS, COSTS, KNOWN).reshape(policy.domain.shape)
    above, below = rows.answer(counts).reshape(2, 3)
    middles = 10 * np.floor(COSTS / 10) + 5
    sizes = [int((KNOWN & (ward == WARDS)).sum()) for ward in range(3)]
    assert (above + below).tolist() == [20 * size for size in sizes]
    means = [middles[KNOWN & (ward == WARDS)].mean() for ward in range(3)]
    assert amounts.answers_of_rows(layout, rows.answer(counts)) == pytest.approx(means)


def test_whole_numbers_are_known_exactly():
    places = amounts.places_of(lay_out(TABLE, asked(attribute="age")))
    assert (places.low, places.high, places.slack) == (0, 19, 0)
    assert places.above.tolist() == list(range(20))
    coarse = amounts.places_of(lay_out(TABLE, asked(attribute="age", width=4)))
    assert coarse.slack == pytest.approx(1.5)


@pytest.mark.parametrize("clip", [(20, 60), (13, 77.7), (-50, 500)])
def test_bounds_clip_values(clip):
    places = amounts.places_of(lay_out(TABLE, asked(clip=clip)))
    assert (places.low, places.high) == (max(clip[0], 0), min(clip[1], 100))
    stand = places.low + places.width * places.above / places.steps
    for cell in range(10):
        for value in (10 * cell, 10 * cell + 9.99):
            true = np.clip(value, places.low, places.high)
            assert abs(true - stand[cell]) <= places.slack + 1e-9


def test_irregular_cells_stand_on_fine_steps():
    cost = {"name": "cost", "edges": [0, 1, 3.3, 10, 31.4, 100]}
    table = as_table({"name": "visits", "attributes": [WARD, cost]})
    places = amounts.places_of(lay_out(table, asked(at_least=9)))
    assert places.steps == amounts.FINE_STEPS
    assert places.slack == pytest.approx((100 - 31.4) / 2, abs=1e-3)


def test_accuracy_on_rows_and_back_is_the_same():
    for question in (
        asked(),
        asked("sum"),
        asked("share", low=50, cost={"alpha": 0.1}),
    ):
        layout = lay_out(TABLE, question)
        rows = amounts.on_rows(layout, question.cost)
        assert amounts.from_rows(layout, rows.alpha) == pytest.approx(
            question.cost.alpha
        )
    layout = lay_out(TABLE, asked())
    assert amounts.from_rows(layout, 1e9) == 105.0


@pytest.fixture(scope="module")
def explorers():
    """Two tables of the same description, of very different sizes of groups."""
    made = []
    for size in (300, 3000):
        database = ibis.duckdb.connect()
        database.raw_sql(
            "create table visits as select ['a', 'b', 'c'][1 + i % 3] as ward, "
            "case when i % 7 = 0 then null else (i * 13) % 101 end::double as cost, "
            f"(i % 20)::int as age from range({size}) as t(i)"
        )
        made.append(Explorer(TABLE, database, epsilon=100))
    return made


@pytest.mark.long
@pytest.mark.parametrize(
    "question",
    [
        asked(),
        asked("sum", cost={"alpha": 900}),
        asked("share", missing=True, cost={"alpha": 0.1}),
        asked(by=None, filters=[{"attribute": "ward", "values": ["a", "b"]}]),
        asked(by=["age", "ward"], granularity=[10, 1], at_least=50),
        asked(attribute="age", by=["ward"], cost={"epsilon": 0.5}),
    ],
    ids=str,
)
def test_each_is_priced_without_records_asked_replayed_and_previewed(
    explorers, question
):
    few, many = explorers
    told = few.explain(question)
    assert told["cost"] == many.explain(question)["cost"] > 0
    answer = few.ask(question)
    assert answer.raw is not None
    assert answer.values.shape == answer.raw.shape
    assert answer.values.size == told["queries"]
    again = few.answered(answer.request)
    assert again.replayed
    assert again.to_dict()["intervals"] == answer.to_dict()["intervals"]
    assert few.explain(question)["cost"] == 0
    assert few.known(question) is None
    truth = np.array(few.preview(question, epsilon=50)["truth"])
    assert truth.shape == answer.values.shape
    low, high = np.moveaxis(answer.intervals, -1, 0)
    assert ((low <= answer.values) & (answer.values <= high)).all()
    with pytest.raises(QuestionError, match="hold the truth already"):
        few.certify(answer.request, epsilon=0.1)


def test_what_a_budget_buys_is_what_it_costs(explorers):
    few, _ = explorers
    cost = few.explain(asked())["price_alone"]
    bought = few.accuracy(asked(cost={"epsilon": cost}))
    assert bought["alpha"] == pytest.approx(20, rel=0.01)
    each = few.accuracy(asked(cost={"epsilon": cost}), scope="per_query")
    assert each["alpha"] < bought["alpha"]


def test_thresholds_of_values_lower_the_price_where_groups_are_public():
    public = {"ward": {"kind": "blocks", "blocks": [["a"], ["b"], ["c"]]}}
    near = {**public, "cost": {"kind": "threshold", "theta": 1}}
    columns = [{**column, "extras_joined": "apart"} for column in (WARD, COST)]
    apart = {**VISITS, "attributes": [*columns, AGE]}
    planner = Planner(EPSILON)
    whole = planner.plan(TABLE, canonical(TABLE, asked())).cost
    table = as_table({**apart, "policies": near})
    assert planner.plan(table, canonical(table, asked())).cost < whole / 5
    curve = list(planner.trade_off(table, canonical(table, asked()), [1, 4]))
    assert curve[-1]["cost"] <= curve[0]["cost"]


def test_the_same_question_in_other_words_has_one_name():
    turned = asked(by=["age", "ward"], granularity=[10, 1])
    plain = asked(by=["ward", "age"], granularity=[1, 10], at_least=600 // 6)
    forms = [canonical(TABLE, question) for question in (turned, plain)]
    assert request_name(forms[0]) == request_name(forms[1])
    one, other = asked(), asked(by=["ward"], granularity=[1], at_least=200)
    assert canonical(TABLE, one) == canonical(TABLE, other)
    share = asked("share", low=50, cost={"alpha": 0.1})
    both = asked("share", low=50.0, high=100, cost={"alpha": 0.1})
    assert canonical(TABLE, share) == canonical(TABLE, both)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"attribute": "ward", "by": None}, "are of numbers"),
        ({"cost": {"alpha": 5}}, "are known to 5"),
        ({"clip": [200, 300]}, "no two values"),
        ({"clip": [30, 20]}, "the lower one first"),
        ({"by": ["ward", "cost"]}, "each attribute once"),
        ({"granularity": [1, 2]}, "one granularity per attribute"),
        ({"cost": {"epsilon": 1, "mechanism": "dawa"}}, "leave the mechanism out"),
        ({"kind": "share"}, "by low and high, by values, or by missing"),
        ({"kind": "share", "attribute": "age", "low": 0}, "0 or 1 whatever"),
        ({"kind": "share", "missing": True, "low": 5}, "stands alone"),
        (
            {"kind": "share", "low": 50, "filters": [{"attribute": "cost", "low": 20}]},
            "state the property alone",
        ),
        ({"by": [f"x{at}" for at in range(6)]}, "at most 5 attributes"),
    ],
    ids=str,
)
def test_what_cannot_be_added_up_is_refused_with_the_rule(more, words):
    def plan():
        question = asked(**more)
        return Planner(EPSILON).plan(TABLE, canonical(TABLE, question))

    with pytest.raises(QuestionError, match=words):
        plan()


def test_without_a_stated_size_a_mean_says_what_to_state():
    table = as_table({**VISITS, "records": None})
    with pytest.raises(QuestionError, match="state at_least"):
        canonical(table, asked())
    assert canonical(table, asked("sum")).at_least is None


def test_too_many_bins_are_refused_with_coarser_values():
    fine = {"name": "cost", "cells": {"start": 0, "stop": 40000, "width": 1}}
    table = as_table({**VISITS, "attributes": [WARD, fine, AGE]})
    planner = Planner(EPSILON)
    with pytest.raises(SizeError, match='"width": 8') as refused:
        planner.plan(table, canonical(table, asked()))
    assert "sums, means or shares" in str(refused.value)
    assert planner.plan(table, canonical(table, asked(width=8))).cost > 0
    many = {"name": "ward", "levels": [f"w{at}" for at in range(900)]}
    table = as_table({**VISITS, "attributes": [many, COST, AGE]})
    with pytest.raises(SizeError, match="bins times groups"):
        planner.plan(table, canonical(table, asked()))
    share = asked("share", low=50, cost={"alpha": 0.1})
    many = {"name": "ward", "levels": [f"w{at}" for at in range(3000)]}
    table = as_table({**VISITS, "attributes": [many, COST, AGE]})
    with pytest.raises(SizeError, match="Use fewer groups"):
        planner.plan(table, canonical(table, share))


def test_whole_is_held_against_the_column():
    database = ibis.duckdb.connect()
    database.raw_sql("create table visits as select 1.5::double as age")
    table = {"name": "visits", "attributes": [AGE]}
    with pytest.raises(CatalogError, match="leave whole out"):
        Explorer(table, database, epsilon=1)
    with pytest.raises(CatalogError, match="no numbers that could be whole"):
        as_table({"name": "visits", "attributes": [{**WARD, "whole": True}]})

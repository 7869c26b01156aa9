"""How much work a price may take: public numbers, no edge listed in vain, a way out."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.composition import EPSILON, RHO
from blowfish_fast.apps.explorer import layout as layouts
from blowfish_fast.apps.explorer import planning, planning_work
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.explorer.exploration import Explorer
from blowfish_fast.apps.explorer.layout import lay_out
from blowfish_fast.apps.explorer.planning import Planner, gain_words
from blowfish_fast.apps.explorer.planning_work import (
    ALONG_EDGES,
    OTHER_QUERIES,
    SINGLE_BINS,
    SPARSE_BINS,
    Work,
    coarser_widths,
    most_edges,
    refuse_too_much,
    weigh,
)
from blowfish_fast.apps.explorer.questions import read_question
from blowfish_fast.errors import SizeError
from blowfish_fast.measure.sensitivity.policy import sensitivity
from blowfish_fast.policies import projection

ACCURACY = {"alpha": 100, "beta": 0.05}


def visits(ages=100, wards=19, costs=100, theta=5, **more):
    stated = {} if theta is None else {"age": {"kind": "threshold", "theta": theta}}
    age = {"name": "age", "cells": {"start": 0, "stop": ages, "width": 1}}
    ward = {"name": "ward", "levels": [f"w{number}" for number in range(wards)]}
    cost = {"name": "cost", "cells": {"start": 0, "stop": costs, "width": 1}}
    attributes = [age, ward, cost]
    return as_table(
        {"name": "visits", "attributes": attributes, "policies": stated, **more}
    )


def asked(kind="marginal", cost=ACCURACY, **more):
    return read_question({"kind": kind, "table": "visits", "cost": cost, **more})


NORTH = {"attribute": "ward", "values": ["w1"]}
CUBE = asked(attributes=["age", "ward", "cost"])


def test_a_large_table_is_priced_without_listing_an_edge(monkeypatch):
    def refuse(*_):
        raise AssertionError("an edge was listed")

    monkeypatch.setattr(projection, "list_bin_pairs", refuse)
    planner, table = Planner(EPSILON), visits()
    plan = planner.plan(table, CUBE)
    assert plan.work.bins > 190_000
    assert plan.work.tried == SINGLE_BINS
    assert [row["name"] for row in plan.candidates] == ["cells"]
    without = planner.without_policies(table, CUBE)
    assert plan.cost == without
    assert "gains nothing" in gain_words(plan, without)


@pytest.mark.long
@pytest.mark.parametrize(
    "other",
    [
        {"ages": 50},
        {"presence": True},
        {"person": "patient", "at_most": 3},
    ],
    ids=["cells", "presence", "persons"],
)
def test_tables_of_one_name_share_no_plan(other):
    planner, tables = Planner(EPSILON, 0), (visits(), visits(**other))
    question = asked("cumulative", attribute="age")
    plans = [planner.plan(table, question) for table in tables]
    alone = [Planner(EPSILON, 0).plan(table, question) for table in tables]
    assert [plan.cost for plan in plans] == [plan.cost for plan in alone]
    assert [plan.policy for plan in plans] == [plan.policy for plan in alone]
    assert alone[0].policy != alone[1].policy
    without = planner.without_policies(tables[1], question)
    assert without == Planner(EPSILON, 0).without_policies(tables[1], question)


@pytest.mark.long
@pytest.mark.parametrize("theta", [2, 30, None])
def test_totals_in_rho_cost_the_same_without_noise_on_each(theta, monkeypatch):
    question = asked("cumulative", attribute="age", filters=[NORTH])
    table = visits(120, 3, 8, theta)
    whole = Planner(RHO, 0).plan(table, question)
    monkeypatch.setattr(planning_work, "MOST_MOVED", 2**10)
    hurried = Planner(RHO, 0).plan(table, question)
    assert "queries" in [row["name"] for row in whole.candidates]
    assert "queries" not in [row["name"] for row in hurried.candidates]
    assert hurried.cost == whole.cost
    # In epsilon it is known at once, and few stretches have few ends.
    assert Planner(EPSILON, 0).plan(table, question).work.tried is None
    few = asked("ranges", attribute="age", ranges=[[0, 60], [20, 80]])
    assert Planner(RHO, 0).plan(table, few).work.tried is None


@pytest.mark.long
@pytest.mark.parametrize("theta", [2, 5, None])
def test_single_bins_cost_what_they_cost_when_everything_is_weighed(theta, monkeypatch):
    table = visits(12, 3, 8, theta)
    monkeypatch.setattr(planning_work, "FEW_BINS", 10)
    hurried = Planner(EPSILON).plan(table, CUBE)
    monkeypatch.setattr(planning_work, "FEW_BINS", 2**20)
    whole = Planner(EPSILON).plan(table, CUBE)
    assert len(hurried.candidates) == 1
    assert len(whole.candidates) > 5
    assert float(hurried.cost) == pytest.approx(float(whole.cost), rel=0.01)


def test_bins_with_few_neighbours_are_weighed_with_edges():
    work = Work(bins=10**4, queries=10**4, covered=10**4, edges=9999, single=True)
    assert work.tried != SINGLE_BINS
    assert work._replace(edges=2 * 10**4).tried == SINGLE_BINS
    assert work._replace(bins=500, edges=10**5).tried is None
    assert work.tried == SPARSE_BINS
    assert work._replace(bins=8000, edges=7999).tried is None


def test_noise_along_edges_and_on_boxes_is_weighed_where_few_are_followed():
    work = Work(bins=1000, queries=2000, covered=2000, edges=5000, single=False)
    assert {*OTHER_QUERIES} - {*work.tried} == {*ALONG_EDGES}
    boxes = work._replace(covered=10**6)
    assert {*OTHER_QUERIES} - {*boxes.tried} == {*ALONG_EDGES, "queries"}


def test_noise_is_drawn_as_often_as_the_limit_allows():
    few = Work(bins=100, queries=100, covered=100, edges=99, single=False)
    assert few.samples(1000) == 1000
    many = few._replace(bins=5000, queries=5000, covered=5000)
    assert 0 < many.samples(1000) < 1000
    assert many._replace(single=True, edges=10**6).samples(1000) == 0


@pytest.mark.parametrize(
    "policy",
    [
        bf.policies.Line(bf.Domain(12)),
        bf.policies.Full(bf.Domain(12)),
        bf.policies.AddRemove(bf.Domain(12)),
        bf.policies.Full(bf.Domain(12)).per_person(3),
        bf.policies.Attribute(bf.Domain((3, 4))),
        bf.policies.Attribute(bf.Domain((3, 4))).project([0, 0, 1, 2] * 3),
        bf.policies.Threshold(bf.Domain(12), 3).project([0, 1, 2] * 4),
    ],
)
def test_edges_are_bounded_from_above(policy):
    assert policy.edge_count <= most_edges(policy) <= policy.edge_count * 3 + 24


@pytest.mark.parametrize(
    ("question", "most"),
    [
        (CUBE, 1000),
        (asked("cumulative", attribute="age"), 20),
        (
            asked(
                "histogram",
                attribute="age",
                filters=[{"attribute": "ward", "values": ["w1"]}],
            ),
            60,
        ),
    ],
)
def test_the_coarser_question_that_is_named_fits(question, most, monkeypatch):
    table = visits()
    monkeypatch.setattr(planning_work, "MOST_SINGLE_BINS", most)
    monkeypatch.setattr(planning_work, "MOST_NUMBERS", 2 * most)
    layout = lay_out(table, question)
    work = weigh(layout, layout.policy(table.policy()))
    with pytest.raises(SizeError, match="is priced on up to") as refused:
        refuse_too_much(layout, work)
    widths = coarser_widths(layout, most)
    named = "granularity" if question.kind == "marginal" else "width"
    assert f'"{named}": {widths if named == "granularity" else widths[0]}' in str(
        refused.value
    )
    stated = {named: widths if named == "granularity" else widths[0]}
    coarser = question.model_copy(update=stated)
    assert Planner(EPSILON).shape(table, coarser).work.bins <= most


def test_levels_that_cannot_be_made_coarser_are_left_out(monkeypatch):
    layout = lay_out(visits(), asked("histogram", attribute="ward"))
    assert coarser_widths(layout, 5) is None
    work = weigh(layout, layout.policy(visits().policy()))
    monkeypatch.setattr(planning_work, "MOST_SINGLE_BINS", 5)
    with pytest.raises(SizeError, match="Leave out an attribute"):
        refuse_too_much(layout, work)


def test_boxes_that_hold_too_much_are_refused_with_a_number_that_fits():
    boxes = [[(0, 100), (0, 100)]] * 8
    question = asked("rectangles", attributes=["age", "cost"], rectangles=boxes)
    layout = lay_out(visits(), question)
    work = weigh(layout, layout.policy(visits().policy()))
    assert (work.queries, work.covered) == (8, 80_000)
    assert work.pieces == 8 * 100
    for too_much in (
        work._replace(covered=2 * planning_work.MOST_COVERED),
        work._replace(pieces=2 * planning_work.MOST_PIECES),
    ):
        with pytest.raises(SizeError, match="Ask for 4 boxes at a time"):
            refuse_too_much(layout, too_much)


def test_trees_are_tuned_to_boxes_of_few_pieces():
    work = Work(bins=500, queries=60, covered=900, edges=900, single=False, pieces=200)
    assert work.tried is None
    many = work._replace(pieces=planning_work.MOST_TUNED + 1)
    assert {*OTHER_QUERIES} - {*many.tried} == {"tuned_tree"}


@pytest.mark.parametrize("measured_in", [EPSILON, RHO])
def test_boxes_of_many_pieces_are_priced_without_a_tuned_tree(measured_in, monkeypatch):
    monkeypatch.setattr(planning_work, "MOST_TUNED", 3)
    boxes = [[(0, 9), (3, 7)], [(5, 20), (0, 30)]]
    question = asked("rectangles", attributes=["age", "cost"], rectangles=boxes)
    plan = Planner(measured_in, 0).plan(visits(20, 2, 30), question)
    names = {row["name"] for row in plan.candidates}
    assert "cells" in names
    assert "tuned_tree" not in names


def test_prices_are_small_middling_or_large_by_their_bins_and_queries():
    def effort(cells, **more):
        question = asked("cumulative", attribute="age", **more)
        return Planner(EPSILON).effort(visits(cells), question)

    assert effort(100) == "small"
    assert effort(200) == effort(800) == "middling"
    assert effort(1100) == "large"
    assert effort(1100, width=20) == "small"


def test_a_policy_of_too_many_edges_is_priced_as_whole_records(monkeypatch, tmp_path):
    monkeypatch.setattr(planning, "MOST_LISTED", 50)
    ibis = pytest.importorskip("ibis")
    database = ibis.duckdb.connect()
    rows = "select i % 30 as age, 'w' || i % 3 as ward, i % 9 as cost"
    database.raw_sql(f"create table visits as {rows} from range(90) as t(i)")
    question = asked(
        "cumulative",
        attribute="age",
        filters=[{"attribute": "ward", "values": ["w1"]}],
    )
    table = visits(30, 3, 9)
    explorer = Explorer(table, database, epsilon=10, ledger=tmp_path / "a.ledger")
    plan = explorer.plan(question)
    assert plan.relaxed
    assert plan.layout.table.policies == table.policies
    assert plan.mechanism.policy.implies(explorer.ledger.policy)
    told = explorer.explain(question)
    assert told["cost"] == pytest.approx(told["without_policy"], rel=0.05)
    assert "the policy is not made use of" in told["gain"]
    assert explorer.ask(question).values.shape == (30,)


def counted(monkeypatch, owner, name):
    """Return a list that grows with each call of a function."""
    calls, inner = [], getattr(owner, name)

    def count(*given, **named):
        calls.append(given)
        return inner(*given, **named)

    monkeypatch.setattr(owner, name, count)
    return calls


def test_what_a_policy_gains_nothing_for_is_worked_out_once(monkeypatch):
    monkeypatch.setattr(planning, "MOST_LISTED", 50)
    table, planner = visits(30, 3, 9), Planner(EPSILON, 50)
    for question in (
        CUBE,
        asked(
            "cumulative",
            attribute="age",
            filters=[{"attribute": "ward", "values": ["w1"]}],
        ),
    ):
        plan = planner.plan(table, question)
        assert plan.relaxed or plan.work.tried == SINGLE_BINS
        calibrations = counted(monkeypatch, planning, "Calibration")
        assert planner.without_policies(table, question) == plan.cost
        assert not calibrations
        alone = Planner(EPSILON, 50).without_policies(table, question)
        assert float(alone) == pytest.approx(float(plan.cost), rel=0.05)


def test_where_nobody_comes_or_goes_is_asked_before_prices_are_taken_for_equal():
    table = visits(30, 20, 9, presence=True)
    planner = Planner(EPSILON, 50)
    plan = planner.plan(table, CUBE)
    assert plan.work.tried == SINGLE_BINS
    assert plan.policy.has_bottom
    assert not planning._gains_nothing(plan)
    assert planner.without_policies(table, CUBE) == plan.cost


def test_bounds_are_not_worked_out_twice_where_nothing_is_drawn(monkeypatch):
    table, question = visits(60, 3, 4), asked("cumulative", attribute="age")
    bounds = counted(monkeypatch, planning.Shape, "least")
    assert Planner(EPSILON, 0).without_policies(table, question) > 0
    assert len(bounds) == 1


def test_edges_are_read_once_for_many_stretches(monkeypatch):
    reads = counted(monkeypatch, layouts, "cut_values")
    few = asked("ranges", attribute="age", ranges=[(0, 10)])
    lay_out(visits(), few).boxes()
    once, many = len(reads), [(low, low + 20) for low in range(70)]
    lay_out(visits(), asked("ranges", attribute="age", ranges=many)).boxes()
    assert len(reads) == 2 * once


def test_no_policy_is_laid_over_bins_that_are_too_many(monkeypatch):
    monkeypatch.setattr(planning_work, "MOST_SINGLE_BINS", 1000)
    policies = counted(monkeypatch, layouts.Layout, "policy")
    with pytest.raises(SizeError, match="is priced on up to 1,000 bins"):
        Planner(EPSILON).shape(visits(), CUBE)
    assert not policies


@pytest.mark.parametrize(
    ("ranges", "words"),
    [(30, '"width": 2'), (80, "Ask for 60 stretches or boxes at a time")],
)
def test_stretches_that_are_too_many_name_what_fits(ranges, words, monkeypatch):
    monkeypatch.setattr(planning_work, "MOST_NUMBERS", 120)
    listed = [(low, low + 20) for low in range(ranges)]
    question = asked("ranges", attribute="age", ranges=listed)
    with pytest.raises(SizeError, match="bins and numbers together") as refused:
        Planner(EPSILON).shape(visits(), question)
    assert words in str(refused.value)


def test_values_that_are_too_many_to_add_up_are_refused(monkeypatch):
    monkeypatch.setattr(planning_work, "MOST_ADDED_BINS", 100)
    question = asked("sum", attribute="cost", by="ward", cost={"alpha": 1000})
    with pytest.raises(SizeError, match=r'sums, means or shares.*"width"'):
        Planner(EPSILON).shape(visits(), question)


@pytest.mark.long
@pytest.mark.parametrize(
    "question",
    [
        CUBE,
        asked("cumulative", attribute="age"),
        asked("ranges", attribute="age", ranges=[(0, 9), (3, 70)]),
        asked("rectangles", attributes=["age", "cost"], rectangles=[[(0, 9), (3, 7)]]),
    ],
)
@pytest.mark.parametrize("theta", [1, 5, 60])
def test_an_accepted_price_stays_within_the_limits_of_work(
    question, theta, monkeypatch
):
    listed = counted(monkeypatch, projection, "list_bin_pairs")
    drawn = counted(monkeypatch, planning.Calibration, "least")
    planner, table = Planner(EPSILON, 1000), visits(theta=theta)
    plan = planner.plan(table, question)
    work = plan.work
    if work.single:
        assert work.bins <= planning_work.MOST_SINGLE_BINS
        assert not listed
    else:
        assert work.bins + work.queries <= planning_work.MOST_NUMBERS
        followed = work.edges <= planning_work.MOST_LISTED
        assert followed or plan.relaxed or not listed
    assert drawn
    samples = work.samples(1000)
    assert samples * (work.bins + work.covered) <= planning_work.MOST_DRAWN


@pytest.mark.parametrize(
    "policy",
    [
        bf.policies.Line(bf.Domain(6)),
        bf.policies.AddRemove(bf.Domain(6)),
        bf.policies.Blocks(bf.Domain(6), [0, 0, 1, 1, 2, 2]),
        bf.policies.Blocks(bf.Domain(6), [0, 1, 2, 3, 4, 4]),
        bf.policies.Full(bf.Domain(6)),
    ],
)
@pytest.mark.parametrize("stretch", [(0, 6), (0, 2), (2, 4), (1, 3), (0, 1)])
def test_an_answer_changes_where_the_sensitivity_is_not_zero(policy, stretch):
    query = bf.workloads.Ranges(policy.domain, *([end] for end in stretch))
    moved = float(sensitivity(policy, query)) > 0
    assert planning._some_answer_changes(policy, query) == moved

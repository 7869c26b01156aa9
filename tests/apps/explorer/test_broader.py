"""Broader answers that are bought in place of narrower ones: Lemma PA10."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast.accounting.composition import EPSILON, RHO
from blowfish_fast.apps.explorer import Explorer
from blowfish_fast.apps.explorer.batches import FailedAnswer
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.explorer.layout import lay_out
from blowfish_fast.apps.explorer.past_answers import PastRelease, rows_over
from blowfish_fast.apps.explorer.planning import Planner
from blowfish_fast.apps.explorer.questions import Accuracy, read_question
from blowfish_fast.apps.explorer.remembered import broader
from blowfish_fast.apps.explorer.same_question import canonical
from blowfish_fast.apps.server.price_workers import PriceTask, answer_task
from blowfish_fast.errors import BudgetError, CatalogError, FailedDrawError
from blowfish_fast.measure import handle
from blowfish_fast.workloads import Linear

pytest.importorskip("ibis", reason="pip install 'blowfish_fast[sql]'")

AGE = {
    "name": "age",
    "cells": {"start": 0, "stop": 40, "width": 1},
    "extras_joined": "end",
}
WARD = {"name": "ward", "levels": ["a", "b"], "extras_joined": "apart"}
LINE = {"age": {"kind": "threshold", "theta": 1}}
PUBLIC_WARDS = {**LINE, "ward": {"kind": "blocks", "blocks": [["a"], ["b"]]}}
PEOPLE = {
    "name": "people",
    "attributes": [AGE, WARD],
    "policies": LINE,
    "broad": 0.5,
}
WARD_A = [{"attribute": "ward", "values": ["a"]}]
PLANNER = Planner(EPSILON, 0)


def asked(alpha=40, kind="histogram", **more):
    cost = {"alpha": alpha, "chosen": more.pop("chosen", False)}
    about = {"attribute": "age", **more}
    return {"kind": kind, "table": "people", "cost": cost, **about}


def form_of(question, table=PEOPLE):
    return canonical(as_table(table), read_question(question))


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "people.csv"
    lines = (f"{i * 7 % 40},{'ab'[i % 2]}" for i in range(600))
    path.write_text("\n".join(["age,ward", *lines]) + "\n")
    return path


def exploring(source, ledger=None, budget=50, currency="epsilon", **more):
    table = {**PEOPLE, **more}
    terms = {currency: budget}
    explorer = Explorer(table, source, ledger=ledger, samples=0, **terms)
    if currency == "epsilon" and "attributes" not in more:
        # Plans depend on no records: all explorers of one description share them.
        explorer.planner = PLANNER
    return explorer


@pytest.fixture(params=["memory", "disk"])
def explorer(request, records, tmp_path):
    ledger = None if request.param == "memory" else tmp_path / "people.ledger"
    return exploring(records, ledger=ledger)


@pytest.mark.long
def test_what_costs_no_more_is_bought_whole_and_follow_ups_are_free(explorer):
    question = asked(width=10)
    told = explorer.explain(question)
    assert (told["how"], told["broad"]["bought"]) == ("broad", True)
    assert told["broad"]["what"] == "running totals of age"
    assert told["broad"]["cost"] == told["cost"] <= 1.001 * told["price_alone"]
    assert "running totals of age are bought" in told["why"]
    assert f"{told['price_alone']:.4g}" in told["why"]
    answer = explorer.ask(question)
    assert float(explorer.ledger.spent) == told["cost"] == float(answer.epsilon)
    assert (answer.holds, answer.values.shape) == ("fresh", (4,))
    assert "A broader answer was bought" in answer.promise
    assert (
        "within 40 of the true ones, but for a probability of 0.05." in answer.promise
    )
    widths = answer.intervals[:, 1] - answer.intervals[:, 0]
    assert widths.max() <= 80
    (paid,) = answer.sources
    assert paid == broader.broad_name(explorer.canonical(question))
    # Shown answers never change, and the same question is free.
    replayed = explorer.ask(question)
    assert replayed.replayed
    assert np.array_equal(replayed.values, answer.values)
    assert np.array_equal(explorer.answered(answer.request).values, answer.values)
    assert explorer.answered(paid).values.shape == (40,)
    assert explorer.ledger.verify()
    # Alone these would be paid one by one.
    for follow in (
        asked(width=20),
        asked(60, width=5),
        asked(40, "ranges", ranges=[[3, 17]]),
        asked(60, "cumulative"),
    ):
        assert explorer.explain(follow)["how"] == "read"
        assert explorer.ask(follow).sources == (paid,)
    assert float(explorer.ledger.spent) == told["cost"]


def test_nothing_broader_is_bought_unless_the_description_says_so(records):
    explorer = exploring(records, broad=0)
    told = explorer.explain(asked(width=10))
    assert (told["how"], told["broad"]) == ("fresh", None)
    assert explorer.ask(asked(width=10)).sources == ()
    assert "broad" not in explorer.table.to_dict()
    with pytest.raises(CatalogError, match="broad"):
        as_table({**PEOPLE, "broad": -1})


@pytest.mark.long
@pytest.mark.parametrize(("most", "bought"), [(0.2, False), (1.5, True)])
def test_what_is_too_dear_is_offered_and_not_bought(records, most, bought):
    explorer = exploring(records, policies={}, broad=most)
    question = asked(width=10)
    told = explorer.explain(question)
    offer = told["broad"]
    assert 1.2 * told["price_alone"] < offer["cost"] <= 2.5 * told["price_alone"]
    assert offer["bought"] == bought
    assert told["cost"] == (offer["cost"] if bought else told["price_alone"])
    explorer.ask(question)
    assert float(explorer.ledger.spent) == told["cost"]
    # Each bin is told as `explain` said it would be.
    if bought:
        grid = explorer.known({**asked(width=offer["question"]["width"], chosen=True)})
        assert grid.alpha == pytest.approx(offer["bins_within"], rel=1e-9)


@pytest.mark.long
def test_where_the_rest_pays_for_the_narrower_answer_alone_that_is_bought(records):
    free = exploring(records, policies={}, broad=4).explain(asked(width=10))
    between = f"{(free['price_alone'] + free['broad']['cost']) / 2:.6f}"
    explorer = exploring(records, policies={}, broad=4, budget=between)
    told = explorer.explain(asked(width=10))
    assert (told["how"], told["affordable"]) == ("fresh", True)
    assert not told["broad"]["bought"]
    explorer.ask(asked(width=10))
    assert float(explorer.ledger.spent) == pytest.approx(told["cost"])
    with pytest.raises(BudgetError, match="nothing was charged"):
        explorer.ask(asked(2, width=5))


@pytest.mark.long
def test_prices_and_decisions_depend_on_no_record(records, tmp_path):
    other = tmp_path / "others" / "people.csv"
    other.parent.mkdir()
    other.write_text("age,ward\n" + "39,b\n" * 5000)
    questions = [asked(width=10), asked(30, width=5), asked(60, filters=WARD_A)]
    told = []
    for path in (records, other):
        explorer = exploring(path, policies=PUBLIC_WARDS)
        told.append([])
        for question in questions:
            told[-1].append(explorer.explain(question))
            explorer.ask(question)
    for first, second in zip(*told, strict=True):
        for told_known in (first["known"], second["known"]):
            if told_known is not None:
                told_known.pop("as_of")
        assert first == second
    assert {each["how"] for each in told[0]} >= {"broad"}


def test_a_filter_by_a_public_ward_buys_all_wards(records):
    explorer = exploring(records, policies=PUBLIC_WARDS)
    told = explorer.explain(asked(width=10, filters=WARD_A))
    assert told["how"] == "broad"
    assert told["broad"]["question"]["attributes"] == ["age", "ward"]
    explorer.ask(asked(width=10, filters=WARD_A))
    others = [{"attribute": "ward", "values": ["b"]}]
    assert explorer.explain(asked(42, width=10, filters=others))["cost"] == 0


@pytest.mark.long
def test_a_table_that_counts_rho_buys_broader_answers_too(records):
    explorer = exploring(records, currency="rho", budget=5)
    question = asked(width=10)
    told = explorer.explain(question)
    assert (told["how"], told["currency"]) == ("broad", "rho")
    answer = explorer.ask(question)
    assert float(explorer.ledger.spent) == told["cost"]
    assert (answer.intervals[:, 1] - answer.intervals[:, 0]).max() <= 80
    assert "the odds" in answer.promise


def test_sums_of_what_it_was_bought_for_are_told_by_the_same_promise(records):
    """Whoever is sold a broader answer reads all that the narrower one would tell."""
    explorer = exploring(records, policies={}, broad=1.5)
    assert explorer.ask(asked(width=10)).holds == "fresh"
    bins = asked(40, "ranges", ranges=[[10, 20], [20, 30]], chosen=True)
    reading = explorer.known(bins)
    assert (reading.by, reading.alpha, reading.holds) == ("sum", 40, "any")
    assert explorer.explain(bins)["cost"] == 0
    # Bins that it cuts, and a smaller probability of a miss, follow from noise alone.
    cut = asked(40, "ranges", ranges=[[10, 15]], chosen=True)
    surer = {**bins, "cost": {"alpha": 40, "beta": 0.04}}
    for other in (cut, surer):
        assert explorer.known(other).by == "noise"


@pytest.mark.long
def test_a_bet_that_did_not_help_is_not_made_again(records):
    explorer = exploring(records, policies={}, broad=1.5)
    explorer.ask(asked(width=10))
    better = asked(15, width=10, chosen=True)
    told = explorer.explain(better)
    assert told["broad"]["cost"] <= 2.5 * told["price_alone"]
    assert not told["broad"]["bought"]
    assert told["cost"] == told["price_alone"]
    # Somebody who has none of it may still be sold one.
    explorer.ledger.allot("ann", 20)
    assert explorer.explain(better, "ann")["how"] == "broad"


@pytest.mark.long
def test_what_is_made_finer_for_less_is_made_finer(records):
    explorer = exploring(records, snapshot="March")
    explorer.ask(asked(width=10))
    told = explorer.explain(asked(32, width=10))
    assert (told["how"], told["broad"]["bought"]) == ("refine", False)
    assert told["cost"] < told["broad"]["cost"]
    assert explorer.ask(asked(32, width=10)).mechanism == "refiner"
    assert told["broad"]["bins_within"] > 32


# Charges that were not answered.


def broken(*_, **__):
    raise OSError("no room")


@pytest.mark.long
@pytest.mark.parametrize("where", ["_keep", "keep_reading"])
@pytest.mark.parametrize("listed", [False, True])
def test_a_purchase_that_broke_off_is_finished_for_nothing(
    explorer, monkeypatch, where, listed
):
    # Led to by earlier answers: stored noise alone tells it less surely.
    question = asked(width=10, chosen=True)
    explorer.ledger.allot("ann", 5)
    explorer.ledger.allot("bob", 5)
    told = explorer.explain(question, "ann")
    with monkeypatch.context() as patched:
        patched.setattr(explorer.ledger, where, broken)
        with pytest.raises(OSError, match="no room"):
            explorer.ask(question, analyst="ann")
    assert float(explorer.ledger.spent) == told["cost"]
    # The very same question has one answer for all, whoever has paid for it.
    again = explorer.explain(question, "bob")
    assert (again["how"], again["cost"]) == ("broad", 0.0)
    if listed:
        (answer,) = explorer.ask([question], analyst="bob")
    else:
        answer = explorer.ask(question, analyst="bob")
    assert answer.holds == "fresh"
    assert float(explorer.ledger.spent) == told["cost"]
    assert {entry.state for entry in explorer.history()} == {"stored"}
    assert explorer.ask(question).replayed


def test_a_failed_draw_is_what_the_charge_has_come_to(explorer, monkeypatch):
    def lost(*_, **__):
        raise ValueError("lost")

    question = asked(width=10)
    cost = explorer.explain(question)["cost"]
    with monkeypatch.context() as patched:
        patched.setattr(handle, "_draw", lost)
        outcome = explorer.outcome(question)
    assert isinstance(outcome, FailedAnswer)
    assert not outcome.replayed
    assert float(outcome.budget) == float(explorer.ledger.spent) == cost
    again = explorer.outcome(question)
    assert again == outcome._replace(replayed=True)
    with pytest.raises(FailedDrawError):
        explorer.ask(question)
    assert float(explorer.ledger.spent) == cost


@pytest.mark.long
def test_two_that_ask_at_once_share_one_charge(records, tmp_path):
    path = tmp_path / "people.ledger"
    slow = exploring(records, ledger=path)
    fast = Explorer(None, records, ledger=path, samples=0)
    plan, raced = slow.broadening.plan, []

    def overtaken(form, price, analyst):
        bought = plan(form, price, analyst)
        if not raced:
            raced.append(fast.ask(asked(width=10)))
        return bought

    slow.broadening.plan = overtaken
    answer = slow.ask(asked(width=10))
    assert np.array_equal(answer.values, raced[0].values)
    assert len([entry for entry in slow.history() if entry.budget.amount]) == 1


# What is tried, and what it costs.


def test_broader_questions_hold_all_cells_and_a_grid_of_five():
    table = as_table({**PEOPLE, "policies": {}})
    sex = {"name": "sex", "levels": ["f", "m"]}
    wide = as_table({**PEOPLE, "policies": {}, "attributes": [AGE, WARD, sex]})

    def tried(question, described=table):
        form = canonical(described, read_question(question))
        return [
            (each.kind, *zip(each.axes, each.widths, strict=True))
            for each in broader.broader_questions(described, form)
        ]

    assert tried(asked(width=10)) == [
        ("cumulative", ("age", 1)),
        ("histogram", ("age", 1)),
        ("cumulative", ("age", 5)),
        ("histogram", ("age", 5)),
        ("marginal", ("age", 1), ("ward", 1)),
        ("marginal", ("age", 5), ("ward", 1)),
    ]
    # A question for all cells asks for these bins itself; stretches do not.
    assert ("cumulative", ("age", 1)) not in tried(asked(kind="quantiles"))
    assert ("cumulative", ("age", 1)) in tried(asked(kind="ranges", ranges=[[0, 9]]))
    assert tried(asked(attribute="ward")) == []
    assert tried(asked(attribute="ward"), wide) == [
        ("marginal", ("ward", 1), ("sex", 1))
    ]
    assert ("marginal", ("age", 5), ("ward", 1)) in tried(asked(filters=WARD_A), wide)
    assert ("marginal", ("age", 1), ("sex", 1)) in tried(asked(width=10), wide)
    # Amounts have noise of their own, and a budget is a wish for fresh noise.
    amount = {**asked(), "kind": "mean", "by": "ward", "at_least": 10}
    assert tried(amount) == tried({**asked(), "cost": {"epsilon": 1}}) == []


@pytest.mark.long
@pytest.mark.parametrize("currency", [EPSILON, RHO])
@pytest.mark.parametrize("scope", ["simultaneous", "per_query"])
def test_a_price_is_the_least_that_keeps_what_is_asked_for(currency, scope):
    planner, table = Planner(currency, 0), as_table(PEOPLE)
    question = asked(width=10)
    question["cost"]["scope"] = scope
    form = form_of(question)
    bought = broader.cheapest_broader(planner, table, form)
    rows = rows_over(bought.plan.layout, lay_out(table, form))
    queries = Linear(bought.plan.policy.domain, rows)
    miss = 0.05 / (len(rows) if scope == "simultaneous" else 1)
    widest = []
    for part in (Fraction(1), Fraction(9, 10)):
        mechanism = bought.plan.mechanism
        mechanism = mechanism.at(mechanism.budget * part)
        measurement, _ = mechanism._predictable(queries)
        form_over = queries.explicit_form(measurement.buckets)
        widest.append(measurement.law.half_widths(form_over, miss).max())
    # Tails that add up to less than beta may pay for one of them.
    assert widest[0] <= (40 if scope == "per_query" else 41)
    assert widest[1] > 40
    assert bought.question.cost.budget.amount == bought.cost


@pytest.mark.long
def test_what_cannot_be_read_or_priced_is_not_bought(records, monkeypatch):
    table, form = as_table(PEOPLE), form_of(asked(width=10))
    for name in ("MOST_BINS", "MOST_HELD", "DEAREST"):
        with monkeypatch.context() as patched:
            patched.setattr(broader, name, 0)
            assert broader.cheapest_broader(PLANNER, table, form) is None
    with monkeypatch.context() as patched:
        patched.setattr(broader, "holds_truth", lambda *_: np.array([False]))
        assert broader.cheapest_broader(PLANNER, table, form) is None
    explorer = exploring(records)
    with monkeypatch.context() as patched:
        patched.setattr(broader, "MOST_BINS", 0)
        assert explorer.explain(asked(width=10))["broad"] is None
    # It is remembered, and forgotten in turn.
    assert explorer.broadening.cheapest(form) is None
    monkeypatch.setattr(broader, "KEPT", 1)
    explorer.broadening.remember(form_of(asked(width=20)), None)
    assert explorer.broadening.cheapest(form) is not None


@pytest.mark.long
def test_a_worker_finds_the_same(records):
    table, form = as_table(PEOPLE), form_of(asked(width=10))
    task = PriceTask.of("broad", PLANNER, table, form)
    done, found = answer_task(task, OrderedDict())
    alone = broader.cheapest_broader(PLANNER, table, form)
    assert done
    assert (found.question, found.cost) == (alone.question, alone.cost)
    broadening = exploring(records).broadening
    assert broadening.effort(form) == "middling"
    broadening.remember(form, found)
    assert broadening.effort(form) == "small"
    assert broadening.cheapest(form) is found
    budget = form_of({**asked(), "cost": {"epsilon": 1}})
    assert broadening.effort(budget) == "small"


# Privacy and accuracy: audits, and bugs that are planted.


def exact_loss(release, policy):
    """Return the largest log ratio over all neighbours of Laplace noise on rows."""
    (measurement,) = release.measurements
    cells = policy.domain.size
    scales = measurement.scales
    rates = np.zeros(scales.rates.size)
    rates[scales.measured] = 1.0 / scales.widths[scales.measured]
    worst = 0.0
    for first, second in itertools.combinations(range(cells), 2):
        if policy.joins(np.array([first]), np.array([second])).all():
            moved = np.zeros(cells, dtype=np.int64)
            moved[first], moved[second] = 1, -1
            change = measurement.strategy.rows(measurement.buckets.sum(moved))
            # What has no noise is public: no neighbour changes it.
            assert not change[scales.exact].any()
            worst = max(worst, float(np.abs(change) @ rates))
    return worst


@pytest.mark.long
@pytest.mark.parametrize("policies", [{}, LINE])
def test_what_is_charged_is_what_the_noise_loses(records, policies):
    """Planted: the price of the narrower question, charged for the broader noise."""
    small = {**AGE, "cells": {"start": 0, "stop": 40, "width": 4}}
    attributes = [small, WARD]
    explorer = exploring(records, attributes=attributes, policies=policies, broad=4)
    told = explorer.explain(asked(width=5))
    assert told["how"] == "broad"
    answer = explorer.ask(asked(width=5))
    release = explorer.ledger.replay(answer.sources[0])
    form = explorer.canonical(told["broad"]["question"])
    policy = explorer.planner.shape(explorer.table, form).policy
    loss = exact_loss(release, policy)
    assert 0.99 * told["cost"] <= loss <= float(explorer.ledger.spent) * (1 + 1e-12)
    if not policies:
        assert loss > 1.2 * told["price_alone"]


@pytest.mark.long
def test_what_was_bought_is_surely_told_and_what_stands_out_is_not_taken_for_it():
    """Planted: whatever is read from the broader answer is taken for fresh."""
    trials, beta = 150, 0.2
    table = as_table(PEOPLE)
    question = asked(width=10)
    question["cost"]["beta"] = beta
    form = form_of(question)
    bought = broader.cheapest_broader(PLANNER, table, form)
    own = rows_over(bought.plan.layout, lay_out(table, form))
    pairs = [list(pair) for pair in itertools.combinations(range(41), 2)]
    every = lay_out(table, form_of(asked(kind="ranges", ranges=pairs)))
    rows = rows_over(bought.plan.layout, every)
    zeros = np.zeros(bought.plan.policy.domain.size, dtype=np.int64)
    missed = stood_out = caught = 0
    widths = None
    for seed in range(trials):
        release = bought.plan.mechanism.release(
            zeros.reshape(bought.plan.policy.domain.shape), rng=seed
        )
        source = PastRelease(None, bought.plan.layout, release)
        missed += bool((np.abs(source.linear(own)) > 40).any())
        errors = np.abs(source.linear(rows))
        if widths is None:
            any_cost = Accuracy(alpha=40, beta=beta)
            promised = source.read(every, any_cost, 1).half_widths
            widths = source._widths(rows, any_cost, np.log(len(own)))
        stood_out += bool((errors > promised).any())
        caught += bool((errors > widths).any())
    sigma = np.sqrt(trials * beta * (1 - beta))
    assert missed <= trials * beta + 3 * sigma
    assert stood_out <= trials * beta + 3 * sigma
    assert caught > trials * beta + 6 * sigma


def test_only_the_question_that_it_was_bought_for_reads_it_as_fresh(explorer):
    explorer.ask(asked(width=10))
    entry = explorer.broadening.begun(explorer.canonical(asked(width=10)))
    other = lay_out(explorer.table, explorer.canonical(asked(width=20)))
    with pytest.raises(AssertionError):
        explorer.broadening._told(entry, other)
    # Others are told that it holds for any question, or by their word for theirs.
    assert explorer.known(asked(width=20, chosen=True)).holds == "any"
    assert explorer.known(asked(width=20)).holds == "fixed"

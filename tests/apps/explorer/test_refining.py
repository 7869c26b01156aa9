"""Stored answers are made finer for the difference, on the same records alone."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.composition import EPSILON
from blowfish_fast.accounting.recipients import make_recipient_keys
from blowfish_fast.apps.explorer import Database, Explorer, past_answers, planning
from blowfish_fast.apps.explorer.batches import FailedAnswer
from blowfish_fast.apps.explorer.layout import lay_out
from blowfish_fast.apps.explorer.past_answers import PastRelease, rows_over
from blowfish_fast.apps.explorer.planning import Planner
from blowfish_fast.apps.explorer.questions import Accuracy, read_question
from blowfish_fast.apps.explorer.remembered import refining
from blowfish_fast.apps.explorer.remembered.content_labels import ContentLabels
from blowfish_fast.errors import BudgetError, FailedDrawError, LedgerError
from blowfish_fast.measure import handle
from blowfish_fast.measure.strategies.edge_noise import SpanningTree
from blowfish_fast.mechanisms.around_releases.refiner import Refiner
from blowfish_fast.workloads import Identity, Linear

ibis = pytest.importorskip("ibis", reason="pip install 'blowfish_fast[sql]'")

AGE = {"name": "age", "cells": {"start": 0, "stop": 60, "width": 5}}
WARD = {"name": "ward", "levels": ["a", "b"]}
PEOPLE = {"name": "people", "attributes": [AGE, WARD], "snapshot": "March"}
PLANNER = Planner(EPSILON, 0)


def asked(alpha=40, kind="histogram", **more):
    cost = {"alpha": alpha, "chosen": more.pop("chosen", False)}
    about = {"attribute": "age", **more}
    return {"kind": kind, "table": "people", "cost": cost, **about}


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "people.csv"
    write_records(path)
    return path


def write_records(path, ages=900):
    lines = (f"{i * 7 % 60},{'ab'[i % 2]}" for i in range(ages))
    path.write_text("\n".join(["age,ward", *lines]) + "\n")


def exploring(source, table=PEOPLE, ledger=None, **budget):
    terms = {"epsilon": 50, **budget} if "rho" not in budget else budget
    made = Explorer(table, source, ledger=ledger, samples=0, **terms)
    if "rho" not in budget:
        # Plans depend on no records: all explorers of this file share them.
        made.planner = PLANNER
    return made


@pytest.fixture(params=["memory", "disk"])
def explorer(request, records, tmp_path):
    ledger = None if request.param == "memory" else tmp_path / "people.ledger"
    return exploring(records, ledger=ledger)


def test_a_better_accuracy_pays_for_the_rest_alone(explorer):
    first = explorer.ask(asked(40))
    question = asked(20)
    told = explorer.explain(question)
    assert (told["how"], told["known"]["alpha"] > 20) == ("refine", True)
    assert told["cost"] == told["price_missing"] < 0.75 * told["price_alone"]
    assert "noise of an earlier answer is lowered" in told["why"]
    before = explorer.ledger.spent
    answer = explorer.ask(question)
    assert float(explorer.ledger.spent - before) == told["cost"]
    assert float(answer.epsilon) == told["cost"]
    assert answer.mechanism == "refiner"
    assert answer.holds == "fixed"
    assert "for the rest of the price" in answer.promise
    assert (answer.intervals[:, 1] - answer.intervals[:, 0]).max() <= 40
    # Shown answers never change, and the same question is free.
    for shown, again in ((first, asked(40)), (answer, question)):
        replayed = explorer.ask(again)
        assert replayed.replayed
        assert np.array_equal(replayed.values, shown.values)
        assert replayed.budget == shown.budget
        assert np.array_equal(explorer.answered(shown.request).values, shown.values)
    assert explorer.ledger.verify()
    # Sums of the finer bins are free from now on.
    wide = asked(60, width=3)
    assert explorer.explain(wide)["how"] == "read"
    assert explorer.ask(wide).sources == answer.sources


APART = {
    "name": "people",
    "attributes": [{**AGE, "extras_joined": "end"}, {**WARD, "extras_joined": "apart"}],
    "policies": {
        "age": {"kind": "threshold", "theta": 1},
        "ward": {"kind": "blocks", "blocks": [["a"], ["b"]]},
    },
    "snapshot": "March",
}
"""Ages move one cell and wards are public: the edges make a line for each ward."""


def test_noise_on_edges_without_a_circle_lies_on_totals_and_is_made_finer(records):
    explorer = exploring(records, APART)
    rough, better, bought = (
        {"kind": "marginal", "table": "people", "attributes": ["age", "ward"]}
        | {"cost": cost}
        for cost in ({"alpha": 40}, {"alpha": 20, "chosen": False}, {"epsilon": 0.5})
    )
    question = read_question(rough)
    shape = PLANNER.shape(explorer.table, question)
    best = shape.least(question.cost, 0)[0].mechanism
    assert best.strategy == "edges"
    plan = PLANNER.plan(explorer.table, question)
    assert plan.mechanism.strategy == "tree"
    names = [row["name"] for row in plan.candidates]
    assert names[:2] == ["tree", "edges"]
    assert len({*names}) == len(names)
    # The same law: cells are sums and differences of the same independent draws.
    cells = Linear(shape.policy.domain, np.eye(shape.policy.domain.size))
    shares = []
    for mechanism in (best, plan.mechanism):
        measured, _ = mechanism._predictable(cells)
        drawn = ~measured.scales.exact
        assert np.allclose(measured.scales.widths[drawn], 1 / float(plan.cost))
        spread = measured.law.spread(cells.explicit_form(measured.buckets))
        spread = spread.under(measured.scales)
        shares.append(np.array([spread.variance, spread.square, spread.largest]))
    assert np.allclose(*shares)
    explorer.ask(rough)
    told = explorer.explain(better)
    assert told["how"] == "refine"
    assert told["cost"] == told["price_missing"] < 0.75 * told["price_alone"]
    spending = PLANNER.plan(explorer.table, read_question(bought))
    assert spending.mechanism.strategy == "tree"


def test_edges_with_a_circle_keep_their_noise(monkeypatch):
    ring = bf.policies.Graph(bf.Domain(12), [[i, (i + 1) % 12] for i in range(12)])
    cells = Identity(ring.domain)
    on_edges = bf.Transformed(ring, cells, epsilon=1, partition=None, strategy="edges")
    assert planning.by_rows(on_edges) is on_edges
    assert planning.by_rows(bf.Laplace(ring, cells, epsilon=1)).name == "laplace"
    complete = bf.policies.Full(bf.Domain(12))
    many = bf.Transformed(complete, cells, epsilon=1, partition=None, strategy="edges")
    assert planning.by_rows(many) is many
    # Planted: a tree is taken for the ring. It is as private, and misses its price.
    monkeypatch.setattr(SpanningTree, "stretch", lambda *_: 1)
    taken = planning.by_rows(on_edges)
    assert taken.strategy == "tree"
    errors = [mechanism.expected_error(cells).sum() for mechanism in (on_edges, taken)]
    assert errors[1] > 1.5 * errors[0]


@pytest.mark.long
def test_a_chain_costs_its_last_level(explorer):
    prices = []
    for alpha in (40, 32, 25, 18, 12):
        told = explorer.explain(asked(alpha))
        prices.append(told["price_alone"])
        explorer.ask(asked(alpha))
    # A step of the grid above what the last question costs by itself.
    assert float(explorer.ledger.spent) <= 1.2 * prices[-1]
    assert sum(prices) > 3 * prices[-1] * 0.8
    entries = [one for one in explorer.history() if "refined" in (one.note or {})]
    levels = [one.note["refined"]["level"] for one in entries]
    assert levels == sorted(set(levels))
    assert [one.note["refined"]["chosen"] for one in entries] == [False] * len(entries)
    assert {one.version for one in entries} == {explorer.content_label()}


@pytest.mark.long
def test_what_is_made_finer_takes_no_place_among_the_sources(records, monkeypatch):
    explorer = exploring(records)
    for alpha in (40, 30, 20):
        explorer.ask(asked(alpha))
    explorer.ask(asked(40, attribute="ward"))
    placed = explorer._past.readable(explorer.table, None)
    kinds = [(entry.mechanism, place) for entry, place in placed]
    assert [name == "refiner" for name, _ in kinds] == [False, True, True, False]
    assert [place for _, place in kinds] == [1, 1, 1, 2]
    assert explorer._past.next_place(explorer.table, None) == 3
    # Of a long log the latest are listed: no place falls below its number.
    monkeypatch.setattr(past_answers, "MOST_LISTED", 2)
    late = past_answers.PastAnswers(explorer.ledger).readable(explorer.table, None)
    assert late[-1][1] >= 2


def test_what_led_to_a_question_makes_it_dearer_and_is_remembered(explorer):
    explorer.ask(asked(40))
    question = asked(33, chosen=True)
    told = explorer.explain(question)
    assert told["price_missing"] > explorer.explain(asked(33))["price_missing"]
    finer = explorer.refining.plan(explorer.canonical(question), None)
    layout = lay_out(explorer.table, explorer.canonical(question))
    reading = explorer.refining.buy(finer, layout, None)
    assert reading.holds == "any"
    # Who fixed her question reads this level as everybody does: it was chosen.
    source = explorer._past.source(explorer.table, reading.source)
    fixed = source.read(layout, Accuracy(alpha=1, chosen=False), 1)
    assert (fixed.holds, fixed.alpha) == ("any", reading.alpha)


def test_a_chosen_follow_up_is_made_finer_where_that_is_cheaper(records):
    explorer = exploring(records)
    explorer.ask(asked(40, "cumulative", chosen=True))
    spent = explorer.ledger.spent
    question = asked(36, "cumulative", chosen=True)
    told = explorer.explain(question)
    answer = explorer.ask(question)
    assert float(explorer.ledger.spent - spent) == told["cost"]
    cheaper = told["price_missing"] < told["price_alone"]
    assert (answer.mechanism == "refiner") == cheaper
    assert told["how"] == ("refine" if cheaper else "fresh")


@pytest.mark.parametrize("case", ["database", "current", "rho", "persons"])
def test_where_nobody_knows_that_records_are_the_same_it_is_refused_and_said(
    records, case
):
    table, budget, source = dict(PEOPLE), {}, records
    if case == "database":
        source = ibis.duckdb.connect()
        source.raw_sql(f"create table people as from read_csv('{records}')")
        said = "tells no version of the content"
    elif case == "current":
        table.pop("snapshot")
        said = "no frozen snapshot"
    elif case == "rho":
        budget, said = {"rho": 50}, "charges no differences"
    else:
        table |= {"attributes": [AGE], "person": "ward", "at_most": 2}
        said = "records of a person are chosen anew"
    explorer = exploring(source, table, **budget)
    if case == "persons":
        explorer.planner = Planner(EPSILON, 0)
    explorer.ask(asked(400))
    told = explorer.explain(asked(200))
    assert said in told["not_finer"]
    assert (told["price_missing"], told["how"]) == (None, "fresh")
    assert explorer.content_label() is None
    answer = explorer.ask(asked(200))
    assert told["cost"] == told["price_alone"]
    assert float(answer.budget.amount) == pytest.approx(told["cost"], rel=1e-6)


def test_ledgers_of_several_tables_and_of_auditors_refuse(records, tmp_path):
    make_recipient_keys(tmp_path / "private.pem", tmp_path / "public.pem")
    opened = exploring(
        records, ledger=tmp_path / "opened", auditor=tmp_path / "public.pem"
    )
    assert "auditor" in opened.explain(asked(40))["not_finer"]
    explorer = exploring(records)
    explorer.people = object()
    assert "share a budget" in refining.refusal(explorer)


def test_other_records_are_refused_uncharged(records):
    explorer = exploring(records)
    explorer.ask(asked(40))
    spent = explorer.ledger.spent
    write_records(records, 901)
    with pytest.raises(LedgerError, match="no longer those that the answer was drawn"):
        explorer.ask(asked(20))
    explorer.engine.close()
    with pytest.raises(LedgerError, match="Ask under a name of your own"):
        explorer.ask(asked(20))
    assert explorer.ledger.spent == spent
    # Fresh noise is drawn of the new records; only what has their content goes on.
    explorer.ask(asked(30), request="anew")
    finer = explorer.refining.plan(explorer.canonical(asked(20)), None)
    assert finer.chain.root.request == "r-anew"
    assert explorer.ask(asked(20)).mechanism == "refiner"


def test_records_that_change_while_they_are_counted_have_no_label(records, monkeypatch):
    explorer = exploring(records)
    labels = itertools.count()
    monkeypatch.setattr(explorer._labels, "now", lambda: f"label {next(labels)}")
    explorer.ask(asked(40))
    (entry,) = explorer.history()
    assert entry.version == ""
    assert explorer.explain(asked(20))["price_missing"] is None


def test_a_draw_that_broke_off_is_finished_and_charged_once(explorer, monkeypatch):
    explorer.ask(asked(40))

    def broken(*_, **__):
        raise OSError("no room")

    told = explorer.explain(asked(30))
    before = explorer.ledger.spent
    with monkeypatch.context() as patched:
        patched.setattr(explorer.ledger, "_keep", broken)
        with pytest.raises(OSError, match="no room"):
            explorer.ask(asked(30))
    assert float(explorer.ledger.spent - before) == told["cost"]
    # What is charged is finished for nothing, or goes on from there.
    assert explorer.explain(asked(30))["cost"] == 0
    further = explorer.explain(asked(20))
    spent = explorer.ledger.spent
    better = explorer.ask(asked(20))
    assert float(explorer.ledger.spent - spent) == further["cost"]
    assert better.mechanism == "refiner"
    assert {entry.state for entry in explorer.history()} == {"stored"}
    assert explorer.explain(asked(30))["how"] == "read"


def test_an_answer_that_was_not_noted_is_read_for_nothing(explorer, monkeypatch):
    explorer.ask(asked(40))

    def broken(*_, **__):
        raise OSError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(explorer.ledger, "keep_reading", broken)
        with pytest.raises(OSError, match="no room"):
            explorer.ask(asked(20))
    spent = explorer.ledger.spent
    assert explorer.explain(asked(20))["how"] == "read"
    explorer.ask(asked(20))
    assert explorer.ledger.spent == spent


def test_whoever_comes_second_pays_what_is_then_missing(records, tmp_path):
    path = tmp_path / "people.ledger"
    slow = exploring(records, ledger=path)
    slow.ask(asked(40))
    fast = Explorer(None, records, ledger=path, samples=0)
    plan = slow.refining.plan
    raced = []

    def overtaken(form, analyst):
        finer = plan(form, analyst)
        if not raced:
            raced.append(fast.ask(asked(30)))
        return finer

    slow.refining.plan = overtaken
    answer = slow.ask(asked(20))
    chain = [entry for entry in slow.history() if "refined" in (entry.note or {})]
    assert len(chain) == 2
    assert answer.budget == chain[-1].budget
    whole = Fraction(chain[-1].note["refined"]["epsilon"])
    assert slow.ledger.spent == whole
    # Two that want the same level share one charge.
    assert fast.ask(asked(20)).replayed


def test_a_failed_draw_is_what_its_charge_has_come_to(records, monkeypatch):
    explorer = exploring(records)
    explorer.ask(asked(40))

    def broken(*_, **__):
        raise ValueError("lost")

    with monkeypatch.context() as patched:
        patched.setattr(handle, "lowered_noise", broken)
        outcome = explorer.outcome(asked(20))
    assert isinstance(outcome, FailedAnswer)
    with pytest.raises(FailedDrawError):
        explorer.ledger.replay(outcome.request)
    # The chain ends there: the next one is drawn afresh.
    assert explorer.ask(asked(20)).mechanism != "refiner"


def test_what_cannot_be_paid_is_refused_before_anything_is_counted(
    records, monkeypatch
):
    explorer = exploring(records, epsilon="0.3")
    explorer.ask(asked(60))
    monkeypatch.setattr(explorer.engine, "counts", None)
    with pytest.raises(BudgetError, match="nothing was charged"):
        explorer.ask(asked(10))


def test_the_answers_of_others_are_made_finer_only_where_they_are_shared(records):
    for share, makes_finer in (("own", False), ("all", True)):
        explorer = exploring(records, {**PEOPLE, "share": share})
        for name in ("ann", "bob"):
            explorer.ledger.allot(name, 20)
        explorer.ask(asked(40), analyst="ann")
        told = explorer.explain(asked(20), "bob")
        assert (told["price_missing"] is not None) == makes_finer
        explorer.ask(asked(20), analyst="bob")
        spent = float(explorer.ledger.allotments()["bob"].spent)
        assert spent == pytest.approx(told["cost"])


def test_noise_on_edges_and_lists_stay_as_they_are(records):
    policies = {"age": {"kind": "threshold", "theta": 3}}
    kinds = set()
    for width in (1, 6):
        table = {**PEOPLE, "policies": policies}
        explorer = Explorer(table, records, epsilon=9, samples=0)
        question = asked(40, width=width)
        release = explorer.ledger.replay(explorer.ask(question).request)
        kinds.add(release.measurements[0].strategy.kind)
        told = explorer.explain(asked(25, width=width))
        on_edges = release.measurements[0].strategy.kind == "edge_noise"
        assert (told["price_missing"] is None) == on_edges
    assert "edge_noise" in kinds
    budget = {**asked(), "cost": {"epsilon": 0.1}}
    assert explorer.refining.plan(explorer.canonical(budget), None) is None


def test_large_answers_and_levels_beyond_the_last_are_left_alone(records, monkeypatch):
    explorer = exploring(records)
    explorer.ask(asked(40))
    form = explorer.canonical(asked(20))
    with monkeypatch.context() as patched:
        patched.setattr(refining, "HIGHEST", 1)
        assert explorer.refining.plan(form, None) is None
    with monkeypatch.context() as patched:
        patched.setattr(Refiner, "is_level", False)
        assert explorer.refining.plan(form, None) is None
    assert explorer.refining.plan(form, None) is not None
    monkeypatch.setattr(refining, "MOST_BINS", 2)
    monkeypatch.setattr(refining, "KEPT_POLICIES", 0)
    explorer.refining._policies.clear()
    assert explorer.refining.plan(form, None) is None


def test_levels_double_every_fourth_step(records):
    explorer = exploring(records)
    explorer.ask(asked(40))
    (root,) = explorer.history()
    prices = [refining.level_price(root, level) for level in range(9)]
    assert prices[0] == root.budget.amount
    assert prices[4] == 2 * prices[0]
    assert prices == sorted(prices)
    steps = [float(after / before) for before, after in itertools.pairwise(prices)]
    assert np.allclose(steps, 2**0.25, atol=1e-3)


CELLS = 600


@pytest.mark.long
@pytest.mark.parametrize("planted", [False, True])
def test_the_explorer_draws_finer_noise_given_the_first(tmp_path, monkeypatch, planted):
    """A second draw afresh would cost both levels: it knows nothing of the first."""
    if planted:
        monkeypatch.setattr(
            handle,
            "lowered_noise",
            lambda _noise, _before, after, rng: handle._draw(after, rng),
        )
    path = tmp_path / "people.csv"
    path.write_text("age\n" + "\n".join(str(at) for at in range(CELLS)) + "\n")
    cells = {"start": 0, "stop": CELLS, "width": 1}
    age = {"name": "age", "cells": cells, "outside": "clamp"}
    table = {"name": "people", "attributes": [age], "snapshot": "March"}
    explorer = Explorer(table, path, epsilon=50, samples=0)
    first = explorer.ask(asked(200))
    second = explorer.ask(asked(90))
    assert second.mechanism == "refiner"
    finer = explorer.ledger.replay(second.sources[0])
    noises = [answer.raw.reshape(-1) - 1 for answer in (first, second)]
    variance = finer.measurements[0].scales.variances[0]
    shared = float((noises[0] * noises[1]).mean())
    sigma = np.sqrt(variance * np.mean(noises[0] ** 2.0) * 2 / CELLS)
    assert (abs(shared - variance) < 4 * sigma) != planted


@pytest.mark.long
def test_the_stretch_that_stood_out_is_told_as_surely_as_promised():
    """Planted: finer noise taken for fresh misses more often than it says."""
    cells, trials, beta, level = 30, 120, 0.2, 1
    domain = bf.Domain(cells)
    attribute = {
        "name": "day",
        "cells": {"start": 0, "stop": cells, "width": 1},
        "missing": "none",
        "outside": "clamp",
    }
    table = refining_table(attribute)
    totals = read_question(
        {"kind": "cumulative", "table": "line", "attribute": "day"}
        | {"cost": {"alpha": 30}}
    )
    plan = Planner(EPSILON, 0).plan(table, totals)
    pairs = [list(pair) for pair in itertools.combinations(range(cells + 1), 2)]
    every = {"kind": "ranges", "table": "line", "attribute": "day", "ranges": pairs}
    stretches = lay_out(table, read_question({**every, "cost": {"alpha": 30}}))
    rows = rows_over(plan.layout, stretches)
    zeros = np.zeros(domain.size, dtype=np.int64)
    promised = naive = None
    missed = caught = 0
    for seed in range(trials):
        release = plan.mechanism.release(zeros, rng=seed)
        # The analyst asks again, a step of the grid finer, for what stands out.
        linear = release.estimate if release.unfitted is None else release.unfitted
        worst = int(np.argmax(np.abs(rows @ linear)))
        price = refining.STEPS[level] * plan.cost
        refiner = Refiner(release, epsilon=price, policy=plan.policy)
        finer = refiner.release(zeros, rng=trials + seed)
        error = np.abs(rows @ finer.estimate)
        if promised is None:
            source = PastRelease(None, plan.layout, replace_fresh(finer), level, True)
            promised = source.read(stretches, Accuracy(alpha=1, beta=beta), 1)
            fresh = PastRelease(None, plan.layout, replace_fresh(finer), level, False)
            alone = Accuracy(alpha=1, beta=beta, scope="per_query", chosen=False)
            naive = fresh.read(stretches, alone, 1)
        missed += bool((error > promised.half_widths).any())
        caught += bool(error[worst] > naive.half_widths[worst])
    sigma = np.sqrt(trials * beta * (1 - beta))
    assert missed <= trials * beta + 3 * sigma
    assert caught > trials * beta + 3 * sigma


def refining_table(attribute):
    from blowfish_fast.apps.explorer.catalog import as_table

    policies = {"day": {"kind": "threshold", "theta": 1}}
    return as_table({"name": "line", "attributes": [attribute], "policies": policies})


def replace_fresh(release):
    from dataclasses import replace

    return replace(release, fresh=True)


def test_labels_tell_whether_content_is_the_same_and_nothing_of_it(tmp_path, records):
    path = tmp_path / "people.ledger"
    database = Database.connect(records)
    label = ContentLabels(database, path).now()
    assert label == ContentLabels(database, path).now()
    assert label != ContentLabels(database, tmp_path / "other").now()
    assert label != ContentLabels(database, None).now()
    assert database.content() not in (None, label)
    key = tmp_path / "people.ledger.content"
    assert (key.stat().st_mode & 0o777, key.stat().st_size) == (0o600, 32)
    database.close()
    write_records(records, 5)
    other = ContentLabels(database, path).now()
    database.close()
    write_records(records)
    assert other != label == ContentLabels(database, path).now()
    key.unlink()
    assert ContentLabels(database, path).now() != label


def test_another_process_that_writes_the_key_first_is_followed(
    tmp_path, records, monkeypatch
):
    import os

    path = tmp_path / "people.ledger"
    link = os.link

    def overtaken(drafted, place):
        place.write_bytes(b"k" * 32)
        link(drafted, place)

    monkeypatch.setattr(os, "link", overtaken)
    database = Database.connect(records)
    label = ContentLabels(database, path).now()
    monkeypatch.undo()
    assert label == ContentLabels(database, path).now()
    kept = sorted(one.name for one in tmp_path.glob("people.ledger*"))
    assert kept == ["people.ledger.content"]


def test_files_tell_their_content_and_connections_none(tmp_path, records, monkeypatch):
    con = ibis.duckdb.connect(str(tmp_path / "people.duckdb"))
    con.raw_sql(f"create table people as from read_csv('{records}')")
    con.raw_sql(f"copy people to '{tmp_path}/people.parquet'")
    con.disconnect()
    contents = set()
    for name in ("people.csv", "people.duckdb", "people.parquet"):
        database = Database.connect(tmp_path / name)
        assert database.has_content
        contents.add(database.content())
        assert database.content() in contents
    assert len(contents) == 3
    connection = Database.connect(ibis.duckdb.connect())
    assert (connection.has_content, connection.content()) == (False, None)
    # A file that changes while it is read has no content that anybody knows.
    parquet = Database.connect(tmp_path / "people.parquet")
    states = iter(["1.1;", "2.2;"])
    monkeypatch.setattr(type(parquet._source), "version", lambda _: next(states))
    assert parquet.content() is None

"""Answers of a sample, read once more as numbers of its population."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blowfish_fast.accounting.composition import EPSILON
from blowfish_fast.apps.description.tables import job_of_table
from blowfish_fast.apps.explorer import Explorer
from blowfish_fast.apps.explorer.answers_given import answer_from
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.explorer.planning import Planner
from blowfish_fast.apps.explorer.questions import read_question
from blowfish_fast.apps.explorer.samples import population_answers
from blowfish_fast.apps.explorer.samples.population_answers import (
    _Numbers,
    population_answer,
)
from blowfish_fast.errors import CatalogError, IntervalError, SizeError

ibis = pytest.importorskip("ibis", reason="pip install 'blowfish_fast[sql]'")

EVERYBODY = 20_000
WARD = {"name": "ward", "levels": ["a", "b", "c"]}
AGE = {"name": "age", "cells": {"start": 0, "stop": 80, "width": 20}}
COST = {"epsilon": 1.0}
SIMPLE = {"drawn": "simple", "population": EVERYBODY}


def described(sample=SIMPLE, **fields):
    table = {"name": "survey", "attributes": [WARD, AGE], **fields}
    return table if sample is None else {**table, "sample": sample}


def asked(kind="histogram", epsilon=2.0, **fields):
    cost = {"cost": {"epsilon": epsilon}}
    attribute = {} if "attributes" in fields else {"attribute": "ward"}
    return {"kind": kind, "table": "survey", **attribute, **fields, **cost}


SHARE = asked("share", by="ward", attribute="age", high=40, at_least=100)


@pytest.fixture
def explorer():
    database = ibis.duckdb.connect()
    ward = "['a','a','a','b','b','c'][1 + (range % 6)]"
    database.raw_sql(
        "create table survey as "
        f"select {ward} as ward, cast(range % 80 as double) as age from range(1200)"
    )
    return lambda sample=SIMPLE: Explorer(described(sample), database, epsilon=50)


@pytest.mark.long
@pytest.mark.parametrize(
    ("sample", "words", "what"),
    [
        (SIMPLE, "a simple random sample of 20,000 people", "people"),
        ({"drawn": "bernoulli", "rate": "0.06"}, "with the chance 3/50", "people"),
        ({"drawn": "poisson"}, "events that occur independently", "expected events"),
    ],
)
def test_a_count_of_records_becomes_one_of_people(explorer, sample, words, what):
    table = explorer(sample)
    answer = table.ask(asked())
    spent = table.ledger.spent
    people = population_answer(table, answer.request)
    assert people.intervals_hold == "population"
    assert people.what == what
    assert words in people.promise
    assert "Nothing here can check that" in people.promise
    assert table.ledger.spent == spent
    assert answer.intervals_hold == "truth"
    low, high = people.intervals.T
    assert (low <= people.values).all()
    assert (people.values <= high).all()
    scale = {"people": EVERYBODY / 1200, "expected events": 1.0}[what]
    assert people.values == pytest.approx(answer.values * scale, rel=0.05)
    # The draw of the sample is counted beside the noise.
    own = (answer.intervals[:, 1] - answer.intervals[:, 0]) * scale
    assert (high - low > own).all()
    (remark,) = people.remarks
    assert "comes from drawing the records" in remark
    normal = population_answer(table, answer.request, method="normal")
    assert "taken as normal" in normal.promise
    surer = population_answer(table, answer.request, confidence=0.999)
    assert (surer.intervals[:, 1] > high).all()


@pytest.mark.parametrize(
    "sample", [{"drawn": "simple"}, {"drawn": "bernoulli", "rate": "0.06"}]
)
def test_shares_of_groups_are_those_of_the_population(explorer, sample):
    table = explorer(sample)
    answer = table.ask(SHARE)
    found = population_answer(table, answer.request)
    assert found.what == answer.what
    (remark,) = found.remarks
    assert "comes from drawing the records" in remark
    assert found.values == pytest.approx(answer.values)
    low, high = found.intervals.T
    assert (low < answer.values).all()
    assert (answer.values < high).all()
    assert (high - low > answer.intervals[:, 1] - answer.intervals[:, 0]).all()
    assert "noise exactly" not in found.promise
    normal = population_answer(table, answer.request, method="normal")
    assert "noise exactly" in normal.promise
    assert (np.diff(normal.intervals) <= np.diff(found.intervals)).all()


def test_what_needs_a_number_of_people_that_nobody_stated_is_refused(explorer):
    imagined, counted = explorer({"drawn": "simple"}), explorer()
    answer = imagined.ask(asked())
    with pytest.raises(IntervalError, match="a superpopulation has no number"):
        population_answer(imagined, answer.request)
    share = counted.ask(SHARE)
    with pytest.raises(IntervalError, match="how many people the group has"):
        population_answer(counted, share.request, method="exact")
    # Taken as normal, the draw needs no such number.
    people = population_answer(counted, share.request)
    assert "noise exactly" in people.promise


def test_a_table_of_two_columns_is_turned_as_it_was_asked(explorer):
    table = explorer()
    question = {
        "kind": "histogram2d",
        "table": "survey",
        "attributes": ["age", "ward"],
        "cost": {"epsilon": 5.0},
    }
    answer = table.ask(question)
    people = population_answer(table, answer.request)
    assert people.values.shape == answer.values.shape == (4, 3)
    assert people.intervals.shape == (4, 3, 2)
    assert people.values == pytest.approx(answer.values * EVERYBODY / 1200, rel=0.3)


def test_what_is_not_granted_is_refused_with_the_reason(explorer, monkeypatch):
    plain = explorer(None)
    answer = plain.ask(asked())
    with pytest.raises(IntervalError, match="does not say how its records") as refused:
        population_answer(plain, answer.request)
    assert refused.value.code == "no_sampling_design"
    table = explorer()
    total = table.ask(asked("sum", attribute="age", by="ward"))
    with pytest.raises(IntervalError, match="of the kind sum"):
        population_answer(table, total.request)
    quarters = table.ask(asked("quantiles", attribute="age", q=[0.5]))
    with pytest.raises(IntervalError, match="of quantiles and sums a release"):
        population_answer(table, quarters.request)
    with pytest.raises(IntervalError, match="one that follows from others, or is none"):
        population_answer(table, "nothing")
    rough = {**asked(), "cost": {"epsilon": 1.0, "mechanism": "dawa"}}
    adapted = table.ask(rough)
    if adapted.intervals_hold != "truth":
        with pytest.raises(IntervalError):
            population_answer(table, adapted.request)
    counted = table.ask(asked())
    monkeypatch.setattr(population_answers, "MOST_NUMBERS", 2)
    with pytest.raises(SizeError, match="Ask for coarser bins"):
        population_answer(table, counted.request)


def test_answers_that_were_made_finer_or_read_name_what_has_intervals(tmp_path):
    path = tmp_path / "survey.csv"
    rows = (f"{'aaabbc'[at % 6]},{at % 80}" for at in range(1200))
    path.write_text("\n".join(["ward,age", *rows]) + "\n")
    table = Explorer(described(snapshot="March"), path, epsilon=50, samples=0)

    def within(alpha, **more):
        cost = {"alpha": alpha, "beta": 0.05, "chosen": False}
        return {**asked("histogram", attribute="age", **more), "cost": cost}

    first = table.ask(within(60))
    # What is read from fresh noise names the answer that has intervals.
    read = table.ask(within(130, width=2))
    with pytest.raises(IntervalError, match="it names as its sources"):
        population_answer(table, read.request)
    assert read.sources == (first.request,)
    assert population_answer(table, first.request).intervals_hold == "population"
    finer = table.ask(within(30))
    assert finer.mechanism == "refiner"
    # Neither by its own name nor by that of its source, whose noise is no fresh one.
    for request in (finer.request, *finer.sources):
        with pytest.raises(IntervalError, match="one that was made finer") as refused:
            population_answer(table, request)
        assert "under a name of its own" in str(refused.value)
    fresh = table.ask(within(30), request="mine")
    people = population_answer(table, fresh.request)
    assert people.intervals_hold == "population"
    assert people.intervals.shape == (4, 2)


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        ({"drawn": "cluster"}, "varies by its clusters"),
        ({"drawn": "raked"}, "afterwards, which is free"),
        ({"drawn": "stratified"}, "takes column and population"),
        ({"drawn": "bernoulli"}, "takes rate; received nothing else"),
        ({"drawn": "poisson", "population": 9}, "takes nothing else"),
        ({"drawn": "bernoulli", "rate": 2}, "between 0 and 1"),
        ({"drawn": "simple", "rate": 0.5}, "takes population and replacement"),
    ],
)
def test_samples_without_a_law_are_refused(sample, reason):
    with pytest.raises(CatalogError, match=reason):
        as_table(described(sample))


def test_a_sample_of_persons_with_several_records_is_refused():
    with pytest.raises(CatalogError, match="one record each"):
        as_table(described(person="who", at_most=3))


def test_the_description_keeps_the_sample_and_a_release_takes_it():
    table = as_table(described())
    assert as_table(json.loads(json.dumps(table.to_dict()))) == table
    assert job_of_table(described())["sample"] == SIMPLE
    assert "sample" not in job_of_table(described(None))


@pytest.mark.long
@pytest.mark.parametrize("method", ["exact", "normal"])
def test_intervals_miss_the_population_no_more_than_they_say(method):
    """450 numbers: at most .05 and 3 sigma of them may be missed."""
    table = as_table(described({"drawn": "simple", "population": 5_000}))
    question = read_question(asked(epsilon=1.0))
    plan = Planner(EPSILON, 0).plan(table, question)
    true = np.array([3_000, 1_500, 500])
    rng = np.random.default_rng(38)
    draws, missed, alone = 150, 0, 0
    for _ in range(draws):
        sample = rng.multivariate_hypergeometric(true, 500)
        counts = np.append(sample, np.zeros(plan.policy.domain.size - 3)).astype(int)
        release = plan.mechanism.release(counts)
        numbers = _Numbers(plan, release.sampled(table.sample.design()), None)
        low, high = numbers.bounds(0.95, method).T[:, :3]
        missed += int(((true < low) | (true > high)).sum())
        kept = 10 * release.intervals(plan.workload, 0.95, of="truth")[:3]
        alone += int(((true < kept[:, 0]) | (true > kept[:, 1])).sum())
    allowed = 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / (3 * draws))
    assert missed / (3 * draws) <= allowed
    # Whoever takes the noise for the whole error misses more.
    assert alone / (3 * draws) > 2.0 * allowed


@pytest.mark.long
def test_shares_miss_the_population_no_more_than_they_say():
    """Two groups of a superpopulation, 200 draws: Lemma PN4 with two noisy numbers."""
    table = as_table(described({"drawn": "simple"}))
    plan = Planner(EPSILON, 0).plan(table, read_question({**SHARE, "cost": COST}))
    rng, draws, missed, alone = np.random.default_rng(39), 200, 0, 0
    true = np.array([0.3, 0.6, 0.5])
    for _ in range(draws):
        such = rng.binomial([200, 100, 100], true)
        counts = np.zeros(plan.policy.domain.size, dtype=int)
        counts[:6] = np.stack([such, [200, 100, 100] - such], axis=1).reshape(-1)
        release = plan.mechanism.release(counts)
        numbers = _Numbers(plan, release.sampled(table.sample.design()), None)
        low, high = numbers.bounds(0.95, None).T
        missed += int(((true < low) | (true > high)).sum())
        answer = answer_from(plan, release, "planted")
        low, high = answer.intervals.reshape(-1, 2).T
        alone += int(((true < low) | (true > high)).sum())
    allowed = 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / 600)
    assert missed / 600 <= allowed
    # Planted: intervals of the sample's own shares, given for those of everybody.
    assert alone / 600 > allowed

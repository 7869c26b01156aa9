"""Answers of a sample of strata, or with weights, as numbers of the population."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from blowfish_fast.accounting.composition import EPSILON
from blowfish_fast.apps.description.tables import job_of_table
from blowfish_fast.apps.explorer import Explorer
from blowfish_fast.apps.explorer.amounts import places_of
from blowfish_fast.apps.explorer.answers_given import answer_from
from blowfish_fast.apps.explorer.catalog import as_table
from blowfish_fast.apps.explorer.layout import lay_out
from blowfish_fast.apps.explorer.planning import Planner
from blowfish_fast.apps.explorer.questions import read_question
from blowfish_fast.apps.explorer.samples.population_answers import (
    _added_up,
    _Numbers,
    bin_classes,
    population_answer,
    sample_words,
)
from blowfish_fast.errors import CatalogError, IntervalError
from blowfish_fast.release.sampling import ratios
from blowfish_fast.release.sampling.designs import Simple

ibis = pytest.importorskip("ibis", reason="pip install 'blowfish_fast[sql]'")

REGION = {"name": "region", "levels": ["north", "south"], "extras_joined": "apart"}
AGE = {"name": "age", "cells": {"start": 0, "stop": 80, "width": 20}}
WARD = {"name": "ward", "levels": ["a", "b", "c"]}
HELD = {"region": {"kind": "blocks", "blocks": [["north"], ["south"]]}}
SIZES = {"north": 3_000, "south": 90_000}
STRATA = {"drawn": "stratified", "column": "region", "population": SIZES}
WEIGHTS = {"drawn": "weighted", "column": "region", "weights": [10.0, 225.0]}


def described(sample=STRATA, policies=HELD, **fields):
    attributes = [AGE, REGION, WARD]
    table = {"name": "survey", "attributes": attributes, "policies": policies, **fields}
    return {**table, "sample": sample}


def asked(*names, kind="marginal", epsilon=2.0, **fields):
    axes = (
        {"attributes": list(names)} if kind == "marginal" else {"attribute": names[0]}
    )
    cost = {"epsilon": epsilon}
    return {"kind": kind, "table": "survey", **axes, **fields, "cost": cost}


@pytest.fixture
def explorer():
    """300 records of the north, 400 of the south; ages and wards go round."""
    database = ibis.duckdb.connect()
    region = "case when range < 300 then 'north' else 'south' end"
    ward = "['a','a','b','b','b','c'][1 + (range % 6)]"
    database.raw_sql(
        f"create table survey as select {region} as region, {ward} as ward, "
        "cast((range * 7) % 80 as double) as age from range(700)"
    )
    return lambda sample=STRATA, **fields: Explorer(
        described(sample, **fields), database, epsilon=50
    )


STANDS_FOR = {"stratified": [10.0, 225.0], "weighted": [10.0, 225.0]}


@pytest.mark.parametrize("sample", [STRATA, WEIGHTS])
def test_each_record_stands_for_the_people_of_its_class(explorer, sample):
    table = explorer(sample)
    answer = table.ask(asked("region", "age"))
    spent = table.ledger.spent
    people = population_answer(table, answer.request)
    assert table.ledger.spent == spent
    assert people.what == "people"
    assert people.intervals_hold == "population"
    assert "Nothing here can check that" in people.promise
    # As it was asked: regions are the rows.
    each = np.array(STANDS_FOR[sample["drawn"]])[:, None]
    # A fit has made the counts consistent before they are scaled.
    assert people.values == pytest.approx(answer.values * each, rel=0.02)
    low, high = np.moveaxis(people.intervals, -1, 0)
    assert (low <= people.values).all()
    assert (people.values <= high).all()
    own = answer.intervals[..., 1] - answer.intervals[..., 0]
    assert (high - low > own * each).all()
    bounded = population_answer(table, answer.request, method="exact")
    assert (bounded.intervals[..., 1] >= high).all()
    assert "noise exactly" in people.promise
    assert "noise exactly" not in bounded.promise


@pytest.mark.parametrize("sample", [STRATA, WEIGHTS])
def test_classes_are_added_up_for_whoever_asks_for_everybody(explorer, sample):
    table = explorer(sample)
    answer = table.ask(asked("region", "age"))
    apart = population_answer(table, answer.request)
    people = population_answer(table, answer.request, together=True)
    assert [axis["attribute"] for axis in people.axes] == ["age"]
    assert people.values == pytest.approx(apart.values.sum(axis=0))
    assert people.intervals.shape == (4, 2)
    low, high = people.intervals.T
    assert (low <= people.values).all()
    assert (people.values <= high).all()
    # Errors of strata partly cancel: narrower than the sum of both, wider than one.
    widths = apart.intervals[..., 1] - apart.intervals[..., 0]
    assert (high - low < widths.sum(axis=0)).all()
    assert (high - low > 0.9 * widths.max(axis=0)).all()
    (remark,) = people.remarks
    assert "comes from drawing the records" in remark


def test_three_columns_keep_their_order_when_strata_are_added_up(explorer):
    table = explorer()
    answer = table.ask(asked("ward", "region", "age"))
    apart = population_answer(table, answer.request)
    people = population_answer(table, answer.request, together=True)
    assert [axis["attribute"] for axis in people.axes] == ["ward", "age"]
    assert people.values == pytest.approx(apart.values.sum(axis=1))
    assert people.intervals.shape == (3, 4, 2)
    strata = table.ask(asked("region", kind="histogram"))
    everybody = population_answer(table, strata.request, together=True)
    # Nothing varies: sizes of strata are what was stated.
    assert everybody.values.tolist() == [93_000.0]
    assert everybody.intervals.tolist() == [[93_000.0, 93_000.0]]


def test_records_that_fail_a_filter_stay_in_their_stratum(explorer):
    table = explorer()
    of_wards = [{"attribute": "ward", "values": ["a", "b"]}]
    question = asked("age", "region", filters=of_wards, epsilon=20.0)
    layout = lay_out(table.table, table.canonical(question))
    # Eight bins are shown; what else there is, is apart by region.
    design = table.table.sample.design()
    classes = bin_classes(layout, design)
    assert classes.levels == ("north", "south")
    failing = classes.numbers[layout.labels.max() - 2 :]
    assert sorted(failing.tolist()) == [0, 1, 2]
    answer = table.ask(question)
    people = population_answer(table, answer.request)
    assert people.values == pytest.approx(answer.values * [10.0, 225.0], rel=0.02)
    # All of the stratum were drawn, not those alone who pass.
    both = population_answer(table, answer.request, together=True)
    assert both.values.sum() == pytest.approx(93_000 * 5 / 6, rel=0.05)


def test_without_strata_what_fails_is_one_bin(explorer):
    plain = as_table({**described(), "sample": None})
    of_wards = [{"attribute": "ward", "values": ["a", "b"]}]
    question = read_question(asked("age", "region", filters=of_wards))
    assert (
        lay_out(plain, question).bins
        == lay_out(as_table(described()), question).bins - 2
    )
    assert lay_out(plain, question).strata_axis is None


def test_an_answer_without_the_strata_says_what_to_ask(explorer):
    table = explorer()
    ages = table.ask(asked("age", kind="histogram"))
    with pytest.raises(
        IntervalError, match="answers that show each of them"
    ) as refused:
        population_answer(table, ages.request)
    assert "\"attributes\": ['age', 'region']" in str(refused.value)
    share = asked("region", kind="share", by="age", values=["north"], at_least=100)
    counted = table.ask(share)
    with pytest.raises(IntervalError, match="Ask for counts by region"):
        population_answer(table, counted.request)
    of_wards = asked("ward", kind="share", by="age", values=["a"], at_least=100)
    with pytest.raises(IntervalError, match="answers that show each") as refused:
        population_answer(table, table.ask(of_wards).request)
    assert "\"by\": ['age', 'region']" in str(refused.value)
    both = table.ask(asked("age", "region", kind="marginal"))
    running = {**asked("age", kind="cumulative")}
    with pytest.raises(IntervalError, match="answers that show each of them"):
        population_answer(table, table.ask(running).request)
    assert population_answer(table, both.request).values.shape == (4, 2)


def test_missing_values_are_of_no_stratum(explorer):
    table = explorer()
    answer = table.ask(asked("region", kind="histogram", missing=True))
    with pytest.raises(IntervalError, match="of none of the strata"):
        population_answer(table, answer.request)


def test_nothing_is_added_up_where_all_records_stand_for_as_many(explorer):
    table = explorer({"drawn": "simple", "population": 93_000})
    answer = table.ask(asked("age", "region"))
    with pytest.raises(IntervalError, match="Leave together out"):
        population_answer(table, answer.request, together=True)


def test_strata_whose_sizes_are_secret_have_no_intervals(explorer):
    whole = explorer(policies={})
    answer = whole.ask(asked("age", "region"))
    with pytest.raises(IntervalError, match="must be public") as refused:
        population_answer(whole, answer.request)
    assert '"blocks": [["north"], ["south"]]' in str(refused.value)
    words = "no interval of counts follows from it while region is secret"
    assert words in sample_words(whole.table)
    assert "secret" not in sample_words(as_table(described()))
    # What is missing is joined to every region: it could have come from any of them.
    joined = {**REGION, "extras_joined": "all"}
    table = as_table({**described(), "attributes": [AGE, joined, WARD]})
    assert "secret" in sample_words(table)
    # Weights need no public sizes.
    weighed = explorer(WEIGHTS, policies={})
    counted = weighed.ask(asked("age", "region"))
    assert population_answer(weighed, counted.request).intervals.shape == (4, 2, 2)
    assert "secret" not in sample_words(weighed.table)


SHARES = asked("ward", kind="share", by=["region"], values=["a"], at_least=100)
MEANS = asked("age", kind="mean", by=["region"], at_least=100)


@pytest.mark.parametrize("question", [SHARES, MEANS], ids=["share", "mean"])
@pytest.mark.parametrize("sample", [STRATA, WEIGHTS], ids=["strata", "weights"])
def test_shares_and_means_of_each_class_are_those_of_its_people(
    explorer, sample, question
):
    table = explorer(sample)
    answer = table.ask(question)
    people = population_answer(table, answer.request)
    assert (people.what, people.unit) == (answer.what, answer.unit)
    assert people.intervals_hold == "population"
    assert "noise exactly" in people.promise
    assert people.values == pytest.approx(answer.values, rel=0.05)
    low, high = people.intervals.T
    assert (low < answer.intervals[:, 0]).all()
    assert (high > answer.intervals[:, 1]).all()
    assert "comes from drawing the records" in people.remarks[0]
    bounded = people.remarks[1:]
    assert ["at its largest" in words for words in bounded] == [True] * (
        question is MEANS
    )
    with pytest.raises(IntervalError, match="no exact law is known"):
        population_answer(table, answer.request, method="exact")


@pytest.mark.parametrize("question", [SHARES, MEANS], ids=["share", "mean"])
def test_shares_and_means_are_added_up_by_weights_and_never_over_strata(
    explorer, question
):
    weighed = explorer(WEIGHTS, policies={})
    answer = weighed.ask(question)
    apart = population_answer(weighed, answer.request)
    both = population_answer(weighed, answer.request, together=True)
    # The south has 225 people for a record, and so nearly all of the answer.
    assert both.values.shape == (1,)
    assert both.values[0] == pytest.approx(apart.values[1], rel=0.02)
    low, high = both.intervals[0]
    assert low <= both.values[0] <= high
    assert high - low < 1.1 * np.diff(apart.intervals[1])[0]
    table = explorer(STRATA)
    of_strata = table.ask(question)
    with pytest.raises(IntervalError, match="how many were drawn of each") as refused:
        population_answer(table, of_strata.request, together=True)
    assert '"kind": "marginal"' in str(refused.value)


def test_two_groupings_keep_their_order_when_weights_are_added_up(explorer):
    table = explorer(WEIGHTS)
    two = asked("age", kind="mean", by=["ward", "region"], at_least=20)
    answer = table.ask(two)
    people = population_answer(table, answer.request, together=True)
    assert [axis["attribute"] for axis in people.axes] == ["ward"]
    assert people.values.shape == (3,)
    assert people.intervals.shape == (3, 2)


def test_trimmed_weights_count_as_the_cut(explorer):
    trimmed = {**WEIGHTS, "trimmed": [100.0], "people": [3_000, 90_000]}
    table = explorer(trimmed)
    answer = table.ask(asked("age", "region"))
    people = population_answer(table, answer.request)
    assert "trimmed at 100" in people.promise
    assert people.intervals.shape == (4, 2, 2)
    low, high = np.moveaxis(people.intervals, -1, 0)
    assert (low <= people.values).all()
    assert (people.values <= high).all()
    with pytest.raises(IntervalError, match="trimmed weights"):
        population_answer(table, answer.request, method="exact")


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        ({**STRATA, "column": "planet"}, "there are"),
        ({**STRATA, "column": "age"}, "strata are the levels of a category"),
        ({**STRATA, "population": {"north": 3_000}}, "every level of 'region'"),
        ({**STRATA, "population": 93_000}, "a mapping from levels to people"),
        ({**STRATA, "population": {"north": 0, "south": 1}}, "population of"),
        ({"drawn": "stratified", "column": "region"}, "takes column and population"),
        ({"drawn": "simple", "population": SIZES}, "one number otherwise"),
        ({"drawn": "simple", "column": "region"}, "takes population and replacement"),
        ({**WEIGHTS, "weights": [10.0]}, "one weight for each of the 2 cells"),
        ({**WEIGHTS, "weights": [0.5, 2.0]}, "numbers of 1 or more"),
        ({"drawn": "weighted", "weights": [1.0, 2.0]}, "takes column and weights"),
        ({**WEIGHTS, "trimmed": [900.0]}, "between 0 and the largest weight"),
        ({"drawn": "panel"}, "drawn as one of simple, bernoulli"),
    ],
)
def test_samples_that_do_not_fit_their_table_are_refused(sample, reason):
    with pytest.raises(CatalogError, match=reason):
        as_table(described(sample))


def test_strata_of_numbers_are_named_by_their_texts():
    region = {**REGION, "levels": [1, 2]}
    sample = {**STRATA, "population": {"1": 3_000, "2": 90_000}}
    policies = {"region": {"kind": "blocks", "blocks": [[1], [2]]}}
    table = as_table({**described(sample, policies), "attributes": [AGE, region, WARD]})
    layout = lay_out(table, read_question(asked("age", "region")))
    assert bin_classes(layout, table.sample.design()).levels == ("1", "2")


@pytest.mark.parametrize("sample", [STRATA, WEIGHTS])
def test_the_description_keeps_strata_and_a_job_file_takes_them(sample):
    table = as_table(described(sample))
    assert as_table(json.loads(json.dumps(table.to_dict()))) == table
    assert job_of_table(described(sample))["sample"] == sample
    renamed = {**REGION, "column": "where"}
    stated = {**described(sample), "attributes": [AGE, renamed, WARD]}
    assert job_of_table(stated)["sample"]["column"] == "where"


@pytest.mark.long
@pytest.mark.parametrize("method", ["exact", "normal"])
@pytest.mark.parametrize("sample", [STRATA, WEIGHTS])
def test_intervals_miss_the_people_no_more_than_they_say(sample, method):
    """150 draws of four numbers of everybody: .05 and 3 sigma of them may be missed."""
    table = as_table(described(sample, attributes=[AGE, REGION]))
    planner = Planner(EPSILON, 0)
    plan = planner.plan(table, read_question(asked("age", "region", epsilon=1.0)))
    # The old live in the north, of which more were drawn.
    true = np.array([[300, 45_000], [300, 30_000], [900, 10_000], [1_500, 5_000]])
    rng, draws = np.random.default_rng(57), 150
    missed = alone = 0
    design = table.sample.design()
    classes = bin_classes(plan.layout, design)
    for _ in range(draws):
        if sample is STRATA:
            north = rng.multivariate_hypergeometric(true[:, 0], 300)
            south = rng.multivariate_hypergeometric(true[:, 1], 400)
            drawn = np.stack([north, south], axis=1)
        else:
            drawn = rng.binomial(true, [1 / 10, 1 / 225])
        cells = np.zeros(plan.policy.domain.size, dtype=np.int64)
        # What is shown comes first; nobody has missing values.
        cells[: drawn.size] = drawn.reshape(-1)
        release = plan.mechanism.release(cells)
        stated = release.sampled(Simple(93_000))
        of = _Numbers(plan, replace(release, design=design), design, classes)
        numbers, left = _added_up(of, plan.layout)
        assert left == (4,)
        low, high = numbers.bounds(0.95, method).T
        people = true.sum(axis=1)
        missed += int(((people < low) | (people > high)).sum())
        # Planted: all records taken for as many people.
        plain = _Numbers(plan, stated, stated.design)
        plain.workload = numbers.workload
        low, high = plain.bounds(0.95, None).T
        alone += int(((people < low) | (people > high)).sum())
    number = 4 * draws
    allowed = 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / number)
    assert missed / number <= allowed
    assert alone / number > 2.0 * allowed


@pytest.mark.long
@pytest.mark.parametrize("question", [SHARES, MEANS], ids=["share", "mean"])
@pytest.mark.parametrize("sample", [STRATA, WEIGHTS], ids=["strata", "weights"])
def test_shares_and_means_miss_the_people_no_more_than_they_say(sample, question):
    """150 draws: .05 and 3 sigma of the numbers may be missed."""
    table = as_table(described(sample))
    cost = {"cost": {"epsilon": 1.0}}
    plan = Planner(EPSILON, 0).plan(table, read_question({**question, **cost}))
    values = plan.layout.axes[1].asked
    # Values lie at both ends, where they vary most for their mean.
    parts = np.array([[0.3, 0.7], [0.55, 0.45]])
    true = np.zeros((2, values), dtype=np.int64)
    true[:, [0, -1]] = parts * np.array([[3_000], [90_000]])
    rng, draws = np.random.default_rng(58), 150
    missed = alone = number = 0
    design = table.sample.design()
    classes = bin_classes(plan.layout, design)
    for _ in range(draws):
        if sample is STRATA:
            drawn = np.stack(
                [
                    rng.multivariate_hypergeometric(true[0], 300),
                    rng.multivariate_hypergeometric(true[1], 400),
                ]
            )
        else:
            drawn = rng.binomial(true, [[1 / 10], [1 / 225]])
        cells = np.zeros(plan.policy.domain.size, dtype=np.int64)
        # What is shown comes first; nobody has missing values.
        cells[: drawn.size] = drawn.reshape(-1)
        release = plan.mechanism.release(cells)
        of = _Numbers(plan, replace(release, design=design), design, classes)
        people = true / true.sum(axis=1)[:, None] @ _places(question)
        low, high = of.bounds(0.95, None).T
        missed += int(((people < low) | (people > high)).sum())
        number += 2
        # Planted: intervals of the sample's own numbers, given for everybody.
        own = answer_from(plan, release, "planted").intervals
        if question is MEANS:
            # Without the half of a cell that its values may be off.
            own = own + _slack(plan) * np.array([1.0, -1.0])
        alone += int(((people < own[:, 0]) | (people > own[:, 1])).sum())
        if sample is WEIGHTS:
            numbers, _ = _added_up(of, plan.layout)
            together = true.sum(axis=0) / true.sum() @ _places(question)
            low, high = numbers.bounds(0.95, None).T
            missed += int(((together < low) | (together > high)).sum())
            number += 1
    allowed = 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / number)
    assert missed / number <= allowed
    assert alone / (2 * draws) > 2.0 * allowed


@pytest.mark.long
def test_a_rare_value_is_not_excluded_by_a_sample_without_it(monkeypatch):
    """200 draws; 24 people are such, and each is drawn with the chance 1/16."""
    heavy = {**WEIGHTS, "weights": [16.0, 4.0]}
    table = as_table(described(heavy))
    # Noise hardly counts, and hides no variance that is too small.
    question = {**SHARES, "cost": {"epsilon": 200.0}}
    plan = Planner(EPSILON, 0).plan(table, read_question(question))
    design = table.sample.design()
    classes = bin_classes(plan.layout, design)
    true = np.array([[24, 776], [0, 200]])
    share = 24 / 1_000
    rng, draws = np.random.default_rng(59), 200
    missed, planted, limit = 0, 0, ratios.FEWEST_STEPS
    for _ in range(draws):
        drawn = rng.binomial(true, [[1 / 16], [1 / 4]])
        cells = np.zeros(plan.policy.domain.size, dtype=np.int64)
        cells[:4] = drawn.reshape(-1)
        release = plan.mechanism.release(cells)
        of = _Numbers(plan, replace(release, design=design), design, classes)
        numbers, _ = _added_up(of, plan.layout)
        ends = []
        # Planted: what the sample shows is taken for the variance, however little.
        for fewest in (limit, 0.0):
            monkeypatch.setattr(ratios, "FEWEST_STEPS", fewest)
            ends.append(numbers.bounds(0.95, None)[0])
        missed += not ends[0][0] <= share <= ends[0][1]
        planted += not ends[1][0] <= share <= ends[1][1]
    allowed = 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / draws)
    assert missed / draws <= allowed
    assert planted / draws > allowed


def _places(question):
    """Return what a record of each value counts as."""
    return np.array([1.0, 0.0]) if question is SHARES else 20.0 * np.arange(4) + 10.0


def _slack(plan):
    """Return how far a value may lie from the middle of its cell."""
    return places_of(plan.layout).slack


def test_words_are_no_strata():
    names = {"name": "name", "words": {"symbols": "a-z", "longest": 4}}
    table = {**described({**STRATA, "column": "name"}), "attributes": [names, AGE]}
    with pytest.raises(CatalogError, match="holds words, which nobody listed"):
        as_table({**table, "policies": {}})

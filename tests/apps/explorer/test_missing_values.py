"""Where a missing value stands is stated, and decides what a threshold gains."""

from __future__ import annotations

import importlib.util
import itertools

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.explorer import AttributeSpec, Database, Explorer, PolicySpec
from blowfish_fast.apps.explorer.catalog import EXTRAS, TableSpec

from .engines_at_hand import ENGINES, INSTALL, NEEDS, POSTGRES

pytest.importorskip("ibis", reason="pip install 'blowfish_fast[sql]'")

CELLS = {"start": 0, "stop": 80, "width": 1}
TOTALS = {
    "kind": "cumulative",
    "table": "people",
    "attribute": "age",
    "width": 2,
    "cost": {"alpha": 40, "beta": 0.05},
}


def table(joined, theta, **attribute):
    age = {"name": "age", "cells": CELLS, **attribute}
    if joined is not None:
        age["extras_joined"] = joined
    stated = {} if theta is None else {"age": {"kind": "threshold", "theta": theta}}
    return {"name": "people", "attributes": [age], "policies": stated}


def edges_of(policy):
    cells = range(policy.domain.size)
    pairs = np.array(list(itertools.combinations(cells, 2)))
    return {tuple(pair) for pair in pairs[policy.joins(*pairs.T)].tolist()}


def expected(joined, theta, values, extras):
    """The definition: values up to theta apart, and what is said of extra cells."""
    near = {
        (u, v) for u, v in itertools.combinations(range(values), 2) if v - u <= theta
    }
    cells = itertools.combinations(range(values + extras), 2)
    if joined == "apart":
        return near
    if joined == "all":
        return near | {(u, v) for u, v in cells if v >= values}
    return {(u, v) for u, v in cells if v - u <= theta}


@pytest.mark.parametrize("joined", ["all", "end", "apart"])
@pytest.mark.parametrize("theta", [1, 2, 5])
@pytest.mark.parametrize("outside", ["clamp", "cell"])
def test_each_statement_draws_the_graph_of_its_definition(joined, theta, outside):
    spec = AttributeSpec(
        name="age",
        cells={"start": 0, "stop": 7, "width": 1},
        outside=outside,
        extras_joined=joined,
    )
    policy = PolicySpec(kind="threshold", theta=theta).over(spec)
    extras = 1 if outside == "clamp" else 2
    assert edges_of(policy) == expected(joined, theta, 7, extras)


@pytest.mark.parametrize("kind", ["full", "blocks"])
def test_values_apart_from_missing_ones_keep_their_policy(kind):
    spec = AttributeSpec(name="ward", levels=["a", "b", "c"], extras_joined="apart")
    blocks = {"blocks": [["a", "b"], ["c"]]} if kind == "blocks" else {}
    found = edges_of(PolicySpec(kind=kind, **blocks).over(spec))
    together = {(0, 1), (0, 2), (1, 2)} if kind == "full" else {(0, 1)}
    assert found == together


def test_missing_at_the_end_has_the_distance_of_the_lemma():
    spec = AttributeSpec(name="age", cells=CELLS, extras_joined="end")
    policy = PolicySpec(kind="threshold", theta=8).over(spec)
    values = np.arange(80)
    found = policy.distance(values, np.full(80, 80))
    assert found.tolist() == [-(-(80 - value) // 8) for value in values]


def test_unstated_protects_most():
    spec = AttributeSpec(name="age", cells=CELLS)
    assert spec.extras_joined == "all"
    line = PolicySpec(kind="line")
    strongest = line.over(spec)
    for weaker in ("end", "apart"):
        other = AttributeSpec(name="age", cells=CELLS, extras_joined=weaker)
        assert strongest.implies(line.over(other))
        assert not line.over(other).implies(strongest)


def test_every_statement_says_what_it_promises_and_costs():
    assert set(EXTRAS) == {"all", "end", "apart"}
    for choice in EXTRAS.values():
        assert choice.promise.endswith(".")
        assert choice.cost.endswith(".")


@pytest.mark.parametrize("joined", ["all", "end", "apart"])
@pytest.mark.parametrize(
    ("rule", "size"),
    [
        (PolicySpec(kind="line"), 8),
        (PolicySpec(kind="threshold", theta=3), 24),
        (PolicySpec(kind="threshold", theta=10, unit="value"), 10),
    ],
)
def test_promises_are_in_the_units_of_the_column_also_with_missing_values(
    joined, rule, size
):
    cells = {"start": 0, "stop": 80, "width": 8}
    spec = AttributeSpec(name="age", cells=cells, extras_joined=joined)
    words = TableSpec(name="t", attributes=[spec], policies={"age": rule}).promise()
    assert f"in age, values that differ by at most {size}" in words
    assert "missing" in words
    # What is said is in the graph: values so near lie in one cell, or in joined ones.
    values = np.arange(0, 80, 0.5)
    first, second = np.meshgrid(values, values)
    near = np.abs(first - second) <= size
    one, other = (first[near] // 8).astype(int), (second[near] // 8).astype(int)
    apart = one != other
    assert rule.over(spec).joins(one[apart], other[apart]).all()


def test_a_promise_says_what_the_numbers_of_a_column_count():
    pay = {"name": "pay", "cells": {"start": 0, "stop": 90, "width": 5}}
    rule = {"pay": {"kind": "threshold", "theta": 2}}
    spec = {**pay, "unit": "thousand a year"}
    words = TableSpec(name="t", attributes=[spec], policies=rule).promise()
    assert "in pay, values that differ by at most 10 thousand a year" in words
    with pytest.raises(ValueError, match="at least 1 character"):
        AttributeSpec(**pay, unit="")


def test_promises_about_dates_and_blocks_say_what_is_public():
    weeks = {"name": "day", "dates": ["2024-01-01", "2024-01-08", "2024-01-15"]}
    sides = {"name": "side", "levels": ["a", "b", "c"], "extras_joined": "apart"}
    rules = {
        "day": PolicySpec(kind="line"),
        "side": PolicySpec(kind="blocks", blocks=[["a", "b"], ["c"]]),
    }
    words = TableSpec(name="t", attributes=[weeks, sides], policies=rules).promise()
    assert "in day, values that differ by at most 7 days" in words
    assert "values of one block; public: which block, which are outside or" in words


def people():
    ages = np.random.default_rng(5).integers(0, 80, 600)
    return [None if at % 20 == 0 else int(age) for at, age in enumerate(ages)]


@pytest.fixture(scope="module", params=["csv", "parquet", POSTGRES])
def source(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "postgres":
        absent = [one for one in NEEDS["postgres"] if not importlib.util.find_spec(one)]
        if absent:
            pytest.skip(f"needs {', '.join(absent)}: {INSTALL['postgres']}")
        with ENGINES["postgres"](folder) as made:
            yield made
        return
    path = folder / f"people.{request.param}"
    if request.param == "csv":
        lines = ["" if age is None else str(age) for age in people()]
        path.write_text("\n".join(["age,x", *(f"{one},0" for one in lines)]))
    else:
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.table({"age": people()}), path)
    made = Database.connect(path)
    yield made
    made.close()


def price(source, joined, theta):
    explorer = Explorer(table(joined, theta), source, epsilon=9, samples=0)
    return explorer.explain(TOTALS)


@pytest.mark.long
def test_the_price_falls_with_theta_where_missing_values_are_priced_apart(source):
    whole = price(source, "end", None)["cost"]
    for joined in ("end", "apart"):
        costs = [price(source, joined, theta)["cost"] for theta in (1, 5, 20)]
        assert costs == sorted(costs)
        assert costs[0] < costs[1] < costs[2] < whole
        assert costs[0] < whole / 4


def test_joined_to_all_a_threshold_gains_at_most_half_and_explain_says_why(source):
    whole = price(source, None, None)["cost"]
    told = price(source, None, 1)
    assert told["cost"] >= whole / 2
    assert "missing age is joined to every value" in told["gain"]
    assert told["without_policy"] == pytest.approx(whole, rel=0.01)
    assert price(source, "end", 1)["gain"] is None


def test_bins_as_wide_as_the_threshold_of_all_values_gain_nothing():
    import ibis

    backend = ibis.duckdb.connect()
    backend.raw_sql("create table people (age integer not null)")
    wide = table(None, 79, missing="none")
    explorer = Explorer(wide, backend, epsilon=9, samples=0)
    assert "any two are joined" in explorer.explain(TOTALS)["gain"]


def test_how_many_are_missing_is_exact_where_that_is_public(source):
    explorer = Explorer(table("apart", 5), source, epsilon=9, samples=0)
    present = {
        "kind": "ranges",
        "table": "people",
        "attribute": "age",
        "ranges": [[0, 80]],
        "cost": {"alpha": 5, "beta": 0.05},
    }
    assert explorer.explain(present)["free"]
    closed = Explorer(table("all", 5), source, epsilon=9, samples=0)
    assert not closed.explain(present)["free"]


def test_a_mechanism_for_the_weaker_promise_is_refused_under_the_stronger():
    """Planted: what "end" allows must not pass where "all" was promised."""
    spec = AttributeSpec(name="age", cells=CELLS)
    stronger = PolicySpec(kind="line").over(spec)
    end = AttributeSpec(name="age", cells=CELLS, extras_joined="end")
    weaker = PolicySpec(kind="line").over(end)
    planted = bf.Ordered(weaker, bf.workloads.Prefixes(weaker.domain), epsilon=1)
    ledger = bf.Ledger(None, epsilon=2, policy=stronger)
    with pytest.raises(bf.errors.PolicyError):
        ledger.release(planted, np.ones(81, dtype=int))
    assert ledger.spent == 0

"""Recommendations: the table, what is known of errors, reasons, refusals."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.advice.typical_error import (
    LEAST_ERROR,
    geometric_mean,
    reference_shapes,
    typical_errors,
)
from blowfish_fast.errors import InputError, PolicyError

LINE = bf.Domain(256)
RANGES = bf.workloads.Ranges.random(LINE, 50, rng=1)
CELLS = bf.workloads.Identity(LINE)
PREFIXES = bf.workloads.Prefixes(LINE)
GRID = bf.Domain((6, 6))
BOXES = bf.workloads.Rectangles.random(GRID, 20, rng=1)
EVERYBODY = bf.policies.AddRemove(LINE)
FEW = bf.workloads.Ranges(LINE, [0, 9], [9, 99])
LONG = bf.Domain(1024)
ON_LONG = bf.workloads.Prefixes(LONG)
RING = bf.policies.Graph(LINE, [[i, (i + 1) % 256] for i in range(256)])


@pytest.mark.parametrize(
    ("policy", "asked", "name"),
    [
        (EVERYBODY, CELLS, "dawa"),
        (EVERYBODY, RANGES, "dawa"),
        (EVERYBODY, PREFIXES, "dawa"),
        (EVERYBODY, FEW, "laplace"),
        (bf.policies.Full(LINE), RANGES, "dawa"),
        (bf.policies.Full(LINE), PREFIXES, "dawa"),
        (bf.policies.Line(LINE), CELLS, "transformed"),
        (bf.policies.Line(LINE), RANGES, "ordered"),
        (bf.policies.Threshold(LINE, theta=8), RANGES, "ordered_hierarchical"),
        (bf.policies.Threshold(LINE, theta=8), CELLS, "dawa"),
        (bf.policies.Threshold(LINE, theta=3), CELLS, "transformed"),
        (bf.policies.Threshold(LINE, theta=200), RANGES, "dawa"),
        (bf.policies.Threshold(LONG, theta=40), ON_LONG, "ordered_hierarchical"),
        (bf.policies.Threshold(LONG, theta=50), ON_LONG, "dawa"),
        (bf.policies.Blocks(LINE, np.arange(256) // 8), CELLS, "ordered_hierarchical"),
        (RING, CELLS, "transformed"),
        (bf.policies.Full(GRID), BOXES, "dawa"),
        (bf.policies.Threshold(GRID, theta=1), BOXES, "transformed"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_the_table_says_which(policy, asked, name):
    advice = bf.recommend(policy, asked, epsilon="0.1")
    assert advice.best.name == name
    assert advice.best.reason in advice.because[0]
    release = advice.best.mechanism.release(np.ones(policy.domain.shape, int))
    assert release.answer(asked).shape == (asked.queries,)
    assert advice.best.mechanism.epsilon == Fraction(1, 10)


def test_tables_are_released_together():
    survey = bf.WideDomain.product(*(bf.Domain(4, names=[one]) for one in "abc"))
    asked = bf.workloads.Tables(survey, ways=2)
    advice = bf.recommend(bf.policies.AddRemove(survey), asked, epsilon=1)
    assert advice.best.name == "contingency"


def test_errors_are_predicted_only_where_nothing_is_fitted():
    advice = bf.recommend(EVERYBODY, RANGES, epsilon="0.1")
    kinds = {one.name: one.kind for one in advice}
    assert kinds == {
        "dawa": "untried",
        "ordered_hierarchical": "untried",
        "hierarchy": "untried",
        "laplace": "predicted",
    }
    table = bf.compare(EVERYBODY, RANGES, epsilon="0.1")
    assert advice["laplace"].error == pytest.approx(math.sqrt(table["cells"].mean))
    # Running totals under a tree are not fitted.
    unfitted = bf.recommend(EVERYBODY, PREFIXES, epsilon="0.1")["hierarchy"]
    mean = unfitted.mechanism.expected_total_error() / PREFIXES.queries
    assert (unfitted.kind, unfitted.error) == ("predicted", pytest.approx(mean**0.5))


def test_typical_errors_are_those_of_fitted_releases():
    seen = []
    small = bf.Domain(16)
    advice = bf.recommend(
        bf.policies.Full(small),
        bf.workloads.Identity(small),
        epsilon=1,
        records=50,
        trials=2,
        progress=lambda *step: seen.append(step),
    )
    assert advice.best.kind == "typical"
    # A shape may be met exactly by two releases.
    errors = np.maximum([*advice.best.by_shape.values()], LEAST_ERROR)
    assert advice.best.error == pytest.approx(math.exp(np.mean(np.log(errors))))
    assert [one[0] for one in seen] == list(range(len(advice) + 1))
    assert seen[-1][:2] == (len(advice), len(advice))
    assert "50 records" in " ".join(advice.because)


def test_what_was_named_is_ranked_by_typical_error():
    named = ["laplace", "dawa", "php", "uniform_grid"]
    advice = bf.recommend(EVERYBODY, RANGES, epsilon="0.1", records=2000,
                          mechanisms=named, trials=1)  # fmt: skip
    errors = [one.error for one in advice]
    assert errors == sorted(errors)
    assert {one.name for one in advice} == set(named)
    refused = bf.recommend(bf.policies.Full(GRID), BOXES, epsilon=1, records=9,
                           mechanisms=["php", "dawa"], trials=1)  # fmt: skip
    assert refused["php"].kind == "refused"
    assert refused.lines[-1].name == "php"
    assert "one ordered attribute" in refused["php"].reason
    assert "not admitted: " in str(refused)


def test_reasons_are_sentences_and_tables_are_plain():
    advice = bf.recommend(EVERYBODY, RANGES, epsilon="0.1", records=2000)
    assert all(one.endswith(".") for one in advice.because)
    text = str(advice)
    assert "untried" in text
    assert text.endswith(advice.because[-1])
    assert repr(advice).startswith("Recommendation(")
    assert advice.to_dict()["rows"][0]["error"] is None
    small = bf.Domain(16)
    policy, cells = bf.policies.AddRemove(small), bf.workloads.Identity(small)
    for records, words in ((4, "well above the 0.25"), (10**7, "gains little")):
        said = bf.recommend(policy, cells, epsilon=1, records=records).because
        assert any(words in one for one in said), said


def test_no_seed_is_taken():
    assert "rng" not in inspect.signature(bf.recommend).parameters
    assert "seed" not in inspect.signature(bf.recommend).parameters


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="records must"):
        bf.recommend(EVERYBODY, RANGES, epsilon=1, records=-1)
    with pytest.raises(InputError, match="trials must be at least 1"):
        bf.recommend(EVERYBODY, RANGES, epsilon=1, records=10, trials=0)
    for given in ({"trials": 1}, {"mechanisms": ["dawa"]}):
        with pytest.raises(InputError, match="needs records"):
            bf.recommend(EVERYBODY, RANGES, epsilon=1, **given)
    for named in ("dawa", []):
        with pytest.raises(InputError, match="a list of names"):
            bf.recommend(EVERYBODY, RANGES, epsilon=1, records=9, mechanisms=named)
    with pytest.raises(PolicyError, match="state the policy"):
        bf.recommend(RANGES, RANGES, epsilon=1)


@pytest.mark.parametrize(
    ("policy", "asked", "expected"),
    [
        (EVERYBODY, RANGES, "hierarchy"),
        (EVERYBODY, CELLS, "dawa"),
        (bf.policies.AddRemove(GRID), BOXES, "dawa"),
        (bf.policies.Line(LINE), RANGES, "ordered"),
        (bf.policies.Threshold(LINE, theta=3), CELLS, "ordered_hierarchical"),
    ],
)
def test_intervals_of_the_truth_ask_for_a_tree_or_a_certificate(
    policy, asked, expected
):
    advice = bf.recommend(policy, asked, epsilon=1, intervals="truth")
    assert advice.best.name == expected
    assert ("certify" in advice.best.reason) == (expected == "dawa")
    if expected != "dawa":
        counts = np.zeros(policy.domain.shape, dtype=int)
        release = advice.best.mechanism.release(counts, rng=1)
        assert release.holds_truth(asked).all()
    with pytest.raises(InputError, match="intervals"):
        bf.recommend(policy, asked, epsilon=1, intervals="both")


def siblings_of(policy, asked):
    """Return the ways to answer the same questions that could have been advised."""
    build = {"epsilon": "0.1"}
    siblings = [
        bf.Dawa(policy, asked, **build),
        bf.Dawa(policy, asked, partition=None, **build),
        bf.Hierarchy(policy, asked, **build),
        bf.Hierarchy(policy, asked, strategy="greedy", **build),
        bf.mechanisms.Privelet(policy, asked, **build),
    ]
    if not policy.has_bottom and policy.unconstrained.longest_edge() < LONG.size - 1:
        siblings.append(bf.mechanisms.OrderedHierarchical(policy, asked, **build))
        siblings.append(bf.Transformed(policy, asked, **build))
    return siblings


# Lines that are looked at first, of six public shapes.
@pytest.mark.long
@pytest.mark.parametrize("kind", ["cells", "ranges", "prefixes"])
@pytest.mark.parametrize(
    "policy",
    [
        bf.policies.AddRemove(LONG),
        bf.policies.Full(LONG),
        bf.policies.Line(LONG),
        bf.policies.Threshold(LONG, theta=3),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_what_is_advised_is_not_far_behind_its_siblings(policy, kind):
    asked = {
        "cells": bf.workloads.Identity(LONG),
        "ranges": bf.workloads.Ranges.random(LONG, 200, rng=3),
        "prefixes": ON_LONG,
    }[kind]
    shapes = reference_shapes(LONG, 20_000)

    def typical(mechanism, seed):
        errors = typical_errors(mechanism, shapes, trials=2, rng=seed)
        return geometric_mean(errors.values())

    advised = bf.recommend(policy, asked, epsilon="0.1").best.mechanism
    own = typical(advised, 1)
    for number, sibling in enumerate(siblings_of(policy, asked)):
        assert own <= 1.3 * typical(sibling, 10 + number), type(sibling).__name__

"""Statistics of errors: definitions, and how far edges move them, by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.measure.strategies.error_statistics import (
    PARTS,
    TOP,
    BucketShapes,
    ErrorCurve,
    ErrorQuantile,
    LargestError,
    largest_query_move,
    ramp_edges,
    whole_answers,
)
from tests.generated import example_count

LINE = bf.Domain(4)
POLICIES = {
    "presence": bf.policies.AddRemove(LINE),
    "full": bf.policies.Full(LINE),
    "line": bf.policies.Line(LINE),
    "threshold": bf.policies.Threshold(LINE, 2),
    "parts": bf.policies.Blocks(LINE, [0, 0, 1, 1]),
    "either": bf.policies.WithAbsent(bf.policies.Line(LINE)),
}
WORKLOADS = {
    "cells": bf.workloads.Identity(LINE),
    "prefixes": bf.workloads.Prefixes(LINE),
    "ranges": bf.workloads.Ranges(LINE, [0, 1, 0, 2, 1], [2, 3, 4, 4, 2]),
    "weights": bf.workloads.Linear(LINE, [[1, 0, -2, 3], [2, 2, 2, 2]]),
}


def statistics(workload, rng):
    """Statistics of a made-up release."""
    many = workload.queries
    answers = rng.integers(-20, 60, many)
    half = rng.integers(0, 40, many)
    labels = rng.integers(0, 2, many)
    ramps = [ramp_edges(5), ramp_edges(19)]
    yield ErrorQuantile(workload, answers, half, int(rng.integers(1, many + 1)))
    yield ErrorCurve(workload, answers, half, labels, ramps)
    yield LargestError(rng.normal(1, 2, 4))
    yield BucketShapes(np.array([0, int(rng.integers(1, 4)), 4]))


def edges_of(policy):
    return np.concatenate([np.asarray(one) for one in policy.edges()]).tolist()


def largest_change(statistic, policy, most=1):
    """Return the largest L1 change of the rows along an edge, over all databases."""
    worst = 0
    for counts in itertools.product(range(most + 1), repeat=LINE.size):
        for start, end in edges_of(policy):
            one, two = np.array(counts), np.array(counts)
            one[[at for at in (start,) if at >= 0]] += 1
            two[[at for at in (end,) if at >= 0]] += 1
            moved = np.abs(statistic.rows(one) - statistic.rows(two)).sum()
            worst = max(worst, int(moved))
    return worst


@pytest.mark.long
@pytest.mark.parametrize("asked", WORKLOADS.values(), ids=WORKLOADS)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_no_edge_moves_a_statistic_by_more_than_is_paid_for(policy, asked):
    rng = np.random.default_rng(7)
    for statistic in statistics(asked, rng):
        assert largest_change(statistic, policy) <= statistic.move(policy)


def test_moves_are_reached_where_one_query_decides():
    rows = ErrorQuantile(WORKLOADS["cells"], np.full(4, 800), np.zeros(4, int), 4)
    assert largest_change(rows, POLICIES["full"]) == rows.move(POLICIES["full"]) == 16
    curve = ErrorCurve(
        WORKLOADS["cells"], np.full(4, 800), np.zeros(4, int), np.array([0, 1, 0, 1]),
        [np.array([-1600, 1600])] * 2,
    )  # fmt: skip
    assert largest_change(curve, POLICIES["full"]) == curve.move(POLICIES["full"]) == 32
    assert curve.move(POLICIES["presence"]) == 16


def test_public_answers_do_not_move():
    total = bf.workloads.Total(LINE)
    assert largest_query_move(POLICIES["full"], total) == 0
    assert largest_query_move(POLICIES["presence"], total) == 1
    exact = ErrorQuantile(total, np.array([48]), np.array([0]), 1)
    scales = exact.scales(POLICIES["full"], 1)
    assert scales.exact.all()
    assert exact.cost(POLICIES["full"], scales) == 0


@settings(deadline=None, max_examples=example_count(60))
@given(st.lists(st.integers(0, 50), min_size=4, max_size=4), st.integers(0, 2**30))
def test_statistics_equal_their_definitions(counts, seed):
    rng, counts = np.random.default_rng(seed), np.array(counts)
    asked = WORKLOADS["ranges"]
    quantile, curve, largest, shapes = statistics(asked, rng)
    true = np.asarray(asked.answer(counts))
    off = np.abs(quantile.answers - PARTS * true) + 1 - quantile.half
    assert quantile.rows(counts).tolist() == [np.sort(off)[quantile.rank - 1]]
    found = iter(curve.rows(counts).tolist())
    for label, ramp in enumerate(curve.ramps):
        for low, high in itertools.pairwise(ramp.tolist()):
            mine = off[curve.labels == label]
            assert next(found) == sum(min(max(v - low, 0), high - low) for v in mine)
    errors = [
        PARTS * abs(largest.estimate[a:b].sum() - counts[a:b].sum())
        for a, b in itertools.combinations(range(5), 2)
    ]
    (bound,) = largest.rows(counts)
    assert max(errors) <= bound <= max(errors) + 4
    for bucket, shape in enumerate(shapes.rows(counts)):
        mine = counts[shapes.edges[bucket] : shapes.edges[bucket + 1]]
        even = mine.sum() * np.arange(1, mine.size + 1) / mine.size
        worst = np.abs(np.cumsum(mine) - even).max()
        assert shape == np.ceil(round(worst, 9))


def test_shapes_stay_exact_where_products_would_overflow():
    counts = np.zeros(2**20, dtype=np.int64)
    counts[0] = 2**50
    (shape,) = BucketShapes(np.array([0, counts.size])).rows(counts)
    assert shape == 2**50 - 2**30


def test_a_grid_is_held_by_its_rounded_running_sums():
    rng = np.random.default_rng(3)
    estimate, counts = rng.normal(5, 9, (6, 5)), rng.integers(0, 9, (6, 5))
    (bound,) = LargestError(estimate).rows(counts.reshape(-1))
    off = estimate - counts
    worst = max(
        abs(off[a:b, c:d].sum())
        for a, b in itertools.combinations(range(7), 2)
        for c, d in itertools.combinations(range(6), 2)
    )
    assert PARTS * worst <= bound <= PARTS * worst + 6


@pytest.mark.parametrize("step", [1, 16, 500])
def test_ramps_rise_without_gaps_to_the_top(step):
    edges = ramp_edges(step)
    assert edges[:2].tolist() == [-step, 0]
    assert (np.diff(edges) >= step).all()
    assert edges[-2] < TOP <= edges[-1]


def test_answers_beyond_floats_move_by_one_record():
    row = [[2**20, 2**20, -(2**20), 1]]
    asked = bf.workloads.Linear(LINE, row) | bf.workloads.Sum(LINE, row[0])
    counts = np.array([2**35 + 1, 2**33, 3, 5])
    exact = sum(one * two for one, two in zip(row[0], counts.tolist(), strict=True))
    assert whole_answers(asked, counts).tolist() == [exact, exact]
    statistic = ErrorQuantile(asked, np.zeros(2, int), np.zeros(2, int), 1)
    more = counts + np.array([0, 0, 0, 1])
    assert (statistic.rows(more) - statistic.rows(counts)).tolist() == [PARTS]

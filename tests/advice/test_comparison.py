"""The table of predicted errors."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.advice import comparison
from blowfish_fast.advice.comparison import Comparison, Prediction
from blowfish_fast.errors import DomainError, EpsilonError, PolicyError, SizeError
from blowfish_fast.measure.strategies.strategy_choice import NAMES
from blowfish_fast.mechanisms.registry import MECHANISMS

LINE = bf.Domain(40)
RANGES = bf.workloads.AllRanges(LINE)
CELLS = bf.workloads.Identity(LINE)


def test_every_strategy_and_mechanism_is_listed_once():
    table = bf.compare(bf.policies.Threshold(LINE, 4), RANGES, epsilon=0.1)
    names = [one.name for one in table]
    assert len(set(names)) == len(names) == len(table)
    assert set(NAMES) | {"queries", "dawa"} <= set(names)
    assert "kmeans" not in names
    assert {"laplace", "transformed"}.isdisjoint(names)
    assert set(names) - set(NAMES) - {"queries"} <= set(MECHANISMS)


def test_the_best_comes_first_and_is_ready_to_release():
    table = bf.compare(bf.policies.Threshold(LINE, 12), RANGES, epsilon=0.1)
    admitted = [one for one in table if one.admissible]
    totals = np.array([one.total for one in admitted])
    # Ties in all but the last digits keep their own order.
    assert (totals[1:] >= totals[:-1] * (1 - 1e-9)).all()
    assert table.best is admitted[0]
    release = table.best.mechanism.release(np.arange(40), rng=1)
    assert release.answer(RANGES).shape == (RANGES.queries,)


@pytest.mark.parametrize(
    "policy",
    [
        bf.policies.Line(LINE),
        bf.policies.Full(LINE),
        bf.policies.AddRemove(LINE),
        bf.policies.Blocks(LINE, np.arange(40) // 9),
        bf.policies.Graph(LINE, [[0, 39], [1, -1], [2, 3]]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("workload", [CELLS, RANGES], ids=["cells", "ranges"])
def test_predictions_are_those_of_the_mechanisms(policy, workload):
    for one in bf.compare(policy, workload, epsilon=0.3):
        if not one.admissible:
            assert one.reason
            assert one.total == one.mean == math.inf
            continue
        assert one.mean == pytest.approx(one.total / workload.queries)
        try:
            expected = one.mechanism.expected_total_error()
        except SizeError:
            expected = one.mechanism.expected_error().sum()
        assert one.total == pytest.approx(expected, rel=1e-9), one.name


@pytest.mark.long
@pytest.mark.parametrize("kind", [bf.workloads.AllRanges, bf.workloads.Prefixes])
def test_no_threshold_promises_more_error_than_all_moves_do(kind):
    # What is planned for all moves serves every threshold.
    line = bf.Domain(100)
    asked = kind(line)
    full = bf.compare(bf.policies.Full(line), asked, epsilon=1, hurried=True).best
    for theta in (26, 37, 61, 98):
        policy = bf.policies.Threshold(line, theta=theta)
        best = bf.compare(policy, asked, epsilon=1, hurried=True).best
        assert best.mean <= full.mean * (1 + 1e-9), (theta, best.name)
        assert best.mechanism.policy == policy


def test_line_policies_rank_as_the_theory_says():
    table = bf.compare(bf.policies.Line(LINE), CELLS, epsilon=0.01)
    # ALGORITHMS section 4: 4 against 8 in the limit of large noise.
    assert table["ordered"].mean * 0.01**2 == pytest.approx(4 * 39 / 40, rel=1e-3)
    assert table["cells"].mean * 0.01**2 == pytest.approx(8 * 39 / 40, rel=1e-3)
    assert table["edges"].total == pytest.approx(table["tree"].total)
    assert table.best.name == "ordered"


def test_grids_have_edge_lines_and_trees_along_a_curve():
    grid = bf.Domain((8, 8))
    asked = bf.workloads.Rectangles.random(grid, 30, rng=1)
    table = bf.compare(bf.policies.Threshold(grid, 1), asked, epsilon=0.1)
    assert table["edge_lines"].admissible
    assert table["edge_lines"].total <= table["edges"].total * (1 + 1e-9)
    assert table["tuned_tree"].admissible
    assert "one ordered attribute" in table["ordered"].reason
    dense = bf.compare(bf.policies.Full(grid), asked, epsilon=0.1)
    assert "grid of two attributes" in dense["edge_lines"].reason
    assert dense["edge_lines"].mechanism is None


def test_constraints_raise_every_error_alike():
    line = bf.Domain(6)
    free = bf.policies.Full(line)
    masks = [[True, True, False, False, False, False]]
    bound = free.with_constraints(bf.policies.CountConstraints(line, masks))
    cells = bf.workloads.Identity(line)
    loose = bf.compare(free, cells, epsilon=0.01)
    tight = bf.compare(bound, cells, epsilon=0.01)
    factor = bound.group_size
    assert factor > 1
    grown = tight["cells"].total / loose["cells"].total
    assert grown == pytest.approx(factor**2, rel=1e-3)


def test_the_table_reads_well_and_its_rows_are_plain_data():
    table = bf.compare(bf.policies.Line(LINE), RANGES, epsilon=0.1)
    text = str(table)
    lines = text.splitlines()
    assert "eps = 0.1" in lines[0]
    assert lines[1].split() == ["mechanism", "mean", "squared", "error", "x", "best"]
    assert lines[2].startswith("ordered")
    assert lines[2].endswith("1.00")
    assert "edge_lines" in text
    assert "not admitted: edge lines need a grid" in text
    assert "dawa" in text
    assert "depends on the data" in text
    assert max(len(line) for line in lines) < 140
    assert "best: ordered" in repr(table)
    rows = json.loads(json.dumps(table.rows))
    assert rows[0]["name"] == "ordered"
    assert rows[0]["times_best"] == 1.0
    by_name = {row["name"]: row for row in rows}
    assert by_name["dawa"]["data_dependent"]
    assert by_name["dawa"]["total"] is None
    with pytest.raises(KeyError):
        _ = table["nothing"]


def test_a_policy_without_edges_costs_nothing():
    table = bf.compare(bf.policies.Graph(LINE, []), CELLS, epsilon=1)
    assert table.best.total == 0.0
    assert "1.00" in str(table)
    worse = Comparison(
        [
            Prediction("free", 0.0, 0.0, None, False, ""),
            Prediction("dear", 1.0, 1.0, None, False, ""),
        ],
        "two",
    )
    assert worse.rows[1]["times_best"] == math.inf


def test_what_does_not_fit_is_refused():
    with pytest.raises(DomainError, match="share one domain"):
        bf.compare(bf.policies.Line(bf.Domain(5)), CELLS, epsilon=1)
    with pytest.raises(PolicyError, match="state the policy"):
        bf.compare(CELLS, CELLS, epsilon=1)
    with pytest.raises(EpsilonError):
        bf.compare(bf.policies.Line(LINE), CELLS, epsilon=0)


def test_graphs_too_dense_to_hold_are_named_with_their_size():
    large = bf.Domain(2**14)
    table = bf.compare(bf.policies.Full(large), bf.workloads.Identity(large), epsilon=1)
    assert "134,209,536 edges" in table["edges"].reason
    assert "134,209,536 edges" in table["tree"].reason
    assert "cells" in table["tree"].reason
    assert table["cells"].admissible


def test_no_more_edges_are_listed_for_a_comparison_than_where_it_is_hurried():
    line = bf.Domain(2**12)
    asked = bf.workloads.Ranges.random(line, 20, rng=1)
    table = bf.compare(bf.policies.Full(line), asked, epsilon=1)
    assert "8,386,560 edges" in table["tree"].reason
    assert table["tuned_tree"].admissible


def test_noise_on_the_queries_alone_wins_only_if_a_person_listed_them():
    grid = bf.Domain((16, 16))
    policy = bf.policies.AddRemove(grid)
    sample = bf.workloads.Rectangles.random(grid, 4, rng=1)
    listed = bf.workloads.Rectangles(grid, sample.starts, sample.ends)
    assert (sample.declared, listed.declared) == (False, True)
    assert bf.compare(policy, listed, epsilon=1).best.name == "queries"
    table = bf.compare(policy, sample, epsilon=1)
    assert table["queries"].mechanism is None
    assert "stand for what may be asked" in table["queries"].reason
    answered = table.best.mechanism.release(np.ones((16, 16), int), rng=1)
    other = bf.workloads.Rectangles.random(grid, 9, rng=2)
    assert np.isfinite(answered.intervals(other, of="noise")).all()
    named = bf.compare(policy, sample, epsilon=1, mechanisms=["queries", "cells"])
    assert named["queries"].admissible


def test_queries_are_weighed_in_a_hurry_where_they_hold_few_cells(monkeypatch):
    asked = bf.workloads.Ranges(LINE, [0, 10], [10, 30])

    def weighed(**options):
        terms = {"epsilon": 1, "mechanisms": ["queries"], **options}
        return bf.compare(bf.policies.Full(LINE), asked, **terms)["queries"]

    monkeypatch.setattr(comparison, "FEW_COEFFICIENTS", 30)
    assert weighed(hurried=True).admissible
    monkeypatch.setattr(comparison, "FEW_COEFFICIENTS", 29)
    assert "too many cells to be weighed in a hurry" in weighed(hurried=True).reason
    assert weighed().admissible


def test_a_union_with_a_sample_is_a_sample():
    line = bf.Domain(8)
    sample = bf.workloads.Ranges.random(line, 3, rng=1)
    assert not (bf.workloads.Total(line) | sample).declared
    assert (bf.workloads.Total(line) | bf.workloads.Identity(line)).declared
    assert not bf.workloads.Ranges.clustered(line, 3, rng=1).declared
    assert "declared" not in sample.to_dict()

"""Noise on edges as queries see it: listed, and in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import blowfish_fast as bf
import blowfish_fast.measure.strategies.edge_cuts as edge_cuts
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import SizeError
from blowfish_fast.measure.strategies import EdgeNoise
from blowfish_fast.measure.strategies.edge_cuts import (
    as_runs,
    cut_spread,
    cut_variance,
)
from blowfish_fast.workloads import Pieces
from tests.generated import example_count
from tests.reference import cut_variance as reference
from tests.reference.forms import dense_form
from tests.reference.policy_examples import on_a_line

EDGES = np.array([0, 2, 3, 7, 8])
HEADS, TAILS = np.array([0, 2, 3, 1]), np.array([1, 0, -1, 3])
VARIANCES, WIDTHS = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 1.0, 2.0, 3.0])


@pytest.mark.parametrize("kind", ["Identity", "Total", "Prefixes", "AllRanges"])
@pytest.mark.parametrize(
    ("heads", "tails"),
    [
        ((0, 2, 3, 1), (1, 0, -1, 3)),
        ((0, 2, 3), (1, 1, 2)),
        ((3, 0), (2, 1)),
        ((0, 1), (1, 0)),
    ],
    ids=["any", "neighbours", "some neighbours", "one edge twice"],
)
def test_closed_forms_equal_the_listed_queries(kind, heads, tails):
    heads, tails = np.array(heads), np.array(tails)
    noise = VARIANCES[: heads.size], WIDTHS[: heads.size]
    workload = getattr(bf.workloads, kind)(bf.Domain(8))
    buckets = Buckets(EDGES)
    listed = workload.explicit_form(buckets)
    spread = cut_spread(listed, 4, heads, tails, *noise)
    dense = dense_form(listed, 4)
    expected = reference.cut_variance(dense, heads, tails, *noise)
    np.testing.assert_allclose(np.stack(spread[:5]), expected)
    total = cut_variance(workload.form(buckets), 4, heads, tails, noise[0])
    assert total == pytest.approx(expected[0].sum())
    assert cut_variance(listed, 4, heads, tails, noise[0]) == pytest.approx(total)


@settings(deadline=None, max_examples=example_count(60))
@given(on_a_line())
def test_edge_noise_over_single_cells_agrees(policy):
    strategy = EdgeNoise.under(policy)
    cells = Buckets.single_cells(policy.domain.size)
    workload = bf.workloads.AllRanges(policy.domain)
    form = workload.explicit_form(cells)
    variances = np.ones(strategy.heads.size)
    found = cut_variance(
        workload.form(cells), cells.count, strategy.heads, strategy.tails, variances
    )
    dense = dense_form(form, cells.count)
    expected = reference.cut_variance(
        dense, strategy.heads, strategy.tails, variances, variances
    )
    assert found == pytest.approx(expected[0].sum())


def test_pieces_of_no_value_are_left_out():
    form = Pieces(
        np.array([0, 2, 3]),
        np.array([0, 2, 1]),
        np.array([1, 3, 2]),
        np.array([1.0, 0.0, 0.0]),
    )
    runs = as_runs(form)
    assert runs.pointers.tolist() == [0, 1, 1]
    assert runs.values.tolist() == [1.0]


def test_too_long_queries_are_refused(monkeypatch):
    workload = bf.workloads.AllRanges(bf.Domain(8))
    noise = HEADS, TAILS, VARIANCES, WIDTHS
    monkeypatch.setattr(edge_cuts, "MOST_COVERED", 10)
    with pytest.raises(SizeError, match="cells in all"):
        cut_spread(workload.explicit_form(Buckets(EDGES)), 4, *noise)


def test_long_queries_cut_short_edges_only_where_they_end(monkeypatch):
    monkeypatch.setattr(edge_cuts, "MOST_COVERED", 40)
    query = bf.workloads.Ranges(bf.Domain(100), [5, 10], [90, 99])
    form = query.explicit_form(Buckets.single_cells(100))
    heads, ones = np.arange(99), np.ones(100)
    found = cut_spread(form, 100, heads, heads + 1, ones[1:], ones[1:])
    assert found.variance.tolist() == [2.0, 2.0]
    # A draw of no variance leads nowhere; any other is met wherever it lies.
    heads, tails = np.append(heads, 50), np.append(heads + 1, -1)
    found = cut_spread(form, 100, heads, tails, np.append(ones[1:], 0.0), ones)
    assert found.variance.tolist() == [2.0, 2.0]
    with pytest.raises(SizeError, match="cells in all"):
        cut_spread(form, 100, heads, tails, ones, ones)

"""Noise on policy edges: cycles, parts and the absent node."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import (
    EpsilonError,
    PrivacyError,
    ReleaseFileError,
    SizeError,
)
from blowfish_fast.measure.strategies import EdgeNoise
from tests.reference.forms import dense_form
from tests.reference.spread import assert_same_spread, spread_of

LINE = bf.Domain(6)
GRAPHS = {
    "line": bf.policies.Line(LINE),
    "cycle": bf.policies.Graph(LINE, [[i, (i + 1) % 6] for i in range(6)]),
    "star": bf.policies.Graph(LINE, [[0, i] for i in range(1, 6)]),
    "parts": bf.policies.Blocks(LINE, [0, 0, 0, 1, 1, 2]),
    "absent": bf.policies.Graph(LINE, [[0, 1], [1, -1], [2, 3], [4, 5], [5, -1]]),
    "add_remove": bf.policies.AddRemove(LINE),
}


def dense_edge_spread(strategy, scales, form):
    """Push each draw through publication and the queries."""
    draws = scales.rates.size
    columns = []
    for draw in range(draws):
        noise = np.zeros(draws, dtype=np.int64)
        noise[draw] = 1
        rows = strategy.published(np.zeros(6, dtype=np.int64), noise, scales)
        columns.append(dense_form(form, 6) @ rows)
    coefficients = np.stack(columns, axis=1)
    return spread_of(coefficients, scales.widths, scales.variances)


@pytest.mark.parametrize("name", GRAPHS)
def test_every_edge_costs_epsilon_exactly_once(name):
    policy = GRAPHS[name]
    laplace = bf.Laplace(
        policy, bf.workloads.Identity(LINE), epsilon="0.4", strategy="edges"
    )
    price, account = audit_measurements(laplace, [3, 1, 4, 1, 5, 9])
    assert price.passed
    assert price.worst > Fraction(399, 1000)
    assert account.passed


@pytest.mark.parametrize("name", GRAPHS)
def test_spread_equals_the_definition(name):
    policy = GRAPHS[name]
    strategy = EdgeNoise.under(policy)
    scales = strategy.scales(policy, Fraction(1))
    cells = Buckets.single_cells(6)
    for workload in (
        bf.workloads.AllRanges(LINE),
        bf.workloads.Linear(LINE, np.arange(12).reshape(2, 6) % 5 - 2),
    ):
        form = workload.explicit_form(cells)
        got, want = (
            strategy.spread(form, scales),
            dense_edge_spread(strategy, scales, form),
        )
        assert_same_spread(got, want)
    for implicit in (
        bf.workloads.Identity(LINE),
        bf.workloads.Total(LINE),
        bf.workloads.Prefixes(LINE),
        bf.workloads.AllRanges(LINE),
    ):
        total = strategy.total_variance(implicit.form(cells), scales)
        listed = strategy.spread(implicit.explicit_form(cells), scales).variance.sum()
        assert total == pytest.approx(listed)


@pytest.mark.parametrize("name", ["line", "cycle", "star", "parts"])
def test_totals_of_parts_stay_exact(name):
    policy = GRAPHS[name]
    counts = np.array([3, 1, 4, 1, 5, 9])
    release = bf.Laplace(
        policy, bf.workloads.Identity(LINE), epsilon="0.1", strategy="edges"
    ).release(counts, rng=1)
    components = policy.components()
    labels = np.zeros(6, dtype=int) if components.labels is None else components.labels
    for part in range(components.count):
        inside = labels == part
        assert release.estimate[inside].sum() == counts[inside].sum()


def test_a_line_pays_for_two_edges_per_cell_and_cells_for_two_draws():
    # ALGORITHMS: 4 / eps^2 against 8 / eps^2 in the limit of large noise.
    line = bf.Domain(100)
    policy, cells = bf.policies.Line(line), bf.workloads.Identity(line)
    edges = bf.Laplace(policy, cells, epsilon="0.01", strategy="edges").expected_error()
    on_cells = bf.Laplace(policy, cells, epsilon="0.01").expected_error()
    assert edges[50] * 0.01**2 == pytest.approx(4, rel=1e-3)
    assert on_cells[50] * 0.01**2 == pytest.approx(8 * 0.99, rel=1e-3)


@pytest.mark.parametrize("name", GRAPHS)
def test_releases_survive_saving(tmp_path, name):
    asked = bf.workloads.AllRanges(LINE)
    release = bf.Laplace(GRAPHS[name], asked, epsilon=1, strategy="edges").release(
        [1, 2, 3, 4, 5, 6]
    )
    release.save(tmp_path / "edges")
    again = bf.Release.load(tmp_path / "edges")
    assert (again.intervals(asked) == release.intervals(asked)).all()


def test_graphs_too_dense_to_hold_are_refused():
    large = bf.Domain(2**20)
    laplace = bf.Laplace(
        bf.policies.Full(large), bf.workloads.Total(large), epsilon=1, strategy="edges"
    )
    with pytest.raises(SizeError, match="549,755,289,600 edges"):
        laplace.release(np.zeros(2**20, dtype=int))


def test_an_epsilon_too_small_for_noise_publishes_nothing():
    policy = GRAPHS["line"]
    strategy = EdgeNoise.under(policy)
    with pytest.raises(EpsilonError, match="would exceed"):
        strategy.scales(policy, Fraction(1, 2**50))
    blank = strategy.scales(policy, Fraction(1))
    blank = blank._replace(rates=np.zeros_like(blank.rates))
    with pytest.raises(PrivacyError, match="publish its cells"):
        strategy.published(np.arange(6), np.zeros(5, dtype=np.int64), blank)


def test_edges_without_a_draw_are_refused():
    line, full = bf.policies.Line(LINE), bf.policies.Full(LINE)
    scales = EdgeNoise.under(line).scales(line, Fraction(1))
    same = EdgeNoise.unpack(EdgeNoise.under(line).pack())
    assert same.cost(bf.policies.Threshold(LINE, theta=1), scales) == 1
    for strategy in (same, EdgeNoise.under(line)):
        for other in (full, GRAPHS["cycle"], bf.policies.Line(bf.Domain(7))):
            with pytest.raises(PrivacyError, match="edges of another policy"):
                strategy.cost(other, scales)
    # More draws than edges are no harm.
    every = EdgeNoise.under(full)
    assert every.cost(line, every.scales(full, Fraction(1))) == 1


@pytest.mark.parametrize(
    ("heads", "tails"),
    [([0, 1], [1]), ([[0]], [[1]]), ([-1], [1]), ([0], [-2]), ([6], [0]), ([0], [6])],
)
def test_a_file_whose_edges_leave_the_domain_is_refused(heads, tails):
    kept = EdgeNoise.unpack({"cells": 6, "heads": [0, 5], "tails": [1, -1]})
    np.testing.assert_array_equal(kept.tails, [1, -1])
    with pytest.raises(ReleaseFileError, match="join cells of the domain"):
        EdgeNoise.unpack({"cells": 6, "heads": heads, "tails": tails})

"""Fourier: rows, worst edges, inference and spread against dense matrices."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import edge_cost, policy_families
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, IntervalError, SizeError
from blowfish_fast.kernels.transform.fourier_rows import (
    STEP_BITS,
    circle_table,
    largest_turn,
)
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.strategies import STRATEGIES, Fourier
from blowfish_fast.measure.strategies.fourier import (
    _turn_bound,
    most_frequencies,
    typical_reach,
)

CASES = [(1, 0), (2, 0), (2, 1), (5, 2), (8, 3), (8, 4), (13, 1)]


def matrix(strategy):
    """Return the rows of the strategy, one column per cell."""
    return np.array([strategy.rows(one) for one in np.eye(strategy.cells, dtype=int)]).T


@pytest.mark.parametrize(("cells", "frequencies"), CASES)
def test_rows_are_orthogonal_and_of_stated_number(cells, frequencies):
    strategy = Fourier(cells, frequencies)
    rows = matrix(strategy)
    assert rows.shape == (strategy.row_count, cells)
    products = rows @ rows.T
    lengths = np.sqrt(np.diag(products))
    cosines = products / np.outer(lengths, lengths)
    np.testing.assert_allclose(cosines, np.eye(len(rows)), atol=3e-4)
    # A row of unit length has noise 1 / (weight * length): the same for all.
    weighted = strategy.weights() * lengths
    np.testing.assert_allclose(weighted, weighted[0], rtol=3e-4)


@pytest.mark.parametrize(("cells", "frequencies"), CASES)
def test_no_edge_costs_more_than_was_granted(cells, frequencies):
    domain = bf.Domain(cells)
    strategy = Fourier(cells, frequencies)
    for policy in policy_families(domain).values():
        scales = strategy.scales(policy, Fraction(1))
        assert strategy.cost(policy, scales) <= 1
        measurement = Measurement(
            strategy.with_noise(scales),
            np.zeros(strategy.row_count, dtype=np.int64),
            Buckets.single_cells(cells),
        )
        costs = [
            edge_cost(measurement, start, end)
            for edges in policy.edges()
            for start, end in edges.tolist()
        ]
        assert max(costs, default=0) <= 1


@pytest.mark.parametrize("cells", [2, 6, 8])
def test_rows_of_any_weight_are_paid(cells):
    strategy = Fourier(cells, cells // 2)
    columns = np.column_stack([matrix(strategy), np.zeros(strategy.row_count)])
    generator = np.random.default_rng(cells)
    # The row that changes its sign from cell to cell alone, then all of them.
    alone = np.eye(strategy.row_count, dtype=np.int64)[-1]
    drawn = generator.integers(0, 9, (20, strategy.row_count))
    for policy in policy_families(bf.Domain(cells)).values():
        ends = np.concatenate([np.zeros((0, 2), dtype=int), *policy.edges()])
        moves = np.abs(columns[:, ends[:, 0]] - columns[:, ends[:, 1]])
        for weights in (alone, *drawn):
            worst = (weights @ moves).max(initial=0)
            assert strategy.worst_edge(weights, policy) >= worst


def test_the_turn_bound_holds_for_every_small_circle():
    """All cells, frequencies and moves: rounded sums of the table, against the bound.

    Without its room for rounding the bound is exceeded, at 24 cells for one.
    """
    exceeded = set()
    for cells in range(2, 33):
        table = circle_table(cells).astype(np.int64)
        waves = (np.arange(1, cells // 2 + 1)[:, None] * np.arange(cells)) % cells
        rows = table[waves]
        for longest in range(1, cells):
            moved = np.abs(rows[:, longest:] - rows[:, :-longest]).sum(axis=2)
            changes = np.cumsum(moved, axis=0).max(axis=1)
            for frequencies, change in enumerate(changes.tolist(), 1):
                assert change <= _turn_bound(cells, frequencies, longest)
                turn = largest_turn(cells, frequencies, longest)
                if change > 2 * math.sqrt(2) * 2**STEP_BITS * turn * (1 + 1e-12):
                    exceeded.add(cells)
    assert 24 in exceeded


@pytest.mark.parametrize("frequencies", [3, 4])
def test_an_added_record_is_paid_to_the_last_digit(frequencies):
    strategy = Fourier(8, frequencies)
    policy = bf.policies.AddRemove(bf.Domain(8))
    scales = strategy.scales(policy, Fraction(1))
    rows = matrix(strategy)
    weights = np.abs(rows) * scales.rates[:, None]
    assert strategy.cost(policy, scales) == Fraction(
        int(weights.sum(axis=0).max()), scales.unit
    )
    # Squares are bounded from above: rows are rounded, the circle is not.
    squares = (rows.astype(object) ** 2 * strategy.weights()[:, None]).sum(axis=0).max()
    bound = strategy.worst_edge(strategy.weights(), policy, power=2)
    assert squares <= bound <= 1.01 * squares


def test_short_moves_cost_little():
    domain = bf.Domain(256)
    strategy = Fourier(256, 10)
    widths = [
        strategy.scales(policy, Fraction(1)).widths[1]
        for policy in (
            bf.policies.Line(domain),
            bf.policies.Threshold(domain, theta=8),
            bf.policies.Full(domain),
        )
    ]
    assert 5 * widths[0] < widths[1] < 0.7 * widths[2]
    # A move is never dearer than a removal and an addition, the total left out.
    added = strategy.scales(bf.policies.AddRemove(domain), Fraction(1)).widths[1]
    assert widths[2] <= 2 * added


@pytest.mark.parametrize(("cells", "frequencies"), [(2, 1), (8, 4), (9, 4), (12, 6)])
def test_all_frequencies_give_back_the_counts(cells, frequencies):
    counts = np.arange(cells) ** 2 + 1
    strategy = Fourier(cells, frequencies)
    scales = strategy.scales(bf.policies.Full(bf.Domain(cells)), Fraction(1))
    cells_found = strategy.infer(strategy.rows(counts), scales)
    np.testing.assert_allclose(cells_found, counts, rtol=1e-3)


def inverse(strategy, scales):
    """Return the linear map from rows to cells, column by column."""
    units = np.eye(strategy.row_count, dtype=np.int64)
    return np.array([strategy.infer(unit, scales) for unit in units]).T


WORKLOADS = [
    lambda domain: bf.workloads.Ranges.random(domain, 30, rng=1),
    bf.workloads.Identity,
    bf.workloads.Prefixes,
    bf.workloads.AllRanges,
    bf.workloads.Total,
    lambda domain: bf.workloads.Linear(
        domain, np.random.default_rng(1).normal(size=(5, domain.size))
    ),
]


@pytest.mark.parametrize("make", WORKLOADS)
@pytest.mark.parametrize(("cells", "frequencies"), [(1, 0), (8, 4), (13, 3), (12, 0)])
@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_spread_is_that_of_the_dense_map(make, cells, frequencies, policy):
    domain = bf.Domain(cells)
    workload = make(domain)
    strategy = Fourier(cells, frequencies)
    scales = strategy.scales(policy(domain), Fraction(1))
    if workload.queries == 0:
        return
    asked = np.array(
        [workload.answer(one) for one in np.eye(cells)], dtype=np.float64
    ).T
    parts = asked @ inverse(strategy, scales)
    form = workload.explicit_form(Buckets.single_cells(cells))
    spread = strategy.spread(form, scales)
    noisy = np.where(scales.measured, scales.variances, 0.0)
    np.testing.assert_allclose(spread.variance, parts**2 @ noisy, atol=1e-9)
    np.testing.assert_allclose(spread.square, parts**2 @ scales.widths**2, atol=1e-9)
    np.testing.assert_allclose(
        spread.largest, np.abs(parts * scales.widths).max(axis=1), atol=1e-9
    )
    total = strategy.total_variance(workload.form(Buckets.single_cells(cells)), scales)
    assert total == pytest.approx(float((parts**2 @ noisy).sum()), abs=1e-9)


def test_rows_too_noisy_to_measure_tell_nothing():
    strategy = Fourier(8, 2)
    scales = strategy.scales(bf.policies.AddRemove(bf.Domain(8)), Fraction(1, 10**9))
    assert not scales.measured[1:].any()
    form = bf.workloads.Ranges(bf.Domain(8), [0], [3]).explicit_form(
        Buckets.single_cells(8)
    )
    assert strategy.spread(form, scales).variance[0] > 1e50


def test_typical_reach_is_near_the_exact_one():
    domain = bf.Domain(512)
    for policy in (bf.policies.AddRemove(domain), bf.policies.Full(domain)):
        typical = typical_reach(512, policy)
        assert typical.size == 257
        for frequencies in (1, 5, 60, 255):
            strategy = Fourier(512, frequencies)
            scales = strategy.scales(policy, Fraction(1))
            exact = float(scales.widths[1]) * np.sqrt(2 / 512) / 2**14
            assert 0.85 * exact <= typical[frequencies] <= 1.01 * exact


def test_work_is_bounded_and_stated():
    assert most_frequencies(4096) == 2048
    assert most_frequencies(2**20) == 512
    assert most_frequencies(1) == 0
    with pytest.raises(SizeError, match="Keep fewer"):
        Fourier(2**20, 513)


def test_packing_and_refusals():
    strategy = Fourier(9, 2)
    rebuilt = STRATEGIES["fourier"].unpack(strategy.pack())
    assert (rebuilt.cells, rebuilt.frequencies) == (9, 2)
    scales = strategy.scales(bf.policies.Full(bf.Domain(9)), Fraction(1))
    with pytest.raises(DomainError, match="received 4"):
        strategy.rows(np.zeros(4, dtype=np.int64))
    implicit = bf.workloads.Identity(bf.Domain(9)).form(Buckets.single_cells(9))
    with pytest.raises(IntervalError, match="explicit_form"):
        strategy.spread(implicit, scales)
    wide = bf.workloads.Identity(bf.Domain(18)).form(Buckets(np.arange(0, 19, 3)))
    with pytest.raises(SizeError, match="single cells"):
        strategy.total_variance(wide, scales)

"""Noise along the lines of edges of a grid."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import (
    DomainError,
    EpsilonError,
    InputError,
    IntervalError,
    PolicyError,
    PrivacyError,
    SizeError,
)
from blowfish_fast.kernels.graph.edge_line_noise import line_levels
from blowfish_fast.measure.strategies import EdgeLines, EdgeNoise
from blowfish_fast.measure.strategies.edge_cuts import cut_variance
from blowfish_fast.measure.strategies.edge_lines import _best_weights
from blowfish_fast.workloads import Implicit
from tests.reference.draws import spread_by_draws
from tests.reference.shifts import worst_price
from tests.reference.spread import assert_same_spread

SHAPES = [(1, 1), (1, 5), (4, 1), (2, 2), (3, 4), (5, 3)]


def some_lines(shape, tops):
    """Return a strategy with uneven weights and blocks of up to 2^top edges."""
    weights = []
    for top, length in zip(tops, reversed(shape), strict=True):
        levels = np.arange(1.0, min(top + 1, line_levels(length)) + 1)
        weights.append(levels / levels.sum())
    return EdgeLines(shape, tuple(weights))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tops", [(0, 0), (1, 1), (2, 0), (1, 3)])
def test_spread_equals_the_definition(shape, tops):
    domain = bf.Domain(shape)
    policy = bf.policies.Threshold(domain, 1)
    strategy = some_lines(shape, tops)
    scales = strategy.scales(policy, Fraction(1))
    cells = Buckets.single_cells(domain.size)
    generator = np.random.default_rng(2)
    linear = generator.integers(-2, 3, size=(3, domain.size))
    for workload in (
        bf.workloads.Rectangles.random(domain, 6, rng=1),
        bf.workloads.Linear(domain, linear),
        bf.workloads.Identity(domain),
    ):
        form = workload.explicit_form(cells)
        expected = spread_by_draws(strategy, scales, form, domain.size)
        assert_same_spread(strategy.spread(form, scales), expected)
        total = strategy.total_variance(workload.form(cells), scales)
        assert total == pytest.approx(expected.variance.sum())
    whole = bf.workloads.Total(domain).form(cells)
    assert strategy.total_variance(whole, scales) == 0.0


@pytest.mark.long
@pytest.mark.parametrize("shape", [(2, 2), (4, 2), (3, 4), (5, 1)])
@pytest.mark.parametrize("tops", [(0, 0), (1, 2), (2, 1)])
def test_every_edge_is_hidden_at_the_price_that_is_charged(shape, tops):
    policy = bf.policies.Threshold(bf.Domain(shape), 1)
    strategy = some_lines(shape, tops)
    scales = strategy.scales(policy, Fraction(7, 10))
    worst = worst_price(strategy, scales, policy)
    assert worst <= strategy.cost(policy, scales) <= Fraction(7, 10)
    if shape[0] != 3 and shape[0] != 5:
        # No edge is missing at the end of a line, so there is no cheaper way.
        assert worst > Fraction(699, 1000)


def test_blocks_of_one_edge_are_plain_edge_noise():
    domain = bf.Domain((4, 5))
    policy = bf.policies.Threshold(domain, 1)
    form = bf.workloads.Rectangles.random(domain, 9, rng=3).explicit_form(
        Buckets.single_cells(20)
    )
    lines, edges = some_lines((4, 5), (0, 0)), EdgeNoise.under(policy)
    seen = lines.spread(form, lines.scales(policy, Fraction(1)))
    assert_same_spread(seen, edges.spread(form, edges.scales(policy, Fraction(1))))


def test_totals_are_exact_and_no_noise_means_the_counts():
    domain = bf.Domain((5, 7))
    policy = bf.policies.Threshold(domain, 1)
    strategy = some_lines((5, 7), (2, 3))
    scales = strategy.scales(policy, Fraction(1, 10))
    counts = np.arange(35)
    blank = np.zeros(scales.rates.size, dtype=np.int64)
    still = strategy.published(strategy.rows(counts), blank, scales)
    assert (strategy.infer(still, scales) == counts).all()
    noise = np.random.default_rng(1).integers(-99, 99, size=blank.size)
    noisy = strategy.published(strategy.rows(counts), noise, scales)
    assert strategy.infer(noisy, scales).sum() == counts.sum()
    assert (noisy[35:] >= 0).all()
    assert (noisy[35:] < 8).all()


def test_large_rectangles_gain_and_small_ones_keep_plain_edges():
    domain = bf.Domain((256, 256))
    policy = bf.policies.Threshold(domain, 1)
    cells = Buckets.single_cells(domain.size)
    large = bf.workloads.Rectangles.random(domain, 50, rng=1).explicit_form(cells)
    lines = EdgeLines.under(policy, large)
    assert min(lines.tops) > 0
    total = lines.total_variance(large, lines.scales(policy, Fraction(1, 10)))
    edges = EdgeNoise.under(policy)
    variances = edges.scales(policy, Fraction(1, 10)).variances
    plain = cut_variance(large, domain.size, edges.heads, edges.tails, variances)
    assert total < 0.8 * plain
    small = bf.workloads.Identity(domain).form(cells)
    assert EdgeLines.under(policy, small).tops == (0, 0)


def test_sparser_policies_and_products_of_lines_are_admitted():
    domain = bf.Domain((3, 4))
    form = bf.workloads.Identity(domain).form(Buckets.single_cells(12))
    product = bf.policies.Product(*(bf.policies.Line(bf.Domain(n)) for n in (3, 4)))
    some = bf.policies.Graph(domain, [[0, 1], [4, 8]])
    for policy in (product, some):
        strategy = EdgeLines.under(policy, form)
        scales = strategy.scales(policy, Fraction(1))
        assert worst_price(strategy, scales, policy) <= 1


def test_packing_keeps_everything():
    domain = bf.Domain((4, 4))
    asked = bf.workloads.Rectangles.random(domain, 5, rng=1)
    release = bf.Transformed(
        bf.policies.Threshold(domain, 1), asked, epsilon=1, strategy="edge_lines"
    ).release(np.arange(16).reshape(4, 4))
    assert release.details["strategy"] == "edge_lines"
    assert release.intervals(asked).shape == (5, 2)
    law, noisy, buckets = release.measurements[0]
    strategy, scales = law.strategy, law.scales
    again = EdgeLines.unpack(strategy.pack())
    assert (again.infer(noisy, scales) == strategy.infer(noisy, scales)).all()
    form = asked.explicit_form(buckets)
    assert_same_spread(again.spread(form, scales), strategy.spread(form, scales))


def test_what_cannot_be_done_is_refused():
    domain = bf.Domain((3, 4))
    cells = Buckets.single_cells(12)
    form = bf.workloads.Identity(domain).form(cells)
    for policy in (
        bf.policies.Threshold(domain, 2),
        bf.policies.Full(domain),
        bf.policies.AddRemove(domain),
        bf.policies.Line(bf.Domain(12)),
    ):
        with pytest.raises(PolicyError, match="grid of two attributes"):
            EdgeLines.under(policy, form)
    grid = bf.policies.Threshold(domain, 1)
    strategy = some_lines((3, 4), (1, 2))
    scales = strategy.scales(grid, Fraction(1))
    with pytest.raises(IntervalError, match="list the queries"):
        strategy.spread(form, scales)
    with pytest.raises(SizeError, match="closed form"):
        strategy.total_variance(Implicit("prefixes", np.arange(13)), scales)
    with pytest.raises(DomainError, match="12 cells"):
        strategy.rows(np.ones(3, dtype=np.int64))
    silent = scales._replace(rates=np.zeros_like(scales.rates))
    with pytest.raises(PrivacyError, match="its draw"):
        strategy.published(np.zeros(12, np.int64), np.zeros_like(silent.rates), silent)
    faint = EdgeLines((3, 4), (np.array([1.0, 0.0]), np.ones(1)))
    with pytest.raises(EpsilonError, match="64 bits"):
        faint.scales(grid, Fraction(1))
    for levels in (0, 3):
        with pytest.raises(InputError, match="1 to 2 levels"):
            EdgeLines((2, 2), (np.ones(levels), np.ones(1)))


@pytest.mark.parametrize("power", [1, 2])
def test_weights_for_queries_that_no_noise_reaches_are_even(power):
    weights = _best_weights(np.zeros(3), np.zeros(3), power)
    np.testing.assert_array_equal(weights, [1.0])

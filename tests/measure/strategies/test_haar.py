"""Haar rows: the worst edge, inference and spread, on lines and grids."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.audit import policy_families
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, IntervalError
from blowfish_fast.measure.noise import laplace_variance
from blowfish_fast.measure.strategies import STRATEGIES, Haar
from blowfish_fast.measure.strategies.haar import _axis_weights
from blowfish_fast.policies import AddRemove, Full
from blowfish_fast.workloads import (
    AllRanges,
    Identity,
    Linear,
    Marginals,
    Prefixes,
    Ranges,
    Rectangles,
    Total,
)
from tests.reference.haar_transform import haar_matrix
from tests.reference.spread import assert_same_spread, dense_spread

SHAPES = [
    (1,),
    (2,),
    (5,),
    (7,),
    (8,),
    (16,),
    (4, 4),
    (2, 8),
    (3, 5),
    (1, 6),
    (2, 3, 4),
]
POWERS = [shape for shape in SHAPES if all(side & (side - 1) == 0 for side in shape)]
EQUAL = [*POWERS, (3,), (3, 3), (3, 4), (2, 3, 4), (3, 1, 3, 3)]
HALF = Fraction(1, 2)


def prices(strategy, policy, scales):
    """Return the price of every edge, from the rows of single records."""
    columns = np.column_stack([haar_matrix(strategy.shape), np.zeros(strategy.cells)])
    found = []
    for edges in policy.edges():
        for start, end in edges.tolist():
            change = np.abs(columns[:, start] - columns[:, end]).astype(np.int64)
            assert not change[scales.exact].any()
            found.append(Fraction(int((change * scales.rates).sum()), scales.unit))
    return found


@pytest.mark.parametrize("policy", [AddRemove, Full])
@pytest.mark.parametrize("shape", sorted({*SHAPES, *EQUAL}))
def test_the_worst_edge_costs_epsilon(shape, policy):
    over = policy(Domain(shape))
    strategy = Haar(shape)
    scales = strategy.scales(over, HALF)
    worst = max(prices(strategy, over, scales), default=Fraction(0))
    cost = strategy.cost(over, scales)
    assert worst <= cost <= HALF
    if len(shape) == 1 or policy is AddRemove or shape in EQUAL:
        assert cost == worst
    if worst:
        assert worst > HALF * Fraction(999_999, 1_000_000)


@pytest.mark.parametrize("shape", [(7,), (3, 4), (4, 4)])
def test_no_policy_is_charged_too_little_or_more_than_twice_a_cell(shape):
    strategy = Haar(shape)
    for policy in policy_families(Domain(shape)).values():
        scales = strategy.scales(policy, HALF)
        assert max(prices(strategy, policy, scales)) <= HALF
        weights = strategy.weights()
        weights[strategy.exact_rows(policy)] = 0
        alone = strategy.worst_edge(weights, AddRemove(Domain(shape)))
        assert strategy.worst_edge(weights, policy) <= 2 * alone


@pytest.mark.parametrize("shape", POWERS)
def test_sensitivities_are_the_closed_forms_on_powers_of_two(shape):
    ones = np.ones(int(np.prod(shape)), dtype=np.int64)
    counted = int(np.prod([side.bit_length() for side in shape]))
    assert Haar(shape).worst_edge(ones, AddRemove(Domain(shape))) == counted
    ones[0] = 0
    wide = sum(side > 1 for side in shape)
    expected = 2 * counted - 2**wide if wide else 0
    assert Haar(shape).worst_edge(ones, Full(Domain(shape))) == expected
    weights = Haar(shape).weights()
    assert (weights == weights[0]).all()


def test_b1_sixteen_cells():
    line, strategy = Domain(16), Haar((16,))
    ones = np.ones(16, dtype=np.int64)
    assert strategy.worst_edge(ones, AddRemove(line)) == 5
    assert strategy.worst_edge(ones, Full(line)) == 8
    # The oracle is the limit of small epsilon: variance 2 b^2.
    epsilon = Fraction(1, 10**5)
    scales = strategy.scales(AddRemove(line), epsilon)
    unit = float(epsilon) ** 2
    cells = Buckets.single_cells(16)
    each = strategy.spread(Identity(line).explicit_form(cells), scales).variance * unit
    assert each == pytest.approx(np.full(16, 16.796875), rel=1e-6)
    total = strategy.total_variance(Total(line).form(cells), scales) * unit
    assert total == pytest.approx(50, rel=1e-6)


@pytest.mark.parametrize("cells", [*range(1, 40), 1000, 4097])
def test_weights_fill_every_way_but_one(cells):
    weights = _axis_weights(cells)
    sums = np.array([_way(weights, leaf) for leaf in range(cells, 2 * cells)])
    full = (cells - 1).bit_length() + 1
    assert (sums <= full + 1e-9).all()
    assert (sums < full - 1e-9).sum() <= 1


def _way(weights, leaf):
    total = weights[0]
    while leaf > 1:
        leaf //= 2
        total += weights[leaf]
    return total


@pytest.mark.parametrize("policy", [AddRemove, Full])
@pytest.mark.parametrize("shape", SHAPES)
def test_spread_equals_the_push_of_unit_noises(shape, policy, generator):
    domain, strategy = Domain(shape), Haar(shape)
    scales = strategy.scales(policy(domain), HALF)
    cells = Buckets.single_cells(domain.size)
    matrix = generator.integers(-2, 3, (6, domain.size)).astype(float)
    highs = generator.uniform(0.1, shape, (5, len(shape)))
    asked = [
        Identity(domain),
        Total(domain),
        Linear(domain, matrix),
        Marginals(domain, [0]),
        Rectangles.random(domain, 10, rng=2),
        Rectangles(domain, highs * generator.uniform(0, 0.9, highs.shape), highs),
    ]
    if len(shape) == 1:
        asked.append(Ranges.random(domain, 20, rng=2))
    for workload in asked:
        form = workload.explicit_form(cells)
        found = strategy.spread(form, scales)
        expected = dense_spread(strategy, scales, form, domain.size)
        assert_same_spread(found, expected, rtol=1e-9, atol=1e-9)


def test_ranges_that_cut_buckets_equal_the_push_of_unit_noises():
    buckets = Buckets(np.array([0, 1, 4, 6, 10, 11]))
    domain, strategy = Domain(11), Haar((5,))
    scales = strategy.scales(AddRemove(Domain(5)), HALF)
    form = AllRanges(domain).explicit_form(buckets)
    found = strategy.spread(form, scales)
    expected = dense_spread(strategy, scales, form, 5)
    assert_same_spread(found, expected, rtol=1e-9)


def test_queries_of_many_pieces_are_transformed_whole(generator):
    domain, strategy = Domain((16, 16)), Haar((16, 16))
    scales = strategy.scales(Full(domain), HALF)
    matrix = np.zeros((3, 256))
    matrix[[0, 2]] = generator.normal(size=(2, 256))
    matrix[1, :40] = 1.0
    form = Linear(domain, matrix).explicit_form(Buckets.single_cells(256))
    found = strategy.spread(form, scales)
    expected = dense_spread(strategy, scales, form, 256)
    assert_same_spread(found, expected, rtol=1e-9)


@pytest.mark.parametrize("policy", [AddRemove, Full])
@pytest.mark.parametrize("edges", [range(7), [0, 1, 2, 6, 7, 10, 13]])
def test_totals_of_implicit_workloads_equal_their_list(policy, edges):
    buckets = Buckets(np.array(edges))
    domain = Domain(buckets.cells)
    strategy = Haar((6,))
    scales = strategy.scales(policy(Domain(6)), HALF)
    for kind in (Identity, Total, Prefixes, AllRanges):
        form = kind(domain).form(buckets)
        listed = strategy.spread(kind(domain).explicit_form(buckets), scales)
        total = strategy.total_variance(form, scales)
        assert total == pytest.approx(listed.variance.sum(), rel=1e-9, abs=1e-12)


def test_totals_on_a_grid_equal_their_list():
    domain, cells = Domain((3, 5)), Buckets.single_cells(15)
    strategy = Haar((3, 5))
    scales = strategy.scales(Full(domain), HALF)
    for workload in (Identity(domain), Total(domain), Marginals(domain, [1])):
        listed = strategy.spread(workload.explicit_form(cells), scales).variance.sum()
        total = strategy.total_variance(workload.form(cells), scales)
        assert total == pytest.approx(listed, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_noise_free_rows_give_back_the_cells(shape, generator):
    strategy = Haar(shape)
    counts = generator.integers(0, 10**9, strategy.cells)
    scales = strategy.scales(AddRemove(Domain(shape)), HALF)
    assert (strategy.infer(strategy.rows(counts), scales) == counts).all()


def test_where_nothing_can_move_everything_is_exact():
    strategy = Haar((1,))
    scales = strategy.scales(Full(Domain(1)), HALF)
    assert scales.exact.all()
    assert strategy.cost(Full(Domain(1)), scales) == 0


def test_rows_too_noisy_to_measure_count_as_unknown():
    line = Domain(4)
    strategy = Haar((4,))
    scales = strategy.scales(AddRemove(line), Fraction(1, 10**15))
    assert not scales.measured.any()
    form = Identity(line).explicit_form(Buckets.single_cells(4))
    assert (strategy.spread(form, scales).largest > 2.0**90).all()


def test_the_discrete_law_is_the_one_that_counts():
    line = Domain(2)
    strategy = Haar((2,))
    scales = strategy.scales(AddRemove(line), Fraction(2))
    form = Identity(line).explicit_form(Buckets.single_cells(2))
    expected = 0.25 * 2 * float(laplace_variance(1.0))
    assert strategy.spread(form, scales).variance == pytest.approx(expected, rel=1e-6)


def test_a_strategy_survives_packing():
    again = STRATEGIES["haar"].unpack(Haar((3, 4)).pack())
    assert again.shape == (3, 4)
    for shape in ([], [0], [3, -1]):
        with pytest.raises(ValueError, match="at least one cell"):
            Haar.unpack({"shape": shape})


def test_what_does_not_fit_is_refused():
    line = Domain(4)
    scales = Haar((4,)).scales(AddRemove(line), HALF)
    with pytest.raises(DomainError, match="received 3 counts"):
        Haar((4,)).rows(np.ones(3, dtype=np.int64))
    with pytest.raises(IntervalError, match="list the queries"):
        Haar((4,)).spread(Prefixes(line).form(Buckets.single_cells(4)), scales)

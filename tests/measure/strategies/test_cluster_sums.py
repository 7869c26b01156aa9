"""Sizes and sums of clusters: what one edge changes, against what is declared."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, IntervalError
from blowfish_fast.measure.strategies import cluster_sums
from blowfish_fast.measure.strategies.cluster_sums import CellGrid, ClusterSums
from blowfish_fast.policies import (
    AddRemove,
    Attribute,
    Blocks,
    Full,
    Graph,
    Line,
    Product,
    Threshold,
)
from tests.reference.paper_kmeans import unsafe_paper_formula

LINE = bf.Domain(9)
GRID = bf.Domain((4, 5))
UNEVEN = bf.Domain.product(
    bf.Domain.from_edges([0, 1, 3, 7, 7.5]), bf.Domain.from_edges([-2, 0, 10])
)
POLICIES = [
    AddRemove(LINE),
    Full(LINE),
    Line(LINE),
    Threshold(LINE, theta=3),
    Blocks(LINE, [0, 0, 1, 1, 1, 2, 2, 3, 4]),
    Graph(LINE, [[0, 1], [3, -1], [4, 8]]),
    AddRemove(GRID),
    Full(GRID),
    Attribute(GRID),
    Threshold(GRID, theta=2),
    Blocks(GRID, np.arange(20).reshape(4, 5) // 3),
    Blocks(GRID, np.arange(20)),
    Product(Line(bf.Domain(4)), Full(bf.Domain(5))),
    Full(UNEVEN),
    Threshold(UNEVEN, theta=1, metric="linf"),
    Blocks(UNEVEN, [0, 0, 1, 1, 2, 2, 3, 3]),
]


def strategies(policy, seed=0):
    """Yield strategies around random centres: points assigned, and whole parts."""
    grid = CellGrid(policy.domain)
    rng = np.random.default_rng(seed)
    for clusters in (1, 2, 4):
        centers = rng.uniform(grid.low, grid.high, (clusters, grid.axes))
        yield ClusterSums(grid, centers)
        labels = policy.components().labels
        if labels is None:
            labels = np.zeros(policy.domain.size, dtype=np.int64)
        yield ClusterSums(grid, centers, labels)


def edge_changes(strategy, policy):
    """Yield how every edge changes the rows, from the rows of single records."""
    cells = policy.domain.size
    records = np.vstack([np.eye(cells, dtype=np.int64), np.zeros((1, cells), int)])
    rows = np.array([strategy.rows(record) for record in records])
    for chunk in policy.edges():
        yield from np.abs(rows[chunk[:, 0]] - rows[chunk[:, 1]])


@pytest.mark.long
@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_no_edge_costs_more_than_was_declared(policy, listed, monkeypatch):
    if not listed:
        monkeypatch.setattr(cluster_sums, "LISTED_EDGES", -1)
    for seed in range(3):
        for strategy in strategies(policy, seed):
            scales = strategy.scales(policy, Fraction(1, 3))
            exact = scales.exact
            worst = 0
            for change in edge_changes(strategy, policy):
                assert not change[exact].any()
                worst = max(worst, int(change @ scales.rates))
            cost = strategy.cost(policy, scales)
            assert worst <= cost * scales.unit <= scales.unit // 3
            if listed:
                assert worst == cost * scales.unit
                assert worst == 0 or worst > 0.99 * scales.unit / 3


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_sizes_and_sums_each_stay_within_their_sensitivity(policy):
    grid = CellGrid(policy.domain)
    for strategy in strategies(policy, 5):
        size_only = np.zeros(strategy.weights().size, dtype=np.int64)
        size_only[: strategy.clusters] = 1
        sums_only = 1 - size_only
        changes = list(edge_changes(strategy, policy))
        for weights, most in ((size_only, 2), (sums_only, 2 * grid.radius)):
            found = max(int(change @ weights) for change in changes) if changes else 0
            assert strategy.worst_edge(weights, policy) == found <= most


def test_km1_a_short_edge_across_a_border_breaks_lemma_6_1():
    line = bf.Domain.from_edges(np.linspace(0, 100, 1001))
    policy = Threshold(line, theta=10)
    grid = CellGrid(line)
    # Uncentred sums of 49.9 and 50.1, on either side of the border at 50.
    below, above = (np.floor(np.array([49.9, 50.1]) * 10) / 10).tolist()
    assert below + above == pytest.approx(100, abs=0.3)
    assert unsafe_paper_formula(policy) == pytest.approx(2, abs=1e-3)
    # The same in the library's own, centred sums: 25 away from the middle.
    strategy = ClusterSums(grid, np.array([[24.0], [26.0]]))
    sums_only = np.array([0, 0, 1, 1])
    worst = strategy.worst_edge(sums_only, policy) * grid.step
    assert worst == pytest.approx(50, abs=1.1)
    assert worst > 20 * unsafe_paper_formula(policy)
    # Centred at the border itself, the same edge moves hardly anything (KM2).
    at_middle = ClusterSums(grid, np.array([[49.0], [51.0]]))
    assert at_middle.worst_edge(sums_only, policy) * grid.step <= 1.001


def test_lemma_6_1_is_exceeded_under_every_policy_it_names():
    policies = [
        Attribute(bf.Domain((40, 40, 40))),
        Threshold(bf.Domain((30, 30)), theta=2),
        Threshold(bf.Domain(200), theta=3),
    ]
    for policy in policies:
        grid = CellGrid(policy.domain)
        rng = np.random.default_rng(1)
        centers = rng.uniform(grid.low, grid.high, (4, grid.axes))
        strategy = ClusterSums(grid, centers)
        sums = np.ones(strategy.weights().size, dtype=np.int64)
        sums[:4] = 0
        # Sums from the corner of the box, as printed: what a crossing edge changes.
        edges = next(iter(policy.edges()))
        first, second = edges.T
        cross = strategy._cluster_of(first) != strategy._cluster_of(second)
        ends = np.stack([strategy._coordinates(one[cross]) for one in (first, second)])
        corner = strategy._coordinates(np.array([0]))[0]
        printed_change = (ends - corner).sum(axis=(0, 2)).max() * grid.step
        assert printed_change > unsafe_paper_formula(policy)


def test_km3_centred_sums_move_by_the_diameter_and_uncentred_ones_by_twice_that():
    box = bf.Domain.product(
        bf.Domain.from_edges([-1, 1, 3, 5, 7]), bf.Domain.from_edges([-1, 1, 3, 5])
    )
    grid = CellGrid(box)
    np.testing.assert_array_equal(grid.middle, [3, 2])
    assert 2 * grid.radius * grid.step == 10
    strategy = ClusterSums(grid, np.array([[0.0, 0.0], [6.0, 4.0]]))
    sums_only = np.array([0, 0, 1, 1, 1, 1])
    assert strategy.worst_edge(sums_only, Full(box)) * grid.step == 10
    values = grid.values()
    corner = values[3] + values[-1]
    assert 2 * corner == 20


def test_coordinates_are_exact_on_whole_and_half_cells():
    for domain in (bf.Domain(7), bf.Domain((256, 100)), bf.Domain(2**18)):
        grid = CellGrid(domain)
        expected = np.concatenate([np.arange(n) + 0.5 for n in domain.shape])
        np.testing.assert_array_equal(grid.values(), expected)
    assert CellGrid(bf.Domain(1)).radius == 0
    fine = CellGrid(bf.Domain(2**22))
    assert np.abs(fine.values() - np.arange(2**22) - 0.5).max() <= fine.step / 2
    tenths = CellGrid(bf.Domain.from_edges(np.arange(11) / 10))
    np.testing.assert_allclose(tenths.values(), np.arange(10) / 10 + 0.05, atol=1e-6)


def test_histograms_and_points_give_the_same_rows():
    rng = np.random.default_rng(2)
    points = rng.uniform(0, 1, (300, 2)) * [4, 5]
    places = points.astype(np.int32)
    counts = np.zeros(GRID.shape, dtype=np.int64)
    np.add.at(counts, tuple(places.T), 1)
    for strategy in strategies(Blocks(GRID, np.arange(20) // 3)):
        np.testing.assert_array_equal(
            strategy.rows(counts.reshape(-1)), strategy.rows(places)
        )


def test_whole_blocks_keep_sizes_exact_and_sums_to_the_longest_edge():
    policy = Blocks(GRID, np.arange(20).reshape(4, 5) // 5)
    grid = CellGrid(GRID)
    centers = np.array([[0.5, 2.5], [3.5, 2.5]])
    parts = ClusterSums(grid, centers, policy.components().labels)
    assert parts.exact_rows(policy).tolist() == [True] * 2 + [False] * 4
    sums_only = np.array([0, 0, 1, 1, 1, 1])
    assert parts.worst_edge(sums_only, policy) * grid.step == 4
    # The same assignment promises nothing under a policy that leaves the blocks.
    assert not parts.exact_rows(Full(GRID)).any()
    singles = Blocks(GRID, np.arange(20))
    exact = ClusterSums(grid, centers, singles.components().labels)
    assert exact.exact_rows(singles).all()


def test_small_clusters_keep_their_centres_and_others_stay_in_the_box():
    grid = CellGrid(GRID)
    centers = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    strategy = ClusterSums(grid, centers)
    scales = strategy.scales(Full(GRID), Fraction(1))
    wide = float(scales.widths[0])
    sizes = [int(2 * wide), int(2 * wide) + 2, 10**6]
    noisy = np.array([*sizes, 9, 9, 0, 0, 10**14, 10**14])
    moved = strategy.moved_centers(noisy, scales)
    np.testing.assert_array_equal(moved[0], centers[0])
    np.testing.assert_array_equal(moved[1], grid.middle)
    np.testing.assert_array_equal(moved[2], grid.high)


def test_the_longest_move_is_the_longest_edge_in_l1():
    for policy in POLICIES:
        grid = CellGrid(policy.domain)
        lengths = [0]
        for chunk in policy.edges():
            both = chunk[(chunk >= 0).all(axis=1)]
            steps = [grid.coordinates_of(grid.places(end)) for end in both.T]
            lengths += np.abs(steps[0] - steps[1]).sum(axis=1).tolist()
        assert grid.longest_move(policy) == grid.longest_move(policy) == max(lengths)


def test_a_packed_strategy_is_rebuilt():
    policy = Blocks(GRID, np.arange(20) // 3)
    for strategy in strategies(policy):
        again = ClusterSums.unpack(strategy.pack())
        counts = np.arange(20)
        np.testing.assert_array_equal(again.rows(counts), strategy.rows(counts))
        np.testing.assert_array_equal(again.weights(), strategy.weights())


def test_cells_and_queries_are_refused():
    strategy = next(strategies(Full(GRID)))
    scales = strategy.scales(Full(GRID), Fraction(1))
    for ask in (
        lambda: strategy.infer(np.zeros(3, int), scales),
        lambda: strategy.spread(None, scales),
        lambda: strategy.total_variance(None, scales),
    ):
        with pytest.raises(IntervalError, match=r"release\.centers"):
            ask()
    with pytest.raises(DomainError, match="levels have none"):
        CellGrid(bf.Domain.from_levels(["a", "b", "c"]))
    for edges in ([-1.7e308, 0, 1.7e308], [0, 1e-200, 1]):
        with pytest.raises(DomainError, match="must fit a float"):
            CellGrid(bf.Domain.from_edges(edges))

"""The public kernels of DAWA, noise, trees and grids, over plain arrays.

Classes stand in the order of the work: costs and partition (DAWA's first stage),
noise, tree weights and inference (its second stage), grids, post-processing. Each is
called once in `setup`, so compilation stays outside the clock.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from blowfish_fast import kernels
from blowfish_fast.kernels.window_costs.node_unevenness import raise_scores
from blowfish_fast.kernels.window_costs.rectangle_costs import (
    dyadic_quantile_costs,
)
from blowfish_fast.measure.selectors.partitions import LeastCost

from .common import QUERIES, Call, Timed, counts, side, sizes, words

KINDS = ["dense", "sparse", "distinct", "fractions"]
PRICE = 12.0  # of a bucket, in records: what epsilon 0.1 makes of it
EPSILON_PARTITION = Fraction(1, 40)
BRANCHINGS = [2, 16]


def plain_partition(cells: int) -> tuple[np.ndarray, float]:
    """Return prices and grid of a partition without noise."""
    step, _ = kernels.partition_grid(cells, PRICE)
    return np.full(cells.bit_length(), PRICE), step


def query_ends(cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Return first and last cell of uniform random ranges."""
    generator = np.random.default_rng(2)
    ends = np.sort(generator.integers(0, cells, size=(2, QUERIES)), axis=0)
    return ends[0], ends[1]


def cut_ranges(leaves: int) -> tuple[np.ndarray, ...]:
    """Return ranges of leaves whose two ends are covered in part."""
    first, last = query_ends(leaves)
    part = np.random.default_rng(3).random((2, QUERIES))
    return first, part[0], last, part[1]


def curve_pieces(cells: int) -> tuple[np.ndarray, ...]:
    """Return random rectangles of a square grid as runs along the Hilbert curve."""
    order = kernels.hilbert_order((side(cells), side(cells)))
    return kernels.rectangle_intervals(*_walk(order), *_grid_and_boxes(cells))


def tree_noise(leaves: int, branching: int) -> tuple[np.ndarray, np.ndarray]:
    """Return variances and widths of a tree tuned to random ranges."""
    weights = kernels.greedy_scaling_fractions(
        *cut_ranges(leaves), None, leaves, branching
    ).weights
    widths = np.full(weights.size, np.inf)
    np.divide(1.0, weights, out=widths, where=weights > 0)
    return 2 * widths**2, widths


def _walk(order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    position = np.empty_like(order)
    position[order] = np.arange(order.size)
    return order, position


def _grid_and_boxes(
    cells: int, *, cut: bool = False
) -> tuple[tuple[int, int], np.ndarray, np.ndarray]:
    edge = side(cells)
    generator = np.random.default_rng(4)
    corners = np.sort(generator.integers(0, edge, size=(2, QUERIES, 2)), axis=0)
    lows, highs = corners[0].astype(np.float64), corners[1] + 1.0
    if cut:
        lows += 0.25
        highs -= 0.25
    return (edge, edge), lows, highs


class WindowDeviations(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["dense", "distinct"], [16, 1024]]

    def prepare(self, cells: int, data: str, length: int) -> Call:
        x = counts(data, cells)
        return lambda: kernels.window_deviations(x, length)


class WindowPinballCosts(Timed):
    params: ClassVar[list[Any]] = [sizes(), [16, 1024]]

    def prepare(self, cells: int, length: int) -> Call:
        x = counts("dense", cells)
        return lambda: kernels.window_pinball_costs(x, length, 3, 4)


class LeastCostPartition(Timed):
    params: ClassVar[list[Any]] = [sizes(), KINDS]

    def prepare(self, cells: int, data: str) -> Call:
        x = counts(data, cells)
        prices, step = plain_partition(cells)
        return lambda: kernels.least_cost_partition(x, prices, step=step)


class NoisyLeastCostPartition(Timed):
    params: ClassVar[list[Any]] = [
        sizes(),
        ["dense", "sparse", "distinct"],
        ["deviation", "pinball"],
    ]

    def prepare(self, cells: int, data: str, cost: Any) -> Call:
        recipe = LeastCost(cost=cost)
        noise = recipe.noise(cells, EPSILON_PARTITION)
        x = np.minimum(counts(data, cells), noise.cap)
        prices = PRICE + recipe.offset * noise.scales
        quantile = (3, 4) if cost == "pinball" else None
        source = words()
        return lambda: kernels.least_cost_partition(
            x, prices, noise.scales, source, step=noise.step, quantile=quantile
        )


class LeastCostPartitionAll(Timed):
    params: ClassVar[list[Any]] = [sizes(12, smallest=8), [False, True]]

    def prepare(self, cells: int, noise: bool) -> Call:
        x = counts("dense", cells)
        if not noise:
            step, _ = kernels.partition_grid(cells, PRICE)
            return lambda: kernels.least_cost_partition_all(x, PRICE, step=step)
        drawn = LeastCost("all").noise(cells, EPSILON_PARTITION)
        prices = PRICE + 4 * drawn.scales
        source = words()
        return lambda: kernels.least_cost_partition_all(
            x, prices, drawn.scales, source, step=drawn.step
        )


class IntervalCosts(Timed):
    params: ClassVar[list[Any]] = sizes(12, smallest=8)

    def prepare(self, cells: int) -> Call:
        x = counts("dense", cells)
        return lambda: kernels.interval_costs(x, step=2.0**-8)


class PartitionCost(Timed):
    def prepare(self, cells: int) -> Call:
        x = counts("dense", cells)
        boundaries = np.arange(0, cells + 1, 16)
        return lambda: kernels.partition_cost(x, boundaries)


class DyadicQuantileCosts(Timed):
    def prepare(self, cells: int) -> Call:
        x = counts("dense", cells)
        return lambda: dyadic_quantile_costs(x, 3, 4)


class NodeUnevenness(Timed):
    """One level of a tree over filled cells far apart."""

    def prepare(self, cells: int) -> Call:
        generator = np.random.default_rng(1)
        keys = np.unique(generator.integers(0, 2**60, cells))
        held = np.ones(keys.size, dtype=np.int64)
        raised = np.zeros(keys.size, dtype=np.int64)
        return lambda: raise_scores(keys, held, raised, 44)


class SampleDyadicPartition(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["dense", "sparse", "distinct"]]
    outliers: ClassVar[bool] = False

    def prepare(self, cells: int, data: str) -> Call:
        x = counts(data, cells)
        source = words()
        rate = EPSILON_PARTITION
        return lambda: kernels.sample_dyadic_partition(
            x, source, rate=rate, penalty=PRICE, outliers=self.outliers
        )


class SampleRunsWithOutliers(SampleDyadicPartition):
    outliers = True


class Choose(Timed):
    def prepare(self, rows: int) -> Call:
        bits = 32
        logs = np.random.default_rng(5).normal(scale=2.0, size=(rows, 4))
        log_weights = np.rint(np.ldexp(logs, bits)).astype(np.int64)
        source = words()
        return lambda: kernels.choose(source, 0, log_weights, bits)


class DiscreteLaplace(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["shared", "own"]]

    def prepare(self, draws: int, scales: str) -> Call:
        source = words()
        if scales == "shared":
            return lambda: kernels.laplace(source, 0, 40, 3, draws)
        above = np.random.default_rng(6).integers(1, 1000, size=draws)
        below = np.full(draws, 3)
        return lambda: kernels.laplace(source, 0, above, below)


class DiscreteGaussian(Timed):
    params: ClassVar[list[Any]] = [
        sizes(),
        ["shared", "few values", "own", "own, few values"],
    ]

    def prepare(self, draws: int, variances: str) -> Call:
        source = words()
        if variances.startswith("own"):
            below = np.random.default_rng(6).integers(1, 1000, size=draws)
            above = 10**9 if variances == "own" else 50
            return lambda: kernels.gaussian(source, 0, above, below)
        above = 10**6 if variances == "shared" else 9
        return lambda: kernels.gaussian(source, 0, above, 1, draws)


class Geometric(Timed):
    def prepare(self, draws: int) -> Call:
        source = words()
        return lambda: kernels.geometric(source, 0, 40, 3, draws)


class SubtractGeometric(Timed):
    def prepare(self, draws: int) -> Call:
        source = words()
        costs = np.zeros(draws, dtype=np.int64)
        return lambda: kernels.subtract_geometric(costs, source, 0, 13.25)


class GreedyScalingRanges(Timed):
    params: ClassVar[list[Any]] = [sizes(), BRANCHINGS]

    def prepare(self, leaves: int, branching: int) -> Call:
        queries = cut_ranges(leaves)
        return lambda: kernels.greedy_scaling_fractions(
            *queries, None, leaves, branching
        )


class GreedyScalingPieces(Timed):
    params: ClassVar[list[Any]] = [sizes(), BRANCHINGS]

    def prepare(self, leaves: int, branching: int) -> Call:
        pieces = curve_pieces(leaves)
        return lambda: kernels.greedy_scaling_pieces(*pieces, None, leaves, branching)


class GreedyScalingImplicit(Timed):
    params: ClassVar[list[Any]] = [
        sizes(),
        ["all_ranges", "prefixes", "identity", "total"],
    ]

    def prepare(self, leaves: int, queries: Any) -> Call:
        edges = np.arange(leaves + 1)
        return lambda: kernels.greedy_scaling_implicit(queries, edges, 16)


class RefineScaling(Timed):
    params: ClassVar[list[Any]] = [sizes(), BRANCHINGS]

    def prepare(self, leaves: int, branching: int) -> Call:
        queries = cut_ranges(leaves)
        start = kernels.greedy_scaling_fractions(
            *queries, None, leaves, branching
        ).weights
        return lambda: kernels.refine_scaling(
            *queries, None, leaves, branching, start=start
        )


class DesignRanges(Timed):
    """Weights for rho, swept to their certificate."""

    def prepare(self, leaves: int) -> Call:
        queries = cut_ranges(leaves)
        return lambda: kernels.design_ranges(*queries, leaves, 2)


class TreeTotals(Timed):
    def prepare(self, leaves: int) -> Call:
        x = counts("dense", leaves)
        tree = kernels.regular_tree(leaves, 16)
        return lambda: kernels.tree_totals(x, tree)


class TreeLeastSquares(Timed):
    params: ClassVar[list[Any]] = [sizes(), BRANCHINGS]

    fit = staticmethod(kernels.tree_fit)

    def prepare(self, leaves: int, branching: int) -> Call:
        variances, widths = tree_noise(leaves, branching)
        tree = kernels.regular_tree(leaves, branching)
        totals = kernels.tree_totals(counts("dense", leaves), tree)
        measured = np.where(np.isfinite(widths), widths, 0.0)
        noisy = totals + measured * np.random.default_rng(7).laplace(size=totals.size)
        return lambda: self.fit(noisy, variances, tree)


class TopDownFit(TreeLeastSquares):
    fit = staticmethod(kernels.top_down_fit)


class SharedWeights(Timed):
    def prepare(self, leaves: int) -> Call:
        tree = kernels.regular_tree(leaves, 16)
        costs = np.ones(tree.nodes)
        return lambda: kernels.shared_weights(costs, tree, 1)


class NodeVariances(Timed):
    def prepare(self, leaves: int) -> Call:
        variances, _ = tree_noise(leaves, 16)
        tree = kernels.regular_tree(leaves, 16)
        return lambda: kernels.node_variances(variances, tree)


class WholeFamilies(Timed):
    def prepare(self, leaves: int) -> Call:
        tree = kernels.regular_tree(leaves, 16)
        fit = kernels.tree_totals(counts("dense", leaves), tree) / 8.0
        exact, generator = np.zeros(tree.nodes, dtype=bool), np.random.default_rng(7)
        return lambda: kernels.whole_families(fit, exact, tree, generator)


class LeastEvenCost(Timed):
    """The statistic that chooses between rectangles and an adaptive grid."""

    params: ClassVar[list[Any]] = [[64, 256]]

    def prepare(self, side: int) -> Call:
        grid = counts("dense", side * side).reshape(side, side)
        weights = [[1.0] * side.bit_length()] * side.bit_length()
        return lambda: kernels.least_even_cost(grid, weights, 2**18)


class TreeSpreadRanges(Timed):
    params: ClassVar[list[Any]] = [sizes(), BRANCHINGS]

    def prepare(self, leaves: int, branching: int) -> Call:
        shape = (
            *tree_noise(leaves, branching),
            kernels.regular_tree(leaves, branching),
        )
        queries = cut_ranges(leaves)
        return lambda: kernels.tree_spread_ranges(*shape, *queries)


class TreeSpreadPieces(Timed):
    def prepare(self, leaves: int) -> Call:
        shape = (*tree_noise(leaves, 16), kernels.regular_tree(leaves, 16))
        pieces = curve_pieces(leaves)
        return lambda: kernels.tree_spread_pieces(*shape, *pieces)


class TreeTotalVariance(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["all_ranges", "identity"]]

    def prepare(self, leaves: int, queries: str) -> Call:
        variances, _ = tree_noise(leaves, 16)
        edges = np.arange(leaves + 1)
        tree = kernels.regular_tree(leaves, 16)
        return lambda: kernels.tree_total_variance(variances, tree, queries, edges)


class TreePaths(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["path", "pair", "windows"]]

    def prepare(self, leaves: int, heaviest: str) -> Call:
        tree = kernels.regular_tree(leaves, 16)
        rates = np.random.default_rng(8).integers(0, 2**31, size=tree.nodes)
        if heaviest == "windows":
            metric, line = kernels.LeafDistances(rates, tree), np.arange(leaves)
            return lambda: metric.in_boxes(line, np.array([51]))
        kernel = kernels.heaviest_path if heaviest == "path" else kernels.heaviest_pair
        return lambda: kernel(rates, tree)


class RangesToFractions(Timed):
    def prepare(self, cells: int) -> Call:
        first, last = query_ends(cells)
        edges = np.arange(0, cells + 1, 16)
        return lambda: kernels.ranges_to_fractions(first, last + 1, edges)


class IntervalsToPieces(Timed):
    def prepare(self, cells: int) -> Call:
        intervals = curve_pieces(cells)
        edges = np.arange(0, cells + 1, 16)
        return lambda: kernels.intervals_to_pieces(*intervals, edges)


class HilbertOrder(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["square", "oblong", "cube"]]

    def prepare(self, cells: int, grid: str) -> Call:
        edge = side(cells)
        shapes = {
            "square": (edge, edge),
            "oblong": (edge // 3, 3 * edge),
            "cube": (edge // 4, edge // 4, 16),
        }
        shape = shapes[grid]
        return lambda: kernels.hilbert_order(shape)


class SpreadEvenly(Timed):
    params: ClassVar[list[Any]] = [sizes(), [1, 64]]

    def prepare(self, cells: int, bucket: int) -> Call:
        edges = np.arange(0, cells + 1, bucket)
        totals = np.random.default_rng(cells).normal(0, 1e3, edges.size - 1)
        return lambda: kernels.spread_evenly(totals, edges)


class RectangleIntervals(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["curve", "rows"], [False, True]]

    def prepare(self, cells: int, walk: str, cut: bool) -> Call:
        shape, lows, highs = _grid_and_boxes(cells, cut=cut)
        order = kernels.hilbert_order(shape) if walk == "curve" else np.arange(cells)
        arrays = _walk(order)
        return lambda: kernels.rectangle_intervals(*arrays, shape, lows, highs)


class SummedAreaTable(Timed):
    def prepare(self, cells: int) -> Call:
        x = counts("dense", cells).reshape(side(cells), side(cells))
        return lambda: kernels.summed_area_table(x)


class RectangleSums(Timed):
    params: ClassVar[list[Any]] = [sizes(), [False, True]]

    def prepare(self, cells: int, cut: bool) -> Call:
        shape, lows, highs = _grid_and_boxes(cells, cut=cut)
        table = kernels.summed_area_table(counts("dense", cells).reshape(shape))
        if cut:
            return lambda: kernels.fractional_rectangle_sums(table, lows, highs)
        corners = lows.astype(np.int64), highs.astype(np.int64)
        return lambda: kernels.rectangle_sums(table, *corners)


class LargestRectangle(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["line", "grid"]]

    def prepare(self, cells: int, shape: str) -> Call:
        x = np.random.default_rng(4).integers(-9, 9, cells)
        # A grid takes its rows squared: 256 x 256 stands for a large map.
        edge = min(side(cells), 256)
        grid = x[: edge * edge].reshape(edge, edge) if shape == "grid" else x
        return lambda: kernels.largest_rectangle_sum(grid)


class Isotonic(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["increasing", "between"]]

    def prepare(self, cells: int, fit: str) -> Call:
        steps = np.random.default_rng(9).normal(loc=0.1, size=cells)
        values = np.cumsum(steps)
        if fit == "increasing":
            return lambda: kernels.isotonic_fit(values)
        return lambda: kernels.isotonic_fit(values, low=0.0, high=float(values[-1]))


class SmoothBuckets(Timed):
    def prepare(self, cells: int) -> Call:
        totals = counts("sparse", cells)[: cells // 8].astype(np.float64)
        edges = np.arange(totals.size + 1) * 8
        return lambda: kernels.smooth_buckets(totals, edges, 10.0)


class ShrinkTowardsZero(Timed):
    def prepare(self, buckets: int) -> Call:
        generator = np.random.default_rng(10)
        noisy = counts("sparse", buckets) + generator.laplace(scale=10.0, size=buckets)
        widths = np.full(buckets, 10.0)
        lengths = 2 ** generator.integers(0, 8, size=buckets)
        return lambda: kernels.shrink_towards_zero(noisy, widths, lengths)

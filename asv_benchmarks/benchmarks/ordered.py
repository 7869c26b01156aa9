"""Kernels of ordered domains and of policy trees: blocks, fits, clusters, trees.

The ordered-hierarchical mechanism, the fits of prefix sums, k-means over cells, and
spanning trees of policy graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from blowfish_fast.kernels.fitting.isotonic import isotonic_fit
from blowfish_fast.kernels.fitting.knots import knot_heights
from blowfish_fast.kernels.fitting.lloyd import (
    cell_positions,
    cluster_totals,
    squared_distance_total,
)
from blowfish_fast.kernels.fitting.piecewise_fit import piecewise_linear
from blowfish_fast.kernels.graph.graph_tree import (
    breadth_first_tree,
    lowest_common,
    subtract_children,
    subtree_totals,
    sums_to_root,
    top_down_order,
)
from blowfish_fast.kernels.graph.quotient_graph import adjacency
from blowfish_fast.kernels.tree.block_spread import block_noise, hierarchy_variances
from blowfish_fast.kernels.tree.block_trees import trees_over_blocks
from blowfish_fast.kernels.tree.fit import tree_fit

from .common import QUERIES, Timed, counts, sizes

Call = Callable[[], object]
THETA = 64
CENTRES = 4
SIDE = 256


def blocks_over(cells: int) -> Any:
    """Return the trees over blocks of `THETA` cells, fan-out 4."""
    edges = np.append(np.arange(0, cells, THETA), cells)
    return trees_over_blocks(edges, np.full(edges.size - 1, 4))


class HierarchyInference(Timed):
    def prepare(self, cells: int) -> Call:
        trees = blocks_over(cells)
        variances = trees.by_node(np.ones(trees.rows), np.inf)
        noisy = np.random.default_rng(2).normal(size=trees.tree.nodes)
        return lambda: tree_fit(noisy, variances, trees.tree)


class HierarchyVariances(Timed):
    """What each of 2000 ranges loses, exactly."""

    def prepare(self, cells: int) -> Call:
        trees = blocks_over(cells)
        variances = np.ones(trees.rows)
        cuts = np.sort(
            np.random.default_rng(3).integers(0, cells, size=(QUERIES, 2)), axis=1
        )
        pointers = 2 * np.arange(QUERIES + 1)
        parts, signs = np.zeros(2 * QUERIES), np.tile([-1.0, 1.0], QUERIES)
        places = cuts.reshape(-1)
        return lambda: hierarchy_variances(
            block_noise(variances, trees), trees, pointers, places, parts, signs
        )


class PrefixFit(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["piecewise", "isotonic", "knots"]]
    param_names: ClassVar[list[str]] = ["cells", "fit"]

    def prepare(self, cells: int, fit: str) -> Call:
        noise = np.random.default_rng(4).laplace(0, 10, size=cells)
        prefixes = np.cumsum(counts("sparse", cells)) + noise
        if fit == "piecewise":
            ends, penalty = np.array([cells]), np.array([200 * np.log(cells)])
            return lambda: piecewise_linear(prefixes, ends - cells, ends, penalty)
        fixed = np.zeros(cells, dtype=np.bool_)
        fixed[-1] = True
        if fit == "knots":
            lengths, parts = np.ones(cells), np.full(cells, 0.1)
            return lambda: knot_heights(lengths, parts, prefixes, lengths, fixed)
        high = float(prefixes[-1])
        return lambda: isotonic_fit(prefixes, fixed, low=0.0, high=high)


class KMeansStep(Timed):
    """One step of k-means over the cells of a square."""

    params: ClassVar[list[Any]] = [sizes(), ["cells", "totals", "distance"]]
    param_names: ClassVar[list[str]] = ["points", "kernel"]

    def prepare(self, points: int, kernel: str) -> Call:
        generator = np.random.default_rng(5)
        places = generator.random((points, 2)) * SIDE
        edges = np.tile(np.arange(SIDE + 1.0), 2)
        offsets = SIDE * np.arange(3)
        if kernel == "cells":
            return lambda: cell_positions(places, edges, offsets)
        centres = generator.random((CENTRES, 2)) * SIDE
        if kernel == "distance":
            return lambda: squared_distance_total(places, centres)
        cells = places.astype(np.int32)
        middles = np.arange(SIDE) + 0.5
        far = np.concatenate(
            [np.square(middles[:, None] - centres[:, axis]) for axis in range(2)]
        )
        once = np.zeros(0, dtype=np.int64)
        coordinates = np.tile(np.arange(SIDE), 2)
        return lambda: cluster_totals(cells, once, far, coordinates, offsets)


class GraphTree(Timed):
    """A spanning tree of a square of joined neighbours, and sums along it."""

    params: ClassVar[list[Any]] = [
        sizes(18),
        ["search", "order", "totals", "parts", "paths", "meeting"],
    ]
    param_names: ClassVar[list[str]] = ["cells", "kernel"]

    def prepare(self, cells: int, kernel: str) -> Call:
        side = 1 << (cells.bit_length() // 2)
        grid = np.arange(side * side).reshape(side, side)
        first = np.concatenate([grid[:, :-1].reshape(-1), grid[:-1].reshape(-1)])
        second = np.concatenate([grid[:, 1:].reshape(-1), grid[1:].reshape(-1)])
        graph = adjacency(first, second, grid.size)
        every = np.arange(grid.size)
        parents = breadth_first_tree(*graph, every)
        order = top_down_order(parents)
        x = counts("dense", grid.size)
        found: dict[str, Call] = {
            "search": lambda: breadth_first_tree(*graph, every),
            "order": lambda: top_down_order(parents),
            "totals": lambda: subtree_totals(x, parents, order),
            "parts": lambda: subtract_children(x, parents),
            "paths": lambda: sums_to_root(x, parents, order),
            "meeting": lambda: lowest_common(parents, order, first, second),
        }
        return found[kernel]

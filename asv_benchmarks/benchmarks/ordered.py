"""Kernels of ordered domains and of policy trees: blocks, fits, clusters, trees.

The ordered-hierarchical mechanism, the fits of prefix sums, k-means over cells, and
spanning trees of policy graphs.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from blowfish_fast import kernels
from blowfish_fast.kernels.graph.graph_tree import (
    sums_to_root,
)

from .common import QUERIES, Call, Timed, counts, sizes

THETA = 64
CENTRES = 4
SIDE = 256


def blocks_over(cells: int) -> Any:
    """Return the trees over blocks of `THETA` cells, fan-out 4."""
    edges = np.append(np.arange(0, cells, THETA), cells)
    return kernels.trees_over_blocks(edges, np.full(edges.size - 1, 4))


class HierarchyInference(Timed):
    def prepare(self, cells: int) -> Call:
        trees = blocks_over(cells)
        variances = trees.by_node(np.ones(trees.rows), np.inf)
        noisy = np.random.default_rng(2).normal(size=trees.tree.nodes)
        return lambda: kernels.tree_fit(noisy, variances, trees.tree)


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
        return lambda: kernels.hierarchy_variances(
            kernels.block_noise(variances, trees), trees, pointers, places, parts, signs
        )


class PrefixFit(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["piecewise", "isotonic", "knots"]]

    def prepare(self, cells: int, fit: str) -> Call:
        noise = np.random.default_rng(4).laplace(0, 10, size=cells)
        prefixes = np.cumsum(counts("sparse", cells)) + noise
        if fit == "piecewise":
            ends, penalty = np.array([cells]), np.array([200 * np.log(cells)])
            return lambda: kernels.piecewise_linear(
                prefixes, ends - cells, ends, penalty
            )
        fixed = np.zeros(cells, dtype=np.bool_)
        fixed[-1] = True
        if fit == "knots":
            lengths, parts = np.ones(cells), np.full(cells, 0.1)
            return lambda: kernels.knot_heights(
                lengths, parts, prefixes, lengths, fixed
            )
        high = float(prefixes[-1])
        return lambda: kernels.isotonic_fit(prefixes, fixed, low=0.0, high=high)


class KMeansStep(Timed):
    """One step of k-means over the cells of a square."""

    params: ClassVar[list[Any]] = [sizes(), ["cells", "totals", "distance"]]

    def prepare(self, points: int, kernel: str) -> Call:
        generator = np.random.default_rng(5)
        places = generator.random((points, 2)) * SIDE
        edges = np.tile(np.arange(SIDE + 1.0), 2)
        offsets = SIDE * np.arange(3)
        if kernel == "cells":
            return lambda: kernels.cell_positions(places, edges, offsets)
        centres = generator.random((CENTRES, 2)) * SIDE
        if kernel == "distance":
            return lambda: kernels.squared_distance_total(places, centres)
        cells = places.astype(np.int32)
        middles = np.arange(SIDE) + 0.5
        far = np.concatenate(
            [np.square(middles[:, None] - centres[:, axis]) for axis in range(2)]
        )
        once = np.zeros(0, dtype=np.int64)
        coordinates = np.tile(np.arange(SIDE), 2)
        return lambda: kernels.cluster_totals(cells, once, far, coordinates, offsets)


class GraphTree(Timed):
    """A spanning tree of a square of joined neighbours, and sums along it."""

    params: ClassVar[list[Any]] = [
        sizes(18),
        ["search", "order", "totals", "parts", "paths", "meeting"],
    ]

    def prepare(self, cells: int, kernel: str) -> Call:
        side = 1 << (cells.bit_length() // 2)
        grid = np.arange(side * side).reshape(side, side)
        first = np.concatenate([grid[:, :-1].reshape(-1), grid[:-1].reshape(-1)])
        second = np.concatenate([grid[:, 1:].reshape(-1), grid[1:].reshape(-1)])
        graph = kernels.adjacency(first, second, grid.size)
        every = np.arange(grid.size)
        parents = kernels.breadth_first_tree(*graph, every)
        order = kernels.top_down_order(parents)
        x = counts("dense", grid.size)
        found: dict[str, Call] = {
            "search": lambda: kernels.breadth_first_tree(*graph, every),
            "order": lambda: kernels.top_down_order(parents),
            "totals": lambda: kernels.subtree_totals(x, parents, order),
            "parts": lambda: kernels.subtract_children(x, parents),
            "paths": lambda: sums_to_root(x, parents, order),
            "meeting": lambda: kernels.lowest_common(parents, order, first, second),
        }
        return found[kernel]

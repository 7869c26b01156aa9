"""Trees and grids over space: time of kernels and of whole releases, and their error.

Maps are generated: a few towns in an empty country. Errors are tracked beside times,
so that a speed-up that costs accuracy shows.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from blowfish_fast import (
    Districts,
    Domain,
    Histogram,
    Nested,
    Nesting,
    kernels,
    policies,
)
from blowfish_fast.kernels.space import (
    box_buckets,
)
from blowfish_fast.kernels.tree.shape import (
    Tree,
)
from blowfish_fast.measure.selectors.partitions.kd_cells import median_costs
from blowfish_fast.measure.strategies.trees.box_tree import BoxTree
from blowfish_fast.mechanisms.registry import MECHANISMS

from .common import EPSILON, SMALL, Call, Timed, grid, rectangles, side, sizes

NAMES = ["quad_tree", "hybrid_tree", "uniform_grid", "adaptive_grid"]
GRIDS = sizes(20, smallest=12)


def quadtree(cells: int) -> Tree:
    """Return the shape of a quadtree over a square map."""
    shape = (side(cells), side(cells))
    placed = BoxTree.whole(shape).quartered().arranged(shape)
    return kernels.tree_of_parents(placed.parents)


class GrowQuadTree(Timed):
    """Boxes down to cells, in the order of their strategy."""

    params: ClassVar[list[Any]] = [GRIDS]

    def prepare(self, cells: int) -> Call:
        shape = (side(cells), side(cells))
        return lambda: BoxTree.whole(shape).quartered().counted(shape)


class DivideBoxes(Timed):
    """One cut of the whole map into single cells."""

    params: ClassVar[list[Any]] = [GRIDS]

    def prepare(self, cells: int) -> Call:
        highs = np.array([[side(cells), side(cells)]])
        lows = np.zeros_like(highs)
        return lambda: box_buckets.divide_boxes(lows, highs, highs)


class IrregularTreeFit(Timed):
    """Exact least squares over all boxes."""

    params: ClassVar[list[Any]] = [GRIDS]

    def prepare(self, cells: int) -> Call:
        tree = quadtree(cells)
        generator = np.random.default_rng(1)
        noisy = generator.normal(size=tree.nodes)
        variances = generator.uniform(1.0, 9.0, tree.nodes)
        return lambda: kernels.tree_fit(noisy, variances, tree)


class IrregularTreeSpread(Timed):
    """The law of the noise in random runs of leaves."""

    params: ClassVar[list[Any]] = [GRIDS]

    def prepare(self, cells: int) -> Call:
        tree = quadtree(cells)
        generator = np.random.default_rng(1)
        ends = np.sort(generator.integers(0, tree.leaves + 1, (2, 2000)), axis=0)
        pointers = np.arange(2001)
        values = np.ones(2000)
        variances = generator.uniform(1.0, 9.0, tree.nodes)
        scales = np.sqrt(variances / 2.0)
        return lambda: kernels.tree_spread_pieces(
            variances, scales, tree, pointers, ends[0], ends[1], values
        )


class MedianCosts(Timed):
    """Costs of all cuts of the whole map, summed areas included."""

    params: ClassVar[list[Any]] = [GRIDS]

    def prepare(self, cells: int) -> Call:
        _, data = grid(cells)
        highs = np.array([[side(cells), side(cells)]])
        lows, axes = np.zeros_like(highs), np.zeros(1, np.int64)
        return lambda: median_costs(
            kernels.summed_area_table(data.counts), lows, highs, axes
        )


class SpatialRelease(Timed):
    """A whole release, in CPU time."""

    params: ClassVar[list[Any]] = [NAMES, GRIDS]

    def prepare(self, mechanism: str, cells: int) -> Call:
        domain, data = grid(cells)
        recipe = MECHANISMS[mechanism](
            policies.AddRemove(domain), rectangles(domain), epsilon=EPSILON
        )
        return lambda: recipe.release(data)


class SpatialError:
    """Mean absolute error of random rectangles, seeded."""

    params: ClassVar[list[Any]] = [NAMES, sizes(16)]
    param_names: ClassVar[list[str]] = ["mechanism", "cells"]
    timeout = 300
    unit = "records per rectangle"

    def track_error(self, name: str, cells: int) -> float:
        domain, data = grid(cells)
        asked = rectangles(domain)
        mechanism = MECHANISMS[name](policies.AddRemove(domain), asked, epsilon=EPSILON)
        truth = asked.answer(data.counts)
        errors = [
            np.abs(mechanism.release(data, rng=seed).answer(asked) - truth).mean()
            for seed in range(3)
        ]
        return float(np.mean(errors))


def bent_squares(many: int) -> Districts:
    """Return squares whose common borders are bent alike on both sides."""
    across = side(many)
    bends = np.sin(np.arange(9) * np.pi / 8) * 0.2

    def line(x: int, y: int, east: int, north: int) -> list[tuple[float, float]]:
        steps = np.arange(8) / 8
        off = bends[:8] * (1 if (x + y) % 2 else -1)
        return [
            (x + step * east + bend * north, y + step * north + bend * east)
            for step, bend in zip(steps, off, strict=True)
        ]

    shapes = []
    for x in range(across):
        for y in range(across):
            bottom, right = line(x, y, 1, 0), line(x + 1, y, 0, 1)
            top, left = line(x, y + 1, 1, 0), line(x, y, 0, 1)
            ring = [*bottom, *right, (x + 1, y + 1), *top[:0:-1], *left[::-1]]
            shapes.append({"type": "Polygon", "coordinates": [ring]})
    system = "EPSG:2056"
    return Districts.from_shapes(shapes, range(len(shapes)), system=system)


class PointsIntoPolygons(Timed):
    """A million points into about 3,000 districts; goal: below 1 CPU s."""

    params: ClassVar[list[Any]] = [sizes(20, smallest=12)]

    def prepare(self, points: int) -> Call:
        districts = bent_squares(64 if SMALL else 3025)
        far = side(len(districts.ids))
        x, y = np.random.default_rng(1).uniform(-1, far + 1, (2, points))
        place = Domain.from_polygons(districts)
        table = {"x": x, "y": y}
        return lambda: Histogram.from_records(place, table, outside="cell")


class NestedRelease(Timed):
    """Six levels of districts over up to a million blocks; goal: below .5 CPU s."""

    params: ClassVar[list[Any]] = [sizes(20, smallest=12)]

    def prepare(self, blocks: int) -> Call:
        numbers = np.arange(blocks)
        names = ["state", "county", "tract", "group", "block"]
        cells = [max(blocks // 51, 2), 330, 13, 4, 1]
        table = {name: numbers // size for name, size in zip(names, cells, strict=True)}
        for above, name in pairwise(names):
            # Districts lie inside those above.
            table[name] = table[above] * blocks + table[name]
        nest = Nesting.from_columns(table, names)
        policy = policies.AddRemove(nest.domain)
        asked = nest.workload(**dict.fromkeys(names, 1.0))
        mechanism = Nested(policy, asked, epsilon=1)
        people = Histogram(
            nest.domain, np.random.default_rng(1).poisson(12, nest.domain.size)
        )
        return lambda: mechanism.release(people)

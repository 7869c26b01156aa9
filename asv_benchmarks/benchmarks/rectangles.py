"""Sampled rectangles on square maps: stage by stage, and whole releases."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np

from blowfish_fast import Dawa, kernels, policies
from blowfish_fast.data.buckets import cell_order
from blowfish_fast.kernels.partition.rectangle_partition import (
    lattice_totals,
)
from blowfish_fast.kernels.partition.rectangle_prior import (
    fixed_point_weights,
)
from blowfish_fast.kernels.window_costs.rectangle_costs import (
    dyadic_rectangle_costs,
)
from blowfish_fast.measure.selectors.partitions import DyadicRectangles, DyadicTree

from .common import EPSILON, Call, Timed, grid, rectangles, sizes, words

# Three tenths of epsilon for the partition, as in a release.
RATE = Fraction(EPSILON) * Fraction(3, 10)
PENALTY = Fraction(1, 5) / (Fraction(EPSILON) * Fraction(7, 10))
SEEDS = 3


class Costs(Timed):
    """Pinball costs of all dyadic rectangles."""

    def prepare(self, cells: int) -> Call:
        _, data = grid(cells)
        return lambda: dyadic_rectangle_costs(data.counts, 3, 4)


class Lattice(Timed):
    """Weights and totals of all nodes."""

    def prepare(self, cells: int) -> Call:
        domain, data = grid(cells)
        costs = dyadic_rectangle_costs(data.counts, 3, 4)
        weights = fixed_point_weights(domain.shape, rate=RATE, penalty=PENALTY)
        # The costs are overwritten; a copy is a small part of the time.
        return lambda: lattice_totals(
            [[one.copy() for one in line] for line in costs], weights
        )


class Sample(Timed):
    """Costs, totals and one draw: all of stage 1."""

    def prepare(self, cells: int) -> Call:
        domain, data = grid(cells)
        walk = cell_order(domain).order
        return lambda: kernels.sample_rectangles(
            data.counts, words(), rate=RATE, penalty=PENALTY, walk=walk
        )


class Pieces(Timed):
    """Two thousand rectangles as runs of the buckets that were drawn."""

    def prepare(self, cells: int) -> Call:
        domain, data = grid(cells)
        edges, order = kernels.sample_rectangles(
            data.counts,
            words(),
            rate=RATE,
            penalty=PENALTY,
            walk=cell_order(domain).order,
        )
        asked = rectangles(domain)

        def cut() -> object:
            boxes = kernels.bucket_boxes(order, edges, domain.shape)
            return kernels.boxes_to_pieces(asked.starts, asked.ends, boxes)

        return cut


class Release(Timed):
    """DAWA on a map, by rectangles and along the curve."""

    params: ClassVar[list[list[object]]] = [
        ["dyadic_rectangles", "dyadic_tree"],
        sizes(),
    ]

    def dawa(self, partition: str, cells: int) -> tuple[Dawa, object]:
        """Return the recipe with one of the partitions, and its data."""
        domain, data = grid(cells)
        asked = rectangles(domain)
        typical = asked.mean_cells()
        offered = {
            "dyadic_rectangles": DyadicRectangles(query_cells=typical),
            "dyadic_tree": DyadicTree(query_cells=typical, dimensions=2),
        }
        policy = policies.AddRemove(domain)
        recipe = Dawa(policy, asked, epsilon=EPSILON, partition=offered[partition])
        return recipe, data

    def prepare(self, partition: str, cells: int) -> Call:
        dawa, data = self.dawa(partition, cells)
        return lambda: dawa.release(data, rng=1)

    def track_error(self, partition: str, cells: int) -> float:
        """Mean error per rectangle: a faster partition must not be a worse one."""
        dawa, data = self.dawa(partition, cells)
        truth = dawa.workload.answer(data)
        errors = [
            np.abs(dawa.release(data, rng=seed).answer(dawa.workload) - truth).mean()
            for seed in range(SEEDS)
        ]
        return float(np.mean(errors))

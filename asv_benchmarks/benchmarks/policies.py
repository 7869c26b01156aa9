"""Policies: distances and quotients, and the kernels that serve them.

Every registered kind that can be stated over a domain alone is taken from the
registry; kinds that need more have a line in `BUILDERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from blowfish_fast import Domain, kernels, policies
from blowfish_fast.data.buckets import Buckets

from .common import QUERIES, SMALL, Call, Timed, side, sizes

THETA = 16
PAIRS = 2**10 if SMALL else 2**14


def _graph(domain: Domain) -> policies.Policy:
    """Return a ring with as many random chords as cells."""
    cells = np.arange(domain.size)
    chords = np.random.default_rng(1).integers(0, domain.size, size=(domain.size, 2))
    chords = chords[chords[:, 0] != chords[:, 1]]
    ring = np.column_stack([cells, np.roll(cells, -1)])
    return policies.Graph(domain, np.concatenate([ring, chords]))


BUILDERS: dict[str, Callable[[Domain], policies.Policy]] = {
    "threshold": lambda domain: policies.Threshold(domain, THETA),
    "blocks": lambda domain: policies.Blocks(domain, np.arange(domain.size) // THETA),
    "graph": _graph,
}


def _kinds() -> list[str]:
    found = dict(BUILDERS)
    for kind, policy in policies.POLICIES.items():
        if kind not in found:
            try:
                policy(Domain(4))
            except Exception:  # it needs more than a domain, or is a derived form
                continue
            found[kind] = policy
    BUILDERS.update(found)
    return sorted(found)


KINDS = _kinds()


class Distance(Timed):
    params: ClassVar[list[Any]] = [sizes(16), KINDS]

    def prepare(self, cells: int, policy: str) -> Call:
        stated = BUILDERS[policy](Domain(cells))
        # Few different sources: a general graph is searched once for each.
        generator = np.random.default_rng(2)
        first = generator.choice(generator.integers(0, cells, size=16), size=PAIRS)
        second = generator.integers(0, cells, size=PAIRS)
        return lambda: stated.distance(first, second)


class Quotient(Timed):
    params: ClassVar[list[Any]] = [sizes(16), KINDS]

    def prepare(self, cells: int, policy: str) -> Call:
        stated = BUILDERS[policy](Domain(cells))
        buckets = Buckets(np.arange(0, cells + 1, 4))
        return lambda: stated.project(buckets).components()


class GraphKernels(Timed):
    params: ClassVar[list[Any]] = [
        sizes(),
        ["adjacency", "components", "pair_distances"],
    ]

    def prepare(self, nodes: int, kernel: str) -> Call:
        generator = np.random.default_rng(3)
        first = np.arange(nodes)
        second = (first + generator.integers(1, nodes, size=nodes)) % nodes
        if kernel == "adjacency":
            return lambda: kernels.adjacency(first, second, nodes)
        graph = kernels.adjacency(first, second, nodes)
        if kernel == "components":
            return lambda: kernels.component_labels(*graph)
        sources = np.repeat(generator.integers(0, nodes, size=4), 16)
        targets = generator.integers(0, nodes, size=sources.size)
        return lambda: kernels.pair_distances(*graph, sources, targets)


class ReachDistances(Timed):
    def prepare(self, nodes: int) -> Call:
        far = np.minimum(np.arange(nodes) + THETA, nodes - 1)
        first, second = np.random.default_rng(4).integers(0, nodes, size=(2, PAIRS))
        return lambda: kernels.band_distances(far, first, second)


class CornerDistances(Timed):
    def prepare(self, cells: int) -> Call:
        shape = (side(cells), side(cells))
        steps = np.array([[0, 1], [1, 0], [2, 1]])
        return lambda: kernels.corner_distances(shape, steps)


class LargestSeparation(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["reach", "edges"]]

    def prepare(self, cells: int, graph: str) -> Call:
        generator = np.random.default_rng(5)
        ends = np.sort(generator.integers(0, cells, size=(2, QUERIES)), axis=0)
        starts, after = ends[0], ends[1] + 1
        if graph == "reach":
            far = np.minimum(np.arange(cells) + THETA, cells - 1)
            return lambda: kernels.largest_separation(starts, after, far)
        first = np.arange(cells)
        second = (first + generator.integers(1, cells, size=cells)) % cells
        rows = kernels.adjacency(first, second, cells)
        return lambda: kernels.largest_edge_separation(*rows, starts, after, cells)


class LargestChangeWithin(Timed):
    def prepare(self, cells: int) -> Call:
        far = np.minimum(np.arange(cells) + THETA, cells - 1)
        lines = np.random.default_rng(6).normal(size=(2, cells))
        return lambda: kernels.largest_change_within(lines, far)


class LargestBoxSeparation(Timed):
    def prepare(self, cells: int) -> Call:
        edge = side(cells)
        generator = np.random.default_rng(7)
        corners = np.sort(generator.integers(0, edge, size=(2, QUERIES, 2)), axis=0)
        steps = np.array([[0, 1], [1, 0], [1, 1]])
        shape = (edge, edge)
        return lambda: kernels.largest_box_separation(
            shape, corners[0], corners[1] + 1, steps
        )


class BoxColumns(Timed):
    params: ClassVar[list[Any]] = [sizes(16), ["columns", "furthest"]]

    def prepare(self, cells: int, kernel: str) -> Call:
        edge = side(cells)
        generator = np.random.default_rng(8)
        boxes = np.sort(generator.integers(0, edge, size=(2, 200, 2)), axis=0)
        ones = np.ones(boxes.shape[1:])
        shape = (edge, edge)
        if kernel == "columns":
            return lambda: kernels.box_columns(shape, boxes[0], boxes[1], ones, ones)
        pointers, rows, values = kernels.box_columns(
            shape, boxes[0], boxes[1], ones, ones
        )
        lengths = kernels.column_lengths(pointers, values)
        far = np.minimum(np.arange(cells) + THETA, cells - 1)
        return lambda: kernels.furthest_in_windows(
            pointers, rows, values, lengths, far, budget=2**30
        )

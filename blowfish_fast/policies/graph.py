"""An explicit policy graph, held in compressed rows, both directions of an edge."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_integers, read_only
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import PolicyError, SizeError

from .base import PUBLIC_TOTAL, Policy, values_name
from .protocol import (
    ABSENT,
    Bandwidth,
    Change,
    Components,
    Spent,
    as_keys,
    at_distance,
    beyond,
    beyond_factor,
)

MOST_JOINED_EDGES = 2**22
"""Edges of a policy to which those of extra cells are added one by one."""


class Rows(NamedTuple):
    """Neighbours of every cell, then of "absent", in compressed rows.

    Attributes
    ----------
    pointers : ndarray of int64, shape (cells + 2,)
        Where the neighbours of each begin.
    neighbours : ndarray of int64
        The neighbours.
    """

    pointers: IntArray
    neighbours: IntArray


class Graph(Policy):
    """Exactly the listed pairs of values must stay indistinguishable.

    Parameters
    ----------
    domain : Domain
        The cells.
    edges : array-like of int, shape (edges, 2)
        Pairs of cell numbers in C order, -1 for "absent"; repeats and both directions
        of an edge count once.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> ring = Graph(Domain(5), [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])
    >>> ring.distance(0, [1, 2, 3])
    array([1., 2., 2.])
    >>> Graph(Domain(3), [[0, 1]]).components().labels
    array([0, 0, 1])
    """

    kind = "graph"

    def __init__(self, domain: Domain, edges: Any) -> None:
        super().__init__(domain)
        ends = _read_edges(edges, domain.size)
        nodes = np.where(ends == ABSENT, domain.size, ends)
        rows = kernels.adjacency(nodes[:, 0], nodes[:, 1], domain.size + 1)
        self._rows = Rows(*map(read_only, rows))

    @property
    def rows(self) -> Rows:
        """The graph in compressed rows; its last node is "absent"."""
        return self._rows

    def _ends(self) -> tuple[IntArray, IntArray]:
        """Return each edge once; "absent" is the node after the last cell."""
        return kernels.upper_pairs(*self.rows)

    @property
    def has_bottom(self) -> bool:
        """Whether "absent" has an edge."""
        return bool(self.rows.pointers[-1] > self.rows.pointers[-2])

    @property
    def has_moves(self) -> bool:
        """Whether two cells are joined."""
        return 2 * int(self.bottom_cells().sum()) < self.rows.neighbours.size

    def bottom_cells(self) -> BoolArray:
        """Mark the cells that are joined to "absent"."""
        marks = np.zeros(self.domain.size, dtype=np.bool_)
        marks[self.rows.neighbours[self.rows.pointers[-2] :]] = True
        return marks

    def components(self) -> Components:
        """Return the connected parts, numbered by their first cell."""
        return self._components

    @cached_property
    def _components(self) -> Components:
        labels, count = kernels.component_labels(*self.rows)
        if not self.has_bottom:
            # "absent" stands alone, and last.
            count -= 1
        private = np.zeros(count, dtype=np.bool_)
        if self.has_bottom:
            private[labels[-1]] = True
        parts = read_only(labels[:-1].copy()) if count > 1 else None
        return Components(parts, read_only(private))

    def _edges(self) -> Iterator[IntArray]:
        low, high = self._ends()
        yield np.column_stack([low, np.where(high == self.domain.size, ABSENT, high)])

    @property
    def edge_count(self) -> int:
        """Number of different edges."""
        return self.rows.neighbours.size // 2

    def _bandwidth(self, order: IntArray | None) -> Bandwidth | None:
        cells = self.domain.size
        position = np.arange(cells)
        if order is not None:
            position[order] = np.arange(cells)
        low, high = self._ends()
        move = high < cells
        low, high = position[low[move]], position[high[move]]
        low, high = np.minimum(low, high), np.maximum(low, high)
        far = np.arange(cells)
        np.maximum.at(far, low, high)
        above = np.bincount(low, minlength=cells)
        between = bool((far - np.arange(cells) == above).all())
        return Bandwidth(far, between and bool((np.diff(far) >= 0).all()))

    def _joined(self, first: IntArray, second: IntArray) -> BoolArray:
        nodes = self.domain.size + 1
        # Rows are sorted one after the other, so the keys of all edges are too.
        keys = np.repeat(np.arange(nodes), np.diff(self.rows.pointers))
        keys = keys * nodes + self.rows.neighbours
        asked = (first % nodes) * nodes + second % nodes
        place = np.searchsorted(keys, asked)
        joined = np.zeros(asked.shape, dtype=np.bool_)
        inside = place < keys.size
        joined[inside] = keys[place[inside]] == asked[inside]
        return joined

    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        nodes = self.domain.size + 1
        return kernels.pair_distances(*self.rows, first % nodes, second % nodes)

    def _largest_change(self, lines: FloatArray) -> Change:
        low, high = self._ends()
        move = high < self.domain.size
        low, high = low[move], high[move]
        best = 0.0
        if low.size:
            for values in lines:
                best = max(best, float(np.abs(values[low] - values[high]).max()))
        return Change(best, True)

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        bins = np.append(buckets.labels, ABSENT)
        ends = bins[np.column_stack(self._ends())]
        return Graph(domain, ends[ends[:, 0] != ends[:, 1]])

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        name = values_name(self.domain)
        theta = self._threshold_beside_extras()
        if theta:
            extras = " or ".join(self.domain.attributes[0].extras)
            apart = "neighbouring cells" if theta == 1 else f"cells up to {theta} apart"
            return (
                f"two people whose {name} lie in {apart}, and any two of whom one is "
                f"in the cell {extras}, cannot be told apart {beyond(budget)}; others, "
                f"{at_distance(budget)}, with d the number of such steps between them"
            )
        bottom = int(self.bottom_cells().sum())
        moves = self.edge_count - bottom
        parts = []
        if moves:
            parts.append(
                f"two people whose {name} are joined by one of the {moves:,} edges of "
                f"the policy graph cannot be told apart {beyond(budget)}; d edges "
                f"apart, {at_distance(budget)}; without a path between them, not "
                "protected from each other"
            )
        if bottom:
            parts.append(
                f"for {bottom:,} of the {self.domain.size:,} {name} nobody can tell, "
                f"{beyond_factor(budget)}, whether a person who has it is in the data"
            )
        return "; ".join(parts) or "nothing is a secret: the policy graph has no edges"

    def describe_totals(self) -> str:
        """Say which totals are public."""
        return PUBLIC_TOTAL if self._threshold_beside_extras() else ""

    def _threshold_beside_extras(self) -> int:
        """Return how far apart ordered cells are joined, extra cells to all; else 0."""
        if self.domain.ndim != 1 or self.has_bottom:
            return 0
        axis = self.domain.attributes[0]
        if not axis.extras or axis.levels is not None:
            return 0
        low, high = self._ends()
        ordered = axis.regular
        gaps = (high - low)[high < ordered]
        theta = int(gaps.max(initial=0))
        wanted = sum(ordered - gap for gap in range(1, theta + 1))
        beside = sum(range(ordered, axis.size))
        # Each edge is listed once, so the right number of them is all of them.
        whole = gaps.size == wanted and low.size - gaps.size == beside
        return theta if whole else 0

    @property
    def neighbours(self) -> str:
        """Say how two neighbouring databases differ."""
        moves = "one record moves along an edge of the policy graph"
        return f"{moves}, is added or is removed" if self.has_bottom else moves

    def _parameters(self) -> dict[str, Any]:
        return {"edges": [pair for chunk in self.edges() for pair in chunk.tolist()]}

    @classmethod
    def _from_parameters(cls, domain: Domain, data: dict[str, Any]) -> Self:
        return cls(domain, data["edges"])

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        return as_keys(self.domain, np.concatenate(self.rows))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r}, {self.edge_count:,} edges)"


def _read_edges(edges: Any, cells: int) -> IntArray:
    ends = as_integers(edges, "edges", PolicyError)
    if ends.size == 0:
        ends = ends.reshape(0, 2)
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise PolicyError(
            "edges must be pairs of cells, of shape (E, 2)",
            received=f"shape {ends.shape}",
            way_out="One edge is [[0, 1]]",
            code="edges_not_pairs",
        )
    outside = ((ends < ABSENT) | (ends >= cells)).any(axis=1)
    wrong = np.flatnonzero(outside | (ends[:, 0] == ends[:, 1]))
    if wrong.size:
        raise PolicyError(
            f'an edge joins two cells of 0 to {cells - 1}, or one and -1, "absent"',
            received=f"edge {wrong[0]}, {tuple(ends[wrong[0]].tolist())}",
            way_out="Cells are numbered in C order (numpy.ravel_multi_index)",
            code="edge_outside_domain",
        )
    return ends


def join_extra_cells(inner: Policy, domain: Domain) -> Graph:
    """Return a policy over one attribute whose extra cells are joined to all others.

    A cell for missing values or values outside has no place along its axis; joined to
    all others it protects most.

    Parameters
    ----------
    inner : Policy
        The policy over ``domain.without_extra_cells()``.
    domain : Domain
        One attribute with extra cells.

    Returns
    -------
    Graph
        The policy.

    Raises
    ------
    SizeError
        If there are too many edges to list.
    """
    (axis,) = domain.attributes
    if inner.edge_count > MOST_JOINED_EDGES:
        raise SizeError(
            f"the policy of {axis.name!r} has {inner.edge_count:,} edges, and with a "
            "cell for missing values or values outside at most 2^22 are listed",
            way_out="Use fewer, larger cells, policies.Full, or clamp such values",
            code="too_many_edges_for_extra_cells",
        )
    parts = list(inner.edges())
    for extra in range(axis.regular, domain.size):
        others = np.arange(extra)
        parts.append(np.column_stack([others, np.full(extra, extra)]))
    return Graph(domain, np.concatenate(parts))

"""Any value may be any other: over all cells, or inside blocks that may be known."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_integers, read_only
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import PolicyError

from .base import PUBLIC_TOTAL, Policy, values_name
from .projection import Band, Projection, bins_of_cells, clique_bins
from .protocol import (
    Bandwidth,
    Change,
    Components,
    PolicyGraph,
    Spent,
    beyond,
    beyond_factor,
)


class Full(Policy):
    """Every two cells are joined: any record may have any value; the total is public.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Full(Domain(8)).components().private
    array([False])
    """

    kind = "full"
    takes_wide = True
    same_on_bins = True

    neighbours = "one record changes its value to any other"

    def _edges(self) -> Iterator[IntArray]:
        for low in range(self.domain.size - 1):
            cells = np.arange(low + 1, self.domain.size)
            yield np.column_stack([np.full(cells.size, low), cells])

    @property
    def edge_count(self) -> int:
        """Every pair of cells."""
        return self.domain.size * (self.domain.size - 1) // 2

    def _bandwidth(self, order: IntArray | None) -> Bandwidth | None:
        cells = self.domain.size
        return Bandwidth(np.full(cells, cells - 1, dtype=np.int64), True)

    def longest_edge(self) -> int:
        """Return the span of the whole line, in C order."""
        return self.domain.size - 1

    def _grid_moves(self, shape: tuple[int, ...], most: int) -> IntArray | None:
        if len(shape) > 1 or shape[0] - 1 > most:
            return None
        return np.arange(1, shape[0])[:, None]

    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        return np.where(first == second, 0.0, 1.0)

    def _largest_change(self, lines: FloatArray) -> Change:
        return Change(float((lines.max(axis=1) - lines.min(axis=1)).max()), True)

    def _includes(self, other: PolicyGraph) -> bool | None:
        return not other.has_bottom

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        return Full(domain)

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        return (
            f"nobody can tell, {beyond_factor(budget)}, which of any two values a "
            "person has"
        )

    def describe_totals(self) -> str:
        """Say which totals are public."""
        return f"{PUBLIC_TOTAL} (bounded differential privacy)"


class Blocks(Policy):
    """Cells of one block are joined to each other, and to no others.

    The number of records in each block is public: no edge leaves a block.

    Parameters
    ----------
    domain : Domain
        The cells.
    labels : array-like of int
        The block of each cell, 0 or more, of the domain's shape or flat in C order.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> halves = Blocks(Domain(6), [0, 0, 0, 1, 1, 1])
    >>> halves.components().count
    2
    >>> halves.distance(0, [1, 3])
    array([ 1., inf])
    """

    kind = "blocks"
    stated = ("labels",)
    neighbours = "one record changes its value inside its block"

    def __init__(self, domain: Domain, labels: Any) -> None:
        super().__init__(domain)
        numbers = as_integers(labels, "labels", PolicyError)
        if numbers.shape not in (domain.shape, (domain.size,)):
            raise PolicyError(
                f"labels must cover the domain: shape {domain.shape}, or "
                f"({domain.size},) in C order",
                received=numbers.shape,
            )
        self._given = read_only(numbers.reshape(-1))
        if self._given.min() < 0:
            raise PolicyError(
                "each cell needs a block, 0 or more",
                received=self._given.min(),
                way_out="A cell that is joined to no other gets a label of its own",
            )

    @cached_property
    def labels(self) -> IntArray:
        """The block of each cell, numbered by first cell."""
        numbers, cells = self._given, self.domain.size
        if numbers.max() >= 4 * cells:
            numbers = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
        first = np.full(int(numbers.max()) + 1, cells, dtype=np.int64)
        # Written from the end, so the first cell of each block stays.
        first[numbers[::-1]] = np.arange(cells - 1, -1, -1)
        used = np.flatnonzero(first < cells)
        number = np.empty(first.size, dtype=np.int64)
        number[used[np.argsort(first[used])]] = np.arange(used.size)
        return read_only(number[numbers])

    @cached_property
    def sizes(self) -> IntArray:
        """Number of cells of each block."""
        return read_only(np.bincount(self.labels))

    @cached_property
    def order(self) -> IntArray:
        """Cells, block after block."""
        return read_only(np.argsort(self.labels, kind="stable"))

    @cached_property
    def _ends(self) -> IntArray:
        """For each position along `order`, the last position of its block."""
        return np.repeat(np.cumsum(self.sizes) - 1, self.sizes)

    @property
    def has_moves(self) -> bool:
        """Whether some block holds two cells."""
        return self.sizes.size < self.domain.size

    def components(self) -> Components:
        """Return the blocks, whose totals are public."""
        if self.sizes.size == 1:
            return super().components()
        return Components(self.labels, np.zeros(self.sizes.size, dtype=np.bool_))

    def _edges(self) -> Iterator[IntArray]:
        order, ends = self.order, self._ends
        positions = np.arange(order.size)
        for length in range(1, int(self.sizes.max())):
            low = np.flatnonzero(positions + length <= ends)
            yield np.column_stack([order[low], order[low + length]])

    @property
    def edge_count(self) -> int:
        """Summed over blocks, the pairs of cells."""
        return int((self.sizes * (self.sizes - 1) // 2).sum())

    def _bandwidth(self, order: IntArray | None) -> Bandwidth | None:
        along = self.labels if order is None else self.labels[order]
        last = np.empty(self.sizes.size, dtype=np.int64)
        last[along] = np.arange(along.size)
        runs = int((np.diff(along) != 0).sum()) + 1
        return Bandwidth(last[along], runs == self.sizes.size)

    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        same = self.labels[first] == self.labels[second]
        return np.where(first == second, 0.0, np.where(same, 1.0, np.inf))

    def _largest_change(self, lines: FloatArray) -> Change:
        along = lines[:, self.order]
        starts = np.cumsum(self.sizes) - self.sizes
        highest = np.maximum.reduceat(along, starts, axis=1)
        lowest = np.minimum.reduceat(along, starts, axis=1)
        return Change(float((highest - lowest).max()), True)

    def _includes(self, other: PolicyGraph) -> bool | None:
        parts = other.components().labels
        if parts is None:
            return self.sizes.size == 1
        # Every connected part of the other graph must stay inside one block.
        block = np.empty(int(parts.max()) + 1, dtype=np.int64)
        block[parts] = self.labels
        return bool((block[parts] == self.labels).all())

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        # Blocks are numbered by first cell, so labels of contiguous ones never fall.
        if buckets.order is None and (np.diff(self.labels) >= 0).all():
            reached = self._ends[buckets.edges[1:] - 1]
            return Band(domain, bins_of_cells(reached, buckets))
        return Projection(self, buckets)

    def _bin_pairs(self, labels: IntArray, bins: int) -> Iterator[IntArray]:
        yield from clique_bins(self.labels, labels, bins)

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        return (
            f"two people whose {values_name(self.domain)} lie in one block cannot be "
            f"told apart {beyond(budget)}; which of the {self.sizes.size:,} blocks "
            "holds a person is not protected"
        )

    def describe_totals(self) -> str:
        """Say which totals are public."""
        return ", and the number of people in each is public"

    def __repr__(self) -> str:
        return f"Blocks({self.domain!r}, {self.sizes.size:,} blocks)"

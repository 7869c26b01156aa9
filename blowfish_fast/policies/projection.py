"""Quotients of policies on bins of cells, held without their edges where possible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_integers, read_only
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import PolicyError, SizeError

from .base import Policy, from_dict, on_one_axis
from .graph import Graph, Rows
from .protocol import (
    MOST_LISTED,
    Bandwidth,
    Change,
    Components,
    Spent,
    as_keys,
    at_distance,
    beyond,
    refuse_quotient,
)

MOST_HELD = 2**25

TABLE_BINS = 2**13
"""Below this, pairs of bins are marked in a table of all of them."""

WAITING = 2**22
"""Pairs of bins that are collected before repeats are dropped."""


class Band(Policy):
    """A band of variable width: cells are joined to those after, up to a furthest one.

    Parameters
    ----------
    domain : Domain
        One ordered attribute.
    far : array-like of int, shape (cells,)
        The furthest one of each cell, the cell itself if there is none; it never
        decreases.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Band(Domain(4), [2, 2, 3, 3]).distance(0, [1, 2, 3])
    array([1., 1., 2.])
    """

    kind = "band"
    stated = ("far",)
    neighbours = "one record moves to a cell within its reach"

    def __init__(self, domain: Domain, far: Any) -> None:
        super().__init__(domain)
        on_one_axis(domain, "Band")
        self.far = read_only(as_integers(far, "far", PolicyError))
        if self.far.shape != domain.shape:
            raise PolicyError(
                f"far must name one cell for each of the {domain.size}",
                received=f"shape {self.far.shape}",
            )
        inside = self._lengths.min() >= 0 and self.far.max() < domain.size
        if not inside or (self.far[1:] < self.far[:-1]).any():
            raise PolicyError(
                "the furthest cell lies in the domain, not before its own, and never "
                "decreases along the line",
                received=f"{self.far[:5]} ...",
                way_out="policies.Graph takes any edges",
            )

    @property
    def _lengths(self) -> IntArray:
        return self.far - np.arange(self.domain.size)

    @property
    def has_moves(self) -> bool:
        """Whether some cell reaches the next one."""
        return bool(self._lengths.any())

    def components(self) -> Components:
        """Return the stretches between which nothing reaches."""
        ends = self._lengths == 0
        count = int(ends.sum())
        labels = np.cumsum(ends) - ends if count > 1 else None
        return Components(labels, np.zeros(count, dtype=np.bool_))

    def _edges(self) -> Iterator[IntArray]:
        lengths = self._lengths
        for length in range(1, int(lengths.max()) + 1):
            low = np.flatnonzero(lengths >= length)
            yield np.column_stack([low, low + length])

    @property
    def edge_count(self) -> int:
        """Summed over cells, the cells that each reaches."""
        return int(self._lengths.sum())

    def _bandwidth(self, order: IntArray | None) -> Bandwidth | None:
        return Bandwidth(self.far, True) if order is None else None

    def _joined(self, first: IntArray, second: IntArray) -> BoolArray:
        joined: BoolArray = (
            np.maximum(first, second) <= self.far[np.minimum(first, second)]
        )
        return joined

    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        return kernels.band_distances(self.far, first, second)

    def _largest_change(self, lines: FloatArray) -> Change:
        return Change(kernels.largest_change_within(lines, self.far), True)

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        if buckets.order is not None:
            return Projection(self, buckets)
        return Band(domain, bins_of_cells(self.far[buckets.edges[1:] - 1], buckets))

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        return (
            "two people in cells that lie close along the line cannot be told apart "
            f"{beyond(budget)} (each cell reaches up to {self.longest_edge()} cells "
            f"on); d such steps apart, {at_distance(budget)}"
        )

    def describe_totals(self) -> str:
        """Say which totals are public."""
        return "; the number of people in each connected stretch is public"


class Projection(Graph):
    """The quotient of a policy on any bins; its edges are listed only when needed.

    Made by `Policy.project`. Where too many edges would have to be walked or held, what
    needs them raises `SizeError`; components and the largest change never do.

    Parameters
    ----------
    source : Policy
        A policy without "absent" and without constraints.
    buckets : Buckets
        Which cells share a bin.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.policies.Threshold(bf.Domain(6), theta=2)
    >>> coarser = ages.project([0, 0, 1, 1, 2, 2])
    >>> coarser.domain.size, coarser.distance(0, 2).tolist()
    (3, 2.0)
    """

    kind = "projection"

    def __init__(self, source: Policy, buckets: Buckets) -> None:
        moves = isinstance(source, Policy) and not source.has_constraints
        if not moves or source.has_bottom:
            raise PolicyError(
                "a Projection holds moves between bins only",
                received=repr(source),
                way_out="Use source.project(labels), which keeps the rest",
            )
        if not isinstance(buckets, Buckets) or buckets.cells != source.domain.size:
            raise PolicyError(
                f"Buckets must cover the {source.domain.size} cells of the policy",
                received=repr(buckets),
            )
        Policy.__init__(self, Domain(buckets.count))
        self.derive_from(source, buckets)
        self.source = source
        self.bins = buckets

    @cached_property
    def rows(self) -> Rows:
        """The quotient graph in compressed rows; its last node is "absent"."""
        pairs = list_bin_pairs(self.source, self.bins)
        return Rows(*kernels.adjacency(*pairs, self.bins.count + 1))

    @property
    def edge_count(self) -> int:
        """Number of different edges; those of the source where cells change place."""
        if self.bins.are_single_cells:
            return self.source.edge_count
        return super().edge_count

    def _edges_up_to(self, most: int) -> int | None:
        if self.bins.are_single_cells:
            return self.source._edges_up_to(most)
        if "rows" in self.__dict__:
            return super()._edges_up_to(most)
        if most not in self._bounded:
            self._bounded[most] = None
            with suppress(SizeError):
                pairs = list_bin_pairs(self.source, self.bins, most)
                self._bounded[most] = pairs[0].size
        return self._bounded[most]

    @cached_property
    def _bounded(self) -> dict[int, int | None]:
        """What `edges_up_to` has found: nothing is walked twice in vain."""
        return {}

    has_bottom = False

    @property
    def has_moves(self) -> bool:
        """Whether some part of the graph spans several bins."""
        return self.components().count < self.domain.size

    @cached_property
    def _components(self) -> Components:
        parts = self.source.components()
        if parts.labels is None:
            return Policy.components(self)
        # Bins that hold cells of one part are connected: join both kinds of node.
        bins = self.bins.count
        graph = kernels.adjacency(
            self.bins.labels, parts.labels + bins, bins + parts.count
        )
        labels, count = kernels.component_labels(*graph)
        along = read_only(labels[:bins].copy()) if count > 1 else None
        return Components(along, read_only(np.zeros(count, dtype=np.bool_)))

    def _bandwidth(self, order: IntArray | None) -> Bandwidth | None:
        with suppress(SizeError):
            return super()._bandwidth(order)
        return None

    def _largest_change(self, lines: FloatArray) -> Change:
        # Values that are equal within bins change along the same edges as before.
        return self.source._largest_change(lines[:, self.bins.labels])

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        return self.source._quotient(self.bins.then(buckets), domain)

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        secrets = self.source.describe_secrets(budget)
        return f"seen through {self.bins.count:,} bins: {secrets}"

    def describe_totals(self) -> str:
        """Say which totals are public."""
        return self.source.describe_totals()

    @property
    def neighbours(self) -> str:
        """Say how two neighbouring databases differ."""
        return f"{self.source.neighbours} (seen through {self.bins.count:,} bins)"

    def _parameters(self) -> dict[str, Any]:
        return {"source": self.source.to_dict(), "labels": self.bins.labels.tolist()}

    @classmethod
    def _from_parameters(cls, domain: Domain, data: dict[str, Any]) -> Self:
        return cls(from_dict(data["source"]), Buckets.from_labels(data["labels"]))

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        return as_keys(self.domain, self.source, self.bins.labels)

    def __repr__(self) -> str:
        return f"Projection({self.source!r}, {self.bins!r})"


def bins_of_cells(cells: IntArray, buckets: Buckets) -> IntArray:
    """Return the bin of each cell, for contiguous bins.

    Parameters
    ----------
    cells : ndarray of int64
        Cells.
    buckets : Buckets
        The bins.

    Returns
    -------
    ndarray of int64
        The bins.
    """
    return np.searchsorted(buckets.edges, cells, side="right") - 1


def list_bin_pairs(
    source: Policy, buckets: Buckets, most: int | None = None
) -> tuple[IntArray, IntArray]:
    """Return every pair of bins that an edge joins, once.

    Parameters
    ----------
    source : Policy
        The policy over the cells.
    buckets : Buckets
        The bins.
    most : int, optional
        How many pairs may be held; 2^25 by default.

    Returns
    -------
    first : ndarray of int64
        The lower bin of each pair.
    second : ndarray of int64
        The higher one.

    Raises
    ------
    SizeError
        If there are more pairs.
    """
    bins = buckets.count
    most = MOST_HELD if most is None else most
    fresh: list[IntArray] = []
    if bins <= TABLE_BINS:
        table = np.zeros(bins * bins, dtype=np.bool_)
        for keys in source._bin_pairs(buckets.labels, bins):
            table[keys] = True
        listed = np.flatnonzero(table)
    else:
        listed, waiting = np.zeros(0, dtype=np.int64), 0
        for keys in source._bin_pairs(buckets.labels, bins):
            # Neighbouring cells repeat the pair of their bins over and over.
            fresh.append(keys[np.diff(keys, prepend=-1) != 0])
            waiting += fresh[-1].size
            if waiting > WAITING and listed.size <= most:
                listed = _sorted_once(np.concatenate([listed, *fresh]))
                fresh, waiting = [], 0
        listed = _sorted_once(np.concatenate([listed, *fresh]))
    if listed.size > most:
        refuse_quotient(
            f"the quotient joins more than {most:,} pairs of its {bins:,} bins, the "
            "most that are held"
        )
    return listed // bins, listed % bins


def _sorted_once(keys: IntArray) -> IntArray:
    """Sort keys and drop repetitions; `numpy.unique` hashes, and takes longer."""
    keys.sort()
    different: IntArray = keys[np.diff(keys, prepend=-1) != 0]
    return different


def clique_bins(groups: IntArray, labels: IntArray, bins: int) -> Iterator[IntArray]:
    """Yield the pairs of bins that share a group of cells, all joined to each other.

    Parameters
    ----------
    groups : ndarray of int64, shape (cells,)
        The group of each cell.
    labels : ndarray of int64, shape (cells,)
        The bin of each cell.
    bins : int
        Number of bins.

    Yields
    ------
    ndarray of int64
        Keys ``low * bins + high`` of pairs.
    """
    pointers, members = kernels.group_members(groups, labels, bins)
    try:
        yield from kernels.clique_pairs(pointers, members, bins, MOST_LISTED)
    except SizeError as problem:
        refuse_quotient(str(problem))


def only_axis(labels: IntArray, shape: tuple[int, ...]) -> int | None:
    """Return the only axis along which the bins change, if there is one.

    Parameters
    ----------
    labels : ndarray of int64, shape (cells,)
        The bin of each cell, in C order.
    shape : tuple[int, ...]
        Cells of each axis.

    Returns
    -------
    int or None
        The axis, or None.
    """
    grid = labels.reshape(shape)
    bins = int(labels.max()) + 1
    for axis, side in enumerate(shape):
        if bins > side:
            continue
        along = tuple(slice(None) if axis == j else slice(1) for j in range(grid.ndim))
        if (grid == grid[along]).all():
            return axis
    return None


def labels_along(labels: IntArray, shape: tuple[int, ...], axis: int) -> IntArray:
    """Return the bin of each cell of one axis, for bins that depend on it alone.

    Parameters
    ----------
    labels : ndarray of int64, shape (cells,)
        The bin of each cell, in C order.
    shape : tuple[int, ...]
        Cells of each axis.
    axis : int
        The axis.

    Returns
    -------
    ndarray of int64
        The bins along the axis.
    """
    grid = np.moveaxis(labels.reshape(shape), axis, -1)
    return np.ascontiguousarray(grid.reshape(-1, shape[axis])[0])

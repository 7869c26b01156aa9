"""A public grouping of cells, and the one projection along it.

Any partition is contiguous along some order of the cells, so two arrays describe it:

    order   4 5 0 1 2 3        cell at each position; None means 0 1 2 ...
    edges   0   2     4 5 6    bucket j holds positions edges[j] .. edges[j+1]
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NoReturn

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.machine import MANY_CELLS, threads_for
from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast._support.validation import read_only
from blowfish_fast.errors import DomainError, SizeError

from .domain import LARGEST_DOMAIN, Domain


class Buckets:
    """A partition of cells into buckets, in a public order.

    Parameters
    ----------
    edges : ndarray of int64, shape (k + 1,)
        The positions where buckets begin, from 0 to the number of cells.
    order : ndarray of int64, shape (cells,), optional
        The cell at each position; None for the cells' own order.
    curve : bool, default False
        Whether consecutive positions are neighbouring cells of the grid, which lets
        rectangles be cut into intervals by their outline alone.
    """

    def __init__(
        self,
        edges: IntArray,
        order: IntArray | None = None,
        *,
        curve: bool = False,
    ) -> None:
        self.edges = np.ascontiguousarray(edges, dtype=np.int64)
        self.order = order
        self.curve = curve
        valid = self.edges.ndim == 1 and self.edges.size >= 2 and self.edges[0] == 0
        if not valid or not (np.diff(self.edges) > 0).all():
            raise DomainError(
                "bucket edges must start at 0 and increase strictly",
                received=f"{self.edges[:5]} ...",
            )
        if order is not None and order.size != self.edges[-1]:
            raise DomainError(
                f"the order names {order.size} cells and the edges "
                f"{int(self.edges[-1])}; both must cover the domain"
            )

    @classmethod
    def single_cells(
        cls, cells: int, order: IntArray | None = None, *, curve: bool = False
    ) -> Buckets:
        """Give each cell a bucket of its own.

        Parameters
        ----------
        cells : int
            Number of cells.
        order : ndarray of int64, shape (cells,), optional
            The cell at each position; None for the cells' own order.
        curve : bool, default False
            Whether consecutive positions are neighbouring cells of the grid.

        Returns
        -------
        Buckets
            The buckets.
        """
        if order is None and cells > LARGEST_DOMAIN:
            return UnlistedCells(cells)
        edges = np.arange(cells + 1, dtype=np.int64)
        if order is not None or cells < 1:
            return cls(edges, order, curve=curve)
        # Every release begins with these, and there is nothing in them to check.
        own = object.__new__(cls)
        own.edges, own.order, own.curve = edges, None, curve
        return own

    @classmethod
    def from_labels(cls, labels: AnyArray) -> Buckets:
        """Build buckets from a label per cell: 0, 1, ... without gaps."""
        flat = np.asarray(labels).reshape(-1)
        if flat.size == 0 or flat.dtype.kind not in "iu" or flat.min() < 0:
            raise DomainError("labels must be one whole number, 0 or more, per cell")
        # Checked first: numpy.bincount writes out of bounds where its size overflows.
        last = int(flat.max())
        if last >= flat.size:
            raise DomainError(
                f"labels must use every number from 0 on; {flat.size} cells cannot go "
                f"up to {last}. numpy.unique(labels, return_inverse=True)[1] renumbers "
                "them"
            )
        sizes = np.bincount(flat)
        if (sizes == 0).any():
            missing = int(np.flatnonzero(sizes == 0)[0])
            raise DomainError(
                f"labels must use every number from 0 on; {missing} is missing. "
                "numpy.unique(labels, return_inverse=True)[1] renumbers them"
            )
        edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if (np.diff(flat) >= 0).all():
            return cls(edges)
        return cls(edges, np.argsort(flat, kind="stable").astype(np.int64))

    @property
    def cells(self) -> int:
        """Number of cells covered."""
        return int(self.edges[-1])

    @property
    def count(self) -> int:
        """Number of buckets."""
        return self.edges.size - 1

    @cached_property
    def sizes(self) -> IntArray:
        """Number of cells of each bucket."""
        return np.diff(self.edges)

    @property
    def are_single_cells(self) -> bool:
        """Whether every bucket is one cell."""
        return self.count == self.cells

    @cached_property
    def position(self) -> IntArray:
        """Position of each cell along the order."""
        if self.order is None:
            return np.arange(self.cells, dtype=np.int64)
        position = np.empty(self.cells, dtype=np.int64)
        position[self.order] = np.arange(self.cells, dtype=np.int64)
        return position

    @cached_property
    def labels(self) -> IntArray:
        """Bucket of each cell."""
        along = np.repeat(np.arange(self.count, dtype=np.int64), self.sizes)
        return along if self.order is None else along[self.position]

    @cached_property
    def landmarks(self) -> tuple[IntArray, int]:
        """Where `kernels.end_buckets` begins to look for the bucket of a position."""
        return kernels.bucket_landmarks(self.edges)

    def sum(self, counts: IntArray) -> IntArray:
        """Return the total of each bucket, exactly. O(cells)."""
        flat = counts.reshape(-1)
        along = flat if self.order is None else flat[self.order]
        if self.are_single_cells:
            return np.ascontiguousarray(along)
        return np.add.reduceat(along, self.edges[:-1])

    def expand(self, estimate: FloatArray) -> FloatArray:
        """Spread each bucket's estimate evenly over its cells. O(cells)."""
        if self.are_single_cells:
            along = np.asarray(estimate, dtype=np.float64)
        elif self.cells < MANY_CELLS:
            # To the same bits, and no kernel has to be compiled for it.
            along = np.repeat(estimate / self.sizes, self.sizes)
        else:
            threads = threads_for(self.cells)
            along = kernels.spread_evenly(estimate, self.edges, threads=threads)
        if self.order is None:
            return along
        cells = np.empty(self.cells)
        cells[self.order] = along
        return cells

    def then(self, inner: Buckets) -> Buckets:
        """Group these buckets further: `inner` is a partition of them."""
        if inner.cells != self.count:
            raise DomainError(
                f"a partition of {inner.cells} cells cannot group {self.count} buckets"
            )
        if self.are_single_cells and self.order is None:
            return inner
        if inner.order is None:
            return Buckets(self.edges[inner.edges], self.order, curve=self.curve)
        sizes = self.sizes[inner.order]
        edges = np.concatenate([[0], np.cumsum(sizes)])[inner.edges]
        starts = np.repeat(self.edges[inner.order], sizes)
        within = np.arange(self.cells) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        positions = starts + within
        order = positions if self.order is None else self.order[positions]
        return Buckets(edges, order)

    def __repr__(self) -> str:
        return f"Buckets({self.count} of {self.cells} cells)"


class UnlistedCells(Buckets):
    """Every cell of a wide domain by itself, of which nobody lists the edges.

    Examples
    --------
    >>> UnlistedCells(2**60).then(Buckets(np.array([0, 2**59, 2**60]))).count
    2
    """

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self.order = None
        self.curve = False

    def __getattr__(self, name: str) -> NoReturn:
        # Asked for edges, sizes or labels of all cells.
        raise SizeError(
            f"the cells of a wide domain are not listed one by one; {name} would be",
            received=f"{self._cells:,} cells",
            way_out="Group them with a partition first",
        )

    @property
    def cells(self) -> int:
        """Number of cells covered."""
        return self._cells

    @property
    def count(self) -> int:
        """Number of buckets: every cell is one."""
        return self._cells


MOST_KEPT_CELLS = 2**22
"""The order of more cells is worked out anew when it is asked for: held for the next
release, it would take as much memory as the counts, and it costs little beside one."""


def cell_order(domain: Domain) -> Buckets:
    """Return the cells in their own order, or on a Hilbert curve through all axes."""
    if domain.size > MOST_KEPT_CELLS:
        return _ordered_cells(domain.shape)
    return _kept_order(domain.shape)


def cells_along_curve(domain: Domain) -> IntArray:
    """Return the cells of a map in the order of `cell_order`, without its edges.

    Parameters
    ----------
    domain : Domain
        Cells of two or more attributes.

    Returns
    -------
    ndarray of int64, shape (cells,)
        C-order index of each cell; it cannot be written to.
    """
    if domain.size > MOST_KEPT_CELLS:
        return read_only(kernels.hilbert_order(domain.shape))
    order = _kept_order(domain.shape).order
    assert order is not None
    return order


def _ordered_cells(shape: tuple[int, ...]) -> Buckets:
    cells = int(np.prod(shape))
    if len(shape) == 1:
        return Buckets.single_cells(cells)
    order = read_only(kernels.hilbert_order(shape))
    return Buckets.single_cells(cells, order, curve=len(shape) == 2)


_kept_order = lru_cache(maxsize=4)(_ordered_cells)

"""A grid of queries: products of one cover per axis, as rows over the cells.

Serves ``olap``. A group on one axis is a sparse row over that axis's cells, holding the
part of each cell that is covered, or that part times a value:

    [20, 45) in cells of 10 years     0  0  1  1  .5  0

A query of the grid is the product of one row per axis. Values are worked out axis by
axis; a row over all cells is built only for intervals that need one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.axes import Axis
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.cell_values import representatives
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.predicates import Cover
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.workloads import Linear, Rectangles, Workload
from blowfish_fast.workloads.base import Pieces

MOST_COEFFICIENTS = 2**26
"""Cells under all queries of one question, where they must be listed."""


class Answering(Protocol):
    """What a selection needs of a release."""

    @property
    def domain(self) -> Domain:
        """The public cells."""
        ...

    @property
    def estimate(self) -> FloatArray:
        """Estimated counts."""
        ...

    def intervals(self, workload: Workload, confidence: float = ...) -> FloatArray:
        """Return noise intervals, shape (queries, 2)."""
        ...


class Grid:
    """Queries that are products of one cover per axis; C order over the groups."""

    def __init__(self, release: Answering, axes: Sequence[Sequence[Cover]]) -> None:
        self.release = release
        self.axes = axes

    @property
    def domain(self) -> Domain:
        """The domain of the release."""
        return self.release.domain

    @cached_property
    def rows(self) -> list[Any]:
        """For each axis the covered part of every cell, groups x cells, sparse."""
        return [
            coverage_rows(groups, size)
            for groups, size in zip(self.axes, self.domain.shape, strict=True)
        ]

    def count(self) -> GridAnswers:
        """Return the number of records of each group."""
        return GridAnswers(self, self.rows, boxes=True)

    def weighted(self, axis: int, rows: Any) -> GridAnswers:
        """Return sums of a value along one axis, given its rows."""
        return GridAnswers(
            self, [*self.rows[:axis], rows, *self.rows[axis + 1 :]], boxes=False
        )

    def along(self, axis: int, values: FloatArray) -> FloatArray:
        """Repeat one number per group of an axis for all groups of the grid."""
        shape = [len(groups) for groups in self.axes]
        one = [1] * len(shape)
        one[axis] = -1
        return np.broadcast_to(values.reshape(one), shape).reshape(-1)


class GridAnswers:
    """Answers to the queries of a grid, linear in the cells."""

    def __init__(self, grid: Grid, rows: list[Any], *, boxes: bool) -> None:
        self.grid = grid
        self.rows = rows
        self.boxes = boxes and all(
            len(cover) == 1 for groups in grid.axes for cover in groups
        )

    @cached_property
    def values(self) -> FloatArray:
        """Answers from the estimate, axis by axis: no row over all cells is built."""
        table = self.grid.release.estimate
        for axis, rows in enumerate(self.rows):
            ahead = np.moveaxis(table, axis, 0)
            rest = ahead.shape[1:]
            used = np.unique(rows.indices)
            lines = np.ascontiguousarray(ahead[used])
            narrow = rows[:, used] @ lines.reshape(used.size, math.prod(rest))
            table = np.moveaxis(narrow.reshape(rows.shape[0], *rest), 0, axis)
        return np.ascontiguousarray(table).reshape(-1)

    @cached_property
    def workload(self) -> Workload:
        """The same queries as a workload, for the release's intervals."""
        domain = self.grid.domain
        if self.boxes:
            corners = np.array(
                np.meshgrid(
                    *(np.arange(len(groups)) for groups in self.grid.axes),
                    indexing="ij",
                )
            ).reshape(domain.ndim, -1)
            lows, highs = (
                np.stack(
                    [
                        np.array([cover[0][end] for cover in groups])[place]
                        for groups, place in zip(self.grid.axes, corners, strict=True)
                    ],
                    axis=-1,
                )
                for end in (0, 1)
            )
            return Rectangles(domain, lows, highs)
        return SparseRows(domain, product_rows(self.rows))

    def bounds(self, confidence: float) -> FloatArray:
        """Return the release's noise intervals, (groups, 2)."""
        return self.grid.release.intervals(self.workload, confidence)


class SparseRows(Linear):
    """Linear queries that stay as they are when they are laid over buckets."""

    def explicit_form(self, buckets: Buckets) -> Pieces:
        """Average a copy of the rows: merging equal entries works in place."""
        copied = Linear(self.domain, self.matrix.copy())
        return copied.explicit_form(buckets)


def product_rows(axes: Sequence[Any]) -> Any:
    """Return one row over all cells per query, from sparse rows per axis."""
    from scipy import sparse

    listed = math.prod(rows.nnz for rows in axes)
    if listed > MOST_COEFFICIENTS:
        raise SizeError(
            f"these queries cover {listed:,} cells in all; at most 2^26 = "
            f"{MOST_COEFFICIENTS:,} are listed. Ask for fewer groups at a time, or "
            "narrower ones"
        )
    matrix = axes[0]
    for rows in axes[1:]:
        matrix = sparse.kron(matrix, rows, format="csr")
    return sparse.csr_array(matrix)


def coverage_rows(groups: Sequence[Cover], size: int) -> Any:
    """Return the part of each cell that each group covers, sparse, groups x cells."""
    pieces = [cell_parts(cover) for cover in groups]
    parts = [piece.ends - piece.starts for piece in pieces]
    return _sparse_rows([piece.cells for piece in pieces], parts, size)


def value_rows(
    attribute: Axis, groups: Sequence[Cover], given: FloatArray | None
) -> tuple[Any, FloatArray, FloatArray]:
    """Return the covered part of each cell times its value, and the least and largest.

    `given` holds one value per regular cell; None means the middle of the covered part.
    """
    values = representatives(attribute) if given is None else given
    if any(cover[-1][1] > attribute.regular for cover in groups):
        raise InputError(
            f"the selection holds the cells {list(attribute.extras)} of "
            f"{attribute.name or 'the attribute'}, which have no value",
            way_out="Select its values first: "
            f"where({attribute.name or 'attribute'}=slice(None))",
            code="cells_without_value",
            extras=", ".join(attribute.extras),
            column=attribute.name or "the column",
        )
    pieces = [cell_parts(cover) for cover in groups]
    if given is None and attribute.cuts is not None:
        cuts = np.array(attribute.cuts)
        worth = [
            cuts[one.cells] + one.middles * (cuts[one.cells + 1] - cuts[one.cells])
            for one in pieces
        ]
    else:
        worth = [values[one.cells] for one in pieces]
    weights = [
        (one.ends - one.starts) * value
        for one, value in zip(pieces, worth, strict=True)
    ]
    rows = _sparse_rows([one.cells for one in pieces], weights, attribute.size)
    lowest = np.array([value.min() for value in worth])
    return rows, lowest, np.array([value.max() for value in worth])


class CellParts(NamedTuple):
    """Parts of cells along one axis: the cell, and from where to where."""

    cells: IntArray
    starts: FloatArray
    ends: FloatArray

    @property
    def middles(self) -> FloatArray:
        """Middle of each part, 0 at the start of its cell and 1 at its end."""
        return (self.starts + self.ends) / 2 - self.cells


def cell_parts(cover: Cover) -> CellParts:
    """Cut a cover at the borders of cells."""
    cells = [np.arange(int(low), math.ceil(high)) for low, high in cover]
    starts = [np.maximum(one, low) for one, (low, _) in zip(cells, cover, strict=True)]
    ends = [
        np.minimum(one + 1.0, high) for one, (_, high) in zip(cells, cover, strict=True)
    ]
    return CellParts(
        np.concatenate(cells),
        np.concatenate(starts).astype(np.float64),
        np.concatenate(ends),
    )


def _sparse_rows(
    columns: Sequence[IntArray], weights: Sequence[FloatArray], size: int
) -> Any:
    from scipy import sparse

    pointers = np.concatenate([[0], np.cumsum([one.size for one in columns])])
    matrix = sparse.csr_array(
        (
            np.concatenate([*weights, np.empty(0)]),
            np.concatenate([*columns, np.empty(0, dtype=np.int64)]),
            pointers,
        ),
        shape=(len(columns), size),
    )
    matrix.sum_duplicates()
    return matrix

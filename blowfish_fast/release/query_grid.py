"""A grid of queries: one group per axis, and a query for each combination of groups.

A group selects a part of an axis, its *cover*: disjoint half-open intervals, counted in
cells. It becomes a row, which holds the part of each cell that is covered:

    age in cells of 10 years     0-  10-  20-  30-  40-  50-
    the group [20, 45)            0    0    1    1   .5    0       its row of `rows`
      cells covered whole         0    0    1    1    0    0       its row of `inner`
      cells touched at all        0    0    1    1    1    0       its row of `outer`

With two groups of ages and three of towns there are six queries, in C order. The row of
a query over all cells is the (Kronecker) product of its groups' rows. Answers are sums
along one axis after the other, which never builds these products; only intervals need
them.

A record in the cell from 40 to 50 may be younger or older than 45. So the true answer
lies between that of `inner` and that of `outer`: these two are called the *ends*.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.axes import Axis, representatives
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.predicates import Cover
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.workloads import Linear, Rectangles, Workload
from blowfish_fast.workloads.base import Pieces, form_matrix

from .grants import Scope

MOST_COEFFICIENTS = 2**26
"""Coefficients that are listed at most, in all rows of one question together: 512 MiB,
without their places."""

JOINT_BITS = 12
"""Rows that are certified together have whole coefficients; the largest of a row lies
from 2^11 to 2^12."""


AnswerSource = Any
"""A release, or what answers as one does: it has `domain`, `estimate`, `intervals`, and
says what the intervals hold."""


class Grid:
    """Queries for all combinations of one group per axis, in C order.

    Parameters
    ----------
    release : AnswerSource
        What was published.
    axes : Sequence[Sequence[Cover]]
        For each axis its groups; for each group the intervals that it covers.
    """

    def __init__(self, release: AnswerSource, axes: Sequence[Sequence[Cover]]) -> None:
        self.release = release
        self.domain: Domain = release.domain
        self.axes = axes

    @cached_property
    def rows(self) -> list[Any]:
        """For each axis a sparse array: the part of each cell that a group covers.

        Its shape is (groups, cells) of the axis.
        """
        return [
            coverage_rows(groups, size)
            for groups, size in zip(self.axes, self.domain.shape, strict=True)
        ]

    def count(self) -> GridAnswers:
        """Return the number of records of each group."""
        if self.whole:
            return GridAnswers(self, self.rows, boxes=True)
        ends = partial(map, product_rows, (self.inner, self.outer))
        return GridAnswers(self, self.rows, boxes=True, ends=ends)

    def value_sums(self, axis: int, rows: Any, ends: tuple[Any, Any]) -> GridAnswers:
        """Return sums of a value over the records of each group.

        Parameters
        ----------
        axis : int
            The attribute that has the value.
        rows : scipy sparse array, shape (groups, cells)
            The value that a record of each cell adds to each group's sum.
        ends : tuple of two scipy sparse arrays, shape (groups, cells)
            The least and the largest value that such a record may add.

        Returns
        -------
        GridAnswers
            The sums.
        """
        listed = partial(map, partial(self._product, axis), ends, (-1, 1))
        axes = self._with(self.rows, axis, rows)
        return GridAnswers(self, axes, boxes=False, ends=listed)

    @property
    def whole(self) -> bool:
        """Whether every cell is covered whole or not at all."""
        # Rounding hands back the array itself where it has nothing to round.
        return all(
            rounded is rows for rounded, rows in zip(self.inner, self.rows, strict=True)
        )

    def _product(self, axis: int, values: Any, sign: int) -> Any:
        """Return rows whose answer lies below (sign -1) or above all true answers.

        A record in a cell that another axis covers in part may count with 0.
        """
        surely_selected = product_rows(self._with(self.inner, axis, values))
        if self.whole:
            return surely_selected
        # A record that is only perhaps selected adds its value where this moves the
        # bound outwards (positive values above, negative ones below), and 0 else.
        outward = values.maximum(0) if sign > 0 else values.minimum(0)
        touched = product_rows(self._with(self.outer, axis, outward))
        inside = product_rows(self._with(self.inner, axis, outward))
        return surely_selected + touched - inside

    def _with(self, axes: list[Any], axis: int, rows: Any) -> list[Any]:
        """Return the rows of all axes, with other rows for one of them."""
        return [*axes[:axis], rows, *axes[axis + 1 :]]

    @cached_property
    def inner(self) -> list[Any]:
        """The array `rows` of each axis, with 0 for cells that are covered in part."""
        return [_round_parts(rows, np.floor) for rows in self.rows]

    @cached_property
    def outer(self) -> list[Any]:
        """The array `rows` of each axis, with 1 for cells that are covered in part."""
        return [_round_parts(rows, np.ceil) for rows in self.rows]

    def along(self, axis: int, values: FloatArray) -> FloatArray:
        """Repeat one number per group of an axis for all groups of the grid.

        Parameters
        ----------
        axis : int
            The axis.
        values : ndarray of float64
            A number for each of its groups.

        Returns
        -------
        ndarray of float64
            A number for each group of the grid.
        """
        shape = [len(groups) for groups in self.axes]
        broadcast_shape = [1] * len(shape)
        broadcast_shape[axis] = -1
        return np.broadcast_to(values.reshape(broadcast_shape), shape).reshape(-1)


class GridAnswers:
    """Answers to the queries of a grid, linear in the cells.

    Parameters
    ----------
    grid : Grid
        The groups.
    rows : list of scipy sparse arrays, shape (groups, cells)
        The coefficients along each axis.
    boxes : bool
        Whether the answers count records. Such answers are never below 0, and are
        queries about boxes if each group is one interval.
    ends : callable, optional
        Takes nothing; returns two sparse arrays of rows over all cells, whose answers
        bound the true ones from below and from above. Left out where a record's place
        in its cell does not matter.
    """

    def __init__(
        self,
        grid: Grid,
        rows: list[Any],
        *,
        boxes: bool,
        ends: Callable[[], Iterable[Any]] | None = None,
    ) -> None:
        self.grid = grid
        self.rows = rows
        self._ends = ends
        self.counts = boxes
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
            # This axis now runs over groups, those before it too, the rest over cells.
            table = np.moveaxis(narrow.reshape(rows.shape[0], *rest), 0, axis)
        return np.ascontiguousarray(table).reshape(-1)

    @cached_property
    def workload(self) -> Workload:
        """The same queries as a workload, for the release's intervals."""
        domain = self.grid.domain
        if self.boxes:
            ends = [[cover[0] for cover in groups] for groups in self.grid.axes]
            corners = np.array(list(itertools.product(*ends)))
            return Rectangles(domain, corners[..., 0], corners[..., 1])
        return SparseRows(domain, product_rows(self.rows))

    @cached_property
    def ends(self) -> tuple[Workload, ...] | None:
        """Queries below and above the true answers, where places in cells matter."""
        if self._ends is None:
            return None
        domain = self.grid.domain
        return tuple(SparseRows(domain, without_zeros(rows)) for rows in self._ends())

    def bounds(self, confidence: float, of: Held) -> FloatArray:
        """Return intervals of the answers, of the truth where that is known.

        Where a record's place in its cell matters, they reach from the lower end of one
        query to the upper end of another; each misses with half the probability.

        Parameters
        ----------
        confidence : float
            How surely each holds.
        of : Held
            What they have to hold, or a `RowSource` that knows the intervals.

        Returns
        -------
        ndarray of float64, shape (groups, 2)
            The intervals.
        """
        asked = (self.workload,) if of == "noise" or not self.ends else self.ends
        pair: list[FloatArray]
        if isinstance(of, RowSource):
            pair = [of.intervals(*query) for query in zip(asked, (-1, 1), strict=False)]
        else:
            release = self.grid.release
            pair = [release.intervals(query, confidence, of="noise") for query in asked]
        bounds = np.stack([pair[0][:, 0], pair[-1][:, 1]], axis=-1)
        return np.maximum(bounds, 0.0) if self.counts and of != "noise" else bounds


class RowSource:
    """Intervals of all rows behind an answer, known at once from a certificate.

    An answer such as a mean needs intervals of several workloads, one after the other.
    A certificate covers them only together. So the answer's bounds are worked out
    twice, with a source in the place of the release:

        source = RowSource();       answer.bounds(c, source)    asks for workloads A, B
        source.joined()                                         one workload: A over B
        source = RowSource(known);  answer.bounds(c, source)    gets A's rows, then B's

    The first time intervals of 0 are handed out, and what is asked for is listed. Both
    times the same workloads are asked for in the same order.

    Parameters
    ----------
    known : ndarray of float64, shape (rows, 2), optional
        Intervals of the rows of `joined`; None while workloads are only listed.
    scaled : bool, default False
        Whether these rows were made whole numbers by `whole_rows`, and their intervals
        have to be divided by the same powers of two.
    """

    def __init__(
        self, known: FloatArray | None = None, *, scaled: bool = False
    ) -> None:
        self.known, self.scaled = known, scaled
        self.listed: list[tuple[Workload, int]] = []

    def intervals(self, workload: Workload, sign: int) -> FloatArray:
        """Return intervals of rows that bound answers from below or above.

        Parameters
        ----------
        workload : Workload
            The rows.
        sign : int
            -1 from below, 1 from above.

        Returns
        -------
        ndarray of float64, shape (rows, 2)
            The intervals.
        """
        start = sum(listed_workload.queries for listed_workload, _ in self.listed)
        self.listed.append((workload, sign))
        if self.known is None:
            return np.zeros((workload.queries, 2))
        mine = self.known[start : start + workload.queries]
        return mine / whole_rows(workload, sign)[1][:, None] if self.scaled else mine

    def joined(self) -> Workload:
        """Return all rows as one workload: boxes as they are, or whole numbers."""
        from scipy import sparse

        asked = [workload for workload, _ in self.listed]
        boxes = [workload for workload in asked if isinstance(workload, Rectangles)]
        if len(boxes) == len(asked):
            lows = np.concatenate([workload.starts for workload in boxes])
            highs = np.concatenate([workload.ends for workload in boxes])
            return Rectangles(asked[0].domain, lows, highs)
        rows = sparse.vstack([whole_rows(*part)[0] for part in self.listed])
        return JointRows(asked[0].domain, rows)


Held = Scope | RowSource
"""What intervals have to hold, such as "noise"; or the source of those that a
certificate knows."""


def whole_rows(workload: Workload, sign: int) -> tuple[Any, FloatArray]:
    """Multiply each row by a power of two, and round it down or up to whole numbers.

    The row (0.3, 0.5) times 2^12 is (1228.8, 2048), and becomes (1228, 2048) or (1229,
    2048). True counts are never negative, so a row that was rounded down still bounds
    from below, and one that was rounded up from above: Lemma CE7.

    Parameters
    ----------
    workload : Workload
        The rows.
    sign : int
        -1 to round down, 1 to round up.

    Returns
    -------
    rows : scipy sparse array, shape (queries, cells)
        The rows, with whole coefficients.
    powers : ndarray of float64, shape (queries,)
        The power of two that each row was multiplied by.

    Raises
    ------
    SizeError
        If there are too many coefficients.
    """
    cells = workload.domain.size
    form = workload.explicit_form(Buckets.single_cells(cells))
    rows = form_matrix(form, cells, most=MOST_COEFFICIENTS)
    if rows is None:
        raise SizeError("at most 2^26 cells under all queries are certified at once")
    peaks = np.asarray(abs(rows).max(axis=1).toarray()).reshape(-1)
    # 2^-1000 is small enough for any coefficient, and its inverse is still finite.
    sizes = np.maximum(np.frexp(peaks)[1], -1000)
    powers = np.where(peaks > 0.0, np.ldexp(1.0, JOINT_BITS - sizes), 1.0)
    scaled = rows.data * np.repeat(powers, np.diff(rows.indptr))
    rows.data = np.floor(scaled) if sign < 0 else np.ceil(scaled)
    return rows, powers


class SparseRows(Linear):
    """Linear queries whose matrix is left as it is when it is laid over buckets."""

    def explicit_form(self, buckets: Buckets) -> Pieces:
        """Return the queries over buckets; a copy is averaged, as that is in place."""
        copied = Linear(self.domain, self.matrix.copy())
        return copied.explicit_form(buckets)


class JointRows(SparseRows):
    """Rows of whole numbers that are certified together: see `whole_rows`.

    A row that counts records has only the coefficients 0 and `unit`.
    """

    unit = 2 ** (JOINT_BITS - 1)


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


def without_zeros(matrix: Any) -> Any:
    """Return a sparse matrix as rows without entries of 0."""
    from scipy import sparse

    rows = sparse.csr_array(matrix)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def _round_parts(rows: Any, to_whole: Any) -> Any:
    """Round the parts of cells; the same rows where all are whole."""
    parts = to_whole(rows.data)
    if (parts == rows.data).all():
        return rows
    changed = rows.copy()
    changed.data = parts
    return changed


def coverage_rows(groups: Sequence[Cover], size: int) -> Any:
    """Return the part of each cell that each group covers.

    Parameters
    ----------
    groups : Sequence[Cover]
        The intervals of each group.
    size : int
        Number of cells.

    Returns
    -------
    scipy sparse array, shape (groups, cells)
        The parts.
    """
    pieces = [cell_parts(cover) for cover in groups]
    parts = [piece.ends - piece.starts for piece in pieces]
    return _sparse_rows([piece.cells for piece in pieces], parts, size)


def value_rows(
    attribute: Axis, groups: Sequence[Cover], given: FloatArray | None
) -> ValueRows:
    """Return the value that a record is taken to have, by its cell and group.

    That is a given value for each cell, or the middle of the part that is covered.

    Parameters
    ----------
    attribute : Axis
        The cells.
    groups : Sequence[Cover]
        The intervals of each group.
    given : ndarray of float64, shape (cells,), optional
        A value for each cell. By default cells between edges have the middle of the
        covered part, and other cells their representative value.

    Returns
    -------
    ValueRows
        The values, with the least and the largest that a record may really have.

    Raises
    ------
    InputError
        If the selection holds cells without a value.
    """
    values = representatives(attribute) if given is None else given
    refuse_extras(attribute, groups)
    pieces = [cell_parts(cover) for cover in groups]
    if given is None and attribute.cuts is not None:
        cuts = np.array(attribute.cuts)
        worth = [piece.along(cuts, (piece.starts + piece.ends) / 2) for piece in pieces]
        least = [piece.along(cuts, piece.starts) for piece in pieces]
        most = [piece.along(cuts, piece.ends) for piece in pieces]
    else:
        worth = least = most = [values[piece.cells] for piece in pieces]
    return ValueRows(pieces, worth, least, most, attribute.size)


def refuse_extras(attribute: Axis, groups: Sequence[Cover]) -> None:
    """Refuse to select cells that have no value, and no place among the others.

    Parameters
    ----------
    attribute : Axis
        The cells.
    groups : Sequence[Cover]
        The intervals of each group.

    Raises
    ------
    InputError
        If such a cell is selected.
    """
    if any(cover[-1][1] > attribute.regular for cover in groups):
        raise InputError(
            f"the selection holds the cells {list(attribute.extras)} of "
            f"{attribute.name or 'the attribute'}, which have no value",
            way_out="Select its values first: "
            f"{attribute.name or 'attribute'}=slice(None)",
            code="cells_without_value",
            data={
                "extras": ", ".join(attribute.extras),
                "column": attribute.name or "the column",
            },
        )


class ValueRows(NamedTuple):
    """The value of a record in each covered part of a cell, for each group.

    Each list has one entry per group. The group of ages [20, 45), in cells of 10 years:

        pieces    20-30   30-40   40-45
        worth        25      35    42.5     the middle
        least        20      30      40
        most         30      40      45

    Attributes
    ----------
    pieces : list[CellParts]
        The parts of cells that the group covers.
    worth : list[ndarray of float64]
        The value that a record in each part is taken to have.
    least : list[ndarray of float64]
        The least value that it may have.
    most : list[ndarray of float64]
        The largest value that it may have.
    size : int
        Number of cells of the axis.
    """

    pieces: list[CellParts]
    worth: list[FloatArray]
    least: list[FloatArray]
    most: list[FloatArray]
    size: int

    @property
    def lowest(self) -> FloatArray:
        """The least value that a record of each group is taken to have."""
        return np.array([values.min() for values in self.worth])

    @property
    def highest(self) -> FloatArray:
        """The largest value that a record of each group is taken to have."""
        return np.array([values.max() for values in self.worth])

    @property
    def centre(self) -> FloatArray:
        """The middle between `lowest` and `highest`."""
        return self.lowest + (self.highest - self.lowest) / 2

    @property
    def widest(self) -> float:
        """How far the values of records in one cell may lie apart, at most."""
        pairs = zip(self.least, self.most, strict=True)
        return max((float(np.max(most - least)) for least, most in pairs), default=0.0)

    def reach(self) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest value that a record of each group has."""
        low = np.array([values.min() for values in self.least])
        return low, np.array([values.max() for values in self.most])

    def rows(self, centre: FloatArray | float = 0.0, power: int = 1) -> Any:
        """Return rows whose answers are sums of a power of (value - centre).

        Parameters
        ----------
        centre : ndarray of float64 or float, default 0.0
            A number for each group, or one for all.
        power : int, default 1
            The exponent: 1 for sums, 2 for sums of squares.

        Returns
        -------
        scipy sparse array, shape (groups, cells)
            The rows. A cell that is covered in part counts with that part.
        """
        middle = np.broadcast_to(centre, len(self.pieces))
        pairs = zip(self.pieces, self.worth, middle, strict=True)
        return self._rows(
            [
                (piece.ends - piece.starts) * (worth - at) ** power
                for piece, worth, at in pairs
            ]
        )

    def ends(self, centre: FloatArray | float = 0.0, power: int = 1) -> tuple[Any, Any]:
        """Return rows whose answers bound the sums that `rows` estimates.

        Parameters
        ----------
        centre : ndarray of float64 or float, default 0.0
            A number for each group, or one for all.
        power : {1, 2}, default 1
            The exponent.

        Returns
        -------
        least : scipy sparse array, shape (groups, cells)
            Rows of the least that a record may add to the sum.
        largest : scipy sparse array, shape (groups, cells)
            Rows of the most that it may add.
        """
        middle = np.broadcast_to(centre, len(self.pieces))
        low, high = [], []
        for group, piece in enumerate(self.pieces):
            below = self.least[group] - middle[group]
            above = self.most[group] - middle[group]
            if power == 2:
                apart = np.maximum(np.maximum(below, -above), 0.0)
                below, above = apart**2, np.maximum(below**2, above**2)
            # A record in a cell that is covered in part may lie outside the group.
            whole = piece.ends - piece.starts >= 1.0
            low.append(np.where(whole, below, np.minimum(below, 0.0)))
            high.append(np.where(whole, above, np.maximum(above, 0.0)))
        return self._rows(low), self._rows(high)

    def _rows(self, weights: Sequence[FloatArray]) -> Any:
        return _sparse_rows([piece.cells for piece in self.pieces], weights, self.size)


class CellParts(NamedTuple):
    """Parts of cells along one axis, counted in cells: 4.5 is the middle of cell 4.

    Attributes
    ----------
    cells : ndarray of int64, shape (parts,)
        The cell in which each part lies.
    starts : ndarray of float64, shape (parts,)
        Where the part begins, from `cells` on.
    ends : ndarray of float64, shape (parts,)
        Where it ends, at most ``cells + 1``.
    """

    cells: IntArray
    starts: FloatArray
    ends: FloatArray

    def along(self, cuts: FloatArray, places: FloatArray) -> FloatArray:
        """Turn places that are counted in cells into values of the attribute.

        Parameters
        ----------
        cuts : ndarray of float64, shape (cells + 1,)
            The edges of the cells, as values.
        places : ndarray of float64, shape (parts,)
            A place in each part: 4.5 for the middle of cell 4.

        Returns
        -------
        ndarray of float64
            The values.
        """
        widths = cuts[self.cells + 1] - cuts[self.cells]
        return np.asarray(cuts[self.cells] + (places - self.cells) * widths)


def cell_parts(cover: Cover) -> CellParts:
    """Cut a cover at the borders of cells: [2, 4.5) is [2, 3), [3, 4) and [4, 4.5)."""
    cells = [np.arange(int(low), math.ceil(high)) for low, high in cover]
    starts = [
        np.maximum(numbers, low) for numbers, (low, _) in zip(cells, cover, strict=True)
    ]
    ends = [
        np.minimum(numbers + 1.0, high)
        for numbers, (_, high) in zip(cells, cover, strict=True)
    ]
    return CellParts(
        np.concatenate(cells),
        np.concatenate(starts).astype(np.float64),
        np.concatenate(ends),
    )


def scattered_rows(columns: IntArray, table: FloatArray, size: int) -> Any:
    """Return rows over the cells of an axis from values in some of its cells.

    Parameters
    ----------
    columns : ndarray of int64, shape (k,)
        The cells, in order.
    table : ndarray of float64, shape (groups, k)
        The values of each group in these cells.
    size : int
        Number of cells of the axis.

    Returns
    -------
    scipy sparse array, shape (groups, size)
        The rows; cells that are not named hold 0.
    """
    return _sparse_rows([columns] * len(table), list(table), size)


def _sparse_rows(
    columns: Sequence[IntArray], weights: Sequence[FloatArray], size: int
) -> Any:
    from scipy import sparse

    pointers = np.concatenate([[0], np.cumsum([column.size for column in columns])])
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

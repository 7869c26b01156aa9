"""Tables whose cells were merged, attribute by attribute, and where counts of them lie.

A grouping says for every cell of one attribute which merged cell it falls into:

    cells of age     0  1  2  3  4  5  6  7
    labels           0  0  0  1  1  2  2  2        three merged cells

A merged table of several attributes holds the product of their merged cells. True
counts of many tables stand behind each other in one array; `CountedTables` finds a
table in it, and sums a larger one down where the table itself was not counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.errors import InputError

Values = TypeVar("Values", bound=AnyArray)


class Grouping:
    """Cells of one attribute, each in one of fewer merged cells; public.

    Parameters
    ----------
    labels : (cells,) int64
        The merged cell of each cell: 0, 1, ... without a gap, in any order.

    Raises
    ------
    InputError
        If a number below the largest label is used by no cell.

    Examples
    --------
    >>> ages = Grouping([0, 0, 1, 1, 1])
    >>> ages.sum(np.array([4, 1, 0, 2, 2]), axis=0)
    array([5, 4])
    >>> ages.spread(np.array([7, 9]), axis=0)
    array([7, 7, 9, 9, 9])
    >>> ages.then(Grouping([0, 0])).count
    1
    """

    def __init__(self, labels: Any) -> None:
        self.labels: IntArray = np.asarray(labels, dtype=np.int64)
        self.count = int(self.labels.max(initial=-1)) + 1
        numbers = self.labels.ndim == 1 and self.labels.min(initial=0) >= 0
        if not numbers or not np.bincount(self.labels, minlength=1).all():
            raise InputError(
                "labels of merged cells are 0, 1, 2, ... and every one is used",
                received=f"{self.labels.size} labels up to {self.count - 1}",
            )

    @classmethod
    def single_cells(cls, cells: int) -> Grouping:
        """Return the grouping that merges nothing."""
        return cls(np.arange(cells))

    @cached_property
    def is_single_cells(self) -> bool:
        """Whether every cell stays as it is, in its place."""
        return bool((self.labels == np.arange(self.labels.size)).all())

    @cached_property
    def _order(self) -> IntArray:
        """Cells by merged cell: those of merged cell 0 first."""
        return np.argsort(self.labels, kind="stable")

    @cached_property
    def sizes(self) -> IntArray:
        """Number of cells in each merged cell."""
        return np.bincount(self.labels, minlength=self.count)

    @cached_property
    def _starts(self) -> IntArray:
        return np.cumsum(self.sizes) - self.sizes

    def sum(self, table: Values, axis: int) -> Values:
        """Return a table with the cells along `axis` added up into merged cells.

        Parameters
        ----------
        table : array with `labels.size` entries along `axis`
            Values of single cells, of any dtype.
        axis : int
            The axis of the grouped attribute.

        Returns
        -------
        array with `count` entries along `axis`
            Sums over merged cells. It is `table` itself where nothing is merged.
        """
        if self.is_single_cells:
            return table
        ordered = table.take(self._order, axis=axis)
        return cast("Values", np.add.reduceat(ordered, self._starts, axis=axis))

    def spread(self, table: Values, axis: int) -> Values:
        """Return a table in which each cell repeats the value of its merged cell.

        Parameters
        ----------
        table : array with `count` entries along `axis`
            Values of merged cells, of any dtype.
        axis : int
            The axis of the grouped attribute.

        Returns
        -------
        array with `labels.size` entries along `axis`
            Values of single cells. It is `table` itself where nothing is merged.
        """
        if self.is_single_cells:
            return table
        return cast("Values", table.take(self.labels, axis=axis))

    def then(self, coarser: Grouping) -> Grouping:
        """Merge the merged cells further."""
        return Grouping(coarser.labels[self.labels])


class MergedTable(NamedTuple):
    """A table over some attributes, by number, with a grouping of each.

    Parameters
    ----------
    axes : tuple[int, ...]
        The attributes, by number.
    groupings : tuple[Grouping, ...]
        Which cells are merged, for each attribute.
    """

    axes: tuple[int, ...]
    groupings: tuple[Grouping, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Merged cells along each attribute."""
        return tuple(grouping.count for grouping in self.groupings)

    @property
    def cells(self) -> int:
        """Merged cells of the table."""
        return math.prod(self.shape)

    def sum(self, table: Values) -> Values:
        """Return the merged table of a table of single cells."""
        for axis, grouping in enumerate(self.groupings):
            table = grouping.sum(table, axis)
        return table


def sum_down(table: AnyArray, axes: Sequence[int], onto: Iterable[int]) -> AnyArray:
    """Sum a table down to the smaller table of some of its attributes.

    Parameters
    ----------
    table : array with an axis for each of `axes`
        Counts or weights.
    axes : sequence of int
        The attribute of each axis of `table`.
    onto : collection of int
        The attributes of the smaller table. Numbers that are not in `axes` are ignored.

    Returns
    -------
    array with an axis for each of `axes` that is in `onto`
        The sums, with attributes in the order of `axes`. It is `table` itself where no
        attribute is summed out.

    Examples
    --------
    >>> sum_down(np.array([[1, 2, 3], [4, 5, 6]]), axes=(4, 7), onto={7})
    array([5, 7, 9])
    """
    places = range(len(axes))
    left = [at for at in places if axes[at] in onto]
    if len(left) == len(axes):
        return table
    if table.dtype.kind != "f":
        return cast("AnyArray", table.sum(axis=tuple({*places} - {*left})))
    # Two to three times as fast as `sum` where axes are short, as those of merged cells
    # are; without optimisation it adds in a fixed order, in one thread.
    einsum: Any = np.einsum
    return cast("AnyArray", einsum(table, [*places], left, optimize=False))


class CountedTables:
    """Which tables stand in an array of counts, one behind the other.

    Parameters
    ----------
    sizes : tuple of int
        Cells along every attribute of the domain.
    tables : sequence of tuples of int
        The attributes of each table, by increasing number.

    Examples
    --------
    >>> counted = CountedTables((2, 3), [(0, 1)])
    >>> counted.table(np.array([1, 2, 3, 4, 5, 6]), (1,))
    array([5, 7, 9])
    >>> counted.size, counted.of_cells(np.arange(6))
    (6, array([0, 1, 2, 3, 4, 5]))
    """

    def __init__(self, sizes: Sequence[int], tables: Sequence[tuple[int, ...]]) -> None:
        self.sizes = tuple(sizes)
        self.tables = tuple(tables)
        self.starts = [0]
        for axes in self.tables:
            cells = math.prod(self.sizes[axis] for axis in axes)
            self.starts.append(self.starts[-1] + cells)
        self._numbers = {axes: number for number, axes in enumerate(self.tables)}

    @property
    def size(self) -> int:
        """Length of the array of counts."""
        return self.starts[-1]

    def table(self, counts: IntArray, axes: tuple[int, ...]) -> IntArray:
        """Return one table: itself, or summed down from the first that holds it.

        Parameters
        ----------
        counts : (size,) int64
            All counted tables.
        axes : tuple of int
            Attributes of the table, by increasing number; () for the total.

        Returns
        -------
        int64 with an axis for each attribute
            The true counts of the table; a single number where `axes` is ().

        Raises
        ------
        InputError
            If no counted table holds all of the attributes.
        """
        own = self._numbers.get(axes)
        if own is not None:
            return self._counted(counts, own)
        wanted = set(axes)
        for number, counted in enumerate(self.tables):
            if wanted.issubset(counted):
                table = self._counted(counts, number)
                return np.asarray(sum_down(table, counted, wanted))
        raise InputError(
            "a table is summed down from a counted table that holds its attributes",
            received=f"attributes {axes}",
        )

    def _counted(self, counts: IntArray, number: int) -> IntArray:
        """Return a counted table by its number, as it stands."""
        part = counts[self.starts[number] : self.starts[number + 1]]
        return part.reshape([self.sizes[axis] for axis in self.tables[number]])

    def of_cells(self, counts: IntArray) -> IntArray:
        """Return the counted tables of counts of all cells, of a small domain."""
        grid, every = counts.reshape(self.sizes), range(len(self.sizes))
        parts = [np.asarray(sum_down(grid, every, axes)) for axes in self.tables]
        return np.concatenate([part.reshape(-1) for part in parts])

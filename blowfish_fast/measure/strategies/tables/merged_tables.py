"""Measure a batch of tables whose cells were merged, each with noise of one scale.

What is counted stays what it was, tables of single cells; which of them are summed, and
into which merged cells, is public and may follow from everything published before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.data.tables.merged_tables import CountedTables, Grouping, MergedTable
from blowfish_fast.errors import IntervalError, ReleaseFileError
from blowfish_fast.measure.linear_strategy import LinearStrategy
from blowfish_fast.measure.noise import Scales, integer_weights
from blowfish_fast.policies import Policy

from .table_strategy import (
    EdgeKind,
    check_shape,
    edge_kinds,
    heaviest_edge,
    is_exact,
    longest_moves,
)


class MergedTables(LinearStrategy):
    """A batch of merged tables, a rate for each.

    Parameters
    ----------
    counted : CountedTables
        The tables of single cells in the counts.
    tables : sequence of MergedTable
        What is measured; attributes () stand for the number of records.
    shares : sequence of float
        Relative rates from 0 to 1. A table of rate 0 is left out, unless no edge of
        the policy moves it: then it is published as it is.
    running : sequence of int
        Places in `tables` of tables of one attribute that are measured as running
        totals along it, in place of cells.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> counted = CountedTables((2, 3), [(0, 1)])
    >>> wide = MergedTable((1,), (Grouping([0, 0, 1]),))
    >>> batch = MergedTables(counted, [wide], [1.0])
    >>> batch.rows(np.array([1, 2, 3, 4, 5, 6]))
    array([12,  9])
    >>> batch.worst_edge(batch.weights(), bf.policies.Full(bf.Domain((2, 3)))) / 2**30
    2.0
    """

    kind = "merged_tables"
    no_answers = (
        "queries are asked of one table at a time: release.table(...) of a table that "
        "release.measured lists"
    )

    def __init__(
        self,
        counted: CountedTables,
        tables: Sequence[MergedTable],
        shares: Sequence[float],
        running: Sequence[int] = (),
    ) -> None:
        self.counted = counted
        self.tables = tuple(tables)
        self.running = frozenset(running)
        self.shares = np.asarray(shares, dtype=np.float64)
        self.cells = np.array([table.cells for table in self.tables], dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.cells)]).astype(np.int64)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Cells along every attribute of the domain."""
        return self.counted.sizes

    def tables_of(self, counts: IntArray) -> IntArray:
        """Return what `rows` returns, from counts of all cells of a small domain."""
        return self.rows(self.counted.of_cells(counts))

    def rows(self, counts: IntArray) -> IntArray:
        """Return the merged cells of every table, one after the other."""
        merged = [
            table.sum(self.counted.table(counts, table.axes)).reshape(-1)
            for table in self.tables
        ]
        for place in self.running:
            merged[place] = np.cumsum(merged[place])
        return np.concatenate(merged)

    def weights(self) -> IntArray:
        """Give every cell of a table the table's weight."""
        return np.repeat(integer_weights(self.shares), self.cells)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark tables that no edge moves, presence included: Lemmas CT4 and DC1."""
        check_shape(policy, self.sizes)
        kinds = edge_kinds(policy)
        exact = np.array([is_exact(table.axes, kinds) for table in self.tables])
        return np.repeat(exact, self.cells)

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the rows that an edge moves, by weight: Lemmas CT3, DC1 and DC11.

        Two cells of every table moved, one if absent; of running totals those between
        both ends. A move inside merged cells changes none; it is priced as if it did.

        Parameters
        ----------
        weights : ndarray of int64, shape (rows,)
            Whole weight of each row, table after table.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum, or a bound above it.
        """
        check_shape(policy, self.sizes)
        heaviest = np.maximum.reduceat(weights, self.starts[:-1]).tolist()
        kinds = edge_kinds(policy)
        if not self.running:
            axes = [table.axes for table in self.tables]
            return heaviest_edge(heaviest, axes, kinds, power)
        spans, dearest = longest_moves(policy), 0
        for kind in kinds:
            moved = sum(
                weight * self._moved_rows(place, kind, spans)
                for place, weight in enumerate(heaviest)
            )
            dearest = max(dearest, math.ceil(Fraction(moved) / kind.length**power))
        return dearest

    def _moved_rows(self, place: int, kind: EdgeKind, spans: Sequence[int]) -> int:
        """Return how many rows of a table an edge changes by one, at most."""
        table = self.tables[place]
        if not kind.moves(table.axes):
            return 0
        if place not in self.running:
            return kind.cells
        # A record that appears in the first cell raises every total.
        return table.cells if kind.axes is None else spans[table.axes[0]]

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Refuse: merged cells alone do not determine single cells.

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            Not read.
        scales : Scales
            Not read.

        Returns
        -------
        ndarray of float64
            Nothing is ever returned.

        Raises
        ------
        IntervalError
            Always.
        """
        raise IntervalError(
            "merged tables determine no single cells; take release.table(...) or "
            "release.fitted(...)"
        )

    def split(self, values: IntArray) -> list[IntArray]:
        """Return rows table by table, in the shape of each."""
        parts = np.split(values, self.starts[1:-1])
        return [
            part.reshape(table.shape)
            for part, table in zip(parts, self.tables, strict=True)
        ]

    def pack(self) -> dict[str, Any]:
        """Return sizes, counted tables, and each table's attributes and labels."""
        packed: dict[str, Any] = {
            "sizes": list(self.sizes),
            "counted": [list(axes) for axes in self.counted.tables],
            "tables": [
                {"axes": list(table.axes), "labels": packed_labels(table.groupings)}
                for table in self.tables
            ],
            "shares": self.shares,
        }
        if self.running:
            packed["running"] = sorted(self.running)
        return packed

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`; refuse tables that do not fit the domain."""
        sizes = tuple(int(size) for size in data["sizes"])
        counted = [tuple(int(axis) for axis in axes) for axes in data["counted"]]
        shares = np.asarray(data["shares"], dtype=np.float64)
        if not sizes or min(sizes) < 1 or shares.shape != (len(data["tables"]),):
            raise ReleaseFileError("tables, sizes and shares do not fit together")
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ReleaseFileError("a table's share lies outside 0 to 1")
        tables = [
            unpacked_table(sizes, packed["axes"], packed["labels"])
            for packed in data["tables"]
        ]
        for axes in (*counted, *(table.axes for table in tables)):
            inside = all(0 <= axis < len(sizes) for axis in axes)
            if not inside or list(axes) != sorted(set(axes)):
                raise ReleaseFileError("a table names attributes that are not there")
        running = [int(place) for place in data.get("running", ())]
        if any(
            not 0 <= place < len(tables) or len(tables[place].axes) != 1
            for place in running
        ):
            raise ReleaseFileError("running totals are of tables of one attribute")
        counted_tables = CountedTables(sizes, counted)
        return cls(counted_tables, tables, shares.tolist(), running)


def packed_labels(groupings: Sequence[Grouping]) -> list[IntArray]:
    """Return the labels of groupings in the fewest bytes that hold them."""
    kinds = [(grouping.count, grouping.labels) for grouping in groupings]
    return [
        labels.astype(np.uint8 if count <= 2**8 else np.int64)
        for count, labels in kinds
    ]


def unpacked_table(sizes: Sequence[int], axes: Any, labels: Any) -> MergedTable:
    """Rebuild a merged table; refuse labels that do not fit the attributes.

    Parameters
    ----------
    sizes : Sequence[int]
        Cells of every attribute of the domain.
    axes : object
        The attributes of the table.
    labels : object
        The coarser cell of each cell along each attribute.

    Returns
    -------
    MergedTable
        The table.
    """
    numbers = tuple(int(axis) for axis in axes)
    inside = all(0 <= axis < len(sizes) for axis in numbers)
    if not inside or len(labels) != len(numbers):
        raise ReleaseFileError("a table names attributes that are not there")
    groupings = tuple(map(Grouping, labels))
    if [grouping.labels.size for grouping in groupings] != [
        sizes[axis] for axis in numbers
    ]:
        raise ReleaseFileError("labels of merged cells do not fit their attribute")
    return MergedTable(numbers, groupings)

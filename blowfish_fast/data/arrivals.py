"""Records weighed by when they arrived: one pass, and never a table of epochs by cells.

::

    arrived     2026-10-30   2026-11-03   2026-11-11   2026-12-01
    epoch       before       W45          W46          after
    weight      0            512          1024         0

A record counts as often as the epoch of its arrival says; outside of the epochs it does
not count at all. In memory and in databases alike the epoch is found as the cell of a
date attribute is, so the two agree to the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import CountsError

from .axes import Axis, as_moments
from .columns import as_column, named_column
from .domain import Attributes, Domain
from .records import UNDATED, Rule, place_blocks

ARRIVALS = Rule("cell", UNDATED)
"""Arrivals outside of the epochs weigh nothing; a record without one is refused."""


class Arrivals(NamedTuple):
    """How often a record counts, by the epoch in which it arrived.

    Attributes
    ----------
    attribute : Axis
        The column of arrivals, cut at the first days of the epochs; its last cell is
        for all other days.
    weights : int64 (epochs + 1,)
        What a record of each epoch counts, oldest first, and 0 for all other days.
    """

    attribute: Axis
    weights: IntArray

    @classmethod
    def of(cls, column: str, edges: Sequence[date], weights: Sequence[int]) -> Arrivals:
        """State the epochs of a column.

        Parameters
        ----------
        column : str
            The column that says when a record arrived.
        edges : sequence of date
            The first day of each epoch, oldest first, and the day after the last one.
        weights : sequence of int
            What a record of each epoch counts; one fewer than edges.

        Returns
        -------
        Arrivals
            The epochs, and what a record of each counts.
        """
        days = Domain.from_dates(edges, name=column).with_extra_cells(outside=True)
        counted = np.array([*weights, 0], dtype=np.int64)
        return cls(days.attributes[0], counted)

    def weighed_cells(
        self, domain: Attributes, rules: list[Rule], records: Any
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the cells of records that count, and how often each does, in blocks.

        Parameters
        ----------
        domain : Attributes
            The cells.
        rules : list[Rule]
            What happens to stray values, by attribute.
        records : frame, mapping, array or iterator of these
            The records.

        Yields
        ------
        tuple of two ndarrays of int64
            The cells of a block, and the weights.
        """
        extended = type(domain)._of([*domain.attributes, self.attribute])
        for columns in place_blocks(extended, [*rules, ARRIVALS], records):
            weights = self.weights[columns[-1]]
            counted = np.flatnonzero(weights)
            cells = columns[0][counted]
            for size, column in zip(domain.shape[1:], columns[1:-1], strict=True):
                cells = cells * size + column[counted]
            yield cells, weights[counted]


class FirstEpochs(NamedTuple):
    """Which records of a person count: her first ones, in her first epochs.

    The choice is final when it is made: a later epoch brings records that come behind
    all earlier ones, so what was counted of a person before is counted again, with
    the weight of its age (``docs/proofs/series.md``, Lemma SW5). It needs epochs whose
    records no longer change. Of records that arrived at the same moment those in lower
    cells come first; equal ones are interchangeable.

    Attributes
    ----------
    person : str
        The column that says whose record it is.
    at_most : int
        Records of a person that count in one epoch.
    epochs_at_most : int, optional
        Epochs of a person whose records count; None for all.
    """

    person: str
    at_most: int
    epochs_at_most: int | None = None

    def cells(
        self, domain: Attributes, rules: list[Rule], records: Any, arrivals: Arrivals
    ) -> tuple[IntArray, IntArray]:
        """Return cells and weights of the records that count; all are held at once.

        Parameters
        ----------
        domain : Attributes
            The cells.
        rules : list of Rule
            What happens to stray values, one for each attribute.
        records : frame, mapping or iterator of these
            With a column for each attribute, that of arrivals, and `person`.
        arrivals : Arrivals
            The epochs since the series began, all of them: epochs too old to count
            still use up a person's first ones.

        Returns
        -------
        tuple of int64 arrays
            One cell and one weight for each record that counts.
        """
        extended = type(domain)._of([*domain.attributes, arrivals.attribute])
        column = str(arrivals.attribute.name)
        chunks = records if hasattr(records, "__next__") else iter([records])
        placed: list[Any] = [np.empty((domain.ndim + 1, 0), dtype=np.int64)]
        owners: list[Any] = []
        moments: list[Any] = [np.empty(0, dtype=np.int64)]
        for chunk in chunks:
            placed += map(np.array, place_blocks(extended, [*rules, ARRIVALS], chunk))
            owners += np.asarray(
                as_column(named_column(chunk, self.person, "person"))
            ).tolist()
            dates = np.asarray(named_column(chunk, column, "column"))
            moments.append(as_moments(dates).astype(np.int64))
        if any(owner is None or owner != owner for owner in owners):
            raise CountsError(
                f"some records do not say whose they are: {self.person!r} has missing "
                "values"
            )
        *axes, epochs = np.concatenate(placed, axis=1)
        cells = np.ravel_multi_index(tuple(axes), domain.shape)
        numbers = {owner: number for number, owner in enumerate(dict.fromkeys(owners))}
        persons = np.array([numbers[owner] for owner in owners], dtype=np.int64)
        rows = self._chosen(persons, epochs, np.concatenate(moments), cells, arrivals)
        weights = arrivals.weights[epochs[rows]]
        counted = weights > 0
        return cells[rows][counted], weights[counted]

    def _chosen(
        self,
        persons: IntArray,
        epochs: IntArray,
        arrived: IntArray,
        cells: IntArray,
        arrivals: Arrivals,
    ) -> IntArray:
        """Return the rows that count, by person, epoch, moment and cell."""
        inside = np.flatnonzero(epochs < arrivals.weights.size - 1)
        by_person = (cells[inside], arrived[inside], epochs[inside], persons[inside])
        order = inside[np.lexsort(by_person)]
        who, when = persons[order], epochs[order]
        new_person = _changes(who)
        new_epoch = new_person | _changes(when)
        place = np.arange(order.size)
        # Places inside a run are distances from its start.
        record_place = place - np.maximum.accumulate(np.where(new_epoch, place, 0))
        epoch_number = np.cumsum(new_epoch)
        first_epoch = np.maximum.accumulate(np.where(new_person, epoch_number, 0))
        chosen = record_place < self.at_most
        if self.epochs_at_most is not None:
            chosen &= epoch_number - first_epoch < self.epochs_at_most
        return np.asarray(order[chosen])


def _changes(values: IntArray) -> Any:
    """Mark where a sorted array changes, its first place included."""
    marks = np.ones(values.size, dtype=bool)
    marks[1:] = values[1:] != values[:-1]
    return marks

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


def first_records(
    domain: Attributes,
    rules: list[Rule],
    table: Any,
    arrivals: Arrivals,
    person: str,
    *,
    at_most: int,
    epochs_at_most: int | None,
) -> tuple[IntArray, IntArray]:
    """Return cells and weights of a person's first records in her first epochs.

    The choice is final when it is made: a later epoch brings records that come behind
    all earlier ones, so what was counted of a person before is counted again, with
    the weight of its age (``docs/proofs/series.md``, Lemma SW5). It needs epochs whose
    records no longer change. Of records that arrived at the same moment those in lower
    cells come first; equal ones are interchangeable.

    Parameters
    ----------
    domain : Attributes
        The cells.
    rules : list of Rule
        What happens to stray values, one for each attribute.
    table : mapping of columns or data frame
        With a column for each attribute, that of arrivals, and `person`.
    arrivals : Arrivals
        The epochs since the series began, all of them: epochs too old to count still
        use up a person's first ones.
    person : str
        The column that says whose record it is.
    at_most : int
        Records of a person that count in one epoch.
    epochs_at_most : int or None
        Epochs of a person whose records count; None for all.

    Returns
    -------
    tuple of int64 arrays
        One cell and one weight for each record that counts.
    """
    extended = type(domain)._of([*domain.attributes, arrivals.attribute])
    blocks = list(place_blocks(extended, [*rules, ARRIVALS], table))
    placed = np.concatenate([np.array(block) for block in blocks], axis=1)
    epochs = placed[-1]
    cells = np.ravel_multi_index(tuple(placed[:-1]), domain.shape)
    owners = np.asarray(as_column(named_column(table, person, "person")))
    missing = [owner is None or owner != owner for owner in owners.tolist()]
    if any(missing):
        raise CountsError(
            f"some records do not say whose they are: {person!r} has missing values"
        )
    _, persons = np.unique(owners, return_inverse=True)
    moments = np.asarray(named_column(table, str(arrivals.attribute.name), "column"))
    arrived = as_moments(moments).astype(np.int64)
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
    chosen = record_place < at_most
    if epochs_at_most is not None:
        chosen &= epoch_number - first_epoch < epochs_at_most
    rows = order[chosen]
    weights = arrivals.weights[epochs[rows]]
    counted = weights > 0
    return cells[rows][counted], weights[counted]


def _changes(values: IntArray) -> Any:
    """Mark where a sorted array changes, its first place included."""
    marks = np.ones(values.size, dtype=bool)
    marks[1:] = values[1:] != values[:-1]
    return marks

"""True counts over domains too large to hold: only cells with records are listed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Unpack

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import malformed_as, quoted
from blowfish_fast.errors import DomainError, InputError, SizeError

from .domain import LARGEST_DOMAIN, Attributes, Domain, WideDomain, narrow
from .histogram import Counting, Histogram, PrivateCounts, RecordTerms

LARGEST_NUMBER = 2**62
"""Cells are numbered in 64 bits."""

WAITING = 2**22
"""Listed cells that are collected before repeats are added up."""


class SparseHistogram(PrivateCounts):
    """Counts of records in the cells that hold any, of a domain of any size.

    Examples
    --------
    >>> people = Domain(2**20, names=["person"])
    >>> towns = Domain.from_levels(["Bern", "Basel"], name="town")
    >>> hours = Domain(24 * 365, names=["hour"])
    >>> wide = WideDomain.product(people, towns, hours)
    >>> visits = SparseHistogram.from_records(
    ...     wide, {"person": [7, 9], "town": ["Bern", "Bern"], "hour": [0, 8]}
    ... )
    >>> visits.marginal("town", "hour")
    Histogram(Domain(town: 2 cells x hour: 8760 cells), counts hidden)
    """

    __slots__ = ("keys",)

    domain: Attributes
    keys: IntArray

    def __init__(self) -> None:
        raise DomainError(
            "build a SparseHistogram from records: SparseHistogram.from_records("
            "WideDomain.product(...), table)"
        )

    def __repr__(self) -> str:
        return f"SparseHistogram({self.domain!r}, counts hidden)"

    @classmethod
    @malformed_as(InputError, "records are columns of values, one per attribute")
    def from_records(
        cls,
        domain: Attributes,
        columns: Any,
        **terms: Unpack[RecordTerms],
    ) -> SparseHistogram:
        """Count records by cell, as `Histogram.from_records` does.

        Memory grows with the cells that hold records; with `person`, with the records.
        """
        _check_domain(domain)
        counting = Counting.read(domain, **terms)
        done, waiting, held = _Listed.none(), [_Listed.none()], 0
        for cells, units in counting.cells(columns):
            if units is None:
                keys, counts = np.unique(cells, return_counts=True)
                waiting.append(_Listed(keys, counts.astype(np.int64)))
            else:
                waiting.append(_Listed(cells, units))
            held += waiting[-1].keys.size
            if held > max(WAITING, done.keys.size):
                done, waiting, held = _merge([done, *waiting]), [], 0
        listed = _merge([done, *waiting])
        return cls._keep(counting.domain, counting.bound, **listed._asdict())

    @classmethod
    def from_ibis(
        cls,
        domain: Attributes,
        table: Any,
        *,
        columns: Mapping[Any, str] | None = None,
        **terms: Unpack[RecordTerms],
    ) -> SparseHistogram:
        """Count the records of a table where it is, as `Histogram.from_ibis` does.

        Memory: 16 bytes per cell that holds records, at most 64 while they are sorted.
        """
        _check_domain(domain)
        counting = Counting.read(domain, **terms)
        query = counting.query(table, columns)
        parts = [_Listed(batch.cells, batch.records) for batch in query.batches()]
        listed = _merge([_Listed.none(), *parts])
        return cls._keep(counting.domain, counting.bound, **listed._asdict())

    def dense(self) -> Histogram:
        """Return the histogram of every cell; refused where it would not fit.

        Examples
        --------
        >>> line = Domain(2**20, names=["cell"])
        >>> data = SparseHistogram.from_records(line, {"cell": [5, 9, 9]})
        >>> data.keys.tolist(), data.counts.tolist(), data.dense().counts.size
        ([5, 9], [1, 2], 1048576)
        """
        if self.domain.size > LARGEST_DOMAIN:
            raise SizeError(
                f"this domain has {self.domain.size:,} cells; at most 2^28 = "
                f"{LARGEST_DOMAIN:,} are held in memory. Take a marginal, or merge "
                "cells with coarsened"
            )
        counts = np.zeros(self.domain.size, dtype=np.int64)
        counts[self.keys] = self.counts
        domain = Domain._of(self.domain.attributes)
        return Histogram._own(domain, counts.reshape(domain.shape), self.bound)

    def marginal(self, *names: Any) -> Histogram | SparseHistogram:
        """Sum over all attributes but these: a `Histogram` where it fits."""
        kept = sorted(self.domain.axes(names))
        domain = WideDomain._of(self.domain.attributes[axis] for axis in kept)
        places = self._coordinates()
        return self._rekey(domain, [places[axis] for axis in kept])

    def coarsened(
        self, groups: Mapping[Any, Any] | None = None, /, **named: Any
    ) -> Histogram | SparseHistogram:
        """Merge cells as `Histogram.coarsened` does: a `Histogram` where it fits."""
        domain, labels = self.domain.coarsened(groups, **named)
        places = [
            place if label is None else label[place]
            for place, label in zip(self._coordinates(), labels, strict=True)
        ]
        return self._rekey(domain, places)

    def _coordinates(self) -> list[IntArray]:
        places: list[IntArray] = []
        rest = self.keys
        for size in reversed(self.domain.shape):
            rest, place = np.divmod(rest, np.int64(size))
            places.append(place)
        return places[::-1]

    def _rekey(
        self, domain: Attributes, places: list[IntArray]
    ) -> Histogram | SparseHistogram:
        keys = np.zeros(self.keys.size, dtype=np.int64)
        for size, place in zip(domain.shape, places, strict=True):
            keys = keys * size + place
        listed = _merge([_Listed(keys, self.counts)])
        fitting = narrow(domain)
        sparse = SparseHistogram._keep(fitting, self.bound, **listed._asdict())
        return sparse.dense() if isinstance(fitting, Domain) else sparse


def _check_domain(domain: Any) -> None:
    if not isinstance(domain, Attributes):
        raise DomainError(
            f"the first argument must be a WideDomain or a Domain; received "
            f"{quoted(domain)}. Write WideDomain.product(ages, towns, ...)"
        )
    if domain.size > LARGEST_NUMBER:
        raise DomainError(
            f"a SparseHistogram numbers at most 2^62 = {LARGEST_NUMBER:,} cells",
            received=f"a domain of {domain.size:,}",
            way_out="Use coarser edges or fewer attributes, or publish tables of some "
            "attributes at a time: Contingency",
        )


class _Listed(NamedTuple):
    keys: IntArray
    counts: IntArray

    @classmethod
    def none(cls) -> _Listed:
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def _merge(parts: list[_Listed]) -> _Listed:
    keys = np.concatenate([one.keys for one in parts])
    counts = np.concatenate([one.counts for one in parts])
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: keys.size])
    if keys.size == 0:
        return _Listed(keys, counts)
    return _Listed(keys[starts], np.add.reduceat(counts, starts))

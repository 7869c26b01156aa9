"""True counts over domains too large to hold: only cells with records are listed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import malformed_as, quoted
from blowfish_fast.errors import DomainError, InputError, SizeError

from .domain import LARGEST_DOMAIN, Attributes, Domain, KeyDomain, WideDomain, narrow
from .histogram import Counting, Histogram, PrivateCounts
from .persons import Bound, RecordKeys
from .records import Rule, Treatments
from .rules.keys import as_numbers
from .sql import WEIGHT, CellCounts
from .wide.map_curve import MapCurve
from .wide.sql_words import counted_words
from .word_codes import WordCodes, coded_chunks, numbers_of

LARGEST_NUMBER = 2**62
"""Cells are numbered in 64 bits."""

WAITING = 2**22
"""Listed cells that are collected before repeats are added up."""


class FilledCells(NamedTuple):
    """True counts of the cells that hold records.

    Parameters
    ----------
    keys : ndarray of int64, shape (filled,)
        The numbers of these cells, ascending.
    counts : ndarray of int64, shape (filled,)
        How many records each of them holds.

    Examples
    --------
    >>> filled = FilledCells.of(np.array([0, 3, 0, 1]))
    >>> filled.keys.tolist(), filled.within(np.array([0, 2, 4])).tolist()
    ([1, 3], [3, 1])
    """

    keys: IntArray
    counts: IntArray

    @classmethod
    def of(cls, counts: IntArray) -> FilledCells:
        """Return the filled cells of counts of all cells."""
        flat = counts.reshape(-1)
        keys = np.flatnonzero(flat)
        return cls(keys.astype(np.int64), flat[keys])

    def along(self, curve: MapCurve) -> FilledCells:
        """Return the cells of a map, numbered row by row, along a curve."""
        rows, columns = np.divmod(self.keys, np.int64(curve.columns))
        keys = curve.numbers(rows, columns)
        order = np.argsort(keys)
        return FilledCells(keys[order], self.counts[order])

    def within(self, edges: IntArray) -> IntArray:
        """Return the records between each two of the ascending `edges`, exactly."""
        totals = np.zeros(self.counts.size + 1, dtype=np.int64)
        np.cumsum(self.counts, out=totals[1:])
        return np.diff(totals[np.searchsorted(self.keys, edges)])


class SparseHistogram(PrivateCounts):
    """Counts of records in the cells that hold any, of a domain of any size.

    Which cells these are is as private as the records. Cells are numbered in C order of
    the attributes, and `keys` holds the numbers of the filled ones, ascending:

        town x hour      Bern 0   Bern 8   Basel 0   Basel 8       (2 x 24 cells)
        number             0        8        24        32
        records            1        1         0         0      keys 0, 8; counts 1, 1

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
        records: Any,
        *,
        outside: Treatments = None,
        missing: Treatments = None,
        person: Any = None,
        record: Any = None,
        at_most: int | None = None,
        count: Literal["records", "persons"] = "records",
        key: str | None = None,
    ) -> SparseHistogram:
        """Count records by cell, as `Histogram.from_records` does.

        Memory grows with the cells that hold records; with `person`, with the records.

        Parameters
        ----------
        domain : Domain or WideDomain
            An attribute without edges or levels expects cell numbers.
        records : table, array_like, sequence or mapping of columns, or iterator
            As for `Histogram.from_records`.
        outside, missing : {"refuse", "clamp", "cell"}, or mapping from attributes
            What happens to values outside the domain and to missing ones; see
            `Histogram.from_records`.
        person, record : str or column, optional
            The columns that say whose record each row is and which of hers.
        at_most : int, optional
            Most records of a person that are counted; goes with `person`.
        count : {"records", "persons"}
            "persons": each person counts once, her m records 1/m each.
        key : str, optional
            The same key keeps the same records. Drawn if left out.

        Returns
        -------
        SparseHistogram
            The histogram, over the domain with its extra cells.

        Raises
        ------
        CountsError
            If there are stray values that were to be refused.
        """
        _check_domain(domain)
        counting = Counting.read(
            domain,
            outside=outside,
            missing=missing,
            person=person,
            record=record,
            at_most=at_most,
            count=count,
            key=key,
        )
        return cls._counted(counting, records)

    @classmethod
    def _counted(cls, counting: Counting[Any], records: Any) -> SparseHistogram:
        """Count records by stated terms, chunk by chunk."""
        if isinstance(counting.domain, KeyDomain):
            return cls._counted_words(counting, records)
        parts: list[CellCounts] = []
        waiting = 0
        for cells, units in counting.cells(records):
            if units is None:
                cells, units = np.unique(cells, return_counts=True)
            parts.append(CellCounts(cells, units))
            waiting += cells.size
            if waiting > max(WAITING, parts[0].cells.size):
                parts, waiting = [_merge(parts)], 0
        return cls._listed(counting.domain, parts, counting.bound)

    @classmethod
    def _counted_words(cls, counting: Counting[Any], records: Any) -> SparseHistogram:
        """Count words by codes, which are numbered as they come; then by number."""
        domain, (rule,) = counting.domain, counting.rules
        (attribute,) = domain.attributes
        codes = WordCodes(domain.rule)
        further = [*counting.keys, counting.weight]
        if counting.arrivals is not None:
            further.append(counting.arrivals.attribute.name)
        if counting.first is not None:
            further.append(counting.first.person)
        chunks = coded_chunks(records, domain, rule, codes, further)
        coded = counting._replace(
            domain=WideDomain(LARGEST_NUMBER, names=domain.column_names[0]),
            rules=[Rule("refuse", "refuse")],
        )
        counted = cls._counted(coded, chunks)
        numbers = numbers_of(codes, counted.keys, attribute)
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        keys = as_numbers((numbers[at] for at in order), domain.size)
        counts = counted.counts[np.array(order, dtype=np.int64)]
        return cls._own(domain, counts, counting.bound, keys=keys)

    @classmethod
    def _words_in(
        cls, counting: Counting[Any], table: Any, columns: Mapping[Any, str] | None
    ) -> SparseHistogram:
        """Count the words of a database: texts there, numbers here."""
        if counting.arrivals is not None:
            raise InputError(
                "words of a database are counted text by text, and not by arrival",
                way_out="Hand over the words of the epoch alone: "
                "SparseHistogram.from_ibis(domain, table.filter(...))",
            )
        chunks = counted_words(
            table,
            counting.domain,
            columns=columns,
            keys=counting.keys,
            bound=counting.bound,
            key=counting.key,
        )
        texts = counting._replace(keys=RecordKeys(None), bound=None, weight=WEIGHT)
        words = cls._counted_words(texts, chunks)
        return cls._own(words.domain, words.counts, counting.bound, keys=words.keys)

    @classmethod
    def _listed(
        cls, domain: Attributes, parts: list[CellCounts], bound: Bound | None
    ) -> SparseHistogram:
        keys, counts = _merge(parts)
        return cls._own(domain, counts, bound, keys=keys)

    @classmethod
    def from_ibis(
        cls,
        domain: Attributes,
        table: Any,
        *,
        columns: Mapping[Any, str] | None = None,
        outside: Treatments = None,
        missing: Treatments = None,
        person: Any = None,
        record: Any = None,
        at_most: int | None = None,
        count: Literal["records", "persons"] = "records",
        key: str | None = None,
    ) -> SparseHistogram:
        """Count the records of a table where it is, as `Histogram.from_ibis` does.

        Memory: 16 bytes per cell that holds records, at most 64 while they are sorted.
        Of a `KeyDomain` the different texts travel, and are numbered here.

        Parameters
        ----------
        domain : Domain or WideDomain
            As for `Histogram.from_ibis`.
        table : ibis table
            Records of persons are chosen from it as handed over.
        columns : mapping, optional
            From attributes, by name or number, to columns that are called otherwise.
        outside, missing : {"refuse", "clamp", "cell"}, or mapping from attributes
            What happens to values outside the domain and to missing ones; see
            `Histogram.from_records`.
        person, record : str, optional
            The columns that say whose record each row is and which of hers.
        at_most : int, optional
            Most records of a person that are counted; goes with `person`.
        count : {"records", "persons"}
            "persons": each person counts once, her m records 1/m each.
        key : str, optional
            The same key keeps the same records. Drawn if left out.

        Returns
        -------
        SparseHistogram
            The histogram, over the domain with its extra cells.

        Raises
        ------
        CountsError
            If there are stray values that were to be refused.
        """
        _check_domain(domain)
        counting = Counting.read(
            domain,
            outside=outside,
            missing=missing,
            person=person,
            record=record,
            at_most=at_most,
            count=count,
            key=key,
        )
        return cls._queried(counting, table, columns)

    @classmethod
    def _queried(
        cls,
        counting: Counting[Any],
        table: Any,
        columns: Mapping[Any, str] | None = None,
    ) -> SparseHistogram:
        """Count a table of a database by stated terms."""
        if isinstance(counting.domain, KeyDomain):
            return cls._words_in(counting, table, columns)
        parts = list(counting.query(table, columns).batches())
        return cls._listed(counting.domain, parts, counting.bound)

    @classmethod
    def _of_table(cls, counting: Counting[Any], data: Any) -> SparseHistogram:
        """Count records by stated terms, here or in a database."""
        in_database = hasattr(data, "get_backend")
        return (cls._queried if in_database else cls._counted)(counting, data)

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
        axes = sorted(self.domain.axes(names))
        domain = WideDomain._of(self.domain.attributes[axis] for axis in axes)
        places = self._coordinates()
        return self._rekey(domain, [places[axis] for axis in axes])

    def coarsened(
        self, groups: Mapping[Any, Any] | None = None, /, **named: Any
    ) -> Histogram | SparseHistogram:
        """Merge cells as `Histogram.coarsened` does.

        Parameters
        ----------
        groups : Mapping[object, object], optional
            By attribute: edges that stay, or a mapping from new levels to lists of old
            ones.
        **named : object
            The same, by the attribute's name.

        Returns
        -------
        Histogram or SparseHistogram
            A `Histogram` where it fits.

        Raises
        ------
        DomainError
            If an edge or level is not there.
        """
        domain, labels = self.domain.coarsened(groups, **named)
        places = [
            place if label is None else label[place]
            for place, label in zip(self._coordinates(), labels, strict=True)
        ]
        return self._rekey(domain, places)

    def _coordinates(self) -> list[IntArray]:
        """Return the place of each filled cell along every attribute."""
        places: list[IntArray] = []
        rest = self.keys
        for size in reversed(self.domain.shape):
            rest, place = np.divmod(rest, np.int64(size))
            places.append(place)
        return places[::-1]

    def _rekey(
        self, domain: Attributes, places: list[IntArray]
    ) -> Histogram | SparseHistogram:
        """Count the same records by other places, in another domain."""
        keys = np.zeros(self.keys.size, dtype=np.int64)
        for size, place in zip(domain.shape, places, strict=True):
            keys = keys * size + place
        fitting = narrow(domain)
        sparse = self._listed(fitting, [CellCounts(keys, self.counts)], self.bound)
        return sparse.dense() if isinstance(fitting, Domain) else sparse


def _check_domain(domain: Any) -> None:
    if not isinstance(domain, Attributes):
        raise DomainError(
            f"the first argument must be a WideDomain or a Domain; received "
            f"{quoted(domain)}. Write WideDomain.product(ages, towns, ...)"
        )
    words = any(attribute.keys is not None for attribute in domain.attributes)
    if words and domain.ndim > 1:
        raise DomainError(
            "words nobody listed are counted by themselves",
            received=f"{domain.ndim} attributes",
            way_out="Count the column of words alone, or list its categories",
        )
    if domain.size > LARGEST_NUMBER and not words:
        raise DomainError(
            f"a SparseHistogram numbers at most 2^62 = {LARGEST_NUMBER:,} cells",
            received=f"a domain of {domain.size:,}",
            way_out="Use coarser edges or fewer attributes, or publish tables of some "
            "attributes at a time: Contingency",
        )


def _merge(parts: list[CellCounts]) -> CellCounts:
    """Add up the records of equal cells; cells increase."""
    none = np.empty(0, dtype=np.int64)
    cells = np.concatenate([none, *(part.cells for part in parts)])
    records = np.concatenate([none, *(part.records for part in parts)])
    if cells.size == 0:
        return CellCounts(cells, records)
    order = np.argsort(cells, kind="stable")
    cells, records = cells[order], records[order]
    starts = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
    totals = np.add.reduceat(records, starts)
    # A row may stand for no record: its cell holds none.
    filled = totals != 0
    return CellCounts(cells[starts][filled], totals[filled])

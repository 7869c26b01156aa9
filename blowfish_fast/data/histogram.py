"""True counts, private: they go into ``mechanism.release``, and are never printed.

records --rules for strays--> cells --at most k of a person--> counts
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.near_misses import Hinting
from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import (
    NamingRightWords,
    as_counts,
    as_integers,
    malformed_as,
    quoted,
)
from blowfish_fast.errors import DomainError, InputError

from .arrivals import Arrivals, FirstEpochs
from .domain import Domain, WideDomain
from .persons import Bound, RecordKeys, bounded_cells, read_bound
from .records import (
    AnyDomain,
    Rule,
    Treatments,
    as_weights,
    cell_blocks,
    domain_with_rules,
    place_blocks,
)
from .sql import CellQuery, bounded_table


class Counting(NamedTuple, Generic[AnyDomain]):
    """How records are counted.

    Attributes
    ----------
    domain : AnyDomain
        The cells, extra ones included.
    rules : list[Rule]
        What happens to stray values, by attribute.
    keys : RecordKeys, default RecordKeys(None)
        Whose record each row is, and which of hers.
    bound : Bound, optional
        How many records of a person are counted; None where all are.
    key : str, optional
        Decides which records of a person are counted; drawn anew if None.
    weight : str, optional
        The column that says how many records a row stands for.
    arrivals : Arrivals, optional
        What a record counts by its age; None where all count the same.
    first : FirstEpochs, optional
        With `arrivals`: which records of a person count; None where all do.
    """

    domain: AnyDomain
    rules: list[Rule]
    keys: RecordKeys = RecordKeys(None)
    bound: Bound | None = None
    key: str | None = None
    weight: str | None = None
    arrivals: Arrivals | None = None
    first: FirstEpochs | None = None

    @classmethod
    def read(
        cls,
        domain: AnyDomain,
        *,
        outside: Treatments = None,
        missing: Treatments = None,
        person: Any = None,
        record: Any = None,
        at_most: int | None = None,
        count: str = "records",
        key: str | None = None,
    ) -> Counting[AnyDomain]:
        """Read the terms; public, before any record is.

        Parameters
        ----------
        domain : AnyDomain
            The cells.
        outside : Treatments, optional
            What happens to values outside: "refuse", "clamp" or "cell", or one of these
            by attribute.
        missing : Treatments, optional
            What happens to missing values, in the same way.
        person : str or column, optional
            Whose record each row is.
        record : str or column, optional
            Which of the person's records it is.
        at_most : int, optional
            How many records of a person are counted.
        count : str, default 'records'
            "records", or "persons" where each person counts once.
        key : str, optional
            Decides which records of a person are counted; drawn anew if left out.

        Returns
        -------
        Counting[AnyDomain]
            The terms.

        Raises
        ------
        InputError
            If a term is not one of these, or terms about persons come without a person.
        """
        terms = [term for term in (person, record, at_most) if term is not None]
        by_record = isinstance(count, str) and count == "records"
        bound = None
        if terms or not by_record:
            bound = read_bound(domain, person, record, at_most, count)
        if key is not None and not isinstance(key, str):
            raise InputError("key is a text, or left out", received=quoted(key))
        extended, rules = domain_with_rules(domain, outside, missing)
        return cls(extended, rules, RecordKeys(person, record), bound, key)

    def cells(self, columns: Any) -> Iterator[tuple[IntArray, IntArray | None]]:
        """Yield cells of records, and in how many units each counts; None: as one."""

        def blocks(chunk: Any) -> Iterator[IntArray]:
            return cell_blocks(self.domain, self.rules, chunk)

        if self.arrivals is not None and self.first is not None:
            yield self.first.cells(self.domain, self.rules, columns, self.arrivals)
        elif self.bound is not None:
            yield bounded_cells(blocks, columns, self.keys, self.bound, self.key)
        elif self.arrivals is not None:
            yield from self.arrivals.weighed_cells(self.domain, self.rules, columns)
        elif self.weight is None:
            for cells in blocks(columns):
                yield cells, None
        else:
            for chunk in columns:
                units = as_weights(chunk[self.weight], self.weight)
                for cells in blocks(chunk):
                    yield cells, units[: cells.size]
                    units = units[cells.size :]

    def places(self, records: Any) -> Iterator[Sequence[IntArray] | IntArray]:
        """Yield the cells of records along each attribute, block by block."""
        if self.bound is None:
            yield from place_blocks(self.domain, self.rules, records)
            return
        placed: list[IntArray] = []

        def rows_of(chunk: Any) -> Iterator[IntArray]:
            for block in place_blocks(self.domain, self.rules, chunk):
                start = sum(rows.shape[1] for rows in placed)
                placed.append(np.array(block))
                yield np.arange(start, start + placed[-1].shape[1])

        places, _ = bounded_cells(rows_of, records, self.keys, self.bound, self.key)
        yield np.concatenate(placed, axis=1)[:, places]

    def query(self, table: Any, columns: Mapping[Any, str] | None = None) -> CellQuery:
        """Return the query that counts a table by cell, its persons bounded first.

        Parameters
        ----------
        table : ibis Table
            The table.
        columns : Mapping[object, str], optional
            Names of columns by attribute, where they differ.

        Returns
        -------
        CellQuery
            The query.

        Raises
        ------
        InputError
            If a column is missing, or of the wrong type.
        """
        # The types of the attributes' columns are checked before anything else.
        query = CellQuery.over(self.domain, self.rules, table, columns, self.weight)
        if self.arrivals is not None:
            return query.weighed(*self.arrivals, self.first)
        if self.bound is None:
            return query
        bounded_rows = bounded_table(table, self.keys, self.bound, self.key, columns)
        bounded, keys, units = bounded_rows
        return CellQuery.over(self.domain, self.rules, bounded, columns, units, keys)


class PrivateCounts(NamingRightWords, metaclass=Hinting):
    """True counts: read-only, and never printed."""

    __slots__ = ("bound", "counts", "domain")

    domain: Any
    counts: IntArray
    bound: Bound | None
    """At most how many records of a person were counted; None where nobody says."""

    @property
    def at_most(self) -> int | None:
        """Most records of one person among the counts; None where nobody says."""
        return None if self.bound is None else self.bound.at_most

    @property
    def count(self) -> str:
        """What is counted: "records", or "persons", each of them once."""
        return "records" if self.bound is None else self.bound.count

    @property
    def person(self) -> str | None:
        """The column that says whose record it is."""
        return None if self.bound is None else self.bound.person

    @classmethod
    def _own(
        cls, domain: Any, counts: IntArray, bound: Bound | None = None, **more: Any
    ) -> Self:
        """Keep arrays that were built here, without a copy."""
        own = object.__new__(cls)
        own._fill(domain=domain, counts=counts, bound=bound, **more)
        return own

    def _fill(self, **parts: Any) -> None:
        for name, value in parts.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} never changes; build a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        names = (*PrivateCounts.__slots__, *type(self).__slots__)
        return _rebuild, (type(self), {name: getattr(self, name) for name in names})


def _rebuild(kind: type[PrivateCounts], parts: dict[str, Any]) -> PrivateCounts:
    return kind._own(**parts)


class Histogram(PrivateCounts):
    """Counts of records per cell, validated and read-only.

    Parameters
    ----------
    domain : Domain
        The cells.
    counts : array_like
        Whole numbers from 0, of the domain's shape.
    at_most : int, optional
        Your promise that no person has more than so many of these records, for
        policies of persons; `from_records` chooses them.
    count : {"records", "persons"}
        "persons": the counts are in units of 1 / lcm(1..at_most) of a person, and
        every person has as many units as make one.
    person : str, optional
        The name of the column that says whose record it is.

    Examples
    --------
    >>> visits = Histogram(Domain(4), [3, 0, 2, 5], at_most=2, person="patient")
    >>> visits
    Histogram(Domain(4 cells), at most 2 records of one patient, counts hidden)
    """

    __slots__ = ()

    domain: Domain

    def __init__(
        self,
        domain: Domain,
        counts: Any,
        *,
        at_most: int | None = None,
        count: Literal["records", "persons"] = "records",
        person: str | None = None,
    ) -> None:
        _check_domain(domain)
        own = as_counts(counts, domain.shape).copy()
        plain = at_most is None and person is None and count == "records"
        bound = None if plain else Bound.stated(at_most, count, person)
        self._fill(domain=domain, counts=own, bound=bound)

    def __getitem__(self, key: Any) -> Any:
        """Say where counts go: they are private, and a histogram is no list of them."""
        raise TypeError(
            f"a histogram is released, not indexed; received histogram[{quoted(key)}]. "
            "Write mechanism.release(histogram); its true counts, which are private, "
            "are histogram.counts"
        )

    def __repr__(self) -> str:
        bound = "" if self.bound is None else f", {self.bound.words()}"
        return f"Histogram({self.domain!r}{bound}, counts hidden)"

    def _repr_html_(self) -> str:
        """Show the shape in a notebook; counts stay hidden there too."""
        from blowfish_fast._support.html import panel

        rows = [("domain", repr(self.domain)), ("shape", self.domain.shape)]
        words = "Private: true counts. They go into mechanism.release, nowhere else."
        return panel("Histogram, counts hidden", rows, sentence=words)

    @classmethod
    @malformed_as(InputError, "records are columns of values, one per attribute")
    def from_records(
        cls,
        domain: Domain,
        records: Any,
        *,
        outside: Treatments = None,
        missing: Treatments = None,
        person: Any = None,
        record: Any = None,
        at_most: int | None = None,
        count: Literal["records", "persons"] = "records",
        key: str | None = None,
    ) -> Histogram:
        """Count records by cell; state the policy over ``histogram.domain``.

        Parameters
        ----------
        domain : Domain
            An attribute without edges or levels expects cell numbers.
        records : table, array_like, sequence or mapping of columns, or iterator
            A pandas, polars or arrow table, or a mapping, with a column for each
            attribute by name; an array of shape (records, attributes), a row for each
            record; a list of columns in the order of the attributes; a single column.
            An iterator yields chunks, each one of these.
        outside, missing : {"refuse", "clamp", "cell"}, or mapping from attributes
            What happens to values outside the domain and to missing ones: an error
            that does not say how many there are; the nearest edge cell (the first
            for missing values), or the nearest district of a point; or a cell of their
            own, which the histogram's domain gains for that attribute. One "clamp" for
            all attributes is about numbers, dates and districts with borders, and
            leaves other levels alone. Left out: the cell if `domain` has it
            (`Domain.with_extra_cells`), else refused. They are never dropped, because
            the total would stop being what the policy says it is.
        person, record : str or column, optional
            The columns that say whose record each row is and which of hers, of whole
            numbers or text and beside the attributes. At most `at_most` records of a
            person are then counted, chosen by a keyed hash of the two. Without
            `record` the choice is uniform and drawn anew for each histogram.
        at_most : int, optional
            Most records of a person that are counted; goes with `person`.
        count : {"records", "persons"}
            "persons": each person counts once, her m records 1/m each.
        key : str, optional
            The same key keeps the same records. Drawn if left out; never choose it
            by looking at the records.

        Returns
        -------
        Histogram
            The histogram, over the domain with its extra cells.

        Raises
        ------
        InputError
            If columns are missing, or terms about persons come without a person.
        CountsError
            If there are stray values that were to be refused.

        Examples
        --------
        >>> ages = Domain.from_edges([0, 18, 65, 120], name="age")
        >>> Histogram.from_records(ages, {"age": [3, 70, None]}, missing="cell")
        Histogram(Domain(age: 4 cells), counts hidden)
        >>> Histogram.from_records(Domain((4, 4)), np.array([[0, 3], [2, 2], [1, 0]]))
        Histogram(Domain(4 cells x 4 cells), counts hidden)
        >>> visits = {"age": [3, 70, 70], "patient": [1, 2, 2], "visit": [8, 9, 10]}
        >>> Histogram.from_records(
        ...     ages, visits, person="patient", record="visit", at_most=1
        ... )
        Histogram(Domain(age: 3 cells), at most 1 records of one patient, counts hidden)
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
    def _counted(cls, counting: Counting[Domain], columns: Any) -> Histogram:
        counts = np.zeros(counting.domain.size, dtype=np.int64)
        for cells, units in counting.cells(columns):
            if units is None:
                kernels.count_into(counts, cells)
            else:
                np.add.at(counts, cells, units)
        shape = counting.domain.shape
        return cls._own(counting.domain, counts.reshape(shape), counting.bound)

    @classmethod
    def from_ibis(
        cls,
        domain: Domain,
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
    ) -> Histogram:
        """Count the records of a table where it is: DuckDB, PostgreSQL, Spark, ...

        One GROUP BY runs in the database, and the cells that hold records travel, 16
        bytes each; the outcome is that of `from_records` on the same records. Memory:
        8 bytes per cell of the domain, and a batch.

        Parameters
        ----------
        domain : Domain
            Equal widths may be any number of cells; unequal ones, and levels, are
            written into the query and at most 2^12. Dates are compared to the second.
        table : ibis table
            Records of persons are chosen from it as handed over: filter by values of
            records afterwards, by the domain, never before.
        columns : mapping, optional
            From attributes, by name or number, to columns that are called otherwise.
        outside, missing : {"refuse", "clamp", "cell"}, or mapping from attributes
            What happens to values outside the domain and to missing ones; see
            `from_records`.
        person, record : str, optional
            The columns that say whose record each row is and which of hers; see
            `from_records`.
        at_most : int, optional
            Most records of a person that are counted; goes with `person`.
        count : {"records", "persons"}
            "persons": each person counts once, her m records 1/m each.
        key : str, optional
            The same key keeps the same records. Drawn if left out.

        Returns
        -------
        Histogram
            The histogram, over the domain with its extra cells.

        Raises
        ------
        InputError
            If columns are missing or of the wrong type.
        CountsError
            If there are stray values that were to be refused.

        Examples
        --------
        >>> import ibis                                             # the extra "sql"
        >>> visits = ibis.duckdb.connect().sql("SELECT range % 90 AS age FROM range(9)")
        >>> ages = Domain.from_edges([0, 18, 65, 120], name="age")
        >>> Histogram.from_ibis(ages, visits, missing="cell")
        Histogram(Domain(age: 4 cells), counts hidden)
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
        counts = counting.query(table, columns).counts()
        shape = counting.domain.shape
        return cls._own(counting.domain, counts.reshape(shape), counting.bound)

    def marginal(self, *names: Any) -> Histogram:
        """Sum over all attributes but these, given by name or number."""
        axes = self.domain.axes(names)
        dropped = tuple(axis for axis in range(self.domain.ndim) if axis not in axes)
        counts = np.ascontiguousarray(self.counts.sum(axis=dropped))
        return self._own(self.domain.marginal(names), counts, self.bound)

    def part(self, cells: Any) -> Histogram:
        """Return the counts of some cells, by number, from the same choice of records.

        Parts of one choice cost a person the largest of their epsilons where no edge of
        the policy joins them (`Ledger.release_disjoint`); others add up.

        Examples
        --------
        >>> visits = Histogram(Domain(4), [3, 0, 2, 5], at_most=2)
        >>> visits.part([2, 3]).counts.tolist(), visits.part([2, 3]).at_most
        ([2, 5], 2)
        """
        chosen = as_integers(cells, "cells").reshape(-1)
        size = self.domain.size
        inside = chosen.size and chosen.min() >= 0 and chosen.max() < size
        if not inside or np.unique(chosen).size != chosen.size:
            raise DomainError(
                f"a part is made of different cells from 0 to {size - 1}",
                received=quoted(cells),
            )
        counts = self.counts.reshape(-1)[chosen]
        return self._own(Domain(chosen.size), counts, self.bound)

    def coarsened(
        self, groups: Mapping[Any, Any] | None = None, /, **named: Any
    ) -> Histogram:
        """Merge cells: by the edges that stay, or from new levels to lists of old ones.

        Parameters
        ----------
        groups : Mapping[object, object], optional
            By attribute: edges that stay, or a mapping from new levels to lists of old
            ones.
        **named : object
            The same, by the attribute's name.

        Returns
        -------
        Histogram
            The coarser histogram.

        Raises
        ------
        DomainError
            If an edge or level is not there.

        Examples
        --------
        >>> ages = Domain.from_edges(range(0, 101, 10), name="age")
        >>> data = Histogram(ages, [3, 8, 15, 20, 18, 14, 11, 8, 2, 1])
        >>> data.coarsened({"age": [0, 20, 60, 100]}).counts.tolist()
        [11, 67, 22]
        """
        domain, labels = self.domain.coarsened(groups, **named)
        counts = self.counts
        for axis, label in enumerate(labels):
            if label is not None:
                along = np.moveaxis(counts, axis, 0)
                merged = np.zeros((domain.shape[axis], *along.shape[1:]), np.int64)
                np.add.at(merged, label, along)
                counts = np.moveaxis(merged, 0, axis)
        return self._own(domain, np.ascontiguousarray(counts), self.bound)


def _check_domain(domain: Any) -> None:
    if isinstance(domain, WideDomain):
        raise DomainError(
            f"a Histogram holds every cell in memory, and this domain has "
            f"{domain.size:,} of them",
            way_out="Count with SparseHistogram, or over domain.marginal(names)",
        )
    if not isinstance(domain, Domain):
        raise DomainError(
            "the first argument must be a Domain",
            received=quoted(domain),
            way_out="Write Histogram(Domain(n), counts)",
        )

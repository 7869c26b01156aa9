"""True counts of several contingency tables of one wide domain; private."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast._support.validation import as_counts, as_whole, malformed_as, quoted
from blowfish_fast.errors import CountsError, DomainError, InputError

from .domain import Attributes
from .histogram import Counting, Histogram, PrivateCounts
from .persons import Bound
from .records import Treatments


class CountsTables(Protocol):
    """What says which tables are to be counted: a `Contingency` mechanism."""

    @property
    def domain(self) -> Any:
        """The attributes."""
        ...

    @property
    def measured_tables(self) -> tuple[tuple[int, ...], ...]:
        """The attributes of each table, by number."""
        ...


class TableCounts(PrivateCounts):
    """Counts of records in the cells of several tables, read-only.

    Built by `from_records` and `from_ibis`; from tables at hand only if they agree on
    what they share.

    Parameters
    ----------
    domain : Domain or WideDomain
        All attributes.
    tables : Mapping[object, object]
        From attributes, by name or number, to whole counts with one axis for each in
        the domain's order; ``()`` stands for the number of records.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.Domain((2, 3), names=["sex", "age"])
    >>> TableCounts(survey, {"sex": [4, 2], ("sex", "age"): [[1, 2, 1], [0, 1, 1]]})
    TableCounts(Domain(sex: 2 cells x age: 3 cells), 2 tables, counts hidden)
    """

    __slots__ = ("tables",)

    tables: tuple[tuple[int, ...], ...]

    def __init__(self, domain: Any, tables: Mapping[Any, Any]) -> None:
        if not isinstance(domain, Attributes):
            raise DomainError(
                "the first argument is the Domain or WideDomain of all attributes",
                received=quoted(domain),
            )
        if not isinstance(tables, Mapping) or not tables:
            raise InputError(
                "tables are a mapping from attributes to counts",
                received=quoted(tables),
                way_out='Write {("age", "sex"): counts}, or count records with '
                "TableCounts.from_records",
            )
        counts_of: dict[tuple[int, ...], IntArray] = {}
        for names, counts in tables.items():
            axes = () if names == () else tuple(sorted(domain.axes(names)))
            shape = tuple(domain.shape[axis] for axis in axes)
            counts_of[axes] = as_counts(counts, shape).reshape(shape).copy()
        _refuse_disagreement(counts_of)
        flat = np.concatenate([table.reshape(-1) for table in counts_of.values()])
        self._fill(domain=domain, bound=None, tables=tuple(counts_of), counts=flat)

    def __repr__(self) -> str:
        return f"TableCounts({self.domain!r}, {len(self.tables)} tables, counts hidden)"

    @classmethod
    @malformed_as(InputError, "records are columns of values, one per attribute")
    def from_records(
        cls,
        mechanism: CountsTables,
        records: Any,
        *,
        outside: Treatments = None,
        missing: Treatments = None,
        person: Any = None,
        record: Any = None,
        at_most: int | None = None,
        count: Literal["records", "persons"] = "records",
        key: str | None = None,
    ) -> TableCounts:
        """Count records into the tables that a mechanism measures, in one pass.

        The rest is as for `Histogram.from_records`, with "cell" only where the
        mechanism's domain has such a cell. Records of persons are chosen once, for all
        tables.

        Parameters
        ----------
        mechanism : Contingency
            Says which tables are counted, over which domain.
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
        TableCounts
            The tables.

        Raises
        ------
        CountsError
            If there are stray values that were to be refused.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> survey = bf.Domain((2, 3), names=["sex", "age"])
        >>> asked = bf.workloads.Tables(survey, ways=1)
        >>> mech = bf.Contingency(bf.policies.Full(survey), asked, epsilon=1)
        >>> bf.TableCounts.from_records(mech, {"sex": [0, 1, 1], "age": [2, 2, 0]})
        TableCounts(Domain(sex: 2 cells x age: 3 cells), 2 tables, counts hidden)
        """
        tables = _asked(mechanism)
        counting = Counting.read(
            mechanism.domain,
            outside=outside,
            missing=missing,
            person=person,
            record=record,
            at_most=at_most,
            count=count,
            key=key,
        )
        _check_counting(mechanism, counting)
        blocks = counting.places(records)
        return cls.from_cells(counting.domain, tables, blocks, counting.bound)

    @classmethod
    @malformed_as(InputError, "a table is an ibis table, and its columns have names")
    def from_ibis(
        cls,
        mechanism: CountsTables,
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
    ) -> TableCounts:
        """Count the records of a database's table into the tables of a mechanism.

        One statement turns every record into its cell numbers, so all tables come from
        one state of the database.

        Parameters
        ----------
        mechanism : Contingency
            Says which tables are counted, over which domain.
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
        TableCounts
            The tables.

        Raises
        ------
        CountsError
            If there are stray values that were to be refused.
        """
        tables = _asked(mechanism)
        counting = Counting.read(
            mechanism.domain,
            outside=outside,
            missing=missing,
            person=person,
            record=record,
            at_most=at_most,
            count=count,
            key=key,
        )
        _check_counting(mechanism, counting)
        batches = counting.query(table, columns).places()
        return cls.from_cells(counting.domain, tables, batches, counting.bound)

    @classmethod
    def from_histogram(
        cls, histogram: Histogram, tables: Sequence[tuple[int, ...]]
    ) -> TableCounts:
        """Sum a histogram of all cells down to some tables.

        Parameters
        ----------
        histogram : Histogram
            The histogram.
        tables : Sequence[tuple[int, ...]]
            The attributes of each table, by number.

        Returns
        -------
        TableCounts
            The tables.

        Raises
        ------
        InputError
            If the first argument is no histogram, or a table no set of attributes.
        """
        if not isinstance(histogram, Histogram):
            raise InputError(
                "tables are summed from a Histogram", received=quoted(histogram)
            )
        tables = _checked_tables(histogram.domain, tables)
        every = range(histogram.domain.ndim)
        parts = [
            histogram.counts.sum(
                axis=tuple(axis for axis in every if axis not in table)
            )
            for table in tables
        ]
        flat = np.concatenate([np.asarray(table).reshape(-1) for table in parts])
        return cls._own(histogram.domain, flat, histogram.bound, tables=tables)

    @classmethod
    def from_cells(
        cls,
        domain: Attributes,
        tables: tuple[tuple[int, ...], ...],
        blocks: Iterable[Sequence[IntArray] | IntArray],
        bound: Bound | None = None,
    ) -> TableCounts:
        """Count records that are cell numbers already.

        Parameters
        ----------
        domain : Attributes
            All attributes.
        tables : tuple[tuple[int, ...], ...]
            The attributes of each table, by number.
        blocks : Iterable[Sequence[ndarray of int64] or ndarray of int64]
            Blocks of records: a row of cell numbers per attribute.
        bound : Bound, optional
            How many records of a person were counted; None where all are.

        Returns
        -------
        TableCounts
            The tables.

        Raises
        ------
        InputError
            If a cell number is out of range.
        """
        if bound is not None and not isinstance(bound, Bound):
            raise InputError("bound is a Bound or None", received=quoted(bound))
        tables = _checked_tables(domain, tables)
        counts = np.zeros(_starts(domain, tables)[-1], dtype=np.int64)
        with malformed_as(InputError, "blocks are a sequence of arrays"):
            each = iter(blocks)
        for block in each:
            kernels.count_tables(counts, _cell_numbers(block), domain.shape, tables)
        return cls._own(domain, counts, bound, tables=tables)

    def vector(self, domain: Any, tables: Sequence[tuple[int, ...]]) -> IntArray:
        """Return the counts of some of the tables in turn; refuse what is missing.

        Parameters
        ----------
        domain : Domain or WideDomain
            The attributes that the caller expects.
        tables : Sequence[tuple[int, ...]]
            The attributes of each table, by number.

        Returns
        -------
        ndarray of int64
            The cells of all these tables.

        Raises
        ------
        DomainError
            If the attributes are others.
        CountsError
            If a table is missing.
        """
        if self.domain.attributes != domain.attributes:
            raise DomainError(
                "data and mechanism lie over the same attributes",
                received=f"{self.domain!r} and {domain!r}",
                way_out="Count the records for this mechanism",
            )
        if tuple(tables) == self.tables:
            return self.counts
        starts = _starts(self.domain, self.tables)
        places = dict(zip(self.tables, pairwise(starts), strict=True))
        lacking = [table for table in tables if table not in places]
        if lacking:
            raise CountsError(
                "the data must hold every table that the mechanism measures",
                received=f"none for attributes {lacking[0]}",
                way_out="Count records for this mechanism: TableCounts.from_records",
            )
        return np.concatenate([self.counts[slice(*places[table])] for table in tables])


def _asked(mechanism: Any) -> tuple[tuple[int, ...], ...]:
    """Return the tables that a mechanism measures; refuse what measures none."""
    tables: tuple[tuple[int, ...], ...] | None = getattr(
        mechanism, "measured_tables", None
    )
    if tables is None:
        raise InputError(
            "name the mechanism first, which says what is counted",
            received=quoted(mechanism),
            way_out="Write TableCounts.from_records(Contingency(...), records)",
        )
    return tables


def _check_counting(mechanism: CountsTables, counting: Counting[Any]) -> None:
    """Refuse cells that the mechanism's domain lacks, and persons who count once."""
    if counting.domain.attributes != mechanism.domain.attributes:
        raise DomainError(
            "cells for missing values and values outside must be part of the domain "
            "over which the policy was stated",
            way_out="State policy and tables over "
            "domain.with_extra_cells(missing=True, outside=True)",
        )
    if counting.bound is not None and counting.bound.count == "persons":
        raise InputError("tables count records", received='count="persons"')


def _checked_tables(
    domain: Attributes, tables: Sequence[tuple[int, ...]]
) -> tuple[tuple[int, ...], ...]:
    """Return tables by axes, each in the domain's order; refuse what is none."""
    if not isinstance(domain, Attributes):
        raise DomainError(
            "the attributes are a Domain or WideDomain", received=quoted(domain)
        )
    with malformed_as(InputError, "a table is named by the numbers of its attributes"):
        checked = tuple(
            tuple(as_whole(axis, "an attribute's number", 0) for axis in item)
            for item in tables
        )
    rising = all(item < other for table in checked for item, other in pairwise(table))
    inside = all(axis < len(domain.shape) for table in checked for axis in table)
    if not checked or not rising or not inside:
        raise InputError(
            "each table lists numbers of attributes, rising and within the domain",
            received=quoted(checked),
        )
    return checked


def _cell_numbers(block: Any) -> npt.NDArray[np.int32]:
    """Return a block as 32-bit cell numbers; refuse what would not stay the same."""
    with malformed_as(InputError, "a block has a row of cell numbers per attribute"):
        numbers: AnyArray = np.asarray(block)
        if numbers.size and numbers.dtype.kind not in "iu":
            raise InputError(
                "cell numbers are whole numbers", received=f"dtype {numbers.dtype}"
            )
        wide = numbers.size and numbers.dtype.itemsize >= 4
        if wide and (numbers.min() < 0 or numbers.max() > np.iinfo(np.int32).max):
            raise InputError("every record needs a cell number within each attribute")
        return np.array(numbers, dtype=np.int32)


def _starts(domain: Attributes, tables: Sequence[tuple[int, ...]]) -> list[int]:
    starts = [0]
    for table in tables:
        starts.append(starts[-1] + math.prod(domain.shape[axis] for axis in table))
    return starts


def _refuse_disagreement(tables: dict[tuple[int, ...], IntArray]) -> None:
    """Refuse tables that cannot come from the same records."""
    sums: dict[tuple[int, ...], IntArray] = {}
    for axes, counts in tables.items():
        for other in tables:
            shared = tuple(axis for axis in axes if axis in other)
            dropped = tuple(at for at, axis in enumerate(axes) if axis not in shared)
            own = counts.sum(axis=dropped)
            if not np.array_equal(sums.setdefault(shared, own), own):
                raise CountsError(
                    "tables of one set of records agree on what they share; these "
                    f"differ on attributes {shared}",
                    way_out="Count all of them from the same records: "
                    "TableCounts.from_records",
                )

"""What all private counts share: how records are read, and that nothing changes later.

    records --rules for strays--> cells --at most k of a person--> counts, never printed

`Histogram`, `SparseHistogram` and `TableCounts` differ in what they keep of the counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, Literal, NamedTuple, Self, TypedDict

import numpy as np

from blowfish_fast._support.typing import IntArray

from .persons import Bound, RecordKeys, bounded_cells, read_bound
from .records import AnyDomain, Rule, Treatments, cell_blocks, domain_with_rules
from .sql import CellQuery, query_cells


class RecordTerms(TypedDict, total=False):
    """How stray values are treated and whose records they are.

    Every word is explained at `Histogram.from_records`.
    """

    outside: Treatments
    missing: Treatments
    person: Any
    record: Any
    at_most: int | None
    count: Literal["records", "persons"]
    key: str | None


class Counting(NamedTuple, Generic[AnyDomain]):
    """`RecordTerms` as read: the domain with its extra cells, and what to count."""

    domain: AnyDomain
    rules: list[Rule]
    keys: RecordKeys
    bound: Bound | None
    key: str | None

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
        """Read the terms; public, before any record is."""
        bound = read_bound(domain, person, record, at_most, count)
        extended, rules = domain_with_rules(domain, outside, missing)
        return cls(extended, rules, RecordKeys(person, record), bound, key)

    def cells(self, columns: Any) -> Iterator[tuple[IntArray, IntArray | None]]:
        """Yield cells of records, and in how many units each counts; None: as one."""
        if self.bound is not None:
            yield bounded_cells(self._blocks, columns, self.keys, self.bound, self.key)
            return
        for cells in self._blocks(columns):
            yield cells, None

    def _blocks(self, columns: Any) -> Iterator[IntArray]:
        return cell_blocks(self.domain, self.rules, columns)

    def query(self, table: Any, columns: Mapping[Any, str] | None) -> CellQuery:
        """Return the query that counts a table of a database by cell."""
        return query_cells(
            self.domain, self.rules, table, columns, self.keys, self.bound, self.key
        )


class PrivateCounts:
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
    def _keep(cls, domain: Any, bound: Bound | None, **kept: Any) -> Self:
        """Keep arrays that were built here, without a copy."""
        own = object.__new__(cls)
        own._fill(domain=domain, bound=bound, **kept)
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
    return kind._keep(**parts)

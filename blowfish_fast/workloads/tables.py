"""Contingency tables over sets of attributes, of a domain that nobody could list."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations
from typing import Any

from blowfish_fast._support.typing import AnyArray
from blowfish_fast._support.validation import (
    as_positive,
    as_whole,
    malformed_as,
    quoted,
)
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import LARGEST_DOMAIN, Attributes, Domain, WideDomain
from blowfish_fast.errors import DomainError, WorkloadError

from .base import Fractions, Pieces, Union, Workload
from .linear import Marginals

MOST_TABLES = 2**16


class Tables(Workload):
    """Contingency tables (marginals) over several sets of attributes.

    Over a `WideDomain` only `Contingency` and `ChosenTables` publish them.

    Parameters
    ----------
    domain : Domain or WideDomain
        All attributes.
    tables : iterable, optional
        Sets of attributes, by name or number.
    ways : int, optional
        Asks for all tables of 1, 2, ... `ways` attributes instead.
    weights : sequence of float, optional
        One positive number per table: how much its error counts when the noise is
        planned, or when the data choose what is measured.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages, sexes = bf.Domain(100, names=["age"]), bf.Domain(2, names=["sex"])
    >>> survey = bf.WideDomain.product(ages, sexes, bf.Domain(50, names=["region"]))
    >>> asked = Tables(survey, ways=2)
    >>> len(asked.tables), asked.queries, asked.names(3)
    (6, 5452, ('age', 'sex'))
    >>> Tables(survey, ["age", ("age", "sex")], weights=[1, 4]).weights
    (1.0, 4.0)
    """

    domain: Any

    def __init__(
        self,
        domain: Domain | WideDomain,
        tables: Iterable[Any] | None = None,
        *,
        ways: int | None = None,
        weights: Any = None,
    ) -> None:
        if not isinstance(domain, Domain | WideDomain):
            raise WorkloadError(
                "tables are asked of a Domain or a WideDomain",
                received=quoted(domain),
                way_out="Write workloads.Tables(WideDomain.product(...), ways=2)",
            )
        self.domain = domain
        if (tables is None) == (ways is None):
            raise WorkloadError(
                "say which tables: a list of sets of attributes, or ways=2 for all "
                "tables of one and two attributes",
                received=f"tables={quoted(tables)}, ways={quoted(ways)}",
            )
        self.tables = (
            _named_tables(domain, tables) if ways is None else _all_tables(domain, ways)
        )
        _refuse_large(domain, self.tables)
        with malformed_as(WorkloadError, "give one weight per table"):
            numbers = [1] * len(self.tables) if weights is None else list(weights)
        if len(numbers) != len(self.tables):
            raise WorkloadError(
                f"give one weight per table: {len(self.tables)} tables, {len(numbers)} "
                "weights"
            )
        self.weights = tuple(
            float(as_positive(weight, "each weight")) for weight in numbers
        )

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Cells along each attribute, table by table."""
        sizes = self.domain.shape
        return tuple(tuple(sizes[axis] for axis in table) for table in self.tables)

    @property
    def queries(self) -> int:
        """One per cell of every table."""
        return sum(math.prod(shape) for shape in self.shapes)

    def _pieces(self) -> int:
        return len(self.tables) * int(self.domain.size)

    def names(self, table: int) -> tuple[Any, ...]:
        """Return the attributes of a table, named; numbered where they have no name."""
        return table_names(self.domain, self.tables[table])

    def mean_cells(self) -> float:
        """Return how many cells of the domain a cell of a table covers on average."""
        return float(len(self.tables) * self.domain.size / self.queries)

    def __or__(self, other: Any) -> Workload:
        """Return the tables of both as one workload, weights of equal tables added."""
        if not isinstance(other, Tables) or other.domain != self.domain:
            return super().__or__(other)
        joined: dict[tuple[int, ...], float] = {}
        for asked in (self, other):
            for table, weight in zip(asked.tables, asked.weights, strict=True):
                joined[table] = joined.get(table, 0.0) + weight
        return Tables(self.domain, list(joined), weights=list(joined.values()))

    def _parts(self) -> Union:
        if not isinstance(self.domain, Domain):
            raise WorkloadError(
                "tables of a wide domain are never listed cell by cell",
                received=f"a domain of {self.domain.size:,} cells",
                way_out="Publish them with Contingency, or ask a marginal",
            )
        return Union(*(Marginals(self.domain, table) for table in self.tables))

    def _answer(self, counts: AnyArray) -> AnyArray:
        return self._parts()._answer(counts)

    def explicit_form(self, buckets: Buckets) -> Fractions | Pieces:
        """List the cells of each entry as runs of buckets, table by table."""
        return self._parts().explicit_form(buckets)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON: the tables as lists of axes, and weights."""
        lists = {"tables": list(map(list, self.tables)), "weights": list(self.weights)}
        return self._plain_head() | lists

    def __repr__(self) -> str:
        return f"Tables({self.domain!r}, {len(self.tables):,} tables)"


def table_names(domain: Attributes, table: Iterable[int]) -> tuple[Any, ...]:
    """Return the attributes of a table, named; numbered where they have no name.

    Parameters
    ----------
    domain : Attributes
        All attributes.
    table : Iterable[int]
        The attributes of the table, by number.

    Returns
    -------
    tuple[object, ...]
        Names and numbers.
    """
    named = ((axis, domain.names[axis]) for axis in table)
    return tuple(axis if name is None else name for axis, name in named)


def places_of(workload: Any, domain: Attributes) -> tuple[int, ...]:
    """Return which attributes of a domain a workload is over; refuse others.

    Parameters
    ----------
    workload : Workload
        The workload.
    domain : Attributes
        All attributes.

    Returns
    -------
    tuple[int, ...]
        The numbers of the attributes.

    Raises
    ------
    DomainError
        If it is over others, or in another order.
    """
    attributes = getattr(getattr(workload, "domain", None), "attributes", ())
    own = domain.attributes
    axes = [own.index(attribute) for attribute in attributes if attribute in own]
    if not axes or len(axes) != len(attributes) or axes != sorted(axes):
        raise DomainError(
            "ask a workload over the attributes of one table, in their order",
            received=repr(workload),
            way_out='Build it over release.table("age", "sex").domain',
        )
    return tuple(axes)


def _all_tables(domain: Attributes, ways: Any) -> tuple[tuple[int, ...], ...]:
    most = as_whole(ways, "ways", 1)
    if most > domain.ndim:
        raise WorkloadError(
            f"a table has at most the {domain.ndim} attributes of the domain",
            received=f"ways={most}",
        )
    sizes = range(1, most + 1)
    _refuse_many(sum(math.comb(domain.ndim, size) for size in sizes))
    return tuple(table for k in sizes for table in combinations(range(domain.ndim), k))


def _named_tables(domain: Attributes, tables: Any) -> tuple[tuple[int, ...], ...]:
    if isinstance(tables, str) or not isinstance(tables, Iterable):
        raise WorkloadError(
            "tables are a list of sets of attributes",
            received=quoted(tables),
            way_out='Write [("age", "sex"), "region"]',
        )
    with malformed_as(WorkloadError, "tables are a list of sets of attributes"):
        named = list(tables)
    _refuse_many(len(named))
    if not named:
        raise WorkloadError("ask for at least one table", received="none")
    axis_sets = tuple(tuple(sorted(domain.axes(table))) for table in named)
    if len(set(axis_sets)) < len(axis_sets):
        twice = next(table for table in axis_sets if axis_sets.count(table) > 1)
        raise WorkloadError(
            "name each table once",
            received=f"{table_names(domain, twice)} twice",
            way_out="Give it a larger weight instead",
        )
    return axis_sets


def _refuse_many(count: int) -> None:
    if count > MOST_TABLES:
        raise WorkloadError(
            f"at most 2^16 = {MOST_TABLES:,} tables are asked together",
            received=f"{count:,}",
            way_out="Ask for fewer ways, or name the tables that are needed",
        )


def _refuse_large(domain: Attributes, tables: Iterable[tuple[int, ...]]) -> None:
    for table in tables:
        cells = math.prod(domain.shape[axis] for axis in table)
        if cells > LARGEST_DOMAIN:
            raise DomainError(
                f"a table holds at most 2^28 = {LARGEST_DOMAIN:,} cells",
                received=f"{table_names(domain, table)} with {cells:,}",
                way_out="Use coarser cells for one of its attributes",
            )

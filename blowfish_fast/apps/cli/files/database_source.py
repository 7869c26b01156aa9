"""A table of a database, by the address that a person states.

    "people.duckdb", "people.sqlite"     a file
    "duckdb://...", "postgres://..."     the same, PostgreSQL
    "sqlite://...", "mysql://...", ...   whatever ibis connects to

The table is counted by one GROUP BY in the database (``blowfish_fast.data.sql``).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from blowfish_fast._support.optional import require
from blowfish_fast.apps.explorer.engines import Database
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.records import Rule
from blowfish_fast.data.sql import (
    CellQuery,
    bounded_table,
    cell_batches,
    query_cells,
)
from blowfish_fast.data.sql_cells import type_problem
from blowfish_fast.data.table_counts import TableCounts
from blowfish_fast.errors import CountsError, EngineError, InputError, nearest

from .record_files import (
    SQLITE,
    DataSource,
    Part,
    TableAxes,
    domain_as_stored,
    refuse_weighted,
)

OWN = ("duckdb", "postgres", "postgresql")
"""Schemes that the explorer's databases open, read only."""


class DatabaseTable(DataSource):
    """A table of a database, by an address that ibis understands.

    The password of an address is never printed; the only table of a database need not
    be named.
    """

    def __init__(
        self, address: str, table: str | None = None, count_column: str | None = None
    ) -> None:
        require("ibis", extra="sql", purpose="reading a database")
        self.database = _open_database(address)
        self.count_column = count_column
        self.table = self._choose_table(table)
        self.description = f"table {self.table} ({self.database.name})"

    def check(self, domain: Domain) -> None:
        """Refuse a table whose columns are not as stated; reads its schema only."""
        self._stored(domain)

    def histogram(self, domain: Domain, rules: list[Rule], done: Part) -> Histogram:
        """Count the records of every cell of `domain`, extra cells included."""
        stored = self._stored(domain)
        table = self.database.backend.table(self.table)
        bound = None if self.people is None else self.people.bound
        if self.people is None:
            query = CellQuery.over(stored, rules, table, weight=self.count_column)
        else:
            refuse_weighted(self.count_column)
            query = query_cells(stored, rules, table, None, *self.people)
        with _quiet_drivers():
            counts = query.counts()
        if not counts.any():
            raise CountsError(
                f"{self.description} holds no record; is it the right table?"
            )
        done(1.0)
        return Histogram._own(domain, counts.reshape(domain.shape), bound)

    def tables(
        self, domain: Any, tables: TableAxes, rules: list[Rule], done: Part
    ) -> TableCounts:
        """Count the records of some tables of a domain, from one statement."""
        stored = self._stored(domain)
        table = self.database.backend.table(self.table)
        bound, keys = None, ()  # type: tuple[Any, tuple[str, ...]]
        with _quiet_drivers():
            if self.people is not None:
                # One statement: all tables are counted from one choice of records.
                bound = self.people.bound
                table, keys, _ = bounded_table(table, *self.people)
            batches = cell_batches(stored, rules, table, None, keys)
            counted = TableCounts.from_cells(domain, tables, batches, bound)
        done(1.0)
        return counted

    def _choose_table(self, table: str | None) -> str:
        tables: list[str] = self.database.tables()
        if table is not None and table in tables:
            return table
        if table is None and len(tables) == 1:
            return tables[0]
        listed = ", ".join(tables[:20]) or "none"
        if table is None:
            raise InputError(
                f"{self.database.name} has several tables, {listed}; name one with "
                "--data-table"
            )
        raise InputError(
            f"{self.database.name} has no table {table!r}{nearest(table, tables)}; it "
            f"has {listed}"
        )

    def _stored(self, domain: Domain) -> Domain:
        """Return the domain with categories as the table spells them."""
        columns: dict[str, Any] = dict(self.database.schema(self.table).items())
        needed = [one.name for one in domain.attributes]
        if None in needed:
            raise InputError(
                "a table has columns with names, and the domain names none; state it "
                "as age=0:101:1, for instance"
            )
        keys = () if self.people is None else self.people.keys
        for name in [*needed, self.count_column, *keys]:
            if name is not None and name not in columns:
                raise InputError(
                    f"{self.description} has no column {name!r}"
                    f"{nearest(name, columns)}; its columns are {', '.join(columns)}"
                )
        stored = domain_as_stored(
            domain,
            texts=[name for name, kind in columns.items() if kind.is_string()],
            truths=[name for name, kind in columns.items() if kind.is_boolean()],
        )
        for one in stored.attributes:
            problem = type_problem(one, columns[str(one.name)])
            if problem is not None:
                raise InputError(
                    f"{problem}; state cells of that kind, name a view that converts "
                    "the column, or export the table as CSV"
                )
        return stored


@contextmanager
def _quiet_drivers() -> Iterator[None]:
    """Keep back what drivers say of themselves: a curator cannot act on it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _open_database(address: str) -> Database:
    if "://" not in address and Path(address).suffix.lower() in SQLITE:
        address = f"sqlite://{Path(address).absolute()}"
    scheme, apart, rest = address.partition("://")
    if not apart or scheme in OWN:
        return Database.connect(address)
    if scheme == "sqlite" and not Path(rest.partition("?")[0]).is_file():
        # ibis would make a new, empty one.
        raise EngineError(f"there is no SQLite file {rest!r}; check the path")
    ibis = require("ibis", extra="sql", purpose="reading a database")
    host = urlparse(address).hostname
    called = "SQLite" if scheme == "sqlite" else scheme
    name = called if host is None else f"{called} on {host}"
    try:
        return Database(ibis.connect(address), name)
    except ImportError:
        raise EngineError(
            f"ibis lacks what it needs for {scheme}://; install it with: pip install "
            f"'ibis-framework[{scheme}]'"
        ) from None
    except Exception as problem:
        raise EngineError(
            f"{name} could not be reached ({type(problem).__name__}); check the "
            "address, the user and the network"
        ) from None

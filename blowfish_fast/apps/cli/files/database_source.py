"""A table of a database by its address: the explorer's kinds, or others of ibis."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlparse

import numpy as np

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import IntArray
from blowfish_fast.apps.explorer.engines import Database
from blowfish_fast.data.domain import KeyDomain, WideDomain
from blowfish_fast.data.histogram import Counting, Histogram
from blowfish_fast.data.persons import refuse_missing_key
from blowfish_fast.data.records import raise_together
from blowfish_fast.data.sparse import SparseHistogram
from blowfish_fast.data.sql_cells import type_problem
from blowfish_fast.data.table_counts import TableCounts
from blowfish_fast.errors import EngineError, InputError, nearest

from .record_files import (
    DataSource,
    Part,
    TableAxes,
    check_columns,
    domain_as_stored,
    needed_columns,
)

OWN = ("duckdb", "sqlite", "postgres", "postgresql")
"""Schemes that the explorer's databases open, read only."""


class DatabaseTable(DataSource):
    """A table of a database.

    Parameters
    ----------
    address : str
        A file or an address, such as "postgres://user@host/database".
    table : str, optional
        Which table; it may be left out where there is only one.
    """

    def __init__(self, address: str, table: str | None = None) -> None:
        require("ibis", extra="sql", purpose="reading a database")
        self.database = _open_database(address)
        self.table = self._choose_table(table)
        self.description = f"table {self.table} ({self.database.name})"

    def check(self, counting: Counting[Any]) -> None:
        """Refuse a table whose columns are not as stated; reads its schema only."""
        self._stored(counting)

    def histogram(
        self, counting: Counting[Any], done: Part
    ) -> Histogram | SparseHistogram:
        """Count the records of every cell, or of the filled ones of a wide domain.

        Parameters
        ----------
        counting : Counting[Domain]
            The domain, and what becomes of missing and stray values.
        done : Part
            Told how much is done, from 0 to 1.

        Returns
        -------
        Histogram or SparseHistogram
            The counts.
        """
        stored = self._stored(counting)
        with _quiet_drivers():
            table = self.database.table(self.table)
            if isinstance(counting.domain, KeyDomain):
                words = SparseHistogram._words_in(counting, table, None)
                done(1.0)
                return words
            query = stored.query(table)
            if isinstance(counting.domain, WideDomain):
                parts = list(query.batches())
                done(1.0)
                return SparseHistogram._listed(counting.domain, parts, counting.bound)
            counts = query.counts()
        done(1.0)
        domain = counting.domain
        return Histogram._own(domain, counts.reshape(domain.shape), counting.bound)

    def tables(
        self, counting: Counting[Any], tables: TableAxes, done: Part
    ) -> TableCounts:
        """Count the records of some tables of a domain, from one statement.

        Parameters
        ----------
        counting : Counting[Domain]
            The domain, and what becomes of missing and stray values.
        tables : TableAxes
            The attributes of each table.
        done : Part
            Told how much is done, from 0 to 1.

        Returns
        -------
        TableCounts
            The counts of every table.
        """
        stored = self._stored(counting)
        with _quiet_drivers():
            batches = stored.query(self.database.table(self.table)).places()
            domain, bound = counting.domain, counting.bound
            counted = TableCounts.from_cells(domain, tables, batches, bound)
        done(1.0)
        return counted

    def held(self, counting: Counting[Any], done: Part) -> IntArray:
        """Count the records of each person.

        Parameters
        ----------
        counting : Counting[Domain]
            The domain, and what becomes of missing and stray values.
        done : Part
            Told how much is done, from 0 to 1.

        Returns
        -------
        ndarray of int64, shape (persons,)
            How many records each person has.
        """
        with _quiet_drivers():
            table = self.database.table(self.table)
            owners = table.group_by(person=table[counting.keys.person])
            counted = owners.aggregate(held=table.count()).to_pyarrow()
        if counted["person"].null_count:
            refuse_missing_key("person")
        done(1.0)
        return np.asarray(counted["held"], dtype=np.int64)

    def _choose_table(self, table: str | None) -> str:
        tables: list[str] = self.database.tables()
        if table is None and len(tables) == 1:
            return tables[0]
        if table in tables:
            return str(table)
        lacks = "several tables"
        if table is not None:
            lacks = f"no table {table!r}{nearest(table, tables)}"
        listed = ", ".join(tables[:20]) or "none"
        raise InputError(
            f"{self.database.name} has {lacks}; name one with --data-table: {listed}"
        )

    def _stored(self, counting: Counting[Any]) -> Counting[Any]:
        """Return what is counted, with categories as the table spells them."""
        columns: dict[str, Any] = dict(self.database.schema(self.table).items())
        for attribute in counting.domain.attributes:
            if attribute.borders is not None and attribute.name not in columns:
                raise InputError(
                    "a database holds the district of each record; points are located "
                    f"in CSV and Parquet files alone, and {self.description} has no "
                    f"column {attribute.name!r}",
                    way_out="Export the points, or add the column to a view",
                )
        check_columns(self.description, needed_columns(counting, columns), columns)
        stored = domain_as_stored(
            counting.domain,
            texts=[name for name, kind in columns.items() if kind.is_string()],
            truths=[name for name, kind in columns.items() if kind.is_boolean()],
        )
        problems = [
            type_problem(attribute, columns[attribute.name])
            for attribute in stored.attributes
        ]
        raise_together(
            InputError(
                f"{problem}; state cells of that kind, name a view that converts the "
                "column, or export the table as CSV"
            )
            for problem in problems
            if problem is not None
        )
        return counting._replace(domain=stored)


@contextmanager
def _quiet_drivers() -> Iterator[None]:
    """Keep back what drivers say of themselves: a curator cannot act on it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _open_database(address: str) -> Database:
    scheme, apart, _ = address.partition("://")
    if not apart or scheme in OWN:
        return Database.connect(address)
    ibis = require("ibis", extra="sql", purpose="reading a database")
    host = urlparse(address).hostname
    name = scheme if host is None else f"{scheme} on {host}"
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

"""Connections to databases, read only: records stay where they are.

    "people.csv", "people.parquet"     DuckDB over the file
    "people.duckdb", "duckdb://..."    a DuckDB file, opened to be read
    "postgres://user@host/database"    PostgreSQL, every transaction read only
    an ibis backend                    anything else, PySpark for instance

A question is one GROUP BY (``blowfish_fast.data.sql``). What may go wrong in a
database is said without its words: they could quote records.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlparse

import numpy as np

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.csv_files import load_csv
from blowfish_fast.data.persons import Bound, RecordKeys
from blowfish_fast.data.records import Rule
from blowfish_fast.data.sql import CellColumn, CellCounts, CellQuery
from blowfish_fast.data.sql_cells import Bins, ibis_module, type_problem
from blowfish_fast.data.sql_persons import bounded_table
from blowfish_fast.errors import (
    BlowfishError,
    CatalogError,
    EngineError,
    InputError,
)

if TYPE_CHECKING:
    # Described with pydantic, which a connection does without.
    from .attributes import AttributeSpec
    from .catalog import TableSpec
    from .layout import AxisBins, Layout

log = logging.getLogger(__name__)

CSV, PARQUET = (".csv",), (".parquet", ".pq")
DATABASES = (".duckdb", ".ddb", ".db")
KEPT_QUERIES = 256
"""Compiled queries that are remembered."""
KEPT_CURSORS = 4
"""How often the same question is counted at the same time."""
POSTGRES = ("postgres://", "postgresql://")


class Database:
    """A database that counts.

    Parameters
    ----------
    backend : ibis backend
        Connected; it is only ever read.
    name : str
        What messages call it; without secrets.

    Examples
    --------
    >>> import ibis
    >>> database = ibis.duckdb.connect()
    >>> rows = "select 20 + i % 60 as age from range(150) as t(i)"
    >>> visits = database.raw_sql(f"create table visits as {rows}")
    >>> Database.connect(database).name
    'duckdb'
    """

    def __init__(self, backend: Any, name: str = "the database") -> None:
        self.backend = backend
        self.name = name
        self._lock = threading.Lock()
        self._compiled: OrderedDict[int, _PreparedQuery] = OrderedDict()

    @classmethod
    def connect(cls, source: Any) -> Database:
        """Open a file, an address or an ibis backend; see the head of this module."""
        if isinstance(source, Database):
            return source
        if not isinstance(source, str | Path):
            return cls(source, type(source).__module__.split(".")[-1])
        text = str(source)
        if text.startswith(POSTGRES):
            return cls(_postgres(text), "PostgreSQL")
        path = Path(text.removeprefix("duckdb://"))
        if path.suffix in CSV + PARQUET:
            return cls(_files([path]), "DuckDB")
        if path.suffix in DATABASES or text.startswith("duckdb://"):
            return cls(_duckdb(path), "DuckDB")
        raise EngineError(
            "a database is a .csv, .parquet or .duckdb file, a postgres:// address or "
            f"an ibis backend; received {path.suffix or 'something else'!r}"
        )

    @classmethod
    def of_files(cls, paths: list[Path]) -> Database:
        """Open CSV and Parquet files as tables, each named like its file."""
        return cls(_files(paths), "DuckDB")

    def tables(self) -> list[str]:
        """Return the names of all tables."""
        with self._plainly("its tables could not be listed"):
            return sorted(self.backend.list_tables())

    def columns(self, table: str) -> dict[str, str]:
        """Return the columns of a table and their types, in words."""
        schema = self.schema(table)
        return {name: str(kind) for name, kind in schema.items()}

    def check(self, table: TableSpec) -> None:
        """Refuse a table whose columns are not as the catalog says.

        Reads the schema only: neither a type nor the promise that there is no NULL is
        ever judged by looking at values.
        """
        schema = self.schema(table.source or table.name)
        for key in (table.person, table.record):
            if key is None:
                continue
            if key not in schema.names:
                raise CatalogError(
                    f"{table.name!r} has no column {key!r} for persons or records; its "
                    f"columns are {list(schema.names)}"
                )
            if not (schema[key].is_integer() or schema[key].is_string()):
                raise CatalogError(
                    f"{key!r} must be a column of whole numbers or text to tell "
                    f"persons or records apart; it is {schema[key]}"
                )
        for one in table.attributes:
            if one.source not in schema.names:
                raise CatalogError(
                    f"{table.name!r} has no column {one.source!r}; its columns are "
                    f"{list(schema.names)}"
                )
            kind = schema[one.source]
            problem = type_problem(one.domain().attributes[0], kind)
            if problem is not None:
                raise CatalogError(problem)
            if one.missing == "none" and self._may_hold_null(table, one, kind):
                raise CatalogError(
                    f"the column of {one.name!r} may hold NULL by its schema; state "
                    'missing="cell", or declare the column NOT NULL'
                )

    def counts(self, layout: Layout) -> IntArray:
        """Count the records of every bin of a question."""
        counts = np.zeros(layout.coarse, dtype=np.int64)
        for batch in self._batches(layout):
            counts[batch.cells] = batch.records
        if layout.labels is None:
            return counts
        bins = np.zeros(layout.bins, dtype=np.int64)
        np.add.at(bins, layout.labels, counts)
        return bins

    def _batches(self, layout: Layout) -> list[CellCounts]:
        """Return the coarse cells that hold records, and how many each holds."""
        problem = "the question could not be counted"
        with self._plainly(problem):
            known = self._compiled.get(id(layout.axes))
            if known is None:
                table = self.backend.table(layout.table.source or layout.table.name)
                query = _query(table, layout)
                if self.backend.name != "duckdb":
                    return list(query.batches())
                text = str(self.backend.compile(query.expression))
                known = _PreparedQuery(layout, text, query)
                self._compiled[id(layout.axes)] = known
                while len(self._compiled) > KEPT_QUERIES:
                    self._compiled.popitem(last=False)
        with self._plainly(problem, alone=False):
            return [known.run(self.backend.con)]

    def close(self) -> None:
        """Close the connection."""
        self._compiled.clear()
        self.backend.disconnect()

    def schema(self, table: str) -> Any:
        """Return the columns of a table and their ibis types."""
        with self._plainly(f"there is no table {table!r}, or it cannot be read"):
            return self.backend.table(table).schema()

    def _may_hold_null(self, table: TableSpec, one: AttributeSpec, kind: Any) -> bool:
        if self.backend.name != "pyspark":
            return bool(kind.nullable)
        # ibis forgets what Spark's own schema says.
        source = table.source or table.name
        with self._plainly("the schema could not be read"):
            schema = self.backend._session.table(source).schema
            return bool(schema[one.source].nullable)

    @contextmanager
    def _plainly(self, problem: str, *, alone: bool = True) -> Iterator[None]:
        """Use the backend, one at a time if `alone`; its errors lose their words."""
        try:
            with self._lock if alone else nullcontext():
                yield
        except BlowfishError:
            raise
        except Exception as error:
            log.warning("%s: %s (%s)", self.name, problem, type(error).__name__)
            raise EngineError(f"{self.name}: {problem}; nothing was charged") from None


class _PreparedQuery:
    """A question's query on DuckDB, compiled and planned once.

    Both take longer than a small count. A cursor is a connection of its own, so
    questions are counted side by side; each is kept with what it prepared.
    """

    def __init__(self, layout: Layout, query: str, counting: CellQuery) -> None:
        # The layout is kept because the id of its axes is the key of this.
        self.layout, self.query, self.counting = layout, query, counting
        self._idle: list[Any] = []
        self._turns = threading.BoundedSemaphore(KEPT_CURSORS)

    def run(self, connection: Any) -> CellCounts:
        """Return the coarse cells that hold records, and how many each holds."""
        with self._turns:
            try:
                cursor = self._idle.pop()
            except IndexError:
                cursor = connection.cursor()
                cursor.execute(f"PREPARE counting AS {self.query}")
            arrays = cursor.execute("EXECUTE counting").fetchnumpy()
            self._idle.append(cursor)
        cells, records = (
            np.asarray(arrays[name]).astype(np.int64) for name in ("cell", "records")
        )
        self.counting.refuse(cells)
        return CellCounts(cells, records)


def _query(table: Any, layout: Layout) -> CellQuery:
    """Return the query of a question; the records of persons are bounded first."""
    columns = [_cell_column(one) for one in layout.axes]
    spec = layout.table
    if spec.person is None:
        return CellQuery(table, columns)
    bound = Bound.stated(spec.at_most, "records", spec.person)
    kept = bounded_table(table, RecordKeys(spec.person, spec.record), bound)
    return CellQuery(kept.table, columns, kept.weight, kept.keys)


def _cell_column(axis: AxisBins) -> CellColumn:
    """Describe an attribute of a question as the query takes it."""
    spec = axis.spec
    (attribute,) = spec.domain().attributes
    # Without a cell for NULL, the schema promises that there is none.
    rule = Rule(
        "clamp" if spec.clamped else "cell",
        "cell" if spec.missing == "cell" else "clamp",
    )
    return CellColumn(spec.source, attribute, rule, Bins(axis.labels, axis.stretch))


def _duckdb(path: Path) -> Any:
    if not path.is_file():
        raise EngineError(f"there is no database {path.name!r}; check the path")
    try:
        return ibis_module().duckdb.connect(str(path), read_only=True)
    except Exception as problem:
        raise EngineError(
            f"{path.name!r} is no DuckDB database, or another process writes to it "
            f"({type(problem).__name__})"
        ) from None


def _files(paths: list[Path]) -> Any:
    backend = ibis_module().duckdb.connect()
    for path in paths:
        if path.suffix not in CSV + PARQUET or not path.is_file():
            raise EngineError(
                f"{path.name!r} is no CSV or Parquet file; expected one of "
                f"{', '.join(CSV + PARQUET)}"
            )
        try:
            if path.suffix in CSV:
                load_csv(backend.con, path, path.stem)
            else:
                view = backend.read_parquet(str(path))
                backend.create_table(path.stem, view)
                backend.raw_sql(f'DROP VIEW "{view.get_name()}"')
        except InputError as problem:
            raise EngineError(str(problem)) from None
        except Exception as problem:
            raise EngineError(
                f"{path.name!r} could not be read ({type(problem).__name__})"
            ) from None
    return backend


def _postgres(address: str) -> Any:
    require("psycopg", extra="sql", purpose="asking PostgreSQL")
    parts = urlparse(address)
    # A socket is given as ?host=/folder, as PostgreSQL's own tools take it.
    hosts = parse_qs(parts.query).get("host", [])
    try:
        return ibis_module().postgres.connect(
            host=parts.hostname or (hosts[0] if hosts else None),
            port=parts.port or 5432,
            user=unquote(parts.username or "") or None,
            password=unquote(parts.password or "") or None,
            database=parts.path.lstrip("/") or None,
            options="-c default_transaction_read_only=on",
        )
    except Exception as problem:
        raise EngineError(
            f"PostgreSQL could not be reached ({type(problem).__name__}); check the "
            "address, the user and the network"
        ) from None

"""Connections to databases, read only: records stay where they are.

A connection is opened when it is first needed, and once more if it was lost. What goes
wrong there is said without the database's words: they could quote records.

    question --layout--> one GROUP BY, compiled once --> cells that hold records, counts
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.persons import Bound, RecordKeys, refuse_missing_key
from blowfish_fast.data.records import Rule
from blowfish_fast.data.sparse import SparseHistogram
from blowfish_fast.data.sql import CellColumn, CellCounts, CellQuery, bounded_table
from blowfish_fast.data.sql_cells import Bins, ibis_module, type_problem
from blowfish_fast.errors import BlowfishError, CatalogError, EngineError

from .sources import STATEMENT_SECONDS, Source, read_address
from .truncation import from_groups

if TYPE_CHECKING:
    # Described with pydantic, which a connection does without.
    from .catalog import AttributeSpec, TableSpec
    from .layout import AxisBins, Layout

log = logging.getLogger(__name__)

KEPT_QUERIES = 256
"""Compiled queries that are remembered."""
MOST_KEPT = 2**16
"""Cells of a question whose counts are kept, where they cannot change."""
KEPT_CURSORS = 4
"""How often the same question is counted at the same time."""
POSTGRES_TABLES = """
SELECT n.nspname, c.relname FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
AND n.nspname !~ '^(pg_|information_schema$)'
AND has_schema_privilege(n.oid, 'USAGE')
AND has_any_column_privilege(c.oid, 'SELECT')"""
Result = TypeVar("Result")


class Database:
    """A database that counts and is only ever read; see `Database.connect`.

    Parameters
    ----------
    backend : Source or ibis backend
        A place that is opened when it is first needed, or a connection that is open
        already.
    name : str
        What messages call an open connection; a `Source` brings its own name.

    Examples
    --------
    >>> import ibis
    >>> Database.connect(ibis.duckdb.connect()).name
    'duckdb'
    """

    def __init__(self, backend: Any, name: str = "the database") -> None:
        is_source = isinstance(backend, Source)
        self._source = backend if is_source else Source(name, lambda: backend)
        self.name = self._source.name
        self._idle: list[Any] = []
        self._turns = threading.BoundedSemaphore(self._source.side_by_side)
        self._lock = threading.Lock()
        self._away = False
        self._compiled: OrderedDict[int, _PreparedQuery] = OrderedDict()
        self._opened_as: str | None = None
        self._digested: tuple[str, str] = ("", "")

    @classmethod
    def connect(cls, source: Any) -> Database:
        """Return a database at an address (see ``sources``) or of an ibis backend.

        A database that is away is refused when it is asked.

        Parameters
        ----------
        source : Database, str, Path or ibis backend
            A database is returned as it is.

        Returns
        -------
        Database
            It is opened when it is first asked.

        Raises
        ------
        EngineError
            If the address can never be opened: there is no such file, or it names
            no database.
        """
        if isinstance(source, Database):
            return source
        if not isinstance(source, str | Path):
            return cls(source, type(source).__module__.split(".")[-1])
        return cls(read_address(source))

    @property
    def backend(self) -> Any:
        """One ibis backend, connected."""
        return self._use("it cannot be reached", lambda backend: backend)

    def check_reachable(self) -> None:
        """Refuse with `EngineError` while the database is away."""
        self._use("it does not answer", lambda backend: backend.list_tables())

    def tables(self) -> list[str]:
        """Return the names of all tables; those of other schemas as schema.table."""

        def listed(backend: Any) -> list[str]:
            if backend.name != "postgres":
                return sorted(backend.list_tables())
            short = {place: name for name, place in _places(backend).items()}
            return sorted(short.values())

        return self._use("its tables could not be listed", listed)

    def columns(self, table: str) -> dict[str, str]:
        """Return the columns of a table and their types, in words.

        Parameters
        ----------
        table : str
            A name that `tables` lists.

        Returns
        -------
        dict
            The type of each column in ibis's words, by the column's name.
        """
        schema = self.schema(table)
        return {name: str(kind) for name, kind in schema.items()}

    def check(self, table: TableSpec) -> None:
        """Refuse columns that are not as the catalog says, by the schema alone.

        Parameters
        ----------
        table : TableSpec
            The description that is held against the columns.

        Raises
        ------
        CatalogError
            If a column is missing, has another type, or may hold NULL against the
            description.
        """
        schema = self.schema(table.source or table.name)
        keys = [key for key in (table.person, table.record) if key is not None]
        for column in (*keys, *(attribute.source for attribute in table.attributes)):
            if column not in schema.names:
                raise CatalogError(
                    f"{table.name!r} has no column {column!r}; its columns are "
                    f"{list(schema.names)}"
                )
        for key in keys:
            if not (schema[key].is_integer() or schema[key].is_string()):
                raise CatalogError(
                    f"{key!r} must be a column of whole numbers or text to tell "
                    f"persons or records apart; it is {schema[key]}"
                )
        for attribute in table.attributes:
            kind = schema[attribute.source]
            problem = type_problem(attribute.domain().attributes[0], kind)
            if problem is None and attribute.kind == "date" and self.name == "SQLite":
                problem = f"SQLite keeps dates as text: {attribute.name!r} needs levels"
            if problem is None and attribute.whole and not kind.is_integer():
                problem = (
                    f"{attribute.name!r} is stated to hold whole numbers, and its "
                    f"column is {kind}; leave whole out"
                )
            if problem is not None:
                raise CatalogError(problem)
            if attribute.missing == "none" and self._may_hold_null(
                table, attribute, kind
            ):
                raise CatalogError(
                    f"the column of {attribute.name!r} may hold NULL by its schema; "
                    'state missing="cell", or declare the column NOT NULL'
                )

    def stepped(self, table: TableSpec) -> list[str]:
        """Return the attributes whose column has steps, by the schema alone.

        Parameters
        ----------
        table : TableSpec
            The description of the table.

        Returns
        -------
        list of str
            Those of whole numbers and of days; none while the database is away.
        """
        try:
            schema = self.schema(table.source or table.name)
        except EngineError:
            return []
        return [
            attribute.name
            for attribute in table.attributes
            if attribute.source in schema.names
            and (
                schema[attribute.source].is_integer()
                or schema[attribute.source].is_date()
            )
        ]

    def counts(self, layout: Layout) -> IntArray:
        """Count the records of every bin of a question.

        The query is compiled once for each layout. Empty cells are absent from its
        result, so the counts start as zeros.

        Parameters
        ----------
        layout : Layout
            The bins of the question.

        Returns
        -------
        (bins,) int64
            The number of records in each bin.

        Raises
        ------
        EngineError
            If the database fails; the message never quotes its words.
        """
        problem = "the question could not be counted"
        prepared = self._compiled.get(id(layout.axes))
        if prepared is None:
            # Where records of persons are drawn anew, no two counts are the same.
            drawn = layout.table.person is not None and layout.table.record is None
            lasting = self._source.unchanging and not drawn
            prepared = self._use(
                problem, lambda backend: _PreparedQuery(layout, backend, lasting)
            )
            with self._lock:
                self._compiled[id(layout.axes)] = prepared
                while len(self._compiled) > KEPT_QUERIES:
                    self._compiled.popitem(last=False)
        try:
            planned = prepared.connection is not None
            counted = (
                prepared.run() if planned else self._use(problem, prepared.counted_by)
            )
        except BlowfishError:
            raise
        except Exception as error:
            raise self._plain(problem, error) from None
        counts = np.zeros(layout.coarse, dtype=np.int64)
        counts[counted.cells] = counted.records
        if layout.labels is None:
            return counts
        bins = np.zeros(layout.bins, dtype=np.int64)
        np.add.at(bins, layout.labels, counts)
        return bins

    def words(self, layout: Layout) -> SparseHistogram:
        """Count the words of a question by text; see `SparseHistogram.from_ibis`.

        Parameters
        ----------
        layout : Layout
            Of a question for frequent values.

        Returns
        -------
        SparseHistogram
            How many records hold each word that occurs.

        Raises
        ------
        EngineError
            If the database fails; the message never quotes its words.
        """
        spec, (name,) = layout.table, layout.question.axes
        attribute = spec.attribute(name)
        plain = attribute.domain().without_extra_cells()

        def count(backend: Any) -> SparseHistogram:
            return SparseHistogram.from_ibis(
                plain,
                _table(backend, spec.source or spec.name),
                columns={name: attribute.source},
                outside="cell",
                missing="cell" if attribute.missing == "cell" else None,
                person=spec.person,
                record=spec.record,
                at_most=spec.at_most,
            )

        return self._use("the question could not be counted", count)

    def held(self, table: TableSpec) -> IntArray:
        """Count the records of each person; they are grouped where they are.

        Parameters
        ----------
        table : TableSpec
            A table that names the column of persons.

        Returns
        -------
        (persons,) int64
            How many records each person has, in ascending order: true numbers.

        Raises
        ------
        EngineError
            If the database fails; the message never quotes its words.
        CountsError
            If some record is nobody's.
        """

        def count(backend: Any) -> list[dict[str, int]]:
            rows = _table(backend, table.source or table.name)
            owners = rows.group_by(owner=rows[table.person]).aggregate(
                held=rows.count()
            )
            owners = owners.mutate(nobody=owners.owner.isnull())
            groups = owners.group_by(["held", "nobody"]).aggregate(
                persons=owners.count()
            )
            return list(groups.to_pyarrow().to_pylist())

        groups = self._use("persons could not be counted", count)
        if any(group["nobody"] for group in groups):
            refuse_missing_key("person")
        return from_groups(
            [group["held"] for group in groups], [group["persons"] for group in groups]
        )

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            self._compiled.clear()
            self._disconnect(*self._idle)
            self._idle.clear()

    def version(self) -> str | None:
        """Return the state of the files that hold the records.

        Returns
        -------
        str or None
            A text that changes when a file does; None where no files are watched,
            as for PostgreSQL, SQLite, or a connection that was handed over.
        """
        return self._source.version()

    @property
    def has_content(self) -> bool:
        """Whether `content` can tell one: files can, databases and connections not."""
        return bool(self._source.files)

    def content(self) -> str | None:
        """Return a digest of the content of the files that hold the records.

        Files are read again when their sizes or times change. The digest is as private
        as the records are: whoever guesses them could compare.

        Returns
        -------
        str or None
            SHA-256 of what is counted. None where no files are watched, or where they
            changed since they were read.
        """
        state = self._source.version()
        if state is None:
            return None
        if self._source.unchanging:
            self.check_reachable()
            if state != self._opened_as:
                return None
        if state != self._digested[0]:
            digest = self._source.digest()
            if self._source.version() != state:
                return None
            self._digested = state, digest
        return self._digested[1]

    @staticmethod
    def _disconnect(*backends: Any) -> None:
        for backend in backends:
            with suppress(Exception):
                backend.disconnect()

    def table(self, name: str) -> Any:
        """Return a table as ibis has it, by a name that `tables` lists.

        Parameters
        ----------
        name : str
            A name that `tables` lists.

        Returns
        -------
        ibis Table
            An expression; no record is read.
        """
        problem = f"there is no table {name!r}, or it cannot be read"
        return self._use(problem, lambda backend: _table(backend, name))

    def schema(self, table: str) -> Any:
        """Return the columns of a table and their ibis types.

        Parameters
        ----------
        table : str
            A name that `tables` lists.

        Returns
        -------
        ibis Schema
            Types by column.
        """
        return self.table(table).schema()

    def _may_hold_null(
        self, table: TableSpec, attribute: AttributeSpec, kind: Any
    ) -> bool:
        def nullable(backend: Any) -> bool:
            if backend.name != "pyspark":
                return bool(kind.nullable)
            # ibis forgets what Spark's own schema says.
            schema = backend._session.table(table.source or table.name).schema
            return bool(schema[attribute.source].nullable)

        return self._use("the schema could not be read", nullable)

    def _use(self, problem: str, action: Callable[[Any], Result]) -> Result:
        """Lend a connection to `action`; one that was lost is opened again, once."""
        with self._turns:
            for attempt in (1, 2):
                backend = None
                try:
                    backend = self._idle.pop() if self._idle else self._opened()
                    result = action(backend)
                except Exception as error:
                    # Whether it was ended from the other side.
                    lost = bool(getattr(getattr(backend, "con", 0), "closed", False))
                    if lost:
                        # The others were made before it, and are lost too.
                        self._disconnect(backend, *self._idle)
                        self._idle.clear()
                    elif backend is not None:
                        self._idle.append(backend)
                    if lost and attempt == 1:
                        continue
                    if isinstance(error, BlowfishError):
                        raise
                    raise self._plain(problem, error) from None
                self._idle.append(backend)
                return result
        raise AssertionError("the second attempt returns or raises")

    def _opened(self) -> Any:
        try:
            self._opened_as = self._source.version()
            opened = self._source.open()
            self._away = False
            return opened
        except EngineError:
            raise
        except Exception as error:
            if not self._away:
                # Once, until it is there again: those who wait may be many.
                name = type(error).__name__
                log.warning("%s could not be opened (%s)", self.name, name)
            self._away = True
            raise EngineError(
                f"{self.name} could not be opened ({type(error).__name__}); check the "
                "address, the user, the network, and whether another process writes"
            ) from None

    def _plain(self, problem: str, error: Exception) -> EngineError:
        log.warning("%s: %s (%s)", self.name, problem, type(error).__name__)
        return EngineError(f"{self.name}: {problem}; nothing was charged")


class _PreparedQuery:
    """A question's query, compiled once, and planned once on DuckDB.

    A cursor of DuckDB is a connection of its own and is kept with what it prepared.
    Records that nobody can change are counted once: `lasting`.
    """

    def __init__(self, layout: Layout, backend: Any, lasting: bool) -> None:
        # The layout is kept because the id of its axes is the key of this.
        self.layout, self.counting = layout, _query(backend, layout)
        self.query = str(backend.compile(self.counting.expression))
        self.connection: Any = backend.con if backend.name == "duckdb" else None
        self._lasting = lasting and layout.coarse <= MOST_KEPT
        self._counted: CellCounts | None = None
        self._idle: list[Any] = []
        self._turns = threading.BoundedSemaphore(KEPT_CURSORS)

    def run(self) -> CellCounts:
        """Return the coarse cells that hold records, and how many each holds."""
        if self._counted is not None:
            return self._counted
        with self._turns:
            try:
                cursor = self._idle.pop()
            except IndexError:
                cursor = self.connection.cursor()
                cursor.execute(f"PREPARE counting AS {self.query}")
            # DuckDB has no limit of its own.
            late = threading.Timer(STATEMENT_SECONDS, cursor.interrupt)
            late.daemon = True
            late.start()
            try:
                arrays = cursor.execute("EXECUTE counting").fetchnumpy()
            finally:
                late.cancel()
            self._idle.append(cursor)
        cells, records = (
            np.asarray(arrays[name]).astype(np.int64) for name in ("cell", "records")
        )
        self.counting.refuse(cells)
        counted = CellCounts(cells, records)
        if self._lasting:
            self._counted = counted
        return counted

    def counted_by(self, backend: Any) -> CellCounts:
        """Count on a connection that was lent."""
        if backend.name != "postgres":
            batches = [
                np.stack(batch) for batch in _query(backend, self.layout).batches()
            ]
            return CellCounts(*np.hstack([np.zeros((2, 0), np.int64), *batches]))
        with backend.con.transaction():
            rows = backend.con.execute(self.query).fetchall()
        cells, records = np.array(rows).reshape(-1, 2).astype(np.int64).T
        self.counting.refuse(cells)
        return CellCounts(cells, records)


def _query(backend: Any, layout: Layout) -> CellQuery:
    """Return the query of a question; the records of persons are bounded first."""
    columns, spec = [_cell_column(axis) for axis in layout.axes], layout.table
    table = _table(backend, spec.source or spec.name)
    if spec.person is None:
        return CellQuery(table, columns)
    bound = Bound.stated(spec.at_most, "records", spec.person)
    bounded = bounded_table(table, RecordKeys(spec.person, spec.record), bound)
    return CellQuery(bounded.table, columns, bounded.weight, bounded.keys)


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


def _places(backend: Any) -> dict[str, tuple[str, str]]:
    """Return schema and table by name, long names first; PostgreSQL alone has several.

    A table is named as schema.table, and without the schema where that is the first of
    the search path. A name that two tables share is neither's.
    """
    with backend.con.transaction():
        rows = backend.con.execute(POSTGRES_TABLES).fetchall()
    home = backend.current_database
    named = [(f"{schema}.{table}", (schema, table)) for schema, table in rows]
    named += [(table, (schema, table)) for schema, table in rows if schema == home]
    shared = Counter(name for name, _ in named)
    return {name: place for name, place in named if shared[name] == 1}


def _table(backend: Any, name: str) -> Any:
    """Return a table by its name; types of one's own, such as enums, as their text."""
    if backend.name != "postgres":
        return backend.table(name)
    schema, inside = _places(backend)[name]
    # In two parts: by itself a schema with a dot would be read as two.
    table = backend.table(inside, database=(backend.current_catalog, schema))
    as_text = {
        name: table[name].cast(ibis_module().dtype("string", nullable=kind.nullable))
        for name, kind in table.schema().items()
        if kind.is_unknown()
    }
    return table.mutate(**as_text) if as_text else table

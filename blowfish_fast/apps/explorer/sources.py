"""Where records are: addresses, checked before anything is opened, and how to open one.

"people.csv"                       read once, by DuckDB
"people.xlsx", "people.xlsx#East"  a sheet, read once
"people.parquet", a folder         DuckDB over the files, where they are
"parts/*.parquet"                  the same, for some of a folder
"people.duckdb", "duckdb://..."    a DuckDB file, opened to be read
"people.sqlite", "sqlite://..."    SQLite, queries only
"postgres://user@host/database"    PostgreSQL, every transaction read only
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from glob import escape, glob
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlparse

from blowfish_fast._support.optional import require
from blowfish_fast.data.csv_files import file_of, load_csv, sheet_place
from blowfish_fast.data.sql_cells import ibis_module
from blowfish_fast.errors import EngineError, InputError

CSV = (".csv",)
PARQUET = (".parquet", ".pq")
DATABASES = (".duckdb", ".ddb", ".db")
SQLITE = (".sqlite", ".sqlite3")
SQLITE_HEAD = b"SQLite format 3\x00"
"""How every SQLite file begins; a file called ``.db`` may be either kind."""
POSTGRES = ("postgres://", "postgresql://")
STATEMENT_SECONDS = 120
"""How long a database may count one question."""


class Source(NamedTuple):
    """A place of records: what messages call it, and how a connection is opened.

    Attributes
    ----------
    name : str
        What messages call it.
    open : callable
        Takes nothing, and returns a new connection of Ibis.
    side_by_side : int, default 1
        How many connections are of use at a time.
    unchanging : bool, default False
        Whether nobody can change the records meanwhile: they were read into memory, or
        DuckDB has locked the file.
    files : str, default ""
        The pattern of the files that hold the records, as ``glob`` reads it; empty if
        no files are watched.
    """

    name: str
    open: Callable[[], Any]
    side_by_side: int = 1
    unchanging: bool = False
    files: str = ""

    def version(self) -> str | None:
        """Return sizes and times of the files that hold the records.

        Returns
        -------
        str or None
            A text that changes when a file does; None where no files are watched.
        """
        states = [Path(name).stat() for name in sorted(glob(self.files))]
        return (
            "".join(f"{state.st_size}.{state.st_mtime_ns};" for state in states) or None
        )

    def digest(self) -> str:
        """Return a digest of the names and the content of these files.

        Returns
        -------
        str
            SHA-256 in hexadecimal digits.
        """
        whole = hashlib.sha256()
        for name in sorted(glob(self.files)):
            with Path(name).open("rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
            whole.update(hashlib.sha256(Path(name).name.encode()).digest() + content)
        return whole.hexdigest()


def read_address(address: str | Path) -> Source:
    """Return the place that an address names; refuse what can never be opened.

    Parameters
    ----------
    address : str or Path
        One of the forms that stand at the top of this file.

    Returns
    -------
    Source
        The place; nothing is opened yet.

    Raises
    ------
    EngineError
        If no such file exists, or the form is none of these.
    """
    text = str(address)
    if text.startswith(POSTGRES):
        require("psycopg", extra="sql", purpose="asking PostgreSQL")
        parts = urlparse(text)
        if not parts.path.strip("/"):
            raise EngineError(
                "a PostgreSQL address names a database: "
                "postgres://user@host:5432/database",
                received="an address without one",
            )
        return Source("PostgreSQL", lambda: _postgres(text), 4)
    path = Path(text.removeprefix("duckdb://").removeprefix("sqlite://"))
    stored = file_of(path)
    pattern = escape(str(stored))
    if "*" in text or path.is_dir():
        return _parquet_parts(path)
    read_once = path.suffix in CSV or sheet_place(path) is not None
    if read_once or path.suffix in PARQUET:
        if not stored.is_file():
            raise EngineError(f"there is no file {stored.name!r}; check the path")
        name = stored.stem
        return Source("DuckDB", lambda: _file(name, path), 1, read_once, pattern)
    is_database = path.suffix in DATABASES + SQLITE
    if not is_database and not text.startswith(("duckdb://", "sqlite://")):
        raise EngineError(
            "a database is a .csv, .xlsx, .parquet, .duckdb or .sqlite file, a folder "
            "of Parquet files, a postgres:// address or an ibis backend",
            received=repr(path.suffix) if path.suffix else "something else",
        )
    if not path.is_file():
        raise EngineError(f"there is no database {path.name!r}; check the path")
    with path.open("rb") as file:
        is_sqlite = file.read(16) == SQLITE_HEAD
    if is_sqlite:
        return Source("SQLite", lambda: _sqlite(path))

    def opened() -> Any:
        return ibis_module().duckdb.connect(str(path), read_only=True)

    return Source("DuckDB", opened, 1, True, pattern)


def _parquet_parts(path: Path) -> Source:
    """Return the Parquet files of a folder, or of a pattern, as one table."""
    pattern = path / "*.parquet" if path.is_dir() else path
    if pattern.suffix not in PARQUET or not glob(str(pattern)):
        raise EngineError(
            "a folder, or a pattern with *, stands for Parquet files, and none was "
            "found there",
            received=path.name,
            way_out="Name a folder with .parquet files, or one file",
        )
    name = path.name if path.is_dir() else path.parent.name or "records"
    return Source("DuckDB", lambda: _file(name, pattern), files=str(pattern))


def _sqlite(path: Path) -> Any:
    backend = ibis_module().sqlite.connect(str(path))
    backend.con.execute("PRAGMA query_only = ON")
    return backend


def _file(name: str, path: Path) -> Any:
    """Return DuckDB with one table: CSV or sheet, or Parquet files by a pattern."""
    backend = ibis_module().duckdb.connect()
    try:
        if sheet_place(path) is not None:
            from blowfish_fast.data.tables.sheets import load_sheet

            load_sheet(backend.con, path, name)
        elif path.suffix in CSV:
            load_csv(backend.con, path, name)
        else:
            # A view: records stay in their files, of whatever size.
            where = str(path).replace("'", "''")
            quoted = name.replace('"', '""')
            backend.raw_sql(
                f"CREATE VIEW \"{quoted}\" AS SELECT * FROM read_parquet('{where}')"
            )
    except InputError as problem:
        raise EngineError(str(problem)) from None
    except Exception as problem:
        raise EngineError(
            f"{path.name!r} could not be read ({type(problem).__name__})"
        ) from None
    return backend


def _postgres(address: str) -> Any:
    parts = urlparse(address)
    # A socket is given as ?host=/folder, as PostgreSQL's own tools take it.
    hosts = parse_qs(parts.query).get("host", [])
    return ibis_module().postgres.connect(
        host=parts.hostname or (hosts[0] if hosts else None),
        port=parts.port or 5432,
        user=unquote(parts.username or "") or None,
        password=unquote(parts.password or "") or None,
        database=parts.path.lstrip("/") or None,
        connect_timeout=10,
        options="-c default_transaction_read_only=on "
        f"-c statement_timeout={STATEMENT_SECONDS * 1000}",
    )

"""What one server keeps: tables, their ledgers, data sets that were added, secrets.

    folder/
      keys.json               secrets, as hashes
      sources.json            where each table's records are
      ledgers/visits.ledger   policy, budget and answers of a table
      data/visits.duckdb      data sets that the curator added as CSV

Everything survives a restart. Records stay in their database.
"""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path
from typing import Any

from blowfish_fast.apps.explorer.catalog import TableSpec
from blowfish_fast.apps.explorer.engines import Database
from blowfish_fast.apps.explorer.exploration import Explorer, as_table
from blowfish_fast.apps.explorer.planning import SAMPLES
from blowfish_fast.data.csv_files import duckdb_module, load_csv
from blowfish_fast.errors import CatalogError, EngineError, InputError, LedgerError

from .keys import Keys

PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
MOST_UPLOADED = 2**28
"""Bytes of a CSV file that a curator may add."""


class Workspace:
    """The state of one server, in a folder.

    Parameters
    ----------
    folder : path
        Made if it is not there.
    database : str, optional
        Where tables are, for those that were not added as files.
    samples : int
        See `Explorer`.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        database: Any = None,
        samples: int = SAMPLES,
    ) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        for part in ("ledgers", "data"):
            # Records are in one of them: nobody else on this machine may look.
            (self.folder / part).mkdir(mode=0o700, exist_ok=True)
        self.keys = Keys(self.folder / "keys.json")
        self.samples = samples
        self._database = database
        self._engines: dict[str, Database] = {}
        self._explorers: dict[str, Explorer] = {}
        self._lock = threading.RLock()
        for name in self._sources():
            self._open(name)

    @property
    def tables(self) -> list[str]:
        """Names of all tables."""
        return sorted(self._explorers)

    def explorer(self, table: str) -> Explorer:
        """Return a table's explorer."""
        found = self._explorers.get(table)
        if found is None:
            raise CatalogError(f"there is no table {table!r}")
        return found

    def data_sets(self) -> dict[str, dict[str, str]]:
        """Return tables that may be described, with columns and types."""
        found: dict[str, dict[str, str]] = {}
        for source in self._engine_names():
            engine = self._engine(source)
            for table in engine.tables():
                found[table] = engine.columns(table)
        return found

    def add_table(self, table: Any, *, epsilon: Any) -> Explorer:
        """Describe a table and give it a budget; frozen by the first charge."""
        spec = as_table(table)
        if not PLAIN_NAME.fullmatch(spec.name):
            raise InputError(
                "a table is named by a letter and up to 63 letters, digits, - or _; "
                f"received {spec.name!r}"
            )
        with self._lock:
            if spec.name in self._explorers:
                raise InputError(
                    f"there is a table {spec.name!r} already; choose another name"
                )
            source = self._source_of(spec)
            self._refuse_second_description(spec, source)
            explorer = Explorer(
                spec,
                self._engine(source),
                epsilon=epsilon,
                ledger=self._ledger(spec.name),
                samples=self.samples,
            )
            self._explorers[spec.name] = explorer
            self._write_sources({**self._sources(), spec.name: source})
        return explorer

    def _refuse_second_description(self, spec: TableSpec, source: str) -> None:
        """Refuse a second budget for the same people: the two would add up unseen."""
        read = spec.source or spec.name
        for name, other in self._sources().items():
            described = self._explorers.get(name)
            if described is None or other != source:
                continue
            table = described.table
            if (table.source or table.name) == read:
                raise InputError(
                    f"the table {read!r} is described as {name!r} already, with a "
                    "budget of its own; two budgets for the same people would add up",
                    way_out=f"Ask {name!r}; before its first charge it may be changed",
                )

    def add_csv(self, name: str, content: bytes) -> dict[str, str]:
        """Add a CSV file as a data set; return its columns and types."""
        if not PLAIN_NAME.fullmatch(name):
            raise InputError(
                "a data set is named by a letter and up to 63 letters, digits, - or _"
            )
        if len(content) > MOST_UPLOADED:
            raise InputError(f"a file has at most {MOST_UPLOADED:,} bytes")
        path = self.folder / "data" / f"{name}.duckdb"
        with self._lock:
            if path.exists() or name in self.data_sets():
                raise InputError(
                    f"there is a data set {name!r} already; choose another name"
                )
            _load_csv(content, path, name)
        return self._engine(name).columns(name)

    def close(self) -> None:
        """Close ledgers and connections."""
        for one in self._explorers.values():
            one.ledger.close()
        for engine in self._engines.values():
            engine.close()

    def _open(self, name: str) -> None:
        source = self._sources()[name]
        path = self._ledger(name)
        if not path.exists():
            raise LedgerError(f"the ledger of {name!r} is gone; restore it")
        self._explorers[name] = Explorer(
            None, self._engine(source), ledger=path, samples=self.samples
        )

    def _ledger(self, name: str) -> Path:
        return self.folder / "ledgers" / f"{name}.ledger"

    def _source_of(self, spec: TableSpec) -> str:
        wanted = spec.source or spec.name
        for source in self._engine_names():
            if wanted in self._engine(source).tables():
                return source
        raise CatalogError(f"no database has a table {wanted!r}")

    def _engine_names(self) -> list[str]:
        added = sorted(path.stem for path in (self.folder / "data").glob("*.duckdb"))
        return [*added, *([""] if self._database is not None else [])]

    def _engine(self, source: str) -> Database:
        with self._lock:
            if source not in self._engines:
                if source:
                    path = self.folder / "data" / f"{source}.duckdb"
                    self._engines[source] = Database.connect(path)
                elif self._database is None:
                    raise EngineError("the server was started without its database")
                else:
                    self._engines[source] = Database.connect(self._database)
            return self._engines[source]

    def _sources(self) -> dict[str, str]:
        path = self.folder / "sources.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def _write_sources(self, sources: dict[str, str]) -> None:
        draft = self.folder / "sources.new"
        draft.write_text(json.dumps(sources, indent=1))
        os.replace(draft, self.folder / "sources.json")


def _load_csv(content: bytes, path: Path, name: str) -> None:
    """Make a DuckDB file of a CSV file; types are settled by all rows."""
    duckdb = duckdb_module()
    upload, draft = path.with_suffix(".csv"), path.with_suffix(".new")
    upload.write_bytes(content)
    try:
        connection = duckdb.connect(str(draft))
        try:
            load_csv(connection, upload, name)
        finally:
            connection.close()
        os.replace(draft, path)
    except (duckdb.Error, InputError) as problem:
        why = getattr(problem, "rule", "it is no table").replace(str(upload), "it")
        raise InputError(
            f"the file could not be read as CSV with a header line: {why}"
        ) from None
    finally:
        upload.unlink(missing_ok=True)
        draft.unlink(missing_ok=True)

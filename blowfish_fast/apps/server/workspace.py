"""What one server keeps: tables, their ledgers, data sets that were added, secrets.

    folder/
      lock                    held by the one server that uses the folder
      unfinished.json         only while a restore is under way: nobody opens the folder
      keys.json               secrets, as hashes
      tables.json             where each table's records are; closed and deleted ones;
                              questions that people saved under names
      ledgers/visits.ledger   policy, budget and answers of a table; beside it, where
                              an auditor was named, sealed keys: visits.ledger.keys
      deleted/visits-1.ledger ledgers of deleted tables: what was spent stays spent
      data/visits.duckdb      data sets that the curator added as CSV
      logs/                   who asked for what, at which cost; never data

Everything survives a restart. Records stay in their database, and a server starts while
that is away.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

from blowfish_fast.accounting.population import (
    PeopleTable,
    Population,
    one_spelling,
)
from blowfish_fast.accounting.recipients import keys_beside, read_public_key
from blowfish_fast.apps.explorer.catalog import TableSpec, as_table
from blowfish_fast.apps.explorer.engines import Database
from blowfish_fast.apps.explorer.exploration import Explorer
from blowfish_fast.apps.explorer.planning import SAMPLES
from blowfish_fast.data.csv_files import duckdb_module, load_csv
from blowfish_fast.errors import CatalogError, EngineError, InputError, LedgerError
from blowfish_fast.measure.budgets import Budget, optional_budget

from .keys import Keys, write_privately

log = logging.getLogger(__name__)

PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""Names of tables and data sets: they become names of files."""
MOST_SAVED = 100
"""Questions that one person saves under names."""
MOST_UPLOADED = 2**28
"""Bytes of a CSV file that a curator may add."""
UNFINISHED = "unfinished.json"
"""Marks a folder into which a restore copies, or has died while it did."""
PROBE_BYTES = 4096
"""What is written to see whether the disk takes it: a page of a ledger."""
MAIN = "main"
"""The database where only one is named."""
ADDED = "data:"
"""Before the name of a data set that was added as a file."""


class Workspace:
    """The state of one server, in a folder that no other server uses.

    Parameters
    ----------
    folder : path
        It is made if it does not exist, and locked until `close`.
    database : path, address, ibis backend, mapping or None
        Where tables are that were not added as files. A mapping names several
        databases.
    samples : int
        Draws that sharpen the translation of an accuracy; see `Explorer`.
    auditor : path, optional
        The file of a public key: whoever holds the private one may check the noise of
        later answers of all tables. Each ledger remembers who was named last.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        database: Any = None,
        samples: int = SAMPLES,
        auditor: str | Path | None = None,
    ) -> None:
        self.auditor = auditor
        if auditor is not None:
            read_public_key(auditor)
        named = database if isinstance(database, Mapping) else {MAIN: database}
        # What can never be opened is refused before the folder is touched.
        self._engines = {
            name: Database.connect(address)
            for name, address in named.items()
            if address is not None
        }
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock_file = locked_folder(self.folder)
        try:
            refuse_unfinished(self.folder)
        except BaseException:
            self._lock_file.close()
            raise
        for part in ("ledgers", "deleted", "data", "logs"):
            # Records are in one of them: nobody else on this machine may look.
            (self.folder / part).mkdir(mode=0o700, exist_ok=True)
        self.keys = Keys(self.folder / "keys.json")
        self.samples = samples
        self._explorers: dict[str, Explorer] = {}
        self.populations: dict[str, Population] = {}
        self._lock = threading.RLock()
        try:
            for name in self._state()["tables"]:
                self._open(name)
        except BaseException:
            self.close()
            raise

    @property
    def tables(self) -> list[str]:
        """Names of all tables."""
        return sorted(self._explorers)

    def explorer(self, table: str) -> Explorer:
        """Return a table's explorer.

        Parameters
        ----------
        table : str
            The name of the table.

        Returns
        -------
        Explorer
            Its explorer.

        Raises
        ------
        CatalogError
            If there is no such table.
        """
        explorer = self._explorers.get(table)
        if explorer is None:
            raise CatalogError(f"there is no table {table!r}")
        return explorer

    def data_sets(self) -> dict[str, dict[str, str]]:
        """Return tables that may be described, with columns and types.

        Returns
        -------
        dict
            Types of columns by column, by table. Where there are several databases,
            a table is called "database:table". Databases that do not answer are
            left out.
        """
        columns_of: dict[str, dict[str, str]] = {}
        for name in self._engine_names():
            several = len(self._engines) > 1 and not name.startswith(ADDED)
            with suppress(EngineError):
                engine = self._engine(name)
                for table in engine.tables():
                    label = f"{name}:{table}" if several else table
                    # One that cannot be read hides no other.
                    with suppress(EngineError):
                        columns_of[label] = engine.columns(table)
        return columns_of

    def free_bytes(self) -> int:
        """Return how many bytes are free where ledgers are written."""
        return shutil.disk_usage(self.folder).free

    def can_write(self) -> bool:
        """Return whether a page can be brought to the disk where ledgers are."""
        try:
            with TemporaryFile(dir=self.folder, buffering=0) as file:
                file.write(bytes(PROBE_BYTES))
                os.fsync(file.fileno())
        except OSError as problem:
            log.error("%s cannot be written to: %s", self.folder, problem.strerror)
            return False
        return True

    def away(self) -> list[str]:
        """Return the databases that do not answer now."""
        silent = []
        for name in self._engine_names():
            try:
                self._engine(name).check_reachable()
            except EngineError:
                silent.append(name)
        return silent

    def check_databases(self) -> None:
        """Refuse a database that does not answer, unless there are tables."""
        if not self._explorers:
            for engine in self._engines.values():
                engine.check_reachable()

    def check_table(self, table: Any) -> TableSpec:
        """Return the description of a new table, if it fits what there is.

        Parameters
        ----------
        table : TableSpec or mapping
            A description.

        Returns
        -------
        TableSpec
            The description; a source "database:table" is split into its two fields.

        Raises
        ------
        InputError
            If the name is taken or not plain.
        CatalogError
            If no database has the table, or its columns do not fit.
        """
        spec = as_table(table)
        _check_name(spec.name, "table")
        if spec.name in self._explorers:
            raise InputError(
                f"there is a table {spec.name!r} already; choose another name"
            )
        database, _, inside = (spec.source or "").partition(":")
        if spec.database is None and inside and database in self._engines:
            spec = spec.model_copy(update={"database": database, "source": inside})
        self._engine(self._source_of(spec)).check(spec)
        return spec

    def add_table(
        self, table: Any, *, epsilon: Any = None, rho: Any = None, delta: Any = None
    ) -> Explorer:
        """Describe a table and give it a budget; frozen by the first charge.

        Parameters
        ----------
        table : TableSpec or mapping
            A description.
        epsilon : number, optional
            The whole budget in epsilon.
        rho : number, optional
            The whole budget in rho, instead.
        delta : number, optional
            Stated beside epsilon.

        Returns
        -------
        Explorer
            The explorer of the new table.

        Raises
        ------
        InputError
            If the records are described already, a budget is missing, or the
            table's population has one.
        """
        with self._lock:
            spec = self.check_table(table)
            source = self._source_of(spec)
            self._refuse_second_description(spec, source)
            budget = optional_budget(epsilon=epsilon, rho=rho, delta=delta)
            return self._add(spec, source, None, budget)

    def _people(
        self, spec: TableSpec, source: str, budget: Budget | None
    ) -> Population | None:
        """Return the people of a new table, who are new themselves or have a budget."""
        name = spec.population
        if name is None:
            return None
        read = f"{source}/{spec.source or spec.name}"
        columns = {attribute.name: attribute.source for attribute in spec.attributes}
        table = PeopleTable(spec.name, spec.policy(), read, columns)
        path = self._ledger(name)
        people = self.populations.get(name)
        if people is None:
            if not PLAIN_NAME.fullmatch(name) or path.exists():
                raise InputError(
                    "a population is named as a table is, and unlike any table",
                    received=repr(name),
                )
            people = Population(
                name,
                person=spec.person,
                tables=[table],
                path=path,
                epsilon=budget,
                auditor=self.auditor,
            )
            self.populations[name] = people
        elif budget is not None:
            raise InputError(
                f"the population {name!r} has a budget, which all its tables share",
                way_out="Leave the budget out, or raise that of another table",
            )
        else:
            people.add(table)
        return people

    def _add(
        self,
        spec: TableSpec,
        source: str,
        note: dict[str, Any] | None,
        budget: Budget | None,
    ) -> Explorer:
        engine, people = self._engine(source), self._people(spec, source, budget)
        if people is None and budget is None:
            raise InputError(
                f"the new table {spec.name!r} needs a budget",
                way_out="State epsilon, or rho",
            )
        terms: dict[str, Any] = {} if people else {"note": note, "epsilon": budget}
        ledger = people or self._ledger(spec.name)
        terms |= {"samples": self.samples, "auditor": self.auditor}
        explorer = Explorer(spec, engine, ledger=ledger, **terms)
        explorer.seen = engine.version() if spec.snapshot else None
        self._explorers[spec.name] = explorer
        entry = {"source": source, "closed": False, "seen": explorer.seen}
        if people is not None:
            entry |= {"population": people.name, "table": spec.to_dict()}
        with self._changed() as state:
            state["tables"][spec.name] = entry
        return explorer

    def _refuse_second_description(self, spec: TableSpec, source: str) -> None:
        """Refuse a second budget for the same people: the two would add up unseen."""
        read = spec.source or spec.name
        state = self._state()
        for name, entry in state["tables"].items():
            table = self._explorers[name].table
            shared = spec.population is not None and spec.population == table.population
            there = one_spelling(table.source or table.name)
            same = entry["source"] == source and there == one_spelling(read)
            if same and not shared:
                raise InputError(
                    f"the table {read!r} is described as {name!r} already, with a "
                    "budget of its own; two budgets for the same people would add up",
                    way_out=f"Ask {name!r}; before its first charge it may be changed, "
                    "and afterwards cloned under another policy",
                )
        for entry in state["deleted"]:
            there = one_spelling(entry["read"])
            same = entry["source"] == source and there == one_spelling(read)
            if same and entry["spent"] > 0:
                raise InputError(
                    f"{entry['name']!r} spent {entry['spent']:g} of "
                    f"{entry['currency']} on the table {read!r} before it was deleted, "
                    "and what was spent stays spent",
                    way_out=f"Put deleted/{entry['file']} back into ledgers/",
                )

    def close_table(self, name: str, *, closed: bool = True) -> None:
        """Give stored answers only, from now on; or open the table again.

        Parameters
        ----------
        name : str
            The name of the table.
        closed : bool
            False opens it again.
        """
        explorer = self.explorer(name)
        with self._changed() as state:
            state["tables"][name]["closed"] = closed
            explorer.closed = closed

    def clone_table(
        self,
        name: str,
        new: str,
        policies: Mapping[str, Any],
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
    ) -> Explorer:
        """Describe a table once more under other policies, and close the first.

        What the first has spent on the same people is noted: the two add up.

        Parameters
        ----------
        name : str
            The table whose records are described once more.
        new : str
            The name of the second table.
        policies : mapping
            Its policies by attribute.
        epsilon : number, optional
            Its own budget in epsilon.
        rho : number, optional
            Its own budget in rho, instead.
        delta : number, optional
            Stated beside epsilon.

        Returns
        -------
        Explorer
            The explorer of the second table.
        """
        with self._lock:
            first = self.explorer(name)
            table = first.table.with_policies(policies)
            plain = {**table.to_dict(), "name": new, "source": table.source or name}
            spec = self.check_table(plain)
            source = self._state()["tables"][name]["source"]
            note = {
                "clone_of": name,
                "spent_before": float(first.ledger.spent),
                "currency_before": first.ledger.currency.name,
            }
            budget = optional_budget(epsilon=epsilon, rho=rho, delta=delta)
            clone = self._add(spec, source, note, budget)
            self.close_table(name)
            return clone

    def delete_table(self, name: str) -> None:
        """Delete a table; its ledger is kept aside, because it says what was spent.

        Parameters
        ----------
        name : str
            The name of the table.

        Raises
        ------
        LedgerError
            If it shares its ledger with other tables of a population.
        """
        with self._lock, self._changed() as state:
            explorer = self.explorer(name)
            table, ledger = explorer.table, explorer.ledger
            if table.population is not None:
                raise LedgerError(
                    f"{name!r} shares its ledger with other tables of "
                    f"{table.population!r}, and is not deleted; close it"
                )
            gone = {
                "name": name,
                "source": state["tables"].pop(name)["source"],
                "read": table.source or table.name,
                "spent": float(ledger.spent),
                "currency": ledger.currency.name,
                "file": f"{name}-{len(state['deleted']) + 1}.ledger",
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            ledger.close()
            aside = self.folder / "deleted" / gone["file"]
            os.replace(self._ledger(name), aside)
            with suppress(FileNotFoundError):
                # Sealed keys, where an auditor was named, stay beside their ledger.
                os.replace(keys_beside(self._ledger(name)), keys_beside(aside))
            del self._explorers[name]
            state["deleted"].append(gone)

    def saved_questions(self, person: str) -> dict[str, dict[str, Any]]:
        """Return the questions that somebody saved, by the names she gave them.

        Parameters
        ----------
        person : str
            Her role and name.

        Returns
        -------
        dict
            Questions as plain data; nothing was charged for saving them.
        """
        return dict(self._state().get("saved", {}).get(person, {}))

    def save_question(
        self, person: str, name: str, question: Mapping[str, Any] | None
    ) -> None:
        """Save a question under a name, in place of an older one of that name.

        Parameters
        ----------
        person : str
            Her role and name.
        name : str
            What she calls it.
        question : mapping or None
            The question as plain data; None removes what is saved.

        Raises
        ------
        InputError
            If she has saved as many as are kept.
        """
        with self._changed() as state:
            saved = state.setdefault("saved", {}).setdefault(person, {})
            if question is None:
                saved.pop(name, None)
            elif name not in saved and len(saved) >= MOST_SAVED:
                raise InputError(
                    f"{MOST_SAVED} questions of a person are saved",
                    received=repr(name),
                    way_out="Remove one of them first",
                )
            else:
                saved[name] = dict(question)

    def add_csv(self, name: str, content: bytes) -> dict[str, str]:
        """Add a CSV file as a data set; return its columns and types.

        Parameters
        ----------
        name : str
            The name of the data set, which becomes that of its table.
        content : bytes
            The whole file, with a header line; at most 2^28 bytes.

        Returns
        -------
        dict
            The type of each column, by its name.

        Raises
        ------
        InputError
            If the name is taken, or the file is too large or no CSV.
        """
        _check_name(name, "data set")
        if len(content) > MOST_UPLOADED:
            raise InputError(f"a file has at most {MOST_UPLOADED:,} bytes")
        path = self._data(name)
        with self._lock:
            if path.exists() or name in self.data_sets():
                raise InputError(
                    f"there is a data set {name!r} already; choose another name"
                )
            _load_csv(content, path, name)
        return self._engine(f"{ADDED}{name}").columns(name)

    def close(self) -> None:
        """Close ledgers and connections, and let go of the folder."""
        for explorer in self._explorers.values():
            explorer.ledger.close()
        for people in self.populations.values():
            people.close()
        for engine in self._engines.values():
            engine.close()
        self._lock_file.close()

    def _open(self, name: str) -> None:
        entry = self._state()["tables"][name]
        population = entry.get("population")
        path = self._ledger(population or name)
        if not path.exists():
            raise LedgerError(f"the ledger of {name!r} is gone; restore it")
        spec = None if population is None else as_table(entry["table"])
        ledger: Path | Population = path
        if spec is not None:
            if population not in self.populations:
                self.populations[population] = Population(population, path=path)
            ledger = self.populations[population]
            if ledger.policy(name, spec.at_most) != spec.policy():
                raise LedgerError(f"{name!r} is not described as its ledger has it")
        explorer = Explorer(
            spec,
            self._engine(entry["source"]),
            ledger=ledger,
            samples=self.samples,
            auditor=self.auditor,
        )
        explorer.closed, explorer.seen = bool(entry["closed"]), entry.get("seen")
        self._explorers[name] = explorer

    def _ledger(self, name: str) -> Path:
        return self.folder / "ledgers" / f"{name}.ledger"

    def _source_of(self, spec: TableSpec) -> str:
        wanted = spec.source or spec.name
        names = self._engine_names() if spec.database is None else [spec.database]
        for name in names:
            if wanted in self._engine(name).tables():
                return name
        raise CatalogError(f"no database has a table {wanted!r}")

    def _engine_names(self) -> list[str]:
        paths = sorted((self.folder / "data").glob("*.duckdb"))
        added = [f"{ADDED}{path.stem}" for path in paths]
        # A copy: another request may connect to a database meanwhile.
        connected = tuple(self._engines)
        return [*added, *(name for name in connected if not name.startswith(ADDED))]

    def _engine(self, name: str) -> Database:
        with self._lock:
            if name not in self._engines:
                if not name.startswith(ADDED):
                    words = f"the server was started without its database {name!r}"
                    raise EngineError(words)
                self._engines[name] = Database.connect(self._data(name[len(ADDED) :]))
            return self._engines[name]

    def _data(self, name: str) -> Path:
        return self.folder / "data" / f"{name}.duckdb"

    def _state(self) -> dict[str, Any]:
        """Return what tables.json says of the tables, open and deleted."""
        path = self.folder / "tables.json"
        if not path.exists():
            return {"tables": {}, "deleted": []}
        return dict(json.loads(path.read_text()))

    @contextmanager
    def _changed(self) -> Iterator[dict[str, Any]]:
        """Lend the content of tables.json to be changed, then replace the file."""
        with self._lock:
            state = self._state()
            yield state
            write_privately(self.folder / "tables.json", state)


def _check_name(name: str, what: str) -> None:
    if not PLAIN_NAME.fullmatch(name):
        plain = re.sub("[^A-Za-z0-9_-]+", "_", name).strip("_")[:64]
        proposed = plain if PLAIN_NAME.fullmatch(plain) else "visits"
        raise InputError(
            f"a {what} is named by a letter and up to 63 letters, digits, - or _",
            received=repr(name),
            way_out=f"Name it {proposed!r}; what its database calls it is its source",
        )


def refuse_unfinished(folder: Path) -> None:
    """Refuse a folder that a restore has not finished: its ledgers may be too old.

    Parameters
    ----------
    folder : Path
        A server's folder.

    Raises
    ------
    InputError
        If the mark of a restore is in it.
    """
    if (folder / UNFINISHED).exists():
        raise InputError(
            f"a restore into the folder {folder.name!r} has not ended, or has died",
            way_out="Run `blowfish restore` once more, with the same folder",
            code="restore_unfinished",
        )


def locked_folder(folder: Path) -> IO[str]:
    """Hold a folder for one server, until the file is closed or the process ends.

    Parameters
    ----------
    folder : Path
        A server's folder.

    Returns
    -------
    file
        The open lock file; to close it lets go of the folder.

    Raises
    ------
    InputError
        If another server holds it.
    """
    file = (folder / "lock").open("a")
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        # Windows has no such locks; ledgers are locked by themselves.
        pass
    except OSError:
        file.close()
        raise InputError(
            f"another server uses the folder {folder.name!r}",
            way_out="Stop it first, or name another --folder",
        ) from None
    return file


def _load_csv(content: bytes, path: Path, name: str) -> None:
    """Make a DuckDB file of a CSV file; types are settled by all rows."""
    duckdb = duckdb_module()
    # A folder of its own: beside the data may lie a file of the curator's.
    with TemporaryDirectory(dir=path.parent) as place:
        upload, draft = Path(place, "upload.csv"), Path(place, "draft.duckdb")
        upload.write_bytes(content)
        try:
            with duckdb.connect(str(draft)) as connection:
                load_csv(connection, upload, name)
            os.replace(draft, path)
        except (duckdb.Error, InputError) as problem:
            why = getattr(problem, "rule", "it is no table")
            why = why.replace(f"{upload} its", "its").replace(str(upload), "it")
            raise InputError(
                f"the file could not be read as CSV with a header line: {why}"
            ) from None

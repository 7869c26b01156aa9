"""Files that a release is written to: checked before anything is charged.

    release    .blowfish (any name)    first, and so that a crash leaves old or new
    table      .csv .xlsx .parquet .json    one line per cell, with intervals
               a folder, or .xlsx      of a release of many tables
    picture    .png .svg .pdf          one or two columns; of many tables their errors
    report     .html                   one page: promise, table, picture, accuracy

A table or picture that fails afterwards loses nothing: both can be made again, for
free, from the release.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from blowfish_fast._support.optional import require
from blowfish_fast._support.validation import as_confidence
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.parsing.workload import asks_tables
from blowfish_fast.apps.cli.printing import plain
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.frames import Table
from blowfish_fast.errors import InputError, IntervalError, ReleaseFileError
from blowfish_fast.release.file import write_bytes
from blowfish_fast.release.release import Release
from blowfish_fast.release.tables.tables_release import TablesRelease

from .picture_files import check_picture, draw_release
from .report_page import check_report, write_report

RELEASE = "release.blowfish"
FOLDER = "tables"
"""Where many tables are written, if nothing else is said."""
TABLES = (".csv", ".xlsx", ".parquet", ".pq", ".json")
CONFIDENCE = 0.95


def read_release(path: Path) -> Release:
    """Return a saved release, of cells or of many tables."""
    many = path.is_file() and TablesRelease.is_file(path.read_bytes()[:64])
    return (TablesRelease if many else Release).load(path)


class Written(NamedTuple):
    """What was written where, and what could not be."""

    files: dict[str, str]
    problems: list[str]


class Outputs:
    """The files of one release.

    Parameters
    ----------
    job : Job
        Names of the files; the release has a default.
    overwrite : bool
        Whether files that are there may be replaced.
    """

    def __init__(self, job: Job, *, overwrite: bool) -> None:
        self.many = asks_tables(job.workload)
        table = job.table or (FOLDER if self.many else None)
        asked = {"table": table, "picture": job.picture, "report": job.report}
        self.whole = bool(job.round)
        self.release = Path(job.release or RELEASE)
        self.named = {"release": self.release} | {
            kind: Path(name) for kind, name in asked.items() if name is not None
        }
        self.confidence = CONFIDENCE if job.confidence is None else job.confidence
        self.overwrite = overwrite
        self.reads = [
            Path(one)
            for one in (job.data, job.ledger)
            if one is not None and "://" not in one
        ]

    def check(self, domain: Domain) -> None:
        """Refuse what could not be written; leaves nothing behind."""
        as_confidence(self.confidence)
        paths = [path.absolute() for path in self.named.values()]
        if len(set(paths)) < len(paths):
            raise InputError(
                "release, table and picture are files of their own; received "
                f"{', '.join(str(path) for path in self.named.values())}"
            )
        for kind, path in self.named.items():
            self._check_place(kind, path)
        if "table" in self.named:
            check_table(self.named["table"], many=self.many)
        if "report" in self.named:
            check_report(self.named["report"])
        if "picture" in self.named:
            check_picture(self.named["picture"])
            if domain.ndim > 2 and not self.many:
                raise InputError(
                    f"a picture shows one or two columns; this domain has "
                    f"{domain.ndim}. Leave --picture out, and draw a part of the "
                    "release later"
                )

    def write(self, release: Release) -> Written:
        """Write the release, then what is made from it."""
        files = {"release": self._save(release)}
        problems = []
        for kind, path in list(self.named.items())[1:]:
            try:
                if kind == "table":
                    self._write_table(release, path)
                elif kind == "picture":
                    draw_release(release, path, self.confidence)
                else:
                    shown: Any = {"name": files["release"], "whole": self.whole}
                    report_release(release, path, self.confidence, **shown)
                files[kind] = str(path)
            except Exception as problem:
                # Paid for and safe by now: whatever went wrong is told, not raised.
                problems.append(
                    f"the {kind} {path} could not be written ({problem}); the release "
                    f"is safe in {files['release']}"
                )
        return Written(files, problems)

    def _write_table(self, release: Release, path: Path) -> None:
        if isinstance(release, TablesRelease):
            if path.is_dir():
                shutil.rmtree(path)
            release.save_tables(path, fitted=True, whole=self.whole)
            return
        table = cell_table(release, self.confidence, whole=self.whole)
        write_table(table, path, str(release.guarantee))

    def _save(self, release: Release) -> str:
        """Save the release; where its place has gone, save it in another."""
        content = release.to_bytes()
        try:
            write_bytes(content, self.release)
            return str(self.release)
        except ReleaseFileError as problem:
            handle, name = tempfile.mkstemp(prefix="release-", suffix=".blowfish")
            os.close(handle)
            write_bytes(content, name)
            raise InputError(
                f"{problem}; nothing is lost: the release was saved as {name}"
            ) from None

    def _check_place(self, kind: str, path: Path) -> None:
        if not path.parent.is_dir():
            raise InputError(
                f"there is no folder {path.parent} to write the {kind} to; make it "
                "first. Nothing was charged"
            )
        if any(_same(path, one) for one in self.reads):
            raise InputError(
                f"the {kind} would be written over {path}, which is read; choose "
                "another name"
            )
        folder = path.is_dir() and not (self.many and kind == "table")
        if folder or (path.exists() and not self.overwrite):
            raise InputError(
                f"{path} exists already; choose another name for the {kind}, or "
                "allow --overwrite. Nothing was charged"
            )
        try:
            handle, probe = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
        except OSError as problem:
            raise InputError(
                f"the {kind} cannot be written to {path.parent} ({problem.strerror}); "
                "choose another folder. Nothing was charged"
            ) from None
        os.close(handle)
        os.unlink(probe)


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def check_table(path: Path, *, many: bool = False) -> None:
    """Refuse a table that could not be written."""
    suffix = path.suffix.lower()
    if many and suffix not in ("", ".xlsx"):
        raise InputError(
            f"tables are written to a folder, or to one .xlsx; received --table {path}"
        )
    if not many and suffix not in TABLES:
        raise InputError(
            f"a table is written as {', '.join(TABLES)}; received {path.name!r}"
        )
    if suffix in (".parquet", ".pq"):
        require("pyarrow.parquet", extra="frames", purpose="A Parquet table")
    if suffix == ".xlsx":
        require("openpyxl", extra="excel", purpose="A workbook")


def cell_table(release: Release, confidence: float, *, whole: bool) -> Table:
    """Return a line per cell; `whole` adds the counts to publish."""
    try:
        table = release.to_table(confidence)
    except IntervalError:
        # Noise on stated queries: single cells have estimates, and no intervals.
        table = release.to_table(None)
    if whole:
        counts = release.rounded().estimate.reshape(-1).astype("int64")
        table = Table({**table.columns, "count": counts}, experiment=table.experiment)
    return table


def report_release(
    release: Release, path: Path, confidence: float, *, name: str, whole: bool
) -> None:
    """Write the page of a release, with its cells where they are one table."""
    table = None
    if not isinstance(release, TablesRelease):
        table = cell_table(release, confidence, whole=whole)
    write_report(release, path, confidence, name=name, table=table)


def write_table(table: Table, path: Path, promise: str) -> None:
    """Write a table by the ending of its name; a workbook holds the promise, too."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        write_csv(table, path)
    elif suffix == ".xlsx":
        table.to_xlsx(path, about=promise)
    elif suffix == ".json":
        path.write_text(json.dumps(plain(table.to_dict())) + "\n", encoding="utf-8")
    else:
        table.to_parquet(path)


def write_csv(table: Table, path: Path) -> None:
    """Write a table so that a spreadsheet shows its letters as they are.

    Excel takes a file without a mark at its beginning for one in the system's own
    encoding, and garbles umlauts; a file of plain letters needs no mark and gets none.
    """
    texts = [
        str(one)
        for column in table.columns.values()
        if column.dtype.kind in "OU"
        for one in set(column.tolist())
    ]
    plainly = all(one.isascii() for one in [*table.columns, *texts])
    table.to_csv(path, encoding="utf-8" if plainly else "utf-8-sig")

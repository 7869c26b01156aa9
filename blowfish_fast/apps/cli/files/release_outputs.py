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

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from blowfish_fast._support.validation import as_confidence
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.parsing.workload import asks_tables
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError, ReleaseFileError
from blowfish_fast.release.file import write_bytes
from blowfish_fast.release.release import Release
from blowfish_fast.release.tables.tables_release import TablesRelease

from .written_files import (
    cell_table,
    check_picture,
    check_table,
    draw_release,
    write_table,
)

RELEASE = "release.blowfish"
FOLDER = "tables"
"""Where many tables are written, if nothing else is said."""
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
    """The files of one release, as a job names them; the release has a default."""

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


def check_report(path: Path) -> None:
    """Refuse a report that could not be written."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"a report is written as .html; received {path.name!r}")


def report_release(
    release: Release, path: Path, confidence: float, *, name: str, whole: bool
) -> None:
    """Write the page of a release, with its cells where they are one table."""
    # Here, since a page needs every mechanism's words, and other commands do not.
    from .report_page import write_report

    table = None
    if not isinstance(release, TablesRelease):
        table = cell_table(release, confidence, whole=whole)
    write_report(release, path, confidence, name=name, table=table)

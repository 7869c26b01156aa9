"""Files that a release is written to: checked before anything is charged.

    release    .blowfish (any name)    first, and so that a crash leaves old or new
    table      .csv .parquet .json     one line per cell, with noise intervals
    picture    .png .svg .pdf          one or two columns

A table or picture that fails afterwards loses nothing: both can be made again, for
free, from the release.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from blowfish_fast._support.optional import require
from blowfish_fast._support.validation import as_confidence
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.printing import plain
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.frames import Table
from blowfish_fast.errors import InputError, IntervalError, ReleaseFileError
from blowfish_fast.release.file import write_bytes
from blowfish_fast.release.release import Release

from .picture_files import check_picture, write_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RELEASE = "release.blowfish"
TABLES = (".csv", ".parquet", ".pq", ".json")
CONFIDENCE = 0.95


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
        self.release = Path(job.release or RELEASE)
        self.table = None if job.table is None else Path(job.table)
        self.picture = None if job.picture is None else Path(job.picture)
        self.confidence = CONFIDENCE if job.confidence is None else job.confidence
        self.overwrite = overwrite
        self.reads = [
            Path(one)
            for one in (job.data, job.ledger)
            if one is not None and "://" not in one
        ]

    @property
    def named(self) -> dict[str, Path]:
        """What goes where."""
        asked = {"release": self.release, "table": self.table, "picture": self.picture}
        return {kind: path for kind, path in asked.items() if path is not None}

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
        if self.table is not None:
            _check_table(self.table)
        if self.picture is not None:
            check_picture(self.picture)
            if domain.ndim > 2:
                raise InputError(
                    f"a picture shows one or two columns; this domain has "
                    f"{domain.ndim}. Leave --picture out, and draw a part of the "
                    "release later"
                )

    def write(self, release: Release) -> Written:
        """Write the release, then what is made from it."""
        files = {"release": self._save(release)}
        problems = []
        for kind, path in self.named.items():
            if kind == "release":
                continue
            try:
                if kind == "table":
                    _write_table(release, path, self.confidence)
                else:
                    draw_release(release, path, self.confidence)
                files[kind] = str(path)
            except Exception as problem:
                # Paid for and safe by now: whatever went wrong is told, not raised.
                problems.append(
                    f"the {kind} {path} could not be written ({problem}); the release "
                    f"is safe in {files['release']}"
                )
        return Written(files, problems)

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
        if path.is_dir() or (path.exists() and not self.overwrite):
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


def _check_table(path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix not in TABLES:
        raise InputError(
            f"a table is written as {', '.join(TABLES)}; received {path.name!r}"
        )
    if suffix in (".parquet", ".pq"):
        require("pyarrow.parquet", extra="frames", purpose="A Parquet table")


def _write_table(release: Release, path: Path, confidence: float) -> None:
    try:
        table = release.to_table(confidence)
    except IntervalError:
        # Noise on stated queries: single cells have estimates, and no intervals.
        table = release.to_table(None)
    suffix = path.suffix.lower()
    if suffix == ".csv":
        write_csv(table, path)
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


def draw_release(release: Release, path: Path, confidence: float) -> None:
    """Draw one or two columns of a release; intervals only where some are known."""
    from blowfish_fast import plotting

    def drawn() -> Axes:
        if release.domain.ndim == 2:
            return plotting.grid_map(release)
        try:
            return plotting.histogram(release, confidence=confidence)
        except IntervalError:
            return plotting.histogram(replace(release, interval_scope="nothing"))

    with warnings.catch_warnings():
        # About ticks and fonts: nothing that a curator could act on.
        warnings.simplefilter("ignore")
        write_picture(drawn, path)

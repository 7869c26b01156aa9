"""A whole copy of a server's folder, and back: nothing is charged twice or forgotten.

A ledger that is put back does not know what was charged after the backup. Restored
tables are therefore closed: they give stored answers only, until the curator knows that
nothing was charged since and opens them.

A restore is all or nothing. It marks the folder before the first file and takes the
mark away after the last one is on disk:

    unfinished.json   names of all files to come
    ledgers/, ...     copied, each on disk before the next
    tables.json       written last, with all tables closed
    (mark gone)       from here on a server opens the folder

No server opens a marked folder, and the same restore, begun again, finishes it. (Lemma
CO12, ``docs/proofs/composition.md``.)
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from blowfish_fast._support.validation import malformed_as
from blowfish_fast.accounting.journal_file import copy_file
from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.recipients import ENDING
from blowfish_fast.errors import InputError

from .keys import write_privately
from .workspace import UNFINISHED, locked_folder, refuse_unfinished

MANIFEST = "backup.json"
"""Written last: when the backup was made, heads of ledgers and digests of files."""
TABLES = "tables.json"
LEDGERS = ("ledgers", "deleted")
"""Folders of ledgers, which are copied as databases and verified by their chains."""


def back_up(folder: Path, target: Path) -> dict[str, Any]:
    """Copy a server's folder while it runs; return what was copied.

    Parameters
    ----------
    folder : Path
        The server's folder, which may be in use.
    target : Path
        A new or an empty folder.

    Returns
    -------
    dict
        What the manifest says: the time, the head of each ledger's chain, and the
        digests of all other files.

    Raises
    ------
    InputError
        If `folder` holds no ledgers, or `target` holds something. Whatever goes wrong,
        no half of a backup is left.
    """
    if not (folder / "ledgers").is_dir():
        raise InputError(
            f"{folder} is no folder of an explorer: it has no ledgers",
            way_out="Name the folder that `blowfish serve --folder` was given",
        )
    refuse_unfinished(folder)
    _check_empty(target, "a backup")
    # SQLite opens ledgers by their whole paths.
    folder, target = folder.absolute(), target.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        manifest = _copy_running(folder, half)
        if target.exists():
            target.rmdir()
        # A backup is there whole, or not at all.
        half.rename(target)
        _flush_folders([target.parent])
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise
    return manifest


def _copy_running(folder: Path, target: Path) -> dict[str, Any]:
    """Copy a folder that may be in use into an empty one; the manifest comes last."""
    heads, digests = {}, {}
    for part in LEDGERS:
        (target / part).mkdir(mode=0o700)
        for path in sorted((folder / part).glob("*.ledger")):
            copied = target / part / path.name
            copy_file(path, copied)
            heads[f"{part}/{path.name}"] = _verified(copied)
    # After their ledgers, so that no draw is copied without its key.
    sealed = (sorted((folder / part).glob(f"*.ledger{ENDING}")) for part in LEDGERS)
    parts = (sorted((folder / part).glob("*")) for part in ("data", "logs"))
    files = chain([folder / "keys.json", folder / TABLES], *sealed, *parts)
    for path in filter(Path.is_file, files):
        copied = target / path.relative_to(folder)
        copied.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy2(path, copied)
        digests[str(path.relative_to(folder))] = _digest(copied)
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    manifest = {"time": finished, "heads": heads, "files": digests}
    (target / MANIFEST).write_text(json.dumps(manifest, indent=1))
    _flush(target / MANIFEST)
    return manifest


def restore(backup: Path, folder: Path, *, nothing_since: bool) -> dict[str, Any]:
    """Check a backup and make a server's folder of it.

    Parameters
    ----------
    backup : Path
        A folder that `back_up` made.
    folder : Path
        A new or an empty folder, or one in which the same restore died.
    nothing_since : bool
        Your word that nothing was charged after the backup. Only then do tables
        that were open stay open; otherwise all are closed.

    Returns
    -------
    dict
        What the manifest says.

    Raises
    ------
    InputError
        If the backup is incomplete or changed, or the folder is in use.
    """
    try:
        manifest = json.loads((backup / MANIFEST).read_text())
    except (OSError, ValueError):
        raise InputError(
            f"{backup} is no backup: {MANIFEST} is missing or cannot be read"
        ) from None
    with malformed_as(InputError, f"{MANIFEST} is not as `blowfish backup` writes it"):
        heads, digests = dict(manifest["heads"]), dict(manifest["files"])
    if not (folder / UNFINISHED).is_file():
        _check_empty(folder, "the restored server", ("lock", "unfinished.new"))
    for name, head in heads.items():
        if not _is_inside(backup, name) or _verified(backup / name) != head:
            raise InputError(f"{name} is not the ledger that was backed up")
    for name, digest in digests.items():
        if not _is_inside(backup, name) or _digest(backup / name) != digest:
            raise InputError(f"{name} is not the file that was backed up")
    folder.mkdir(parents=True, exist_ok=True)
    with locked_folder(folder):
        _copy_all(backup, folder, [*heads, *digests], closed=not nothing_since)
    return dict(manifest)


def _copy_all(backup: Path, folder: Path, names: list[str], *, closed: bool) -> None:
    """Copy files into a folder that no server opens before the last is on disk."""
    mark = folder / UNFINISHED
    if mark.is_file():
        _remove_listed(folder, mark)
    write_privately(mark, names)
    _flush_folders([folder, folder.parent])
    for name in names:
        if name != TABLES:
            copied = folder / name
            copied.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copy2(backup / name, copied)
            _flush(copied)
    if TABLES in names:
        state = json.loads((backup / TABLES).read_text())
        for entry in state["tables"].values():
            entry["closed"] = closed or bool(entry.get("closed"))
        # Never on disk with open tables, not even for a moment.
        write_privately(folder / TABLES, state)
    _flush_folders({(folder / name).parent for name in names} | {folder})
    mark.unlink()
    _flush_folders([folder])


def _remove_listed(folder: Path, mark: Path) -> None:
    """Remove what a restore that died has left: exactly the files that it names."""
    with malformed_as(InputError, f"{UNFINISHED} is not as `blowfish restore` has it"):
        listed = [str(name) for name in json.loads(mark.read_text())]
    for name in listed:
        if _is_inside(folder, name):
            (folder / name).unlink()


def _is_inside(folder: Path, name: str) -> bool:
    """Return whether a name is that of a file of the folder, not of one elsewhere."""
    path = (folder / name).resolve()
    return path.is_relative_to(folder.resolve()) and path.is_file()


def _flush(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _flush_folders(folders: Iterable[Path]) -> None:
    """Bring names of files to disk; Windows has no such step."""
    if os.name == "posix":
        for folder in folders:
            _flush(folder)


def _check_empty(path: Path, what: str, beside: tuple[str, ...] = ()) -> None:
    """Refuse a folder that holds anything but the names `beside`."""
    if path.exists() and (
        not path.is_dir() or any(inside.name not in beside for inside in path.iterdir())
    ):
        raise InputError(
            f"{what} needs a new or an empty folder, and {path} holds something",
            way_out="Name another one: nothing is overwritten",
        )


def _verified(path: Path) -> str:
    with Ledger(path) as ledger:
        return ledger.verify()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

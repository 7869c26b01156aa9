"""A whole copy of a server's folder, and back: nothing is charged twice or forgotten.

A ledger that is put back does not know what was charged after the backup. Restored
tables are therefore closed: they give stored answers only, until the curator knows that
nothing was charged since and opens them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from blowfish_fast._support.validation import malformed_as
from blowfish_fast.accounting.journal_file import copy_file
from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.errors import InputError

from .keys import write_privately

MANIFEST = "backup.json"
LEDGERS = ("ledgers", "deleted")


def back_up(folder: Path, target: Path) -> dict[str, Any]:
    """Copy a server's folder while it runs; return what was copied."""
    if not (folder / "ledgers").is_dir():
        raise InputError(
            f"{folder} is no folder of an explorer: it has no ledgers",
            way_out="Name the folder that `blowfish serve --folder` was given",
        )
    _check_empty(target, "a backup")
    target.mkdir(parents=True, exist_ok=True)
    heads, digests = {}, {}
    for part in LEDGERS:
        (target / part).mkdir(mode=0o700)
        for path in sorted((folder / part).glob("*.ledger")):
            copied = target / part / path.name
            copy_file(path, copied)
            heads[f"{part}/{path.name}"] = _verified(copied)
    parts = (sorted((folder / one).glob("*")) for one in ("data", "logs"))
    files = chain([folder / "keys.json", folder / "tables.json"], *parts)
    for path in filter(Path.is_file, files):
        copied = target / path.relative_to(folder)
        copied.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy2(path, copied)
        digests[str(path.relative_to(folder))] = _digest(copied)
    made = datetime.now(UTC).isoformat(timespec="seconds")
    manifest = {"time": made, "heads": heads, "files": digests}
    (target / MANIFEST).write_text(json.dumps(manifest, indent=1))
    return manifest


def restore(backup: Path, folder: Path, *, nothing_since: bool) -> dict[str, Any]:
    """Check a backup and make a server's folder; `nothing_since` keeps tables open."""
    try:
        manifest = json.loads((backup / MANIFEST).read_text())
    except (OSError, ValueError):
        raise InputError(
            f"{backup} is no backup: {MANIFEST} is missing or cannot be read"
        ) from None
    with malformed_as(InputError, f"{MANIFEST} is not as `blowfish backup` writes it"):
        heads, digests = dict(manifest["heads"]), dict(manifest["files"])
    _check_empty(folder, "the restored server")
    for name, head in heads.items():
        if not (backup / name).is_file() or _verified(backup / name) != head:
            raise InputError(f"{name} is not the ledger that was backed up")
    for name, digest in digests.items():
        path = (backup / name).resolve()
        inside = path.is_relative_to(backup.resolve())
        if not inside or not path.is_file() or _digest(path) != digest:
            raise InputError(f"{name} is not the file that was backed up")
    for name in (*heads, *digests):
        copied = folder / name
        copied.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy2(backup / name, copied)
    tables = folder / "tables.json"
    if tables.exists() and not nothing_since:
        kept = json.loads(tables.read_text())
        for one in kept["tables"].values():
            one["closed"] = True
        write_privately(tables, kept)
    return dict(manifest)


def _check_empty(path: Path, what: str) -> None:
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
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

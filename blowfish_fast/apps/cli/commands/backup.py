"""``blowfish backup`` and ``blowfish restore``: a server's folder, whole, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blowfish_fast.apps.cli.options import Json
from blowfish_fast.apps.cli.printing import plural, remark, show

Backup = Annotated[Path, typer.Argument(metavar="BACKUP", help="The backup.")]
Folder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="The server's folder."),
]


def run_backup(folder: Folder, backup: Backup, as_json: Json = False) -> None:
    """Copy a server's folder, ledgers and all, while the server runs."""
    from blowfish_fast.apps.server.backups import back_up

    made = back_up(folder, backup)
    if as_json:
        show({"backup": str(backup), **made})
        return
    show(f"copied {plural(len(made['heads']), 'ledger')} to {backup}")
    for name, head in made["heads"].items():
        remark(f"{name}: head {head}")


def run_restore(
    backup: Backup,
    folder: Folder,
    nothing_since: Annotated[
        bool,
        typer.Option(
            "--nothing-since",
            help="Your word that nothing was charged after the backup: tables stay "
            "open. Left out, they give stored answers only.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a server's folder from a backup, after checking all of it."""
    from blowfish_fast.apps.server.backups import restore

    made = restore(backup, folder, nothing_since=nothing_since)
    if as_json:
        show({"folder": str(folder), "closed": not nothing_since, **made})
        return
    show(f"restored {plural(len(made['heads']), 'ledger')} of {made['time']}")
    if not nothing_since:
        remark(
            "tables are closed: what was charged after the backup is not in it. Open "
            "one on the curator's page once you know that nothing was"
        )

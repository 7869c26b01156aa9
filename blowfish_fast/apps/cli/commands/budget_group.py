"""The words of ``ledger``, which keeps and shows a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blowfish_fast.apps.cli.exit_codes import FOUND
from blowfish_fast.apps.cli.main import BUDGET, Cells, Json, PolicyWords, application

ledgers = typer.Typer(help="Open a budget, see what is left, and check its chain.")
application.add_typer(
    ledgers, name="ledger", no_args_is_help=True, rich_help_panel=BUDGET
)

LedgerFile = Annotated[
    Path,
    typer.Argument(
        metavar="LEDGER", help="The file of the ledger.", show_default=False
    ),
]


@ledgers.command()
def create(
    path: LedgerFile,
    epsilon: Annotated[
        str,
        typer.Option(metavar="NUMBER", help="The whole budget.", show_default=False),
    ],
    cells: Cells,
    policy: PolicyWords,
    json: Json = False,
) -> None:
    """Make a ledger: a budget for one body of data under one policy."""
    from .ledger import run_create

    run_create(path, epsilon, cells, policy, as_json=json)


@ledgers.command()
def allot(
    path: LedgerFile,
    analyst: Annotated[
        str, typer.Argument(metavar="ANALYST", help="Their name.", show_default=False)
    ],
    epsilon: Annotated[
        str,
        typer.Option(
            metavar="NUMBER", help="What they may spend in all.", show_default=False
        ),
    ],
    json: Json = False,
) -> None:
    """Set what an analyst may spend of the budget in all."""
    from .ledger import run_allot

    run_allot(path, analyst, epsilon, as_json=json)


@ledgers.command()
def status(path: LedgerFile, json: Json = False) -> None:
    """Print what was spent, what remains, and each analyst's part."""
    from .ledger import run_status

    run_status(path, as_json=json)


@ledgers.command()
def history(
    path: LedgerFile,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the budget over time.")
    ] = None,
    json: Json = False,
) -> None:
    """Print every charge, oldest first; draw the budget over time."""
    from .ledger import run_history

    run_history(path, picture, as_json=json)


@ledgers.command()
def verify(
    path: LedgerFile,
    head: Annotated[
        str | None,
        typer.Option(help="A head noted earlier; it must still be in the chain."),
    ] = None,
    json: Json = False,
) -> None:
    """Check chain, sums and answers; code 1: something does not fit."""
    from .ledger import run_verify

    if not run_verify(path, head, as_json=json):
        raise typer.Exit(FOUND)

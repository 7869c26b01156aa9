"""The words of ``audit``, ``trust`` and ``experiment``, which check what is claimed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blowfish_fast.apps.cli import completions
from blowfish_fast.apps.cli.exit_codes import FOUND
from blowfish_fast.apps.cli.main import TRUST, Json, application


@application.command(rich_help_panel=TRUST)
def audit(
    quick: Annotated[
        bool, typer.Option("--quick", help="The short form: about a minute.")
    ] = False,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Audit this mechanism only; may be repeated.",
            autocompletion=completions.mechanisms,
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(help="Choices per side; other numbers follow in proportion."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for audit.json, .html and .md; an audit that was broken off "
            "goes on there."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes to share the work.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="File of figures to note the results in.")
    ] = None,
    table: Annotated[
        bool, typer.Option("--table", help="Print the table of the documentation.")
    ] = False,
    json: Json = False,
) -> None:
    """Check every promise of every mechanism; code 1: one is broken.

    A progress bar tells what is examined; with --out, a broken-off audit goes on.
    """
    from .audit import run_audit

    passed = run_audit(
        quick=quick,
        mechanisms=mechanism,
        samples=samples,
        out=out,
        as_json=json,
        as_table=table,
        workers=workers,
        record=record,
    )
    if not passed:
        raise typer.Exit(FOUND)


@application.command(rich_help_panel=TRUST)
def trust(
    figures: Annotated[
        Path, typer.Option(help="File of figures that measurements have written.")
    ] = Path("docs/trust.json"),
    write: Annotated[
        Path | None, typer.Option(help="Document whose table is made anew.")
    ] = None,
    json: Json = False,
) -> None:
    """Print what was measured; code 1: a goal was missed."""
    from .trust import run_trust

    if not run_trust(figures, write, as_json=json):
        raise typer.Exit(FOUND)


@application.command(rich_help_panel=TRUST)
def experiment(
    name: Annotated[
        str,
        typer.Argument(
            help='A table or figure such as dawa-table2; "all" of them; or "page", '
            "which writes a page from the results in --out.",
            autocompletion=completions.experiments,
            show_default=False,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with 1d/*.npy and 2d/*.npy; generated without."),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="Repetitions; the paper's number without.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder of the results; an earlier run goes on.")
    ] = Path("blowfish-experiments"),
    seed: Annotated[
        int | None, typer.Option(help="All chance comes from it; drawn without.")
    ] = None,
    processes: Annotated[int, typer.Option(help="Processes to share the work.")] = 2,
    quick: Annotated[
        bool, typer.Option("--quick", help="The short form: small, in seconds.")
    ] = False,
    anew: Annotated[
        bool, typer.Option("--anew", help="Discard what is in the folder already.")
    ] = False,
    json: Json = False,
) -> None:
    """Reproduce a table or figure of a paper, with a verdict."""
    from .experiment import run_experiments

    run_experiments(
        name,
        data=data,
        trials=trials,
        out=out,
        seed=seed,
        processes=processes,
        quick=quick,
        anew=anew,
        as_json=json,
    )

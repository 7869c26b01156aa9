"""The words of ``audit`` and ``experiment``, which check what is claimed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blowfish_fast.apps.cli import completions
from blowfish_fast.apps.cli.exit_codes import FOUND
from blowfish_fast.apps.cli.main import (
    TRUST,
    Json,
    PolicyWords,
    WorkloadWords,
    application,
)


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
def experiment(
    policy: PolicyWords,
    workload: WorkloadWords,
    epsilon: Annotated[
        list[str],
        typer.Option(metavar="NUMBER", help="May be repeated.", show_default=False),
    ],
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="May be repeated; without, every mechanism.",
            autocompletion=completions.mechanisms,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with 1d/*.npy and 2d/*.npy; generated without."),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME",
            help="One data set, such as 1d/adult; may be repeated; without, all.",
        ),
    ] = None,
    max_cells: Annotated[
        int | None,
        typer.Option(help="Sum neighbours until no axis has more cells.", min=2),
    ] = None,
    trials: Annotated[int, typer.Option(help="Releases of each mechanism.")] = 3,
    out: Annotated[
        Path, typer.Option(help="Folder of the results; an earlier run goes on.")
    ] = Path("blowfish-experiments"),
    seed: Annotated[
        int | None,
        typer.Option(help="All chance comes from it; drawn and noted without."),
    ] = None,
    processes: Annotated[int, typer.Option(help="Processes to share the work.")] = 2,
    anew: Annotated[
        bool, typer.Option("--anew", help="Discard what is in the folder already.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare mechanisms by their error on data that are not secret.

    Releases are seeded experiments: errors come from the true counts.
    """
    from .experiment import run_comparison

    run_comparison(
        policy=policy,
        workload=workload,
        epsilons=epsilon,
        mechanisms=mechanism,
        sets=sets,
        max_cells=max_cells,
        data=data,
        trials=trials,
        out=out,
        seed=seed,
        processes=processes,
        anew=anew,
        as_json=json,
    )

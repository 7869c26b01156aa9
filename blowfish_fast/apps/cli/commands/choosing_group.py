"""The words of ``recommend``, ``compare`` and ``policy``, which read no data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blowfish_fast.apps.cli import completions
from blowfish_fast.apps.cli.main import (
    CHOOSING,
    Cells,
    Epsilon,
    Json,
    PolicyWords,
    WorkloadWords,
    application,
)


@application.command(rich_help_panel=CHOOSING)
def recommend(
    cells: Cells,
    policy: PolicyWords,
    workload: WorkloadWords,
    epsilon: Epsilon,
    records: Annotated[
        int,
        typer.Option(help="Roughly how many records there are.", show_default=False),
    ],
    trials: Annotated[
        int | None, typer.Option(help="Releases per generated histogram.")
    ] = None,
    top: Annotated[int, typer.Option(help="Lines of the table.")] = 12,
    counts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Counts (.npy) to choose by and release; with --spend."
        ),
    ] = None,
    spend: Annotated[
        str | None,
        typer.Option(metavar="PART", help="Part of epsilon that the choice may spend."),
    ] = None,
    ledger_file: Annotated[
        Path | None,
        typer.Option(
            "--ledger", metavar="FILE", help="Ledger that is charged for the release."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of the release.")
    ] = None,
    json: Json = False,
) -> None:
    """Rank mechanisms by predicted or typical error, and say why."""
    from .recommend import run_recommend

    run_recommend(
        cells=cells,
        policy=policy,
        workload=workload,
        epsilon=epsilon,
        records=records,
        trials=trials,
        top=top,
        counts=counts,
        spend=spend,
        ledger=ledger_file,
        out=out,
        as_json=json,
    )


@application.command(rich_help_panel=CHOOSING)
def compare(
    cells: Cells,
    policy: Annotated[
        list[str],
        typer.Option(
            metavar="POLICY",
            help="What stays indistinguishable, as for policy describe; several are "
            "set side by side.",
            autocompletion=completions.policies,
            show_default=False,
        ),
    ],
    workload: WorkloadWords,
    epsilon: Annotated[
        list[str],
        typer.Option(
            metavar="NUMBER",
            help="What one release may spend; several are set side by side.",
            show_default=False,
        ),
    ],
    top: Annotated[int, typer.Option(help="Lines of the table.")] = 12,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw the errors over epsilon, or over thresholds."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Predict the error of every mechanism, best first. Free.

    Example: blowfish compare --cells 99 --policy line --workload ranges --epsilon 1
    """
    from .compare import run_compare

    run_compare(
        cells=cells,
        policies=policy,
        workload=workload,
        epsilons=epsilon,
        top=top,
        picture=picture,
        as_json=json,
    )


policies = typer.Typer(help="Say or draw what a policy keeps indistinguishable.")
application.add_typer(
    policies, name="policy", no_args_is_help=True, rich_help_panel=CHOOSING
)


@policies.command()
def describe(cells: Cells, policy: PolicyWords, json: Json = False) -> None:
    """Say what a policy promises, and how its graph is made."""
    from .policy import run_describe

    run_describe(cells, policy, as_json=json)


@policies.command()
def draw(
    cells: Cells,
    policy: PolicyWords,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The picture: .png, .svg or .pdf.")
    ] = Path("policy.png"),
    json: Json = False,
) -> None:
    """Draw the graph of a policy; a large one is summarised."""
    from .policy import run_draw

    run_draw(cells, policy, out, as_json=json)

"""The words of ``demo`` and ``answer``, which release or read releases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blowfish_fast.apps.cli import completions
from blowfish_fast.apps.cli.main import RELEASING, Json, application


@application.command(rich_help_panel=RELEASING)
def demo(
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help="What the release may spend.")
    ] = "0.1",
    side: Annotated[int, typer.Option(help="Cells per side of the grid.")] = 1024,
    queries: Annotated[int, typer.Option(help="Random rectangles asked.")] = 2000,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the picture goes.")
    ] = Path("blowfish-demo.png"),
    json: Json = False,
) -> None:
    """Release a made-up map of 2^20 cells, and say what it cost."""
    from .demo import run_demo

    run_demo(epsilon, side, queries, out, as_json=json)


@application.command(rich_help_panel=RELEASING)
def answer(
    release: Annotated[
        Path,
        typer.Argument(
            metavar="RELEASE", help="The file of a release.", show_default=False
        ),
    ],
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="LOW:HIGH",
            help="Count from LOW up to, without, HIGH; on several columns "
            "LOW:HIGH,LOW:HIGH. May be repeated.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--ranges",
            metavar="FILE",
            help="CSV, a query per line: columns NAME_from and NAME_to, or NAME for "
            "one value; from and to for a single column.",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="age=20:40 or town=Bern,Chur; of several, all must hold.",
        ),
    ] = None,
    count: Annotated[
        bool, typer.Option("--count", help="Count the records; this is the default.")
    ] = False,
    total: Annotated[
        str | None, typer.Option("--sum", metavar="COLUMN", help="Sum a column.")
    ] = None,
    mean: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Mean of a column.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Break down by the cells of a column, or by edges: age=0,18,65,101.",
        ),
    ] = None,
    quantile: Annotated[
        list[float] | None,
        typer.Option(
            metavar="PART",
            help="Where this part of all records is reached; 0.5 is the median.",
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="WORKLOAD",
            help="Queries in words: identity, prefixes, ranges:FILE, ...",
            autocompletion=completions.workloads,
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(metavar="PART", help="How often an interval must hold.")
    ] = 0.95,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the table: .csv or .parquet."),
    ] = None,
    json: Json = False,
) -> None:
    """Ask a saved release, with intervals. Free.

    Example: blowfish answer ages.blowfish --where age=20:40 --mean age
    """
    from blowfish_fast.apps.cli.release_questions import Asked

    from .answer import run_answer

    asked = Asked(
        ranges=ranges or [],
        file=file,
        where=where or [],
        count=count,
        sum_of=total,
        mean_of=mean,
        by=by or [],
        quantiles=quantile or [],
        workload=workload,
    )
    run_answer(release, asked, confidence=confidence, out=out, as_json=json)

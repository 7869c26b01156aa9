"""The commands and their words; each command's work lives in a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

application = typer.Typer(
    name="blowfish",
    help="Private histograms, range counts and maps under Blowfish policies.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print plain JSON.")]


@application.command()
def demo(
    epsilon: Annotated[str, typer.Option(help="Privacy parameter.")] = "0.1",
    side: Annotated[int, typer.Option(help="Cells per side of the grid.")] = 1024,
    queries: Annotated[int, typer.Option(help="Random rectangles asked.")] = 2000,
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path(
        "blowfish-demo.png"
    ),
    json: Json = False,
) -> None:
    """Release a map of 2^20 cells privately, and say what it cost and promises."""
    from .demo_command import run_demo

    run_demo(epsilon, side, queries, out, as_json=json)


@application.command()
def warmup() -> None:
    """Compile every kernel once, so that later calls start at once."""
    from .warmup_command import run_warmup

    run_warmup()


@application.command()
def audit(
    quick: Annotated[
        bool, typer.Option("--quick", help="The short form: about a minute.")
    ] = False,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(help="Audit this mechanism only; may be repeated."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(help="Choices per side; other numbers follow in proportion."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for audit.json, .html and .md.")
    ] = None,
    table: Annotated[
        bool, typer.Option("--table", help="Print the table of the documentation.")
    ] = False,
    json: Json = False,
) -> None:
    """Check every promise of every mechanism; exit code 1 names what is broken."""
    from .audit_command import run_audit

    passed = run_audit(
        quick=quick,
        mechanisms=mechanism,
        samples=samples,
        out=out,
        as_json=json,
        as_table=table,
    )
    if not passed:
        raise typer.Exit(1)


@application.command()
def version(json: Json = False) -> None:
    """Print the version."""
    from importlib.metadata import version as installed

    from .printing import show

    found = installed("blowfish_fast")
    show({"version": found} if json else found)

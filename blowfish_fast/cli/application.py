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
def version(json: Json = False) -> None:
    """Print the version."""
    from importlib.metadata import version as installed

    from .printing import show

    found = installed("blowfish_fast")
    show({"version": found} if json else found)

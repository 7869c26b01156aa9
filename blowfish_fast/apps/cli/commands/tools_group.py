"""The words of ``serve``, ``warmup`` and ``version``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blowfish_fast.apps.cli.main import TOOLS, Json, application


@application.command(rich_help_panel=TOOLS)
def serve(
    folder: Annotated[
        Path | None, typer.Option(help="Where ledgers, secrets and added data live.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Made-up data, one table, one analyst.")
    ] = False,
    database: Annotated[
        str | None,
        typer.Option(help="A .duckdb, .csv or .parquet file, or postgres://..."),
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(help="JSON: a list of tables to describe.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Budget of each new table.")] = 2.0,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 finds a free one.")
    ] = 8350,
    https: Annotated[
        bool, typer.Option("--https", help="Browsers come through an https proxy.")
    ] = False,
    new_secret: Annotated[
        bool, typer.Option("--new-secret", help="Make a new secret for the curator.")
    ] = False,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print address and new secrets as plain JSON."),
    ] = False,
) -> None:
    """Serve the explorer to a curator and analysts."""
    from .serve import run_server

    run_server(
        folder,
        demo=demo,
        database=database,
        tables=tables,
        epsilon=epsilon,
        host=host,
        port=port,
        https=https,
        new_secret=new_secret,
        as_json=json,
    )


@application.command(rich_help_panel=TOOLS)
def warmup(json: Json = False) -> None:
    """Compile every kernel once: later calls start at once."""
    from .warmup import run_warmup

    run_warmup(as_json=json)


@application.command(rich_help_panel=TOOLS)
def version(json: Json = False) -> None:
    """Print the version; with --json all that a report needs."""
    from .version import run_version

    run_version(as_json=json)

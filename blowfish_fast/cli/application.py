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
    """Check every promise of every mechanism; exit code 1 names what is broken."""
    from .audit_command import run_audit

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
        raise typer.Exit(1)


@application.command()
def trust(
    figures: Annotated[
        Path, typer.Option(help="File of figures that measurements have written.")
    ] = Path("docs/trust.json"),
    write: Annotated[
        Path | None, typer.Option(help="Document whose table is made anew.")
    ] = None,
    json: Json = False,
) -> None:
    """Print the table of what was measured; exit code 1 if a goal was missed."""
    from .trust_command import run_trust

    if not run_trust(figures, write, as_json=json):
        raise typer.Exit(1)


@application.command()
def experiment(
    name: Annotated[
        str,
        typer.Argument(
            help='A table or figure such as dawa-table2; "all" of them; or "page", '
            "which writes a page from the results in --out."
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
    """Reproduce a table or figure of a paper: CSV, picture, and a verdict."""
    from .experiment_command import run_experiments

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


@application.command()
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
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8350,
    https: Annotated[
        bool, typer.Option("--https", help="Browsers come through an https proxy.")
    ] = False,
    new_secret: Annotated[
        bool, typer.Option("--new-secret", help="Make a new secret for the curator.")
    ] = False,
) -> None:
    """Serve the explorer: a page and an API for a curator and analysts."""
    from .serve_command import run_server

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
    )


ledger = typer.Typer(help="Look at a ledger: its chain and its charges.")
application.add_typer(ledger, name="ledger", no_args_is_help=True)

LedgerFile = Annotated[Path, typer.Argument(help="The file of the ledger.")]


@ledger.command()
def verify(
    path: LedgerFile,
    head: Annotated[
        str | None,
        typer.Option(help="A head noted earlier; it must still be in the chain."),
    ] = None,
    json: Json = False,
) -> None:
    """Check chain, sums and answers; exit code 1 says what does not fit."""
    from .ledger_command import run_verify

    if not run_verify(path, head, as_json=json):
        raise typer.Exit(1)


@ledger.command()
def history(path: LedgerFile, json: Json = False) -> None:
    """Print every charge, oldest first."""
    from .ledger_command import run_history

    run_history(path, as_json=json)


@application.command()
def recommend(
    cells: Annotated[str, typer.Option(help="Cells: 4096, or 64x64 for a grid.")],
    policy: Annotated[
        str, typer.Option(help="add_remove, full, line, attribute or threshold:THETA.")
    ],
    workload: Annotated[
        str,
        typer.Option(
            help="identity, prefixes, all_ranges, total, ranges:NUMBER or "
            "rectangles:NUMBER."
        ),
    ],
    epsilon: Annotated[str, typer.Option(help="What one release may spend.")],
    records: Annotated[int, typer.Option(help="Roughly how many records there are.")],
    trials: Annotated[
        int | None, typer.Option(help="Releases per generated histogram.")
    ] = None,
    top: Annotated[int, typer.Option(help="Lines of the table.")] = 12,
    counts: Annotated[
        Path | None,
        typer.Option(help="Counts (.npy) to choose by and release; with --spend."),
    ] = None,
    spend: Annotated[
        str | None, typer.Option(help="Part of epsilon that the choice may spend.")
    ] = None,
    ledger_file: Annotated[
        Path | None,
        typer.Option("--ledger", help="Ledger that is charged for the release."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File of the release.")] = None,
    json: Json = False,
) -> None:
    """Rank mechanisms by predicted or typical error, from public facts, and say why."""
    from .recommend_command import run_recommend

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


@application.command()
def version(json: Json = False) -> None:
    """Print the version."""
    from importlib.metadata import version as installed

    from .printing import show

    found = installed("blowfish_fast")
    show({"version": found} if json else found)

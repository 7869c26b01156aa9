"""The words of ``release`` and ``explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blowfish_fast.apps.cli import completions
from blowfish_fast.apps.cli.main import RELEASING, Json, application

DATA, PRIVACY, OUTPUT = "Data", "Privacy and accuracy", "Output"


@application.command(rich_help_panel=RELEASING)
def release(
    job: Annotated[
        Path | None,
        typer.Argument(
            help="A job file (TOML); flags override it. See --example.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help=".csv (.csv.gz, .tsv, .txt), .parquet, .npy (counts), .duckdb, "
            ".sqlite, an address such as postgres://..., or demo.",
            rich_help_panel=DATA,
        ),
    ] = None,
    data_table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Table of a database.", rich_help_panel=DATA),
    ] = None,
    count_column: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column with the number of records a line stands for.",
            rich_help_panel=DATA,
        ),
    ] = None,
    domain: Annotated[
        list[str] | None,
        typer.Option(
            "--domain",
            "--cells",
            metavar="CELLS",
            help="The cells: age=0:101:1, sex=categories:f,m, day=FROM:TO:month, "
            "4096, 64x64; one per column.",
            rich_help_panel=DATA,
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Missing values: refuse (default), clamp, or cell of their own; "
            "age=cell for one column.",
            rich_help_panel=DATA,
        ),
    ] = None,
    outside: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Values outside the domain: refuse (default), clamp or cell.",
            rich_help_panel=DATA,
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of a CSV file that is not in UTF-8: cp1252, latin-1.",
            rich_help_panel=DATA,
        ),
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option(
            metavar="MARK",
            help='"," where a CSV file writes 1.234,5; "." where it writes 1,234.5.',
            rich_help_panel=DATA,
        ),
    ] = None,
    dates: Annotated[
        str | None,
        typer.Option(
            metavar="FORM",
            help="How a CSV file writes dates: DD.MM.YYYY, MM/DD/YYYY, YYYYMMDD; by "
            "default YYYY-MM-DD.",
            rich_help_panel=DATA,
        ),
    ] = None,
    blank: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            help="One more spelling of missing in a CSV file, as in --blank=-; "
            "repeated for each.",
            rich_help_panel=DATA,
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="What stays indistinguishable; no default: full, add_remove, line, "
            "attribute, threshold:5, threshold:5000:value, blocks:10, blocks:FILE, "
            "graph:FILE, product:line,full; full+known:sex where totals are public.",
            autocompletion=completions.policies,
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="WORKLOAD",
            help="What will be asked: identity, prefixes, all_ranges, total, "
            "ranges:2000, rectangles:FILE, marginals:age,sex.",
            autocompletion=completions.workloads,
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="What may be spent.", rich_help_panel=PRIVACY
        ),
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Instead: the largest error; the least epsilon is found.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    beta: Annotated[
        str | None,
        typer.Option(
            metavar="PART", help="Probability of exceeding it.", rich_help_panel=PRIVACY
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help='A name, or "best" (default): chosen from public facts.',
            autocompletion=completions.mechanisms,
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help='Roughly how many, a public guess: "best" then also tries mechanisms '
            "that adapt to the data.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Ledger that is charged.", rich_help_panel=PRIVACY
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Whole budget of a ledger that is not there yet.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of this question: asked again, it costs nothing.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Same noise again: an experiment, which protects nobody.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File of the release (release.blowfish).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A line per cell with intervals: .csv, .parquet or .json.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    picture: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A picture: .png, .svg or .pdf.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            metavar="PART", help="Of the intervals (0.95).", rich_help_panel=OUTPUT
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace files.", rich_help_panel=OUTPUT),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check everything and say what it would cost: nothing is read, "
            "charged or written.",
        ),
    ] = False,
    example: Annotated[
        bool, typer.Option("--example", help="Print a job file with comments.")
    ] = False,
    demo_data: Annotated[
        bool,
        typer.Option(
            "--demo-data", help="Write made-up people and a job file to try it on."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Release a table privately: what is secret, what is asked, what it may cost."""
    from .release import run_demo_data, run_release, show_example

    if example:
        show_example(as_json=json)
        return
    if demo_data:
        run_demo_data(overwrite=overwrite, as_json=json)
        return
    flags = {
        "data": data,
        "data_table": data_table,
        "count_column": count_column,
        "missing": missing,
        "outside": outside,
        "encoding": encoding,
        "decimal": decimal,
        "dates": dates,
        "blanks": blank,
        "domain": domain,
        "policy": policy,
        "workload": workload,
        "mechanism": mechanism,
        "records": records,
        "epsilon": epsilon,
        "alpha": alpha,
        "beta": beta,
        "ledger": ledger,
        "total": budget,
        "request": request,
        "release": out,
        "table": table,
        "picture": picture,
        "confidence": confidence,
    }
    complete = run_release(
        job, flags, seed=seed, overwrite=overwrite, dry_run=dry_run, as_json=json
    )
    if not complete:
        raise typer.Exit(1)


@application.command(rich_help_panel=RELEASING)
def explain(
    subject: Annotated[
        str,
        typer.Argument(
            help="A job file (.toml), the file of a release, or a mechanism's name.",
            autocompletion=completions.mechanisms,
            show_default=False,
        ),
    ],
    json: Json = False,
) -> None:
    """Say in plain words what a job, a release or a mechanism means. Free."""
    from .explain import run_explain

    run_explain(subject, as_json=json)

"""``blowfish first-look``: every column of a file, with nothing stated but epsilon.

Public are the header, the number of rows, and what is typed. The ledger pays before
anything is drawn, and what a column is asked second follows from what was drawn first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from blowfish_fast._support.compiler_watch import COMPILER, SHORT_TABLE, is_short
from blowfish_fast.apps.cli.options import (
    DATA,
    OUTPUT,
    PRIVACY,
    Confidence,
    DryRun,
    Json,
    Overwrite,
    Seed,
)
from blowfish_fast.apps.cli.printing import (
    remark,
    show,
    show_pairs,
    show_table,
    spinner,
)

MOST_LISTED = 40
"""Columns that the terminal lists; the page has all of them."""


def run_first_look(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="CSV, Parquet or .xlsx (FILE.xlsx#SHEET), a line for each person.",
        ),
    ],
    epsilon: Annotated[
        str,
        typer.Option(
            metavar="NUMBER", help="What the whole look costs.", rich_help_panel=PRIVACY
        ),
    ],
    *,
    persons: Annotated[
        bool,
        typer.Option(
            "--persons",
            help="Protect a person with all her answers; else one answer at a time.",
            rich_help_panel=PRIVACY,
        ),
    ] = False,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="COLUMN",
            help="Look at this column only; may be repeated.",
            rich_help_panel=DATA,
        ),
    ] = None,
    cells: Annotated[
        list[str] | None,
        typer.Option(
            "--cells",
            "--domain",
            metavar="CELLS",
            help="What is known of a column: sex=categories:f,m or age=0:101:1; may be "
            "repeated.",
            rich_help_panel=DATA,
        ),
    ] = None,
    ordered: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="The categories of this column are stated in their order; may be "
            "repeated.",
            rich_help_panel=DATA,
        ),
    ] = None,
    letters: Annotated[
        str,
        typer.Option(
            metavar="SYMBOLS",
            help="Letters of words beside a to z, such as äöü: public, never read off "
            "the data.",
            rich_help_panel=DATA,
        ),
    ] = "",
    decimal: Annotated[
        str | None,
        typer.Option(
            metavar="MARK",
            help='The decimal mark of a CSV file, "," or ".".',
            rich_help_panel=DATA,
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The encoding of a CSV file, such as cp1252.",
            rich_help_panel=DATA,
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The ledger of looks at this table, which pays; made if missing, with "
            "--budget.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="The whole budget of a new ledger.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of this look in the ledger: asked again, it is free.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The page; FILE-look.html if nothing is said.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also keep the look as a release, for `blowfish report`.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    confidence: Confidence = 0.95,
    seed: Seed = None,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Look once at every column of a file, charged once.

    One page with a picture of each column: frequent words or stated categories, numbers
    in steps, the share of missing answers, quartiles. Nothing has to be stated.

    Example: blowfish first-look survey.csv --epsilon 1
    """
    from blowfish_fast._support.validation import as_confidence
    from blowfish_fast.apps.cli.files import survey_file
    from blowfish_fast.apps.cli.files.look_json import columns_as_plain
    from blowfish_fast.apps.cli.files.look_page import WORDS_ARE_PLAIN, write_look
    from blowfish_fast.apps.cli.files.look_payment import paid_by
    from blowfish_fast.apps.cli.files.outputs import check_file
    from blowfish_fast.apps.cli.options import refuse_existing
    from blowfish_fast.apps.cli.parsing.domain import parse_column
    from blowfish_fast.data.csv_files import TextForm, file_of
    from blowfish_fast.mechanisms.around_releases.first_look import FirstLook

    as_confidence(confidence)
    # Draws of a seed are those of compiled kernels, here and anywhere.
    file = file_of(path)
    COMPILER.spare(seed is None and is_short(file, SHORT_TABLE))
    if seed is None:
        # That kernels are compiled would tell how long the table is.
        COMPILER.tell = None
    form = TextForm(encoding, decimal)
    form.check()
    names = survey_file.columns_of(path, form, columns or [])
    stated: dict[str, Any] = {}
    for words in cells or ():
        domain: Any = parse_column(words)
        stated[domain.column_names[0]] = domain
    mechanism = FirstLook(
        names,
        stated=stated,
        ordered=ordered or (),
        persons=persons,
        letters=letters,
        epsilon=epsilon,
    )
    page = file.with_name(f"{file.stem}-look.html") if out is None else out
    check_file("report", page, overwrite=overwrite)
    refuse_existing(save, overwrite=overwrite)
    mechanism.check_feasible()
    report: dict[str, Any] = {
        "columns": len(names),
        "epsilon": float(mechanism.budget),
        "persons": persons,
        "private": seed is None,
        "dry_run": dry_run,
        "ledger": None if ledger is None else str(ledger),
    }
    with paid_by(ledger, budget, request, seed, mechanism) as pay:
        report["remaining"] = None if pay is None else float(pay.remaining)
        if dry_run:
            _say_dry(report, as_json=as_json)
            return
        with spinner(f"reading {path.name}") as step:
            answers = survey_file.read_answers(path, form, names, stated)
            step("looking")
            if pay is None:
                look: Any = mechanism.release(answers, seed)
            else:
                look = pay.release(mechanism, answers, request)
                report["remaining"] = float(pay.remaining)
    write_look(look, page, confidence, name=path.name)
    if save is not None:
        look.save(save)
    report |= {
        "rows": look.rows,
        "page": str(page),
        "release": None if save is None else str(save),
        "too_noisy": [
            column.name for column in look.columns if column.too_noisy(confidence)
        ],
        "promise": str(look.guarantee),
    }
    if as_json:
        report["looks"] = columns_as_plain(look, confidence)
        show(report)
        return
    _show_columns(look, confidence)
    grey = len(report["too_noisy"])
    show_pairs(
        str(page),
        [
            ("columns", f"{len(names):,}; too noisy, and grey: {grey:,}"),
            ("cost", f"eps = {report['epsilon']:g}, once"),
            (
                "protected",
                "each person with all her answers"
                if persons
                else "one answer of a person at a time",
            ),
        ],
    )
    if any(column.kind == "words" for column in look.columns):
        remark(WORDS_ARE_PLAIN)
    if ledger is None:
        remark("no ledger: further releases from these people add up with this one")
    remark(f"written: {page}")


def _say_dry(report: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        show(report)
        return
    show(
        f"{report['columns']:,} columns would be looked at for eps = "
        f"{report['epsilon']:g}, once.\nDry run: no record was read, and nothing was "
        "charged or written."
    )


def _show_columns(look: Any, confidence: float) -> None:
    rows = []
    for column in look.columns[:MOST_LISTED]:
        shown = column.bars(confidence)
        top = max(shown, key=lambda bar: bar.noisy, default=None)
        missing = column.missing(confidence)
        rows.append(
            [
                column.name,
                column.kind,
                f"{100 * missing.noisy / max(look.rows, 1):.1f} %",
                "" if top is None else top.label,
                "" if top is None else f"{top.noisy:,.0f}",
                "" if top is None else f"{top.low:,.0f} to {top.high:,.0f}",
            ]
        )
    heads = ["column", "holds", "missing", "most frequent", "count", "interval"]
    show_table(heads, rows)
    more = len(look.columns) - MOST_LISTED
    if more > 0:
        show(f"and {more:,} more columns, on the page")

"""``blowfish start``: a commented job file from a header and a public code book."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from blowfish_fast.apps.cli.options import DATA, OUTPUT, Json, Overwrite
from blowfish_fast.apps.cli.printing import remark, show


def run_start(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="CSV, Parquet or .xlsx (FILE.xlsx#SHEET); only its head is read.",
        ),
    ],
    codebook: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A public code book: CSV or .xlsx with column, value and label, or "
            "with column, low, high and width, or with column and description; or the "
            "labels of a .sav or .dta file.",
            rich_help_panel=DATA,
        ),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Your word that the list of values of this column is public: it is "
            "read from the records. May be repeated.",
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
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="JOB",
            help="The job file; FILE.toml if nothing is said.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draft a job file from the header of a file and a public code book.

    Cells come from the code book, never from the records, unless you say that the
    values of a column are public.

    Example: blowfish start survey.csv --codebook codes.csv
    """
    from blowfish_fast.apps.cli.files import job_draft, survey_file
    from blowfish_fast.apps.cli.options import refuse_existing
    from blowfish_fast.data.csv_files import TextForm, file_of

    form = TextForm(encoding)
    form.check()
    named = list(public or ())
    # First, since what is no file has no name for the job either.
    columns = survey_file.columns_of(path, form, [])
    job = file_of(path).with_suffix(".toml") if out is None else out
    refuse_existing(job, overwrite=overwrite)
    survey_file.columns_of(path, form, named)
    book = {} if codebook is None else job_draft.read_code_book(codebook)
    values = {name: survey_file.values_of(path, form, name) for name in named}
    sources = f"the header of {path.name}"
    sources += "" if codebook is None else f" and the code book {codebook.name}"
    sources += f"; values of {', '.join(named)} were read" if named else ""
    draft = job_draft.draft_job(
        path, columns, book, values, encoding=encoding, sources=sources
    )
    job.write_text(draft, encoding="utf-8")
    coded = {name for name, entry in book.items() if entry.has_cells}
    stated = [name for name in columns if name in values or name in coded]
    report: dict[str, Any] = {
        "job": str(job),
        "columns": len(columns),
        "stated": stated,
        "open": [name for name in columns if name not in stated],
        "not_in_file": [name for name in book if name not in columns],
        "values_read": named,
    }
    if as_json:
        show(report)
        return
    show(
        f"{job}: {len(columns):,} columns, {len(stated):,} with cells, "
        f"{len(report['open']):,} open"
    )
    if report["not_in_file"]:
        remark(f"in the code book only: {', '.join(report['not_in_file'])}")
    if named:
        remark(
            f"the values of {', '.join(named)} were read from the records: whoever "
            "sees the job or its releases learns that each of them occurs"
        )
    show(f"Fill in what is open, then: blowfish release {job} --dry-run")

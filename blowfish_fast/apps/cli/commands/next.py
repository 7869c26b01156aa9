"""``blowfish next``: the release after the last one, from the same job."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from blowfish_fast.apps.cli.options import DATA, DryRun, Json, Overwrite
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.printing import remark


def run_next(
    job_file: Annotated[
        Path,
        typer.Argument(
            metavar="JOB",
            help="A job file (TOML) with a ledger, and with a series or without one.",
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The new data; else that of the job, in whose name {epoch} stands "
            "for the epoch.",
            rich_help_panel=DATA,
        ),
    ] = None,
    epoch: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The epoch, such as 2026-11 or 2026-W46; else the one after the "
            "last that the ledger holds.",
            rich_help_panel=DATA,
        ),
    ] = None,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Release the next month, week or day from the same job.

    A job with a series continues it; another is released again under a request of its
    own, and its price adds up. Outputs are named by the epoch: weekly.csv becomes
    weekly-2026-W46.csv.

    Example: blowfish next weekly.toml
    """
    from blowfish_fast.apps.cli.commands.release import release_stated
    from blowfish_fast.apps.cli.series_job import next_job

    job = Job.from_file(job_file)
    if data is not None:
        job = replace(job, data=data, data_table=None)
    today = datetime.datetime.now(datetime.UTC).date()
    job, name = next_job(job, job_file, epoch=epoch, today=today)
    if not as_json:
        remark(f"next: {name}")
    release_stated(job, None, overwrite=overwrite, dry_run=dry_run, as_json=as_json)

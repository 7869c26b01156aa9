"""``blowfish audit``: check every promise, and say how hard it was tried."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import blowfish_fast as bf
from blowfish_fast.apps.cli.exit_codes import FOUND
from blowfish_fast.apps.cli.options import (
    Json,
    Mechanisms,
    Overwrite,
    look_here_for,
    refuse_existing,
)
from blowfish_fast.apps.cli.printing import (
    console,
    counter,
    remark,
    remarks,
    show,
    show_table,
)
from blowfish_fast.errors import InputError

if TYPE_CHECKING:
    from blowfish_fast.audit.plan import AuditPlan
    from blowfish_fast.audit.report import Report

FEWEST_SAMPLES = 1000
WIDE = 120
LEFT_OUT = ("stops", "random pairs", "power at 5 %")
"""Columns that a narrow screen has no room for."""


def run_audit(
    quick: Annotated[
        bool, typer.Option("--quick", help="The short form: about a minute.")
    ] = False,
    mechanism: Mechanisms = None,
    samples: Annotated[
        int | None,
        typer.Option(help="Choices per side; other numbers follow in proportion."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for audit.json, .html and .md; an interrupted audit resumes "
            "there."
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
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Check every promise of every mechanism; code 1: one is broken.

    A progress bar shows what is examined; with --out, an interrupted audit resumes.
    """
    from blowfish_fast.audit.report import FILES, note_figures

    if out is not None:
        refuse_existing(*(out / one for one in FILES), overwrite=overwrite)
    look_here_for(mechanism)
    plan = choose_plan(quick, samples)
    report, written = _run(plan, mechanism, out, workers, quick=quick)
    if record is not None:
        note_figures(record, report.figures())
    if as_json:
        show(report.to_dict())
    elif table:
        sys.stdout.write(report.to_markdown())
    else:
        _show_report(report)
    # Apart from the report, which may be read by a program.
    for violation in report.violations:
        remarks.print(
            f"[bold red]violation:[/] {violation.subject} under {violation.family} on "
            f"{violation.domain}, {violation.check}: {violation.note}",
            highlight=False,
        )
    if written:
        remark(f"written: {', '.join(str(one) for one in written)}")
    if not report.passed:
        raise typer.Exit(FOUND)


def choose_plan(quick: bool, samples: int | None) -> AuditPlan:
    """Return the plan that the words ask for; `samples` scales all of its numbers."""
    from blowfish_fast.audit.plan import LONG, QUICK

    plan = QUICK if quick else LONG
    if samples is None:
        return plan
    if samples < FEWEST_SAMPLES:
        raise InputError(
            f"samples must be at least {FEWEST_SAMPLES}; received {samples}. Fewer "
            "prove nothing"
        )
    return plan._replace(
        batch=samples,
        noise=max(samples // 25, FEWEST_SAMPLES),
        runs=max(samples // 1000, 100),
        releases=max(samples // 5000, 100),
    )


def _run(
    plan: AuditPlan,
    mechanisms: list[str] | None,
    out: Path | None,
    workers: int | None,
    *,
    quick: bool,
) -> tuple[Report, list[Path]]:
    """Walk; return the report, and the files that it was written to."""
    from blowfish_fast._support.machine import usable_cores
    from blowfish_fast.audit.report import Report
    from blowfish_fast.audit.walk import ProgressFile, audit_everything

    kept = None if out is None else ProgressFile(out, plan, bf.__version__)
    start = time.perf_counter()
    try:
        with counter("auditing") as step:
            verdicts = audit_everything(
                plan,
                mechanisms=mechanisms or None,
                open_ledger=bf.Ledger,
                workers=workers or usable_cores(),
                kept=kept,
                progress=step,
            )
    except KeyboardInterrupt as stop:
        if out is not None:
            stop.add_note(
                f"what was found is kept in {out}; run the same command to continue"
            )
        raise
    report = Report(
        tuple(verdicts),
        plan,
        "quick" if quick else "long",
        time.perf_counter() - start if kept is None else kept.seconds,
        bf.__version__,
    )
    if out is None or kept is None:
        return report, []
    written = report.write(out)
    # The report holds everything; the next audit begins anew.
    kept.path.unlink()
    return report, written


def _show_report(report: Report) -> None:
    """Print the summary; a narrow screen leaves out what the sentences below tell."""
    from blowfish_fast.audit.report import COLUMNS

    narrow = console.width < WIDE
    shown = [at for at, name in enumerate(COLUMNS) if not (narrow and name in LEFT_OUT)]
    rows = [[row[at] for at in shown] for row in report.rows()]
    styles = ["" if row[-1].endswith("passed") else "bold red" for row in rows]
    show_table([COLUMNS[at] for at in shown], rows, title="Audit", styles=styles)
    for line in report.statements():
        show(line)

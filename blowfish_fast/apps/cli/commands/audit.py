"""``blowfish audit``: check every promise, and say how hard it was tried."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
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
    option,
    refuse_existing,
    with_options,
)
from blowfish_fast.apps.cli.printing import (
    console,
    counter,
    remark,
    remarks,
    show,
    show_table,
    spinner,
)
from blowfish_fast.errors import InputError

if TYPE_CHECKING:
    from blowfish_fast.audit.plan import AuditPlan
    from blowfish_fast.audit.report import Report

FEWEST_SAMPLES = 1000
WIDE = 120
LEFT_OUT = ("stops", "random pairs", "power at 5 %")
"""Columns that a narrow screen has no room for."""

ANYBODYS = "Another library's callable"


@dataclass(frozen=True)
class AskedSubject:
    """A callable of anybody, and the promise that is made for it, as they are typed."""

    subject: str | None = option(
        "PACKAGE:NAME",
        "Audit this callable of data and epsilon in place of our mechanisms, or a "
        "blowfish_fast.audit.Subject.",
        rich_help_panel=ANYBODYS,
    )
    epsilon: str | None = option(
        "NUMBER", "The epsilon that it promises; 1.", rich_help_panel=ANYBODYS
    )
    delta: str | None = option(
        "NUMBER", "The delta that it promises; 0.", rich_help_panel=ANYBODYS
    )
    data: str | None = option(
        "KIND",
        "What it takes: counts of the cells, or records, one cell number each; counts.",
        rich_help_panel=ANYBODYS,
    )
    neighbours: str | None = option(
        "RELATION",
        "add_remove: one record is there or not; full: one record has another value; "
        "add_remove.",
        rich_help_panel=ANYBODYS,
    )
    cells: int | None = option(
        "NUMBER", "How many values a record may have; 3.", rich_help_panel=ANYBODYS
    )

    @property
    def stated(self) -> list[str]:
        """Options that say what a bare callable is."""
        values = {
            "--epsilon": self.epsilon,
            "--delta": self.delta,
            "--data": self.data,
            "--neighbours": self.neighbours,
            "--cells": self.cells,
        }
        return [name for name, value in values.items() if value is not None]


@with_options
def run_audit(
    asked: AskedSubject,
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

    if asked.subject is not None:
        others = {
            "--quick": quick,
            "--mechanism": mechanism,
            "--out": out,
            "--workers": workers,
            "--record": record,
            "--table": table,
        }
        _refuse_beside(
            "--subject", [name for name, is_stated in others.items() if is_stated]
        )
        _audit_subject(asked, samples, as_json=as_json)
        return
    _refuse_without_subject(asked.stated)
    if out is not None:
        refuse_existing(*(out / name for name in FILES), overwrite=overwrite)
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
        remark(f"written: {', '.join(str(path) for path in written)}")
    if not report.passed:
        raise typer.Exit(FOUND)


def _refuse_beside(name: str, flags: list[str]) -> None:
    if flags:
        raise InputError(
            f"{name} audits one callable, alone",
            received=", ".join(flags),
            way_out="Leave them out; --samples and --json go with it",
        )


def _refuse_without_subject(flags: list[str]) -> None:
    if flags:
        raise InputError(
            "our mechanisms are audited at epsilons, policies and domains of the audit",
            received=", ".join(flags),
            way_out="They go with --subject package:callable",
        )


def _audit_subject(asked: AskedSubject, samples: int | None, *, as_json: bool) -> None:
    """Hold a callable of anybody against its promise."""
    from blowfish_fast.audit.subjects import (
        SAMPLES,
        Subject,
        audit_subject,
        find_subject,
    )

    assert asked.subject is not None
    look_here_for([asked.subject])
    subject = find_subject(asked.subject)
    if isinstance(subject, Subject):
        _refuse_beside(
            "a Subject states its own promise and neighbours; it", asked.stated
        )
    else:
        subject = Subject.on(
            asked.data or "counts",
            subject,
            relation=asked.neighbours or "add_remove",
            cells=3 if asked.cells is None else asked.cells,
            epsilon=asked.epsilon or 1,
            delta=asked.delta or 0,
            name=asked.subject,
        )
    with spinner("auditing") as step:
        report = audit_subject(
            subject, samples=SAMPLES if samples is None else samples, progress=step
        )
    if as_json:
        show(report.to_dict())
    else:
        for line in report.statements():
            show(line)
    if not report.passed:
        remarks.print(f"[bold red]violation:[/] {report.finding}", highlight=False)
        raise typer.Exit(FOUND)


def choose_plan(quick: bool, samples: int | None) -> AuditPlan:
    """Return the plan that the words ask for; `samples` scales all of its numbers.

    Parameters
    ----------
    quick : bool
        Whether the short plan is meant.
    samples : int or None
        How many samples a batch has; the other numbers of the plan follow from it.

    Returns
    -------
    AuditPlan
        The plan.

    Raises
    ------
    InputError
        If there are too few samples to prove anything.
    """
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

    progress_file = None if out is None else ProgressFile(out, plan, bf.__version__)
    start = time.perf_counter()
    try:
        with counter("auditing") as step:
            verdicts = audit_everything(
                plan,
                mechanisms=mechanisms or None,
                open_ledger=bf.Ledger,
                workers=workers or usable_cores(),
                progress_file=progress_file,
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
        time.perf_counter() - start if progress_file is None else progress_file.seconds,
        bf.__version__,
    )
    if out is None or progress_file is None:
        return report, []
    written = report.write(out)
    # The report holds everything; the next audit begins anew.
    progress_file.path.unlink()
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

"""``blowfish audit``: check every promise, and say how hard it was tried."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.apps.cli.printing import (
    console,
    counting,
    remark,
    remarks,
    show,
    steps_bar,
)
from blowfish_fast.audit.plan import LONG, QUICK, Plan
from blowfish_fast.audit.progress_file import ProgressFile
from blowfish_fast.audit.report import COLUMNS, Report, note_figures
from blowfish_fast.audit.walk import audit_everything, usable_workers
from blowfish_fast.errors import InputError
from blowfish_fast.mechanisms.base import _version

FEWEST_SAMPLES = 1000
ENDS = (COLUMNS[0], COLUMNS[-1])
WIDE = 120
LEFT_OUT = ("stops", "random pairs", "power at 5 %")
"""Columns that a narrow screen has no room for."""


def chosen_plan(quick: bool, samples: int | None) -> Plan:
    """Return the plan that the words ask for; `samples` scales all of its numbers."""
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


def run_audit(
    *,
    quick: bool,
    mechanisms: Sequence[str] | None,
    samples: int | None,
    out: Path | None,
    as_json: bool,
    as_table: bool,
    workers: int | None = None,
    record: Path | None = None,
) -> bool:
    """Walk, report, and return whether everything passed.

    With a folder, what is found is kept there stop by stop: the same command takes an
    audit up where it was broken off.
    """
    plan = chosen_plan(quick, samples)
    kept = None if out is None else ProgressFile(out, plan, _version())
    start = time.perf_counter()
    try:
        with steps_bar() as bar:
            verdicts = audit_everything(
                plan,
                mechanisms=mechanisms or None,
                open_ledger=Ledger,
                workers=workers or usable_workers(),
                kept=kept,
                progress=counting(bar, "auditing"),
            )
    except KeyboardInterrupt as stop:
        if out is not None:
            stop.add_note(f"what was found is kept in {out}; the same command goes on")
        raise
    report = Report(
        tuple(verdicts),
        plan,
        "quick" if quick else "long",
        time.perf_counter() - start if kept is None else kept.seconds,
        _version(),
    )
    written = report.write(out) if out is not None else []
    if kept is not None:
        # The report holds everything; the next audit begins anew.
        kept.path.unlink()
    if record is not None:
        note_figures(record, report.figures())
    if as_json:
        show(report.to_dict())
    elif as_table:
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
    return report.passed


def _show_report(report: Report) -> None:
    """Print the summary; a narrow screen leaves out what the sentences below tell."""
    shown = [
        at
        for at, name in enumerate(COLUMNS)
        if console.width >= WIDE or name not in LEFT_OUT
    ]
    table = Table(title="Audit", title_justify="left", box=None, header_style="bold")
    for at in shown:
        name = COLUMNS[at]
        table.add_column(
            name,
            justify="left" if name in ENDS else "right",
            no_wrap=name == COLUMNS[0],
        )
    for row in report.rows():
        broken = not row[-1].endswith("passed")
        table.add_row(*(row[at] for at in shown), style="bold red" if broken else None)
    console.print(table)
    for line in report.statements():
        show(line)

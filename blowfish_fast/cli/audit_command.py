"""``blowfish audit``: check every promise, and say how hard it was tried."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..accounting.ledger import Ledger
from ..audit.plan import LONG, QUICK, Plan
from ..audit.progress_file import ProgressFile
from ..audit.report import COLUMNS, Report
from ..audit.trust_table import note_figures
from ..audit.walk import audit_everything, usable_workers
from ..errors import InputError
from ..mechanisms.base import _version
from .printing import console, show

FEWEST_SAMPLES = 1000
ENDS = (COLUMNS[0], COLUMNS[-1])


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
    quiet = as_json or as_table or not console.is_terminal
    with Progress(
        TextColumn("auditing"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[last]}"),
        console=console,
        disable=quiet,
        transient=True,
    ) as bar:
        shown = bar.add_task("audit", total=None, last="")
        verdicts = audit_everything(
            plan,
            mechanisms=mechanisms or None,
            open_ledger=Ledger,
            workers=workers or usable_workers(),
            kept=kept,
            progress=lambda done, total, last: bar.update(
                shown, completed=done, total=total, last=last
            ),
        )
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
    errors = Console(stderr=True)
    for violation in report.violations:
        errors.print(
            f"[bold red]violation:[/] {violation.subject} under {violation.family} on "
            f"{violation.domain}, {violation.check}: {violation.note}",
            highlight=False,
        )
    if written:
        names = ", ".join(str(one) for one in written)
        errors.print(f"written: {names}", highlight=False)
    return report.passed


def _show_report(report: Report) -> None:
    table = Table(title="Audit", title_justify="left")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in ENDS else "right")
    for row in report.rows():
        table.add_row(*row, style=None if row[-1].endswith("passed") else "bold red")
    console.print(table)
    for line in report.statements():
        console.print(line, highlight=False)

"""``blowfish release``: from a table to a private release, its table and its picture.

Public facts are read first and the ledger pays before counts are released; a dry run
ends where the data would be read.
"""

from __future__ import annotations

import math
import shlex
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blowfish_fast.apps.cli.exit_codes import FOUND
from blowfish_fast.apps.cli.options import (
    DEFAULT_WORKLOAD,
    PRIVACY,
    DryRun,
    JobFile,
    Json,
    Overwrite,
    Seed,
    refuse_existing,
    with_options,
)
from blowfish_fast.apps.cli.parsing.job import ON_QUERIES, Job
from blowfish_fast.apps.cli.printing import remark, show, show_pairs
from blowfish_fast.data.listed_items import written_item
from blowfish_fast.errors import BlowfishError

if TYPE_CHECKING:
    from blowfish_fast.apps.cli.mechanism_choice import MechanismChoice
    from blowfish_fast.apps.cli.release_job import Facts
    from blowfish_fast.workloads import Workload

MOST_CHECKED = 2**20
"""Queries up to which a report says what their intervals hold."""


@with_options
def run_release(
    typed: Job,
    job_file: JobFile = None,
    tables: Annotated[
        int | None,
        typer.Option(
            metavar="WAYS",
            min=1,
            help="All tables of up to so many columns: --workload tables:WAYS.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    seed: Seed = None,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    example: Annotated[
        bool, typer.Option("--example", help="Print a job file with comments.")
    ] = False,
    demo_data: Annotated[
        bool,
        typer.Option(
            "--demo-data", help="Write made-up people and a job file to try it on."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Release a table privately: what is secret, what is asked, what it may cost."""
    if example:
        from blowfish_fast.apps.cli.files.data_source import EXAMPLE_JOB

        show({"example": EXAMPLE_JOB}) if as_json else sys.stdout.write(EXAMPLE_JOB)
    elif demo_data:
        _write_demo_data(overwrite=overwrite, as_json=as_json)
    else:
        job = Job.stated(job_file, typed)
        if tables is not None:
            job = replace(job, workload=f"tables:{tables}")
        release_stated(job, seed, overwrite=overwrite, dry_run=dry_run, as_json=as_json)


def release_stated(
    job: Job, seed: int | None, *, overwrite: bool, dry_run: bool, as_json: bool
) -> None:
    """Release what a job states, write its outputs, and say what was done.

    Parameters
    ----------
    job : Job
        What is released.
    seed : int or None
        The same noise again, for experiments.
    overwrite : bool
        Whether files are replaced.
    dry_run : bool
        Whether to end where the data would be read.
    as_json : bool
        Whether plain JSON is printed.
    """
    from blowfish_fast._support.compiler_watch import SHORT_TABLE, is_short
    from blowfish_fast._support.machine import BASE_BYTES, check_memory
    from blowfish_fast._support.validation import as_share
    from blowfish_fast.apps.cli import mechanism_choice, release_job
    from blowfish_fast.apps.cli.files.outputs import Outputs, asked_release
    from blowfish_fast.apps.cli.parsing.policy import listed_orders
    from blowfish_fast.apps.cli.series_job import series_notes, with_epoch_named
    from blowfish_fast.data.csv_files import file_of
    from blowfish_fast.mechanisms.certifier import predict_extra
    from blowfish_fast.mechanisms.chosen_tables import ChosenTables
    from blowfish_fast.release.chosen_release import ChosenTablesRelease
    from blowfish_fast.release.guarantee import Guarantee
    from blowfish_fast.release.second_look import look_again
    from blowfish_fast.release.tables_release import TablesRelease

    if job.in_series:
        job = with_epoch_named(job)
    release_job.check_complete(job)
    facts = release_job.read_facts(job)
    source = release_job.open_data(job, facts)
    outputs = Outputs(job, overwrite=overwrite)
    outputs.check(facts.workload)
    release_job.check_ledger(job, seed)
    # Draws of a seed are those of compiled kernels, here and anywhere.
    by_size = not dry_run and seed is None
    file = file_of(Path(job.data or ""))
    short = dry_run or (by_size and is_short(file, SHORT_TABLE))
    choice = mechanism_choice.choose_with_progress(
        facts, job, short=short, by_size=by_size
    )
    in_totals = release_job.series_error(job, facts, choice.error)
    if in_totals is not None:
        choice = choice._replace(error=in_totals.total, told=in_totals.sentence)
    mechanism = choice.mechanism
    if isinstance(mechanism, ChosenTables):
        # It buys the certificate itself, of what it has drawn.
        job = replace(job, certify=None)
    if job.certify is not None:
        share = as_share(job.certify, "--certify")
        mechanism = mechanism.at(mechanism.budget * (1 - share))
    bought = release_job.certificate_budget(job, facts, mechanism)
    promise = Guarantee.of(
        choice.mechanism.policy,
        choice.mechanism.budget,
        secure=seed is None,
        notes=choice.mechanism._notes() + (series_notes(job) if job.in_series else ()),
    )
    report: dict[str, Any] = {
        "mechanism": choice.name,
        "recipe": mechanism.name,
        "because": list(choice.because),
        "data": source.description,
        "cells": facts.domain.size,
        "columns": dict(
            zip(facts.domain.column_names, facts.domain.shape, strict=True)
        ),
        "queries": facts.workload.queries,
        "promise": str(promise),
        **mechanism.budget.to_dict(),
        "expected_error": choice.error,
        "error": choice.error_sentence,
        "extra_cells": facts.extra_cells,
        "sample": None if facts.design is None else facts.design.describe(),
        "population": _asked_with(facts, mechanism),
        "listed_orders": listed_orders(
            job.policy or "", facts.domain, facts.ledger_policy.domain
        ),
        "private": seed is None,
        "whole_table": bool(job.ledger_domain),
        "ledger": release_job.preview_charge(job, facts, mechanism),
        "dry_run": dry_run,
    }
    if choice.plan is not None:
        report |= {
            "tables": len(choice.plan.tables),
            "measured": len(choice.plan.measured),
            "plan": choice.plan.kind,
            "errors": choice.plan.by_ways().to_dict(),
        }
    if bought is not None:
        room = predict_extra(mechanism.policy, facts.workload, bought)
        report |= {"certificate": bought.words(), "certificate_room": room}
    check_memory(
        2 * mechanism.memory_needed(), f"{choice.name}, prepared,", "nothing was read"
    )
    if dry_run:
        needed = choice.mechanism.memory_needed() + BASE_BYTES
        report |= {
            "memory": f"at most {needed / 2**20:,.0f} MiB",
            "files": {kind: str(path) for kind, path in outputs.named.items()},
        }
        show(report) if as_json else _show(report, choice)
        return
    stored, request, remaining = release_job.charge_and_release(
        job, facts, source, mechanism, seed
    )
    written = outputs.write(stored)
    release = asked_release(stored)
    if isinstance(release, ChosenTablesRelease):
        measured = release.measured
        report |= {"tables": len(release.asked), "measured": measured.to_dict()}
        if release.has_certificate:
            certificate = release.certificate(outputs.confidence)
            report["certified"] = certificate._asdict()
            report["error"] = str(certificate)
    elif isinstance(release, TablesRelease):
        # The total is known by now: mean counts stand beside the errors.
        choice = choice._replace(plan=(errors := release.errors()))
        report["errors"] = errors.by_ways().to_dict()
    report |= {
        "drawn_error": _drawn_error(release, facts.workload),
        "request": request,
        "remaining": remaining,
        "files": written.files,
        "problems": written.problems,
        "intervals": _interval_sentence(release, facts),
        "remarks": look_again(release),
    }
    if as_json:
        show(report)
    else:
        _show(report, choice, _question(facts, job, choice))
    for text in report["remarks"]:
        remark(f"look again, for free: {text}")
    for problem in written.problems:
        remark(f"warning: {problem}")
    if written.problems:
        raise typer.Exit(FOUND)


def _show(report: dict[str, Any], choice: MechanismChoice, question: str = "") -> None:
    """Print what was released, or in a dry run what would be."""
    dry, files = report["dry_run"], report["files"]
    title = "Released" if report["private"] else "Released (an experiment: seeded)"
    pairs = _mechanism_pairs(report)
    if dry:
        title = "Dry run: nothing was read, charged or written"
        cells = ", ".join(f"{name} {n:,}" for name, n in report["columns"].items())
        pairs[:0] = [
            ("data", f"{report['data']}; its columns fit, no value was read"),
            ("cells", cells),
        ]
    elif (report["ledger"] or {}).get("replayed"):
        title = "Written again: the release that was made before under this request"
    pairs += [
        ("would spend" if dry else "spent", cost_sentence(report)),
        ("error", report["error"] if dry else _error(report, choice)),
    ]
    if dry and "certificate" in report:
        room = f"{report['certificate_room']:,.4g} records beside noise and bias"
        bought = f"for {report['certificate']}; intervals get {room}"
        pairs.append(("certificate", bought))
    pairs += [
        (name, report[name]) for name in ("memory", "intervals") if report.get(name)
    ]
    pairs += [(f"{kind} file" if dry else kind, path) for kind, path in files.items()]
    show_pairs(title, pairs)
    if choice.plan is not None:
        show(f"\n{choice.plan}")
    if not dry and isinstance(report.get("measured"), dict):
        show(f"\n{_measured_sentence(report)}")
    if not dry:
        asked = f"Ask it, for free:  blowfish answer {files['release']} {question}\n"
        asked = "" if choice.plan is not None else asked.replace(" \n", "\n")
        show(f"\n{asked}What it means:     blowfish explain {files['release']}")
    if report["ledger"] is None:
        remark(ledger_reminder(report))
    elif report["ledger"]["new"] and not report["whole_table"]:
        remark(_narrow_ledger(report))


def _narrow_ledger(report: dict[str, Any]) -> str:
    """Say loudly that a new ledger is for the columns of its first release alone."""
    columns = ", ".join(report["columns"])
    start = "would cover" if report["dry_run"] else "covers"
    return (
        f"NOTE: the new ledger {report['ledger']['file']} {start} {columns}, and no "
        "other column of these people. State all columns that will come, "
        "[ledger_domain] or `blowfish ledger create`, or add them later: `blowfish "
        "ledger amend`"
    )


def _measured_sentence(report: dict[str, Any]) -> str:
    """Say how many tables the data chose, and where the list of them is."""
    measured = report["measured"]
    pairs = {title for title in measured["table"] if " x " in title}
    unknown = "" if "certified" in report else ", and how far it is off is not known"
    told = "tables of several columns were measured", "these, and single columns,"
    if len(pairs) == 1:
        told = "table of several columns was measured", "it, and single columns,"
    return (
        f"{len(pairs):,} {told[0]}, of {report['tables']:,} that were asked; {told[1]} "
        f"have intervals of the truth. All others come from a model{unknown}. "
        "`blowfish explain` lists what was measured."
    )


def _interval_sentence(release: Any, facts: Facts) -> str:
    """Say what the intervals of the stated queries hold; "" where there are none."""
    from blowfish_fast.data.domain import is_wide
    from blowfish_fast.release.chosen_release import ChosenTablesRelease

    if facts.workload.queries > MOST_CHECKED or release.interval_scope != "noise":
        return ""
    if isinstance(release, ChosenTablesRelease):
        # Only measured tables have intervals, which is said elsewhere.
        return ""
    if is_wide(release.domain):
        return f"They hold the true answers{release.guarantee.counted_records()}."
    if not hasattr(release, "interval_kind") or release.domain != facts.workload.domain:
        return ""
    kind = release.interval_kind(facts.workload)
    return str(release.interval_sentence(kind, workload=facts.workload))


def _asked_with(facts: Facts, mechanism: Any) -> str | None:
    """Say what can be asked about the population of a sample; None without one."""
    if facts.design is None:
        return None
    from blowfish_fast.apps.cli.population_questions import asked_with

    return asked_with(mechanism)


def _mechanism_pairs(report: dict[str, Any]) -> list[tuple[str, str]]:
    pairs = [
        ("mechanism", _mechanism_name(report)),
        ("because", " ".join(report["because"])),
        ("promise", report["promise"]),
    ]
    extra, orders = ", ".join(report["extra_cells"]), ", ".join(report["listed_orders"])
    if extra:
        secret = f"{extra}: cells of their own, as secret as any value"
        pairs.append(("extra cells", secret))
    if report["sample"]:
        word = f"{report['sample']}, on your word; {report['population']}"
        pairs.append(("sample", word))
    if orders:
        note = (
            f"categories of {orders} are neighbours in the order in which they are "
            "listed. Where they have no order, state full, blocks:FILE or graph:FILE "
            "for that column"
        )
        pairs.append(("note", note))
    return pairs


def _question(facts: Facts, job: Job, choice: MechanismChoice) -> str:
    """Return something that can be asked of the release, as an example."""
    from blowfish_fast.apps.cli.parsing.where import wide_ends
    from blowfish_fast.data.domain import is_wide
    from blowfish_fast.mechanisms.sparse import SparseLaplace

    attribute = facts.domain.attributes[0]
    stated = attribute.levels is not None or attribute.cuts is not None
    if is_wide(facts.domain) and not stated:
        if isinstance(choice.mechanism, SparseLaplace):
            return ""
        low, high = wide_ends(attribute)
        return f"--where {shlex.quote(f'{attribute.name}={low}..{high}')}"
    if choice.name == ON_QUERIES or attribute.name is None:
        return f"--workload {shlex.quote(job.workload or DEFAULT_WORKLOAD)}"
    if attribute.levels is not None:
        level = written_item(str(attribute.levels[0]))
        return f"--where {shlex.quote(f'{written_item(attribute.name)}={level}')}"
    if attribute.unit is not None or attribute.cuts is None:
        return f"--by {shlex.quote(attribute.name)}"
    cuts = attribute.cuts
    low, high = cuts[len(cuts) // 4], cuts[len(cuts) // 2]
    if low == high:
        low = cuts[0]
    return f"--where {shlex.quote(f'{attribute.name}={low:.12g}:{high:.12g}')}"


def _mechanism_name(report: dict[str, Any]) -> str:
    """Name the mechanism; a strategy together with the mechanism that uses it."""
    name, recipe = report["mechanism"], report["recipe"]
    if name == ON_QUERIES:
        return (
            f"{recipe}, with noise on the queries themselves: nothing else is measured"
        )
    return str(name) if name == recipe else f"{name} (a strategy of {recipe})"


def cost_sentence(report: dict[str, Any]) -> str:
    """Say what is spent, and what remains in the ledger."""
    short, name = ("rho", "rho") if "rho" in report else ("eps", "epsilon")
    amount = f"{short} = {float(Fraction(report[name])):g}"
    if "certificate" in report:
        amount += f", and {report['certificate']} for the certificate"
    book = report["ledger"]
    if book is None:
        return amount
    if book["replayed"]:
        return (
            "nothing: this request was answered before, and "
            f"{'would get' if report['dry_run'] else 'got'} that answer again, "
            "whatever the data holds now; new data needs a new name, --request. "
            f"{book['after']:g} of {book['total']:g} remains ({book['file']})"
        )
    after = report.get("remaining", book["after"])
    stays = "would remain" if report["dry_run"] else "remains"
    novelty = ", a new ledger" if book["new"] else ""
    request = f", request {report['request']}" if report.get("request") else ""
    return (
        f"{amount}; {after:g} of {book['total']:g} {stays} ({book['file']}{novelty}"
        f"{request})"
    )


def _error(report: dict[str, Any], choice: MechanismChoice) -> str:
    if "certified" in report:
        return str(report["error"])
    if choice.error is not None or report["drawn_error"] is None:
        return choice.error_sentence
    return (
        f"{report['drawn_error']:,.4g} records per query (root mean square) from the "
        "noise that was drawn; what merging or smoothing loses may add to it"
    )


def ledger_reminder(report: dict[str, Any]) -> str:
    """Say that nobody keeps count of what is spent."""
    if not report["private"]:
        return "A seeded release protects nobody: do not make one from real data."
    return (
        "No ledger records what is spent on this data: --ledger FILE --budget TOTAL "
        "makes one."
    )


def _write_demo_data(*, overwrite: bool, as_json: bool) -> None:
    from blowfish_fast.apps.cli.files.data_source import (
        DEMO_NAME,
        EXAMPLE_JOB,
        write_demo_people,
    )

    people, job = Path(f"{DEMO_NAME}.csv"), Path(f"{DEMO_NAME}.toml")
    refuse_existing(people, job, overwrite=overwrite)
    write_demo_people(people)
    job.write_text(EXAMPLE_JOB.replace("FILE", str(job)), encoding="utf-8")
    if as_json:
        show({"people": str(people), "job": str(job)})
        return
    show(
        f"{people}: 10,000 made-up people\n{job}: a release of their incomes\n\n"
        f"What it would mean:  blowfish release {job} --dry-run\n"
        f"Release:             blowfish release {job}"
    )


def _drawn_error(release: Any, workload: Workload) -> float | None:
    """Return the root mean square error of answers; None where it is not known."""
    try:
        errors = release.standard_errors(workload)
    except BlowfishError:
        return None
    return math.sqrt(float((errors**2).mean()))

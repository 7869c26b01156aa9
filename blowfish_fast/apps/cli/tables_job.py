"""A job that asks for contingency tables: all tables of a survey, in one release.

[workload]
kind = "tables:2"       all tables of one and two columns

dry run    which tables are measured, their errors beside mean counts
release    release.blowfish, a folder of tables (or one .xlsx), a map of errors
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.apps.cli.files.data_source import Source
from blowfish_fast.apps.cli.files.picture_files import check_picture, write_picture
from blowfish_fast.apps.cli.files.record_files import Part, People, TableAxes
from blowfish_fast.apps.cli.files.release_outputs import RELEASE
from blowfish_fast.apps.cli.parsing.domain import parse_table
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.parsing.policy import POLICY_FORMS, parse_table_policy
from blowfish_fast.apps.cli.parsing.workload import parse_tables
from blowfish_fast.apps.cli.printing import remark, show, show_pairs
from blowfish_fast.apps.cli.release_job import (
    charge_and_release,
    check_ledger,
    open_data,
    preview_charge,
    remaining_budget,
)
from blowfish_fast.apps.cli.release_plan import Facts, parse_treatments
from blowfish_fast.data.records import Rule, domain_with_rules
from blowfish_fast.errors import InputError, ReleaseFileError
from blowfish_fast.mechanisms.contingency import Contingency
from blowfish_fast.policies import Policy
from blowfish_fast.release.guarantee import Guarantee
from blowfish_fast.release.tables.accuracy import TableErrors
from blowfish_fast.release.tables.tables_release import TablesRelease

FOLDER = "tables"
"""Where the tables are written, if nothing else is said."""


class TablesOf:
    """A source whose tables are counted in place of all its cells."""

    people: People | None = None

    def __init__(self, source: Source, tables: TableAxes) -> None:
        self.source, self.measured = source, tables
        self.description = source.description

    def check(self, domain: Any) -> None:
        """Refuse what cannot be counted, by its schema alone."""
        self.source.check(domain)

    def histogram(self, domain: Any, rules: list[Rule], done: Part) -> Any:
        """Count the tables."""
        return self.source.tables(domain, self.measured, rules, done)

    def tables(
        self, domain: Any, tables: TableAxes, rules: list[Rule], done: Part
    ) -> Any:
        """Count other tables."""
        return self.source.tables(domain, tables, rules, done)


def release_tables(
    job: Job, seed: int | None, *, overwrite: bool, dry_run: bool, as_json: bool
) -> None:
    """Release all tables of a job, or say what that would mean."""
    if job.person is not None:
        raise InputError(
            "tables of all columns are released about single records; leave --person "
            "out, or ask for cells, ranges or marginals of one domain"
        )
    facts = _read_facts(job)
    source = open_data(job, facts)
    outputs = _check_outputs(job, overwrite=overwrite)
    check_ledger(job, seed)
    asked: Any = facts.workload
    mechanism = Contingency(facts.policy, asked, epsilon=job.epsilon)
    plan = mechanism.plan(job.records)
    report = {
        "mechanism": mechanism.name,
        "data": source.description,
        "promise": str(
            Guarantee.of(
                mechanism.policy,
                mechanism.budget,
                secure=seed is None,
                notes=mechanism._notes(),
            )
        ),
        "epsilon": str(mechanism.epsilon),
        "tables": len(plan.tables),
        "measured": len(plan.measured),
        "plan": plan.kind,
        "expected_error": plan.rms,
        "errors": plan.by_ways().to_dict(),
        "private": seed is None,
        "ledger": preview_charge(job, facts, mechanism),
        "dry_run": dry_run,
        "files": {kind: str(path) for kind, path in outputs.items()},
    }
    if not dry_run:
        counted = TablesOf(source, mechanism.measured_tables)
        made, request = charge_and_release(job, facts, counted, mechanism, seed)
        assert isinstance(made, TablesRelease)
        _write(made, outputs)
        report |= {"request": request, "remaining": remaining_budget(job)}
    if as_json:
        show(report)
    else:
        _show(report, plan)


def _read_facts(job: Job) -> Facts:
    if not job.domain:
        raise InputError(
            "state the columns and their cells: --domain age=0:101:1, or [domain] in "
            "a job file"
        )
    if job.epsilon is None:
        raise InputError("state what may be spent on all tables together: --epsilon 1")
    outside, missing = parse_treatments(job.outside), parse_treatments(job.missing)
    domain, rules = domain_with_rules(parse_table(job.domain), outside, missing)
    policy = _policy(job, domain)
    workload = parse_tables(job.workload or "", domain)
    wide: Any = domain
    return Facts(wide, rules, policy, workload, policy)


def _policy(job: Job, domain: Any) -> Policy:
    if job.policy is not None:
        return parse_table_policy(job.policy, domain)
    if job.ledger is None or not Path(job.ledger).exists():
        raise InputError(
            "state the policy, which has no default: it says what must stay "
            f"indistinguishable. --policy takes {POLICY_FORMS}"
        )
    with Ledger(job.ledger) as ledger:
        policy = ledger.policy
    if policy.domain.attributes != domain.attributes:
        raise InputError(
            f"the ledger {job.ledger} is about {policy.domain!r}; state the same "
            f"columns and cells, or --policy; received {domain!r}"
        )
    return policy


def _check_outputs(job: Job, *, overwrite: bool) -> dict[str, Path]:
    """Return where things are written; refuse what is there, or cannot be written."""
    outputs = {"release": Path(job.release or RELEASE)}
    outputs["tables"] = Path(job.table or FOLDER)
    if job.picture is not None:
        outputs["picture"] = Path(job.picture)
        check_picture(outputs["picture"])
    suffix = outputs["tables"].suffix.lower()
    if suffix not in ("", ".xlsx"):
        raise InputError(
            "tables are written to a folder, or to one .xlsx; received --table "
            f"{outputs['tables']}"
        )
    for path in outputs.values():
        if path.exists() and not overwrite:
            raise ReleaseFileError(
                f"{path} is there already; name another, or pass --overwrite. Nothing "
                "was read or charged"
            )
        if not path.absolute().parent.is_dir():
            raise InputError(f"there is no folder {path.parent} to write {path} to")
    return outputs


def _write(made: TablesRelease, outputs: dict[str, Path]) -> None:
    made.save(outputs["release"])
    tables = outputs["tables"]
    if tables.suffix.lower() != ".xlsx" and tables.is_dir():
        shutil.rmtree(tables)
    made.save_tables(tables, fitted=True)
    if "picture" in outputs:
        from blowfish_fast.plotting.error_maps import table_errors

        write_picture(lambda: table_errors(made.errors()), outputs["picture"])


def _show(report: dict[str, Any], plan: TableErrors) -> None:
    if report["dry_run"]:
        title = "Dry run: nothing was read, charged or written"
    else:
        title = "Released" if report["private"] else "Released (an experiment: seeded)"
    book = report["ledger"]
    paid = "" if book is None else f", of {book['before']:g} in {book['file']}"
    pairs = [
        ("data", report["data"]),
        ("promise", report["promise"]),
        ("spends", f"eps = {float(plan_epsilon(report)):g}{paid}"),
        *((kind, path) for kind, path in report["files"].items()),
    ]
    show_pairs(title, pairs)
    show(f"\n{plan}")
    if plan.records is None:
        remark(
            "State a rough number of records, --records, to see mean counts beside "
            "the errors."
        )


def plan_epsilon(report: dict[str, Any]) -> float:
    """Return what a report says is spent, as a number.

    Examples
    --------
    >>> plan_epsilon({"epsilon": "1/2"})
    0.5
    """
    over, _, under = str(report["epsilon"]).partition("/")
    return int(over) / int(under or "1")

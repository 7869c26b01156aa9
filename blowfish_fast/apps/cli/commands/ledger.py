"""``blowfish ledger``: make a budget, see what is left, and check its chain."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import blowfish_fast as bf
from blowfish_fast.apps.cli.exit_codes import FOUND
from blowfish_fast.apps.cli.options import (
    POLICY,
    Json,
    Overwrite,
    Picture,
    Treatment,
    option,
    with_options,
)
from blowfish_fast.apps.cli.printing import (
    plural,
    remark,
    show,
    show_pairs,
    show_table,
)
from blowfish_fast.apps.description.shipped import key_text
from blowfish_fast.errors import InputError, LedgerError

if TYPE_CHECKING:
    from blowfish_fast.accounting.holes import Concern
    from blowfish_fast.accounting.statements import Entry

ledger = typer.Typer(
    help="Open a budget, see what is left, and check its chain.",
    no_args_is_help=True,
    add_completion=False,
)

OptionalCells = Annotated[
    list[str] | None,
    typer.Option(
        "--cells",
        "--domain",
        metavar="CELLS",
        help="All columns: 4096, 64x64, age=0:101:1, sex=categories:f,m, ...; repeated "
        "for each column.",
    ),
]
OptionalPolicy = Annotated[str | None, typer.Option("--policy", **POLICY)]
MOST_COLUMNS = 30
"""Columns whose cells `status` lists on a terminal."""

LedgerFile = Annotated[
    Path,
    typer.Argument(metavar="LEDGER", help="The file of the ledger."),
]


@dataclass(frozen=True)
class Stated:
    """What may be spent, as `Budget.stated` takes it."""

    epsilon: str | None = option("NUMBER", key_text("StatedBudget", "epsilon"))
    rho: str | None = option("NUMBER", key_text("StatedBudget", "rho"))
    delta: str | None = option("NUMBER", key_text("StatedBudget", "delta"))


@dataclass(frozen=True)
class NewLedger(Stated):
    """What may be spent from a new ledger, and who may open it later."""

    auditor: Path | None = option(
        "PUBLIC", "Public key of whoever may check the noise of later answers."
    )


@ledger.command()
@with_options
def create(
    path: LedgerFile,
    terms: NewLedger,
    cells: OptionalCells = None,
    policy: OptionalPolicy = None,
    missing: Treatment = None,
    outside: Treatment = None,
    description: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="JSON: the table as `serve --tables` takes it, in place of --domain "
            "and --policy.",
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which table of the description."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a ledger: a budget for one body of data under one policy.

    State all columns that will ever be released: each release takes some of them.
    """
    if path.exists():
        raise LedgerError(
            f"{path} exists already, and a ledger is never overwritten; "
            "`blowfish ledger status` shows what it holds"
        )
    from blowfish_fast.apps.cli.parsing.job import Job

    job = Job(
        description=None if description is None else str(description),
        data_table=table,
        domain=cells,
        policy=policy,
        missing=missing,
        outside=outside,
    )
    if description is None and (not cells or policy is None or table is not None):
        raise InputError(
            "a ledger is made for stated columns under a stated policy",
            way_out="Give --domain for every column and --policy, or --description "
            "FILE, and --table NAME where it describes several",
        )
    if description is not None and (cells or policy is not None):
        raise InputError(
            "the description states columns and policy",
            received="--domain or --policy beside --description",
            way_out="Leave one of the two out",
        )
    stated = _policy_of_table(job.with_description())
    bf.Ledger(path, **vars(terms), policy=stated).close()
    _show_status(path, as_json=as_json)


def _policy_of_table(job: Any, beside: Any = None) -> Any:
    """Return the policy of all columns that a job states, and of its persons.

    Columns that there are already, `beside`, come first.
    """
    from blowfish_fast.apps.cli.parsing.domain import parse_table
    from blowfish_fast.apps.cli.parsing.policy import parse_table_policy
    from blowfish_fast.apps.cli.release_job import parse_treatments
    from blowfish_fast.data.domain import narrow
    from blowfish_fast.data.records import domain_with_rules

    columns = parse_table(job.domain)
    table, _ = domain_with_rules(
        columns,
        parse_treatments(job.outside, columns),
        parse_treatments(job.missing, columns),
    )
    if beside is not None:
        table = narrow(bf.WideDomain.product(beside, table))
    policy = parse_table_policy(job.policy, table)
    if job.person is None:
        return policy
    return policy.per_person(job.at_most, person=job.person)


@ledger.command()
@with_options
def allot(
    path: LedgerFile,
    analyst: Annotated[str, typer.Argument(metavar="ANALYST", help="Their name.")],
    budget: Stated,
    as_json: Json = False,
) -> None:
    """Set what an analyst may spend of the budget in all, in its currency."""
    with open_ledger(path) as book:
        book.allot(analyst, _stated_for(book, path, budget).amount)
    _show_status(path, as_json=as_json)


@ledger.command(name="raise")
@with_options
def raise_budget(
    path: LedgerFile,
    budget: Stated,
    why: Annotated[
        str, typer.Option(metavar="TEXT", help="The reason; the ledger keeps it.")
    ],
    by: Annotated[
        str, typer.Option(metavar="NAME", help="Who decided; the ledger keeps it.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Raise the whole budget, at any time; the ledger notes when, why and by whom.

    Everything that is released together is then private for the new budget only.
    """
    with open_ledger(path) as book:
        book.raise_budget(_stated_for(book, path, budget).amount, why=why, by=by)
    _show_status(path, as_json=as_json)


@ledger.command()
@with_options
def amend(
    path: LedgerFile,
    budget: Stated,
    cells: Annotated[
        list[str] | None,
        typer.Option(
            "--cells",
            "--domain",
            metavar="CELLS",
            help="All columns anew, as `create` takes them; repeated for each.",
        ),
    ] = None,
    added: Annotated[
        list[str] | None,
        typer.Option(
            "--add",
            metavar="CELLS",
            help="A column beside those that there are; repeated for each.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY", help="The policy anew; with --domain it has to be said."
        ),
    ] = None,
    missing: Treatment = None,
    outside: Treatment = None,
    why: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="After a charge: the reason; the ledger keeps it."
        ),
    ] = "",
    by: Annotated[
        str, typer.Option(metavar="NAME", help="Who decided; the ledger keeps it.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Change budget, columns, cells or policy of a ledger.

    After the first charge columns can be added, with --why; those of which nothing was
    released can be corrected. All others keep their cells and the policy: releases
    under others would add up to nothing that is proved. `raise` raises the budget.
    """
    from blowfish_fast.apps.cli.parsing.policy import parse_table_policy

    with open_ledger(path) as book:
        changes: dict[str, Any] = {}
        if any(stated is not None for stated in vars(budget).values()):
            _stated_for(book, path, budget)
            changes |= vars(budget)
        if cells or added or missing or outside:
            if not (cells or added) or (cells and added) or policy is None:
                raise InputError(
                    "other cells need the policy said again, which is stated over them",
                    way_out="Give --domain for every column, or --add for those that "
                    "come, and --policy",
                )
            from blowfish_fast.apps.cli.parsing.job import Job

            columns = cells or added
            stated = Job(
                domain=columns, policy=policy, missing=missing, outside=outside
            )
            beside = book.policy.domain if added else None
            one_record = _policy_of_table(stated, beside)
            changes["policy"] = _for_the_same_people(one_record, book)
        elif policy is not None:
            one_record = parse_table_policy(policy, book.policy.domain)
            changes["policy"] = _for_the_same_people(one_record, book)
        if not changes:
            raise InputError(
                "nothing is to be changed",
                way_out="Give --epsilon or --rho, --policy, or --domain with --policy",
            )
        if book.frozen and [*changes] == ["policy"]:
            book.add_columns(**changes, why=why, by=by)
        else:
            book.amend(**changes)
    _show_status(path, as_json=as_json)


def _for_the_same_people(policy: Any, book: bf.Ledger) -> Any:
    """Return a policy that protects persons with all records where the ledger does."""
    agreed = book.policy
    if not isinstance(agreed, bf.policies.PerPerson):
        return policy
    return policy.per_person(agreed.at_most, person=agreed.person, count=agreed.count)


def _stated_for(book: bf.Ledger, path: Path, budget: Stated) -> Any:
    """Return the budget that was typed; refuse one in another currency."""
    from blowfish_fast.measure.budgets import Budget

    stated = Budget.stated(**vars(budget))
    if stated.power != book.currency.power:
        raise LedgerError(
            f"{path} counts {book.currency.name}; received {stated.words()}. State "
            f"--{book.currency.name}"
        )
    return stated


@ledger.command()
def status(path: LedgerFile, as_json: Json = False) -> None:
    """Print what was spent, what remains, and each analyst's part."""
    _show_status(path, as_json=as_json)


@ledger.command()
def history(
    path: LedgerFile,
    picture: Picture = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Print every charge and every change of terms or budget; draw the budget."""
    from blowfish_fast.apps.cli.files.outputs import check_file, write_picture

    check_file("picture", picture, overwrite=overwrite)
    with open_ledger(path) as book:
        entries, decisions = book.history(), book.decisions()
        if picture is not None:
            write_picture(lambda: bf.plotting.budget_over_time(book), picture)
    if as_json:
        drawn = {} if picture is None else {"picture": str(picture)}
        charges = [
            entry.to_dict() | {entry.budget.currency: float(entry.budget)}
            for entry in entries
        ]
        show({"charges": charges, "decisions": decisions, **drawn})
        return
    if entries:
        _show_charges(entries)
    else:
        show("nothing was charged yet")
    if decisions:
        _show_decisions(decisions)
    if picture is not None:
        remark(f"written: {picture}")


@ledger.command()
def verify(
    path: LedgerFile,
    head: Annotated[
        str | None,
        typer.Option(help="A head noted earlier; it must still be in the chain."),
    ] = None,
    holes: Annotated[
        bool,
        typer.Option(
            "--holes",
            help="Also name the entries that a hole, mended since, may have touched.",
        ),
    ] = False,
    opened: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The recipient's file, LEDGER.keys: check that noise was drawn as "
            "the ledger says.",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="PRIVATE", help="With --opened: the private key."),
    ] = None,
    job: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="With --opened: the job file of a release. It is drawn again from its "
            "data, and every number is compared; repeated for each.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATABASE",
            help="With --opened, for the ledger of a table that was served: its "
            "records. Every answer is drawn again.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check chain, sums and answers; code 1: something does not fit."""
    from blowfish_fast.accounting.holes import find_concerns

    if (opened is None) != (key is None):
        raise InputError("--opened FILE and --key PRIVATE go together")
    if opened is None and (job or data is not None):
        raise InputError("--job and --data go with --opened FILE and --key PRIVATE")
    concerns = []
    try:
        with open_ledger(path) as book:
            report: dict[str, Any] = {
                "intact": True,
                "head": book.verify(head),
                book.currency.name: float(book.budget),
                "spent": float(book.spent),
                "charges": len(book.history()),
            }
            answers = []
            if opened is not None and key is not None:
                asked = _questions(book, job or [], data)
                answers = bf.accounting.verify_opened(book, opened, key, asked)
            short = book.currency.short
            of = f"{float(book.spent):g} of {float(book.budget):g} spent"
            if holes:
                concerns = find_concerns(book)
                report["holes"] = [concern._asdict() for concern in concerns]
    except LedgerError as problem:
        show({"intact": False, "problem": str(problem)} if as_json else str(problem))
        raise typer.Exit(FOUND) from None
    fits = all(check.passed for check in answers)
    if as_json:
        if opened is not None:
            report["opened"] = [check._asdict() for check in answers]
        show(report)
    else:
        show(f"intact: {plural(report['charges'], 'charge')}, {short} = {of}")
        show(f"head {report['head']}")
        if holes:
            _show_concerns(concerns)
        for check in answers:
            verdict = (
                "; ".join(check.problems) or f"as promised, by its {check.checked}"
            )
            show(f"{check.request} ({check.mechanism}): {verdict}")
        if opened is not None:
            show(f"opened: {plural(len(answers), 'answer')}")
    if concerns or not fits:
        raise typer.Exit(FOUND)


def _questions(
    book: bf.Ledger, jobs: list[Path], database: str | None
) -> dict[str, Any]:
    """Return what is drawn again, by its request."""
    from blowfish_fast.apps.cli import opened_questions

    questions: dict[str, Any] = {}
    if database is not None:
        questions |= opened_questions.questions_of_tables(book, database)
    for path in jobs:
        questions |= opened_questions.questions_of_job(book, path)
    return questions


def _show_concerns(concerns: list[Concern]) -> None:
    if concerns:
        rows = [[str(text) for text in concern] for concern in concerns]
        show_table(["number", "request", "hole", "what it may have told"], rows)
    else:
        show("no entry was made while the holes were open")
    remark("a restore that died leaves no trace here: compare the head noted last")


@ledger.command()
def keys(
    private: Annotated[
        Path, typer.Argument(metavar="PRIVATE", help="New file; the recipient's own.")
    ],
    public: Annotated[
        Path, typer.Argument(metavar="PUBLIC", help="New file, for the curator.")
    ],
    as_json: Json = False,
) -> None:
    """Make the keys of a recipient, who may check the noise of a ledger later."""
    bf.accounting.make_recipient_keys(private, public)
    if as_json:
        show({"private": str(private), "public": str(public)})
    else:
        show(f"{private} stays with the recipient; {public} goes to the curator")


def open_ledger(path: Path) -> bf.Ledger:
    """Open a ledger; refuse to make one, which takes a budget and a policy."""
    if not path.exists():
        raise LedgerError(
            f"there is no ledger at {path}; `blowfish ledger create` makes one"
        )
    return bf.Ledger(path)


def _show_status(path: Path, *, as_json: bool) -> None:
    with open_ledger(path) as book:
        shares, currency = book.allotments(), book.currency
        facts: dict[str, Any] = {
            "ledger": str(path),
            currency.name: float(book.budget),
            "spent": float(book.spent),
            "remaining": float(book.remaining),
            "charges": len(book.history()),
            "frozen": book.frozen,
            "allotments": {
                analyst: {
                    currency.name: float(share.granted),
                    "spent": float(share.spent),
                    "remaining": float(share.remaining),
                }
                for analyst, share in shares.items()
            },
            "domain": repr(book.policy.domain),
            "cells": {
                name: attribute.describe()
                for name, attribute in zip(
                    book.policy.domain.column_names,
                    book.policy.domain.attributes,
                    strict=True,
                )
            },
            "promise": book.policy.describe(currency),
            "policy": book.policy.to_dict(),
            "about": book.about,
            "auditor": book.auditor,
        }
    if as_json:
        show(facts)
        return
    frozen = (
        "fixed, since something was charged; `amend` adds columns, `raise` budget"
        if facts["frozen"]
        else "may change"
    )
    show_pairs(
        str(path),
        [
            ("budget", f"{currency.short} = {facts[currency.name]:g}"),
            ("spent", f"{facts['spent']:g}, in {plural(facts['charges'], 'charge')}"),
            ("remaining", f"{facts['remaining']:g}"),
            ("domain", facts["domain"]),
            ("policy", facts["promise"]),
            ("terms", f"policy and budget: {frozen}"),
            *([] if facts["auditor"] is None else [("auditor", facts["auditor"])]),
        ],
    )
    listed = list(facts["cells"].items())
    show_table(["column", "cells"], [list(row) for row in listed[:MOST_COLUMNS]])
    if len(listed) > MOST_COLUMNS:
        show(f"and {len(listed) - MOST_COLUMNS:,} more columns, with --json")
    if shares:
        rows = [
            [
                name,
                *(
                    f"{float(x):g}"
                    for x in (share.granted, share.spent, share.remaining)
                ),
            ]
            for name, share in shares.items()
        ]
        show_table(["analyst", "may spend", "spent", "remaining"], rows)


def _show_decisions(decisions: list[dict[str, Any]]) -> None:
    rows = [
        [
            str(decision["number"]),
            str(decision["time"])[:16].replace("T", " "),
            *(decision[part] for part in ("changed", "why", "by")),
        ]
        for decision in decisions
    ]
    show_table(["number", "time (UTC)", "changed", "why", "by"], rows)


def _show_charges(entries: list[Entry]) -> None:
    columns: dict[str, list[str]] = {
        "number": [str(entry.number) for entry in entries],
        "time (UTC)": [
            f"{entry.time.astimezone(UTC):%Y-%m-%d %H:%M}" for entry in entries
        ],
        "analyst": [entry.analyst or "" for entry in entries],
        "mechanism": [entry.mechanism for entry in entries],
        entries[0].budget.currency: [f"{float(entry.budget):g}" for entry in entries],
        "state": [entry.state for entry in entries],
        "request": [entry.request for entry in entries],
    }
    if not any(columns["analyst"]):
        del columns["analyst"]
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    show_table([*columns], rows)

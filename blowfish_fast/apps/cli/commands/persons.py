"""``blowfish persons``: how many records of a person to count, and what that loses.

The job is that of the release: its data, its column of persons, its policy and its
ledger, which pays here too, before anything is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from blowfish_fast.apps.cli.commands.release import cost_sentence, ledger_reminder
from blowfish_fast.apps.cli.options import (
    PRIVACY,
    DryRun,
    JobFile,
    Json,
    Seed,
    with_options,
)
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.printing import remark, show, spinner
from blowfish_fast.errors import InputError

persons = typer.Typer(
    help="Choose how many records of a person to count; estimate what that loses.",
    no_args_is_help=True,
    add_completion=False,
)
Price = Annotated[
    str,
    typer.Option(
        metavar="NUMBER",
        help="What the answer may cost, in epsilon, beside the release.",
        rich_help_panel=PRIVACY,
    ),
]


@persons.command()
@with_options
def choose(
    typed: Job,
    price: Price,
    job_file: JobFile = None,
    seed: Seed = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Choose privately how many records of a person the release will count.

    Example: blowfish persons choose visits.toml --price 0.05
    """
    from blowfish_fast.accounting.contributions import choose_at_most

    job = Job.stated(job_file, typed)
    if job.epsilon is None:
        raise InputError(
            "the choice is weighed against the noise of the release that follows; "
            "state what that may cost, --epsilon"
        )

    def ask(held: Any, *, facts: Any, **paid: Any) -> list[dict[str, Any]]:
        # Tables are released by their own cells, others by those of the domain.
        cells = min(facts.domain.size, facts.workload.queries)
        terms: Any = {"cells": cells, "epsilon": price, "then": job.epsilon}
        found = choose_at_most(held, **terms, **paid)
        told = {"at_most": int(found), "epsilon": found.epsilon}
        return [told | {"sentence": f"{found.sentence}. State --at-most {found}"}]

    _ask(job, ask, "at_most", price, seed, dry_run=dry_run, as_json=as_json)


@persons.command()
@with_options
def lost(
    typed: Job,
    price: Price,
    up_to: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            help="Records after a person's so many are left out; it sets the noise.",
        ),
    ],
    also: Annotated[
        list[int] | None,
        typer.Option(
            metavar="NUMBER",
            help="What another --at-most would lose, at the same price; repeated for "
            "each.",
        ),
    ] = None,
    job_file: JobFile = None,
    seed: Seed = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Estimate how many records are lost by counting --at-most so many of a person.

    Example: blowfish persons lost visits.toml --price 0.2 --up-to 10 --also 5
    """
    from blowfish_fast.accounting.contributions import truncation_loss

    job = Job.stated(job_file, typed)
    kept = [one for one in (job.at_most, *(also or ())) if one is not None]
    terms: Any = {"at_most": kept, "up_to": up_to, "epsilon": price}

    def ask(held: Any, *, facts: Any, **paid: Any) -> list[dict[str, Any]]:
        sure = job.confidence or 0.95
        found = truncation_loss(held, confidence=sure, **terms, **paid)
        return [one._asdict() | {"sentence": one.sentence} for one in found]

    _ask(job, ask, "lost", price, seed, dry_run=dry_run, as_json=as_json)


def _ask(
    job: Job,
    ask: Callable[..., list[dict[str, Any]]],
    name: str,
    price: str,
    seed: int | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Ask about nobody first, which refuses what is wrong; then pay, and ask."""
    from blowfish_fast.apps.cli import release_job

    if job.person is None or job.count == "persons":
        raise InputError(
            "state whose records they are, --person; where each person counts once, "
            "--count persons, no more noise comes with more records, and none are lost"
        )
    workload, kept = job.workload or "identity", job.at_most or 1
    job = job.overridden(Job(workload=workload, at_most=kept, epsilon=price))
    facts = release_job.read_facts(job)
    source = release_job.open_data(job, facts)
    release_job.check_ledger(job, seed)
    request = None if job.request is None else f"{job.request}, {name}"
    asked = partial(ask, facts=facts, policy=facts.ledger_policy, rng=seed)
    free = asked([])[0]["epsilon"] == 0
    report: dict[str, Any] = {
        "epsilon": "0" if free else price,
        "answers": [],
        "private": seed is None,
        "request": request,
        "ledger": release_job.preview_question(job, facts, asked, request),
        "dry_run": dry_run,
    }
    if not dry_run:
        with spinner("counting persons"), release_job.payer(job, facts) as ledger:
            held = source.held(facts.counting, lambda part: None)
            report["answers"] = asked(held, ledger=ledger, request=request)
    if as_json:
        show(report)
        return
    for one in report["answers"]:
        show(f"{one['sentence'][0].upper()}{one['sentence'][1:]}.")
    if dry_run:
        show("Dry run: nothing was read, charged or written.")
    if free:
        show("Free: how many records a person has is no secret of the policy.")
        return
    show(f"{'Would spend' if dry_run else 'Spent'}: {cost_sentence(report)}.")
    if report["ledger"] is None:
        remark(ledger_reminder(report))

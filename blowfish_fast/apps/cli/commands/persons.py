"""``blowfish persons``: how many records of a person to count, or what that loses.

The job is that of the release: its data, its column of persons, its policy and its
ledger, which pays here too, before anything is drawn.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from blowfish_fast.apps.cli.commands.release import cost_sentence, ledger_reminder
from blowfish_fast.apps.cli.options import (
    DEFAULT_WORKLOAD,
    DryRun,
    JobFile,
    Json,
    Seed,
    with_options,
)
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.printing import remark, show, spinner
from blowfish_fast.errors import InputError


@with_options
def run_persons(
    typed: Job,
    price: Annotated[
        str,
        typer.Option(
            metavar="NUMBER", help="What the answer may cost: in rho beside --rho."
        ),
    ],
    job_file: JobFile = None,
    up_to: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Say how many of a person's first so many records --at-most loses.",
        ),
    ] = None,
    also: Annotated[
        list[int] | None,
        typer.Option(
            metavar="NUMBER", help="And another --at-most, at the same price; repeated."
        ),
    ] = None,
    seed: Seed = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Choose how many records of a person to count; with --up-to, say what that loses.

    Example: blowfish persons visits.toml --price 0.05
    """
    from blowfish_fast.accounting import contributions
    from blowfish_fast.apps.cli import release_job
    from blowfish_fast.measure.budgets import Budget

    job = Job.stated(job_file, typed)
    name = "epsilon" if job.rho is None else "rho"
    then = getattr(job, name)
    if job.person is None or job.count == "persons":
        raise InputError(
            "state whose records they are, --person; where each person counts once, "
            "--count persons, no more noise comes with more records, and none are lost"
        )
    if then is None and up_to is None:
        raise InputError(
            "the choice is weighed against the noise of the release that follows; "
            "state what that may cost, --epsilon or --rho"
        )
    bounds = [job.at_most or 1, *(also or ())]
    priced: Any = {name: price, "delta": job.delta}
    spent = Budget.stated(**priced)
    paid = Job(workload=job.workload or DEFAULT_WORKLOAD, at_most=bounds[0], **priced)
    job = job.overridden(paid)
    facts = release_job.read_facts(job)
    source = release_job.open_data(job, facts)
    release_job.check_ledger(job, seed)
    # Tables are released by their own cells, others by those of the domain.
    cells = min(facts.domain.size, facts.workload.queries)

    def ask(held: Any, **payer: Any) -> list[dict[str, Any]]:
        terms: dict[str, Any] = {"policy": facts.ledger_policy, "rng": seed}
        terms |= priced | payer
        if up_to is not None:
            terms |= {"at_most": bounds, "confidence": job.confidence or 0.95}
            lost = contributions.truncation_loss(held, up_to=up_to, **terms)
            rows = [answer._asdict() | {"sentence": answer.sentence} for answer in lost]
        else:
            k = contributions.choose_at_most(held, cells=cells, then=then, **terms)
            use = f"{k.sentence}. State --at-most {k}"
            rows = [{"at_most": int(k), "budget": k.budget, "sentence": use}]
        return [row | {spent.currency: row.pop("budget").amount} for row in rows]

    # Asked about nobody first, which refuses what is wrong.
    free = ask([])[0][spent.currency] == 0
    asked = "at_most" if up_to is None else "lost"
    request = None if job.request is None else f"{job.request}, {asked}"
    report: dict[str, Any] = {
        spent.currency: "0" if free else str(spent.amount),
        "answers": [],
        "private": seed is None,
        "request": request,
        "ledger": release_job.preview_question(job, facts, ask, request),
        "dry_run": dry_run,
    }
    if not dry_run:
        with spinner("counting persons"), release_job.payer(job, facts) as ledger:
            held = source.held(facts.counting, lambda part: None)
            report["answers"] = ask(held, ledger=ledger, request=request)
    if as_json:
        show(report)
        return
    for answer in report["answers"]:
        show(f"{answer['sentence'][0].upper()}{answer['sentence'][1:]}.")
    if dry_run:
        show("Dry run: nothing was read, charged or written.")
    if free:
        show("Free: how many records a person has is no secret of the policy.")
        return
    show(f"{'Would spend' if dry_run else 'Spent'}: {cost_sentence(report)}.")
    if report["ledger"] is None:
        remark(ledger_reminder(report))

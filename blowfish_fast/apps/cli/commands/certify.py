"""``blowfish certify``: how far the answers of a saved release are off, for a price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from blowfish_fast.apps.cli.options import (
    PRIVACY,
    DryRun,
    JobFile,
    Json,
    Question,
    ReleaseFile,
    Seed,
    Selected,
    with_options,
)
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.printing import remark, show, show_pairs, spinner
from blowfish_fast.errors import InputError

if TYPE_CHECKING:
    from blowfish_fast.apps.cli.release_job import Facts
    from blowfish_fast.mechanisms.certifier import Certifier
    from blowfish_fast.release.file import Release
    from blowfish_fast.workloads import Workload


@with_options
def run_certify(
    path: ReleaseFile,
    asked: Selected,
    typed: Job,
    job_file: JobFile = None,
    fraction: Annotated[
        str,
        typer.Option(metavar="PART", help="Of the answers.", rich_help_panel=PRIVACY),
    ] = "0.95",
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="quantile, curve, all or shape; by default the narrowest.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    seed: Seed = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Find out how far a release is off the truth, for a little more budget.

    The queries of --workload, or answers that `blowfish answer` gives in these words.

    Example: blowfish certify ages.blowfish ages.toml --epsilon 0.01 --mean age
    """
    import blowfish_fast as bf
    from blowfish_fast.apps.cli import release_job
    from blowfish_fast.mechanisms.certifier import Certifier

    job = Job.stated(job_file, typed)
    if job.budget is None:
        raise InputError("state what the certificate may cost: --epsilon or --rho")
    if job.data is None and not dry_run:
        raise InputError("state the data that the release was drawn from: --data FILE")
    release = bf.HistogramRelease.load(path)
    answers = _answers(job, release, asked)
    release_job.check_ledger(job, seed)
    terms: Any = {
        "epsilon": job.budget,
        "fraction": fraction,
        "confidence": str(job.confidence or 0.95),
        "kind": kind,
    }
    certifier = Certifier(release, answers, **terms)
    facts = _facts(job, release, certifier.workload)
    report: dict[str, Any] = {
        "release": str(path),
        "kind": certifier.kind,
        "queries": facts.workload.queries,
        "predicted_width": certifier.predicted_width,
        **job.budget.to_dict(),
        "dry_run": dry_run,
    }
    if dry_run:
        show(report) if as_json else _show_prediction(certifier)
        return
    source = release_job.open_data(job, facts)
    data = release_job.count_records(job, facts, source)
    with spinner("certifying"), release_job.payer(job, facts) as ledger:
        certificate: Any = (
            certifier.release(data, seed)
            if ledger is None
            else ledger.certify(release, data, answers, job.request, **terms)
        )
    release.certified(certificate).save(path)
    report |= {
        "claim": str(certificate),
        "extra": certificate.extra,
        "private": certificate.private,
    }
    if as_json:
        show(report)
        return
    show(str(certificate))
    remark(f"written into {path}: blowfish answer says it of these queries")


def _answers(job: Job, release: Release, asked: Selected) -> Any:
    """Return the answers that are asked for, else the workload of the job."""
    from blowfish_fast.apps.cli.parsing.workload import parse_workload
    from blowfish_fast.apps.cli.release_questions import answer_question

    question = Question(**vars(asked))
    if question.in_population:
        raise InputError(
            "a certificate says how far answers are off these records, not off the "
            "population",
            received="--of population",
            way_out="Leave it out",
        )
    if question.anything:
        workloads = answer_question(release, question).asked
        if len(workloads) > 1:
            raise InputError("a certificate is about one measure at a time")
        return workloads[0]
    if job.workload is None:
        raise InputError("state whose answers are checked: --workload identity, --by")
    return parse_workload(job.workload, release.domain)


def _facts(job: Job, release: Release, workload: Workload) -> Facts:
    from blowfish_fast.apps.cli.release_job import Facts, read_counting
    from blowfish_fast.policies import from_dict

    counting = read_counting(job, release.domain)
    if counting.domain != release.domain:
        raise InputError(
            "the release has no cells of their own for stray values; leave --missing "
            "and --outside as they were"
        )
    policy = from_dict(release.guarantee.to_dict()["policy"])
    return Facts(counting, policy, workload, policy)


def _show_prediction(certifier: Certifier) -> None:
    pairs = [
        ("kind", certifier.kind),
        ("answers", f"{certifier.workload.queries:,}"),
        ("would spend", certifier.budget.words()),
        ("predicted", f"+- {certifier.predicted_width:,.4g} records, and the bias"),
    ]
    show_pairs("Dry run: nothing was read, charged or written", pairs)

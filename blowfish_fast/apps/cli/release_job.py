"""A job is checked against its data and its ledger, charged, and released.

    public     columns fit -> ledger would pay
    private    data -> counts
    charged    ledger -> release

Whatever can be refused is refused before the data is read, and the rest before anything
is charged. With ``--series received:week:2026-W46`` one epoch of arrivals is released:
the column of arrivals is counted beside the others, inside the epoch or outside it, and
the ledger charges the dearest epoch of the series, once (`accounting.series`).
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from blowfish_fast._support.validation import as_share
from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.series import FORMS, Series, read_epoch
from blowfish_fast.accounting.statements import Entry, Preview
from blowfish_fast.data.csv_files import TextForm
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.persons import Bound, RecordKeys
from blowfish_fast.data.records import Rule
from blowfish_fast.errors import (
    BudgetError,
    CountsError,
    InputError,
    LedgerError,
    PolicyError,
)
from blowfish_fast.measure.budgets import Budget, stated_budget
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.certifier import MOST_LISTED, Certifier
from blowfish_fast.mechanisms.registry import check_vouched
from blowfish_fast.release.release import Release

from .files.data_source import open_source
from .files.record_files import DataSource, People, TableAxes
from .parsing.job import Job
from .printing import bar_counter, spinner, steps_bar
from .release_plan import Facts

PARTS = 100
"""Steps of the bar that shows how much of the data is read."""


class EpochWords(NamedTuple):
    """A column of arrivals, how long its epochs are, and one of them."""

    column: str
    every: str
    epoch: str


def parse_series(job: Job) -> EpochWords | None:
    """Read which epoch a job releases; None where it names none.

    Examples
    --------
    >>> parse_series(Job(series="received:week:2026-W46"))
    EpochWords(column='received', every='week', epoch='2026-W46')
    """
    if job.series is None:
        return None
    parts = job.series.rsplit(":", 2)
    if len(parts) != 3 or parts[1] not in FORMS or not parts[0]:
        raise InputError(
            "a series is stated as the column of arrivals, the length of an epoch and "
            f"an epoch, received:week:2026-W46; lengths are {', '.join(FORMS)}",
            received=repr(job.series),
        )
    words = EpochWords(*parts)
    read_epoch(words.every, words.epoch)
    if job.workload is not None and job.workload.startswith("tables"):
        raise InputError("a series releases one domain; ask for no tables:WAYS")
    return words


def with_arrivals(
    domain: Domain, rules: list[Rule], words: EpochWords
) -> tuple[Domain, list[Rule]]:
    """Return a domain with one more column: inside the epoch, or outside it."""
    when = read_epoch(words.every, words.epoch)
    cells = Domain.from_dates([when.start, when.stop], name=words.column)
    inside = cells.with_extra_cells(outside=True)
    return Domain.product(domain, inside), [*rules, Rule("cell", "refuse")]


def of_epoch(counted: Histogram, domain: Domain) -> Histogram:
    """Return what arrived in the epoch; records of a person were chosen before."""
    counts = np.ascontiguousarray(counted.counts[..., 0])
    return Histogram._own(domain, counts, counted.bound)


def open_series(ledger: Ledger, words: EpochWords) -> Series:
    """Return the series: persons lose the sum over epochs, records the dearest."""
    level = "event" if ledger.policy.person_rule is None else "person"
    return Series(ledger, column=words.column, every=words.every, level=level)


def open_data(job: Job, facts: Facts) -> DataSource:
    """Open the data that a job names; check its columns, and read no value."""
    source = open_source(
        job.data or "",
        table=job.data_table,
        count_column=job.count_column,
        named=any(facts.domain.names),
        form=TextForm(job.encoding, job.decimal, job.dates, tuple(job.blanks or ())),
    )
    if job.person is not None:
        source.people = People(
            RecordKeys(job.person, job.record),
            Bound.stated(job.at_most, job.count or "records", job.person),
        )
    words = parse_series(job)
    if words is None:
        source.check(facts.domain)
    else:
        source.check(with_arrivals(facts.domain, facts.rules, words)[0])
    return source


def check_ledger(job: Job, seed: int | None) -> None:
    """Refuse what a ledger would refuse by its terms alone."""
    if job.ledger is None:
        stated = (job.total, job.request, job.series)
        if any(one is not None for one in stated):
            raise InputError(
                "a budget, a request and a series belong to a ledger; name its file, "
                "--ledger"
            )
        return
    if job.total is not None:
        stated_budget(job.ledger_terms)
    path = Path(job.ledger)
    if seed is not None:
        raise InputError(
            f"a seed makes an experiment, which no ledger pays for; received --seed "
            f"{seed}. Leave --seed or --ledger out"
        )
    if not path.exists() and job.total is None:
        raise LedgerError(
            f"there is no ledger at {path}; make one with `blowfish ledger create`, or "
            "state its whole budget here: --budget 2, in a job file total = 2.0"
        )
    if not path.exists() and not path.parent.is_dir():
        raise LedgerError(
            f"there is no folder {path.parent} for the ledger; make it first"
        )


def _open_ledger(job: Job, facts: Facts) -> Ledger:
    """Open the ledger of a job; make it only where a budget was stated."""
    assert job.ledger is not None
    path = Path(job.ledger)
    if path.exists():
        return Ledger(path)
    return Ledger(path, policy=facts.ledger_policy, **job.ledger_terms)


def preview_charge(
    job: Job, facts: Facts, mechanism: Mechanism
) -> dict[str, Any] | None:
    """Return what the ledger would say; refuse what it would refuse."""
    if job.ledger is None:
        return None
    check_vouched([mechanism], vouched=bool(job.vouched))
    known = Path(job.ledger).exists()
    if known:
        ledger = Ledger(job.ledger)
    else:
        # In memory: a ledger of these terms, without a file.
        ledger = Ledger(None, policy=facts.ledger_policy, **job.ledger_terms)
    with ledger:
        _check_total(job, ledger)
        words = parse_series(job)
        if words is None:
            entry = None if job.request is None else ledger.entry(job.request)
            weighed = ledger.preview(mechanism)
        else:
            series = open_series(ledger, words)
            entry = ledger.entry(series.request(words.epoch, job.request))
            weighed = series.preview(words.epoch, mechanism)
        _check_request(entry, weighed)
        bought = certificate_budget(job, facts, mechanism)
        if bought is not None and entry is None:
            # Both are paid, or none: room for one alone is not enough.
            weighed = ledger.preview(mechanism.at(mechanism.budget + bought))
        if entry is not None and entry.state != "reserved":
            after = ledger.remaining
        elif entry is None and not weighed.accepted:
            if mechanism.policy.implies(ledger.policy):
                raise BudgetError(f"{weighed.reason}. Nothing was charged")
            raise PolicyError(
                f"{weighed.reason}; `blowfish ledger status {job.ledger}` shows its "
                "policy and columns: release some of these, with their cells or unions "
                "of them, and leave --policy out to take the ledger's. Nothing was "
                "charged"
            )
        else:
            after = weighed.after if entry is None else ledger.remaining
        return {
            "file": job.ledger,
            "new": not known,
            "total": float(ledger.budget),
            "currency": ledger.currency.name,
            "before": float(ledger.remaining),
            "after": float(after),
            "replayed": entry is not None and entry.state != "reserved",
        }


def _check_total(job: Job, ledger: Ledger) -> None:
    """Refuse a budget that is not the ledger's; a ledger is never enlarged."""
    if job.total is None:
        return
    with Ledger(None, policy=ledger.policy, **job.ledger_terms) as stated:
        if stated.budget == ledger.budget:
            return
    raise LedgerError(
        f"the ledger {job.ledger} has a budget of {ledger.budget.words()}; received "
        f"{job.total}. Leave --budget (in a job file, total) out, or state the same. "
        "Nothing was charged"
    )


def _check_request(entry: Entry | None, weighed: Preview) -> None:
    """Refuse a name that was given to another question, as far as the log shows."""
    if entry is None or (entry.note or {}).get("series") is not None:
        # Within a series costs depend on what was released before; the ledger looks.
        return
    if (entry.mechanism, entry.budget.amount) != (weighed.mechanism, weighed.cost):
        raise LedgerError(
            f"the request {entry.request!r} was made for another question "
            f"({entry.mechanism}, {weighed.currency.short} = "
            f"{float(entry.budget):g}), and this is {weighed.mechanism}, "
            f"{weighed.currency.short} = {float(weighed.cost):g}; choose another name, "
            "--request. Nothing was charged"
        )


def charge_and_release(
    job: Job, facts: Facts, source: DataSource, mechanism: Mechanism, seed: int | None
) -> tuple[Release, str | None]:
    """Count, charge, draw; return the release and the name under which it was paid."""
    words = parse_series(job)
    tables = getattr(mechanism, "measured_tables", None)
    data = count_records(source, facts, tables, words)
    bought = certificate_budget(job, facts, mechanism)
    if job.ledger is None:
        with spinner("releasing") as report:
            made = mechanism.release(data, seed, progress=report)
            if bought is not None:
                certifier = Certifier(
                    made, facts.workload, epsilon=bought, same_data=True
                )
                # Other noise than that of the release, also in experiments.
                again = None if seed is None else seed + 1
                made = made.certified(cast("Any", certifier.release(data, again)))
            return made, None
    request = job.request or f"release-{uuid.uuid4().hex[:12]}"
    with _open_ledger(job, facts) as ledger:
        series = None if words is None else open_series(ledger, words)
        if series is not None and words is not None:
            request = series.request(words.epoch, job.request)
        before = ledger.entry(request)
        vouched = bool(job.vouched)
        try:
            with spinner("releasing") as report:
                if series is not None and words is not None:
                    release = series.release(
                        words.epoch,
                        mechanism,
                        data,
                        request=job.request,
                        vouched=vouched,
                    )
                else:
                    release = ledger.release(
                        mechanism, data, request, progress=report, vouched=vouched
                    )
                if bought is not None:
                    about = f"{request}, certified"
                    found = ledger.certify(
                        release, data, facts.workload, about, epsilon=bought
                    )
                    release = release.certified(found)
        except BaseException as problem:
            # A name that was known and is refused belongs to another question.
            refused = before is not None and isinstance(problem, LedgerError)
            if ledger.entry(request) is not None and not refused:
                problem.add_note(
                    f"Run the same command with --request {request}: it continues "
                    "under the charge that was made."
                )
            raise
    return release, request


def certificate_budget(job: Job, facts: Facts, mechanism: Mechanism) -> Budget | None:
    """Return what the certificate may cost beside a release by `mechanism`."""
    if job.certify is None:
        return None
    if facts.workload.queries > MOST_LISTED:
        raise InputError(
            f"a certificate checks at most {MOST_LISTED:,} answers; state a workload "
            "of fewer, such as ranges:2000"
        )
    share = as_share(job.certify, "--certify")
    return mechanism.budget * (share / (1 - share))


def count_records(
    source: DataSource,
    facts: Facts,
    tables: TableAxes | None = None,
    words: EpochWords | None = None,
) -> Any:
    """Count every cell, of one epoch if one is named, or some tables of all columns."""
    with steps_bar() as bar:
        count = bar_counter(bar, "reading")
        count(0, PARTS, "")

        def done(part: float) -> None:
            count(int(PARTS * part), PARTS, "")

        try:
            if words is not None:
                seen, rules = with_arrivals(facts.domain, facts.rules, words)
                return of_epoch(source.histogram(seen, rules, done), facts.domain)
            if tables is None:
                return source.histogram(facts.domain, facts.rules, done)
            return source.tables(facts.domain, tables, facts.rules, done)
        except CountsError as problem:
            problem.add_note("Nothing was charged")
            raise


def remaining_budget(job: Job) -> float | None:
    """Return what remains in the ledger of a job, if it has one."""
    if job.ledger is None:
        return None
    with Ledger(job.ledger) as ledger:
        return float(ledger.remaining)

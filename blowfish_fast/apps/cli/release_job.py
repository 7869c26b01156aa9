"""A job is read as public facts, checked against its data and its ledger, and released.

Whatever can be refused is refused before the data is read, and the rest before anything
is charged. With ``--series received:week:2026-W46`` one epoch of arrivals is released,
and the ledger charges the dearest epoch of the series, once (`accounting.series`).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from blowfish_fast._support.plug_ins import check_vouched
from blowfish_fast._support.validation import as_share
from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.recipients import read_public_key
from blowfish_fast.accounting.request import as_label, say_version
from blowfish_fast.accounting.series.saved import SavedSeries
from blowfish_fast.accounting.statements import Entry, Preview
from blowfish_fast.data.csv_files import TextForm
from blowfish_fast.data.domain import WideDomain
from blowfish_fast.data.histogram import Counting, Histogram
from blowfish_fast.data.listed_items import read_item
from blowfish_fast.data.records import domain_with_rules, has_nearest
from blowfish_fast.errors import (
    BlowfishError,
    BudgetError,
    CountsError,
    FailedDrawError,
    InputError,
    LedgerError,
    PlugInError,
    PolicyError,
)
from blowfish_fast.measure.budgets import Budget, optional_budget
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.certifier import MOST_LISTED, Certifier
from blowfish_fast.policies import PerPerson, Policy
from blowfish_fast.release.file import Release
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.release.sampling import SamplingDesign
from blowfish_fast.workloads import Workload

from .files.data_source import holds_tables, open_source
from .files.record_files import DataSource, TableAxes
from .options import DEFAULT_WORKLOAD, POLICY_FORMS
from .parsing.domain import find_column, parse_table
from .parsing.job import Job
from .parsing.policy import (
    extend_policy,
    parse_policy,
    parse_table_policy,
    parse_wide_policy,
)
from .parsing.sample import parse_sample
from .parsing.workload import asks_tables, parse_tables, parse_workload
from .printing import counter, spinner
from .series_job import (
    EpochWords,
    JobRows,
    SeriesError,
    parse_series,
    with_arrivals,
)

PARTS = 100
"""Steps of the bar that shows how much of the data is read."""
NAME_OR_RULE, NEXT_RULE = re.compile("[=,]"), re.compile(",")
"""What stands behind a column's name, or behind a rule for stray values."""
BUDGET_FORMS = (
    "either --epsilon or --rho, what may be spent, or --risk 0.1:0.3, how sure "
    "somebody may become, or --alpha and --beta, the largest error and the probability "
    "of exceeding it, with --delta in rho"
)


@dataclass(frozen=True)
class Facts:
    """Everything public that was stated: no data among it.

    Attributes
    ----------
    counting : Counting
        The domain, what happens to missing and stray values, and which records belong
        to one person.
    policy : Policy
        What stays indistinguishable, over the cells of this release.
    workload : Workload
        The queries that the release is made for.
    ledger_policy : Policy
        The policy of the ledger that the job makes, over all columns that were stated
        for the ledger. A release may take only some of these columns.
    design : SamplingDesign, optional
        How the records were drawn from a population, where that was stated.
    """

    counting: Counting[Any]
    policy: Policy
    workload: Workload
    ledger_policy: Policy
    design: SamplingDesign | None = None

    @property
    def domain(self) -> Any:
        """The cells, those for stray values among them."""
        return self.counting.domain

    @property
    def extra_cells(self) -> list[str]:
        """Which cells were added for stray values, in words."""
        attributes = self.domain.attributes
        several = len(attributes) > 1
        shared = [
            kind
            for kind in attributes[0].extras
            if several and all(kind in column.extras for column in attributes)
        ]
        return [f"{kind} of every column" for kind in shared] + [
            f"{kind} of {attribute.name}"
            for attribute in attributes
            for kind in attribute.extras
            if kind not in shared
        ]


def check_complete(job: Job, *, with_data: bool = True) -> None:
    """Refuse a job with parts missing, and name all of them.

    Parameters
    ----------
    job : Job
        What was stated.
    with_data : bool
        Whether the data must be named, too.

    Raises
    ------
    InputError
        If a part is missing; the message lists all of them.
    """
    lacking = []
    if with_data and job.data is None:
        lacking.append(
            "state the data: --data people.csv (or .parquet, .npy, .duckdb, an "
            "address), or --data demo for made-up people"
        )
    if not job.domain:
        lacking.append(
            "state the domain, which is never read off the data: --domain age=0:101:1, "
            "or [domain] in a job file"
        )
    # A ledger that exists brings its policy.
    has_ledger = job.ledger is not None and Path(job.ledger).exists()
    if job.policy is None and not has_ledger:
        lacking.append(
            "state the policy, which has no default: it says what must stay "
            f"indistinguishable. --policy takes {POLICY_FORMS}"
        )
    if not any([job.epsilon, job.rho, job.risk, job.alpha, job.beta]):
        lacking.append(f"state {BUDGET_FORMS}")
    if len(lacking) == 1:
        raise InputError(lacking[0])
    if lacking:
        raise InputError("\n  ".join([f"{len(lacking)} parts are missing:", *lacking]))


def parse_treatments(
    words: str | Mapping[str, str] | None, domain: Any, *, others: bool = False
) -> Any:
    """Read ``cell``, ``age=cell,income=clamp``, or ``clamp,town=cell``.

    Parameters
    ----------
    words : str, mapping or None
        The rule for all columns, one for each of some, or both: the rule of a column
        goes before the one for all. A name with a comma or an equals sign in it stands
        in quotation marks.
    domain : Domain or WideDomain
        The columns.
    others : bool, default False
        Whether rules of other columns are left out, and no mistake.

    Returns
    -------
    str, dict or None
        What `Counting.read` takes.
    """
    general, named = _split_treatments(words)
    if not named:
        return general
    axes = {
        find_column(name, domain): rule
        for name, rule in named.items()
        if not others or name in domain.names
    }
    # One word for all columns leaves those alone that have no nearest cell.
    rest = {
        axis: general
        for axis, attribute in enumerate(domain.attributes)
        if general is not None and (general != "clamp" or has_nearest(attribute))
    }
    return rest | axes


def _split_treatments(
    words: str | Mapping[str, str] | None,
) -> tuple[str | None, Mapping[str, str]]:
    """Return the rule for all columns, if there is one, and those by column."""
    if words is None or isinstance(words, Mapping):
        return None, words or {}
    general, named, stop = None, {}, -1
    while stop < len(words):
        item, stop = read_item(words, stop + 1, NAME_OR_RULE)
        if words[stop : stop + 1] == "=":
            rule, stop = read_item(words, stop + 1, NEXT_RULE)
            named[item.text] = rule.text
        else:
            general = item.text
    return general, named


def read_counting(job: Job, domain: Any) -> Counting[Any]:
    """Read what happens to stray values of a domain, and whose records there are.

    Parameters
    ----------
    job : Job
        Its rules for missing values, values outside, and persons.
    domain : Domain or WideDomain
        The stated cells.

    Returns
    -------
    Counting
        The domain with its extra cells, and how records are counted into it.

    Raises
    ------
    InputError
        If a column of counts is stated beside persons or tables.
    """
    if job.count_column and (job.person is not None or asks_tables(job.workload)):
        raise InputError(
            "persons and tables are counted from records, one per line; received "
            f"--count-column {job.count_column}. Leave it out"
        )
    # Rules of the ledger's other columns are no mistake.
    others = bool(job.ledger_domain)
    counting = Counting.read(
        domain,
        outside=parse_treatments(job.outside, domain, others=others),
        missing=parse_treatments(job.missing, domain, others=others),
        person=job.person,
        record=job.record,
        at_most=job.at_most,
        count=job.count or "records",
    )
    return counting._replace(weight=job.count_column)


def read_facts(job: Job) -> Facts:
    """Read the domain, policy and workload of a job."""
    check_complete(job, with_data=False)
    tables = asks_tables(job.workload)
    stated = list(job.domain or ())
    plain: Any = parse_table(stated)
    if isinstance(plain, WideDomain) and job.series is not None:
        raise InputError(
            "a series releases one domain of at most 2^28 cells",
            received=f"{plain.size:,} cells",
            way_out="State coarser cells, or leave --series out",
        )
    counting = read_counting(job, plain)
    domain = counting.domain
    policy, table_policy = _read_policies(job, domain, whole_table=tables)
    read = parse_tables if tables else parse_workload
    workload = read(job.workload or DEFAULT_WORKLOAD, domain)
    people = counting.bound
    if people is not None:
        terms: Any = {"person": people.person, "count": people.count}
        if policy.person_rule is None:
            table_policy = table_policy.per_person(**terms)
        single = policy.unconstrained if isinstance(policy, PerPerson) else policy
        policy = single.per_person(people.at_most, **terms)
    design = _read_design(job, domain, policy)
    return Facts(counting, policy, workload, table_policy, design)


def _read_design(job: Job, domain: Any, policy: Policy) -> SamplingDesign | None:
    """Read how the records were drawn; refuse releases that could not keep it."""
    if job.sample is None:
        return None
    kinds = {
        "tables of many columns": asks_tables(job.workload),
        "a domain of more than 2^28 cells": isinstance(domain, WideDomain),
        "a series with totals": bool(job.totals),
        "some records of a person": policy.person_rule is not None,
        "mechanism kmeans": job.mechanism == "kmeans",
    }
    received = [kind for kind, is_stated in kinds.items() if is_stated]
    if received:
        raise InputError(
            "a release keeps how its records were drawn where it holds counts of all "
            "cells, each record counted once",
            received=f"[sample] or --sample with {' and '.join(received)}",
            way_out="Leave it out. Of a table of many columns say it when asking: "
            "blowfish answer RELEASE --sample ... --of population",
        )
    return parse_sample(job.sample, domain)


def _read_policies(
    job: Job, domain: Any, *, whole_table: bool
) -> tuple[Policy, Policy]:
    """Return the policy of a release, and that of the ledger that it makes."""
    if job.policy is not None and not job.ledger_domain:
        read: Any = parse_table_policy if whole_table else parse_policy
        if isinstance(domain, WideDomain) and not whole_table:
            read = parse_wide_policy
        stated: Policy = read(job.policy, domain)
        return stated, stated
    if job.policy is not None and job.ledger_domain:
        plain = parse_table(job.ledger_domain)
        table, _ = domain_with_rules(
            plain,
            parse_treatments(job.outside, plain),
            parse_treatments(job.missing, plain),
        )
        if table.columns_for(domain) is None:
            raise _not_among(table, domain)
        policy = extend_policy(job.policy, domain, table)
    else:
        assert job.ledger is not None
        with Ledger(job.ledger) as ledger:
            policy = ledger.policy
    if policy.domain.attributes == domain.attributes:
        return policy, policy
    columns = policy.domain.columns_for(domain)
    seen = None if columns is None else policy._seen_through(columns, domain)
    if seen is None:
        raise _not_among(policy.domain, domain)
    return seen, seen if job.policy is None else policy


def _not_among(table: Any, domain: Any) -> InputError:
    return InputError(
        "the columns of a release are among those of its ledger, with the same cells "
        "or unions of them",
        received=repr(domain),
        way_out=f"The ledger is about {table!r}",
    )


def open_data(job: Job, facts: Facts) -> DataSource:
    """Open the data that a job names; check its columns, and read no value.

    Parameters
    ----------
    job : Job
        It names the data, and how a CSV file is written.
    facts : Facts
        Its domain says which columns are needed.

    Returns
    -------
    DataSource
        The source, whose columns fit.
    """
    # Beside a file of one table it names the one that the description is read of.
    described = job.description is not None and not holds_tables(job.data or "")
    source = open_source(
        job.data or "",
        table=None if described else job.data_table,
        named=any(facts.domain.names),
        form=TextForm(job.encoding, job.decimal, job.dates, tuple(job.blanks or ())),
    )
    source.check(_with_arrivals(job, facts.counting))
    return source


def _series_of(job: Job) -> EpochWords | None:
    """Read which epoch a job releases; None where it states nothing of a series."""
    return parse_series(job) if job.in_series else None


def _with_arrivals(job: Job, counting: Counting[Any]) -> Counting[Any]:
    return with_arrivals(job, counting) if job.in_series else counting


def count_records(
    job: Job, facts: Facts, source: DataSource, tables: TableAxes | None = None
) -> Any:
    """Count every cell, of one epoch if one is named, or some tables of all columns.

    Parameters
    ----------
    job : Job
        It may name an epoch of a series.
    facts : Facts
        What is counted, and how.
    source : DataSource
        What `open_data` returned.
    tables : tuple of tuples of int, optional
        The columns of each table that is counted, instead of every cell.

    Returns
    -------
    Histogram or TableCounts
        The true counts. They go to a mechanism, and nowhere else.
    """
    counting = _with_arrivals(job, facts.counting)
    counted = _read(source, counting, tables)
    if job.series is None or tables is not None:
        return counted
    # Records of a person were chosen before, from all epochs.
    inside = np.ascontiguousarray(counted.counts[..., 0])
    return Histogram._own(facts.domain, inside, counted.bound)


def data_for(job: Job, facts: Facts, source: DataSource, mechanism: Mechanism) -> Any:
    """Return what a mechanism is run on: counts, or with totals what counts by age.

    Parameters
    ----------
    job, facts : Job and Facts
        What is released.
    source : DataSource
        The data.
    mechanism : Mechanism
        What is run.

    Returns
    -------
    Histogram, TableCounts or JobRows
        What `Ledger.release` or `Series.release` takes.
    """
    words = _series_of(job)
    if words is not None and words.totals:
        return JobRows(facts.counting, partial(_read, source))
    tables = getattr(mechanism, "measured_tables", None)
    return count_records(job, facts, source, tables)


def _read(
    source: DataSource, counting: Counting[Any], tables: TableAxes | None = None
) -> Any:
    """Count what a source holds, under a bar that shows how much is read."""
    with counter("reading") as count:

        def done(part: float) -> None:
            count(int(PARTS * part), PARTS, "")

        done(0.0)
        try:
            if tables is not None:
                return source.tables(counting, tables, done)
            return source.histogram(counting, done)
        except CountsError as problem:
            problem.add_note("Nothing was charged")
            raise


def check_ledger(job: Job, seed: int | None) -> None:
    """Refuse what a ledger would refuse by its terms alone.

    Parameters
    ----------
    job : Job
        It may name a ledger, a budget, a request and a series.
    seed : int or None
        A seed that was stated; no ledger pays for one.

    Raises
    ------
    InputError
        If terms of a ledger are stated without one, or a seed beside it.
    LedgerError
        If the ledger is not there, and no budget to make it.
    """
    if job.ledger is None:
        stated = (job.total, job.request, job.series, job.auditor)
        if any(term is not None for term in stated):
            raise InputError(
                "a budget, a request, a series and an auditor belong to a ledger; name "
                "its file, --ledger"
            )
        return
    if job.auditor is not None:
        read_public_key(job.auditor)
    if job.total is not None:
        optional_budget(**job.ledger_terms)
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


def _open_ledger(job: Job, facts: Facts, *, in_memory: bool = False) -> Ledger:
    """Open the ledger of a job; one that is not there is made, or kept in memory."""
    assert job.ledger is not None
    # A look ahead names nobody.
    auditor = None if in_memory else job.auditor
    if Path(job.ledger).exists():
        return Ledger(job.ledger, auditor=auditor)
    path = None if in_memory else job.ledger
    terms = job.ledger_terms
    return Ledger(path, policy=facts.ledger_policy, auditor=auditor, **terms)


def payer(job: Job, facts: Facts) -> AbstractContextManager[Ledger | None]:
    """Return the ledger that pays for a job, to be opened and closed; None without.

    Parameters
    ----------
    job : Job
        It may name a ledger.
    facts : Facts
        A new ledger takes its policy from them.

    Returns
    -------
    context manager
        It yields the ledger, or None.
    """
    return nullcontext() if job.ledger is None else _open_ledger(job, facts)


def preview_charge(
    job: Job, facts: Facts, mechanism: Mechanism
) -> dict[str, Any] | None:
    """Return what the ledger would say; refuse what it would refuse.

    Parameters
    ----------
    job : Job
        It may name a ledger.
    facts : Facts
        The public facts of the job.
    mechanism : Mechanism
        What would be charged.

    Returns
    -------
    dict or None
        The ledger's file and currency, and what it holds before and after; None
        without one.

    Raises
    ------
    BudgetError
        If the budget does not suffice.
    PolicyError
        If the mechanism protects less than the ledger's policy.
    """
    if job.ledger is None:
        return None
    check_vouched([mechanism], vouched=bool(job.vouched))
    with _open_ledger(job, facts, in_memory=True) as ledger:
        _check_total(job, ledger)
        words = _series_of(job)
        if words is None:
            entry = None if job.request is None else ledger.entry(job.request)
            weighed = ledger.preview(mechanism)
        else:
            series = words.series(ledger)
            entry = ledger.entry(series.request(words.epoch, job.request))
            weighed = series.preview(words.epoch, mechanism)
        _check_request(entry, weighed)
        bought = certificate_budget(job, facts, mechanism)
        if bought is not None and entry is None:
            # Both are paid, or none: room for one alone is not enough.
            weighed = ledger.preview(mechanism.at(mechanism.budget + bought))
        if entry is None and not weighed.accepted:
            if mechanism.policy.implies(ledger.policy):
                _raise_fault_of(mechanism)
                raise BudgetError(f"{weighed.reason}. Nothing was charged")
            raise PolicyError(
                f"{weighed.reason}; `blowfish ledger status {job.ledger}` shows its "
                "policy and columns: release some of these, with their cells or unions "
                "of them, and leave --policy out to take the ledger's. Nothing was "
                "charged"
            )
        after = weighed.after if entry is None else ledger.remaining
        replayed = entry is not None and entry.state != "reserved"
        return _standing(job, ledger, after, replayed=replayed)


def _raise_fault_of(mechanism: Mechanism) -> None:
    """Raise the fault of a mechanism from outside, which is no lack of budget."""
    try:
        mechanism.check_feasible()
    except PlugInError:
        raise
    except BlowfishError:
        # The ledger has given this reason already.
        return


def series_error(job: Job, facts: Facts, error: float | None) -> SeriesError | None:
    """Return how far totals of a series will be off; None where none are kept.

    Parameters
    ----------
    job, facts : Job and Facts
        What is released.
    error : float or None
        Root mean square error of such a release by itself, where it is known.

    Returns
    -------
    SeriesError or None
        The error of the running total, and both errors in words.
    """
    words = _series_of(job)
    if words is None or not words.totals or job.ledger is None or error is None:
        return None
    with _open_ledger(job, facts, in_memory=True) as ledger:
        return words.errors(words.series(ledger), error)


def preview_question(
    job: Job, facts: Facts, ask: Callable[..., Any], request: str | None
) -> dict[str, Any] | None:
    """Return `preview_charge` of a question that is asked about nobody, in memory.

    Parameters
    ----------
    job : Job
        It may name a ledger.
    facts : Facts
        The public facts of the job.
    ask : callable
        Asks the question; it takes records and a ledger. It is called without any
        records, on a ledger in memory, to learn the price.
    request : str or None
        The name of the question; a stored answer costs nothing.

    Returns
    -------
    dict or None
        As `preview_charge` returns it.
    """
    if job.ledger is None:
        return None
    with _open_ledger(job, facts, in_memory=True) as ledger:
        _check_total(job, ledger)
        terms: Any = {ledger.currency.name: ledger.budget.amount}
        with Ledger(policy=ledger.policy, **terms) as trial:
            ask([], ledger=trial)
            replayed = request is not None and ledger.entry(request) is not None
            cost = Fraction(0) if replayed else trial.spent
        after = ledger.remaining - cost
        if after < 0:
            raise BudgetError(
                f"it costs {ledger.currency.short} = {float(cost):g}, and "
                f"{float(ledger.remaining):g} remains. Nothing was charged"
            )
        return _standing(job, ledger, after, replayed=replayed)


def _standing(
    job: Job, ledger: Ledger, after: Fraction, *, replayed: bool
) -> dict[str, Any]:
    """Return what a ledger holds before and after a charge."""
    return {
        "file": job.ledger,
        "new": ledger.path is None,
        "total": float(ledger.budget),
        "currency": ledger.currency.name,
        "before": float(ledger.remaining),
        "after": float(after),
        "replayed": replayed,
    }


def _check_total(job: Job, ledger: Ledger) -> None:
    """Refuse a budget that is not the ledger's; a ledger is never enlarged."""
    if job.total is None:
        return
    with Ledger(policy=ledger.policy, **job.ledger_terms) as stated:
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
) -> tuple[Release | SavedSeries, str | None, float | None]:
    """Count, charge, draw; return the release, its name in the ledger, what remains.

    Of a series with totals all releases so far are returned, of which one is new.

    Parameters
    ----------
    job : Job
        It may name a ledger, a request, a series and a certificate.
    facts : Facts
        The public facts of the job.
    source : DataSource
        What `open_data` returned.
    mechanism : Mechanism
        What releases the counts.
    seed : int or None
        A seed for an experiment; None draws secure noise.

    Returns
    -------
    tuple of Release or SavedSeries, str or None, and float or None
        The release, its name in the ledger, and what remains; the last two are None
        without a ledger.
    """
    words = _series_of(job)
    totals = words is not None and words.totals
    data = data_for(job, facts, source, mechanism)
    bought = certificate_budget(job, facts, mechanism)
    terms: dict[str, Any] = {"epsilon": bought}
    published: Any
    if job.ledger is None:
        with spinner("releasing") as report:
            published = mechanism.release(data, seed, progress=report)
            if bought is not None:
                label = as_label(None)
                say_version(published, label)
                certifier = Certifier(
                    published, facts.workload, snapshot=label, **terms
                )
                # Other noise than that of the release, also in experiments.
                again = None if seed is None else seed + 1
                published = published.certified(
                    cast("Any", certifier.release(data, again))
                )
            return _drawn(published, facts), None, None
    # Of this run: a release that was stored before says another, and is of other data.
    label = as_label(None)
    request = job.request or f"release-{uuid.uuid4().hex[:12]}"
    with _open_ledger(job, facts) as ledger:
        release: Any = partial(ledger.release, request=request)
        if words is not None:
            series = words.series(ledger)
            request = series.request(words.epoch, job.request)
            release = partial(series.release, words.epoch, request=job.request)
        before = ledger.entry(request)
        try:
            with spinner("releasing") as report:
                steps: Any = {"vouched": bool(job.vouched)}
                if words is None:
                    steps |= {"progress": report, "snapshot": label}
                published = release(mechanism, data, **steps)
                if totals:
                    published = series.saved()
                if bought is not None:
                    terms["request"] = f"{request}, certified"
                    terms["snapshot"] = label
                    certificate = ledger.certify(
                        published, data, facts.workload, **terms
                    )
                    published = published.certified(certificate)
        except BaseException as problem:
            # A name that was known and is refused belongs to another question.
            refused = before is not None and isinstance(problem, LedgerError)
            # Nor does a failed draw go on: it is what the charge has come to.
            refused = refused or isinstance(problem, FailedDrawError)
            if ledger.entry(request) is not None and not refused:
                problem.add_note(
                    f"Run the same command with --request {request}: it continues "
                    "under the charge that was made."
                )
            raise
        remaining = float(ledger.remaining)
    return _drawn(published, facts), request, remaining


def _drawn(published: Any, facts: Facts) -> Any:
    """Return a release with how its records were drawn; it costs nothing."""
    # Another kind of release, by a mechanism from outside, is paid for: it is kept.
    if facts.design is None or not isinstance(published, HistogramRelease):
        return published
    return published.sampled(facts.design)


def certificate_budget(job: Job, facts: Facts, mechanism: Mechanism) -> Budget | None:
    """Return what the certificate may cost beside a release by `mechanism`.

    Parameters
    ----------
    job : Job
        It may state which part of the whole a certificate gets.
    facts : Facts
        The certificate is about its workload.
    mechanism : Mechanism
        Its budget is the other part.

    Returns
    -------
    Budget or None
        None if no certificate is wanted.

    Raises
    ------
    InputError
        If there are too many answers to check.
    """
    if job.certify is None:
        return None
    if facts.workload.queries > MOST_LISTED:
        raise InputError(
            f"a certificate checks at most {MOST_LISTED:,} answers; state a workload "
            "of fewer, such as ranges:2000"
        )
    share = as_share(job.certify, "--certify")
    return mechanism.budget * (share / (1 - share))

"""The epoch that a job releases, the series that it belongs to, and the one after it.

A job names a series as ``received:week:2026-W46``. With ``totals`` records of earlier
epochs are read again, each with the weight of its age; `JobRows` counts them where
they are, in a file or a database.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.series.blocks import EpochBlocks
from blowfish_fast.accounting.series.epochs import (
    FORMS,
    Epoch,
    epoch_of_number,
    read_epoch,
)
from blowfish_fast.accounting.series.releases import ArrivalSource, RowTerms, Series
from blowfish_fast.accounting.series.weights import NOISE
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Counting, Histogram
from blowfish_fast.data.records import Rule
from blowfish_fast.errors import InputError

from .parsing.job import Job
from .parsing.workload import asks_tables

PLACE = "{epoch}"
"""What stands in names of files for the epoch that is released."""
OUTPUTS = ("release", "table", "picture", "report", "map", "synthetic")
TERMS = ("exponent", "band", "frozen", "epochs_at_most")
"""What a job says of totals, beside wanting them."""

MEANINGLESS_WITH_TOTALS = {
    "request": "releases are named by their epochs",
    "certify": "releases hold weighed sums, about which a certificate says nothing",
    "alpha": "the error is not that of a release by itself: state --rho or --epsilon",
    "count_column": "records are counted one per line",
}
"""Options that mean nothing with totals, and why."""


class SeriesError(NamedTuple):
    """How far the running total of a series is off, known before it is released.

    Attributes
    ----------
    total : float
        Root mean squared error per query of the running total, in records.
    sentence : str
        The same in words, beside the error of the last epoch by itself.
    """

    total: float
    sentence: str


@dataclass(frozen=True)
class EpochWords:
    """A column of arrivals, how long its epochs are, one of them, and how it is kept.

    Attributes
    ----------
    column, every, epoch : str
        As in ``received:week:2026-W46``.
    totals : bool
        Whether records count in later releases, too, so that totals stay accurate.
    terms : dict
        What `Series` takes beside: the band, whether closed epochs are frozen, and in
        how many epochs a person counts.
    exponent : Fraction, optional
        The exponent of the weights; None for the usual one.
    """

    column: str
    every: str
    epoch: str
    totals: bool
    terms: dict[str, Any]
    exponent: Fraction | None = None

    def series(self, ledger: Ledger) -> Series:
        """Return the series: persons lose the sum over epochs, records the dearest."""
        return Series(
            ledger,
            column=self.column,
            every=self.every,
            level="event" if ledger.policy.person_rule is None else "person",
            totals=self.totals if self.exponent is None else self.exponent,
            **self.terms,
        )

    def errors(self, series: Series, error: float) -> SeriesError:
        """Return the error of a total and of an epoch from that of a plain release.

        Noise of rows is scaled and added up, so both are multiples of it.

        Parameters
        ----------
        series : Series
            The series as it stands.
        error : float
            Root mean square error of a release of the same price by itself.

        Returns
        -------
        SeriesError
            Of the running total up to the epoch, and both in words.
        """
        power = series.ledger.currency.power
        numbers = [read_epoch(self.every, name).number for name in series.epochs()]
        now = read_epoch(self.every, self.epoch).number
        count = now - min([*numbers, now]) + 1
        scheme = series.scheme
        if isinstance(scheme, EpochBlocks):
            whole = scheme.variances(count, power)
            last = scheme.variances(count, power, 1)
        else:
            terms: Any = {"epochs_at_most": series.epochs_at_most or 1}
            whole = scheme.variances(count, power, **terms)
            last = scheme.variances(count, power, last=1, **terms)
        total = error * float(whole[-1] / NOISE[power]) ** 0.5
        epoch = error * float(last[-1] / NOISE[power]) ** 0.5
        return SeriesError(
            total,
            f"{total:,.4g} records per query (root mean square) in the running total "
            f"up to {self.epoch}, {epoch:,.4g} in that {self.every} by itself",
        )


def series_notes(job: Job) -> tuple[str, ...]:
    """Return what a promise adds about the epochs of a series that counts persons.

    Parameters
    ----------
    job : Job
        The job.

    Returns
    -------
    tuple of str
        One sentence, or none where no bound on epochs is stated.
    """
    if job.epochs_at_most is None:
        return ()
    return (
        "In this series the bound of a person holds in each epoch, and she counts in "
        f"at most {job.epochs_at_most:,} epochs; she is protected with all of them.",
    )


def parse_series(job: Job) -> EpochWords | None:
    """Read which epoch a job releases; None where it names none."""
    stated = [name for name in ("totals", *TERMS) if getattr(job, name) is not None]
    if job.series is None:
        if stated:
            raise InputError(
                f"{_flag(stated[0])} is about a series; name it, --series "
                "received:week:2026-W46"
            )
        return None
    parts = job.series.rsplit(":", 2)
    if len(parts) != 3 or parts[1] not in FORMS or not parts[0]:
        raise InputError(
            "a series is stated as the column of arrivals, the length of an epoch and "
            f"an epoch, received:week:2026-W46; lengths are {', '.join(FORMS)}",
            received=repr(job.series),
        )
    read_epoch(parts[1], parts[2])
    if job.workload is not None and job.workload.startswith("tables"):
        raise InputError("a series releases one domain; ask for no tables:WAYS")
    alone = [name for name in stated if name in ("exponent", "band", "epochs_at_most")]
    if alone and not job.totals:
        raise InputError(
            f"{_flag(alone[0])} says how running totals are kept; state --totals, too"
        )
    if job.totals:
        _check_totals(job)
    terms = {
        "band": job.band,
        "frozen": bool(job.frozen),
        "epochs_at_most": job.epochs_at_most,
    }
    exponent = None if job.exponent is None else _read_exponent(job.exponent)
    column, every, epoch = parts
    return EpochWords(column, every, epoch, bool(job.totals), terms, exponent)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _read_exponent(words: str) -> Fraction:
    try:
        return Fraction(words)
    except (ValueError, ZeroDivisionError):
        raise InputError(
            "the exponent of weights is a fraction from 0 to 1/2, such as 3/8",
            received=repr(words),
        ) from None


def _check_totals(job: Job) -> None:
    """Refuse what has no meaning in a series with running totals."""
    for name, why in MEANINGLESS_WITH_TOTALS.items():
        if getattr(job, name) is not None:
            raise InputError(f"in a series with totals {why}; leave {_flag(name)} out")


def with_arrivals(job: Job, counting: Counting[Any]) -> Counting[Any]:
    """Return one more column, if a series is stated: inside the epoch, or outside.

    Parameters
    ----------
    job : Job
        It may state a series and one of its epochs.
    counting : Counting
        How records are counted into the cells of the release.

    Returns
    -------
    Counting
        The same without a series; otherwise over one more column, of the moments of
        arrival.
    """
    words = parse_series(job)
    if words is None:
        return counting
    when = read_epoch(words.every, words.epoch)
    cells = Domain.from_dates([when.start, when.stop], name=words.column)
    inside = cells.with_extra_cells(outside=True)
    rules = [*counting.rules, Rule("cell", "refuse")]
    return counting._replace(
        domain=Domain.product(counting.domain, inside), rules=rules
    )


class JobRows(ArrivalSource):
    """The records of a job, counted by their age when a series asks for them.

    Parameters
    ----------
    counting : Counting
        What happens to stray values, over the cells of the release.
    count : callable
        Takes a `Counting` and returns the histogram of the job's data.
    """

    def __init__(self, counting: Counting[Any], count: Any) -> None:
        self.counting, self.count = counting, count

    def count_weighed(self, terms: RowTerms) -> Histogram:
        """Count the records of a row by these terms, over the mechanism's cells."""
        counted: Histogram = self.count(self.counting._replace(**terms._asdict()))
        return counted


def with_epoch_named(job: Job) -> Job:
    """Return the job with its epoch in the places that names of files leave for it."""
    words = parse_series(job)
    return job if words is None else _named(job, words.epoch)


def _named(job: Job, epoch: str) -> Job:
    settings = {
        name: value.replace(PLACE, epoch)
        for name in ("data", *OUTPUTS)
        if (value := getattr(job, name)) is not None and PLACE in value
    }
    return replace(job, **settings)


def next_job(
    job: Job, path: Path, *, epoch: str | None, today: datetime.date
) -> tuple[Job, str]:
    """Return the job of the next epoch, its request and outputs named by it.

    Parameters
    ----------
    job : Job
        What the file states: a series, or a release that is made again each month.
    path : Path
        The job file; its stem names requests and outputs that have no name.
    epoch : str, optional
        Which epoch it is; by default the one after the last that the ledger holds, or
        the last itself where it was charged and never stored.
    today : date
        Epochs that are not over by then are refused.

    Returns
    -------
    tuple of Job and str
        The job, and the name of its epoch.
    """
    if job.ledger is None:
        raise InputError(
            "the next release follows those that a ledger holds; name its file, "
            "ledger under [budget]"
        )
    ledger: str = job.ledger
    parts = [] if job.series is None else job.series.split(":")
    base = job.request or path.stem
    begin, apart, last = base.rpartition("/")
    if apart and _length(last) is not None:
        # The first release was named by its epoch, as those after it are.
        base = begin
    if job.series is None:
        every, released = _requested(ledger, base, epoch)
    else:
        if len(parts) == 2 and parts[1] in FORMS:
            # The epoch of a job that is only ever continued may be left out.
            job = replace(job, series=f"{job.series}:{epoch or FORMS[parts[1]][1]}")
        words = parse_series(job)
        assert words is not None
        every, released = words.every, _released(ledger, words, job.request)
        if len(parts) > 2 and epoch is None and not released:
            epoch = words.epoch
    when = _chosen(every, released, epoch)
    if when.stop > today:
        raise InputError(
            f"the {every} {when.name} is over on {when.stop}, and records may come in "
            "until then; release it afterwards",
            received=f"{today}",
        )
    dated: dict[str, Any] = {
        name: _dated(job, name, path, when.name) for name in OUTPUTS
    }
    if job.series is None:
        dated["request"] = f"{base}/{when.name}"
    else:
        column, length = job.series.rsplit(":", 2)[:2]
        dated["series"] = f"{column}:{length}:{when.name}"
    return _named(replace(job, **dated), when.name), when.name


def _dated(job: Job, name: str, path: Path, epoch: str) -> str | None:
    """Return the name of an output, with the epoch before its ending."""
    from .files.outputs import FOLDER

    stated: str | None = getattr(job, name)
    if stated is None and name == "release":
        stated = str(path.with_suffix(".blowfish"))
    if stated is None and name == "table" and asks_tables(job.workload):
        # Many tables are written unasked: the folder of last month is in the way.
        stated = FOLDER
    if stated is None or PLACE in stated:
        return stated
    file = Path(stated)
    return str(file.with_name(f"{file.stem}-{epoch}{file.suffix}"))


def _chosen(every: str, released: dict[str, bool], epoch: str | None) -> Epoch:
    """Return the epoch that is named, or the one that follows."""
    if epoch is not None:
        return read_epoch(every, epoch)
    if not released:
        raise InputError(
            f"nothing was released yet; say where it begins, --epoch {FORMS[every][1]}"
        )
    epochs = sorted((read_epoch(every, name) for name in released), key=_number)
    last = epochs[-1]
    # A charge whose answer was never stored is continued under the same name.
    return last if not released[last.name] else epoch_of_number(every, last.number + 1)


def _number(epoch: Epoch) -> int:
    return epoch.number


def _released(path: str, words: EpochWords, own: str | None) -> dict[str, bool]:
    """Return the epochs that a job has released, and whether each is stored.

    Several jobs may ask about one series, each under a request of its own: an epoch
    that another job released is still to come for this one.
    """
    if not Path(path).exists():
        return {}
    with Ledger(path) as ledger:
        series = words.series(ledger)
        states = {
            name: ledger.entry(series.request(name, own)) for name in series.epochs()
        }
    return {
        name: entry.state != "reserved"
        for name, entry in states.items()
        if entry is not None
    }


def _requested(path: str, base: str, epoch: str | None) -> tuple[str, dict[str, bool]]:
    """Return the length of epochs and those of requests called ``base/EPOCH``."""
    entries: Iterable[Any] = ()
    if Path(path).exists():
        with Ledger(path) as ledger:
            entries = ledger.history()
    released, every = dict[str, bool](), None if epoch is None else _length(epoch)
    for entry in entries:
        begin, apart, name = (entry.request or "").rpartition("/")
        length = _length(name) if apart and begin == base else None
        if length is None or every not in (None, length):
            continue
        every = length
        released[name] = entry.state != "reserved"
    if every is None:
        raise InputError(
            f"no release of this ledger is called {base}/2026-11 or the like yet; say "
            "where it begins, --epoch 2026-11 (or 2026-W46, 2026-Q4, 2026)",
            received=None if epoch is None else repr(epoch),
        )
    return every, released


def _length(name: str) -> str | None:
    """Return the length of the epoch that a name is of; None for other names."""
    for every in FORMS:
        try:
            read_epoch(every, name)
        except InputError:
            continue
        return every
    return None

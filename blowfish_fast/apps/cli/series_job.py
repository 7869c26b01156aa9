"""One epoch of arrivals at a time: ``--series received:week:2026-W46``.

    received   ... | Nov 9 .. Nov 15 | ...      the column is counted beside the others,
    counted   outside     epoch     outside     and what arrived in it is released

The ledger charges the dearest epoch of the series, once (`accounting.series`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.series import FORMS, Series, read_epoch
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.data.records import Rule
from blowfish_fast.errors import InputError

from .parsing.job import Job


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

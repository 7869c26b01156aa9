"""Parallel composition over time: a record arrives in one week and is counted there.

This fails for dates that may be corrected, for records put back into a closed epoch,
and for a person who is in several epochs; all are refused (``docs/proofs/series.md``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_whole, quoted
from blowfish_fast.data.axes import as_moments
from blowfish_fast.data.columns import named_column
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.errors import CountsError, InputError, LedgerError, PolicyError
from blowfish_fast.mechanisms import Mechanism
from blowfish_fast.mechanisms.registry import check_vouched
from blowfish_fast.release.release import Release
from blowfish_fast.workloads import Identity

from .ledger import Ledger
from .request import RandomLike, RequestPart, check_mechanism, check_policy
from .statements import Preview

Level = Literal["event", "person-epoch", "person"]

FORMS = {
    "day": (r"(\d{4})-(\d{2})-(\d{2})", "2026-11-15"),
    "week": (r"(\d{4})-W(\d{2})", "2026-W46"),
    "month": (r"(\d{4})-(\d{2})", "2026-11"),
    "quarter": (r"(\d{4})-Q([1-4])", "2026-Q4"),
    "year": (r"(\d{4})", "2026"),
}

NOISE = {1: 2.0, 2: 0.5}
"""Variance of a counted cell at epsilon 1 and at rho 1."""


@dataclass(frozen=True)
class SeriesTotal:
    """The sum of the releases of some `epochs`, and its noise; it costs nothing."""

    domain: Domain
    epochs: tuple[str, ...]
    estimate: FloatArray
    standard_errors: FloatArray


@dataclass(frozen=True)
class SeriesPlan:
    """What each epoch may cost, and the mean variance of a running total of one cell.

    Where `block` exceeds 1, two levels err less: a series of epochs and one of blocks
    of so many, at half of `each`.
    """

    each: Fraction
    block: int
    variance: float
    sentence: str


class Series:
    """Releases of one epoch after the other; a ledger pays the dearest one, once.

    Parameters
    ----------
    column : str
        When a record arrived: append-only, never corrected, and no attribute of the
        ledger's domain, since a date that may move is in two epochs.
    every : {"day", "week", "month", "quarter", "year"}
        Epochs are half-open: "2026-11-15", "2026-W46", "2026-11", "2026-Q4", "2026".
        Arrivals that name a zone lie in an epoch by their time in UTC.
    level : {"event", "person-epoch", "person"}
        Who is protected at the price of the dearest epoch. "event": one record, on a
        ledger of records. "person-epoch" ("person-week" and so on are the same): all
        records of a person in one epoch, on a ledger of persons that says so, with
        ``person="patient-week"``. "person": a person with all her epochs; they add up.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain(3, names=["age"])
    >>> policy = bf.policies.AddRemove(ages)
    >>> ledger = bf.Ledger(None, epsilon=1, policy=policy)
    >>> weeks = bf.Series(ledger, column="received", every="week", level="event")
    >>> days = ["2026-11-04", "2026-11-10", "2026-11-11"]
    >>> visits = {"age": [0, 1, 1], "received": days}
    >>> laplace = bf.Laplace(policy, bf.workloads.Identity(ages), epsilon="0.5")
    >>> for name in ("2026-W45", "2026-W46"):
    ...     release = weeks.release(name, laplace, visits, rng=1)
    >>> float(ledger.spent), weeks.total(upto="2026-W46").epochs
    (0.5, ('2026-W45', '2026-W46'))
    >>> print(weeks.preview("2026-W47", laplace))
    laplace would cost eps = 0 of the 0.5 that remains; 0.5 would be left
    >>> weeks.plan(12).block, weeks.plan(365).block > 1
    (1, True)
    """

    def __init__(
        self, ledger: Ledger, *, column: str, every: str, level: str = "event"
    ) -> None:
        if not isinstance(ledger, Ledger):
            raise LedgerError(f"a series is paid from a Ledger; received {ledger!r}")
        if not isinstance(every, str) or every not in FORMS:
            raise InputError(f"every is one of {sorted(FORMS)}", received=quoted(every))
        if not isinstance(column, str) or not column:
            raise InputError(
                "column names when a record arrived", received=quoted(column)
            )
        text = level if isinstance(level, str) else ""
        chosen = "person-epoch" if text == f"person-{every}" else text
        if chosen not in get_args(Level):
            raise InputError(
                f'level is "event", "person-{every}" or "person"',
                received=quoted(level),
            )
        self.ledger, self.column, self.every = ledger, column, every
        self.level = chosen
        self._check_policy()

    def _check_policy(self) -> None:
        policy = self.ledger.policy
        if self.column in policy.domain.names:
            raise PolicyError(
                f"{self.column!r} is an attribute that the policy protects: a date "
                "that moves changes two epochs at once. A series needs a column of "
                "arrivals that never changes"
            )
        if policy.has_constraints:
            raise PolicyError(
                "known counts tie records of different epochs to each other, so epochs "
                "add up; release them outside a series"
            )
        rule = policy.person_rule
        if self.level == "event" and rule is not None:
            raise PolicyError(
                "the ledger protects persons, who may have records in many epochs: "
                f'there epochs add up. State level="person", or keep a ledger under '
                f'per_person(person="...-{self.every}") for level="person-{self.every}"'
            )
        if self.level != "event" and rule is None:
            raise PolicyError(
                f'level="{self.level}" needs a ledger of persons; this one protects '
                'single records. State level="event", or policy.per_person()'
            )
        ends = rule is not None and str(rule.person).endswith(f"-{self.every}")
        if self.level == "person-epoch" and not ends:
            raise PolicyError(
                f"the ledger's person must be a person in one {self.every}, named like "
                f'per_person(person="patient-{self.every}"): over several epochs a '
                "person loses the sum"
            )

    @property
    def name(self) -> str:
        """What charges of the series are filed under."""
        return f"{self.column}/{self.every}"

    def release(
        self,
        epoch: str,
        mechanism: Mechanism,
        data: Any,
        *,
        request: str | None = None,
        rng: RandomLike | None = None,
        vouched: bool = False,
    ) -> Release:
        """Release one epoch; it is closed once a later one is released.

        `data` are counts of the records that arrived in the epoch, or a table with the
        column of arrivals, of which those are taken (levels of persons take a
        Histogram). Further questions about an epoch add up within it, each under a
        `request` of its own. All else is as for `Ledger.release`.
        """
        when = read_epoch(self.every, epoch)
        check_mechanism(mechanism)
        check_vouched([mechanism], vouched=vouched)
        terms = self.ledger._terms()
        self._check_policy()
        check_policy(mechanism, terms.policy)
        counts = data
        structured = isinstance(data, np.ndarray) and data.dtype.names is not None
        frame = hasattr(data, "columns") and not isinstance(data, Histogram)
        if isinstance(data, Mapping) or structured or frame:
            counts = self._counted(when, mechanism.domain, data)
        name = self.request(when.name, request)
        noted = {"name": self.name, "epoch": when.name, "start": when.start.isoformat()}
        (answer,) = self.ledger._settle(
            [RequestPart(mechanism, counts)],
            terms,
            name,
            rng,
            None,
            note={"series": self.name, "epoch": when.name},
            series=None if self.level == "person" else noted,
        )
        return answer

    def request(self, epoch: str, request: str | None = None) -> str:
        """Return the name under which the ledger keeps the answer about an epoch."""
        return "/".join([self.name, epoch, *([] if request is None else [request])])

    def preview(self, epoch: str, mechanism: Mechanism) -> Preview:
        """Say by how much a release would raise the dearest epoch. Free; no data."""
        when = read_epoch(self.every, epoch)
        reason, price = self.ledger._weigh(mechanism)
        opened = [read_epoch(self.every, one).start for one in self.epochs()]
        late = self.level != "person" and max(opened, default=when.start) > when.start
        if late and not reason:
            reason = f"the epoch {epoch!r} is closed: a later one was released"
        price = 0 if reason else price
        spent = self._units()
        if self.level != "person":
            dearest = max(spent.values(), default=0)
            price = max(spent.get(when.name, 0) + price, dearest) - dearest
        standing = self.ledger._journal.standing()
        currency = self.ledger.currency
        return Preview.of(mechanism.name, price, standing, reason, currency)

    def _counted(self, when: Epoch, domain: Domain, table: Any) -> Histogram:
        if self.level != "event":
            raise InputError(
                "a release about persons takes a Histogram whose records of a person "
                "were bounded: Histogram.from_records(..., person=, at_most=)"
            )
        names = [self.column, *map(str, domain.names)]
        plain = {one: np.asarray(named_column(table, one, "column")) for one in names}
        arrived = as_moments(plain.pop(self.column))
        if np.isnat(arrived).any():
            raise CountsError(
                f"some records do not say when they arrived: {self.column!r} has "
                "missing values, and a record must lie in exactly one epoch"
            )
        low, high = (np.datetime64(one) for one in (when.start, when.stop))
        inside = (arrived >= low) & (arrived < high)
        return Histogram.from_records(
            domain, {name: column[inside] for name, column in plain.items()}
        )

    def epochs(self) -> list[str]:
        """Return the epochs that were released, in their order."""
        return sorted(self._units(), key=lambda one: read_epoch(self.every, one).start)

    def total(self, upto: str) -> SeriesTotal:
        """Add up the first release of every epoch up to and including one. Free."""
        last = read_epoch(self.every, upto)
        names = [
            name
            for name in self.epochs()
            if read_epoch(self.every, name).start <= last.start
        ]
        found = [self.ledger.replay(f"{self.name}/{name}") for name in names]
        releases = [one for one in found if one is not None]
        if not releases or len(releases) < len(found):
            raise LedgerError(
                f"there is nothing to add up to {upto!r}: every epoch needs a stored "
                "release without a request name"
            )
        domain = releases[0].domain
        if any(one.domain != domain for one in releases):
            raise InputError("the epochs were released over different domains")
        cells = Identity(domain)
        squares = sum(one.standard_errors(cells) ** 2 for one in releases)
        return SeriesTotal(
            domain,
            tuple(names),
            np.sum([one.estimate for one in releases], axis=0),
            np.sqrt(np.asarray(squares)).reshape(domain.shape),
        )

    def plan(self, epochs: int) -> SeriesPlan:
        """Say what each of so many epochs may cost from now on. Free."""
        number = as_whole(epochs, "epochs", 1)
        left, power = self.ledger.remaining, self.ledger.currency.power
        if self.level == "person":
            each, block = left / number, 1
            mean = (number + 1) / 2 * NOISE[power]
            words = (
                f"each {self.every} may cost {float(each):g}: a person in all {number} "
                f"of them loses the sum, {float(left):g}"
            )
        else:
            # What the dearest epoch has paid, every other one may cost, too.
            dearest = max(self._units().values(), default=0)
            each = left + self.ledger.currency.amount(dearest)
            block, mean = best_block(number, power)
            words = (
                f"each {self.every} may cost {float(each):g}: a record is in one of "
                "them"
                if block == 1
                else f"{float(each / 2):g} for each {self.every} and as much for each "
                f"block of {block} in a second series: running totals then add fewer "
                "releases"
            )
        if self.level == "person-epoch":
            words += f"; a person in w of them is protected at w times {float(each):g}"
        mean = mean / float(each) ** (3 - power) if each else np.inf
        return SeriesPlan(each, block, float(mean), words)

    def sentence(self) -> str:
        """Say who is protected at which price so far."""
        words, spent = self.ledger.currency.words, self._units().values()
        count, whole = len(self.epochs()), words(sum(spent))
        if self.level == "person":
            return (
                f"a person with all her records in {count} epochs is protected at "
                f"{whole}, the sum over the epochs so far"
            )
        at = f"is protected at {words(max(spent, default=0))}, the dearest epoch"
        if self.level == "event":
            return f"one record {at}"
        return f"a person in one epoch {at}; a person in all {count} of them at {whole}"

    def _units(self) -> dict[str, int]:
        """Return the sum of what was drawn in each epoch, in the ledger's units."""
        spent: dict[str, int] = {}
        for charge in self.ledger._journal.history():
            note = charge.content.get("note") or {}
            if note.get("series") == self.name:
                series = charge.content.get("series")
                price = charge.cost if series is None else series["price"]
                spent[note["epoch"]] = spent.get(note["epoch"], 0) + price
        return spent


def best_block(epochs: int, power: int = 1) -> tuple[int, float]:
    """Return the epochs per block that err least, and their variance at a budget of 1.

    The budget is epsilon, or rho where `power` is 2: half of it errs 4 or 2 times.
    """
    upto = np.arange(1, epochs + 1)
    best = 1, float((NOISE[power] * upto).mean())
    half = NOISE[power] * 2 ** (3 - power)
    for size in range(2, 3 * int(epochs**0.5) + 2):
        mean = float((half * (upto // size + upto % size)).mean())
        best = (size, mean) if mean < best[1] else best
    return best


class Epoch(NamedTuple):
    """A stretch of days: from `start` to before `stop`."""

    name: str
    start: date
    stop: date


def read_epoch(every: str, name: str) -> Epoch:
    """Read the name of an epoch."""
    form, example = FORMS[every]
    # Digits of other scripts would name an epoch a second time.
    match = re.fullmatch(form, name, re.ASCII) if isinstance(name, str) else None
    try:
        if match is None:
            raise ValueError
        return Epoch(name, *_bounds(every, *map(int, match.groups())))
    except (ValueError, OverflowError):
        raise InputError(
            f"a {every} is named like {example!r}", received=repr(name)
        ) from None


def _bounds(every: str, year: int, part: int = 1, day: int = 1) -> tuple[date, date]:
    if every == "day":
        start = date(year, part, day)
        return start, start + timedelta(days=1)
    if every == "week":
        start = date.fromisocalendar(year, part, 1)
        return start, start + timedelta(days=7)
    months = {"month": 1, "quarter": 3, "year": 12}[every]
    first = (part - 1) * months if every != "year" else 0
    start = date(year, first + 1, 1)
    after = first + months
    return start, date(year + after // 12, after % 12 + 1, 1)

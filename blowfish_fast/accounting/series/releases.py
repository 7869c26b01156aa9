"""Releases of one epoch after the other, and everything that they say together.

A record arrives in one epoch, a week for instance, and stays there. So releases of
different epochs are about different records, and all of them together cost what the
dearest costs. That one price is charged, once.

A release of an epoch is called a *row*. There are three schemes, by what a row counts:

    arrivals of                  W45   W46   W47
    single epochs    row W47                 x         each epoch by itself
    weights          row W47     c2 x  c1 x  c0 x      records count by their age
    blocks of 2      row W46           x               each epoch by itself, and
                     sum W46     x  +  x               each block of epochs once more

With weights (`Weights`) or blocks (`EpochBlocks`), ``totals=`` of a series, a record is
counted in several rows, and the price says how often. Running totals, windows and
single epochs are then read off the stored rows for free.

All this rests on arrivals that never change. Dates that may be corrected, and records
that are dated anew, are refused; a person who may be in several epochs has to be stated
and is priced (``docs/proofs/series.md``).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from blowfish_fast._support.plug_ins import check_vouched
from blowfish_fast._support.validation import (
    NamingRightWords,
    as_truth,
    as_whole,
    malformed_as,
    quoted,
)
from blowfish_fast.data.arrivals import Arrivals, FirstEpochs
from blowfish_fast.data.domain import Domain, is_wide
from blowfish_fast.data.histogram import Counting, Histogram
from blowfish_fast.data.persons import Bound
from blowfish_fast.data.sparse import SparseHistogram
from blowfish_fast.errors import (
    BudgetError,
    CountsError,
    InputError,
    LedgerError,
    PolicyError,
)
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.mechanisms import Mechanism
from blowfish_fast.release.file import Release

from ..fingerprint import question_digest
from ..ledger import Ledger
from ..request import RandomLike, RequestPart, check_mechanism, check_policy
from ..statements import Preview
from .blocks import EpochBlocks, typical_blocks
from .epochs import FORMS, Epoch, epoch_of_number, read_epoch
from .plan import (
    Planned,
    SeriesPlan,
    least_blocks,
    least_weights,
    planned_blocks,
    planned_weights,
    read_wanted,
    scaled,
)
from .readings import SINGLE, Promise, SeriesReadings, nothing_upto
from .saved import SavedSeries
from .weights import BANDS, DEFAULT_EXPONENT, Weights

Level = Literal["event", "person-epoch", "person"]

WITHOUT_TOTALS = ("kmeans", "contingency", "chosen_tables", "certifier")
"""Mechanisms whose releases are no histograms, and cannot be added up cell by cell."""


class RowTerms(NamedTuple):
    """How records are weighed and chosen for one row of a series: fields of `Counting`.

    Attributes
    ----------
    arrivals : Arrivals
        What a record counts by the epoch of its arrival.
    first : FirstEpochs, optional
        Which records of a person count; None where all do.
    bound : Bound, optional
        How many records of a person count in one epoch; None where all do.
    """

    arrivals: Arrivals
    first: FirstEpochs | None = None
    bound: Bound | None = None


class ArrivalSource(ABC):
    """Records that a series does not hold itself, such as a file: it counts them."""

    @abstractmethod
    def count_weighed(self, terms: RowTerms) -> Histogram:
        """Count the records of a row, over the mechanism's cells.

        Parameters
        ----------
        terms : RowTerms
            What each record counts, and which records of a person do.

        Returns
        -------
        Histogram
            The weighed counts.
        """


class Series(NamingRightWords, SeriesReadings):
    """Releases of one epoch after the other; a ledger pays the dearest one, once.

    Parameters
    ----------
    ledger : Ledger
        What pays. Its policy protects single records (``level="event"``) or persons.
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
        ``person="patient-week"``. "person": a person with all her epochs; they add up,
        unless `epochs_at_most` bounds them.
    totals : bool, number, Weights or EpochBlocks
        How running totals are kept accurate. False: every epoch is released by itself.
        True: in a ledger of rho, weights of exponent 3/8; in one of epsilon, blocks of
        epochs at half of the price beside the epochs at the other half. A number from
        0 to 1/2 is the exponent of the weights; `plan` chooses one.
    band : int, optional
        After how many epochs records count no more, with weights by exponent: by
        default 4096 days, 1024 weeks, 256 months, 128 quarters or years.
    epochs_at_most : int, optional
        In how many epochs a person has records that count, with ``level="person"``:
        her first ones. The price is then fixed, however long the series gets.
    frozen : bool
        Your word that records of closed epochs never change: none come late, none are
        corrected or deleted. Only then do intervals of totals hold true counts, and
        only then may a person's first epochs be chosen.

    Notes
    -----
    Guarantee: everything that the series releases is together private at the price of
        its dearest epoch, for whoever `level` names; adaptively.
    Neighbours: one record (or the records of a person) of fixed arrival epochs is moved
        along one edge of the policy, or is absent, in every release alike.
    Sensitivity: a record that arrived k epochs ago moves a release by the weight of
        age k, so one unit of price in each release costs ``Weights.price`` in all.
    Error: ``Weights.variances``; the noise of each release is its own, so nothing
        secret is kept between releases.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain(3, names=["age"])
    >>> policy = bf.policies.AddRemove(ages)
    >>> ledger = bf.Ledger(epsilon=1, policy=policy)
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

    In rho, with accurate running totals:

    >>> ledger = bf.Ledger(rho=1, policy=policy)
    >>> weeks = bf.Series(
    ...     ledger, column="received", every="week", totals=True, frozen=True
    ... )
    >>> gaussian = bf.Gaussian(policy, bf.workloads.Identity(ages), rho="0.5")
    >>> for name in ("2026-W45", "2026-W46"):
    ...     row = weeks.release(name, gaussian, visits, rng=1)
    >>> total = weeks.total(upto="2026-W46")
    >>> float(ledger.spent), total.intervals(gaussian.workload).shape
    (0.5, (3, 2))
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        column: str,
        every: str,
        level: str = "event",
        totals: Any = False,
        band: int | None = None,
        epochs_at_most: int | None = None,
        frozen: bool = False,
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
        self.frozen = as_truth(frozen, "frozen")
        self.epochs_at_most = self._read_epochs_at_most(epochs_at_most)
        self.scheme = self._read_totals(totals, band)
        self.stated = not isinstance(totals, bool)
        """Whether the caller said how to count, so that `plan` does not choose."""
        self._check_policy()

    def _read_epochs_at_most(self, epochs_at_most: Any) -> int | None:
        if epochs_at_most is None:
            return None
        number = as_whole(epochs_at_most, "epochs_at_most", 1)
        if self.level != "person":
            raise InputError(
                'epochs_at_most bounds the epochs of a person, with level="person"',
                received=f'level="{self.level}"',
            )
        if not self.frozen:
            raise InputError(
                "a person's first epochs are chosen once and for all, which needs "
                "closed epochs that never change",
                received="frozen=False",
                way_out="State frozen=True if no record comes late or is deleted",
            )
        return number

    def _read_totals(self, totals: Any, band: Any) -> Weights | EpochBlocks:
        if totals is not False and self.level == "person" and not self.epochs_at_most:
            raise InputError(
                "totals count a person in every epoch that she is in, so her price "
                "would grow without end",
                received='level="person" without epochs_at_most',
                way_out="State epochs_at_most=4, in how many epochs she counts",
            )
        in_rho = self.ledger.currency.power == 2
        if isinstance(totals, bool):
            if not totals:
                return SINGLE
            if not in_rho:
                return typical_blocks(self.every)
            totals = DEFAULT_EXPONENT
        if isinstance(totals, Weights | EpochBlocks):
            if band is not None:
                raise InputError(
                    "a band goes with an exponent; weights of your own end by "
                    "themselves",
                    received=quoted(band),
                )
            if isinstance(totals, EpochBlocks) and self.epochs_at_most:
                raise InputError(
                    "blocks are for records, and for persons in one epoch",
                    received="epochs_at_most",
                    way_out="Leave totals out, or keep a ledger in rho",
                )
            return totals
        length = BANDS[self.every] if band is None else band
        return Weights.falling(totals, length)

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
        """What charges of the series are filed under; it tells other weights apart."""
        parts = [self.column, self.every]
        if isinstance(self.scheme, EpochBlocks):
            parts.append(f"blocks-{self.scheme.size}")
        elif self.scheme != SINGLE:
            exponent = self.scheme.exponent
            begin = "own" if exponent is None else str(exponent).replace("/", "-")
            parts.append(f"{begin}-{self.scheme.band}-{self.scheme.digest}")
        if self.epochs_at_most is not None:
            parts.append(f"persons-{self.epochs_at_most}")
        return "/".join(parts)

    @property
    def _sums(self) -> str:
        """What charges of blocks of epochs are filed under."""
        return f"{self.name}/sums"

    @property
    def _adds_up(self) -> bool:
        """Whether every epoch is charged by itself: persons in any number of epochs."""
        return self.level == "person" and self.epochs_at_most is None

    @property
    def _times(self) -> int:
        """What one unit of price in every row costs in all: Lemmas SW1 and SW5.

        A record counts in several rows if it is weighed by age, and a person in several
        epochs. Each row is drawn at the stated price divided by this number.
        """
        if isinstance(self.scheme, EpochBlocks):
            return 1
        power = self.ledger.currency.power
        return self.scheme.price(power, self.epochs_at_most or 1)

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
        """Release one epoch.

        Without ``totals`` an epoch is closed once a later one is released; with them
        rows follow each other without a gap, and a row that was left out can be drawn
        later. An epoch without arrivals is released like any other. Further questions
        about an epoch add up within it, each under a `request` of its own. All else is
        as for `Ledger.release`.

        Parameters
        ----------
        epoch : str
            Such as "2026-W46".
        mechanism : Mechanism
            Stated at the full price of the epoch: what is charged. With weights it is
            drawn at that price over ``Weights.price``, on counts of weighed records.
        data : table, ibis table, array or list of arrays
            A table with the column of arrivals, in memory or in a database, of which
            the epochs that count are taken. Or counts: those of the epoch, and with
            ``totals`` a list of those of every epoch since the first of the series,
            oldest first. Levels of persons take Histograms whose records of a person
            were bounded, or a table in memory, of which a person's first records
            count.
        request : str, optional
            The name of a further question about the epoch.
        rng : int or numpy Generator, optional
            A seed, for experiments.
        vouched : bool
            As for `Ledger.release`.

        Returns
        -------
        Release
            The row. With weights it holds weighed sums, ``details["weights"]`` says so;
            `epoch`, `window` and `total` read counts off the rows.
        """
        when = read_epoch(self.every, epoch)
        check_mechanism(mechanism)
        check_vouched([mechanism], vouched=vouched, data=data)
        self._check_policy()
        check_policy(mechanism, self.ledger._terms().policy)
        self._check_kind(mechanism)
        first = self._first(when)
        if isinstance(self.scheme, EpochBlocks):
            half = mechanism.at(mechanism.budget / 2)
            lacking = self._lacks_for_blocks(when, half)
            if lacking:
                raise BudgetError(f"{lacking}. Nothing was charged")
            release = self._draw(
                when, half, data, first, SINGLE, self.name, request, rng
            )
            size = self.scheme.size
            if request is None and (when.number - first + 1) % size == 0:
                ones = Weights((1,) * size)
                self._draw(when, half, data, first, ones, self._sums, None, rng)
            return release
        return self._draw(
            when, mechanism, data, first, self.scheme, self.name, request, rng
        )

    def _draw(
        self,
        when: Epoch,
        mechanism: Mechanism,
        data: Any,
        first: int,
        weights: Weights,
        name: str,
        request: str | None,
        rng: RandomLike | None,
    ) -> Release:
        """Count the records of a row by age, charge its price, and draw it.

        Parameters
        ----------
        when : Epoch
            The epoch of the row.
        mechanism : Mechanism
            At the price that is charged.
        data : table, ibis table, array or list of arrays
            As for `release`.
        first : int
            The number of the first epoch of the series.
        weights : Weights
            What a record counts, by the age of its arrival.
        name : str
            What the charge is filed under: the series, or its sums of blocks.
        request : str, optional
            The name of a further question about the epoch.
        rng : int or numpy Generator, optional
            A seed, for experiments.

        Returns
        -------
        Release
            The row.
        """
        noted: dict[str, Any] = {
            "name": name,
            "epoch": when.name,
            "start": when.start.isoformat(),
        }
        if weights != SINGLE:
            noted |= {
                "number": when.number,
                "weights": weights.to_dict(),
                "cells": question_digest(mechanism.domain),
            }
        (answer,) = self.ledger._settle(
            [self._part(when, mechanism, data, first, weights, name)],
            self.ledger._terms(),
            "/".join([name, when.name, *([] if request is None else [request])]),
            rng,
            None,
            note={"series": name, "epoch": when.name},
            series=None if self._adds_up else noted,
        )
        return answer

    def _part(
        self,
        when: Epoch,
        mechanism: Mechanism,
        data: Any,
        first: int,
        weights: Weights,
        name: str,
    ) -> RequestPart:
        """Return what is drawn for a row: weighed counts, and the mechanism's share.

        The mechanism is charged at its full price and drawn at that price over
        `_times`, so that all rows together cost what is charged.
        """
        times = 1 if self._adds_up or name == self._sums else self._times
        unit = mechanism.at(mechanism.budget / times)
        counts = self._counted(when, mechanism, data, first, weights)
        return RequestPart(
            unit, counts, times=times, weighed=_row_details(when, weights)
        )

    def questions(
        self, epoch: str, mechanism: Mechanism, data: Any, *, request: str | None = None
    ) -> dict[str, RequestPart]:
        """Return what `verify_opened` takes of an epoch: its answers, drawn again.

        Parameters
        ----------
        epoch : str
            Such as "2026-W46".
        mechanism : Mechanism
            At the full price of the epoch, as for `release`.
        data : table, ibis table, array or list of arrays
            As they were handed to `release`.
        request : str, optional
            The name of a further question about the epoch.

        Returns
        -------
        dict[str, RequestPart]
            By the name that the ledger keeps it under: the row of the epoch and, with
            blocks of epochs, the sum of the block that it closes.
        """
        when = read_epoch(self.every, epoch)
        first = self._first(when)
        own = self.request(epoch, request)
        if not isinstance(self.scheme, EpochBlocks):
            weights = self.scheme
            part = self._part(when, mechanism, data, first, weights, self.name)
            return {own: part}
        half = mechanism.at(mechanism.budget / 2)
        questions = {own: self._part(when, half, data, first, SINGLE, self.name)}
        size = self.scheme.size
        if request is None and (when.number - first + 1) % size == 0:
            ones, sums = Weights((1,) * size), self._sums
            part = self._part(when, half, data, first, ones, sums)
            questions[f"{sums}/{when.name}"] = part
        return questions

    def _lacks_for_blocks(self, when: Epoch, half: Mechanism) -> str:
        """Say that too little remains for an epoch and its block; "" if it is enough.

        A block is charged when its last epoch is released. If the budget did not allow
        for it from the first epoch on, epochs would be drawn at half of the price for
        totals that never come.
        """
        price = self.ledger.currency.charged(self.ledger._price(half))
        due = 0
        for name, epoch in ((self.name, when.name), (self._sums, "")):
            spent = self._units(name)
            dearest = max(spent.values(), default=0)
            due += max(spent.get(epoch, 0) + price, dearest) - dearest
        standing, words = self.ledger._journal.standing(), self.ledger.currency.words
        left = standing.total - standing.spent
        if due <= left or self.ledger.entry(self.request(when.name)) is not None:
            return ""
        return (
            f"an epoch and its block of epochs cost {words(due)} together, and "
            f"{words(left)} remains"
        )

    def _check_kind(self, mechanism: Mechanism) -> None:
        if self.scheme == SINGLE:
            return
        if mechanism.name in WITHOUT_TOTALS:
            raise InputError(
                "totals add releases of histograms up, cell by cell",
                received=mechanism.name,
                way_out="Release it in a series without totals",
            )
        if mechanism.budget.power != self.ledger.currency.power:
            raise PolicyError(
                f"a series with totals in a ledger of {self.ledger.currency.name} "
                f"takes mechanisms in {self.ledger.currency.name}",
                received=mechanism.budget.words(),
            )

    def _first(self, when: Epoch) -> int:
        """Return the number of the series' first epoch; that of `when` in a new one."""
        numbers = [read_epoch(self.every, name).number for name in self._units()]
        return min([*numbers, when.number])

    def request(self, epoch: str, request: str | None = None) -> str:
        """Return the name under which the ledger keeps the answer about an epoch.

        Parameters
        ----------
        epoch : str
            Such as "2026-W46".
        request : str, optional
            The name of a further question about the same epoch.

        Returns
        -------
        str
            The name of the series, the epoch and the request, with slashes between.
        """
        return "/".join([self.name, epoch, *([] if request is None else [request])])

    def preview(self, epoch: str, mechanism: Mechanism) -> Preview:
        """Say by how much a release would raise the dearest epoch. Free; no data.

        Parameters
        ----------
        epoch : str
            Such as "2026-W46".
        mechanism : Mechanism
            At the full price of the epoch.

        Returns
        -------
        Preview
            ``str()`` of it is a sentence.
        """
        when = read_epoch(self.every, epoch)
        check_mechanism(mechanism)
        self._check_kind(mechanism)
        times = 1 if self._adds_up else self._times
        blocks = isinstance(self.scheme, EpochBlocks)
        unit = mechanism.at(mechanism.budget / (2 if blocks else times))
        reason, _ = self.ledger._weigh(unit)
        reason = reason or self._closed_reason(when)
        if blocks and not reason:
            reason = self._lacks_for_blocks(when, unit)
        price = 0
        if not reason:
            # Rounded up once, after the product, as the charge is.
            full = times * self.ledger._price(unit)
            price = self.ledger.currency.charged(full)
        spent = self._units()
        if not self._adds_up:
            dearest = max(spent.values(), default=0)
            price = max(spent.get(when.name, 0) + price, dearest) - dearest
        standing = self.ledger._journal.standing()
        currency = self.ledger.currency
        return Preview.of(mechanism.name, price, standing, reason, currency)

    def _closed_reason(self, when: Epoch) -> str:
        """Say why an epoch cannot be released any more, or not yet; "" if it can."""
        numbers = {read_epoch(self.every, name).number for name in self._units()}
        if self._adds_up or not numbers:
            return ""
        closes = self.scheme == SINGLE or isinstance(self.scheme, EpochBlocks)
        if closes and max(numbers) > when.number:
            return f"the epoch {when.name!r} is closed: a later one was released"
        if self.scheme == SINGLE or when.number in numbers:
            return ""
        if when.number < min(numbers):
            return f"the epoch {when.name!r} lies before the first one of the series"
        if when.number - 1 not in numbers:
            lacking = next(
                number
                for number in range(min(numbers), when.number + 1)
                if number not in numbers
            )
            name = epoch_of_number(self.every, lacking).name
            return f"the epoch {name!r} has no release yet, and totals need one of each"
        return ""

    def _counted(
        self, when: Epoch, mechanism: Mechanism, data: Any, first: int, weights: Weights
    ) -> Any:
        """Return what a row is drawn from: counts, each record by its weight."""
        domain = mechanism.domain
        epochs = when.number - first + 1
        if isinstance(data, ArrivalSource):
            return data.count_weighed(self._terms(when, mechanism, epochs, weights))
        if isinstance(data, Histogram) or not _is_table(data):
            return self._weighed_counts(data, domain, epochs, weights)
        terms = self._terms(when, mechanism, epochs, weights)
        counting = Counting.read(domain)._replace(**terms._asdict())
        if is_wide(domain):
            return SparseHistogram._of_table(counting, data)
        if hasattr(data, "get_backend"):
            counts = counting.query(data).counts()
            return Histogram._own(domain, counts.reshape(domain.shape), terms.bound)
        return Histogram._counted(counting, data)

    def _terms(
        self, when: Epoch, mechanism: Mechanism, epochs: int, weights: Weights
    ) -> RowTerms:
        """Return how records are weighed and chosen for a row; no data is read."""
        steps = min(weights.band, epochs)
        if self.level == "event":
            values = weights.values[:steps][::-1]
            starts = [when.before(age).start for age in range(steps - 1, -1, -1)]
            return RowTerms(Arrivals.of(self.column, [*starts, when.stop], values))
        policy: Any = mechanism.policy
        rule = policy.person_rule
        if getattr(policy, "count", "records") != "records":
            raise InputError(
                "a release about persons takes a Histogram whose records of a person "
                "were bounded, Histogram.from_records(..., person=, at_most=), or a "
                "table of which records are counted",
                received='count="persons"',
            )
        if self._adds_up or not self.frozen:
            raise InputError(
                "a person's first records of an epoch are chosen once and for all",
                received="a table in a series whose closed epochs may change",
                way_out="State frozen=True for the series, or hand over a Histogram "
                "whose records of a person were bounded: "
                "Histogram.from_records(..., person=, at_most=)",
            )
        person = str(rule.person).removesuffix(
            f"-{self.every}" if self.level == "person-epoch" else ""
        )
        # A person's first epochs count. Epochs that are too old for a weight are read
        # too, since they may have been among her first ones.
        old = [0] * (epochs - steps)
        starts = [when.before(age).start for age in range(epochs - 1, -1, -1)]
        arrivals = Arrivals.of(
            self.column, [*starts, when.stop], [*old, *weights.values[:steps][::-1]]
        )
        return RowTerms(
            arrivals,
            FirstEpochs(person, policy.at_most, self.epochs_at_most),
            Bound.stated(policy.at_most, "records", rule.person),
        )

    def _weighed_counts(
        self, data: Any, domain: Domain, epochs: int, weights: Weights
    ) -> Any:
        """Return the weighed sum of counts of epochs, handed over oldest first.

        Without weights, counts of one epoch are returned as they are.
        """
        if weights == SINGLE and not _is_list_of_counts(data, domain):
            return data
        if not _is_list_of_counts(data, domain) and epochs == 1:
            data = [data]
        if not _is_list_of_counts(data, domain) or len(data) != epochs:
            raise InputError(
                f"totals need the counts of all {epochs} epochs since the first of the "
                "series, oldest first, or a table with the column of arrivals",
                received=f"{len(data)} of them"
                if _is_list_of_counts(data, domain)
                else type(data).__name__,
            )
        bounds = {getattr(part, "bound", None) for part in data}
        rules = {bound and bound._replace(choice="") for bound in bounds}
        if len(rules) > 1:
            raise InputError(
                "epochs of one series count records of a person by one rule",
                received=f"{len(rules)} rules",
            )
        arrays = [
            part.counts
            if isinstance(part, Histogram)
            else Histogram(domain, part).counts
            for part in data
        ]
        return Histogram._own(domain, weights.weigh(arrays), bounds.pop())

    def epochs(self) -> list[str]:
        """Return the epochs that were released, in their order."""
        return sorted(
            self._units(), key=lambda name: read_epoch(self.every, name).start
        )

    def _row(self, epoch: str, *, of_block: bool = False) -> Release:
        row = self.ledger.replay(f"{self._sums if of_block else self.name}/{epoch}")
        if row is None:
            raise nothing_upto(epoch)
        return row

    def _promise(self) -> Promise:
        spent = self._units().values()
        units = sum(spent) if self._adds_up else max(spent, default=0)
        if isinstance(self.scheme, EpochBlocks):
            units += max(self._units(self._sums).values(), default=0)
        currency = self.ledger.currency
        return Promise(
            Budget(currency.amount(units), currency.power),
            f"Of a series of releases {self.sentence()}.",
        )

    def saved(self) -> SavedSeries:
        """Return all rows so far, to be read without the ledger. Free."""
        names = self.epochs()
        if not names:
            raise LedgerError("the series has no release yet; there is nothing to save")
        rows = self._rows(self._names_upto(names[-1]))
        size = self.scheme.size if isinstance(self.scheme, EpochBlocks) else 1
        blocks = names[size - 1 :: size] if size > 1 else []
        return SavedSeries(
            dict(zip(names, rows, strict=False)),
            dict(zip(blocks, rows[len(names) :], strict=True)),
            column=self.column,
            every=self.every,
            scheme=self.scheme,
            frozen=self.frozen,
            promise=self._promise(),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all rows so far into one file, for whoever reads totals off them.

        ``bf.series.SavedSeries.load`` and ``blowfish answer`` read it. Free.
        """
        self.saved().save(path)

    def plan(
        self,
        epochs: int,
        wanted: Mapping[str, Any] | None = None,
        *,
        band: int | None = None,
    ) -> SeriesPlan:
        """Say what each of so many epochs may cost from now on, and how to count. Free.

        Parameters
        ----------
        epochs : int
            How many epochs there will be.
        wanted : mapping, optional
            What will be asked, and how much it matters: ``{"epoch": 1, "last 4": 1,
            "total": 1}``. Left out: the running total.
        band : int, optional
            After how many epochs records count no more; by default that of the series.

        Returns
        -------
        SeriesPlan
            The exponent (in rho) or the blocks (in epsilon) of least summed variance,
            or those that the series states.
        """
        number = as_whole(epochs, "epochs", 1)
        asked = read_wanted(wanted)
        left, power = self.ledger.remaining, self.ledger.currency.power
        if self._adds_up:
            each = left / number
            chosen = planned_weights(SINGLE, number, power, asked, 1)
        else:
            # What the dearest epoch has paid, every other one may cost, too.
            spent = max(self._units().values(), default=0)
            if isinstance(self.scheme, EpochBlocks):
                spent += max(self._units(self._sums).values(), default=0)
            each = left + self.ledger.currency.amount(spent)
            chosen = self._planned(number, asked, band)
        means, final = scaled(chosen.curves, each, power)
        scheme = chosen.scheme
        weights = scheme if isinstance(scheme, Weights) else None
        return SeriesPlan(
            each,
            scheme.size if isinstance(scheme, EpochBlocks) else 1,
            means["total"],
            self._plan_words(number, each, scheme),
            None if weights is None or power == 1 else weights.exponent or Fraction(0),
            1 if weights is None else weights.band,
            means,
            final,
        )

    def _planned(
        self, epochs: int, wanted: Mapping[str, float], band: int | None
    ) -> Planned:
        """Choose how to count, or take what the series states."""
        power, persons = self.ledger.currency.power, self.epochs_at_most or 1
        if power == 2:
            if not self.stated:
                length = BANDS[self.every] if band is None else band
                return least_weights(epochs, wanted, length, persons)
            assert isinstance(self.scheme, Weights | EpochBlocks)
            scheme = self.scheme
            if isinstance(scheme, Weights):
                if band is not None and scheme.exponent is not None:
                    scheme = Weights.falling(scheme.exponent, band)
                return planned_weights(scheme, epochs, power, wanted, persons)
        elif not self.stated:
            return least_blocks(epochs, wanted, persons)
        if isinstance(self.scheme, EpochBlocks):
            return planned_blocks(self.scheme, epochs, power, wanted)
        return planned_weights(self.scheme, epochs, power, wanted, persons)

    def _plan_words(
        self, number: int, each: Fraction, scheme: Weights | EpochBlocks
    ) -> str:
        """Say in a sentence what each of so many epochs may cost by a plan."""
        if self._adds_up:
            return (
                f"each {self.every} may cost {float(each):g}: a person in all {number} "
                f"of them loses the sum, {float(each * number):g}"
            )
        if isinstance(scheme, EpochBlocks):
            words = (
                f"{float(each / 2):g} for each {self.every} and as much for each "
                f"block of {scheme.size}, by totals=EpochBlocks({scheme.size}): "
                "running totals then add fewer releases"
            )
        elif scheme.exponent:
            words = (
                f"each {self.every} may cost {float(each):g}, with "
                f'totals="{scheme.exponent}": records count by their age, and the '
                "same budget serves every running total"
            )
        else:
            words = (
                f"each {self.every} may cost {float(each):g}: a record is in one of "
                "them"
            )
        if self.level == "person-epoch":
            words += f"; a person in w of them is protected at w times {float(each):g}"
        return words

    def sentence(self) -> str:
        """Say who is protected at which price so far."""
        words, spent = self.ledger.currency.words, self._units().values()
        count, whole = len(spent), words(sum(spent))
        if self._adds_up:
            return (
                f"a person with all her records in {count} epochs is protected at "
                f"{whole}, the sum over the epochs so far"
            )
        dearest = max(spent, default=0)
        if isinstance(self.scheme, EpochBlocks):
            dearest += max(self._units(self._sums).values(), default=0)
        at = f"is protected at {words(dearest)}, the dearest epoch"
        if self.level == "event":
            return f"one record {at}"
        if self.level == "person":
            return f"a person whose records of {self.epochs_at_most} epochs count {at}"
        if self.scheme != SINGLE:
            return f"a person in one epoch {at}"
        return f"a person in one epoch {at}; a person in all {count} of them at {whole}"

    def close(self, why: str) -> None:
        """End the series: no further epoch is released in it. Nothing is refunded.

        Parameters
        ----------
        why : str
            A public reason, which the ledger's log keeps.
        """
        if not isinstance(why, str) or not why.strip():
            raise InputError("say why the series ends; the log keeps it")
        for name in (self.name, self._sums):
            self.ledger._journal.end_series(name, why)

    def _units(self, name: str | None = None) -> dict[str, int]:
        """Return the price of each epoch, summed over its rows, in the ledger's units.

        Of that price only what exceeds the dearest epoch so far was charged.

        Parameters
        ----------
        name : str, optional
            What charges are filed under; by default the name of the series.

        Returns
        -------
        dict of int
            By the name of the epoch.
        """
        wanted = self.name if name is None else name
        spent: dict[str, int] = {}
        for charge in self.ledger._journal.history():
            note = charge.content.get("note") or {}
            if note.get("series") == wanted:
                series = charge.content.get("series")
                price = charge.cost if series is None else series["price"]
                spent[note["epoch"]] = spent.get(note["epoch"], 0) + price
        return spent


def _row_details(when: Epoch, weights: Weights) -> dict[str, Any] | None:
    """Return what a row of weighed records says of itself; None for plain epochs."""
    if weights == SINGLE:
        return None
    return {"epoch": when.name, "weights": list(weights.values)}


def _is_table(data: Any) -> bool:
    """Return whether data are records with columns, here or in a database."""
    structured = isinstance(data, np.ndarray) and data.dtype.names is not None
    return isinstance(data, Mapping) or structured or hasattr(data, "columns")


def _is_list_of_counts(data: Any, domain: Domain) -> bool:
    """Return whether data are counts of several epochs rather than of one."""
    if not isinstance(data, list | tuple | np.ndarray) or len(data) == 0:
        return False
    if isinstance(data[0], Histogram):
        return True
    with malformed_as(CountsError, "counts of several epochs have one shape"):
        shape = np.shape(data)
    return bool(shape[1:] == domain.shape)

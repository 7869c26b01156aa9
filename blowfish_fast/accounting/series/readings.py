"""What stored releases of a series say: totals, windows, epochs, and their history.

Reading is free: rows are public, and what is asked is a weighted sum of them. So it
needs neither the ledger nor the data, only the rows and how records were counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_confidence, as_whole, quoted
from blowfish_fast.errors import InputError, LedgerError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.release.combination import weighed_spread
from blowfish_fast.release.file import Release
from blowfish_fast.release.grants import Scope, counts_records, with_answers
from blowfish_fast.release.series_release import SeriesRelease
from blowfish_fast.workloads import Workload

from .blocks import EpochBlocks
from .epochs import read_epoch
from .weights import Weights

SINGLE = Weights((1,))
"""Every record counts once, in the release of its own epoch."""


class Promise(NamedTuple):
    """What a whole series costs whoever it protects, and who that is, in words.

    Parameters
    ----------
    budget : Budget
        The cost.
    note : str
        Who is protected.
    """

    budget: Budget
    note: str


@dataclass(frozen=True)
class SeriesHistory:
    """Answers to a workload after each epoch of a series, with their intervals.

    Attributes
    ----------
    epochs : tuple of str
        The released epochs, oldest first.
    answers : float64 (epochs, queries)
        What is estimated after each of them.
    bounds : float64 (epochs, queries, 2)
        The lower and the upper end of each interval; each holds by itself.
    kind : {"truth", "noise"}
        What the intervals hold.
    """

    epochs: tuple[str, ...]
    answers: FloatArray
    bounds: FloatArray
    kind: Scope


class SeriesReadings(ABC):
    """Totals, windows and epochs of a series, read off its stored rows; free."""

    every: str
    """The length of the epochs."""
    scheme: Weights | EpochBlocks
    """How records are counted: by their age, or in blocks of epochs."""
    frozen: bool
    """Whether records of closed epochs never change."""

    @abstractmethod
    def epochs(self) -> list[str]:
        """Return the epochs that were released, in their order."""

    @abstractmethod
    def _row(self, epoch: str, *, of_block: bool = False) -> Release:
        """Return the stored row of an epoch, or that of the block that it ends."""

    @abstractmethod
    def _promise(self) -> Promise:
        """Return what the whole series promises so far."""

    def total(self, upto: str) -> SeriesRelease:
        """Return the running total up to and including an epoch. Free.

        Parameters
        ----------
        upto : str
            The last epoch that is counted.

        Returns
        -------
        SeriesRelease
            With answers, standard errors and intervals for any workload.
        """
        names = self._names_upto(upto)
        return self._combined(names, len(names))

    def window(self, upto: str, last: int) -> SeriesRelease:
        """Return the last so many epochs together, up to and including one. Free.

        Parameters
        ----------
        upto : str
            The last epoch that is counted.
        last : int
            How many epochs are counted.

        Returns
        -------
        SeriesRelease
            With answers, standard errors and intervals for any workload.

        Raises
        ------
        InputError
            If fewer epochs were released up to then.
        LedgerError
            If an epoch that is needed was not released.
        """
        names = self._names_upto(upto)
        number = as_whole(last, "last", 1)
        if number > len(names):
            raise InputError(
                f"up to {upto!r} there are {len(names)} released epochs",
                received=quoted(last),
            )
        return self._combined(names, number)

    def epoch(self, name: str) -> SeriesRelease:
        """Return one epoch by itself, from all rows that know of it. Free.

        Parameters
        ----------
        name : str
            The epoch, such as "2026-W46".

        Returns
        -------
        SeriesRelease
            With answers, standard errors and intervals for any workload.

        Raises
        ------
        LedgerError
            If the epoch was not released.
        """
        names = self._names_upto(name)
        if names[-1] != name:
            raise LedgerError(f"the epoch {name!r} was not released")
        return self._combined(names, 1)

    def history(
        self,
        workload: Workload,
        *,
        last: int | None = None,
        confidence: float = 0.95,
    ) -> SeriesHistory:
        """Answer a workload after each epoch: what a picture of the series shows. Free.

        Every row is read once, however many epochs there are.

        Parameters
        ----------
        workload : Workload
            What is asked.
        last : int, optional
            Of the last so many epochs together, 1 for each by itself, and of fewer
            while there are fewer; left out, of the running total.
        confidence : float
            With what probability each interval holds, over the noise.

        Returns
        -------
        SeriesHistory
            Answers and intervals, one row for each epoch.
        """
        window = None if last is None else as_whole(last, "last", 1)
        miss = 1.0 - as_confidence(confidence)
        epochs = self.epochs()
        names = self._names_upto(epochs[-1]) if epochs else []
        if not names:
            raise LedgerError("the series has no release yet; there is nothing to read")
        rows = self._rows(names)
        for row in rows:
            row._check(workload)
        kind: Scope = "noise"
        if self._unchanging and all(row.holds_truth(workload).all() for row in rows):
            kind = "truth"
        cut = kind == "truth" and counts_records(workload)
        answered = np.stack([row.answer(workload).reshape(-1) for row in rows])
        sums = np.stack(
            [workload.answer_again(*row._linear_sums).reshape(-1) for row in rows]
        )
        spreads = [row._spread(workload) for row in rows]
        answers = np.empty((len(names), workload.queries))
        bounds = np.empty((len(names), workload.queries, 2))
        for count in range(1, len(names) + 1):
            size = count if window is None else min(window, count)
            shares = self._shares(count, size, len(names))
            needed = np.flatnonzero(shares)
            weights = shares[needed]
            spread = weighed_spread(weights, [spreads[at] for at in needed.tolist()])
            half = noise_half_widths(spread, miss)
            centre = weights @ sums[needed]
            ends = np.column_stack([centre - half, centre + half])
            if cut:
                np.maximum(ends, 0.0, out=ends)
            answers[count - 1] = weights @ answered[needed]
            bounds[count - 1] = with_answers(ends, answers[count - 1])
        return SeriesHistory(tuple(names), answers, bounds, kind)

    @property
    def _unchanging(self) -> bool:
        """Whether what was counted of an epoch is the same in every row.

        Epochs that are drawn once from their own arrivals are never read again.
        """
        return self.frozen or self.scheme == SINGLE

    def _names_upto(self, upto: str) -> list[str]:
        """Return the released epochs up to one; refuse a gap where totals need all."""
        last = read_epoch(self.every, upto)
        names = [
            name
            for name in self.epochs()
            if read_epoch(self.every, name).number <= last.number
        ]
        numbers = [read_epoch(self.every, name).number for name in names]
        gap = bool(names) and numbers != list(range(numbers[0], numbers[-1] + 1))
        if not names or (gap and self.scheme != SINGLE):
            raise nothing_upto(upto)
        return names

    def _rows(self, names: Sequence[str]) -> list[Release]:
        """Return the rows of epochs, then those of the blocks that they finish."""
        rows = [self._row(name) for name in names]
        if isinstance(self.scheme, EpochBlocks):
            ends = range(self.scheme.size - 1, len(names), self.scheme.size)
            rows += [self._row(names[end], of_block=True) for end in ends]
        domain = rows[0].domain
        if any(row.domain != domain for row in rows):
            raise InputError("the epochs were released over different domains")
        return rows

    def _shares(self, count: int, last: int, epochs: int) -> FloatArray:
        """Return how much each row of `epochs` counts in the `last` of the first ones.

        Parameters
        ----------
        count : int
            After how many epochs is asked.
        last : int
            How many of these are added up.
        epochs : int
            Of how many epochs there are rows; those after `count` have a share of 0.

        Returns
        -------
        float64 (rows,)
            In the order of `_rows`.
        """
        shares = np.zeros(epochs)
        if isinstance(self.scheme, EpochBlocks):
            of_epochs, of_blocks = self.scheme.window_shares(count, last)
            shares[:count] = of_epochs
            blocks = np.zeros(epochs // self.scheme.size)
            blocks[: of_blocks.size] = of_blocks
            return np.concatenate([shares, blocks])
        if self.scheme == SINGLE:
            shares[count - last : count] = 1.0
        else:
            shares[:count] = self.scheme.window_shares(count, last)[::-1]
        return shares

    def _combined(self, names: list[str], last: int) -> SeriesRelease:
        """Weigh the rows of `names` so that they count the last so many epochs."""
        rows, shares = self._rows(names), self._shares(len(names), last, len(names))
        needed = np.flatnonzero(shares)
        promise = self._promise()
        return SeriesRelease(
            [rows[at] for at in needed.tolist()],
            shares[needed].tolist(),
            epochs=names[len(names) - last :],
            budget=promise.budget,
            frozen=self._unchanging,
            note=promise.note,
        )


def nothing_upto(epoch: str) -> LedgerError:
    """Return the refusal of totals up to an epoch that has no stored row."""
    return LedgerError(
        f"there is nothing to add up to {epoch!r}: every epoch needs a stored release "
        "without a request name"
    )

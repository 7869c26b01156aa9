"""What releases of a series say together: a total, a window, or one epoch.

Rows of a series are public, their noise is independent, and what is asked is linear in
them; so it is a weighted sum of releases, with the law of its noise (Lemma SW6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray
from blowfish_fast._support.validation import as_confidence
from blowfish_fast.errors import IntervalError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.workloads import Workload

from .combination import CombinedRelease
from .grants import (
    Scope,
    check_scope,
    counted_records,
    counts_records,
    truth_sentence,
    with_answers,
)
from .guarantee import Guarantee

if TYPE_CHECKING:
    from .olap import Selection

CHANGED = (
    "records of closed epochs may have come late, been corrected or been deleted, and "
    "what that is off by is not covered"
)


class SeriesRelease(CombinedRelease):
    """Some epochs of a series together, from its stored releases; it costs nothing.

    Parameters
    ----------
    parts : sequence of Release
        Stored rows of the series, oldest first.
    weights : sequence of float
        With what share each row enters.
    epochs : sequence of str
        The epochs that are counted, oldest first.
    budget : Budget
        What the whole series costs whoever it protects: that of its dearest epoch.
    frozen : bool
        Whether records of closed epochs never change. Only then do intervals hold true
        counts; else they hold what the rows were drawn from.
    note : str
        Who is protected at `budget`, a sentence of the guarantee.
    """

    bound_holds = " in each epoch in which she counts"
    """During what at most so many records of a person count."""

    def __init__(
        self,
        parts: Sequence[Any],
        weights: Sequence[float],
        *,
        epochs: Sequence[str],
        budget: Budget,
        frozen: bool,
        note: str,
    ) -> None:
        super().__init__(parts, weights, "series")
        self.epochs = tuple(epochs)
        self.frozen = frozen
        self._budget = budget
        self._note = note

    @property
    def guarantee(self) -> Guarantee:
        """What is promised for the whole series, of which this is a part."""
        first: Guarantee = self.parts[0].guarantee
        return replace(
            first, budget=self._budget, secure=self.private, notes=(self._note,)
        )

    def holds_truth(self, workload: Workload) -> BoolArray:
        """Mark the queries whose intervals hold the true answer; none unless frozen."""
        granted = super().holds_truth(workload)
        return granted if self.frozen else np.zeros_like(granted)

    def intervals(
        self,
        workload: Workload,
        confidence: float = 0.95,
        *,
        of: Scope | None = None,
        together: bool = False,
    ) -> FloatArray:
        """Return intervals that hold the answers too, as those of a release do.

        Parameters
        ----------
        workload : Workload
            What is asked of these epochs.
        confidence : float
            With what probability each interval holds, over the noise.
        of : {"truth", "noise"}, optional
            "truth" is refused where closed epochs may have changed. Left out: the truth
            where every query is granted it, else the noise alone.
        together : bool
            Whether all intervals hold at once with this probability.

        Returns
        -------
        ndarray of float64, shape (queries, 2)
            The lower and the upper end of each.
        """
        check_scope(of)
        true = of != "noise" and bool(self.holds_truth(workload).all())
        if of == "truth" and not true:
            reason = CHANGED if not self.frozen else "buckets are taken as even"
            raise IntervalError(
                f"intervals of these epochs hold the noise alone: {reason}",
                way_out='Ask for of="noise", or state frozen=True for a series whose '
                "closed epochs never change",
            )
        miss = 1.0 - as_confidence(confidence)
        if together:
            miss /= max(workload.queries, 1)
        half = noise_half_widths(self._spread(workload), miss)
        centre = np.zeros(half.size)
        for weight, part in zip(self.weights, self.parts, strict=True):
            centre += weight * workload.answer_again(*part._linear_sums).reshape(-1)
        bounds = np.column_stack([centre - half, centre + half])
        if true and counts_records(workload):
            # What is counted are records of some epochs, whatever the shares of rows.
            np.maximum(bounds, 0.0, out=bounds)
        return with_answers(bounds, self.answer(workload))

    @property
    def counts_people(self) -> bool:
        """Whether it counts records: always, whatever the shares of rows."""
        return True

    def interval_sentence(
        self,
        kind: Scope,
        confidence: float = 0.95,
        workload: Workload | None = None,
    ) -> str:
        """Say what intervals of a kind hold.

        Parameters
        ----------
        kind : Scope
            What they hold.
        confidence : float, default 0.95
            How surely each interval holds.
        workload : Workload, optional
            The queries.

        Returns
        -------
        str
            The sentence.
        """
        if kind == "noise" and not self.frozen:
            return f"Noise only: {CHANGED}."
        if kind == "truth":
            return truth_sentence(confidence, counted_records(self))
        return super().interval_sentence(kind, confidence)

    def where(
        self, conditions: Mapping[Any, Any] | None = None, /, **named: Any
    ) -> Selection:
        """Select records of these epochs, as ``HistogramRelease.where`` does.

        Parameters
        ----------
        conditions : Mapping[object, object], optional
            Conditions by attribute name or number.
        **named : object
            The same, by the attribute's name.

        Returns
        -------
        Selection
            The selection.
        """
        from .olap import Selection, join_conditions

        return Selection.of(self, join_conditions(conditions, named))

    def __repr__(self) -> str:
        first, last = self.epochs[0], self.epochs[-1]
        span = first if first == last else f"{first} to {last}"
        return (
            f"SeriesRelease({span}, from {len(self.parts)} releases, "
            f"{self.guarantee.spent})"
        )

"""What an analyst gets, all public: numbers with intervals, their price and promise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.accounting.statements import Entry
from blowfish_fast.errors import IntervalError
from blowfish_fast.measure.budgets import Budget, HasBudget
from blowfish_fast.release.file import Release
from blowfish_fast.release.grants import Scope, shown_counts, with_answers
from blowfish_fast.release.guarantee import odds_sentence
from blowfish_fast.release.second_look import MOST_CELLS, counts_of_cells
from blowfish_fast.release.wide.sparse_release import SparseRelease
from blowfish_fast.workloads import Workload

from .amounts import (
    amount_intervals,
    amount_remarks,
    amount_words,
    answers_of_rows,
    described_amounts,
)
from .frequent import described_list, list_remarks, listed_numbers
from .layout import Layout
from .planning import Plan
from .questions import Accuracy, QuantilesQuestion, Spending, adds_up

CONFIDENCE = 0.95
"""Of intervals, where the question states no beta."""
READINGS_HOLD = {
    "fresh": "",
    "any": ", together with all else that is ever read from the same answer, however "
    "the question was chosen",
    "fixed": ", for a question that was not chosen by looking at earlier answers",
}
"""How a promise goes on about numbers that were read from a stored answer."""


@dataclass(frozen=True)
class Answer(HasBudget):
    """One answered question.

    Attributes
    ----------
    question : dict
        The question as plain data.
    axes : list of dict
        For each attribute that is asked for: its name, its kind, the edges or levels of
        its bins, and their number.
    values : ndarray of float64
        The answers that are shown, one per bin (an array of the question's shape),
        stretch, box or quantile. They lie inside their intervals, and are never below 0
        where records are counted.
    intervals : ndarray of float64, shape (*values.shape, 2), or None
        Lower and upper ends; None where the mechanism knows no intervals.
    intervals_hold : {"truth", "certified", "noise", "population"}
        What each interval holds with the confidence: the true answer, or the noise
        alone, for example.
    confidence : float
        The probability with which an interval holds it, between 0 and 1.
    budget : Budget
        What was charged, once, when the answer was drawn.
    mechanism : str
        The name of the mechanism.
    promise : str
        How accurate the answer is, in a sentence.
    request : str
        The name under which the answer is stored and replayed.
    replayed : bool
        Whether the answer was stored before it was asked for this time.
    as_of : str, default ""
        When the budget was charged; the answer is about the data of that time.
    remarks : tuple of str, default ()
        What the numbers tell of the description: that much of a column lies outside
        its cells, or that it has one value only.
    sources : tuple of str, default ()
        The names of the stored answers from which this one was read, at no cost.
    holds : {"fresh", "any", "fixed"}
        For which questions the promise holds. "fresh": noise was drawn for this
        question. "any": the answer was read from others, and the promise holds for
        every such question together. "fixed": it holds for a question that was not
        chosen by looking at earlier answers.
    raw : ndarray of float64, optional
        The linear estimates from which the shown values were made; None where there are
        none, as for quantiles.
    what : str, default "records"
        What the numbers are: records, or a sum, mean or share.
    unit : str, optional
        The unit of a sum, mean or share, where the table's description has one.

    Examples
    --------
    >>> from blowfish_fast.apps.explorer import Explorer
    >>> import ibis
    >>> database = ibis.duckdb.connect()
    >>> visits = database.raw_sql("create table visits as select 41 as age")
    >>> age = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}
    >>> table = {"name": "visits", "attributes": [age]}
    >>> explorer = Explorer(table, database, epsilon=1)
    >>> asked = {"kind": "histogram", "table": "visits", "attribute": "age"}
    >>> answer = explorer.ask({**asked, "cost": {"alpha": 20, "beta": 0.05}})
    >>> answer.confidence, answer.replayed, sorted(answer.to_dict())[:3]
    (0.95, False, ['as_of', 'axes', 'confidence'])
    """

    question: dict[str, Any]
    axes: list[dict[str, Any]]
    values: FloatArray
    intervals: FloatArray | None
    intervals_hold: Scope
    confidence: float
    budget: Budget
    mechanism: str
    promise: str
    request: str
    replayed: bool
    as_of: str = ""
    remarks: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    holds: Literal["fresh", "any", "fixed"] = "fresh"
    raw: FloatArray | None = None
    what: str = "records"
    unit: str | None = None

    @property
    def cost(self) -> float:
        """What was charged for it, in the currency of the ledger; 0 where it was read.

        It was charged once, when the answer was drawn, and never for a replay.
        """
        return float(self.budget)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON.

        Returns
        -------
        dict
            The fields, with arrays as lists, and the budget under the name of its
            currency.
        """
        plain = dict(vars(self))
        budget = plain.pop("budget")
        plain["values"] = self.values.tolist()
        plain["raw"] = None if self.raw is None else self.raw.tolist()
        plain["remarks"] = list(self.remarks)
        plain["sources"] = list(self.sources)
        plain["intervals"] = None if self.intervals is None else self.intervals.tolist()
        return {**plain, budget.currency: float(budget)}


def answer_from(
    plan: Plan,
    release: Release,
    request: str,
    paid: Entry | None = None,
    *,
    replayed: bool = False,
) -> Answer:
    """Read the answer to a question off a release.

    Parameters
    ----------
    plan : Plan
        How the question was planned: its bins, policy, queries and price.
    release : Release
        What the plan's mechanism published.
    request : str
        The name under which the answer is stored.
    paid : Entry, optional
        The charge in the ledger. Without one the budget is the planned one, and no
        time is known.
    replayed : bool
        Whether the release was stored before this request.

    Returns
    -------
    Answer
        Numbers in the question's shape, with intervals, promise and remarks.
    """
    if isinstance(release, SparseRelease):
        return _list_answer(plan, release, request, paid, replayed=replayed)
    layout, workload, exact = plan.layout, plan.workload, plan.free
    stated = Budget(plan.cost, plan.mechanism.budget.power)
    budget = stated if paid is None else paid.budget
    question, shape, cost = layout.question, layout.asked_shape, layout.question.cost
    confidence = 1.0 - cost.beta if isinstance(cost, Accuracy) else CONFIDENCE
    # Two numbers stand behind each mean: each may be missed half as often.
    miss = (1.0 - confidence) / (2.0 if adds_up(question) else 1.0)
    values, intervals = _numbers(release, workload, 1.0 - miss)
    certain = exact or intervals is None
    kind: Scope = "truth" if certain else release.interval_kind(workload)
    if exact:
        values = np.rint(values)
        intervals = np.stack([values, values], axis=-1)
    raw: FloatArray | None = values
    each = isinstance(cost, Accuracy) and cost.scope == "per_query"
    if question.kind in ("cumulative", "quantiles") and not (each or exact):
        values = _never_falling(values)
    if adds_up(question):
        assert intervals is not None, "noise of one law has intervals"
        intervals = amount_intervals(layout, intervals)
        values = raw = answers_of_rows(layout, values)
        values = np.clip(values, intervals[:, 0], intervals[:, 1])
    elif isinstance(question, QuantilesQuestion):
        alpha = 0.0 if exact else _alpha_of_all(release, workload, cost, confidence)
        values, intervals = _quantiles(values, alpha, layout, question.q)
        raw = None
    elif intervals is None:
        # No true count lies below 0.
        values = np.maximum(values, 0.0)
    else:
        # Running totals were fitted: their intervals grow to hold them.
        held = with_answers(intervals.copy(), values) if kind == "truth" else intervals
        values, intervals = shown_counts(values, held)
    if question.kind != "quantiles" and values.size == math.prod(shape):
        values = values.reshape(shape)
        raw = None if raw is None else raw.reshape(shape)
        intervals = None if intervals is None else intervals.reshape(*shape, 2)
    about_amounts = amount_remarks(layout) if adds_up(question) else ()
    return Answer(
        question=layout.plain,
        axes=layout.described,
        values=values,
        intervals=intervals,
        intervals_hold=kind,
        confidence=confidence,
        budget=budget,
        mechanism=release.mechanism,
        promise=_promise(budget, layout, exact=exact),
        request=request,
        replayed=replayed,
        as_of="" if paid is None else paid.time.isoformat(),
        remarks=about_amounts or (() if exact else _remarks(layout, release)),
        raw=raw,
        **_described(layout),
    )


def _list_answer(
    plan: Plan,
    release: SparseRelease,
    request: str,
    paid: Entry | None,
    *,
    replayed: bool,
) -> Answer:
    """Read listed values off a release; its intervals hold the truth given the list."""
    layout = plan.layout
    stated = Budget(plan.cost, plan.mechanism.budget.power)
    budget = stated if paid is None else paid.budget
    values, intervals = listed_numbers(release, CONFIDENCE)
    return Answer(
        question=layout.plain,
        axes=[described_list(release, layout.question.axes[0])],
        values=values,
        intervals=intervals,
        intervals_hold="truth",
        confidence=CONFIDENCE,
        budget=budget,
        mechanism=release.mechanism,
        promise=_promise(budget, layout, exact=False),
        request=request,
        replayed=replayed,
        as_of="" if paid is None else paid.time.isoformat(),
        remarks=list_remarks(release),
    )


def answer_read(
    layout: Layout,
    values: FloatArray,
    half_widths: FloatArray,
    noted: Entry,
    source: Entry,
    *,
    replayed: bool,
) -> Answer:
    """Return an answer whose numbers were read from a stored one: Lemmas PA2, PA3.

    Parameters
    ----------
    layout : Layout
        The question, which states an accuracy.
    values : (queries,) float64
        Linear answers.
    half_widths : (queries,) float64
        How far each may be off.
    noted : Entry
        What the log says of the reading.
    source : Entry
        The charge of the answer that it was read from: its time is theirs.
    replayed : bool
        Whether it was read before.

    Returns
    -------
    Answer
        Numbers in the question's shape, with intervals of the truth.
    """
    question, shape, cost = layout.question, layout.asked_shape, layout.question.cost
    assert isinstance(cost, Accuracy), "only an accuracy is read"
    told = (noted.note or {})["read"]
    intervals: FloatArray | None = np.column_stack(
        [values - half_widths, values + half_widths]
    )
    raw: FloatArray | None = values
    if question.kind in ("cumulative", "quantiles") and cost.scope == "simultaneous":
        values = _never_falling(values)
    if isinstance(question, QuantilesQuestion):
        widest = float(half_widths.max(initial=0.0))
        values, intervals = _quantiles(values, widest, layout, question.q)
        raw = None
    else:
        assert intervals is not None
        assert raw is not None
        values, intervals = shown_counts(values, with_answers(intervals, values))
        if values.size == math.prod(shape):
            values = values.reshape(shape)
            raw = raw.reshape(shape)
            intervals = intervals.reshape(*shape, 2)
    who = _who(layout, cost)
    chosen = READINGS_HOLD[told["holds"]]
    if not chosen and cost.scope == "per_query":
        chosen = " each"
    paid = "paid" in told
    words = "Free: it follows from an answer that was paid for."
    if told["holds"] == "fresh":
        budget = source.budget
        words = (
            f"With {budget.words()}: {layout.promise(budget)}. A broader answer was "
            "bought for it, which later questions are read from."
        )
        if budget.power == 2:
            words += f" {odds_sentence(budget)}"
    elif paid:
        words = (
            f"With {source.budget.words()}, for the rest of the price: the noise of an "
            "earlier answer was lowered."
        )
    promise = (
        f"{who} within {cost.alpha:g} of the true ones{_counted(layout)}, but for a "
        f"probability of {cost.beta:g}{chosen}. {words}"
    )
    return Answer(
        question=layout.plain,
        axes=layout.described,
        values=values,
        intervals=intervals,
        intervals_hold="truth",
        confidence=1.0 - cost.beta,
        budget=source.budget if paid else noted.budget,
        mechanism=source.mechanism if paid else "read",
        promise=promise,
        request=noted.request,
        replayed=replayed,
        as_of=source.time.isoformat(),
        sources=tuple(told["sources"]),
        holds=told["holds"],
        raw=raw,
    )


def _described(layout: Layout) -> dict[str, Any]:
    """Return "what" the numbers of an answer are, and their "unit" if they have one."""
    if adds_up(layout.question):
        return described_amounts(layout)
    return {"what": "records"}


def _who(layout: Layout, cost: Accuracy) -> str:
    """Return the subject of a promise."""
    if adds_up(layout.question):
        return amount_words(layout, cost)
    if isinstance(layout.question, QuantilesQuestion):
        # Their own error is the width of an interval, in the attribute's units.
        name = layout.axes[0].spec.name
        return f"Intervals are of {name}: they follow from running totals that are"
    return "Each number is" if cost.scope == "per_query" else "All numbers are"


def _counted(layout: Layout) -> str:
    """Say among which records the truth is counted, where a person's are bounded."""
    most = layout.table.at_most
    return "" if most is None else f" among at most {most:,} records of a person"


def _remarks(layout: Layout, release: Release) -> tuple[str, ...]:
    """Say what a question about one unfiltered attribute tells of its description."""
    whole = layout.bins_of_one if layout.bins <= MOST_CELLS else None
    if whole is None or release.domain.size != layout.bins:
        return ()
    try:
        column = counts_of_cells(
            release, whole.attribute, whole.bin_outside, whole.name_of
        )
    except IntervalError:
        return ()
    return () if column is None else tuple(column.remarks())


def _numbers(
    release: Release, workload: Workload, confidence: float
) -> tuple[FloatArray, FloatArray | None]:
    """Return the linear answers, which promises are about, and their intervals."""
    linear = release.estimate if release.unfitted is None else release.unfitted
    values = np.asarray(workload.answer(linear), dtype=np.float64)
    try:
        return values, release.intervals(workload, confidence, of="noise")
    except IntervalError:
        return np.asarray(release.answer(workload), dtype=np.float64), None


def _never_falling(values: FloatArray) -> FloatArray:
    """Fit running totals that never fall nor lie below 0; the largest error shrinks."""
    from scipy.optimize import isotonic_regression

    fitted: FloatArray = isotonic_regression(values).x
    return np.maximum(fitted, 0.0)


def _alpha_of_all(
    release: Release, workload: Workload, cost: Accuracy | Spending, confidence: float
) -> float:
    """Return how far off any running total may be; NaN where nothing is known.

    Quantiles read several totals, so all must be within it at once.
    """
    if isinstance(cost, Accuracy) and cost.scope == "simultaneous":
        return cost.alpha
    miss = (1.0 - confidence) / workload.queries
    _, intervals = _numbers(release, workload, 1.0 - miss)
    if intervals is None:
        return float("nan")
    return float((intervals[:, 1] - intervals[:, 0]).max() / 2.0)


def _quantiles(
    totals: FloatArray, alpha: float, layout: Layout, parts: list[float]
) -> tuple[FloatArray, FloatArray | None]:
    """Return where parts of all records are reached, and how far that may be off.

    Every running total is within alpha; the ends are where the raised and the lowered
    totals reach the smallest and the largest number that q * total may be.
    """
    axis = layout.axes[0]
    places = np.arange(axis.asked + 1, dtype=np.float64)
    if axis.spec.kind == "number":
        places = np.asarray(axis.edges, dtype=np.float64)
    q, last = np.asarray(parts), places.size - 1
    curve = np.append(0.0, totals)
    rising = np.maximum.accumulate(curve)
    wanted = q * curve[-1]
    at = np.searchsorted(rising, wanted).clip(1, last)
    step = rising[at] - rising[at - 1]
    part = np.where(
        step > 0, (wanted - rising[at - 1]) / np.where(step > 0, step, 1), 1
    )
    values = places[at - 1] + part.clip(0, 1) * (places[at] - places[at - 1])
    if not np.isfinite(alpha):
        return values, None

    def first_at(moved: float, heights: FloatArray) -> IntArray:
        totals = np.append(0.0, curve[1:] + moved)
        return np.searchsorted(np.maximum.accumulate(totals), heights)

    low = first_at(alpha, np.maximum(q * (curve[-1] - alpha), 0.0)) - 1
    high = first_at(-alpha, q * (curve[-1] + alpha))
    ends = [
        np.minimum(places[low.clip(0)], values),
        np.maximum(places[high.clip(max=last)], values),
    ]
    return values, np.column_stack(ends)


def _promise(budget: Budget, layout: Layout, *, exact: bool) -> str:
    """Say which accuracy and which privacy hold."""
    if exact:
        return (
            "Exact and free: no edge of the policy changes these numbers, so they are "
            "public."
        )
    words = f"With {budget.words()}: {layout.promise(budget)}."
    if budget.power == 2:
        words += f" {odds_sentence(budget)}"
    accuracy = accuracy_words(layout)
    return words if accuracy is None else f"{accuracy} {words}"


def accuracy_words(layout: Layout) -> str | None:
    """Say how far an answer may be off, in the same words before it is paid and after.

    None where a question states a budget, for which no error is promised.
    """
    cost = layout.question.cost
    if not isinstance(cost, Accuracy):
        return None
    each = cost.scope == "per_query"
    who, counted = _who(layout, cost), _counted(layout)
    unit = _described(layout).get("unit")
    off = f"{cost.alpha:g} {unit}" if unit else f"{cost.alpha:g}"
    return (
        f"{who} within {off} of the true ones{counted}, but for a "
        f"probability of {cost.beta:g}{' each' if each else ''}."
    )

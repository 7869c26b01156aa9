"""A broader answer for little more, which later questions are read from: Lemma PA10.

Whoever asks for ages in bins of 20 may next ask for bins of 5. Where all running totals
cost hardly more than these five bins, they are bought instead, and the bins are read:

    asked     ages in bins of 20        alone                    epsilon .060
    bought    running totals            so that it tells those   epsilon .060
    later     ages 0 to 18, ...         read, or made finer

The table's description says how much dearer that may be (`broad`). What is bought, and
what it costs, follows from the description and from the question; whether it is bought
follows from the log besides. The question stands in the log, with the charge, before
noise is drawn: it was chosen without seeing that noise.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.accounting.statements import Entry
from blowfish_fast.advice.calibration import Calibration
from blowfish_fast.advice.comparison import compare
from blowfish_fast.apps.explorer.catalog import TableSpec
from blowfish_fast.apps.explorer.layout import Layout, lay_out
from blowfish_fast.apps.explorer.past_answers import (
    KnownAnswer,
    PastAnswers,
    any_share,
    may_tell,
    rows_over,
)
from blowfish_fast.apps.explorer.planning import Plan, Planner, by_rows
from blowfish_fast.apps.explorer.planning_work import MIDDLING, SMALL, Effort
from blowfish_fast.apps.explorer.questions import (
    Accuracy,
    HistogramQuestion,
    MarginalQuestion,
    Question,
    RangesQuestion,
    RectanglesQuestion,
    adds_up,
    read_spending,
)
from blowfish_fast.apps.explorer.same_question import request_name
from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.release.grants import bias_of, holds_truth
from blowfish_fast.workloads import Linear

from .refining import refusal

GRIDS = (1, 5)
"""Cells of a bin that broader questions ask for, of attributes with an order."""
MOST_BINS = 2**12
"""Bins of a broader question."""
MOST_HELD = 2**20
"""Its bins times the numbers that are asked for."""
MOST_OTHERS = 4
"""Further attributes whose levels are tried, one at a time: the first of the table."""
ALIKE = Fraction(101, 100)
"""Broader questions within this factor of the cheapest are taken for equally dear."""
DEAREST = 1000
"""The largest budget that a question may state."""
KEPT = 256
"""Broader questions that are remembered; the oldest is forgotten first."""


class Broader(NamedTuple):
    """A broader question at the price at which it tells a narrower one; all public.

    Attributes
    ----------
    plan : Plan
        How it would be answered. Its question states the price as its budget.
    """

    plan: Plan

    @property
    def question(self) -> Question:
        """What would be bought."""
        return self.plan.layout.question

    @property
    def cost(self) -> Fraction:
        """What that costs."""
        return self.plan.cost


class BroaderAnswer(NamedTuple):
    """How a question would be told by a broader answer that is bought for it.

    Attributes
    ----------
    name : str
        The name of the charge.
    broader : Broader
        What is bought.
    cost : Fraction
        What that costs now: nothing where it was charged before, and not read.
    charged : Entry or None
        The charge, where there is one.
    """

    name: str
    broader: Broader
    cost: Fraction
    charged: Entry | None


def broad_name(form: Question) -> str:
    """Return the name under which the broader answer of a question is stored.

    Parameters
    ----------
    form : Question
        The question in its canonical form.

    Returns
    -------
    str
        A name that no question has: "b-" and a hash of the name of the question.
    """
    return "b-" + hashlib.sha256(request_name(form).encode()).hexdigest()[:40]


def broader_questions(table: TableSpec, asked: Question) -> Iterator[Question]:
    """Yield questions whose bins tell more than a question asks for. Free; no data.

    All cells of its attributes, and bins of five of them; the same by the levels of one
    more attribute.

    Parameters
    ----------
    table : TableSpec
        The described table.
    asked : Question
        A question in its canonical form. Sums, means, shares, lists of words, and what
        states a budget, have none.

    Yields
    ------
    Question
        A question without filters whose bins are at most `MOST_BINS`.
    """
    if not isinstance(asked.cost, Accuracy) or adds_up(asked):
        return
    touched = {*asked.axes, *(stated.attribute for stated in asked.filters)}
    levels = [
        spec.name
        for spec in table.attributes
        if spec.kind == "category" and spec.name not in touched
    ]
    beside: list[set[str]] = [set(), *({name} for name in levels[:MOST_OTHERS])]
    for more in beside:
        specs = [spec for spec in table.attributes if spec.name in touched | more]
        grids = GRIDS if any(spec.kind != "category" for spec in specs) else GRIDS[:1]
        for grid in grids:
            names = [spec.name for spec in specs]
            widths = [1 if spec.kind == "category" else grid for spec in specs]
            for question in _over(asked, names, widths, ordered=len(grids) > 1):
                if _has_these_bins(asked, names, widths):
                    continue
                if lay_out(table, question).bins <= MOST_BINS:
                    yield question


def _over(
    asked: Question, names: list[str], widths: list[int], *, ordered: bool
) -> Iterator[Question]:
    """Yield the questions for all bins of some attributes."""
    about: dict[str, Any] = {"table": asked.table, "cost": asked.cost}
    if len(names) == 1:
        about |= {"attribute": names[0], "width": widths[0]}
        if ordered:
            yield HistogramQuestion(kind="cumulative", **about)
        yield HistogramQuestion(**about)
        return
    stated = None if {*widths} == {1} else widths
    yield MarginalQuestion(attributes=names, granularity=stated, **about)


def _has_these_bins(asked: Question, names: list[str], widths: list[int]) -> bool:
    """Return whether a question itself measures all of these bins, and no others."""
    if isinstance(asked, RangesQuestion | RectanglesQuestion) or asked.filters:
        return False
    return asked.axes == names and asked.widths == widths


def cheapest_broader(
    planner: Planner, table: TableSpec, asked: Question
) -> Broader | None:
    """Return the cheapest broader question that tells a question. Free; no data.

    It follows from the description of the table and the question alone.

    Parameters
    ----------
    planner : Planner
        Its currency and its samples are those of prices.
    table : TableSpec
        The described table with its policies.
    asked : Question
        A question in its canonical form.

    Returns
    -------
    Broader or None
        Of several that cost the same, the one of the most bins. None where none tells
        the question.
    """
    layout = lay_out(table, asked)
    priced = [
        broader
        for question in broader_questions(table, asked)
        if (broader := _priced(planner, table, layout, question)) is not None
    ]
    if not priced:
        return None
    least = min(broader.cost for broader in priced)
    alike = [broader for broader in priced if broader.cost <= ALIKE * least]
    return max(alike, key=lambda broader: broader.plan.layout.bins)


def _priced(
    planner: Planner, table: TableSpec, asked: Layout, question: Question
) -> Broader | None:
    """Return a broader question at the least price that keeps what is asked for."""
    cost = asked.question.cost
    assert isinstance(cost, Accuracy), "only an accuracy has broader questions"
    rows = _rows(lay_out(table, question), asked)
    if rows is None:
        return None
    try:
        shape = planner.shape(table, question)
        if shape.free:
            return None
        domain = shape.policy.domain
        terms: Any = {"hurried": True, "mechanisms": shape.work.tried}
        power = planner.currency.power
        at_one = Budget(Fraction(1, 1 if power == 1 else 4), power)
        best = compare(shape.policy, shape.workload, epsilon=at_one, **terms).best
        laws = Calibration(
            shape.policy,
            shape.workload,
            power,
            mechanisms=[best.name],
            answers=Linear(domain, rows),
        )
        samples = shape.drawn(planner.samples)
        told = laws.least(cost.alpha, cost.beta, cost.scope, samples=samples)[0]
        if told.mechanism is None or told.amount is None:
            return None
        # In whole billionths, as a question states them and a ledger charges them.
        stated = math.ceil(told.amount * 10**9) / 10**9
        if stated > DEAREST:
            return None
        spent = read_spending({planner.currency.name: stated})
        plan = planner.plan(table, question.model_copy(update={"cost": spent}))
    except BlowfishError:
        # Too large, or without a mechanism: another question is bought, or none.
        return None
    priced = by_rows(told.mechanism)
    same = type(plan.mechanism) is type(priced)
    if not same or plan.mechanism._options() != priced._options():
        # At this very budget another strategy is the best for its own numbers.
        return None
    return Broader(plan) if _is_readable(plan, rows) else None


def _rows(bins: Layout, asked: Layout) -> FloatArray | None:
    """Return the numbers of a question as rows over bins; None if they cut one."""
    rows = rows_over(bins, asked)
    return None if rows is None or rows.size > MOST_HELD else rows


def _is_readable(plan: Plan, rows: FloatArray) -> bool:
    """Return whether an answer will be a source that tells these rows: `_load`."""
    queries = Linear(plan.policy.domain, rows)
    measurement, _ = plan.mechanism._predictable(queries)
    outcome = plan.mechanism._forecast
    if plan.policy.units != 1 or not outcome.fresh:
        return False
    if outcome.interval_scope != "noise":
        return False
    if measurement.buckets.count != plan.layout.bins:
        return False
    strategy = measurement.strategy
    surely = strategy.refuses_undetermined or not strategy.unbiased
    bias = None if surely else bias_of(measurement)
    return bool(holds_truth(measurement, True, bias, queries).all())


def _single_bins(layout: Layout) -> Layout:
    """Return the layout of the bins of a question, each by itself."""
    question = layout.question
    if question.kind == "cumulative":
        question = question.model_copy(update={"kind": "histogram"})
    return lay_out(layout.table, question)


class Broadening:
    """Buys broader answers of one table.

    Parameters
    ----------
    explorer : Explorer
        The table.
    past : PastAnswers
        Its stored answers.
    """

    def __init__(self, explorer: Any, past: PastAnswers) -> None:
        self._explorer, self._past = explorer, past
        self._remembered: OrderedDict[str, Broader | None] = OrderedDict()
        self._lock = threading.Lock()

    def effort(self, form: Question) -> Effort:
        """Return how long it takes to find what is bought; what is remembered, none.

        Parameters
        ----------
        form : Question
            The question in its canonical form.

        Returns
        -------
        {"small", "middling", "large"}
            As `Planner.effort` returns it.
        """
        with self._lock:
            if request_name(form) in self._remembered:
                return "small"
        table = self._explorer.table
        sizes = [lay_out(table, each).bins for each in broader_questions(table, form)]
        if sum(sizes) <= SMALL:
            return "small"
        return "middling" if sum(sizes) <= MIDDLING else "large"

    def remember(self, form: Question, broader: Broader | None) -> None:
        """Keep what is bought for a question, as another process found it.

        Parameters
        ----------
        form : Question
            The question in its canonical form.
        broader : Broader or None
            What `cheapest_broader` returned there.
        """
        with self._lock:
            self._remembered[request_name(form)] = broader
            while len(self._remembered) > KEPT:
                self._remembered.popitem(last=False)

    def cheapest(self, form: Question) -> Broader | None:
        """Return what would be bought for a question, whatever the question costs.

        Parameters
        ----------
        form : Question
            The question in its canonical form.

        Returns
        -------
        Broader or None
            What `cheapest_broader` returns.
        """
        name = request_name(form)
        with self._lock:
            if name in self._remembered:
                return self._remembered[name]
        explorer = self._explorer
        broader = cheapest_broader(explorer.planner, explorer.table, form)
        self.remember(form, broader)
        return broader

    def begun(self, form: Question) -> Entry | None:
        """Return the charge of the broader answer of a question, if there is one.

        Parameters
        ----------
        form : Question
            The question in its canonical form.

        Returns
        -------
        Entry or None
            It was bought for this question, and is read for it at no further cost.
        """
        entry: Entry | None = self._explorer.ledger.entry(broad_name(form))
        return entry

    def plan(
        self, form: Question, price: Fraction, analyst: str | None
    ) -> BroaderAnswer | None:
        """Return the broader answer that is bought in place of a question, or None.

        Parameters
        ----------
        form : Question
            The question in its canonical form.
        price : Fraction
            What it costs otherwise.
        analyst : str or None
            Whose allotment pays.

        Returns
        -------
        BroaderAnswer or None
            None where it would be dearer than the table allows, or than what remains.
        """
        explorer, name = self._explorer, broad_name(form)
        entry = self.begun(form)
        if entry is not None:
            question = explorer.canonical((entry.note or {})["question"])
            plan = explorer.planner.plan(explorer.table, question, limited=False)
            return BroaderAnswer(name, Broader(plan), Fraction(0), entry)
        broader = self.cheapest(form)
        if broader is None:
            return None
        cost, currency = broader.cost, explorer.ledger.currency
        more = Fraction(str(explorer.table.broad))
        if cost > price and self._is_there(broader, analyst):
            # What she has of these bins did not help: the bet is not made twice.
            return None
        if cost > price * (1 + more):
            return None
        left = currency.granted(explorer.remaining(analyst))
        if currency.charged(cost) > left:
            # The narrower answer may still be paid.
            return None
        return BroaderAnswer(name, broader, cost, None)

    def _is_there(self, broader: Broader, analyst: str | None) -> bool:
        """Return whether she may read an answer over all bins of a broader question."""
        explorer, bins = self._explorer, _single_bins(broader.plan.layout)
        touched = {*broader.question.axes}
        for entry, _ in self._past.readable(explorer.table, analyst):
            if not may_tell(explorer.table, entry, touched):
                continue
            source = self._past.source(explorer.table, entry)
            if source is not None and rows_over(source.layout, bins) is not None:
                return True
        return False

    def buy(
        self, bought: BroaderAnswer, asked: Layout, analyst: str | None
    ) -> KnownAnswer:
        """Pay for a broader answer, draw it, and read a question from it.

        Parameters
        ----------
        bought : BroaderAnswer
            What `plan` returned.
        asked : Layout
            The question, which states an accuracy.
        analyst : str or None
            Whose allotment pays.

        Returns
        -------
        KnownAnswer
            The numbers, as accurate as fresh ones.

        Raises
        ------
        BudgetError
            If it is more than what is left; nothing is charged.
        FailedDrawError
            If the draw failed: that is what the charge has come to.
        """
        explorer, name = self._explorer, bought.name
        plan, entry = bought.broader.plan, bought.charged
        if entry is None:
            explorer._check_affordable({name: bought.cost}, analyst)
        if entry is None or entry.state != "stored":
            stated = bought.broader.question.model_dump(mode="json")
            told = {
                "question": stated,
                "broad": asked.question.model_dump(mode="json"),
            }
            note = explorer._note(told) if entry is None else dict(entry.note or {})
            explorer._release(plan, plan.mechanism, name, analyst, note)
            entry = explorer.ledger.entry(name)
        else:
            # A failure is told again, as that of any other question is.
            explorer.ledger.replay(name)
        assert entry is not None, "a release without a charge"
        return self._told(entry, asked)

    def _told(self, entry: Entry, asked: Layout) -> KnownAnswer:
        """Read a question from the answer that was bought for it: Lemma PA10."""
        source = self._past.source(self._explorer.table, entry)
        cost = asked.question.cost
        assert source is not None, "only what can be read is bought"
        assert source.bought is not None, "the charge names what it was bought for"
        assert source.bought.question == asked.question, "others are not fresh"
        assert isinstance(cost, Accuracy), "only an accuracy is planned"
        rows = rows_over(source.layout, asked)
        assert rows is not None, "its bins were held against the question"
        values = source.linear(rows)
        spent = math.log(len(rows)) if cost.scope == "simultaneous" else 0.0
        half_widths = source._widths(rows, cost, spent)
        if half_widths is None or half_widths.max(initial=0.0) > cost.alpha:
            # The price was found for all numbers together, and promises alpha.
            promised = np.full(len(rows), cost.alpha)
            return KnownAnswer(values, promised, entry, "fresh", "price")
        return KnownAnswer(values, half_widths, entry, "fresh", "noise")

    def bins_within(
        self, broader: Broader, cost: Accuracy, analyst: str | None
    ) -> float | None:
        """Return how far each bin will be known afterwards, free. No data is read.

        Parameters
        ----------
        broader : Broader
            What would be bought.
        cost : Accuracy
            The beta of later questions.
        analyst : str or None
            Who asks them.

        Returns
        -------
        float or None
            An alpha that holds for whatever is read later, however it was chosen. None
            where there are too many questions for one.
        """
        explorer, plan = self._explorer, broader.plan
        table = explorer.table
        registered = self._past.registrations.before(
            table.name, 2**62, analyst, everybody=table.share != "own"
        )
        finer = table.snapshot is not None and refusal(explorer) is None
        place = self._past.next_place(table, analyst)
        spent = any_share(plan.layout, place, 0 if finer else None, registered)
        miss = cost.beta * math.exp(-spent) if spent < 600.0 else 0.0
        if not miss:
            return None
        rows = rows_over(plan.layout, _single_bins(plan.layout))
        if rows is None:
            return None
        cells = Linear(plan.policy.domain, rows)
        measurement, _ = plan.mechanism._predictable(cells)
        form = cells.explicit_form(measurement.buckets)
        spread = measurement.law.spread(form).under(measurement.scales)
        return float(noise_half_widths(spread, miss).max(initial=0.0))

    def offer(
        self, broader: Broader, cost: Accuracy, analyst: str | None, *, bought: bool
    ) -> dict[str, Any]:
        """Return what `explain` says of a broader question, as plain data.

        Parameters
        ----------
        broader : Broader
            The question and its price.
        cost : Accuracy
            What was asked for.
        analyst : str or None
            Who asks.
        bought : bool
            Whether it is what would be charged.

        Returns
        -------
        dict
            The "question", "what" it counts, its "cost", whether it is "bought", and
            "bins_within": how far each of its bins is known afterwards, free.
        """
        return {
            "question": broader.question.model_dump(mode="json"),
            "what": broad_words(broader.question),
            "cost": float(broader.cost),
            "bought": bought,
            "bins_within": self.bins_within(broader, cost, analyst),
        }


def broad_words(question: Question) -> str:
    """Say what a broader question counts.

    Parameters
    ----------
    question : Question
        A question that is bought.

    Returns
    -------
    str
        Words for a sentence.
    """
    kind = "running totals" if question.kind == "cumulative" else "all bins"
    wide = [
        f"{width} cells of {name} each"
        for name, width in zip(question.axes, question.widths, strict=True)
        if width > 1
    ]
    beside = f" ({', '.join(wide)})" if wide else ""
    return f"{kind} of {' by '.join(question.axes)}{beside}"

"""What stored answers say about a new question: free, and from public values alone.

A stored release is a *source* if its answers are linear in fresh noise of one
measurement. A question is held against its bins, attribute by attribute:

    stored     ages in bins of 5, by ward       0-4 5-9 10-14 15-19 ...  x  a b c d
    asked      ages 0 to 19, ward b             a row of ones over four bins, else zeros

    asked      ages 0 to 17                     cuts a bin: this source cannot answer

Two things are then known, without looking at one noisy number:

- *sum*: if the source promised all its own numbers within alpha, a sum or difference of
  k of them is within k alpha, by the same event (Lemma PA2);
- *any*: with F questions that the source can answer, noise misses all of them together
  with a probability of beta if each is missed with beta / F (Lemma PA3).

Both hold for questions that were chosen after looking at the answers, which stored
noise by itself does not (naive caching misses far more often than it promises). A
question that was fixed before (`chosen` is false) has its own narrower intervals.
``docs/proofs/past_answers.md`` proves all of it.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.statements import Entry
from blowfish_fast.data.axes import MISSING
from blowfish_fast.errors import BlowfishError, IntervalError
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.workloads import Linear

from .catalog import TableSpec
from .layout import Layout, lay_out
from .questions import (
    Accuracy,
    FrequentQuestion,
    Question,
    RectanglesQuestion,
    adds_up,
    read_question,
)
from .registered.registrations import NAME, NOTHING, Registered, Registrations
from .same_question import canonical

RULE = 5
"""Which rule an answer was read by; the log keeps it beside the numbers."""
MOST_TRIED = 16
"""Sources that are held against one question: those that cost most come first."""
MOST_LOADED = 128
"""Releases that are kept in memory; the one used longest ago goes first."""
MOST_REMEMBERED = 512
"""Readings that are kept in memory: a page asks for the same bins again and again."""
LONGEST_REMEMBERED = 2**12
"""Numbers of a reading that is kept."""
MOST_LISTED = 4096
"""Charges among which sources are looked for, the latest ones."""
FIRST_PAGE = 16
"""Charges that are read first, to see what came since; pages then double."""
MOST_WORK = 2**22
"""Numbers of queries times bins that are written down for one source."""
LEAST_MISS = 1e-290
"""Probabilities below this have no half-widths in double precision."""

OWN_SHARE = 0.25
"""The part of beta that the numbers which a source was drawn for have among them, where
its noise may be lowered later."""

REGISTERED_SHARE = 0.25
"""The part of beta that registered questions have among them, where there are any."""

NO_COUNTS = ("frequent", "sum", "mean", "share")
"""Kinds of questions whose answers are no counts of bins."""

Holds = Literal["fresh", "any", "fixed"]


class BoxedQueries(NamedTuple):
    """The queries of a question as boxes of its own bins, filters included.

    Attributes
    ----------
    lows : (queries, axes) int64
        The first bin of each side.
    highs : (queries, axes) int64
        The bin after the last one.
    """

    lows: IntArray
    highs: IntArray


class KnownAnswer(NamedTuple):
    """What one source says about a question; all of it is public.

    Attributes
    ----------
    values : (queries,) float64
        The linear answers.
    half_widths : (queries,) float64
        How far each may be off.
    source : Entry
        The charge of the answer that was read.
    holds : {"fresh", "any", "fixed"}
        Whether half-widths hold however the question was chosen; "fresh" where the
        noise was drawn after it.
    by : {"sum", "noise", "price"}
        Whether they follow from what was promised, from the noise, or from what was
        paid for this very question.
    """

    values: FloatArray
    half_widths: FloatArray
    source: Entry
    holds: Holds
    by: Literal["sum", "noise", "price"]

    @property
    def alpha(self) -> float:
        """How far any of the answers may be off."""
        return float(self.half_widths.max(initial=0.0))

    def suffices(self, asked: Question) -> bool:
        """Return whether it is as accurate as a question asks for.

        Parameters
        ----------
        asked : Question
            The question.

        Returns
        -------
        bool
            False for one that states a budget: it wants fresh noise.
        """
        return isinstance(asked.cost, Accuracy) and self.alpha <= asked.cost.alpha


def boxed_queries(layout: Layout) -> BoxedQueries:
    """Return the queries of a question as boxes of bins.

    Parameters
    ----------
    layout : Layout
        The bins of the question.

    Returns
    -------
    BoxedQueries
        One box for each number that is asked for, in the order of the answer.
    """
    shown = layout.asked_shape
    if layout.question.kind in ("ranges", "rectangles"):
        lows, highs = layout.boxes()
    elif layout.question.kind in ("cumulative", "quantiles"):
        highs = np.arange(1, shown[0] + 1).reshape(-1, 1)
        lows = np.zeros_like(highs)
    else:
        lows = np.indices(shown).reshape(len(shown), -1).T
        highs = lows + 1
    # What passes a filter is bin 0 of its axis.
    passing = np.zeros((len(lows), len(layout.axes) - layout.shown), dtype=np.int64)
    return BoxedQueries(np.hstack([lows, passing]), np.hstack([highs, passing + 1]))


def rows_over(stored: Layout, asked: Layout) -> FloatArray | None:
    """Return the queries of a question as rows of 0 and 1 over the bins of another.

    Parameters
    ----------
    stored : Layout
        The bins of the source.
    asked : Layout
        The question.

    Returns
    -------
    (queries, bins) float64 or None
        None if a query cuts a bin, tells apart what the source did not measure, or is
        too large to be written down.
    """
    boxes = boxed_queries(asked)
    queries = len(boxes.lows)
    if queries * max(stored.coarse, 1) > MOST_WORK:
        return None
    names = [axis.spec.name for axis in stored.axes]
    sides: dict[str, FloatArray] = {}
    for at, axis in enumerate(asked.axes):
        low, high = boxes.lows[:, at, None], boxes.highs[:, at, None]
        if axis.spec.name not in names:
            cells = np.bincount(axis.labels, minlength=axis.bins)
            before = np.append(0, np.cumsum(cells))
            if (before[high] - before[low] != cells.sum()).any():
                return None
            continue
        bins = stored.axes[names.index(axis.spec.name)]
        # How many cells of each asked bin lie in each stored bin, added up.
        shared = np.zeros((axis.bins + 1, bins.bins))
        np.add.at(shared, (axis.labels + 1, bins.labels), 1.0)
        before = shared.cumsum(axis=0)
        inside = before[high[:, 0]] - before[low[:, 0]]
        if ((inside != 0) & (inside != before[-1])).any():
            return None
        sides[axis.spec.name] = (inside > 0).astype(np.float64)
    rows = np.ones((queries, 1))
    for name, bins in zip(names, stored.axes, strict=True):
        side = sides.get(name)
        side = np.ones((queries, bins.bins)) if side is None else side
        rows = (rows[:, :, None] * side[:, None, :]).reshape(queries, -1)
    return rows if stored.labels is None else _joined(rows, stored.labels)


def _joined(rows: FloatArray, labels: IntArray) -> FloatArray | None:
    """Return rows over joined bins; None if one is cut."""
    bins = int(labels.max()) + 1
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(bins))
    inside = np.add.reduceat(rows[:, order], starts, axis=1)
    whole = np.bincount(labels, minlength=bins)
    if ((inside != 0) & (inside != whole)).any():
        return None
    return (inside > 0).astype(np.float64)


def terms_of(stored: Layout, rows: FloatArray) -> IntArray | None:
    """Return how many stored numbers each query is a sum or difference of: PA2.

    Bins of a histogram are added up. Running totals and stretches are the edges of a
    graph whose nodes are the ends of bins, and a stretch is a shortest path in it:

        totals      0---20, 0---40, 0---60        [20, 60) is 2 of them
        stretches   0---20, 20---60               [0, 60) is 2 of them

    Parameters
    ----------
    stored : Layout
        The bins and queries of the source.
    rows : (queries, bins) float64
        What `rows_over` returned for it.

    Returns
    -------
    (queries,) int64 or None
        None if some query is no such sum.
    """
    shown = math.prod(stored.asked_shape)
    if rows[:, shown:].any():
        return None
    if stored.question.kind in ("histogram", "histogram2d", "marginal"):
        added: IntArray = rows[:, :shown].sum(axis=1).astype(np.int64)
        return added
    if isinstance(stored.question, RectanglesQuestion):
        own = rows_over(stored, stored)
        stored_rows = set() if own is None else {row.tobytes() for row in own}
        same = all(row.tobytes() in stored_rows for row in rows)
        return np.ones(len(rows), dtype=np.int64) if same else None
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    boxes = boxed_queries(stored)
    ends = boxes.lows[:, 0], boxes.highs[:, 0]
    graph = coo_array((np.ones(len(ends[0])), ends), shape=(shown + 1, shown + 1))
    steps = np.diff(np.pad(rows[:, :shown], ((0, 0), (1, 1))), axis=1)
    (query, low), (_, high) = np.nonzero(steps > 0), np.nonzero(steps < 0)
    first, place = np.unique(low, return_inverse=True)
    lengths = shortest_path(
        graph.tocsr(), directed=False, unweighted=True, indices=first
    )
    terms = lengths[place, high]
    if not np.isfinite(terms).all():
        return None
    return np.bincount(query, terms, minlength=len(rows)).astype(np.int64)


def promised_terms(stored: Layout, rows: FloatArray, cost: Accuracy) -> IntArray | None:
    """Return of how many promised numbers queries are sums, where the promise serves.

    Parameters
    ----------
    stored : Layout
        A question that was answered, with what was promised of its numbers.
    rows : (queries, bins) float64
        What `rows_over` returned for it.
    cost : Accuracy
        The beta and the scope that are asked for.

    Returns
    -------
    (queries,) int64 or None
        What `terms_of` returns. None where no accuracy was promised, a weaker one, or
        one for each number by itself.
    """
    stated = stored.question.cost
    if not isinstance(stated, Accuracy) or stated.beta > cost.beta:
        return None
    terms = terms_of(stored, rows)
    if terms is None or stated.scope == "simultaneous":
        return terms
    # Each number was promised by itself: no two of them are added up.
    alone = cost.scope == "per_query" or len(rows) == 1
    return terms if alone and terms.max(initial=0) <= 1 else None


def log_family(layout: Layout) -> float:
    """Return the logarithm of how many questions a source can answer: Lemma PA3.

    Each attribute contributes the sets of its bins that a question may state: every
    set of levels, every stretch of an order, what lies outside or is missing, and
    everything.

    Parameters
    ----------
    layout : Layout
        The bins of the source.

    Returns
    -------
    float
        An upper bound.
    """
    total = 0.0
    for axis in layout.axes:
        if axis.spec.kind == "category":
            total += axis.bins * math.log(2.0)
        else:
            stretches = axis.asked * (axis.asked + 1) // 2
            sets = stretches + axis.bins - axis.asked + 1
            if MISSING in axis.spec.domain().attributes[0].extras:
                # Each stretch without and with what is missing, and all that is not.
                sets += stretches + 1
            total += math.log(sets)
    return total


def any_share(
    layout: Layout, place: int, level: int | None, registered: Registered
) -> float:
    """Return how much less than beta any one question may miss with, as a logarithm.

    Parameters
    ----------
    layout : Layout
        The bins of the source.
    place : int
        Which of the sources that may be read this is, from 1 on.
    level : int or None
        How far its noise was lowered; None where it never can be.
    registered : Registered
        What was stated before its first noise.

    Returns
    -------
    float
        What the number of questions, places, levels and other parts of beta come to.
    """
    spent = log_family(layout) + _shared_by(place, level)
    if registered.questions:
        spent -= math.log1p(-REGISTERED_SHARE)
    return spent if level is None else spent - math.log1p(-OWN_SHARE)


def _shared_by(place: int, level: int | None) -> float:
    """Return the part of a place and a level, as a logarithm: Lemmas PA3, PA8."""
    at = math.log(place) + math.log(place + 1)
    return at if level is None else at + math.log((level + 1) * (level + 2))


@dataclass(frozen=True)
class PastRelease:
    """A source: a stored release and its bins.

    Attributes
    ----------
    entry : Entry
        The charge in the ledger.
    layout : Layout
        The bins that were released.
    release : HistogramRelease
        The stored release.
    level : int, optional
        How far its noise was lowered, in steps of a public grid (``refining``); None
        where it never can be.
    level_chosen : bool, default False
        Whether earlier answers may have led to that level.
    registered : Registered
        The questions that were stated before the first noise was drawn.
    bought : Layout, optional
        The question that the release was bought for, if that is a broader one
        (Lemma PA10).
    """

    entry: Entry
    layout: Layout
    release: HistogramRelease
    level: int | None = None
    level_chosen: bool = False
    registered: Registered = NOTHING
    bought: Layout | None = None

    def read(self, asked: Layout, cost: Accuracy, place: int) -> KnownAnswer | None:
        """Return what the source says about a question; None if it cannot.

        Parameters
        ----------
        asked : Layout
            The question.
        cost : Accuracy
            The beta and the scope of its promise.
        place : int
            Which of the sources that may be read this is, from 1 on: the k-th one may
            miss with beta / (k (k + 1)), so that all of them together miss with beta.
            Level i of it may miss with the part 1 / ((i + 1) (i + 2)) of that.

        Returns
        -------
        KnownAnswer or None
            The narrower of what was promised and of what the noise says.
        """
        rows = rows_over(self.layout, asked)
        if rows is None:
            return None
        values = self.linear(rows)
        readings = []
        stated = self.layout.question.cost
        terms = self._terms(rows, cost)
        promised = stated.alpha if isinstance(stated, Accuracy) else math.inf
        if self.level and terms is not None:
            promised = self._own_alpha(cost, place)
        if terms is not None and math.isfinite(promised):
            half = np.asarray(terms * promised, dtype=np.float64)
            readings.append(KnownAnswer(values, half, self.entry, "any", "sum"))
        sums = self._sums_of_bought(asked, cost)
        if sums is not None:
            readings.append(KnownAnswer(values, sums, self.entry, "any", "sum"))
        half_widths = self._noise(rows, cost, place, bins_of(asked.question))
        if half_widths is not None:
            holds: Holds = "any" if self._may_be_chosen(cost) else "fixed"
            readings.append(
                KnownAnswer(values, half_widths, self.entry, holds, "noise")
            )
        return min(readings, key=lambda reading: reading.alpha, default=None)

    def linear(self, rows: FloatArray) -> FloatArray:
        """Return the answers of rows, which are linear in the noise.

        Parameters
        ----------
        rows : (queries, bins) float64
            What `rows_over` returned for this source.

        Returns
        -------
        (queries,) float64
            Estimates before any fit.
        """
        release = self.release
        linear = release.estimate if release.unfitted is None else release.unfitted
        values: FloatArray = rows @ np.asarray(linear, dtype=np.float64).reshape(-1)
        return values

    def _terms(self, rows: FloatArray, cost: Accuracy) -> IntArray | None:
        """Return of how many promised numbers queries are sums, where that counts."""
        if self.level:
            return terms_of(self.layout, rows) if self._may_be_chosen(cost) else None
        return promised_terms(self.layout, rows, cost)

    def _sums_of_bought(self, asked: Layout, cost: Accuracy) -> FloatArray | None:
        """Return half-widths of sums of what a broader answer was bought for, or None.

        Its numbers were promised as any others are; noise that was lowered since is
        other noise.
        """
        if self.bought is None or self.level:
            return None
        rows, stated = rows_over(self.bought, asked), self.bought.question.cost
        terms = None if rows is None else promised_terms(self.bought, rows, cost)
        if terms is None or not isinstance(stated, Accuracy):
            return None
        return np.asarray(terms * stated.alpha, dtype=np.float64)

    def _noise(
        self, rows: FloatArray, cost: Accuracy, place: int, bins: str
    ) -> FloatArray | None:
        """Return half-widths by the law of the noise, or None: Lemmas PA3, PA5, PA8."""
        if self._may_be_chosen(cost):
            spent = any_share(self.layout, place, self.level, self.registered)
            if bins in self.registered.questions:
                # One of those that were stated before the noise: Lemma PA9.
                stated = math.log(self.registered.numbers) - math.log(REGISTERED_SHARE)
                stated += self._levels(place)
                spent = min(spent, stated)
        else:
            spent = math.log(len(rows)) if cost.scope == "simultaneous" else 0.0
        return self._widths(rows, cost, spent)

    def _may_be_chosen(self, cost: Accuracy) -> bool:
        """Return whether noise may have led to the question, or to the level."""
        return cost.chosen or self.level_chosen

    def _own_alpha(self, cost: Accuracy, place: int) -> float:
        """Return how far all numbers that the source was drawn for may be off: PA8.

        They were fixed before its noise, whatever is asked later, and have a share of
        beta of their own.
        """
        own = rows_over(self.layout, self.layout)
        if own is None:
            return math.inf
        spent = math.log(len(own)) + self._shared(place) - math.log(OWN_SHARE)
        half_widths = self._widths(own, cost, spent)
        return math.inf if half_widths is None else float(half_widths.max())

    def _shared(self, place: int) -> float:
        """Return how much less than beta other questions may miss with, as a log."""
        left = math.log1p(-REGISTERED_SHARE) if self.registered.questions else 0.0
        return self._levels(place) - left

    def _levels(self, place: int) -> float:
        """Return how much less than beta it may miss with at its level, as a log."""
        return _shared_by(place, self.level)

    def _widths(
        self, rows: FloatArray, cost: Accuracy, spent: float
    ) -> FloatArray | None:
        """Return half-widths of rows that miss with beta e^-spent each, or None."""
        miss = cost.beta * math.exp(-spent) if spent < 600.0 else 0.0
        if miss < LEAST_MISS:
            return None
        workload = Linear(self.release.domain, rows)
        try:
            if not self.release.holds_truth(workload).all():
                return None
            return self.release._half_widths(workload, miss)
        except IntervalError:
            return None


class _Listed:
    """Charges that somebody may read, oldest first, as far as they were looked at."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.skipped = 0
        self.last = 0


class PastAnswers:
    """The stored answers of one table that new questions may be read from.

    Parameters
    ----------
    ledger : Ledger
        Where they are stored.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._loaded: OrderedDict[str, PastRelease | None] = OrderedDict()
        self._readings: OrderedDict[tuple[Any, ...], KnownAnswer | None] = OrderedDict()
        self._lists: dict[str | Literal[False] | None, _Listed] = {}
        self.registrations = Registrations(ledger)
        """Questions that were stated in advance."""
        self._lock = threading.Lock()

    def read(
        self, table: TableSpec, asked: Question, analyst: str | None
    ) -> KnownAnswer | None:
        """Return the narrowest reading of a question; None where nothing is known.

        Which sources are tried, and which is taken, follows from questions, scales and
        prices: from the public transcript, never from noisy values (Lemma PA1).

        Parameters
        ----------
        table : TableSpec
            The described table; its `share` says whose answers may be read.
        asked : Question
            The question in its canonical form. One that states a budget is read at the
            usual beta of .05.
        analyst : str or None
            Who asks.

        Returns
        -------
        KnownAnswer or None
            Of a single source: averages of several promise nothing (Lemma PA4).
        """
        if isinstance(asked, FrequentQuestion) or adds_up(asked):
            return None
        cost = asked.cost if isinstance(asked.cost, Accuracy) else Accuracy(alpha=1)
        touched = {*asked.axes, *(stated.attribute for stated in asked.filters)}
        places = [
            (entry, place)
            for entry, place in self.readable(table, analyst)
            if may_tell(table, entry, touched)
        ]
        if not places:
            return None
        # By price, not by what they say.
        places.sort(key=lambda pair: (-whole_price(pair[0]), pair[1]))
        # What a source says of a question does not depend on the alpha that is asked
        # for, or on the budget that is stated.
        bins = bins_of(asked)
        terms = (bins, cost.beta, cost.scope, cost.chosen)
        layout: Layout | None = None
        best: KnownAnswer | None = None
        for entry, place in places[:MOST_TRIED]:
            key = (entry.request, place, *terms)
            with self._lock:
                remembered = key in self._readings
                reading = self._readings.get(key)
            if not remembered:
                layout = layout or lay_out(table, asked)
                source = self.source(table, entry)
                reading = None if source is None else source.read(layout, cost, place)
                self._remember(key, reading)
            if reading is not None and (best is None or reading.alpha < best.alpha):
                best = reading
        return best

    def _remember(self, key: tuple[Any, ...], reading: KnownAnswer | None) -> None:
        """Keep a reading, which is a function of the log and of the question alone."""
        if reading is not None:
            if reading.values.size > LONGEST_REMEMBERED:
                return
            # Several people are told the same arrays.
            for numbers in (reading.values, reading.half_widths):
                numbers.flags.writeable = False
        with self._lock:
            self._readings[key] = reading
            while len(self._readings) > MOST_REMEMBERED:
                self._readings.popitem(last=False)

    def readable(
        self, table: TableSpec, analyst: str | None
    ) -> list[tuple[Entry, int]]:
        """Return the charges whose answers somebody may read, with their places.

        The place of a charge is its number among those that the rule of the table lets
        her read, oldest first. One that was made finer later has the place of the
        first, and takes none of its own: levels share beta by themselves. A place never
        falls below that number, so all sources together have their share of beta.

        Parameters
        ----------
        table : TableSpec
            The described table; its `share` says whose answers may be read.
        analyst : str or None
            Who asks.

        Returns
        -------
        list of (Entry, int)
            Charges that were paid, answered or not, with their places from 1 on.
        """
        own = table.share == "own"
        with self._lock:
            listed = self._lists.setdefault(analyst if own else False, _Listed())
            self._look_again(listed, analyst, everybody=not own)
            entries, skipped = list(listed.entries), listed.skipped
        if table.share == "published":
            told = {(entry.note or {}).get("publishes") for entry in entries}
            hers = {entry.request for entry in entries if entry.analyst == analyst}
        paid = [entry for entry in entries if entry.budget.amount]
        roots = [entry.request for entry in paid if _takes_a_place(entry)]
        of = dict(zip(roots, range(skipped + 1, skipped + 1 + len(roots)), strict=True))
        firsts = ((entry, refined_as(entry).get("root")) for entry in paid)
        placed = [
            (entry, of[root or entry.request])
            for entry, root in firsts
            if (root or entry.request) in of
        ]
        if table.share == "published":
            return [pair for pair in placed if pair[0].request in told | hers]
        return placed

    def next_place(self, table: TableSpec, analyst: str | None) -> int:
        """Return the place that the next charge of somebody will have; `readable`.

        Parameters
        ----------
        table : TableSpec
            The described table; its `share` says whose answers may be read.
        analyst : str or None
            Who asks.

        Returns
        -------
        int
            One more than the places that were taken so far.
        """
        self.readable(table, analyst)
        with self._lock:
            listed = self._lists[analyst if table.share == "own" else False]
            return listed.skipped + sum(map(_takes_a_place, listed.entries)) + 1

    def _look_again(
        self, listed: _Listed, analyst: str | None, *, everybody: bool
    ) -> None:
        """Read the charges that came since; of a long log the latest ones."""
        payer = None if everybody else analyst
        waiting = [
            at for at, entry in enumerate(listed.entries) if entry.state == "reserved"
        ]
        for at in waiting:
            again = self._ledger.entry(listed.entries[at].request)
            assert again is not None, "charges stay"
            listed.entries[at] = again
        new: list[Entry] = []
        page, before, joined = FIRST_PAGE, None, False
        while len(new) < MOST_LISTED and not joined:
            entries = self._ledger.history(last=page, before=before, analyst=payer)
            new = [entry for entry in entries if entry.number > listed.last] + new
            joined = len(entries) < page or entries[0].number <= listed.last
            if entries:
                page, before = 2 * page, entries[0].number
        if not new:
            return
        listed.last = new[-1].number
        if not joined:
            listed.entries.clear()
            # Finer ones among them are counted as well: a place that is too large has
            # less of beta than it may have.
            listed.skipped = self._ledger.count_charges(
                new[0].number, analyst, everybody=everybody
            )
        if not everybody:
            new = [entry for entry in new if entry.analyst == analyst]
        listed.entries += new
        gone = listed.entries[:-MOST_LISTED]
        listed.skipped += sum(map(_takes_a_place, gone))
        del listed.entries[: len(gone)]

    def source(self, table: TableSpec, entry: Entry) -> PastRelease | None:
        """Return a stored release with its bins; None if it is no source.

        Parameters
        ----------
        table : TableSpec
            The described table.
        entry : Entry
            A charge that `readable` lists.

        Returns
        -------
        PastRelease or None
            None also for a draw that failed.
        """
        with self._lock:
            if entry.request in self._loaded:
                self._loaded.move_to_end(entry.request)
                return self._loaded[entry.request]
        source = self._load(table, entry)
        with self._lock:
            self._loaded[entry.request] = source
            while len(self._loaded) > MOST_LOADED:
                self._loaded.popitem(last=False)
        return source

    def _load(self, table: TableSpec, entry: Entry) -> PastRelease | None:
        try:
            release = self._ledger.replay(entry.request)
            asked = canonical(table, read_question(_question_of(entry)))
            layout = lay_out(table, asked)
        except BlowfishError:
            # A failed draw is no source, and neither is what is no question any more.
            return None
        if not isinstance(release, HistogramRelease):
            return None
        level = refined_as(entry).get("level", 0 if entry.version else None)
        if level:
            # Half-widths of its level hold however it was reached: Lemma PA8.
            release = replace(release, fresh=True)
        linear = release.interval_scope == "noise" and release.fresh
        if not linear or len(release.measurements) != 1:
            return None
        cells = release.domain.size
        if cells != layout.bins or release.measurements[0].buckets.count != cells:
            # Which questions buckets that were chosen privately fit is no public fact.
            return None
        chosen = bool(refined_as(entry).get("chosen", False))
        bought = _bought_for(table, entry)
        if self._ledger.entry(NAME.format(table.name, 1)) is None:
            # Hardly anybody registers anything.
            return PastRelease(entry, layout, release, level, chosen, bought=bought)
        root = self._ledger.entry(refined_as(entry).get("root", entry.request))
        assert root is not None, "charges stay"
        registered = self.registrations.before(
            table.name, root.number, root.analyst, everybody=table.share != "own"
        )
        return PastRelease(entry, layout, release, level, chosen, registered, bought)


def bins_of(asked: Question) -> str:
    """Return what a question asks for, whatever accuracy it states.

    Parameters
    ----------
    asked : Question
        A question in its canonical form.

    Returns
    -------
    str
        The question without its cost, as JSON.
    """
    return asked.model_dump_json(exclude={"cost"})


def count_numbers(table: TableSpec, asked: Question) -> int:
    """Return how many numbers a question for counts has.

    Parameters
    ----------
    table : TableSpec
        The described table.
    asked : Question
        A question in its canonical form.

    Returns
    -------
    int
        Quantiles have as many as the running totals that they are read from.
    """
    return len(boxed_queries(lay_out(table, asked)).lows)


def refined_as(entry: Entry) -> dict[str, Any]:
    """Return what the log says of a charge that made another answer finer.

    Parameters
    ----------
    entry : Entry
        A charge.

    Returns
    -------
    dict
        The "root" of the chain, which one it is finer "of", its "level", whether
        earlier answers may have led to that ("chosen"), what the chain costs in all as
        "epsilon", and the "question" of the root. Empty for others.
    """
    told: dict[str, Any] = (entry.note or {}).get("refined") or {}
    return told


def _takes_a_place(entry: Entry) -> bool:
    """Return whether a charge was for noise of its own, and not for less of another."""
    return bool(entry.budget.amount) and not refined_as(entry)


def _question_of(entry: Entry) -> dict[str, Any]:
    """Return the question whose bins the answer of a charge has."""
    told: dict[str, Any] = refined_as(entry) or entry.note or {}
    question: dict[str, Any] = told.get("question") or {}
    return question


def _bought_for(table: TableSpec, entry: Entry) -> Layout | None:
    """Return the question that a broader answer was bought for; None for others."""
    stated = (entry.note or {}).get("broad")
    if stated is None:
        return None
    return lay_out(table, canonical(table, read_question(stated)))


def whole_price(entry: Entry) -> Fraction:
    """Return what all noise of an answer costs, what was paid before it included.

    Parameters
    ----------
    entry : Entry
        A charge.

    Returns
    -------
    Fraction
        What it cost; of one that was made finer, what the chain cost.
    """
    whole = refined_as(entry).get("epsilon")
    return entry.budget.amount if whole is None else Fraction(whole)


def may_tell(table: TableSpec, entry: Entry, touched: set[str]) -> bool:
    """Return whether a charge was for a stored answer over all touched attributes.

    Parameters
    ----------
    table : TableSpec
        The described table.
    entry : Entry
        A charge.
    touched : set of str
        The attributes of a question and of its filters.

    Returns
    -------
    bool
        Whether its bins may tell the question.
    """
    question = _question_of(entry)
    if entry.state != "stored" or not entry.budget.amount:
        return False
    if question.get("table") != table.name or question["kind"] in NO_COUNTS:
        return False
    axes = question.get("attributes") or [question.get("attribute")]
    filters = [stated["attribute"] for stated in question.get("filters", ())]
    return touched <= {*axes, *filters}

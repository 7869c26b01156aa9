"""Stored answers read once more, as numbers of the population: free, and never unasked.

The curator says in the description of a table how its records were drawn. An answer
that was paid for then has intervals of a third kind: beside those of the true number of
records, or of the noise alone, those of the population, over the draw of the sample and
the noise. They are read off the stored release (``docs/proofs/population.md``), which
costs nothing.

Of strata, and of records with weights, a record stands for more people in one class
than in another. So a question has such intervals where it shows the column of the
classes, which are then bins of their own; they are added up where one asks for that:

    age        region    records    people           added up
    0 to 20    north     30         30 x 12,000/400  900
    0 to 20    south     12         12 x 36,842/600  737            1,637

Shares and means are read from the two numbers that were measured of each group, added
up over strata with what a record stands for. No sum of squares was measured: how far
values vary is taken at its largest for their mean (Lemma PN19).
"""

from __future__ import annotations

import json
import math
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.apps.explorer.amounts import places_of
from blowfish_fast.apps.explorer.answers_given import CONFIDENCE, Answer, answer_from
from blowfish_fast.apps.explorer.catalog import TableSpec
from blowfish_fast.apps.explorer.layout import ALL_RECORDS, Layout
from blowfish_fast.apps.explorer.past_answers import refined_as
from blowfish_fast.apps.explorer.planning import Plan
from blowfish_fast.apps.explorer.questions import (
    Question,
    adds_up,
    read_question,
)
from blowfish_fast.apps.explorer.same_question import in_asked_order
from blowfish_fast.errors import IntervalError, SizeError
from blowfish_fast.release.grants import with_answers
from blowfish_fast.release.query_grid import SparseRows
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.release.sampling.designs import (
    Poisson,
    SamplingDesign,
    Simple,
    Stratified,
    Weighted,
)
from blowfish_fast.release.sampling.numbers import (
    count_parts,
    population_counts,
    scaled_counts,
)
from blowfish_fast.release.sampling.ratios import RatioOfSums
from blowfish_fast.release.sampling.sampled_release import (
    CellClasses,
    Method,
    Sampled,
    VarianceParts,
    as_sparse,
    cell_rows,
    check_method,
    equally_weighted,
    has_exact,
    refuse_exact,
    sampled_sentence,
)
from blowfish_fast.release.sampling.shares import shares_of_declared
from blowfish_fast.workloads import Workload

if TYPE_CHECKING:
    from blowfish_fast.apps.explorer.exploration import Explorer

MOST_NUMBERS = 2**12
"""Numbers of one answer whose intervals are worked out while somebody waits."""
COUNTS = ("histogram", "histogram2d", "marginal", "cumulative", "ranges", "rectangles")
"""Kinds of questions that count records."""
TWO_NUMBERS = ("share", "mean")
"""Kinds of questions that are the quotient of two numbers of each group."""
BOUNDED = (
    "How far values lie from their mean was not measured: it is taken at its largest, "
    "as if each lay at one of its bounds."
)
"""What is said of the interval of a mean: Lemma PN19."""


def population_answer(
    explorer: Explorer,
    request: str,
    *,
    confidence: float = 0.95,
    method: Method | None = None,
    together: bool = False,
) -> Answer:
    """Return a stored answer as numbers of the population. Free.

    Parameters
    ----------
    explorer : Explorer
        The table, whose description says how the records were drawn.
    request : str
        The name that the `Answer` carries.
    confidence : float, default 0.95
        Over the draw of the sample and the noise.
    method : {"exact", "normal"} or None
        How the sampling is counted: by its own law, or as a normal variable. By default
        by its own law, wherever there is one.
    together : bool, default False
        Whether strata, or classes of weights, are added up: the answer then has one
        attribute less.

    Returns
    -------
    Answer
        Numbers of people, shares or means, with ``intervals_hold="population"``. Its
        promise says on whose word, its remark which part of the variance is noise.

    Raises
    ------
    IntervalError
        If nobody said how the records were drawn, there is no such answer, or no
        interval of the population is known for it; the message gives the reason.
    SizeError
        If the answer has more than 2^12 numbers.

    Examples
    --------
    >>> import ibis
    >>> from blowfish_fast.apps.explorer import Explorer
    >>> database = ibis.duckdb.connect()
    >>> rows = "select 41 as age from range(90)"
    >>> visits = database.raw_sql(f"create table visits as {rows}")
    >>> age = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 50}}
    >>> drawn = {"drawn": "simple", "population": 48_842}
    >>> table = {"name": "visits", "attributes": [age], "sample": drawn}
    >>> explorer = Explorer(table, database, epsilon=1)
    >>> asked = {"kind": "histogram", "table": "visits", "attribute": "age"}
    >>> answer = explorer.ask({**asked, "cost": {"alpha": 20, "beta": 0.05}})
    >>> people = population_answer(explorer, answer.request)
    >>> people.intervals_hold, people.what, people.intervals.shape
    ('population', 'people', (2, 2))
    """
    if explorer.table.sample is None:
        raise IntervalError(
            "the description of this table does not say how its records were drawn",
            way_out="The curator states it where they are a sample: sample = "
            '{"drawn": "simple", "population": 48842}; if they are everybody, the '
            "intervals of the answer itself are all there is",
            code="no_sampling_design",
        )
    design = explorer.table.sample.design()
    stored = explorer._stored(request)
    if stored is None:
        _refuse_read(explorer, request)
    plan, release, entry = stored
    _refuse(plan, release)
    asked = (entry.note or {})["question"]
    plain = answer_from(plan, release, request, entry, replayed=True)
    assert isinstance(release, HistogramRelease), "others were refused a line above"
    # That a table of persons has no sample, its description made sure of.
    drawn = replace(release, design=design)
    classes = bin_classes(plan.layout, design)
    numbers = _Numbers(plan, drawn, design, classes)
    shape = plan.layout.asked_shape
    if together:
        numbers, shape = _added_up(numbers, plan.layout)
        plain = replace(plain, axes=_without_strata(plain.axes, plan.layout))
    bounds, values = numbers.bounds(confidence, method), numbers.estimates(plain)
    if numbers.is_ratio:
        bounds = with_answers(bounds, values)
    if values.size == math.prod(shape):
        values, bounds = values.reshape(shape), bounds.reshape(*shape, 2)
    exact = (method or numbers.usual) == "exact"
    of_population: dict[str, Any] = {
        "values": values,
        "intervals": bounds,
        "intervals_hold": "population",
        "confidence": confidence,
        "promise": sampled_sentence(design, exact, confidence),
        "remarks": numbers.parts(),
        "raw": None,
        "what": numbers.what(plain.what),
    }
    people, question = replace(plain, **of_population), read_question(asked)
    if together:
        return _in_remaining_order(people, question)
    return in_asked_order(people, question)


def sample_words(table: TableSpec) -> str:
    """Say how the records of a table were drawn, as a part of a sentence.

    Parameters
    ----------
    table : TableSpec
        A described table, which is a sample.

    Returns
    -------
    str
        The design in words; and what it lacks, where no interval follows from it.
    """
    assert table.sample is not None, "only samples are described"
    words, column = table.sample.design().describe(), table.sample.column
    if column is None or table.sample.drawn != "stratified":
        return words
    if _is_held(table, column):
        return words
    return f"{words} (no interval of counts follows from it while {column} is secret)"


def _is_held(table: TableSpec, column: str) -> bool:
    """Return whether nobody is said to have moved from one stratum to another."""
    seen = table.policy().through([column])
    return not seen.has_bottom and seen.edge_count == 0


def bin_classes(layout: Layout, design: SamplingDesign) -> CellClasses | None:
    """Return the strata, or classes of weights, of the bins of a question.

    Parameters
    ----------
    layout : Layout
        The bins of a question that was answered.
    design : SamplingDesign
        How the records were drawn.

    Returns
    -------
    CellClasses or None
        None for a design in which all records stand for as many people.

    Raises
    ------
    IntervalError
        If the question does not keep the classes apart.
    """
    if equally_weighted(design):
        return None
    sample, question = layout.table.sample, layout.question
    assert sample is not None, "the design is that of the table"
    column = sample.column
    assert column is not None, "strata and weights are those of a column"
    what = "strata" if isinstance(design, Stratified) else "classes of weights"
    if layout.strata_axis is None:
        raise IntervalError(
            f"a record stands for more people in some {what} than in others, so only "
            f"answers that show each of them, by {column!r}, speak of the population",
            received=f"an answer by {' and '.join(question.axes) or 'no attribute'}",
            way_out=_shown_by(layout, column),
        )
    if isinstance(design, Stratified) and adds_up(question):
        # Each group lies in one stratum, of which its records are a simple sample.
        return None
    levels = _levels(layout, design)
    if isinstance(design, Stratified) and not _is_held(layout.table, column):
        blocks = json.dumps([[level] for level in levels])
        raise IntervalError(
            "how many were drawn of each stratum must be public, and the policy of "
            f"this table keeps secret what the {column} of somebody is",
            way_out=f'The curator states it, in "policies": {{"{column}": {{"kind": '
            f'"blocks", "blocks": {blocks}}}}}, with "extras_joined": "apart" of '
            f"{column}, before the first charge",
        )
    numbers = np.full(layout.bins, len(levels), dtype=np.int64)
    of_coarse = np.where(layout.strata < 0, len(levels), layout.strata)
    places = np.arange(layout.coarse) if layout.labels is None else layout.labels
    # All coarse cells of a bin have one class: see `Layout.labels`.
    numbers[places] = of_coarse
    shown = math.prod(axis.asked for axis in layout.axes[: layout.shown])
    if adds_up(question):
        # Groups, by the bins of what is added up.
        shown *= layout.axes[layout.shown].asked
    if (numbers[:shown] == len(levels)).any():
        raise IntervalError(
            f"records whose {column} is missing are of none of the {what}",
            way_out="Ask without the row of missing values: missing = false",
        )
    return CellClasses(numbers, levels)


def _shown_by(layout: Layout, column: str) -> str:
    """Say which question shows the strata, or the classes of weights."""
    question = layout.question
    if adds_up(question):
        if column == getattr(question, "attribute", None):
            return f"Ask for counts by {column}, whose classes are its cells"
        return (
            f'Ask for groups that show them: "by": {[*question.axes, column]}, the '
            f"{column} by single cells; together=True adds them up"
        )
    return (
        'Ask for a table of both: {"kind": "marginal", "attributes": '
        f"{[*question.axes, column]}}}, the {column} by single cells"
    )


def _levels(layout: Layout, design: SamplingDesign) -> tuple[Any, ...]:
    """Return what names the classes in a design, in the order of cells."""
    axis = layout.axes[layout.strata_axis or 0]
    (attribute,) = axis.spec.domain().attributes
    if attribute.levels is None or not isinstance(design, Stratified):
        return tuple(range(attribute.regular))
    # Descriptions are JSON, so strata are named by texts.
    return tuple(str(level) for level in attribute.levels[: attribute.regular])


def _added_up(numbers: _Numbers, layout: Layout) -> tuple[_Numbers, tuple[int, ...]]:
    """Return the numbers of all classes together, and the shape that is left."""
    from scipy import sparse

    at, shape = layout.strata_axis, layout.asked_shape
    if isinstance(numbers.design, Stratified) and numbers.is_ratio:
        kind = layout.question.kind
        asked = [getattr(layout.question, "attribute", ""), *layout.question.axes]
        raise IntervalError(
            f"a {kind} over several strata needs to know how many were drawn of each, "
            "which answers of this kind do not measure",
            received="together=True",
            way_out=f"Read the {kind} of each stratum, or ask for counts, which are "
            f'added up: {{"kind": "marginal", "attributes": {asked}}}',
        )
    kinds = ("histogram", "histogram2d", "marginal", *TWO_NUMBERS)
    if numbers.classes is None or at is None or layout.question.kind not in kinds:
        raise IntervalError(
            "strata, or classes of weights, are added up where a histogram, a table, "
            "or shares or means by group show each of them",
            received=f"a question of the kind {layout.question.kind}",
            way_out="Leave together out",
        )
    left = shape[:at] + shape[at + 1 :]
    grid = np.arange(math.prod(left)).reshape(left)
    into = np.broadcast_to(np.expand_dims(grid, at), shape).reshape(-1)
    ones = np.ones(into.size)
    sums = sparse.csr_array((ones, (into, np.arange(into.size))))
    if numbers.is_ratio:
        # The first numbers of all groups stand before the second ones.
        sums = sparse.block_diag([sums, sums], format="csr")
    rows = sparse.csr_array(sums @ cell_rows(numbers.workload))
    return numbers.of(SparseRows(numbers.release.domain, rows)), left or (1,)


def _without_strata(axes: list[Any], layout: Layout) -> list[Any]:
    """Return the axes of an answer without that of the strata, or all records."""
    at = layout.strata_axis
    return [axis for place, axis in enumerate(axes) if place != at] or [ALL_RECORDS]


def _in_remaining_order(answer: Answer, asked: Question) -> Answer:
    """Return an answer whose strata were added up in the order of whoever asked."""
    names = [axis["attribute"] for axis in answer.axes]
    plain = asked.model_dump(mode="json")
    turn = [names.index(name) for name in asked.axes if name in names] or [0]
    assert answer.intervals is not None, "they were worked out a moment ago"
    return replace(
        answer,
        question=plain,
        axes=[answer.axes[at] for at in turn],
        values=np.ascontiguousarray(answer.values.transpose(turn)),
        intervals=np.ascontiguousarray(answer.intervals.transpose(*turn, len(turn))),
    )


def _refuse_read(explorer: Explorer, request: str) -> NoReturn:
    """Refuse an answer without fresh noise of its own; the way out works for it.

    Noise that was lowered later is no fresh noise: whoever saw the first chose the
    question, and how much finer, by it, so that its law at that level alone promises
    nothing (Lemma PA8). Intervals of a population start from that law.
    """
    entry = explorer.ledger.entry(request)
    note = {} if entry is None else entry.note or {}
    sources = note.get("read", {}).get("sources", [request])
    made_of = [explorer.ledger.entry(name) for name in sources]
    finer = any(source is not None and refined_as(source) for source in made_of)
    raise IntervalError(
        "intervals of the population are read from an answer that was paid for, with "
        "fresh noise of its own",
        received="one that was made finer"
        if finer
        else "one that follows from others, or is none",
        way_out="Ask the question under a name of its own (request=), which draws and "
        "charges fresh noise"
        if finer
        else "Ask for those of the answers that it names as its sources",
    )


def _refuse(plan: Plan, release: Any) -> None:
    """Refuse questions that have no interval of the population here."""
    question = plan.layout.question
    if question.kind not in (*COUNTS, *TWO_NUMBERS) or not isinstance(
        release, HistogramRelease
    ):
        raise IntervalError(
            "intervals of the population are known here of counts, shares and means",
            received=f"a question of the kind {question.kind}",
            way_out="Ask for a histogram, a share or a mean; of quantiles and sums a "
            'release with bf.sampling knows what is known, of="population"',
        )
    if plan.workload.queries > MOST_NUMBERS:
        raise SizeError(
            f"intervals of the population are worked out for at most 2^12 = "
            f"{MOST_NUMBERS:,} numbers at a time; this answer has "
            f"{plan.workload.queries:,}. Ask for coarser bins"
        )


class _Numbers:
    """The numbers of one answer, in the population.

    Parameters
    ----------
    plan : Plan
        How the question was planned.
    release : HistogramRelease
        What was published, with its design.
    design : SamplingDesign
        How the records were drawn.
    classes : CellClasses, optional
        Strata, or classes of weights, of the bins.
    """

    def __init__(
        self,
        plan: Plan,
        release: Any,
        design: SamplingDesign,
        classes: CellClasses | None = None,
    ) -> None:
        self.release, self.design, self.classes = release, design, classes
        self.workload: Workload = plan.workload
        kind = plan.layout.question.kind
        self.is_ratio = kind in TWO_NUMBERS
        self.places = places_of(plan.layout) if self.is_ratio else None
        measures = {"share": "relative_count", "mean": "mean"}
        self.measure = measures.get(kind, "count")
        # What was planned was laid out before the records were read, unless a part of
        # the budget chose buckets by them.
        partition = getattr(plan.mechanism, "partition", None)
        by_data = partition is not None or plan.mechanism.name == "dawa"
        # Nor where another mechanism drew it than the one that is planned today.
        by_data = by_data or release.mechanism != plan.mechanism.name
        self.fixed = None if by_data else True

    def of(self, workload: Workload) -> _Numbers:
        """Return the same for other numbers of the same release."""
        others = copy(self)
        others.workload = workload
        return others

    @property
    def usual(self) -> Method:
        """How sampling is counted unless somebody says it: by its law where it can."""
        of_part = self.is_ratio and isinstance(self.design, Simple)
        # Of a group nobody stated how many people it has, and no total was measured.
        unknown = of_part and self.design.everybody is not None
        has_law = has_exact(self.design, self.measure) and not unknown
        return "exact" if has_law else "normal"

    def bounds(self, confidence: float, method: Method | None) -> FloatArray:
        """Return the intervals, in the order of queries."""
        if not self.is_ratio:
            return population_counts(
                self.release,
                self.workload,
                confidence,
                method,
                self.fixed,
                self.classes,
            )
        check_method(method)
        if (method or self.usual) == "normal":
            ratio = self._ratio(confidence)
            alike = not isinstance(self.design, Weighted)
            return self._in_units(ratio.share_bounds() if alike else ratio.bounds())
        if self.measure == "mean" or not equally_weighted(self.design):
            refuse_exact("exact", "means, and shares of strata and weights, here")
        source = Sampled(self.release, confidence, self.fixed)
        such, every = self._group_rows()
        cells = self.release.domain
        two = (SparseRows(cells, rows) for rows in (such, as_sparse(every - such)))
        return shares_of_declared(source, *two)

    def estimates(self, answer: Answer) -> FloatArray:
        """Return what the numbers are estimated to be."""
        if not self.is_ratio:
            return scaled_counts(self.release, self.workload, self.classes)
        if not isinstance(self.design, Weighted):
            # A share of the sample is that of the population, and so is a mean.
            return answer.values.reshape(-1)
        middle = self._ratio(CONFIDENCE).estimate
        assert self.places is not None, "a ratio has places"
        return self.places.low + self.places.width * middle

    def parts(self) -> tuple[str, ...]:
        """Say which part of the variance comes from noise, over all numbers."""
        try:
            if self.is_ratio:
                sampling, noise = self._ratio(CONFIDENCE).parts()
            else:
                sampling, noise = count_parts(
                    self.release, self.workload, self.fixed, self.classes
                )
        except IntervalError:
            return ()
        middle = VarianceParts(float(np.mean(sampling)), float(np.mean(noise)))
        said = str(middle).replace("the variance", "the mean variance")
        return (said, BOUNDED) if self.measure == "mean" else (said,)

    def _group_rows(self) -> tuple[Any, Any]:
        """Return the first number of each group, and both together, by record."""
        assert self.places is not None, "a ratio has places"
        rows = cell_rows(self.workload) / self.places.steps
        groups = rows.shape[0] // 2
        return as_sparse(rows[:groups]), as_sparse(rows[:groups] + rows[groups:])

    def _ratio(self, confidence: float) -> RatioOfSums:
        """Return the quotients of both numbers, between 0 and 1."""
        release = self.release
        if isinstance(self.design, Simple | Stratified):
            # How many were drawn of how many is not in the answer: the sampling varies
            # at most as it does where few of many were.
            release = replace(release, design=Simple())
        source = Sampled(release, confidence, self.fixed, self.classes)
        return RatioOfSums(source, *self._group_rows(), (0.0, 1.0))

    def _in_units(self, bounds: FloatArray) -> FloatArray:
        """Return intervals between 0 and 1 in the unit of the answer: Lemma PN19."""
        places = self.places
        assert places is not None, "a ratio has places"
        reach = places.slack * np.array([-1.0, 1.0])
        within = places.low + places.width * bounds + reach
        return np.clip(within, places.low, places.high)

    def what(self, counted: str) -> str:
        """Return what the numbers are."""
        if self.is_ratio:
            return counted
        return "expected events" if isinstance(self.design, Poisson) else "people"

"""Stored answers read once more, as numbers of the population: free, and never unasked.

The curator says in the description of a table how its records were drawn. An answer
that was paid for then has intervals of a third kind: beside those of the true number of
records, or of the noise alone, those of the population, over the draw of the sample and
the noise. They are read off the stored release (``docs/proofs/population.md``), which
costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.apps.explorer.answers_given import Answer, answer_from
from blowfish_fast.apps.explorer.past_answers import refined_as
from blowfish_fast.apps.explorer.planning import Plan
from blowfish_fast.apps.explorer.questions import read_question
from blowfish_fast.apps.explorer.same_question import in_asked_order
from blowfish_fast.errors import IntervalError, SizeError
from blowfish_fast.release.query_grid import SparseRows
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.release.sampling.designs import Poisson, SamplingDesign
from blowfish_fast.release.sampling.numbers import (
    count_parts,
    population_counts,
    scaled_counts,
)
from blowfish_fast.release.sampling.sampled_release import (
    Method,
    Sampled,
    VarianceParts,
    cell_rows,
    counted_exactly,
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


def population_answer(
    explorer: Explorer,
    request: str,
    *,
    confidence: float = 0.95,
    method: Method | None = None,
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

    Returns
    -------
    Answer
        Numbers of people, or shares of them, with ``intervals_hold="population"``. Its
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
    numbers = _Numbers(plan, release.sampled(design), design)
    bounds, values = numbers.bounds(confidence, method), numbers.estimates(plain)
    shape = plan.layout.asked_shape
    if values.size == math.prod(shape):
        values, bounds = values.reshape(shape), bounds.reshape(*shape, 2)
    exact = counted_exactly(design, numbers.measure, method)
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
    return in_asked_order(replace(plain, **of_population), read_question(asked))


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
    if question.kind not in (*COUNTS, "share") or not isinstance(
        release, HistogramRelease
    ):
        raise IntervalError(
            "intervals of the population are known here of counts and of shares",
            received=f"a question of the kind {question.kind}",
            way_out="Ask for a histogram or a share; of means and quantiles a release "
            'with bf.sampling knows them, of="population"',
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
    """

    def __init__(self, plan: Plan, release: Any, design: SamplingDesign) -> None:
        self.release, self.design = release, design
        self.workload: Workload = plan.workload
        self.is_share = plan.layout.question.kind == "share"
        self.measure = "relative_count" if self.is_share else "count"
        # What was planned was laid out before the records were read, unless a part of
        # the budget chose buckets by them.
        partition = getattr(plan.mechanism, "partition", None)
        by_data = partition is not None or plan.mechanism.name == "dawa"
        # Nor where another mechanism drew it than the one that is planned today.
        by_data = by_data or release.mechanism != plan.mechanism.name
        self.fixed = None if by_data else True

    def bounds(self, confidence: float, method: Method | None) -> FloatArray:
        """Return the intervals, in the order of queries."""
        if not self.is_share:
            return population_counts(
                self.release, self.workload, confidence, method, self.fixed
            )
        if method == "normal":
            raise IntervalError(
                "shares of an answer are counted by their own law",
                received="method='normal'",
                way_out="Leave the method out",
            )
        source = Sampled(self.release, confidence, self.fixed)
        rows, cells = cell_rows(self.workload), self.release.domain
        groups = rows.shape[0] // 2
        such, other = (
            SparseRows(cells, half) for half in (rows[:groups], rows[groups:])
        )
        return shares_of_declared(source, such, other)

    def estimates(self, answer: Answer) -> FloatArray:
        """Return what the numbers are estimated to be."""
        if self.is_share:
            # A share of the sample is that of the population.
            return answer.values.reshape(-1)
        return scaled_counts(self.release, self.workload)

    def parts(self) -> tuple[str, ...]:
        """Say which part of the variance comes from noise, over all numbers."""
        if self.is_share:
            return ()
        try:
            sampling, noise = count_parts(self.release, self.workload, self.fixed)
        except IntervalError:
            return ()
        middle = VarianceParts(float(np.mean(sampling)), float(np.mean(noise)))
        return (str(middle).replace("the variance", "the mean variance"),)

    def what(self, counted: str) -> str:
        """Return what the numbers are."""
        if self.is_share:
            return counted
        return "expected events" if isinstance(self.design, Poisson) else "people"

"""Shares of selections in the population, and its quantiles, by exact laws.

A quantile lies between the cells that tests leave (Lemma PN5):

    cell        0     1     2     3     4     5
    test        low   low   ?     ?     high  high
                            first       last
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import IntervalError
from blowfish_fast.measure.total_error import (
    Binomial,
    CountLaw,
    Hypergeometric,
    excluded_share,
    sampling_half_widths,
)
from blowfish_fast.release.query_grid import (
    Grid,
    SparseRows,
)
from blowfish_fast.workloads import Workload

from .designs import (
    Bernoulli,
    Simple,
    Stratified,
    Weighted,
)
from .numbers import (
    exact_counts,
    stratified_counts,
)
from .ratios import (
    Ratio,
)
from .sampled_release import (
    SIDE_SHARE,
    Method,
    Sampled,
    check_method,
    whole_rows_of,
)


def population_shares(
    part: Grid, whole: Grid, confidence: float, method: Method | None
) -> FloatArray:
    """Return intervals of the share of a selection in the population.

    Parameters
    ----------
    part : Grid
        The groups whose shares are asked for.
    whole : Grid
        What they are parts of: one group that contains them.
    confidence : float
        Over the draw of the sample and the noise.
    method : {"exact", "normal"} or None
        None for exact where there is such a method.

    Returns
    -------
    ndarray of float64, shape (groups, 2)
        Shares from 0 to 1.
    """
    check_method(method)
    source = Sampled(part.release, confidence)
    rows, base = (whole_rows_of(grid) for grid in (part, whole))
    everything = base.nnz == source.release.domain.size
    design, cells = source.design, source.release.domain
    if isinstance(design, Stratified) and everything:
        counts = SparseRows(cells, rows)
        everybody = float(design.everybody)
        return np.asarray(stratified_counts(source, counts, method) / everybody)
    bases = base[np.zeros(rows.shape[0], dtype=np.int64)]
    if isinstance(design, Stratified | Weighted):
        ratio = Ratio(source, rows, bases, (0.0, 1.0))
        return ratio.bounded() if method == "exact" else ratio.bounds()
    if method == "normal":
        return Ratio(source, rows, bases, (0.0, 1.0)).share_bounds()
    counts = SparseRows(cells, rows)
    drawn_away = isinstance(design, Simple) and not (
        design.replacement or design.population is None
    )
    if drawn_away and everything:
        people = exact_counts(source, counts, source.miss)
        return np.asarray(people / float(design.everybody))
    if drawn_away or isinstance(design, Bernoulli):
        return _share_of_two(source, counts, SparseRows(cells, bases - rows))
    taken = SIDE_SHARE * source.miss
    least, most, public = source.sizes(SparseRows(cells, bases), taken)
    tested = source.tested(counts, source.miss - (0.0 if public else taken))
    return excluded_share(tested, Binomial(most), Binomial(least))


def _share_of_two(source: Sampled, part: Workload, rest: Workload) -> FloatArray:
    """Return shares A / (A + R) from intervals of both numbers: Lemma PN8."""
    # Both may miss with a half; the number of records may miss once for both.
    size_miss = SIDE_SHARE * source.miss if source.needs_size else 0.0
    if source.needs_size and source.total[2]:
        size_miss = 0.0
    each = (source.miss - size_miss) / 2 + size_miss
    such, other = (exact_counts(source, rows, each) for rows in (part, rest))
    low = such[:, 0] / np.maximum(such[:, 0] + other[:, 1], 1e-300)
    high = such[:, 1] / np.maximum(such[:, 1] + other[:, 0], 1e-300)
    return np.stack([low, np.where(such[:, 1] > 0.0, high, 0.0)], axis=-1)


def shares_of_declared(source: Sampled, part: Workload, rest: Workload) -> FloatArray:
    """Return shares of groups of which two numbers alone were measured: PN4, PN8.

    Their sum was not measured, so the number of records lies between the sums of both
    ends of two intervals, each of which may miss with half of what a size may take.

    Parameters
    ----------
    source : Sampled
        A release with a design.
    part : Workload
        Those whose share is asked for, by group.
    rest : Workload
        The others of each group.

    Returns
    -------
    ndarray of float64, shape (groups, 2)
        Shares from 0 to 1.

    Raises
    ------
    IntervalError
        If the design needs a number of people or of records that nobody stated.
    """
    design = source.design
    if isinstance(design, Bernoulli):
        return _share_of_two(source, part, rest)
    if isinstance(design, Stratified | Weighted) or source.needs_size:
        raise IntervalError(
            "a share inside of a group needs to know how many people the group has in "
            "the population",
            received=design.describe(),
            way_out="Ask for counts of both columns, or describe the sample as one of "
            "a superpopulation: drawn = simple, without population",
        )
    taken = SIDE_SHARE * source.miss
    ends = [
        source.release.intervals(rows, 1.0 - taken / 2, of="truth")
        for rows in (part, rest)
    ]
    sums = ends[0] + ends[1]
    slack = 1e-9 * (1.0 + np.abs(sums))
    least = np.maximum(np.ceil(sums[:, 0] - slack[:, 0]), 0.0)
    most = np.maximum(np.floor(sums[:, 1] + slack[:, 1]), least)
    tested = source.tested(part, source.miss - taken)
    return excluded_share(tested, Binomial(most), Binomial(least))


class QuantileTests(NamedTuple):
    """Which cells end below the population's quantile, and which above it.

    Attributes
    ----------
    low : ndarray of bool, shape (queries,)
        "At least a part q lies at or before this cell" is excluded.
    high : ndarray of bool, shape (queries,)
        "Less than a part q lies at or before it" is excluded.
    """

    low: BoolArray
    high: BoolArray


def quantile_tests(
    prefixes: Any,
    bases: Any,
    part: float,
    release: Any,
    confidence: float,
    method: Method | None,
) -> QuantileTests:
    """Test each cell against a quantile of the population: Lemma PN5.

    Parameters
    ----------
    prefixes : scipy sparse array, shape (queries, cells)
        The records up to the end of each cell.
    bases : scipy sparse array, shape (queries, cells)
        All records of its group.
    part : float
        The part q, from 0 to 1.
    release : HistogramRelease
        A release with a design.
    confidence : float
        Over the draw of the sample and the noise.
    method : {"exact", "normal"} or None
        None for exact where there is such a method.

    Returns
    -------
    QuantileTests
        What is excluded.
    """
    check_method(method)
    source = Sampled(release, confidence)
    design, cells = source.design, release.domain
    drawn_away = isinstance(design, Simple) and not (
        design.replacement or design.population is None
    )
    everything = bool((np.diff(bases.indptr) == cells.size).all())
    unknown = isinstance(design, Bernoulli | Stratified | Weighted) or (
        drawn_away and not everything
    )
    if unknown or method == "normal":
        # No law is known without a number of people that nobody stated; bounds are.
        bounded = method == "exact"
        return _tests_of_sums(source, (prefixes, bases), part, bounded=bounded)
    taken = SIDE_SHARE * source.miss
    if drawn_away:
        least, most, public = source.total
        few, many = (np.full(prefixes.shape[0], end) for end in (least, most))
    else:
        few, many, public = source.sizes(SparseRows(cells, bases), taken)
    miss = source.miss - (0.0 if public else taken)
    counts = source.tested(SparseRows(cells, prefixes), miss)
    below, above = np.full(few.size, part), np.full(few.size, part)
    laws: list[CountLaw] = [Binomial(few), Binomial(many)]
    if drawn_away:
        people = int(design.everybody or 0)
        # A part q of all people is a whole number of them, or the next one above.
        reached = math.ceil(Fraction(str(part)) * people)
        below = np.full(few.size, float(reached))
        above = np.full(few.size, float(max(reached - 1, 0)))
        laws = [Hypergeometric(people, few), Hypergeometric(people, many)]
    low = counts.lower_tail(lambda x: laws[0].at_most(below, x)) <= miss / 2
    high = counts.upper_tail(lambda x: laws[1].at_least(above, x)) <= miss / 2
    return QuantileTests(np.asarray(low), np.asarray(high))


def _tests_of_sums(
    source: Sampled, rows: tuple[Any, Any], part: float, *, bounded: bool
) -> QuantileTests:
    """Test surpluses: by a normal law, or whatever the law (PN6, PN15, PN16)."""
    prefixes, bases = rows
    ratio = Ratio(source, prefixes, bases, (0.0, 1.0))
    tried = np.full(prefixes.shape[0], part)
    half = ratio.bounded_halves(tried) if bounded else _normal_halves(ratio, tried)
    surplus = ratio.sums - part * ratio.sizes
    slack = 1e-9 * (1.0 + np.abs(surplus) + half)
    return QuantileTests(surplus + half < -slack, surplus - half > slack)


def _normal_halves(ratio: Ratio, tried: FloatArray) -> FloatArray:
    """Return half-widths of surpluses at the parts that are tried."""
    source, taken = ratio.source, SIDE_SHARE * ratio.source.miss
    left = source.miss - taken - ratio._size_share()
    if isinstance(source.design, Stratified | Weighted):
        variance = ratio.squares_of_all(tried, 2.0 * taken, left)
        steps = ratio.steps(tried)
    else:
        asked = SparseRows(source.release.domain, ratio.inside)
        _, most, _ = source.sizes(asked, taken)
        variance = source.factor * most * tried * (1.0 - tried)
        steps = np.ones(tried.size)
    return sampling_half_widths(ratio.law(tried), variance, left, steps)


def tested_cells(tests: QuantileTests, many: int) -> tuple[IntArray, IntArray]:
    """Return the first and the last cell that may hold each quantile: Lemma PN5.

    Parameters
    ----------
    tests : QuantileTests
        What is excluded, group by group and cell by cell.
    many : int
        Number of cells of each group.

    Returns
    -------
    first : ndarray of int64, shape (groups,)
        The first cell that is not low.
    last : ndarray of int64, shape (groups,)
        The cell behind the last one that is not high.
    """
    may_reach = ~tests.low.reshape(-1, many)
    may_miss = ~tests.high.reshape(-1, many)
    first = np.where(may_reach.any(axis=1), may_reach.argmax(axis=1), many - 1)
    behind = many - may_miss[:, ::-1].argmax(axis=1)
    last = np.where(may_miss.any(axis=1), behind, 0)
    return first, np.clip(last, first, many - 1)

"""Numbers of people of the population, from counts of records.

design        exact                        normal
Simple        hypergeometric, binomial     share of everybody, times everybody
Bernoulli     binomial in the number       variance (1 - rate) / rate times it
Poisson       Poisson                      variance of the mean itself
Stratified    bounds (Lemma PN16)          strata added up (Lemma PN7)
Weighted      bounds (Lemma PN16)          weights added up (Lemmas PN9, PN11)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.errors import IntervalError
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.measure.total_error import (
    Binomial,
    Hypergeometric,
    PoissonCount,
    Thinned,
    excluded_mean,
    excluded_number,
    excluded_share,
    half_step_of_few,
    sampling_half_widths,
    variance_of_few,
)
from blowfish_fast.release.grants import with_answers
from blowfish_fast.release.query_grid import (
    SparseRows,
    without_zeros,
)
from blowfish_fast.workloads import Workload

from .designs import (
    Bernoulli,
    Poisson,
    Simple,
    Stratified,
    Weighted,
)
from .drawn_sums import sums_of
from .ratios import (
    Ratio,
    farthest,
)
from .sampled_release import (
    SIDE_SHARE,
    CellClasses,
    Method,
    Sampled,
    as_sparse,
    boxes_of,
    cell_rows,
    check_method,
    refuse_exact,
    steps_of,
)
from .strata import strata_of
from .trimming import trimmed_counts

MOST_LISTED = 2**21
"""Coefficients of all cells that are listed at once, 24 bytes each and a few copies."""


def population_counts(
    release: Any,
    workload: Workload,
    confidence: float,
    method: Method | None,
    fixed: bool | None = None,
    classes: CellClasses | None = None,
) -> FloatArray:
    """Return intervals of how many people of the population are such.

    Parameters
    ----------
    release : HistogramRelease
        A release with a design.
    workload : Workload
        Counts of whole cells.
    confidence : float
        Over the draw of the sample and the noise.
    method : {"exact", "normal"} or None
        None for exact where there is such a method.
    fixed : bool, optional
        Whether the measurement was laid out before any data were seen; see `Sampled`.
    classes : CellClasses, optional
        Strata or classes of weights, where the cells are bins; see `Sampled`.

    Returns
    -------
    ndarray of float64, shape (queries, 2)
        Numbers of people; of events where the design is `Poisson`.

    Raises
    ------
    IntervalError
        If there is no design, or no such number in it.
    """
    check_method(method)
    source = Sampled(release, confidence, fixed, classes)
    design = source.design
    refuse_superpopulation(design)
    if isinstance(design, Stratified):
        bounds = stratified_counts(source, boxes_of(workload), method)
    elif isinstance(design, Weighted):
        bounds = _weighted_counts(source, boxes_of(workload), method)
    elif method == "normal":
        bounds = _normal_counts(source, boxes_of(workload))
    else:
        bounds = exact_counts(source, boxes_of(workload), source.miss)
    return with_answers(bounds, scaled_counts(release, workload, classes))


def refuse_superpopulation(design: Any) -> None:
    """Refuse numbers of people where nobody said how many there are."""
    if isinstance(design, Simple) and design.population is None:
        raise IntervalError(
            "a superpopulation has no number of people",
            way_out="State it, bf.sampling.Simple(population=...), or ask "
            "where(...).relative_count()",
        )


def scaled_counts(
    release: Any, workload: Workload, classes: CellClasses | None = None
) -> FloatArray:
    """Return estimates of how many people of the population are such.

    Parameters
    ----------
    release : HistogramRelease
        A release with a design.
    workload : Workload
        Counts of cells.
    classes : CellClasses, optional
        Strata or classes of weights, where the cells are bins; see `Sampled`.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The published answers, scaled to the population, and at least 0.

    Raises
    ------
    IntervalError
        If there is no design, or no such number in it.
    """
    source = Sampled(release, 0.95, classes=classes)
    design = source.design
    refuse_superpopulation(design)
    counts = np.asarray(release._answers(workload), float).reshape(-1)
    if isinstance(design, Bernoulli):
        counts = counts / float(design.rate)
    elif isinstance(design, Simple):
        total = max(float(release.estimate.sum()), 1.0)
        counts = np.minimum(counts / total, 1.0) * float(design.population or 0)
    elif isinstance(design, Stratified | Weighted):
        weights = source.weights[0]
        if isinstance(design, Stratified):
            weights = strata_of(source).weights
        rows = cell_rows(workload).multiply(weights[None, :])
        counts = np.asarray(rows @ release.estimate.reshape(-1)).reshape(-1)
    return np.asarray(np.maximum(counts, 0.0))


def exact_counts(source: Sampled, workload: Workload, miss: float) -> FloatArray:
    """Return intervals of numbers of people: Lemmas PN2 and PN4.

    Parameters
    ----------
    source : Sampled
        A release with a design.
    workload : Workload
        Counts of whole cells.
    miss : float
        What each interval may miss with.

    Returns
    -------
    ndarray of float64, shape (queries, 2)
        The intervals.
    """
    design = source.design
    if isinstance(design, Bernoulli):
        law = Thinned(float(design.rate))
        return excluded_number(source.tested(workload, miss), law, law, math.inf)
    if isinstance(design, Poisson):
        return excluded_mean(source.tested(workload, miss), PoissonCount())
    least, most, public = source.total
    if not public:
        miss -= SIDE_SHARE * source.miss
    counts, ones = source.tested(workload, miss), np.ones(workload.queries)
    people = int(design.everybody or 0)
    if design.replacement:
        few, many = Binomial(least * ones), Binomial(most * ones)
        return np.asarray(people * excluded_share(counts, many, few))
    few_drawn, many_drawn = (
        Hypergeometric(people, number * ones) for number in (least, most)
    )
    return excluded_number(counts, many_drawn, few_drawn, float(people))


def _normal_counts(source: Sampled, workload: Workload) -> FloatArray:
    """Return intervals of numbers of people by a normal law: Lemma PN3."""
    design = source.design
    if isinstance(design, Simple):
        people = float(design.population or 0)
        shares = [ratio.share_bounds() for ratio in shares_of_all(source, workload)]
        return np.asarray(people * np.concatenate(shares))
    rate = float(design.rate) if isinstance(design, Bernoulli) else 1.0
    left = 1.0 - rate if isinstance(design, Bernoulli) else 1.0
    answers, spread = source.answers(workload), source.spread(workload)

    def room(people: FloatArray) -> FloatArray:
        variance, steps = left * rate * people, np.ones(people.size)
        half = sampling_half_widths(spread, variance, source.miss, steps)
        half += half_step_of_few(variance, steps)
        return np.asarray(half - np.abs(answers - rate * people))

    centre = np.maximum(answers, 0.0) / rate
    top = 2.0 * centre + 16.0 / rate
    while (room(top) >= 0.0).any():
        top = 2.0 * top
    low = farthest(room, centre, np.zeros(centre.size))
    return np.stack([low, farthest(room, centre, top)], axis=-1)


def stratified_counts(
    source: Sampled, workload: Workload, method: Method | None
) -> FloatArray:
    """Return intervals of numbers of people over all strata: Lemma PN7.

    Parameters
    ----------
    source : Sampled
        A release with a stratified design.
    workload : Workload
        Counts of whole cells.
    method : {"exact", "normal"} or None
        "exact" holds whatever the shares of the strata: Lemma PN16.

    Returns
    -------
    ndarray of float64, shape (queries, 2)
        The intervals.

    Raises
    ------
    IntervalError
        If nobody was drawn of a stratum that is asked about.
    """
    from scipy import sparse

    if method == "exact":
        top = float(source.design.everybody)
        return np.minimum(_bounded_counts(source, cell_rows(workload)), top)
    strata, domain = strata_of(source), source.release.domain
    many, rows = strata.people.size, cell_rows(workload)
    taken = SIDE_SHARE * source.miss
    variance, seen, steps = np.zeros((3, workload.queries))
    left_over = (strata.people - strata.drawn) / np.maximum(strata.people - 1.0, 1.0)
    for stratum in range(many):
        drawn = strata.drawn[stratum]
        inside = without_zeros(rows.multiply(strata.labels[None, :] == stratum))
        if not drawn or not inside.nnz:
            # Nobody was drawn there: its share is unknown, as far as it is asked for.
            if not drawn and inside.nnz:
                raise IntervalError(
                    "nobody was drawn of a stratum, so nothing is known of it",
                    way_out="Ask about the other strata",
                )
            continue
        asked = SparseRows(domain, inside)
        half, counted = (
            noise_half_widths(source.spread(asked), taken / many),
            source.answers(asked),
        )
        ends = np.clip((counted + np.outer([-1, 1], half)) / drawn, 0, 1)
        part = np.clip(counted / drawn, 0, 1)
        seen += strata.squares_count[stratum] * drawn * part * (1 - part)
        worst = np.where(
            (ends[0] <= 0.5) & (ends[1] >= 0.5), 0.25, (ends * (1 - ends)).max(axis=0)
        )
        # In a sample of few records shares vary less than in its stratum.
        worst = np.minimum(worst * drawn / max(drawn - 1.0, 1e-9), 0.25)
        asked_cells = np.diff(inside.indptr)
        touched = asked_cells > 0
        # Of a whole stratum everybody is such a person, whoever was drawn.
        varies = touched & (asked_cells < np.count_nonzero(strata.labels == stratum))
        each = strata.people[stratum] / drawn
        steps = np.where(varies, np.maximum(steps, each), steps)
        scale = strata.people[stratum] ** 2 * left_over[stratum] / drawn
        variance += np.where(touched, scale * worst, 0.0)
    weighted = without_zeros(sparse.csr_array(rows.multiply(strata.weights[None, :])))
    asked = SparseRows(domain, weighted)
    variance = variance_of_few(variance, seen, steps, source.miss)
    half = sampling_half_widths(
        source.spread(asked), variance, source.miss - taken, steps_of(asked.matrix)
    )
    centre = source.answers(asked)
    top = float(source.design.everybody)
    return np.clip(np.stack([centre - half, centre + half], axis=-1), 0.0, top)


def _weighted_counts(
    source: Sampled, workload: Workload, method: Method | None
) -> FloatArray:
    """Return intervals of numbers of people of a weighted sample: Lemma PN9."""
    if source.design.trimmed:
        refuse_exact(method, "counts of trimmed weights")
        return trimmed_counts(source, cell_rows(workload))
    if method == "exact":
        return _bounded_counts(source, cell_rows(workload))
    rows, domain = cell_rows(workload), source.release.domain
    weight, variances = source.weights
    asked = SparseRows(domain, without_zeros(rows.multiply(weight[None, :])))
    squared = SparseRows(domain, without_zeros(rows.multiply(variances[None, :])))
    taken = SIDE_SHARE * source.miss
    above = noise_half_widths(source.spread(squared), 2.0 * taken)
    seen, steps = source.answers(squared), steps_of(asked.matrix)
    # People of the weight 1 are all drawn, and hide nobody.
    hiding = steps_of(asked.matrix.multiply((variances > 0.0)[None, :]))
    variance = variance_of_few(seen + above, seen, hiding, source.miss)
    half = sampling_half_widths(
        source.spread(asked), variance, source.miss - taken, steps
    )
    centre = source.answers(asked)
    return np.maximum(np.stack([centre - half, centre + half], axis=-1), 0.0)


def _bounded_counts(source: Sampled, rows: Any) -> FloatArray:
    """Return intervals of numbers of people whatever their shares: Lemma PN16."""
    sums = sums_of(source)
    weighted = without_zeros(rows.multiply(sums.weights[None, :]))
    asked = SparseRows(source.release.domain, weighted)
    source.demand_noise_alone(asked)
    centre, half = source.answers(asked), sums.half_widths(rows)
    return np.maximum(np.stack([centre - half, centre + half], axis=-1), 0.0)


def shares_of_all(source: Sampled, workload: Workload) -> Iterator[Ratio]:
    """Return shares of everybody, so many queries at a time as memory should hold.

    The group of every share is all cells, so a query has as many coefficients as there
    are cells: 10,000 of 10,000 cells at once were 800 MB.

    Parameters
    ----------
    source : Sampled
        A release with a design.
    workload : Workload
        Counts of whole cells.

    Yields
    ------
    Ratio
        The next of them.
    """
    cells, rows = source.release.domain.size, cell_rows(workload)
    at_once = max(1, MOST_LISTED // cells)
    for first in range(0, workload.queries, at_once):
        part = rows[first : first + at_once]
        everything = as_sparse(np.ones((part.shape[0], cells)))
        yield Ratio(source, part, everything, (0.0, 1.0))


def count_parts(
    release: Any,
    workload: Workload,
    fixed: bool | None = None,
    classes: CellClasses | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return variances of sampling and of noise in numbers of people.

    Parameters
    ----------
    release : HistogramRelease
        A release with a design.
    workload : Workload
        Counts of whole cells.
    fixed : bool, optional
        Whether the measurement was laid out before any data were seen; see `Sampled`.
    classes : CellClasses, optional
        Strata or classes of weights, where the cells are bins; see `Sampled`.

    Returns
    -------
    sampling : ndarray of float64, shape (queries,)
        Variance that comes from the draw of the sample, at the estimates.
    noise : ndarray of float64, shape (queries,)
        Variance of the noise.
    """
    source = Sampled(release, 0.95, fixed, classes)
    design, rows = source.design, cell_rows(boxes_of(workload))
    if isinstance(design, Simple):
        parts = [ratio.parts() for ratio in shares_of_all(source, workload)]
        scale = float(design.population or 1) ** 2
        drawn, noise = (np.concatenate(each) for each in zip(*parts, strict=True))
        return scale * drawn, scale * noise
    if isinstance(design, Stratified):
        return _stratified_parts(source, rows)
    weight, variances = source.weights
    domain = source.release.domain
    asked = SparseRows(domain, without_zeros(rows.multiply(weight[None, :])))
    squared = SparseRows(domain, without_zeros(rows.multiply(variances[None, :])))
    rate = float(design.rate) if isinstance(design, Bernoulli) else 1.0
    drawn = np.maximum(source.answers(squared), 0.0) / rate**2
    return drawn, source.spread(asked).variance / rate**2


def _stratified_parts(source: Sampled, rows: Any) -> tuple[FloatArray, FloatArray]:
    """Return both variances of Lemma PN7, at the shares that are estimated."""
    strata, domain = strata_of(source), source.release.domain
    sampling = np.zeros(rows.shape[0])
    for stratum, drawn in enumerate(np.maximum(strata.drawn, 1.0)):
        inside = without_zeros(rows.multiply(strata.labels[None, :] == stratum))
        part = np.clip(source.answers(SparseRows(domain, inside)) / drawn, 0.0, 1.0)
        # Of ones and zeros the squares from their mean add up to this.
        squares = drawn * part * (1.0 - part)
        sampling += strata.squares_count[stratum] * squares
    weighted = without_zeros(as_sparse(rows.multiply(strata.weights[None, :])))
    noise: FloatArray = source.spread(SparseRows(domain, weighted)).variance
    return sampling, noise

"""Which intervals hold the true answer, which the noise alone, and tables of them.

An interval of a release covers the noise. It holds the true answer if nothing but noise
stands between the two: if the measured rows, without noise, lead back to the answer.

    counts x --rows--> rows --infer--> guess        leftover = guess - x
    4 cells, two buckets of two:  x = 5 1 2 2   guess = 3 3 2 2   leftover = -2 2 0 0
    the first two cells together: -2 + 2 = 0    noise alone
    the first cell:               -2            off by more than noise

Inference is linear, so a query q is off by noise alone if q . leftover = 0 for all
counts x. Two vectors of made-up counts decide that, large and drawn from a fixed seed:
a linear form that is not 0 is within rounding of 0 on both with probability 2^-40.
"""

from __future__ import annotations

import os
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError, IntervalError, NoiseOnlyWarning
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.linear_strategy import StrategyNoise
from blowfish_fast.workloads import (
    Identity,
    Prefixes,
    Ranges,
    Rectangles,
    Total,
    Workload,
)
from blowfish_fast.workloads.base import Fractions, row_moments

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from blowfish_fast.data.frames import Table

BEFORE_DATA = "before the data"
"""The detail "laid_out" of a release whose measurement public values alone decided."""

Scope = Literal["truth", "certified", "noise", "population"]
"""What intervals hold: each the truth, a certified fraction of them, or the noise.

"population" is never a default: it needs a design, ``release.sampled(...)``.
"""

BOUND_NAMES: dict[Scope, tuple[str, str]] = {
    "truth": ("low", "high"),
    "certified": ("certified_low", "certified_high"),
    "noise": ("noise_low", "noise_high"),
    "population": ("population_low", "population_high"),
}
"""Columns of the two ends of intervals, by what they hold."""


def check_scope(of: Scope | None) -> None:
    """Refuse what is no scope; "certified" is for those who read it off a release."""
    if of is not None and not (isinstance(of, str) and of in BOUND_NAMES):
        raise InputError(
            f'of must be "truth", "noise", "population" or None; received {of!r}'
        )
    if of == "population":
        raise IntervalError(
            'of="population" is known of histograms with a design, and of counts, '
            "shares, means, variances and quantiles of them",
            way_out="Say how the records of one release were drawn, "
            "release.sampled(bf.sampling.Simple(population=...)), and ask "
            "release.where(...)",
            code="no_sampling_design",
        )


PROBE_BITS = 30
"""Made-up counts lie below two to this power."""
PROBES = 2
"""How many vectors of made-up counts are tried."""
SEED = 20240711
"""Where they are drawn from. Any number would do; a fixed one gives the same answer."""
LEAST_LEFT = 2.0 ** (PROBE_BITS - 18)
"""A single cell that is taken as even leaves more than this of a probe."""
# The next two are far above the rounding that occurs, and so far below what is left
# that a bias hides in no answer whose other coefficients are millions.
ROUNDED = 2.0 ** (PROBE_BITS - 34)
"""Rounding of a result, in records."""
ROUNDED_SUM = 2.0**-48
"""Rounding of a sum, as a part of the absolute values that were added."""


FEW_CELLS = 2**12
"""Up to here what is left over is remembered by the law that it follows from."""


class Bias:
    """What inference leaves over of made-up counts, and which queries see none of it.

    `nothing` says that nothing is left over, so that no query has to be asked; an
    answer below `limit` is rounding.

    Parameters
    ----------
    law : StrategyNoise
        What was measured, and with which noise.
    buckets : Buckets
        Over which buckets.
    """

    def __init__(self, law: StrategyNoise, buckets: Buckets) -> None:
        self.buckets = buckets
        self._leftovers: list[tuple[FloatArray, dict[str, AnyArray]]] = []
        source = np.random.default_rng(SEED)
        strategy, scales = law.strategy, law.scales
        still = np.zeros(scales.rates.size, dtype=np.int64)
        for _ in range(PROBES):
            counts = source.integers(0, 2**PROBE_BITS, buckets.cells)
            rows = strategy.published(strategy.rows(buckets.sum(counts)), still, scales)
            guess = buckets.expand(strategy.infer(rows, scales))
            self._leftovers.append((guess - counts, {}))
        most = max(float(np.abs(leftover).sum()) for leftover, _ in self._leftovers)
        self.nothing = most <= LEAST_LEFT
        self.limit = ROUNDED + ROUNDED_SUM * most

    def absent(self, workload: Workload) -> BoolArray:
        """Mark the queries whose answers are off by noise alone."""
        if self.nothing or not workload.queries:
            return np.ones(workload.queries, dtype=np.bool_)
        limit: FloatArray | float = self.limit
        if not isinstance(workload, Rectangles | Ranges | Identity | Prefixes):
            form = workload.explicit_form(self.buckets)
            moments = row_moments(form, self.buckets.count)
            sizes = np.maximum(np.abs(moments.largest), np.abs(moments.least))
            limit = limit * np.maximum(sizes, 1e-300)
        free = np.ones(workload.queries, dtype=np.bool_)
        for leftover, sums in self._leftovers:
            seen = workload.answer_again(leftover.reshape(workload.domain.shape), sums)
            free &= np.abs(seen) <= limit
        return free


def bias_of(measurement: Measurement) -> Bias:
    """Return what inference leaves over of made-up counts.

    It follows from strategy and scales alone, which a mechanism hands to all of its
    releases: over few cells it is worked out for the first of them.

    Parameters
    ----------
    measurement : Measurement
        What was measured; its noisy numbers are not read.

    Returns
    -------
    Bias
        What is left.
    """
    if _over_few_cells(measurement.buckets):
        return _bias_of_cells(measurement.law, measurement.buckets.cells)
    return Bias(measurement.law, measurement.buckets)


def _over_few_cells(buckets: Buckets) -> bool:
    """Tell whether every cell is a bucket, in its own order, and they are few."""
    own_order = buckets.order is None and buckets.count == buckets.cells
    return own_order and buckets.cells <= FEW_CELLS


@lru_cache(maxsize=32)
def _bias_of_cells(law: StrategyNoise, cells: int) -> Bias:
    """Try one law over single cells; a law is equal to nothing but itself."""
    return Bias(law, Buckets.single_cells(cells))


def half_widths(
    measurement: Measurement, workload: Workload, miss: float
) -> FloatArray:
    """Return how far noise moves each linear answer, but for a chance of `miss`.

    Like `bias_of` it follows from strategy and scales: of all cells and of their total,
    if they are few, it is worked out for the first release of a mechanism.

    Parameters
    ----------
    measurement : Measurement
        What was measured; its noisy numbers are not read.
    workload : Workload
        The queries.
    miss : float
        The probability that an answer lies farther off.

    Returns
    -------
    ndarray of float64, shape (queries,)
        The half-widths, perhaps read-only.
    """
    law, buckets = measurement.law, measurement.buckets
    kind: Any = type(workload)
    if kind in (Identity, Total) and _over_few_cells(buckets):
        return _half_widths_of_cells(law, kind, buckets.cells, miss)
    return law.half_widths(workload.explicit_form(buckets), miss)


@lru_cache(maxsize=64)
def _half_widths_of_cells(
    law: StrategyNoise, kind: type[Identity | Total], cells: int, miss: float
) -> FloatArray:
    """Ask one law over single cells; a law is equal to nothing but itself."""
    form = kind(Domain(cells)).explicit_form(Buckets.single_cells(cells))
    half = law.half_widths(form, miss).copy()
    half.flags.writeable = False
    return half


def holds_truth(
    measurement: Measurement, fresh: bool, bias: Bias | None, workload: Workload
) -> BoolArray:
    """Mark the queries whose noise intervals hold the true answer.

    None does where the noise in the estimate also chose what was measured: it follows
    another law then.

    Parameters
    ----------
    measurement : Measurement
        What was measured.
    fresh : bool
        Whether the noise had no part in what was measured.
    bias : Bias or None
        What inference leaves of made-up counts; None for strategies that refuse
        undetermined queries.
    workload : Workload
        The queries.

    Returns
    -------
    ndarray of bool, shape (queries,)
        The marks.
    """
    if not (fresh and measurement.strategy.unbiased):
        return np.zeros(workload.queries, dtype=np.bool_)
    free = (
        np.ones(workload.queries, dtype=np.bool_)
        if bias is None
        else bias.absent(workload)
    )
    if isinstance(workload, Rectangles) and not workload.whole_cells:
        corners = np.concatenate([workload.starts, workload.ends], axis=1)
        free &= (corners == np.rint(corners)).all(axis=1)
    return free


def with_answers(bounds: AnyArray, answers: AnyArray) -> AnyArray:
    """Widen intervals to the answers beside them: Lemma IN10.

    Parameters
    ----------
    bounds : ndarray, shape (..., 2)
        The intervals; changed in place.
    answers : ndarray
        The answers.

    Returns
    -------
    ndarray, shape (..., 2)
        The intervals.
    """
    np.minimum(bounds[..., 0], answers, out=bounds[..., 0])
    np.maximum(bounds[..., 1], answers, out=bounds[..., 1])
    return bounds


def from_zero(bounds: AnyArray) -> AnyArray:
    """Return intervals of counts without what lies below 0: Lemma IN10.

    An interval that noise took below 0 as a whole reaches up to one record. It would
    hold as often without that, and whoever reads "0 to 0" takes it for certain.

    Parameters
    ----------
    bounds : ndarray of float64, shape (..., 2)
        Intervals that hold true counts.

    Returns
    -------
    ndarray of float64, shape (..., 2)
        The intervals from 0 on.

    Examples
    --------
    >>> from_zero(np.array([[-3.0, 4.0], [-60.0, -7.6], [0.0, 0.0]])).tolist()
    [[0.0, 4.0], [0.0, 1.0], [0.0, 0.0]]
    """
    cut = np.maximum(bounds, 0.0)
    cut[(bounds[..., 0] < 0.0) & (bounds[..., 1] <= 0.0), 1] = 1.0
    return cut


def shown_counts(estimates: AnyArray, bounds: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return counts and their intervals as people are shown them: Lemma IN10.

    No count lies below 0, so no interval of the truth does, and what is shown as the
    estimate lies inside its interval. Sums are made of the estimates as they were.

    Parameters
    ----------
    estimates : ndarray of float64, shape (queries,)
        Unbiased estimates, some of them below 0.
    bounds : ndarray of float64, shape (queries, 2)
        Intervals that hold the true counts, widened to the estimates.

    Returns
    -------
    estimates : ndarray of float64, shape (queries,)
        The point of each interval that is nearest to the estimate.
    bounds : ndarray of float64, shape (queries, 2)
        The intervals from 0 on.

    Examples
    --------
    >>> estimates, bounds = shown_counts(np.array([-33.8]), np.array([[-33.8, 0.4]]))
    >>> estimates.tolist(), bounds.tolist()
    ([0.0], [[0.0, 0.4]])
    """
    shown = from_zero(bounds)
    return np.clip(estimates, shown[..., 0], shown[..., 1]), shown


def counts_records(workload: Workload) -> bool:
    """Return whether all coefficients are 0 or more, so that answers are too."""
    if isinstance(workload, Rectangles | Ranges | Identity | Prefixes):
        return True
    form = workload.explicit_form(Buckets.single_cells(workload.domain.size))
    return isinstance(form, Fractions) or bool((form.values >= 0.0).all())


def noise_only_reason(
    mechanism: str, measurement: Measurement, fresh: bool, *, follows: bool = False
) -> str:
    """Say what the intervals of a release leave out.

    Parameters
    ----------
    mechanism : str
        Its name.
    measurement : Measurement
        What it measured.
    fresh : bool
        Whether the noise had no part in what was measured.
    follows : bool, default False
        Whether cells of a bucket follow the buckets beside it.

    Returns
    -------
    str
        A part of a sentence.
    """
    if not fresh:
        return f"{mechanism} measured what its own noise had chosen"
    count = measurement.buckets.count
    if count < measurement.buckets.cells:
        if follows:
            spread = "as the buckets beside them suggest"
            return f"{mechanism} spreads the records of {count:,} buckets {spread}"
        return f"{mechanism} takes records as even inside {count:,} buckets"
    if not measurement.strategy.unbiased:
        return f"{mechanism} takes a part of what it does not measure as 0"
    return "records are taken as even inside cells that are cut or not measured"


def say_noise_only(sentence: str, *, refuse: bool, **lacking: IntArray) -> None:
    """Refuse, or warn, that some of the intervals hold the noise alone.

    Parameters
    ----------
    sentence : str
        What to say.
    refuse : bool
        Whether to refuse.
    **lacking : ndarray of int64
        Which intervals, for the error's data.

    Raises
    ------
    IntervalError
        If `refuse`.
    """
    if refuse:
        raise IntervalError(
            sentence,
            way_out='Ask of="noise", buy a certificate of these answers with '
            "ledger.certify, or release with bf.Hierarchy or bf.Dawa(..., "
            "partition=None), whose intervals hold the truth",
            code="intervals_hold_noise_only",
            data=lacking,
        )
    warnings.warn(
        f'{sentence} Ask of="noise" if that is meant', NoiseOnlyWarning, stacklevel=4
    )


def interval_label(kind: Scope, confidence: float) -> str:
    """Return what intervals are, for a legend: "noise only, 95 %".

    Parameters
    ----------
    kind : Scope
        What they hold.
    confidence : float
        How surely.

    Returns
    -------
    str
        The label.
    """
    held = {"truth": "holds the truth", "noise": "noise only"}
    held["certified"] = "most hold the truth, certified"
    held["population"] = "holds the population's number"
    return f"{held[kind]}, {100 * confidence:.15g} %"


def counted_records(release: Any) -> str:
    """Say which records of a release count, where not all do.

    Parameters
    ----------
    release : Release or CombinedRelease
        What was published.

    Returns
    -------
    str
        A part of a sentence about true counts; nothing where all records count.
    """
    period: str = getattr(release, "bound_holds", "")
    counted: str = release.guarantee.counted_records(period)
    return counted


def truth_sentence(
    confidence: float, counted: str = "", number: str = "true count"
) -> str:
    """Say that intervals hold true counts, of which records, and how surely.

    Parameters
    ----------
    confidence : float
        How surely.
    counted : str, default ''
        Which records count, as `Guarantee.counted_records` says it.
    number : str, default 'true count'
        What is held, where that is no count.

    Returns
    -------
    str
        The sentence.
    """
    return (
        f"Each interval holds the {number}{counted} with probability at least "
        f"{confidence:.15g}."
    )


class Truthful:
    """A release without certificates that says what its intervals hold."""

    def interval_kind(self: Any, workload: Workload, confidence: float = 0.95) -> Scope:
        """Return what `intervals` hold by default.

        Parameters
        ----------
        workload : Workload
            The queries.
        confidence : float, default 0.95
            How surely an interval has to hold; the answer does not depend on it.

        Returns
        -------
        "truth" or "noise"
            What they hold.
        """
        return "truth" if self.holds_truth(workload).all() else "noise"

    def interval_sentence(
        self,
        kind: Scope,
        confidence: float = 0.95,
        workload: Workload | None = None,
    ) -> str:
        """Say in words what intervals of a kind hold.

        Parameters
        ----------
        kind : Scope
            What they hold.
        confidence : float, default 0.95
            How surely.
        workload : Workload, optional
            The queries; the sentence is the same for all.

        Returns
        -------
        str
            The sentence.
        """
        if kind == "truth":
            return truth_sentence(confidence, counted_records(self))
        return (
            "Noise only: records are taken as even inside buckets, and what that is "
            "off by is not covered."
        )


class Tabular:
    """Cells or groups with estimates, as a table and as a frame of any library."""

    @property
    def counts_people(self) -> bool:
        """Whether estimates are of counts, so that the truth is not below 0."""
        return True

    def to_table(self: Any, confidence: float | None = 0.95) -> Table:
        """Return one row per cell: what it stands for, its estimate, its interval.

        Columns `low` and `high` hold the true count, `noise_low` and `noise_high` the
        noise alone; all are left out with ``confidence=None``, or if nothing is known.
        Beside intervals of true counts no estimate is shown below 0: to add rows up,
        take ``confidence=None``, `estimate`, or ``where(...).count()``.
        """
        from blowfish_fast.data.frames import Table, cell_columns

        places = np.unravel_index(np.arange(self.domain.size), self.domain.shape)
        columns = cell_columns(self.domain, list(places))
        columns["estimate"] = self.estimate.reshape(-1)
        if confidence is not None and self.interval_scope == "noise":
            cells = Identity(self.domain)
            kind = self.interval_kind(cells, confidence)
            low, high = BOUND_NAMES[kind]
            bounds = self.intervals(cells, confidence, of=kind)
            if kind != "noise" and self.counts_people:
                columns["estimate"], bounds = shown_counts(columns["estimate"], bounds)
            columns[low], columns[high] = bounds.T
        return Table(columns, experiment=not self.private)

    def to_pandas(self, confidence: float | None = 0.95) -> pandas.DataFrame:
        """Return `to_table` as a pandas data frame."""
        return self.to_table(confidence).to_pandas()

    def to_csv(
        self, path: str | os.PathLike[str], confidence: float | None = 0.95
    ) -> None:
        """Write `to_table` as a CSV file with a line of names first.

        Parameters
        ----------
        path : str or os.PathLike[str]
            Where to.
        confidence : float or None, default 0.95
            Of the intervals; None leaves them out.
        """
        self.to_table(confidence).to_csv(path)

    def to_polars(self, confidence: float | None = 0.95) -> polars.DataFrame:
        """Return `to_table` as a polars data frame."""
        return self.to_table(confidence).to_polars()

    def to_arrow(self, confidence: float | None = 0.95) -> pyarrow.Table:
        """Return `to_table` as an arrow table."""
        return self.to_table(confidence).to_arrow()

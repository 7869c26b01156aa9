"""A release with a design: what it answers, how noisy it is, and what is said of it.

Everything that is asked of a population starts here: `Sampled` reads linear answers
before any fit, the law of their noise, and the number of records, public or private. It
refuses where answers are off by more than noise. Intervals themselves are made in the
files beside this one; the proofs are in ``docs/proofs/population.md``.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_confidence
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError, IntervalError, SizeError
from blowfish_fast.measure.noise import Spread
from blowfish_fast.measure.total_error import (
    NoisyCounts,
)
from blowfish_fast.release.grants import BEFORE_DATA
from blowfish_fast.release.query_grid import (
    MOST_COEFFICIENTS,
    Grid,
    SparseRows,
    product_rows,
)
from blowfish_fast.workloads import (
    Identity,
    Prefixes,
    Ranges,
    Rectangles,
    Regions,
    Workload,
)
from blowfish_fast.workloads.base import form_matrix

from .designs import (
    Bernoulli,
    Poisson,
    SamplingDesign,
    Simple,
    Stratified,
    Weighted,
)

Method = Literal["exact", "normal"]
"""How sampling is counted: by its own law, or as a normal variable."""


FIXED_LAYOUTS = frozenset(
    {
        "laplace",
        "gaussian",
        "hierarchy",
        "nested",
        "ordered",
        "ordered_hierarchical",
        "privelet",
    }
)
"""Mechanisms whose measurement is laid out before any data are seen. Others say it of a
release by its detail "laid_out"."""


def lays_out_before(mechanism: Any) -> bool:
    """Return whether what a mechanism measures is laid out before data are seen.

    Parameters
    ----------
    mechanism : Mechanism
        It is asked for its name, and whether it divides the cells by the data.

    Returns
    -------
    bool
        Whether every release of it is; of others some may be.
    """
    divides = getattr(mechanism, "partition", "") is not None
    return mechanism.name in FIXED_LAYOUTS or not divides


SIDE_SHARE = 0.1
"""Part of the miss that a private size, or a variance from above, may take."""


class VarianceParts(NamedTuple):
    """What the error of an estimate of the population is made of; ``str()`` says it.

    Attributes
    ----------
    sampling : float
        Variance that comes from drawing the records.
    noise : float
        Variance that comes from privacy.
    """

    sampling: float
    noise: float

    @property
    def noise_share(self) -> float:
        """The part of the variance that comes from privacy; 0 where there is none."""
        both = self.sampling + self.noise
        return self.noise / both if both > 0.0 else 0.0

    def __str__(self) -> str:
        both = self.sampling + self.noise
        if both == 0.0:
            return "There is no error: neither sampling nor noise moves this number."
        if math.isinf(both):
            return "A group without records says nothing of this number."
        drawn = 100.0 * self.sampling / both
        wider = math.sqrt(both / self.sampling) if self.sampling > 0.0 else math.inf
        return (
            f"Of the variance, {drawn:.0f} % comes from drawing the records and "
            f"{100.0 - drawn:.0f} % from privacy noise; without noise the interval "
            f"would be {wider:.2f} times narrower."
        )


def stated_design(release: Any) -> Any:
    """Return how the records of a release were drawn; refuse if nobody said it."""
    design = getattr(release, "design", None)
    if design is None:
        raise IntervalError(
            'of="population" needs to know how these records were drawn',
            way_out="Say it: release.sampled(bf.sampling.Simple(population=...)); if "
            'they are everybody, ask of="truth"',
            code="no_sampling_design",
        )
    return design


def check_method(method: Method | None) -> None:
    """Refuse what is no method."""
    if method not in (None, "exact", "normal"):
        raise InputError(f'method must be "exact", "normal" or None; got {method!r}')


def refuse_method(of: str | None, method: Method | None) -> None:
    """Refuse a method where no population is asked for.

    Parameters
    ----------
    of : str or None
        What intervals have to hold.
    method : {"exact", "normal"} or None
        The method.

    Raises
    ------
    InputError
        If there is one without the other.
    """
    if method is not None and not (isinstance(of, str) and of == "population"):
        raise InputError(
            'a method is chosen for of="population" alone',
            received=f"of={of!r}, method={method!r}",
        )


class CellClasses(NamedTuple):
    """Which stratum, or class of weights, the records of each cell belong to.

    Attributes
    ----------
    numbers : ndarray of int64, shape (cells,)
        The number of the class; that of classes for cells whose records have none, or
        several. Nothing is ever asked of these alone.
    levels : tuple
        The level, or the cell, of the design's attribute that each class is.
    """

    numbers: IntArray
    levels: tuple[Any, ...]

    @property
    def some_have_none(self) -> bool:
        """Whether some cells have no class, or several."""
        return bool((self.numbers == len(self.levels)).any())


class Sampled:
    """A release with a design: its linear answers, their noise, and its size.

    Parameters
    ----------
    release : HistogramRelease
        The release; other kinds have no design.
    confidence : float
        Over the draw of the sample and the noise.
    fixed : bool, optional
        Whether the measurement was laid out before any data were seen, where that is
        known to whoever planned it; by default it is looked up by the mechanism.
    classes : CellClasses, optional
        Strata, or classes of weights, where the cells are bins that keep them apart; by
        default they are read off the attribute of the domain that the design names.
    """

    def __init__(
        self,
        release: Any,
        confidence: float,
        fixed: bool | None = None,
        classes: CellClasses | None = None,
    ) -> None:
        self.release, self.design = release, stated_design(release)
        self._classes = classes
        self.miss = 1.0 - as_confidence(confidence)
        stated = release.details.get("laid_out") == BEFORE_DATA
        usual = release.mechanism in FIXED_LAYOUTS or stated
        self.fixed = usual if fixed is None else fixed

    def answers(self, workload: Workload) -> FloatArray:
        """Return the linear answers, before any fit."""
        linear, sums = self.release._linear_sums
        return np.asarray(workload.answer_again(linear, sums), float).reshape(-1)

    def demand_noise_alone(self, workload: Workload) -> None:
        """Refuse answers that are off by more than noise, or followed the data."""
        if not (self.fixed and self.release.holds_truth(workload).all()):
            raise IntervalError(
                "the sampling is taken as normal only where answers are off by noise "
                "alone, and what was measured was laid out before the data were seen",
                received=f"a release by {self.release.mechanism}",
                way_out='Ask method="exact" where there is one, or release with '
                "bf.Hierarchy or bf.Laplace, --mechanism laplace",
            )

    def spread(self, workload: Workload) -> Spread:
        """Return the law of the noise; refuse where more than noise is off."""
        self.demand_noise_alone(workload)
        law: Spread = self.release._spread(workload)
        return law

    def tested(self, workload: Workload, miss: float) -> NoisyCounts:
        """Return counts to test parameters with: Lemma PN2, or PN1 where it must be.

        Parameters
        ----------
        workload : Workload
            The counts.
        miss : float
            What an interval may miss with.

        Returns
        -------
        NoisyCounts
            The counts.

        Raises
        ------
        IntervalError
            If intervals of true counts are not known.
        """
        if self.fixed and self.release.holds_truth(workload).all():
            return NoisyCounts.with_ladder(
                self.answers(workload), self.release._spread(workload), miss
            )
        surely = 1.0 - miss / 2
        if self.release.interval_kind(workload, surely) == "certified":
            raise IntervalError(
                "a certificate of a fraction of the answers says nothing of a single "
                "one, so none of the population either",
                way_out="Buy one of all of them, or release with bf.Hierarchy",
            )
        bounds = self.release.intervals(workload, surely, of="truth")
        return NoisyCounts.between(bounds, miss / 2)

    def sizes(self, rows: Workload, miss: float) -> tuple[FloatArray, FloatArray, bool]:
        """Return the least and the most records, and whether they are public.

        Parameters
        ----------
        rows : Workload
            Counts of records.
        miss : float
            What both ends may miss with where there is noise.

        Returns
        -------
        least : ndarray of float64, shape (queries,)
            Rounded up: a number of records is whole.
        most : ndarray of float64, shape (queries,)
            Rounded down.
        public : bool
            Whether no noise is in any of them.
        """
        law = self.release._linear()
        exact = not law.law.spread(rows.explicit_form(law.buckets)).square.any()
        if exact:
            number = np.maximum(np.rint(self.answers(rows)), 0.0)
            return number, number, True
        bounds = self.release.intervals(rows, 1.0 - miss, of="truth")
        slack = 1e-9 * (1.0 + np.abs(bounds))
        least = np.maximum(np.ceil(bounds[:, 0] - slack[:, 0]), 0.0)
        most = np.maximum(np.floor(bounds[:, 1] + slack[:, 1]), 0.0)
        return least, np.maximum(most, least), False

    @cached_property
    def total(self) -> tuple[float, float, bool]:
        """The least and the most records in all, and whether it is public."""
        domain = self.release.domain
        everything = Rectangles(domain, [[0] * domain.ndim], [list(domain.shape)])
        least, most, public = self.sizes(everything, SIDE_SHARE * self.miss)
        people = self.design.everybody
        if people is not None and not getattr(self.design, "replacement", False):
            if least[0] > people:
                raise InputError(
                    f"{people:,} people were said to be all; the records are more",
                    received=f"at least {least[0]:,.0f} records",
                    way_out="State the population that they were drawn from",
                )
            most = np.minimum(most, people)
        return float(least[0]), float(most[0]), public

    @property
    def factor(self) -> float:
        """What is left of the variance because a part of all people was drawn."""
        if isinstance(self.design, Bernoulli):
            return float(1 - self.design.rate)
        if isinstance(self.design, Simple) and not self.design.replacement:
            people = self.design.population
            if people is not None:
                return (people - self.total[0]) / max(people - 1, 1)
        return 1.0

    @property
    def needs_size(self) -> bool:
        """Whether `factor`, or the law of a count, reads the number of records."""
        return isinstance(self.design, Simple) and self.design.population is not None

    @cached_property
    def weights(self) -> tuple[FloatArray, FloatArray]:
        """What a record of each cell stands for, and its part of the variance."""
        cells = self.release.domain.size
        if not isinstance(self.design, Weighted):
            return np.ones(cells), np.full(cells, self.factor)
        # A record that has no class stands for itself.
        weight = np.append(self.design.values, 1.0)[self.classes.numbers]
        return weight, weight * (weight - 1.0)

    @cached_property
    def classes(self) -> CellClasses:
        """Strata of a stratified sample, or classes of weights, of each cell."""
        if self._classes is not None:
            return self._classes
        domain = self.release.domain
        axis = domain.axis(self.design.attribute)
        shape = [1] * domain.ndim
        shape[axis] = -1
        numbers = np.arange(domain.shape[axis]).reshape(shape)
        levels = domain.attributes[axis].levels or range(domain.shape[axis])
        spread = np.broadcast_to(numbers, domain.shape).reshape(-1)
        return CellClasses(spread, tuple(levels))


def sampled_sentence(design: SamplingDesign, exact: bool, confidence: float) -> str:
    """Say what intervals of the population hold, and on whose word.

    Parameters
    ----------
    design : SamplingDesign
        How the records were said to have been drawn.
    exact : bool
        Whether sampling was counted by its own law.
    confidence : float
        How surely.

    Returns
    -------
    str
        The sentence.
    """
    percent = f"{100.0 * confidence:.15g} %"
    over = "over the draw of the sample and the noise"
    if exact:
        held = f"With probability at least {percent}, {over}, each interval holds"
    else:
        held = (
            f"With about {percent}, {over} (the sampling is taken as normal, the noise "
            "exactly), each interval holds"
        )
    return (
        f"{held} what is true of the population. These records were said to be "
        f"{design.describe()}. Nothing here can check that."
    )


def has_exact(design: SamplingDesign, measure: str) -> bool:
    """Return whether the sampling of a measure is counted by its own law by default.

    Parameters
    ----------
    design : SamplingDesign
        How the records were drawn.
    measure : str
        What is asked, such as "mean".

    Returns
    -------
    bool
        Whether it is.
    """
    if isinstance(design, Stratified | Weighted):
        return False
    if measure == "quantile":
        # Of a selection without replacement nobody knows how many people it has.
        return isinstance(design, Poisson) or (
            isinstance(design, Simple)
            and (design.population is None or design.replacement)
        )
    by_their_law = ("count", "population_count", "relative_count", "population_share")
    return measure in by_their_law


def counted_exactly(design: SamplingDesign, measure: str, method: str | None) -> bool:
    """Return whether intervals hold without a normal law, for their sentence.

    Parameters
    ----------
    design : SamplingDesign
        How the records were drawn.
    measure : str
        What is asked, such as "mean".
    method : {"exact", "normal"} or None
        How the sampling is counted; None for what is usual.

    Returns
    -------
    bool
        Whether they do.
    """
    return has_exact(design, measure) if method is None else method == "exact"


def equally_weighted(design: SamplingDesign | None) -> bool:
    """Return whether every record stands for as many people as any other."""
    return not isinstance(design, Stratified | Weighted)


def boxes_of(workload: Workload) -> Workload:
    """Return queries that count whole cells; refuse others."""
    whole = isinstance(workload, Identity | Prefixes | Ranges | Regions)
    if isinstance(workload, SparseRows):
        whole = bool((workload.matrix.data == 1.0).all())
    if not (whole or (isinstance(workload, Rectangles) and workload.whole_cells)):
        raise IntervalError(
            'intervals of="population" are known of counts of whole cells',
            received=type(workload).__name__,
            way_out="Ask where(...).relative_count(), mean(...) or quantile(...)",
        )
    return workload


def refuse_exact(method: Method | None, what: str) -> None:
    """Refuse the exact method where none is known.

    Parameters
    ----------
    method : {"exact", "normal"} or None
        The method.
    what : str
        What has no exact law, for the message.

    Raises
    ------
    IntervalError
        If the exact method was asked for.
    """
    if method == "exact":
        raise IntervalError(
            f"no exact law is known for {what}", way_out='Ask method="normal"'
        )


def whole_rows_of(grid: Grid) -> Any:
    """Return the cells of each group; refuse cells that are cut."""
    if not grid.whole:
        raise IntervalError(
            'intervals of="population" are known of whole cells, and a condition cuts '
            "some",
            way_out="Select up to the edges of cells",
        )
    return product_rows(grid.rows)


def cell_rows(workload: Workload) -> Any:
    """Return queries as sparse rows over the cells."""
    cells = workload.domain.size
    form = workload.explicit_form(Buckets.single_cells(cells))
    rows = form_matrix(form, cells, most=MOST_COEFFICIENTS)
    if rows is None:
        raise SizeError("at most 2^26 cells under all queries are listed at once")
    return rows


def as_sparse(rows: AnyArray) -> Any:
    """Return rows in compressed form."""
    from scipy import sparse

    return sparse.csr_array(rows)


def steps_of(rows: Any) -> FloatArray:
    """Return how far one record moves each sum: in, out, or to another cell.

    Parameters
    ----------
    rows : scipy sparse array, shape (sums, cells)
        What a record of each cell adds.

    Returns
    -------
    ndarray of float64, shape (sums,)
        From the least that a record adds to the most, where none adds 0.

    Examples
    --------
    >>> steps_of(np.array([[0.0, 2.0, 3.0], [-1.0, 1.0, 0.5], [4.0, 4.0, 4.0]]))
    array([3., 2., 4.])
    """
    listed = as_sparse(rows)
    return np.asarray(largest_of(listed) + largest_of(-listed))


def largest_of(rows: Any) -> FloatArray:
    """Return the most that a record adds to each sum, and 0 where all take from it.

    Parameters
    ----------
    rows : scipy sparse array, shape (sums, cells)
        What a record of each cell adds.

    Returns
    -------
    ndarray of float64, shape (sums,)
        The largest of each row and 0.

    Examples
    --------
    >>> largest_of(np.array([[0.0, 2.0, 3.0], [-1.0, -2.0, 0.0]]))
    array([3., 0.])
    """
    listed = as_sparse(rows).tocoo()
    most = np.zeros(listed.shape[0])
    np.maximum.at(most, listed.coords[0], listed.data)
    return most

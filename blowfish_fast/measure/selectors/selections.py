"""Selections: one private choice that is not a partition.

Choices by cost are exact draws, with weights that fall with whole costs: EFPA weighs
what dropped frequencies would have told against the noise of kept ones, and a round of
MWEM takes a query whose estimated answer is far off. Comparisons of noisy numbers say
whether records are scattered, how rough a line is and whether its records stand in
spikes, and find the first tail below a bar.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.machine import threads_for
from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import EpsilonError, InputError, SizeError, WorkloadError
from blowfish_fast.measure.noise import check_scale
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Fractions, Pieces, Workload
from blowfish_fast.workloads.base import form_matrix, row_moments

from .partitions.kd_cells import Medians

if TYPE_CHECKING:
    from blowfish_fast.kernels.window_costs.rectangle_costs import SharedCosts

__all__ = [
    "ByCost",
    "KeptFrequencies",
    "Medians",
    "PairTest",
    "RoughnessTest",
    "ScatterTest",
    "SpikeTest",
    "WorstQuery",
]
__dir__ = sorted(__all__).copy

COST_BITS = 6
"""Costs are whole numbers of 2^-6."""

LARGEST_NORM_BITS = 28
TRANSFORM_BITS = 36
"""Norms, with the transform and all sums, are off by at most 2^-36 of their size."""

IN_A_ROW = 2**14
"""Squares are added up in rows of so many, then the rows, to round each less often."""

ROOT_OF_TWO = Fraction(141422, 100000)

LARGEST_ERROR = 2**60
MOST_COEFFICIENTS = 2**26

ONE = 2**18
"""One record, in the units of the statistic."""
SEEN_PART = 3 * ONE // 4
"""What a record of a cell costs where single cells are kept, in the same units."""
MOST_BITS = 43


class ByCost(ABC):
    """Choose one of several candidates by the exponential mechanism.

    A candidate is drawn with probability in proportion to exp(-rate * cost), exactly,
    with rate = epsilon / (2 sensitivity) unless a class knows better how costs change
    together. Proof: ``docs/proofs/exponential_choice.md``.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> choice = bf.selections.KeptFrequencies(np.array([0.5, 1.0, 2.0]))
    >>> full = bf.policies.Full(bf.Domain(4))
    >>> choice.rate(full, Fraction(1)) == Fraction(1, 2 * choice.sensitivity(full))
    True
    """

    name: ClassVar[str]
    loss_range: ClassVar[int] = 1
    """By how many epsilons the log odds of two candidates may change."""

    @abstractmethod
    def costs(self, counts: IntArray) -> IntArray:
        """Return the cost of each candidate: whole numbers."""

    @abstractmethod
    def sensitivity(self, policy: Policy) -> int:
        """Return how far one edge moves a cost, at most; 0 without edges."""

    def rate(self, policy: Policy, epsilon: Fraction) -> Fraction:
        """Return how fast weights fall with costs: Lemma EC2.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What the choice may use.

        Returns
        -------
        Fraction
            The rate.
        """
        return epsilon / (2 * self.sensitivity(policy))

    def select(
        self, counts: IntArray, *, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> int:
        """Return the number of a candidate; the cheapest if no edge moves a cost.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What the choice may use.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        int
            The number of the candidate.
        """
        costs = self.costs(counts)
        if self.sensitivity(policy) == 0:
            return int(costs.argmin())
        rate = self.rate(policy, epsilon)
        return int(kernels.choose_by_cost(rng.stream(), 0, costs[None], rate)[0])


class KeptFrequencies(ByCost):
    """Choose how many low frequencies to keep.

    `noise`, the L2 norm of the noise if frequencies 0 to i are kept, is public.

    Notes
    -----
    Guarantee: epsilon-private choice of a number under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: the norm of dropped coefficients of an orthonormal transform moves by
        at most 1 when a record is added or removed, by the root of 2 when it moves; the
        transform's rounding and that of costs are added.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> choice = KeptFrequencies(np.array([1.0, 2.0, 3.0]))
    >>> choice.costs(np.array([9, 1, 1, 1])).size
    3
    """

    name = "kept_frequencies"

    def __init__(self, noise: FloatArray) -> None:
        if noise.ndim != 1 or noise.size == 0 or not np.isfinite(noise).all():
            raise InputError("there must be a finite noise for each candidate")
        self.noise_norms = noise

    def sensitivity(self, policy: Policy) -> int:
        """Return how far one edge moves a cost, in units of 2^-6: Lemma EF3."""
        if not (policy.has_moves or policy.has_bottom):
            return 0
        norm = ROOT_OF_TWO if policy.has_moves else Fraction(1)
        slack = Fraction(2, 2 ** (TRANSFORM_BITS - LARGEST_NORM_BITS))
        steps: int = math.ceil(2**COST_BITS * (norm + slack))
        return steps

    def costs(self, counts: IntArray) -> IntArray:
        """Return the cost of keeping frequencies 0 to i; counts are cut in public."""
        cells = counts.size
        if self.noise_norms.size > cells // 2 + 1:
            raise InputError(
                f"{cells} cells have {cells // 2 + 1} frequencies; received "
                f"{self.noise_norms.size} candidates"
            )
        cap = int(2**LARGEST_NORM_BITS / math.sqrt(cells))
        spectrum = np.fft.rfft(np.minimum(counts, cap), norm="ortho")
        energy = 2.0 * (spectrum.real**2 + spectrum.imag**2)
        if cells % 2 == 0:
            energy[-1] /= 2.0
        # From the highest frequency down, so that small parts are added first.
        dropped = np.append(running_sums(energy[:0:-1])[::-1], 0.0)
        error = np.hypot(np.sqrt(dropped[: self.noise_norms.size]), self.noise_norms)
        highest = 2.0 ** (LARGEST_NORM_BITS + 2)
        costs: IntArray = np.floor(
            np.ldexp(np.minimum(error, highest), COST_BITS)
        ).astype(np.int64)
        return costs


def running_sums(terms: FloatArray) -> FloatArray:
    """Add up terms that are not negative.

    No sum of n terms has more than `IN_A_ROW` + n / `IN_A_ROW` roundings behind it.
    """
    rows = np.zeros((-(-terms.size // IN_A_ROW), IN_A_ROW))
    rows.reshape(-1)[: terms.size] = terms
    np.cumsum(rows, axis=1, out=rows)
    rows[1:] += np.cumsum(rows[:-1, -1])[:, None]
    sums: FloatArray = rows.reshape(-1)[: terms.size]
    return sums


class Runs(NamedTuple):
    """One query: whole coefficients on runs [start, end) of cells in C order.

    Attributes
    ----------
    starts : ndarray of int64, shape (runs,)
        The first cell of each run.
    ends : ndarray of int64, shape (runs,)
        The cell after its last.
    values : ndarray of int64, shape (runs,)
        The coefficients.
    """

    starts: IntArray
    ends: IntArray
    values: IntArray


class WorstQuery(ByCost):
    """Choose a query whose estimated answer is far from the truth.

    Queries must have whole coefficients, so that true answers are integers.

    Notes
    -----
    Guarantee: epsilon-private choice of a query under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: an edge (u, v) moves the error of a query q by at most |q_u - q_v|, as
        the estimate is public: by 1 for queries that count records.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> asked = bf.workloads.Ranges(bf.Domain(4), [0, 2], [2, 4])
    >>> guessed, asked_before = np.array([5.0, 5.0]), np.array([False, False])
    >>> choice = WorstQuery(asked).against(guessed, asked_before)
    >>> choice.sensitivity(bf.policies.Full(bf.Domain(4)))
    1
    >>> choice.errors(np.array([9, 0, 1, 0]))
    array([4, 4])
    """

    name = "worst_query"

    def __init__(self, workload: Workload) -> None:
        workload._refuse_too_many()
        if workload.queries == 0:
            raise WorkloadError("there is no query to choose from; ask at least one")
        self.workload = workload
        cells = workload.domain.size
        self.form = workload.explicit_form(Buckets.single_cells(cells))
        moments = row_moments(self.form, cells)
        values = self.form.values if isinstance(self.form, Pieces) else np.ones(1)
        if (np.rint(values) != values).any() or np.abs(values).max(initial=0) > 2**31:
            raise WorkloadError(
                "the queries need whole coefficients below 2^31, so that their answers "
                "are integers; scale and round them, or use Dawa"
            )
        self.size = int(np.maximum(moments.largest, -moments.least).max())
        self.span = int((moments.largest - moments.least).max())
        # Weighted queries are summed by a matrix; too many are refused here, before
        # anything is charged.
        nothing = workload.answer(np.zeros(workload.domain.shape, dtype=np.int64))
        counted = nothing.dtype == np.int64
        self._matrix: Any = None if counted else self._whole_matrix(cells)
        self._estimated = np.zeros(workload.queries, dtype=np.int64)
        self._asked = np.zeros(workload.queries, dtype=np.bool_)

    def against(self, answers: FloatArray, asked: BoolArray) -> Self:
        """Return the same choice against estimated answers, among queries not asked.

        Parameters
        ----------
        answers : ndarray of float64, shape (queries,)
            Estimated answers.
        asked : ndarray of bool, shape (queries,)
            Which queries were asked before.

        Returns
        -------
        Self
            The choice.

        Raises
        ------
        InputError
            If every query has been asked.
        """
        if asked.all():
            raise InputError("every query has been asked; make fewer rounds")
        other = copy.copy(self)
        other._estimated = np.rint(
            np.clip(answers, -LARGEST_ERROR, LARGEST_ERROR)
        ).astype(np.int64)
        # A copy: the caller marks further queries in its own.
        other._asked = asked.copy()
        return other

    def sensitivity(self, policy: Policy) -> int:
        """Return how far one edge of the policy moves an answer, at most: Lemma MW4."""
        moved = self.span if policy.has_moves else 0
        return max(moved, self.size) if policy.has_bottom else moved

    def errors(self, counts: IntArray) -> IntArray:
        """Return how far off each estimated answer is, cut at a public number."""
        answers = self._answers(counts)
        far: IntArray = np.minimum(np.abs(answers - self._estimated), LARGEST_ERROR)
        return far

    def costs(self, counts: IntArray) -> IntArray:
        """Return the errors with a minus sign; queries asked before are not there."""
        return np.where(self._asked, kernels.NO_CANDIDATE, -self.errors(counts))

    def runs(self, query: int) -> Runs:
        """Return one query as runs of cells."""
        if isinstance(self.form, Fractions):
            first, last = self.form.first[query], self.form.last[query]
            return Runs(np.array([first]), np.array([last + 1]), np.ones(1, np.int64))
        own = slice(self.form.pointers[query], self.form.pointers[query + 1])
        return Runs(
            self.form.starts[own],
            self.form.ends[own],
            np.rint(self.form.values[own]).astype(np.int64),
        )

    def _answers(self, counts: IntArray) -> AnyArray:
        """Return the true answers, exactly; cells are cut where sums would overflow."""
        if self._matrix is None:
            return self.workload.answer(counts.reshape(self.workload.domain.shape))
        cap = LARGEST_ERROR // (max(self.size, 1) * counts.size)
        exact: AnyArray = self._matrix @ np.minimum(counts, cap)
        return exact

    def _whole_matrix(self, cells: int) -> Any:
        """Return the coefficients of all queries as a sparse matrix of integers."""
        rows = form_matrix(self.form, cells, most=MOST_COEFFICIENTS)
        if rows is None:
            raise SizeError(
                "the queries cover more than 2^26 cells in all; weighted queries are "
                "chosen from below that. Ask fewer"
            )
        return rows.astype(np.int64)


class NoisyComparison(ABC):
    """A choice that reads counts once and compares them with fresh noise each time."""

    name: ClassVar[str]

    def select(
        self, counts: IntArray, *, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Any:
        """Return one choice.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What the choice may use.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        object
            The choice.
        """
        noise = self.noise(counts.size, policy, epsilon, draws=1, rng=rng)
        return self.decide(counts, policy, noise)[0].item()

    @abstractmethod
    def noise(
        self,
        cells: int,
        policy: Policy,
        epsilon: Fraction,
        *,
        draws: int,
        rng: Randomness,
    ) -> IntArray:
        """Draw the noise of so many independent choices.

        Parameters
        ----------
        cells : int
            Number of cells.
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What one choice may use.
        draws : int
            How many choices; one, but for audits.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        ndarray of int64, shape (draws, compared)
            The noise of each choice; zeros where nothing that is compared can move.
        """

    @abstractmethod
    def decide(self, counts: IntArray, policy: Policy, noise: IntArray) -> AnyArray:
        """Return the choices that noise makes of counts.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        policy : Policy
            The policy, without constraints.
        noise : ndarray of int64, shape (draws, compared)
            As `noise` draws it.

        Returns
        -------
        ndarray, shape (draws,)
            A choice for each row of noise.
        """


class ScatterTest(NoisyComparison):
    """Say whether what rectangles cannot make even exceeds a part of all records.

    All parameters are public.

    Parameters
    ----------
    level_weights : list[list[float]]
        Item [i][j], from 0 to 1, is the weight of a bucket of 2^i by 2^j cells.
    price : float
        Cost of a bucket, in records.
    threshold : float
        The part of all records, from 0 to 1/4, above which data count as scattered.

    Notes
    -----
    Guarantee: epsilon-private answer under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: of V - threshold N, max(1/4 + threshold, 3/4 - threshold) when a record
        is added or removed, 1 when it moves; in whole numbers, with Laplace noise on
        the integers.
    Complexity: O(n log(rows) log(columns)) time, O(n) memory.
    Source: this project; proof in ``docs/proofs/dawa.md``.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> test = ScatterTest([[1.0, 1.0]] * 2, price=1.0, threshold=0.25)
    >>> test.statistic(np.array([90, 90, 0, 0]), (2, 2)) / ONE
    -43.0
    >>> test.sensitivity(bf.policies.AddRemove(bf.Domain((2, 2)))) / ONE
    0.5
    """

    name = "scatter"
    divided: ClassVar[str] = "a map"
    """What the answer is about, in the words of a refusal."""
    _shared: SharedCosts | None = None

    def __init__(
        self, level_weights: list[list[float]], *, price: float, threshold: float
    ) -> None:
        self.level_weights = level_weights
        self.price = price
        self.threshold = min(max(round(threshold * ONE), 0), ONE // 4)

    def statistic(self, counts: IntArray, shape: tuple[int, ...]) -> int:
        """Return V - threshold N in units of 2^-18 records, before any noise.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        shape : tuple[int, ...]
            Rows and columns of the grid.

        Returns
        -------
        int
            The statistic.
        """
        cut = kernels.counts_within(counts)
        price = kernels.price_within(self.price, counts.size)
        # A partition cuts counts at a larger number: where some were cut here, the
        # costs are no one else's.
        shared = self._shared
        if shared is None or cut.max() < counts.max():
            shared = kernels.SharedCosts()
        else:
            cut = counts  # a copy less while the counts are sorted
        costs = shared.look(cut.reshape(shape), threads=threads_for(cut.size))
        least = kernels.least_sum_of_costs(costs, self.level_weights, price)
        return least - self.threshold * int(cut.sum())

    def sharing(self, costs: SharedCosts) -> Self:
        """Return the same test, which leaves the costs that it needs for others.

        Parameters
        ----------
        costs : SharedCosts
            Where they are kept.

        Returns
        -------
        Self
            The test, for one choice.
        """
        other = copy.copy(self)
        other._shared = costs
        return other

    def sensitivity(self, policy: Policy) -> int:
        """Return how far one edge moves the statistic, at most: Lemma SC3."""
        if policy.has_moves:
            return ONE
        if not policy.has_bottom:
            return 0
        return max(ONE // 4 + self.threshold, 3 * ONE // 4 - self.threshold)

    def scale(self, policy: Policy, epsilon: Fraction) -> tuple[int, int]:
        """Return numerator and denominator of the noise's scale, rounded up.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What the choice may use.

        Returns
        -------
        numerator : int
            The numerator.
        denominator : int
            The denominator.

        Raises
        ------
        EpsilonError
            If epsilon is too small to draw noise for.
        """
        bits = 0
        while bits < MOST_BITS and epsilon * 2**bits < 2**30:
            bits += 1
        rate = int(epsilon * 2**bits)
        if rate == 0:
            raise EpsilonError(
                f"choosing how to divide {self.divided} needs more than "
                f"2^-{MOST_BITS} of epsilon; it was given {float(epsilon):.2g}. Raise "
                "epsilon"
            )
        return self.sensitivity(policy) << bits, rate

    def check_feasible(self, policy: Policy, cells: int, epsilon: Fraction) -> None:
        """Refuse an epsilon at which the comparison could not be drawn: Lemma HA5.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints, under which it would be drawn.
        cells : int
            The number of cells; any will do.
        epsilon : Fraction
            What the answer may cost.

        Raises
        ------
        EpsilonError
            If the noise would not fit 64 bits.
        """
        if self.sensitivity(policy):
            check_scale(Fraction(*self.scale(policy, epsilon)), self.name)

    def noise(
        self,
        cells: int,
        policy: Policy,
        epsilon: Fraction,
        *,
        draws: int,
        rng: Randomness,
    ) -> IntArray:
        """Draw Laplace noise for the statistic of each choice: Lemma SC3.

        Parameters
        ----------
        cells : int
            Number of cells.
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What one choice may use.
        draws : int
            How many choices; one, but for audits.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        ndarray of int64, shape (draws, 1)
            The noise of each choice; zeros where nothing that is compared can move.
        """
        if self.sensitivity(policy) == 0:
            return np.zeros((draws, 1), dtype=np.int64)
        return rng.laplace(*self.scale(policy, epsilon), size=draws).reshape(-1, 1)

    def decide(self, counts: IntArray, policy: Policy, noise: IntArray) -> AnyArray:
        """Return whether the noisy statistic of each choice is above 0.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        policy : Policy
            The policy, without constraints.
        noise : ndarray of int64, shape (draws, 1)
            As `noise` draws it.

        Returns
        -------
        ndarray of bool, shape (draws,)
            True where it is.
        """
        value = self.statistic(counts, policy.domain.shape)
        above: AnyArray = noise[:, 0] > -value
        return above


class RoughnessTest(ScatterTest):
    """Say how rough a line is: how much buckets that pay for themselves leave uneven.

    The answer is a grade, the number of `steps` that the noisy roughness exceeds. The
    roughness is the least cost of buckets over that of as many buckets as cells: from
    almost 0, where a few buckets make everything even, to 1, where none pays.

    Parameters
    ----------
    length_weights : list[float]
        Item i, from 0 to 1, is the weight of a bucket of 2^i cells; public.
    price : float
        Cost of a bucket, in records; public.
    steps : tuple[float, ...]
        The bounds between grades, none below the one before it, each above 0 and up to
        1; public. Between two that are equal there is no grade.

    Notes
    -----
    Guarantee: epsilon-private answer under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: of the least cost, 3/4 when a record is added or removed, 1 when it
        moves; in whole numbers, with one draw of Laplace noise on the integers that all
        bounds share.
    Complexity: O(n log n) time, O(n) memory.
    Source: this project; Lemma SC6 in ``docs/proofs/dawa.md``.

    Examples
    --------
    Four buckets of a record each make these cells even; two make the others.

    >>> import numpy as np
    >>> test = RoughnessTest([1.0] * 3, price=1.0, steps=(0.375, 0.75))
    >>> test.statistic(np.array([90, 0, 70, 20]), (4,)) / ONE
    4.0
    >>> test.statistic(np.array([90, 90, 20, 20]), (4,)) / ONE
    2.0
    >>> [bound / ONE for bound in test.bounds(4)]
    [1.5, 3.0]
    """

    name = "roughness"
    divided = "a line"

    def __init__(
        self, length_weights: list[float], *, price: float, steps: tuple[float, ...]
    ) -> None:
        super().__init__([length_weights], price=price, threshold=0)
        self.steps = steps

    def statistic(self, counts: IntArray, shape: tuple[int, ...]) -> int:
        """Return the least cost of buckets in units of 2^-18 records, before any noise.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        shape : tuple[int, ...]
            The shape of the domain; its cells are taken as one line.

        Returns
        -------
        int
            The statistic.
        """
        return super().statistic(counts, (1, counts.size))

    def bounds(self, cells: int) -> list[int]:
        """Return the statistic at which each next grade begins, on so many cells."""
        price = kernels.price_within(self.price, cells)
        return [int(step * cells * price) for step in self.steps]

    def decide(self, counts: IntArray, policy: Policy, noise: IntArray) -> AnyArray:
        """Return the grade of each answer: how many bounds the statistic exceeds.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        policy : Policy
            The policy, without constraints.
        noise : ndarray of int64, shape (draws, 1)
            As `noise` draws it.

        Returns
        -------
        ndarray of int64, shape (draws,)
            The grades.
        """
        value = self.statistic(counts, policy.domain.shape)
        grades = np.zeros(len(noise), dtype=np.int64)
        for bound in self.bounds(counts.size):
            grades += noise[:, 0] > bound - value
        return grades


class SpikeTest(RoughnessTest):
    """Say whether the single cells of a line tell more of it than buckets would.

    Buckets leave V of the records uneven, the least cost of `RoughnessTest`. Single
    cells that are fitted towards 0 are off by about G, the records of every cell up to
    `largest`: in spikes that stand out of the noise, they are nearly right. The answer
    is a grade, the number of `steps` that V - 3/4 G and its noise exceed.

    Parameters
    ----------
    length_weights : list[float]
        Item i, from 0 to 1, is the weight of a bucket of 2^i cells; public.
    price : float
        Cost of a bucket, in records; public.
    largest : int
        Records of a cell that count at most, 0 or more; public.
    steps : tuple[float, ...]
        The bounds between grades, rising, in parts of what as many buckets as cells
        cost, and possibly negative; public.

    Notes
    -----
    Guarantee: epsilon-private answer under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: of V - 3/4 G, 1 when a record is added or removed, 7/4 when it moves;
        in whole numbers, with one draw of Laplace noise on the integers that all bounds
        share.
    Complexity: O(n log n) time, O(n) memory.
    Source: this project; Lemma SC8 in ``docs/proofs/dawa.md``.

    Examples
    --------
    Three buckets isolate the spike, and single cells would be off by two records of it.

    >>> import numpy as np
    >>> test = SpikeTest([1.0] * 3, price=1.0, largest=2, steps=(0.0,))
    >>> test.statistic(np.array([0, 90, 0, 0]), (4,)) / ONE
    1.5
    >>> test.statistic(np.array([2, 2, 2, 2]), (4,)) / ONE
    -5.0
    """

    name = "spikes"

    def __init__(
        self,
        length_weights: list[float],
        *,
        price: float,
        largest: int,
        steps: tuple[float, ...],
    ) -> None:
        super().__init__(length_weights, price=price, steps=steps)
        self.largest = largest

    def statistic(self, counts: IntArray, shape: tuple[int, ...]) -> int:
        """Return V - 3/4 G in units of 2^-18 records, before any noise.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        shape : tuple[int, ...]
            The shape of the domain; its cells are taken as one line.

        Returns
        -------
        int
            The statistic.
        """
        seen = np.minimum(kernels.counts_within(counts), self.largest)
        return super().statistic(counts, shape) - SEEN_PART * int(seen.sum())

    def sensitivity(self, policy: Policy) -> int:
        """Return how far one edge moves the statistic, at most: Lemma SC8."""
        if policy.has_moves:
            return ONE + SEEN_PART
        return ONE // 4 + SEEN_PART if policy.has_bottom else 0


class PairTest(RoughnessTest):
    """Say how far neighbours differ: what buckets of two cells would leave uneven.

    The statistic is D, the sum of the differences inside the pairs of cells 2i and 2i +
    1. The answer is a grade, the number of `steps` that D and its noise exceed.

    Parameters
    ----------
    steps : tuple[float, ...]
        The bounds between grades, rising, each above 0, in records per cell; public.

    Notes
    -----
    Guarantee: epsilon-private answer under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: of D, 1 when a record is added or removed, 2 when it moves; in whole
        numbers, with one draw of Laplace noise on the integers that all bounds share.
    Complexity: O(n) time and memory.
    Source: this project; Lemma SC10 in ``docs/proofs/dawa.md``.

    Examples
    --------
    >>> import numpy as np
    >>> test = PairTest(steps=(1.0,))
    >>> test.statistic(np.array([0, 90, 7, 7]), (4,)) / ONE, test.bounds(4)[0] / ONE
    (90.0, 4.0)
    """

    name = "pairs"

    def __init__(self, *, steps: tuple[float, ...]) -> None:
        super().__init__([], price=0.0, steps=steps)

    def statistic(self, counts: IntArray, shape: tuple[int, ...]) -> int:
        """Return D in units of 2^-18 records, before any noise.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        shape : tuple[int, ...]
            The shape of the domain; its cells are taken as one line.

        Returns
        -------
        int
            The statistic.
        """
        cut = kernels.counts_within(counts)
        # A last cell that has no neighbour is in no pair.
        pairs = cut[: cut.size // 2 * 2].reshape(-1, 2)
        return ONE * int(np.abs(pairs[:, 0] - pairs[:, 1]).sum())

    def bounds(self, cells: int) -> list[int]:
        """Return the statistic at which each next grade begins, on so many cells."""
        return [int(step * cells * ONE) for step in self.steps]

    def sensitivity(self, policy: Policy) -> int:
        """Return how far one edge moves the statistic, at most: Lemma SC10."""
        if policy.has_moves:
            return 2 * ONE
        return ONE if policy.has_bottom else 0


class FirstBelow(NoisyComparison):
    """Find the first tail of a histogram that is at most `bar`, a public number.

    The tail after cell i is the number of records in the cells that follow it.

    Notes
    -----
    Guarantee: epsilon-private under every policy whose edges each join two cells, or a
        cell and "absent".
    Neighbours: one record moves along one edge, whichever.
    Sensitivity: such a record changes every tail by 0 or 1, all in one direction, so
        the bar and each tail take discrete Laplace noise of scale 2 / epsilon, however
        many tails there are. Less is not enough, although tails are nested (PE6).
    Proof: ``docs/proofs/persons.md``.
    """

    name = "first_below"

    def __init__(self, bar: int) -> None:
        self.bar = bar

    def check_feasible(self, policy: Policy, cells: int, epsilon: Fraction) -> None:
        """Refuse an epsilon at which the comparison could not be drawn: Lemma HA5.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints, under which it would be drawn.
        cells : int
            The number of cells; any will do.
        epsilon : Fraction
            What the choice may cost.

        Raises
        ------
        EpsilonError
            If the noise would not fit 64 bits.
        """
        if policy.has_moves or policy.has_bottom:
            check_scale(2 / epsilon, self.name)

    def tails(self, counts: IntArray) -> IntArray:
        """Return how many records lie in the cells after each cell but the last."""
        after: IntArray = counts.sum() - np.cumsum(counts)
        return after[:-1]

    def noise(
        self,
        cells: int,
        policy: Policy,
        epsilon: Fraction,
        *,
        draws: int,
        rng: Randomness,
    ) -> IntArray:
        """Draw Laplace noise for the bar, and for every tail: Lemma PE6.

        Parameters
        ----------
        cells : int
            Number of cells.
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What one choice may use.
        draws : int
            How many choices; one, but for audits.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        ndarray of int64, shape (draws, cells)
            The noise of each choice; zeros where nothing that is compared can move.
        """
        if not (policy.has_moves or policy.has_bottom):
            return np.zeros((draws, cells), dtype=np.int64)
        half = epsilon / 2
        drawn = rng.laplace(half.denominator, half.numerator, size=draws * cells)
        return drawn.reshape(draws, cells)

    def decide(self, counts: IntArray, policy: Policy, noise: IntArray) -> AnyArray:
        """Return the first low tail of each choice; the last if none is low.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        policy : Policy
            The policy, without constraints.
        noise : ndarray of int64, shape (draws, cells)
            As `noise` draws it.

        Returns
        -------
        ndarray of int64, shape (draws,)
            The number of the tail.
        """
        tails = self.tails(counts)
        below = tails + noise[:, 1:] <= self.bar + noise[:, :1]
        first: AnyArray = np.where(
            below.any(axis=1), below.argmax(axis=1), tails.size - 1
        )
        return first

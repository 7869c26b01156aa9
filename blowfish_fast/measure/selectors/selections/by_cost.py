"""Choices by cost: exact draws, with weights that fall with whole costs.

EFPA weighs what dropped frequencies would have told against the noise of kept ones; a
round of MWEM takes a query whose estimated answer is far off.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError, SizeError, WorkloadError
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Fractions, Pieces, Workload
from blowfish_fast.workloads.base import form_matrix, row_moments

if TYPE_CHECKING:
    from blowfish_fast.measure.randomness import Randomness

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


class ByCost(ABC):
    """Choose one of several candidates by the exponential mechanism.

    A candidate is drawn with probability in proportion to exp(-rate * cost), exactly,
    with rate = epsilon / (2 sensitivity). Proof: ``docs/proofs/exponential_choice.md``.

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
        """Return how fast weights fall with costs: Lemma EC2."""
        return epsilon / (2 * self.sensitivity(policy))

    def select(
        self, counts: IntArray, *, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> int:
        """Return the number of a candidate; the cheapest if no edge moves a cost."""
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
    """One query: whole coefficients on runs [start, end) of cells in C order."""

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
        """Return the same choice against estimated answers, among queries not asked."""
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

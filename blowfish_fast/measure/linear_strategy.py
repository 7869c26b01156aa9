"""What strategies share: integer weights, the worst policy edge, exact scales.

Scales and cost both follow from `worst_edge`, in integers, so the noise drawn and the
price charged cannot disagree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import DomainError, IntervalError, SizeError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.noise import WEIGHT_BITS, Scales, Spread, scales_within
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Form, Fractions, Implicit, Pieces

Kept = TypeVar("Kept")

MOST_LISTED = 2**24
"""Most queries times buckets that are listed where no closed form is known."""

UNKNOWN_SCALE = 2.0**100
"""A row that was not measured counts as measured with this scale: it tells nothing."""


def integers(values: Any) -> IntArray:
    """Read an array of whole numbers from a release file."""
    return np.asarray(values, dtype=np.int64)


def numbers(values: Any) -> FloatArray:
    """Read an array of numbers from a release file."""
    return np.asarray(values, dtype=np.float64)


def packed_matrix(matrix: Any) -> dict[str, Any]:
    """Return the parts of a sparse matrix in compressed rows, for a release file."""
    return {
        "pointers": matrix.indptr.astype(np.int64),
        "columns": matrix.indices.astype(np.int64),
        "values": matrix.data,
    }


def unpacked_matrix(data: dict[str, Any], shape: tuple[int, int]) -> Any:
    """Rebuild a matrix from `packed_matrix`; every index is checked.

    Parameters
    ----------
    data : dict[str, object]
        The parts of the matrix.
    shape : tuple[int, int]
        Rows and columns.

    Returns
    -------
    scipy.sparse.csr_array
        The matrix.
    """
    from scipy import sparse

    parts = (data["values"], data["columns"], data["pointers"])
    matrix = sparse.csr_array(parts, shape=shape)
    matrix.check_format(full_check=True)
    return matrix


def known_noise(scales: Scales) -> tuple[FloatArray, FloatArray]:
    """Return variance and scale of each row; rows not measured tell nothing."""
    unknown = ~(scales.measured | scales.exact)
    variances = np.where(unknown, UNKNOWN_SCALE**2, scales.variances)
    return variances, np.where(unknown, UNKNOWN_SCALE, scales.widths)


def one_draw(scales: Scales) -> tuple[float, float]:
    """Return scale and variance where all draws have one; 0 if all rows are exact."""
    if scales.exact.all():
        return 0.0, 0.0
    if not scales.measured.any():
        return UNKNOWN_SCALE, UNKNOWN_SCALE**2
    first = slice(int(scales.measured.argmax()), int(scales.measured.argmax()) + 1)
    one = scales._replace(rates=scales.rates[first], exact=scales.exact[first])
    return float(one.widths[0]), float(one.variances[0])


def _drawn_rows(scales: Scales) -> int:
    return int(np.count_nonzero(scales.measured))


class LinearStrategy(ABC):
    """Integer rows of the counts, measured with noise in proportion to weights.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> strategy = bf.strategies.PrefixSums(4)
    >>> strategy.rows(np.array([5, 0, 2, 1]))
    array([5, 5, 7, 8])
    >>> policy = bf.policies.Line(bf.Domain(4))
    >>> strategy.exact_rows(policy)
    array([False, False, False,  True])
    >>> float(strategy.cost(policy, strategy.scales(policy, Fraction(1, 2))))
    0.5
    """

    kind: ClassVar[str]

    saved: ClassVar[dict[str, Callable[[Any], Any]]] = {}
    """What a strategy is rebuilt from: each argument, and how it is read."""

    no_answers: ClassVar[str] = ""
    """Why queries are not asked of these rows, where they are not."""

    refuses_undetermined: ClassVar[bool] = False
    """Whether `spread` refuses queries that the rows do not determine."""

    @property
    def unbiased(self) -> bool:
        """Whether answers that the rows determine are off by noise alone."""
        return True

    @abstractmethod
    def rows(self, counts: IntArray) -> IntArray:
        """Return the exact values that are measured."""

    @abstractmethod
    def weights(self) -> IntArray:
        """Return the relative rate of each row, as integers below 2^31."""

    @abstractmethod
    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark the rows that no edge of the policy moves."""

    @abstractmethod
    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return the largest sum of ``weights * |move|^power`` along one edge.

        Parameters
        ----------
        weights : ndarray of int64, shape (rows,)
            Whole weight of each row, not negative.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum, or a bound above it.
        """

    @staticmethod
    def _total_exact(rows: int, policy: Policy) -> BoolArray:
        """Mark row 0, the total, where it is public; all if nothing can move."""
        exact = np.zeros(rows, dtype=np.bool_)
        exact[0] = not policy.has_bottom
        exact[1:] = not (policy.has_bottom or policy.has_moves)
        return exact

    def squared_weights(self) -> IntArray:
        """Return the relative rates of Gaussian noise; `weights` by default."""
        return self.weights()

    @abstractmethod
    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the best linear estimate of the cells.

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            The measured rows.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (cells,)
            The estimate.
        """

    def spread(self, form: Form, scales: Scales) -> Spread:
        """Return the law of each query's noise, for explicit forms.

        Parameters
        ----------
        form : Form
            The queries over the strategy's cells.
        scales : Scales
            The noise of each row.

        Returns
        -------
        Spread
            What is known of the noise in each answer.

        Raises
        ------
        IntervalError
            If this strategy has no answers of its own, or the form is implicit.
        """
        if self.no_answers:
            raise IntervalError(self.no_answers)
        if isinstance(form, Implicit):
            raise IntervalError("list the queries first: use explicit_form")
        return self._spread(form, scales)

    def _spread(self, form: Fractions | Pieces, scales: Scales) -> Spread:
        raise IntervalError(f"{type(self).__name__} does not state the law of a query")

    def total_variance(self, form: Form, scales: Scales) -> float:
        """Return the variance summed over all queries, in closed form if implicit.

        Parameters
        ----------
        form : Form
            The queries over the strategy's cells.
        scales : Scales
            The noise of each row.

        Returns
        -------
        float
            The sum.
        """
        if isinstance(form, Implicit) and not self.no_answers:
            return self._implicit_variance(form, scales)
        return float(self.spread(form, scales).variance.sum())

    def _implicit_variance(self, form: Implicit, scales: Scales) -> float:
        """Sum over listed queries: all ranges are the differences of two prefixes."""
        cuts, buckets = int(form.edges[-1]), form.edges.size - 1
        if cuts * buckets > MOST_LISTED:
            raise SizeError(
                f"{cuts:,} {form.kind} of {buckets:,} buckets are too many to list; "
                "ask fewer queries, or Identity"
            )
        each = float(self.spread(listed(form), scales).variance.sum())
        if form.kind != "all_ranges":
            return each
        # Over all pairs of cuts, of the variance of their difference; the cut before
        # all cells sees nothing.
        summed = float(self.spread(_summed_prefixes(form), scales).variance[0])
        return (cuts + 1) * each - summed

    def pack(self) -> dict[str, Any]:
        """Return arrays and plain values from which the strategy is rebuilt."""
        return {name: getattr(self, name) for name in self.saved}

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild a strategy from `pack`."""
        return cls(**{name: read(data[name]) for name, read in cls.saved.items()})

    @staticmethod
    def _refuse_other(counts: IntArray, cells: int) -> None:
        if counts.size != cells:
            raise DomainError(
                f"this strategy covers {cells} cells; received {counts.size} counts"
            )

    def published(self, rows: IntArray, noise: IntArray, scales: Scales) -> IntArray:
        """Return measured rows with their draws, exact rows, and 0 for all others.

        Parameters
        ----------
        rows : ndarray of int64, shape (rows,)
            True rows.
        noise : ndarray of int64, shape (rows,)
            A draw for each row.
        scales : Scales
            Which rows are measured, which are exact.

        Returns
        -------
        ndarray of int64, shape (rows,)
            What leaves the handle.
        """
        noisy = rows + noise
        noisy[~scales.measured] = 0
        np.copyto(noisy, rows, where=scales.exact)
        return noisy

    def half_widths(self, form: Form, scales: Scales, miss: float) -> FloatArray:
        """Return how far each answer may lie off, but for a probability of `miss`.

        Parameters
        ----------
        form : Form
            The queries over the strategy's cells.
        scales : Scales
            The noise of each row.
        miss : float
            The probability that an answer lies farther off.

        Returns
        -------
        ndarray of float64, shape (queries,)
            The half-widths.
        """
        return self._bound(self.spread(form, scales), scales, miss)

    def _bound(self, spread: Spread, scales: Scales, miss: float) -> FloatArray:
        if scales.power == 2:
            spread = spread._replace(gaussian_rows=self._kept(scales, _drawn_rows))
        return noise_half_widths(spread, miss)

    def _kept(self, scales: Scales, make: Callable[[Scales], Kept]) -> Kept:
        """Return what `make` returned for these very scales, which a release keeps."""
        last: tuple[Scales, dict[str, Any]] | None = self.__dict__.get("_last_noise")
        if last is None or last[0] is not scales:
            last = self.__dict__["_last_noise"] = (scales, {})
        kept, name = last[1], make.__name__
        if name not in kept:
            kept[name] = make(scales)
        found: Kept = kept[name]
        return found

    def scales(self, policy: Policy, budget: Budget | Fraction) -> Scales:
        """Return scales whose worst edge costs at most `budget`: Lemma LA5.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        budget : Budget or Fraction
            What the measurement may cost on any edge.

        Returns
        -------
        Scales
            The scales.
        """
        given = Budget.of(budget)
        last: tuple[Policy, Budget, Scales] | None = self.__dict__.get("_last_scales")
        if last is not None and last[0] is policy and last[1] == given:
            return last[2]
        power = given.power
        weights = self.weights() if power == 1 else self.squared_weights()
        # One policy is often priced at several budgets: its edges are searched once.
        priced: tuple[Policy, int, BoolArray, int] | None
        priced = self.__dict__.get("_last_price")
        if priced is None or priced[0] is not policy or priced[1] != power:
            exact = self.exact_rows(policy)
            weights[exact] = 0
            worst = self.worst_edge(weights, policy, power)
            priced = self.__dict__["_last_price"] = (policy, power, exact, worst)
        _, _, exact, worst = priced
        weights[exact] = 0
        found = scales_within(weights, worst, given, exact)
        # Later releases are drawn at these: whoever got them must not change them.
        found.rates.setflags(write=False)
        found.exact.setflags(write=False)
        self.__dict__["_last_scales"] = (policy, given, found)
        return found

    def cost(self, policy: Policy, scales: Scales) -> Fraction:
        """Return the cost of the worst policy edge, or a bound above it: Lemma HA1.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        scales : Scales
            The noise of each row.

        Returns
        -------
        Fraction
            The cost, in the currency of the scales.
        """
        worst = self.worst_edge(scales.rates, policy, scales.power)
        return Fraction(worst, scales.unit)

    def cost_in_rho(self, policy: Policy, scales: Scales) -> Fraction:
        """Return the rho of Laplace rows, or a bound above it: Lemma ZC8.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        scales : Scales
            The noise of each row.

        Returns
        -------
        Fraction
            The rho.
        """
        if scales.power == 2:
            return self.cost(policy, scales)
        longest = int(scales.rates.max(initial=0)).bit_length()
        dropped = max(longest - WEIGHT_BITS, 0)
        # Rounded up to 30 bits, before the square and after it.
        coarse = -(-scales.rates >> dropped)
        squares = (coarse * coarse >> WEIGHT_BITS) + (coarse > 0)
        worst = self.worst_edge(squares, policy, 2) << (2 * dropped + WEIGHT_BITS)
        return Fraction(worst, 2 * scales.unit**2)


def listed(form: Implicit) -> Fractions:
    """List single cells, the total, or every prefix over the buckets of a form."""
    sizes = np.diff(form.edges)
    last = np.repeat(np.arange(sizes.size), sizes)
    if form.kind == "identity":
        part = 1.0 / sizes[last]
        return Fractions(last, part, last, part)
    part = (np.arange(last.size) + 1 - form.edges[last]) / sizes[last]
    first = np.where(last == 0, part, 1.0)
    kept = slice(-1, None) if form.kind == "total" else slice(None)
    return Fractions(0 * last[kept], first[kept], last[kept], part[kept])


def _summed_prefixes(form: Implicit) -> Pieces:
    sizes = np.diff(form.edges)
    values = 0.5 * (sizes + 1.0) + (form.edges[-1] - form.edges[1:])
    at = np.arange(sizes.size)
    return Pieces(np.array([0, sizes.size]), at, at + 1, values)

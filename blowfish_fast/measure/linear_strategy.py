"""What strategies share: integer weights, the worst policy edge, exact scales.

Scales and cost both follow from `worst_edge`, in integers, so the noise drawn and the
price charged cannot disagree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import DomainError, IntervalError, SizeError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.noise import WEIGHT_BITS, Scales, Spread, scales_within
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Form, Fractions, Implicit, Pieces

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
    row_scale = scales._replace(rates=scales.rates[first], exact=scales.exact[first])
    return float(row_scale.widths[0]), float(row_scale.variances[0])


class WeighedRows(NamedTuple):
    """What one policy makes of a strategy's weights, before any budget is known.

    A policy is often priced at several budgets: its edges are searched once, here.

    Attributes
    ----------
    policy : Policy
        The policy, without constraints.
    power : int
        1 for epsilon, 2 for rho.
    weights : ndarray of int64, shape (rows,)
        Relative rate of each row; 0 where the row is exact.
    exact : ndarray of bool, shape (rows,)
        Rows that no edge of the policy moves.
    worst : int
        The largest sum of ``weights * |move|^power`` along one edge.
    """

    policy: Policy
    power: int
    weights: IntArray
    exact: BoolArray
    worst: int


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

    def with_noise(self, scales: Scales) -> StrategyNoise:
        """Return what is known of answers when the rows have this noise."""
        return StrategyNoise(self, scales)

    def noise_tables(self, scales: Scales) -> Any:
        """Return what every query needs of the rows' noise; `StrategyNoise` holds it.

        None where a strategy reads the scales themselves.
        """
        return None

    def spread(self, form: Form, scales: Scales) -> Spread:
        """Return the law of each query's noise, for explicit forms.

        Who asks more than once asks `with_noise(scales)`, which holds what queries
        share.

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
        return self.with_noise(scales).spread(form)

    def _spread(self, form: Fractions | Pieces, law: StrategyNoise) -> Spread:
        raise IntervalError(f"{type(self).__name__} does not state the law of a query")

    def total_variance(self, form: Form, scales: Scales) -> float:
        """Return `StrategyNoise.total_variance` of this strategy at some scales.

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
        return self.with_noise(scales).total_variance(form)

    def _total_variance(self, form: Form, law: StrategyNoise) -> float:
        if isinstance(form, Implicit) and not self.no_answers:
            return self._implicit_variance(form, law)
        return float(law.spread(form).variance.sum())

    def _implicit_variance(self, form: Implicit, law: StrategyNoise) -> float:
        """Sum over listed queries: all ranges are the differences of two prefixes."""
        cuts, buckets = int(form.edges[-1]), form.edges.size - 1
        if cuts * buckets > MOST_LISTED:
            raise SizeError(
                f"{cuts:,} {form.kind} of {buckets:,} buckets are too many to list; "
                "ask fewer queries, or Identity"
            )
        each = float(law.spread(listed(form)).variance.sum())
        if form.kind != "all_ranges":
            return each
        # Over all pairs of cuts, of the variance of their difference; the cut before
        # all cells sees nothing.
        summed = float(law.spread(_summed_prefixes(form)).variance[0])
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
        """Return `StrategyNoise.half_widths` of this strategy at some scales.

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
        return self.with_noise(scales).half_widths(form, miss)

    def _half_widths(self, form: Form, law: StrategyNoise, miss: float) -> FloatArray:
        """Return a bound for every query; strategies that know a law sharpen it."""
        return law.bound(law.spread(form), miss)

    def prepare(self, policy: Policy, budget: Budget | Fraction) -> PreparedStrategy:
        """Return the strategy with the noise that one policy and one budget ask for.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        budget : Budget or Fraction
            What the measurement may cost on any edge.

        Returns
        -------
        PreparedStrategy
            Scales, price, and the law of every answer; it does not change any more.
        """
        price = Budget.of(budget)
        return PreparedStrategy(self, self.scales(policy, price), policy, price)

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
        price = Budget.of(budget)
        return self.scales_at(self.weigh(policy, price.power), price)

    def weigh(self, policy: Policy, power: int = 1) -> WeighedRows:
        """Search the policy's edges for the one that costs most.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        WeighedRows
            What `scales_at` needs at every budget.
        """
        weights = self.weights() if power == 1 else self.squared_weights()
        exact = self.exact_rows(policy)
        weights[exact] = 0
        worst = self.worst_edge(weights, policy, power)
        return WeighedRows(policy, power, weights, exact, worst)

    def scales_at(self, weighed: WeighedRows, budget: Budget) -> Scales:
        """Return scales whose worst edge costs at most `budget`; no edge is searched.

        Parameters
        ----------
        weighed : WeighedRows
            What `weigh` returned, in the currency of the budget.
        budget : Budget
            What the measurement may cost on any edge.

        Returns
        -------
        Scales
            The scales. Nobody can write into their arrays.
        """
        scales = scales_within(weighed.weights, weighed.worst, budget, weighed.exact)
        # Releases are drawn at these: whoever got them must not change them.
        scales.rates.setflags(write=False)
        scales.exact.setflags(write=False)
        return scales

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


@dataclass(frozen=True, eq=False)
class StrategyNoise:
    """A strategy and the noise of its rows: what is known of answers, drawn or not.

    It is made once and handed on, by a mechanism to its releases. What all queries
    share (`tables`) is worked out when the first one is asked, and then held.

    Parameters
    ----------
    strategy : LinearStrategy
        What is measured.
    scales : Scales
        The noise of each row.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> from blowfish_fast.data.buckets import Buckets
    >>> line = bf.Domain(4)
    >>> strategy = bf.strategies.PrefixSums(4)
    >>> scales = strategy.scales(bf.policies.Line(line), Fraction(1))
    >>> law = strategy.with_noise(scales)
    >>> form = bf.workloads.Prefixes(line).explicit_form(Buckets.single_cells(4))
    >>> law.spread(form).variance.round(3).tolist()
    [1.841, 1.841, 1.841, 0.0]
    >>> law.half_widths(form, 0.1).tolist(), round(law.total_variance(form), 3)
    ([2.0, 2.0, 2.0, 0.0], 5.524)
    """

    strategy: LinearStrategy
    scales: Scales

    @property
    def kind(self) -> str:
        """Name of the strategy in the record of calls."""
        return self.strategy.kind

    @cached_property
    def tables(self) -> Any:
        """What every query needs of the rows' noise, as the strategy arranges it."""
        return self.strategy.noise_tables(self.scales)

    @cached_property
    def drawn_rows(self) -> int:
        """Number of rows that carry noise."""
        return int(np.count_nonzero(self.scales.measured))

    def spread(self, form: Form) -> Spread:
        """Return the law of each query's noise; see `LinearStrategy.spread`."""
        if self.strategy.no_answers:
            raise IntervalError(self.strategy.no_answers)
        if isinstance(form, Implicit):
            raise IntervalError("list the queries first: use explicit_form")
        return self.strategy._spread(form, self)

    def total_variance(self, form: Form) -> float:
        """Return the variance summed over all queries, in closed form if implicit."""
        return self.strategy._total_variance(form, self)

    def half_widths(self, form: Form, miss: float) -> FloatArray:
        """Return how far each answer may lie off, but for a probability of `miss`.

        Parameters
        ----------
        form : Form
            The queries over the strategy's cells.
        miss : float
            The probability that an answer lies farther off.

        Returns
        -------
        ndarray of float64, shape (queries,)
            The half-widths.
        """
        return self.strategy._half_widths(form, self, miss)

    def bound(self, spread: Spread, miss: float) -> FloatArray:
        """Bound half-widths by what is known of each query's noise.

        Parameters
        ----------
        spread : Spread
            The law of each query's noise.
        miss : float
            The probability that an answer lies farther off.

        Returns
        -------
        ndarray of float64, shape (queries,)
            The bounds.
        """
        if self.scales.power == 2:
            spread = spread._replace(gaussian_rows=self.drawn_rows)
        return noise_half_widths(spread, miss)


@dataclass(frozen=True, eq=False)
class PreparedStrategy(StrategyNoise):
    """A strategy whose noise one policy and one budget have settled.

    A mechanism holds it; dry run, rehearsal and draw use the same one. The handle
    prices it again before it draws, whatever `price` says.

    Parameters
    ----------
    strategy : LinearStrategy
        What is measured.
    scales : Scales
        The noise of each row.
    policy : Policy
        The policy, without constraints.
    budget : Budget
        What the worst edge may cost.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.Line(bf.Domain(4))
    >>> prepared = bf.strategies.PrefixSums(4).prepare(policy, Fraction(1, 2))
    >>> prepared.price, prepared.prepare(policy, Fraction(1, 2)) is prepared
    (Fraction(1, 2), True)
    >>> prepared.prepare(policy, Fraction(1)).price
    Fraction(1, 1)
    """

    policy: Policy
    budget: Budget

    @cached_property
    def price(self) -> Fraction:
        """Cost of the worst policy edge, in the currency of the budget: Lemma HA1."""
        return self.strategy.cost(self.policy, self.scales)

    def prepare(self, policy: Policy, budget: Budget | Fraction) -> PreparedStrategy:
        """Return this, if it was made for these, or the strategy prepared for them.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        budget : Budget or Fraction
            What the measurement may cost on any edge.

        Returns
        -------
        PreparedStrategy
            The strategy with its noise.
        """
        if policy is self.policy and Budget.of(budget) == self.budget:
            return self
        return self.strategy.prepare(policy, budget)


def listed(form: Implicit) -> Fractions:
    """List single cells, the total, or every prefix over the buckets of a form."""
    sizes = np.diff(form.edges)
    last = np.repeat(np.arange(sizes.size), sizes)
    if form.kind == "identity":
        part = 1.0 / sizes[last]
        return Fractions(last, part, last, part)
    part = (np.arange(last.size) + 1 - form.edges[last]) / sizes[last]
    first = np.where(last == 0, part, 1.0)
    rows = slice(-1, None) if form.kind == "total" else slice(None)
    return Fractions(0 * last[rows], first[rows], last[rows], part[rows])


def _summed_prefixes(form: Implicit) -> Pieces:
    sizes = np.diff(form.edges)
    values = 0.5 * (sizes + 1.0) + (form.edges[-1] - form.edges[1:])
    at = np.arange(sizes.size)
    return Pieces(np.array([0, sizes.size]), at, at + 1, values)

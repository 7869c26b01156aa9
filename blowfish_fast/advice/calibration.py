"""What one policy and one workload cost at any accuracy: worked out once, then scaled.

Noise is nearly in proportion to 1 / epsilon, so one law says where the least epsilon of
every alpha lies; the law at that very epsilon decides. Proof:
``docs/proofs/choosing_epsilon.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import BlowfishError, SizeError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.linear_strategy import (
    LinearStrategy,
    StrategyNoise,
    one_draw,
)
from blowfish_fast.measure.noise import Scales, Spread
from blowfish_fast.measure.strategies.answers import Answers
from blowfish_fast.measure.strategies.edge_cuts import cuts_by_query, is_forest
from blowfish_fast.measure.strategies.edge_noise import EdgeNoise
from blowfish_fast.measure.strategies.ordered_hierarchy import OrderedHierarchy
from blowfish_fast.measure.tails import noise_half_widths
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.registry import MechanismName
from blowfish_fast.policies import Line, Policy
from blowfish_fast.workloads import Fractions, Pieces, Workload

from .comparison import compare
from .least_epsilon import (
    ErrorLaw,
    LeastEpsilon,
    Scope,
    largest_errors,
    lowest_safe_rank,
    one_scale,
    round_up,
)

MOST_SIMULATED = 2
"""Candidates that are simulated: those of the least bounds."""

MOST_TRIES = 4
"""Simulations of one candidate; each try pays for itself in confidence."""

MARGIN = 1.003
"""Errors shrink a little slower than 1 / epsilon, since noise is whole numbers."""

STEP_UP = 1.01
"""A try that misses is repeated with this much more epsilon."""

GAINED_AT_MOST = 2.0
"""A candidate whose bound is so many times the best is not simulated."""

NEAR = 1.05
"""Candidates within this factor of the cheapest are worked out in full, as are those
that are simulated."""

MOST_COEFFICIENTS = 2**22
"""Edges times queries up to which edges are listed even if they need not be."""

MOST_FOLLOWED = 2**27
"""Ends of edges inside queries up to which noise along edges is weighed."""

MOST_DRAWN = 2**27
"""Draws of one simulation; larger ones are left to the bound."""

KEPT, KEPT_CELLS = 4, 2**16
"""Calibrations that are kept, up to so many cells: another accuracy is often asked."""

_LAST: list[Calibration] = []


class Candidate(NamedTuple):
    """One mechanism and the least budget with which it keeps the promise.

    Attributes
    ----------
    name : str
        Its name.
    budget : Budget or None
        The least budget; None where there is no promise.
    mechanism : Mechanism or None
        Ready to release; None where there is no promise.
    found_by : str
        How the budget was worked out. What "scaling" gave is near the least, and no
        promise.
    reason : str
        Why there is no promise.
    """

    name: str
    budget: Budget | None
    mechanism: Mechanism | None
    found_by: str
    reason: str

    @property
    def epsilon(self) -> Fraction | None:
        """The least epsilon; None where there is no promise."""
        return None if self.budget is None else self.budget.epsilon

    @property
    def amount(self) -> Fraction | None:
        """The least budget in its currency; None where there is no promise."""
        return None if self.budget is None else self.budget.amount


class _Calibrated:
    """A mechanism at epsilon 1, its law, and what scaling has shown of it so far."""

    def __init__(self, name: str, mechanism: Mechanism, law: ErrorLaw) -> None:
        self.name, self.mechanism, self.law = name, mechanism, law
        self._reach: dict[tuple[float, Scope], float] = {}
        self.simulated: dict[tuple[float, int], float] = {}

    def start(self, wanted: LeastEpsilon) -> float:
        """Return about the least epsilon: alpha times epsilon is nearly constant."""
        key = (wanted.beta, wanted.scope)
        if key not in self._reach:
            spread = self.law.spread(self.law.scales(Fraction(1)))
            self._reach[key] = wanted.alpha * wanted.scaled_start(spread)
        return self._reach[key] / wanted.alpha


class Calibration:
    """The candidates for a policy and a workload, with the laws of their noise.

    It is free: no data is read.

    Parameters
    ----------
    policy : Policy
        What is secret.
    workload : Workload
        The queries.
    power : int, default 1
        Costs are in epsilon (1) or in rho (2).
    mechanisms : sequence of str or class, optional
        What is weighed, as `compare` takes it; everything by default.
    answers : Workload, optional
        Queries over the same domain that an accuracy is about, where mechanisms measure
        for others; by default those of `workload` itself.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(100)
    >>> known = Calibration(bf.policies.Line(line), bf.workloads.Prefixes(line))
    >>> one, two = (known.least(alpha, 0.05)[0] for alpha in (50, 100))
    >>> one.name, 1.9 < one.epsilon / two.epsilon < 2.1
    ('ordered', True)
    >>> alpha, name = known.accuracy(one.budget, 0.05)
    >>> name, 49 <= alpha <= 51
    ('ordered', True)
    """

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        power: int = 1,
        *,
        mechanisms: Sequence[MechanismName] | None = None,
        answers: Workload | None = None,
    ) -> None:
        self.policy, self.workload, self.power = policy, workload, power
        self.answers = workload if answers is None else answers
        self.queries = max(self.answers.queries, 1)
        self._calibrated: list[_Calibrated] = []
        self._laws: list[tuple[dict[str, Any], ErrorLaw]] = []
        self._refused: list[Candidate] = []
        at_one = self.budget_at(Fraction(1))
        for prediction in compare(
            policy, workload, epsilon=at_one, hurried=True, mechanisms=mechanisms
        ):
            try:
                if prediction.mechanism is not None and not prediction.reason:
                    law = self._law(prediction.mechanism)
                    self._calibrated.append(
                        _Calibrated(prediction.name, prediction.mechanism, law)
                    )
                    continue
                reason = prediction.reason
            except BlowfishError as problem:
                reason = str(problem)
            self._refused.append(Candidate(prediction.name, None, None, "", reason))

    def budget_at(self, epsilon: Fraction) -> Budget:
        """Return the budget whose noise is that of Laplace: in rho, epsilon^2 / 4."""
        return Budget(epsilon if self.power == 1 else epsilon**2 / 4, self.power)

    def least(
        self,
        alpha: float,
        beta: float,
        scope: Scope = "simultaneous",
        *,
        samples: int = 0,
        near: float = NEAR,
        checked: bool = True,
    ) -> list[Candidate]:
        """Return the candidates, cheapest first.

        Parameters
        ----------
        alpha : float
            How far answers may be off.
        beta : float
            The probability that they are farther off.
        scope : Scope, default 'simultaneous'
            Whether the promise is for all answers together, or for each.
        samples : int, default 0
            How many draws of the noise a simulation makes; 0 for none.
        near : float, default NEAR
            Beyond so many times the cheapest, budgets come from scaling.
        checked : bool, default True
            Unless so, what a simulation shows is scaled too, and promises nothing.

        Returns
        -------
        list[Candidate]
            The candidates.
        """
        wanted = LeastEpsilon(alpha, beta, scope, self.queries)
        priced: list[tuple[_Calibrated, Candidate]] = []
        least: dict[ErrorLaw, Fraction] = {}
        starts, refused = self._starts(wanted)
        drawn = samples if scope == "simultaneous" and self.power == 1 else 0
        in_full = MOST_SIMULATED if drawn else 1
        for start, calibrated in starts:
            # Until some are found, the next may still be within reach; of two that are
            # simulated, the one of the larger bound may be the better.
            if len(priced) >= in_full and start > near * starts[0][0]:
                budget = self.budget_at(round_up(start))
                scaled = Candidate(calibrated.name, budget, None, "scaling", "")
                priced.append((calibrated, scaled))
                continue
            try:
                if calibrated.law not in least:
                    least[calibrated.law] = wanted.least(calibrated.law, start)
            except BlowfishError as problem:
                refused.append(Candidate(calibrated.name, None, None, "", str(problem)))
                continue
            budget = self.budget_at(least[calibrated.law])
            ready = calibrated.mechanism.at(budget)
            priced.append(
                (calibrated, Candidate(calibrated.name, budget, ready, "bound", ""))
            )
        priced.sort(key=lambda pair: _worth(pair[1]))
        if drawn:
            cheapest = np.inf
            for at, (calibrated, candidate) in enumerate(priced[:MOST_SIMULATED]):
                bound = float(candidate.epsilon or 0)
                if candidate.mechanism is None or bound > GAINED_AT_MOST * cheapest:
                    continue
                cheaper = self._simulate(calibrated, candidate, wanted, drawn, checked)
                priced[at] = calibrated, cheaper
                cheapest = min(cheapest, float(cheaper.epsilon or np.inf))
        ranked = sorted((candidate for _, candidate in priced), key=_worth)
        return ranked + refused

    def _starts(
        self, wanted: LeastEpsilon
    ) -> tuple[list[tuple[float, _Calibrated]], list[Candidate]]:
        """Return where to look for each candidate, least first, and the refused."""
        starts, refused = [], list(self._refused)
        for calibrated in self._calibrated:
            try:
                starts.append((calibrated.start(wanted), calibrated))
            except BlowfishError as problem:
                refused.append(Candidate(calibrated.name, None, None, "", str(problem)))
        starts.sort(key=lambda pair: pair[0])
        return starts, refused

    def accuracy(
        self, budget: Budget, beta: float, scope: Scope = "simultaneous"
    ) -> tuple[float, str]:
        """Return the least alpha that a budget promises, and which mechanism does.

        Parameters
        ----------
        budget : Budget
            What may be spent.
        beta : float
            The probability that answers are farther off.
        scope : Scope, default 'simultaneous'
            Whether the promise is for all answers together, or for each.

        Returns
        -------
        alpha : float
            How far answers may be off.
        name : str
            The mechanism.

        Raises
        ------
        SizeError
            If no mechanism promises an accuracy.
        """
        miss = beta / (self.queries if scope == "simultaneous" else 1)
        root = Fraction(budget.amount)
        if self.power == 2:
            # A little less than the root, so that the promise is kept.
            root = Fraction(np.nextafter(2.0 * float(budget.amount) ** 0.5, 0.0))
        laws = ((pair_or_law.law, pair_or_law.name) for pair_or_law in self._calibrated)
        widest = [(law.widest(law.scales(root), miss), name) for law, name in laws]
        if not widest:
            raise SizeError("no mechanism promises an accuracy for this question")
        return min(widest, key=lambda pair_or_law: pair_or_law[0])

    def _simulate(
        self,
        calibrated: _Calibrated,
        candidate: Candidate,
        wanted: LeastEpsilon,
        samples: int,
        checked: bool,
    ) -> Candidate:
        """Lower the epsilon of a candidate as far as draws of its noise allow."""
        bound, law = candidate.epsilon, calibrated.law
        assert bound is not None
        rank = lowest_safe_rank(samples, wanted.beta, MOST_SIMULATED * MOST_TRIES)
        if law.errors is None or rank is None:
            return candidate
        if law.scales(bound).rates.size * samples > MOST_DRAWN:
            return candidate
        key = (wanted.beta, samples)
        if key not in calibrated.simulated:
            largest = law.errors(bound, samples)[rank - 1]
            calibrated.simulated[key] = float(bound) * largest
        tried = MARGIN * calibrated.simulated[key] / wanted.alpha
        if not checked and tried < bound:
            return Candidate(
                calibrated.name, Budget(round_up(tried)), None, "scaling", ""
            )
        for _ in range(MOST_TRIES - 1):
            guess = round_up(tried)
            if guess >= bound:
                break
            largest = law.errors(guess, samples)[rank - 1]
            if largest <= wanted.alpha:
                budget = Budget(guess)
                ready = calibrated.mechanism.at(budget)
                return Candidate(calibrated.name, budget, ready, "simulation", "")
            tried *= STEP_UP * largest / wanted.alpha
        return candidate

    def _law(self, mechanism: Mechanism) -> ErrorLaw:
        named = getattr(mechanism, "strategy", None)
        # A tree that keeps every edge measures the same as noise on the edges.
        forest = named == "tree" and is_forest(self.policy.unconstrained)
        many = self.policy.edge_count * self.queries > MOST_COEFFICIENTS
        if many and (named == "edges" or forest) and self._along_edges is not None:
            return self._along_edges
        measurement, asked = mechanism._predictable(self.answers)
        strategy, buckets = measurement.strategy, measurement.buckets
        form = asked.explicit_form(buckets)
        over = self.policy.unconstrained
        if buckets.count != over.domain.size or buckets.order is not None:
            over = over.project(buckets)

        weighed = strategy.weigh(over, self.power)

        def scales_at(epsilon: Fraction) -> Scales:
            spent = self.budget_at(epsilon).over(self.policy.group_size)
            return strategy.scales_at(weighed, spent)

        def errors(epsilon: Fraction, samples: int) -> FloatArray:
            nothing = strategy.rows(np.zeros(over.domain.size, dtype=np.int64))

            def answers_of(scales: Scales, noise: IntArray) -> FloatArray:
                rows = strategy.published(nothing, noise, scales)
                cells = buckets.expand(strategy.infer(rows, scales))
                answers: FloatArray = asked.answer(cells.reshape(asked.domain.shape))
                return answers

            return largest_errors(scales_at(epsilon), answers_of, samples)

        published: LinearStrategy = strategy
        if isinstance(strategy, OrderedHierarchy):
            # Of blocks of single cells, the law is known.
            published = strategy.as_totals or strategy
        over_cells = {"bucket_edges": buckets.edges, "bucket_order": buckets.order}
        noise = {"kind": published.kind, **published.pack(), **over_cells}
        for other, law in self._laws:
            if _same(noise, other):
                return law

        of_one_scale: list[Spread] = []
        last: list[tuple[StrategyNoise, Spread]] = []

        def asked_at(scales: Scales) -> tuple[StrategyNoise, Spread]:
            # One law is asked for half-widths, and then for tails.
            if not last or last[0][0].scales is not scales:
                noise_law = published.with_noise(scales)
                last[:] = [(noise_law, new_spread(noise_law))]
            return last[0]

        def spread(scales: Scales) -> Spread:
            return asked_at(scales)[1]

        def new_spread(noise_law: StrategyNoise) -> Spread:
            scales = noise_law.scales
            # Draws of one scale enter answers with the same parts at every epsilon.
            alike = one_scale(scales)
            if of_one_scale and alike:
                return of_one_scale[0].at_scale(scales)
            fresh = noise_law.spread(form).under(scales)
            if alike:
                of_one_scale.append(fresh)
            return fresh

        def widest(scales: Scales, miss: float) -> float:
            if isinstance(strategy, Answers):
                return float(strategy.half_widths(form, scales, miss).max(initial=0.0))
            bounds = noise_half_widths(spread(scales), miss)
            if type(published)._half_widths is LinearStrategy._half_widths:
                return float(bounds.max(initial=0.0))

            def sharper(some: IntArray) -> FloatArray:
                return asked_at(scales)[0].half_widths(_part_of(form, some), miss)

            return _largest_of_sharper(bounds, sharper)

        # A fit by iterations is too slow to be drawn many times.
        drawn = None if isinstance(strategy, Answers) else errors
        law = ErrorLaw(scales_at, spread, widest, drawn)
        self._laws.append((noise, law))
        return law

    @cached_property
    def _along_edges(self) -> ErrorLaw | None:
        """Return the law of noise on many edges, none of them listed, or refuse.

        All draws have one scale, and a range takes those on the edges it cuts. None
        where the edges have no closed form but are few enough to be followed.
        """
        free = self.policy.unconstrained
        form = self.answers.explicit_form(Buckets.single_cells(free.domain.size))
        cuts = cuts_by_query(free, form)
        if cuts is None:
            covered = self.answers.queries * self.answers.mean_cells()
            followed = int(covered * 2.0 * free.edge_count / free.domain.size)
            if followed > MOST_FOLLOWED:
                raise SizeError(
                    f"its queries meet the ends of edges in {followed:,} places; at "
                    f"most 2^27 = {MOST_FOLLOWED:,} are followed"
                )
            return None
        pair = Line(Domain(2))
        alone = EdgeNoise.under(pair)

        def scales_at(epsilon: Fraction) -> Scales:
            spent = self.budget_at(epsilon).over(self.policy.group_size)
            return alone.scales(pair, spent)

        def spread(scales: Scales) -> Spread:
            draw = one_draw(scales)
            of_cuts = Spread.of_one_scale(cuts, np.minimum(cuts, 1.0), *draw)
            rows = free.edge_count if self.power == 2 else 0
            return of_cuts._replace(gaussian_rows=rows)

        def widest(scales: Scales, miss: float) -> float:
            return float(noise_half_widths(spread(scales), miss).max(initial=0.0))

        return ErrorLaw(scales_at, spread, widest, None)


def find_calibration(policy: Policy, workload: Workload, power: int = 1) -> Calibration:
    """Return what was worked out of a question; the last few small ones are held.

    Parameters
    ----------
    policy : Policy
        What is secret.
    workload : Workload
        The queries.
    power : int, default 1
        1 for epsilon, 2 for rho.

    Returns
    -------
    Calibration
        The calibration.
    """
    for calibration in _LAST:
        same = calibration.policy is policy and calibration.workload is workload
        if same and calibration.power == power:
            return calibration
    fresh = Calibration(policy, workload, power)
    if policy.domain.size <= KEPT_CELLS:
        _LAST.insert(0, fresh)
        del _LAST[KEPT:]
    return fresh


def _same(first: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two strategies, with what they are laid over, are one."""
    alike = (np.array_equal(value, other[name]) for name, value in first.items())
    return first.keys() == other.keys() and all(alike)


def _worth(candidate: Candidate) -> tuple[bool, Fraction]:
    return candidate.mechanism is None, candidate.amount or Fraction(0)


def _largest_of_sharper(
    bounds: FloatArray, sharper: Callable[[IntArray], FloatArray]
) -> float:
    """Return the largest sharper half-width, none of which exceeds its bound.

    Only queries whose bound exceeds the sharper one of the widest are worked out.
    """
    if not bounds.size:
        return 0.0
    widest = np.array([bounds.argmax()])
    largest = float(sharper(widest)[0])
    others = np.flatnonzero(bounds > largest)
    return max(largest, float(sharper(others).max(initial=0.0)))


def _part_of(form: Fractions | Pieces, some: IntArray) -> Fractions | Pieces:
    """Return some queries of a form."""
    if isinstance(form, Fractions):
        first, head, last, tail = form
        return Fractions(first[some], head[some], last[some], tail[some])
    lengths = np.diff(form.pointers)[some]
    ends = np.cumsum(lengths)
    chosen = np.arange(int(lengths.sum()))
    chosen += np.repeat(form.pointers[some] - (ends - lengths), lengths)
    pieces = (form.starts[chosen], form.ends[chosen], form.values[chosen])
    return Pieces(np.append(0, ends), *pieces)

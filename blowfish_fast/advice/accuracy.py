"""From a wanted accuracy to the least epsilon that promises it.

An analyst says "off by at most alpha, but for a probability of beta"; every admissible
mechanism is asked what that would cost, and the cheapest wins. Nothing here reads data,
so asking is free and the choice gives nothing away.

    mechanism              epsilon   found by
    ordered                 0.1131   bound
    h_theta                 0.5616   simulation
    vertex                  2.4781   bound
    dawa                    no promise: its error depends on the data

Two ways lead to an epsilon. The bound: the half-width of every query, as intervals have
it, at an equal part of beta; or Chernoff's tails added up over all queries. The
simulation: the largest error of many draws of the very noise that would be added; an
order statistic of it is an upper confidence bound of the quantile, and what the
confidence leaves open is taken off beta.
Both are proved in docs/proofs/translation.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_confidence, as_whole
from blowfish_fast.errors import BlowfishError, EpsilonError, InputError, SizeError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.laplace_tails import noise_half_widths
from blowfish_fast.measure.noise import Scales, Spread
from blowfish_fast.measure.sensitivity.policy import sensitivity
from blowfish_fast.measure.strategies.answers import Answers
from blowfish_fast.measure.strategies.base import LinearStrategy
from blowfish_fast.measure.strategies.edges.edge_noise import EdgeNoise
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.policies import Policy, refuse_units
from blowfish_fast.workloads import Workload

from .comparison import compare
from .least_epsilon import ErrorLaw, LeastEpsilon, Scope, one_scale, round_up

SCOPES = ("simultaneous", "per_query")

OPEN_SHARE = 0.01
"""Part of beta that pays for the confidence of a simulation."""

MOST_SIMULATED = 2
"""Candidates that are simulated: those of the least bounds."""

MOST_TRIES = 4
"""Simulations of one candidate; each try pays for itself in confidence."""

STEP_UP = 1.01
"""A try that misses is repeated with this much more epsilon."""

MOST_COEFFICIENTS = 2**22
"""Edges times queries up to which noise along edges is weighed."""

MOST_DRAWN = 2**27
"""Draws of one simulation; larger ones are left to the bound."""


class Candidate(NamedTuple):
    """One mechanism and the epsilon that it needs.

    Attributes
    ----------
    name : str
        As in `compare`.
    budget : Budget or None
        The least that keeps the promise; None where there is no promise. `epsilon` is
        its amount, where it is epsilon.
    mechanism : Mechanism or None
        Ready to release at that budget.
    found_by : {"bound", "simulation", ""}
        How the budget was found.
    reason : str
        Why there is no promise; empty where there is one.
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


class Translation:
    """What an accuracy costs under every mechanism, cheapest first.

    Attributes
    ----------
    alpha, beta : float
        Largest error, and the probability of exceeding it.
    scope : {"simultaneous", "per_query"}
        Whether the promise is for all answers together or for each by itself.
    free : bool
        Whether no edge of the policy changes any answer: the answers are public, and
        are given exactly for nothing.
    """

    def __init__(
        self,
        alpha: float,
        beta: float,
        scope: Scope,
        candidates: list[Candidate],
        *,
        free: bool,
    ) -> None:
        self.alpha, self.beta, self.scope, self.free = alpha, beta, scope, free
        self.candidates = tuple(
            sorted(candidates, key=lambda one: (one.amount is None, one.amount or 0))
        )

    @property
    def best(self) -> Candidate:
        """The cheapest candidate."""
        if self.free or not self.candidates or self.candidates[0].budget is None:
            why = (
                "the answers are public; no mechanism is needed"
                if self.free
                else "no mechanism promises this accuracy; ask for a larger alpha"
            )
            raise EpsilonError(f"{why} (alpha={self.alpha:g}, beta={self.beta:g})")
        return self.candidates[0]

    @property
    def budget(self) -> Budget:
        """The least budget; 0 where the answers are public."""
        if self.free:
            return Budget(Fraction(0))
        found = self.best.budget
        assert found is not None
        return found

    @property
    def epsilon(self) -> Fraction:
        """The least epsilon; refused where the accuracy was asked for in rho."""
        return self.budget.epsilon

    @property
    def rho(self) -> Fraction:
        """The least rho, or that of the least epsilon."""
        return self.budget.rho

    @property
    def currency(self) -> str:
        """What the candidates are priced in: "epsilon" or "rho"."""
        priced = [one.budget for one in self.candidates if one.budget is not None]
        return priced[0].currency if priced else "epsilon"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The candidates as plain data, for tables and JSON."""
        return [
            {
                "name": one.name,
                self.currency: None if one.amount is None else float(one.amount),
                "found_by": one.found_by,
                "reason": one.reason,
            }
            for one in self.candidates
        ]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __str__(self) -> str:
        together = "all answers" if self.scope == "simultaneous" else "each answer"
        promise = (
            f"{together} within {self.alpha:g}, but for a probability of {self.beta:g}"
        )
        if self.free:
            return f"{promise}: exact and free, no edge of the policy changes them"
        width = max(len(one.name) for one in self.candidates)
        lines = [promise, f"{'mechanism':{width}}   {self.currency:8}   found by"]
        for one in self.candidates:
            if one.amount is not None:
                lines.append(
                    f"{one.name:{width}}   {float(one.amount):<8.6g}   {one.found_by}"
                )
            else:
                lines.append(f"{one.name:{width}}   no promise: {one.reason}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"Translation(alpha={self.alpha:g}, beta={self.beta:g}, "
            f"{self.currency}={float(self.budget):g})"
        )


def translate(
    policy: Policy,
    workload: Workload,
    *,
    alpha: float,
    beta: float,
    scope: Scope = "simultaneous",
    samples: int = 0,
    currency: Literal["epsilon", "rho"] = "epsilon",
) -> Translation:
    """Return the least epsilon, or rho, of every mechanism for a wanted accuracy.

    Free: no data is read.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable.
    workload : Workload
        What is asked; its queries are listed.
    alpha, beta : float
        Largest error, and the probability of exceeding it.
    scope : {"simultaneous", "per_query"}
        All answers together within alpha, or each by itself.
    samples : int
        Draws of the noise with which the cheapest candidates are simulated; 0 uses
        bounds alone. Needs several hundred for beta = 0.05, and more for less.
        Simultaneous promises in epsilon only.
    currency : {"epsilon", "rho"}
        What the accuracy is paid in: Laplace noise, or Gaussian noise.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(100)
    >>> asked = bf.workloads.Prefixes(line)
    >>> found = bf.translate(bf.policies.Line(line), asked, alpha=50, beta=0.05)
    >>> found.best.name, round(float(found.epsilon), 4)
    ('ordered', 0.1505)
    >>> full = bf.translate(bf.policies.Full(line), asked, alpha=50, beta=0.05)
    >>> full.epsilon > 5 * found.epsilon
    True
    """
    refuse_units(policy, "the epsilon for an accuracy")
    wanted = _as_alpha(alpha)
    miss = 1.0 - as_confidence(1.0 - _as_beta(beta))
    if scope not in SCOPES:
        raise InputError(f"scope must be one of {SCOPES}; received {scope!r}")
    samples = as_whole(samples, "samples", 0)
    if currency not in ("epsilon", "rho"):
        raise InputError(f'currency must be "epsilon" or "rho"; received {currency!r}')
    workload._refuse_too_many()
    if float(sensitivity(policy.unconstrained, workload)) == 0.0:
        return Translation(wanted, miss, scope, [], free=True)
    power = 1 if currency == "epsilon" else 2
    promise = _Promise(policy, workload, wanted, miss, scope, power)
    found = [
        promise.candidate(one.name, one.mechanism, one.reason)
        for one in compare(
            policy, workload, epsilon=promise.budget_at(Fraction(1)), hurried=True
        )
    ]
    if samples and scope == "simultaneous" and power == 1:
        found = promise.simulate(found, samples)
    return Translation(wanted, miss, scope, found, free=False)


class _Promise:
    """An accuracy that candidates are held against."""

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        alpha: float,
        beta: float,
        scope: Scope,
        power: int = 1,
    ) -> None:
        self.policy, self.workload, self.power = policy, workload, power
        self.alpha, self.beta, self.scope = alpha, beta, scope
        self.queries = max(workload.queries, 1)
        self.bound = LeastEpsilon(alpha, beta, scope, self.queries)

    def budget_at(self, epsilon: Fraction) -> Budget:
        """Return the budget whose noise is as large as that of Laplace at `epsilon`.

        In rho, epsilon^2 / 4: half-widths then go with 1 / epsilon in either currency.
        """
        return Budget(epsilon if self.power == 1 else epsilon**2 / 4, self.power)

    def candidate(
        self, name: str, mechanism: Mechanism | None, reason: str
    ) -> Candidate:
        """Return what a mechanism needs by the bound."""
        if mechanism is None or reason:
            return Candidate(name, None, None, "", reason)
        try:
            law = self._law(mechanism)
            budget = self.budget_at(self.bound.least(law))
        except BlowfishError as problem:
            return Candidate(name, None, None, "", str(problem))
        return Candidate(name, budget, mechanism.at(budget), "bound", "")

    def simulate(self, found: list[Candidate], samples: int) -> list[Candidate]:
        """Replace the epsilon of the cheapest candidates where simulation needs less.

        Of all the tries each may fail with an equal part of what beta leaves open.
        """
        promised = [one for one in found if one.epsilon is not None]
        chosen = sorted(promised, key=lambda one: one.epsilon or 0)[:MOST_SIMULATED]
        names = {one.name for one in chosen}
        return [
            self._simulate_one(one, samples) if one.name in names else one
            for one in found
        ]

    def _simulate_one(self, one: Candidate, samples: int) -> Candidate:
        assert one.mechanism is not None
        assert one.epsilon is not None
        law = self._law(one.mechanism)
        if law.largest_error is None:
            return one
        rank = _rank(samples, self.beta, MOST_SIMULATED * MOST_TRIES)
        if rank is None or law.scales(one.epsilon).rates.size * samples > MOST_DRAWN:
            return one
        epsilon = one.epsilon
        largest = _largest_errors(law, epsilon, samples)[rank - 1]
        # Errors shrink a little slower than 1 / epsilon: noise is whole numbers.
        tried = float(epsilon) * largest / self.alpha
        for _ in range(MOST_TRIES - 1):
            guess = round_up(tried)
            if guess >= one.epsilon:
                return one
            largest = _largest_errors(law, guess, samples)[rank - 1]
            if largest <= self.alpha:
                return one._replace(
                    budget=Budget(guess),
                    mechanism=one.mechanism.at_epsilon(guess),
                    found_by="simulation",
                )
            tried *= STEP_UP * largest / self.alpha
        return one

    def _law(self, mechanism: Mechanism) -> ErrorLaw:
        measurement, asked = mechanism._predictable(None)
        strategy, buckets = measurement.strategy, measurement.buckets
        form = asked.explicit_form(buckets)
        over = self.policy.unconstrained
        if buckets.count != over.domain.size or buckets.order is not None:
            over = over.project(buckets)

        if isinstance(strategy, EdgeNoise):
            _refuse_many_edges(strategy.heads.size * self.queries)
        nothing = strategy.rows(np.zeros(over.domain.size, dtype=np.int64))

        def largest_error(scales: Scales, noise: IntArray) -> float:
            rows = strategy.published(nothing, noise, scales)
            cells = buckets.expand(strategy.infer(rows, scales))
            answers = asked.answer(cells.reshape(asked.domain.shape))
            return float(np.abs(answers).max(initial=0.0))

        known: list[Spread] = []

        def spread(scales: Scales) -> Spread:
            # Draws of one scale enter answers with the same parts at every epsilon.
            if known and one_scale(scales):
                return known[0].at_scale(scales)
            found = strategy.spread(form, scales)
            if one_scale(scales):
                known.append(found)
            return found

        def half_widths(scales: Scales, miss: float) -> FloatArray:
            if type(strategy).half_widths is LinearStrategy.half_widths:
                return noise_half_widths(spread(scales), miss)
            return strategy.half_widths(form, scales, miss)

        return ErrorLaw(
            lambda epsilon: strategy.scales(
                over, self.budget_at(epsilon).over(self.policy.group_size)
            ),
            spread,
            half_widths,
            # A fit by iterations is too slow to be drawn many times.
            None if isinstance(strategy, Answers) else largest_error,
        )


def _rank(samples: int, beta: float, tries: int) -> int | None:
    """Return which order statistic bounds the quantile; None if none is safe.

    With an error of at most `beta` less its open part exceeded by a draw, the number
    of draws below the quantile is binomial; the rank is the least that this number
    reaches with a probability of at most the open part.
    """
    from scipy.stats import binom

    share = beta * OPEN_SHARE
    below = 1.0 - (beta - share)
    # P(Bin >= rank) <= share / tries.
    rank = int(binom.isf(share / tries, samples, below)) + 1
    while binom.sf(rank - 1, samples, below) > share / tries:
        rank += 1
    return rank if rank <= samples else None


def _largest_errors(law: ErrorLaw, epsilon: Fraction, samples: int) -> FloatArray:
    """Draw the noise `samples` times and return the largest errors, sorted.

    Exact discrete noise from a fixed seed: the plan is the same whoever asks.
    """
    assert law.largest_error is not None
    scales = law.scales(epsilon)
    widths = scales.widths
    noisy = scales.measured
    stay = -np.expm1(-1.0 / widths[noisy])
    source = np.random.default_rng(20140622)
    found = np.empty(samples)
    noise = np.zeros(widths.size, dtype=np.int64)
    for at in range(samples):
        # The difference of two geometric draws follows the discrete Laplace law.
        noise[noisy] = source.geometric(stay) - source.geometric(stay)
        found[at] = law.largest_error(scales, noise)
    found.sort()
    return found


def _refuse_many_edges(coefficients: int) -> None:
    if coefficients > MOST_COEFFICIENTS:
        raise SizeError(
            f"its draws along edges meet the queries in up to {coefficients:,} places; "
            f"at most 2^22 = {MOST_COEFFICIENTS:,} are weighed"
        )


def _as_alpha(alpha: Any) -> float:
    try:
        wanted = float(alpha)
    except (TypeError, ValueError):
        wanted = math.nan
    if not (math.isfinite(wanted) and wanted > 0):
        raise InputError(
            f"alpha is the largest error, a number above 0; received {alpha!r}"
        )
    return wanted


def _as_beta(beta: Any) -> float:
    try:
        wanted = float(beta)
    except (TypeError, ValueError):
        wanted = math.nan
    if not 0.0 < wanted < 1.0:
        raise InputError(
            "beta is the probability of exceeding alpha, strictly between 0 and 1; "
            f"received {beta!r}"
        )
    return wanted

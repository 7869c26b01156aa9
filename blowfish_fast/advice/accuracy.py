"""From a wanted accuracy to the least epsilon that promises it.

An analyst says "off by at most alpha, but for a probability of beta"; every admissible
mechanism is asked what that would cost, and the cheapest wins. Nothing here reads data.
Bounds and simulations are proved in docs/proofs/choosing_epsilon.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal

from blowfish_fast._support.validation import (
    as_choice,
    as_positive,
    as_whole,
    naming_right_words,
)
from blowfish_fast.errors import EpsilonError, InputError
from blowfish_fast.measure.budgets import Budget, HasBudget, as_delta, epsilon_of
from blowfish_fast.measure.sensitivity.policy import check_question, sensitivity
from blowfish_fast.mechanisms.wide_questions import refuse_wide_advice
from blowfish_fast.policies import Policy, refuse_units
from blowfish_fast.workloads import Identity, Workload

from .calibration import NEAR, Candidate, find_calibration
from .least_epsilon import Scope
from .wide_advice import asks_wide, least_list_budget

SCOPES = ("simultaneous", "per_query")

MANY_QUERIES, MANY_CELLS = 2**14, 2**16
"""Beyond, mechanisms that are far from the cheapest are priced by scaling alone."""


class Translation(HasBudget):
    """What an accuracy costs under every mechanism, cheapest first.

    With a delta, `in_rho` has the same in rho, and `delta` is that of the comparison.

    Parameters
    ----------
    alpha : float
        How far answers may be off.
    beta : float
        The probability that they are farther off.
    scope : Scope
        Whether the promise is for all answers together, or for each.
    candidates : list[Candidate]
        The mechanisms.
    free : bool
        Whether no edge of the policy changes any answer: the answers are public then,
        and given exactly.
    """

    in_rho: Translation | None = None
    delta: Fraction | None = None

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
            sorted(
                candidates,
                key=lambda candidate: (candidate.amount is None, candidate.amount or 0),
            )
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
        least = self.best.budget
        assert least is not None
        return least

    @property
    def currency(self) -> str:
        """What the candidates are priced in: "epsilon" or "rho"."""
        priced = [
            candidate.budget
            for candidate in self.candidates
            if candidate.budget is not None
        ]
        return priced[0].currency if priced else "epsilon"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The candidates as plain data, for tables and JSON."""
        return [
            {
                "name": candidate.name,
                self.currency: None
                if candidate.amount is None
                else float(candidate.amount),
                "found_by": candidate.found_by,
                "reason": candidate.reason,
            }
            for candidate in self.candidates
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
        width = max(len(candidate.name) for candidate in self.candidates)
        lines = [promise, f"{'mechanism':{width}}   {self.currency:8}   found by"]
        for candidate in self.candidates:
            if candidate.amount is not None:
                amount = f"{float(candidate.amount):<8.6g}"
                lines.append(
                    f"{candidate.name:{width}}   {amount}   {candidate.found_by}"
                )
            else:
                lines.append(
                    f"{candidate.name:{width}}   no promise: {candidate.reason}"
                )
        if self.in_rho is not None and self.in_rho.candidates[0].budget is not None:
            implied = epsilon_of(self.in_rho.rho, self.delta)
            least = self.candidates[0].amount or math.inf
            better = "Laplace" if least <= implied else "Gaussian"
            lines += ["", *str(self.in_rho).splitlines()[1:], ""]
            lines.append(
                f"The least rho is epsilon {float(implied):.6g} at delta = "
                f"{float(self.delta or 0):g}: {better} noise costs less for one such "
                "release; many from one ledger cost less in rho."
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"Translation(alpha={self.alpha:g}, beta={self.beta:g}, "
            f"{self.currency}={float(self.budget):g})"
        )


@naming_right_words
def translate(
    policy: Policy,
    workload: Workload,
    *,
    alpha: float,
    beta: float,
    scope: Scope = "simultaneous",
    samples: int = 0,
    currency: Literal["epsilon", "rho"] = "epsilon",
    delta: Any = None,
) -> Translation:
    """Return the least epsilon, or rho, of every mechanism for a wanted accuracy.

    It is free: no data is read. Above 2^14 queries or 2^16 cells, mechanisms that cost
    over 1.05 times the cheapest are priced by scaling: near the least, and no promise.
    Of a wide domain, or of words nobody listed, the list of heavy cells is priced, to
    a thousandth: cells that are not listed count as 0.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable.
    workload : Workload
        What will be asked.
    alpha : float
        The largest error.
    beta : float
        The probability of exceeding it.
    scope : Scope, default 'simultaneous'
        All answers together within alpha, or each by itself.
    samples : int, default 0
        Draws of the noise with which the cheapest candidates are simulated; 0 uses
        bounds alone. It needs several hundred for beta = 0.05, and more for less.
        Simultaneous promises in epsilon only.
    currency : Literal['epsilon', 'rho'], default 'epsilon'
        What the accuracy is paid in: Laplace noise, or Gaussian noise.
    delta : number, str or Fraction, optional
        At which both currencies are set side by side; there is no default.

    Returns
    -------
    Translation
        The candidates, cheapest first.

    Raises
    ------
    InputError
        If a number is out of range.

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
    lists = asks_wide(policy, workload) and isinstance(workload, Identity)
    if not lists:
        refuse_wide_advice(policy, workload)
    if delta is not None:
        asked: Any = {"alpha": alpha, "beta": beta, "scope": scope, "samples": samples}
        pure = translate(policy, workload, **asked)
        if not pure.free:
            pure.delta = as_delta(delta)
            pure.in_rho = translate(policy, workload, **asked, currency="rho")
        return pure
    check_question(policy, workload)
    refuse_units(policy, "the epsilon for an accuracy")
    wanted = as_positive(alpha, "alpha, the largest error,")
    chance = as_positive(beta, "beta, the probability of exceeding alpha,")
    miss = 1.0 - (1.0 - chance)
    if not 0.0 < miss < 1.0:
        raise InputError(f"beta must lie strictly between 0 and 1; received {beta!r}")
    as_choice(scope, "scope", SCOPES)
    samples = as_whole(samples, "samples", 0)
    as_choice(currency, "currency", ("epsilon", "rho"))
    if lists:
        each, power = scope == "per_query", 1 if currency == "epsilon" else 2
        least = least_list_budget(policy, wanted, miss, each=each, power=power)
        only = Candidate(least.name, least.budget, least, "bound", "")
        return Translation(wanted, miss, scope, [only], free=False)
    workload._refuse_too_many()
    if float(sensitivity(policy.unconstrained, workload)) == 0.0:
        return Translation(wanted, miss, scope, [], free=True)
    calibration = find_calibration(policy, workload, 1 if currency == "epsilon" else 2)
    few = workload.queries <= MANY_QUERIES and policy.domain.size <= MANY_CELLS
    near = math.inf if few else NEAR
    candidates = calibration.least(wanted, miss, scope, samples=samples, near=near)
    return Translation(wanted, miss, scope, candidates, free=False)

"""Posterior belief: how far answers shift what an attacker believes about a person.

    prior belief that the value is d          p
    after answers of eps_total in all         at most p / (p + (1 - p) e^(-eps_total))

The attacker may know everybody else's record. Proof, that the bound cannot be improved,
and where the printed theorem differs: ``docs/proofs/choosing_epsilon.md``. Beliefs are
rounded up and epsilons down, so that rounding never favours the attacker.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, overload

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import (
    EpsilonLike,
    as_epsilon,
    as_fraction,
    as_whole,
    malformed_as,
    naming_right_words,
)
from blowfish_fast.data.domain import is_wide
from blowfish_fast.errors import EpsilonError, InputError, PolicyError, SizeError
from blowfish_fast.measure.budgets import (
    Budget,
    as_delta,
    as_rho,
    odds_exponent,
    rho_of,
)
from blowfish_fast.policies import AddRemove, Full, Policy, TablePolicy
from blowfish_fast.policies.protocol import ABSENT

DIGITS = Context(prec=60, Emin=-(10**12), Emax=10**12)
SLACK = Decimal(10) ** -50
UNITS = 10**9
"""Epsilon is found to the billionth, the unit in which ledgers count."""

MOST_CELLS = 2**13
"""Largest domain whose distances are all looked at."""


class Belief(float):
    """A bound on a posterior belief, usable as a number.

    `exponent` is the epsilon of all answers times the steps between two values,
    infinite where the policy does not protect; `loose` is the bound as printed, prior *
    e^exponent. For answers paid in rho the bound may be exceeded with probability
    `delta`; `pure` is that of Laplace noise where epsilon was stated beside delta.
    """

    pure: Belief | None = None

    prior: Fraction
    exponent: Fraction | float
    loose: float
    delta: Fraction | None

    def __new__(
        cls, prior: Fraction, exponent: Fraction | float, delta: Fraction | None = None
    ) -> Belief:
        """Work out the bound, rounded up."""
        belief = super().__new__(cls, _bound(prior, exponent))
        belief.prior = prior
        belief.exponent = exponent
        belief.loose = _loose(prior, exponent)
        belief.delta = delta
        return belief

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.prior, self.exponent, self.delta

    def __repr__(self) -> str:
        but = "" if self.delta is None else f", but for {float(self.delta):g}"
        but += "" if self.pure is None else f"; {float(self.pure):.6g} without delta"
        return f"Belief({float(self):.6g}, before: {float(self.prior):g}{but})"


@overload
def risk(
    prior: EpsilonLike,
    *,
    epsilon: Any = None,
    rho: Any = None,
    delta: Any = None,
    queries: Any = 1,
    policy: Policy | None = None,
    steps: int | None = None,
) -> Belief: ...


@overload
def risk(
    prior: FloatArray | list[float],
    *,
    epsilon: Any = None,
    rho: Any = None,
    delta: Any = None,
    queries: Any = 1,
    policy: Policy | None = None,
    steps: int | None = None,
) -> FloatArray: ...


@naming_right_words
def risk(
    prior: Any,
    *,
    epsilon: Any = None,
    rho: Any = None,
    delta: Any = None,
    queries: Any = 1,
    policy: Policy | None = None,
    steps: int | None = None,
) -> Belief | FloatArray:
    """Return the largest belief that an attacker can reach in a value, rounded up.

    Parameters
    ----------
    prior : number, or array over the cells of `policy`
        Belief beforehand that the person's value is the true one; or a whole
        distribution over the cells, which gives a sharper bound for each cell.
    epsilon : number
        Of each answer. With a ledger, ``epsilon=ledger.spent, queries=1``.
    rho, delta : number
        Instead, for answers paid in rho: the belief stays below the bound but for a
        probability of `delta`, which has no default. With `epsilon` in place of `rho`,
        the largest rho that implies (epsilon, delta) is taken, and `pure` says what
        Laplace noise at that epsilon would allow.
    queries : int
        How many answers the person's record took part in.
    policy : Policy, optional
        The policy of `epsilon`. Values d steps apart are protected by e^(eps * d), so
        under `AddRemove` (where replacing a record is two steps) and under `Line` the
        bound is weaker; 1 where no path protects. Left out: one step, as under
        `Full`. Under a policy of persons the attacker knows the records of all others
        and none of hers, so each value is as far from the true one as any two are.
    steps : int, optional
        Instead of `policy`: the most steps between two values.

    Returns
    -------
    Belief or ndarray of float64
        The bound; one for each cell where `prior` is a distribution.

    Examples
    --------
    >>> risk(0.1, epsilon=0.5, queries=2)
    Belief(0.231969, before: 0.1)
    >>> import blowfish_fast as bf
    >>> line = bf.policies.Line(bf.Domain(3))
    >>> risk([0.2, 0.6, 0.2], epsilon=1, policy=line).round(3)
    array([0.447, 0.803, 0.447])
    >>> risk(0.1, rho="0.01", delta="1e-9")
    Belief(0.219347, before: 0.1, but for 1e-09)
    """
    _check_policy(policy)
    times = as_whole(queries, "queries", 1)
    with malformed_as(InputError, "a prior is a probability, or one for each cell"):
        single = np.ndim(prior) == 0
        cells = np.zeros(0) if single else np.asarray(prior, dtype=np.float64)
    if not single:
        _check_distribution(cells, policy)
    if rho is not None or delta is not None:
        odds = _rho_and_delta(epsilon, rho, delta)
        apart = most_steps(policy, steps)
        bound = _risk_in_rho(prior, *odds, times, apart)
        if epsilon is not None and isinstance(bound, Belief):
            bound.pure = Belief(bound.prior, as_epsilon(epsilon) * times * apart)
        return bound
    total = as_epsilon(epsilon) * times
    if single:
        return Belief(_as_belief(prior, "prior"), total * most_steps(policy, steps))
    if policy is None:
        raise InputError(
            "a distribution over cells needs the policy that says how far they are "
            "apart: risk(prior, epsilon=..., policy=...)"
        )
    return _by_cell(cells.reshape(-1), total, policy)


def _check_distribution(prior: FloatArray, policy: Policy | None) -> None:
    """Refuse beliefs that are no distribution over the cells of the policy."""
    cells = prior.size if policy is None else policy.domain.size
    shapes = [(cells,), *([] if policy is None else [policy.domain.shape])]
    valid = prior.shape in shapes and (prior >= 0).all()
    if not valid or abs(float(prior.sum()) - 1.0) > 1e-9:
        raise InputError(
            f"a prior over cells has one belief, 0 or more, for each of the {cells} "
            "cells, and they add up to 1"
        )


def _rho_and_delta(epsilon: Any, rho: Any, delta: Any) -> tuple[Fraction, Fraction]:
    """Return the rho of each answer, and the probability that is left out."""
    if delta is None:
        raise EpsilonError(
            "answers paid in rho bound a belief but for a small probability, which has "
            "no default; state delta, such as 1e-9"
        )
    chance = as_delta(delta)
    if rho is not None and epsilon is not None:
        raise EpsilonError("state epsilon or rho beside delta; received both")
    return as_rho(rho) if rho is not None else rho_of(epsilon, chance), chance


def _risk_in_rho(
    prior: Any, rho: Fraction, delta: Fraction, queries: int, apart: float
) -> Belief | FloatArray:
    """Bound beliefs by both tails of the loss at the largest distance of values."""
    exponent: Fraction | float = math.inf
    if apart != math.inf:
        total = Budget(rho * queries, 2).at_distance(int(apart))
        exponent = Fraction(0)
        if total.amount > 0:
            exponent = Fraction(odds_exponent(total.amount, delta, 6))
    if np.ndim(prior) == 0:
        return Belief(_as_belief(prior, "prior"), exponent, delta)
    weights = np.asarray(prior, dtype=np.float64).reshape(-1)
    return np.array([_bound(Fraction(float(weight)), exponent) for weight in weights])


def largest_epsilon(
    prior: Any,
    belief: Any,
    *,
    queries: Any = 1,
    policy: Policy | None = None,
    steps: int | None = None,
) -> Fraction:
    """Return the largest epsilon of each answer that keeps a belief within bounds.

    The inverse of `risk`, rounded down to a billionth; Corollary 31 of the paper, with
    the exact bound in place of the printed one. To keep the belief from growing by more
    than a factor x, ask for ``belief = x * prior``.

    Parameters
    ----------
    prior : number
        What the attacker believes beforehand, from 0 to 1.
    belief : number
        What he may believe at most.
    queries : int
        How many answers he sees.
    policy : Policy, optional
        The policy, whose longest way between two values counts.
    steps : int, optional
        The most steps between two values, in place of the policy.

    Returns
    -------
    Fraction
        The epsilon.

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> epsilon = largest_epsilon(0.1, belief=0.5, queries=10)
    >>> float(epsilon)
    0.219722457
    >>> risk(0.1, epsilon=epsilon, queries=10) <= 0.5
    True
    """
    _check_policy(policy)
    before, after = _as_belief(prior, "prior"), _as_belief(belief, "belief")
    if not 0 < before < after < 1:
        raise InputError(
            "the belief afterwards must lie between the prior and 1, and the prior "
            f"above 0; received prior={prior!r} and belief={belief!r}. Every answer "
            "may raise a belief a little, and none makes it certain"
        )
    repeats = most_steps(policy, steps)
    if repeats == math.inf:
        raise PolicyError(
            "some values have no path between them, so this policy does not keep them "
            "apart at any epsilon"
        )
    times = as_whole(queries, "queries", 1) * int(repeats)
    odds = (after * (1 - before)) / (before * (1 - after))
    with localcontext(DIGITS):
        units = math.floor(_decimal(odds).ln() * UNITS / times)
    while units > 0:
        epsilon = Fraction(units, UNITS)
        reached = _bound(before, epsilon * times)
        if Fraction(reached) <= after:
            return as_epsilon(epsilon)
        units -= 1
    raise EpsilonError(
        f"no epsilon of a billionth or more keeps the belief below {belief!r}; allow a "
        "little more, or ask fewer queries"
    )


def _check_policy(policy: Any) -> None:
    """Refuse what is no policy, and one whose distances do not bound beliefs."""
    if policy is not None and not isinstance(policy, Policy):
        raise PolicyError(
            f"state a policy, such as policies.Full(domain); received {policy!r}"
        )
    if policy is not None and policy.has_constraints:
        raise PolicyError(
            "known counts tie people to each other, so several records may change "
            "with one; state the most steps between two values: steps=..."
        )


def _bound(prior: Fraction, exponent: Fraction | float) -> float:
    if prior in (0, 1):
        return float(prior)
    if exponent == math.inf:
        return 1.0
    with localcontext(DIGITS):
        decay = (-_decimal(Fraction(exponent))).exp() * (1 - SLACK)
        return _float_above(1 / (1 + _decimal((1 - prior) / prior) * decay))


def _loose(prior: Fraction, exponent: Fraction | float) -> float:
    if prior == 0:
        return 0.0
    limit = 700.0
    return float(prior) * math.exp(exponent) if exponent < limit else math.inf


def _by_cell(weights: FloatArray, total: Fraction, policy: Policy) -> FloatArray:
    """Bound the belief in each cell by the distances to all others."""
    cells = policy.domain.size
    _check_size(cells)
    bounds = np.zeros(cells)
    numbers = np.arange(cells)
    apart = None if policy.person_rule is None else float(most_steps(policy))
    for cell in np.flatnonzero(weights):
        if apart is None:
            steps = policy.distance(numbers, cell)
        else:
            # Her other records may be as far apart as any: Lemma PB3.
            steps = np.where(numbers == cell, 0.0, apart)
        evidence = float((weights * np.exp(-float(total) * steps)).sum())
        # The sum of as many terms is exact to far better than this margin.
        bounds[cell] = min(1.0, float(weights[cell]) / evidence * (1.0 + 1e-11))
    return bounds


def most_steps(policy: Policy | None, steps: Any = None) -> int | float:
    """Return the most steps between two values; infinite where no path leads.

    Of persons: between any records of hers and any others, as many or not (Lemma PB3).

    Parameters
    ----------
    policy : Policy or None
        The policy.
    steps : int, optional
        The number itself, in place of the policy.

    Returns
    -------
    int or float
        The number.

    Raises
    ------
    InputError
        If both are given.
    """
    if steps is not None:
        number = as_whole(steps, "steps")
        if policy is not None or number < 1:
            raise InputError(
                "give the policy or the most steps between two values, at least 1; "
                f"received steps={steps!r}" + (" and a policy" if policy else "")
            )
        return number
    if policy is None:
        return 1
    if not (policy.has_moves or policy.has_bottom):
        return math.inf
    if isinstance(policy, Full):
        return 1
    if isinstance(policy, TablePolicy):
        return _steps_of_records(policy)
    size = policy.domain.size
    # Nobody lists the cells of a wide domain: all of them are joined to "absent".
    out = isinstance(policy, AddRemove) or (
        policy.has_bottom and (is_wide(policy.domain) or policy.bottom_cells().all())
    )
    if out and not policy.has_moves:
        # Out by one edge, in by another, as long as each was stated to be.
        return math.ceil(policy.distance(0, 1)) if size > 1 else 1
    _check_size(size)
    cells = np.arange(size)
    longest = max(float(policy.distance(cells, cell).max()) for cell in cells)
    if policy.person_rule is not None and policy.has_bottom:
        far = float(policy.distance(cells, ABSENT).max())
        if max(longest, far) > 1:
            longest = max(longest, 2 * far)
    # A part of a step, where "absent" lies so far away, counts as a whole one.
    return math.ceil(longest) if math.isfinite(longest) else math.inf


def _steps_of_records(policy: TablePolicy) -> int | float:
    """Attributes move one after the other; a way through "absent" may be shorter."""
    several = (factor for factor in policy._factors if factor.domain.size > 1)
    longest = sum(map(most_steps, several))
    if policy.by_attribute is None:
        longest = 1 if policy.has_moves else math.inf
    away = policy.absent_length
    return longest if away is None else min(longest, math.ceil(2 * away))


def _check_size(cells: int) -> None:
    if cells > MOST_CELLS:
        raise SizeError(
            f"the distances of {cells:,} cells are too many to compare; at most 2^13 = "
            f"{MOST_CELLS:,}. State the most steps between two values: steps=..."
        )


def _as_belief(value: Any, name: str) -> Fraction:
    belief = as_fraction(value, name)
    if not 0 <= belief <= 1:
        raise InputError(f"{name} is a probability from 0 to 1; received {value!r}")
    return belief


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _float_above(value: Decimal) -> float:
    nearest = float(value)
    return nearest if Decimal(nearest) >= value else math.nextafter(nearest, 2.0)

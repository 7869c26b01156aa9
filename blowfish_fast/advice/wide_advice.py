"""Advice for wide domains: one mechanism serves what is asked, named and priced.

    cells one by one, or words     SparseLaplace, in rho SparseGaussian
    ranges, rectangles             Dawa, whose error depends on the data

Nobody can list the cells, so nothing else is weighed; thresholds are public.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from blowfish_fast.data.domain import is_wide
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.sensitivity.policy import check_question
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.dawa import Dawa
from blowfish_fast.mechanisms.sparse import SparseGaussian, SparseLaplace
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Identity, Ranges, Rectangles, Workload

MOST_DOUBLINGS = 20
"""Budgets are looked for from 2^-21 to 2^20."""

STEP_BITS = 11
"""Binary digits of the budget that is found: it is the least to a thousandth."""


def single_cells(policy: Any) -> Any:
    """Return the workload of every single cell; None for what is no policy.

    Whoever is asked next refuses that, in its own words.
    """
    return Identity(policy.domain) if isinstance(policy, Policy) else None


def asks_wide(policy: Any, workload: Any) -> bool:
    """Return whether cells, ranges or rectangles of a wide domain are asked.

    Parameters
    ----------
    policy : Policy
        Over any domain; anything else is left to others to refuse.
    workload : Workload
        What is asked of it. Tables of a wide domain are weighed as usual.

    Returns
    -------
    bool
        Whether one mechanism serves.
    """
    wide = is_wide(getattr(policy, "domain", None))
    return wide and isinstance(workload, Ranges | Rectangles | Identity)


def serving(policy: Policy, workload: Workload, budget: Budget) -> Mechanism:
    """Return the mechanism that serves what is asked of a wide domain.

    Parameters
    ----------
    policy : Policy
        Over a wide domain.
    workload : Workload
        What is asked.
    budget : Budget
        What a release may spend.

    Returns
    -------
    Mechanism
        `SparseLaplace` or `SparseGaussian` for single cells, `Dawa` otherwise.
    """
    check_question(policy, workload)
    stated: Any = budget
    if not isinstance(workload, Identity):
        return Dawa(policy, workload, epsilon=stated)
    kind = SparseLaplace if budget.power == 1 else SparseGaussian
    return kind(policy, epsilon=stated)


def serving_reason(mechanism: Mechanism) -> str:
    """Return why it serves, with its threshold where it has one."""
    if isinstance(mechanism, SparseLaplace):
        return (
            f"it lists what holds about {mechanism.threshold:g} records or more; no "
            "release can list all cells of a wide domain"
        )
    return (
        "of a wide domain it measures buckets, and its intervals hold the truth; how "
        "far an answer is off depends on the data"
    )


def least_list_budget(
    policy: Policy, alpha: float, beta: float, *, each: bool, power: int
) -> SparseLaplace:
    """Return the list of the least budget whose counts are within alpha: Lemma SL11.

    Parameters
    ----------
    policy : Policy
        Over a wide domain.
    alpha : float
        The largest error, above 0.
    beta : float
        The probability of a larger one.
    each : bool
        Whether the promise is for each cell by itself.
    power : {1, 2}
        1 for epsilon, 2 for rho.

    Returns
    -------
    SparseLaplace
        With its budget; in rho a `SparseGaussian`.
    """
    kind = SparseLaplace if power == 1 else SparseGaussian
    word = "epsilon" if power == 1 else "rho"

    def at(amount: Fraction) -> SparseLaplace:
        stated: Any = {word: amount}
        return kind(policy, **stated)

    def enough(amount: Fraction) -> bool:
        return at(amount).largest_error(Fraction(beta), each=each) <= alpha

    # Errors are nearly in proportion to the scale of the noise; they are whole.
    at_one = at(Fraction(1)).largest_error(Fraction(beta), each=each)
    doublings = power * math.ceil(math.log2(max(at_one, 1) / max(alpha, 1)))
    doublings = min(max(doublings, -MOST_DOUBLINGS), MOST_DOUBLINGS)
    while doublings > -MOST_DOUBLINGS and enough(Fraction(2) ** (doublings - 1)):
        doublings -= 1
    while doublings < MOST_DOUBLINGS and not enough(Fraction(2) ** doublings):
        doublings += 1
    step = Fraction(2) ** (doublings - STEP_BITS)
    low, high = 2 ** (STEP_BITS - 1), 2**STEP_BITS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle * step) else (middle, high)
    return at(high * step)

"""What a promise says in epsilon and in rho: the same sentence, in either currency.

Sentences are put together from these words and never edited afterwards, since names of
columns stand in them, and a column may be called anything.

    in epsilon             in rho
    beyond e^eps           beyond what rho allows
    e^(eps*d)              rho d^2                   d steps apart
    e^(2*eps)              4 rho                     2 steps apart
    eps / 3                rho / 3^2                 3 records move together
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol


class Spent(Protocol):
    """What a budget says of its currency."""

    @property
    def power(self) -> int:
        """1 for epsilon, 2 for rho."""


def _in_rho(budget: Spent | None) -> bool:
    """Return whether a promise is made in rho; without a budget it is in epsilon."""
    return budget is not None and budget.power == 2


def beyond(budget: Spent | None) -> str:
    """Say how far two values one step apart can be told apart at most."""
    return "beyond what rho allows" if _in_rho(budget) else "beyond e^eps"


def beyond_factor(budget: Spent | None) -> str:
    """Say the same as `beyond`, where the factor is named as one."""
    return "beyond what rho allows" if _in_rho(budget) else "beyond a factor e^eps"


def at_distance(budget: Spent | None) -> str:
    """Say what holds for values d steps apart."""
    return "rho d^2" if _in_rho(budget) else "e^(eps*d)"


def at_length(budget: Spent | None, length: Fraction | int) -> str:
    """Say what holds for two values that lie a known number of steps apart.

    Parameters
    ----------
    budget : Spent or None
        What is spent; None where only the policy is described.
    length : Fraction or int
        How many steps lie between the two values.

    Returns
    -------
    str
        A part of a sentence.
    """
    if _in_rho(budget):
        return f"{float(length) ** 2:g} rho"
    return f"e^({float(length):g}*eps)"


def shared(budget: Spent | None, group_size: int) -> str:
    """Say what is spent where so many records move together.

    Parameters
    ----------
    budget : Spent or None
        What is spent; None where only the policy is described.
    group_size : int
        How many records move together.

    Returns
    -------
    str
        A part of a sentence.
    """
    if _in_rho(budget):
        return f"rho / {group_size:,}^2"
    return f"eps / {group_size:,}"

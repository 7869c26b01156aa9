"""A policy as other libraries' users state one: an object, a word, or a rule.

Serves the estimators and the engine, whose domains are known only when data arrives.
There is no default: who states nothing is asked to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import DomainError, PolicyError
from blowfish_fast.policies import AddRemove, Attribute, Full, Line, Policy

WORDS: dict[str, Callable[[Domain], Policy]] = {
    "add_remove": AddRemove,
    "full": Full,
    "line": Line,
    "attribute": Attribute,
}
"""Policies that a domain alone determines."""


def check_stated(policy: Any) -> None:
    """Refuse what is no policy, before any data arrives."""
    if isinstance(policy, str) and policy in WORDS:
        return
    if not isinstance(policy, Policy) and (
        isinstance(policy, str | type(None)) or not callable(policy)
    ):
        raise PolicyError(
            f"state the policy: one of {sorted(WORDS)}, a Policy, or a function from "
            f"a Domain to one; received {policy!r}"
        )


def policy_over(policy: Any, domain: Domain) -> Policy:
    """Return the stated policy over a domain.

    Examples
    --------
    >>> policy_over("full", Domain(4))
    Full(Domain(4 cells))
    """
    check_stated(policy)
    if isinstance(policy, str):
        return WORDS[policy](domain)
    stated = policy if isinstance(policy, Policy) else policy(domain)
    if not isinstance(stated, Policy):
        raise PolicyError(f"the function for the policy returned {stated!r}")
    if stated.domain != domain:
        raise DomainError(
            f"the policy lies over {stated.domain!r} and the data over {domain!r}; "
            "give the policy as a word, or as a function from a Domain"
        )
    return stated

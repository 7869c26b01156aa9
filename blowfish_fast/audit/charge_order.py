"""Whether a ledger charges before anything is drawn, and keeps what it charged.

The ledger is handed in, since audits and accounts do not know each other.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from blowfish_fast.errors import BlowfishError
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.registry import outside_parts

from .invariants import Breach


class _BrokenOffError(Exception):
    """The draw was broken off on purpose."""


def audit_charges(
    open_ledger: Callable[..., Any], mechanism: Mechanism, data: Any
) -> list[Breach]:
    """Release through a new ledger in memory and return every rule that it breaks.

    Parameters
    ----------
    open_ledger : callable
        ``open_ledger(None, epsilon=..., policy=...)`` returns an empty ledger, such as
        ``blowfish_fast.Ledger``.
    """
    breaches = []
    # An audit vouches for what it examines: nothing of it is published.
    word = {"vouched": True} if outside_parts(mechanism) else {}
    epsilon = mechanism.epsilon
    ledger = open_ledger(None, epsilon=2 * epsilon, policy=mechanism.policy)
    at_steps: list[Fraction] = []
    ledger.release(
        mechanism, data, progress=lambda _step: at_steps.append(ledger.spent), **word
    )
    if not at_steps or min(at_steps) < epsilon:
        breaches.append(
            Breach("charged before drawn", f"the ledger had spent {at_steps} by then")
        )

    def break_off(_step: str) -> None:
        raise _BrokenOffError

    ledger = open_ledger(None, epsilon=2 * epsilon, policy=mechanism.policy)
    try:
        ledger.release(mechanism, data, progress=break_off, **word)
    except _BrokenOffError:
        if ledger.spent < epsilon:
            breaches.append(Breach("no refund", f"a failed draw left {ledger.spent}"))
    ledger = open_ledger(None, epsilon=epsilon / 2, policy=mechanism.policy)
    try:
        ledger.release(mechanism, data, **word)
    except BlowfishError:
        if ledger.spent:
            breaches.append(
                Breach("refusals cost nothing", f"a refusal left {ledger.spent}")
            )
    else:
        breaches.append(
            Breach(
                "no more than the budget", f"{epsilon} of {epsilon / 2} was released"
            )
        )
    return breaches

"""The ledger that pays for a first look, asked before an answer is read.

    named, and exists          opened
    named, and is new          made, with the whole budget that is stated for it
    not named                  nobody keeps account of the look

A first look (`FirstLook`) reads a file of which nothing is stated. A ledger that would
refuse to pay is found out from public facts, so that nothing is read in vain.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.errors import BudgetError, InputError, LedgerError, PolicyError
from blowfish_fast.mechanisms.around_releases.first_look import FirstLook


@contextmanager
def paid_by(
    path: Path | None,
    total: str | None,
    request: str | None,
    seed: int | None,
    mechanism: FirstLook,
) -> Iterator[Ledger | None]:
    """Open the ledger that pays for a look, once it is sure that it would pay.

    Nothing is charged here. A ledger that would refuse is found out before the answers
    are read.

    Parameters
    ----------
    path : Path or None
        The file of the ledger; None if no ledger keeps account of the look.
    total : str or None
        The whole budget, for a ledger that does not exist yet.
    request : str or None
        The name under which the ledger keeps the look.
    seed : int or None
        A seed, which is refused beside a ledger: seeded draws protect nobody.
    mechanism : FirstLook
        The look that would be charged.

    Yields
    ------
    Ledger or None
        The ledger, open; None without a path.

    Raises
    ------
    InputError
        If a budget or a request is stated without a ledger, or a seed beside one.
    LedgerError
        If the ledger does not exist and no budget is stated for it.
    BudgetError or PolicyError
        If the ledger would refuse the look.
    """
    if path is None:
        if total is not None or request is not None:
            raise InputError(
                "a budget and a request belong to a ledger; name its file, --ledger"
            )
        yield None
        return
    if seed is not None:
        raise InputError(
            "a seed makes an experiment, which no ledger pays for; leave --seed or "
            "--ledger out"
        )
    if not path.exists() and total is None:
        raise LedgerError(
            f"there is no ledger at {path}; state its whole budget, --budget 2, and it "
            "is made"
        )
    terms: dict[str, Any] = {} if path.exists() else {"policy": mechanism.policy}
    with Ledger(path, epsilon=total, **terms) as ledger:
        paid_before = request is not None and ledger.entry(request) is not None
        preview = ledger.preview(mechanism)
        if not paid_before and not preview.accepted:
            policy_fits = mechanism.policy.implies(ledger.policy)
            kind = BudgetError if policy_fits else PolicyError
            raise kind(f"{preview.reason}. Nothing was charged")
        yield ledger

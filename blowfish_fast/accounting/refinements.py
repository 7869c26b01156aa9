"""Which stored releases may be made finer, decided by public values: Lemma CO13."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from blowfish_fast.errors import BudgetError, LedgerError, PrivacyError
from blowfish_fast.mechanisms.around_releases.refiner import Refiner

from .composition import Currency
from .journal import Charge
from .request import as_name


def refined_name(request: str, refiner: Refiner) -> str:
    """Return the name of a finer release: that of the first, and its epsilon.

    Parameters
    ----------
    request : str
        The name of the stored release.
    refiner : Refiner
        What makes it finer.

    Returns
    -------
    str
        The epsilon is a decimal where that is exact, else a fraction.
    """
    amount = refiner.budget.amount
    short = f"{float(amount):g}"
    return f"{request} at {short if Fraction(short) == amount else amount}"


def refinement_due(before: Charge, refiner: Refiner, currency: Currency) -> Fraction:
    """Return what a finer release costs beside what its chain has cost already.

    Parameters
    ----------
    before : Charge
        The charge of the stored release.
    refiner : Refiner
        What would make it finer.
    currency : Currency
        What the ledger counts.

    Returns
    -------
    Fraction
        The difference, in whole units of the ledger.
    """
    level = int(before.content.get("level", before.cost))
    return currency.amount(currency.charged(refiner.budget.amount) - level)


def refuse_refinement(
    before: Charge,
    refiner: Refiner,
    version: Any,
    currency: Currency,
    *,
    opened: bool,
) -> None:
    """Refuse what Lemma CO13 does not cover.

    Parameters
    ----------
    before : Charge
        The charge of the stored release.
    refiner : Refiner
        What would make it finer.
    version : str or None
        The label of the content of the data that would be handed over.
    currency : Currency
        What the ledger counts.
    opened : bool
        Whether an auditor may open its draws.

    Raises
    ------
    PrivacyError
        If its noise is not all that was paid for, or cannot be lowered in parts.
    LedgerError
        If nobody knows that the counts are the same, or an auditor was named.
    BudgetError
        If it would be no finer.
    """
    content = before.content
    label = None if version is None else as_name(version, "a version")
    # A later attempt under the same charge may have drawn from other counts.
    drawn_from = refiner.release_details.get("version")
    if currency.power != 1:
        raise PrivacyError(
            "a ledger in rho charges no differences of pure releases: they are no "
            "prices. Nothing was charged"
        )
    if drawn_from is None or label is None:
        lacking = "the release was stored with" if drawn_from is None else "you state"
        raise LedgerError(
            "a release is made finer with the very counts that it was drawn from, "
            "which a label of the version of their content tells; nothing was charged",
            received=f"{before.request!r}, and {lacking} none",
            way_out="Ask for a fresh release, and state its version="
            if drawn_from is None
            else "State it, such as version=a digest of the file, the same as then",
        )
    if drawn_from != label:
        raise LedgerError(
            "a release is made finer with the very counts that it was drawn from, and "
            f"{before.request!r} was stored with version={drawn_from!r}; "
            "nothing was charged",
            received=f"version={label!r}",
            way_out="Hand over the counts of that version, or ask for a fresh release",
        )
    if refiner.policy.person_rule is not None:
        raise PrivacyError(
            "the records of a person are chosen anew for each release, so no two have "
            "the same counts; nothing was charged"
        )
    if opened:
        raise LedgerError(
            "an auditor may open the draws of this ledger, and noise that is drawn "
            "given earlier noise does not follow from one key; nothing was charged"
        )
    alone = len(content["parts"]) == 1 and content["together"] is None
    level = int(content.get("level", before.cost))
    whole = alone and "series" not in content
    if not whole or currency.charged(refiner.measured_cost) != level:
        raise PrivacyError(
            f"a part of what {before.request!r} cost paid for something else than the "
            "noise of its rows, and would not be paid for again. Nothing was charged"
        )
    if currency.charged(refiner.budget.amount) <= level:
        raise BudgetError(
            f"{before.request!r} has cost {currency.words(level)} already; state more "
            f"to make it finer, received {refiner.budget.words()}"
        )

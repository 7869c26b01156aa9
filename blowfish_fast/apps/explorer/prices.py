"""What an epsilon buys, and whether somebody can pay for it: public values only.

    budget of the table      5.0   spent 1.2     what remains for ann: the smaller of
    allotment of ann         2.0   spent 0.7     3.8 and 1.3

Serves the explorer, before and after a question is planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.advice.comparison import compare
from blowfish_fast.errors import BlowfishError, BudgetError, QuestionError
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.registry import MECHANISMS, RHO_MECHANISMS
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

from .questions import Spending


def remaining_for(ledger: Ledger, analyst: str | None) -> Fraction:
    """Return what may still be spent, by an analyst or in all."""
    left = ledger.remaining
    if analyst is None:
        return left
    share = ledger.allotments(analyst).get(analyst)
    return min(left, share.remaining) if share is not None else Fraction(0)


def check_affordable(ledger: Ledger, cost: Fraction, analyst: str | None) -> None:
    """Refuse what cannot be paid, before the database is asked.

    Counting takes time that depends on records, and nobody may watch it for nothing.
    Whether it is paid is decided by the ledger when it charges.
    """
    currency = ledger.currency
    left = currency.granted(remaining_for(ledger, analyst))
    if currency.charged(cost) > left:
        if analyst is not None and not ledger.allotments(analyst):
            raise BudgetError(
                f"{analyst!r} has no allotment here; nothing was charged. The curator "
                "grants one"
            )
        raise BudgetError(
            f"the answer costs {currency.words(currency.charged(cost))}, and "
            f"{currency.text(left)} remains; nothing was charged. Ask for less "
            f"accuracy, or for a smaller {currency.name}"
        )


def bought(
    policy: Policy,
    workload: Workload,
    cost: Spending,
    vouched: Mapping[str, type[Mechanism]],
) -> Mechanism:
    """Return the mechanism that spends a stated budget best, or the one named.

    Those from outside the package are named by analysts only where the curator did.
    """
    budget = cost.budget
    if cost.mechanism is None:
        best = compare(policy, workload, epsilon=budget, hurried=True).best
        if best.mechanism is None:
            raise QuestionError(f"no mechanism fits this question: {best.reason}")
        return best.mechanism
    known = {**vouched, **MECHANISMS, **RHO_MECHANISMS}
    kind = known.get(cost.mechanism)
    if kind is None:
        raise QuestionError(
            f"there is no mechanism {cost.mechanism!r}; there are {sorted(known)}"
        )
    try:
        return kind(policy, workload, epsilon=budget)
    except (BlowfishError, TypeError) as problem:
        raise QuestionError(
            f"{cost.mechanism} cannot answer this question: {problem}"
        ) from None

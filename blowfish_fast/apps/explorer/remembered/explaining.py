"""What a question would cost, what is known of it already, and why: public values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from blowfish_fast.apps.explorer.answers_given import accuracy_words
from blowfish_fast.apps.explorer.frequent import threshold_words
from blowfish_fast.apps.explorer.past_answers import KnownAnswer
from blowfish_fast.apps.explorer.planning import Plan, gain_words
from blowfish_fast.apps.explorer.questions import Accuracy, FrequentQuestion, Question

from .refining import FinerAnswer, refusal


def explained(explorer: Any, asked: Question, analyst: str | None) -> dict[str, Any]:
    """Return what `Explorer.explain` does.

    Parameters
    ----------
    explorer : Explorer
        The table that would be asked.
    asked : Question
        The question.
    analyst : str or None
        Whose allotment would pay.

    Returns
    -------
    dict
        Plain data.
    """
    plan: Plan = explorer.plan(asked)
    remaining = explorer.remaining(analyst)
    earlier = explorer._earlier(asked)
    # By the log alone: it does not say whether the stored outcome is a failure.
    stored = earlier is not None and earlier.state == "stored"
    lists = isinstance(plan.layout.question, FrequentQuestion)
    reading = None if plan.free else explorer.known(asked, analyst)
    reads = reading is not None and reading.suffices(asked)
    finer: FinerAnswer | None = None
    if earlier is None and not (reads or plan.free):
        finer = explorer.refining.plan(plan.layout.question, analyst)
    missing = None if finer is None else finer.cost
    cost, how = plan.cost, "public" if plan.free else "fresh"
    if stored or reads:
        cost, how = Fraction(0), "stored" if stored else "read"
    elif missing is not None and missing < plan.cost:
        cost, how = missing, "refine"
    broad: dict[str, Any] | None = None
    if explorer.table.broad and earlier is None and not (reads or plan.free):
        broad, cost, how = _broadened(explorer, plan, cost, how, analyst)
    without = explorer.planner.without_policies(explorer.table, plan.layout.question)
    return {
        "mechanism": plan.mechanism.name,
        "currency": explorer.ledger.currency.name,
        "cost": float(cost),
        "free": plan.free,
        "answered_before": stored,
        "remaining": float(remaining),
        "remaining_after": float(remaining - cost) if cost <= remaining else None,
        "affordable": cost <= remaining,
        "why": _why(plan, how, broad),
        "how": how,
        "known": None if reading is None else _told(reading),
        "price_alone": float(plan.cost),
        "price_missing": None if missing is None else float(missing),
        "not_finer": None if finer else refusal(explorer),
        "broad": broad,
        "accuracy": None if plan.free else accuracy_words(plan.layout),
        "without_policy": None if without is None else float(without),
        "gain": gain_words(plan, without),
        "candidates": plan.candidates,
        "axes": _in_order(plan.layout.described, asked.axes),
        "queries": 1 if lists else _numbers_of(plan),
        "policy": plan.layout.policy_words,
    }


def _broadened(
    explorer: Any, plan: Plan, cost: Fraction, how: str, analyst: str | None
) -> tuple[dict[str, Any] | None, Fraction, str]:
    """Return what is said of a broader question, and cost and how with it."""
    form = plan.layout.question
    broadening = explorer.broadening
    bought = broadening.plan(form, cost, analyst)
    broader = broadening.cheapest(form) if bought is None else bought.broader
    if broader is None:
        return None, cost, how
    if bought is not None:
        cost, how = bought.cost, "broad"
    offer = broadening.offer(broader, form.cost, analyst, bought=bought is not None)
    return offer, cost, how


def _told(reading: KnownAnswer) -> dict[str, Any]:
    """Return what is known already, as plain data."""
    return {
        "alpha": reading.alpha,
        "as_of": reading.source.time.isoformat(),
        "sources": [reading.source.request],
        "holds": reading.holds,
    }


def _in_order(axes: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Return the axes of a plan in the order in which they were asked for."""
    if len(axes) < 2:
        return axes
    return sorted(axes, key=lambda axis: names.index(axis["attribute"]))


def _numbers_of(plan: Plan) -> int:
    """Return how many numbers an answer has; two queries stand behind a mean."""
    return plan.workload.queries // (2 if plan.work.amounts else 1)


def _why(plan: Plan, how: str, broad: dict[str, Any] | None) -> str:
    led = getattr(plan.layout.question.cost, "chosen", True)
    rest = "even if they led" if led else "as by your word they did not lead"
    if how == "read":
        return (
            "earlier answers tell these numbers within this error already, "
            f"{rest} to the question"
        )
    if how == "refine":
        return (
            "the noise of an earlier answer is lowered for the rest of the price until "
            f"it tells these numbers, {rest} to the question"
        )
    if how == "broad" and broad is not None:
        alone = f"{plan.mechanism.budget.currency} {float(plan.cost):.4g}"
        return (
            f"{broad['what']} are bought, and these numbers are read from them; alone "
            f"they cost {alone}. Later questions about the same bins are then read, or "
            "made finer"
        )
    if how == "stored":
        return "this very question was answered before; the answer is kept"
    if plan.free:
        return (
            "no edge of the policy changes these numbers, so they are public: "
            "exact, and free"
        )
    if isinstance(plan.layout.question, FrequentQuestion):
        return threshold_words(plan.mechanism)
    name = plan.mechanism.name
    if not isinstance(plan.layout.question.cost, Accuracy):
        return f"{name} spends the budget that was stated"
    chosen = plan.candidates[0]["name"]
    named = name if chosen == name else f"{chosen}, a strategy of {name},"
    fit = sum(not candidate.get("reason") for candidate in plan.candidates)
    return (
        f"{named} needs the least {plan.mechanism.budget.currency} of {fit} "
        "mechanisms and strategies that promise this accuracy"
    )

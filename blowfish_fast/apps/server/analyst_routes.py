"""What analysts (and the curator) may call: public facts, prices, answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query
from pydantic import Field

from blowfish_fast.apps.explorer.attributes import (
    EXTRAS,
    AttributeSpec,
    Model,
    Name,
    PolicySpec,
)
from blowfish_fast.apps.explorer.exploration import Explorer
from blowfish_fast.apps.explorer.questions import Question
from blowfish_fast.errors import BlowfishError

from .access import Person, TheGate, Work
from .keys import Caller
from .policy_pictures import policy_picture

router = APIRouter(prefix="/api", tags=["analyst"])


class Asking(Model):
    """A question, and the name under which it may be asked again."""

    question: Question
    request: Annotated[str, Field(min_length=1, max_length=100)] | None = None


def payer(who: Caller) -> str | None:
    """Return whose allotment pays: the curator spends from the budget itself."""
    return who.name if who.role == "analyst" else None


CLONE_NOTES = ("clone_of", "spent_before", "currency_before")
"""What a ledger says of the table that its own was cloned from."""


def describe_table(explorer: Explorer, who: Caller) -> dict[str, Any]:
    """Return what is public about a table, for JSON."""
    table = explorer.table
    ledger = explorer.ledger
    total = ledger.budget.amount
    share = ledger.allotments().get(who.name) if who.role == "analyst" else None
    granted = total if who.role == "curator" else share.granted if share else 0
    about = ledger.about
    return {
        "name": table.name,
        "description": table.description,
        "attributes": [describe_attribute(one) for one in table.attributes],
        "policies": {
            name: one.model_dump(mode="json", exclude_none=True)
            for name, one in table.policies.items()
        },
        "promise": table.policy().describe(),
        "currency": ledger.currency.name,
        "budget": float(total),
        ledger.currency.name: float(total),
        "granted": float(min(granted, total)),
        "spent": float(ledger.spent),
        "remaining": float(explorer.remaining(payer(who))),
        "frozen": ledger.frozen,
        "closed": explorer.closed,
        "presence": table.presence,
        "person": table.person,
        "at_most": table.at_most,
        "population": table.population,
        "snapshot": table.snapshot,
        "versions": table.versions(),
        "raises": [{**one, "amount": float(one["amount"])} for one in ledger.raises()],
        "shares_with": sorted({*about.get("tables", {})} - {table.name}),
        **{name: about[name] for name in CLONE_NOTES if name in about},
    }


def describe_attribute(one: AttributeSpec) -> dict[str, Any]:
    """Return what is public about an attribute, and what it says of missing values."""
    (axis,) = one.domain().attributes
    stated = one.model_dump(mode="json", exclude_none=True)
    told = EXTRAS[one.extras_joined].promise if axis.extras else None
    return {
        **stated,
        "kind": one.kind,
        "size": axis.size,
        "regular": axis.regular,
        "nullable": bool(axis.extras),
        "missing_words": told,
    }


@router.get("/tables")
def tables(who: Person, work: Work) -> list[dict[str, Any]]:
    """List the tables, their public attributes, policies and budgets."""
    return [describe_table(work.explorer(name), who) for name in work.tables]


@router.post("/explain")
def explain(asking: Asking, who: Person, work: Work) -> dict[str, Any]:
    """Say what a question would cost, and which mechanisms could answer it. Free."""
    explorer = work.explorer(asking.question.table)
    return explorer.explain(asking.question, payer(who))


class Buying(Model):
    """A question whose cost is a budget, and the probability of a larger error."""

    question: Question
    beta: Annotated[float, Field(gt=0, lt=1)] = 0.05
    scope: Literal["simultaneous", "per_query"] = "simultaneous"


@router.post("/accuracy")
def accuracy(buying: Buying, who: Person, work: Work) -> dict[str, Any]:
    """Say which largest error a budget buys. Free; no data is read."""
    explorer = work.explorer(buying.question.table)
    return explorer.accuracy(buying.question, beta=buying.beta, scope=buying.scope)


@router.post("/ask")
def ask(asking: Asking, who: Person, work: Work, gate: TheGate) -> dict[str, Any]:
    """Answer a question; charged once, replayed for free ever after."""
    explorer = work.explorer(asking.question.table)
    # Names that people choose are their own; questions without one are shared.
    own = None if asking.request is None else f"{who.name}/{asking.request}"
    noted = {"who": who.name, "what": "ask", "table": asking.question.table}
    try:
        answer = explorer.ask(asking.question, analyst=payer(who), request=own)
    except BlowfishError as problem:
        gate.metrics.add("blowfish_questions_total", outcome="refused")
        gate.audit.write(**noted, refused=type(problem).__name__)
        raise
    outcome = "replayed" if answer.replayed else "charged"
    gate.metrics.add("blowfish_questions_total", outcome=outcome)
    gate.audit.write(
        **noted,
        request=answer.request,
        cost=0.0 if answer.replayed else float(answer.budget),
        currency=answer.budget.currency,
    )
    return {**answer.to_dict(), "remaining": float(explorer.remaining(payer(who)))}


class Certifying(Model):
    """An answer to be certified, and what that may cost."""

    table: Name
    request: Annotated[str, Field(min_length=1, max_length=200)]
    epsilon: Annotated[float, Field(gt=0, le=1000)] | None = None
    rho: Annotated[float, Field(gt=0, le=1000)] | None = None
    fraction: Annotated[float, Field(gt=0, le=1)] = 0.95
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95


@router.post("/certify")
def certify(
    asked: Certifying, who: Person, work: Work, gate: TheGate
) -> dict[str, Any]:
    """Buy a certificate of how far one's answer is off the truth."""
    explorer = work.explorer(asked.table)
    _own_entry(explorer, asked.request, who)
    stated = {"epsilon": asked.epsilon, "rho": asked.rho}
    terms: Any = {name: repr(one) for name, one in stated.items() if one is not None}
    found = explorer.certify(
        asked.request,
        analyst=payer(who),
        fraction=asked.fraction,
        confidence=asked.confidence,
        **terms,
    )
    gate.audit.write(
        who=who.name, what="certify", table=asked.table, request=asked.request, **stated
    )
    return {
        "kind": found.kind,
        "words": str(found),
        "remaining": float(explorer.remaining(payer(who))),
    }


def _own_entry(explorer: Explorer, request: str, who: Caller) -> None:
    """Refuse what is not there or another analyst's, in the same words."""
    entry = explorer.ledger.entry(request)
    if entry is None or payer(who) not in (None, entry.analyst):
        raise HTTPException(404, "there is no answer under this name")


@router.get("/history")
def history(
    who: Person,
    work: Work,
    table: Annotated[Name, Query()],
    last: Annotated[int, Query(ge=1, le=10_000)] = 200,
) -> list[dict[str, Any]]:
    """List what was asked last: one's own questions, or all for the curator."""
    explorer = work.explorer(table)
    return [
        {
            "number": one.number,
            "request": one.request,
            "time": one.time.isoformat(),
            "mechanism": one.mechanism,
            "cost": float(one.budget),
            "currency": one.budget.currency,
            one.budget.currency: float(one.budget),
            "state": one.state,
            "analyst": one.analyst,
            "question": (one.note or {}).get("question"),
        }
        for one in explorer.history(payer(who))[-last:]
    ]


@router.get("/answer")
def answer(
    who: Person,
    work: Work,
    table: Annotated[Name, Query()],
    request: Annotated[str, Query(min_length=1, max_length=200)],
) -> dict[str, Any]:
    """Return an answer of the history again. Free."""
    explorer = work.explorer(table)
    _own_entry(explorer, request, who)
    found = explorer.answered(request)
    if found is None:
        raise HTTPException(404, "there is no answer under this name")
    return found.to_dict()


@router.post("/policy-graph")
def policy_graph(
    who: Person,
    work: Work,
    table: Annotated[Name, Query()],
    attribute: Annotated[Name, Query()],
    policy: PolicySpec | None = None,
) -> dict[str, Any]:
    """Return an attribute's policy to be drawn: small graphs whole, others in words."""
    spec = work.explorer(table).table
    return policy_picture(spec, attribute, policy)

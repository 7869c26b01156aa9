"""What analysts (and the curator) may call: public facts, prices, answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Response
from pydantic import Field
from pydantic_core import to_json

from blowfish_fast.accounting.composition import Currency
from blowfish_fast.apps.explorer.catalog import (
    EXTRAS,
    AttributeSpec,
    Model,
    Name,
    PolicySpec,
    TableSpec,
)
from blowfish_fast.apps.explorer.exploration import Explorer
from blowfish_fast.apps.explorer.questions import Part, Question, StatedBudget
from blowfish_fast.errors import BlowfishError

from .access import Person, Visit
from .policy_pictures import policy_picture

router = APIRouter(prefix="/api", tags=["analyst"])
PUBLIC = {"name", "description", "presence", "person", "at_most", "population"}
PUBLIC |= {"snapshot"}
"""What is told of a table as it is described."""
CLONE_NOTES = ("clone_of", "spent_before", "currency_before")
"""What a ledger says of the table that its own was cloned from."""
Request = Annotated[str, Field(min_length=1, max_length=200)]


class Asking(Model):
    """A question, and the name under which it may be asked again."""

    question: Question
    request: Annotated[str, Field(min_length=1, max_length=100)] | None = None


def describe_table(explorer: Explorer, visit: Visit) -> dict[str, Any]:
    """Return what is public about a table, for JSON."""
    table, ledger = explorer.table, explorer.ledger
    total, about = ledger.budget.amount, ledger.about
    share = ledger.allotments().get(visit.who.name)
    granted = total if visit.payer is None else share.granted if share else 0
    return {
        **table.model_dump(include=PUBLIC),
        "attributes": [
            describe_attribute(one, table, ledger.currency) for one in table.attributes
        ],
        "policies": {
            name: one.model_dump(exclude_none=True)
            for name, one in table.policies.items()
        },
        "promise": table.promise(ledger.currency),
        "currency": ledger.currency.name,
        "budget": float(total),
        ledger.currency.name: float(total),
        "granted": float(min(granted, total)),
        "spent": float(ledger.spent),
        "remaining": float(explorer.remaining(visit.payer)),
        "frozen": ledger.frozen,
        "closed": explorer.closed,
        "versions": table.versions(),
        "raises": [{**one, "amount": float(one["amount"])} for one in ledger.raises()],
        "shares_with": sorted({*about.get("tables", {})} - {table.name}),
        **{name: about[name] for name in CLONE_NOTES if name in about},
    }


def describe_attribute(
    one: AttributeSpec, table: TableSpec, currency: Currency
) -> dict[str, Any]:
    """Return what is public about an attribute, and what it says of missing values."""
    (axis,) = one.domain().attributes
    # Until a policy of the attribute is stated, all its cells are joined.
    joined = one.extras_joined if one.name in table.policies else "all"
    told = EXTRAS[joined].promised(currency) if axis.extras else None
    return {
        **one.model_dump(mode="json", exclude_none=True),
        "kind": one.kind,
        "size": axis.size,
        "regular": axis.regular,
        "nullable": bool(axis.extras),
        "missing_words": told,
    }


@router.get("/tables")
def tables(visit: Person) -> list[dict[str, Any]]:
    """List the tables, their public attributes, policies and budgets."""
    return [describe_table(visit.explorer(name), visit) for name in visit.work.tables]


@router.post("/explain")
def explain(asking: Asking, visit: Person) -> dict[str, Any]:
    """Say what a question would cost, and which mechanisms could answer it. Free."""
    asked = asking.question
    return visit.explorer(asked.table).explain(asked, visit.payer)


class Buying(Model):
    """A question whose cost is a budget, and the probability of a larger error."""

    question: Question
    beta: Part = 0.05
    scope: Literal["simultaneous", "per_query"] = "simultaneous"


@router.post("/accuracy")
def accuracy(buying: Buying, visit: Person) -> dict[str, Any]:
    """Say which largest error a budget buys. Free; no data is read."""
    asked = buying.question
    explorer = visit.explorer(asked.table)
    return explorer.accuracy(asked, beta=buying.beta, scope=buying.scope)


@router.post("/ask", response_model=dict[str, Any])
def ask(asking: Asking, visit: Person) -> Response:
    """Answer a question; charged once, replayed for free ever after."""
    explorer = visit.explorer(asking.question.table)
    # Names that people choose are their own; questions without one are shared.
    own = None if asking.request is None else f"{visit.who.name}/{asking.request}"
    noted = {"who": visit.who.name, "what": "ask", "table": asking.question.table}
    counted, audit = visit.gate.metrics, visit.gate.audit
    try:
        answer = explorer.ask(asking.question, analyst=visit.payer, request=own)
    except BlowfishError as problem:
        counted.add("blowfish_questions_total", outcome="refused")
        audit.write(**noted, refused=type(problem).__name__)
        raise
    outcome = "replayed" if answer.replayed else "charged"
    counted.add("blowfish_questions_total", outcome=outcome)
    audit.write(
        **noted,
        request=answer.request,
        cost=0.0 if answer.replayed else float(answer.budget),
        currency=answer.budget.currency,
    )
    left = float(explorer.remaining(visit.payer))
    return _as_json({**answer.to_dict(), "remaining": left})


def _as_json(plain: dict[str, Any]) -> Response:
    """Write many numbers at once; the framework would walk over them one by one."""
    content = to_json(plain, inf_nan_mode="null")
    return Response(content, media_type="application/json")


class Certifying(StatedBudget):
    """An answer to be certified, and what that may cost."""

    table: Name
    request: Request
    fraction: Annotated[float, Field(gt=0, le=1)] = 0.95
    confidence: Part = 0.95


@router.post("/certify")
def certify(asked: Certifying, visit: Person) -> dict[str, Any]:
    """Buy a certificate of how far one's answer is off the truth."""
    explorer = _with_own_answer(asked.table, asked.request, visit)
    found = explorer.certify(
        asked.request,
        analyst=visit.payer,
        fraction=asked.fraction,
        confidence=asked.confidence,
        **asked.terms,
    )
    noted = asked.model_dump(include={"table", "request", "epsilon", "rho", "delta"})
    visit.gate.audit.write(who=visit.who.name, what="certify", **noted)
    return {
        "kind": found.kind,
        "words": str(found),
        "remaining": float(explorer.remaining(visit.payer)),
    }


def _with_own_answer(table: str, request: str, visit: Visit) -> Explorer:
    """Refuse what is not there or another analyst's, in the same words."""
    explorer = visit.explorer(table)
    entry = explorer.ledger.entry(request)
    if entry is None or visit.payer not in (None, entry.analyst):
        raise HTTPException(404, "there is no answer under this name")
    return explorer


@router.get("/history")
def history(
    visit: Person,
    table: Annotated[Name, Query()],
    last: Annotated[int, Query(ge=1, le=10_000)] = 200,
) -> list[dict[str, Any]]:
    """List what was asked last: one's own questions, or all for the curator."""
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
        for one in visit.explorer(table).history(visit.payer)[-last:]
    ]


@router.get("/answer", response_model=dict[str, Any])
def answer(
    visit: Person,
    table: Annotated[Name, Query()],
    request: Annotated[Request, Query()],
) -> Response:
    """Return an answer of the history again. Free."""
    found = _with_own_answer(table, request, visit).answered(request)
    if found is None:
        raise HTTPException(404, "there is no answer under this name")
    return _as_json(found.to_dict())


@router.post("/policy-graph")
def policy_graph(
    visit: Person,
    table: Annotated[Name, Query()],
    attribute: Annotated[Name, Query()],
    policy: PolicySpec | None = None,
) -> dict[str, Any]:
    """Return an attribute's policy to be drawn: small graphs whole, others in words."""
    return policy_picture(visit.explorer(table).table, attribute, policy)

"""What analysts (and the curator) may call: public facts, prices, answers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query
from pydantic import Field

from blowfish_fast.apps.explorer.attributes import Model, Name, PolicySpec
from blowfish_fast.apps.explorer.exploration import Explorer
from blowfish_fast.apps.explorer.questions import Question

from .access import Anyone, Work
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


def describe_table(explorer: Explorer, who: Caller) -> dict[str, Any]:
    """Return what is public about a table, for JSON."""
    table = explorer.table
    ledger = explorer.ledger
    total = ledger.epsilon
    share = ledger.allotments().get(who.name) if who.role == "analyst" else None
    granted = total if who.role == "curator" else share.granted if share else 0
    return {
        "name": table.name,
        "description": table.description,
        "attributes": [
            {
                **one.model_dump(mode="json", exclude_none=True),
                "kind": one.kind,
                "size": one.domain().size,
                "regular": one.domain().attributes[0].regular,
            }
            for one in table.attributes
        ],
        "policies": {
            name: one.model_dump(mode="json", exclude_none=True)
            for name, one in table.policies.items()
        },
        "promise": table.policy().describe(),
        "epsilon": float(total),
        "granted": float(min(granted, total)),
        "spent": float(ledger.spent),
        "remaining": float(explorer.remaining(payer(who))),
        "frozen": ledger.frozen,
    }


@router.get("/tables")
def tables(who: Anyone, work: Work) -> list[dict[str, Any]]:
    """List the tables, their public attributes, policies and budgets."""
    return [describe_table(work.explorer(name), who) for name in work.tables]


@router.post("/explain")
def explain(asking: Asking, who: Anyone, work: Work) -> dict[str, Any]:
    """Say what a question would cost, and which mechanisms could answer it. Free."""
    explorer = work.explorer(asking.question.table)
    return explorer.explain(asking.question, payer(who))


@router.post("/ask")
def ask(asking: Asking, who: Anyone, work: Work) -> dict[str, Any]:
    """Answer a question; charged once, replayed for free ever after."""
    explorer = work.explorer(asking.question.table)
    # Names that people choose are their own; questions without one are shared.
    own = None if asking.request is None else f"{who.name}/{asking.request}"
    answer = explorer.ask(asking.question, analyst=payer(who), request=own)
    return {**answer.to_dict(), "remaining": float(explorer.remaining(payer(who)))}


@router.get("/history")
def history(
    who: Anyone,
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
            "epsilon": float(one.epsilon),
            "state": one.state,
            "analyst": one.analyst,
            "question": (one.note or {}).get("question"),
        }
        for one in explorer.history(payer(who))[-last:]
    ]


@router.get("/answer")
def answer(
    who: Anyone,
    work: Work,
    table: Annotated[Name, Query()],
    request: Annotated[str, Query(min_length=1, max_length=200)],
) -> dict[str, Any]:
    """Return an answer of the history again. Free."""
    explorer = work.explorer(table)
    entry = explorer.ledger.entry(request)
    own = entry is not None and payer(who) in (None, entry.analyst)
    found = explorer.answered(request) if own else None
    if found is None:
        raise HTTPException(404, "there is no answer under this name")
    return found.to_dict()


@router.post("/policy-graph")
def policy_graph(
    who: Anyone,
    work: Work,
    table: Annotated[Name, Query()],
    attribute: Annotated[Name, Query()],
    policy: PolicySpec | None = None,
) -> dict[str, Any]:
    """Return an attribute's policy to be drawn: small graphs whole, others in words."""
    spec = work.explorer(table).table
    return policy_picture(spec, attribute, policy)

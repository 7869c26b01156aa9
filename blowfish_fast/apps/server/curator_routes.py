"""What the curator alone may call: true answers, policies, budgets, analysts, data."""

from __future__ import annotations

import itertools
import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, HTTPException, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import Field

from blowfish_fast.apps.explorer.attributes import Model, Name, PolicySpec
from blowfish_fast.apps.explorer.catalog import TableSpec
from blowfish_fast.apps.explorer.questions import Question

from .access import Curator, TheGate, Work, curator
from .analyst_routes import describe_table
from .workspace import MOST_UPLOADED

router = APIRouter(
    prefix="/api/curator", tags=["curator"], dependencies=[Depends(curator)]
)

Epsilon = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]


class Previewing(Model):
    """A question to be previewed under some policies; nothing is charged or kept."""

    question: Question
    epsilon: Epsilon
    policies: dict[str, PolicySpec] | None = None


class TradingOff(Model):
    """A question with an accuracy, and thresholds to compare."""

    question: Question
    thetas: list[Annotated[int, Field(ge=1, le=2**20)]] | None = Field(
        default=None, min_length=1, max_length=64
    )


class NewBudget(Model):
    """A budget or an allotment."""

    epsilon: Epsilon


class NewTable(Model):
    """A table to be described, and its budget."""

    table: TableSpec
    epsilon: Epsilon


@router.post("/preview")
def preview(asked: Previewing, work: Work) -> dict[str, Any]:
    """Show the true answer beside a private one. Never charged, kept or published."""
    explorer = work.explorer(asked.question.table)
    return explorer.preview(
        asked.question, epsilon=asked.epsilon, policies=asked.policies
    )


@router.post("/trade-off", response_class=StreamingResponse)
def trade_off(asked: TradingOff, work: Work) -> StreamingResponse:
    """Say what an accuracy costs at each threshold, a line of JSON for each.

    No data is read. Whole records come first, as theta null, then the largest.
    """
    explorer = work.explorer(asked.question.table)
    rows = explorer.trade_off(asked.question, asked.thetas)
    # What does not fit is refused with a status, before a line is sent.
    first = next(rows)
    lines = (json.dumps(one) + "\n" for one in itertools.chain([first], rows))
    return StreamingResponse(lines, media_type="application/x-ndjson")


@router.put("/tables/{table}/policies")
def set_policies(
    table: str, policies: dict[str, PolicySpec], who: Curator, work: Work
) -> dict[str, Any]:
    """State policies; none resets to the default. Only before the first charge."""
    explorer = work.explorer(table)
    for name in policies:
        explorer.table.attribute(name)
    explorer.set_policies(policies)
    return describe_table(explorer, who)


@router.put("/tables/{table}/budget")
def set_budget(
    table: str, budget: NewBudget, who: Curator, work: Work
) -> dict[str, Any]:
    """State the budget. Only before the first charge."""
    explorer = work.explorer(table)
    explorer.set_budget(budget.epsilon)
    return describe_table(explorer, who)


@router.get("/analysts")
def analysts(work: Work) -> list[dict[str, Any]]:
    """List the analysts and their allotments, table by table."""
    shares = {name: work.explorer(name).ledger.allotments() for name in work.tables}
    return [
        {
            "name": one,
            "allotments": {
                table: {
                    "epsilon": float(by[one].granted),
                    "spent": float(by[one].spent),
                }
                for table, by in shares.items()
                if one in by
            },
        }
        for one in work.keys.analysts()
    ]


@router.post("/analysts/{name}", status_code=201)
def add_analyst(name: str, work: Work, gate: TheGate) -> dict[str, str]:
    """Make a secret for an analyst; it is shown this once, and an older one ends."""
    secret = work.keys.make("analyst", name)
    gate.sessions.close_all_of(name)
    return {"name": name, "secret": secret}


@router.delete("/analysts/{name}", status_code=204)
def revoke_analyst(name: str, work: Work, gate: TheGate) -> None:
    """Revoke an analyst's secret and end the sessions."""
    work.keys.revoke(name)
    gate.sessions.close_all_of(name)


@router.put("/tables/{table}/allotments/{name}")
def allot(table: str, name: str, budget: NewBudget, work: Work) -> dict[str, float]:
    """Set what an analyst may spend of a table's budget."""
    if name not in work.keys.analysts():
        raise HTTPException(404, "there is no such analyst")
    ledger = work.explorer(table).ledger
    ledger.allot(name, budget.epsilon)
    share = ledger.allotments()[name]
    return {"epsilon": float(share.granted), "spent": float(share.spent)}


@router.get("/data-sets")
def data_sets(work: Work) -> dict[str, dict[str, str]]:
    """List tables that may be described, with columns and types."""
    return work.data_sets()


@router.post("/data-sets", status_code=201)
def add_data_set(
    work: Work,
    name: Annotated[Name, Form()],
    file: Annotated[UploadFile, File()],
) -> dict[str, Any]:
    """Add a data set as a CSV file with a header line."""
    content = file.file.read(MOST_UPLOADED + 1)
    return {"name": name, "columns": work.add_csv(name, content)}


@router.post("/tables", status_code=201)
def add_table(new: NewTable, who: Curator, work: Work) -> dict[str, Any]:
    """Describe a table and give it a budget."""
    return describe_table(work.add_table(new.table, epsilon=new.epsilon), who)


@router.post("/tables/{table}/verify")
def verify(table: str, work: Work) -> dict[str, str]:
    """Check the chain of the table's ledger; return its head."""
    return {"head": work.explorer(table).ledger.verify()}

"""What the curator alone may call: true answers, policies, budgets, analysts, data."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import Annotated, Any, Literal

from fastapi import APIRouter, File, Form, HTTPException, Path, Request, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.series.ledger_rows import stored_series
from blowfish_fast.accounting.statements import Share
from blowfish_fast.apps.description.frozen_model import Model, Name
from blowfish_fast.apps.explorer.all_tables import (
    MOST_WAYS,
    is_large_prediction,
    predict_tables,
)
from blowfish_fast.apps.explorer.catalog import PolicySpec, TableSpec
from blowfish_fast.apps.explorer.questions import Amount, Part, Question, StatedBudget
from blowfish_fast.errors import LedgerError
from blowfish_fast.mechanisms.chosen_tables import Chooser
from blowfish_fast.workloads import Total

from .access import CURATOR_ONLY, Curator
from .analyst_routes import describe_table
from .keys import ROLES, Role
from .policy_pictures import question_picture
from .price_workers import PriceTask
from .workspace import MOST_UPLOADED

router = APIRouter(prefix="/api/curator", tags=["curator"], dependencies=[CURATOR_ONLY])

TablePath = Annotated[str, Path(description="The name of the table.")]
PersonName = Annotated[str, Path(description="The person's name.")]
People = Annotated[
    Literal["analysts", "curators", "monitors"],
    Path(description="The people of which role."),
]
State = Annotated[
    Literal["close", "open"],
    Path(description="Whether new questions are refused from now on, or answered."),
]
ROLE_OF: dict[str, Role] = {f"{role}s": role for role in ROLES}
"""The role by the word for several people in it, which paths use."""


class Drawing(Model):
    """A question under some policies, or under those in force."""

    question: Question
    """What is asked."""
    policies: dict[str, PolicySpec] | None = None
    """Policies by attribute, instead of those in force."""


class Previewing(Drawing):
    """A question to be previewed, and policies to be held beside them."""

    epsilon: Amount
    """What each private answer spends, in the currency of the table."""
    compared: list[dict[str, PolicySpec]] = Field(default_factory=list, max_length=8)
    """Further policies, whose answers are drawn from the same counts."""


class TradingOff(Model):
    """A question with an accuracy, and thresholds to compare."""

    question: Question
    """What is asked; its cost states an accuracy."""
    thetas: list[Annotated[int, Field(ge=1, le=2**20)]] | None = Field(
        default=None, min_length=1, max_length=64
    )
    """Thresholds in cells; evenly spaced on a logarithmic scale if left out."""


class AllTables(StatedBudget):
    """All tables of up to so many columns, for one budget."""

    table: Name
    """The name of the table."""
    columns: list[Name] | None = None
    """The attributes; all of them if left out."""
    ways: Annotated[int, Field(ge=1, le=MOST_WAYS)] = 2
    """How many attributes the largest table has."""
    records: Annotated[int, Field(ge=0, le=2**40)] | None = None
    """The number of records, public or guessed, for mean counts."""
    choose: Chooser = "plan"
    """Whether public sizes or the data say what is measured, or the better of both."""


class RaisedBudget(StatedBudget):
    """A larger budget, and why."""

    why: Annotated[str, Field(min_length=1, max_length=500)]
    """The reason, which the ledger keeps."""


class NewTable(StatedBudget):
    """A table to be described, and its budget."""

    table: TableSpec
    """The description of the table."""


class Publishing(Model):
    """An answer that everybody may read new questions from."""

    request: Annotated[str, Field(min_length=1, max_length=300)]
    """The name of the answer, as the answer states it."""


class Clone(StatedBudget):
    """Another name and other policies for the same records, and its budget."""

    name: Name
    """The name of the second table."""
    policies: dict[str, PolicySpec] = Field(default_factory=dict)
    """Its policies by attribute; none is the default."""


@router.post("/preview")
async def preview(
    asked: Previewing, visit: Curator, connection: Request
) -> dict[str, Any]:
    """Show the true answer beside a private one. Never charged, kept or published."""
    explorer = visit.explorer(asked.question.table)
    question, tables = await run_in_threadpool(
        explorer.to_preview,
        asked.question,
        asked.epsilon,
        (asked.policies, *asked.compared),
    )
    for table in tables:
        # Plans are public; counts stay in this process.
        await visit.beside("plan", table, question, connection)
    return await run_in_threadpool(
        explorer.preview,
        asked.question,
        epsilon=asked.epsilon,
        policies=asked.policies,
        compared=asked.compared,
    )


@router.post("/trade-off", response_class=StreamingResponse)
async def trade_off(
    asked: TradingOff, visit: Curator, connection: Request
) -> StreamingResponse:
    """Say what an accuracy costs at each threshold, a line of JSON for each.

    No data is read. Whole records come first, as theta null, then the largest.
    """
    explorer = visit.explorer(asked.question.table)
    question, thetas = asked.question, asked.thetas
    worked_out = await visit.beside(
        "trade_off", explorer.table, question, connection, thetas=thetas
    )
    rows = iter(worked_out or explorer.trade_off(question, thetas))
    # What does not fit is refused with a status, before a line is sent.
    first = await run_in_threadpool(next, rows)
    lines = (json.dumps(row) + "\n" for row in itertools.chain([first], rows))
    return StreamingResponse(lines, media_type="application/x-ndjson")


@router.post("/all-tables")
async def all_tables(
    asked: AllTables, visit: Curator, connection: Request
) -> dict[str, Any]:
    """Predict how accurate all tables of some columns are; no data is read."""
    explorer = visit.explorer(asked.table)
    table = explorer.table
    options: dict[str, Any] = {
        "budget": asked.terms,
        **asked.model_dump(include={"columns", "ways", "records", "choose"}),
    }
    if is_large_prediction(table, asked.columns, asked.ways):
        task = PriceTask.of("all_tables", explorer.planner, table, None, **options)
        return dict(await visit.worked_out(task, connection))
    return await run_in_threadpool(predict_tables, table, **options)


@router.post("/projected-graph")
def projected_graph(asked: Drawing, visit: Curator) -> dict[str, Any]:
    """Return the policy as the bins of a question see it, to be drawn."""
    explorer = visit.explorer(asked.question.table)
    shape = explorer.shape(asked.question, asked.policies)
    return question_picture(shape.layout, shape.policy)


@router.put("/tables/{table}/policies")
def set_policies(
    table: TablePath, policies: dict[str, PolicySpec], visit: Curator
) -> dict[str, Any]:
    """State policies; none resets to the default. Only before the first charge."""
    explorer = visit.explorer(table)
    for name in policies:
        explorer.table.attribute(name)
    explorer.set_policies(policies)
    return describe_table(explorer, visit)


@router.put("/tables/{table}/budget")
def set_budget(
    table: TablePath, budget: StatedBudget, visit: Curator
) -> dict[str, Any]:
    """State the budget. Only before the first charge."""
    explorer = visit.explorer(table)
    explorer.set_budget(amount_in(explorer.ledger, budget))
    return describe_table(explorer, visit)


@router.post("/tables/{table}/raise")
def raise_budget(
    table: TablePath, budget: RaisedBudget, visit: Curator
) -> dict[str, Any]:
    """Raise the budget at any time; the ledger keeps when, why and by whom."""
    explorer = visit.explorer(table)
    amount = amount_in(explorer.ledger, budget)
    explorer.ledger.raise_budget(amount, why=budget.why, by=visit.who.name)
    return describe_table(explorer, visit)


@router.post("/tables/{table}/clone", status_code=201)
def clone_table(table: TablePath, clone: Clone, visit: Curator) -> dict[str, Any]:
    """Describe the same records under other policies; the first table is closed."""
    work = visit.work
    second = work.clone_table(table, clone.name, clone.policies, **clone.terms)
    return describe_table(second, visit)


@router.delete("/tables/{table}", status_code=204)
def delete_table(table: TablePath, visit: Curator) -> None:
    """Delete a table; its ledger is kept aside, because what was spent stays spent."""
    visit.work.delete_table(table)


@router.get("/analysts")
def analysts(visit: Curator) -> list[dict[str, Any]]:
    """List the analysts and their allotments, table by table."""
    ledgers = {name: visit.explorer(name).ledger for name in visit.work.tables}
    shares = {name: ledger.allotments() for name, ledger in ledgers.items()}
    return [
        {
            "name": analyst,
            "allotments": {
                table: plain_share(ledgers[table], by[analyst])
                for table, by in shares.items()
                if analyst in by
            },
        }
        for analyst in visit.work.keys.names("analyst")
    ]


@router.get("/people")
def people(visit: Curator) -> dict[str, list[str]]:
    """List curators, analysts and monitors by name."""
    return {role: visit.work.keys.names(role) for role in ROLES}


@router.put("/tables/{table}/allotments/{name:path}")
def allot(
    table: TablePath, name: PersonName, budget: StatedBudget, visit: Curator
) -> dict[str, float]:
    """Set what an analyst may spend of a table's budget."""
    if name not in visit.work.keys.names("analyst"):
        raise HTTPException(404, "there is no such analyst")
    ledger = visit.explorer(table).ledger
    ledger.allot(name, amount_in(ledger, budget))
    return plain_share(ledger, ledger.allotments()[name])


def amount_in(ledger: Ledger, stated: StatedBudget) -> Fraction:
    """Return an amount in a ledger's own currency; refuse the other one.

    Parameters
    ----------
    ledger : Ledger
        The ledger of a table.
    stated : StatedBudget
        A budget in either currency.

    Returns
    -------
    Fraction
        The exact amount.

    Raises
    ------
    LedgerError
        If the budget is in the other currency.
    """
    budget = stated.budget
    if budget.power != ledger.currency.power:
        raise LedgerError(
            f"this table counts {ledger.currency.name}; received {budget.words()}"
        )
    return budget.amount


def plain_share(ledger: Ledger, share: Share) -> dict[str, float]:
    """Return an allotment for JSON, in the ledger's currency.

    Parameters
    ----------
    ledger : Ledger
        The ledger of a table.
    share : Share
        An analyst's allotment in it.

    Returns
    -------
    dict
        What was granted, also under the name of the currency, and what is spent.
    """
    granted, spent = float(share.granted), float(share.spent)
    return {ledger.currency.name: granted, "granted": granted, "spent": spent}


@router.get("/data-sets")
def data_sets(visit: Curator) -> dict[str, dict[str, str]]:
    """List tables that may be described, with columns and types."""
    return visit.work.data_sets()


@router.post("/data-sets", status_code=201)
def add_data_set(
    visit: Curator,
    name: Annotated[Name, Form(description="What the data set is called.")],
    file: Annotated[UploadFile, File(description="CSV with a header line.")],
) -> dict[str, Any]:
    """Add a data set as a CSV file with a header line."""
    content = file.file.read(MOST_UPLOADED + 1)
    return {"name": name, "columns": visit.work.add_csv(name, content)}


@router.post("/tables", status_code=201)
def add_table(new: NewTable, visit: Curator) -> dict[str, Any]:
    """Describe a table and give it a budget."""
    return describe_table(visit.work.add_table(new.table, **new.terms), visit)


@router.post("/tables/{table}/verify")
def verify(table: TablePath, visit: Curator) -> dict[str, str]:
    """Check the chain of the table's ledger; return its head."""
    return {"head": visit.explorer(table).ledger.verify()}


@router.post("/tables/{table}/publish")
def publish(table: TablePath, named: Publishing, visit: Curator) -> dict[str, Any]:
    """Let everybody read new questions from an answer, where the table says so."""
    visit.explorer(table).publish(named.request)
    noted = {"who": visit.who.name, "what": "publish", "table": table}
    visit.gate.audit.write(**noted, request=named.request)
    return {"published": named.request}


class MeasuredLoss(StatedBudget):
    """What may be paid for saying how many records of persons are left out."""

    up_to: Annotated[int, Field(ge=2, le=10**6)]
    """The last record of each person that is looked at, above those that count."""
    confidence: Part = 0.95
    """The probability with which the interval holds the number."""


@router.get("/tables/{table}/lost-records")
def lost_records(table: TablePath, visit: Curator) -> dict[str, Any]:
    """Show how many true records each number of records of a person leaves out."""
    explorer = visit.explorer(table)
    return {**explorer.true_losses(), "measured": explorer.known_loss()}


@router.post("/tables/{table}/lost-records")
def measure_lost_records(
    table: TablePath, asked: MeasuredLoss, visit: Curator
) -> dict[str, Any]:
    """Measure it privately, for everybody; charged once."""
    explorer = visit.explorer(table)
    measured = explorer.measure_loss(
        asked.up_to, confidence=asked.confidence, **asked.terms
    )
    noted = {"who": visit.who.name, "what": "lost records", "table": table}
    visit.gate.audit.write(**noted, sentence=measured["sentence"])
    return measured


@router.get("/tables/{table}/series")
def series(table: TablePath, visit: Curator) -> list[dict[str, Any]]:
    """Return the running totals of each series in the table's ledger, with intervals.

    Only stored releases are read, so it is free.
    """
    listed = []
    for name, stored in stored_series(visit.explorer(table).ledger).items():
        domain = stored.rows[stored.latest].domain
        history = stored.history(Total(domain))
        listed.append(
            {
                "name": name,
                "column": stored.column,
                "every": stored.every,
                "spent": stored.promise.budget.in_short(),
                "epochs": list(history.epochs),
                "totals": history.answers[:, 0].tolist(),
                "low": history.bounds[:, 0, 0].tolist(),
                "high": history.bounds[:, 0, 1].tolist(),
                "holds": history.kind,
            }
        )
    return listed


# Last, because the words of other routes would be read as a state.
@router.post("/tables/{table}/{state}")
def close_or_open(table: TablePath, state: State, visit: Curator) -> dict[str, Any]:
    """Give stored answers only, from now on; or answer new questions again."""
    visit.work.close_table(table, closed=state == "close")
    return describe_table(visit.explorer(table), visit)


# After all others: a name may hold a slash, and then reads as any path does.
@router.post("/{people}/{name:path}", status_code=201)
def add_person(people: People, name: PersonName, visit: Curator) -> dict[str, str]:
    """Make a secret for somebody; it is shown this once, and an older one ends.

    Monitors read /metrics and nothing else.
    """
    secret = visit.work.keys.make(ROLE_OF[people], name)
    visit.gate.sessions.close_all_of(name)
    return {"name": name, "secret": secret}


@router.delete("/{people}/{name:path}", status_code=204)
def revoke_person(people: People, name: PersonName, visit: Curator) -> None:
    """Revoke somebody's secret and end the sessions; the last curator stays."""
    visit.work.keys.revoke(ROLE_OF[people], name)
    visit.gate.sessions.close_all_of(name)

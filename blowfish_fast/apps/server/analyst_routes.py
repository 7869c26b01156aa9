"""What analysts (and the curator) may call: public facts, prices, answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, HTTPException, Query, Response
from fastapi import Request as HttpRequest
from pydantic import Field, model_validator
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from blowfish_fast.accounting.composition import Currency
from blowfish_fast.apps.description.frozen_model import Model, Name
from blowfish_fast.apps.explorer.answers_given import Answer
from blowfish_fast.apps.explorer.batches import MOST_QUESTIONS, FailedAnswer
from blowfish_fast.apps.explorer.catalog import (
    EXTRAS,
    AttributeSpec,
    PolicySpec,
    TableSpec,
)
from blowfish_fast.apps.explorer.exploration import Explorer
from blowfish_fast.apps.explorer.questions import (
    Cost,
    Part,
    Question,
    StatedBudget,
    read_question,
    read_spending,
)
from blowfish_fast.apps.explorer.registered.registrations import MOST_REGISTERED
from blowfish_fast.apps.explorer.samples.population_answers import (
    population_answer,
    sample_words,
)
from blowfish_fast.apps.explorer.sql_questions import (
    MOST_CHARACTERS,
    question_from_sql,
)
from blowfish_fast.errors import BlowfishError, BudgetError, FailedDrawError

from .access import Person, Visit
from .policy_pictures import policy_picture

router = APIRouter(prefix="/api", tags=["analyst"])
PUBLIC = {
    "name",
    "description",
    "presence",
    "person",
    "at_most",
    "records",
    "population",
    "snapshot",
    "share",
}
"""The fields of a table's description that everybody is told as they are."""
CLONE_NOTES = ("clone_of", "spent_before", "currency_before")
"""What a ledger says of the table that its own was cloned from."""
Request = Annotated[str, Field(min_length=1, max_length=300)]
SavedName = Annotated[str, Field(min_length=1, max_length=100)]
TableQuery = Annotated[Name, Query(description="The name of the table.")]
LAST = "How many charges are listed at most, the latest ones."
BEFORE = "Only charges of smaller numbers: the page before one that begins with it."


class Asking(Model):
    """A question, and the name under which it may be asked again."""

    question: Question
    """What is asked, of a table, at which accuracy or cost."""
    request: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """A name of your own. The same question under a new name is charged anew."""
    newest: bool = False
    """Whether a question that was answered before is read again from what is stored by
    now, free, where that tells it more narrowly. Not for a name, nor among several.
    """


class Registering(Model):
    """Questions that are stated in advance."""

    questions: Annotated[
        list[Question], Field(min_length=1, max_length=MOST_REGISTERED)
    ]
    """Questions of one table; the cost of each is left aside."""

    @model_validator(mode="after")
    def _of_one_table(self) -> Self:
        _refuse_other_tables({question.table for question in self.questions})
        return self

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.questions[0].table


def _refuse_other_tables(tables: set[str]) -> None:
    if len(tables) > 1:
        raise ValueError(
            "questions that are registered together are about one table, whose ledger "
            f"notes them; received {sorted(tables)}"
        )


class AskingSeveral(Model):
    """Questions of one table that are charged together."""

    questions: Annotated[list[Asking], Field(min_length=1, max_length=MOST_QUESTIONS)]
    """What is asked: all are paid in one step, or none is."""

    @model_validator(mode="after")
    def _of_one_table(self) -> Self:
        tables = {asking.question.table for asking in self.questions}
        if len(tables) > 1:
            raise ValueError(
                "questions that are charged together are about one table, whose "
                f"ledger is charged in one step; received {sorted(tables)}"
            )
        if any(asking.newest for asking in self.questions):
            raise ValueError(
                "the newest answer is that of one question; ask for each by itself"
            )
        return self

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.questions[0].question.table


def describe_table(explorer: Explorer, visit: Visit) -> dict[str, Any]:
    """Return what is public about a table, for JSON.

    Parameters
    ----------
    explorer : Explorer
        The table.
    visit : Visit
        Who is told: what was granted and what remains are hers, or the curator's.

    Returns
    -------
    dict
        Attributes, policies, promise, budget and state of the table.
    """
    table, ledger = explorer.table, explorer.ledger
    total, about = ledger.budget.amount, ledger.about
    share = ledger.allotments().get(visit.who.name)
    granted = total if visit.payer is None else share.granted if share else 0
    return {
        **table.model_dump(include=PUBLIC),
        "attributes": [
            describe_attribute(attribute, table, ledger.currency)
            for attribute in table.attributes
        ],
        "policies": {
            name: policy.model_dump(exclude_none=True)
            for name, policy in table.policies.items()
        },
        "sample": None if table.sample is None else sample_words(table),
        "strata": None if table.sample is None else table.sample.column,
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
        "lost_records": explorer.known_loss(),
        "raises": [
            {**rise, "amount": float(rise["amount"])} for rise in ledger.raises()
        ],
        "shares_with": sorted({*about.get("tables", {})} - {table.name}),
        **{name: about[name] for name in CLONE_NOTES if name in about},
    }


def describe_attribute(
    attribute: AttributeSpec, table: TableSpec, currency: Currency
) -> dict[str, Any]:
    """Return what is public about an attribute, and what it says of missing values.

    Parameters
    ----------
    attribute : AttributeSpec
        The attribute.
    table : TableSpec
        Its table, whose policies say whether missing values are joined to others.
    currency : Currency
        Of the ledger; the promise about missing values is worded in it.

    Returns
    -------
    dict
        Its description, kind and size, and the promise about missing values.
    """
    (axis,) = attribute.domain().attributes
    # Until a policy of the attribute is stated, all its cells are joined.
    joined = attribute.extras_joined if attribute.name in table.policies else "all"
    told = EXTRAS[joined].promised(currency) if axis.extras else None
    return {
        **attribute.model_dump(mode="json", exclude_none=True, exclude={"districts"}),
        **({"districts": True} if attribute.districts else {}),
        "kind": attribute.kind,
        "size": axis.size,
        "regular": axis.regular,
        "nullable": bool(axis.extras),
        "missing_words": told,
    }


@router.get("/tables")
def tables(visit: Person) -> list[dict[str, Any]]:
    """List the tables, their public attributes, policies and budgets."""
    return [describe_table(visit.explorer(name), visit) for name in visit.work.tables]


@router.get("/districts", response_model=dict[str, Any])
def districts(
    visit: Person,
    table: TableQuery,
    attribute: Annotated[Name, Query(description="The name of the attribute.")],
) -> Response:
    """Return the public borders of an attribute's levels, to be drawn. Free."""
    shapes = visit.explorer(table).table.attribute(attribute).districts
    if shapes is None:
        raise HTTPException(404, "this attribute has no borders to be drawn")
    drawn = [{"id": id, "polygons": parts} for id, parts in shapes.named.items()]
    return _as_json({"degrees": shapes.degrees, "districts": drawn})


@router.post("/explain")
async def explain(
    asking: Asking, visit: Person, connection: HttpRequest
) -> dict[str, Any]:
    """Say what a question would cost, and which mechanisms could answer it. Free."""
    asked = asking.question
    explorer = visit.explorer(asked.table)
    await visit.beside("price", explorer.table, asked, connection)
    await visit.broader(explorer.table, asked, connection)
    return await run_in_threadpool(explorer.explain, asked, visit.payer)


class SqlText(Model):
    """A question in SQL, and its accuracy or budget."""

    sql: Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
    """One SELECT of one table, with one COUNT, SUM, AVG or MEDIAN."""
    cost: Cost | None = None
    """The accuracy that is wanted, or the budget that is spent. Without it the budget
    is a twentieth of what remains.
    """
    at_least: Annotated[int, Field(ge=1, le=2**53)] | None = None
    """The size of groups from which on the accuracy of a mean holds."""


@router.post("/sql")
def sql(asked_in_sql: SqlText, visit: Person) -> dict[str, Any]:
    """Read a question from SQL, to be priced and asked like any other. Free."""
    explorers = {name: visit.explorer(name) for name in visit.work.tables}
    tables = {name: explorer.table for name, explorer in explorers.items()}
    stated = asked_in_sql.cost
    asked = question_from_sql(
        asked_in_sql.sql,
        tables,
        {"epsilon": 1} if stated is None else stated.model_dump(exclude_none=True),
        at_least=asked_in_sql.at_least,
        stepped=lambda table: explorers[table.name].engine.stepped(table),
    )
    explorer = explorers[asked.table]
    if stated is None:
        left = float(explorer.remaining(visit.payer)) / 20.0
        if not left > 0.0:
            raise BudgetError(f"nothing remains for you of {asked.table!r}")
        cost = read_spending({explorer.ledger.currency.name: left})
        asked = asked.model_copy(update={"cost": cost})
    return {"question": asked.model_dump(mode="json")}


class Buying(Model):
    """A question whose cost is a budget, and the probability of a larger error."""

    question: Question
    """What is asked; its cost states a budget."""
    beta: Part = 0.05
    """The probability that an error is larger."""
    scope: Literal["simultaneous", "per_query"] = "simultaneous"
    """Whether all answers are meant at once, or each by itself."""


@router.post("/accuracy")
async def accuracy(
    buying: Buying, visit: Person, connection: HttpRequest
) -> dict[str, Any]:
    """Say which largest error a budget buys. Free; no data is read."""
    asked = buying.question
    explorer = visit.explorer(asked.table)
    terms: dict[str, Any] = {"beta": buying.beta, "scope": buying.scope}
    plans = await visit.beside("accuracy", explorer.table, asked, connection, **terms)
    if plans is None:
        plans = await run_in_threadpool(explorer.accuracy, asked, **terms)
    return dict(plans)


@router.post("/ask", response_model=dict[str, Any])
async def ask(asking: Asking, visit: Person, connection: HttpRequest) -> Response:
    """Answer a question; charged once, replayed for free ever after."""
    explorer = visit.explorer(asking.question.table)
    with suppress(BlowfishError):
        # What cannot be priced is refused below, where refusals are counted. From
        # there on the question is answered, whether or not its client still waits.
        await visit.beside("price", explorer.table, asking.question, connection)
        await visit.broader(explorer.table, asking.question, connection)
    return await run_in_threadpool(_ask, asking, visit)


@router.post("/ask-several", response_model=dict[str, Any])
async def ask_several(
    asking: AskingSeveral, visit: Person, connection: HttpRequest
) -> Response:
    """Answer questions of one table that are charged together: all, or none."""
    explorer = visit.explorer(asking.table)
    for each in asking.questions:
        with suppress(BlowfishError):
            # As for a single question.
            await visit.beside("price", explorer.table, each.question, connection)
    return await run_in_threadpool(_ask_several, asking, visit)


@router.post("/register")
def register(stated: Registering, visit: Person) -> dict[str, int]:
    """State questions in advance: answers drawn later tell these more narrowly. Free.

    The reply has how many numbers they have together; fewer of them are told better.
    """
    explorer = visit.explorer(stated.table)
    with _refusals_noted(stated.table, visit, what="register"):
        numbers = explorer.register(stated.questions, analyst=visit.payer)
    visit.gate.audit.write(
        who=visit.who.name, what="register", table=stated.table, numbers=numbers
    )
    return {"numbers": numbers}


def _ask(asking: Asking, visit: Visit) -> Response:
    """Answer a question whose plan is small, or known."""
    explorer = visit.explorer(asking.question.table)
    with _refusals_noted(asking.question.table, visit):
        answer = explorer.outcome(
            asking.question,
            analyst=visit.payer,
            request=_own_request(asking, visit),
            newest=asking.newest,
        )
    _note_outcome(answer, asking.question.table, visit)
    if isinstance(answer, FailedAnswer):
        # Told to whoever asked; counted and logged like any other answer.
        raise FailedDrawError
    left = float(explorer.remaining(visit.payer))
    return _as_json({**answer.to_dict(), "remaining": left})


def _ask_several(asking: AskingSeveral, visit: Visit) -> Response:
    """Answer questions whose plans are small, or known."""
    explorer = visit.explorer(asking.table)
    with _refusals_noted(asking.table, visit):
        outcomes = explorer.outcomes(
            [each.question for each in asking.questions],
            analyst=visit.payer,
            requests=[_own_request(each, visit) for each in asking.questions],
        )
    for outcome in outcomes:
        _note_outcome(outcome, asking.table, visit)
    answers = [outcome for outcome in outcomes if isinstance(outcome, Answer)]
    if len(answers) < len(outcomes):
        raise FailedDrawError
    left = float(explorer.remaining(visit.payer))
    plain = [{**answer.to_dict(), "remaining": left} for answer in answers]
    return _as_json({"answers": plain, "remaining": left})


def _own_request(asking: Asking, visit: Visit) -> str | None:
    """Return the name in the ledger; questions without one are shared."""
    return None if asking.request is None else own_name(visit.who.name, asking.request)


@contextmanager
def _refusals_noted(table: str, visit: Visit, what: str = "ask") -> Iterator[None]:
    """Count and log what is refused."""
    try:
        yield
    except BlowfishError as problem:
        if what == "ask":
            visit.gate.metrics.add("blowfish_questions_total", outcome="refused")
        visit.gate.audit.write(
            who=visit.who.name,
            what=what,
            table=table,
            refused=type(problem).__name__,
            reason=str(problem),
        )
        raise


def _note_outcome(answer: Answer | FailedAnswer, table: str, visit: Visit) -> None:
    """Count and log what a question has come to."""
    outcome = "replayed" if answer.replayed else "charged"
    if isinstance(answer, Answer) and answer.sources and not answer.replayed:
        outcome = "read"
    visit.gate.metrics.add("blowfish_questions_total", outcome=outcome)
    visit.gate.audit.write(
        who=visit.who.name,
        what="ask",
        table=table,
        request=answer.request,
        cost=0.0 if answer.replayed else float(answer.budget),
        currency=answer.budget.currency,
    )


def own_name(person: str, request: str) -> str:
    """Return the name of somebody's own request, which nobody else's can be.

    Parameters
    ----------
    person : str
        Who asks; a slash of her name is written otherwise, because one ends the name.
    request : str
        The name that she gave.

    Returns
    -------
    str
        The name in the ledger.

    Examples
    --------
    >>> own_name("ann", "b/1"), own_name("ann/b", "1")
    ('ann/b/1', 'ann%2Fb/1')
    """
    plain = person.replace("%", "%25").replace("/", "%2F")
    return f"{plain}/{request}"


def _as_json(plain: dict[str, Any]) -> Response:
    """Write many numbers at once; the framework would walk over them one by one."""
    content = to_json(plain, inf_nan_mode="null")
    return Response(content, media_type="application/json")


class Certifying(StatedBudget):
    """An answer to be certified, and what that may cost."""

    table: Name
    """The name of the table."""
    request: Request
    """The name of the answer, as the answer states it."""
    fraction: Annotated[float, Field(gt=0, le=1)] = 0.95
    """The part of the answers that the claim is about."""
    confidence: Part = 0.95
    """The probability with which the claim holds."""


@router.post("/certify")
async def certify(
    asked: Certifying, visit: Person, connection: HttpRequest
) -> dict[str, Any]:
    """Buy a certificate of how far one's answer is off the truth."""
    await _plan_again(asked.table, asked.request, visit, connection)
    return await run_in_threadpool(_certify, asked, visit)


def _certify(asked: Certifying, visit: Visit) -> dict[str, Any]:
    """Certify an answer whose plan is small, or known."""
    explorer = _with_own_answer(asked.table, asked.request, visit)
    noted = asked.model_dump(include={"table", "request", "epsilon", "rho", "delta"})
    noted |= {"who": visit.who.name, "what": "certify"}
    try:
        certificate = explorer.certify(
            asked.request,
            analyst=visit.payer,
            fraction=asked.fraction,
            confidence=asked.confidence,
            **asked.terms,
        )
    except FailedDrawError:
        # It was charged: the log says so as it says of others.
        visit.gate.audit.write(**noted)
        raise
    visit.gate.audit.write(**noted)
    return {
        "kind": certificate.kind,
        "words": str(certificate),
        "remaining": float(explorer.remaining(visit.payer)),
    }


def _with_own_answer(table: str, request: str, visit: Visit) -> Explorer:
    """Refuse what is not there or another analyst's, in the same words."""
    explorer = visit.explorer(table)
    if not explorer.may_open(request, visit.payer):
        raise HTTPException(404, "there is no answer under this name")
    return explorer


async def _plan_again(
    table: str, request: str, visit: Visit, connection: HttpRequest
) -> None:
    """Have the plan of one's large stored answer worked out in another process."""
    explorer = await run_in_threadpool(_with_own_answer, table, request, visit)
    entry = await run_in_threadpool(explorer.ledger.entry, request)
    question = None if entry is None else (entry.note or {}).get("question")
    if question is not None and question.get("table") == explorer.table.name:
        asked = read_question(question)
        await visit.beside("price", explorer.table, asked, connection, limited=False)


@router.get("/history")
def history(
    visit: Person,
    table: TableQuery,
    last: Annotated[int, Query(ge=1, le=10_000, description=LAST)] = 200,
    before: Annotated[int | None, Query(ge=1, le=2**62, description=BEFORE)] = None,
) -> list[dict[str, Any]]:
    """List what was asked last: one's own questions, or all for the curator."""
    return [
        {
            "number": entry.number,
            # Somebody else's answer that was given again is opened by its own name.
            "request": (entry.note or {}).get("received", entry.request),
            "time": entry.time.isoformat(),
            "mechanism": entry.mechanism,
            "cost": float(entry.budget),
            "currency": entry.budget.currency,
            entry.budget.currency: float(entry.budget),
            "state": entry.state,
            "analyst": entry.analyst,
            "question": (entry.note or {}).get("question"),
            "epoch": (entry.note or {}).get("epoch"),
            # The charge of the answer that was made finer for it, listed by itself.
            "paid": ((entry.note or {}).get("read") or {}).get("paid"),
        }
        for entry in visit.explorer(table).history(
            visit.payer, last=last, before=before
        )
    ]


@router.get("/answer", response_model=dict[str, Any])
async def answer(
    visit: Person,
    table: TableQuery,
    request: Annotated[Request, Query(description="The name of the answer.")],
    connection: HttpRequest,
) -> Response:
    """Return an answer of the history again. Free."""
    await _plan_again(table, request, visit, connection)
    return await run_in_threadpool(_answer, table, request, visit)


def _answer(table: str, request: str, visit: Visit) -> Response:
    """Return an answer whose plan is small, or known."""
    stored = _with_own_answer(table, request, visit).answered(request)
    if stored is None:
        raise HTTPException(404, "there is no answer under this name")
    return _as_json(stored.to_dict())


@router.get("/population", response_model=dict[str, Any])
async def population(
    visit: Person,
    table: TableQuery,
    request: Annotated[Request, Query(description="The name of the answer.")],
    connection: HttpRequest,
    confidence: Annotated[
        float, Query(gt=0, lt=1, description="Over the draw of the sample and noise.")
    ] = 0.95,
    method: Annotated[
        Literal["exact", "normal"] | None,
        Query(description="How the sampling is counted; by its own law if there is."),
    ] = None,
    together: Annotated[
        bool, Query(description="Whether strata or classes of weights are added up.")
    ] = False,
) -> Response:
    """Return an answer as numbers of the population, with intervals of it. Free."""
    await _plan_again(table, request, visit, connection)
    explorer = _with_own_answer(table, request, visit)
    asked: Any = {"confidence": confidence, "method": method, "together": together}
    people = await run_in_threadpool(population_answer, explorer, request, **asked)
    return _as_json(people.to_dict())


class SavedQuestion(Model):
    """A question and what somebody calls it."""

    name: SavedName
    """What she calls it."""
    question: Question
    """What is asked, with its accuracy or cost."""


@router.get("/saved")
def saved(visit: Person) -> list[dict[str, Any]]:
    """List the questions that one saved under names. Free."""
    questions = visit.work.saved_questions(visit.saver)
    return [{"name": name, "question": asked} for name, asked in questions.items()]


@router.put("/saved")
def save(named: SavedQuestion, visit: Person) -> dict[str, str]:
    """Save a question under a name of one's own; nothing is asked or charged."""
    explorer = visit.explorer(named.question.table)
    # What does not fit the table is refused here, and not each time it is opened.
    explorer.canonical(named.question)
    plain = named.question.model_dump(mode="json")
    visit.work.save_question(visit.saver, named.name, plain)
    return {"name": named.name}


@router.delete("/saved", status_code=204)
def remove_saved(
    visit: Person,
    name: Annotated[SavedName, Query(description="The name of the question.")],
) -> None:
    """Remove a saved question; answers that were given to it stay."""
    visit.work.save_question(visit.saver, name, None)


@router.post("/policy-graph")
def policy_graph(
    visit: Person,
    table: TableQuery,
    attribute: Annotated[Name, Query(description="The name of the attribute.")],
    policy: PolicySpec | None = None,
) -> dict[str, Any]:
    """Return an attribute's policy to be drawn: small graphs whole, others in words."""
    return policy_picture(visit.explorer(table).table, attribute, policy)

"""The explorer from another machine: the same questions, over HTTP.

Errors come back as the kinds that the server raised. Needs ``httpx`` (extra ``web``).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, overload
from urllib.parse import quote

import numpy as np

from blowfish_fast import errors
from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import malformed_as, quoted
from blowfish_fast.errors import (
    BlowfishError,
    EngineError,
    FailedDrawError,
    InputError,
)

Read = TypeVar("Read")

LINES = "application/x-ndjson"
"""The type of a reply that is one JSON value per line."""
OTHERWISE = (
    "an explorer's server answers otherwise; check the address, and whether client and "
    "server are of one version"
)
PATIENCE = 120.0
"""Seconds to wait: the first plan of a large question takes a while."""


@dataclass(frozen=True)
class ReceivedAnswer:
    """An answer as the server gave it; ``explorer.Answer`` is its other end.

    Attributes
    ----------
    question : dict
        The question as plain data.
    axes : list of dict
        For each attribute that is asked for: its name, its kind, the edges or levels of
        its bins, and their number.
    values : ndarray of float64
        The answers that are shown, one per bin, stretch, box or quantile.
    intervals : ndarray of float64, shape (*values.shape, 2), or None
        Lower and upper ends; None where the mechanism knows no intervals.
    confidence : float
        The probability with which an interval holds what `intervals_hold` says.
    mechanism : str
        The name of the mechanism.
    promise : str
        How accurate the answer is, in a sentence.
    request : str
        The name under which the server stores and replays the answer.
    replayed : bool
        Whether the answer was stored before it was asked for this time.
    intervals_hold : str, default "noise"
        What the intervals hold: "truth", "certified", "noise" or "population".
    remaining : float, optional
        What is left of the budget after this answer, in the ledger's currency.
    epsilon, rho : float, optional
        What the answer was charged, under the name of the ledger's currency; the other
        one is None.
    remarks : list of str
        What the numbers tell of the table's description, such as that much of a column
        lies outside its cells.
    raw : ndarray of float64, optional
        The linear estimates from which the shown values were made; None where there are
        none, as for quantiles.
    what : str, default "records"
        What the numbers are: records, or a sum, mean or share.
    unit : str, optional
        The unit of a sum, mean or share, where the table's description has one.
    as_of : str, default ""
        When its budget was charged; the answer is about the data of that time.
    sources : list of str
        The names of the stored answers from which it was read, at no cost.
    holds : {"fresh", "any", "fixed"}
        For which questions the promise holds, as in ``explorer.Answer``.
    """

    question: dict[str, Any]
    axes: list[dict[str, Any]]
    values: FloatArray
    intervals: FloatArray | None
    confidence: float
    mechanism: str
    promise: str
    request: str
    replayed: bool
    intervals_hold: str = "noise"
    remaining: float | None = None
    epsilon: float | None = None
    rho: float | None = None
    remarks: list[str] = field(default_factory=list)
    raw: FloatArray | None = None
    what: str = "records"
    unit: str | None = None
    as_of: str = ""
    sources: list[str] = field(default_factory=list)
    holds: str = "fresh"

    @property
    def cost(self) -> float:
        """What was charged for it, once, in the ledger's currency; 0 where it was read.

        A replay shows what the answer was charged when it was drawn.
        """
        return float(self.rho or 0.0) if self.epsilon is None else float(self.epsilon)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> ReceivedAnswer:
        """Read the server's JSON; fields that only a newer server sends are left out.

        Parameters
        ----------
        plain : mapping
            The JSON object of an answer.

        Returns
        -------
        ReceivedAnswer
            Its values and intervals as arrays.
        """
        understood = {entry.name for entry in fields(cls)}
        read = {name: value for name, value in plain.items() if name in understood}
        for name in ("values", "intervals", "raw"):
            if read.get(name) is not None:
                read[name] = np.asarray(read[name], dtype=np.float64)
        return cls(**read)


@dataclass(frozen=True)
class PricedQuestion:
    """A question and its price; nothing is charged before it is asked.

    Attributes
    ----------
    question : dict
        The question as plain data.
    price : dict
        What `Client.explain` returned for it.
    client : Client
        Who asks it.
    """

    question: dict[str, Any]
    price: dict[str, Any]
    client: Client = field(repr=False)

    @property
    def cost(self) -> float:
        """What asking would be charged, in the currency of the table's ledger."""
        return float(self.price["cost"])

    def ask(self) -> ReceivedAnswer:
        """Ask it: charged once, replayed for free ever after."""
        return self.client.ask(self.question)


class Client:
    """An analyst, or the curator, at a distance; see `connect`.

    Parameters
    ----------
    url : str
        Where the server is, beginning with http:// or https://.
    token : str
        The secret of an analyst or a curator.
    transport : httpx transport, optional
        What carries the requests; tests put an application here.
    """

    def __init__(self, url: str, token: str, *, transport: Any = None) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"an address begins with http:// or https://: {url!r}")
        if not token or not token.isascii() or not token.isprintable():
            raise InputError("a secret consists of plain characters, without breaks")
        httpx = require("httpx", extra="web", purpose="bf.connect")
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=PATIENCE,
            transport=transport,
        )

    def who(self) -> dict[str, Any]:
        """Return one's role and name."""
        return self._read(dict, "GET", "/api/session")

    def tables(self) -> list[dict[str, Any]]:
        """Return the tables: attributes, policies, budget, what remains."""
        return self._read(list, "GET", "/api/tables")

    def explain(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return cost and candidates of a question. Free; no data is read.

        Parameters
        ----------
        question : mapping
            Plain data, as `explorer.read_question` takes it.

        Returns
        -------
        dict
            What `Explorer.explain` returns.
        """
        return self._read(dict, "POST", "/api/explain", {"question": dict(question)})

    @overload
    def ask(
        self,
        question: Mapping[str, Any],
        *,
        request: str | None = None,
        newest: bool = False,
    ) -> ReceivedAnswer: ...

    @overload
    def ask(
        self,
        question: Sequence[Mapping[str, Any]],
        *,
        request: Sequence[str | None] | None = None,
        newest: bool = False,
    ) -> list[ReceivedAnswer]: ...

    def ask(
        self, question: Any, *, request: Any = None, newest: bool = False
    ) -> ReceivedAnswer | list[ReceivedAnswer]:
        """Answer a question: charged once, replayed for free ever after.

        Several questions of one table in a list are charged in one step, all of them or
        none, and travel in one request.

        Parameters
        ----------
        question : mapping, or a list of them
            Plain data, as `explorer.read_question` takes it.
        request : str, optional
            A name of your own. Under a new name the question is charged anew; an
            old name brings the old answer back. For a list of questions it is a list
            of names, None among them for questions without one.
        newest : bool, default False
            Whether one question that was answered before is read again from what is
            stored by now, free, where that tells it more narrowly. The answer that was
            shown stays as it is; this one has a name of its own.

        Returns
        -------
        ReceivedAnswer or list of ReceivedAnswer
            Numbers, intervals, the promise, and what remains.

        Raises
        ------
        BudgetError
            If the allotment does not suffice for all of them; nothing is charged.
        """
        if isinstance(question, list | tuple):
            names = [None] * len(question) if request is None else request
            if isinstance(names, str) or len(names) != len(question):
                raise InputError(
                    "a list of questions has a name for each, or None in its place",
                    received=quoted(request),
                )
            if newest:
                raise InputError(
                    "the newest answer is that of one question; ask for each by itself"
                )
            questions = [
                {"question": dict(each), "request": name}
                for each, name in zip(question, names, strict=True)
            ]
            return self._read(
                lambda reply: [ReceivedAnswer.of(each) for each in reply["answers"]],
                "POST",
                "/api/ask-several",
                {"questions": questions},
            )
        body = {"question": dict(question), "request": request, "newest": newest}
        return self._read(ReceivedAnswer.of, "POST", "/api/ask", body)

    def register(self, questions: Sequence[Mapping[str, Any]]) -> int:
        """State questions in advance: answers drawn later tell these more narrowly.

        Free. What is read from an answer that is drawn from now on holds for all
        registered questions together; see `Explorer.register`.

        Parameters
        ----------
        questions : sequence of mappings
            Questions of one table, at most 1,000; their costs are left aside.

        Returns
        -------
        int
            How many numbers they have together. Fewer of them have narrower intervals.

        Raises
        ------
        QuestionError
            If one is malformed, or counts nothing that stored answers tell.
        """
        with malformed_as(InputError, "register takes a list of questions"):
            listed = [dict(question) for question in questions]
        return self._read(
            lambda reply: int(reply["numbers"]),
            "POST",
            "/api/register",
            {"questions": listed},
        )

    def sql(
        self,
        text: str,
        *,
        alpha: float | None = None,
        beta: float = 0.05,
        scope: str = "simultaneous",
        at_least: int | None = None,
        epsilon: float | None = None,
        rho: float | None = None,
        delta: float | None = None,
    ) -> PricedQuestion:
        """Read a question from SQL, and price it. Free; `PricedQuestion.ask` asks it.

        Parameters
        ----------
        text : str
            One SELECT of one table, with one COUNT, SUM, AVG or MEDIAN.
        alpha : float, optional
            How far answers may be off, in their unit.
        beta : float
            The probability that they are farther off.
        scope : {"simultaneous", "per_query"}
            Whether all answers are within alpha at once, or each by itself.
        at_least : int, optional
            The size of groups from which on the accuracy of a mean holds.
        epsilon : float, optional
            What may be spent, instead of alpha. Without either it is a twentieth of
            what remains.
        rho : float, optional
            What may be spent in rho, instead.
        delta : float, optional
            Stated beside epsilon.

        Returns
        -------
        PricedQuestion
            The question as plain data, and its price.

        Raises
        ------
        QuestionError
            If the text asks for something that has no question here; the message
            names the nearest one that has.
        """
        cost: dict[str, Any] = _stated(epsilon, rho, delta)
        if alpha is not None:
            if cost:
                raise InputError("state alpha, or what may be spent, not both")
            cost = {"alpha": alpha, "beta": beta, "scope": scope}
        body = {"sql": text, "cost": cost or None, "at_least": at_least}
        question = self._read(dict, "POST", "/api/sql", body)["question"]
        return PricedQuestion(question, self.explain(question), self)

    def ask_anew(self, question: Mapping[str, Any]) -> ReceivedAnswer:
        """Ask with fresh noise, and pay again.

        Parameters
        ----------
        question : mapping
            Plain data, as `explorer.read_question` takes it.

        Returns
        -------
        ReceivedAnswer
            An answer under a random name.
        """
        return self.ask(question, request=uuid.uuid4().hex)

    def history(
        self, table: str, last: int = 200, before: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the latest charges, oldest first: one's own, or all for a curator.

        Parameters
        ----------
        table : str
            The name of the table.
        last : int
            How many charges at most.
        before : int, optional
            Only charges of smaller numbers: the first of one page ends the page before.

        Returns
        -------
        list of dict
            Number, name, time, mechanism, cost, state and question of each.
        """
        where = f"/api/history?table={_name(table)}&last={last}"
        if before is not None:
            where += f"&before={before}"
        return self._read(list, "GET", where)

    def answer(self, table: str, request: str) -> ReceivedAnswer:
        """Return an answer of the history again. Free.

        Parameters
        ----------
        table : str
            The name of the table.
        request : str
            The name of the answer, as `ReceivedAnswer.request` has it.

        Returns
        -------
        ReceivedAnswer
            The stored answer.

        Raises
        ------
        CatalogError
            If there is none under this name.
        """
        where = f"/api/answer?table={_name(table)}&request={_name(request)}"
        return self._read(ReceivedAnswer.of, "GET", where)

    def population(
        self,
        table: str,
        request: str,
        *,
        confidence: float = 0.95,
        method: Literal["exact", "normal"] | None = None,
        together: bool = False,
    ) -> ReceivedAnswer:
        """Return an answer as numbers of the population. Free.

        Parameters
        ----------
        table : str
            The name of the table, whose description says how its records were drawn.
        request : str
            The name of the answer, as `ReceivedAnswer.request` has it.
        confidence : float, default 0.95
            Over the draw of the sample and the noise.
        method : {"exact", "normal"} or None
            How the sampling is counted; by its own law where there is one.
        together : bool, default False
            Whether strata, or classes of weights, are added up.

        Returns
        -------
        ReceivedAnswer
            Numbers of people, shares or means, with ``intervals_hold="population"``.

        Raises
        ------
        IntervalError
            If nobody said how the records were drawn, or no interval is known.
        """
        where = (
            f"/api/population?table={_name(table)}&request={_name(request)}"
            f"&confidence={confidence}"
        )
        if method is not None:
            where += f"&method={_name(method)}"
        if together:
            where += "&together=true"
        return self._read(ReceivedAnswer.of, "GET", where)

    def preview(
        self,
        question: Mapping[str, Any],
        *,
        epsilon: float,
        policies: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Curator: return the true answer beside a private one; nothing is charged.

        Parameters
        ----------
        question : mapping
            Plain data, as `explorer.read_question` takes it; its cost is replaced.
        epsilon : float
            What the private answer would spend, in the currency of the table's
            ledger.
        policies : mapping, optional
            Policies to try instead of the table's own.

        Returns
        -------
        dict
            What `Explorer.preview` returns; the truth in it is for the curator
            alone.
        """
        stated = None if policies is None else dict(policies)
        body = {"question": dict(question), "epsilon": epsilon, "policies": stated}
        return self._read(dict, "POST", "/api/curator/preview", body)

    def trade_off(
        self, question: Mapping[str, Any], thetas: list[int] | None = None
    ) -> list[dict[str, Any]]:
        """Curator: return what an accuracy costs at each threshold, the smallest first.

        Parameters
        ----------
        question : mapping
            Plain data with an accuracy, over an ordered attribute.
        thetas : list of int, optional
            Thresholds in cells; by default nine, evenly spaced on a logarithmic
            scale.

        Returns
        -------
        list of dict
            Each has a "theta" and its "cost"; whole records stand last, with theta
            None.
        """
        body = {"question": dict(question), "thetas": thetas}
        return self._read(list, "POST", "/api/curator/trade-off", body)[::-1]

    def set_policies(self, table: str, policies: Mapping[str, Any]) -> dict[str, Any]:
        """Curator: state policies, or reset to the default with none.

        Parameters
        ----------
        table : str
            The name of the table.
        policies : mapping
            Policies by attribute; empty for the default. Only before the first
            charge.

        Returns
        -------
        dict
            The table as it is described now.
        """
        return self._table("PUT", table, "policies", dict(policies))

    def accuracy(
        self,
        question: Mapping[str, Any],
        *,
        beta: float = 0.05,
        scope: str = "simultaneous",
    ) -> dict[str, Any]:
        """Return the largest error that the budget of a question buys. Free.

        Parameters
        ----------
        question : mapping
            Plain data whose cost is a budget.
        beta : float
            The probability with which an error may be larger.
        scope : {"simultaneous", "per_query"}
            Whether all answers are meant at once, or each by itself.

        Returns
        -------
        dict
            The "alpha", and the "mechanism" that promises it.
        """
        body = {"question": dict(question), "beta": beta, "scope": scope}
        return self._read(dict, "POST", "/api/accuracy", body)

    def certify(
        self,
        table: str,
        request: str,
        *,
        fraction: float = 0.95,
        confidence: float = 0.95,
        epsilon: float | None = None,
        rho: float | None = None,
        delta: float | None = None,
    ) -> dict[str, Any]:
        """Buy a certificate of how far an answer is off the truth.

        Parameters
        ----------
        table, request : str
            The table and the name of the answer.
        fraction, confidence : float
            How many of the answers the claim is about, and how sure it is.
        epsilon, rho, delta : float, optional
            What it may cost: `epsilon`, or `rho`, or `epsilon` with `delta`.

        Returns
        -------
        dict
            The certificate as plain data.
        """
        body = {
            "table": table,
            "request": request,
            "fraction": fraction,
            "confidence": confidence,
            **_stated(epsilon, rho, delta),
        }
        return self._read(dict, "POST", "/api/certify", body)

    def set_budget(
        self,
        table: str,
        epsilon: float | None = None,
        *,
        rho: float | None = None,
        delta: float | None = None,
    ) -> dict[str, Any]:
        """Curator: state the budget (epsilon or rho); only before the first charge.

        Parameters
        ----------
        table : str
            The name of the table.
        epsilon : float, optional
            The whole budget in epsilon.
        rho : float, optional
            The whole budget in rho, instead.
        delta : float, optional
            Stated beside epsilon.

        Returns
        -------
        dict
            The table as it is described now.
        """
        return self._table("PUT", table, "budget", _stated(epsilon, rho, delta))

    def raise_budget(
        self,
        table: str,
        epsilon: float | None = None,
        *,
        why: str,
        rho: float | None = None,
        delta: float | None = None,
    ) -> dict[str, Any]:
        """Curator: raise the budget at any time; the ledger keeps when and why.

        Parameters
        ----------
        table : str
            The name of the table.
        epsilon : float, optional
            The new whole budget in epsilon.
        why : str
            The reason, which the ledger keeps.
        rho : float, optional
            The new whole budget in rho, instead.
        delta : float, optional
            Stated beside epsilon.

        Returns
        -------
        dict
            The table as it is described now.
        """
        body = {"why": why, **_stated(epsilon, rho, delta)}
        return self._table("POST", table, "raise", body)

    def publish(self, table: str, request: str) -> dict[str, Any]:
        """Curator: let everybody read new questions from a stored answer.

        It matters where the table's `share` is "published".

        Parameters
        ----------
        table : str
            The name of the table.
        request : str
            The name of the answer.

        Returns
        -------
        dict
            The name, as "published".

        Raises
        ------
        CatalogError
            If the table has no such answer.
        """
        return self._table("POST", table, "publish", {"request": request})

    def close_table(self, table: str) -> dict[str, Any]:
        """Curator: give stored answers only, from now on."""
        return self._table("POST", table, "close")

    def open_table(self, table: str) -> dict[str, Any]:
        """Curator: answer new questions again."""
        return self._table("POST", table, "open")

    def clone_table(
        self,
        table: str,
        name: str,
        policies: Mapping[str, Any],
        *,
        epsilon: float | None = None,
        rho: float | None = None,
        delta: float | None = None,
    ) -> dict[str, Any]:
        """Curator: describe the same records under other policies; closes the first.

        Parameters
        ----------
        table : str
            The table whose records are described once more.
        name : str
            The name of the second table.
        policies : mapping
            Its policies by attribute.
        epsilon : float, optional
            Its own budget in epsilon.
        rho : float, optional
            Its own budget in rho, instead.
        delta : float, optional
            Stated beside epsilon.

        Returns
        -------
        dict
            The second table as it is described.
        """
        stated = _stated(epsilon, rho, delta)
        body = {"name": name, "policies": dict(policies), **stated}
        return self._table("POST", table, "clone", body)

    def delete_table(self, table: str) -> None:
        """Curator: delete a table; what was spent on its people stays spent."""
        self._call("DELETE", f"/api/curator/tables/{_name(table)}")

    def analysts(self) -> list[dict[str, Any]]:
        """Curator: return the analysts and their allotments."""
        return self._read(list, "GET", "/api/curator/analysts")

    def add_analyst(self, name: str) -> str:
        """Curator: make a secret for an analyst, and return it this once."""
        return self._add("analysts", name)

    def add_curator(self, name: str) -> str:
        """Curator: make a secret for another curator, and return it this once."""
        return self._add("curators", name)

    def add_monitor(self, name: str) -> str:
        """Curator: make a secret that reads /metrics alone."""
        return self._add("monitors", name)

    def _add(self, role: str, name: str) -> str:
        where = f"/api/curator/{role}/{_name(name)}"
        return self._read(lambda reply: str(reply["secret"]), "POST", where)

    def revoke_analyst(self, name: str) -> None:
        """Curator: end an analyst's secret and sessions."""
        self._call("DELETE", f"/api/curator/analysts/{_name(name)}")

    def allot(
        self,
        table: str,
        analyst: str,
        epsilon: float | None = None,
        *,
        rho: float | None = None,
        delta: float | None = None,
    ) -> dict[str, Any]:
        """Curator: set what an analyst may spend of a table's budget.

        Parameters
        ----------
        table : str
            The name of the table.
        analyst : str
            Whose allotment it is.
        epsilon : float, optional
            What she may spend in all, in epsilon.
        rho : float, optional
            The same in rho, instead.
        delta : float, optional
            Stated beside epsilon.

        Returns
        -------
        dict
            What was granted and what is spent of it.
        """
        rest = f"allotments/{_name(analyst)}"
        return self._table("PUT", table, rest, _stated(epsilon, rho, delta))

    def _table(self, method: str, table: str, rest: str, *body: Any) -> dict[str, Any]:
        where = f"/api/curator/tables/{_name(table)}/{rest}"
        return self._read(dict, method, where, *body)

    def data_sets(self) -> dict[str, dict[str, str]]:
        """Curator: return tables that may be described, with columns and types."""
        return self._read(dict, "GET", "/api/curator/data-sets")

    def add_csv(self, name: str, path: str | Path) -> dict[str, str]:
        """Curator: add a CSV file as a data set; return its columns and types.

        Parameters
        ----------
        name : str
            The name of the data set, which becomes that of its table.
        path : path
            A CSV file on this machine, with a header line.

        Returns
        -------
        dict
            The type of each column, by its name.
        """
        with Path(path).open("rb") as file:
            return self._read(
                lambda reply: dict(reply["columns"]),
                "POST",
                "/api/curator/data-sets",
                data={"name": name},
                files={"file": ("data.csv", file, "text/csv")},
            )

    def add_table(
        self,
        table: Mapping[str, Any],
        *,
        epsilon: float | None = None,
        rho: float | None = None,
        delta: float | None = None,
    ) -> dict[str, Any]:
        """Curator: describe a table and give it a budget.

        Parameters
        ----------
        table : mapping
            Plain data with the fields of `explorer.TableSpec`.
        epsilon : float, optional
            The whole budget in epsilon.
        rho : float, optional
            The whole budget in rho, instead.
        delta : float, optional
            Stated beside epsilon.

        Returns
        -------
        dict
            The table as it is described now.
        """
        body = {"table": dict(table), **_stated(epsilon, rho, delta)}
        return self._read(dict, "POST", "/api/curator/tables", body)

    def verify(self, table: str) -> str:
        """Curator: check the chain of a table's ledger; return its head."""
        where = f"/api/curator/tables/{_name(table)}/verify"
        return self._read(lambda reply: str(reply["head"]), "POST", where)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *caught: object) -> None:
        self.close()

    def _read(
        self,
        reader: Callable[[Any], Read],
        method: str,
        path: str,
        *body: Any,
        **parts: Any,
    ) -> Read:
        """Call, and read the reply; whoever answers there need not be an explorer."""
        content = self._call(method, path, *body, **parts)
        with malformed_as(EngineError, OTHERWISE):
            return reader(content)

    def _call(self, method: str, path: str, body: Any = None, **parts: Any) -> Any:
        httpx = require("httpx", extra="web", purpose="bf.connect")
        try:
            response = self._http.request(method, path, json=body, **parts)
        except httpx.TransportError as problem:
            raise EngineError(
                f"the server does not answer ({type(problem).__name__}). Ask again "
                "with the same request: nothing is charged twice"
            ) from None
        except (TypeError, ValueError) as problem:
            raise InputError(f"questions are plain JSON ({problem})") from None
        if response.status_code == 204:
            return None
        try:
            if response.headers.get("content-type", "").startswith(LINES):
                content = [json.loads(line) for line in response.text.splitlines()]
            else:
                content = response.json()
        except (RecursionError, ValueError):
            content = None
        if response.is_success:
            return content
        raise _error(response.status_code, content)


def connect(url: str, token: str) -> Client:
    """Return a client of the explorer's server at `url`, with one's secret.

    Parameters
    ----------
    url : str
        Where the server is, such as "http://127.0.0.1:8350".
    token : str
        Your secret, which the curator made.

    Returns
    -------
    Client
        Nothing is sent before its first call.

    Examples
    --------
    >>> analyst = connect("http://127.0.0.1:8350", token="ann's secret")
    """
    return Client(url, token)


def _error(status: int, content: Any) -> BlowfishError:
    """Return the error that the server raised, as far as it is known here."""
    sent = content.get("error") if isinstance(content, dict) else None
    told = sent if isinstance(sent, dict) else {}
    kind = getattr(errors, str(told.get("kind")), BlowfishError)
    if not (isinstance(kind, type) and issubclass(kind, BlowfishError)):
        kind = BlowfishError
    if kind is FailedDrawError:
        # Its words are always the same.
        return FailedDrawError()
    received, way_out, code = (
        None if told.get(name) is None else str(told[name])
        for name in ("received", "way_out", "code")
    )
    rule = told.get("rule") or f"the server answered with status {status}"
    return kind(str(rule), received=received, way_out=way_out, code=code)


def _stated(
    epsilon: float | None, rho: float | None, delta: float | None
) -> dict[str, float]:
    """Return a budget as the server reads it: what was stated, by name."""
    terms = {"epsilon": epsilon, "rho": rho, "delta": delta}
    return {name: value for name, value in terms.items() if value is not None}


def _name(text: str) -> str:
    return quote(text, safe="")

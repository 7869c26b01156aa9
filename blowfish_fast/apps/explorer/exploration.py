"""Ask a table questions until its budget is spent.

    question --lay out--> bins, policy, queries            public
             --plan-----> mechanism and epsilon            public: no data is read
             --count----> true counts of the bins          one GROUP BY, may fail free
             --ledger---> reserve, draw, store, return     charged before measured
             --answer---> numbers, intervals, promise      public

True counts live in one local variable between the database and the ledger; those of
records that cannot change stay with the connection to them (``engines``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast, overload

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.accounting.contributions import truncation_loss
from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.population import Population
from blowfish_fast.accounting.request import price_in
from blowfish_fast.accounting.statements import Entry
from blowfish_fast.errors import (
    BlowfishError,
    BudgetError,
    CatalogError,
    EngineError,
    FailedDrawError,
    LedgerError,
    QuestionError,
)
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.certifier import Certifier
from blowfish_fast.mechanisms.registry import MechanismName, find_mechanism
from blowfish_fast.release.certificates import Certificate
from blowfish_fast.release.file import Release

from .amounts import answers_of_rows
from .answers_given import Answer, answer_from
from .batches import FailedAnswer, batched_outcomes
from .catalog import TableSpec, as_table
from .engines import Database
from .layout import lay_out
from .past_answers import RULE, KnownAnswer, PastAnswers, bins_of, count_numbers
from .planning import SAMPLES, Plan, Planner, Shape
from .questions import (
    Accuracy,
    FrequentQuestion,
    Question,
    adds_up,
    read_question,
    read_spending,
)
from .remembered.content_labels import ContentLabels
from .remembered.explaining import explained
from .remembered.read_answers import OF_ONE, newest_answer, shown_again
from .remembered.refining import Refining, refusal
from .same_question import canonical, in_asked_order, request_name
from .truncation import LOSS, loss_name, plain_loss, true_losses

if TYPE_CHECKING:
    from .remembered.broader import Broadening, BroaderAnswer

MOST_AT_ONCE = 1000
"""Charges that are read together where several tables share a ledger."""


class Explorer:
    """One table of a database, its policy and its budget.

    Parameters
    ----------
    table : TableSpec, mapping or None
        The description of the table. None takes the one that an existing ledger
        keeps.
    engine : Database, path, address or ibis backend
        Where its records are; see `Database.connect`.
    ledger : path, Population or None
        Where the budget is kept, or whose it is; None for experiments in memory.
    samples : int
        Draws that sharpen the translation of an accuracy; 0 for bounds alone.
    vouched : sequence of str or class
        Mechanisms defined outside the package that analysts may ask for by name:
        your word that their privacy is proved.
    note : mapping, optional
        Plain data that a new ledger keeps beside the table's description.
    epsilon : number, optional
        The whole budget in epsilon. It is left out, as the other two are, when an
        existing ledger is opened.
    rho : number, optional
        The whole budget in rho, instead of epsilon.
    delta : number, optional
        Stated beside epsilon; see `Ledger`.
    auditor : path, optional
        The file of a public key: whoever holds the private one may check the noise of
        later answers; see `Ledger`.

    Examples
    --------
    >>> import ibis
    >>> database = ibis.duckdb.connect()
    >>> rows = "select 20 + i % 60 as age from range(150) as t(i)"
    >>> visits = database.raw_sql(f"create table visits as {rows}")
    >>> age = {"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}
    >>> table = {"name": "visits", "attributes": [age]}
    >>> explorer = Explorer(table, database, epsilon=1)
    >>> asked = {"kind": "histogram", "table": "visits", "attribute": "age"}
    >>> question = {**asked, "cost": {"alpha": 20, "beta": 0.05}}
    >>> plan = explorer.plan(question)
    >>> plan.mechanism.name, plan.free, 0 < plan.cost < 1
    ('transformed', False, True)
    >>> answer = explorer.ask(question)
    >>> answer.values.shape, answer.intervals.shape
    ((10,), (10, 2))
    >>> answer.confidence, answer.replayed, sorted(answer.to_dict())[:3]
    (0.95, False, ['as_of', 'axes', 'confidence'])
    >>> explorer.ask(question).replayed, explorer.ledger.spent == answer.epsilon
    (True, True)
    """

    def __init__(
        self,
        table: TableSpec | Mapping[str, Any] | None,
        engine: Any,
        *,
        ledger: str | Path | Population | None = None,
        samples: int = SAMPLES,
        vouched: Sequence[MechanismName] = (),
        note: Mapping[str, Any] | None = None,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        auditor: str | Path | None = None,
    ) -> None:
        self.vouched = {kind.name: kind for kind in map(find_mechanism, vouched)}
        self.engine = Database.connect(engine)
        self.people = ledger if isinstance(ledger, Population) else None
        """Whose budget it is, where several tables share one."""
        self.seen: str | None = None
        """The state of the files of a frozen snapshot; None where nobody knows it."""
        self.closed = False
        """Whether only stored answers are given any more."""
        self._checked = False
        spec = None if table is None else as_table(table)
        self._read: tuple[Any, TableSpec] | None = None
        if isinstance(ledger, Population):
            assert spec is not None, "a table of a population is described"
            self.ledger, self._read = ledger.ledger, (None, spec)
            if auditor is not None:
                self.ledger.name_auditor(auditor)
        elif spec is None:
            self.ledger = Ledger(
                ledger, epsilon=epsilon, rho=rho, delta=delta, auditor=auditor
            )
        else:
            self._check_columns(spec)
            about = {**(note or {}), "table": spec.to_dict()}
            self.ledger = Ledger(
                ledger,
                policy=spec.policy(),
                about=about,
                epsilon=epsilon,
                rho=rho,
                delta=delta,
                auditor=auditor,
            )
            if self.table != spec:
                raise CatalogError(
                    f"the ledger was made for another description of "
                    f"{self.table.name!r}; leave the table out to use that one"
                )
        with suppress(EngineError):
            # While the database is away, stored answers are given all the same.
            self._check_columns(self.table)
        self.planner = Planner(self.ledger.currency, samples, self.vouched)
        self._past = PastAnswers(self.ledger)
        self.refining = Refining(self, self._past)
        """Makes stored answers finer."""
        self._labels = ContentLabels(self.engine, self.ledger.path)

    @cached_property
    def broadening(self) -> Broadening:
        """Buys broader answers, where the table's description lets it."""
        from .remembered.broader import Broadening

        return Broadening(self, self._past)

    def _check_columns(self, table: TableSpec) -> None:
        """Hold the description against the columns, once the database is there."""
        if not self._checked:
            self.engine.check(table)
            self._checked = True

    @property
    def table(self) -> TableSpec:
        """The table as the ledger keeps it."""
        read = self._read
        if self.people is not None and read is not None:
            return read[1]
        plain = self.ledger.about.get("table")
        if read is None or read[0] is not plain:
            read = self._read = plain, as_table(plain)
        return read[1]

    def plan(self, question: Any) -> Plan:
        """Say how a question would be answered and what it costs. Free; no data.

        Parameters
        ----------
        question : mapping or Question
            What `read_question` takes, with its accuracy or its cost.

        Returns
        -------
        Plan
            The mechanism, its price and every candidate.

        Raises
        ------
        QuestionError
            If the question is malformed or does not fit the table.
        """
        return self.planner.plan(self.table, self.canonical(question))

    def canonical(self, question: Any) -> Question:
        """Return the form of a question that all its wordings share; see `canonical`.

        Parameters
        ----------
        question : mapping or Question
            What `read_question` takes.

        Returns
        -------
        Question
            What is planned, and whose name the answer is stored under.
        """
        return canonical(self.table, read_question(question))

    def known(self, question: Any, analyst: str | None = None) -> KnownAnswer | None:
        """Return what stored answers say about a question by now. Free; no data.

        Parameters
        ----------
        question : mapping or Question
            What `read_question` takes. One that states a budget is read at a beta of
            .05.
        analyst : str, optional
            Who asks: the `share` of the table says whose answers she may read.

        Returns
        -------
        KnownAnswer or None
            Numbers and how far they may be off, from one stored answer. None where no
            stored answer tells.

        Raises
        ------
        QuestionError
            If the question is malformed or does not fit the table.

        Examples
        --------
        >>> import ibis
        >>> database = ibis.duckdb.connect()
        >>> rows = "select i % 90 as age from range(450) as t(i)"
        >>> visits = database.raw_sql(f"create table visits as {rows}")
        >>> age = {"name": "age", "cells": {"start": 0, "stop": 90, "width": 10}}
        >>> explorer = Explorer({"name": "visits", "attributes": [age]}, database,
        ...                     epsilon=1)
        >>> asked = {"kind": "histogram", "table": "visits", "attribute": "age"}
        >>> answer = explorer.ask({**asked, "cost": {"alpha": 20}})
        >>> wide = {**asked, "width": 3, "cost": {"alpha": 80}}
        >>> explorer.known(wide).alpha <= 60, explorer.explain(wide)["cost"]
        (True, 0.0)
        >>> free = explorer.ask(wide)
        >>> free.holds, free.sources == (answer.request,), float(free.epsilon)
        ('any', True, 0.0)
        """
        return self._past.read(self.table, self.canonical(question), analyst)

    def register(self, questions: Sequence[Any], *, analyst: str | None = None) -> int:
        """State questions in advance: later answers tell these more narrowly. Free.

        What is read from an answer that is drawn from now on holds for all registered
        questions at once, and their numbers are fewer than those of any question
        (Lemma PA9).

        Parameters
        ----------
        questions : sequence of mappings or Questions
            What `read_question` takes; the cost of each is left aside.
        analyst : str, optional
            Who registers them: where the `share` of the table is "own", only answers
            that she pays for herself tell them more narrowly.

        Returns
        -------
        int
            How many numbers they have together. Fewer of them have narrower intervals.

        Raises
        ------
        QuestionError
            If one is malformed, counts nothing that stored answers tell (sums, means,
            shares, lists of words), or there are none or more than 1,000.

        Examples
        --------
        >>> import ibis
        >>> database = ibis.duckdb.connect()
        >>> rows = "select i % 90 as age from range(450) as t(i)"
        >>> visits = database.raw_sql(f"create table visits as {rows}")
        >>> age = {"name": "age", "cells": {"start": 0, "stop": 90, "width": 1}}
        >>> explorer = Explorer({"name": "visits", "attributes": [age]}, database,
        ...                     epsilon=1)
        >>> asked = {"table": "visits", "attribute": "age", "cost": {"alpha": 60}}
        >>> adults = {**asked, "kind": "ranges", "ranges": [[20, 65]]}
        >>> explorer.register([adults]), float(explorer.ledger.spent)
        (1, 0.0)
        >>> answer = explorer.ask({**asked, "kind": "cumulative"})
        >>> explorer.known(adults).holds
        'any'
        """
        forms = [self.canonical(question) for question in questions]
        for form in forms:
            if isinstance(form, FrequentQuestion) or adds_up(form):
                raise QuestionError(
                    "only counts are read from stored answers; leave questions of the "
                    f"kind {form.kind} out"
                )
        stated = [(bins_of(form), count_numbers(self.table, form)) for form in forms]
        self._past.registrations.note(self.table.name, stated, self._note({}), analyst)
        return sum(numbers for _, numbers in stated)

    def publish(self, request: str) -> None:
        """Let everybody read new questions from a stored answer; the log says so.

        It matters where the `share` of the table is "published".

        Parameters
        ----------
        request : str
            The name of the answer, as `Answer.request` has it.

        Raises
        ------
        CatalogError
            If this table has no such answer.
        """
        if self._stored(request) is None:
            raise CatalogError("there is no answer under this name to publish")
        note = self._note({"publishes": request})
        name = f"published/{request}"
        self.ledger.keep_reading(name, {}, sources=[request], note=note)

    def explain(self, question: Any, analyst: str | None = None) -> dict[str, Any]:
        """Return candidates, cost, and what would remain, as plain data. Free.

        Parameters
        ----------
        question : mapping or Question
            What `read_question` takes.
        analyst : str, optional
            Whose allotment would pay; by default the whole budget.

        Returns
        -------
        dict
            The chosen mechanism, the currency and the cost (0 for an answer that is
            stored, or read from stored ones), what remains now and afterwards, why it
            was chosen, what the same accuracy costs without policies, and every
            candidate. "how" is "stored", "read", "refine", "broad", "public" or
            "fresh"; "known" says within which alpha stored answers tell these numbers
            already, free, and since when; "price_alone" is what the answer costs
            without them, and "price_missing" what the rest costs where one of them is
            made finer; None, with the reason as "not_finer", where none is. "broad" is
            the broader question that would tell these numbers, what it costs, whether
            it is bought, and within which alpha each of its bins is known afterwards,
            free ("bins_within"); None where the table's `broad` is 0, or none tells
            them. "accuracy" is what is promised of the numbers, in the words that the
            answer will have.
        """
        return explained(self, read_question(question), analyst)

    def accuracy(
        self, question: Any, *, beta: float = 0.05, scope: str = "simultaneous"
    ) -> dict[str, Any]:
        """Return the least alpha that the budget of a question promises. Free.

        Parameters
        ----------
        question : mapping or Question
            Its `cost` states a budget in the ledger's currency.
        beta : float
            The probability with which an error may exceed alpha.
        scope : {"simultaneous", "per_query"}
            Whether all answers are within alpha at once, or each by itself.

        Returns
        -------
        dict
            The "alpha" and the name of the "mechanism" that promises it; 0 and
            "public" where no edge of the policy changes the answers.

        Raises
        ------
        QuestionError
            If the question states an accuracy itself, or a budget in another
            currency.
        """
        asked = read_question(question)
        return self.planner.accuracy(self.table, asked, beta=beta, scope=scope)

    @overload
    def ask(
        self,
        question: Mapping[str, Any] | Question,
        *,
        analyst: str | None = None,
        request: str | None = None,
        newest: bool = False,
    ) -> Answer: ...

    @overload
    def ask(
        self,
        question: Sequence[Mapping[str, Any] | Question],
        *,
        analyst: str | None = None,
        request: Sequence[str | None] | None = None,
    ) -> list[Answer]: ...

    def ask(
        self,
        question: Any,
        *,
        analyst: str | None = None,
        request: Any = None,
        newest: bool = False,
    ) -> Answer | list[Answer]:
        """Answer a question: charged once, replayed for free ever after.

        Identical questions share one answer. Several questions in a list are charged in
        one commit, drawn, and stored in another: all of them, or none. Their prices add
        up, and each is asked again by itself like any other.

        Parameters
        ----------
        question : mapping or Question, or a list of them
            What `read_question` takes.
        analyst : str, optional
            Whose allotment pays; by default the whole budget.
        request : str, optional
            A name of the caller's choice. Under a new name the same question is
            counted, drawn and charged anew; under the same name the stored answer
            returns. For a list of questions it is a list of names, None among them for
            questions without one.
        newest : bool, default False
            Whether a question that was answered before is read again from what is
            stored by now, free, where that tells it more narrowly: beside the shown
            answer, which never changes, under a name of its own. One that states a
            budget asks for fresh noise, and is not read.

        Returns
        -------
        Answer or list of Answer
            Numbers, intervals and the promise; all of it is public.

        Raises
        ------
        BudgetError
            If the budget or the allotment does not suffice; nothing is charged.
        LedgerError
            If the name belongs to another question, or the table is closed or
            changed.
        FailedDrawError
            If the draw failed: that is what the charge has come to. In a list the other
            answers are stored, and returned to whoever asks for each by itself.

        Examples
        --------
        >>> import ibis
        >>> database = ibis.duckdb.connect()
        >>> rows = "select i % 90 as age, i % 3 as ward from range(450) as t(i)"
        >>> visits = database.raw_sql(f"create table visits as {rows}")
        >>> age = {"name": "age", "cells": {"start": 0, "stop": 90, "width": 10}}
        >>> ward = {"name": "ward", "levels": [0, 1, 2]}
        >>> table = {"name": "visits", "attributes": [age, ward]}
        >>> explorer = Explorer(table, database, epsilon=1)
        >>> asked = {"kind": "histogram", "table": "visits", "cost": {"epsilon": 0.1}}
        >>> both = [{**asked, "attribute": name} for name in ("age", "ward")]
        >>> [answer.values.size for answer in explorer.ask(both)]
        [9, 3]
        >>> float(explorer.ledger.spent), explorer.ask(both[0]).replayed
        (0.2, True)
        """
        if isinstance(question, list | tuple):
            if newest:
                raise QuestionError(OF_ONE)
            outcomes = self.outcomes(question, analyst=analyst, requests=request)
            answers = [answer for answer in outcomes if isinstance(answer, Answer)]
            if len(answers) < len(outcomes):
                raise FailedDrawError
            return answers
        terms: dict[str, Any] = {"request": request, "newest": newest}
        outcome = self.outcome(question, analyst=analyst, **terms)
        if isinstance(outcome, FailedAnswer):
            raise FailedDrawError
        return outcome

    def outcome(
        self,
        question: Any,
        *,
        analyst: str | None = None,
        request: str | None = None,
        newest: bool = False,
    ) -> Answer | FailedAnswer:
        """Return what `ask` does; a failed draw is returned as well, with its charge.

        Whoever keeps count of questions cannot tell the two apart by it.

        Parameters
        ----------
        question : mapping or Question
            What `read_question` takes.
        analyst : str, optional
            Whose allotment pays.
        request : str, optional
            A name of the caller's choice.
        newest : bool, default False
            Whether what is stored by now is read where it tells more, as in `ask`.

        Returns
        -------
        Answer or FailedAnswer
            What the charge has come to.
        """
        asked = read_question(question)
        form = canonical(self.table, asked)
        if newest:
            sharper = newest_answer(self, asked, request, analyst)
            if sharper is not None:
                return sharper
        name = request_name(form) if request is None else f"r-{request}"
        entry = self._earlier(asked) if request is None else self.ledger.entry(name)
        if entry is not None:
            self._refuse_other_question(entry, form, request)
            name = entry.request
        elif request is None and not self.closed:
            past = self._outcome_of_past(asked, form, name, analyst)
            if past is not None:
                return past
        if entry is not None and entry.state == "stored":
            again = self._answer_read(entry, asked, replayed=True)
            if again is not None:
                self._note_receipt(entry, asked, analyst)
                return again
        # What was charged is answered, also where it would take too long today.
        plan = self.planner.plan(self.table, form, limited=entry is None)
        note = self._note({"question": asked.model_dump(mode="json")})
        entry = self.ledger.entry(name)
        if entry is not None:
            self._refuse_other_question(entry, form, request)
            note = dict(entry.note or {})
        replayed = entry is not None and entry.state == "stored"
        try:
            release = self.ledger.replay(name) if replayed else None
            if release is None:
                if entry is None and not self.closed:
                    self._check_affordable({name: plan.cost}, analyst)
                release = self._release(plan, plan.mechanism, name, analyst, note)
        except FailedDrawError:
            charged = entry or self.ledger.entry(name)
            assert charged is not None, "a failed draw without a charge"
            return FailedAnswer(name, charged.budget, replayed)
        charged = entry or self.ledger._entry_of(release) or self.ledger.entry(name)
        answer = answer_from(plan, release, name, charged, replayed=replayed)
        if replayed and charged is not None:
            self._note_receipt(charged, asked, analyst)
        return in_asked_order(answer, asked)

    def outcomes(
        self,
        questions: Sequence[Any],
        *,
        analyst: str | None = None,
        requests: Sequence[str | None] | None = None,
    ) -> list[Answer | FailedAnswer]:
        """Return what `ask` does for a list; failed draws too, with their charges.

        What must be paid is paid in one commit, by all or by none, and stored in
        another. What stored answers tell is read from them, as they are before the
        batch; answers of the same batch are not read for each other.

        Parameters
        ----------
        questions : sequence of mappings or Questions
            At least one, at most `MOST_QUESTIONS`.
        analyst : str, optional
            Whose allotment pays.
        requests : sequence of str or None, optional
            A name of the caller's choice for each, or None.

        Returns
        -------
        list of Answer or FailedAnswer
            What each charge has come to, in the order of the questions. The same
            question a second time is replayed.

        Raises
        ------
        QuestionError
            If one is malformed, or there are too many; nothing is charged.
        BudgetError
            If the budget or the allotment does not suffice for all of them; nothing is
            charged.
        """
        return batched_outcomes(self, questions, requests, analyst)

    def _note_receipt(self, paid: Entry, asked: Question, analyst: str | None) -> None:
        """Note who else got an answer: it is in her history, and hers to open again.

        What is noted follows from the public transcript. Where nothing can be written,
        the stored answer is given all the same.
        """
        if analyst is None or paid.analyst == analyst:
            return
        name = receipt_name(analyst, paid.request)
        with suppress(BlowfishError):
            if self.ledger.entry(name) is None:
                question = asked.model_dump(mode="json")
                note = self._note({"question": question, "received": paid.request})
                self.ledger.keep_reading(
                    name, {}, sources=[paid.request], analyst=analyst, note=note
                )

    def may_open(self, request: str, analyst: str | None) -> bool:
        """Return whether somebody got an answer: paid for it, or was given it.

        Parameters
        ----------
        request : str
            The name of the answer.
        analyst : str or None
            Who wants to see it; None for the curator, who may see all.

        Returns
        -------
        bool
            False where there is no such answer too.
        """
        entry = self.ledger.entry(request)
        if entry is None or analyst in (None, entry.analyst):
            return entry is not None
        return self.ledger.entry(receipt_name(analyst, request)) is not None

    def _earlier(self, asked: Question) -> Entry | None:
        """Return the charge of the same question, in whatever words it was asked."""
        entry = self.ledger.entry(request_name(canonical(self.table, asked)))
        # Ledgers that were written before know a question by its own words.
        return entry or self.ledger.entry(request_name(asked))

    def _refuse_other_question(
        self, entry: Entry, form: Question, request: str | None
    ) -> None:
        """Refuse a name that stands for another question, or another table's."""
        note = entry.note or {}
        stated = note.get("question") or {}
        same = stated.get("table") == self.table.name and note == {
            **self._note({"question": stated}),
            **({"read": note["read"]} if "read" in note else {}),
        }
        if not same or self.canonical(stated) != form:
            self._refuse_name(request)

    @staticmethod
    def _refuse_name(request: str | None) -> NoReturn:
        raise LedgerError(
            f"the request {request!r} was made for another question; nothing was "
            "charged. Choose another name"
        )

    def _sufficient_reading(
        self, form: Question, analyst: str | None
    ) -> KnownAnswer | None:
        """Return what stored answers tell; None where they do not suffice."""
        if not isinstance(form.cost, Accuracy):
            # Whoever states a budget wants fresh noise.
            return None
        reading = self._past.read(self.table, form, analyst)
        return reading if reading is not None and reading.suffices(form) else None

    def _outcome_of_past(
        self, asked: Question, form: Question, name: str, analyst: str | None
    ) -> Answer | FailedAnswer | None:
        """Answer from stored answers, a finer or a broader one; None for a fresh one.

        What is cheaper follows from the public transcript.
        """
        reading = self._sufficient_reading(form, analyst)
        if reading is not None:
            return self._answer_from_past(reading, asked, name, analyst)
        if self.table.snapshot is None and not self.table.broad:
            return None
        plan = self.planner.plan(self.table, form)
        finer = None if plan.free else self.refining.plan(form, analyst)
        cheaper = finer is not None and finer.cost < plan.cost
        if self.table.broad and not plan.free:
            price = finer.cost if finer is not None and cheaper else plan.cost
            broad = self.broadening.plan(form, price, analyst)
            if broad is not None:
                return self._outcome_of_broad(broad, plan, asked, analyst)
        if finer is None or not cheaper:
            return None
        try:
            reading = self.refining.buy(finer, plan.layout, analyst)
        except FailedDrawError:
            charged = self.ledger.entry(finer.name)
            assert charged is not None, "a failed draw without a charge"
            return FailedAnswer(finer.name, charged.budget, False)
        except LedgerError:
            again = self.refining.plan(form, analyst)
            if again is not None and again.chain == finer.chain:
                raise
            # Somebody made it finer just now: what is missing has another price.
            return self.outcome(asked, analyst=analyst)
        paid = {"paid": finer.name}
        return self._answer_from_past(reading, asked, name, analyst, paid)

    def _outcome_of_broad(
        self, broad: BroaderAnswer, plan: Plan, asked: Question, analyst: str | None
    ) -> Answer | FailedAnswer | None:
        """Buy a broader answer and read a question from it: Lemma PA10."""
        try:
            reading = self.broadening.buy(broad, plan.layout, analyst)
        except FailedDrawError:
            charged = self.ledger.entry(broad.name)
            assert charged is not None, "a failed draw without a charge"
            return FailedAnswer(broad.name, charged.budget, broad.charged is not None)
        name, paid = request_name(plan.layout.question), {"paid": broad.name}
        return self._answer_from_past(reading, asked, name, analyst, paid)

    def _answer_from_past(
        self,
        reading: KnownAnswer,
        asked: Question,
        name: str,
        analyst: str | None,
        paid: Mapping[str, str] | None = None,
    ) -> Answer | None:
        """Answer from stored answers and note it; None if it was charged meanwhile."""
        plain = {
            "values": reading.values.tolist(),
            "half_widths": reading.half_widths.tolist(),
        }
        how = {"rule": RULE, "holds": reading.holds, "by": reading.by, **(paid or {})}
        note = self._note({"question": asked.model_dump(mode="json")})
        entry = self.ledger.keep_reading(
            name,
            plain,
            sources=[reading.source.request],
            analyst=analyst,
            note={**note, "read": {**how, "sources": [reading.source.request]}},
        )
        return self._answer_read(entry, asked, replayed=False)

    def _answer_read(
        self, entry: Entry, asked: Question, *, replayed: bool
    ) -> Answer | None:
        """Return an answer that was read from others; None if it was drawn."""
        return shown_again(self, entry, asked, replayed=replayed)

    def _note(self, about: dict[str, Any]) -> dict[str, Any]:
        """Return what the log keeps with a charge; which table, where several share."""
        return about if self.people is None else {**about, "tables": [self.table.name]}

    def _release(
        self,
        plan: Plan,
        mechanism: Mechanism,
        name: str,
        analyst: str | None,
        note: Any,
    ) -> Release:
        """Count the bins of a question, and charge the table's ledger or its people's.

        A table that was closed, or whose records are others by now, is not counted.
        """
        table = plan.layout.table
        self._check_unchanged()
        self._check_columns(table)
        version = self.content_label()
        data = self._counted(plan)
        of: dict[str, Any] = {
            "request": name,
            "analyst": analyst,
            "note": note,
            "snapshot": table.snapshot,
            "vouched": mechanism.name in self.vouched,
        }
        if self.people is not None:
            return self.people.release(table.name, mechanism, data, **of)
        return self.ledger.release(
            mechanism, data, version=self.content_since(version), **of
        )

    def content_label(self) -> str | None:
        """Return a label of the content of the records, where answers are made finer.

        Returns
        -------
        str or None
            It tells whether records are the same, and nothing of them. None where
            nobody knows that, or where it is of no use; see `explain`.
        """
        if self.table.snapshot is None or refusal(self) is not None:
            return None
        return self._labels.now()

    def content_since(self, label: str | None) -> str | None:
        """Return a label that `content_label` told before counting, if it still holds.

        Parameters
        ----------
        label : str or None
            What it told.

        Returns
        -------
        str or None
            None if the records may have changed meanwhile.
        """
        return label if label is not None and label == self.content_label() else None

    def _check_unchanged(self) -> None:
        """Refuse to count a closed table, and records that are others by now."""
        table = self.table
        if self.closed:
            raise LedgerError(
                f"{table.name!r} was closed: answers that were given before stay, and "
                "new ones are not given; nothing was charged"
            )
        if self.seen is not None and self.engine.version() != self.seen:
            raise LedgerError(
                f"the records of {table.name!r} are no longer those of the frozen "
                f"snapshot {table.snapshot!r}; nothing was charged. Put them back, or "
                "clone the table without a snapshot"
            )

    def _counted(self, plan: Plan) -> Any:
        """Return the true counts of a plan: of its bins, or of the words that occur."""
        if isinstance(plan.layout.question, FrequentQuestion):
            return self.engine.words(plan.layout)
        counts = self.engine.counts(plan.layout)
        return plan.layout.table.bounded(counts, plan.policy.domain)

    def _check_affordable(
        self, costs: Mapping[str, Fraction], analyst: str | None
    ) -> None:
        """Refuse what cannot be paid in all, before the database is asked.

        The time of counting depends on records, and nobody may watch it for nothing.
        """
        ledger, currency = self.ledger, self.ledger.currency
        left = currency.granted(self.remaining(analyst))
        due = sum(map(currency.charged, costs.values()))
        if due <= left:
            return
        # Somebody else may have paid for the same questions just now.
        paid = ledger.entries(list(costs))
        due = sum(
            currency.charged(cost) for name, cost in costs.items() if name not in paid
        )
        if due <= left:
            return
        if analyst is not None and not ledger.allotments(analyst):
            raise BudgetError(
                f"{analyst!r} has no allotment here; nothing was charged. The curator "
                "grants one"
            )
        what = "answer costs" if len(costs) == 1 else f"{len(costs)} answers cost"
        raise BudgetError(
            f"the {what} {currency.words(due)}, and "
            f"{currency.text(left)} remains; nothing was charged. Ask for less "
            f"accuracy, or for a smaller {currency.name}"
        )

    def answered(self, request: str) -> Answer | None:
        """Return an answer that was given before; None if there is none. Free.

        Parameters
        ----------
        request : str
            The name that an `Answer` carries.

        Returns
        -------
        Answer or None
            The stored answer of this table, marked as replayed.
        """
        noted = self.ledger.entry(request)
        question = {} if noted is None else (noted.note or {}).get("question", {})
        if noted is not None and question.get("table") == self.table.name:
            past = self._answer_read(noted, read_question(question), replayed=True)
            if past is not None:
                return past
        stored = self._stored(request)
        if stored is None:
            return None
        plan, release, entry = stored
        answer = answer_from(plan, release, request, entry, replayed=True)
        return in_asked_order(answer, read_question(question))

    def _stored(self, request: str) -> tuple[Plan, Release, Entry] | None:
        """Return the plan, the release and the charge of an answer of this table."""
        entry, release = self.ledger.entry(request), self.ledger.replay(request)
        question = {} if entry is None else (entry.note or {}).get("question", {})
        if entry is None or release is None or question.get("table") != self.table.name:
            return None
        form = self.canonical(question)
        return self.planner.plan(self.table, form, limited=False), release, entry

    def certify(
        self,
        request: str,
        *,
        analyst: str | None = None,
        fraction: float = 0.95,
        confidence: float = 0.95,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
    ) -> Certificate:
        """Buy a certificate of how far an answer is off the truth; see `Certificate`.

        It is about the records as they are now, and is charged once for the same terms.

        Parameters
        ----------
        request : str
            The name of the answer, as `Answer.request` has it.
        analyst : str, optional
            Whose allotment pays; by default the whole budget.
        fraction : float
            The part of the answers that the claim is about; see `Certifier`.
        confidence : float
            The probability with which the claim holds.
        epsilon : number, optional
            What the certificate costs, in epsilon.
        rho : number, optional
            What it costs in rho, instead of epsilon.
        delta : number, optional
            Stated beside epsilon; see `Ledger`.

        Returns
        -------
        Certificate
            It is bought once for the same terms, and replayed afterwards.

        Raises
        ------
        CatalogError
            If no answer is stored under that name.
        BudgetError
            If the budget or the allotment does not suffice; nothing is charged.
        """
        stored = self._stored(request)
        if stored is None:
            raise CatalogError("there is no answer under this name to certify")
        plan, release, _ = stored
        if isinstance(plan.layout.question, FrequentQuestion) or plan.work.amounts:
            raise QuestionError(
                "the intervals of listed values, sums, means and shares hold the truth "
                "already; there is nothing to certify"
            )
        certifier = _certifier(
            plan,
            release,
            fraction=fraction,
            confidence=confidence,
            epsilon=epsilon,
            rho=rho,
            delta=delta,
        )
        name = certificate_name(request, certifier)
        certificate: Any = self.ledger.replay(name)
        if certificate is not None and not certifier.states_terms_of(certificate):
            raise LedgerError(
                f"{name!r} was bought on other terms, by a version that cut numbers "
                "short in names; nothing was charged",
                way_out="State a fraction or a confidence that differs a little",
            )
        if certificate is None:
            cost = price_in(certifier, self.ledger.currency)
            self._check_affordable({name: cost}, analyst)
            note = self._note({"certifies": request})
            certificate = self._release(plan, certifier, name, analyst, note)
        return cast(Certificate, certificate)

    def drawn_again(self, request: str) -> tuple[Mechanism, Any] | None:
        """Return what `verify_opened` takes of a stored answer: mechanism and data.

        The data are the records as they are now, true counts among them: only for
        whoever may see these.

        Parameters
        ----------
        request : str
            The name of the answer, or of a certificate.

        Returns
        -------
        tuple or None
            None if this table has no such answer, or if the log does not say what was
            asked, as of releases that were made in Python.
        """
        entry = self.ledger.entry(request)
        if entry is None or entry.state != "stored":
            return None
        note = entry.note or {}
        if "certifies" in note:
            certified: Any = self.ledger.replay(request)
            stored = self._stored(note["certifies"])
            if stored is None:
                return None
            plan = stored[0]
            mechanism: Mechanism = _certifier(
                plan,
                stored[1],
                fraction=certified.fraction,
                confidence=certified.confidence,
                epsilon=certified.guarantee.budget,
            )
        elif note.get("question", {}).get("table") == self.table.name:
            plan = self.plan(note["question"])
            mechanism = plan.mechanism
        else:
            return None
        return mechanism, self._counted(plan)

    def history(
        self,
        analyst: str | None = None,
        *,
        last: int | None = None,
        before: int | None = None,
    ) -> list[Entry]:
        """Return all charges, or those of one analyst, oldest first.

        Parameters
        ----------
        analyst : str, optional
            Whose charges are listed; by default everybody's.
        last : int, optional
            How many of the last ones are listed; by default all.
        before : int, optional
            Only entries of smaller numbers: the first of one page ends the page before.

        Returns
        -------
        list of Entry
            Charges of this table alone, also where several tables share one ledger.
        """
        if self.people is None:
            return self.ledger.history(last=last, before=before, analyst=analyst)
        own, entries = [self.table.name], list[Entry]()
        # Charges of the other tables lie between its own: page after page is read.
        while last is None or len(entries) < last:
            page = self.ledger.history(
                last=MOST_AT_ONCE, before=before, analyst=analyst
            )
            of_this = [
                entry for entry in page if (entry.note or {}).get("tables") == own
            ]
            entries = of_this + entries
            if len(page) < MOST_AT_ONCE:
                break
            before = page[0].number
        return entries if last is None else entries[-last:]

    def remaining(self, analyst: str | None = None) -> Fraction:
        """Return what may still be spent, by an analyst or in all.

        Parameters
        ----------
        analyst : str, optional
            Whose allotment is meant; by default the whole budget.

        Returns
        -------
        Fraction
            An amount in the ledger's currency.
        """
        return self.ledger.remaining_for(analyst)

    def set_policies(self, policies: Mapping[str, Any]) -> None:
        """State other policies; refused after the first charge.

        Parameters
        ----------
        policies : mapping
            Policies by attribute, which replace all others. Empty states the
            default again, under which whole records are secret.

        Raises
        ------
        LedgerError
            If something was charged, or the table shares the budget of a
            population.
        """
        if self.people is not None:
            raise LedgerError(
                f"{self.table.name!r} shares its budget with other tables of "
                f"{self.people.name!r}; its policies are stated with its description"
            )
        table = self._under(policies)
        about = {**self.ledger.about, "table": table.to_dict()}
        self.ledger.amend(policy=table.policy(), about=about)

    def _under(self, policies: Mapping[str, Any] | None) -> TableSpec:
        """Return the table under other policies, or as it is."""
        return self.table if policies is None else self.table.with_policies(policies)

    def set_budget(self, amount: Any) -> None:
        """State another budget in its currency; refused after the first charge.

        Parameters
        ----------
        amount : number
            The new whole budget.

        Raises
        ------
        LedgerError
            If something was charged already.
        """
        terms: Any = {self.ledger.currency.name: amount}
        self.ledger.amend(**terms)

    def preview(
        self,
        question: Any,
        *,
        epsilon: float,
        policies: Mapping[str, Any] | None = None,
        compared: Sequence[Mapping[str, Any]] = (),
    ) -> dict[str, Any]:
        """Show the curator alone the truth beside a private answer; never charged.

        Parameters
        ----------
        question : mapping or Question
            What is asked; its own cost is replaced.
        epsilon : float
            What each private answer spends, in the currency of the ledger.
        policies : mapping, optional
            Policies to try instead of the table's own.
        compared : sequence of mappings
            Further policies. Their answers are drawn from the same counts.

        Returns
        -------
        dict
            The "truth", the "private" answer, and those under the other policies as
            "compared". Where at most so many records of a person count, the truth is of
            these, and "whole" of all records; else "whole" is None. Neither must reach
            an analyst.
        """
        asked, tables = self.to_preview(question, epsilon, (policies, *compared))
        plans = [self.planner.plan(table, asked) for table in tables]
        # Bins follow from attributes, not from policies.
        counts = self.engine.counts(plans[0].layout)
        private = []
        for plan in plans:
            data = plan.layout.table.bounded(counts, plan.policy.domain)
            answer = answer_from(plan, plan.mechanism.release(data), "preview")
            private.append(answer.to_dict())
        whole = None
        if self.table.person is not None:
            every = lay_out(self.table.with_all_records(), asked)
            whole = _true_answer(plans[0], self.engine.counts(every)).tolist()
        return {
            "truth": _true_answer(plans[0], counts).tolist(),
            "whole": whole,
            "private": private[0],
            "compared": private[1:],
        }

    def true_losses(self) -> dict[str, Any]:
        """Show the curator alone how many records each `at_most` leaves out.

        Returns
        -------
        dict
            What `true_losses` of ``truncation`` returns; it must not reach an analyst.

        Raises
        ------
        CatalogError
            If the table names no column of persons.
        """
        most = self._stated_bound()
        return true_losses(self.engine.held(self.table), most)

    def _stated_bound(self) -> int:
        """Return the `at_most` of the table, or refuse."""
        if self.table.at_most is None:
            raise CatalogError(
                f"{self.table.name!r} names no column of persons: all records count"
            )
        return self.table.at_most

    def known_loss(self) -> dict[str, Any] | None:
        """Return what was measured of the records that are left out. Free; public.

        Returns
        -------
        dict or None
            What `measure_loss` returned; None before.
        """
        if self.table.at_most is None or self.people is not None:
            return None
        return self.ledger.reading(LOSS)

    def measure_loss(
        self,
        up_to: int,
        *,
        confidence: float = 0.95,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
    ) -> dict[str, Any]:
        """Measure privately how many records `at_most` leaves out; for everybody.

        It is charged once, and returned as it was ever after. Where the policy does not
        hide how many records a person has, it is exact and free; see
        `truncation_loss`.

        Parameters
        ----------
        up_to : int
            The last record of each person that is looked at, above `at_most`; public.
        confidence : float
            How surely the interval holds the number.
        epsilon : number, optional
            What it may cost.
        rho : number, optional
            What it may cost in rho, instead.
        delta : number, optional
            Stated beside epsilon; see `Ledger`.

        Returns
        -------
        dict
            Estimate, interval and a sentence; all of it is public.

        Raises
        ------
        CatalogError
            If the table names no persons, or shares its budget with others.
        BudgetError
            If the budget does not suffice; nothing is charged.
        """
        measured = self.known_loss()
        if measured is not None:
            return measured
        most = self._stated_bound()
        if self.people is not None:
            raise CatalogError(
                f"{self.table.name!r} shares its budget with other tables of "
                f"{self.people.name!r}, which are not measured together"
            )
        price = Budget.stated(epsilon=epsilon, rho=rho, delta=delta)
        if price.power != self.ledger.currency.power:
            raise LedgerError(
                f"this table counts {self.ledger.currency.name}; received "
                f"{price.words()}"
            )
        terms: dict[str, Any] = {
            "at_most": most,
            "up_to": up_to,
            "confidence": confidence,
            "epsilon": price,
        }
        # About nobody, in no ledger: what is wrong is refused before records are read.
        truncation_loss([], **terms)
        name = loss_name(most, up_to, price.words(), confidence)
        public = not self.ledger.policy.has_bottom
        if not public:
            self._check_affordable({name: price.amount}, None)
        self._check_unchanged()
        held = self.engine.held(self.table)
        (lost,) = truncation_loss(held, ledger=self.ledger, request=name, **terms)
        sources = [] if public else [name]
        self.ledger.keep_reading(
            LOSS, plain_loss(lost), sources=sources, note=self._note({"lost": most})
        )
        told = self.known_loss()
        assert told is not None, "it was kept a line above"
        return told

    def to_preview(
        self,
        question: Any,
        epsilon: float,
        policies: Sequence[Mapping[str, Any] | None],
    ) -> tuple[Question, list[TableSpec]]:
        """Return what `preview` plans: the question and the tables. Free; no data.

        Parameters
        ----------
        question : mapping or Question
            What is asked; its own cost is replaced.
        epsilon : float
            What each private answer spends, in the currency of the ledger.
        policies : sequence of mappings
            Policies to try; None for the table's own.

        Returns
        -------
        question : Question
            With the budget as its cost.
        tables : list of TableSpec
            The table under each of the policies.

        Raises
        ------
        QuestionError
            If it asks for a list of words, which has no truth of the same shape.
        """
        asked = read_question(question)
        spent = read_spending({self.ledger.currency.name: epsilon})
        asked = asked.model_copy(update={"cost": spent})
        if isinstance(asked, FrequentQuestion):
            raise QuestionError(
                "a list of frequent values has no truth of the same shape to stand "
                "beside; ask explain for its threshold"
            )
        return asked, [self._under(other) for other in policies]

    def shape(self, question: Any, policies: Mapping[str, Any] | None = None) -> Shape:
        """Return the bins of a question and the policy over them. Free; no data.

        Parameters
        ----------
        question : mapping or Question
            What is asked, whatever it may cost.
        policies : mapping, optional
            Policies to try instead of the table's own.

        Returns
        -------
        Shape
            Bins, policy and queries.
        """
        return self.planner.shape(self._under(policies), read_question(question))

    def trade_off(
        self, question: Any, thetas: Sequence[int] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Return what an accuracy costs at each threshold, the largest threshold first.

        Parameters
        ----------
        question : mapping or Question
            It states an accuracy over an ordered attribute.
        thetas : sequence of int, optional
            Thresholds in cells; by default nine, evenly spaced on a logarithmic
            scale.

        Returns
        -------
        iterator of dict
            Each has a "theta" (None for whole records) and its "cost"; see
            `Planner.trade_off`.

        Yields
        ------
        dict
            A "theta" (None for whole records) and its "cost".
        """
        return self.planner.trade_off(self.table, read_question(question), thetas)


def _true_answer(plan: Plan, counts: IntArray) -> FloatArray:
    """Return the true answer of a question, in its shape: for the curator alone."""
    layout = plan.layout
    rows = plan.workload.answer(counts.reshape(plan.policy.domain.shape))
    truth: FloatArray = np.asarray(rows, dtype=np.float64)
    if plan.work.amounts:
        truth = answers_of_rows(layout, truth)
    if truth.size == int(np.prod(layout.asked_shape)):
        truth = truth.reshape(layout.asked_shape)
    return truth


def _certifier(plan: Plan, release: Release, **terms: Any) -> Certifier:
    """Return what certifies an answer on stated terms."""
    snapshot = plan.layout.table.snapshot
    return Certifier(
        release, plan.workload, policy=plan.policy, snapshot=snapshot, **terms
    )


def receipt_name(analyst: str, request: str) -> str:
    """Return the name under which it is noted that somebody got an answer.

    Parameters
    ----------
    analyst : str
        Who got it.
    request : str
        The name of the answer.

    Returns
    -------
    str
        A name that no question has: "g-" and a hash of both.
    """
    text = json.dumps([analyst, request])
    return "g-" + hashlib.sha256(text.encode()).hexdigest()[:40]


def certificate_name(request: str, certifier: Certifier) -> str:
    """Return the name of a certificate: other terms, to the last digit, another name.

    Short decimals stand in the name as decimals, other numbers as exact fractions.

    Parameters
    ----------
    request : str
        The name of the answer that is certified.
    certifier : Certifier
        Its budget, fraction and confidence are the terms.

    Returns
    -------
    str
        A name that starts with "c-".
    """
    budget = certifier.budget
    stated = (budget.amount, certifier.fraction, certifier.confidence)
    paid, fraction, confidence = map(_exact_text, stated)
    return f"c-{request}/{budget.currency} = {paid}/{fraction}/{confidence}"


def _exact_text(number: Fraction) -> str:
    short = f"{float(number):g}"
    return short if Fraction(short) == number else str(number)

"""Several questions in one list: looked up, paid in one commit, stored in another.

read, plan, look for earlier answers     each question; public values alone
can the sum be paid                      before the database is asked
count, charge all, draw all, store all   ``Ledger.release_together``
numbers and intervals                    each question, from what is stored
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from blowfish_fast._support.validation import quoted
from blowfish_fast.accounting.request import NamedRequest
from blowfish_fast.accounting.statements import Entry
from blowfish_fast.errors import FailedDrawError, QuestionError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.release.file import Release

from .answers_given import Answer, answer_from
from .past_answers import KnownAnswer
from .planning import Plan
from .questions import Question, read_question
from .same_question import canonical, in_asked_order, request_name

MOST_QUESTIONS = 64
"""Questions that are asked in one batch."""


class FailedAnswer(NamedTuple):
    """A charge whose draw failed, as the log shows it.

    Attributes
    ----------
    request : str
        The name of the question in the ledger.
    budget : Budget
        What was charged, once.
    replayed : bool
        Whether it had been charged before.
    """

    request: str
    budget: Budget
    replayed: bool


@dataclass
class _BatchedQuestion:
    """One question of a batch, and what is known of it before anything is paid."""

    asked: Question
    form: Question
    name: str
    entry: Entry | None
    plan: Plan | None = None
    reading: KnownAnswer | None = None
    answer: Answer | None = None

    @property
    def planned(self) -> Plan:
        """How it is answered, where numbers are or were drawn for it."""
        assert self.plan is not None, "only what was read has no plan"
        return self.plan

    @property
    def is_fresh(self) -> bool:
        """Whether it must still be drawn: no answer is stored, none is read."""
        answered = self.entry is not None and self.entry.state == "stored"
        return self.plan is not None and not answered


def batched_outcomes(
    explorer: Any,
    questions: Sequence[Any],
    requests: Sequence[str | None] | None,
    analyst: str | None,
) -> list[Answer | FailedAnswer]:
    """Return what `Explorer.outcomes` does.

    Parameters
    ----------
    explorer : Explorer
        The table that is asked.
    questions : sequence of mappings or Questions
        At least one, at most `MOST_QUESTIONS`.
    requests : sequence of str or None, or None
        A name of the caller's choice for each, or None.
    analyst : str or None
        Whose allotment pays.

    Returns
    -------
    list of Answer or FailedAnswer
        What each charge has come to, in the order of the questions.
    """
    batch = _looked_up(explorer, questions, requests, analyst)
    fresh = {waiting.name: waiting for waiting in batch if waiting.is_fresh}
    unpaid = {
        name: waiting.planned.cost
        for name, waiting in fresh.items()
        if waiting.entry is None
    }
    if unpaid and not explorer.closed:
        explorer._check_affordable(unpaid, analyst)
    for waiting in batch:
        if waiting.reading is not None:
            waiting.answer = explorer._answer_from_past(
                waiting.reading, waiting.asked, waiting.name, analyst
            )
    drawn = _released_together(explorer, list(fresh.values()), analyst)
    return [
        _outcome_of(explorer, waiting, drawn, analyst, first=first)
        for waiting, first in zip(batch, _firsts(batch), strict=True)
    ]


def _looked_up(
    explorer: Any,
    questions: Sequence[Any],
    requests: Sequence[str | None] | None,
    analyst: str | None,
) -> list[_BatchedQuestion]:
    """Read and plan the questions of a batch, and look for earlier answers."""
    asked = [read_question(question) for question in questions]
    names = [None] * len(asked) if requests is None else requests
    if isinstance(names, str) or len(names) != len(asked):
        raise QuestionError(
            "a batch has a name for each question, or None in its place",
            received=quoted(requests),
        )
    if not 0 < len(asked) <= MOST_QUESTIONS:
        raise QuestionError(
            f"a batch has 1 to {MOST_QUESTIONS} questions",
            received=f"{len(asked)}",
            way_out="Ask in several batches. Nothing was charged",
        )
    # Read once: every reading asks the ledger whether its terms were amended.
    table = explorer.table
    forms = [canonical(table, question) for question in asked]
    own = [request_name(form) for form in forms]
    # Ledgers that were written before know a question by its own words.
    old = [request_name(question) for question in asked]
    chosen = [
        (first, earlier) if request is None else (f"r-{request}",)
        for first, earlier, request in zip(own, old, names, strict=True)
    ]
    entries = explorer.ledger.entries(list({name for pair in chosen for name in pair}))
    batch, forms_of = list[_BatchedQuestion](), dict[str, Question]()
    for question, form, places, request in zip(
        asked, forms, chosen, names, strict=True
    ):
        entry = next((entries[name] for name in places if name in entries), None)
        name = places[0] if entry is None else entry.request
        if entry is not None:
            explorer._refuse_other_question(entry, form, request)
        if forms_of.setdefault(name, form) != form:
            explorer._refuse_name(request)
        waiting = _BatchedQuestion(question, form, name, entry)
        if entry is None and request is None and not explorer.closed:
            waiting.reading = explorer._sufficient_reading(form, analyst)
        read_before = entry is not None and "read" in (entry.note or {})
        if entry is None and request is None and table.broad:
            # What was bought for it and not read yet is read from that, free.
            read_before = explorer.broadening.begun(form) is not None
        if waiting.reading is None and not read_before:
            limited = entry is None
            waiting.plan = explorer.planner.plan(table, form, limited=limited)
        batch.append(waiting)
    return batch


def _released_together(
    explorer: Any, fresh: list[_BatchedQuestion], analyst: str | None
) -> dict[str, Release | None]:
    """Count, charge, draw and store; None for what could not be drawn."""
    if not fresh:
        return {}
    explorer._check_unchanged()
    table = explorer.table
    explorer._check_columns(table)
    requests = []
    for waiting in fresh:
        mechanism = waiting.planned.mechanism
        version = explorer.content_label()
        data = explorer._counted(waiting.planned)
        note = explorer._note({"question": waiting.asked.model_dump(mode="json")})
        if waiting.entry is not None:
            note = dict(waiting.entry.note or {})
        requests.append(
            NamedRequest(
                mechanism,
                data,
                waiting.name,
                note,
                table.snapshot,
                mechanism.name in explorer.vouched,
                explorer.content_since(version),
            )
        )
    names = [waiting.name for waiting in fresh]
    try:
        if explorer.people is not None:
            release = explorer.people.release_together
            releases = release(explorer.table.name, requests, analyst=analyst)
        else:
            releases = explorer.ledger.release_together(requests, analyst=analyst)
    except FailedDrawError:
        return {name: _drawn_or_failed(explorer, name) for name in names}
    return dict(zip(names, releases, strict=True))


def _drawn_or_failed(explorer: Any, name: str) -> Release | None:
    """Return a stored release, or None for a stored failure."""
    try:
        release: Release | None = explorer.ledger.replay(name)
    except FailedDrawError:
        return None
    return release


def _outcome_of(
    explorer: Any,
    waiting: _BatchedQuestion,
    drawn: dict[str, Release | None],
    analyst: str | None,
    *,
    first: bool,
) -> Answer | FailedAnswer:
    """Return what one question of a batch has come to."""
    name, entry, asked = waiting.name, waiting.entry, waiting.asked
    if waiting.answer is not None:
        return waiting.answer if first else replace(waiting.answer, replayed=True)
    if waiting.plan is None:
        # It was read before, or somebody else has paid for it just now.
        alone: Answer | FailedAnswer = explorer.outcome(asked, analyst=analyst)
        return alone
    replayed = not (waiting.is_fresh and first)
    release = drawn[name] if waiting.is_fresh else _drawn_or_failed(explorer, name)
    paid = entry
    if paid is None and release is not None:
        paid = explorer.ledger._entry_of(release)
    paid = paid or explorer.ledger.entry(name)
    assert paid is not None, "an answer without a charge"
    if release is None:
        return FailedAnswer(name, paid.budget, replayed)
    answer = answer_from(waiting.planned, release, name, paid, replayed=replayed)
    if replayed:
        explorer._note_receipt(paid, asked, analyst)
    return in_asked_order(answer, asked)


def _firsts(batch: list[_BatchedQuestion]) -> list[bool]:
    """Return of each question of a batch whether it is the first of its name."""
    seen = set[str]()
    firsts = []
    for waiting in batch:
        firsts.append(waiting.name not in seen)
        seen.add(waiting.name)
    return firsts

"""Answers that were read from stored ones: shown again, and read once more.

    asked     within 40, charged           shown: 312 within 40
    later     the same bins within 8       stored: a sharper source
    newest    free, under another name     beside it: 317 within 12, from that source

What was shown never changes: the newer answer is an entry of its own, at no cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast.accounting.statements import Entry
from blowfish_fast.apps.explorer.answers_given import Answer, answer_read
from blowfish_fast.apps.explorer.layout import lay_out
from blowfish_fast.apps.explorer.questions import Accuracy, Question
from blowfish_fast.apps.explorer.same_question import canonical, in_asked_order
from blowfish_fast.errors import QuestionError

OF_ONE = "the newest answer is that of one question; ask for each by itself"


def shown_again(
    explorer: Any, entry: Entry, asked: Question, *, replayed: bool
) -> Answer | None:
    """Return an answer that was read from others; None if it was drawn.

    Parameters
    ----------
    explorer : Explorer
        The table.
    entry : Entry
        What the log says of the answer.
    asked : Question
        The question, in the words in which it is asked now.
    replayed : bool
        Whether the answer was stored before it was asked for this time.

    Returns
    -------
    Answer or None
        The answer, in the order in which it was asked for.
    """
    reading = explorer.ledger.reading(entry.request)
    if reading is None:
        return None
    told = (entry.note or {})["read"]
    source = explorer.ledger.entry(told["sources"][0])
    assert source is not None, "charges stay"
    layout = lay_out(explorer.table, canonical(explorer.table, asked))
    answer = answer_read(
        layout,
        np.array(reading["values"]),
        np.array(reading["half_widths"]),
        entry,
        source,
        replayed=replayed,
    )
    return in_asked_order(answer, asked)


def newest_answer(
    explorer: Any, asked: Question, request: str | None, analyst: str | None
) -> Answer | None:
    """Read a question that was answered before from what is stored by now.

    Which answer is the sharper one follows from what was promised of both, which is
    public, and never from how well their numbers agree (Lemma PA1).

    Parameters
    ----------
    explorer : Explorer
        The table.
    asked : Question
        The question.
    request : str or None
        A name of the caller's choice, which is refused.
    analyst : str or None
        Who asks.

    Returns
    -------
    Answer or None
        The newer answer; None where the shown one is as good, or there is none, and
        for a stated budget: whoever states one wants fresh noise.

    Raises
    ------
    QuestionError
        If the question has a name of its own.
    """
    if request is not None:
        raise QuestionError(
            "a name brings back the answer that it stands for, which never changes; "
            "leave request out to read the newest one"
        )
    earlier, cost = explorer._earlier(asked), asked.cost
    stored = earlier is not None and earlier.state == "stored"
    if not stored or not isinstance(cost, Accuracy):
        return None
    reading = explorer.known(asked, analyst)
    shown = _shown_alpha(explorer, earlier, cost)
    if reading is None or reading.alpha >= shown * (1 - 1e-9):
        return None
    name = f"{earlier.request}, read from {reading.source.request}"
    entry = explorer.ledger.entry(name)
    if entry is None:
        newer: Answer | None = explorer._answer_from_past(reading, asked, name, analyst)
        return newer
    again = shown_again(explorer, entry, asked, replayed=True)
    explorer._note_receipt(entry, asked, analyst)
    return again


def _shown_alpha(explorer: Any, shown: Entry, cost: Accuracy) -> float:
    """Return how far a shown answer may be off, by what was said of it."""
    reading = explorer.ledger.reading(shown.request)
    if reading is not None:
        return float(np.max(reading["half_widths"], initial=0.0))
    # Public numbers are exact, and free.
    return cost.alpha if shown.budget.amount else 0.0

"""Questions that are stated before anything is drawn: Lemma PA9.

Whoever says in advance what she will want to know is told it more narrowly afterwards:

    log   1  registers   ages in bins of 10, ages 20 to 65    11 numbers
          2  charge      running totals                       a source
          3  reads       ages 20 to 65                        beta / 4 over 11 numbers

What is read of a source counts all numbers that were registered before its charge, and
not the one that is looked at: whoever registers every stretch and reads the one that
stands out has chosen by looking. Registrations stand in the log under numbered names,
so that which of them came first is a public fact that never changes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.statements import Entry
from blowfish_fast.errors import QuestionError

NAME = "registered/{}/{}"
"""The name of a registration, which no question has: its table and its number."""
MOST_REGISTERED = 1000
"""Questions that are registered at a time."""


class Registered(NamedTuple):
    """What was registered before the noise of a source; all of it is public.

    Attributes
    ----------
    questions : frozenset of str
        The questions in their canonical form without costs, as JSON.
    numbers : int
        How many numbers they have together, each question counted as often as it was
        registered.
    """

    questions: frozenset[str] = frozenset()
    numbers: int = 0


NOTHING = Registered()
"""Of sources that were drawn before anything was registered."""


class Registrations:
    """The registered questions of one table.

    Parameters
    ----------
    ledger : Ledger
        Where they are noted.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._noted: dict[str, list[Entry]] = {}
        self._lock = threading.Lock()

    def note(
        self,
        table: str,
        questions: Sequence[tuple[str, int]],
        note: dict[str, Any],
        analyst: str | None,
    ) -> Entry:
        """Note questions behind those that were registered before. Free.

        Parameters
        ----------
        table : str
            The name of the table.
        questions : sequence of (str, int)
            Each in its canonical form without its cost, and how many numbers it has.
        note : dict
            What else the log keeps.
        analyst : str or None
            Who registers them.

        Returns
        -------
        Entry
            The entry of the log, at no cost.

        Raises
        ------
        QuestionError
            If there are none, or too many at a time.
        """
        if not 0 < len(questions) <= MOST_REGISTERED:
            raise QuestionError(
                f"register 1 to {MOST_REGISTERED:,} questions at a time; received "
                f"{len(questions):,}"
            )
        listed = [{"question": text, "numbers": numbers} for text, numbers in questions]
        stated = {**note, "registers": listed}
        while True:
            name = _name(table, len(self._all(table)) + 1)
            entry = self._ledger.keep_reading(
                name, {}, sources=[], analyst=analyst, note=stated
            )
            if entry.note == stated and entry.analyst == analyst:
                return entry
            # Another process took this name just now: the next one is tried.

    def before(
        self, table: str, number: int, analyst: str | None, *, everybody: bool
    ) -> Registered:
        """Return what was registered before an entry of the log.

        Parameters
        ----------
        table : str
            The name of the table.
        number : int
            The number of the charge of a source.
        analyst : str or None
            Whose registrations count.
        everybody : bool
            Whether those of everybody do.

        Returns
        -------
        Registered
            Questions, and how many numbers they have. Later registrations change
            nothing of it.
        """
        entries = [
            entry
            for entry in self._all(table)
            if entry.number < number and (everybody or entry.analyst == analyst)
        ]
        listed = [each for entry in entries for each in (entry.note or {})["registers"]]
        return Registered(
            frozenset(each["question"] for each in listed),
            sum(each["numbers"] for each in listed),
        )

    def _all(self, table: str) -> list[Entry]:
        """Return all registrations of a table, those of other processes included."""
        with self._lock:
            noted = self._noted.setdefault(table, [])
            while (
                entry := self._ledger.entry(_name(table, len(noted) + 1))
            ) is not None:
                noted.append(entry)
            return list(noted)


def _name(table: str, number: int) -> str:
    return NAME.format(table, number)

"""What an experiment is: tasks that give rows, rows that give a table and a verdict.

    Settings --tasks--> Task "adult/0.1/2" --run--> rows  --summary--> table, verdict
                        Task "adult/0.5/0" --run--> rows  --draw-----> figure

To write one, derive from `Experiment`, fill in its words and the four functions. Rules:

- a task is done in another process: its arguments are plain values, and it reads its
  data by name (``datasets``), never from an attribute of the experiment;
- all chance comes from `seed_of`, so that the rows of a task depend on the settings and
  its key alone;
- a row is flat: text, numbers, truth values or None. What a mechanism refuses on public
  grounds is a row too, with the reason under ``skipped`` and no error;
- `summary` and `draw` see rows as they come back from the CSV, in the order of the
  tasks, and must manage with the part that an interrupted run has left.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from blowfish_fast.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase


Value = str | int | float | bool | None
Row = dict[str, Value]
Outcome = Literal["reproduced", "not reproduced", "beaten"]

MOST_TRIALS = 10**6


@dataclass(frozen=True)
class Settings:
    """What a run was asked for.

    Attributes
    ----------
    trials : int
        How often everything is repeated.
    seed : int
        All chance comes from it.
    data : Path, optional
        A folder with ``1d/*.npy`` and ``2d/*.npy``; None for generated stand-ins.
    quick : bool, default False
        Whether the run is a short one.
    """

    trials: int
    seed: int
    data: Path | None = None
    quick: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.trials, bool) or not isinstance(self.trials, int):
            raise InputError(f"trials must be a whole number; received {self.trials!r}")
        if not 1 <= self.trials <= MOST_TRIALS:
            raise InputError(
                f"trials must lie between 1 and {MOST_TRIALS:,}; received "
                f"{self.trials}. Each trial is one release of every configuration"
            )
        if not 0 <= self.seed < 2**63:
            raise InputError(
                f"seed must lie between 0 and 2^63 - 1; received {self.seed}"
            )


@dataclass(frozen=True)
class Task:
    """A piece of work of its own.

    Attributes
    ----------
    key : str
        A text that names it.
    arguments : Mapping[str, object], optional
        Plain arguments.
    """

    key: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PaperVerdict:
    """Whether the paper's claim held, and by how much.

    Attributes
    ----------
    outcome : Outcome
        Whether it held.
    by : str
        By how much, in words.
    """

    outcome: Outcome
    by: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.by}"


@dataclass(frozen=True)
class Summary:
    """A table to print and, where a paper made a claim, the verdict beneath it.

    Attributes
    ----------
    columns : Sequence[str]
        The names of the columns.
    lines : Sequence[Sequence[Value]]
        One value per column in each line; None is an empty cell.
    verdict : PaperVerdict, optional
        The verdict, if any.
    notes : Sequence[str], default ()
        Sentences beneath the table.
    """

    columns: Sequence[str]
    lines: Sequence[Sequence[Value]]
    verdict: PaperVerdict | None = None
    notes: Sequence[str] = ()


class Experiment(ABC):
    """Mechanisms tried on data: a comparison, or a table or figure of a paper.

    Attributes
    ----------
    name : str
        Names the files of its results.
    title, claim, protocol : str
        The table or figure; what its paper says it shows, if there is one; and in a
        sentence or two what is repeated how often, and what is measured.
    parameters : mapping
        What tells this experiment from others of its name; runs of different
        parameters are not mixed in one folder.
    needs : tuple of str
        Data sets, such as ``"1d/steps"`` or ``"2d/bells"``; checked before the first
        task. Sets that only exist as generated stand-ins are not listed.
    trials : int
        The paper's number of repetitions, used when none is asked for.
    size : tuple of float
        Width and height of the figure in inches.
    """

    name: str
    title: str
    claim: str = ""
    protocol: str
    parameters: Mapping[str, Any] = MappingProxyType({})
    needs: tuple[str, ...] = ()
    trials: int = 3
    size: tuple[float, float] = (9.0, 5.0)

    quick_trials: ClassVar[int] = 1

    @abstractmethod
    def tasks(self, settings: Settings) -> list[Task]:
        """Return the work; keys differ, order is that of the rows in the CSV."""

    @abstractmethod
    def run(self, task: Task, settings: Settings) -> list[Row]:
        """Do one task, in whatever process, and return its rows.

        Parameters
        ----------
        task : Task
            The task.
        settings : Settings
            What was asked for.

        Returns
        -------
        list[Row]
            Flat rows.
        """

    @abstractmethod
    def summary(self, rows: Sequence[Row], settings: Settings) -> Summary:
        """Return the table and the verdict.

        Parameters
        ----------
        rows : Sequence[Row]
            All rows of the run.
        settings : Settings
            What was asked for.

        Returns
        -------
        Summary
            The summary.
        """

    @abstractmethod
    def draw(self, rows: Sequence[Row], figure: FigureBase) -> None:
        """Draw on an empty figure; the claim is written beneath it by others.

        Parameters
        ----------
        rows : Sequence[Row]
            All rows of the run.
        figure : FigureBase
            The figure.
        """


def seed_of(settings: Settings, *words: object) -> int:
    """Return a 63-bit seed of these words; tasks that share words share the seed.

    Parameters
    ----------
    settings : Settings
        What was asked for.
    *words : object
        What the seed depends on besides the settings.

    Returns
    -------
    int
        The seed.
    """
    text = "\x1f".join(str(word) for word in (settings.seed, *words))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


Key = tuple[Value, ...]


def values_by(
    rows: Iterable[Row], *columns: str, value: str = "error"
) -> dict[Key, list[float]]:
    """Collect the numbers under `value` by columns; rows without one are left out.

    Parameters
    ----------
    rows : Iterable[Row]
        The rows.
    *columns : str
        The columns that make a key.
    value : str, default 'error'
        The column with the number.

    Returns
    -------
    dict[Key, list[float]]
        The numbers of each key.
    """
    numbers_by_key: dict[Key, list[float]] = {}
    for row in rows:
        number = row.get(value)
        if isinstance(number, int | float) and not isinstance(number, bool):
            key = tuple(row.get(column) for column in columns)
            numbers_by_key.setdefault(key, []).append(float(number))
    return numbers_by_key


def means(rows: Iterable[Row], *columns: str, value: str = "error") -> dict[Key, float]:
    """Return the mean of `value` by the given columns.

    Parameters
    ----------
    rows : Iterable[Row]
        The rows.
    *columns : str
        The columns that make a key.
    value : str, default 'error'
        The column with the number.

    Returns
    -------
    dict[Key, float]
        The mean of each key.
    """
    return {
        key: math.fsum(numbers) / len(numbers)
        for key, numbers in values_by(rows, *columns, value=value).items()
    }


def distinct(rows: Iterable[Row], column: str) -> list[Value]:
    """Return the values of a column in the order in which they are met.

    Parameters
    ----------
    rows : Iterable[Row]
        The rows.
    column : str
        The column.

    Returns
    -------
    list[Value]
        The values.
    """
    return list(dict.fromkeys(row.get(column) for row in rows))


def skipped_notes(rows: Iterable[Row]) -> list[str]:
    """Say which methods did not run, and why, once each."""
    skipped = {
        (row.get("method"), row.get("skipped")): None
        for row in rows
        if row.get("skipped")
    }
    return [f"{method} was skipped: {reason}" for method, reason in skipped]

"""Lines under a heading, best first: what `compare` and `recommend` return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from blowfish_fast._support.optional import require

LONGEST_REASON = 100


class Named(Protocol):
    """What a line has in any case."""

    @property
    def name(self) -> str:
        """By which it is asked for."""
        ...


Line = TypeVar("Line", bound=Named)
Cells = tuple[str, str, str]


class Ranking(ABC, Generic[Line]):
    """Lines by name, best first; ``str()`` gives a table."""

    def __init__(self, lines: Iterable[Line], heading: str) -> None:
        self.lines = tuple(lines)
        self.heading = heading

    @property
    def best(self) -> Line:
        """The first line."""
        return self.lines[0]

    @property
    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """The lines as plain data, for tables and JSON."""

    @abstractmethod
    def _table(self) -> tuple[Cells, list[Cells]]:
        """Return the heads and the cells of the table."""

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, name: str) -> Line:
        for one in self.lines:
            if one.name == name:
                return one
        raise KeyError(name)

    def __str__(self) -> str:
        heads, lines = self._table()
        width, wide = (max(len(one[at]) for one in (heads, *lines)) for at in (0, 1))
        shown = [self.heading]
        for name, number, rest in (heads, *lines):
            shown.append(f"{name:{width}}   " + (f"{number:>{wide}}   " * bool(number)))
            shown[-1] += rest
        return "\n".join(shown)

    def to_dict(self) -> dict[str, Any]:
        """Return heading and rows as plain data, for JSON."""
        return {"heading": self.heading, "rows": self.rows}

    def to_pandas(self) -> Any:
        """Return `rows` as a pandas data frame."""
        pandas = require("pandas", extra="frames", purpose="a pandas data frame")
        return pandas.DataFrame(self.rows)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} lines, best: {self.best.name})"

    def _repr_html_(self) -> str:
        from blowfish_fast._support.html import panel, table

        return panel(self.heading, drawing=table(*self._table()))


def shorten(reason: str) -> str:
    """Return the first words of a reason, on one line."""
    text = " ".join(reason.split())
    if len(text) <= LONGEST_REASON:
        return text
    return text[:LONGEST_REASON].rsplit(" ", 1)[0] + " ..."

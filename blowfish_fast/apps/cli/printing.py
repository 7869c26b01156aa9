"""Output of the commands: JSON for programs, tables for people.

Progress, remarks and errors go to the error output, and only results to the output.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from blowfish_fast._support.interval_texts import end_text

Report = Callable[[str], None]
"""Takes the name of the step that begins."""
Count = Callable[[int, int, str], None]
"""Takes steps done, steps in all, and the name of the last."""

NUMBER = r"-?[\d,]*\.?\d+(e[-+]?\d+)?%?"
"""How tables write numbers: -1,234.5, 1e-05 or 12%."""
LONGEST_NAME = 32
"""Characters of a step's name beside a bar, so that both fit on a screen."""


class Screen(Console):
    """A console that leaves a closed pipe to whoever ends the command."""

    def on_broken_pipe(self) -> NoReturn:
        """Pass the error on; rich alone would end with the code of a failed check."""
        raise BrokenPipeError


console = Screen()
remarks = Screen(stderr=True)


def show(value: Any) -> None:
    """Print a mapping as JSON, anything else as a sentence."""
    if not isinstance(value, dict):
        _print(console, str(value))
        return
    text = json_text(plain(value))
    if console.is_terminal:
        from rich.highlighter import JSONHighlighter

        console.print(JSONHighlighter()(Text(text)), soft_wrap=True)
    else:
        sys.stdout.write(text + "\n")


def remark(text: str, *, word: str = "") -> None:
    """Print a sentence beside the result, on the error output; `word` stands out.

    Parameters
    ----------
    text : str
        The sentence.
    word : str
        A word that stands before it and stands out, such as "refused".
    """
    _print(remarks, text, word)


def escape_control(text: str) -> str:
    """Return the text with control characters spelled out.

    Names in files may be anybody's, and could rewrite what a curator reads.
    """
    return "".join(
        letter if letter.isprintable() or letter == "\n" else repr(letter)[1:-1]
        for letter in text
    )


def _print(to: Console, text: str, word: str = "") -> None:
    """Print a sentence; only a screen has an end where lines are broken."""
    line = Text.assemble(
        (f"{word}: ", "bold red") if word else "", escape_control(text)
    )
    to.print(line, highlight=False, soft_wrap=not to.is_terminal)


def json_text(value: Any, margin: str = "") -> str:
    """Return JSON for programs and eyes: lists of plain values stay on one line.

    Parameters
    ----------
    value : object
        What `plain` returned.
    margin : str
        Blanks before every line but the first.

    Returns
    -------
    str
        JSON; a list of plain values stays on one line.
    """
    inner = margin + "  "
    if isinstance(value, dict) and value:
        items = [
            f"{json_text(name)}: {json_text(value[name], inner)}" for name in value
        ]
        ends = "{}"
    elif isinstance(value, list) and any(
        isinstance(item, dict | list) for item in value
    ):
        items = [json_text(item, inner) for item in value]
        ends = "[]"
    else:
        return json.dumps(value, allow_nan=False, ensure_ascii=False)
    listed = ",\n".join(inner + item for item in items)
    return f"{ends[0]}\n{listed}\n{margin}{ends[1]}"


def plain(value: Any) -> Any:
    """Return what JSON can hold; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(name): plain(content) for name, content in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Fraction | Path):
        return str(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def show_pairs(title: str, pairs: list[tuple[str, str]]) -> None:
    """Print two columns: what, and how much.

    Parameters
    ----------
    title : str
        The line above.
    pairs : list of pairs of str
        A name and its value, for each line.
    """
    heading = Text(escape_control(title))
    table = Table(title=heading, show_header=False, title_justify="left", box=None)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(Text(escape_control(name)), Text(escape_control(value)))
    console.print(table)


def show_table(
    names: list[str],
    rows: list[list[str]],
    *,
    title: str | None = None,
    styles: list[str] | None = None,
) -> None:
    """Print rows under their names; numbers end at the right and are never cut.

    Parameters
    ----------
    names : list of str
        Names of the columns.
    rows : list of lists of str
        A text for each column.
    title : str, optional
        The line above.
    styles : list of str, optional
        A style of rich for each row.
    """
    heading = None if title is None else Text(escape_control(title))
    names = [escape_control(name) for name in names]
    rows = [[escape_control(text) for text in row] for row in rows]
    table = Table(title=heading, title_justify="left", box=None, header_style="bold")
    columns = [[row[at] for row in rows] for at in range(len(names))]
    wide = [
        max(len(text) for text in (name, *texts)) + 2
        for name, texts in zip(names, columns, strict=True)
    ]
    for name, texts in zip(names, columns, strict=True):
        numbers = bool(texts) and all(reads_as_number(text) for text in texts)
        # On a narrow screen names are broken between words, so that numbers are not.
        broken = name if sum(wide) <= console.width else name.replace(" ", "\n")
        table.add_column(
            Text(broken), justify="right" if numbers else "left", overflow="fold"
        )
    for row, style in zip(rows, styles or [""] * len(rows), strict=True):
        table.add_row(*map(Text, row), style=style)
    console.print(table)


@contextmanager
def _progress(name: str, columns: Callable[[Any], list[Any]]) -> Iterator[Any]:
    """Show columns of rich on a terminal only; yield what updates them."""
    if not remarks.is_terminal:
        yield lambda **_: None
        return
    from rich import progress

    bar = progress.Progress(
        progress.TextColumn("{task.description}"),
        *columns(progress),
        console=remarks,
        transient=True,
        # Results belong to the output, even while a bar is shown.
        redirect_stdout=False,
    )
    with bar:
        yield partial(bar.update, bar.add_task(name, total=None, last=""))


@contextmanager
def spinner(text: str) -> Iterator[Report]:
    """Show a spinner and the step at hand while something works, on a terminal."""
    with _progress(
        text, lambda rich: [rich.SpinnerColumn(), rich.TimeElapsedColumn()]
    ) as update:
        yield lambda step: update(description=f"{text}: {step}")


@contextmanager
def counter(name: str) -> Iterator[Count]:
    """Show a bar of counted steps while something works, on a terminal."""
    with _progress(
        name,
        lambda rich: [
            rich.BarColumn(bar_width=20),
            rich.MofNCompleteColumn(),
            rich.TimeRemainingColumn(),
            rich.TextColumn("{task.fields[last]}"),
        ],
    ) as update:
        yield lambda done, total, last: update(
            completed=done,
            total=total,
            last=f"{last[: LONGEST_NAME - 3]}..." if last[LONGEST_NAME:] else last,
        )


def plural(number: int, thing: str) -> str:
    """Return "1 charge" or "2 charges".

    Parameters
    ----------
    number : int
        How many.
    thing : str
        What one of them is called; an "s" makes it many.

    Returns
    -------
    str
        Such as "1 charge" or "2 charges".
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


ENDS = {"low": "low", "high": "high"}
"""Ends of intervals, by the last word of a column's name: ``population_low``."""


def four_digits(value: float) -> str:
    """Return a number with four digits, as a table of errors shows it."""
    decimals = 0 if value >= 1000 else 1 if value >= 100 else 2 if value >= 10 else 3
    return f"{value:,.{decimals}f}" if value >= 1 or value == 0 else f"{value:.3g}"


def column_texts(column: list[Any], end: str = "") -> list[str]:
    """Return the texts of a column, its numbers with equally many decimals.

    Parameters
    ----------
    column : list
        The values.
    end : {"", "low", "high"}
        Which end of intervals it holds, if any; ends are rounded outwards.

    Returns
    -------
    list of str
        A text for each value.
    """
    numbers = [value for value in column if isinstance(value, float)]
    largest = max((abs(number) for number in numbers), default=0.0)
    whole = all(number == int(number) for number in numbers)
    decimals = 0 if whole else 1 if largest >= 100 else 2 if largest >= 1 else 4

    def text(value: Any) -> str:
        if not isinstance(value, float):
            return "" if value is None else str(value)
        if end:
            return end_text(value, decimals, upwards=end == "high")
        return f"{value:,.{decimals}f}"

    return [text(value) for value in column]


CHANCE = "p_value"
"""The column whose numbers are chances, of which none is 0."""


def chance_texts(column: list[float]) -> list[str]:
    """Return the texts of p-values: three digits each, rounded up, and never 0.

    Parameters
    ----------
    column : list of float
        P-values, above 0.

    Returns
    -------
    list of str
        A text for each.

    Examples
    --------
    >>> chance_texts([1.0, 0.04321, 0.00012345, 2.5e-9])
    ['1', '0.0433', '0.000124', '2.5e-09']
    """
    texts = []
    for chance in column:
        unit = 10.0 ** (math.floor(math.log10(chance)) - 2)
        texts.append(f"{math.ceil(chance / unit - 1e-9) * unit:.3g}")
    return texts


def as_texts(columns: Mapping[str, Any], most: int) -> tuple[list[str], list[Any]]:
    """Return the names of columns, and their first rows, as tables show them.

    Parameters
    ----------
    columns : mapping of arrays
        The columns of a table, by name.
    most : int
        How many rows are taken.

    Returns
    -------
    tuple of list of str and list of lists
        The names, without underscores, and the rows as texts.
    """
    texts = [
        chance_texts(plain(column[:most]))
        if name == CHANCE
        else column_texts(plain(column[:most]), ENDS.get(name.rpartition("_")[2], ""))
        for name, column in columns.items()
    ]
    names = [name.replace("_", " ") for name in columns]
    return names, [list(row) for row in zip(*texts, strict=True)]


def reads_as_number(text: str) -> bool:
    """Return whether a text is a number, or nothing, as tables show it."""
    return not text or re.fullmatch(NUMBER, text) is not None

"""Conditions and queries in words, read against the attributes of a release.

    20:40            from 20 up to, but without, 40; either end may be left out
    08:00..12:00     the same where values hold colons
    Bern,Chur        levels, dates, months, cells of width 1: any of several
    "Bern, Stadt"    a level that holds a comma, in quotation marks as in a CSV file

A condition names its attribute, ``age=20:40``; a query of ``--range`` gives one such
word per attribute, a file of queries one column or two: ``age_from,age_to,sex``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.data.axes import Axis
from blowfish_fast.data.csv_files import is_number
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.frames import rows_of
from blowfish_fast.data.level_numbers import numbered_levels
from blowfish_fast.data.listed_items import (
    QUOTE,
    Item,
    split_items,
    split_name,
    written_item,
)
from blowfish_fast.data.predicates import Cover, attribute_cover, everything, extent
from blowfish_fast.errors import InputError, nearest
from blowfish_fast.workloads import Rectangles

from .domain import find_column
from .workload import read_tick

MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}(:[0-9]{2}){0,2}(\.[0-9]+)?"
)
"""A moment of a clock: its colons part no ends."""

ENDS = (("from", "to"), ("start", "end"), ("low", "high"))
"""What the two columns may be called where there is one attribute."""


def wide_ends(attribute: Axis) -> tuple[str, str]:
    """Return two values of an axis by a rule as conditions write them: its quarters."""
    rule, cells = attribute.rule, attribute.regular
    places = np.array([cells // 4, cells // 2], dtype=np.int64)
    low, high = rule.values(places)
    return str(low), str(high)


def parse_condition(words: str, domain: Domain) -> tuple[int, Any]:
    """Return the axis and the condition of ``age=20:40``.

    Parameters
    ----------
    words : str
        COLUMN=LOW:HIGH, COLUMN=VALUE or COLUMN=VALUE,VALUE.
    domain : Domain
        Whose columns are meant.

    Returns
    -------
    tuple of int and object
        The axis, and what ``release.where`` takes for it: a slice, a value or a
        list.
    """
    name, text = split_name(words)
    if text is None or not text.strip():
        raise InputError(
            "a condition is COLUMN=LOW:HIGH, COLUMN=VALUE or COLUMN=VALUE,VALUE; "
            f"received {words!r}"
        )
    axis = find_column(name, domain)
    return axis, _parse_values(text, domain.attributes[axis])


def _parse_values(text: str, attribute: Axis) -> Any:
    """Return what ``release.where`` takes for one attribute.

    What begins with a quotation mark is a list as `listed_items` has it. Anything else
    may also be the whole text of a level that holds a comma.
    """
    whole = None if text.lstrip().startswith(QUOTE) else _level(text, attribute)
    if whole is not None and "," not in text:
        return whole
    items = split_items(text)
    if whole is not None:
        if all(_level(item.text, attribute) is not None for item in items):
            raise InputError(
                f"{text!r} is one level here, and its parts are levels, too",
                way_out=f"Write {written_item(text)} for the one, and quotation marks "
                "around each part for several",
            )
        return whole
    values = [_item_value(item, attribute) for item in items]
    return values if len(values) > 1 else values[0]


def _item_value(item: Item, attribute: Axis) -> Any:
    if item.quoted and attribute.levels is not None:
        level = _level(item.text, attribute, blanks=True)
        return _value(item.text, attribute) if level is None else level
    return _single(item.text, attribute)


def parse_edges(text: str, attribute: Axis) -> list[Any]:
    """Return edges of groups, ``0,18,65``, or the levels that are wanted.

    Parameters
    ----------
    text : str
        Values with commas between them.
    attribute : Axis
        The attribute that is broken down.

    Returns
    -------
    list
        Numbers or dates for an ordered attribute, levels for a category.
    """
    if attribute.levels is not None:
        values = _parse_values(text, attribute)
        return values if isinstance(values, list) else [values]
    return [_value(item.text, attribute) for item in split_items(text)]


def parse_queries(listed: Sequence[str], domain: Domain) -> Rectangles:
    """Return the boxes of ``20:40``, or of ``20:40,f`` on two attributes.

    Parameters
    ----------
    listed : sequence of str
        A query each; with several attributes, a part for each and commas between.
    domain : Domain
        The cells of the release.

    Returns
    -------
    Rectangles
        A box for each query, in cells and parts of them.
    """
    rows = []
    for words in listed:
        parts = [words] if domain.ndim == 1 else _written_parts(words)
        if len(parts) != domain.ndim:
            columns = ", ".join(domain.column_names)
            raise InputError(
                f"this release has {domain.ndim} columns, {columns}; a range gives one "
                f"part for each with commas between, and received {words!r}. --where "
                "names columns instead"
            )
        rows.append([part.strip() for part in parts])
    return _boxes(rows, domain)


def _written_parts(words: str) -> list[str]:
    """Part words at their commas; what stands in quotation marks stays as written."""
    return [
        written_item(item.text) if item.quoted else item.text
        for item in split_items(words)
    ]


def read_queries(path: Path, domain: Domain) -> tuple[Rectangles, dict[str, AnyArray]]:
    """Return the boxes of a CSV file, and its columns to stand beside the answers.

    Parameters
    ----------
    path : Path
        A CSV file with a query per line.
    domain : Domain
        The cells of the release.

    Returns
    -------
    tuple of Rectangles and dict of arrays
        The boxes, and the columns of the file.
    """
    rows = rows_of(path, "query")
    names = _column_names(rows[0], domain)
    if names is None:
        names = [name for pair in _pairs(domain) for name in pair]
    else:
        rows = rows[1:]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise InputError(
                f"each line of {path} needs {len(names)} values, for "
                f"{', '.join(names)}; query {number} has {len(row)}"
            )
    if not rows:
        raise InputError(f"{path} names columns and holds no query")
    texts = [_by_axis(dict(zip(names, row, strict=True)), domain) for row in rows]
    columns = {
        name: _column([row[at] for row in rows]) for at, name in enumerate(names)
    }
    return _boxes(texts, domain), columns


def _pairs(domain: Domain) -> list[tuple[str, str]]:
    return [(f"{name}_from", f"{name}_to") for name in domain.column_names]


def _column_names(row: list[str], domain: Domain) -> list[str] | None:
    """Return the names of the columns; None where the file begins with numbers."""
    pairs = [*_pairs(domain), *(ENDS if domain.ndim == 1 else ())]
    names = [*domain.column_names, *(name for pair in pairs for name in pair)]
    unknown = [name for name in row if name not in names]
    if not unknown:
        return row
    if len(row) == 2 * domain.ndim and all(text[:1] in "-+.0123456789" for text in row):
        return None
    raise InputError(
        f"a file of queries names its columns {', '.join(names)}; received "
        f"{unknown[0]!r}{nearest(unknown[0], names)}"
    )


def _by_axis(row: dict[str, str], domain: Domain) -> list[str]:
    """Return one condition per axis, blank where there is none."""
    texts = []
    for axis, pair in enumerate(_pairs(domain)):
        pairs = [pair, *ENDS] if domain.ndim == 1 else [pair]
        text = row.get(domain.column_names[axis], "")
        for low, high in pairs:
            if row.get(low) or row.get(high):
                text = f"{row.get(low, '')}..{row.get(high, '')}"
        if _level(text, domain.attributes[axis], blanks=True) is not None:
            # The marks of the file are gone: this is one level, whatever it holds.
            text = written_item(text)
        texts.append(text)
    return texts


def _interval(text: str, domain: Domain, axis: int) -> tuple[float, float]:
    attribute = domain.attributes[axis]
    cover: Cover = everything(attribute)
    if text:
        cover = attribute_cover(attribute, _parse_values(text, attribute))
    if len(cover) != 1:
        raise InputError(
            f"a range is one run of cells; {text!r} selects {len(cover)} of them. "
            f"{extent(attribute)}"
        )
    return cover[0]


def _boxes(rows: list[list[str]], domain: Domain) -> Rectangles:
    boxes = [
        [_interval(text, domain, axis) for axis, text in enumerate(row)] for row in rows
    ]
    corners = np.array(boxes, dtype=np.float64)
    return Rectangles(domain, corners[:, :, 0], corners[:, :, 1])


def _column(texts: list[str]) -> AnyArray:
    """Return numbers where all texts are, else the texts."""
    numbers = all(is_number(text) for text in texts)
    return np.array(texts, dtype=np.float64 if numbers else object)


def _single(text: str, attribute: Axis) -> Any:
    level = _level(text, attribute)
    if level is not None:
        return level
    separator = ".." if ".." in text else ":"
    clock = attribute.by_rule or attribute.unit is not None
    if separator not in text or (clock and MOMENT.fullmatch(text.strip())):
        return _value(text, attribute)
    low, _, high = (part.strip() for part in text.partition(separator))
    start = _value(low, attribute) if low else None
    stop = _value(high, attribute) if high else None
    # Dates of one form sort as they lie.
    dated = attribute.unit is not None or isinstance(start, str)
    alike = not dated or len(low) == len(high)
    if start is not None and stop is not None and alike and start > stop:
        raise InputError(
            f"a range LOW:HIGH must start before it ends; received {text!r}; "
            f"{extent(attribute)}"
        )
    return slice(start, stop)


def _level(text: str, attribute: Axis, *, blanks: bool = False) -> Any:
    """Return the level or extra cell that is written so; None if none is.

    Blanks around the text are no part of it, unless `blanks` says that they are.
    """
    wanted = text if blanks else text.strip()
    for level in (*(attribute.levels or ()), *attribute.extras):
        if str(level) == wanted:
            return level
    plain = (attribute.levels or ())[: attribute.regular]
    numbered = numbered_levels(plain) if plain else None
    cell = -1 if numbered is None else numbered.cell(wanted)
    return None if cell < 0 else plain[cell]


def _value(text: str, attribute: Axis) -> Any:
    """Return a date as it is written, and a number as a number."""
    if attribute.keys is not None:
        return text
    if attribute.by_rule:
        return read_tick(text, attribute.rule)
    if attribute.unit is not None:
        return text
    if attribute.levels is not None:
        levels = [str(level) for level in attribute.levels]
        raise InputError(
            f"{text!r} is not known here{nearest(text, levels)}; {extent(attribute)}"
        )
    if not is_number(text):
        raise InputError(
            f"{text!r} is no number; {extent(attribute)}. A range is LOW:HIGH"
        )
    return float(text)

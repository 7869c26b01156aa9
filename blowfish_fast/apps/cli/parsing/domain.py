"""Domains in words: which cells there are, stated before any data is seen.

4096, 64x64                           cells without a name
age=0:101:1                           from 0 to 101 in cells of width 1
day=2024-01-01:2025-01-01:month       days, weeks, months, quarters, years
income=edges:0,10000,30000,1000000    cells between edges
subject=categories:art,earth science  one cell per category; @FILE: one per line
floor=12                              the column holds cell numbers, 0 to 11
time=2000-01-01:2036-01-01:1ns        clock steps: ns, us, ms, s, min, h
time=2024-01-01T08:00..2024-01-02:1s  two dots part ends that hold colons
word=letters:14                       words nobody listed, of up to 14 letters a to z
block=categories:@blocks.csv:block    one cell per line of a column of a public table
tract=polygons:tracts.gpkg:GEOID      one cell per polygon; records are points
hexagon=h3:area.geojson:7             hexagons of H3 that touch a public area
address=0:4294967296:1                beyond 2^28 cells: a wide domain, in whole numbers

Categories, and names of columns, are read as `listed_items` says: one with a comma,
blanks at its ends or a leading quotation mark or @ stands in quotation marks. Several
columns in one text are parted by an x, ``age=0:101:1 x sex=categories:f,m``.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

from blowfish_fast.data.csv_files import is_number
from blowfish_fast.data.domain import (
    LARGEST_DOMAIN,
    Attributes,
    Domain,
    KeyDomain,
    WideDomain,
    narrow,
)
from blowfish_fast.data.frames import items_of
from blowfish_fast.data.listed_items import Item, read_item, split_name, written_item
from blowfish_fast.data.places.districts import Districts
from blowfish_fast.data.places.polygon_files import read_area
from blowfish_fast.data.rules.steps import MOST_STEPS, UNIT_WORDS
from blowfish_fast.errors import DomainError, InputError, nearest

from .levels import POLYGON_ENDINGS, columns_in, public_columns

STEPS = ("day", "week", "month", "quarter", "year")
MONTHS = {"month": 1, "quarter": 3, "year": 12}
CLOCK_STEP = re.compile(
    rf"[0-9]{{0,18}}\s*({'|'.join(word for word in UNIT_WORDS if word != 'day')})s?"
)
"""A step of a clock, such as 1ns, 5min or 2hours; ``ms`` and ``s`` have no plural."""
SYMBOLS = {
    "letters": "a-z",
    "digits": "0-9",
    "letters+digits": "a-z0-9",
    "utf-8": "utf-8",
}
"""Of words nobody listed; capitals count as small letters."""
MOST_DATES = 2**20
LARGEST_EXPONENT = 300

POLYGONS = re.compile(r"polygons\s*:\s*")
"""How the cells of a column begin where they are districts of a file."""
POLYGON_FILE = re.compile(
    r"(?P<file>.+?\.[A-Za-z0-9]+)(:(?P<id>[^:=]+))?(:(?P<columns>[^:,]+,[^:,]+))?"
    r"(:(?P<system>[A-Za-z]+:[0-9]+))?(:step=(?P<step>[0-9.eE-]+))?"
)
HEXAGONS = re.compile(r"h3\s*:\s*(?P<file>.+):(?P<resolution>[0-9]{1,2})")
"""Hexagons of H3 over the area of a file."""
LISTS = re.compile(r"\s*(edges|categories)(?:\s*:|\s)\s*")
"""How the cells of a column begin where they are listed."""
NEXT_COLUMN = re.compile(r"\s+x\s+(?=(?:[^\s=\"]+|\"(?:[^\"]|\"\")*\")\s*=)")
"""What parts two columns; an x inside a category parts nothing."""
LIST_ENDS = re.compile(f",|{NEXT_COLUMN.pattern}")

FORMS = (
    "NAME=LOW:HIGH:WIDTH, NAME=edges:A,B,C, NAME=FROM:TO:day (week, month, quarter, "
    "year; h, min, s, ms, us, ns), NAME=categories:A,B,C, NAME=letters:LONGEST, "
    "NAME=utf-8:BYTES, NAME=polygons:FILE:ID, NAME=h3:FILE:RESOLUTION or NAME=CELLS"
)


def parse_domain(words: str | Sequence[str]) -> Domain:
    """Return the domain of ``4096``, of ``64x64``, or of columns, a text for each."""
    return Domain.product(*_parse_parts(words))


def parse_table(words: str | Sequence[str]) -> Domain | WideDomain:
    """Return the domain of a whole table, which memory need not hold."""
    parts = _parse_parts(words)
    if len(parts) == 1 and isinstance(parts[0], KeyDomain):
        # Words nobody listed are a domain by themselves.
        return parts[0]
    return narrow(WideDomain.product(*parts))


def _parse_parts(words: str | Sequence[str]) -> list[Domain | WideDomain]:
    listed = [words] if isinstance(words, str) else list(words)
    if not any(text.strip() for text in listed):
        raise InputError(f"a domain needs at least one column: {FORMS}")
    if len(listed) == 1 and "=" not in listed[0]:
        return [_plain_cells(listed[0].strip())]
    return [column for text in listed if text.strip() for column in _columns_of(text)]


def parse_column(words: str) -> Domain | WideDomain:
    """Return the domain of one column, ``age=0:101:1`` or another form."""
    columns = _columns_of(words)
    if len(columns) > 1:
        raise InputError(f"one column is stated here; received {words.strip()!r}")
    return columns[0]


def _columns_of(words: str) -> list[Domain | WideDomain]:
    """Read ``a=.. x b=..`` from left to right, column by column."""
    columns: list[Domain | WideDomain] = []
    rest = words
    while rest:
        name, cells = split_name(rest)
        if cells is None or not name or not cells.strip():
            raise InputError(
                f"a column of the domain is {FORMS}; received {words.strip()!r}"
            )
        column, rest = _read_cells(name, cells, words)
        columns.append(column)
    return columns


def _read_cells(name: str, cells: str, words: str) -> tuple[Domain | WideDomain, str]:
    """Return the column that `cells` begin with, and the columns behind it."""
    kind = LISTS.match(cells)
    if kind is None or cells[kind.end() : kind.end() + 1] == "@":
        stop = NEXT_COLUMN.search(cells)
        rest = "" if stop is None else cells[stop.end() :]
        cells = cells if stop is None else cells[: stop.start()]
        if kind is None:
            return _evenly_cut(name, cells.strip(), words), rest
        named = cells[kind.end() + 1 :].strip()
        in_table = columns_in(named) if kind[1] == "categories" else None
        if in_table is None:
            items = items_of(Path(named), "list of edges or categories")
        else:
            table, columns = in_table
            items = [str(id) for id in public_columns(table, columns)[columns[0]]]
    else:
        items, rest = _items(cells, kind.end(), words)
    if kind[1] == "edges":
        return _from_edges(items, name), rest
    return Domain.from_levels(_levels(items), name=name), rest


def names_polygons(words: str) -> bool:
    """Return whether words name a file of polygons: FILE, FILE:ID, ..."""
    return any(f"{ending}:" in f"{words.lower()}:" for ending in POLYGON_ENDINGS)


def parse_polygons(words: str, usual_id: str) -> Districts:
    """Read districts from ``FILE``, ``FILE:ID``, ``FILE:ID:X,Y`` or with a system.

    Parameters
    ----------
    words : str
        The file, then the column that names districts, then the columns of records
        that hold coordinates, then the reference system where the file states none:
        ``tracts.shp:GEOID:x,y:EPSG:2056``; ``:step=0.001`` at the end rounds borders,
        so that slivers between them vanish. Records in degrees, columns ``lon,lat``,
        meet districts of any system: these are transformed.
    usual_id : str
        The column that names districts where the words do not.

    Returns
    -------
    Districts
        The polygons.

    Raises
    ------
    InputError
        If the words are no such file, or it cannot be read.
    """
    stated = POLYGON_FILE.fullmatch(words.strip())
    step = None if stated is None else stated["step"]
    if stated is None or not (step is None or is_number(step)):
        raise InputError(
            "polygons are FILE, FILE:ID or FILE:ID:LON,LAT, as in "
            f"polygons:tracts.geojson:GEOID; received {words.strip()!r}"
        )
    columns = [name.strip() for name in (stated["columns"] or "").split(",") if name]
    in_degrees = {*columns} == {"lon", "lat"}
    rounding = None if step is None else float(step)
    districts = Districts.from_file(
        stated["file"],
        id=(stated["id"] or usual_id).strip(),
        system=stated["system"],
        columns=None if in_degrees else columns or None,
        # In units of what records are in.
        step=None if in_degrees else rounding,
    )
    if not in_degrees:
        return districts
    return districts.in_system("EPSG:4326", columns=columns, step=rounding)


def _evenly_cut(name: str, cells: str, words: str) -> Domain | WideDomain:
    """Read a number of cells, ``LOW:HIGH:WIDTH`` or ``FROM:TO:month``."""
    if POLYGONS.match(cells):
        districts = parse_polygons(POLYGONS.sub("", cells, count=1), name)
        return Domain.from_polygons(districts, name=name)
    hexagons = HEXAGONS.fullmatch(cells)
    if hexagons is not None:
        area = {
            "type": "MultiPolygon",
            "coordinates": [
                [ring.tolist() for ring in polygon]
                for polygon in read_area(hexagons["file"])
            ],
        }
        return Domain.from_h3(area, int(hexagons["resolution"]), name)
    words_of = re.fullmatch(
        r"(letters\+digits|letters|digits|utf-8)\s*:\s*([0-9]{1,4})", cells
    )
    if words_of is not None:
        return KeyDomain(SYMBOLS[words_of[1]], int(words_of[2]), name)
    if re.fullmatch("[0-9]+", cells):
        number = _number_of_cells(cells, words, MOST_STEPS)
        kind = Domain if number <= LARGEST_DOMAIN else WideDomain
        return kind(number, names=[name])
    if ".." in cells:
        low, _, rest = cells.partition("..")
        high, _, step = rest.rpartition(":")
        ends = [low, high, step]
    else:
        ends = cells.split(":")
    low, high, step = [*map(str.strip, ends), "", ""][:3]
    if len(ends) != 3 or not all((low, high, step)):
        raise InputError(
            f"the cells of {name!r} are {FORMS}; received {words.strip()!r}"
            f"{_if_several(words)}"
        )
    if CLOCK_STEP.fullmatch(step):
        return _by_the_clock(name, (low, high, step), words)
    if _is_date(low) and _is_date(high):
        return Domain.from_dates(_dates(low, high, step, words), name=name)
    return _evenly(name, (low, high, step), words)


def _if_several(words: str) -> str:
    """Return what to do where words look like those of several columns."""
    if len(re.findall(r"[^\s,;=]\s*=", words)) < 2:
        return ""
    return (
        ". Each column is stated by itself, with the option before each, or x between "
        'them: "age=0:101:1 x sex=categories:F,M"'
    )


def _by_the_clock(
    name: str, stated: tuple[str, str, str], words: str
) -> Domain | WideDomain:
    """Return moments from one to another; a `Domain` where edges can be listed."""
    low, high, step = stated
    try:
        return narrow(WideDomain.from_steps(start=low, stop=high, step=step, name=name))
    except DomainError as problem:
        raise InputError(
            "time by the clock is FROM:TO:STEP, such as 2024-01-01:2024-01-02:1s, or "
            f"FROM..TO:STEP where ends hold colons; received {words.strip()!r}: "
            f"{problem}"
        ) from None


def find_column(word: str, domain: Attributes) -> int:
    """Return the axis of a column by its name, by axis0, or by its number.

    Parameters
    ----------
    word : str
        The name of a column, "axis0" for the first without a name, or a number from
        0.
    domain : Domain or WideDomain
        Whose columns are meant.

    Returns
    -------
    int
        The axis.

    Raises
    ------
    InputError
        If there is no such column; the message names the nearest.
    """
    name, columns = word.strip(), [*domain.column_names]
    numbers = [str(axis) for axis in range(domain.ndim)]
    for wanted, names in ((word, columns), (name, columns), (name, numbers)):
        if wanted in names:
            return names.index(wanted)
    others = f" to {domain.ndim - 1}" if domain.ndim > 1 else ""
    marked = [column for column in columns if "=" in column]
    quoted_name = f" as in {written_item(marked[0])}" if marked else ""
    raise InputError(
        f"there is no column {name!r} here{nearest(name, columns)}; columns are "
        f"{', '.join(columns)}, or the numbers 0{others}",
        way_out="Put a name with an equals sign into quotation marks," + quoted_name
        if marked
        else None,
    )


def _plain_cells(words: str) -> Domain:
    sides = [side.strip() for side in words.lower().split("x")]
    if not all(re.fullmatch("-?[0-9]+", side) for side in sides):
        raise InputError(
            "cells are one number or several with x between, 4096 or 64x64, or columns "
            f"by name, {FORMS}; received {words!r}"
        )
    sizes = [_number_of_cells(side, words, LARGEST_DOMAIN) for side in sides]
    return Domain(sizes[0] if len(sizes) == 1 else sizes)


def _number_of_cells(text: str, words: str, most: int) -> int:
    """Read a number of cells; one with too many digits to be read is too large."""
    digits, shown = text.lstrip("0"), words.strip()
    shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
    if not digits or digits.startswith("-"):
        raise InputError(
            "a number of cells is at least 1, as in 4096, 64x64 or floor=12; received "
            f"{shown!r}"
        )
    if len(digits) > 20 or int(digits) > most:
        power = most.bit_length() - 1
        raise InputError(
            f"cells like these are at most 2^{power} = {most:,}; received {shown!r}. "
            "Merge cells, or name the column where there are more: address=4294967296"
        )
    return int(digits)


def _fraction(text: str) -> Fraction:
    """Read a number exactly; 1e999999999 would fill the memory with its digits."""
    exponent = re.search(r"e([+-]?\d+)", text, re.IGNORECASE)
    if exponent and abs(int(exponent[1])) > LARGEST_EXPONENT:
        raise ValueError(text)
    return Fraction(text)


def _items(cells: str, start: int, words: str) -> tuple[list[str], str]:
    """Return the items of a list that begins at a place, and the columns behind it."""
    items = []
    while True:
        item, stop = read_item(cells, start, LIST_ENDS)
        if item == Item("", quoted=False):
            raise InputError(
                "list every edge or category with commas between, or name a file with "
                f"one per line, @FILE; received {words.strip()!r}"
            )
        items.append(item.text)
        if cells[stop : stop + 1] != ",":
            end = NEXT_COLUMN.match(cells, stop)
            return items, "" if end is None else cells[end.end() :]
        start = stop + 1


def _from_edges(items: list[str], name: str) -> Domain:
    if all(_is_date(item) for item in items):
        return Domain.from_dates(items, name=name)
    if not all(is_number(item) for item in items):
        raise InputError(
            f"edges of {name!r} must be numbers or dates like 2024-05-31; received "
            f"{', '.join(items[:4])!r}. Names of values are categories:A,B,C"
        )
    return Domain.from_edges([float(item) for item in items], name=name)


def _levels(items: list[str]) -> list[str | int]:
    """Read categories; numbers only where no text would be lost, as in 01234 or -0."""
    if all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", item) for item in items):
        return [int(item) for item in items]
    return list(items)


def _evenly(name: str, stated: tuple[str, str, str], words: str) -> Domain | WideDomain:
    """Return equal cells; fractions keep 0.1 + 0.1 + 0.1 at 0.3."""
    low, high, width = stated
    try:
        start, stop, step = (_fraction(text) for text in stated)
    except (ValueError, ZeroDivisionError):
        raise InputError(
            "cells of one width are LOW:HIGH:WIDTH, three numbers such as 0:101:1, or "
            f"two dates and one of {', '.join(STEPS)}, or a step of a clock such as "
            f"5min; received {words.strip()!r}{_if_several(words)}"
        ) from None
    cells = (stop - start) / step if step > 0 else Fraction(0)
    if cells < 1 or cells.denominator != 1:
        raise InputError(
            f"{low} to {high} must be one or more whole cells of width {width}; "
            f"received {words.strip()!r}. Move an end, or choose another width"
        )
    whole = all(number.denominator == 1 for number in (start, step))
    if cells > LARGEST_DOMAIN and (not whole or cells > MOST_STEPS):
        raise InputError(
            f"a domain holds at most 2^28 cells, or 2^62 in whole numbers; "
            f"{words.strip()!r} would have {int(cells):,}. Choose a larger width, or "
            "count in smaller units"
        )
    if cells > LARGEST_DOMAIN:
        rule: Any = {"start": int(start), "step": int(step), "cells": int(cells)}
        return WideDomain.from_steps(**rule, name=name)
    edges = [float(start + at * step) for at in range(int(cells) + 1)]
    return Domain.from_edges(edges, name=name)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _dates(low: str, high: str, words: str, whole: str) -> list[date]:
    """Return the dates from `low` to `high`; the last step may be a short one."""
    match = re.fullmatch(r"(\d{0,6})\s*(" + "|".join(STEPS) + r")s?", words)
    many = int(match[1] or 1) if match else 0
    if match is None or many < 1:
        raise InputError(
            f"time is cut by {', '.join(STEPS)}, or several such as 14days; received "
            f"{words!r} in {whole.strip()!r}"
        )
    first, last = date.fromisoformat(low), date.fromisoformat(high)
    cuts = [first]
    while cuts[-1] < last:
        if len(cuts) > MOST_DATES:
            raise InputError(f"{whole.strip()!r} has too many cells; take longer steps")
        cuts.append(min(last, _add_steps(first, len(cuts) * many, match[2], last)))
    if len(cuts) < 2:
        raise InputError(
            f"time must go forward; {whole.strip()!r} goes from {low} to {high}"
        )
    return cuts


def _add_steps(first: date, steps: int, unit: str, last: date) -> date:
    if unit not in MONTHS:
        days = steps * (7 if unit == "week" else 1)
        return first + timedelta(days=min(days, (last - first).days))
    month = first.year * 12 + first.month - 1 + steps * MONTHS[unit]
    if month // 12 > last.year:
        return last
    # The 31st of a shorter month is its last day.
    days = calendar.monthrange(month // 12, month % 12 + 1)[1]
    return date(month // 12, month % 12 + 1, min(first.day, days))

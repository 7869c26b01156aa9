"""Workloads in words: what will be asked; `WORKLOAD_FORMS` lists them."""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.apps.cli.options import WORKLOAD_FORMS, names_a_file
from blowfish_fast.data.domain import Domain, WideDomain
from blowfish_fast.data.frames import numbers_from_file, rows_of
from blowfish_fast.data.rules.steps import Steps
from blowfish_fast.errors import InputError, nearest
from blowfish_fast.workloads import (
    AllRanges,
    Identity,
    Marginals,
    Prefixes,
    Ranges,
    Rectangles,
    Tables,
    Total,
    Union,
    Workload,
)

from .domain import find_column
from .levels import parse_levels

if TYPE_CHECKING:
    from .job import Job

SEED_OF_QUERIES = 1
"""Random queries are the same every time, so that predictions can be compared."""
QUERIES = 2000
"""How many random queries there are, if nobody says."""
MOST_QUERIES = 10**7
"""How many there may be."""
PLAIN_WORKLOADS: dict[str, type[Workload]] = {
    "all_ranges": AllRanges,
    "identity": Identity,
    "prefixes": Prefixes,
    "total": Total,
}


def parse_workload(words: str, domain: Any) -> Workload:
    """Return the workload of ``identity``, ``ranges:2000`` or another form.

    Parameters
    ----------
    words : str
        One of `WORKLOAD_FORMS`; several with "|" between.
    domain : Domain or WideDomain
        The cells of the release.

    Returns
    -------
    Workload
        The queries.

    Raises
    ------
    InputError
        If the words are none of the forms.
    """
    if asks_tables(words):
        return parse_tables(words, domain)
    if isinstance(domain, WideDomain):
        return _of_wide_domain(words, domain)
    if "|" in words:
        return Union(*(parse_workload(part, domain) for part in words.split("|")))
    name, _, setting = words.strip().partition(":")
    if name in ("ranges", "rectangles") and re.fullmatch("[0-9]*", setting):
        kind = Ranges if name == "ranges" else Rectangles
        number = int(setting[:12] or QUERIES)
        if not 1 <= number <= MOST_QUERIES:
            raise InputError(
                f"a workload of random {name} has 1 to {MOST_QUERIES:,} of them; "
                f"received {words!r}. All of them are all_ranges"
            )
        return kind.random(domain, number, rng=SEED_OF_QUERIES)
    if name in ("ranges", "rectangles") and names_a_file(setting):
        return _queries_in(Path(setting), domain, boxes=name == "rectangles")
    if names_a_file(words):
        return _queries_in(Path(words.strip()), domain, boxes=domain.ndim > 1)
    if name == "levels":
        return parse_levels(setting, domain)
    if name == "marginals" and setting:
        columns = [find_column(column, domain) for column in setting.split(",")]
        return Marginals(domain, columns)
    if name in PLAIN_WORKLOADS and not setting:
        plain: Any = PLAIN_WORKLOADS[name]
        workload: Workload = plain(domain)
        return workload
    names = [*PLAIN_WORKLOADS, "ranges", "rectangles", "marginals"]
    names += ["tables", "levels"]
    raise InputError(
        f"the workload is one of {WORKLOAD_FORMS}; received {words!r}"
        f"{nearest(name, names)}"
    )


def _of_wide_domain(words: str, domain: WideDomain) -> Workload:
    """Return what can be asked of a domain whose cells nobody lists."""
    name, _, setting = words.strip().partition(":")
    cells: Any = domain
    if name == "identity" and not setting:
        return Identity(cells)
    kind: Any = {1: Ranges, 2: Rectangles}.get(domain.ndim)
    ordered = kind is not None and not any(
        attribute.keys or attribute.levels or attribute.cuts
        for attribute in domain.attributes
    )
    called = "ranges" if kind is Ranges else "rectangles"
    path = setting if name == called else words.strip()
    if ordered and names_a_file(path):
        return _values_in(Path(path), domain, kind)
    if ordered and name == called and re.fullmatch("[0-9]*", setting):
        number = int(setting[:7] or QUERIES)
        drawn: Workload = kind.random(cells, number, rng=SEED_OF_QUERIES)
        return drawn
    asked = f"{called}:NUMBER or {called}:FILE, " if ordered else ""
    raise InputError(
        f"of {domain.size:,} cells heavy ones are listed, identity; or {asked}tables "
        "are asked, tables:2 or tables:age,age+sex",
        received=f"--workload {words}",
        way_out="Ask for one of these, or state coarser cells",
    )


def _values_in(path: Path, domain: WideDomain, kind: Any) -> Workload:
    """Return ranges or rectangles of a file by their values: starts, then ends."""
    rows = rows_of(path, "queries, where each starts and where it ends")
    if rows and not any(text[:1].isdigit() or text[:1] == "-" for text in rows[0]):
        rows = rows[1:]
    many = domain.ndim
    if not rows or any(len(row) != 2 * many for row in rows):
        raise InputError(
            f"each line of {path} needs two values of "
            f"{' and of '.join(domain.column_names)}: the starts, and then the "
            "(exclusive) ends"
        )
    rules = [attribute.rule for attribute in domain.attributes] * 2
    values = [list(map(read_tick, row, rules)) for row in rows]
    starts, ends = (
        [value[:many] for value in values],
        [value[many:] for value in values],
    )
    if many == 1:
        starts, ends = ([low for (low,) in corners] for corners in (starts, ends))
    queries: Workload = kind.between(domain, starts, ends)
    return queries


def read_tick(text: str, rule: Steps) -> Any:
    """Return a value of an axis by a rule: a whole number, or a moment as written.

    Parameters
    ----------
    text : str
        A value as it was typed.
    rule : Steps
        The rule of the axis; with a unit its values are moments.

    Returns
    -------
    int or str
        A whole number, or the text of a moment.

    Raises
    ------
    InputError
        If the text is no whole number where one is meant.
    """
    if rule.unit is not None:
        return text.strip()
    if not re.fullmatch(r"\s*-?[0-9]{1,25}\s*", text):
        raise InputError(
            "values of this column are whole numbers", received=repr(text[:40])
        )
    return int(text)


def asks_tables(words: str | None) -> bool:
    """Return whether a workload is contingency tables alone."""
    parts = (words or "").split("|")
    return all(part.strip().partition(":")[0] == "tables" for part in parts)


def parse_tables(words: str, domain: Domain | WideDomain) -> Tables:
    """Return the tables of ``tables:2`` or ``tables:age,age+sex*4``.

    Parameters
    ----------
    words : str
        The number of columns of the widest tables, or a list of tables: columns
        with "+" between, and a weight after "*"; several such texts with "|"
        between.
    domain : Domain or WideDomain
        Whose columns are meant.

    Returns
    -------
    Tables
        The tables with their weights.
    """
    first, *others = words.split("|")
    if others:
        return reduce(or_, (parse_tables(part, domain) for part in (first, *others)))
    setting = words.strip().partition(":")[2].strip() or "2"
    if re.fullmatch("[0-9]{1,3}", setting):
        return Tables(domain, ways=int(setting))
    parts = [part.partition("*") for part in setting.split(",")]
    named = [
        [find_column(column, domain) for column in part[0].split("+")] for part in parts
    ]
    return Tables(domain, named, weights=[part[2] if part[1] else 1 for part in parts])


def _queries_in(path: Path, domain: Domain, *, boxes: bool) -> Workload:
    """Return the queries of a file: starts, then ends, of each column."""
    rows: FloatArray = numbers_from_file(path, "queries, starts then ends")
    wanted = 2 * domain.ndim if boxes else 2
    if rows.ndim != 2 or rows.shape[1] != wanted:
        raise InputError(
            f"each line of {path} needs {wanted} numbers, the starts and then the "
            f"(exclusive) ends; received shape {rows.shape}"
        )
    if boxes:
        return Rectangles(domain, rows[:, : domain.ndim], rows[:, domain.ndim :])
    return Ranges(domain, rows[:, 0], rows[:, 1])


def parse_demanded(words: list[str], domain: Domain | WideDomain) -> list[list[int]]:
    """Return the columns of tables that are always measured, ``age x sex``.

    Parameters
    ----------
    words : list of str
        A table each: columns with " x " between, as a release lists what it measured,
        or with "+", as a workload does.
    domain : Domain or WideDomain
        Whose columns are meant.

    Returns
    -------
    list of lists of int
        The columns of each table, by number.

    Examples
    --------
    >>> survey = Domain((4, 3), names=["age", "sex"])
    >>> parse_demanded(["age x sex"], survey) == parse_demanded(["age+sex"], survey)
    True
    """
    return [
        [find_column(column, domain) for column in re.split(r"\s+x\s+|\+", table)]
        for table in words
    ]


def refuse_choice_options(job: Job, beside: str) -> None:
    """Stop where options about chosen tables stand beside something else.

    Parameters
    ----------
    job : Job
        The release as it was stated.
    beside : str
        What they stand beside: "another workload", or "the plan of public sizes".

    Raises
    ------
    InputError
        If one of them was stated.
    """
    stated = {
        "--always": job.always or None,
        "--rounds": job.rounds,
        "--model-cells": job.model_cells,
    }
    way_in = {"another workload": "Ask for tables, --tables 2"}
    for flag, value in stated.items():
        if value is not None:
            asked = way_in.get(beside, "State --choose data or --choose best")
            raise InputError(
                f"{flag} is about tables that the data choose",
                received=f"{flag} beside {beside}",
                way_out=f"{asked}, or leave {flag} out",
            )

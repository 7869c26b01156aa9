"""All tables of a release as files: a folder of CSV, or one workbook.

promise.txt     what is promised, and what intervals mean
contents.csv    number, attributes, cells, error, mean count, file
001_age.csv     one row per cell: what it stands for, estimate, low, high
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.data.frames import LONGEST_TITLE, Table, write_workbook
from blowfish_fast.release.guarantee import Guarantee
from blowfish_fast.release.release import Release

Kinds = dict[str, bool]
"""Columns beside the estimates, and whether their counts are whole."""


class ReleasedTables(Protocol):
    """What is written: a `TablesRelease`."""

    @property
    def asked(self) -> tuple[tuple[Any, ...], ...]:
        """The tables."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What is promised."""
        ...

    def accuracy(self) -> Table:
        """Return cells, error and mean count of each table."""
        ...

    def table(self, *names: Any) -> Release:
        """Return one table."""
        ...

    def fitted(self, *names: Any, whole: bool = False) -> Release:
        """Return one table without negative counts."""
        ...


def write_tables(
    release: ReleasedTables,
    path: str | os.PathLike[str],
    *,
    fitted: bool,
    whole: bool = False,
) -> None:
    """Write every asked table to a folder, or to one ``.xlsx``."""
    target = Path(path)
    kinds = {"fitted": False} if fitted else {}
    kinds |= {"whole": True} if whole else {}
    if target.suffix.lower() == ".xlsx":
        _write_workbook(release, target, kinds)
    else:
        _write_folder(release, target, kinds)


def _write_folder(release: ReleasedTables, folder: Path, kinds: Kinds) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "promise.txt").write_text(_promise(release) + "\n", encoding="utf-8")
    names = [f"{_title(at, one)}.csv" for at, one in enumerate(release.asked, 1)]
    contents = release.accuracy()
    columns = {name: contents[name] for name in contents}
    columns["file"] = _texts(names)
    Table(columns).to_csv(folder / "contents.csv")
    for name, table in zip(names, release.asked, strict=True):
        _cells(release, table, kinds).to_csv(folder / name)


def _write_workbook(release: ReleasedTables, file: Path, kinds: Kinds) -> None:
    titles = [
        _title(at, one)[:LONGEST_TITLE] for at, one in enumerate(release.asked, 1)
    ]
    contents = release.accuracy()
    columns = {name: contents[name] for name in contents}
    sheets = {"contents": Table({**columns, "sheet": _texts(titles)})}
    for title, table in zip(titles, release.asked, strict=True):
        sheets[title] = _cells(release, table, kinds)
    write_workbook(file, sheets, about=_promise(release))


def _cells(release: ReleasedTables, table: tuple[Any, ...], kinds: Kinds) -> Table:
    """Return a row per cell: estimate and interval, and the fits that are asked."""
    rows = release.table(*table).to_table()
    columns = {name: rows[name] for name in rows}
    for name, whole in kinds.items():
        columns[name] = release.fitted(*table, whole=whole).estimate.reshape(-1)
    return Table(columns, experiment=rows.experiment)


def _promise(release: ReleasedTables) -> str:
    return "\n".join(
        [
            str(release.guarantee),
            "All tables were published together, once, under this promise. They agree: "
            "a table summed over an attribute is the table without it.",
            "Counts carry noise, and may be negative or fractional. Low and high hold "
            "the true count with a probability of at least 95 %. Counts under fitted "
            "are not negative; those under whole are those of one set of made-up "
            "records, so that they agree to the last one.",
        ]
    )


def _title(number: int, table: tuple[Any, ...]) -> str:
    names = "_".join(re.sub(r"[^A-Za-z0-9-]+", "-", str(one)) for one in table)
    return f"{number:03d}_{names}"[:100]


def _texts(values: list[str]) -> AnyArray:
    texts = np.empty(len(values), dtype=object)
    texts[:] = values
    return texts

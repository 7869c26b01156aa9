"""All tables of a release as files: a folder of CSV, or one workbook.

promise.txt     what is promised, and what intervals mean
contents.csv    number, attributes, cells, error, mean count, file
001_age.csv     one row per cell: what it stands for, estimate, low, high
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import AnyArray
from blowfish_fast.data.frames import Table
from blowfish_fast.errors import SizeError
from blowfish_fast.release.guarantee import Guarantee
from blowfish_fast.release.release import Release

MOST_ROWS = 2**20 - 1
"""Rows of a sheet below its heading."""

LONGEST_TITLE = 31
"""Characters of a sheet's name."""


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

    def fitted(self, *names: Any) -> Release:
        """Return one table without negative counts."""
        ...


def write_tables(
    release: ReleasedTables, path: str | os.PathLike[str], *, fitted: bool
) -> None:
    """Write every asked table to a folder, or to one ``.xlsx``."""
    target = Path(path)
    if target.suffix.lower() == ".xlsx":
        _write_workbook(release, target, fitted=fitted)
    else:
        _write_folder(release, target, fitted=fitted)


def _write_folder(release: ReleasedTables, folder: Path, *, fitted: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "promise.txt").write_text(_promise(release) + "\n", encoding="utf-8")
    names = [f"{_title(at, one)}.csv" for at, one in enumerate(release.asked, 1)]
    contents = release.accuracy()
    columns = {name: contents[name] for name in contents}
    columns["file"] = _texts(names)
    Table(columns).to_csv(folder / "contents.csv")
    for name, table in zip(names, release.asked, strict=True):
        _cells(release, table, fitted=fitted).to_csv(folder / name)


def _write_workbook(release: ReleasedTables, file: Path, *, fitted: bool) -> None:
    openpyxl = require("openpyxl", extra="excel", purpose="a workbook of tables")
    titles = [
        _title(at, one)[:LONGEST_TITLE] for at, one in enumerate(release.asked, 1)
    ]
    contents = release.accuracy()
    columns = {name: contents[name] for name in contents}
    columns["sheet"] = _texts(titles)
    pages = [_cells(release, table, fitted=fitted) for table in release.asked]
    for table, cells in zip(release.asked, pages, strict=True):
        if len(cells) > MOST_ROWS:
            raise SizeError(
                f"a sheet holds at most {MOST_ROWS:,} cells",
                received=f"{' x '.join(map(str, table))} with {len(cells):,}",
                way_out="Save a folder of CSV files instead",
            )
    book = openpyxl.Workbook(write_only=True)
    try:
        first = book.create_sheet("promise")
        for line in _promise(release).splitlines():
            first.append([line])
        _append(book.create_sheet("contents"), Table(columns))
        for title, cells in zip(titles, pages, strict=True):
            _append(book.create_sheet(title), cells)
        book.save(file)
    except BaseException:
        # Sheets write to files of their own as they grow: none stays open.
        for sheet in book.worksheets:
            with contextlib.suppress(Exception):
                sheet.close()
        raise


def _append(sheet: Any, table: Table) -> None:
    sheet.append(list(table))
    plain = table.to_dict()
    for row in zip(*plain.values(), strict=True):
        sheet.append([_plain(value) for value in row])


def _plain(value: Any) -> Any:
    """Return what a sheet can hold: numbers, texts and dates, else text."""
    return value if value is None or isinstance(value, int | float) else str(value)


def _cells(release: ReleasedTables, table: tuple[Any, ...], *, fitted: bool) -> Table:
    """Return a row per cell: estimate and interval, and the fit where it is asked."""
    rows = release.table(*table).to_table()
    if not fitted:
        return rows
    columns = {name: rows[name] for name in rows}
    columns["fitted"] = release.fitted(*table).estimate.reshape(-1)
    return Table(columns)


def _promise(release: ReleasedTables) -> str:
    return "\n".join(
        [
            str(release.guarantee),
            "All tables were published together, once, under this promise. They agree: "
            "a table summed over an attribute is the table without it.",
            "Counts carry noise, and may be negative or fractional. Low and high hold "
            "the true count with a probability of at least 95 %.",
        ]
    )


def _title(number: int, table: tuple[Any, ...]) -> str:
    names = "_".join(re.sub(r"[^A-Za-z0-9-]+", "-", str(one)) for one in table)
    return f"{number:03d}_{names}"[:100]


def _texts(values: list[str]) -> AnyArray:
    texts = np.empty(len(values), dtype=object)
    texts[:] = values
    return texts

"""Tables that commands write: .csv, .xlsx, .parquet or .json, by the file's name."""

from __future__ import annotations

import json
from pathlib import Path

from blowfish_fast._support.optional import check_installed
from blowfish_fast.apps.cli.printing import plain
from blowfish_fast.data.frames import Table
from blowfish_fast.errors import InputError, IntervalError
from blowfish_fast.release.release import Release

TABLES = (".csv", ".xlsx", ".parquet", ".pq", ".json")


def check_table(path: Path, *, many: bool = False) -> None:
    """Refuse a table that could not be written."""
    suffix = path.suffix.lower()
    if many and suffix not in ("", ".xlsx"):
        raise InputError(
            f"tables are written to a folder, or to one .xlsx; received --table {path}"
        )
    if not many and suffix not in TABLES:
        raise InputError(
            f"a table is written as {', '.join(TABLES)}; received {path.name!r}"
        )
    if suffix in (".parquet", ".pq"):
        check_installed("pyarrow", extra="frames", purpose="A Parquet table")
    if suffix == ".xlsx":
        check_installed("openpyxl", extra="excel", purpose="A workbook")


def cell_table(release: Release, confidence: float, *, whole: bool) -> Table:
    """Return a line per cell; `whole` adds the counts to publish."""
    try:
        table = release.to_table(confidence)
    except IntervalError:
        # Noise on stated queries: single cells have estimates, and no intervals.
        table = release.to_table(None)
    if whole:
        counts = release.rounded().estimate.reshape(-1).astype("int64")
        table = Table({**table.columns, "count": counts}, experiment=table.experiment)
    return table


def write_table(table: Table, path: Path, promise: str) -> None:
    """Write a table by the ending of its name; a workbook holds the promise, too."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        write_csv(table, path)
    elif suffix == ".xlsx":
        table.to_xlsx(path, about=promise)
    elif suffix == ".json":
        path.write_text(json.dumps(plain(table.to_dict())) + "\n", encoding="utf-8")
    else:
        table.to_parquet(path)


def write_csv(table: Table, path: Path) -> None:
    """Write a table so that a spreadsheet shows its letters as they are.

    Excel takes a file without a mark at its beginning for one in the system's own
    encoding, and garbles umlauts; a file of plain letters needs no mark and gets none.
    """
    texts = [
        str(one)
        for column in table.columns.values()
        if column.dtype.kind in "OU"
        for one in set(column.tolist())
    ]
    plainly = all(one.isascii() for one in [*table.columns, *texts])
    table.to_csv(path, encoding="utf-8" if plainly else "utf-8-sig")

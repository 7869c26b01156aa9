"""Tables and pictures that commands write, each by the ending of its file's name.

.csv .xlsx .parquet .json     a table
.png .svg .pdf                a picture, drawn without a screen
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from blowfish_fast._support.optional import check_installed
from blowfish_fast.apps.cli.printing import plain
from blowfish_fast.data.frames import Table
from blowfish_fast.errors import InputError, IntervalError
from blowfish_fast.release.release import Release
from blowfish_fast.release.tables.tables_release import TablesRelease

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TABLES = (".csv", ".xlsx", ".parquet", ".pq", ".json")
PICTURES = (".png", ".svg", ".pdf")
DOTS = 150


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


def check_picture(out: Path) -> None:
    """Refuse, before any work is done, what could not be drawn or written."""
    if out.suffix.lower() not in PICTURES:
        raise InputError(
            f"a picture is written as {', '.join(PICTURES)}; received {out.name!r}"
        )
    if not out.parent.is_dir():
        raise InputError(f"there is no folder {out.parent} to write {out.name} to")
    check_installed("matplotlib", extra="plot", purpose="A picture")


def write_picture(draw: Callable[[], Axes], out: Path | BinaryIO) -> str:
    """Draw, write, and return the name of the file; into a stream as SVG."""
    if isinstance(out, Path):
        check_picture(out)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with warnings.catch_warnings():
        # About ticks and fonts: nothing that a curator could act on.
        warnings.simplefilter("ignore")
        figure: Any = draw().figure
        kind = None if isinstance(out, Path) else "svg"
        figure.savefig(out, dpi=DOTS, format=kind)
    pyplot.close(figure)
    return str(out)


def draw_release(release: Release, path: Path, confidence: float) -> None:
    """Draw a release to a file; see `release_axes`."""
    write_picture(lambda: release_axes(release, confidence), path)


def release_axes(release: Release, confidence: float) -> Axes:
    """Draw one or two columns, or the errors of many tables; intervals where known."""
    from blowfish_fast import plotting

    if isinstance(release, TablesRelease):
        return plotting.table_errors(release.errors())
    if release.domain.ndim == 2:
        return plotting.grid_map(release)
    try:
        return plotting.histogram(release, confidence=confidence)
    except IntervalError:
        return plotting.histogram(replace(release, interval_scope="nothing"))

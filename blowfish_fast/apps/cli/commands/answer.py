"""``blowfish answer``: questions to a saved release, for free, with intervals.

The questions and their tables are in ``release_questions``; here they are printed, and
written to a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blowfish_fast._support.validation import as_confidence
from blowfish_fast.apps.cli.files.release_outputs import write_csv
from blowfish_fast.apps.cli.printing import plain, remark, show, show_table, waiting
from blowfish_fast.apps.cli.release_questions import Asked, answered, with_bounds
from blowfish_fast.data.frames import Table
from blowfish_fast.data.predicates import extent
from blowfish_fast.errors import InputError
from blowfish_fast.release.release import Release

MOST_LINES = 40
"""Lines of the table that are shown to people."""


def run_answer(
    path: Path, asked: Asked, *, confidence: float, out: Path | None, as_json: bool
) -> None:
    """Read the release, answer, print, and write the table if asked to."""
    checked = as_confidence(confidence)
    if out is not None and out.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"a table is written as .csv or .parquet; received {out}")
    with waiting(f"reading {path.name}") as step:
        release = Release.load(path)
        step("answering")
        found = answered(release, asked)
        columns, about = with_bounds(release, found, checked)
    table = Table(columns)
    if out is not None:
        if out.suffix.lower() == ".parquet":
            table.to_parquet(out)
        else:
            write_csv(table, out)
    if as_json:
        show(_as_plain(path, release, table, checked, about, out))
        return
    _show(release, table, about)
    if not asked.anything:
        held = "; ".join(extent(one) for one in release.domain.attributes)
        show(f"What can be asked: {held}.")
    if out is not None:
        remark(f"written: {out}")


def _as_plain(
    path: Path,
    release: Release,
    table: Table,
    confidence: float,
    about: str,
    out: Path | None,
) -> dict[str, Any]:
    columns = plain(table.columns)
    return {
        "release": str(path),
        "mechanism": release.mechanism,
        "epsilon": str(release.guarantee.epsilon),
        "private": release.private,
        "confidence": confidence if "low" in columns else None,
        "interval": about,
        "answers": [
            dict(zip(columns, row, strict=True))
            for row in zip(*columns.values(), strict=True)
        ],
        "written": None if out is None else str(out),
    }


def _show(release: Release, table: Table, about: str) -> None:
    shown = {name: column[:MOST_LINES] for name, column in table.columns.items()}
    texts = [_texts(plain(column)) for column in shown.values()]
    names = [name.replace("_", " ") for name in shown]
    show_table(names, [list(row) for row in zip(*texts, strict=True)])
    if len(table) > MOST_LINES:
        more = len(table) - MOST_LINES
        show(f"... and {more:,} more: --out FILE.csv has them all")
    show(about)
    show(
        f"Free: {release.mechanism} has spent eps = "
        f"{float(release.guarantee.epsilon):g} on this release already."
        + ("" if release.private else " Its noise was seeded: it is an experiment.")
    )


def _texts(column: list[Any]) -> list[str]:
    """Return a column with one number of decimals."""
    numbers = [one for one in column if isinstance(one, float)]
    largest = max((abs(one) for one in numbers), default=0.0)
    whole = all(one == int(one) for one in numbers)
    decimals = 0 if whole else 1 if largest >= 100 else 2 if largest >= 1 else 4
    return [
        f"{one:,.{decimals}f}"
        if isinstance(one, float)
        else ("" if one is None else str(one))
        for one in column
    ]

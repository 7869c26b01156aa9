"""Cross tables for people who open a workbook: one count per cell, as noise allows.

    lines                         cross table
    age_from age_to sex estimate  age / sex    F     M
    0        10     F   103.2     0 to 10     100   200      rounded to tens, where
    0        10     M   198.9     10 to 20    100   190      intervals are 30 wide or so
    ...

Rounding is post-processing: free, and a function of noisy values and public scales.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray

WHOLE = ("whole", "count")
"""Columns of whole counts that agree, which are shown as they are."""
COUNTS = (*WHOLE, "estimate")
"""Columns of counts; the first of them is shown."""
LOWER, UPPER = ("low", "noise_low"), ("high", "noise_high")
WIDEST, LONGEST = 100, 20_000
"""Columns and rows of the largest cross table."""


class CrossTable(NamedTuple):
    """A cross table, and to what its counts were rounded.

    Parameters
    ----------
    columns : dict[str, AnyArray]
        The names of the rows, then the counts of each column.
    unit : int
        Counts are multiples of it; 1 for whole counts.
    """

    columns: dict[str, AnyArray]
    unit: int


def cross_table(lines: Mapping[str, AnyArray]) -> CrossTable | None:
    """Return the lines of a table of two attributes as a cross table.

    Parameters
    ----------
    lines : Mapping[str, AnyArray]
        A line per cell: names of both attributes, a count, and its interval.

    Returns
    -------
    CrossTable or None
        None where there are not two attributes, cells are lacking, or it is too large.

    Examples
    --------
    >>> lines = {
    ...     "town": np.array(["Bern", "Bern", "Chur", "Chur"]),
    ...     "sex": np.array(["F", "M", "F", "M"]),
    ...     "estimate": np.array([104.0, 57.0, -8.0, 31.0]),
    ...     "low": np.array([64.0, 17.0, 0.0, 0.0]),
    ...     "high": np.array([144.0, 97.0, 32.0, 71.0]),
    ... }
    >>> crossed = cross_table(lines)
    >>> crossed.unit, crossed.columns["F"].tolist(), list(crossed.columns)
    (10, [100, 0], ['town / sex', 'F', 'M'])
    """
    names = list(lines)
    shown = next((name for name in COUNTS if name in lines), None)
    if shown is None:
        return None
    named = names[: min(names.index(name) for name in COUNTS if name in lines)]
    labels = _labels({name: lines[name] for name in named})
    if len(labels) != 2:
        return None
    (first, down), (second, across) = labels.items()
    rows, columns = list(dict.fromkeys(down)), list(dict.fromkeys(across))
    cells = [(row, column) for row in rows for column in columns]
    if cells != list(zip(down, across, strict=True)):
        return None
    if len(columns) > WIDEST or len(rows) > LONGEST:
        return None
    counts = np.asarray(lines[shown], dtype=np.float64)
    unit = 1 if _is_whole(shown, lines) else _unit(lines)
    # None is negative, and none is said more exactly than it is known.
    rounded = np.maximum(np.rint(counts / unit), 0.0).astype(np.int64) * unit
    grid = rounded.reshape(len(rows), len(columns))
    crossed: dict[str, AnyArray] = {f"{first} / {second}": np.array(rows, dtype=object)}
    crossed |= {name: grid[:, at] for at, name in enumerate(columns)}
    return CrossTable(crossed, unit) if len(crossed) == len(columns) + 1 else None


def _is_whole(shown: str, lines: Mapping[str, AnyArray]) -> bool:
    return shown == "whole" or np.asarray(lines[shown]).dtype.kind in "iu"


def _unit(lines: Mapping[str, AnyArray]) -> int:
    """Return the power of ten by which rounding changes little.

    A count moves by at most an eighth of the width of its interval.
    """
    low = next((lines[name] for name in LOWER if name in lines), None)
    high = next((lines[name] for name in UPPER if name in lines), None)
    if low is None or high is None:
        return 1
    # Ends are cut at 0, so the widest interval tells how wide they are.
    half = float(np.max(np.asarray(high) - np.asarray(low))) / 2
    return 10 ** int(math.log10(half / 2)) if 20 <= half < math.inf else 1


def _labels(named: Mapping[str, AnyArray]) -> dict[str, list[str]]:
    """Return the names of cells by attribute; two edges are one name."""
    labels: dict[str, list[str]] = {}
    for name, column in named.items():
        start = name.removesuffix("_from")
        if name != start and f"{start}_to" in named:
            beside: Any = named.get(f"{start}_cell", [""] * len(column))
            ends = zip(column, named[f"{start}_to"], beside, strict=True)
            labels[start] = [
                str(cell) or f"{_plain(low)} to {_plain(high)}"
                for low, high, cell in ends
            ]
        elif name.removesuffix("_to") not in labels and (
            name.removesuffix("_cell") not in labels
        ):
            labels[name] = [_plain(value) for value in column]
    return labels


def _plain(value: Any) -> str:
    """Write a value as people do: 10 for 10.0, a pair as from and to."""
    if isinstance(value, tuple):
        return " to ".join(map(_plain, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)

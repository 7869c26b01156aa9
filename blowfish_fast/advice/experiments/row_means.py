"""Arithmetic on rows: means by some of their columns, and ratios between methods.

    rows                               means(rows, "set", "method")
    set    method  trial  error
    adult  DAWA    0      9.0          {("adult", "DAWA"): 10.0, ...}
    adult  DAWA    1      11.0

Rows without a number (skipped methods) are passed over.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .experiment import Row, Value

Key = tuple[Value, ...]


def values_by(
    rows: Iterable[Row], *columns: str, value: str = "error"
) -> dict[Key, list[float]]:
    """Collect the numbers under `value` by the given columns, in order of meeting."""
    found: dict[Key, list[float]] = {}
    for row in rows:
        number = row.get(value)
        if isinstance(number, int | float) and not isinstance(number, bool):
            key = tuple(row.get(column) for column in columns)
            found.setdefault(key, []).append(float(number))
    return found


def means(rows: Iterable[Row], *columns: str, value: str = "error") -> dict[Key, float]:
    """Return the mean of `value` by the given columns."""
    return {
        key: math.fsum(numbers) / len(numbers)
        for key, numbers in values_by(rows, *columns, value=value).items()
    }


def quartiles(
    rows: Iterable[Row], *columns: str, value: str = "error"
) -> dict[Key, tuple[float, float]]:
    """Return lower and upper quartile of `value` by the given columns."""
    return {
        key: (_at(sorted(numbers), 0.25), _at(sorted(numbers), 0.75))
        for key, numbers in values_by(rows, *columns, value=value).items()
    }


def distinct(rows: Iterable[Row], column: str) -> list[Value]:
    """Return the values of a column in the order in which they are met."""
    return list(dict.fromkeys(row.get(column) for row in rows))


def geometric_mean(numbers: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers; not a number of none.

    Examples
    --------
    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    logs = [math.log(number) for number in numbers]
    return math.exp(math.fsum(logs) / len(logs)) if logs else math.nan


def skipped_notes(rows: Iterable[Row]) -> list[str]:
    """Say which methods did not run, and why, once each."""
    found = {
        (row.get("method"), row.get("skipped")): None
        for row in rows
        if row.get("skipped")
    }
    return [f"{method} was skipped: {reason}" for method, reason in found]


def _at(ordered: Sequence[float], part: float) -> float:
    """Interpolate between neighbours, as numpy's quantile does."""
    place = part * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

"""Arithmetic on rows: means by some of their columns.

    rows                               means(rows, "set", "method")
    set    method  trial  error
    adult  DAWA    0      9.0          {("adult", "DAWA"): 10.0, ...}
    adult  DAWA    1      11.0

Rows without a number (skipped methods) are passed over.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

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


def distinct(rows: Iterable[Row], column: str) -> list[Value]:
    """Return the values of a column in the order in which they are met."""
    return list(dict.fromkeys(row.get(column) for row in rows))


def by_method(
    rows: Iterable[Row], *columns: str, value: str = "error"
) -> tuple[dict[Key, float], list[str], list[list[Value]]]:
    """Return means by columns and method, the methods, and a line for each place."""
    rows = list(rows)
    found = means(rows, *columns, "method", value=value)
    methods = [str(one) for one in distinct(rows, "method") if one is not None]
    lines: list[list[Value]] = [
        [*place, *(found.get((*place, method)) for method in methods)]
        for place in dict.fromkeys(key[:-1] for key in found)
    ]
    return found, methods, lines


def skipped_notes(rows: Iterable[Row]) -> list[str]:
    """Say which methods did not run, and why, once each."""
    found = {
        (row.get("method"), row.get("skipped")): None
        for row in rows
        if row.get("skipped")
    }
    return [f"{method} was skipped: {reason}" for method, reason in found]

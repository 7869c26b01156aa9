"""Rows read back, by method, their quartiles, and geometric means of ratios."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from blowfish_fast.advice.experiments.experiment import (
    Key,
    Row,
    Value,
    distinct,
    means,
    values_by,
)


def read_csv(path: Path) -> list[Row]:
    """Read rows back: numbers as numbers, empty cells as None."""
    with path.open(newline="") as file:
        return [
            {name: _value(text) for name, text in row.items()}
            for row in csv.DictReader(file)
        ]


def _value(text: str | None) -> Value:
    if text is None or text == "":
        return None
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


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


def quartiles(
    rows: Iterable[Row], *columns: str, value: str = "error"
) -> dict[Key, tuple[float, float]]:
    """Return lower and upper quartile of `value` by the given columns."""
    found = values_by(rows, *columns, value=value)
    both = {key: np.quantile(numbers, [0.25, 0.75]) for key, numbers in found.items()}
    return {key: (float(low), float(high)) for key, (low, high) in both.items()}


def geometric_mean(numbers: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers; not a number of none.

    Examples
    --------
    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    logs = [math.log(number) for number in numbers]
    return math.exp(math.fsum(logs) / len(logs)) if logs else math.nan

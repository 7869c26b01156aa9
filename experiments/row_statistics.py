"""More arithmetic on rows: quartiles, and geometric means of ratios."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from blowfish_fast.advice.experiments.experiment import Key, Row, values_by


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

"""Public classes of survey weights, each a fixed part of the one before it.

largest 64, five classes, ratio 2      64   32   16   8   4
"""

from __future__ import annotations

from typing import Any

from blowfish_fast._support.validation import as_number, as_whole
from blowfish_fast.errors import DomainError

MOST_CLASSES = 1024


def weight_levels(largest: Any, classes: Any, ratio: Any) -> list[float]:
    """Return the classes from the largest down; whole ones as whole numbers.

    Parameters
    ----------
    largest : number
        The largest class, 1 or more.
    classes : int
        How many there are.
    ratio : number
        By how much one exceeds the next, above 1.

    Returns
    -------
    list of int or float
        The classes.

    Raises
    ------
    DomainError
        If the least one would be below 1, or all are equal.
    """
    count = as_whole(classes, "classes", 2, MOST_CLASSES)
    step = as_number(ratio, "ratio", 1.0, 1024.0)
    top = as_number(largest, "largest", 1.0, 2.0**53)
    levels = [top / step**place for place in range(count)]
    if levels[-1] < 1.0 or step == 1.0:
        raise DomainError(
            "the least class of weights is 1 or more, and classes differ: nobody "
            "stands for less than herself",
            received=f"largest={largest!r}, classes={classes!r}, ratio={ratio!r}",
            way_out="State fewer classes, or a ratio above 1",
        )
    return [int(weight) if weight.is_integer() else weight for weight in levels]

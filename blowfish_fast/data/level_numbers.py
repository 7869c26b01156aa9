"""Categories that are numbers: 1, "1" and "1.0" are one of them, "01" is another.

A column of codes with gaps is written 1.0, 2.0 by whatever keeps gaps as NaN, and 1, 2
by everything else. Where all categories of a column are numbers, values are therefore
compared as numbers. Every reader does it by this file, and databases by the same
pattern (`sql_cells.as_level`).

    categories     1, 2      "1", "2.5"   "01", "02"   "1", "1.0"   "1", "other"
    compared as    numbers   numbers      texts        texts        texts
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from .axes import is_blank

NUMERAL = r"-?(0|[1-9][0-9]{0,17})([.][0-9]*)?"
"""How a number is written that is compared as one: 1, 1.0, -2.50; 01 is a text."""


def numeral(value: Any) -> str | None:
    """Return the shortest way to write a number, "1" for 1, 1.0 and "1.0".

    Texts with leading zeros, such as "01", are codes and no numbers: None. So are
    truth values, and numbers of more than 18 digits before the point.

    Examples
    --------
    >>> numeral("1.0"), numeral(1.50), numeral("01"), numeral("one")
    ('1', '1.5', None, None)
    """
    if isinstance(value, str):
        if not re.fullmatch(NUMERAL, value):
            return None
        whole, _, part = value.partition(".")
        part = part.rstrip("0")
        return f"{whole}.{part}" if part else {"-0": "0"}.get(whole, whole)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    # Fractions as few digits as name them, and never in the form 1e-05.
    return numeral(format(Decimal(repr(value)), "f"))


class NumberedLevels(NamedTuple):
    """The cells of categories that are numbers, however a record writes its number.

    Parameters
    ----------
    by_text : dict[str, int]
        The cell of each number, as text.
    by_number : dict[object, int]
        The cell of each number.
    """

    by_text: dict[str, int]
    by_number: dict[Any, int]

    def cell(self, value: Any) -> int:
        """Return the cell of a value of a record; -1 if none, -2 if it is missing."""
        if isinstance(value, str):
            return self.by_text.get(numeral(value) or "", -1)
        return -2 if is_blank(value) else self.by_number.get(value, -1)


def numbered_levels(levels: Sequence[Any]) -> NumberedLevels | None:
    """Return the cells of categories by number, where all categories are numbers.

    Categories that differ as texts and not as numbers, "1" and "1.0", are texts: None.

    Examples
    --------
    >>> numbered_levels([1, "2.50"]).by_number
    {1: 0, 2.5: 1}
    >>> numbered_levels(["1", "01"]) is None
    True
    """
    texts = [numeral(level) for level in levels]
    numbers = [text and (float(text) if "." in text else int(text)) for text in texts]
    if None in numbers or len(set(numbers)) < len(numbers):
        return None
    return NumberedLevels(
        {str(text): cell for cell, text in enumerate(texts)},
        {number: cell for cell, number in enumerate(numbers)},
    )

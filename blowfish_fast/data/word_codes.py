"""Columns of texts as codes of words, which keep their numbers beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.errors import InputError

from .axes import MISSING, OUTSIDE, Axis, is_blank
from .columns import Column, as_column, encoded_values, named_column
from .domain import Attributes
from .records import Rule, refuse_strays
from .rules.texts import WordRule


class WordCodes:
    """Codes of words as they come: 0, 1, ... for those with a number of their own.

    Parameters
    ----------
    rule : WordRule
        Which words there are.
    """

    def __init__(self, rule: WordRule) -> None:
        self.rule = rule
        self._codes: dict[int, int] = {}
        self._known: dict[str, int] = {}

    def numbers(self) -> list[int]:
        """Return the number of the word of each code."""
        return list(self._codes)

    def of(self, column: Column) -> tuple[IntArray, IntArray]:
        """Return a code per record, 0 where there is none, and which have none.

        The second array holds 0 for words, 1 for values outside, 2 for missing ones.
        """
        encoded = encoded_values(column)
        if encoded is None:
            plain = column if isinstance(column, np.ndarray) else column.to_numpy()
            values = plain.tolist()
            codes: AnyArray = np.arange(len(values))
        else:
            codes, values = encoded
        # Missing ones have code -1: the last.
        each = np.array([*map(self._code, values), -2], dtype=np.int64)[codes]
        strays = np.where(each == -1, 1, np.where(each == -2, 2, 0))
        return np.maximum(each, 0), strays

    def _code(self, value: Any) -> int:
        if is_blank(value):
            return -2
        if not isinstance(value, str):
            return -1
        if value not in self._known:
            number = self.rule.number(value)
            code = -1 if number is None else len(self._codes)
            if number is not None:
                code = self._codes.setdefault(number, code)
            self._known[value] = code
        return self._known[value]


def coded_chunks(
    records: Any, domain: Attributes, rule: Rule, codes: WordCodes, names: list[Any]
) -> Iterator[dict[str, Any]]:
    """Yield chunks with codes instead of words; strays are refused at the end.

    Code 0 is the cell outside, code 1 the missing one, and words follow.

    Parameters
    ----------
    records : frame, mapping, column or iterator of these
        The records.
    domain : Attributes
        One column of words.
    rule : Rule
        What happens to strays: "refuse" or "cell".
    codes : WordCodes
        Where words get their codes.
    names : list
        Further columns by name, of persons and their records, or None.

    Yields
    ------
    dict
        The codes under the name of the column, and the further columns.
    """
    (attribute,), (name,) = domain.attributes, domain.column_names
    outside = missing = False
    chunks = records if hasattr(records, "__next__") else iter([records])
    for chunk in chunks:
        column = _words_of(chunk, attribute)
        each, strays = codes.of(column)
        outside, missing = outside or 1 in strays, missing or 2 in strays
        coded = np.where(strays == 0, each + 2, strays - 1)
        others = {
            name: named_column(chunk, name, "person")
            for name in names
            if isinstance(name, str)
        }
        yield {name: coded, **others}
    refuse_strays(attribute, rule, outside, missing)


def _words_of(chunk: Any, attribute: Axis) -> Column:
    """Return the column of words of a table, or the column itself."""
    table = isinstance(chunk, Mapping) or hasattr(chunk, "columns")
    if table and attribute.name is not None:
        return named_column(chunk, attribute.name, "the domain")
    column = as_column(chunk)
    if getattr(column, "ndim", 1) != 1:
        raise InputError("words are one column, or a table with one of that name")
    return column


def numbers_of(codes: WordCodes, cells: IntArray, attribute: Axis) -> list[int]:
    """Return the numbers of the cells of codes, strays among them.

    Parameters
    ----------
    codes : WordCodes
        The codes of words.
    cells : ndarray of int64
        Codes as `coded_chunks` gives them.
    attribute : Axis
        The column of words.

    Returns
    -------
    list of int
        The numbers.
    """
    strays = [attribute.extra_cell(kind) or 0 for kind in (OUTSIDE, MISSING)]
    every = [*strays, *codes.numbers()]
    return [every[code] for code in cells.tolist()]

"""Words of a table counted where the table is: one GROUP BY of texts, numbered here.

    Weather   3                      weather   4
    weather   1     --numbered-->
    news      2                      news      2

No engine folds case and brings texts to one form of Unicode as Python does, so the
different texts travel, each once, with the number of its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from blowfish_fast.data.domain import Attributes
from blowfish_fast.data.persons import Bound, RecordKeys, refuse_missing_key
from blowfish_fast.data.records import Rule
from blowfish_fast.data.sql import (
    ROWS_AT_ONCE,
    WEIGHT,
    CellQuery,
    bounded_table,
    same_bytes,
    without_quotes,
)

TEXT = "blowfish_text"
"""The column of different texts."""


def counted_words(
    table: Any,
    words: Attributes,
    *,
    columns: Mapping[Any, str] | None = None,
    keys: RecordKeys,
    bound: Bound | None = None,
    key: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the different texts of a column, and how many records have each.

    Parameters
    ----------
    table : ibis Table
        The table.
    words : KeyDomain
        The column of words.
    columns : mapping, optional
        From the attribute to a column that is called otherwise.
    keys : RecordKeys
        Whose record each row is, and which of hers.
    bound : Bound, optional
        How many records of a person are counted; None where all are.
    key : str, optional
        Decides which; drawn anew if None.

    Yields
    ------
    dict
        Texts under the name of the attribute, and records, or units of persons, under
        `WEIGHT`.

    Raises
    ------
    InputError
        If the column is missing or holds no text, or a person has no key.
    """
    # The schema is checked before anything else; nothing is read.
    (column,) = CellQuery.over(words, [Rule("cell", "cell")], table, columns).columns
    lacking: dict[str, Any] = {}
    weight = None
    if bound is not None:
        table, names, weight = bounded_table(table, keys, bound, key, columns)
        lacking = {f"lacks{at}": table[name].isnull() for at, name in enumerate(names)}
    records = table.count() if weight is None else table[weight].cast("int64").sum()
    text = table[column.name]
    # Of texts that a collation calls equal, the engine would show any.
    grouped = table.group_by(**{TEXT: text}, blowfish_bytes=same_bytes(text)).aggregate(
        **{WEIGHT: records.cast("int64")},
        **{name: which.any() for name, which in lacking.items()},
    )
    name = words.column_names[0]
    with without_quotes():
        for batch in grouped.to_pyarrow_batches(chunk_size=ROWS_AT_ONCE):
            for at, flag in enumerate(lacking):
                if np.asarray(batch.column(flag)).any():
                    refuse_missing_key(("person", "record")[at])
            units = np.asarray(batch.column(WEIGHT)).astype(np.int64, copy=False)
            yield {name: batch.column(TEXT), WEIGHT: units}

"""Batches of merged tables: rows, files and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.data.tables.merged_tables import CountedTables, Grouping, MergedTable
from blowfish_fast.errors import IntervalError, ReleaseFileError
from blowfish_fast.measure.strategies.tables.merged_tables import MergedTables

COUNTED = CountedTables((2, 3), [(0, 1)])
TABLES = [
    MergedTable((), ()),
    MergedTable((0, 1), (Grouping([0, 1]), Grouping([0, 0, 1]))),
]


def test_rows_are_merged_cells_table_by_table():
    strategy = MergedTables(COUNTED, TABLES, [0.5, 1.0])
    counts = np.array([1, 2, 3, 4, 5, 6])
    assert strategy.rows(counts).tolist() == [21, 3, 3, 9, 6]
    assert (strategy.tables_of(counts) == strategy.rows(counts)).all()
    total, pair = strategy.split(strategy.rows(counts))
    assert total.shape == ()
    assert pair.tolist() == [[3, 3], [9, 6]]
    assert strategy.weights().tolist() == [2**29] + [2**30] * 4
    with pytest.raises(IntervalError, match="no single cells"):
        strategy.infer(strategy.rows(counts), None)


def test_files_hold_the_same_strategy_and_refuse_others():
    packed = MergedTables(COUNTED, TABLES, [0.5, 1.0]).pack()
    again = MergedTables.unpack(packed)
    assert again.tables[1].shape == (2, 2)
    assert again.counted.tables == ((0, 1),)
    for change in (
        {"sizes": [2]},
        {"shares": np.array([2.0, 1.0])},
        {"shares": np.array([1.0])},
        {"counted": [[1, 0]]},
        {"tables": [packed["tables"][0], {"axes": [0, 7], "labels": [[0], [0]]}]},
        {"tables": [packed["tables"][0], {"axes": [0], "labels": [[0, 0, 1]]}]},
    ):
        with pytest.raises(ReleaseFileError):
            MergedTables.unpack({**packed, **change})

"""Groupings of cells, merged tables, and where counts of tables stand."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.data.tables.merged_tables import CountedTables, Grouping, MergedTable
from blowfish_fast.errors import InputError


def test_sums_and_spreads_follow_the_labels(generator):
    for _ in range(20):
        labels = generator.integers(0, 4, 9)
        labels = np.unique(labels, return_inverse=True)[1]
        table = generator.integers(0, 50, (3, 9))
        grouping = Grouping(labels)
        expected = np.zeros((3, grouping.count), dtype=int)
        for cell, label in enumerate(labels):
            expected[:, label] += table[:, cell]
        assert (grouping.sum(table, 1) == expected).all()
        assert (grouping.spread(expected, 1) == expected[:, labels]).all()


@pytest.mark.parametrize("labels", [[0, 2], [1, 1], [-1, 0]])
def test_labels_with_a_gap_are_refused(labels):
    with pytest.raises(InputError, match="every one is used"):
        Grouping(labels)


def test_tables_are_summed_down_from_the_first_that_holds_them(generator):
    sizes = (3, 2, 4)
    cells = generator.integers(0, 9, sizes)
    counted = CountedTables(sizes, [(0, 1), (1, 2)])
    counts = counted.of_cells(cells.reshape(-1))
    assert counts.size == counted.size == 14
    assert (counted.table(counts, (2,)) == cells.sum(axis=(0, 1))).all()
    assert (counted.table(counts, (1,)) == cells.sum(axis=(0, 2))).all()
    assert counted.table(counts, ()) == cells.sum()
    with pytest.raises(InputError, match="holds its attributes"):
        counted.table(counts, (0, 2))
    pair = MergedTable((1, 2), (Grouping([0, 0]), Grouping([0, 1, 1, 0])))
    whole = cells.sum(axis=(0, 1))
    merged = pair.sum(counted.table(counts, (1, 2)))
    assert merged.tolist() == [[whole[0] + whole[3], whole[1] + whole[2]]]

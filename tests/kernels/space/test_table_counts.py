"""Tables counted from records."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.space.record_cells import count_tables

pytestmark = pytest.mark.kernel

SIZES = (3, 2, 4, 2, 5)
TABLES = ((), (2,), (0, 3), (1, 2, 4), (0, 1, 2, 3))


def counted(columns, table):
    """Count records one by one."""
    counts = np.zeros([SIZES[axis] for axis in table], dtype=np.int64)
    for record in columns.T:
        counts[tuple(record[list(table)])] += 1
    return counts.reshape(-1)


def test_equals_counting_records_one_by_one(generator):
    columns = np.array(
        [generator.integers(0, size, 50) for size in SIZES], dtype=np.int32
    )
    expected = np.concatenate([counted(columns, one) for one in TABLES])
    counts = np.ones(expected.size, dtype=np.int64)
    count_tables(counts, columns, SIZES, TABLES)
    assert (counts == expected + 1).all()


def test_no_records_leave_the_counts_as_they_are():
    counts = np.zeros(1 + 4 + 6 + 40 + 48, dtype=np.int64)
    count_tables(counts, np.zeros((5, 0), dtype=np.int32), SIZES, TABLES)
    assert not counts.any()


def test_cells_beyond_the_tables_are_refused():
    columns = np.zeros((5, 2), dtype=np.int32)
    with pytest.raises(InputError, match="room for 3"):
        count_tables(np.zeros(3, dtype=np.int64), columns, SIZES, [(0, 1)])
    for bad in (-1, 3):
        columns[0, 1] = bad
        with pytest.raises(InputError, match="within each attribute"):
            count_tables(np.zeros(3, dtype=np.int64), columns, SIZES, [(0,)])

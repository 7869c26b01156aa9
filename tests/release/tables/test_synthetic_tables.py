"""Synthetic records from fitted tables."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.errors import SizeError
from blowfish_fast.release.synthetic import (
    RakedTables,
    TableSources,
    count_cells,
    sample_cells,
)

SIZES = (4, 3, 2)
TABLES = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))


@pytest.fixture(name="sources")
def exact_sources(generator):
    counts = generator.integers(0, 200, SIZES).astype(float)
    counts[0, 1] = 0

    def linear(axes):
        return counts.sum(axis=tuple(axis for axis in range(3) if axis not in axes))

    raked = RakedTables(linear, counts.sum(), lambda axes: np.inf)
    return TableSources(SIZES, TABLES, raked, lambda axes: 0.0)


def test_two_way_tables_are_followed_closely(sources, generator):
    cells = sample_cells(sources, None, generator)
    total = sources.raked.total
    assert cells.shape == (3, round(total))
    for table in TABLES:
        own = count_cells(cells, SIZES, table)
        off = np.abs(own - sources.raked.table(table)).sum() / 2
        assert off < 0.02 * total
    # A combination that never occurs in a released table hardly occurs here.
    assert count_cells(cells, SIZES, (0, 1))[0, 1] <= 0.001 * total


def test_any_number_of_records_can_be_drawn(sources, generator):
    assert sample_cells(sources, 7, generator).shape == (3, 7)
    assert sample_cells(sources, 0, generator).shape == (3, 0)
    with pytest.raises(SizeError, match="records would be drawn"):
        sample_cells(sources, 2**29, generator)

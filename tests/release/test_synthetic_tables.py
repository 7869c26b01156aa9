"""Synthetic records from fitted tables."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import SizeError
from blowfish_fast.release.synthetic import FittedTables

SIZES = (4, 3, 2)
TABLES = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))


@pytest.fixture(name="sources")
def exact_sources(generator):
    counts = generator.integers(0, 200, SIZES).astype(float)
    counts[0, 1] = 0

    def linear(axes):
        return counts.sum(axis=tuple(axis for axis in range(3) if axis not in axes))

    domain, exact = bf.Domain(SIZES), (lambda axes: np.inf, lambda axes: 0.0)
    return FittedTables(domain, TABLES, counts.sum(), linear, *exact)


def test_two_way_tables_are_followed_closely(sources, generator):
    cells = sources.cells(None, generator)
    total = sources.total
    assert cells.shape == (3, round(total))
    for table in TABLES:
        own = sources.count(cells, table)
        off = np.abs(own - sources.table(table)).sum() / 2
        assert off < 0.02 * total
    # A combination that never occurs in a released table hardly occurs here.
    assert sources.count(cells, (0, 1))[0, 1] <= 0.001 * total


def test_any_number_of_records_can_be_drawn(sources, generator):
    assert sources.cells(7, generator).shape == (3, 7)
    assert sources.cells(0, generator).shape == (3, 0)
    with pytest.raises(SizeError, match="records would be drawn"):
        sources.cells(2**29, generator)

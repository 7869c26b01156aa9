"""Filled cells of wide domains: whose data they are, and what is refused."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.mechanisms.wide_data import filled_cells

LINE = bf.Domain(6, names=["age"])
OTHER = bf.Domain(6, names=["size"])
WIDE = bf.WideDomain.product(LINE, OTHER)


def test_the_cells_that_hold_records_are_read_in_their_order():
    lists = bf.SparseLaplace(bf.policies.AddRemove(WIDE), epsilon=1)
    records = {"age": [3, 0, 3], "size": [1, 5, 1]}
    cells, counts = filled_cells(lists, bf.SparseHistogram.from_records(WIDE, records))
    assert (list(cells), list(counts)) == ([5, 19], [1, 2])


def test_data_of_another_domain_and_plain_counts_of_a_wide_one_are_refused():
    lists = bf.SparseLaplace(bf.policies.AddRemove(WIDE), epsilon=1)
    other = bf.SparseHistogram.from_records(LINE, {"age": [1]})
    with pytest.raises(bf.errors.DomainError, match="build both over one domain"):
        filled_cells(lists, other)
    with pytest.raises(bf.errors.InputError, match="SparseHistogram"):
        filled_cells(lists, [1, 2, 3])

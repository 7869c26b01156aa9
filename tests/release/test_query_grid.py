"""Rows over the cells, and products of them."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast import Domain, workloads
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError
from blowfish_fast.release.query_grid import (
    SparseRows,
    cell_parts,
    coverage_rows,
    product_rows,
    value_rows,
)

AGES = Domain.from_edges([0, 10, 30], name="age").with_extra_cells(missing=True)


def test_parts_of_cells_are_cut_at_borders():
    parts = cell_parts(((0.5, 2.25), (2.5, 3.0)))
    assert parts.cells.tolist() == [0, 1, 2, 2]
    assert parts.starts.tolist() == [0.5, 1.0, 2.0, 2.5]
    assert parts.ends.tolist() == [1.0, 2.0, 2.25, 3.0]


def test_rows_hold_the_covered_part_of_every_cell():
    rows = coverage_rows([((0.5, 2.25), (2.5, 3.0)), ((1.0, 2.0),)], 4)
    assert rows.toarray().tolist() == [[0.5, 1, 0.75, 0], [0, 1, 0, 0]]


def test_rows_of_values_take_the_middle_of_the_covered_part():
    found = value_rows(AGES.attributes[0], [((0.5, 2.0),)], None)
    assert found.rows().toarray().tolist() == [[0.5 * 7.5, 20.0, 0.0]]
    assert (found.lowest.tolist(), found.highest.tolist()) == ([7.5], [20.0])
    low, high = found.ends(centre=10.0, power=2)
    assert low.toarray().tolist() == [[0.0, 0.0, 0.0]]
    assert high.toarray().tolist() == [[25.0, 400.0, 0.0]]
    given = value_rows(AGES.attributes[0], [((0.5, 2.0),)], np.array([4.0, 6.0]))
    assert given.rows().toarray().tolist() == [[2.0, 6.0, 0.0]]
    with pytest.raises(InputError, match="have no value"):
        value_rows(AGES.attributes[0], [((0.0, 3.0),)], None)


def test_products_are_in_c_order():
    first = coverage_rows([((0.0, 1.0),), ((1.0, 2.0),)], 2)
    second = coverage_rows([((0.0, 1.5),)], 3)
    product = product_rows([first, second]).toarray()
    assert product.tolist() == [[1, 0.5, 0, 0, 0, 0], [0, 0, 0, 1, 0.5, 0]]


def test_rows_are_not_changed_by_laying_them_over_buckets():
    rows = SparseRows(Domain(4), [[0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 0.0, 0.0]])
    counts = np.array([5, 6, 7, 8])
    before = rows.answer(counts).tolist()
    form = rows.explicit_form(Buckets(np.array([0, 4])))
    assert rows.answer(counts).tolist() == before
    assert form.values.tolist() == [1.5, 0.5]
    assert isinstance(rows, workloads.Linear)

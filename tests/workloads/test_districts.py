"""Regions: any public unions of cells, over any buckets."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import WorkloadError
from blowfish_fast.workloads import Regions
from blowfish_fast.workloads.base import as_pieces, form_matrix


def dense(workload, buckets):
    form = workload.explicit_form(buckets)
    return form_matrix(form, buckets.count, most=2**20).toarray()


def test_regions_are_unions_of_cells_over_any_buckets():
    grid = bf.Domain((2, 3))
    regions = Regions(grid, [[0, 1, 0], [-1, 1, 1]])
    counts = np.array([[5, 1, 2], [9, 3, 4]])
    assert regions.answer(counts).tolist() == [7, 8]
    assert regions.mean_cells() == 2.5
    by_cells = np.zeros((2, 6))
    by_cells[0, [0, 2]] = by_cells[1, [1, 4, 5]] = 1
    np.testing.assert_array_equal(dense(regions, Buckets.single_cells(6)), by_cells)
    order = np.array([0, 2, 1, 4, 5, 3])
    moved = Buckets.single_cells(6, order)
    np.testing.assert_array_equal(dense(regions, moved), by_cells[:, order])
    assert as_pieces(regions.explicit_form(moved)).starts.tolist() == [0, 2]
    pairs = dense(regions, Buckets(np.array([0, 2, 4, 6])))
    np.testing.assert_array_equal(pairs, [[0.5, 0.5, 0], [0.5, 0, 1]])


def test_regions_refuse_numbers_with_gaps_and_other_shapes():
    line = bf.Domain(3)
    with pytest.raises(WorkloadError, match="without gaps"):
        Regions(line, [0, 2, 2])
    with pytest.raises(WorkloadError, match="without gaps"):
        Regions(line, [0, -2, 0])
    with pytest.raises(WorkloadError, match="cover the domain"):
        Regions(line, [0, 1])
    regions, names = Regions.named(line, ["b", None, "a"])
    assert (regions.labels.tolist(), names) == ([1, -1, 0], ["a", "b"])

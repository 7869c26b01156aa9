"""Each cell, and all of them."""

from __future__ import annotations

import numpy as np

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.workloads import Identity, Total
from tests.reference.forms import dense_form


def test_answers_are_the_cells_and_their_sum(generator):
    grid = Domain((3, 4))
    counts = generator.integers(0, 9, grid.shape)
    assert Identity(grid).answer(counts).tolist() == counts.reshape(-1).tolist()
    assert Total(grid).answer(counts).tolist() == [counts.sum()]
    assert Identity(grid).queries == 12
    assert Total(grid).queries == 1


def test_explicit_forms_equal_the_projection(generator):
    for labels in ([0, 0, 1, 2, 2, 2], [1, 0, 1, 2, 0, 2]):
        buckets = Buckets.from_labels(np.array(labels))
        for workload in (Identity(Domain(6)), Total(Domain(6))):
            matrix = np.stack([workload.answer(row) for row in np.eye(6)], axis=1)
            spread = np.stack(
                [buckets.expand(row) for row in np.eye(buckets.count)], axis=1
            )
            dense = dense_form(workload.explicit_form(buckets), buckets.count)
            np.testing.assert_allclose(dense, matrix @ spread)

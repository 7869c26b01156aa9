"""Rectangles on grids, with fractions of cells."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets, cell_order
from blowfish_fast.errors import WorkloadError
from blowfish_fast.workloads import Rectangles, random_boxes
from tests.reference.forms import dense_form, dense_projection


def test_answers_equal_the_definition(generator):
    box = Domain((5, 4, 3))
    counts = generator.integers(0, 9, box.shape)
    rectangles = Rectangles.random(box, 50, rng=2)
    for low, high, answer in zip(
        rectangles.starts, rectangles.ends, rectangles.answer(counts), strict=True
    ):
        cut = tuple(slice(int(a), int(b)) for a, b in zip(low, high, strict=True))
        assert answer == counts[cut].sum()


def test_fractions_of_a_cell_count_in_proportion():
    grid = Domain((2, 3))
    counts = np.arange(6).reshape(2, 3)
    asked = Rectangles(grid, [[0.5, 0.25]], [[2, 2.5]])
    rows, columns = np.array([0.5, 1.0]), np.array([0.75, 1.0, 0.5])
    assert asked.answer(counts) == pytest.approx(rows @ counts @ columns)
    assert not asked.whole_cells


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (1, 6), (2, 3, 2)])
def test_forms_along_the_curve_equal_the_projection(shape, generator):
    grid = Domain(shape)
    along = cell_order(grid)
    cuts = np.sort(generator.choice(np.arange(1, grid.size), 3, replace=False))
    grouped = along.then(Buckets(np.concatenate([[0], cuts, [grid.size]])))
    scattered = Buckets.from_labels(
        np.unique(generator.integers(0, 3, grid.size), return_inverse=True)[1]
    )
    whole = Rectangles.random(grid, 20, rng=4)
    starts = whole.starts + generator.uniform(0, 0.4, whole.starts.shape)
    ends = whole.ends - generator.uniform(0, 0.4, whole.starts.shape)
    for workload in (whole, Rectangles(grid, starts, ends)):
        for buckets in (along, grouped, scattered, Buckets.single_cells(grid.size)):
            dense = dense_form(workload.explicit_form(buckets), buckets.count)
            np.testing.assert_allclose(
                dense, dense_projection(workload, buckets), atol=1e-12
            )


def test_rectangles_of_one_shape_stay_inside():
    grid = Domain((10, 20))
    asked = Rectangles.of_shape(grid, (3, 20), 100, rng=1)
    assert (asked.ends - asked.starts == [3, 20]).all()
    assert asked.starts.min() >= 0
    assert asked.ends[:, 0].max() == 10


@pytest.mark.parametrize(
    ("starts", "ends", "words"),
    [
        ([[0, 0]], [[5, 1]], "must lie in"),
        ([[-1, 0]], [[1, 1]], "must lie in"),
        ([[1, 1]], [[1, 2]], "start before it ends"),
        ([[0, 0]], [[1, float("nan")]], "finite"),
        ([0, 0], [1, 1], "shape \\(queries, 2\\)"),
        ([[0, 0]], [[1, 1], [2, 2]], "same shape"),
        ([["a", 0]], [[1, 1]], "must be numbers"),
    ],
)
def test_bad_rectangles_are_refused(starts, ends, words):
    with pytest.raises(WorkloadError, match=words):
        Rectangles(Domain((4, 4)), starts, ends)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(WorkloadError, match="do not fit"):
        Rectangles.of_shape(Domain((4, 4)), (5, 1), 3, rng=1)
    with pytest.raises(WorkloadError, match="one side"):
        Rectangles.of_shape(Domain((4, 4)), (5,), 3, rng=1)


def test_random_boxes_are_ranges_on_a_line_and_rectangles_beyond():
    on_a_line = random_boxes(Domain(9), 5, rng=1)
    assert type(on_a_line).__name__ == "Ranges"
    in_space = random_boxes(Domain((4, 5, 6)), 7, rng=1)
    assert type(in_space).__name__ == "Rectangles"
    assert (on_a_line.queries, in_space.queries) == (5, 7)

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.transform.haar_spread import (
    haar_spread_boxes,
    haar_total_variance,
    most_rows,
)
from tests.generated import example_count
from tests.reference.grid_boxes import written_out
from tests.reference.haar_spread import haar_spread

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else example_count(60)
SHAPES = st.one_of(
    st.tuples(st.integers(1, 40)),
    st.lists(st.integers(1, 7), min_size=2, max_size=3).map(tuple),
)


def random_boxes(shape, queries, generator):
    """Return boxes of random number per query; empty ones and overlaps may occur."""
    pointers = np.append(0, np.cumsum(generator.integers(0, 4, queries)))
    corners = generator.integers(0, np.array(shape) + 1, (2, pointers[-1], len(shape)))
    lows, highs = np.sort(corners, axis=0)
    return pointers, lows, highs, generator.normal(size=pointers[-1])


@settings(deadline=None, max_examples=EXAMPLES)
@given(shape=SHAPES, seed=st.integers(0, 2**32 - 1))
def test_equals_the_definition(shape, seed):
    generator = np.random.default_rng(seed)
    boxes = random_boxes(shape, 6, generator)
    cells = int(np.prod(shape))
    variances, scales = generator.uniform(0, 3, (2, cells))
    found = haar_spread_boxes(variances, scales, shape, *boxes)
    expected = haar_spread(variances, scales, written_out(*boxes, shape))
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cells", [1, 2, 3, 6, 8, 13])
def test_every_range_equals_the_definition(cells):
    starts, ends = np.triu_indices(cells)
    queries = starts.size
    boxes = np.arange(queries + 1), starts[:, None], ends[:, None] + 1, np.ones(queries)
    generator = np.random.default_rng(1)
    variances, scales = generator.uniform(1, 3, (2, cells))
    found = haar_spread_boxes(variances, scales, (cells,), *boxes)
    expected = haar_spread(variances, scales, written_out(*boxes, (cells,)))
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_among_equal_parts_the_smaller_scale_is_named():
    # Three of four cells: 3/4 of the sum, 1/4 of the top and half a difference.
    scales = np.array([0.4, 1.2, 9.0, 0.6 * (1 + 2e-16)])
    boxes = np.array([0, 1, 1]), np.array([[0]]), np.array([[3]]), np.ones(1)
    found = haar_spread_boxes(scales, scales, (4,), *boxes)
    expected = haar_spread(scales, scales, written_out(*boxes, (4,)))
    for largest, width in (found[2::2], expected[2::2]):
        np.testing.assert_allclose(largest, [0.3, 0.0], rtol=1e-12)
        np.testing.assert_allclose(width, [0.4, 0.0], rtol=1e-12)
    assert not any(
        one.any() for one in haar_spread_boxes(0 * scales, 0 * scales, (4,), *boxes)
    )


@pytest.mark.parametrize("cell", range(4))
def test_the_smaller_scale_is_named_whichever_row_comes_last(cell):
    # A quarter of the sum and of the top, half a difference.
    scales = np.array([1.0, 1.0, 0.5, 0.5])
    boxes = np.array([0, 1]), np.array([[cell]]), np.array([[cell + 1]]), np.ones(1)
    found = haar_spread_boxes(scales, scales, (4,), *boxes)
    assert (found[2].tolist(), found[4].tolist()) == ([0.25], [0.5])


def test_two_boxes_that_make_one_equal_it():
    variances = np.arange(1.0, 36.0)
    halves = np.array([0, 2]), np.array([[1, 1], [3, 1]]), np.array([[3, 6], [4, 6]])
    whole = np.array([0, 1]), np.array([[1, 1]]), np.array([[4, 6]])
    two = haar_spread_boxes(variances, variances, (5, 7), *halves, np.ones(2))
    one = haar_spread_boxes(variances, variances, (5, 7), *whole, np.ones(1))
    np.testing.assert_allclose(two, one, rtol=1e-12)


def test_the_whole_grid_takes_the_sum_alone():
    variances = np.full(15, np.inf)
    variances[0] = 2.0
    everything = np.array([0, 1]), np.array([[0, 0]]), np.array([[3, 5]]), np.ones(1)
    found = haar_spread_boxes(variances, np.ones(15), (3, 5), *everything)
    assert [one.tolist() for one in found] == [[2.0], [1.0], [1.0], [1.0], [1.0]]


def test_a_box_never_takes_more_rows_than_there_are():
    assert most_rows((2,) * 20) == 2**20
    assert most_rows((1, 1)) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"variances": np.ones(3)},
        {"shape": ()},
        {"highs": np.array([[5]])},
        {"lows": np.array([[-1]])},
        {"lows": np.array([[3]]), "highs": np.array([[2]])},
        {"pointers": np.array([0, 2])},
        {"values": np.ones(2)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(change):
    arguments = {
        "variances": np.ones(4),
        "scales": np.ones(4),
        "shape": (4,),
        "pointers": np.array([0, 1]),
        "lows": np.array([[0]]),
        "highs": np.array([[2]]),
        "values": np.ones(1),
    }
    haar_spread_boxes(**arguments)
    with pytest.raises(InputError):
        haar_spread_boxes(**arguments | change)


def queries_over(edges, kind):
    """List every range or prefix of cells, as shares of the leaves between edges."""
    cells = int(edges[-1])
    cuts = np.arange(cells + 1)
    starts, ends = (
        np.triu_indices(cells + 1, 1) if kind == "all_ranges" else (0 * cuts, cuts)
    )
    low, high = edges[:-1], edges[1:]
    covered = np.minimum(ends[:, None], high) - np.maximum(starts[:, None], low)
    return np.maximum(covered, 0) / (high - low)


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=14),
    kind=st.sampled_from(["all_ranges", "prefixes"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_the_sum_over_all_queries(sizes, kind, seed):
    edges = np.append(0, np.cumsum(sizes))
    variances = np.random.default_rng(seed).uniform(0, 2, len(sizes))
    listed, *_ = haar_spread(variances, variances, queries_over(edges, kind))
    found = haar_total_variance(variances, kind, edges)
    assert found == pytest.approx(listed.sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("variances", "kind", "edges"),
    [
        (np.ones(2), "identity", np.arange(3)),
        (np.ones(2), "prefixes", np.arange(4)),
        (np.ones(2), "prefixes", np.array([0, 2, 2])),
        (np.ones(2), "prefixes", np.array([1, 2, 3])),
        (np.ones((2, 2)), "prefixes", np.arange(5)),
    ],
)
def test_totals_of_arrays_that_do_not_fit_are_refused(variances, kind, edges):
    with pytest.raises(InputError):
        haar_total_variance(variances, kind, edges)

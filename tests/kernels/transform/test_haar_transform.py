from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.transform import haar_transform as haar
from tests.generated import example_count
from tests.reference import haar_transform as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else example_count(60)
SHAPES = st.one_of(
    st.tuples(st.integers(1, 40)),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4)),
)
CASES = {"shape": SHAPES, "seed": st.integers(0, 2**32 - 1)}


def whole(shape, seed, largest=1000):
    return np.random.default_rng(seed).integers(0, largest + 1, shape)


@settings(deadline=None, max_examples=EXAMPLES)
@given(**CASES)
def test_rows_equal_the_definition(shape, seed):
    counts = whole(shape, seed)
    rows = haar.haar_rows(counts)
    assert rows.dtype == np.int64
    assert rows.shape == shape
    expected = reference.haar_matrix(shape) @ counts.reshape(-1)
    assert rows.reshape(-1).tolist() == expected.tolist()


@settings(deadline=None, max_examples=EXAMPLES)
@given(**CASES)
def test_cells_undo_any_rows(shape, seed):
    rows = whole(shape, seed) - 500
    cells = haar.haar_cells(rows)
    expected = np.linalg.solve(reference.haar_matrix(shape), rows.reshape(-1))
    np.testing.assert_allclose(cells.reshape(-1), expected, atol=1e-6)
    np.testing.assert_array_equal(haar.haar_cells(haar.haar_rows(rows)), rows)


@settings(deadline=None, max_examples=EXAMPLES)
@given(**CASES)
def test_coefficients_and_cell_variances_are_those_of_the_inverse(shape, seed):
    inverse = np.linalg.inv(reference.haar_matrix(shape))
    query = np.random.default_rng(seed).normal(size=shape)
    np.testing.assert_allclose(
        haar.haar_coefficients(query).reshape(-1),
        query.reshape(-1) @ inverse,
        atol=1e-9,
    )
    np.testing.assert_allclose(
        haar.haar_cell_variances(query**2).reshape(-1),
        inverse**2 @ query.reshape(-1) ** 2,
        atol=1e-9,
    )


@settings(deadline=None, max_examples=EXAMPLES)
@given(**CASES, largest=st.sampled_from([1, 1000, 2**40]))
def test_path_sums_count_the_rows_of_each_cell(shape, seed, largest):
    rates = whole(shape, seed, largest)
    expected = np.abs(reference.haar_matrix(shape)).T @ rates.reshape(-1)
    assert haar.haar_path_sums(rates).reshape(-1).tolist() == expected.tolist()


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    cells=st.integers(1, 20),
    seed=st.integers(0, 2**32 - 1),
    largest=st.sampled_from([1, 1000, 2**40]),
)
def test_the_worst_move_is_that_of_all_pairs(cells, seed, largest):
    rates = whole(cells, seed, largest)
    found = haar.haar_worst_move(rates)
    assert type(found) is int
    assert found == reference.worst_move(rates, (cells,))
    squared = haar.haar_worst_move(rates, power=2)
    assert squared == reference.worst_move(rates, (cells,), power=2)


@pytest.mark.parametrize("shape", [(16,), (4, 4), (2, 8), (2, 2, 2)])
def test_rows_are_orthogonal_on_powers_of_two(shape):
    matrix = reference.haar_matrix(shape)
    products = matrix @ matrix.T
    assert (products == np.diag(np.diag(products))).all()


@pytest.mark.parametrize("cells", [1, 2, 3, 5, 8, 12, 31, 33])
def test_no_cell_is_counted_by_more_rows_than_needed(cells):
    counted = haar.haar_path_sums(np.ones(cells, dtype=np.int64))
    depth = (cells - 1).bit_length()
    assert counted.max() == depth + 1
    assert counted.min() >= depth


def test_what_is_given_is_left_as_it_was():
    counts = np.arange(12).reshape(3, 4)
    for function in (haar.haar_rows, haar.haar_cells, haar.haar_path_sums):
        function(counts)
    assert (counts == np.arange(12).reshape(3, 4)).all()


def test_large_counts_are_summed_exactly():
    counts = np.array([2**61 + 1, 2**60 - 7, 5])
    assert haar.haar_rows(counts)[0] == 2**61 + 2**60 - 1


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_arrays_without_cells_are_refused(shape):
    with pytest.raises(InputError, match="at least one cell"):
        haar.haar_rows(np.zeros(shape, dtype=np.int64))
    with pytest.raises(InputError, match="are a list"):
        haar.haar_worst_move(np.zeros((2, 2), dtype=np.int64))
    with pytest.raises(InputError, match="power is 1 or 2"):
        haar.haar_worst_move(np.ones(2, dtype=np.int64), power=2**40)

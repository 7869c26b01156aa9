"""Errors of buckets and of the best k of them, against exact fractions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.window_costs.baseline_costs import (
    best_heads,
    bucket_errors,
    squares_grid,
)
from tests.generated import example_count
from tests.reference import k_bucket_costs as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 15 if config.DISABLE_JIT else example_count(50)


@st.composite
def problems(draw):
    values = draw(
        st.lists(
            st.one_of(st.integers(0, 5), st.integers(0, 2**24)), min_size=1, max_size=12
        )
    )
    inner = draw(st.sets(st.integers(1, len(values)), max_size=6))
    borders = sorted({0, len(values)} | {one for one in inner if one < len(values)})
    return values, borders


@settings(max_examples=EXAMPLES)
@given(problems(), st.sampled_from([0, 8]))
def test_errors_equal_the_definition(problem, bits):
    values, borders = problem
    errors = bucket_errors(np.array(values), np.array(borders), bits)
    for end in range(len(borders)):
        for begin in range(len(borders)):
            expected = 0
            if begin < end:
                part = values[borders[begin] : borders[end]]
                expected = reference.bucket_error(part, bits)
            assert errors[end, begin] == expected


@settings(max_examples=EXAMPLES)
@given(problems())
def test_the_best_heads_are_the_best_of_all(problem):
    values, borders = problem
    errors = bucket_errors(np.array(values), np.array(borders), 4)
    heads = best_heads(errors, len(borders) - 1)
    for buckets in range(1, len(borders)):
        for end in range(1, len(borders)):
            expected = 0
            if end >= buckets:
                expected = reference.best_head(values, borders[: end + 1], buckets, 4)
            assert heads[buckets - 1, end] == expected


@pytest.mark.parametrize("kind", ["sparse", "dense", "flat", "rising"])
def test_borders_are_passed_over_only_where_they_cannot_be_the_best(kind):
    rng = np.random.default_rng(3)
    count = 70 if config.DISABLE_JIT else 150
    values = {
        "sparse": np.where(rng.random(count) < 0.1, rng.integers(1, 900, count), 0),
        "dense": rng.integers(0, 900, count),
        "flat": np.zeros(count, dtype=np.int64),
        "rising": np.arange(count),
    }[kind]
    errors = bucket_errors(values, np.arange(count + 1), 8)
    heads = best_heads(errors, 40)
    for buckets in range(1, 40):
        for end in range(buckets + 1, count + 1):
            begins = slice(buckets, end)
            every = heads[buckets - 1, begins] + errors[end, begins]
            assert heads[buckets, end] == every.min()


@pytest.mark.parametrize(
    ("cells", "largest"), [(1, 1), (4096, 1000), (2**20, 2**19), (2**28, 3)]
)
def test_the_grid_leaves_room(cells, largest):
    bits = squares_grid(cells, largest)
    assert 0 <= bits <= 8
    assert cells * largest**2 << bits <= 2**61
    assert cells**2 << bits <= 2**61


def test_the_largest_counts_are_exact():
    cells = 8
    largest = 2**28 - 1
    bits = squares_grid(cells, largest)
    values = [largest, 0, largest, 0, 0, 0, largest, 1]
    errors = bucket_errors(np.array(values), np.arange(cells + 1), bits)
    assert errors[cells, 0] == reference.bucket_error(values, bits)


def test_counts_that_do_not_fit_are_refused_with_the_limit():
    with pytest.raises(InputError, match="cut the counts at 1048575"):
        squares_grid(2**20, 2**21)
    squares_grid(2**20, 1048575)


def test_bad_shapes_are_refused():
    values = np.arange(4)
    for borders in ([0, 2], [1, 4], [0, 3, 2, 4], [0]):
        with pytest.raises(InputError, match="rise from 0 to 4"):
            bucket_errors(values, np.array(borders), 0)
    errors = bucket_errors(values, np.arange(5), 0)
    for buckets in (0, 5):
        with pytest.raises(InputError, match="1 to 4 buckets"):
            best_heads(errors, buckets)
    with pytest.raises(InputError, match="buckets"):
        best_heads(errors[:, :3], 1)

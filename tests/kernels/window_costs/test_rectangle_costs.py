from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.window_costs import rectangle_costs
from blowfish_fast.kernels.window_costs.rectangle_costs import (
    count_cap,
    dyadic_quantile_costs,
    dyadic_rectangle_costs,
)
from tests.generated import example_count
from tests.reference import rectangle_costs as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 15 if config.DISABLE_JIT else example_count(80)
QUANTILES = st.sampled_from([(3, 4), (1, 2), (7, 10), (1, 5), (99, 100)])
SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9))


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.data(), SHAPES, QUANTILES, st.sampled_from([4, 10**9]))
def test_equals_the_definition(data, shape, quantile, largest):
    counts = data.draw(arrays(np.int64, shape, elements=st.integers(0, largest)))
    costs = dyadic_rectangle_costs(counts, *quantile)
    expected = reference.rectangle_costs(counts, *quantile)
    assert [[one.tolist() for one in line] for line in costs] == expected
    assert all(one.dtype == np.int64 for line in costs for one in line)


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.data(), SHAPES, QUANTILES)
def test_one_record_moves_every_cost_by_less_than_the_quantile_allows(
    data, shape, quantile
):
    numerator, denominator = quantile
    counts = data.draw(arrays(np.int64, shape, elements=st.integers(0, 6)))
    row, column = (data.draw(st.integers(0, side - 1)) for side in shape)
    more = counts.copy()
    more[row, column] += 1
    before = dyadic_rectangle_costs(counts, *quantile)
    after = dyadic_rectangle_costs(more, *quantile)
    for tall, line in enumerate(after):
        for wide, found in enumerate(line):
            change = found - before[tall][wide]
            place = row >> tall, column >> wide
            assert numerator - denominator <= change[place] <= numerator
            change[place] = 0
            assert not change.any()


@pytest.mark.parametrize("cells", [*range(1, 10), 64, 65, 100])
def test_a_line_in_threads_costs_the_same(cells):
    x = np.random.default_rng(cells).poisson(9, cells)
    alone = dyadic_quantile_costs(x, 3, 4)
    (whole,) = dyadic_rectangle_costs(x[np.newaxis], 3, 4)
    together = dyadic_quantile_costs(x, 3, 4, threads=2)
    expected = [one[0].tolist() for one in whole]
    assert [one.tolist() for one in alone] == expected
    assert [one.tolist() for one in together] == expected


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 4)])
def test_counts_at_the_cap_stay_exact(shape):
    cap = count_cap(shape[0] * shape[1], 4)
    chessboard = np.indices(shape).sum(axis=0) % 2
    for counts in (np.full(shape, cap), chessboard * cap):
        costs = dyadic_rectangle_costs(counts, 3, 4)
        found = [[one.tolist() for one in line] for line in costs]
        assert found == reference.rectangle_costs(counts, 3, 4)


def test_cuts_counts_at_the_cap_and_at_zero():
    largest = np.iinfo(np.int64).max
    wild = dyadic_rectangle_costs(np.array([[largest, 5], [-3, 0]]), 3, 4)
    tame = dyadic_rectangle_costs(np.array([[count_cap(4, 4), 5], [0, 0]]), 3, 4)
    assert all(
        (one == other).all()
        for line, others in zip(wild, tame, strict=True)
        for one, other in zip(line, others, strict=True)
    )


@pytest.mark.long
@pytest.mark.parametrize("merged", [1, 8, 100])
@pytest.mark.parametrize("cells", [1, 2, 63, 64, 100, 257])
def test_merges_that_are_cut_into_jobs_cost_the_same(monkeypatch, cells, merged):
    x = np.random.default_rng(cells).poisson(3, (1, cells))
    expected = reference.rectangle_costs(x, 3, 4)
    monkeypatch.setattr(rectangle_costs, "FEWEST_MERGED", merged)
    monkeypatch.setattr(rectangle_costs, "MOST_MERGED", merged)
    for threads in (1, 2, 3, 5):
        costs = dyadic_rectangle_costs(x, 3, 4, threads=threads)
        assert [[one.tolist() for one in line] for line in costs] == expected


@pytest.mark.long
@pytest.mark.parametrize("merged", [1, 20, 200, 2**18])
@pytest.mark.parametrize("threads", [1, 2, 3, 5, 9])
def test_threads_do_not_matter(monkeypatch, threads, merged):
    counts = np.random.default_rng(5).integers(0, 50, size=(21, 34))
    one = dyadic_rectangle_costs(counts, 3, 4)
    monkeypatch.setattr(rectangle_costs, "FEWEST_MERGED", merged)
    monkeypatch.setattr(rectangle_costs, "MOST_MERGED", merged)
    many = dyadic_rectangle_costs(counts, 3, 4, threads=threads)
    assert len(one) == len(many) == 6
    for line, others in zip(one, many, strict=True):
        assert all((a == b).all() for a, b in zip(line, others, strict=True))


def test_the_counts_are_left_alone():
    counts = np.arange(12)[::-1].reshape(3, 4).copy()
    kept = counts.copy()
    dyadic_rectangle_costs(counts, 3, 4)
    assert (counts == kept).all()


@pytest.mark.parametrize("counts", [np.zeros(3, int), np.zeros((0, 3), int)])
def test_what_is_no_grid_is_refused(counts):
    with pytest.raises(InputError, match="rows and columns"):
        dyadic_rectangle_costs(counts, 3, 4)


@pytest.mark.parametrize("quantile", [(0, 4), (4, 4), (5, 4)])
def test_quantiles_outside_the_unit_interval_are_refused(quantile):
    with pytest.raises(InputError, match="strictly between"):
        dyadic_rectangle_costs(np.ones((2, 2), int), *quantile)

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.window_costs.rectangle_costs import (
    count_cap,
    dyadic_quantile_costs,
)
from tests.generated import example_count
from tests.reference import aligned_costs as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 30 if config.DISABLE_JIT else example_count(200)
QUANTILES = st.sampled_from([(3, 4), (1, 2), (7, 10), (1, 5), (99, 100), (2, 4)])
COUNTS = st.one_of(
    st.lists(st.integers(0, 4), min_size=1, max_size=40),
    st.lists(st.integers(0, 10**9), min_size=1, max_size=70),
)


@settings(deadline=None, max_examples=EXAMPLES)
@given(COUNTS, QUANTILES)
def test_equals_the_definition(counts, quantile):
    costs = dyadic_quantile_costs(np.array(counts), *quantile)
    assert [level.tolist() for level in costs] == reference.window_costs(
        counts, *quantile
    )
    assert all(level.dtype == np.int64 for level in costs)


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.lists(st.integers(0, 6), min_size=2, max_size=16), QUANTILES, st.data())
def test_one_record_moves_every_cost_by_less_than_the_quantile_allows(
    counts, quantile, data
):
    numerator, denominator = quantile
    cell = data.draw(st.integers(0, len(counts) - 1))
    more = list(counts)
    more[cell] += 1
    before = dyadic_quantile_costs(np.array(counts), *quantile)
    after = dyadic_quantile_costs(np.array(more), *quantile)
    for level, (old, new) in enumerate(zip(before, after, strict=True)):
        change = new - old
        assert np.all(np.delete(change, cell >> level) == 0)
        assert numerator - denominator <= change[cell >> level] <= numerator


@pytest.mark.parametrize("cells", [1, 2, 3, 8, 13])
def test_counts_at_the_cap_stay_exact(cells):
    cap = count_cap(cells, 4)
    for counts in ([cap] * cells, [cap * (i % 2) for i in range(cells)]):
        costs = dyadic_quantile_costs(np.array(counts), 3, 4)
        assert [c.tolist() for c in costs] == reference.window_costs(counts, 3, 4)


def test_cuts_counts_at_the_cap_and_at_zero():
    largest = np.iinfo(np.int64).max
    costs = dyadic_quantile_costs(np.array([largest, 5, -3]), 3, 4)
    cut = [count_cap(3, 4), 5, 0]
    assert [c.tolist() for c in costs] == reference.window_costs(cut, 3, 4)


def test_leaves_its_input_alone_and_reads_any_layout():
    x = np.arange(20)[::-2]
    kept = x.copy()
    costs = dyadic_quantile_costs(x, 3, 4)
    assert np.array_equal(x, kept)
    expected = reference.window_costs(kept, 3, 4)
    assert [c.tolist() for c in costs] == expected


def test_long_windows_match_a_sorted_window():
    cells = 200 if config.DISABLE_JIT else 5000
    x = np.random.default_rng(5).integers(0, 1000, cells)
    for level, costs in enumerate(dyadic_quantile_costs(x, 3, 4)):
        for start in (0, (costs.size - 1) << level):
            window = np.sort(x[start : start + (1 << level)])
            centre = window[-(-3 * window.size // 4) - 1]
            apart = window - centre
            cost = 3 * apart[apart > 0].sum() - apart[apart < 0].sum()
            assert costs[start >> level] == cost


@pytest.mark.parametrize("quantile", [(0, 4), (4, 4), (5, 4), (-1, 4)])
def test_refuses_a_quantile_outside_the_open_interval(quantile):
    with pytest.raises(InputError, match="strictly between"):
        dyadic_quantile_costs(np.array([1, 2]), *quantile)


@pytest.mark.parametrize("shape", [(0,), (2, 2)])
def test_refuses_what_is_not_a_row_of_cells(shape):
    with pytest.raises(InputError, match="one row"):
        dyadic_quantile_costs(np.zeros(shape, dtype=np.int64), 3, 4)

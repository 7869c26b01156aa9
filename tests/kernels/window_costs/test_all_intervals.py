from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.kernels.partition.interval_partition import (
    least_cost_partition,
    partition_cost,
)
from blowfish_fast.kernels.window_costs import all_intervals
from blowfish_fast.kernels.window_costs.all_intervals import (
    costs_to_end,
    interval_costs,
    least_cost_partition_all,
)
from blowfish_fast.kernels.window_costs.count_grid import partition_grid
from blowfish_fast.kernels.window_costs.moving_pointer import dense_ranks
from tests.generated import example_count
from tests.reference import interval_partition as reference
from tests.reference.cell_kinds import WHOLE_KINDS, jumping_mean, whole_cells

pytestmark = pytest.mark.kernel

PAPER = np.array([2, 3, 8, 1, 0, 2, 0, 4, 2, 4])
EXAMPLES = 20 if config.DISABLE_JIT else example_count(50)
QUANTILES = st.sampled_from([None, (3, 4), (2, 3), (0, 1), (1, 1)])


@pytest.mark.parametrize(
    ("epsilon", "optimum", "boundaries"),
    [
        (1.0, 10, [0, 2, 3, 7, 8, 9, 10]),
        (0.5, 44 / 3, [0, 2, 3, 7, 10]),
        (0.2, 22.2, [0, 10]),
        (0.1, 27.2, [0, 10]),
    ],
)
def test_the_optima_of_the_example(epsilon, optimum, boundaries):
    found = least_cost_partition_all(PAPER, 1 / epsilon, step=2.0**-20)
    assert found.tolist() == boundaries
    total = partition_cost(PAPER, found) + (found.size - 1) / epsilon
    assert total == pytest.approx(optimum, rel=1e-12)


@settings(max_examples=EXAMPLES)
@given(
    st.sampled_from(WHOLE_KINDS),
    st.integers(1, 30),
    st.integers(-8, 6),
    QUANTILES,
    st.integers(0),
)
def test_costs_equal_the_definition(kind, cells, exponent, quantile, seed):
    values = whole_cells(kind, cells, np.random.default_rng(seed))
    costs = interval_costs(values, step=2.0**exponent, quantile=quantile)
    for end in range(1, cells + 1):
        for length in range(1, end + 1):
            window = values[end - length : end].tolist()
            expected = reference.bucket_cost(window, 2.0**exponent, quantile)
            assert costs[end - 1, length - 1] == expected
        assert (costs[end - 1, end:] == 0).all()


@pytest.mark.parametrize("kind", ["poisson", "distinct", "jumping mean", "few values"])
def test_costs_equal_the_sorted_list(kind):
    values = whole_cells(
        kind, 40 if config.DISABLE_JIT else 90, np.random.default_rng(1)
    )
    costs = interval_costs(values, step=0.25)
    for (start, end), expected in reference.interval_costs(values, 0.25).items():
        assert costs[end - 1, end - start - 1] == expected


def jumping_to_the_left(cells):
    """Cells whose median jumps each time the interval grows to the left."""
    index = np.arange(cells)
    swinging = np.where(index % 4 < 2, 0, 10**6)
    return np.where(index < cells // 3, 1 + index, swinging)


@pytest.mark.parametrize("quantile", [None, (1, 2)])
def test_the_worst_case_takes_the_tree_and_stays_exact(quantile):
    size = 400 if config.DISABLE_JIT else 1500
    if quantile is None:
        values = jumping_mean(size, np.random.default_rng(3))
        values -= values.min()
    else:
        values = jumping_to_the_left(size)
    ranks, table = dense_ranks(values)
    tally = np.empty(table.size, dtype=np.int32)
    tree = np.empty(2 * table.size, dtype=np.int64)
    costs = np.empty(values.size, dtype=np.int64)
    rest = (tally, tree, costs)
    walked = costs_to_end(values, ranks, table, 0, quantile, *rest)
    assert walked < values.size
    for length in range(1, values.size + 1, 149):
        window = values[values.size - length :].tolist()
        assert costs[length - 1] == reference.bucket_cost(window, 1.0, quantile)


@settings(max_examples=EXAMPLES)
@given(
    st.sampled_from(WHOLE_KINDS),
    st.integers(1, 25),
    st.floats(0.05, 50.0),
    QUANTILES,
    st.integers(0, 2**32),
)
def test_equals_the_plain_recursion_with_recorded_noise(
    kind, cells, scale, quantile, seed
):
    rng = np.random.default_rng(seed)
    step, cap = partition_grid(cells, scale)
    values = np.clip(whole_cells(kind, cells, rng), 0, cap)
    lengths = list(range(1, cells + 1))
    scales = scale * rng.uniform(1, 2, cells)
    prices = 1 + 4 * scales
    words = reference.hashed_words(seed)
    costs = reference.candidate_costs(
        values.tolist(),
        lengths,
        prices,
        step,
        scales=scales,
        words=words,
        name=lambda length: length,
        quantile=quantile,
    )
    boundaries, _ = reference.cheapest(cells, costs)
    found = least_cost_partition_all(
        values, prices, scales, words, step=step, quantile=quantile
    )
    assert found.tolist() == boundaries


@given(st.sampled_from(WHOLE_KINDS), st.integers(1, 25), st.integers(0))
def test_equals_the_plain_recursion_without_noise(kind, cells, seed):
    rng = np.random.default_rng(seed)
    values = whole_cells(kind, cells, rng)
    prices = rng.uniform(0, 40, cells)
    costs = reference.candidate_costs(
        values.tolist(), list(range(1, cells + 1)), prices, 0.5
    )
    found = least_cost_partition_all(values, prices, step=0.5)
    assert found.tolist() == reference.cheapest(cells, costs)[0]


def test_blocks_do_not_matter(monkeypatch):
    values = whole_cells("poisson", 60, np.random.default_rng(5))
    scales = np.linspace(2, 4, 60)
    words = reference.hashed_words(6)
    arguments = (values, 3 * scales, scales, words)
    usual = least_cost_partition_all(*arguments, step=2.0**-8)
    monkeypatch.setattr(all_intervals, "NOISY_BLOCK", 7)
    other = least_cost_partition_all(*arguments, step=2.0**-8)
    np.testing.assert_array_equal(usual, other)


def test_equal_cells_make_one_interval():
    for cells in (1, 2, 33, 100):
        found = least_cost_partition_all(np.full(cells, 3), 1.0, step=2.0**-8)
        assert found.tolist() == [0, cells]
        tied = least_cost_partition_all(np.full(cells, 3), 0.0, step=2.0**-8)
        assert tied.tolist() == [0, cells]


def test_never_dearer_than_powers_of_two():
    values = whole_cells("steps", 50, np.random.default_rng(8))
    powers = least_cost_partition(values, np.full(6, 3.0), step=2.0**-10)
    every = least_cost_partition_all(values, 3.0, step=2.0**-10)
    totals = [
        partition_cost(values, found) + 3 * (found.size - 1)
        for found in (every, powers)
    ]
    assert totals[0] <= totals[1] + 50 * 2.0**-10


def test_counts_at_the_cap_do_not_overflow():
    step, cap = partition_grid(20, 1e-9)
    values = np.where(np.arange(20) % 3 == 0, cap, 1)
    for quantile in (None, (3, 4), (511, 1023)):
        costs = interval_costs(values, step=step, quantile=quantile)
        for end in range(1, 21):
            expected = reference.bucket_cost(values[:end].tolist(), step, quantile)
            assert costs[end - 1, end - 1] == expected


def test_refuses_what_it_cannot_do():
    words = reference.hashed_words(0)
    with pytest.raises(SizeError, match="4096"):
        least_cost_partition_all(np.zeros(4097), 1.0, step=1.0)
    refused = [
        ((np.zeros((2, 2)), 1.0), {"step": 1.0}),
        ((np.zeros(0), 1.0), {"step": 1.0}),
        ((np.zeros(4), np.ones(3)), {"step": 1.0}),
        ((np.zeros(4), 1.0, np.ones(4)), {"step": 1.0}),
        ((np.zeros(4), 1.0, np.zeros(4), words), {"step": 1.0}),
        ((np.array([0.5, 1.0]), 1.0, np.ones(2), words), {"step": 1.0}),
        ((np.array([0, 1]), 1.0), {"step": 0.7}),
        ((np.array([0, 1]), 1.0), {"step": 1.0, "quantile": (2, 1)}),
        ((np.arange(4096), 1.0), {"step": 2.0**-40}),
    ]
    for arguments, options in refused:
        with pytest.raises(InputError):
            least_cost_partition_all(*arguments, **options)

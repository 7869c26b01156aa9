from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.kernels.partition.interval_partition import (
    PAD,
    extend_partitions,
    read_partition,
)
from blowfish_fast.kernels.window_costs.count_grid import IMPOSSIBLE
from tests.generated import example_count
from tests.reference.interval_partition import cheapest, powers_up_to

pytestmark = pytest.mark.kernel

MOST = 70 if config.DISABLE_JIT else 300


def random_costs(cells, largest, rng):
    """Costs of all buckets by level and end; small ones make many ties."""
    return rng.integers(-largest, largest + 1, (max(cells.bit_length(), 6), cells))


def found(costs, cells, blocks):
    least = np.full(PAD + cells + 1, IMPOSSIBLE, dtype=np.int64)
    least[PAD] = 0
    chosen = np.zeros(cells + 1, dtype=np.int8)
    for begin, end in zip([0, *blocks], [*blocks, cells], strict=True):
        # A block's rows start at its first end, and may be wider than the block.
        rows = np.ascontiguousarray(costs[:, begin:])
        extend_partitions(rows, cells.bit_length(), begin, end, least, chosen)
    return read_partition(chosen).tolist(), least[-1]


def as_intervals(costs, cells):
    return {
        (end - length, end): int(costs[level, end - 1])
        for level, length in enumerate(powers_up_to(cells))
        for end in range(length, cells + 1)
    }


@settings(max_examples=example_count(40))
@given(st.integers(1, MOST), st.sampled_from([0, 1, 3, 100, 10**15]), st.integers(0))
def test_equals_the_plain_recursion(cells, largest, seed):
    costs = random_costs(cells, largest, np.random.default_rng(seed))
    boundaries, cost = cheapest(cells, as_intervals(costs, cells))
    assert found(costs, cells, []) == (boundaries, cost)


@given(st.integers(2, MOST), st.integers(0), st.data())
def test_blocks_do_not_matter(cells, seed, data):
    costs = random_costs(cells, 2, np.random.default_rng(seed))
    blocks = sorted(data.draw(st.sets(st.integers(1, cells - 1), max_size=3)))
    assert found(costs, cells, blocks) == found(costs, cells, [])


def test_equal_costs_go_to_the_longest_last_bucket():
    costs = np.zeros((6, 13), dtype=np.int64)
    boundaries, cost = found(costs, 13, [])
    assert boundaries == [0, 1, 5, 13]
    assert cost == 0


@pytest.mark.long
def test_long_buckets_are_found():
    rng = np.random.default_rng(5)
    cells, long = (600, 64) if config.DISABLE_JIT else (5000, 1024)
    costs = random_costs(cells, 1000, rng)
    # A price for each bucket makes the partition mix long and short ones.
    costs += 5000
    boundaries, cost = cheapest(cells, as_intervals(costs, cells))
    assert found(costs, cells, [cells // 5, cells // 2]) == (boundaries, cost)
    assert max(np.diff(boundaries)) >= long

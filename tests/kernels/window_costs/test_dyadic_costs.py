from __future__ import annotations

import numpy as np
import pytest
from numba import config

from blowfish_fast.kernels.window_costs import dyadic_costs
from blowfish_fast.kernels.window_costs.dyadic_costs import level_jobs
from blowfish_fast.kernels.window_costs.window_slide import (
    GRID_DEVIATION,
    GRID_PINBALL,
    window_recipe,
)
from tests.reference.cell_kinds import whole_cells

pytestmark = pytest.mark.kernel

KINDS = ["poisson", "distinct", "jumping mean", "sparse", "permuted", "zero"]


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so short that a small array has every sort of tile."""
    monkeypatch.setattr(dyadic_costs, "BLOCK", 256)
    tiles = ((6, 6, 64), (7, 7, 128), (8, 8, 256), (9, 9, 512), (10, 10, 1024))
    monkeypatch.setattr(dyadic_costs, "TILES", (*tiles, (11, 13, 8192)))


def all_costs(cells, exponent, quantile):
    form = GRID_DEVIATION if quantile is None else GRID_PINBALL
    levels = cells.size.bit_length()
    recipes = np.stack(
        [
            window_recipe(form, 1 << k, exponent=exponent, penalty=k, quantile=quantile)
            for k in range(levels)
        ]
    )
    jobs, make_room = level_jobs(cells, recipes)
    assert sorted(level for job in jobs for level in job.levels) == list(range(levels))
    block = dyadic_costs.BLOCK
    room = make_room()
    costs = np.zeros((levels, cells.size), dtype=np.int64)
    for begin in range(0, cells.size, block):
        end = min(begin + block, cells.size)
        rows = np.zeros((levels, block), dtype=np.int64)
        for job in jobs:
            job.fill(begin, end, rows, room)
        costs[:, begin:end] = rows[:, : end - begin]
    return costs


def expected_costs(cells, level, exponent, quantile):
    length = 1 << level
    windows = np.lib.stride_tricks.sliding_window_view(cells, length)
    if quantile is None:
        times = np.abs(length * windows - windows.sum(axis=1, keepdims=True))
        return np.floor_divide(times.sum(axis=1), 2 ** (level + exponent)) + level
    numerator, denominator = quantile
    statistic = -(-numerator * length // denominator) - 1
    centre = np.sort(windows, axis=1)[:, statistic : statistic + 1]
    above = np.maximum(windows - centre, 0).sum(axis=1)
    below = np.maximum(centre - windows, 0).sum(axis=1)
    tilted = numerator * above + (denominator - numerator) * below
    return tilted // (denominator * 2**exponent) + level


@pytest.mark.long
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("quantile", [None, (3, 4), (2, 3)])
@pytest.mark.parametrize("kind", KINDS)
def test_every_bucket_of_every_tile_equals_the_definition(kind, quantile):
    size = 700 if config.DISABLE_JIT else 2500
    cells = whole_cells(kind, size, np.random.default_rng(1))
    cells = cells - cells.min()
    costs = all_costs(cells, 1, quantile)
    for level, row in enumerate(costs):
        first = (1 << level) - 1
        expected = expected_costs(cells, level, 1, quantile)
        np.testing.assert_array_equal(row[first:], expected, err_msg=f"level {level}")


@pytest.mark.parametrize("kind", ["distinct", "poisson"])
def test_blocks_of_full_size_equal_small_ones(kind, monkeypatch):
    size, block = (700, 128) if config.DISABLE_JIT else (70_001, 1024)
    cells = whole_cells(kind, size, np.random.default_rng(2))
    cells = cells - cells.min()
    usual = all_costs(cells, -4, None)
    monkeypatch.setattr(dyadic_costs, "BLOCK", block)
    other = all_costs(cells, -4, None)
    for level, (one, two) in enumerate(zip(usual, other, strict=True)):
        first = (1 << level) - 1
        np.testing.assert_array_equal(one[first:], two[first:])


def test_few_cells_need_short_buckets_only():
    cells = np.array([3, 0, 5])
    costs = all_costs(cells, 0, None)
    assert costs[:, 2].tolist() == [0, 5 + 1]
    assert costs[0].tolist() == [0, 0, 0]

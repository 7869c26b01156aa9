from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from blowfish_fast.kernels.window_costs.moving_pointer import (
    MODE,
    STATE_SIZE,
    TREE,
    WALKING,
    dense_ranks,
)
from blowfish_fast.kernels.window_costs.short_windows import all_windows
from blowfish_fast.kernels.window_costs.window_slide import (
    ABOVE,
    CHUNK,
    EXACT_PINBALL,
    FLOAT_DEVIATION,
    GRID_DEVIATION,
    GRID_PINBALL,
    finish_windows,
    slide_tiles,
    slide_windows,
    tile_room,
    window_recipe,
)
from tests.reference.cell_kinds import jumping_mean, jumping_median, whole_cells
from tests.reference.window_deviation import deviation
from tests.reference.window_pinball import pinball

pytestmark = pytest.mark.kernel

EXPONENTS = st.integers(-20, 20)
QUANTILES = st.sampled_from([(3, 4), (2, 3), (0, 1), (1, 1), (511, 1024), (1, 1000)])
WINDOWS = st.integers(0, 2**20), st.integers(0, 2**20)


def finished(recipe, whole, part):
    row = np.empty(1, dtype=np.int64)
    finish_windows(np.array([whole]), np.array([part]), recipe, row)
    return row


@given(st.integers(0, 20), EXPONENTS, *WINDOWS)
def test_deviations_are_rounded_down_exactly(level, exponent, whole, part):
    recipe = window_recipe(GRID_DEVIATION, 1 << level, exponent=exponent, penalty=5)
    exact = 2 * (whole - Fraction(part, 1 << level)) / Fraction(2) ** exponent
    assert finished(recipe, whole, part)[0] == floor(exact) + 5


@given(st.integers(1, 1000), *WINDOWS)
def test_float_deviations_lose_nothing_but_the_last_bit(length, whole, part):
    recipe = window_recipe(FLOAT_DEVIATION, length)
    exact = 2 * (whole - Fraction(part, length))
    value = finished(recipe, whole, part).view(np.float64)[0]
    assert abs(Fraction(value) - exact) <= np.spacing(max(abs(float(exact)), 1.0))


@given(QUANTILES, EXPONENTS, st.integers(0, 2**20), st.integers(-(2**20), 2**20))
def test_pinball_costs_are_rounded_down_exactly(quantile, exponent, whole, part):
    exact = whole - (1 - Fraction(*quantile)) * part
    grid = window_recipe(
        GRID_PINBALL, 8, exponent=exponent, penalty=-3, quantile=quantile
    )
    in_steps = exact / Fraction(2) ** exponent
    assert finished(grid, whole, part)[0] == floor(in_steps) - 3
    as_it_is = window_recipe(EXACT_PINBALL, 8, quantile=quantile)
    assert finished(as_it_is, whole, part)[0] == exact * quantile[1]


@given(st.integers(1, 100), QUANTILES)
def test_the_statistic_is_the_least_with_enough_cells_below(length, quantile):
    above = window_recipe(GRID_PINBALL, length, quantile=quantile)[ABOVE]
    level = Fraction(*quantile)
    enough = [rank for rank in range(1, length + 1) if rank >= level * length]
    assert length - above == enough[0]


@pytest.mark.parametrize("quantile", [None, (3, 4)])
def test_a_carried_state_equals_one_sweep(quantile):
    cells = whole_cells("poisson", 400, np.random.default_rng(1))
    form = GRID_DEVIATION if quantile is None else GRID_PINBALL
    recipe = window_recipe(form, 64, exponent=-3, quantile=quantile)
    whole = all_windows(cells, recipe)
    ranks, table = dense_ranks(cells)
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    tally = np.empty(table.size, dtype=np.int32)
    scratch = np.empty((2, CHUNK), dtype=np.int64)
    done = 0
    for size in (1, 100, 200, whole.size - 301):
        row = np.empty(size, dtype=np.int64)
        slide_windows(
            cells, ranks, table, 64 + done, recipe, state, tally,
            np.empty(0, dtype=np.int64), scratch, row,
        )  # fmt: skip
        np.testing.assert_array_equal(row, whole[done : done + size])
        done += size
    assert state[MODE] == WALKING


@pytest.mark.parametrize("quantile", [None, (1, 2)])
def test_without_room_for_a_tree_the_slide_stops_and_goes_on_later(quantile):
    if quantile is None:
        cells = jumping_mean(2500, np.random.default_rng(2))
    else:
        cells = jumping_median(2500, 64)
    cells = cells - cells.min()
    form = GRID_DEVIATION if quantile is None else GRID_PINBALL
    recipe = window_recipe(form, 64, quantile=quantile)
    ranks, table = dense_ranks(cells)
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    tally = np.empty(table.size, dtype=np.int32)
    scratch = np.empty((2, CHUNK), dtype=np.int64)
    row = np.empty(cells.size - 63, dtype=np.int64)
    tree = np.empty(0, dtype=np.int64)
    done = slide_windows(
        cells, ranks, table, 64, recipe, state, tally, tree, scratch, row
    )
    assert done < row.size
    tree = np.empty(2 * table.size, dtype=np.int64)
    rest = slide_windows(
        cells, ranks, table, 64 + done, recipe, state, tally, tree, scratch, row[done:]
    )
    assert state[MODE] == TREE
    assert done + rest == row.size
    for start in range(0, row.size, 41):
        window = cells[start : start + 64].tolist()
        exact = deviation(window) if quantile is None else pinball(window, *quantile)
        assert row[start] == floor(exact)


@pytest.mark.parametrize("kind", ["distinct", "poisson", "jumping"])
def test_tiles_equal_the_ranks_of_the_whole_array(kind):
    size = 1800
    rng = np.random.default_rng(3)
    cells = (
        jumping_mean(size, rng) if kind == "jumping" else whole_cells(kind, size, rng)
    )
    cells = cells - cells.min()
    ranks, table = dense_ranks(cells)
    tile = 512
    words = (table.size >> 6) + 1
    lengths = (64, 100, 512)
    recipes = np.stack([window_recipe(FLOAT_DEVIATION, one) for one in lengths])
    rows = np.full((3, size + 2), -1, dtype=np.int64)
    trees = slide_tiles(
        cells, ranks, table.size - 2, 1, size, tile, recipes,
        tile_room(tile, words, np.empty((2, CHUNK), dtype=np.int64)), rows,
    )  # fmt: skip
    assert (trees > 0) == (kind == "jumping")
    for row, recipe, length in zip(rows, recipes, lengths, strict=True):
        np.testing.assert_array_equal(
            row[length - 1 : size], all_windows(cells, recipe)
        )
        assert (row[: length - 1] == -1).all()
        assert (row[size:] == -1).all()


def test_chunks_join_without_a_seam():
    chunks = 2 if config.DISABLE_JIT else 5
    cells = whole_cells("poisson", chunks * CHUNK, np.random.default_rng(4))
    result = all_windows(cells, window_recipe(GRID_DEVIATION, 256, exponent=-4))
    windows = np.lib.stride_tricks.sliding_window_view(cells, 256)
    exact = np.abs(256 * windows - windows.sum(axis=1, keepdims=True)).sum(axis=1)
    np.testing.assert_array_equal(result, exact >> 4)

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfish_fast.kernels.window_costs.moving_pointer import (
    EXHAUSTED,
    MEAN,
    MODE,
    STATE_SIZE,
    STEPS_PER_VALUE,
    STEPS_PER_WINDOW,
    WALKING,
    Slides,
    dense_ranks,
    open_window,
    walk_windows,
)
from tests.reference.cell_kinds import WHOLE_KINDS, jumping_mean, whole_cells

pytestmark = pytest.mark.kernel


def walk(cells, length, above):
    """Emit windows until the cells or the steps end."""
    cells = cells - cells.min()
    ranks, table = dense_ranks(cells)
    shift = length.bit_length() - 1 if length & (length - 1) == 0 else -1
    tally = np.empty(table.size, dtype=np.int32)
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    whole = np.zeros(cells.size - length + 1, dtype=np.int64)
    part = np.zeros_like(whole)
    open_window(
        cells, ranks, length, shift, above, table, tally, state, whole[:1], part[:1]
    )
    moving = Slides(cells, cells[length:], ranks, ranks[length:]), length
    rest = (table, tally, state, whole[1:], part[1:])
    centre = None if above == MEAN else above
    emitted = walk_windows(*moving, shift, centre, *rest)
    return cells, state, whole[: emitted + 1], part[: emitted + 1]


def check_mean(cells, length, whole, part):
    for start, (one, other) in enumerate(zip(whole, part, strict=True)):
        window = cells[start : start + length]
        floor = window.sum() // length
        high = window[window > floor]
        assert one == (high - floor).sum()
        assert other == high.size * (window.sum() - floor * length)


@given(
    st.sampled_from(WHOLE_KINDS), st.integers(1, 50), st.integers(0, 40), st.integers(0)
)
def test_windows_around_the_mean_equal_the_definition(kind, length, more, seed):
    cells = whole_cells(kind, length + more, np.random.default_rng(seed))
    cells, state, whole, part = walk(cells, length, MEAN)
    assert whole.size == more + 1 or state[MODE] == EXHAUSTED
    check_mean(cells, length, whole, part)


@given(
    st.sampled_from(WHOLE_KINDS),
    st.integers(1, 50),
    st.integers(0, 40),
    st.integers(0),
    st.data(),
)
def test_windows_around_a_statistic_equal_the_definition(
    kind, length, more, seed, data
):
    cells = whole_cells(kind, length + more, np.random.default_rng(seed))
    above = data.draw(st.integers(0, length - 1))
    cells, state, whole, part = walk(cells, length, above)
    assert whole.size == more + 1 or state[MODE] == EXHAUSTED
    for start, (one, other) in enumerate(zip(whole, part, strict=True)):
        window = np.sort(cells[start : start + length])
        centre = window[length - 1 - above]
        assert one == np.maximum(window - centre, 0).sum()
        assert other == (window - centre).sum()


def test_an_ordinary_walk_keeps_walking():
    cells = np.random.default_rng(1).poisson(20, 600)
    _, state, whole, _ = walk(cells, 64, MEAN)
    assert state[MODE] == WALKING
    assert whole.size == 537


@pytest.mark.parametrize("length", [64, 100])
def test_a_jumping_mean_spends_the_steps_but_no_more(length):
    cells = jumping_mean(2500, np.random.default_rng(2))
    cells, state, whole, part = walk(cells, length, MEAN)
    assert state[MODE] == EXHAUSTED
    # The window that spends them is emitted, and takes at most a walk over all values.
    distinct = np.unique(cells).size
    bound = STEPS_PER_VALUE * (distinct + 2) + STEPS_PER_WINDOW * whole.size
    assert bound < state[4] <= bound + distinct + STEPS_PER_WINDOW
    check_mean(cells, length, whole, part)

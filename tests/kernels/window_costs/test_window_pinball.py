from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.window_costs.short_windows import (
    window_deviations,
    window_pinball_costs,
)
from tests.reference import window_pinball as reference
from tests.reference.cell_kinds import WHOLE_KINDS, whole_cells

pytestmark = pytest.mark.kernel

LEVELS = st.sampled_from([(3, 4), (1, 2), (2, 3), (0, 1), (1, 1), (7, 10), (1, 1024)])
MOST = 60 if config.DISABLE_JIT else 130


@given(
    st.sampled_from(WHOLE_KINDS), st.integers(1, 60), LEVELS, st.integers(0), st.data()
)
def test_equals_the_definition(kind, cells, level, seed, data):
    values = whole_cells(kind, cells, np.random.default_rng(seed))
    length = data.draw(st.integers(1, cells))
    result = window_pinball_costs(values, length, *level)
    assert result.dtype == np.int64
    expected = reference.window_pinball_costs(values.tolist(), length, *level)
    assert result.tolist() == expected


@pytest.mark.long
@pytest.mark.parametrize("kind", WHOLE_KINDS)
@pytest.mark.parametrize("length", [33, 40, 64])
def test_longer_windows_equal_the_definition(kind, length):
    values = whole_cells(kind, MOST, np.random.default_rng(1))
    result = window_pinball_costs(values, min(length, MOST), 3, 4)
    expected = reference.window_pinball_costs(values.tolist(), min(length, MOST), 3, 4)
    assert result.tolist() == expected


@pytest.mark.parametrize("length", [64, 70, 300])
@pytest.mark.parametrize("kind", ["distinct", "jumping mean", "permuted"])
def test_tiles_equal_the_definition(kind, length):
    size = 700 if config.DISABLE_JIT else 5000
    values = whole_cells(kind, size, np.random.default_rng(2))
    result = window_pinball_costs(values, length, 2, 3)
    for start in [*range(0, values.size - length + 1, 31), values.size - length]:
        window = np.sort(values[start : start + length])
        centre = window[-(-2 * length // 3) - 1]
        distance = window - centre
        expected = 2 * distance.clip(min=0).sum() - distance.clip(max=0).sum()
        assert result[start] == expected


@given(st.lists(st.integers(0, 99), min_size=1, max_size=40), st.data())
def test_half_the_deviation_bounds_the_cost_of_every_level(values, data):
    # The deviation is twice the largest pinball cost over all levels.
    length = data.draw(st.integers(1, len(values)))
    numerator = data.draw(st.integers(0, 8))
    costs = window_pinball_costs(np.array(values), length, numerator, 8) / 8
    assert (costs <= window_deviations(np.array(values), length) / 2 + 1e-9).all()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.data())
def test_one_record_raises_a_cost_by_at_most_the_level(values, data):
    length = data.draw(st.integers(1, len(values)))
    cell = data.draw(st.integers(0, len(values) - 1))
    before = window_pinball_costs(np.array(values), length, 3, 4)
    values[cell] += 1
    change = window_pinball_costs(np.array(values), length, 3, 4) - before
    assert change.max() <= 3
    assert change.min() >= -1


@pytest.mark.parametrize("level", [(-1, 4), (5, 4), (1, 0), (1, 1025)])
def test_refuses_a_level_that_is_no_fraction(level):
    with pytest.raises(InputError, match="quantile"):
        window_pinball_costs(np.arange(5), 2, *level)


@pytest.mark.parametrize("cells", [np.array([0.5, 1.0]), np.array([0, 2**62])])
def test_refuses_cells_it_could_not_cost_exactly(cells):
    with pytest.raises(InputError, match="whole"):
        window_pinball_costs(cells, 2, 3, 4)

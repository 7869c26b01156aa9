from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba import config

from blowfish_fast.kernels.space.summed_area import largest_rectangle_sum
from tests.generated import example_count
from tests.reference import largest_rectangle as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 25 if config.DISABLE_JIT else example_count(100)
SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)


@settings(deadline=None, max_examples=EXAMPLES)
@given(hnp.arrays(np.int64, SHAPES, elements=st.integers(-50, 50)))
def test_the_largest_sum_equals_the_definition(cells):
    assert largest_rectangle_sum(cells) == reference.largest_rectangle_sum(cells)


@settings(deadline=None, max_examples=EXAMPLES)
@given(hnp.arrays(np.int64, st.integers(1, 30), elements=st.integers(-9, 9)))
def test_a_row_has_the_span_of_its_running_totals(cells):
    totals = np.concatenate([[0], np.cumsum(cells)])
    assert largest_rectangle_sum(cells) == totals.max() - totals.min()

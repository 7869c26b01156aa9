"""Cuts that pay, against plain recursion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.partition.kd_trees import gain_boxes
from tests.generated import example_count
from tests.reference import kd_gain as reference

pytestmark = pytest.mark.kernel

SHAPES = st.sampled_from([(1,), (2,), (21,), (1, 1), (9, 8), (3, 4, 5), (2, 3, 2, 4)])


def corners(boxes):
    return [
        (tuple(low), tuple(high))
        for low, high in zip(*(side.tolist() for side in boxes), strict=True)
    ]


@given(
    SHAPES,
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1.0, 20.0]),
    st.sampled_from([0.0, 0.3, 5.0, 200.0]),
    st.sampled_from([0.5, 1.4, 3.0]),
    st.integers(0, 30),
)
@settings(deadline=None, max_examples=example_count(80))
def test_equals_the_definition(shape, seed, variance, price, caution, depth):
    """The bound on what can be gained must not change the result either."""
    generator = np.random.default_rng(seed)
    cells = generator.integers(-4, 5, size=shape) + 9 * generator.integers(0, 2, shape)
    given_ = {
        "cell_variance": variance,
        "price": price,
        "caution": caution,
        "depth": depth,
    }
    expected = reference.gain_boxes(cells, **given_)
    assert corners(gain_boxes(cells, **given_)) == [
        (tuple(low), tuple(high)) for low, high in expected
    ]


def test_a_step_is_found_and_noise_is_not():
    generator = np.random.default_rng(1)
    cells = generator.laplace(0, 2, size=(16, 16))
    quiet = gain_boxes(cells, cell_variance=8.0, price=80.0, caution=2.0, depth=40)
    assert len(quiet[0]) == 1
    cells[:, :8] += 20
    found = gain_boxes(cells, cell_variance=8.0, price=80.0, caution=2.0, depth=40)
    assert corners(found) == [((0, 0), (16, 8)), ((0, 8), (16, 16))]


def test_even_cells_without_noise_stay_together():
    cells = np.full((7, 9), 0.1)
    boxes = gain_boxes(cells, cell_variance=0, price=0, caution=1, depth=40)
    assert len(boxes[0]) == 1


def test_refuses_negative_numbers():
    with pytest.raises(InputError, match="negative"):
        gain_boxes([1.0], cell_variance=-1, price=0, caution=1, depth=1)

"""Best merges, against the plain recursion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.window_costs.sorted_groups import merge_buckets
from tests.generated import example_count
from tests.reference import bucket_merge as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else example_count(100)


@settings(max_examples=EXAMPLES)
@given(
    st.lists(
        st.one_of(st.integers(-3, 3).map(float), st.floats(-1e4, 1e4)),
        min_size=1,
        max_size=14,
    ),
    st.sampled_from([0.01, 1.0, 50.0, 1e5, 1e9]),
    st.sampled_from([0.0, 1e7]),
)
def test_no_partition_costs_less(values, price, shift):
    values = np.array(values) + shift
    edges = merge_buckets(values, price)
    assert edges[0] == 0
    assert edges[-1] == values.size
    assert (np.diff(edges) > 0).all()
    least = reference.least_cost(values, price)
    assert reference.cost(values, edges, price) <= least * (1 + 1e-9) + 1e-7


def test_steps_are_found_and_noise_merged():
    generator = np.random.default_rng(3)
    cells = 200 if config.DISABLE_JIT else 4000
    steps = np.repeat([0.0, 50.0, 10.0, 300.0], cells // 4)
    values = steps + generator.normal(size=cells)
    edges = merge_buckets(values, 2 * np.log(cells))
    assert edges.tolist() == (np.arange(5) * (cells // 4)).tolist()


def test_many_pieces_outgrow_the_first_room():
    # A smooth ramp without noise keeps many begins in the running.
    values = np.arange(400) / 400
    edges = merge_buckets(values, 0.3)
    assert edges[-1] == 400
    halves = reference.cost(values, np.array([0, 200, 400]), 0.3)
    whole = reference.cost(values, np.array([0, 400]), 0.3)
    assert reference.cost(values, edges, 0.3) <= min(halves, whole)


def test_nothing_is_merged_for_free():
    assert merge_buckets(np.zeros(4), 0.0).tolist() == [0, 1, 2, 3, 4]
    assert merge_buckets(np.zeros(4), 1e-9).tolist() == [0, 4]


def test_bad_input_is_refused():
    for values in (np.zeros((2, 2)), np.zeros(0), np.array([1.0, np.inf])):
        with pytest.raises(InputError, match="finite"):
            merge_buckets(values, 1.0)

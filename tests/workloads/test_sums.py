from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import WorkloadError
from blowfish_fast.workloads import Sum


def spelled_out(form, buckets):
    """Return the row of a form with one query, bucket by bucket."""
    row = np.zeros(buckets)
    for start, end, value in zip(form.starts, form.ends, form.values, strict=True):
        row[start:end] = value
    return row


def test_records_are_weighed_by_their_cell():
    workload = Sum(Domain((2, 2)), [[1, 2], [-3, 0.5]])
    assert workload.queries == len(workload) == 1
    assert workload.answer([[10, 0], [1, 4]]).tolist() == [10 - 3 + 2]


def test_weights_may_be_flat():
    grid = Domain((2, 2))
    flat, square = Sum(grid, [1, 2, 3, 4]), Sum(grid, [[1, 2], [3, 4]])
    assert flat.weights.tolist() == square.weights.tolist()


@given(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=6, max_size=6))
def test_the_form_gives_the_weights_back(weights):
    form = Sum(Domain(6), weights).explicit_form(Buckets.single_cells(6))
    assert spelled_out(form, 6).tolist() == weights


def test_buckets_average_the_weights():
    form = Sum(Domain(4), [1, 3, 5, 5]).explicit_form(Buckets(np.array([0, 2, 4])))
    assert spelled_out(form, 2).tolist() == [2, 5]


def test_weights_are_a_copy_that_cannot_change():
    weights = np.ones(3)
    workload = Sum(Domain(3), weights)
    weights[:] = 9
    assert workload.weights.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        workload.weights[0] = 2


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "must have the domain's shape"),
        ([1, 2, np.nan], "finite"),
        ([1, 2, np.inf], "finite"),
        (["a", "b", "c"], "numbers"),
        ([[1], [2, 3]], "numbers"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(WorkloadError, match=message):
        Sum(Domain(3), weights)

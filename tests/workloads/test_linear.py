"""Any linear queries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import WorkloadError
from blowfish_fast.workloads import Linear
from tests.reference.forms import dense_form, dense_projection


def test_answers_are_the_matrix_product(generator):
    matrix = generator.normal(size=(7, 6))
    counts = generator.integers(0, 9, (2, 3))
    workload = Linear(Domain((2, 3)), sparse.csr_array(matrix))
    np.testing.assert_allclose(workload.answer(counts), matrix @ counts.reshape(-1))


@pytest.mark.parametrize("labels", [[0, 0, 1, 2, 2, 2], [1, 0, 1, 2, 0, 2]])
def test_forms_equal_the_projection(labels, generator):
    buckets = Buckets.from_labels(np.array(labels))
    matrix = generator.integers(-1, 2, size=(20, 6))
    workload = Linear(Domain(6), matrix)
    form = workload.explicit_form(buckets)
    np.testing.assert_allclose(
        dense_form(form, buckets.count), dense_projection(workload, buckets)
    )
    assert (form.ends > form.starts).all()


def test_equal_neighbours_form_one_run():
    form = Linear(Domain(5), [[1, 1, 1, 0, 2], [0, 0, 0, 0, 0]]).explicit_form(
        Buckets.single_cells(5)
    )
    assert form.pointers.tolist() == [0, 2, 2]
    assert form.starts.tolist() == [0, 4]
    assert form.ends.tolist() == [3, 5]


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[1, 2]], "one column per cell"),
        ([[1, 2, float("nan")]], "finite"),
        ("text", "must be numeric"),
    ],
)
def test_bad_matrices_are_refused(matrix, words):
    with pytest.raises(WorkloadError, match=words):
        Linear(Domain(3), matrix)


def test_laying_it_over_buckets_leaves_it_as_it_was():
    line = Domain(4)
    asked = Linear(line, np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 2.0]]))
    before = asked.answer(np.array([1, 2, 3, 4])).tolist()
    asked.explicit_form(Buckets.from_labels(np.array([0, 0, 1, 1])))
    assert asked.answer(np.array([1, 2, 3, 4])).tolist() == before

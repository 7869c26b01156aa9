from __future__ import annotations

import itertools

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError
from blowfish_fast.workloads import Marginals

SHAPE = (2, 3, 4)
AXES = [axes for size in (1, 2, 3) for axes in itertools.combinations(range(3), size)]


@pytest.mark.parametrize("axes", AXES)
def test_answers_sum_over_the_other_axes(axes):
    counts = np.arange(24).reshape(SHAPE) ** 2
    others = tuple(axis for axis in range(3) if axis not in axes)
    answers = Marginals(Domain(SHAPE), axes).answer(counts)
    assert answers.dtype == np.int64
    assert answers.tolist() == counts.sum(axis=others).reshape(-1).tolist()


@pytest.mark.parametrize("axes", AXES)
def test_every_cell_belongs_to_one_entry(axes):
    workload = Marginals(Domain(SHAPE), axes)
    counts = np.arange(24)
    entries = np.bincount(workload.labels, counts, minlength=workload.queries)
    assert entries.tolist() == workload.answer(counts.reshape(SHAPE)).tolist()
    assert workload.queries == np.prod(workload.shape)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("edges", [np.arange(25), np.array([0, 5, 6, 20, 24])])
def test_the_form_answers_alike_when_buckets_are_even(axes, edges):
    workload = Marginals(Domain(SHAPE), axes)
    buckets = Buckets(edges)
    form = workload.explicit_form(buckets)
    totals = np.arange(1, buckets.count + 1).astype(float)
    answers = []
    for begin, end in itertools.pairwise(form.pointers):
        pieces = slice(begin, end)
        answers.append(
            sum(
                value * totals[start:stop].sum()
                for start, stop, value in zip(
                    form.starts[pieces],
                    form.ends[pieces],
                    form.values[pieces],
                    strict=True,
                )
            )
        )
    expected = workload.answer(buckets.expand(totals).reshape(SHAPE))
    np.testing.assert_allclose(answers, expected)


def test_axes_may_be_named_and_keep_the_order_of_the_domain():
    domain = Domain(SHAPE, names=["sex", "age", "region"])
    workload = Marginals(domain, ["region", "sex"])
    assert workload.axes == (0, 2)
    assert Marginals(domain, "age").axes == (1,)
    assert Marginals(domain, 1).axes == Marginals(domain, np.array([1])).axes == (1,)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ([], "at least one attribute"),
        ([3], "numbered from 0 to 2"),
        ([-1], "numbered from 0 to 2"),
        ([0, 0], "each once"),
        ([0.5], "no attribute"),
        ([None], "no attribute"),
    ],
)
def test_bad_axes_are_refused(axes, message):
    with pytest.raises(DomainError, match=message):
        Marginals(Domain(SHAPE), axes)


def test_unknown_names_are_refused():
    with pytest.raises(DomainError, match="no attribute 'income'"):
        Marginals(Domain(SHAPE, names=["a", "b", "c"]), "income")

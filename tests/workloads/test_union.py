"""Workloads asked together."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, WorkloadError
from blowfish_fast.workloads import Fractions, Linear, Pieces, Prefixes, Total, Union
from blowfish_fast.workloads.base import form_matrix

LINE = bf.Domain(6)
COUNTS = np.array([5, 0, 2, 1, 7, 3])


def test_answers_come_one_part_after_the_other():
    asked = Prefixes(LINE) | Total(LINE) | Linear(LINE, [[1, 0, 2, 0, 0, -1]])
    assert asked.queries == 8
    assert asked.answer(COUNTS).tolist() == [5, 5, 7, 8, 15, 18, 18, 6]
    assert len(asked.parts) == 3


@pytest.mark.parametrize("kind", [Fractions, Pieces])
def test_the_listed_form_is_that_of_the_parts_stacked(kind):
    other = Total(LINE) if kind is Fractions else Linear(LINE, [[1, 0, 2, 0, 0, -1]])
    parts = [Prefixes(LINE), other, Total(LINE)]
    buckets = Buckets(np.array([0, 2, 3, 6]))
    form = Union(*parts).explicit_form(buckets)
    assert isinstance(form, kind)
    stacked = [
        form_matrix(one.explicit_form(buckets), 3, most=10**4).toarray()
        for one in parts
    ]
    found = form_matrix(form, 3, most=10**4).toarray()
    assert np.allclose(found, np.concatenate(stacked))


@pytest.mark.parametrize("mechanism", [bf.Laplace, bf.Hierarchy, bf.Ordered])
def test_mechanisms_predict_for_a_union_what_they_predict_for_its_parts(mechanism):
    policy = bf.policies.Line(LINE)
    parts = Prefixes(LINE), bf.workloads.Ranges(LINE, [1, 2], [3, 6])
    both = parts[0] | parts[1]
    planned = mechanism(policy, both, epsilon=1)
    expected = [planned.expected_error(one) for one in parts]
    assert np.allclose(planned.expected_error(), np.concatenate(expected))
    release = planned.release(COUNTS, rng=1)
    assert release.answer(both).shape == release.intervals(both).shape[:1] == (8,)


def test_dawa_answers_a_union():
    both = Prefixes(LINE) | Total(LINE)
    release = bf.Dawa(bf.policies.Full(LINE), both, epsilon=1).release(COUNTS, rng=1)
    assert release.answer(both).shape == (7,)


def test_domains_must_be_the_same():
    with pytest.raises(DomainError, match="asked together share one domain"):
        Total(LINE) | Total(bf.Domain(7))
    with pytest.raises(WorkloadError, match="at least one workload"):
        Union()
    with pytest.raises(WorkloadError, match="part 1 is another thing"):
        Union(Total(LINE), "total")
    with pytest.raises(TypeError):
        Total(LINE) | 3


def test_plain_data_lists_the_parts():
    plain = (Total(LINE) | Prefixes(LINE)).to_dict()
    assert [one["kind"] for one in plain["parts"]] == ["Total", "Prefixes"]

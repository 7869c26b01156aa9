"""Ranges, prefixes and all ranges of one ordered attribute."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, SizeError, WorkloadError
from blowfish_fast.workloads import AllRanges, Prefixes, Ranges
from tests.reference.forms import dense_form, dense_projection


def test_answers_equal_the_definition(generator):
    line = Domain(50)
    counts = generator.integers(0, 100, 50)
    ranges = Ranges.random(line, 200, rng=3)
    expected = [
        counts[start:end].sum()
        for start, end in zip(ranges.starts, ranges.ends, strict=True)
    ]
    answers = ranges.answer(counts)
    assert answers.dtype == np.int64
    assert answers.tolist() == expected


# 2^60 + 1 has no double: sums of floats would lose the 1.
def test_integer_answers_are_exact_beyond_doubles():
    answer = Ranges(Domain(3), [0], [2]).answer([2**60, 1, 5])
    assert answer.tolist() == [2**60 + 1]


def test_prefixes_and_all_ranges_go_by_start_then_end():
    line = Domain(4)
    counts = np.array([1, 2, 4, 8])
    assert Prefixes(line).answer(counts).tolist() == [1, 3, 7, 15]
    from_0, from_1, from_2, from_3 = [1, 3, 7, 15], [2, 6, 14], [4, 12], [8]
    expected = [*from_0, *from_1, *from_2, *from_3]
    assert AllRanges(line).answer(counts).tolist() == expected


@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 1, 2], [2, 0, 1, 0, 2, 1]])
def test_forms_equal_the_projection(labels):
    line, buckets = Domain(6), Buckets.from_labels(np.array(labels))
    for workload in (
        Ranges.random(line, 30, rng=1),
        Prefixes(line),
        AllRanges(line),
    ):
        dense = dense_form(workload.explicit_form(buckets), buckets.count)
        np.testing.assert_allclose(dense, dense_projection(workload, buckets))


def test_a_range_takes_its_share_of_the_buckets_that_it_cuts():
    # Oracle D4, the example of the DAWA paper: ten cells in four buckets. The range of
    # the cells 1 to 5 holds one cell of two, the only one, three of four, and no other.
    buckets = Buckets(np.array([0, 2, 3, 7, 10]))
    query = Ranges(Domain(10), [1], [6])
    form = dense_form(query.explicit_form(buckets), 4)
    np.testing.assert_allclose(form, [[0.5, 1.0, 0.75, 0.0]])
    noisy = np.array([6.3, 7.1, 3.6, 8.4])
    assert form @ noisy == pytest.approx(12.95)
    assert query.answer(buckets.expand(noisy)) == pytest.approx(12.95)


def test_random_ranges_reach_both_ends_of_the_domain():
    ranges = Ranges.random(Domain(4), 500, rng=1)
    assert ranges.starts.min() == 0
    assert ranges.ends.max() == 4
    drawn_again = Ranges.random(Domain(4), 500, rng=1)
    assert (ranges.starts == drawn_again.starts).all()


def test_clustered_ranges_crowd_around_five_centres():
    line = Domain(4096)
    near = Ranges.clustered(line, 2000, rng=5)
    wide = Ranges.clustered(line, 2000, rng=5, large=True)
    assert near.queries == wide.queries == 2000
    lengths = near.ends - near.starts
    # Both ends lie a normal distance of deviation 256 from the centre. The mean of such
    # a distance is 256 sqrt(2 / pi).
    assert lengths.mean() == pytest.approx(2 * 256 * np.sqrt(2 / np.pi), rel=0.15)
    assert (wide.ends - wide.starts).mean() > 2 * lengths.mean()
    assert near.starts.min() >= 0
    assert near.ends.max() <= 4096


@pytest.mark.parametrize(
    ("starts", "ends", "words"),
    [
        ([-1], [2], "must lie in"),
        ([0], [9], "must lie in"),
        ([3], [3], "must start before it ends"),
        ([4], [2], "must start before it ends"),
        ([0, 1], [2], "same length"),
        ([0.5], [2], "whole numbers"),
        ([float("nan")], [2], "whole numbers"),
    ],
)
def test_bad_ranges_are_refused(starts, ends, words):
    with pytest.raises(WorkloadError, match=words):
        Ranges(Domain(8), starts, ends)


def test_ranges_over_other_domains_counts_and_buckets_are_refused():
    with pytest.raises(WorkloadError, match="one ordered attribute"):
        Ranges(Domain((2, 2)), [0], [1])
    with pytest.raises(WorkloadError, match="at least one query"):
        Ranges.random(Domain(8), 0, rng=1)
    with pytest.raises(WorkloadError, match="over a Domain"):
        Ranges(8, [0], [1])
    with pytest.raises(DomainError, match="shape of the workload"):
        Ranges(Domain(8), [0], [1]).answer([1, 2])
    with pytest.raises(DomainError, match="buckets cover"):
        Prefixes(Domain(8)).form(Buckets.single_cells(3))


def test_too_many_ranges_are_refused_with_their_number():
    with pytest.raises(SizeError, match=r"549,756,338,176 of AllRanges"):
        AllRanges(Domain(2**20)).answer(np.zeros(2**20, dtype=int))

"""The query that an estimate answers worst: exact errors, calibrated to the policy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError, SizeError, WorkloadError
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.selections import LARGEST_ERROR, WorstQuery

LINE = bf.Domain(6)
RANGES = bf.workloads.Ranges(LINE, [0, 2, 1], [3, 6, 2])
COUNTS = np.array([5, 0, 1, 7, 0, 2])
GRID = bf.Domain((2, 3))
NOTHING = np.zeros(3, dtype=bool)


def drawn(selector, policy, epsilon, seed=1, counts=COUNTS):
    return selector.select(
        counts, policy=policy, epsilon=Fraction(epsilon), rng=Randomness(seed)
    )


def test_errors_are_exact():
    selector = WorstQuery(RANGES).against(np.array([6.4, 3.6, -2.0]), NOTHING)
    assert selector.errors(COUNTS).tolist() == [0, 6, 2]


@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_a_large_epsilon_finds_the_worst_query_not_asked(policy):
    selector = WorstQuery(RANGES)
    answers = np.array([7.0, 4.0, 0.0])
    for asked, expected in (([0, 0, 0], 1), ([0, 1, 0], 0)):
        now = selector.against(answers, np.array(asked, dtype=bool))
        assert drawn(now, policy(LINE), 10**6) == expected


@pytest.mark.parametrize(
    ("workload", "added", "moved"),
    [
        (RANGES, 1, 1),
        (bf.workloads.Identity(GRID), 1, 1),
        (bf.workloads.Total(LINE), 1, 0),
        (bf.workloads.Prefixes(LINE), 1, 1),
        (bf.workloads.Rectangles(GRID, [[0, 1]], [[2, 3]]), 1, 1),
        (bf.workloads.Linear(LINE, [[3, 0, -2, 0, 0, 0], [1] * 6]), 3, 5),
        (bf.workloads.Sum(LINE, [4, 5, 6, 7, 8, 9]), 9, 5),
    ],
)
def test_an_answer_moves_as_far_as_its_coefficients(workload, added, moved):
    selector = WorstQuery(workload)
    domain = workload.domain
    assert selector.sensitivity(bf.policies.AddRemove(domain)) == added
    assert selector.sensitivity(bf.policies.Full(domain)) == moved
    assert selector.sensitivity(bf.policies.Blocks(domain, np.arange(6))) == 0
    if moved:
        rate = selector.rate(bf.policies.Full(domain), Fraction(1))
        assert 2 * moved * rate == 1


@pytest.mark.parametrize(
    "workload",
    [
        RANGES,
        bf.workloads.Identity(LINE),
        bf.workloads.Rectangles(GRID, [[0, 1], [1, 0]], [[2, 3], [2, 2]]),
        bf.workloads.Marginals(GRID, [1]),
        bf.workloads.Linear(LINE, [[3, 0, -2, 1, 1, 0]]),
    ],
)
def test_runs_spell_the_query(workload):
    selector = WorstQuery(workload)
    counts = COUNTS.reshape(workload.domain.shape)
    for query, answer in enumerate(workload.answer(counts)):
        runs = selector.runs(query)
        parts = [
            value * COUNTS[start:end].sum()
            for start, end, value in zip(*runs, strict=True)
        ]
        assert sum(parts) == answer


def test_weighted_answers_stay_exact_beyond_doubles():
    weights = np.array([[1, 2**20 + 1, 0, 0, 0, 0]])
    counts = np.array([1, 2**35 + 1, 0, 0, 0, 0])
    selector = WorstQuery(bf.workloads.Linear(LINE, weights))
    expected = 1 + (2**20 + 1) * (2**35 + 1)
    assert selector.errors(counts).tolist() == [expected]


def test_giant_counts_are_cut_instead_of_overflowing():
    counts = np.array([2**61, 0, 0, 0, 0, 2**60])
    selector = WorstQuery(bf.workloads.Linear(LINE, [[2**30, 0, 0, 0, 0, -(2**30)]]))
    assert 0 <= selector.errors(counts)[0] <= LARGEST_ERROR
    ranges = WorstQuery(RANGES).against(np.full(3, -1e300), NOTHING)
    assert (ranges.errors(counts) == LARGEST_ERROR).all()


def test_without_edges_the_worst_query_is_no_secret():
    selector = WorstQuery(RANGES).against(np.array([6.0, 4.0, 0.0]), NOTHING)
    alone = bf.policies.Blocks(LINE, np.arange(6))
    assert drawn(selector, alone, Fraction(1, 10**6)) == 1


def test_bad_workloads_are_refused():
    with pytest.raises(WorkloadError, match="whole coefficients"):
        WorstQuery(bf.workloads.Linear(LINE, [[0.5, 1, 0, 0, 0, 0]]))
    with pytest.raises(WorkloadError, match="whole coefficients"):
        WorstQuery(bf.workloads.Rectangles(GRID, [[0.5, 0]], [[2, 3]]))
    with pytest.raises(WorkloadError, match="at least one"):
        WorstQuery(bf.workloads.Ranges(LINE, [], []))
    with pytest.raises(InputError, match="fewer rounds"):
        WorstQuery(RANGES).against(np.zeros(3), ~NOTHING)


class Unlisted(bf.workloads.Ranges):
    def explicit_form(self, buckets):
        raise AssertionError("the queries were listed")


def test_too_many_queries_are_refused_before_they_are_listed(monkeypatch):
    few = bf.workloads.Ranges(LINE, [0, 2], [3, 6])
    monkeypatch.setattr("blowfish_fast.workloads.base.MOST_QUERIES", 2)
    few._refuse_too_many()
    with pytest.raises(SizeError, match="queries are answered one by one"):
        WorstQuery(Unlisted(LINE, [0, 2, 1], [3, 6, 2]))


def test_too_many_coefficients_of_weighted_queries_are_refused(monkeypatch):
    module = "blowfish_fast.measure.selectors.selections"
    monkeypatch.setattr(f"{module}.MOST_COEFFICIENTS", 3)
    with pytest.raises(SizeError, match="weighted queries are chosen from below that"):
        WorstQuery(bf.workloads.Sum(LINE, [4, 5, 6, 7, 8, 9]))

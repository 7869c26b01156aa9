"""Sums, differences and averages of releases: what is promised, and what holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, InputError, IntervalError, PolicyError
from blowfish_fast.release.combination import CombinedRelease

LINE = bf.Domain.from_edges(range(9), name="age")
CELLS = bf.workloads.Identity(LINE)
RANGES = bf.workloads.AllRanges(LINE)
POLICY = bf.policies.AddRemove(LINE)
ONE, TWO = np.arange(8) * 3, np.arange(8)[::-1]


def laplace(epsilon=1, **options):
    return bf.Laplace(POLICY, CELLS, epsilon=epsilon, **options)


def test_sums_cost_what_all_parts_cost():
    a, b = laplace(0.5).release(ONE), laplace(0.25).release(ONE)
    both = a + b
    assert np.array_equal(both.estimate, a.estimate + b.estimate)
    assert float(both.guarantee.epsilon) == 0.75
    three = both + laplace(1).release(ONE)
    assert len(three.parts) == 3
    assert float(three.guarantee.epsilon) == 1.75
    assert repr(three) == "CombinedRelease(sum: 3 releases, eps = 1.75)"


def test_sums_of_different_people_cost_the_largest_budget_and_say_so():
    a, b = laplace(0.5).release(ONE), laplace(0.25).release(TWO)
    both = a.combine(b, disjoint=True)
    assert both.private
    assert np.array_equal(both.estimate, a.estimate + b.estimate)
    assert float(both.guarantee.epsilon) == 0.5
    assert "different people" in str(both.guarantee)
    assert "sum of different people" in repr(both)
    averaged = a.combine(b)
    assert "average" in repr(averaged)
    assert "different" not in repr(averaged)
    assert len(a.combine(b, laplace(1).release(ONE), disjoint=True).parts) == 3
    with pytest.raises(InputError, match="disjoint=True"):
        both + laplace(1).release(ONE)
    with pytest.raises(InputError, match="Leave workload= out"):
        a.combine(b, workload=CELLS, disjoint=True)


def test_differences_and_averages_cost_both_budgets():
    a, b = laplace(0.5).release(ONE), laplace(0.25).release(ONE)
    for one in (a - b, a.combine(b)):
        assert float(one.guarantee.epsilon) == 0.75
    assert not (a - laplace(1).release(TWO, rng=1)).private


def test_errors_add_up_by_the_squares_of_the_weights():
    a, b = laplace(0.5).release(ONE), laplace(0.25).release(TWO)
    errors = [one.standard_errors(RANGES) for one in (a, b)]
    for one in (a + b, a - b, a.combine(b, disjoint=True)):
        assert np.allclose(one.standard_errors(RANGES), np.hypot(*errors))
    assert np.allclose((a - b).answer(RANGES), a.answer(RANGES) - b.answer(RANGES))


@pytest.mark.parametrize("asked", [CELLS, RANGES], ids=["cells", "ranges"])
def test_weights_are_the_best_among_those_that_add_up_to_one(asked):
    parts = [laplace(1).release(ONE), laplace(3).release(ONE)]
    hierarchy = bf.Hierarchy(POLICY, RANGES, epsilon=1).release(ONE)
    parts.append(hierarchy)
    best = parts[0].combine(*parts[1:], workload=asked)
    assert best.weights.sum() == pytest.approx(1)
    least = (best.standard_errors(asked) ** 2).sum()
    assert least <= min((one.standard_errors(asked) ** 2).sum() for one in parts)
    rng = np.random.default_rng(1)
    for _ in range(20):
        other = best.weights + rng.normal(size=3) / 10
        other /= other.sum()
        tried = CombinedRelease(parts, other.tolist(), "average")
        assert (tried.standard_errors(asked) ** 2).sum() >= least * (1 - 1e-9)


def test_intervals_hold_the_truth_as_often_as_they_say():
    truths = {
        "sum": (lambda a, b: a + b, ONE + TWO),
        "difference": (lambda a, b: a - b, ONE - TWO),
    }
    for name, (joined, truth) in truths.items():
        answers = RANGES.answer(truth)
        missed = []
        for seed in range(60):
            a = laplace(0.4).release(ONE, rng=2 * seed)
            b = laplace(0.8).release(TWO, rng=2 * seed + 1)
            bounds = joined(a, b).intervals(RANGES, 0.8, of="truth")
            missed.append(((answers < bounds[:, 0]) | (answers > bounds[:, 1])).mean())
        assert np.mean(missed) < 0.25, name
        assert np.mean(missed) > 0.02, (name, "far too wide")


def test_gaussian_releases_are_combined_among_themselves():
    gaussian = bf.Gaussian(POLICY, CELLS, rho=0.5)
    a, b = gaussian.release(ONE), gaussian.release(ONE)
    both = a.combine(b)
    assert float(both.guarantee.rho) == 1
    half = np.diff(both.intervals(CELLS), axis=1)
    assert (half < np.diff(a.intervals(CELLS, of="noise"), axis=1)).all()
    with pytest.raises(PolicyError, match="in epsilon and in rho"):
        a + laplace(1).release(ONE)


def test_tables_say_whether_intervals_hold_the_truth():
    table = (laplace(1).release(ONE) - laplace(1).release(TWO)).to_table()
    assert list(table) == ["age_from", "age_to", "estimate", "low", "high"]
    dawa = bf.Dawa(POLICY, RANGES, epsilon=0.05)
    merged = dawa.release(np.full(8, 5)) + dawa.release(np.full(8, 5))
    if not merged.holds_truth(CELLS).all():
        assert "noise_low" in merged.to_table()


def test_what_cannot_be_combined_is_refused():
    a = laplace(1).release(ONE)
    with pytest.raises(InputError, match="noise is independent"):
        a + a
    with pytest.raises(InputError, match="noise is independent"):
        a - bf.Release.from_bytes(a.to_bytes())
    other = bf.Domain(8)
    unnamed = bf.Laplace(
        bf.policies.AddRemove(other), bf.workloads.Identity(other), epsilon=1
    ).release(ONE)
    with pytest.raises(DomainError, match="cell by cell"):
        a + unnamed
    with pytest.raises(PolicyError, match="under one policy"):
        a + bf.Laplace(bf.policies.Full(LINE), CELLS, epsilon=1).release(ONE)
    for wrong in (3, ONE, a - laplace(1).release(TWO)):
        with pytest.raises(InputError, match="releases of histograms"):
            a + wrong


def test_releases_whose_noise_coincides_are_told_apart():
    a, b = laplace(500).release(ONE), laplace(500).release(ONE)
    assert (a.estimate == b.estimate).all()
    assert ((a + b).estimate == 2 * ONE).all()
    for again in (bf.Release.from_bytes(a.to_bytes()), a.rounded()):
        with pytest.raises(InputError, match="noise is independent"):
            again + a
    # A seeded release says nothing of its noise but the numbers.
    with pytest.raises(InputError, match="noise is independent"):
        replace(a, identity="") + b
    survey = bf.workloads.Tables(LINE, ways=1)
    tables = bf.Contingency(POLICY, survey, epsilon=1).release(bf.Histogram(LINE, ONE))
    with pytest.raises(InputError, match="noise is independent"):
        tables.table(0) + tables.table(0)


def test_true_sums_of_counts_are_not_below_zero_and_differences_may_be():
    a, b = (laplace("0.1").release(np.zeros(8, dtype=int), rng=one) for one in (1, 2))
    for joined in (a + b, a.combine(b)):
        low = joined.intervals(CELLS, of="truth")[:, 0]
        assert (low == np.minimum(joined.answer(CELLS), 0.0)).any()
        assert (low >= np.minimum(joined.answer(CELLS), 0.0)).all()
    assert ((a - b).intervals(CELLS, of="truth")[:, 0] < 0).all()


AGED = bf.Domain.product(LINE, bf.Domain.from_levels(["F", "M"], name="sex"))


def released(kind, epsilon, counts, seed, **options):
    asked = bf.workloads.Identity(AGED)
    made = kind(bf.policies.AddRemove(AGED), asked, epsilon=epsilon, **options)
    return made.release(counts, rng=seed)


def test_records_are_selected_from_sums_and_averages():
    rng = np.random.default_rng(3)
    one, two = rng.integers(0, 50, (2, *AGED.shape))
    added = released(bf.Laplace, 2, one, 1) + released(bf.Laplace, 1, two, 2)
    averaged = released(bf.Laplace, 2, one, 1).combine(released(bf.Laplace, 1, one, 2))
    ages = np.arange(8) + 0.5
    for found, counts in ((added, one + two), (averaged, one)):
        women = found.where(sex="F", age=slice(2, 7))
        truth = counts[2:7, 0]
        low, high = women.count().interval(0.999)
        assert low <= truth.sum() <= high
        assert women.count() == pytest.approx(found.estimate[2:7, 0].sum())
        mean = women.mean("age")
        low, high = mean.interval(0.999, of="truth")
        assert low <= (ages[2:7] @ truth) / truth.sum() <= high
        assert list(found.group_by("sex").count()) == ["F", "M"]


def test_selections_of_sums_say_what_the_least_sure_part_knows():
    counts = np.zeros(AGED.shape, dtype=np.int64)
    counts[3, 0] = 500
    sure = released(bf.Laplace, 1, counts, 1)
    merged = released(bf.Dawa, "0.1", counts, 2)
    for both in (sure + merged, merged + sure):
        some = both.where(age=slice(2, 5)).count()
        assert not some.holds_truth
        with pytest.raises(IntervalError, match="dawa takes records as even"):
            some.interval(of="truth")


def test_no_records_are_selected_from_a_difference():
    change = laplace().release(ONE) - laplace(2).release(TWO)
    for ask in (change.where, lambda: change.group_by("age")):
        with pytest.raises(InputError, match="counts no records") as refused:
            ask()
        assert "each release" in refused.value.way_out

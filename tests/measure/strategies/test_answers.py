"""Noise on the answers themselves."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import (
    EpsilonError,
    IntervalError,
    SizeError,
    WorkloadError,
)
from blowfish_fast.measure.noise import chernoff_half_width
from blowfish_fast.measure.strategies import Answers, answers
from blowfish_fast.measure.strategies.answers import _followed
from blowfish_fast.workloads import Implicit

LINE = bf.Domain(8)
RANGES = bf.workloads.Ranges(LINE, [0, 2, 5], [4, 6, 8])
COUNTS = np.array([3, 1, 4, 1, 5, 9, 2, 6])


@pytest.mark.parametrize(
    "policy",
    [
        bf.policies.AddRemove(LINE),
        bf.policies.Full(LINE),
        bf.policies.Line(LINE),
        bf.policies.Threshold(LINE, theta=3),
        bf.policies.Blocks(LINE, [0, 0, 0, 0, 1, 1, 1, 1]),
    ],
)
def test_the_price_is_the_sensitivity_of_the_workload(policy):
    laplace = bf.Laplace(policy, RANGES, epsilon="0.4", strategy="queries")
    for price in audit_measurements(laplace, COUNTS):
        assert price.passed, price


@pytest.mark.long
def test_errors_are_those_of_one_draw_and_fall_with_sparser_policies():
    full = bf.Laplace(bf.policies.Full(LINE), RANGES, epsilon=1, strategy="queries")
    line = bf.Laplace(bf.policies.Line(LINE), RANGES, epsilon=1, strategy="queries")
    assert (full.expected_error() > line.expected_error()).all()
    truth = RANGES.answer(COUNTS)
    errors = [
        full.release(COUNTS, rng=seed).measurements[0].noisy - truth
        for seed in range(2000)
    ]
    assert np.square(errors).mean(axis=0) == pytest.approx(
        full.expected_error(), rel=0.15
    )


def test_the_histogram_fits_the_noisy_answers():
    laplace = bf.Laplace(
        bf.policies.Full(LINE), RANGES, epsilon=1e6, strategy="queries"
    )
    release = laplace.release(COUNTS)
    assert release.answer(RANGES) == pytest.approx(RANGES.answer(COUNTS), abs=1e-6)
    low, high = release.intervals(RANGES).T
    assert (low <= high).all()


def test_only_declared_queries_have_intervals():
    laplace = bf.Laplace(bf.policies.Full(LINE), RANGES, epsilon=1, strategy="queries")
    release = laplace.release(COUNTS)
    with pytest.raises(IntervalError, match="only those have intervals"):
        release.intervals(bf.workloads.Identity(LINE))
    part = bf.workloads.Ranges(LINE, [2], [6])
    assert release.intervals(part).shape == (1, 2)


@pytest.mark.parametrize(
    "workload",
    [
        bf.workloads.Ranges(LINE, [0, 4, 2], [8, 8, 3]),
        bf.workloads.AllRanges(LINE),
    ],
    ids=["alone", "combined"],
)
def test_what_declared_queries_add_up_to_has_the_noise_of_its_sum(workload):
    strategy, scales, _ = declared(workload, bf.policies.AddRemove(LINE))
    rows = strategy.matrix.toarray()
    weighed = np.array([[1.0, -1.0, 0.5], [0.0, 3.0, -1.0]]) @ rows[:3]
    form = bf.workloads.Linear(LINE, weighed).explicit_form(Buckets.single_cells(8))
    spread = strategy.spread(form, scales)
    parts = weighed @ np.linalg.pinv(rows)
    variance, width = scales.variances[0], scales.widths[0]
    np.testing.assert_allclose(spread.variance, variance * (parts**2).sum(axis=1))
    assert (spread.square >= width**2 * (parts**2).sum(axis=1)).all()
    assert (spread.largest >= width * np.abs(parts).max(axis=1)).all()
    np.testing.assert_allclose(spread.largest, width * np.abs(parts).max(axis=1))


def test_intervals_of_differences_of_declared_queries_hold_the_truth():
    laplace = bf.Laplace(bf.policies.Full(LINE), RANGES, epsilon=1, strategy="queries")
    rows = laplace.release(COUNTS, rng=1).measurements[0].strategy.matrix.toarray()
    difference = bf.workloads.Linear(LINE, (rows[0] - rows[1])[None, :])
    truth, missed = difference.answer(COUNTS)[0], 0
    for seed in range(200):
        ((low, high),) = laplace.release(COUNTS, rng=seed).intervals(difference, 0.9)
        missed += not low <= truth <= high
    assert missed <= 200 * (0.1 + 3 * (0.09 / 200) ** 0.5)
    # One draw alone is not the noise of a difference.
    declared_half = np.diff(laplace.release(COUNTS).intervals(RANGES, 0.9)).min()
    assert high - low > 1.2 * declared_half


def test_fractional_coefficients_are_refused():
    halves = bf.workloads.Linear(LINE, np.full((1, 8), 0.5))
    with pytest.raises(WorkloadError, match="whole-number coefficients"):
        bf.Laplace(
            bf.policies.Full(LINE), halves, epsilon=1, strategy="queries"
        ).release(COUNTS)


def test_queries_that_nothing_moves_are_exact():
    total = bf.workloads.Total(LINE)
    release = bf.Laplace(
        bf.policies.Full(LINE), total, epsilon=1, strategy="queries"
    ).release(COUNTS)
    assert release.answer(total) == pytest.approx([31])


def test_releases_survive_saving(tmp_path):
    release = bf.Laplace(
        bf.policies.Full(LINE), RANGES, epsilon=1, strategy="queries"
    ).release(COUNTS)
    release.save(tmp_path / "answers")
    again = bf.Release.load(tmp_path / "answers")
    assert (again.intervals(RANGES) == release.intervals(RANGES)).all()


def declared(workload, policy, epsilon=1):
    """Return strategy, scales and form of a workload."""
    strategy = Answers.under(policy, workload)
    scales = strategy.scales(policy, Fraction(epsilon))
    return strategy, scales, workload.explicit_form(Buckets.single_cells(8))


@pytest.mark.parametrize("epsilon", ["1/10", "1", "9"])
def test_queries_of_which_none_is_a_combination_have_the_law_of_one_draw(epsilon):
    strategy, scales, form = declared(RANGES, bf.policies.Full(LINE), epsilon)
    decay = math.exp(-1.0 / scales.widths[0])
    for miss in (0.3, 0.05, 1e-4):
        half = strategy.half_widths(form, scales, miss)
        held = np.floor(half)
        # P(|Z| > h) = 2 decay^(h + 1) / (1 + decay), for whole h.
        assert (2.0 * decay ** (held + 1.0) / (1.0 + decay) <= miss).all()
        least = max(math.log(miss * (1.0 + decay) / 2.0) / math.log(decay) - 1.0, 0.0)
        assert (half <= math.ceil(least) + 0.5).all()
        loose = chernoff_half_width(strategy.spread(form, scales), miss)
        assert (half < loose).all()


@pytest.mark.parametrize(
    "workload",
    [
        bf.workloads.AllRanges(LINE),
        bf.workloads.Ranges(LINE, [0, 0, 4, 0], [4, 8, 8, 1]),
        bf.workloads.Ranges(LINE, [0, 0, 0], [5, 5, 8]),
    ],
    ids=["all", "halves", "twice"],
)
def test_spread_equals_the_projection_of_the_noise(workload):
    strategy, scales, form = declared(workload, bf.policies.AddRemove(LINE))
    rows = strategy.matrix.toarray()
    kept = rows @ np.linalg.pinv(rows)
    spread = strategy.spread(form, scales)
    variance, width = scales.variances[0], scales.widths[0]
    np.testing.assert_allclose(spread.variance, variance * (kept**2).sum(axis=1))
    np.testing.assert_allclose(
        spread.square, width**2 * (kept**2).sum(axis=1), rtol=1e-5
    )
    np.testing.assert_allclose(
        spread.largest, width * np.abs(kept).max(axis=1), rtol=1e-6
    )
    assert (spread.square >= width**2 * (kept**2).sum(axis=1)).all()
    assert (spread.largest >= width * np.abs(kept).max(axis=1)).all()
    total = strategy.total_variance(workload.form(Buckets.single_cells(8)), scales)
    assert total == pytest.approx(spread.variance.sum())


@pytest.mark.long
def test_intervals_after_the_fit_hold_their_part_of_the_noise():
    asked = bf.workloads.AllRanges(LINE)
    laplace = bf.Laplace(
        bf.policies.AddRemove(LINE), asked, epsilon=2, strategy="queries"
    )
    truth = asked.answer(COUNTS)
    missed = np.zeros(truth.size)
    for seed in range(300):
        low, high = laplace.release(COUNTS, rng=seed).intervals(asked, 0.9).T
        missed += (truth < low) | (truth > high)
    assert (missed / 300 <= 0.1 + 3 * (0.09 / 300) ** 0.5).all()
    assert missed.mean() / 300 > 0.06


def test_a_total_over_queries_that_were_not_declared_is_refused():
    laplace = bf.Laplace(bf.policies.Full(LINE), RANGES, epsilon=1, strategy="queries")
    with pytest.raises(IntervalError, match="only those have intervals"):
        laplace.expected_total_error(bf.workloads.Identity(LINE))


def test_the_price_is_that_of_the_policy_at_hand():
    line, full = bf.policies.Line(LINE), bf.policies.Full(LINE)
    total = bf.workloads.Total(LINE)
    strategy = Answers.under(line, bf.workloads.Prefixes(LINE))
    scales = strategy.scales(line, Fraction(1))
    assert strategy.cost(line, scales) == 1
    assert strategy.cost(full, scales) == 7
    gone = bf.policies.AddRemove(LINE)
    assert Answers.under(full, total).exact_rows(full).all()
    assert not Answers.under(full, total).exact_rows(gone).any()


@pytest.mark.parametrize("weight", [2**24, 3 * 10**9, 10**12])
def test_sums_of_large_weights_are_measured_and_cost_epsilon(weight):
    policy = bf.policies.AddRemove(LINE)
    asked = bf.workloads.Linear(LINE, [[weight, *range(7)]])
    strategy, scales, _ = declared(asked, policy)
    assert scales.measured.all()
    cost = strategy.cost(policy, scales)
    assert Fraction(999, 1000) < cost <= 1
    assert scales.widths[0] == pytest.approx(weight, rel=1e-3)
    release = bf.Laplace(policy, asked, epsilon=1, strategy="queries").release(
        COUNTS, rng=1
    )
    low, high = release.intervals(asked)[0]
    assert low < asked.answer(COUNTS)[0] < high
    again = bf.Release.from_bytes(release.to_bytes())
    assert (again.intervals(asked) == release.intervals(asked)).all()


def test_noise_beyond_all_use_is_refused_not_published_as_nothing():
    asked = bf.workloads.Linear(LINE, [[10**13, *range(7)]])
    laplace = bf.Laplace(bf.policies.Full(LINE), asked, epsilon=1, strategy="queries")
    with pytest.raises(EpsilonError, match="raise it, or ask in larger units"):
        laplace.release(COUNTS)
    with pytest.raises(WorkloadError, match="below 2\\^53"):
        Answers.under(
            bf.policies.Full(LINE), bf.workloads.Linear(LINE, [[1e17, *range(7)]])
        )


def test_queries_nearly_dependent_are_bounded_and_not_followed():
    clear = _followed(np.diag([1.0, 0.5]).tobytes(), 2)
    assert clear.followed
    assert clear.alone
    unclear = _followed(np.diag([1.0, 1e-9]).tobytes(), 2)
    assert not unclear.followed
    assert not unclear.alone
    np.testing.assert_array_equal(unclear[0], np.ones(2))
    np.testing.assert_array_equal(unclear[1], np.ones(2))


def test_more_queries_than_are_followed_are_bounded(monkeypatch):
    strategy = Answers.under(bf.policies.Full(LINE), RANGES)
    monkeypatch.setattr(answers, "MOST_FOLLOWED", RANGES.queries - 1)
    assert not strategy._left.followed
    assert not strategy._left.alone


def test_sums_of_queries_that_are_not_followed_have_no_intervals(monkeypatch):
    def released():
        policy = bf.policies.Full(LINE)
        laplace = bf.Laplace(policy, RANGES, epsilon=1, strategy="queries")
        return laplace.release(COUNTS, rng=1)

    rows = released().measurements[0].strategy.matrix.toarray()
    difference = bf.workloads.Linear(LINE, (rows[0] - rows[1])[None, :])
    assert released().intervals(difference).shape == (1, 2)
    monkeypatch.setattr(answers, "MOST_FOLLOWED", RANGES.queries - 1)
    with pytest.raises(IntervalError, match="only those have intervals"):
        released().intervals(difference)


def test_queries_of_too_many_coefficients_have_no_intervals(monkeypatch):
    laplace = bf.Laplace(bf.policies.Full(LINE), RANGES, epsilon=1, strategy="queries")
    release = laplace.release(COUNTS, rng=1)
    whole = bf.workloads.Ranges(LINE, [0, 0], [8, 8])
    monkeypatch.setattr(answers, "MOST_COEFFICIENTS", 9)
    with pytest.raises(IntervalError, match="only those have intervals"):
        release.intervals(whole)


@pytest.mark.parametrize("power", [1, 2])
def test_answers_without_weight_cost_nothing(power):
    full = bf.policies.Full(LINE)
    strategy = Answers.under(full, RANGES)
    none = np.zeros(RANGES.queries, dtype=np.int64)
    assert strategy.worst_edge(none, full, power) == 0
    assert strategy.worst_edge(none + 1, full, power) > 0


def test_formulas_are_listed_for_single_cells_and_few(monkeypatch):
    monkeypatch.setattr(answers, "MOST_COEFFICIENTS", 9)
    listed = answers._list_queries(Implicit("prefixes", np.arange(4)))
    assert [one.tolist() for one in listed[::2]] == [[0, 0, 0], [0, 1, 2]]
    for edges in ([0, 2, 3], [0, 1, 2, 3, 4]):
        with pytest.raises(SizeError, match="list the queries"):
            answers._list_queries(Implicit("prefixes", np.array(edges)))


def test_queries_over_too_many_cells_are_refused(monkeypatch):
    monkeypatch.setattr(answers, "MOST_COEFFICIENTS", 3)
    with pytest.raises(SizeError, match="meant for few queries"):
        Answers.under(bf.policies.Full(LINE), RANGES)

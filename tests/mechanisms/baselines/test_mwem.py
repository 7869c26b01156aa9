"""MWEM end to end: rounds, totals, workloads of every kind."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import (
    DataDependentError,
    IntervalError,
    WorkloadError,
)
from blowfish_fast.measure.handle import Account
from blowfish_fast.measure.randomness import Randomness

LINE = bf.Domain(64)
RANGES = bf.workloads.Ranges.random(LINE, 200, rng=1)
STEPS = np.repeat([5, 90, 0, 40], 16)
POLICIES = [bf.policies.AddRemove, bf.policies.Full]


@pytest.mark.parametrize("policy", POLICIES)
def test_many_rounds_at_a_large_epsilon_learn_the_ranges(policy):
    mwem = bf.mechanisms.Mwem(policy(LINE), RANGES, epsilon=1000, rounds=40)
    release = mwem.release(STEPS, rng=2)
    assert release.answer(RANGES) == pytest.approx(RANGES.answer(STEPS), abs=25)
    assert release.details["rounds"] == 40
    assert np.unique(release.details["queries"]).size == 40
    assert release.guarantee.epsilon == 1000
    assert (release.estimate > 0).all()


@pytest.mark.parametrize("policy", POLICIES)
def test_each_round_helps(policy):
    truth = RANGES.answer(STEPS)
    errors = []
    for rounds in (1, 4, 16):
        mwem = bf.mechanisms.Mwem(policy(LINE), RANGES, epsilon=50, rounds=rounds)
        releases = [mwem.release(STEPS, rng=seed) for seed in range(5)]
        errors.append(np.mean([np.abs(one.answer(RANGES) - truth) for one in releases]))
    assert errors == sorted(errors, reverse=True)


def calls(mechanism, data):
    account = Account(mechanism.epsilon)
    private = mechanism._handle(mechanism._counts(data), account, Randomness(1))
    return mechanism._run(private), account


def test_the_total_is_public_under_full_and_bought_under_add_remove():
    full = bf.mechanisms.Mwem(bf.policies.Full(LINE), RANGES, epsilon=1, rounds=4)
    outcome, account = calls(full, STEPS)
    assert outcome.details["total"] == STEPS.sum()
    assert outcome.estimate.sum() == pytest.approx(STEPS.sum())
    assert [call.kind for call in account.calls] == ["select", "measure"] * 4
    # Later rounds have more, up to nearly twice; halves go to the choice.
    spent = [call.budget for call in account.calls]
    assert spent[::2] == spent[1::2] == [Fraction(n, 44) for n in (4, 5, 6, 7)]
    added = bf.mechanisms.Mwem(bf.policies.AddRemove(LINE), RANGES, epsilon=1, rounds=4)
    outcome, account = calls(added, STEPS)
    assert account.calls[0].budget == Fraction(1, 50)
    assert [call.kind for call in account.calls[1:]] == ["select", "measure"] * 4
    assert account.spent == 1
    assert len(outcome.measurements) == 5
    totals = [added.release(STEPS, rng=seed).details["total"] for seed in range(20)]
    assert len(set(totals)) > 10


@pytest.mark.parametrize("policy", POLICIES)
def test_one_answer_costs_one_record_under_both_policies(policy):
    # Halving epsilon for moves would double these scales.
    mwem = bf.mechanisms.Mwem(policy(LINE), RANGES, epsilon=1, rounds=1, share="0.5")
    outcome, account = calls(mwem, STEPS)
    granted = account.calls[-1].budget
    width = outcome.measurements[-1].scales.widths[0]
    assert width == pytest.approx(1 / float(granted), rel=1e-6)


def test_what_lies_outside_is_free_where_records_come_and_go():
    for policy, rows in ((bf.policies.AddRemove, 3), (bf.policies.Full, 1)):
        few = bf.workloads.Ranges(LINE, [16], [48])
        mwem = bf.mechanisms.Mwem(policy(LINE), few, epsilon=1, rounds=1)
        outcome, account = calls(mwem, STEPS)
        measured = outcome.measurements[-1]
        assert measured.scales.measured.sum() == rows
        width = measured.scales.widths[0]
        assert width == pytest.approx(1 / float(account.calls[-1].budget), rel=1e-6)
    grid = bf.Domain((6, 6))
    box = bf.workloads.Rectangles(grid, [[1, 1]], [[4, 5]])
    mwem = bf.mechanisms.Mwem(bf.policies.AddRemove(grid), box, epsilon=1000, rounds=1)
    outcome, _ = calls(mwem, np.arange(36).reshape(6, 6))
    assert outcome.measurements[-1].noisy == pytest.approx([174, 456], abs=1)
    assert outcome.details["total"] == pytest.approx(630, abs=1)


def test_a_query_of_everything_has_no_outside():
    mwem = bf.mechanisms.Mwem(
        bf.policies.AddRemove(LINE), bf.workloads.Total(LINE), epsilon=1000, rounds=1
    )
    outcome, _ = calls(mwem, STEPS)
    assert outcome.measurements[-1].scales.measured.sum() == 1
    assert outcome.estimate.sum() == pytest.approx(STEPS.sum(), abs=2)


@pytest.mark.long
def test_measuring_the_outside_lowers_the_error():
    truth = RANGES.answer(STEPS)
    errors = []
    for policy in POLICIES:
        mwem = bf.mechanisms.Mwem(policy(LINE), RANGES, epsilon="0.2", rounds=6)
        releases = [mwem.release(STEPS, rng=seed) for seed in range(40)]
        errors.append(np.mean([np.abs(one.answer(RANGES) - truth) for one in releases]))
    assert errors[0] < errors[1]


def test_rounds_follow_from_public_facts():
    mwem = bf.mechanisms.Mwem(bf.policies.Full(LINE), RANGES, epsilon="0.1")
    assert mwem._rounds(1.0) == 2
    assert mwem._rounds(17_665.0) == 9
    assert mwem._rounds(1e12) == 150
    assert mwem.release(STEPS, rng=1).details["rounds"] == 4
    few = bf.workloads.Ranges(LINE, [0, 3], [5, 9])
    release = bf.mechanisms.Mwem(
        bf.policies.Full(LINE), few, epsilon=1, rounds=9
    ).release(STEPS)
    assert release.details["rounds"] == 2


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shape", [(8, 8), (4, 3, 5)])
def test_rectangles_and_marginals_work(policy, shape):
    grid = bf.Domain(shape)
    counts = (np.arange(grid.size) % 7).reshape(shape)
    for workload in (
        bf.workloads.Rectangles.random(grid, 40, rng=3),
        bf.workloads.Marginals(grid, [0]),
    ):
        mwem = bf.mechanisms.Mwem(policy(grid), workload, epsilon=500, rounds=8)
        release = mwem.release(counts, rng=1)
        assert release.estimate.shape == shape
        error = np.abs(release.answer(workload) - workload.answer(counts))
        assert error.mean() < 0.05 * counts.sum()


@pytest.mark.parametrize("policy", [*POLICIES, bf.policies.Attribute])
@pytest.mark.parametrize("shape", [(2, 1), (1, 3), (2, 2), (7, 2), (3, 2, 2)])
def test_a_query_may_part_all_cells_of_several_columns(policy, shape):
    """Every other cell: the buckets of such a query are the cells, on their domain."""
    table = bf.Domain(shape)
    people = np.arange(table.size).reshape(shape) * 7 % 31
    for asked in (
        bf.workloads.Marginals(table, [len(shape) - 1]),
        bf.workloads.Identity(table),
        bf.workloads.Rectangles.random(table, 12, rng=3),
    ):
        mwem = bf.mechanisms.Mwem(policy(table), asked, epsilon=5000, rounds=12)
        release = mwem.release(people, rng=4)
        assert release.estimate.shape == shape
        assert release.answer(asked) == pytest.approx(asked.answer(people), abs=9)


def test_weighted_queries_work():
    weights = np.arange(64)
    workload = bf.workloads.Sum(LINE, weights)
    release = bf.mechanisms.Mwem(
        bf.policies.Full(LINE), workload, epsilon=1000, rounds=1, passes=2000
    ).release(STEPS, rng=1)
    assert release.answer(workload) == pytest.approx(workload.answer(STEPS), rel=0.01)


def test_the_error_depends_on_the_data_and_there_are_no_intervals():
    for policy in POLICIES:
        mwem = bf.mechanisms.Mwem(policy(LINE), RANGES, epsilon=1)
        with pytest.raises(DataDependentError, match="chooses from the data"):
            mwem.expected_error()
        release = mwem.release(STEPS)
        assert release.interval_scope == "nothing"
        with pytest.raises(IntervalError, match="not linear"):
            release.intervals(RANGES)


def test_queries_without_whole_coefficients_are_refused():
    halves = bf.workloads.Linear(LINE, [[0.5] * 64])
    with pytest.raises(WorkloadError, match="whole coefficients"):
        bf.mechanisms.Mwem(bf.policies.Full(LINE), halves, epsilon=1)

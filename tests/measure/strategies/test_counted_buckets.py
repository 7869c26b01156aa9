"""What a bucket costs, and the counts of buckets."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.handle import Account, Handle
from blowfish_fast.measure.noise import noise_mean_size
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies.cells import bucket_counts, mean_noise
from blowfish_fast.policies import AddRemove, Blocks, CountConstraints, Full, Graph


@pytest.mark.parametrize(("policy", "moved"), [(AddRemove, 1), (Full, 2)])
def test_a_move_changes_two_counts(policy, moved):
    found = mean_noise(policy(Domain(9)), Fraction(1, 10))
    assert found == pytest.approx(noise_mean_size(10.0 * moved), rel=1e-6)


def test_constraints_make_a_bucket_dearer_by_the_group_size():
    policy = Full(Domain(9))
    known = policy.with_constraints(CountConstraints(policy.domain, np.eye(2, 9) > 0))
    assert known.group_size == 3
    found = mean_noise(known, Fraction(3, 10))
    assert found == mean_noise(policy, Fraction(1, 10))


def test_nothing_secret_costs_no_noise():
    nothing = Graph(Domain(3), np.empty((0, 2), dtype=np.int64))
    assert mean_noise(nothing, Fraction(1)) == 0.0


def _private(policy, counts):
    return Handle(np.array(counts), policy, Account(Fraction(2)), Randomness(1))


def test_all_that_remains_is_spent_unless_less_is_asked():
    handle = _private(AddRemove(Domain(4)), [5, 1, 0, 9])
    buckets = Buckets(np.array([0, 1, 4]))
    first = bucket_counts(handle, buckets, budget=Fraction(1, 2))
    assert handle.remaining == Fraction(3, 2)
    assert first.noisy[:2].shape == (2,)
    bucket_counts(handle, buckets)
    assert handle.remaining == 0


def test_public_totals_of_districts_stay_exact():
    handle = _private(Blocks(Domain(4), [0, 0, 1, 1]), [5, 1, 0, 9])
    measured = bucket_counts(handle, Buckets(np.array([0, 1, 2, 4])))
    estimate = measured.estimate()
    assert estimate[:2].sum() == pytest.approx(6)
    assert estimate[2:].sum() == pytest.approx(9)

"""Planted bugs in certificates: each is caught by a check that passes without it."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import BlowfishError
from blowfish_fast.measure.strategies import error_statistics
from blowfish_fast.measure.strategies.error_statistics import (
    PARTS,
    ErrorCurve,
    ErrorQuantile,
)
from blowfish_fast.mechanisms import certifier
from blowfish_fast.mechanisms.certifier import Certifier
from blowfish_fast.release import certificates, query_grid
from tests.measure.strategies.test_error_statistics import (
    POLICIES,
    WORKLOADS,
    largest_change,
    statistics,
)
from tests.mechanisms.test_certifier import POLICY, RANGES, SPIKE, bucketed

FULL = POLICIES["full"]


def moves_are_paid_for():
    """Whether no edge moves a statistic of cells by more than it says."""
    rng = np.random.default_rng(7)
    return all(
        largest_change(one, FULL) <= one.move(FULL)
        for _ in range(3)
        for one in statistics(WORKLOADS["cells"], rng)
    )


def rows_are_whole_and_hold_the_error():
    """Whether excesses are whole numbers that no error exceeds."""
    asked, counts = WORKLOADS["cells"], np.array([3, 0, 2, 1])
    published = np.array([2.96, 0.47, 2.53, 0.9])
    answers = np.rint(PARTS * published).astype(int)
    found = ErrorQuantile(asked, answers, np.zeros(4, int), 4).excess(counts)
    enough = PARTS * np.abs(published - counts) <= found
    return found.dtype == np.int64 and bool(enough.all())


def curves_are_seldom_false():
    """Whether claims of curves are true as often as they say.

    One cell more is off by 1,000 than may be: every ramp below passes by noise alone.
    """
    trials, wrong = 200, 0
    line = bf.Domain(1000)
    cells, policy = bf.workloads.Identity(line), bf.policies.AddRemove(line)
    release = bf.Laplace(policy, cells, epsilon=50).release(np.zeros(1000, int), rng=1)
    certain = Certifier(release, cells, epsilon="0.1", kind="curve", fraction=0.9)
    counts = np.where(np.arange(1000) < 101, 1000, 0)
    excess = certain._statistic.excess(counts)
    for seed in range(trials):
        found = certain.release(counts, rng=seed)
        wrong += (excess <= PARTS * found.extra).mean() < 0.9
    return wrong / trials <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)


def quantiles_are_seldom_false():
    """Whether claims of order statistics are true as often as they say."""
    trials = 200
    certain = Certifier(bucketed(), RANGES, epsilon="0.1", kind="quantile")
    (excess,) = certain._statistic.rows(SPIKE)
    extras = [certain.release(SPIKE, rng=seed).extra for seed in range(trials)]
    wrong = (PARTS * np.array(extras) < excess).mean()
    return wrong <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)


def other_queries_are_refused():
    """Whether a certificate about some ranges says nothing about others."""
    release = bucketed()
    kept = release.certified(Certifier(release, RANGES, epsilon=5).release(SPIKE, 1))
    other = bf.workloads.Ranges(RANGES.domain, RANGES.starts + 1, RANGES.ends + 1)
    try:
        kept.intervals(other, of="truth")
    except BlowfishError:
        return True
    return False


def other_data_are_taken():
    """Whether a ledger takes other data as it takes those of the release."""
    ledger = bf.Ledger(None, epsilon=9, policy=POLICY)
    mechanism = bf.mechanisms.StructureFirst(POLICY, RANGES, epsilon=1, buckets=2)
    release = ledger.release(mechanism, SPIKE, rng=1)
    try:
        for data in (SPIKE, SPIKE + 1):
            ledger.certify(release, data, RANGES, epsilon=1, rng=1)
    except BlowfishError:
        return False
    return True


def giants_move_as_others_do():
    """Whether one record more moves statistics of giant counts as it does others."""
    rows = np.array([[2.0**47, 0, 0, 0], [1, 1, 1, 1]])
    asked = bf.workloads.Linear(bf.Domain(4), rows)
    zeros = np.zeros(2, int)
    for records in (2**8 - 1, 2**10 - 1, 2**12 - 1, 2**57, 2**60, 2**62 - 5):
        before = np.array([records, 2, 0, 1])
        after = before + np.array([1, 0, 0, 0])
        for rank in (1, 2):
            one = ErrorQuantile(asked, zeros, zeros, rank)
            change = int(one.rows(after)[0]) - int(one.rows(before)[0])
            if abs(change) > one.move(POLICIES["presence"]):
                return False
        boxes = error_statistics.LargestError(np.zeros(4))
        if abs(int((boxes.rows(after) - boxes.rows(before))[0])) > PARTS:
            return False
    return True


def rows_are_no_answers():
    """Whether a claim about rows one by one says nothing about answers made of them."""
    release = bucketed()
    asked = release.where({0: slice(3, 30)}).relative_count()
    rows, _ = asked._answers.certifiable()
    certifier = Certifier(release, rows, epsilon=5, fraction=0.5, kind="quantile")
    kept = release.certified(certifier.release(SPIKE, 1))
    again = kept.where({0: slice(3, 30)}).relative_count()
    return again._answers.interval_kind() == "noise"


def rounded_rows_bound():
    """Whether whole-numbered rows lie below, or above, those they stand for."""
    rows = np.random.default_rng(1).normal(size=(4, 9))
    asked = bf.workloads.Linear(bf.Domain(9), rows)
    pairs = [(sign, *query_grid.whole_rows(asked, sign)) for sign in (-1, 1)]
    return all(
        bool((sign * (one.toarray() - rows * powers[:, None]) >= 0.0).all())
        for sign, one, powers in pairs
    )


def sensitivity_of_one_record():
    return patch.object(ErrorCurve, "move", lambda self, policy: PARTS)


def errors_in_floats():
    def excess(self, counts):
        return np.abs(self.answers - PARTS * counts.astype(float)) - self.half

    return patch.object(ErrorQuantile, "excess", excess)


def half_widths_of_the_true_counts():
    whole = ErrorQuantile.excess

    def excess(self, counts):
        return whole(self, counts) - 2 * PARTS * np.asarray(counts)

    return patch.object(ErrorQuantile, "excess", excess)


def ramps_from_below():
    def read(self, statistic, noisy, scales):
        (edges,) = statistic.ramps
        limit = self.workload.queries - self._rank(self.workload.queries)
        first = int((noisy <= limit * np.diff(edges)).argmax())
        return [{"queries": self.workload.queries, "extra": edges[first + 1] / PARTS}]

    return patch.object(Certifier, "_read_curve", read)


def no_margin():
    return patch.object(certifier, "one_sided_margin", lambda scales, miss: 0)


def digests_not_compared():
    return patch.object(certificates, "workload_digest", lambda workload: "")


def fractions_taken_as_all():
    return patch.object(certificates.Certificate, "per_query", True)


def rows_rounded_to_the_nearest():
    whole = query_grid.whole_rows

    def nearest(workload, sign):
        found, powers = whole(workload, sign)
        scaled = np.repeat(powers, np.diff(found.indptr)) * workload.matrix.data
        found.data = np.rint(scaled)
        return found, powers

    return patch.object(query_grid, "whole_rows", nearest)


def data_are_compared():
    """Plant hole 4 of issue 32: one record more is told by a refusal, unpaid."""
    certify = bf.Ledger.certify

    def compared(self, release, data, *rest, **options):
        if not np.array_equal(data, SPIKE):
            raise bf.errors.InputError("other data")
        return certify(self, release, data, *rest, **options)

    return patch.object(bf.Ledger, "certify", compared)


def sums_wrap_around():
    """Plant: sums that leave 64 bits come back from below, far from a neighbour's."""
    return patch.object(error_statistics, "FURTHEST", 2**200)


BUGS = [
    (sensitivity_of_one_record, moves_are_paid_for),
    (half_widths_of_the_true_counts, moves_are_paid_for),
    (errors_in_floats, rows_are_whole_and_hold_the_error),
    (ramps_from_below, curves_are_seldom_false),
    (no_margin, quantiles_are_seldom_false),
    (digests_not_compared, other_queries_are_refused),
    (fractions_taken_as_all, rows_are_no_answers),
    (rows_rounded_to_the_nearest, rounded_rows_bound),
    (data_are_compared, other_data_are_taken),
    (sums_wrap_around, giants_move_as_others_do),
]


@pytest.mark.long
@pytest.mark.parametrize(
    "check", list(dict.fromkeys(one for _, one in BUGS)), ids=lambda one: one.__name__
)
def test_without_a_bug_every_check_passes(check):
    assert check()


@pytest.mark.long
@pytest.mark.parametrize(("plant", "check"), BUGS, ids=lambda one: one.__name__)
def test_every_planted_bug_is_caught(plant, check):
    with (
        plant(),
        patch.object(certifier, "workload_digest", certificates.workload_digest),
    ):
        assert not check()

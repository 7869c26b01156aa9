"""What cannot be released is refused by public values; what is accepted never fails."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import EpsilonError
from blowfish_fast.measure.noise import Scales, rates_at_common_unit
from blowfish_fast.mechanisms import dawa
from blowfish_fast.mechanisms.example_data import data_for

MAP = bf.Domain((256, 256))
PERSONS = bf.policies.AddRemove(MAP).per_person(16, count="persons")
ASKED = bf.workloads.Rectangles.random(MAP, 50, rng=1)
EVEN = data_for(PERSONS, bf.Histogram(MAP, np.full(MAP.shape, 3)))


@pytest.mark.parametrize("epsilon", ["0.005", "0.00001"])
def test_hole_1_no_branch_of_a_map_fails_where_preview_accepts(epsilon):
    # At 0.005 the rectangles' branch failed and the grid's did not, so a failure told
    # the private choice; an even map was charged and never answered.
    mechanism = bf.Dawa(PERSONS, ASKED, epsilon=epsilon)
    with bf.Ledger(None, epsilon=epsilon, policy=PERSONS) as ledger:
        assert ledger.preview(mechanism).accepted
        release = ledger.release(mechanism, EVEN)
        assert release.private
    assert release.details["chosen"] in ("adaptive_grid", "dyadic_rectangles")


def test_hole_1_a_map_too_dear_for_rectangles_takes_the_grid_without_a_test():
    mechanism = bf.Dawa(PERSONS, ASKED, epsilon="0.00001")
    release = mechanism.release(EVEN, rng=1)
    assert release.details["chosen"] == "adaptive_grid"
    # The number of records, twice, and the two levels of the grid; no test.
    tests = [one for one in release.measurements if one.strategy.kind == "scatter"]
    assert tests == []
    enough = bf.Dawa(PERSONS, ASKED, epsilon="0.005").release(EVEN, rng=1)
    assert enough.details["chosen"] == "dyadic_rectangles"


@pytest.mark.parametrize("epsilon", ["0.01", "0.00001"])
def test_hole_1_a_long_line_is_released_where_preview_accepts(epsilon):
    # With 65,536 cells and 0.01 preview said fine; every try was charged and failed.
    line = bf.Domain(65_536)
    policy = bf.policies.AddRemove(line).per_person(16, count="persons")
    asked = bf.workloads.Ranges.random(line, 20, rng=1)
    data = data_for(policy, bf.Histogram(line, np.full(line.size, 3)))
    with bf.Ledger(None, epsilon=1, policy=policy) as ledger:
        mechanism = bf.Dawa(policy, asked, epsilon=epsilon)
        assert ledger.preview(mechanism).accepted
        assert ledger.release(mechanism, data).private


def test_a_partition_asked_for_by_name_is_refused_uncharged():
    line = bf.Domain(65_536)
    policy = bf.policies.AddRemove(line).per_person(16, count="persons")
    asked = bf.workloads.Ranges.random(line, 20, rng=1)
    named = bf.Dawa(
        policy, asked, epsilon="0.00001", partition=bf.partitions.DyadicTree()
    )
    data = data_for(policy, bf.Histogram(line, np.zeros(line.size, dtype=np.int64)))
    with bf.Ledger(None, epsilon=1, policy=policy) as ledger:
        preview = ledger.preview(named)
        assert not preview.accepted
        assert "for the sampler's rounding" in preview.reason
        with pytest.raises(EpsilonError, match="for the sampler's rounding"):
            ledger.release(named, data)
        with pytest.raises(EpsilonError, match="for the sampler's rounding"):
            named.release(data)
        assert ledger.spent == 0
        assert ledger.history() == []


def test_a_budget_that_leaves_too_little_for_a_branch_takes_the_other(monkeypatch):
    # Whatever is left after the test: the branch is asked for once more, and no fails.
    answers = iter([True, False])
    monkeypatch.setattr(dawa.Dawa, "_can_divide", lambda *_: next(answers))
    monkeypatch.setattr(dawa.ScatterTest, "select", lambda *_, **__: False)
    domain = bf.Domain((8, 8))
    policy = bf.policies.AddRemove(domain)
    asked = bf.workloads.Rectangles.random(domain, 20, rng=1)
    mechanism = bf.Dawa(policy, asked, epsilon=1)
    release = mechanism.release(np.full(domain.shape, 10_000), rng=1)
    assert release.details["chosen"] == "adaptive_grid"


def test_a_measurement_of_exact_rows_alone_has_no_rate_in_another_unit():
    # A kd-tree of one box failed in rho, and only where the draw had cut nothing.
    none, all_ = np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.bool_)
    exact = Scales(none, 1, all_, 2)
    noisy = Scales(none + 2**30, 2**80, ~all_, 2)
    unit, (first, second) = rates_at_common_unit([exact, noisy])
    assert (unit, first.tolist()) == (2**80, [0, 0])
    assert second.tolist() == [2**30, 2**30]


def test_the_slack_of_a_slow_rate_is_taken_only_where_it_is_needed():
    tree = bf.partitions.DyadicTree()
    usual = bf.kernels.sampling_slack(4096, outliers=True)
    enough = 2 * usual + Fraction(1, 10**12)
    assert tree.rate(4096, enough) == enough - usual
    slow = 2 * usual
    assert usual < tree.priced(1e6).rate(4096, slow) < slow

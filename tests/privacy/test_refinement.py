"""Noise that is lowered later: audits of a recipe that does so, and planted bugs."""

from __future__ import annotations

from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.composition import RHO
from blowfish_fast.accounting.request import price_in
from blowfish_fast.audit.grey_box import audit_measurements
from blowfish_fast.audit.invariants import audit_disclosure, audit_invariants
from blowfish_fast.audit.verdicts import _with_noise
from blowfish_fast.audit.witness import replay, watch
from blowfish_fast.errors import PrivacyError
from blowfish_fast.measure import handle, refinement
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.strategies import Cells
from blowfish_fast.mechanisms.base import Mechanism, Outcome

LINE = bf.Domain(5)
COUNTS = np.array([3, 0, 40, 1, 9])
POLICIES = [bf.policies.AddRemove, bf.policies.Full, bf.policies.Line]


class TwoLooks(Mechanism):
    """Measure half of the cells, and then lower the noise of the smaller ones."""

    name = "two_looks"

    def _run(self, private):
        cells = self.domain.size
        rough = private.measure_roughly(Cells(cells), budget=self.budget / 5)
        wanted = Cells(cells).scales(private.policy, self.budget / 2)
        small = rough.noisy <= np.median(rough.noisy)
        halved = wanted._replace(rates=np.where(small, wanted.rates, 0))
        better = private.refine(rough, halved, budget=self.budget / 2)
        best = Cells(cells).scales(private.policy, self.budget)
        return Outcome.of(private.refine(better, best, budget=self.budget))


def two_looks(policy=bf.policies.AddRemove, epsilon=1):
    return TwoLooks(policy(LINE), bf.workloads.Identity(LINE), epsilon=epsilon)


def breaches(mechanism):
    return {one.invariant: one.found for one in audit_invariants(mechanism, COUNTS)}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_recipe_that_lowers_noise_keeps_every_promise(policy):
    mechanism = two_looks(policy)
    assert breaches(mechanism) == {}
    assert audit_disclosure(mechanism.at_epsilon("0.01")) == []
    for seed in range(3):
        prices = audit_measurements(mechanism, COUNTS, seed=seed)
        assert [price.passed for price in prices] == [True, True]
        assert prices[0].charged == prices[-1].worst == 1


def test_each_link_of_a_chain_is_priced_with_all_that_it_has_cost():
    testimony = watch(two_looks(), COUNTS)
    charged = [step.charged.amount for step in _with_noise(testimony)]
    assert charged == [Fraction(1, 5), Fraction(1, 2), 1]
    again = replay(testimony)
    assert np.array_equal(again.estimate, testimony.outcome.estimate)


def test_a_ledger_of_rho_charges_half_the_square_of_the_whole():
    assert price_in(two_looks(epsilon=3), RHO) == Fraction(9, 2)


# Planted bugs.


def drawn_afresh(noise, before, after, rng):
    return handle._draw(after, rng)


def at_other_rates(noise, before, after, rng):
    twice = after._replace(rates=2 * after.rates)
    return refinement.lowered_noise(noise, before, twice, rng)


def one_number_twice(noise, *, near, across, stay, beyond):
    return refinement_settled(noise, near=near, across=across, stay=stay, beyond=stay)


refinement_settled = refinement.settled


@pytest.mark.parametrize("bug", [drawn_afresh, at_other_rates])
def test_noise_drawn_otherwise_is_caught(bug):
    with patch.object(handle, "lowered_noise", bug):
        assert "noise as declared" in breaches(two_looks())


def test_a_number_that_is_used_twice_is_caught():
    with patch.object(refinement, "settled", one_number_twice):
        found = {}
        for seed in range(20):
            found.update(
                (one.invariant, one.found)
                for one in audit_invariants(two_looks(), COUNTS, seed=seed)
            )
    assert "published something else" in found["noise as declared"]


def test_rows_that_become_noisier_are_caught():
    def slower(before, wanted):
        half = np.maximum(before.rates // 2, 1)
        return Scales(half, before.unit, before.exact)

    with patch.object(handle, "lowered_scales", slower):
        assert "noisier" in breaches(two_looks())["noise as declared"]


def test_more_noise_taken_away_than_was_paid_for_is_caught():
    def unchecked(self, asked, scales, price):
        return None

    class Greedy(TwoLooks):
        def _run(self, private):
            rough = private.measure_roughly(Cells(5), budget=self.budget / 5)
            twice = Cells(5).scales(private.policy, 2 * self.budget.amount)
            return Outcome.of(private.refine(rough, twice, budget=self.budget))

    greedy = Greedy(bf.policies.AddRemove(LINE), bf.workloads.Identity(LINE), epsilon=1)
    with pytest.raises(PrivacyError, match="scales are wrong"):
        greedy.release(COUNTS, rng=1)
    with patch.object(handle.Handle, "_check_cost", unchecked):
        assert not audit_measurements(greedy, COUNTS)[0].passed


def test_two_successors_of_one_draw_are_refused():
    class Twice(TwoLooks):
        def _run(self, private):
            rough = private.measure_roughly(Cells(5), budget=self.budget / 5)
            wanted = Cells(5).scales(private.policy, self.budget / 2)
            private.refine(rough, wanted, budget=self.budget / 2)
            return Outcome.of(private.refine(rough, wanted, budget=self.budget / 2))

    twice = Twice(bf.policies.AddRemove(LINE), bf.workloads.Identity(LINE), epsilon=1)
    with pytest.raises(PrivacyError, match="refined once"):
        twice.release(COUNTS, rng=1)

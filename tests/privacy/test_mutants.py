"""The walk catches every planted bug, and names what is broken."""

from __future__ import annotations

import pytest

import tests.privacy.mutants_beyond_noise  # noqa: F401 - enters its plants

from .mutants import MUTANTS

pytestmark = pytest.mark.audit

STOPS = {
    (one.subject, one.shape, one.family, one.check): one
    for one in sorted(MUTANTS.values(), key=lambda one: one.batch)
}


PROMISED = {
    "halved noise": "halved_noise",
    "unnoised singleton": "unnoised_singleton",
    "clamped cost": "clamped_cost",
    "dropped halving for policies": "dropped_halving",
    "swapped budgets": "swapped_budgets",
    "reused random stream": "reused_stream",
    "wrong sensitivity": "wrong_sensitivity",
    "off-by-one level": "off_by_one_level",
    "last measured prefix left without noise": "last_prefix_without_noise",
    "printed OH noise": "printed_hierarchy_noise",
    "printed Corollary 8.3": "printed_corollary_8_3",
    "printed Lemma 6.1": "printed_lemma_6_1",
    "exact total leaked under add/remove": "exact_total_leaked",
    "greedy matching": "greedy_matching",
    "float noise": "float_noise",
    "budget charged after release": "ledger_charged_after_release",
}
"""The bugs that must be among the plants, whatever else is."""


def test_every_promised_plant_is_there():
    assert len(set(PROMISED.values())) == 16
    assert set(PROMISED.values()) <= MUTANTS.keys()
    assert len(MUTANTS) >= 30


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_planted_bug_is_caught(name):
    mutant = MUTANTS[name]
    with mutant.plant():
        verdicts = mutant.verdicts()
    failed = [one for one in verdicts if not one.passed]
    assert mutant.check in {one.check for one in failed}, verdicts
    assert {one.subject for one in failed} == {mutant.subject}
    assert all(one.note for one in failed)


@pytest.mark.parametrize("stop", STOPS, ids=str)
def test_without_a_plant_the_same_stop_passes(stop):
    verdicts = STOPS[stop].verdicts()
    assert STOPS[stop].check in {one.check for one in verdicts}
    assert [one for one in verdicts if not one.passed] == []

"""The walk catches every planted bug, and names what is broken."""

from __future__ import annotations

import pytest

import tests.privacy.mutants_beyond_noise  # noqa: F401 - enters its plants
from tests.privacy.mutants import MUTANTS

pytestmark = pytest.mark.audit

STOPS = {
    (one.subject, one.shape, one.family, one.check): one
    for one in sorted(MUTANTS.values(), key=lambda one: one.batch)
}


def test_there_are_enough_plants():
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

"""The walk catches every planted bug, and names what is broken."""

from __future__ import annotations

import pytest

from tests.privacy.mutants import MUTANTS

pytestmark = pytest.mark.audit

STOPS = sorted(
    {
        (one.kind, one.subject, one.shape, one.family): one for one in MUTANTS.values()
    }.items(),
    key=str,
)


def test_there_are_enough_plants():
    assert len(MUTANTS) >= 16


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_planted_bug_is_caught(name):
    mutant = MUTANTS[name]
    with mutant.plant():
        verdicts = mutant.verdicts()
    failed = [one for one in verdicts if not one.passed]
    assert mutant.check in {one.check for one in failed}, verdicts
    assert {one.subject for one in failed} == {mutant.subject}
    assert all(one.note for one in failed)


@pytest.mark.parametrize(("stop", "mutant"), STOPS, ids=str)
def test_without_a_plant_the_same_stop_passes(stop, mutant):
    verdicts = mutant.verdicts()
    assert verdicts
    assert all(one.passed for one in verdicts), [
        one for one in verdicts if not one.passed
    ]
    assert mutant.check in {one.check for one in verdicts}

"""Entries that holes around the draw may have touched are named, from public facts."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import blowfish_fast as bf
from blowfish_fast.accounting import holes, journal, population, request
from blowfish_fast.accounting.holes import find_concerns
from blowfish_fast.apps.cli.main import application
from blowfish_fast.errors import BudgetError

LINE = bf.Domain(6, names=["age"])
GRID = bf.Domain((4, 4), names=["x", "y"])
FULL, ABSENT = bf.policies.Full(LINE), bf.policies.AddRemove(LINE)
COUNTS = [3, 0, 2, 5, 1, 0]


@pytest.fixture
def before(monkeypatch):
    """Charge by the rules of before: entries note none."""
    monkeypatch.setattr(request, "RULES", 0)


def found(ledger):
    return {(one.request, one.hole) for one in find_concerns(ledger)}


def laplace(policy, epsilon=1):
    return bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon=epsilon)


def charged_everything():
    """Return a ledger with a charge of every kind, and one that is not answered."""
    ledger = bf.Ledger(None, epsilon=99, policy=ABSENT)
    release = ledger.release(laplace(ABSENT), COUNTS, "plain", rng=1)
    cells = bf.workloads.Identity(LINE)
    ledger.certify(release, COUNTS, cells, "mine", rng=1, epsilon=1)
    ledger.certify(release, COUNTS, cells, "c-q-1/epsilon = 1/1/1", rng=1, epsilon=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(journal.Journal, "store_together", None)
        with pytest.raises(TypeError):
            ledger.release(laplace(ABSENT), COUNTS, "broken", rng=1)
    return ledger


def test_entries_by_the_present_rules_are_never_named():
    assert find_concerns(charged_everything()) == []


def test_certificates_empty_tables_and_open_charges_are_named(before):
    ledger = charged_everything()
    named = found(ledger)
    assert {one for one in named if one[1] != 8} == {
        ("mine", 4),
        ("mine", 5),
        ("c-q-1/epsilon = 1/1/1", 4),
        ("c-q-1/epsilon = 1/1/1", 5),
        ("c-q-1/epsilon = 1/1/1", 9),
        ("broken", 2),
    }
    everything = {one.request for one in ledger.history()}
    assert {name for name, hole in named if hole == 8} == everything


def test_without_absent_and_choices_nothing_is_named(before):
    ledger = bf.Ledger(None, epsilon=9, policy=FULL)
    ledger.release(laplace(FULL), COUNTS, "plain", rng=1)
    assert find_concerns(ledger) == []


def test_choices_of_dawa_on_maps_are_named(before):
    for policy, counts, holes_of_it in (
        (bf.policies.Full(GRID), [[1] * 4] * 4, {("d", 1), ("d", 2)}),
        (FULL, COUNTS, set()),
    ):
        ledger = bf.Ledger(None, epsilon=9, policy=policy)
        cells = bf.workloads.Identity(policy.domain)
        ledger.release(bf.Dawa(policy, cells, epsilon=1), counts, "d", rng=1)
        assert found(ledger) == holes_of_it


@pytest.mark.parametrize("analyst", [None, "ann"])
def test_what_cannot_be_paid_is_refused_before_data_are_looked_at(analyst):
    """Hole 5 of issue 32, the order: malformed data of an overdraft were looked at."""
    ledger = bf.Ledger(None, epsilon=9, policy=FULL)
    ledger.allot("ann", 2)
    for data in (COUNTS, [-1] * 6, [0.5] * 6):
        with pytest.raises(BudgetError, match="remains; nothing was charged"):
            ledger.release(laplace(FULL, 10), data, rng=1, analyst=analyst)
    assert ledger.spent == 0


class Strange(bf.Laplace):
    """A stranger's."""


def test_strangers_and_other_policies_are_named(before):
    ledger = bf.Ledger(None, epsilon=9, policy=bf.policies.Line(LINE))
    strange = Strange(ledger.policy, bf.workloads.Identity(LINE), epsilon=1)
    ledger.release(strange, COUNTS, "vouched", rng=1, vouched=True)
    ledger.release(laplace(FULL), COUNTS, "wider", rng=1)
    ledger.release(laplace(FULL), COUNTS, "asked", rng=1, note={"question": {}})
    assert found(ledger) == {("vouched", 7), ("wider", 7)}


def test_tables_that_share_a_source_under_two_policies_are_named(before, monkeypatch):
    monkeypatch.setattr(population, "_refuse_disagreement", lambda one, other: None)
    years = bf.Domain(6, names=["years"])
    tables = [
        bf.PeopleTable("near", bf.policies.Threshold(LINE, 2), "holes/visits"),
        bf.PeopleTable("far", bf.policies.Line(years), "holes/visits"),
        bf.PeopleTable("labs", bf.policies.Line(LINE), "holes/labs"),
    ]
    people = bf.Population("p", person="id", tables=tables, epsilon=9)
    for one, domain in (("near", LINE), ("far", years), ("labs", LINE)):
        data = bf.Histogram(domain, COUNTS, at_most=1, person="id")
        asked = laplace(people.policy(one, 1))
        people.release(one, asked, data, rng=1, request=one)
    named = {one for one in found(people.ledger) if one[1] == 3}
    assert named == {("near", 3), ("far", 3)}


def test_the_command_line_names_them(tmp_path, before):
    path = tmp_path / "some.ledger"
    with bf.Ledger(path, epsilon=9, policy=ABSENT) as ledger:
        ledger.release(laplace(ABSENT), COUNTS, "march")
    run = CliRunner()
    words = ["ledger", "verify", str(path), "--holes"]
    done = run.invoke(application, words)
    assert done.exit_code == 1
    assert "march" in done.output
    # The table is as wide as the screen: the last column may break between words.
    assert "told of at least one record" in " ".join(done.output.split())
    assert run.invoke(application, words[:3]).exit_code == 0
    listed = run.invoke(application, [*words, "--json"])
    assert '"hole": 8' in listed.output


def test_the_command_line_says_that_there_are_none(tmp_path):
    path = tmp_path / "some.ledger"
    with bf.Ledger(path, epsilon=9, policy=ABSENT) as ledger:
        ledger.release(laplace(ABSENT), COUNTS, "march")
    done = CliRunner().invoke(application, ["ledger", "verify", str(path), "--holes"])
    assert done.exit_code == 0
    assert "no entry was made while the holes were open" in done.output
    assert holes.RULES == 1


def test_a_certificate_that_names_its_release_compared_no_data():
    content = {
        "parts": [{"mechanism": "certifier"}],
        "note": {"certifies": "March"},
    }
    charge = journal.Charge(1, "certified", 0, content, "stored")
    found = [hole for hole, _ in holes._certified(charge, None)]
    assert 4 not in found
    assert 5 in found

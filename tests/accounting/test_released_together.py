"""Several requests are charged in one commit, all or none, and stored in another."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting import transactions
from blowfish_fast.accounting.journal import Journal
from blowfish_fast.errors import (
    BudgetError,
    CountsError,
    FailedDrawError,
    InputError,
    LedgerError,
    PolicyError,
    RandomnessError,
)

LINE = bf.Domain(6)
POLICY = bf.policies.AddRemove(LINE)
COUNTS = np.array([3, 1, 4, 1, 5, 9])
DAYS = ("Monday", "Tuesday", "Wednesday")


def laplace(epsilon="0.1", policy=POLICY):
    return bf.Laplace(policy, bf.workloads.Identity(policy.domain), epsilon=epsilon)


def asked(*names, epsilon="0.1"):
    return [(laplace(epsilon), COUNTS, name) for name in names]


@pytest.fixture(params=["disk", "memory"])
def ledger(request, tmp_path):
    path = tmp_path / "x.ledger" if request.param == "disk" else None
    with bf.Ledger(path, epsilon=1, policy=POLICY) as made:
        yield made


def test_a_batch_is_charged_and_stored_in_two_commits(ledger, monkeypatch):
    commits = []
    transaction = transactions._transaction

    def counted(connection, guard, *, write):
        commits.append(write)
        return transaction(connection, guard, write=write)

    ledger.frozen  # noqa: B018
    monkeypatch.setattr(transactions, "_transaction", counted)
    releases = ledger.release_together(asked(*DAYS))
    assert commits.count(True) == 2
    assert ledger.spent == Fraction(3, 10)
    assert [entry.request for entry in ledger.history()] == list(DAYS)
    for name, release in zip(DAYS, releases, strict=True):
        assert np.array_equal(ledger.replay(name).estimate, release.estimate)
    # Noise of its own for each.
    assert len({tuple(release.estimate) for release in releases}) == 3
    ledger.verify()


def test_what_was_answered_before_is_replayed_and_the_rest_is_charged(ledger):
    first = ledger.release(laplace(), COUNTS, "Tuesday")
    releases = ledger.release_together(asked(*DAYS))
    assert np.array_equal(releases[1].estimate, first.estimate)
    assert ledger.spent == Fraction(3, 10)
    again = ledger.release_together(asked(*DAYS[::-1]))
    assert ledger.spent == Fraction(3, 10)
    for one, other in zip(again[::-1], releases, strict=True):
        assert np.array_equal(one.estimate, other.estimate)


REFUSED = {
    "too dear in all": (asked(*DAYS, epsilon="0.4"), BudgetError, "costs eps = 1.2"),
    "none": ([], InputError, "at least one"),
    "no requests": (7, InputError, "at least one"),
    "no mechanism": ([("laplace", COUNTS, "a")], InputError, "releases mechanisms"),
    "no name": ([(laplace(), COUNTS, None)], InputError, "printable characters"),
    "one name twice": (asked("a", "a"), InputError, "different names"),
    "malformed counts": (
        [*asked("a"), (laplace(), [1, 2], "b")],
        CountsError,
        "shape of the domain",
    ),
    "another policy": (
        [*asked("a"), (laplace(policy=bf.policies.Line(LINE)), COUNTS, "b")],
        PolicyError,
        "Nothing was charged",
    ),
    "a note that is none": (
        [*asked("a"), (laplace(), COUNTS, "b", {"x": {1, 2}})],
        InputError,
        "plain values",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_whatever_refuses_one_refuses_all_uncharged(ledger, case):
    requests, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        ledger.release_together(requests)
    assert ledger.spent == 0
    assert ledger.history() == []


def test_whether_it_can_be_paid_does_not_depend_on_the_data(ledger):
    wrong = [(laplace("0.4"), [1, 2], name) for name in DAYS]
    with pytest.raises(BudgetError):
        ledger.release_together(wrong)


def test_a_race_for_the_rest_is_lost_whole(ledger, monkeypatch):
    """Somebody pays between the check and the charge: the commit refuses the sum."""
    reserve = Journal.reserve_together

    def late(journal, reservations):
        ledger.release(laplace("0.8"), COUNTS, "meanwhile")
        return reserve(journal, reservations)

    monkeypatch.setattr(Journal, "reserve_together", late)
    with pytest.raises(BudgetError, match=r"costs eps = 0.3, and 0.2 of 1 remains"):
        ledger.release_together(asked(*DAYS))
    assert [entry.request for entry in ledger.history()] == ["meanwhile"]
    ledger.verify()


def test_an_allotment_pays_for_all_or_for_none(ledger):
    ledger.allot("ann", "0.25")
    with pytest.raises(BudgetError, match=r"0.25 of ann's 0.25 remains"):
        ledger.release_together(asked(*DAYS), analyst="ann")
    with pytest.raises(BudgetError, match="'bob' has no allotment"):
        ledger.release_together(asked("a"), analyst="bob")
    assert ledger.spent == 0
    ledger.release_together(asked(*DAYS[:2]), analyst="ann")
    assert ledger.allotments()["ann"].spent == Fraction(2, 10)


def test_an_allotment_that_shrinks_meanwhile_refuses_the_sum(ledger, monkeypatch):
    ledger.allot("ann", "0.5")
    reserve = Journal.reserve_together

    def late(journal, reservations):
        ledger.allot("ann", "0.2")
        return reserve(journal, reservations)

    monkeypatch.setattr(Journal, "reserve_together", late)
    with pytest.raises(BudgetError, match=r"costs eps = 0.3, and 0.2 of ann's 0.2"):
        ledger.release_together(asked(*DAYS), analyst="ann")
    assert ledger.spent == 0


def test_terms_that_change_meanwhile_refuse_all(ledger, monkeypatch):
    reserve = Journal.reserve_together

    def late(journal, reservations):
        ledger.amend(epsilon=2)
        return reserve(journal, reservations)

    monkeypatch.setattr(Journal, "reserve_together", late)
    with pytest.raises(LedgerError, match="changed while the request was checked"):
        ledger.release_together(asked(*DAYS))
    assert ledger.history() == []


def test_a_failed_draw_is_the_outcome_of_its_charge_alone(ledger, monkeypatch):
    draw, calls = bf.Laplace._drawn, []

    def failing(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("depends on the draw")
        return draw(self, *arguments, **options)

    monkeypatch.setattr(bf.Laplace, "_drawn", failing)
    with pytest.raises(FailedDrawError) as caught:
        ledger.release_together(asked(*DAYS))
    assert "depends" not in str(caught.value)
    assert len(calls) == 3
    assert [entry.state for entry in ledger.history()] == ["stored"] * 3
    assert ledger.replay("Monday") is not None
    assert ledger.replay("Wednesday") is not None
    with pytest.raises(FailedDrawError):
        ledger.replay("Tuesday")


def test_a_store_that_breaks_off_is_finished_under_the_same_charges(
    ledger, monkeypatch
):
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "store_together", None)
        with pytest.raises(TypeError) as caught:
            ledger.release_together(asked(*DAYS))
    assert "no answer has left" in caught.value.__notes__[0]
    assert [entry.state for entry in ledger.history()] == ["reserved"] * 3
    releases = ledger.release_together(asked(*DAYS))
    assert len(releases) == 3
    assert ledger.spent == Fraction(3, 10)


def test_a_faster_attempt_is_the_outcome(ledger, monkeypatch):
    keep = ledger._keep
    faster = []

    def late(*arguments, **options):
        if not faster:
            faster.append(None)
            faster[0] = ledger.release(laplace(), COUNTS, "Tuesday")
        return keep(*arguments, **options)

    monkeypatch.setattr(ledger, "_keep", late)
    releases = ledger.release_together(asked(*DAYS))
    assert np.array_equal(releases[1].estimate, faster[0].estimate)
    assert ledger.spent == Fraction(3, 10)


def test_a_seed_draws_different_noise_for_each_and_is_refused_on_disk(ledger):
    if ledger.path is not None:
        with pytest.raises(RandomnessError):
            ledger.release_together(asked(*DAYS), rng=1)
        assert ledger.spent == 0
        return
    seeded = ledger.release_together(asked(*DAYS), rng=1)
    assert len({tuple(release.estimate) for release in seeded}) == 3


def test_another_question_under_a_name_is_refused(ledger):
    ledger.release(laplace("0.2"), COUNTS, "Tuesday")
    with pytest.raises(LedgerError, match="another question"):
        ledger.release_together(asked(*DAYS))
    assert ledger.spent == Fraction(2, 10)


def test_draws_of_a_batch_are_opened_like_others(tmp_path):
    pytest.importorskip("cryptography")
    bf.accounting.make_recipient_keys(tmp_path / "private.pem", tmp_path / "public.pem")
    path = tmp_path / "opened.ledger"
    with bf.Ledger(
        path, epsilon=1, policy=POLICY, auditor=tmp_path / "public.pem"
    ) as ledger:
        ledger.release_together(asked(*DAYS))
        drawn_under = ledger._journal.drawn_under()
        for name in DAYS:
            (committed,) = ledger._journal.commitments(name)
            assert committed["sha256"] == drawn_under[name]
        opened = bf.accounting.verify_opened(
            ledger,
            tmp_path / "opened.ledger.keys",
            tmp_path / "private.pem",
            {name: (laplace(), COUNTS) for name in DAYS},
        )
    assert [answer.passed for answer in opened] == [True] * 3


def test_a_population_charges_several_answers_of_a_table():
    visits = bf.policies.AddRemove(LINE)
    people = bf.Population(
        "patients", person="patient", tables={"visits": visits}, epsilon=1
    )
    mechanism = laplace(policy=people.policy("visits", 3))
    data = bf.Histogram(LINE, COUNTS, at_most=3, person="patient")
    requests = [(mechanism, data, name, {"day": name}) for name in DAYS]
    people.release_together("visits", requests)
    assert people.spent == Fraction(3, 10)
    assert [entry.note for entry in people.ledger.history()] == [
        {"day": name, "tables": ["visits"]} for name in DAYS
    ]
    with pytest.raises(PolicyError, match="do not say whose"):
        people.release_together("visits", [(mechanism, COUNTS, "Sunday")])
    with pytest.raises(PolicyError, match="persons with all their records"):
        people.release_together("visits", [(laplace(), data, "Sunday")])
    assert people.spent == Fraction(3, 10)


def test_what_was_defined_outside_is_vouched_for_one_by_one(ledger):
    class Own(bf.Laplace):
        """A mechanism from elsewhere."""

    Own.__module__ = "elsewhere"
    strange = Own(POLICY, bf.workloads.Identity(LINE), epsilon="0.1")
    with pytest.raises(InputError, match="outside blowfish_fast"):
        ledger.release_together([*asked("a"), (strange, COUNTS, "b")])
    assert ledger.spent == 0
    ledger.release_together([*asked("a"), (strange, COUNTS, "b", None, "of May", True)])
    assert ledger.replay("b").details["as_of"] == "of May"


def test_entries_of_several_names_are_found_at_once(ledger):
    ledger.release_together(asked(*DAYS))
    entries = ledger.entries(["Tuesday", "Sunday", "Monday"])
    assert {*entries} == {"Monday", "Tuesday"}
    assert entries["Monday"] == ledger.entry("Monday")

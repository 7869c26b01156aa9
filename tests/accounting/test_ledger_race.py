"""Two processes, one request name: whoever comes second gets the answer, or nothing.

Both have looked for the request and found none before either reserves, which is the
moment when only the check after the reserve stands between a question of eps 9/10 and
a charge of 1/10.
"""

from __future__ import annotations

from fractions import Fraction
from multiprocessing import get_context

import pytest

import blowfish_fast as bf
from blowfish_fast.accounting import ledger as module
from blowfish_fast.errors import LedgerError, PolicyError

LINE = bf.Domain(6)
FULL = bf.policies.Full(LINE)
COUNTS = [3, 1, 4, 1, 5, 9]
SECONDS = 120


def ask(path, epsilon, barrier, answers):
    """Ask as a process of its own; reserve only when the other is as far."""
    check_room = module.check_room

    def wait_for_the_other(parts):
        check_room(parts)
        barrier.wait(SECONDS)

    module.check_room = wait_for_the_other
    laplace = bf.Laplace(FULL, bf.workloads.Identity(LINE), epsilon=epsilon)
    with bf.Ledger(path) as ledger:
        try:
            release = ledger.release(laplace, COUNTS, "March")
            answers.put((epsilon, release.estimate.tolist()))
        except LedgerError as refused:
            answers.put((epsilon, str(refused)))


def ask_together(path, epsilons):
    """Let one process ask for each epsilon under one name; return what each heard."""
    bf.Ledger(path, epsilon=1, policy=FULL).close()
    processes = get_context("spawn")
    barrier, answers = processes.Barrier(len(epsilons)), processes.Queue()
    workers = [
        processes.Process(target=ask, args=(str(path), one, barrier, answers))
        for one in epsilons
    ]
    for one in workers:
        one.start()
    heard = [answers.get(timeout=SECONDS) for _ in workers]
    for one in workers:
        one.join(SECONDS)
    assert [one.exitcode for one in workers] == [0] * len(workers)
    return heard


@pytest.mark.parametrize("time", range(3))
def test_two_different_questions_under_one_name_are_not_both_answered(tmp_path, time):
    heard = dict(ask_together(tmp_path / "x.ledger", ["9/10", "1/10"]))
    answered = [epsilon for epsilon, said in heard.items() if isinstance(said, list)]
    refused = [said for said in heard.values() if isinstance(said, str)]
    assert len(answered) == len(refused) == 1
    assert "was made for another question" in refused[0]
    with bf.Ledger(tmp_path / "x.ledger") as ledger:
        assert ledger.spent == Fraction(answered[0])
        assert ledger.replay("March").estimate.tolist() == heard[answered[0]]
        assert ledger.replay("March").guarantee.epsilon == Fraction(answered[0])
        assert len(ledger.history()) == 1
        ledger.verify()


def test_the_same_question_from_two_processes_is_charged_and_drawn_once(tmp_path):
    (_, one), (_, other) = ask_together(tmp_path / "x.ledger", ["1/2", "1/2"])
    assert isinstance(one, list)
    assert one == other
    with bf.Ledger(tmp_path / "x.ledger") as ledger:
        assert ledger.spent == Fraction(1, 2)
        ledger.verify()


def test_another_question_charged_between_the_look_and_the_reserve_is_not_drawn_on(
    monkeypatch,
):
    """The same race in one process, with the other question wholly in the gap."""
    ledger = bf.Ledger(None, epsilon=1, policy=FULL)
    cheap, dear = (
        bf.Laplace(FULL, bf.workloads.Identity(LINE), epsilon=epsilon)
        for epsilon in ("1/10", "9/10")
    )
    check_room, answers = module.check_room, []

    def let_the_other_ask(parts):
        check_room(parts)
        monkeypatch.setattr(module, "check_room", check_room)
        answers.append(ledger.release(cheap, COUNTS, "March"))

    monkeypatch.setattr(module, "check_room", let_the_other_ask)
    with pytest.raises(LedgerError, match="'March' was made for another question"):
        ledger.release(dear, COUNTS, "March")
    assert len(answers) == len(ledger.history()) == 1
    assert ledger.spent == Fraction(1, 10)


def test_other_people_charged_before_the_reserve_stop_the_draw(monkeypatch):
    """A ledger that names nobody: whoever is charged second gets no answer."""
    policy = bf.policies.AddRemove(LINE).per_person(3)
    ledger = bf.Ledger(None, epsilon=1, policy=policy.base.per_person())
    laplace = bf.Laplace(policy, bf.workloads.Identity(LINE), epsilon="1/10")
    patients, doctors = (
        bf.Histogram(LINE, COUNTS, at_most=3, person=person)
        for person in ("patient", "doctor")
    )
    check_people, drawn = module.check_people, []

    def let_doctors_be_charged(*about):
        check_people(*about)
        monkeypatch.setattr(module, "check_people", check_people)
        ledger.release(laplace, doctors, "doctors")

    monkeypatch.setattr(module, "check_people", let_doctors_be_charged)
    monkeypatch.setattr(ledger._drawn, "note", lambda parts, _: drawn.append(parts))
    with pytest.raises(PolicyError, match="about whom 'doctor' names") as caught:
        ledger.release(laplace, patients, "patients")
    assert "no answer has left" in caught.value.__notes__[0]
    assert [one.data.bound.person for (one,) in drawn] == ["doctor"]
    assert ledger.spent == Fraction(1, 5), "the charge of the refused one stays"

"""Two processes, one request name: whoever comes second gets the answer, or nothing.

Both have looked for the request and found none before either reserves, which is the
moment when only the check after the reserve stands between a question of eps 9/10 and
a charge of 1/10.
"""

from __future__ import annotations

from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path

import pytest

import blowfish_fast as bf
from blowfish_fast.accounting import ledger as module
from blowfish_fast.errors import LedgerError, PolicyError

pytestmark = pytest.mark.long

LINE = bf.Domain(6)
FULL = bf.policies.Full(LINE)
COUNTS = [3, 1, 4, 1, 5, 9]
SECONDS = 120


def reserve_together(barrier):
    """Let this process reserve only when the other is as far."""
    check_room = module.check_room

    def wait_for_the_other(parts):
        check_room(parts)
        barrier.wait(SECONDS)

    module.check_room = wait_for_the_other


def ask(path, epsilon, barrier, answers):
    """Ask as a process of its own."""
    reserve_together(barrier)
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
    return run_together(ask, path, epsilons)


def run_together(target, path, each):
    """Run a process for each of `each`, which meet at a barrier; return their words."""
    processes = get_context("spawn")
    barrier, answers = processes.Barrier(len(each)), processes.Queue()
    workers = [
        processes.Process(target=target, args=(str(path), one, barrier, answers))
        for one in each
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


def people_of(person):
    return bf.Histogram(LINE, COUNTS, at_most=3, person=person)


def ask_about(path, person, barrier, answers):
    """Ask about people as a process of its own."""
    reserve_together(barrier)
    with bf.Ledger(path) as ledger:
        try:
            release = ledger.release(PERSONS, people_of(person), person)
            answers.put((person, release.estimate.tolist()))
        except PolicyError as refused:
            answers.put((person, str(refused)))


PERSONS = bf.Laplace(
    bf.policies.AddRemove(LINE).per_person(3),
    bf.workloads.Identity(LINE),
    epsilon="1/10",
)
"""Under a policy that names no column of persons."""


def test_of_two_processes_about_different_people_one_is_answered_and_none_is_stuck(
    tmp_path,
):
    path = tmp_path / "x.ledger"
    bf.Ledger(path, epsilon=1, policy=PERSONS.policy.base.per_person()).close()
    heard = dict(run_together(ask_about, path, ["patient", "doctor"]))
    (first,) = (one for one, said in heard.items() if isinstance(said, list))
    (second,) = {*heard} - {first}
    assert f"about whom {first!r} names" in heard[second]
    with bf.Ledger(path) as ledger:
        assert ledger.spent == Fraction(1, 10), "whoever came second paid nothing"
        assert ledger.replay(first).estimate.tolist() == heard[first]
        ledger.release(PERSONS, people_of(first), "later")
        with pytest.raises(PolicyError, match="Keep a ledger for each"):
            ledger.release(PERSONS, people_of(second), "later still")
        assert ledger.spent == Fraction(1, 5)
        ledger.verify()


def test_other_people_charged_before_the_reserve_are_the_ledgers_people(monkeypatch):
    """The same race in one process, with the other question wholly in the gap."""
    ledger = bf.Ledger(None, epsilon=1, policy=PERSONS.policy.base.per_person())
    check_room, draw, drawn = module.check_room, module.draw_parts, []

    def let_doctors_be_charged(parts):
        check_room(parts)
        monkeypatch.setattr(module, "check_room", check_room)
        ledger.release(PERSONS, people_of("doctor"), "doctors")

    monkeypatch.setattr(module, "check_room", let_doctors_be_charged)
    monkeypatch.setattr(
        module,
        "draw_parts",
        lambda parts, *rest: drawn.append(parts) or draw(parts, *rest),
    )
    with pytest.raises(PolicyError, match="about whom 'doctor' names"):
        ledger.release(PERSONS, people_of("patient"), "patients")
    assert [one.data.bound.person for (one,) in drawn] == ["doctor"]
    assert ledger.spent == Fraction(1, 10), "the refused one paid nothing"
    ledger.release(PERSONS, people_of("doctor"), "again")


def describe_source(path, name, barrier, answers):
    """Make a population over one source as a process of its own."""
    table = bf.PeopleTable("visits", bf.policies.AddRemove(LINE), "clinic/visits")
    barrier.wait(SECONDS)
    try:
        own = Path(path).with_name(f"{name}.ledger")
        bf.Population(name, person="id", tables=[table], path=own, epsilon=1).close()
        answers.put((name, ""))
    except LedgerError as refused:
        answers.put((name, str(refused)))


def test_two_processes_never_make_two_budgets_for_one_source(tmp_path):
    path = tmp_path / "x.ledger"
    heard = dict(run_together(describe_source, path, ["patients", "guests"]))
    (first,) = (one for one, said in heard.items() if not said)
    (second,) = {*heard} - {first}
    assert f"the population {first!r} pays for releases" in heard[second]
    assert [one.name for one in tmp_path.glob("*.ledger")] == [f"{first}.ledger"]
    again = bf.Population(first, path=tmp_path / f"{first}.ledger")
    assert again.tables["visits"].source == "clinic/visits"
    again.close()

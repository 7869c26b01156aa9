"""A process that kills itself, and its children, at chosen points of a release.

Run by ``test_ledger_crashes``: ``python crashing.py SCENARIO FOLDER``. Everything is
loaded once; each case runs in a forked child. The package itself has no such hooks:
the children replace a function just before they use it.

    python -m tests.accounting.crashing long_storm FOLDER     1,000 kills, checked
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting import journal, journal_file
from blowfish_fast.errors import BudgetError, SizeError

LINE = bf.Domain(6)
FULL = bf.policies.Full(LINE)
PERSONS = bf.policies.AddRemove(LINE).per_person(3)
COUNTS = np.array([3, 1, 4, 1, 5, 9])


def mechanism(epsilon=0.01, policy=FULL):
    return bf.Laplace(policy, bf.workloads.Identity(LINE), epsilon=epsilon)


def die(*_arguments, **_options):
    os.kill(os.getpid(), signal.SIGKILL)


def dying_after(function, when=lambda *_arguments: True):
    def wrapped(*arguments):
        value = function(*arguments)
        if when(*arguments):
            die()
        return value

    return wrapped


def prepare(point, drawn):
    """Make this process die at `point`; note in `drawn` what was drawn before."""
    draw, append_entry = bf.Laplace._drawn, journal_file.append_entry

    def noted(self, *arguments, **options):
        answer = draw(self, *arguments, **options)
        drawn.write_text(json.dumps(answer.estimate.tolist()))
        return answer

    bf.Laplace._drawn = noted
    if point == "inside the reserve":
        journal_file.append_entry = dying_after(
            append_entry, lambda _c, kind, *_rest: kind == "charge"
        )
    elif point == "between reserve and draw":
        bf.Laplace._drawn = die
    elif point == "between draw and store":
        bf.HistogramRelease.to_bytes = die
    elif point == "inside the store":
        journal_file.append_entry = dying_after(
            append_entry, lambda _c, kind, *_rest: kind == "answer"
        )
    elif point == "between store and return":
        journal.Journal.store_together = dying_after(journal.Journal.store_together)


def forked(action):
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(1)
    return child


def points(folder):
    """Die once at each point, on a ledger of its own."""
    names = (
        "inside the reserve",
        "between reserve and draw",
        "between draw and store",
        "inside the store",
        "between store and return",
    )
    for name in names:

        def action(name=name):
            prepare(name, folder / f"{name}.drawn")
            with bf.Ledger(folder / name, epsilon=1, policy=FULL) as opened:
                opened.release(mechanism(), COUNTS, "question")

        _, status = os.waitpid(forked(action), 0)
        assert os.WIFSIGNALED(status), name


TOGETHER = ("Monday", "Tuesday", "Wednesday")


def together(folder):
    """Die once at each point of a batch: inside a commit, after its second entry."""

    def second(kind):
        entries = []

        def is_second(_connection, written, *_rest):
            entries.append(written)
            return entries.count(kind) == 2

        return is_second

    points = {
        "inside the reserve": lambda: second("charge"),
        "inside the store": lambda: second("answer"),
    }
    names = (*points, "between reserve and draw", "between store and return")
    for name in names:

        def action(name=name):
            if name in points:
                journal_file.append_entry = dying_after(
                    journal_file.append_entry, points[name]()
                )
            else:
                prepare(name, folder / f"{name}.drawn")
            with bf.Ledger(folder / name, epsilon=1, policy=FULL) as opened:
                opened.release_together(
                    [(mechanism(), COUNTS, day) for day in TOGETHER]
                )

        _, status = os.waitpid(forked(action), 0)
        assert os.WIFSIGNALED(status), name


def people(person):
    return bf.Histogram(LINE, COUNTS, at_most=3, person=person)


def of_people(folder):
    """Die once between charge and draw, in a ledger that names no column of persons."""

    def action():
        prepare("between reserve and draw", folder / "people.drawn")
        with bf.Ledger(folder / "people") as opened:
            opened.release(mechanism(policy=PERSONS), people("patient"), "question")

    bf.Ledger(folder / "people", epsilon=1, policy=PERSONS.base.per_person()).close()
    _, status = os.waitpid(forked(action), 0)
    assert os.WIFSIGNALED(status)


def storm(folder, questions=40, kills=40):
    """Kill the worker at random moments until all questions are answered."""
    path, received = folder / "storm", folder / "received"
    received.touch()
    bf.Ledger(path, epsilon=questions, policy=FULL).close()
    generator = random.Random(7)
    states = {"reserved": 0, "stored": 0}

    def work(ready, start):
        with bf.Ledger(path) as opened, received.open("a") as file:
            os.write(ready, b"!")
            for number in range(start, questions):
                answer = opened.release(mechanism(), COUNTS, f"question {number}")
                file.write(json.dumps([number, answer.estimate.tolist()]) + "\n")
                file.flush()
        os._exit(0)

    while True:
        reading, writing = os.pipe()
        start = received.read_text().count("]]\n")
        child = forked(lambda: work(writing, start))  # noqa: B023
        os.close(writing)
        os.read(reading, 1)
        os.close(reading)
        if sum(states.values()) < kills:
            time.sleep(generator.uniform(0.0, 0.03))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
        with bf.Ledger(path) as opened:
            past = opened.history()
            states[past[-1].state if past else "stored"] += 1
    (folder / "states").write_text(json.dumps(states))


def check_storm(folder, questions=40):
    """Everything that was received is stored, nothing is charged twice or lost."""
    with bf.Ledger(folder / "storm") as opened:
        opened.verify()
        assert opened.spent == Fraction(questions, 100)
        history = opened.history()
        assert len(history) == questions
        assert {entry.state for entry in history} == {"stored"}
        stored = {
            number: opened.release(mechanism(), COUNTS, f"question {number}").estimate
            for number in range(questions)
        }
        assert opened.spent == Fraction(questions, 100)
    lines = (folder / "received").read_text().splitlines()
    whole = [json.loads(line) for line in lines if line.endswith("]]")]
    assert {number for number, _ in whole} == set(range(questions))
    for number, estimate in whole:
        assert np.array_equal(stored[number], estimate)
    # Where the kills fell depends on the machine; `points` dies at each place for sure.
    return json.loads((folder / "states").read_text())


def long_storm(folder, kills=1000):
    """Kill a thousand times; print where the kills fell."""
    storm(folder, kills, kills)
    states = check_storm(folder, kills)
    total, between = sum(states.values()), states["reserved"]
    sys.stdout.write(
        f"{total:,} kills, {between:,} of them between charge and answer; {kills:,} "
        "answers, none lost, none charged twice, none unpaid\n"
    )


def same(folder, processes=4, questions=6):
    """Let processes ask the same questions under the same names at the same time."""
    path = folder / "same"
    bf.Ledger(path, epsilon=1, policy=FULL).close()
    reading, writing = os.pipe()

    def work(number):
        os.close(writing)
        os.read(reading, 1)
        with bf.Ledger(path) as opened:
            found = [
                opened.release(mechanism(), COUNTS, f"question {one}").estimate.tolist()
                for one in range(questions)
            ]
        (folder / f"found {number}").write_text(json.dumps(found))
        os._exit(0)

    children = [
        forked(lambda number=number: work(number)) for number in range(processes)
    ]
    os.close(writing)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)


def race(folder):
    """Let four processes race for a budget of five releases."""
    path = folder / "race"
    reading, writing = os.pipe()

    def work():
        os.close(writing)
        os.read(reading, 1)
        paid = 0
        with bf.Ledger(path, epsilon=0.5, policy=FULL) as opened:
            for _ in range(4):
                try:
                    opened.release(mechanism(0.1), COUNTS)
                    paid += 1
                except BudgetError:
                    pass
        os._exit(paid)

    children = [forked(work) for _ in range(4)]
    os.close(writing)
    paid = [os.WEXITSTATUS(os.waitpid(child, 0)[1]) for child in children]
    (folder / "paid").write_text(json.dumps(paid))


def memory(folder):
    """Ask for releases that do not fit into the memory that is left."""
    import resource

    cells = 2**22
    line = bf.Domain(cells)
    policy = bf.policies.Full(line)
    counts = bf.Histogram(line, np.ones(cells, dtype=np.int64))
    ranges = bf.workloads.Ranges(line, [0], [5])
    with bf.Ledger(folder / "memory", epsilon=1, policy=policy) as opened:
        used = int(Path("/proc/self/statm").read_text().split()[0])
        limit = used * resource.getpagesize() + 2**25
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for made in (bf.Laplace, bf.Dawa):
            with pytest.raises(SizeError, match="nothing was charged"):
                opened.release(made(policy, ranges, epsilon=0.1), counts)
        assert opened.spent == 0
    (folder / "refused").write_text("both")


if __name__ == "__main__":
    mechanism().release(COUNTS)
    globals()[sys.argv[1]](Path(sys.argv[2]))

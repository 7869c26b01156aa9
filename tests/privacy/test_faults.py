"""Failures, interruptions and kills between charge and store, for all that is there.

Whatever happens there, the outcome of a charge is one answer of one draw that anybody
saw anything of. The long form, more budgets and sizes and a kill for every mechanism:

    BLOWFISH_FAULTS=long python -m pytest tests/privacy/test_faults.py
"""

from __future__ import annotations

import os
import signal
import traceback
from unittest.mock import patch

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.journal import Journal
from blowfish_fast.apps.cli.main import application
from blowfish_fast.errors import BlowfishError, FailedDrawError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle
from blowfish_fast.mechanisms.base import made_up
from blowfish_fast.mechanisms.registry import MECHANISMS, OWN
from tests.apps.cli.asking import RUN
from tests.apps.server.serving import AGES, serving

LONG = os.environ.get("BLOWFISH_FAULTS") == "long"
NAMES = sorted(OWN)
SECRET = "which branch was taken"
STEPS = ["checking", "charged", "drawing", "stored"]
KINDS = ("select", "measure", "list_above")

posix = pytest.mark.skipif(os.name != "posix", reason="kills a forked process")


class BranchError(Exception):
    """A failure that tells what was drawn."""


def example(name, shape=(2, 2), policy=bf.policies.AddRemove, epsilon=1):
    """Return the example of a mechanism; None where public values refuse it."""
    domain = bf.Domain(shape)
    made = policy(domain)
    try:
        mechanism, data = OWN[name].example(domain, made, epsilon)
        mechanism.check_feasible()
    except BlowfishError:
        return None
    return mechanism, made_up(made, data)


def admitted(name):
    found = example(name) or example(name, shape=4)
    if found is None:
        found = example(name, epsilon=Budget.stated(rho=1))
    assert found is not None, name
    return found


def opened(path, mechanism):
    terms = {mechanism.budget.currency: 60 * mechanism.budget.amount}
    return bf.Ledger(path, policy=mechanism.policy, **terms)


def failing_at(number, problem, seen):
    """Let call `number` of the handle fail after it has drawn; count the calls."""

    def failing(right):
        def call(self, asked, *, budget):
            result = right(self, asked, budget=budget)
            if not self.dry_run:
                seen.append(asked)
                if len(seen) == number:
                    raise problem
            return result

        return call

    return patch.multiple(
        Handle, **{kind: failing(getattr(Handle, kind)) for kind in KINDS}
    )


def die(*_arguments, **_options):
    os.kill(os.getpid(), signal.SIGKILL)


def dying(right):
    """Let a call of the handle kill the process once there are counts to look at."""

    def call(self, asked, *, budget):
        return right(self, asked, budget=budget) if self.dry_run else die()

    return call


def same(one, other):
    return one.to_bytes() == other.to_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_failure_at_any_call_is_the_outcome_of_its_charge(name, tmp_path):
    # Hole 1: the rectangles' branch failed and the grid's did not, and asking again
    # drew again under the same charge.
    mechanism, data = admitted(name)
    with opened(tmp_path / "ledger", mechanism) as ledger:
        for number in range(1, 40):
            calls, asked = [], f"question {number}"
            with failing_at(number, BranchError(SECRET), calls):
                try:
                    ledger.release(mechanism, data, asked)
                except FailedDrawError as problem:
                    shown = "".join(traceback.format_exception(problem))
                    assert SECRET not in shown
                    assert "BranchError" not in shown
                if len(calls) < number:
                    # The recipe has no such call; it was answered.
                    break
                drawn = len(calls)
                with pytest.raises(FailedDrawError):
                    ledger.release(mechanism, data, asked)
                assert len(calls) == drawn
            with pytest.raises(FailedDrawError):
                ledger.replay(asked)
            assert ledger.entry(asked).state == "stored"
        assert number > 1
        assert ledger.replay(asked).private
        ledger.verify()


@pytest.mark.parametrize("name", NAMES)
def test_an_interruption_in_a_draw_drops_it_unseen(name, tmp_path):
    # Hole 2: Ctrl-C after the branch was named, and the same request drew again.
    mechanism, data = admitted(name)
    with opened(tmp_path / "ledger", mechanism) as ledger:
        with (
            failing_at(1, KeyboardInterrupt(), []),
            pytest.raises(KeyboardInterrupt) as caught,
        ):
            ledger.release(mechanism, data, "question")
        shown = "".join(traceback.format_exception(caught.value))
        assert "_run" not in shown.replace("run_unseen", "")
        assert ledger.entry("question").state == "reserved"
        answer = ledger.release(mechanism, data, "question")
        assert len(ledger.history()) == 1
        assert same(ledger.replay("question"), answer)


@pytest.mark.parametrize("name", NAMES)
def test_progress_is_told_the_same_words_and_may_break_off(name, tmp_path):
    # Hole 2: words, number and order of the texts followed the draw.
    mechanism, data = admitted(name)
    with opened(tmp_path / "ledger", mechanism) as ledger:
        for step in STEPS:
            told = []

            def stop(text, told=told, step=step):
                told.append(text)
                if text == step:
                    raise BranchError

            with pytest.raises(BranchError):
                ledger.release(mechanism, data, step, progress=stop)
            assert told == STEPS[: STEPS.index(step) + 1]
            entry = ledger.entry(step)
            known = ledger.replay(step) if step == "stored" else None
            assert (entry and entry.state) == {
                "checking": None,
                "charged": "reserved",
                "drawing": "reserved",
                "stored": "stored",
            }[step]
            answer = ledger.release(mechanism, data, step)
            assert known is None or same(known, answer)
            assert same(ledger.replay(step), answer)
        assert len(ledger.history()) == len(STEPS)


@posix
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", NAMES if LONG else ["dawa", "kmeans", "laplace"])
@pytest.mark.parametrize("place", ["first call", "pack", "store"])
def test_a_kill_between_charge_and_store_leaves_one_answer(name, place, tmp_path):
    mechanism, data = admitted(name)
    path = tmp_path / "ledger"
    opened(path, mechanism).close()
    child = os.fork()
    if child == 0:
        try:
            if place == "first call":
                for kind in KINDS:
                    setattr(Handle, kind, dying(getattr(Handle, kind)))
            elif place == "pack":
                type(mechanism)._published = die
            else:
                Journal.store = die
            with bf.Ledger(path) as ledger:
                ledger.release(mechanism, data, "question")
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    with bf.Ledger(path) as ledger:
        assert [one.state for one in ledger.history()] == ["reserved"]
        answer = ledger.release(mechanism, data, "question")
        assert same(ledger.release(mechanism, data, "question"), answer)
        assert len(ledger.history()) == 1


def test_the_command_line_returns_a_failure_again_in_fixed_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [
        *("release", "--data", "demo", "--domain", "age=16:91:1", "--policy", "line"),
        *("--workload", "prefixes", "--epsilon", "0.5", "--ledger", "book"),
        *("--budget", "2", "--request", "ages"),
    ]
    with failing_at(1, BranchError(SECRET), []):
        first = RUN.invoke(application, words)
    second = RUN.invoke(application, words)
    for done in (first, second):
        assert isinstance(done.exception, FailedDrawError)
        assert SECRET not in done.output
        assert str(done.exception) == str(FailedDrawError())
    assert list(tmp_path.glob("release*")) == []
    with bf.Ledger("book") as ledger:
        assert [float(one.epsilon) for one in ledger.history()] == [0.5]


def test_the_explorer_returns_a_failure_again_over_http(tmp_path):
    with serving(tmp_path) as served, served.client("ann") as ann:
        asked = {"question": AGES, "request": "mine"}
        with failing_at(1, BranchError(SECRET), []):
            first = ann.post("/api/ask", json=asked)
        second = ann.post("/api/ask", json=asked)
        assert first.status_code == second.status_code
        assert first.json() == second.json()
        assert SECRET not in first.text
        assert len(served.workspace.explorer("people").ledger.history()) == 1


BUDGETS = ["1e-9", "0.01"] if not LONG else ["1e-9", "1e-6", "0.001", "0.5", "1e9"]
SHAPES = [7, (5, 3)] if not LONG else [1, 2, 7, 300, (5, 7), (1, 9), (33, 20)]


def policies(domain):
    free, moved = bf.policies.AddRemove(domain), bf.policies.Full(domain)
    yield free.per_person(16, count="persons")
    yield moved.per_person(16, count="persons")
    if LONG:
        yield from (free, moved, free.per_person(1000), moved.per_person(3))


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_what_preview_accepts_is_released(name):
    # Hole 1: accepted, charged, and failed on some draws, or on every one.
    tried = 0
    for shape in SHAPES:
        domain = bf.Domain(shape)
        for policy in policies(domain):
            for number, amount in enumerate(BUDGETS):
                for terms in ({"epsilon": amount}, {"rho": amount}):
                    tried += released_if_accepted(name, policy, terms, number)
    assert tried or name == "kmeans"


def released_if_accepted(name, policy, terms, seed):
    """Release the example at a budget if preview accepts it; say whether it did."""
    try:
        mechanism, data = OWN[name].example(policy.domain, policy, 1)
        mechanism = mechanism.at(Budget.stated(**terms))
        if name == "kmeans":
            data = np.zeros(policy.domain.shape, dtype=np.int64)
        data = made_up(policy, data)
    except BlowfishError:
        return False
    with bf.Ledger(None, policy=policy, **terms) as ledger:
        if not ledger.preview(mechanism).accepted:
            return False
        assert not ledger.release(mechanism, data, rng=seed).private
    return True

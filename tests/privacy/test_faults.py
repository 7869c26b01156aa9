"""Failures, interruptions and kills between charge and store, for all that is there.

Whatever happens there, the outcome of a charge is one answer of one draw that anybody
saw anything of. The long form, more budgets and sizes and a kill at every call:

    BLOWFISH_FAULTS=long python -m pytest tests/privacy/test_faults.py
"""

from __future__ import annotations

import inspect
import os
import re
import signal
import traceback
from contextlib import nullcontext
from unittest.mock import patch

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.journal import Journal
from blowfish_fast.apps.cli.main import application
from blowfish_fast.apps.server.keys import CURATOR
from blowfish_fast.audit.choices import instances, selector_names
from blowfish_fast.errors import BlowfishError, FailedDrawError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import data_for
from blowfish_fast.mechanisms.registry import MECHANISMS, OWN
from blowfish_fast.release.release import HistogramRelease
from tests.apps.cli.asking import RUN
from tests.apps.server.serving import AGES, serving

LONG = os.environ.get("BLOWFISH_FAULTS") == "long"
NAMES = sorted(OWN)
SECRET = "which branch was taken"
STEPS = ["checking", "charged", "drawing", "stored"]
KINDS = ("select", "measure", "measure_roughly", "refine", "list_above")

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
    return mechanism, data_for(made, data)


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
        def call(self, *arguments, **options):
            result = right(self, *arguments, **options)
            if not self.dry_run:
                seen.append(number)
                if len(seen) == number:
                    if problem is die:
                        die()
                    raise problem
            return result

        return call

    return patch.multiple(
        Handle, **{kind: failing(getattr(Handle, kind)) for kind in KINDS}
    )


def die(*_arguments, **_options):
    os.kill(os.getpid(), signal.SIGKILL)


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


def killed(path, mechanism, data, request, dying):
    """Release in a forked process that dies on the way; return whether it did."""
    child = os.fork()
    if child == 0:
        try:
            with dying(), bf.Ledger(path) as ledger:
                ledger.release(mechanism, data, request, vouched=True)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def dying_at_call(number):
    """Let call `number` of the handle kill the process after it has drawn."""
    return lambda: failing_at(number, die, [])


def dying_in(owner, name, *, after=False):
    """Let a function kill the process, or do its work first."""
    right = getattr(owner, name)

    def call(*arguments, **options):
        if after:
            right(*arguments, **options)
        die()

    return lambda: patch.object(owner, name, call)


def kills(mechanism):
    """Yield every step between charge and store, and how to die there."""
    yield "charged", dying_in(bf.Ledger, "_draw")
    for number in range(1, 40 if LONG else 3):
        yield f"call {number}", dying_at_call(number)
    yield "pack", dying_in(type(mechanism), "_published")
    yield "packed", dying_in(type(mechanism), "_published", after=True)
    yield "store", dying_in(Journal, "store_together")
    yield "stored", dying_in(Journal, "store_together", after=True)


def check_kills(mechanism, data, path):
    """Kill a release at every step; what a retry returns is the one answer."""
    with opened(path, mechanism) as ledger:
        # What is compiled is loaded here, once, and not by every child.
        ledger.release(mechanism, data, vouched=True)
        for step, dying in kills(mechanism):
            if not killed(path, mechanism, data, step, dying):
                # The recipe has no such call, and has answered.
                assert step.startswith("call ")
                assert step != "call 1"
                continue
            before = ledger.replay(step)
            state = ledger.entry(step).state
            assert state == ("stored" if step == "stored" else "reserved")
            spent = ledger.spent
            answer = ledger.release(mechanism, data, step, vouched=True)
            assert before is None or same(before, answer)
            assert same(ledger.replay(step), answer)
            assert ledger.spent == spent
        ledger.verify()


@pytest.mark.long
@posix
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_kill_between_charge_and_store_leaves_one_answer(name, tmp_path):
    check_kills(*admitted(name), tmp_path / "ledger")


class Choosing(Mechanism):
    """Makes one private choice, and tells nothing of it."""

    name = "choosing"

    def __init__(self, policy, selector):
        super().__init__(policy, bf.workloads.Identity(policy.domain), epsilon=1)
        self.selector = selector

    def _run(self, private):
        private.select(self.selector, budget=self.budget)
        return Outcome(np.zeros(self.domain.size), [])


def choices(name):
    """Yield recipes of a single choice, on a line and on a square."""
    for shape in (4, (2, 2)):
        policy = bf.policies.AddRemove(bf.Domain(shape))
        for selector in instances(name, policy)[: None if LONG else 1]:
            mechanism = Choosing(policy, selector)
            try:
                mechanism.check_feasible()
                mechanism.release(np.ones(shape, dtype=np.int64), rng=1)
            except BlowfishError:
                continue
            yield mechanism, np.arange(4).reshape(policy.domain.shape)


def failing_stream(number, problem, seen):
    """Let the n-th stream of noise that is opened fail: inside a choice."""
    right = Randomness.stream

    def stream(self):
        seen.append(number)
        if len(seen) == number:
            raise problem
        return right(self)

    return patch.object(Randomness, "stream", stream)


def failure_of(ledger, mechanism, data, asked):
    """Return all that is shown of a failed release; None if it was answered."""
    try:
        ledger.release(mechanism, data, asked, vouched=True)
    except FailedDrawError as problem:
        return "".join(traceback.format_exception(problem))
    return None


@pytest.mark.parametrize("name", selector_names())
def test_a_failure_in_any_choice_is_the_outcome_of_its_charge(name, tmp_path):
    tried = 0
    for place, (mechanism, data) in enumerate(choices(name)):
        with opened(tmp_path / f"{place}", mechanism) as ledger:
            for number, breaking in enumerate([failing_at, *[failing_stream] * 3]):
                asked, calls = f"{number}", []
                with breaking(max(number, 1), BranchError(SECRET), calls):
                    told = failure_of(ledger, mechanism, data, asked)
                    if told is None:
                        # It opens fewer streams.
                        assert number > 1
                        continue
                    assert SECRET not in told
                    tried, drawn = tried + 1, len(calls)
                    with pytest.raises(FailedDrawError):
                        ledger.release(mechanism, data, asked, vouched=True)
                    assert len(calls) == drawn
                assert ledger.entry(asked).state == "stored"
            with (
                failing_stream(1, KeyboardInterrupt(), []),
                pytest.raises(KeyboardInterrupt) as caught,
            ):
                ledger.release(mechanism, data, "stopped", vouched=True)
            shown = "".join(traceback.format_exception(caught.value))
            assert "selectors" not in shown
            assert ledger.entry("stopped").state == "reserved"
            assert ledger.release(mechanism, data, "stopped", vouched=True).private
    assert tried > 1


@pytest.mark.long
@posix
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", selector_names())
def test_a_kill_in_any_choice_leaves_one_answer(name, tmp_path):
    mechanism, data = next(choices(name))
    check_kills(mechanism, data, tmp_path / "ledger")


def test_every_way_to_draw_is_among_those_that_fail_here():
    public = {name for name in vars(Handle) if not name.startswith("_")}
    drawing = {name for name in public if "budget" in _parameters(Handle, name)}
    # Preparing works out the noise from public values, and draws none.
    assert drawing == {*KINDS, "prepare"}


def _parameters(owner, name):
    method = getattr(owner, name)
    return inspect.signature(method).parameters if callable(method) else ()


def test_a_failed_experiment_is_the_outcome_of_its_charge_with_its_words():
    # A seed is taken in memory only, and protects nobody: what failed may be shown.
    mechanism, data = admitted("laplace")
    with opened(None, mechanism) as ledger:
        calls = []
        with failing_at(1, BranchError(SECRET), calls):
            for _ in range(2):
                with pytest.raises(BranchError, match=SECRET):
                    ledger.release(mechanism, data, "question", rng=1)
        assert len(calls) == 1
        assert ledger.entry("question").state == "stored"
        with pytest.raises(BranchError, match=SECRET):
            ledger.replay("question")


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


def broken(owner, name):
    """Let a function fail after it has done its work."""
    right = getattr(owner, name)

    def call(*arguments, **options):
        right(*arguments, **options)
        raise BranchError(SECRET)

    return patch.object(owner, name, call)


HTTP_FAULTS = {
    "draw": lambda: failing_at(1, BranchError(SECRET), []),
    "noise": lambda: failing_stream(1, BranchError(SECRET), []),
    "pack": lambda: broken(Mechanism, "_published"),
    "bytes": lambda: broken(HistogramRelease, "to_bytes"),
}
"""Steps between charge and store; what fails there is the outcome of the charge."""

DURATIONS = re.compile(
    r'"(time|ms)": ("[^"]*"|[0-9.]+)|"[0-9T:.+-]{20,}"|'
    r"blowfish_(request_seconds_|disk_free_bytes ).*"
)


def seen_by_others(served):
    """Return all that analysts, monitors and curators see of a question of ann's."""
    name = "watcher"
    served.secrets[name] = served.workspace.keys.make("monitor", name)
    seen = {}
    with served.client(name) as client:
        seen["metrics"] = client.get("/metrics").text
    for who in ("bob", CURATOR):
        with served.client(who) as client:
            seen[f"{who}: tables"] = client.get("/api/tables").text
            seen[f"{who}: explain"] = client.post(
                "/api/explain", json={"question": PAID}
            ).text
            seen[f"{who}: history"] = client.get(
                "/api/history", params={"table": "people"}
            ).text
    for path in sorted((served.workspace.folder / "logs").iterdir()):
        # Ports differ from run to run; so do times.
        seen[path.name] = re.sub(r'"origin": "[^"]*", ', "", path.read_text())
    return {place: DURATIONS.sub("", text) for place, text in seen.items()}


PAID = {**AGES, "cost": {"epsilon": 0.25}}


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """What others see where a question was answered, and answered again."""
    with serving(tmp_path_factory.mktemp("right")) as served:
        with served.client("ann") as ann:
            for _ in range(2):
                assert ann.post("/api/ask", json={"question": PAID}).status_code == 200
        return seen_by_others(served)


@pytest.mark.long
@pytest.mark.parametrize("step", sorted(HTTP_FAULTS))
def test_over_http_a_failure_is_one_answer_that_others_take_for_any_other(
    step, tmp_path, answered
):
    # Counted as "refused" and logged as a failure, though it was charged.
    with serving(tmp_path) as served:
        with served.client("ann") as ann:
            with HTTP_FAULTS[step]():
                first = ann.post("/api/ask", json={"question": PAID})
            second = ann.post("/api/ask", json={"question": PAID})
            assert first.status_code == second.status_code == 400
            assert first.json() == second.json()
            assert first.json()["error"]["kind"] == "FailedDrawError"
            assert SECRET not in first.text
        seen = seen_by_others(served)
    for place, text in answered.items():
        assert seen[place] == text, place


@pytest.mark.long
def test_over_http_a_certificate_that_failed_is_logged_like_any_other(tmp_path):
    logged = []
    for fails in (False, True):
        folder = tmp_path / f"{fails}"
        folder.mkdir()
        with serving(folder) as served, served.client("ann") as ann:
            asked = ann.post("/api/ask", json={"question": PAID}).json()
            terms = {"table": "people", "request": asked["request"], "epsilon": 0.5}
            with HTTP_FAULTS["draw"]() if fails else nullcontext():
                bought = ann.post("/api/certify", json=terms)
            assert bought.status_code == (400 if fails else 200), bought.text
            path = served.workspace.folder / "logs" / "audit.log"
            logged.append(DURATIONS.sub("", path.read_text()))
    assert logged[0] == logged[1]


def test_over_http_a_store_that_breaks_off_is_finished_under_its_charge(tmp_path):
    with serving(tmp_path) as served, served.client("ann") as ann:
        with patch.object(Journal, "store_together", side_effect=BranchError(SECRET)):
            first = ann.post("/api/ask", json={"question": PAID})
        assert (first.status_code, SECRET in first.text) == (500, False)
        second = ann.post("/api/ask", json={"question": PAID})
        third = ann.post("/api/ask", json={"question": PAID})
        assert second.json()["values"] == third.json()["values"]
        (charge,) = served.workspace.explorer("people").ledger.history()
        assert float(charge.epsilon) == 0.25


BUDGETS = ["1e-9", "0.01"] if not LONG else ["1e-9", "1e-6", "0.001", "0.5", "1e6"]
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
        data = data_for(policy, data)
        if name == "kmeans" and isinstance(data, np.ndarray):
            # A plain array would be taken for points.
            data = bf.Histogram(policy.domain, data)
    except BlowfishError:
        return False
    with bf.Ledger(None, policy=policy, **terms) as ledger:
        if not ledger.preview(mechanism).accepted:
            return False
        assert not ledger.release(mechanism, data, rng=seed).private
    return True

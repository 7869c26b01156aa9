"""Nothing leaves the stretch from the first look to the store but its result."""

from __future__ import annotations

import signal
import threading
import traceback
import warnings

import numpy as np
import pytest

from blowfish_fast._support.compiler_watch import COMPILER
from blowfish_fast.errors import FailedDrawError
from blowfish_fast.measure import unseen
from blowfish_fast.measure.unseen import run_unseen


class BranchFailedError(Exception):
    """A failure that would tell which branch a draw had taken."""


def failing():
    raise BranchFailedError("the rectangles cannot be drawn")


def test_what_went_wrong_in_a_secure_draw_is_not_told():
    with pytest.raises(FailedDrawError) as caught:
        run_unseen(failing)
    shown = "".join(traceback.format_exception(caught.value))
    assert "BranchFailedError" not in shown
    assert "rectangles" not in shown
    assert caught.value.__context__ is None
    assert str(caught.value) == str(FailedDrawError())


def test_an_experiment_shows_its_errors_as_they_are():
    with pytest.raises(BranchFailedError, match="cannot be drawn"):
        run_unseen(failing, secure=False)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit])
def test_an_interruption_passes_without_the_frames_of_the_draw(kind):
    def interrupted():
        try:
            failing()
        except BranchFailedError:
            raise kind from None

    with pytest.raises(kind) as caught:
        run_unseen(interrupted)
    shown = "".join(traceback.format_exception(caught.value))
    assert "in interrupted" not in shown
    assert "in failing" not in shown
    assert "BranchFailedError" not in shown


def test_numbers_that_overflow_are_not_warned_of():
    def overflow():
        return np.array([1e300]) * np.array([1e300]) - np.inf

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(run_unseen(overflow)).all()


def test_no_library_warns_of_what_was_drawn():
    # A warning that a filter turns into an error made some draws fail, others not.
    def warn():
        warnings.warn("which branch was taken", RuntimeWarning, stacklevel=1)
        return run_unseen(lambda: warnings.warn("again", UserWarning, stacklevel=1))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_unseen(warn)
        with pytest.raises(RuntimeWarning, match="which branch"):
            run_unseen(warn, secure=False)


def test_one_thread_does_not_end_the_silence_of_another():
    first_in, first_out = threading.Event(), threading.Event()

    def first():
        first_in.set()
        assert first_out.wait(60)

    def second():
        thread.join()
        warnings.warn("which branch was taken", RuntimeWarning, stacklevel=1)
        return "drawn"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        thread = threading.Thread(target=run_unseen, args=(first,))
        thread.start()
        assert first_in.wait(60)
        first_out.set()
        assert run_unseen(second) == "drawn"
        assert list(warnings.filters) == before


def test_a_forked_process_forgets_the_draws_of_other_threads(monkeypatch):
    monkeypatch.setattr(unseen, "_SILENCES", [warnings.catch_warnings()])
    monkeypatch.setattr(unseen, "_LOCK", unseen._LOCK)
    unseen._LOCK.acquire()
    try:
        held = unseen._LOCK
        unseen._forget_other_threads()
        assert run_unseen(lambda: "drawn") == "drawn"
        assert unseen._SILENCES == []
    finally:
        held.release()


def test_nobody_is_told_that_a_kernel_is_compiled_for_a_private_branch(monkeypatch):
    told = []
    monkeypatch.setattr(COMPILER, "tell", lambda: told.append("compiling"))

    def compile_one():
        COMPILER.begin()
        COMPILER.end()

    run_unseen(compile_one)
    assert told == []
    compile_one()
    assert told == ["compiling"]


def test_an_interrupted_experiment_is_seen_as_it_is():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_unseen(interrupted, secure=False)


@pytest.mark.parametrize("stated", ["3001 people", 3001, True, 0, None])
def test_a_draw_that_ends_the_program_has_failed(stated):
    def ended():
        raise SystemExit(stated)

    with pytest.raises(FailedDrawError) as left:
        run_unseen(ended)
    assert "SystemExit" not in "".join(traceback.format_exception(left.value))


@pytest.mark.parametrize(("stated", "code"), [(143, 143), ("stopped", 1)])
def test_whoever_stops_the_program_by_a_signal_is_obeyed(stated, code):
    def stop(_number, _frame):
        raise SystemExit(stated)

    def drawn():
        signal.raise_signal(signal.SIGTERM)
        return "drawn"

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(SystemExit) as left:
            run_unseen(drawn)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert left.value.code == code
    assert "in drawn" not in "".join(traceback.format_exception(left.value))


def test_an_interruption_leaves_without_words():
    def ended():
        raise KeyboardInterrupt("3001 people")

    with pytest.raises(KeyboardInterrupt) as left:
        run_unseen(ended)
    assert left.value.args == ()


def test_an_interruption_carries_nothing_that_was_written_on_it():
    def ended():
        stopped = KeyboardInterrupt()
        stopped.add_note("3001 people")
        stopped.people = 3001
        raise stopped

    with pytest.raises(KeyboardInterrupt) as left:
        run_unseen(ended)
    assert vars(left.value) == {}
    assert "3001" not in "".join(traceback.format_exception(left.value))


def test_a_group_of_interruptions_is_a_failed_draw():
    def ended():
        raise BaseExceptionGroup("3001 people", [KeyboardInterrupt("3001")])

    with pytest.raises(FailedDrawError) as left:
        run_unseen(ended)
    assert "3001" not in "".join(traceback.format_exception(left.value))

"""The stretch from the first look at counts to the stored answer, which nobody sees.

What happens there depends on the data and on draws that are not paid for one by one, so
nothing but its result may leave it (Lemma HA4 of ``docs/proofs/handle.md``):

    public checks -> charge -> [ look, draw, fit, pack, store ] -> answer
                                 `run_unseen` draws this bracket
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from blowfish_fast._support.compiler_watch import COMPILER
from blowfish_fast.errors import FailedDrawError

Result = TypeVar("Result")

_LOCK = threading.Lock()
_SILENCES: list[warnings.catch_warnings[Any]] = []
"""One for each draw at work, in any thread: the first silences, the last ends it."""


def _forget_other_threads() -> None:
    """After a fork: threads that drew, and may have held the lock, are not there."""
    global _LOCK
    _LOCK = threading.Lock()
    _SILENCES.clear()


with suppress(AttributeError):
    # Where there are no forks, no thread is lost.
    os.register_at_fork(after_in_child=_forget_other_threads)


def run_unseen(draw: Callable[[], Result], *, secure: bool = True) -> Result:
    """Run `draw`, and let nothing out of it but its result: Lemma HA4.

    Parameters
    ----------
    draw : callable
        Looks at counts, draws, and returns what is published. It is handed nothing
        that calls back: no progress, no log.
    secure : bool
        Whether the noise is secret. A seeded draw protects nobody, so whoever
        experiments sees its errors as they are.

    Returns
    -------
    object
        What `draw` returned.

    Raises
    ------
    FailedDrawError
        In fixed words, whatever went wrong inside: which exception it was, its words
        and the place where it arose may depend on the draw.

    Notes
    -----
    An interruption (Ctrl-C, or whatever else is no `Exception`) passes, since its
    moment is the caller's choice, but without the frames that would tell which branch
    the draw had taken, and without words. Nothing of the draw is left then: it was
    dropped unseen. ``sys.exit(...)`` ends the program if a handler of a signal calls
    it; a draw that calls it has failed.

    Examples
    --------
    >>> run_unseen(lambda: 7)
    7
    """
    stopped: BaseException
    try:
        # Numbers that overflow would be warned of, depending on the draw, and so would
        # a kernel that is compiled for the branch that was chosen.
        with np.errstate(all="ignore"), COMPILER.in_silence():
            return _without_warnings(draw) if secure else draw()
    except Exception:
        if not secure:
            raise
        stopped = FailedDrawError()
    except BaseException as interruption:
        if not secure:
            raise
        stopped = _without_words(interruption)
    # Outside of the handlers, where no exception of the draw is at hand any more: it
    # would be printed as the context of this one, with its words and its frames.
    stopped.__context__ = stopped.__cause__ = None
    raise stopped.with_traceback(None)


def _without_words(interruption: BaseException) -> BaseException:
    """Return an interruption that says nothing of the draw that it broke off."""
    chosen = ended_by_signal(interruption)
    # A draw that ends the program would choose that moment, and a code, by what it saw;
    # a group keeps its words and its parts, which nobody can take from it.
    if isinstance(interruption, SystemExit | BaseExceptionGroup) and not chosen:
        return FailedDrawError()
    interruption.args = ()
    # Notes, and whatever else was written on it, are kept here.
    interruption.__dict__.clear()
    if isinstance(interruption, SystemExit) and not isinstance(interruption.code, int):
        interruption.code = 1
    return interruption


def ended_by_signal(problem: BaseException) -> bool:
    """Return whether a handler of a signal, such as SIGTERM, ends the program.

    Parameters
    ----------
    problem : BaseException
        What was raised, with the frames that it has passed.

    Returns
    -------
    bool
        Whether it is a `SystemExit` that has passed the code of such a handler.
    """
    if not isinstance(problem, SystemExit):
        return False
    handlers = map(signal.getsignal, signal.valid_signals())
    # A bound method leads to its function.
    functions = [getattr(handler, "__func__", handler) for handler in handlers]
    codes = {getattr(function, "__code__", None) for function in functions} - {None}
    frames = traceback.walk_tb(problem.__traceback__)
    return any(frame.f_code in codes for frame, _ in frames)


def _without_warnings(draw: Callable[[], Result]) -> Result:
    """Run `draw` while nobody is warned of anything, by no library that it uses.

    Filters of warnings belong to the whole process. Were each draw to put back those
    that it met, one thread would end the silence of another, or keep it for ever.
    """
    with _LOCK:
        if not _SILENCES:
            silence = warnings.catch_warnings()
            silence.__enter__()
            warnings.simplefilter("ignore")
        else:
            silence = _SILENCES[0]
        _SILENCES.append(silence)
    try:
        return draw()
    finally:
        with _LOCK:
            last = _SILENCES.pop()
            if not _SILENCES:
                last.__exit__(None, None, None)

"""The stretch from the first look at counts to the stored answer, which nobody sees.

What happens there depends on the data and on draws that are not paid for one by one, so
nothing but its result may leave it (Lemma HA4 of ``docs/proofs/handle.md``):

    public checks -> charge -> [ look, draw, fit, pack, store ] -> answer
                                 `run_unseen` draws this bracket
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from blowfish_fast._support.compiler_watch import COMPILER
from blowfish_fast.errors import FailedDrawError

Result = TypeVar("Result")


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
    the draw had taken. Nothing of the draw is left then: it was dropped unseen.

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
            return draw()
    except Exception:
        if not secure:
            raise
        stopped = FailedDrawError()
    except BaseException as interruption:
        if not secure:
            raise
        stopped = interruption
    # Outside of the handlers, where no exception of the draw is at hand any more: it
    # would be printed as the context of this one, with its words and its frames.
    stopped.__context__ = stopped.__cause__ = None
    raise stopped.with_traceback(None)

"""Faults of code that others wrote are said to be theirs, in every face.

What a plug-in does wrong may be any exception. Around every call of one stands
`blamed_on`: a refusal of ours passes, anything else leaves as a `PlugInError` that
names the plug-in, with the exception as its cause. It stands outside of the stretch
that nobody sees: what fails there leaves it as a `FailedDrawError`, in fixed words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from blowfish_fast.errors import BlowfishError, PlugInError


@contextmanager
def blamed_on(places: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Run a block in which code from outside the package may be called.

    Parameters
    ----------
    places : callable
        Returns what was defined outside, each as ``"package:Class"``; asked only where
        something failed. Where it returns nothing the fault is ours, and passes as it
        is.

    Yields
    ------
    None
        The block runs.

    Raises
    ------
    PlugInError
        If the block failed, and something in it was defined outside.

    Examples
    --------
    >>> with blamed_on(lambda: ["mine:Mechanism"]):
    ...     raise ValueError("no widths")
    Traceback (most recent call last):
    ...
    blowfish_fast.errors.PlugInError: mine:Mechanism, defined outside ...
    """
    try:
        yield
    except (BlowfishError, MemoryError):
        raise
    except Exception as problem:
        outside = places()
        if not outside:
            raise
        raise PlugInError(
            f"{', '.join(outside)}, defined outside blowfish_fast, failed",
            received=f"{type(problem).__name__}: {problem}",
            way_out="The fault is in that code, or in how it calls the package: mend "
            "it there, or ask its author",
        ) from problem

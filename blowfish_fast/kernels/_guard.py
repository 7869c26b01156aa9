"""What public kernels are called through: odd arguments end in a reasoned refusal."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from blowfish_fast.errors import BlowfishError, InputError

from ._arguments import refuse_other_arrays

FAILURES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a text, None or a ragged list in the place of an array provokes."""


def refuse_odd_arguments(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that raises `InputError` for what it cannot read.

    Wrong names and numbers of arguments stay a TypeError.
    """
    checked, signature = refuse_other_arrays(kernel), inspect.signature(kernel)

    @functools.wraps(kernel)
    def guarded(*given: Any, **named: Any) -> Any:
        try:
            return checked(*given, **named)
        except BlowfishError:
            raise
        except FAILURES as problem:
            signature.bind(*given, **named)
            raise InputError(
                f"{kernel.__name__} takes numbers and arrays of real numbers as its "
                f"docstring says; received something else ({problem})"
            ) from problem

    return guarded

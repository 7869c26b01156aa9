"""What public kernels take: arrays of whole numbers, floats and truth values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.errors import InputError

NUMBERS = "biuf"
"""Kinds of numpy dtypes that hold real numbers."""


def refuse_other_arrays(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that refuses arrays of objects, texts, dates and complex numbers.

    A cast would read some of them silently, and fail on others with an error of numpy.
    """

    @functools.wraps(kernel)
    def checked(*given: Any, **named: Any) -> Any:
        # A microsecond counts here: small domains ask for a kernel thousands of times.
        for one in (*given, *named.values()) if named else given:
            if isinstance(one, np.ndarray):
                if one.dtype.kind not in NUMBERS:
                    _refuse(one.dtype)
            elif type(one) is list or type(one) is tuple:
                _check_list(one)
        return kernel(*given, **named)

    return checked


def _refuse(dtype: Any) -> NoReturn:
    raise InputError(
        f"kernels take arrays of real numbers; received an array of {dtype}"
    )


def _check_list(values: list[Any] | tuple[Any, ...]) -> None:
    """Refuse a list of texts or complex numbers.

    Ragged lists and lists of arrays are the kernel's to refuse or to read.
    """
    if all(isinstance(one, str | bytes | complex | int | float) for one in values):
        try:
            dtype = np.asarray(values).dtype
        except (ValueError, OverflowError):
            return
        if dtype.kind not in NUMBERS:
            _refuse(dtype)


def rises(edges: AnyArray, last: int, step: int = 0) -> bool:
    """Return whether edges or pointers rise from 0 to `last`, by `step` at least."""
    return (
        edges.ndim == 1
        and edges.size > 0
        and edges[0] == 0
        and edges[-1] == last
        and bool((np.diff(edges) >= step).all())
    )


def check_corners(lows: AnyArray, highs: AnyArray, axes: int) -> None:
    """Refuse corners of boxes that are not two tables with a column for each axis."""
    if lows.ndim != 2 or lows.shape != highs.shape or lows.shape[1] != axes:
        raise InputError(
            f"corners must have shape (boxes, {axes}), one column per axis; received "
            f"{lows.shape} and {highs.shape}"
        )

"""What public kernels take: arrays of whole numbers, floats and truth values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from blowfish_fast.errors import InputError

NUMBERS = "biuf"
"""Kinds of numpy dtypes that hold real numbers."""


def refuse_other_arrays(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that refuses arrays of objects, texts, dates and complex numbers.

    A cast would read some of them silently, and fail on others with an error of numpy.

    Examples
    --------
    >>> refuse_other_arrays(np.sum)(np.array([1j]))
    Traceback (most recent call last):
    ...
    blowfish_fast.errors.InputError: kernels take arrays of real numbers; received an
    array of complex128
    """

    @functools.wraps(kernel)
    def checked(*given: Any, **named: Any) -> Any:
        for one in (*given, *named.values()) if named else given:
            if isinstance(one, list | tuple) and type(one) in (list, tuple):
                _check(_kind_of_list(one))
            elif isinstance(one, np.ndarray):
                _check(one.dtype)
        return kernel(*given, **named)

    return checked


def _check(dtype: Any) -> None:
    if dtype is not None and dtype.kind not in NUMBERS:
        raise InputError(
            f"kernels take arrays of real numbers; received an array of {dtype}"
        )


def _kind_of_list(values: list[Any] | tuple[Any, ...]) -> Any:
    """Return the dtype of a list of numbers; None where it holds other things.

    Ragged lists and lists of arrays are the kernel's to refuse or to read.
    """
    if not all(isinstance(one, str | bytes | complex | int | float) for one in values):
        return None
    try:
        return np.asarray(values).dtype
    except (ValueError, OverflowError):
        return None

"""Checks at the door: what enters the package is right, or refused with a reason.

Epsilon is read as the decimal that was typed and stays a fraction up to the noise
scale, because shares of floating-point numbers do not add up to the whole.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from blowfish_fast.errors import (
    BlowfishError,
    CountsError,
    EpsilonError,
    InputError,
    nearest,
)

from .typing import AnyArray, IntArray

Held = TypeVar("Held", bound=AnyArray)
P = ParamSpec("P")
R = TypeVar("R")
EpsilonLike = float | int | Fraction | Decimal | str

SMALLEST_EPSILON = Fraction(1, 10**9)
LARGEST_EPSILON = Fraction(10**9)
LONGEST_QUOTE = 60
LARGEST = sys.float_info.max


def as_fraction(value: Any, name: str) -> Fraction:
    """Read a number as the decimal that was typed: 0.1 is one tenth.

    Parameters
    ----------
    value : object
        What was received.
    name : str
        What the message calls it.

    Returns
    -------
    Fraction
        The number, exactly.

    Raises
    ------
    EpsilonError
        If it is no finite number.
    """
    if isinstance(value, bool | np.bool_):
        raise EpsilonError(f"{name} must be a number, not the truth value {value!r}")
    if isinstance(value, Fraction):
        return value
    # A timedelta of numpy calls itself a whole number.
    if not isinstance(value, np.timedelta64) and isinstance(value, numbers.Integral):
        return Fraction(int(value))
    if isinstance(value, str | Decimal):
        with suppress(ValueError, ZeroDivisionError):
            return Fraction(_short(str(value)))
    elif not isinstance(value, list | tuple):
        try:
            number = float(value) if np.ndim(value) == 0 else math.nan
        except (TypeError, ValueError):
            number = math.nan
        if math.isfinite(number):
            # A float32 stands for the decimal it prints, not for its double.
            text = str(value) if isinstance(value, np.floating) else repr(number)
            return Fraction(text)
    raise EpsilonError(
        f"{name} must be a finite number such as 0.1; received {value!r}"
    )


def float_above(value: Fraction | float) -> float:
    """Return the nearest double that is not below `value`: more noise, never less."""
    rounded = float(value)
    return rounded if Fraction(rounded) >= value else math.nextafter(rounded, math.inf)


def _short(text: str) -> str:
    """Refuse a text that would become a fraction of a billion digits."""
    _, exponent, power = text.lower().partition("e")
    if len(text) > 1000 or (exponent and abs(int(power)) > 400):
        raise ValueError("too long")
    return text


def as_epsilon(value: Any, name: str = "epsilon") -> Fraction:
    """Read a privacy parameter: a positive, finite number.

    Parameters
    ----------
    value : object
        What was received.
    name : str
        What the message calls it.

    Returns
    -------
    Fraction
        The parameter, exactly.

    Raises
    ------
    EpsilonError
        If it is no number between 1e-9 and 1e9.
    """
    epsilon = as_fraction(value, name)
    if epsilon <= 0:
        raise EpsilonError(
            f"{name} must be greater than 0; received {value!r}. "
            "Common choices lie between 0.01 and 2"
        )
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise EpsilonError(
            f"{name} must lie between 1e-9 and 1e9; received {value!r}. Below, the "
            "noise exceeds every count; above, nothing is protected"
        )
    return epsilon


def quoted(value: Any) -> str:
    """Return how a message quotes a value: its type alone where it may hold records."""
    plain = value is None or isinstance(value, bool | numbers.Number)
    short = isinstance(value, str) and len(value) <= LONGEST_QUOTE
    if plain or short or type(value).__module__.startswith(f"{__package__}."):
        return repr(value)
    return f"a {type(value).__name__}"


def as_whole(
    value: Any,
    name: str,
    least: int | None = None,
    most: int | None = None,
    *,
    way_out: str = "",
) -> int:
    """Read one whole number within limits; a float may hold it.

    Parameters
    ----------
    value : object
        What was received.
    name : str
        What the message calls it.
    least : int, optional
        The smallest that is allowed; by default any.
    most : int, optional
        The largest that is allowed; heeded only beside `least`.
    way_out : str
        What the message advises.

    Returns
    -------
    int
        The number.

    Raises
    ------
    InputError
        If it is no whole number, or outside the limits.
    """
    number = _one_integer(value)
    if number is None:
        rule = "be one whole number"
    elif least is not None and most is not None and not least <= number <= most:
        rule = f"lie between {least} and {most}"
    elif least is not None and number < least:
        rule = f"be at least {least}"
    else:
        return number
    raise InputError(
        f"{name} must {rule}", received=quoted(value), way_out=way_out or None
    )


def _one_integer(value: Any) -> int | None:
    try:
        number = as_integers(value, "it")
    except InputError:
        return None
    return int(number) if number.ndim == 0 else None


def as_positive(value: Any, name: str) -> float:
    """Read a positive, finite number.

    Parameters
    ----------
    value : object
        What was received.
    name : str
        What the message calls it.

    Returns
    -------
    float
        The number.

    Raises
    ------
    InputError
        If it is no positive, finite number.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 < number < math.inf:
        raise InputError(f"{name} must be a positive number; received {quoted(value)}")
    return number


def as_share(value: Any, name: str, default: Fraction | None = None) -> Fraction:
    """Read a share of epsilon: strictly between 0 and 1; None for the default.

    Parameters
    ----------
    value : object
        What was received.
    name : str
        What the message calls it.
    default : Fraction, optional
        What None stands for.

    Returns
    -------
    Fraction
        The share, exactly.

    Raises
    ------
    EpsilonError
        If it does not lie strictly between 0 and 1.
    """
    if value is None and default is not None:
        return default
    share = as_fraction(value, name)
    if not 0 < share < 1:
        raise EpsilonError(
            f"{name} must lie strictly between 0 and 1; received {value!r}. "
            "It is the part of epsilon spent on that step"
        )
    return share


def as_number(value: Any, name: str, least: float, most: float = LARGEST) -> float:
    """Read one finite number within limits.

    Parameters
    ----------
    value : object
        What was received.
    name : str
        What the message calls it.
    least : float
        The smallest that is allowed.
    most : float
        The largest that is allowed; by default any finite number.

    Returns
    -------
    float
        The number.

    Raises
    ------
    EpsilonError
        If it is no finite number.
    InputError
        If it lies outside the limits.
    """
    number = as_fraction(value, name)
    if least <= number <= most:
        return float(number)
    rule = f"lie between {least:g} and {most:g}"
    if most == LARGEST:
        rule = f"be at least {least:g}"
    raise InputError(f"{name} must {rule}", received=quoted(value))


def as_choice(
    value: Any,
    name: str,
    offered: Sequence[str | None],
    error: type[InputError] = InputError,
) -> Any:
    """Read one of a few words, or None where it is offered.

    Parameters
    ----------
    value : object
        What was received.
    name : str
        What the message calls it.
    offered : sequence of str or None
        The words that are allowed.
    error : type of InputError
        What is raised.

    Returns
    -------
    str or None
        The word.

    Raises
    ------
    InputError
        If it is none of them.
    """
    if (value is None or isinstance(value, str)) and value in offered:
        return value
    words = ["None" if choice is None else f'"{choice}"' for choice in offered]
    listed = " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
    raise error(f"{name} must be {listed}", received=quoted(value))


def as_truth(value: Any, name: str) -> bool:
    """Read True or False; a text or an array is neither.

    Parameters
    ----------
    value : object
        What was received.
    name : str
        What the message calls it.

    Returns
    -------
    bool
        The truth value.

    Raises
    ------
    InputError
        If it is neither True nor False.
    """
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is True or False", received=quoted(value))
    return bool(value)


def as_confidence(value: Any) -> float:
    """Read a confidence: strictly between 0 and 1."""
    # Intervals are left by the rest, which must not be rounded to 0 or 1 either.
    if type(value) is float and 0.0 < 1.0 - value < 1.0:
        return value
    read = as_fraction(value, "confidence")
    confidence = float(read) if 0 < read < 1 else 0.0
    if not 0.0 < 1.0 - confidence < 1.0:
        raise InputError(
            f"confidence must lie strictly between 0 and 1; received {value!r}. "
            "Use 0.95 for intervals that hold 95 % of the noise"
        )
    return confidence


def as_integers(
    values: Any, name: str, error: type[InputError] = InputError
) -> IntArray:
    """Read whole numbers of any dtype; floats may hold them. Refuse with `error`.

    Parameters
    ----------
    values : array_like
        What was received.
    name : str
        What the message calls it.
    error : type of InputError
        What is raised.

    Returns
    -------
    ndarray of int64
        The numbers, in the shape that they came in.

    Raises
    ------
    InputError
        If one of them is not whole, or does not fit in 64 bits.
    """
    rule = f"{name} must be whole numbers"
    with malformed_as(error, rule):
        array: AnyArray = np.asarray(values)
    if array.dtype.kind == "b":
        raise error(rule, received="truth values")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise error(f"{name} must fit in 64 signed bits", received=array.max())
    if array.dtype.kind in "iu" or array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind != "f":
        raise error(rule, received=f"dtype {array.dtype}")
    whole = np.isfinite(array) & (np.abs(array) < 2.0**63)
    whole &= np.floor(np.where(whole, array, 0.0)) == array
    if not whole.all():
        raise error(rule, received=repr(array[~whole].flat[0]))
    return array.astype(np.int64)


def as_parts(values: Any, cells: int) -> IntArray | None:
    """Read the part of each cell, numbered from 0; numpy.bincount trusts them later.

    Parameters
    ----------
    values : array_like, optional
        The number of each cell's part; None for no parts.
    cells : int
        How many cells there are.

    Returns
    -------
    ndarray of int64, or None
        The parts.

    Raises
    ------
    InputError
        If they do not number each cell.
    """
    if values is None:
        return None
    parts = as_integers(values, "parts")
    if parts.shape != (cells,) or parts.min() < 0 or parts.max() >= cells:
        raise InputError(f"parts must number each of the {cells} cells from 0 on")
    return parts


def as_counts(values: Any, shape: tuple[int, ...]) -> IntArray:
    """Read counts over a domain: non-negative whole numbers whose total fits int64.

    Parameters
    ----------
    values : array_like
        What was received.
    shape : tuple of int
        Shape of the domain.

    Returns
    -------
    ndarray of int64
        The counts, contiguous.

    Raises
    ------
    CountsError
        If they are no counts, or have another shape.
    """
    with malformed_as(CountsError, "counts must be an array of whole numbers"):
        array: AnyArray = np.asarray(values)
    if array.shape != shape:
        raise CountsError(
            f"counts must have the shape of the domain, {shape}",
            received=array.shape,
            way_out="Reshape them, or build a Domain of that shape; records are "
            "counted first (Histogram.from_records)",
            code="counts_of_another_shape",
        )
    # Read as unsigned, negative counts are large: one look tells that all is well.
    small = array.dtype == np.int64 and 0 < array.size <= 2**20
    if small and int(array.view(np.uint64).max()) < 2**40:
        return np.ascontiguousarray(array)
    if array.dtype.kind == "O":
        array = _from_objects(array)
    if array.dtype.kind not in "iuf":
        raise CountsError(
            "counts must be numbers",
            received=f"dtype {array.dtype}",
            way_out="Count the records of each cell first (Histogram.from_records)",
            code="counts_not_numbers",
        )
    if array.dtype.kind == "f":
        _check_whole(array)
    if array.dtype.kind != "u" and array.size and array.min() < 0:
        raise CountsError(
            f"counts must not be negative; received {array.min()!s}. "
            "A histogram counts records"
        )
    # The sum of 2^28 counts is checked in floating point, with room to spare.
    if float(np.sum(array, dtype=np.float64)) >= 2.0**62:
        raise CountsError(
            "the total of the counts must stay below 2^62 (4.6e18) so that sums are "
            f"exact in 64 bits; received {float(np.sum(array, dtype=np.float64)):.3g}. "
            "Count in larger units"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def _check_whole(array: AnyArray) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        raise CountsError(
            f"counts must be finite; received {array[~finite].flat[0]!s}. "
            "Decide what a missing count means before the release"
        )
    whole = np.floor(array) == array
    if not whole.all():
        raise CountsError(
            f"counts must be whole numbers; received {array[~whole].flat[0]!s}. "
            "Noise is calibrated to one record, so weights must be rounded first"
        )


def _from_objects(array: AnyArray) -> AnyArray:
    """Python integers too large for int64 arrive as objects, and stay exact."""
    if all(isinstance(value, numbers.Integral) for value in array.flat):
        try:
            return array.astype(np.int64)
        except OverflowError:
            raise CountsError(
                "the total of the counts must stay below 2^62 (4.6e18); received a "
                "count that does not fit 64 bits. Count in larger units"
            ) from None
    raise CountsError(
        "counts must be numbers; received Python objects. "
        "Convert them to an integer array first"
    )


def read_only(array: Held) -> Held:
    """Return an array that nobody can write to any more: it is shared from now on."""
    array.flags.writeable = False
    return array


def as_generator(rng: Any) -> np.random.Generator:
    """Read a seed or a generator, for what is no secret."""
    with malformed_as(InputError, "rng must be a seed or a numpy Generator"):
        return np.random.default_rng(rng)


def check_progress(progress: Any) -> None:
    """Refuse what cannot be called, before anything is charged or drawn."""
    if progress is not None and not callable(progress):
        raise InputError(
            "progress is a function that is called with a text",
            received=quoted(progress),
        )


PROVOKED = ArithmeticError | AttributeError | LookupError | MemoryError
MALFORMED = PROVOKED | RecursionError | TypeError | ValueError


class malformed_as:
    """Turn what malformed values provoke into one deliberate error.

    Parameters
    ----------
    error : type of BlowfishError
        What is raised instead.
    rule : str
        The rule that the values break; the message begins with it.
    """

    def __init__(self, error: type[BlowfishError], rule: str) -> None:
        self.error, self.rule = error, rule

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Guard a function; what it was not declared with is still its own error."""

        @wraps(function)
        def guarded(*arguments: P.args, **named: P.kwargs) -> R:
            try:
                with self:
                    return function(*arguments, **named)
            except self.error as problem:
                cause = problem.__cause__
                if isinstance(cause, TypeError) and _never_began(cause, guarded):
                    hint = _meant(cause, function, named, function.__name__)
                    raise TypeError(f"{cause}{hint}") from None
                raise

        return guarded

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, problem: Any, trace: Any) -> None:
        if problem is None or isinstance(problem, BlowfishError):
            return
        if isinstance(problem, MALFORMED):
            words = f"received something else ({kind.__name__}: {problem})"
            raise self.error(f"{self.rule}; {words}") from problem


def naming_right_words(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that answers a wrong keyword with the nearest right one.

    Parameters
    ----------
    function : callable
        What is called with keywords that people guess.

    Returns
    -------
    callable
        The same function; a `TypeError` about a keyword that it has not got names the
        one that was probably meant.
    """

    @wraps(function)
    def guarded(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return function(*arguments, **named)
        except TypeError as problem:
            if not named or not _never_began(problem, guarded):
                raise
            words, called = str(problem), function.__name__
            if called == "__init__" and arguments:
                # A class may inherit its constructor: the one that was called is named.
                called = type(arguments[0]).__name__
                words = words.replace(f"{function.__qualname__}()", f"{called}()")
            hint = _meant(problem, function, named, called)
            raise TypeError(f"{words}{hint}") from None

    return guarded


class NamingRightWords:
    """Classes that answer a wrong keyword of their constructors with the right one.

    The constructor of each subclass is guarded by `naming_right_words`, so signatures
    stay what they are. A class that writes none of its own inherits a guarded one. The
    methods that a class names in ``hints="release amend"`` are guarded as well.
    """

    __slots__ = ()

    def __init_subclass__(cls, *, hints: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("__init__", *hints.split()):
            # Whatever else stands for a method (a `partialmethod`) is bound by its own
            # rules, and stays as it is.
            if isinstance(own := cls.__dict__.get(name), FunctionType):
                setattr(cls, name, naming_right_words(own))


def _never_began(problem: TypeError, caller: Callable[..., Any]) -> bool:
    """Return whether a call failed because its arguments did not fit the signature."""
    # The last frame is then the caller's own: none of the function was entered. What a
    # block inside the function has caught ends in a frame of its own, too.
    trace = problem.__traceback__
    return (
        trace is not None
        and trace.tb_next is None
        and trace.tb_frame.f_code is caller.__code__
    )


def _meant(
    problem: TypeError,
    function: Callable[..., Any],
    named: Mapping[str, Any],
    call: str,
) -> str:
    """Return the nearest right keyword for the first wrong one, as a question."""
    if "did you mean" in str(problem).lower():
        return ""  # Python 3.13 and later say it themselves.
    import inspect

    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return ""  # Every keyword is taken, so another argument did not fit.
    # Nobody writes these two, nor what is given by its place alone.
    declared = [
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and parameter.name not in ("self", "cls")
    ]
    wrong = [word for word in named if word not in declared]
    if not wrong:
        return ""
    ours = [word for word in OUR_WORDS.get(wrong[0], "").split() if word in declared]
    if ours:
        return f" (did you mean {ours[0]!r}?)"
    if "epsilon" in declared and wrong[0] in ("seed", "random_state", "rng"):
        return " (noise is drawn later: state rng=... to release)"
    hint = nearest(wrong[0], declared)
    if hint:
        return hint
    if not declared:
        return ""
    if "name" not in declared or "name" in named:
        return f" (it takes {', '.join(declared)})"
    # Others name a column by a keyword: from_levels(sex=["f", "m"]).
    written = f"{call}(..., name={wrong[0]!r})"
    each = " for each, and join them by Domain.product" if len(wrong) > 1 else ""
    return f" (write {written}{each})"


OUR_WORDS = {
    # Places and seeds.
    "crs": "system",
    "srid": "system",
    "seed": "rng",
    "random_state": "rng",
    "file": "path",
    "filename": "path",
    # Budgets and promises.
    "eps": "epsilon",
    "budget": "epsilon",
    "total": "epsilon",
    "alpha": "confidence",
    "level": "confidence",
    "reason": "why",
    # Domains.
    "size": "shape",
    "n": "shape",
    "cells": "shape",
    "label": "name",
    "labels": "names",
    "bins": "edges",
    "categories": "levels",
    # Policies and workloads.
    "threshold": "theta",
    "distance": "theta",
    "partition": "labels",
    "groups": "labels",
    "blocks": "labels",
    "regions": "labels",
    "adjacency": "edges",
    "lows": "starts",
    "highs": "ends",
    "stops": "ends",
    "attributes": "axes",
    "columns": "axes",
    "queries": "matrix",
    # Counts and records.
    "values": "counts weights",
    "data": "counts records",
    "counts": "data",
    "histogram": "data",
    "user": "person",
    "max_records": "at_most",
    "clip": "outside",
    "null": "missing",
    "date": "column",
    "period": "every",
}
"""Keywords of other libraries, and ours for the same: the first that a call takes."""

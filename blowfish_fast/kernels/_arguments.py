"""What kernels are given: arrays of real numbers, corners, random words and ratios.

A sum of whole numbers beyond 64 bits turns negative without a word, and a number that
is not finite spreads over a whole fit. Both are refused by one look at the numbers
where they are small, which costs a few percent of the kernel at most:

    numbers   3  -5  7        largest size 7, three numbers: 3 * 7 < 2^63, all sums fit

A draw takes one word below `POSITION_LIMIT`. If it stays undecided, its uniform number
goes on with the words from ``RESOLVER_BASE + position * 2^16``, which no draw begins
with.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray, WordArray
from blowfish_fast.errors import BlowfishError, InputError, SizeError

NUMBERS = "biuf"
"""Kinds of numpy dtypes that hold real numbers."""

FAILURES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
)
"""What a text, None or a ragged list in the place of an array provokes; compiled code
raises a NotImplementedError for kinds of arguments that it was not compiled for."""

TEXTS = frozenset({"kind", "mode"})
"""Arguments of kernels that are words, not numbers."""

Ratio = int | IntArray

Words: TypeAlias = Callable[[int, int], WordArray]
"""``words(position, count)``: consecutive random words, a pure function of both."""

RESOLVER_BASE = 1 << 90
RESOLVER_BITS = 16
POSITION_LIMIT = 1 << 74

MOST_FURTHER_WORDS = 64
"""Further words that one draw reads; random ones need more once in 2^4000 draws."""

SUMS_BELOW = 2**63 - 2**24
"""Sums of sizes, added up as doubles, stay below this; what is missing to 2^63 is more
than the rounding of such a sum."""


def refuse_odd_arguments(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that raises `InputError` for what it cannot read.

    Arrays of objects, texts, dates and complex numbers are refused beforehand: a cast
    would read some of them silently. So are texts where a number belongs, which
    `float` would read, and masked values, which a cast would take for counts. An answer
    that memory cannot hold raises `SizeError`. Wrong names and numbers of arguments
    stay a TypeError.
    """
    signature = inspect.signature(kernel)
    takes_texts = not TEXTS.isdisjoint(signature.parameters)

    @functools.wraps(kernel)
    def guarded(*given: Any, **named: Any) -> Any:
        try:
            # A microsecond counts: small domains ask for a kernel thousands of times.
            for argument in (*given, *named.values()) if named else given:
                if isinstance(argument, np.ndarray):
                    if argument.dtype.kind not in NUMBERS:
                        _refuse(argument.dtype)
                    if type(argument) is not np.ndarray:
                        _check_mask(argument)
                elif type(argument) is list or type(argument) is tuple:
                    _check_list(argument)
                elif isinstance(argument, str | bytes):
                    _check_text(argument, takes_texts)
                elif isinstance(argument, np.generic | complex):
                    # Compiled code would mix numpy's kinds: the sum of a place and a
                    # uint64 is a double there, and no place any more.
                    given = tuple(map(_plain_number, given))
                    named = {name: _plain_number(one) for name, one in named.items()}
            return kernel(*given, **named)
        except BlowfishError:
            raise
        except MemoryError as problem:
            raise SizeError(
                f"memory does not hold what {kernel.__name__} would return, or needs "
                "on the way; give it smaller sizes"
            ) from problem
        except Exception as problem:
            if not isinstance(problem, FAILURES) and not _of_the_compiler(problem):
                raise
            try:
                signature.bind(*given, **named)
            except TypeError as misfit:
                # Python's own words name neither the kernel nor what it takes.
                raise TypeError(f"{kernel.__name__}{signature}: {misfit}") from None
            raise InputError(
                f"{kernel.__name__} takes numbers and arrays of real numbers as its "
                "docstring says",
                received=_first_misfit(signature, given, named)
                or f"something else ({_first_line(problem)})",
                code="odd_argument",
            ) from problem

    return guarded


def _plain_number(argument: Any) -> Any:
    """Return a scalar of numpy as Python's own number; refuse complex numbers."""
    if isinstance(argument, np.generic):
        argument = argument.item()
    if isinstance(argument, complex):
        raise InputError("kernels take real numbers", received=repr(argument))
    return argument


WANTED = {
    "int": "a whole number",
    "float": "a number",
    "Number": "a number",
    "Fraction": "a number",
    "Tree": "a tree, as regular_tree makes it",
    "Words": "a function that gives words, as secure_words does",
}
"""What parameters of each kind are called in a message."""


def _first_misfit(
    signature: inspect.Signature, given: tuple[Any, ...], named: dict[str, Any]
) -> str | None:
    """Name the first argument that is not of the kind of its parameter."""
    for name, value in signature.bind(*given, **named).arguments.items():
        parameter = signature.parameters[name]
        # Annotations are texts here, with the alternatives between upright strokes.
        kinds = [kind.strip() for kind in str(parameter.annotation).split("|")]
        if value is None and ("None" in kinds or parameter.default is None):
            continue
        wanted = [WANTED[kind] for kind in kinds if kind in WANTED]
        arrays = any(kind.endswith("Array") for kind in kinds)
        fits = {
            "int": _is_whole(value),
            "float": _is_number(value),
            "Number": _is_number(value),
            "Fraction": _is_number(value),
            "Tree": type(value).__name__ == "Tree",
            "Words": callable(value),
        }
        if arrays:
            if isinstance(value, np.ndarray) or _is_number(value) or _is_row(value):
                continue
            return f"{type(value).__name__} for {name}, which is an array of numbers"
        if wanted and not any(fits[kind] for kind in kinds if kind in WANTED):
            shown = repr(value)[:40]
            return f"{shown} for {name}, which is {wanted[0]}"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Fraction) and value == value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and abs(value) < 2**63


def _is_row(value: Any) -> bool:
    """Return whether a list or a tuple becomes an array of real numbers."""
    if not isinstance(value, list | tuple):
        return False
    try:
        return np.asarray(value).dtype.kind in NUMBERS
    except (ValueError, OverflowError):
        return False


def _refuse(dtype: Any) -> NoReturn:
    raise InputError(
        f"kernels take arrays of real numbers; received an array of {dtype}"
    )


def _check_text(text: str | bytes, takes_texts: bool) -> None:
    """Refuse a text but for a word, where the kernel takes one: "all_ranges"."""
    if takes_texts and isinstance(text, str) and text.isidentifier():
        return
    raise InputError(
        "kernels take numbers and arrays of real numbers, and texts only where "
        "their docstring names some",
        received=repr(text[:20]),
    )


def _check_mask(array: AnyArray) -> None:
    """Refuse masked values; a masked array that masks nothing is as any other."""
    if np.ma.is_masked(array):
        raise InputError(
            "kernels know no masks: what is masked would be taken for a number",
            received="an array with masked values",
            way_out="Fill them first, by array.filled(...)",
        )


def _of_the_compiler(problem: Exception) -> bool:
    """Return whether Numba refused the type of an argument."""
    # Asked by name: Numba is not imported for it, nor where the compiler is off.
    return type(problem).__module__.startswith("numba.")


def _first_line(problem: Exception) -> str:
    """Return what went wrong; the compiler's own pages of text say only that."""
    if _of_the_compiler(problem):
        return "a number of a kind that kernels do not read"
    return str(problem)


def _check_list(values: list[Any] | tuple[Any, ...]) -> None:
    """Refuse a list of texts or complex numbers.

    Ragged lists and lists of arrays are the kernel's to refuse or to read.
    """
    if all(isinstance(value, str | bytes | complex | int | float) for value in values):
        try:
            dtype = np.asarray(values).dtype
        except (ValueError, OverflowError):
            return
        if dtype.kind not in NUMBERS:
            _refuse(dtype)


def as_input(values: Any, dtype: Any) -> Any:
    """Return a contiguous array of `dtype` that cannot be written to, without a copy.

    Numba compiles anew for arrays that may be written to; with this each kernel is
    compiled for one kind, whatever its callers bring.
    """
    exact = whole_numbers(values) if dtype is np.int64 else values
    array = np.ascontiguousarray(exact, dtype=dtype).view()
    array.flags.writeable = False
    return array


def whole_numbers(values: Any) -> IntArray:
    """Return whole numbers as int64; refuse fractions, which a cast would cut off.

    Parameters
    ----------
    values : array-like
        Numbers of any kind; floats may hold whole ones.

    Returns
    -------
    ndarray of int64
        The same numbers, without a copy where they are int64 already.

    Raises
    ------
    InputError
        If some are fractions, not finite, or too large for 64 bits.

    Examples
    --------
    >>> whole_numbers([2.0, 5])
    array([2, 5])
    """
    array = np.asarray(values)
    if array.dtype.kind == "f":
        # Limits of int64 are no numbers of 16 bits.
        array = np.asarray(array, dtype=np.float64)
        # Doubles from 2^63 on are no int64, and -2^63 is one.
        held = (array == np.floor(array)) & (array >= -(2.0**63)) & (array < 2.0**63)
        if not held.all():
            raise InputError(
                "whole numbers of 64 bits are taken here; a cast would cut fractions "
                "off",
                received=f"{array[~held].ravel()[0]} among them",
                way_out="Round them yourself, or scale them to whole units",
            )
    if array.dtype == np.uint64 and array.size and array.max() >= 2**63:
        raise InputError(
            "whole numbers of 64 bits with a sign are taken here; a cast would make "
            "larger ones negative",
            received=f"{array.max()} among them",
        )
    return np.asarray(array, dtype=np.int64)


def refuse_nan(values: FloatArray, name: str) -> None:
    """Refuse numbers among which some are none: comparisons would pass them over."""
    # A minimum is NaN where one value is, in a third of the time of a mask.
    if values.size and np.isnan(values.min()):
        raise InputError(f"{name} are numbers; received nan among them")


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


def draw_target(
    numerators: Ratio, denominators: Ratio, size: int | None, out: IntArray | None
) -> IntArray:
    """Return the array that the draws go to: `out`, or a new one of the right size."""
    # Draws lie in one row: a shape would repeat them, and two equal noises tell the
    # difference of the counts below them.
    if size is not None:
        with_index = getattr(type(size), "__index__", None)
        if with_index is None or isinstance(size, bool) or operator.index(size) < 0:
            raise InputError(
                "a size is a whole number of draws, which lie in one row",
                received=repr(size)[:40],
                way_out="Write size=6 and reshape what comes back",
            )
        size = operator.index(size)
    if out is None:
        own = max(np.size(numerators), np.size(denominators))
        return np.empty(own if size is None else size, dtype=np.int64)
    if out.ndim != 1 or out.dtype != np.int64 or not out.flags.carray:
        raise InputError(
            "draws go to a contiguous, writable, one-dimensional int64 array; "
            f"received {out.dtype} of shape {out.shape}"
        )
    if size is not None and size != out.size:
        raise InputError(f"{size} draws need as many places; received {out.size}")
    return out


def read_words(words: Words, position: int, count: int) -> WordArray:
    """Return words of a source; refuse any but as many uint64 as were asked for.

    A cast would read other numbers silently: doubles from 0 to 1 become words of 0, and
    noise that is the same for every draw.

    Parameters
    ----------
    words : callable
        The source.
    position : int
        Place of the first word.
    count : int
        How many.

    Returns
    -------
    ndarray of uint64, shape (count,)
        The words; perhaps read-only.

    Raises
    ------
    InputError
        If the source gives anything else.
    """
    if not callable(words):
        raise InputError(
            "words are a function: words(position, count) gives that many words of "
            "uint64",
            received=type(words).__name__,
            way_out="kernels.secure_words() opens such a source",
            code="words_of_another_kind",
        )
    drawn = words(position, count)
    if type(drawn) is np.ndarray and drawn.dtype == np.uint64:
        if drawn.shape == (count,):
            return drawn
        received = f"an array of shape {drawn.shape}"
    else:
        received = f"{getattr(drawn, 'dtype', type(drawn).__name__)}"
    raise InputError(
        f"a source of words gives as many words of uint64 as it is asked for, {count} "
        "here",
        received=received,
        way_out="kernels.secure_words() opens such a source",
        code="words_of_another_kind",
    )


def check_places(words: Words, start: int, drawn: WordArray) -> None:
    """Refuse a source whose words do not depend on their place alone.

    A source that goes on from call to call, or that begins anew, gives another word
    when the last one is asked for again by its place. Noise from it could be repeated,
    and draws of two threads would not be those of one.

    Parameters
    ----------
    words : callable
        The source.
    start : int
        Place of the first word.
    drawn : ndarray of uint64
        The words from there on.

    Raises
    ------
    InputError
        If the last of them is another one now.
    """
    if drawn.size < 2 or getattr(words, "by_place", False):
        return
    last = start + drawn.size - 1
    if read_words(words, last, 1)[0] != drawn[-1]:
        raise InputError(
            "a source of words gives the same word whenever it is asked for the same "
            f"place; it gave two different ones for place {last}",
            way_out="kernels.secure_words() opens such a source",
            code="words_without_place",
        )


def further_words(
    words: Words, place: int, most: int = MOST_FURTHER_WORDS
) -> Iterator[int]:
    """Yield the words that lengthen one uniform number, as many as can be needed.

    Parameters
    ----------
    words : callable
        The source.
    place : int
        Place of the first further word.
    most : int, default 64
        How many there are.

    Yields
    ------
    int
        A word.

    Raises
    ------
    InputError
        If so many left a draw open that they are not random.
    """
    for further in range(most):
        yield int(read_words(words, place + further, 1)[0])
    raise InputError(
        f"{most} words in a row left one draw undecided, which random "
        "words never do: the source repeats itself",
        way_out="kernels.secure_words() opens a source of random words",
        code="words_that_repeat",
    )


def check_start(start: int, draws: int) -> None:
    """Refuse words beyond the places that belong to first words."""
    if not 0 <= start <= POSITION_LIMIT - draws:
        raise InputError(f"positions lie between 0 and 2^74; received {start}")


class Ratios:
    """Ratios of positive integers, shared by all draws or one for each.

    One number may be any Python integer. Ratios above `largest`, a power of two, are
    refused: draws would not fit 64 bits.
    """

    def __init__(
        self, above: Ratio, below: Ratio, size: int, name: str, largest: int
    ) -> None:
        self._above, self._below = (_as_row(row, size, name) for row in (above, below))
        self.shared = self._above.size == self._below.size == 1
        high, low = self._above, self._below
        if high.min() <= 0 or low.min() <= 0:
            raise InputError(
                f"a {name} must be a ratio of positive integers; "
                f"received {high.min()} / {low.min()} among them"
            )
        if high.max() > largest and ((high - 1) // largest >= low).any():
            raise InputError(
                f"a {name} must be at most 2^{largest.bit_length() - 1}, so that draws "
                f"fit 64 bits; received {high.max()} / {low.min()} among them"
            )

    def exact(self, draw: int) -> tuple[int, int]:
        """Return numerator and denominator of one draw."""
        above, below = (_own(row, draw, draw + 1) for row in (self._above, self._below))
        return int(above[0]), int(below[0])

    def doubles(self, first: int, last: int) -> FloatArray:
        """Return the ratios of some draws: one where it is shared."""
        high, low = _own(self._above, first, last), _own(self._below, first, last)
        if self.shared:
            # Python's division rounds once, and underflows where it has to.
            return np.array([int(high[0]) / int(low[0])])
        ratios: FloatArray = high.astype(np.float64) / low.astype(np.float64)
        return ratios


def _own(row: AnyArray, first: int, last: int) -> AnyArray:
    return row if row.size == 1 else row[first:last]


def _as_row(given: Ratio, size: int, name: str) -> AnyArray:
    if np.ndim(given) == 0:
        return np.array([operator.index(given)], dtype=object)
    row = np.asarray(given)
    if row.dtype.kind not in "iu" or row.shape != (size,):
        raise InputError(
            f"{size} {name}s need integers, one or {size} of them; "
            f"received {row.dtype} of shape {row.shape}"
        )
    return row.astype(np.int64, copy=False)


def largest_size(values: IntArray) -> int:
    """Return the largest absolute value of some whole numbers; 0 without any."""
    if values.size == 0:
        return 0
    # Read without a sign, negative numbers are the largest. One pass tells of none.
    largest = int(values.view(np.uint64).max())
    if largest < 2**63:
        return largest
    return max(-int(values.min()), int(values.max()))


def refuse_wide_sums(values: IntArray, name: str) -> None:
    """Refuse whole numbers of which some add up to what 64 bits do not hold.

    Parameters
    ----------
    values : ndarray of int64
        The numbers, whatever their signs: any of them may be added up.
    name : str
        What the caller calls them, for the message.

    Raises
    ------
    InputError
        If their absolute values add up to 2^63 or more.

    Examples
    --------
    >>> refuse_wide_sums(np.array([3, -5, 7]), "counts")
    """
    largest = largest_size(values)
    if largest * values.size < SUMS_BELOW:
        return
    # As doubles: the sum of int64 would be the one that wraps.
    if np.abs(values.astype(np.float64)).sum() >= SUMS_BELOW:
        raise InputError(
            f"sums of {name} stay below 2^63, or they would turn negative in 64 bits",
            received=f"{values.size:,} {name}, the largest {largest:,}",
            way_out="Count them in coarser units",
            code="sums_beyond_64_bits",
        )


def refuse_odd_variances(variances: FloatArray) -> None:
    """Refuse variances that are negative or nan; infinity means "not measured"."""
    # A minimum is nan where one number is.
    if variances.size and not variances.min() >= 0:
        raise InputError(
            "variances must not be negative or nan; infinity says that nothing was "
            "measured",
            received=f"{variances.min()} among them",
            code="odd_variances",
        )


def refuse_infinite(
    values: FloatArray, name: str, variances: FloatArray | None = None
) -> None:
    """Refuse numbers that are nan or infinite.

    Parameters
    ----------
    values : ndarray of float64
        The numbers.
    name : str
        What the caller calls them, for the message.
    variances : ndarray of float64, optional
        Their variances. A number whose variance is infinite was not measured, and is
        not read.

    Raises
    ------
    InputError
        If one that is read is not finite.

    Examples
    --------
    >>> refuse_infinite(np.array([1.0, np.nan]), "totals", np.array([2.0, np.inf]))
    """
    # A sum is finite only if every number is, and takes one pass without a mask. Huge
    # numbers make it infinite too, and are looked at one by one.
    with np.errstate(all="ignore"):
        total = values.sum()
    if math.isfinite(total):
        return
    wrong = ~np.isfinite(values)
    if variances is not None:
        wrong &= variances < np.inf
    if wrong.any():
        raise InputError(
            f"{name} are finite numbers",
            received=f"{values[wrong][0]} among them",
            way_out="Leave out what is missing, or fill it in, before the call",
            code="not_finite",
        )

"""Exact discrete Gaussian noise, P(z) proportional to exp(-z^2 / 2v), v any rational.

A ziggurat over the integers: one random word a draw, and in most draws nothing else,

    word   [ 55 bits of u | sign | 8 bits: strip i ]      k = floor(s x_i u + 1/2)

with s a double above sqrt(v). Points surely under the curve are settled at a first
look; the others are looked at again with more words, and what floating point leaves
open there is decided in fractions. So each draw is the exact function of the words, on
any machine. Shared variances below 64 are drawn by inversion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray, WordArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .draw_arguments import (
    RESOLVER_BASE,
    RESOLVER_BITS,
    Ratio,
    Ratios,
    Words,
    check_start,
    draw_target,
)
from .gaussian_strips import (
    BORDER,
    ENDS,
    HEIGHTS,
    RATE,
    _context,
    _decimal,
    exponential_bounds,
    resolve_point,
)

CHUNK = 1 << 15
"""Draws that share their second looks; threads begin at multiples of it."""

LARGEST_VARIANCE = 1 << 90
FEW_VALUES = 64
"""Below this variance a shared law is drawn by its thresholds."""

# Second looks of chunk c, round n, read from LOOKS + c 2^47 + n 2^17 on; fractions read
# from FRACTIONS on. First words lie below 2^74, the thresholds' resolver below 2^91.
_LOOKS = 1 << 92
_FRACTIONS = 1 << 100
_CHUNK_BITS, _ROUND_BITS = 47, 17

_X = np.array([float(end) for end in ENDS])
_F = np.array([float(height) for height in HEIGHTS])
_RATE = float(RATE)


def _quick_limits() -> FloatArray:
    """Return -2 ln f_(i+1), rounded down by more than all errors of the first look."""
    context = _context(40)
    limits = [
        -2.0 * float(context.ln(_decimal(min(height, Fraction(1)), context)))
        for height in HEIGHTS[1:]
    ]
    return np.array(limits) * (1.0 - 1e-13) - 1e-13


_QUICK = _quick_limits()


@kernel
def _first_look(
    words: WordArray, laws: FloatArray, out: IntArray, left: IntArray
) -> int:
    """Propose a draw for each word; list those that are not settled in `left`."""
    found = 0
    shared = laws.shape[1] == 1
    stretch, inverse, slack = laws[0, 0], laws[1, 0], laws[2, 0]
    for j in range(words.size):
        if not shared:
            stretch, inverse, slack = laws[0, j], laws[1, j], laws[2, j]
        word = words[j]
        strip = np.int64(word & np.uint64(255))
        uniform = np.float64(np.int64(word >> np.uint64(9))) + 0.5
        reach = _X[strip] * stretch
        place = uniform * reach * 2.0**-55 + 0.5
        size = np.int64(place)
        whole = np.float64(size)
        part = place - whole
        error = reach * 2.0**-55 + place * 2.0**-50
        sure = (part > error) & (part < 1.0 - error)
        kept = whole * whole * inverse + slack < _QUICK[strip]
        negative = np.int64((word >> np.uint64(8)) & np.uint64(1))
        out[j] = (size ^ -negative) + negative
        left[found] = j
        found += not (sure & kept & (strip != 0))
    return found


@kernel
def _second_look(
    todo: IntArray, words: WordArray, laws: FloatArray, out: IntArray, lists: IntArray
) -> tuple[int, int]:
    """Settle the listed draws with two words more; count rejected and open ones.

    `words` (t, 3): first word, height, abscissa in the tail. `lists` (2, n) takes the
    draws that are rejected, and the places in `todo` of those that stay open.
    """
    rejected, opened = 0, 0
    for t in range(todo.size):
        j = todo[t]
        law = 0 if laws.shape[1] == 1 else j
        stretch = laws[0, law]
        word = words[t, 0]
        strip = np.int64(word & np.uint64(255))
        uniform = np.float64(np.int64(word >> np.uint64(9))) + 0.5
        x = uniform * _X[strip] * 2.0**-55
        upward = (np.float64(words[t, 1] >> np.uint64(11)) + 0.5) * 2.0**-53
        low, high = _F[strip], _F[strip + 1]
        error = stretch * _X[strip] * 2.0**-54
        blur = 2.0**-52 * high
        if strip == 0:
            beyond = (np.float64(words[t, 2] >> np.uint64(11)) + 0.5) * 2.0**-53
            if abs(x - BORDER) < 1e-13 or (x > BORDER and beyond < 2.0**-20):
                lists[1, opened] = t
                opened += 1
                continue
            if x > BORDER:
                far = -math.log(beyond)
                x = BORDER + far / _RATE
                error = stretch * (2.0**-52 / beyond + 1e-14 * (1.0 + far))
                # The height of the tail inherits the rounding of its abscissa.
                low, high = 0.0, _F[1] * beyond
                blur = 2.0**-51 * high + _F[1] * 2.0**-53
        place = stretch * x + 0.5
        error += place * 2.0**-49
        size = np.int64(place)
        whole = np.float64(size)
        part = place - whole
        height = low + upward * (high - low)
        goal = math.exp(-0.5 * (whole * whole * laws[1, law] + laws[2, law]))
        gap = 1e-12 * (height + goal) + blur
        if not (error < part < 1.0 - error) or abs(height - goal) <= gap:
            lists[1, opened] = t
            opened += 1
        elif height < goal:
            negative = np.int64((word >> np.uint64(8)) & np.uint64(1))
            out[j] = (size ^ -negative) + negative
        else:
            lists[0, rejected] = j
            rejected += 1
    return rejected, opened


@kernel
def _count_thresholds(
    words: WordArray, limits: WordArray, guide: IntArray, out: IntArray, left: IntArray
) -> int:
    """Return draws by inversion: how many thresholds lie above the word's uniform.

    `limits` falls, its last entry is 0; ``guide[top byte]`` is where to begin.
    """
    found = 0
    for j in range(words.size):
        uniform = words[j] >> np.uint64(1)
        size = guide[np.int64(words[j] >> np.uint64(56))]
        while uniform < limits[size]:
            size += 1
        if uniform == limits[size]:
            left[found] = j
            found += 1
        negative = np.int64(words[j] & np.uint64(1))
        out[j] = (size ^ -negative) + negative
    return found


def gaussian(
    words: Words,
    start: int,
    numerators: Ratio,
    denominators: Ratio,
    size: int | None = None,
    out: IntArray | None = None,
) -> IntArray:
    """Draw exact discrete Gaussian noise, P(z) proportional to exp(-z^2 / 2v): EN7.

    Each draw, int64, is an exact function of the words, the same on every machine.

    Parameters
    ----------
    words
        ``words(position, count)`` gives `count` random words, uint64.
    start
        Place of the first word, a multiple of 2^15; draw i takes the word at
        ``start + i``, and words far beyond 2^74 where one is not enough.
    numerators, denominators : int or (n,) int64
        v = numerator / denominator: shared, or one for each draw. A shared one may be
        any Python integer.
    size
        Number of draws; needed only if neither v nor `out` tells.

    Examples
    --------
    >>> words = lambda position, count: np.full(count, 1 << 60, dtype=np.uint64)
    >>> gaussian(words, 0, 100, 1, size=3)
    array([3, 3, 3])
    >>> words = lambda position, count: np.full(count, 0xEFFFFFFFFFFFFF7F, np.uint64)
    >>> gaussian(words, 0, np.array([10**4, 10**6]), 1)
    array([ -145, -1446])
    """
    out = draw_target(numerators, denominators, size, out)
    check_start(start, out.size)
    if start % CHUNK:
        raise InputError(
            f"Gaussian draws start at a multiple of {CHUNK}; received {start}"
        )
    if out.size == 0:
        return out
    variances = Ratios(numerators, denominators, out.size, "variance", LARGEST_VARIANCE)
    if variances.shared and Fraction(*variances.exact(0)) < FEW_VALUES:
        _fill_by_thresholds(words, start, Fraction(*variances.exact(0)), out)
        return out
    # One room for all chunks: fresh memory would cost more than what is put there.
    most = min(CHUNK, out.size)
    laws = np.empty((3, 1 if variances.shared else most))
    lists = np.empty((2, most), dtype=np.int64)
    for first in range(0, out.size, CHUNK):
        part = out[first : first + CHUNK]
        if first == 0 or not variances.shared:
            _laws(variances.doubles(first, first + part.size), laws)
        _fill_chunk(words, start + first, variances, first, laws, lists, part)
    return out


@kernel
def _laws(variance: FloatArray, laws: FloatArray) -> FloatArray:
    """Put stretch, 1 / v and 1 / (4 (s^2 - v)) of each draw, or of all, into `laws`.

    Any s with s^2 > v keeps the law exact; this one makes second looks rare.
    ``np.divide`` asks no question about 0, so that the loop is vectorised.
    """
    for draw in range(variance.size):
        one = variance[draw]
        excess = (1.0 + np.sqrt(1.0 + 16.0 * one)) / 8.0
        stretch = np.sqrt(one + excess)
        laws[0, draw] = stretch
        laws[1, draw] = np.divide(1.0, one)
        laws[2, draw] = np.divide(0.25, stretch * stretch - one)
    return laws


def _fill_chunk(
    words: Words,
    position: int,
    variances: Ratios,
    first: int,
    laws: FloatArray,
    lists: IntArray,
    out: IntArray,
) -> None:
    """Draw one chunk: a first look, then second looks until all draws are settled."""
    drawn = words(position, out.size)
    todo = lists[0, : _first_look(drawn, laws, out, lists[0])].copy()
    stretch_of_words = (position // CHUNK) << _CHUNK_BITS
    turn = 0
    while todo.size:
        place = stretch_of_words + (turn << _ROUND_BITS)
        fresh = words(_LOOKS + place, 3 * todo.size).reshape(-1, 3)
        if turn == 0:
            fresh = fresh.copy()
            fresh[:, 0] = drawn[todo]
        rejected, opened = _second_look(todo, fresh, laws, out, lists)
        again = []
        for t in lists[1, :opened].tolist():
            draw = int(todo[t])
            point = resolve_point(
                (int(fresh[t, 0]), int(fresh[t, 1]), int(fresh[t, 2])),
                float(laws[0, 0 if variances.shared else draw]),
                Fraction(*variances.exact(first + draw)),
                _more(words, _FRACTIONS + ((place + t) << RESOLVER_BITS)),
            )
            if point is None:
                again.append(draw)
            else:
                out[draw] = point
        todo = lists[0, :rejected].copy()
        if again:
            todo = np.sort(np.append(todo, again))
        turn += 1


def _more(words: Words, place: int) -> Iterator[int]:
    while True:
        yield int(words(place, 1)[0])
        place += 1


def _fill_by_thresholds(
    words: Words, start: int, variance: Fraction, out: IntArray
) -> None:
    """Draw from a law of few values by inversion."""
    limits, guide = _thresholds(variance)
    left = np.empty(min(CHUNK, out.size), dtype=np.int64)
    for first in range(0, out.size, CHUNK):
        part = out[first : first + CHUNK]
        drawn = words(start + first, part.size)
        for j in left[: _count_thresholds(drawn, limits, guide, part, left)].tolist():
            place = RESOLVER_BASE + ((start + first + j) << RESOLVER_BITS)
            size = _resolve_inversion(int(drawn[j]) >> 1, variance, _more(words, place))
            part[j] = -size if int(drawn[j]) & 1 else size


@lru_cache(maxsize=64)
def _thresholds(variance: Fraction) -> tuple[WordArray, IntArray]:
    """Return floor(2^63 P(|Z| >= k)), k = 1, 2, ..., and where each top byte begins."""
    digits = 40
    while (found := _decided_thresholds(variance, digits)) is None:
        digits += 20
    limits = np.array(found, dtype=np.uint64)
    tops = (np.arange(256, dtype=np.uint64) + np.uint64(1)) << np.uint64(55)
    guide = np.searchsorted(-limits.astype(np.float64), -tops.astype(np.float64))
    return limits, guide.astype(np.int64)


def _decided_thresholds(variance: Fraction, digits: int) -> list[int] | None:
    """Return the thresholds down to 0; None where so many digits leave one open."""
    found: list[int] = []
    for low, high in _tail_bounds(variance, digits):
        found.append(math.floor(2**63 * low))
        if found[-1] != math.floor(2**63 * high):
            return None
        if found[-1] == 0:
            break
    return found


def _tail_bounds(
    variance: Fraction, digits: int
) -> Iterator[tuple[Fraction, Fraction]]:
    """Yield numbers below and above P(|Z| >= k) for k = 1, 2, ..."""
    # What is asked ends before half of this; what lies beyond is next to nothing.
    last = 2 * math.isqrt(math.ceil(6 * variance * digits)) + 2
    ends = [
        exponential_bounds(Fraction(k * k) / (2 * variance), digits)
        for k in range(last + 1)
    ]
    # What was left out falls by more than a half with each k.
    tails = [(Fraction(0), 4 * ends[last][1])]
    for low, high in reversed(ends[1:]):
        tails.append((tails[-1][0] + 2 * low, tails[-1][1] + 2 * high))
    head = ends[0]
    for (low, high), tail in zip(ends[1:], reversed(tails), strict=False):
        yield tail[0] / (tail[0] + head[1]), tail[1] / (tail[1] + head[0])
        head = (head[0] + 2 * low, head[1] + 2 * high)


def _resolve_inversion(known: int, variance: Fraction, more: Iterator[int]) -> int:
    """Return the size of a draw whose uniform number begins with 63 known bits."""
    bits, digits = 63, 60
    while True:
        known, bits, digits = (known << 64) | next(more), bits + 64, digits + 20
        low, high = Fraction(known, 1 << bits), Fraction(known + 1, 1 << bits)
        for size, (below, above) in enumerate(_tail_bounds(variance, digits)):
            if low >= above:
                return size
            if high > below:
                break

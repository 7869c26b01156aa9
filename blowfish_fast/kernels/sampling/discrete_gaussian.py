"""Exact discrete Gaussian noise, P(z) proportional to exp(-z^2 / 2v), v any rational.

A ziggurat over the integers: one random word a draw, and in most draws nothing else,

    word   [ 55 bits of u | sign | 8 bits: strip i ]      k = floor(s x_i u + 1/2)

with s a double above sqrt(v). Points surely under the curve are settled at a first look
by additions and products alone; the others are looked at again with more words, and
what floating point leaves open there is decided in fractions. So each draw is the exact
function of the words, on any machine.

Variances below 64 have few values and are drawn by inversion: the size of a draw is the
number of k with P(|Z| >= k) above a uniform number. The first bits of variance and word
settle most draws by a table, a sum of the law from 0 on nearly all others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np

from blowfish_fast._support.typing import (
    ByteArray,
    FloatArray,
    IntArray,
    WordArray,
)
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import (
    RESOLVER_BASE,
    RESOLVER_BITS,
    Ratio,
    Ratios,
    Words,
    check_places,
    check_start,
    draw_target,
    further_words,
    read_words,
)
from blowfish_fast.kernels._jit import kernel

from .decimal_bounds import decimal_of, exponential_bounds, own_context
from .gaussian_strips import BORDER, ENDS, HEIGHTS, RATE, resolve_point

CHUNK = 1 << 15
"""Draws that share their second looks; threads begin at multiples of it."""

LARGEST_VARIANCE = 1 << 90
FEW_VALUES = 64
"""Variances below this one are drawn by inversion."""

# The table for own variances, 160 KiB: 32 rows for each octave from 2^-4 on, smaller
# ones in the first, a column for each 512th of the uniform number. A shared variance
# has a row of its own, of 4096 columns.
_ROW_BITS, _COLUMN_BITS, _SHARED_BITS = 5, 9, 12
_LEAST_OCTAVE = -4
_ROWS = (6 - _LEAST_OCTAVE) << _ROW_BITS
_FIRST_ROW = (1023 + _LEAST_OCTAVE) << _ROW_BITS
_LEAST_VARIANCE = 2.0**-60
"""Smaller variances have the same doubles exp(-k^2 / 2v): 1 and 0."""
_MARGIN = 2.0**-40
"""More than floats are off in sums of a law; Lemma EN7."""

# Second looks of chunk c, round n, read from LOOKS + c 2^47 + n 2^17 on; fractions read
# from FRACTIONS on. First words lie below 2^74, the inversion's resolver below 2^91.
_LOOKS = 1 << 92
_FRACTIONS = 1 << 100
_CHUNK_BITS, _ROUND_BITS = 47, 17
# Each look settles most of the points: random words never need so many.
_MOST_LOOKS = 1000
# As many as random draws need once in 2^400; with more, words of 0 take minutes.
_MOST_WORDS = 8

_X = np.array([float(end) for end in ENDS])
_F = np.array([float(height) for height in HEIGHTS])
_RATE = float(RATE)


def _quick_limits() -> FloatArray:
    """Return -2 ln f_(i+1), rounded down by more than all errors of the first look."""
    context = own_context(40)
    limits = [
        -2.0 * float(context.ln(decimal_of(min(height, Fraction(1)), context)))
        for height in HEIGHTS[1:]
    ]
    return np.array(limits) * (1.0 - 1e-13) - 1e-13


_QUICK = _quick_limits()


@kernel
def _first_look(
    words: WordArray, laws: FloatArray, out: IntArray, left: IntArray
) -> int:
    """Propose a draw for each word; list those that are not settled in `left`.

    `laws` (3, n) or (3, 1) holds the stretch s, 1 / v and 1 / (4 (s^2 - v)) of each
    draw, or of all.
    """
    open_draws = 0
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
        under_curve = whole * whole * inverse + slack < _QUICK[strip]
        negative = np.int64((word >> np.uint64(8)) & np.uint64(1))
        out[j] = (size ^ -negative) + negative
        left[open_draws] = j
        open_draws += not (sure & under_curve & (strip != 0))
    return open_draws


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
def _size(share: float, variance: float) -> int:
    """Return how many k have P(|Z| < k) below `share`; -1 where floats cannot tell."""
    variance = max(variance, _LEAST_VARIANCE)
    base = math.exp(-0.5 / variance)
    step = base * base
    term, ratio = 2.0 * base, base * step
    # Poisson's sum: sqrt(2 pi v) (1 + 2 exp(-2 pi^2 v) + ..), from 2 on the first term.
    total = math.sqrt(2.0 * math.pi * variance)
    if variance < 2.0:
        total = 1.0
        while term > 2.0**-60:
            total += term
            term *= ratio
            ratio *= step
        term, ratio = 2.0 * base, base * step
    goal, margin = share * total, _MARGIN * total
    size, reach = 0, 1.0
    while goal > reach + margin and term > 0.0:
        size += 1
        reach += term
        term *= ratio
        ratio *= step
    return size if goal < reach - margin else -1


@kernel
def _invert(
    words: WordArray,
    variances: FloatArray,
    guide: ByteArray,
    out: IntArray,
    left: IntArray,
) -> int:
    """Draw by inversion where the variance is small; list what stays open in `left`.

    The size of a draw is the number of k with P(|Z| >= k) above the word's uniform.
    """
    open_draws = 0
    shared = guide.shape[0] == 1
    bits = variances.view(np.int64)
    variance = variances[0]
    row = 0
    shift = np.uint64(64 - (_SHARED_BITS if shared else _COLUMN_BITS))
    for j in range(words.size):
        if not shared:
            variance = variances[j]
            row = max((bits[j] >> (52 - _ROW_BITS)) - _FIRST_ROW, 0)
            if row >= _ROWS:
                continue
        word = words[j]
        size = int(np.int64(guide[row, np.int64(word >> shift)]))
        if size < 0:
            share = (np.float64(~word >> np.uint64(1)) + 0.5) * 2.0**-63
            size = _size(share, variance)
            if size < 0:
                left[open_draws] = j
                open_draws += 1
        negative = np.int64(word & np.uint64(1))
        out[j] = (size ^ -negative) + negative
    return open_draws


def gaussian(
    words: Words,
    start: int,
    numerators: Ratio,
    denominators: Ratio,
    size: int | None = None,
    out: IntArray | None = None,
) -> IntArray:
    """Draw exact discrete Gaussian noise, P(z) proportional to exp(-z^2 / 2v): EN7.

    Parameters
    ----------
    words : callable
        ``words(position, count)`` gives `count` random words, uint64, a pure function
        of both.
    start : int
        Place of the first word, a multiple of 2^15. Draw i takes the word at ``start +
        i``, and words far beyond 2^74 where one is not enough.
    numerators : int or ndarray of int64, shape (n,)
        Numerators of the variances v: shared, or one for each draw. A shared one may be
        any Python integer.
    denominators : int or ndarray of int64, shape (n,)
        Denominators of the variances.
    size : int, optional
        Number of draws; needed only if neither v nor `out` tells.
    out : ndarray of int64, shape (n,), optional
        Where to put the draws.

    Returns
    -------
    ndarray of int64, shape (n,)
        The draws. Each is an exact function of the words, the same on every machine.

    Raises
    ------
    InputError
        If a variance is not positive or too large, or places and sizes do not fit.

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
    # One room for all chunks: fresh memory would cost more than what is put there.
    most = min(CHUNK, out.size)
    laws = np.empty((3, 1 if variances.shared else most))
    lists = np.empty((2, most), dtype=np.int64)
    for first in range(0, out.size, CHUNK):
        part = out[first : first + CHUNK]
        drawn = read_words(words, start + first, part.size)
        if first == 0:
            check_places(words, start, drawn)
        doubles = variances.doubles(first, first + part.size)

        def exact(draw: int, first: int = first) -> Fraction:
            return Fraction(*variances.exact(first + draw))

        if doubles.max() >= FEW_VALUES:
            _laws(doubles, laws)
            todo = lists[0, : _first_look(drawn, laws, part, lists[0])].copy()
            if not variances.shared:
                todo = todo[doubles[todo] >= FEW_VALUES]
            _look_again(words, start + first, drawn, todo, exact, laws, lists, part)
        if doubles.min() < FEW_VALUES:
            guide = _guide(float(doubles[0]) if variances.shared else None)
            open_draws = _invert(drawn, doubles, guide, part, lists[0])
            for j in lists[0, :open_draws].tolist():
                word = int(drawn[j])
                place = RESOLVER_BASE + ((start + first + j) << RESOLVER_BITS)
                size = _resolve_inversion(
                    word >> 1, exact(j), further_words(words, place, _MOST_WORDS)
                )
                part[j] = -size if word & 1 else size
    return out


@kernel
def _laws(variance: FloatArray, laws: FloatArray) -> FloatArray:
    """Put stretch, 1 / v and 1 / (4 (s^2 - v)) of each draw, or of all, into `laws`.

    Any s with s^2 > v keeps the law exact; this one makes second looks rare.
    ``np.divide`` asks no question about 0, so that the loop is vectorised.
    """
    for draw in range(variance.size):
        own_variance = variance[draw]
        excess = (1.0 + np.sqrt(1.0 + 16.0 * own_variance)) / 8.0
        stretch = np.sqrt(own_variance + excess)
        laws[0, draw] = stretch
        laws[1, draw] = np.divide(1.0, own_variance)
        laws[2, draw] = np.divide(0.25, stretch * stretch - own_variance)
    return laws


def _look_again(
    words: Words,
    position: int,
    drawn: WordArray,
    todo: IntArray,
    exact: Callable[[int], Fraction],
    laws: FloatArray,
    lists: IntArray,
    out: IntArray,
) -> None:
    """Settle the listed draws of a chunk by second looks."""
    stretch_of_words = (position // CHUNK) << _CHUNK_BITS
    turn = 0
    while todo.size:
        place = stretch_of_words + (turn << _ROUND_BITS)
        if turn == _MOST_LOOKS:
            raise InputError(
                f"{turn} looks left a draw undecided, which random words never do: the "
                "source repeats itself",
                way_out="kernels.secure_words() opens a source of random words",
                code="words_that_repeat",
            )
        fresh = read_words(words, _LOOKS + place, 3 * todo.size).reshape(-1, 3)
        if turn == 0:
            fresh = fresh.copy()
            fresh[:, 0] = drawn[todo]
        rejected, opened = _second_look(todo, fresh, laws, out, lists)
        again = []
        for t in lists[1, :opened].tolist():
            draw = int(todo[t])
            point = resolve_point(
                (int(fresh[t, 0]), int(fresh[t, 1]), int(fresh[t, 2])),
                float(laws[0, 0 if laws.shape[1] == 1 else draw]),
                exact(draw),
                further_words(
                    words, _FRACTIONS + ((place + t) << RESOLVER_BITS), _MOST_WORDS
                ),
            )
            if point is None:
                again.append(draw)
            else:
                out[draw] = point
        todo = lists[0, :rejected].copy()
        if again:
            todo = np.sort(np.append(todo, again))
        turn += 1


@lru_cache(maxsize=64)
def _guide(shared: float | None) -> ByteArray:
    """Return the size that the first bits of variance and uniform settle, or -1.

    P(|Z| >= k) grows with the variance: a place of the table is settled where its
    lowest variance and largest uniform give the size of the other corner.
    """
    place = np.arange(_ROWS + 1)
    octave, part = place >> _ROW_BITS, place % (1 << _ROW_BITS)
    edges = np.ldexp(1.0 + part / (1 << _ROW_BITS), octave + _LEAST_OCTAVE)
    edges[0] = _LEAST_VARIANCE
    wide = 1 << _COLUMN_BITS
    if shared is not None:
        edges, wide = np.full(2, max(shared, _LEAST_VARIANCE)), 1 << _SHARED_BITS
    sizes = np.arange(1.0, 2.0 * FEW_VALUES)
    tails = np.cumsum(2.0 * np.exp(-(sizes**2) / (2.0 * edges[:, None]))[:, ::-1], 1)
    falling = -tails[:, ::-1] / (1.0 + tails[:, -1:])
    columns = -np.arange(wide + 1) / wide
    guide = np.empty((edges.size - 1, wide), dtype=np.int8)
    for row, (lower, upper) in enumerate(itertools.pairwise(falling)):
        least = np.searchsorted(lower + _MARGIN, columns[1:], side="right")
        most = np.searchsorted(upper - _MARGIN, columns[:-1])
        guide[row] = np.where(least == most, least, -1)
    return guide


def _resolve_inversion(first_bits: int, variance: Fraction, more: Iterator[int]) -> int:
    """Return the size of a draw whose uniform number begins with 63 known bits."""
    bits, digits = 63, 60
    while True:
        first_bits, bits, digits = (
            (first_bits << 64) | next(more),
            bits + 64,
            digits + 20,
        )
        # What is asked ends before half of this; beyond, terms fall by more than half.
        last = 2 * math.isqrt(math.ceil(6 * variance * digits)) + 2
        ends = [
            exponential_bounds(Fraction(k * k) / (2 * variance), digits)
            for k in range(last + 1)
        ]
        # Sums over |z| < k, from below and above, each times 2^bits; then the goal,
        # what of all of the law lies before the draw.
        below, above = (
            list(itertools.accumulate((2 * part for part in side[1:]), initial=side[0]))
            for side in zip(*ends, strict=True)
        )
        least = below[-1] * ((1 << bits) - first_bits - 1)
        most = (above[-1] + 4 * ends[-1][1]) * ((1 << bits) - first_bits)
        fewest: int = sum(part * (1 << bits) < least for part in above)
        if fewest == sum(part * (1 << bits) < most for part in below):
            return fewest

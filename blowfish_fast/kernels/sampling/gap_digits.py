"""Which of very many empty cells noise alone lifts to a threshold; none is visited.

A list of heavy cells shows every cell whose noisy count reaches a public threshold.
Most cells are empty, and noise alone lifts a few of them: each with probability p,
independently. To find these few, the sampler walks from one lifted cell to the next.
The gap G between two of them, the number of cells passed over, has P(G >= g) = q^g with
q = 1 - p:

    cells   . . . . . ^ . . ^ . . . . . . . . ^ . . .        ^ lifted
    gaps    5           2     8                 beyond the last cell
    digits  101         10    1000

The binary digits of a gap are independent (Lemma SL3). Digit j, which stands for 2^j,
is a one with probability q^(2^j) / (1 + q^(2^j)), so that one random word of 64 bits
decides one digit: a word below 2^64 times that probability is a one. The bound is no
whole number. Two whole numbers enclose it, and a word that is one of them, or lies
between them, does not decide: then further bits are read of both the word and the
bound. So no probability is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from blowfish_fast._support.typing import IntArray, WordArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._arguments import (
    RESOLVER_BASE,
    RESOLVER_BITS,
    Words,
    further_words,
    read_words,
)

from .tail_bounds import Enclosure

WORD_BITS = 64
MOST_LEVELS = 1024
LEVELS_IN_WORDS = 62
"""The most digits of a gap with which the walk is done in words of 64 bits."""
GAPS_AT_ONCE = 2**14
"""The most gaps of a batch: it bounds the memory for their random words."""

Tail = Callable[[int], Enclosure]
"""Encloses 2^bits p, for any number of bits."""


class GapDigits:
    """The law of the digits of a gap, from an enclosure of p; public numbers alone.

    Parameters
    ----------
    tail : callable
        ``tail(bits)`` returns whole numbers below and above 2^bits p.
    levels : int
        Number of digits. Gaps of ``2**levels`` and more are one event, "beyond", which
        is drawn like a further digit.

    Attributes
    ----------
    low : ndarray of uint64, shape (levels + 1,)
        A word below it is a one; the last entry is for "beyond".
    high : ndarray of uint64, shape (levels + 1,)
        A word above it is a zero.

    Examples
    --------
    With p = 1/2 the digits are ones with probability 1/3, 1/5 and 1/17, and a gap lies
    beyond 7 with probability 1/256.

    >>> law = GapDigits(lambda bits: (1 << bits - 1, 1 << bits - 1), levels=3)
    >>> [round(float(bound) / 2**64, 4) for bound in law.low]
    [0.3333, 0.2, 0.0588, 0.0039]
    """

    def __init__(self, tail: Tail, levels: int) -> None:
        if not 1 <= levels <= MOST_LEVELS:
            raise InputError(
                f"gaps have 1 to {MOST_LEVELS} digits", received=repr(levels)
            )
        self.levels = levels
        self.tail = tail
        self._enclosed: dict[int, list[Enclosure]] = {}
        bounds = [self.enclose(digit, WORD_BITS) for digit in range(levels + 1)]
        last = (1 << WORD_BITS) - 1
        self.low: WordArray = np.array([low for low, _ in bounds], dtype=np.uint64)
        self.high: WordArray = np.array(
            [min(high, last) for _, high in bounds], dtype=np.uint64
        )

    def enclose(self, digit: int, bits: int) -> Enclosure:
        """Enclose 2^bits P(digit = 1); the last digit is "beyond": Lemma SL3.

        Parameters
        ----------
        digit : int
            Number of the digit, from 0 for the lowest one; `levels` is "beyond".
        bits : int
            How many bits of the probability the enclosure has.

        Returns
        -------
        tuple of two int
            Whole numbers below and above 2^bits times the probability.
        """
        work = self._work(bits)
        low, high = self._powers(bits)[digit]
        if digit == self.levels:
            return low >> (work - bits), high >> (work - bits)
        unit = 1 << work
        return (low << bits) // (unit + low), (high << bits) // (unit + high)

    def _work(self, bits: int) -> int:
        """Return how many bits to compute with, so that so many are left."""
        # Each squaring doubles the error, which costs a bit, and rounds once more.
        return bits + 2 * self.levels + WORD_BITS

    def _powers(self, bits: int) -> list[Enclosure]:
        """Enclose 2^work q^(2^digit) for every digit, by squaring again and again.

        The lower end is rounded down and the upper one up, so that the enclosure stays
        one.
        """
        if bits in self._enclosed:
            return self._enclosed[bits]
        work = self._work(bits)
        unit = 1 << work
        tail_low, tail_high = self.tail(work)
        low, high = unit - tail_high, unit - tail_low
        powers = [(low, high)]
        for _ in range(self.levels):
            low, high = low * low >> work, -(-(high * high) >> work)
            powers.append((low, high))
        self._enclosed[bits] = powers
        return powers

    def decide(self, digit: int, words: Words, position: int) -> bool:
        """Read further bits of the word at `position` until its digit is certain.

        Parameters
        ----------
        digit : int
            Number of the digit.
        words : callable
            ``words(position, count)`` returns `count` random words, from `position` on.
        position : int
            The place of the word that decides the digit.

        Returns
        -------
        bool
            Whether the digit is 1.
        """
        word, bits = int(read_words(words, position, 1)[0]), WORD_BITS
        further = further_words(words, RESOLVER_BASE + (position << RESOLVER_BITS))
        while True:
            low, high = self.enclose(digit, bits)
            if word < low:
                return True
            if word > high:
                return False
            word, bits = word << WORD_BITS | next(further), bits + WORD_BITS


def lifted_places(words: Words, cells: int, law: GapDigits, most: int) -> IntArray:
    """Draw which of `cells` empty cells are lifted, ascending: Lemma SL4.

    Parameters
    ----------
    words : callable
        ``words(position, count)`` returns `count` random words, from `position` on.
        They are read from position 0 on, `law.levels` + 1 for each gap.
    cells : int
        Number of cells, at most ``2**law.levels``.
    law : GapDigits
        The digits of a gap.
    most : int
        The most places that are returned: the first ones, where there are more.

    Returns
    -------
    ndarray of int64, shape (lifted cells,)
        Places from 0 to cells - 1. Where gaps have more than 62 digits the array holds
        whole numbers of Python instead.

    Examples
    --------
    >>> law = GapDigits(lambda bits: (1 << bits - 1, 1 << bits - 1), levels=3)
    >>> ones = lambda position, count: np.full(count, 2**63, dtype=np.uint64)
    >>> lifted_places(ones, 5, law, 10)          # no digit is a one: all gaps are 0
    array([0, 1, 2, 3, 4])
    """
    if not 1 <= cells <= 1 << law.levels:
        raise InputError(
            f"gaps of {law.levels} digits walk along 1 to {1 << law.levels:,} cells",
            received=f"{cells:,}",
        )
    if law.levels > LEVELS_IN_WORDS:
        return _far_places(words, cells, law, most)
    width = law.levels + 1
    expected = cells * float(law.tail(2 * WORD_BITS)[1]) / 4.0**WORD_BITS
    # Five standard deviations more than expected: nearly always one batch is enough.
    batch = int(min(expected + 5.0 * math.sqrt(expected) + 8.0, GAPS_AT_ONCE))
    weights: WordArray = np.uint64(1) << np.arange(law.levels, dtype=np.uint64)
    places: list[WordArray] = []
    drawn, position, next_cell = 0, 0, np.uint64(0)
    while drawn < most:
        # A row of words for each gap, a column for each digit, the last for "beyond".
        block = read_words(words, position, batch * width).reshape(batch, width)
        digits = block < law.low
        for row, digit in np.argwhere(~digits & (block <= law.high)).tolist():
            digits[row, digit] = law.decide(
                digit, words, position + row * width + digit
            )
        position += batch * width
        gaps = np.where(digits[:, :-1], weights, np.uint64(0)).sum(axis=1)
        # From `next_cell` a gap of g leads to the cell g places on. The next gap begins
        # one cell behind that one.
        steps = gaps + np.uint64(1)
        reached = np.cumsum(steps, dtype=np.uint64) + next_cell - np.uint64(1)
        # The first sum that leaves the cells is below 2^63. Later sums may exceed 64
        # bits; nobody reads them.
        is_outside = digits[:, -1] | (reached >= np.uint64(cells))
        ended = bool(is_outside.any())
        inside = int(is_outside.argmax()) if ended else batch
        places.append(reached[:inside])
        drawn += inside
        if ended:
            break
        next_cell = reached[-1] + np.uint64(1)
    return np.concatenate(places).astype(np.int64)[:most]


def _far_places(words: Words, cells: int, law: GapDigits, most: int) -> IntArray:
    """Draw places that 64 bits do not hold, gap by gap in whole numbers of Python.

    Such domains are lists of words that could occur. So few are lifted that one gap at
    a time is fast enough.
    """
    width, position, place = law.levels + 1, 0, -1
    places: list[int] = []
    while len(places) < most:
        block = words(position, width)
        digits = block < law.low
        for digit in np.flatnonzero(~digits & (block <= law.high)).tolist():
            digits[digit] = law.decide(digit, words, position + digit)
        position += width
        place += 1 + sum(1 << digit for digit in np.flatnonzero(digits[:-1]).tolist())
        if digits[-1] or place >= cells:
            break
        places.append(place)
    # Assigned afterwards: np.array(places) would choose its dtype by the numbers drawn.
    lifted = np.empty(len(places), dtype=object)
    lifted[:] = places
    return lifted

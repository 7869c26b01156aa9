"""Which of very many empty cells noise alone lifts to a threshold; none is visited.

Each cell is lifted with probability p, independently. From one lifted cell to the next
lies a gap G with P(G >= g) = q^g, q = 1 - p, and the binary digits of a gap are
independent (Lemma SL3), so that one random word decides one digit:

    cells   . . . . . ^ . . ^ . . . . . . . . ^ . . .        ^ lifted
    gaps    5           2     8                 beyond
    digits  101         10    1000

A word below 2^64 P(digit = 1) is a one. That bound is enclosed by two whole numbers; a
word between them goes to the resolver, which reads further bits of both. No
probability is rounded.
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
"""Digits up to which places are held in 64 bits."""
GAPS_AT_ONCE = 2**14
"""Gaps whose words are held at a time."""

Tail = Callable[[int], Enclosure]
"""Encloses 2^bits p, for any number of bits."""


class GapDigits:
    """The law of the digits of a gap, from an enclosure of p; public numbers alone.

    Parameters
    ----------
    tail : callable
        ``tail(bits)`` returns whole numbers below and above 2^bits p.
    levels : int
        Number of digits; gaps of ``2**levels`` and more are one event, "beyond".

    Examples
    --------
    >>> law = GapDigits(lambda bits: (1 << bits - 1, 1 << bits - 1), levels=3)
    >>> [round(float(one) / 2**64, 4) for one in law.low]    # 1/3, 1/5, 1/17, 1/256
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
            Its number, from 0 for the lowest one.
        bits : int
            Of the enclosure.

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
        # Squaring doubles an error, once for each digit.
        return bits + 2 * self.levels + WORD_BITS

    def _powers(self, bits: int) -> list[Enclosure]:
        """Enclose 2^work q^(2^digit) for every digit, by squaring outwards."""
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
            Its number.
        words : callable
            ``words(position, count)``.
        position : int
            Of the word that decides the digit.

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
        ``words(position, count)``, from position 0 on.
    cells : int
        Number of cells, at most ``2**law.levels``.
    law : GapDigits
        The digits of a gap.
    most : int
        The walk ends after so many places, which are the first ones.

    Returns
    -------
    int64 array
        Places from 0 to cells - 1; Python's whole numbers where gaps have more than 62
        digits.

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
    batch = int(min(expected + 5.0 * math.sqrt(expected) + 8.0, GAPS_AT_ONCE))
    weights: WordArray = np.uint64(1) << np.arange(law.levels, dtype=np.uint64)
    places: list[WordArray] = []
    drawn, begin, last = 0, 0, np.uint64(0)
    while drawn < most:
        block = read_words(words, begin, batch * width).reshape(batch, width)
        digits = block < law.low
        for row, digit in np.argwhere(~digits & (block <= law.high)).tolist():
            position = begin + row * width + digit
            digits[row, digit] = law.decide(digit, words, position)
        begin += batch * width
        gaps = np.where(digits[:, :-1], weights, np.uint64(0)).sum(axis=1)
        # The first step leads to the cell of its gap, later ones one cell further.
        steps = gaps + np.uint64(1)
        reached = np.cumsum(steps, dtype=np.uint64) + last - np.uint64(1)
        # A step is at most 2^62 long: before the end nothing exceeds 64 bits.
        ends = digits[:, -1] | (reached >= np.uint64(cells))
        ended = bool(ends.any())
        kept = int(ends.argmax()) if ended else batch
        places.append(reached[:kept])
        drawn += kept
        if ended:
            break
        last = reached[-1] + np.uint64(1)
    return np.concatenate(places).astype(np.int64)[:most]


def _far_places(words: Words, cells: int, law: GapDigits, most: int) -> IntArray:
    """Draw places that 64 bits do not hold, gap by gap; these lists are short."""
    width, begin, place = law.levels + 1, 0, -1
    places: list[int] = []
    while len(places) < most:
        block = words(begin, width)
        digits = block < law.low
        for digit in np.flatnonzero(~digits & (block <= law.high)).tolist():
            digits[digit] = law.decide(digit, words, begin + digit)
        begin += width
        place += 1 + sum(1 << at for at in np.flatnonzero(digits[:-1]).tolist())
        if digits[-1] or place >= cells:
            break
        places.append(place)
    found = np.empty(len(places), dtype=object)
    found[:] = places
    return found

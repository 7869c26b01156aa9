"""Words nobody listed, as cells: every word that could occur has a number.

    length 0    (the empty word)           number 0
    length 1    a  b  ...  z               1 ... 26
    length 2    aa  ab  ...  zz            27 ... 702

Words are ordered by length, then by the order of the symbols. Numbers may need more
than 64 bits, and are Python's whole numbers there. Each length is a public class of
cells, which may have a threshold of its own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast._support.validation import as_whole, quoted
from blowfish_fast.errors import DomainError

MOST_BITS = 512
"""Of the numbers of words: as many digits as gaps between lifted words may have."""

LARGEST_NUMBER = 2**62
"""Numbers up to here are held in 64 bits."""


class KeyClass(NamedTuple):
    """Consecutive cells that share a threshold: the words of one length, or a stray.

    Attributes
    ----------
    first : int
        The number of the first cell.
    cells : int
        How many there are.
    """

    first: int
    cells: int


class KeyRule(NamedTuple):
    """Which words there are: public, and stated before any data is seen.

    Attributes
    ----------
    symbols : str
        The different characters of words, in their order.
    longest : int
        Characters of the longest word.
    case : bool
        Whether capitals are letters of their own.

    Examples
    --------
    >>> rule = KeyRule("abc", 3, False)
    >>> rule.cells, rule.number("ca"), rule.word(10)
    (40, 10, 'ca')
    >>> rule.number("Ca"), rule.number("cat"), rule.number("aaaa")
    (10, None, None)
    """

    symbols: str
    longest: int
    case: bool

    @property
    def cells(self) -> int:
        """How many words there are, the empty one too."""
        return sum(len(self.symbols) ** length for length in range(self.longest + 1))

    def classes(self) -> list[KeyClass]:
        """Return the words of each length, shortest first."""
        return list(_classes(len(self.symbols), self.longest))

    def normal(self, word: str) -> str:
        """Return how a word is compared: case folded unless stated, then NFC."""
        folded = word if self.case else word.casefold()
        return unicodedata.normalize("NFC", folded)

    def number(self, word: str) -> int | None:
        """Return the number of a word; None if it is none of these."""
        plain, place = self.normal(word), _places(self.symbols)
        if len(plain) > self.longest or not all(symbol in place for symbol in plain):
            return None
        base, number = len(self.symbols), 0
        for symbol in plain:
            number = number * base + place[symbol]
        return number + _classes(base, self.longest)[len(plain)].first

    def word(self, number: int) -> str:
        """Return the word of a number."""
        length = max(
            at
            for at, length_class in enumerate(self.classes())
            if length_class.first <= number
        )
        rest, base = number - self.classes()[length].first, len(self.symbols)
        letters = []
        for _ in range(length):
            rest, place = divmod(rest, base)
            letters.append(self.symbols[place])
        return "".join(reversed(letters))

    def words(self) -> str:
        """Say which words there are."""
        case = "" if self.case else ", capitals as small letters"
        shown = self.symbols if len(self.symbols) <= 40 else f"{self.symbols[:37]}..."
        return f"words of up to {self.longest} of {shown!r}{case}"

    def to_list(self) -> list[Any]:
        """Return plain data, for JSON."""
        return [self.symbols, self.longest, self.case]


@lru_cache(maxsize=16)
def _classes(base: int, longest: int) -> tuple[KeyClass, ...]:
    """Return the words of each length over so many symbols."""
    classes, first = [], 0
    for length in range(longest + 1):
        classes.append(KeyClass(first, base**length))
        first += classes[-1].cells
    return tuple(classes)


@lru_cache(maxsize=16)
def _places(symbols: str) -> dict[str, int]:
    return {symbol: at for at, symbol in enumerate(symbols)}


def read_rule(symbols: Any, longest: Any, *, case: bool) -> KeyRule:
    """Return the rule of stated symbols, ``"a-z"`` or ``"a-z0-9 -"``.

    Parameters
    ----------
    symbols : str
        Characters, and ranges of them; a hyphen at the end stands for itself.
    longest : int
        Characters of the longest word, at least 1.
    case : bool
        Whether capitals are letters of their own.

    Returns
    -------
    KeyRule
        The rule.

    Raises
    ------
    DomainError
        If there is no symbol, or words are too many or never occur.
    """
    if not isinstance(symbols, str) or not symbols:
        raise DomainError(
            'symbols are a text, such as "a-z" or "a-z0-9 -"', received=quoted(symbols)
        )
    letters = []
    for low, high in _runs(symbols):
        if low > high:
            raise DomainError(
                "a range of symbols goes forward", received=repr(f"{low}-{high}")
            )
        letters += [chr(code) for code in range(ord(low), ord(high) + 1)]
    rule = KeyRule("".join(dict.fromkeys(letters)), 0, bool(case))
    strange = [symbol for symbol in rule.symbols if rule.normal(symbol) != symbol]
    if strange:
        raise DomainError(
            "symbols are what words hold once they are compared, and "
            f"{strange[0]!r} becomes {rule.normal(strange[0])!r}",
            received=repr(symbols),
            way_out="State small letters, or case=True",
        )
    rule = rule._replace(longest=as_whole(longest, "longest", 1, MOST_BITS))
    if rule.cells.bit_length() > MOST_BITS:
        raise DomainError(
            f"words are numbered in at most {MOST_BITS} bits",
            received=f"{len(rule.symbols)} symbols, up to {rule.longest} of them",
            way_out="State fewer symbols, or shorter words",
        )
    return rule


def _runs(symbols: str) -> Iterator[tuple[str, str]]:
    """Yield the first and last symbol of each run, ``a-z`` or a single one."""
    at = 0
    while at < len(symbols):
        if symbols[at + 1 : at + 2] == "-" and at + 2 < len(symbols):
            yield symbols[at], symbols[at + 2]
            at += 3
        else:
            yield symbols[at], symbols[at]
            at += 1


def as_numbers(numbers: Iterable[int], cells: int) -> AnyArray:
    """Return numbers of cells in 64 bits, or as Python's where these do not hold them.

    Parameters
    ----------
    numbers : iterable of int
        The numbers.
    cells : int
        How many cells there are.

    Returns
    -------
    ndarray of int64 or object
        The numbers.
    """
    listed = list(numbers)
    if cells <= LARGEST_NUMBER:
        return np.array(listed, dtype=np.int64)
    own = np.empty(len(listed), dtype=object)
    own[:] = listed
    return own

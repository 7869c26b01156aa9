"""Texts of any script nobody listed, as cells: numbered by their bytes in UTF-8.

    characters     of 1 byte    of 2      of 3        of 4
    how many       95           1,888     61,395      1,048,544
    from, to       " " to "~"   U+00A0    U+0800      U+10000 and above

    length 0       (the empty text)                    number 0
    length 1       " "  "!"  ...  "~"                  1 ... 95
    length 2       two of 1 byte, then one of 2        96 ... 11,008

Only texts are numbered: a number can be no bytes that are none, so nothing has to be
decoded with an exception after a draw. Characters that steer (line ends, the directions
of scripts) and those that Unicode will never give a meaning have no number, since a
listed text is shown in tables, workbooks and pages. This is fixed for all versions of
Unicode. Texts are ordered by length, then as their bytes are.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from blowfish_fast._support.validation import as_whole
from blowfish_fast.errors import DomainError

from .keys import MOST_BITS, KeyClass, KeyRule, read_rule

ANY_TEXT = "utf-8"
"""What is stated for symbols where every character is one."""

CHARACTERS: tuple[tuple[tuple[int, int], ...], ...] = (
    ((0x20, 0x7E),),
    ((0xA0, 0x7FF),),
    (
        (0x800, 0x2027),
        (0x202F, 0x2065),
        (0x206A, 0xD7FF),
        (0xE000, 0xFDCF),
        (0xFDF0, 0xFFFD),
    ),
    tuple((plane * 0x10000, plane * 0x10000 + 0xFFFD) for plane in range(1, 17)),
)
"""The first and last characters of each run, by bytes: 1, 2, 3, 4."""

_STARTS = tuple(tuple(low for low, _ in runs) for runs in CHARACTERS)
_BEFORE = tuple(
    tuple(accumulate((high - low + 1 for low, high in runs), initial=0))
    for runs in CHARACTERS
)
"""How many characters of as many bytes stand before each run, and how many in all."""


class TextRule(NamedTuple):
    r"""Which texts there are: every one of up to so many bytes in UTF-8.

    Attributes
    ----------
    longest : int
        Bytes of the longest text.
    case : bool
        Whether capitals are letters of their own.

    Examples
    --------
    >>> rule = TextRule(15, False)
    >>> rule.word(rule.number("Müller, 東京"))
    'müller, 東京'
    >>> rule.number("two\nlines"), rule.number("sixteen letters.")
    (None, None)
    """

    longest: int
    case: bool

    @property
    def symbols(self) -> str:
        """What is stated for symbols: ``"utf-8"``."""
        return ANY_TEXT

    @property
    def cells(self) -> int:
        """How many texts there are, the empty one too."""
        return sum(texts_of_bytes(length) for length in range(self.longest + 1))

    def classes(self) -> list[KeyClass]:
        """Return the texts of each number of bytes, shortest first."""
        return list(_classes(self.longest))

    def normal(self, word: str) -> str:
        """Return how a text is compared: case folded unless stated, then NFC."""
        folded = word if self.case else word.casefold()
        return unicodedata.normalize("NFC", folded)

    def number(self, word: str) -> int | None:
        """Return the number of a text; None if it is none of these."""
        plain = self.normal(word)
        if len(plain) > self.longest:
            return None
        places = [_place(ord(character)) for character in plain]
        length = sum(size for size, _ in places)
        if length > self.longest or any(place < 0 for _, place in places):
            return None
        number, left = _classes(self.longest)[length].first, length
        for size, place in places:
            # Characters of fewer bytes come first, each with all texts behind it.
            number += sum(_texts_led_by(fewer, left) for fewer in range(1, size))
            left -= size
            number += place * texts_of_bytes(left)
        return number

    def word(self, number: int) -> str:
        """Return the text of a number."""
        length = max(
            at
            for at, length_class in enumerate(self.classes())
            if length_class.first <= number
        )
        rest, left = number - self.classes()[length].first, length
        characters = []
        while left > 0:
            size = 1
            while rest >= _texts_led_by(size, left):
                rest -= _texts_led_by(size, left)
                size += 1
            left -= size
            place, rest = divmod(rest, texts_of_bytes(left))
            run = bisect_right(_BEFORE[size - 1], place) - 1
            low = _STARTS[size - 1][run]
            characters.append(chr(low + place - _BEFORE[size - 1][run]))
        return "".join(characters)

    def words(self) -> str:
        """Say which texts there are."""
        case = "" if self.case else ", capitals as small letters"
        return f"texts of up to {self.longest} bytes in UTF-8{case}"

    def to_list(self) -> list[Any]:
        """Return plain data, for JSON; no symbols are named where all are meant."""
        return ["", self.longest, self.case]


WordRule = KeyRule | TextRule
"""Which words there are: of stated symbols, or every text."""


def read_texts(longest: Any, *, case: bool) -> TextRule:
    """Return the rule of texts of any script.

    Parameters
    ----------
    longest : int
        Bytes of the longest text, at least 1.
    case : bool
        Whether capitals are letters of their own.

    Returns
    -------
    TextRule
        The rule.

    Raises
    ------
    DomainError
        If there are too many texts.
    """
    rule = TextRule(as_whole(longest, "longest", 1, MOST_BITS), bool(case))
    if rule.cells.bit_length() > MOST_BITS:
        raise DomainError(
            f"words are numbered in at most {MOST_BITS} bits",
            received=f"texts of up to {rule.longest} bytes in UTF-8",
            way_out="State shorter texts, or fewer symbols",
        )
    return rule


def read_words(symbols: Any, longest: Any, *, case: bool) -> WordRule:
    """Return the rule of stated symbols, or of texts of any script.

    Parameters
    ----------
    symbols : str
        ``"utf-8"`` for every text, or what `read_rule` takes.
    longest : int
        Bytes of the longest text, or characters of the longest word.
    case : bool
        Whether capitals are letters of their own.

    Returns
    -------
    KeyRule or TextRule
        The rule.

    Raises
    ------
    DomainError
        If symbols are malformed, or there are too many words.
    """
    if symbols == ANY_TEXT:
        return read_texts(longest, case=case)
    return read_rule(symbols, longest, case=case)


@lru_cache(maxsize=1024)
def texts_of_bytes(length: int) -> int:
    """Return how many texts have so many bytes.

    Parameters
    ----------
    length : int
        The bytes; there is one text of none, and none of fewer.

    Returns
    -------
    int
        The number of texts: each begins with a character of 1 to 4 bytes.
    """
    if length <= 0:
        return int(length == 0)
    return sum(_texts_led_by(size, length) for size in (1, 2, 3, 4))


def _texts_led_by(size: int, length: int) -> int:
    """Return how many texts of so many bytes begin with a character of `size` bytes."""
    return _BEFORE[size - 1][-1] * texts_of_bytes(length - size)


@lru_cache(maxsize=16)
def _classes(longest: int) -> tuple[KeyClass, ...]:
    """Return the texts of each number of bytes."""
    sizes = [texts_of_bytes(length) for length in range(longest + 1)]
    firsts = accumulate(sizes[:-1], initial=0)
    return tuple(map(KeyClass, firsts, sizes))


def _place(code: int) -> tuple[int, int]:
    """Return the bytes of a character and its place among those of as many, or -1."""
    size = 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
    run = bisect_right(_STARTS[size - 1], code) - 1
    if run < 0 or code > CHARACTERS[size - 1][run][1]:
        return size, -1
    return size, _BEFORE[size - 1][run] + code - _STARTS[size - 1][run]

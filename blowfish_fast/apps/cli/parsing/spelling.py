"""Small pieces of the command line's language, light enough for any help page.

Serves every reader of words: the word that was meant where the one typed is not known,
and the endings by which a word names a file.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

KNOWN_TOTALS = "+known:"
"""Parts a policy from the columns whose totals are public."""
SUFFIXES = (".csv", ".npy", ".txt")
"""Endings of files of numbers, labels or queries."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean ...?)" where a known word is close, else nothing.

    Examples
    --------
    >>> nearest("incone", ["age", "income"])
    " (did you mean 'income'?)"
    """
    by_small_letters = {one.lower(): one for one in known}
    close = difflib.get_close_matches(word.lower(), list(by_small_letters), n=1)
    # A word that is known, but lacks what follows it, is no advice.
    meant = by_small_letters[close[0]] if close else word
    return "" if meant == word else f" (did you mean {meant!r}?)"


def names_a_file(words: str) -> bool:
    """Return whether words look like the name of a file of numbers."""
    return Path(words).suffix.lower() in SUFFIXES

"""The word that was meant, where the one typed is not known.

Serves every message that refuses a name: of a column, a policy, a table of a job file.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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

"""Lists of values that people write: what was written is what is meant.

An item is taken as it stands, without the blanks around it. An item in quotation marks
is taken whole, as in a CSV file: the marks go, a doubled mark stands for one, and
blanks, separators and line breaks between them stay.

    biology,earth science             "biology" and "earth science"
    "Bern, Stadt",Chur                "Bern, Stadt" and "Chur"
    " a ","5"" pipe",5" pipe          " a ", and twice '5" pipe'

`written_item` is the way back: whatever text it is given, `split_items` reads that
text from what it returns.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from blowfish_fast.errors import InputError

QUOTE = '"'
LINE_END = re.compile(r"\r\n?|\n")
QUOTED = re.compile('"((?:[^"]|"")*)"')
"""A quoted item, with the marks around it."""


class Item(NamedTuple):
    """A value of a list, and whether it stood in quotation marks.

    Parameters
    ----------
    text : str
        The value, without quotation marks.
    quoted : bool
        Whether it stood in them.
    """

    text: str
    quoted: bool


def read_item(text: str, start: int, ends: re.Pattern[str]) -> tuple[Item, int]:
    """Read the item that begins at a place of a text.

    Parameters
    ----------
    text : str
        The whole list.
    start : int
        Where the item begins; blanks before it are no part of it.
    ends : re.Pattern
        What stands behind an item that is not the last one.

    Returns
    -------
    item : Item
        The value.
    stop : int
        Where `ends` matches behind it; the length of the text for the last item.

    Raises
    ------
    InputError
        A quotation mark that opens an item is not closed at its end.
    """
    opening = start
    while text[opening : opening + 1].isspace() and not ends.match(text, opening):
        opening += 1
    if text[opening : opening + 1] != QUOTE:
        end = ends.search(text, start)
        stop = len(text) if end is None else end.start()
        return Item(text[start:stop].strip(), False), stop
    whole = QUOTED.match(text, opening)
    stop = len(text) if whole is None else whole.end()
    while whole and stop < len(text) and not ends.match(text, stop):
        if not text[stop].isspace():
            whole = None
        stop += 1
    if whole is None:
        shown = text[opening : opening + 40]
        raise InputError(
            "a value that begins with a quotation mark ends with one, and a mark "
            "inside it is doubled, as in a CSV file",
            received=repr(shown),
            way_out='Write "Bern, Stadt", or "5"" pipe"',
        )
    return Item(whole[1].replace(QUOTE * 2, QUOTE), True), stop


def split_items(text: str, separator: str = ",") -> list[Item]:
    """Return the items of a list.

    Parameters
    ----------
    text : str
        Items with a separator between each two.
    separator : str, default ","
        One character.

    Returns
    -------
    list of Item
        One more than there are separators outside quotation marks.

    Examples
    --------
    >>> [one.text for one in split_items('biology, earth science, "Bern, Stadt"')]
    ['biology', 'earth science', 'Bern, Stadt']
    """
    ends, items, stop = re.compile(re.escape(separator)), [], -1
    while stop < len(text):
        item, stop = read_item(text, stop + 1, ends)
        items.append(item)
    return items


def split_lines(text: str) -> list[Item]:
    r"""Return the items of a list with one per line; blank lines are none.

    Examples
    --------
    >>> [one.text for one in split_lines("biology\nBern, Stadt\n")]
    ['biology', 'Bern, Stadt']
    """
    lines, start = [], 0
    while start < len(text):
        item, stop = read_item(text, start, LINE_END)
        end = LINE_END.match(text, stop)
        start = len(text) if end is None else end.end()
        if item != Item("", False):
            lines.append(item)
    return lines


def split_name(words: str) -> tuple[str, str | None]:
    """Part a column's name from what is said of it behind the first equals sign.

    Returns
    -------
    name : str
        The name; one with an equals sign in it stands in quotation marks.
    rest : str or None
        What stands behind the equals sign; None where there is none.

    Examples
    --------
    >>> split_name("town=Bern"), split_name('"a=b"=c')
    (('town', 'Bern'), ('a=b', 'c'))
    """
    name, stop = read_item(words, 0, re.compile("="))
    return name.text, words[stop + 1 :] if stop < len(words) else None


def written_item(text: str) -> str:
    """Return a text as an item of a list, in quotation marks where it needs them.

    Examples
    --------
    >>> written_item("earth science"), written_item("Bern, Stadt")
    ('earth science', '"Bern, Stadt"')
    """
    plain = text and text == text.strip() and text[0] not in '"@'
    if plain and not re.search("[,=\r\n]", text):
        return text
    return QUOTE + text.replace(QUOTE, QUOTE * 2) + QUOTE

"""Lines of a job file, so that a refusal can say which line it is about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from blowfish_fast.errors import InputError

Key = tuple[str, str]
"""A table of a job file, and a name in it; an empty name is the table itself."""
HEADING = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
NAME = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w-]+)\s*[.=]""")


def key_lines(text: str) -> dict[Key, int]:
    r"""Return the line at which a TOML file states each name of its tables.

    The reader of TOML does not say it. Lines are read one by one here, so a line inside
    a long text or list may be taken for a name: a line is only ever shown beside the
    name that it is about.

    Parameters
    ----------
    text : str
        The file.

    Returns
    -------
    dict
        Lines counted from 1, by table and name.

    Examples
    --------
    >>> key_lines("[data]\nsource = 1\n[policies.age]\nkind = 2")
    {('data', ''): 1, ('data', 'source'): 2, ('policies', 'age'): 3}
    """
    lines: dict[Key, int] = {}
    table, inner = "", ""
    for number, line in enumerate(text.splitlines(), start=1):
        heading, named = HEADING.match(line), NAME.match(line)
        if heading is not None:
            table, _, inner = (part.strip("\"' ") for part in heading[1].partition("."))
            lines.setdefault((table, inner), number)
        elif named is not None and not inner:
            lines.setdefault((table, named[1].strip("\"'")), number)
    return lines


def at_line(lines: Mapping[Key, int], table: str, name: str = "") -> str:
    """Return how a message begins that is about a name of a job file.

    Parameters
    ----------
    lines : mapping
        The line of each key; an empty one where no file was read.
    table : str
        The table.
    name : str
        The name in it; none for the table itself.

    Returns
    -------
    str
        "line 7: ", or nothing where the line is not known.
    """
    line = lines.get((table, name))
    return "" if line is None else f"line {line}: "


@contextmanager
def told_with_line(
    lines: Mapping[Key, int], table: str, name: str = ""
) -> Iterator[None]:
    """Let a refusal name the line of the job file that it is about.

    Parameters
    ----------
    lines : mapping
        The line of each key.
    table : str
        The table that is read.
    name : str
        The name in it that is read.

    Raises
    ------
    InputError
        The refusal, with its line in front.
    """
    try:
        yield
    except InputError as problem:
        where = at_line(lines, table, name) or at_line(lines, table)
        if not where or str(problem).startswith("line "):
            raise
        raise InputError(f"{where}{problem}") from None

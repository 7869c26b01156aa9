"""Messages of the library in the words of the command line.

    pass missing="cell" to ...            ->  state --missing cell to ...
    0=slice(200.0, 300.0, None) selects   ->  200:300 selects
    Build it with Domain.from_edges       ->  State it as NAME=LOW:HIGH:WIDTH

An error gives a way out in Python's words, because most who meet it write Python.
Whoever types commands has no use for those; here they are put into hers.
"""

from __future__ import annotations

import re

PHRASES: tuple[tuple[str, str], ...] = (
    (r'\bpass (outside|missing)="(\w+)"', r"state --\1 \2"),
    (r'\b(outside|missing)="(\w+)"', r"--\1 \2"),
    (
        r"that are no level of (.+?); add them to the public levels",
        r"that are no category of \1, letter by letter (capitals and leading zeros "
        r"count); list them, too",
    ),
    (
        r"or a mapping from attributes to these",
        r"or COLUMN=cell for one column; a record is never dropped",
    ),
    (
        r"give the domain edges with Domain\.from_edges to bin real values",
        r"state its cells as NAME=LOW:HIGH:WIDTH to sort other values into them",
    ),
    (
        r"Build it with Domain\.from_edges, or state theta",
        r"State its cells as NAME=LOW:HIGH:WIDTH, or theta",
    ),
    (
        r"or take policies\.Product of one Threshold per attribute",
        r"or one policy per column: product:threshold:A:value,threshold:B:value",
    ),
    (
        r"Categories need Domain\.from_levels, dates Domain\.from_dates",
        r"State categories as NAME=categories:A,B, dates as NAME=FROM:TO:month",
    ),
    (r"\S+=slice\(([^,]+), ([^,]+), None\) selects", r"\1:\2 selects"),
    (r"'([^']*)':'([^']*)' selects", r"\1:\2 selects"),
    (r"(\S+)=slice\(low, high\)", r"\1=LOW:HIGH"),
    (r"(?<=\d)\.0(?=[: ])", r""),
    (r"\bNone:", r":"),
    (r":None\b", r":"),
    (r"as date objects or texts like", r"as texts like"),
    (r'unit="value" measures', r"threshold:THETA:value measures"),
    (r", or give their public values: sum\(name, values=\[\.\.\.\]\)", r""),
    (
        r"(?:Sum its estimate over the others|Ask release\.where\S+ q\)), or release "
        r"one attribute",
        r"Release that column alone, or count it by ranges, --by COLUMN=A,B,C",
    ),
    (r"in C order \(numpy\.ravel_multi_index\)", r"from 0, the last column fastest"),
    (r" \((?:\w+\.)+\w+\)", r""),
)
"""Patterns of what the library says, and what the command line says instead."""


def in_plain_words(message: str) -> str:
    """Return a message with words that can be typed in place of Python's.

    Examples
    --------
    >>> in_plain_words('they have no cell; pass missing="cell" to give them one')
    'they have no cell; state --missing cell to give them one'
    """
    for pattern, instead in PHRASES:
        message = re.sub(pattern, instead, message)
    return message

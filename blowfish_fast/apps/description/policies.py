"""Policies that are described by keys, in the words that ``--policy`` takes.

    [policies.age]                             --policy attribute:age=threshold:5:value
    kind = "threshold"
    theta = 5
    unit = "value"

    [policies.ward]                            ward=blocks:"heart"|"surgery"/"children"
    kind = "blocks"
    blocks = [["heart", "surgery"], ["children"]]

The keys are those of the shipped description of a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blowfish_fast.data.listed_items import QUOTE, written_item
from blowfish_fast.errors import InputError

from .columns import check_keys
from .shipped import part_of_table

PRESENCE = "+presence"
"""Parts a policy from how many edges away "absent" is."""
JOINED = "+extras:"
"""Parts the policy of a column from what its extra cells are joined to."""
BLOCK_END = "/"
VALUE_END = "|"
"""What parts two blocks, and two values of a block, where blocks are listed."""


def described_policy(name: str, stated: Any) -> str:
    """Return the policy of one column in words.

    Parameters
    ----------
    name : str
        The column.
    stated : mapping
        Its policy by the keys kind, theta, unit and blocks.

    Returns
    -------
    str
        What ``--policy`` takes for a domain of this column alone.

    Raises
    ------
    InputError
        If a key or a value is none of the schema's; the message names it.

    Examples
    --------
    >>> described_policy("age", {"kind": "threshold", "theta": 5, "unit": "value"})
    'threshold:5:value'
    >>> described_policy("ward", {"kind": "blocks", "blocks": [["a", "b"], ["c"]]})
    'blocks:"a"|"b"/"c"'
    """
    check_keys(f"{name!r} in [policies]", stated, part_of_table("PolicySpec"))
    kind = stated.get("kind", "full")
    for key, owner in (("theta", "threshold"), ("blocks", "blocks")):
        if (key in stated) != (kind == owner):
            raise InputError(
                f"{key!r} belongs to kind = {owner!r}, and only to it; {name!r} in "
                f"[policies] is of kind {kind!r}"
            )
    if kind == "threshold":
        theta = stated["theta"]
        if isinstance(theta, bool) or not isinstance(theta, int | float):
            raise InputError(
                f"'theta' of {name!r} in [policies] is a number; received {theta!r}"
            )
        unit = f":{stated['unit']}" if "unit" in stated else ""
        return f"threshold:{theta}{unit}"
    return kind if kind != "blocks" else f"blocks:{_listed(name, stated['blocks'])}"


def _listed(name: str, blocks: Any) -> str:
    whole = isinstance(blocks, list) and all(isinstance(part, list) for part in blocks)
    if not whole or not all(blocks):
        raise InputError(
            f"'blocks' of {name!r} in [policies] is a list of lists of values; "
            f"received {blocks!r}"
        )
    quoted = [
        [QUOTE + str(value).replace(QUOTE, QUOTE * 2) + QUOTE for value in block]
        for block in blocks
    ]
    return BLOCK_END.join(VALUE_END.join(block) for block in quoted)


def described_policies(
    policies: Mapping[str, Any], columns: Mapping[str, Any], presence: Any = False
) -> str:
    """Return the policies of a table, column by column, in words.

    Parameters
    ----------
    policies : mapping
        The policy of each column by its name; the others may take any value.
    columns : mapping
        The columns of the table. A described one may state ``extras_joined``.
    presence : bool, float or "only"
        How many edges away "absent" is: not protected, one, so many; or "only",
        records that appear and disappear and never change.

    Returns
    -------
    str
        What ``--policy`` takes.

    Raises
    ------
    InputError
        If a policy is wrong, is of no column, or stands beside presence = "only".

    Examples
    --------
    >>> ages = {"cells": {"start": 0, "stop": 9, "width": 1}, "extras_joined": "end"}
    >>> described_policies({"age": {"kind": "line"}}, {"age": ages, "sex": {}}, 2)
    'attribute:age=line+extras:end+presence:2'
    >>> described_policies({}, {"age": ages}, "only")
    'add_remove'
    """
    if presence == "only":
        if policies:
            raise InputError(
                'presence = "only" protects whole records that appear or disappear',
                received=f"policies of {', '.join(policies)}",
                way_out="Leave the policies out, or state presence = true",
            )
        return "add_remove"
    length = 1 if presence is True else presence
    suffix = "" if presence is False else f"{PRESENCE}:{length}"
    if not policies:
        return f"full{suffix}"
    unknown = [name for name in policies if name not in columns]
    if unknown:
        raise InputError(
            f"[policies] states policies of columns; there is no {unknown[0]!r} among "
            f"{', '.join(columns)}"
        )
    words = {
        name: described_policy(name, stated) + _joined(columns[name])
        for name, stated in policies.items()
    }
    if len(columns) == 1:
        return f"{words.popitem()[1]}{suffix}"
    parts = (f"{written_item(name)}={own}" for name, own in words.items())
    return f"attribute:{','.join(parts)}{suffix}"


def _joined(column: Any) -> str:
    """Return what a described column joins its extra cells to, in words."""
    stated = isinstance(column, Mapping) and "extras_joined" in column
    return f"{JOINED}{column['extras_joined']}" if stated else ""


def read_blocks(words: str, values: Sequence[str]) -> list[int] | None:
    """Return the block of each value where blocks are listed; None where they are not.

    Parameters
    ----------
    words : str
        What stands behind ``blocks:``: values with a stroke between them, and blocks
        with a slash.
    values : sequence of str
        All values of the column, as texts.

    Returns
    -------
    list of int or None
        A number for each value; those of one block have the same.

    Raises
    ------
    InputError
        If a value is in no block or in two, or a block names what is no value.

    Examples
    --------
    >>> read_blocks("heart|surgery/children", ["children", "heart", "surgery"])
    [1, 0, 0]
    >>> read_blocks("8x8", ["children", "heart"])
    """
    if VALUE_END not in words and QUOTE not in words:
        return None
    blocks = [
        [_unquoted(value) for value in _apart(block, VALUE_END)]
        for block in _apart(words, BLOCK_END)
    ]
    number = {value: at for at, block in enumerate(blocks) for value in block}
    listed = sum(len(block) for block in blocks)
    if set(number) != set(values) or listed != len(number):
        raise InputError(
            "each value must lie in exactly one block",
            received=f"blocks that name {listed} values, where the column has "
            f"{len(values)}",
            way_out="List every value once; one in a block of its own is public",
        )
    return [number[value] for value in values]


def split_columns(words: str) -> list[str]:
    """Return the parts of a list of policies; commas in quotation marks part nothing.

    Examples
    --------
    >>> split_columns('age=line,town="Bern, Stadt"|Chur')
    ['age=line', 'town="Bern, Stadt"|Chur']
    """
    return [part.strip() for part in _apart(words, ",")]


def _apart(words: str, separator: str) -> list[str]:
    """Part words at a separator; what stands in quotation marks is not parted."""
    parts, inside = [""], False
    for letter in words:
        inside ^= letter == QUOTE
        if letter == separator and not inside:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _unquoted(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] == QUOTE:
        return value[1:-1].replace(QUOTE * 2, QUOTE)
    return value

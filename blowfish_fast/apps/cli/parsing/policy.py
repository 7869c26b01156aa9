"""Policies in words (`POLICY_FORMS`): which values must stay indistinguishable.

Files name categories where a column has them, and number other cells from 0; where
categories look like numbers, the first line has to say which of the two is meant: a
policy that protects the wrong cells would look like any.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast.apps.cli.options import POLICY_FORMS, names_a_file
from blowfish_fast.apps.description.policies import (
    JOINED,
    PRESENCE,
    read_blocks,
    split_columns,
)
from blowfish_fast.data.csv_files import is_number
from blowfish_fast.data.domain import (
    LARGEST_DOMAIN,
    Attributes,
    Domain,
    WideDomain,
)
from blowfish_fast.data.frames import numbers_from_file, rows_of
from blowfish_fast.data.listed_items import split_name
from blowfish_fast.errors import InputError, nearest
from blowfish_fast.policies import (
    POLICIES,
    AddRemove,
    Blocks,
    Full,
    Graph,
    MarginalConstraints,
    Policy,
    Product,
    TablePolicy,
    Threshold,
    WithAbsent,
    beside_extra_cells,
    neighbours,
)

from .domain import find_column
from .job_words import KNOWN_TOTALS
from .levels import columns_in, district_labels

METRICS = ("l1", "l2", "linf")
PLAIN_POLICIES = ("add_remove", "full", "line", "attribute")
WHOLE_RECORDS = ("add_remove", "full", "attribute")
"""Policies that treat all cells alike, extra cells among them."""
BY_COLUMN = ("attribute", "product")
"""Policies that may state one for each column: by name, or all of them in order."""
ORDERED = ("line", "threshold")
"""Policies that speak of neighbours and distances."""
NEIGHBOURS = "neighbours"
"""Districts with a common border; the cell outside is next to those on the rim."""
NEAREST = "nearest"
"""Parts of a map without a common border are joined at their nearest districts."""
PUBLIC = "public"
"""Instead of a column's policy: its values are no secret."""
WAYS_TO_JOIN = ("all", "end", "apart")
"""What cells for missing values and values outside may be joined to."""
ABSENT = "absent"
PAIRS = "edges, two cells per line"
MEANINGS = ("categor", "cell")
"""How a first line begins each name where it says what numbers stand for."""


def parse_policy(words: str, domain: Domain) -> Policy:
    """Return the policy of ``full``, ``threshold:10`` or another form.

    Parameters
    ----------
    words : str
        One of `POLICY_FORMS`.
    domain : Domain
        The cells of the release.

    Returns
    -------
    Policy
        The policy over them.

    Raises
    ------
    InputError
        If the words are none of the forms, or do not fit the domain.
    """
    words, far = split_presence(words)
    if far is not None:
        return WithAbsent(parse_policy(words, domain), far)
    words, _, public = words.partition(KNOWN_TOTALS)
    if public:
        columns = [find_column(name, domain) for name in public.split(",")]
        constraints = MarginalConstraints(domain, columns)
        return parse_policy(words, domain).with_constraints(constraints)
    if words.partition(":")[0] not in BY_COLUMN and JOINED in words:
        return _beside_extra_cells(*split_joined(words), domain)
    name, _, setting = words.partition(":")
    makers = {"threshold": _threshold, "blocks": _blocks, "graph": _graph}
    if name == NEIGHBOURS:
        return _neighbours(setting, domain, words)
    extras = any(attribute.extras for attribute in domain.attributes)
    if extras and name not in (*WHOLE_RECORDS, "product"):
        return _beside_extra_cells(words, "all", domain)
    if name in makers and setting:
        return makers[name](setting, domain, words)
    if name in BY_COLUMN and setting:
        return Product(*_factors(words, domain), domain=domain)
    if name in PLAIN_POLICIES and not setting:
        kind: Any = POLICIES[name]
        policy: Policy = kind(domain)
        return policy
    raise InputError(
        f"the policy is one of {POLICY_FORMS}; received {words!r}"
        f"{nearest(name, [*PLAIN_POLICIES, *makers, 'product', NEIGHBOURS])}"
    )


def split_presence(words: str) -> tuple[str, str | None]:
    """Part the moves from how many edges away "absent" is; None where nobody said.

    Parameters
    ----------
    words : str
        A policy, with "+presence" or "+presence:4" at its end or without.

    Returns
    -------
    tuple of str and str or None
        The policy of the moves, and the number of edges as it was written.
    """
    moves, separator, far = words.strip().partition(PRESENCE)
    if far and not (far[0] == ":" and is_number(far[1:])):
        raise InputError(
            f'"absent" is one edge away, {PRESENCE}, or some, {PRESENCE}:4',
            received=repr(words),
        )
    return moves.strip(), (far[1:] or "1") if separator else None


def split_joined(words: str) -> tuple[str, str]:
    """Part the policy of a column from what its extra cells are joined to.

    Parameters
    ----------
    words : str
        A policy of one column, with "+extras:end" at its end or without.

    Returns
    -------
    tuple of str and str
        The policy of the values; and "all", which is the default, "end" or "apart".

    Raises
    ------
    InputError
        If the cells are joined to anything else.
    """
    moves, _, joined = words.partition(JOINED)
    joined = joined.strip() or "all"
    if joined not in WAYS_TO_JOIN:
        raise InputError(
            f"cells for missing values and values outside are joined to "
            f"{JOINED}all, {JOINED}end or {JOINED}apart",
            received=repr(words),
        )
    return moves.strip(), joined


def parse_table_policy(words: str, table: Domain | WideDomain) -> Policy:
    """Return the policy of a ledger: over several columns, one of the whole table.

    Parameters
    ----------
    words : str
        One of `POLICY_FORMS`; over many cells only those that need no list of
        cells.
    table : Domain or WideDomain
        All columns of the ledger.

    Returns
    -------
    Policy
        The policy of the whole table.
    """
    moves, far = split_presence(words)
    if isinstance(table, Domain) and (table.ndim == 1 or None in table.names):
        return parse_policy(words, table)
    alone = table.ndim == 1 or max(table.shape) > LARGEST_DOMAIN
    if isinstance(table, WideDomain) and alone:
        return parse_wide_policy(words, table)
    if moves == "add_remove":
        single: Policy = AddRemove(table)  # type: ignore[arg-type]
        return single if far is None else WithAbsent(single, far)
    name = moves.partition(":")[0]
    if moves == "full" or (name in BY_COLUMN and KNOWN_TOTALS not in moves):
        stated = None if moves == "full" else _stated(moves, table)
        return TablePolicy(table, stated, far or False)
    if isinstance(table, WideDomain):
        raise InputError(
            f"over {table.size:,} cells the policy is full, add_remove, attribute, "
            "attribute:COLUMN=POLICY,COLUMN=public or product:POLICY,POLICY with one "
            f"policy per column, each with {PRESENCE}:NUMBER; received {words!r}"
        )
    return parse_policy(words, table)


def parse_wide_policy(words: str, domain: WideDomain) -> Policy:
    """Return the policy of a release from a domain whose cells nobody lists.

    Parameters
    ----------
    words : str
        "add_remove" or "full"; over a single column also "line" or
        "threshold:CELLS". Each may end with "+presence:EDGES".
    domain : WideDomain
        The cells of the release.

    Returns
    -------
    Policy
        The policy over them.

    Raises
    ------
    InputError
        If the words are another policy.
    """
    moves, far = split_presence(words)
    name, _, setting = moves.partition(":")
    extras = any(attribute.extras for attribute in domain.attributes)
    cells: Any = domain
    policy: Policy | None = None
    if moves == "add_remove":
        policy = AddRemove(cells)
    elif moves == "full":
        policy = Full(cells)
    elif domain.ndim == 1 and not extras and moves == "line":
        policy = POLICIES["line"](cells)
    elif domain.ndim == 1 and not extras and name == "threshold" and setting:
        policy = _threshold(setting, cells, words)
    if policy is None:
        ordered = ", line and threshold:CELLS" if domain.ndim == 1 else ""
        raise InputError(
            f"over {domain.size:,} cells the policy is one of add_remove, full"
            f"{ordered}, each with {PRESENCE}:EDGES",
            received=repr(words),
            way_out="State one of these; cells for stray values have no place in a "
            "line: clamp such values",
        )
    return policy if far is None else WithAbsent(policy, far)


def extend_policy(words: str, columns: Domain, table: Domain | WideDomain) -> Policy:
    """Return the policy of a table from the words about some of its columns.

    Columns that the words do not mention may take any value.

    Parameters
    ----------
    words : str
        A policy of the `columns`. A product has a policy for each of these, or for
        each column of the table.
    columns : Domain
        The columns of a release.
    table : Domain or WideDomain
        All columns of the ledger.

    Returns
    -------
    Policy
        The policy of the whole table.
    """
    moves, far = split_presence(words)
    name = moves.partition(":")[0]
    single = columns.ndim == 1 or name in (*WHOLE_RECORDS, "product")
    if KNOWN_TOTALS in moves or not single:
        raise InputError(
            "a table's policy is full, add_remove, attribute or product:POLICY,POLICY "
            f"with one policy per column; received {words!r}"
        )
    if name in WHOLE_RECORDS or _names_each(moves, table):
        return parse_table_policy(words, table)
    return TablePolicy(table, _stated(moves, columns), far or False)


def _names_each(moves: str, domain: Attributes) -> bool:
    """Return whether a product has a policy for each column of a domain."""
    name, _, setting = moves.partition(":")
    return name == "product" and len(split_columns(setting)) == domain.ndim


def words_by_column(words: str, domain: Attributes) -> list[str]:
    """Return the words of each column's policy; full for those that nobody names.

    Parameters
    ----------
    words : str
        A policy of several columns.
    domain : Domain or WideDomain
        Whose columns are meant.

    Returns
    -------
    list of str
        A policy in words for each column.
    """
    moves = split_presence(words)[0].partition(KNOWN_TOTALS)[0].strip()
    name, _, setting = moves.partition(":")
    parts = split_columns(setting) if setting else []
    if name == "attribute":
        pairs = [split_name(part) for part in parts]
        named = {
            find_column(column, domain): (own or "").strip() for column, own in pairs
        }
        if len(named) < len(parts) or not all(named.values()):
            raise InputError(
                "each column is named once, with its policy: attribute:age=line,"
                f"region=public; received {words!r}"
            )
        return [named.get(axis, "full") for axis in range(domain.ndim)]
    if name == "product" and len(parts) != domain.ndim:
        raise InputError(
            f"a product names one policy per column of the domain, which has "
            f"{domain.ndim}; received {words!r}"
        )
    return parts if name == "product" else [moves] * domain.ndim


def listed_orders(words: str, domain: Attributes, table: Attributes) -> list[str]:
    """Return the columns whose categories a policy takes in the order of their list.

    Parameters
    ----------
    words : str
        A policy of the columns of a release, or of all of its ledger's.
    domain : Domain or WideDomain
        The columns of the release.
    table : Domain or WideDomain
        All columns of the ledger.

    Returns
    -------
    list of str
        Names of columns. A list need not be an order, so commands say which they
        took as one.
    """
    if _names_each(split_presence(words)[0], table):
        domain = table
    pairs = zip(domain.attributes, words_by_column(words, domain), strict=True)
    ordered = [
        attribute
        for attribute, own in pairs
        if split_joined(own)[0].partition(":")[0] in ORDERED
    ]
    return [
        str(attribute.name) for attribute in ordered if attribute.levels is not None
    ]


def _factors(words: str, domain: Attributes) -> list[Policy]:
    """Return the policy of each column."""
    columns = [Domain._of([attribute]) for attribute in domain.attributes]
    return [
        Blocks(column, np.arange(column.size))
        if stated == PUBLIC
        else parse_policy(stated, column)
        for column, stated in zip(columns, words_by_column(words, domain), strict=True)
    ]


def _stated(words: str, domain: Attributes) -> dict[str, Policy]:
    """Return the policies of columns by name, without those that may take any value."""
    factors = zip(domain.names, _factors(words, domain), strict=True)
    return {
        str(name): policy for name, policy in factors if not isinstance(policy, Full)
    }


def _beside_extra_cells(words: str, joined: Any, domain: Domain) -> Policy:
    """Return a policy over the values, with its extra cells joined as stated."""
    inner = parse_policy(words, domain.without_extra_cells())
    if domain.ndim > 1:
        raise InputError(
            f"cells for missing values or values outside have no place in {words!r} "
            "over several columns; use product:POLICY,POLICY, full or attribute, or "
            "clamp such values"
        )
    return beside_extra_cells(inner, domain, joined)


def _threshold(setting: str, domain: Domain, words: str) -> Policy:
    number, *choices = setting.split(":")
    chosen: dict[str, Any] = {}
    for word in choices:
        kind = "metric" if word in METRICS else "unit"
        if kind in chosen or word not in (*METRICS, "cells", "value"):
            raise InputError(
                "a threshold is threshold:THETA, then :cells or :value, and on grids "
                f":l1, :l2 or :linf; received {words!r}"
            )
        chosen[kind] = word
    if not is_number(number):
        raise InputError(
            f"a threshold is threshold:THETA with a number, as in threshold:5; "
            f"received {words!r}"
        )
    theta = float(number)
    if not math.isfinite(theta):
        raise InputError(f"theta must be finite; received {words!r}. Use full")
    whole = int(theta) if theta == int(theta) else theta
    return Threshold(domain, whole, **chosen)


def _blocks(setting: str, domain: Domain, words: str) -> Policy:
    if names_a_file(setting):
        return Blocks(domain, labels_from_file(Path(setting), domain))
    in_table = columns_in(setting)
    if in_table is not None:
        return Blocks(domain, district_labels(*in_table, domain))
    labels = read_blocks(setting, _values(domain))
    if labels is not None:
        return Blocks(domain, np.array(labels))
    sides = setting.lower().split("x")
    if not all(re.fullmatch("0*[1-9][0-9]{0,17}", side) for side in sides):
        raise InputError(
            "blocks are blocks:SIZE with a number of cells, blocks:8x8 on a grid, "
            "blocks:f|m/x with the values of each, blocks:FILE with a label for each "
            "cell, or blocks:FILE:COLUMN with a column of a table of districts; "
            f"received {words!r}"
        )
    sizes = [int(side) for side in sides]
    if len(sizes) == 1:
        sizes *= domain.ndim
    if len(sizes) != domain.ndim:
        raise InputError(
            f"blocks need one size, or one per column of the domain, which has "
            f"{domain.ndim}; received {words!r}"
        )
    return Blocks(domain, _tiles(domain, sizes))


def _values(domain: Domain) -> list[str]:
    """Return what listed blocks call the cells of a domain."""
    names = _names(domain)
    return names if names is not None else [str(cell) for cell in range(domain.size)]


def _tiles(domain: Domain, sizes: list[int]) -> IntArray:
    """Return the tile of each cell, `sizes` cells per side, numbered in C order."""
    labels = np.zeros((1,) * domain.ndim, dtype=np.int64)
    for axis, (cells, size) in enumerate(zip(domain.shape, sizes, strict=True)):
        along = np.arange(cells) // size
        shape = [cells if other == axis else 1 for other in range(domain.ndim)]
        labels = labels * (int(along[-1]) + 1) + along.reshape(shape)
    return np.ascontiguousarray(labels)


def _neighbours(setting: str, domain: Domain, words: str) -> Policy:
    """Read ``neighbours``, and what becomes of islands.

    ``neighbours:public`` says that they are no secret, ``neighbours:nearest`` joins
    them at their nearest districts.
    """
    borders = domain.attributes[0].borders
    if domain.ndim != 1 or borders is None or borders.districts is None:
        raise InputError(
            "neighbours are districts with a common border, of a column that is stated "
            f"as NAME=polygons:FILE:ID; received {words!r}",
            way_out="Of several columns, state attribute:NAME=neighbours",
        )
    if setting not in ("", PUBLIC, NEAREST):
        raise InputError(
            "neighbours takes nothing, neighbours:public where the numbers of people "
            "on islands are no secret, or neighbours:nearest to join islands at their "
            f"nearest districts; received {words!r}"
        )
    islands: Any = "public" if setting == PUBLIC else "refuse"
    join: Any = "nearest" if setting == NEAREST else None
    return neighbours(borders.districts, domain, islands=islands, join=join)


def _graph(setting: str, domain: Domain, words: str) -> Policy:
    if not names_a_file(setting):
        raise InputError(
            "a graph is graph:FILE, a .csv with two categories, or two cell numbers, "
            f"per line; received {words!r}"
        )
    return Graph(domain, edges_from_file(Path(setting), domain))


def labels_from_file(path: Path, domain: Domain) -> AnyArray:
    """Return the block of each cell of `domain`.

    Parameters
    ----------
    path : Path
        An array of labels, or lines of CATEGORY,BLOCK.
    domain : Domain
        Its cells get the blocks.

    Returns
    -------
    ndarray
        The label of each cell.

    Raises
    ------
    InputError
        If a category is unknown, lacking, or in two blocks.
    """
    names = _names(domain)
    rows: list[list[str]] = []
    if names is not None and path.suffix.lower() != ".npy":
        rows = rows_of(path, "categories")
    if names is None or not any(len(row) == 2 for row in rows):
        labels = numbers_from_file(path, "labels, one per cell")
        return labels if labels.shape == domain.shape else labels.reshape(-1)
    if rows[0][0] not in names:
        rows = rows[1:]
    blocks: dict[str, str] = {}
    for row in rows:
        if len(row) != 2:
            raise InputError(
                f"each line of {path} is CATEGORY,BLOCK; received {','.join(row)!r}"
            )
        category, block = row
        _check_known(category, names, path)
        if blocks.setdefault(category, block) != block:
            raise InputError(
                f"{path} puts {category!r} into two blocks, {blocks[category]!r} and "
                f"{block!r}; a category is in one"
            )
    lacking = [name for name in names if name not in blocks]
    if lacking:
        raise InputError(
            f"{path} must give each category a block, and has none for "
            f"{', '.join(lacking[:5])}; a block of its own joins it to nothing"
        )
    return np.unique([blocks[name] for name in names], return_inverse=True)[1]


def edges_from_file(path: Path, domain: Domain) -> AnyArray:
    """Return the pairs of cells that a file joins.

    Parameters
    ----------
    path : Path
        Pairs of cell numbers, or of categories; "absent" stands for nobody.
    domain : Domain
        Its cells are joined.

    Returns
    -------
    (edges, 2) ndarray
        Numbers of cells; -1 for "absent".

    Raises
    ------
    InputError
        If a category is unknown, or it is unclear what a number stands for.
    """
    names = _names(domain)
    if names is None or path.suffix.lower() == ".npy":
        return numbers_from_file(path, PAIRS)
    rows = rows_of(path, "categories")
    # A category of that name is a category.
    place = {ABSENT: -1} | {name: cell for cell, name in enumerate(names)}
    first = rows[0]
    headed = not any(name in place for name in first) and not _are_numbers([first])
    pairs = rows[1:] if headed else rows
    if _are_numbers(pairs) and not _means_names(first, names, path):
        return numbers_from_file(path, PAIRS)
    for pair in pairs:
        if len(pair) != 2:
            raise InputError(
                f"each line of {path} is CATEGORY,CATEGORY; received {','.join(pair)!r}"
            )
        for category in pair:
            _check_known(category, [*place], path)
    if not pairs:
        raise InputError(f"{path} holds no {PAIRS}; it is empty")
    return np.array(
        [[place[category] for category in pair] for pair in pairs], dtype=np.float64
    )


def _means_names(first: list[str], names: list[str], path: Path) -> bool:
    """Return whether a file of numbers names categories; refuse to guess."""
    meanings = [
        word for word in MEANINGS if all(name.startswith(word) for name in first)
    ]
    if meanings:
        return meanings[0] == MEANINGS[0]
    if not any(_are_numbers([[name]]) for name in names):
        return False
    raise InputError(
        f"categories of this domain are numbers, and so is what {path} holds; say in "
        "its first line which is meant, category,category or cell,cell (cells are "
        "counted from 0)"
    )


def _names(domain: Domain) -> list[str] | None:
    """Return the names of the cells of a column with categories; None for others."""
    if domain.ndim != 1 or domain.attributes[0].levels is None:
        return None
    (attribute,) = domain.attributes
    return [str(level) for level in attribute.levels or ()]


def _are_numbers(rows: list[list[str]]) -> bool:
    return all(re.fullmatch("-?[0-9]+", text) for row in rows for text in row)


def _check_known(name: str, names: list[str], path: Path) -> None:
    if name not in names:
        raise InputError(
            f"{path} names {name!r}, which is no category of this domain"
            f"{nearest(name, names)}; it has {', '.join(names[:20])}"
        )

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
from blowfish_fast.apps.cli.options import POLICY_FORMS
from blowfish_fast.data.csv_files import is_number
from blowfish_fast.data.domain import (
    LARGEST_DOMAIN,
    Attributes,
    Domain,
    WideDomain,
)
from blowfish_fast.data.frames import numbers_from_file, rows_of
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
    join_extra_cells,
)

from .domain import find_column
from .job import KNOWN_TOTALS, PRESENCE, names_a_file

METRICS = ("l1", "l2", "linf")
PLAIN_POLICIES = ("add_remove", "full", "line", "attribute")
WHOLE_RECORDS = ("add_remove", "full", "attribute")
"""Policies that treat all cells alike, extra cells among them."""
BY_COLUMN = ("attribute", "product")
"""Policies that may state one for each column: by name, or all of them in order."""
ORDERED = ("line", "threshold")
"""Policies that speak of neighbours and distances."""
PUBLIC = "public"
"""Instead of a column's policy: its values are no secret."""
ABSENT = "absent"
PAIRS = "edges, two cells per line"
MEANINGS = ("categor", "cell")
"""How a first line begins each name where it says what numbers stand for."""


def parse_policy(words: str, domain: Domain) -> Policy:
    """Return the policy of ``full``, ``threshold:10`` or another form."""
    words, far = split_presence(words)
    if far is not None:
        return WithAbsent(parse_policy(words, domain), far)
    words, _, known = words.partition(KNOWN_TOTALS)
    if known:
        columns = [find_column(one, domain) for one in known.split(",")]
        constraints = MarginalConstraints(domain, columns)
        return parse_policy(words, domain).with_constraints(constraints)
    name, _, setting = words.partition(":")
    makers = {"threshold": _threshold, "blocks": _blocks, "graph": _graph}
    extras = any(one.extras for one in domain.attributes)
    if extras and name not in (*WHOLE_RECORDS, "product"):
        return _beside_extra_cells(words, domain)
    if name in makers and setting:
        return makers[name](setting, domain, words)
    if name in BY_COLUMN and setting:
        return Product(*_factors(words, domain), domain=domain)
    if name in PLAIN_POLICIES and not setting:
        made: Any = POLICIES[name]
        policy: Policy = made(domain)
        return policy
    raise InputError(
        f"the policy is one of {POLICY_FORMS}; received {words!r}"
        f"{nearest(name, [*PLAIN_POLICIES, *makers, 'product'])}"
    )


def split_presence(words: str) -> tuple[str, str | None]:
    """Part the moves from how many edges away "absent" is; None where nobody said."""
    moves, said, far = words.strip().partition(PRESENCE)
    if far and not (far[0] == ":" and is_number(far[1:])):
        raise InputError(
            f'"absent" is one edge away, {PRESENCE}, or some, {PRESENCE}:4',
            received=repr(words),
        )
    return moves.strip(), (far[1:] or "1") if said else None


def parse_table_policy(words: str, table: Domain | WideDomain) -> Policy:
    """Return the policy of a ledger: over several columns, one of the whole table."""
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
    """Return the policy of a release from a domain whose cells nobody lists."""
    moves, far = split_presence(words)
    name, _, setting = moves.partition(":")
    extras = any(one.extras for one in domain.attributes)
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
    """Return the policy of a table; columns not under `words` may take any value.

    A product has a policy for each of the `columns`, or for each of the table.
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
    return name == "product" and setting.count(",") + 1 == domain.ndim


def words_by_column(words: str, domain: Attributes) -> list[str]:
    """Return the words of each column's policy; full for those that nobody names."""
    moves = split_presence(words)[0].partition(KNOWN_TOTALS)[0].strip()
    name, _, setting = moves.partition(":")
    parts = [one.strip() for one in setting.split(",") if setting]
    if name == "attribute":
        pairs = [one.partition("=") for one in parts]
        named = {find_column(one, domain): own.strip() for one, _, own in pairs}
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

    The words are about the columns of a release, or about all of its ledger's `table`.
    """
    if _names_each(split_presence(words)[0], table):
        domain = table
    pairs = zip(domain.attributes, words_by_column(words, domain), strict=True)
    ordered = [one for one, own in pairs if own.partition(":")[0] in ORDERED]
    return [str(one.name) for one in ordered if one.levels is not None]


def _factors(words: str, domain: Attributes) -> list[Policy]:
    """Return the policy of each column."""
    columns = [Domain._of([one]) for one in domain.attributes]
    return [
        Blocks(column, np.arange(column.size))
        if stated == PUBLIC
        else parse_policy(stated, column)
        for column, stated in zip(columns, words_by_column(words, domain), strict=True)
    ]


def _stated(words: str, domain: Attributes) -> dict[str, Policy]:
    """Return the policies of columns by name, without those that may take any value."""
    factors = zip(domain.names, _factors(words, domain), strict=True)
    return {str(name): one for name, one in factors if not isinstance(one, Full)}


def _beside_extra_cells(words: str, domain: Domain) -> Policy:
    """Return a policy over the values, with every extra cell joined to all."""
    inner = parse_policy(words, domain.without_extra_cells())
    if domain.ndim > 1:
        raise InputError(
            f"cells for missing values or values outside have no place in {words!r} "
            "over several columns; use product:POLICY,POLICY, full or attribute, or "
            "clamp such values"
        )
    return join_extra_cells(inner, domain)


def _threshold(setting: str, domain: Domain, words: str) -> Policy:
    number, *choices = setting.split(":")
    chosen: dict[str, Any] = {}
    for one in choices:
        kind = "metric" if one in METRICS else "unit"
        if kind in chosen or one not in (*METRICS, "cells", "value"):
            raise InputError(
                "a threshold is threshold:THETA, then :cells or :value, and on grids "
                f":l1, :l2 or :linf; received {words!r}"
            )
        chosen[kind] = one
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
    sides = setting.lower().split("x")
    if not all(re.fullmatch("0*[1-9][0-9]{0,17}", one) for one in sides):
        raise InputError(
            "blocks are blocks:SIZE with a number of cells, blocks:8x8 on a grid, or "
            f"blocks:FILE with a label for each cell; received {words!r}"
        )
    sizes = [int(one) for one in sides]
    if len(sizes) == 1:
        sizes *= domain.ndim
    if len(sizes) != domain.ndim:
        raise InputError(
            f"blocks need one size, or one per column of the domain, which has "
            f"{domain.ndim}; received {words!r}"
        )
    return Blocks(domain, _tiles(domain, sizes))


def _tiles(domain: Domain, sizes: list[int]) -> IntArray:
    """Return the tile of each cell, `sizes` cells per side, numbered in C order."""
    labels = np.zeros((1,) * domain.ndim, dtype=np.int64)
    for axis, (cells, size) in enumerate(zip(domain.shape, sizes, strict=True)):
        along = np.arange(cells) // size
        shape = [cells if one == axis else 1 for one in range(domain.ndim)]
        labels = labels * (int(along[-1]) + 1) + along.reshape(shape)
    return np.ascontiguousarray(labels)


def _graph(setting: str, domain: Domain, words: str) -> Policy:
    if not names_a_file(setting):
        raise InputError(
            "a graph is graph:FILE, a .csv with two categories, or two cell numbers, "
            f"per line; received {words!r}"
        )
    return Graph(domain, edges_from_file(Path(setting), domain))


def labels_from_file(path: Path, domain: Domain) -> AnyArray:
    """Return the block of each cell of `domain`."""
    names = _names(domain)
    rows: list[list[str]] = []
    if names is not None and path.suffix.lower() != ".npy":
        rows = rows_of(path, "categories")
    if names is None or not any(len(row) == 2 for row in rows):
        labels = numbers_from_file(path, "labels, one per cell")
        return labels if labels.shape == domain.shape else labels.reshape(-1)
    if rows[0][0] not in names:
        rows = rows[1:]
    found: dict[str, str] = {}
    for row in rows:
        if len(row) != 2:
            raise InputError(
                f"each line of {path} is CATEGORY,BLOCK; received {','.join(row)!r}"
            )
        category, block = row
        _check_known(category, names, path)
        if found.setdefault(category, block) != block:
            raise InputError(
                f"{path} puts {category!r} into two blocks, {found[category]!r} and "
                f"{block!r}; a category is in one"
            )
    lacking = [name for name in names if name not in found]
    if lacking:
        raise InputError(
            f"{path} must give each category a block, and has none for "
            f"{', '.join(lacking[:5])}; a block of its own joins it to nothing"
        )
    return np.unique([found[name] for name in names], return_inverse=True)[1]


def edges_from_file(path: Path, domain: Domain) -> AnyArray:
    """Return the pairs of cells that a file joins."""
    names = _names(domain)
    if names is None or path.suffix.lower() == ".npy":
        return numbers_from_file(path, PAIRS)
    rows = rows_of(path, "categories")
    # A category of that name is a category.
    place = {ABSENT: -1} | {name: cell for cell, name in enumerate(names)}
    first = rows[0]
    headed = not any(one in place for one in first) and not _are_numbers([first])
    pairs = rows[1:] if headed else rows
    if _are_numbers(pairs) and not _means_names(first, names, path):
        return numbers_from_file(path, PAIRS)
    for pair in pairs:
        if len(pair) != 2:
            raise InputError(
                f"each line of {path} is CATEGORY,CATEGORY; received {','.join(pair)!r}"
            )
        for one in pair:
            _check_known(one, [*place], path)
    if not pairs:
        raise InputError(f"{path} holds no {PAIRS}; it is empty")
    return np.array([[place[one] for one in pair] for pair in pairs], dtype=np.float64)


def _means_names(first: list[str], names: list[str], path: Path) -> bool:
    """Return whether a file of numbers names categories; refuse to guess."""
    said = [word for word in MEANINGS if all(one.startswith(word) for one in first)]
    if said:
        return said[0] == MEANINGS[0]
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
    return [str(one) for one in attribute.levels or ()]


def _are_numbers(rows: list[list[str]]) -> bool:
    return all(re.fullmatch("-?[0-9]+", one) for row in rows for one in row)


def _check_known(name: str, known: list[str], path: Path) -> None:
    if name not in known:
        raise InputError(
            f"{path} names {name!r}, which is no category of this domain"
            f"{nearest(name, known)}; it has {', '.join(known[:20])}"
        )

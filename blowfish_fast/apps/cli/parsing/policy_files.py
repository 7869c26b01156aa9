"""Files that say which cells belong together: by their names, or by their numbers.

    blocks:regions.csv                       graph:neighbours.csv
    district,region                          Bern,Thun
    Bern,BE            Bern and Thun in      Thun,Chur     pairs of categories; the
    Thun,BE            one block, Chur       Chur,absent   word absent: nobody there
    Chur,GR            in another

Categories are named where a column has them; cells of numbers and dates are counted
from 0. Where categories look like numbers themselves, the first line has to say which
of the two is meant: a policy that protects the wrong cells would look like any other.
Everything here is public, so messages may quote it.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError

from .array_files import numbers_from_file, rows_of
from .spelling import nearest

ABSENT = "absent"
PAIRS = "edges, two cells per line"
MEANINGS = ("categor", "cell")
"""How a first line begins each name where it says what numbers stand for."""


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

"""Districts inside districts in words: which lie in which, and how much a level counts.

levels:blocks.csv:state,county*4,block   columns of a public table, or of a file of
                                         polygons, the largest districts first
levels:codes:2,5*4,11                    beginnings of the codes themselves
levels:h3:5,7                            hexagons of H3 by their parents

A number behind * is the importance of a level, 1 without one; 0 for a level that is
only there as a part of the tree. The last level is that of the cells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.csv_files import is_number
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.frames import rows_of
from blowfish_fast.data.places.polygon_files import read_columns
from blowfish_fast.errors import InputError, nearest
from blowfish_fast.workloads import LevelTotals, Nesting

POLYGON_ENDINGS = (".geojson", ".json", ".gpkg", ".shp", ".fgb", ".parquet")
TABLE_ENDINGS = (".csv", ".tsv", ".txt")
COLUMN_OF = re.compile(
    rf"(?P<file>.+?(?:{'|'.join(map(re.escape, (*POLYGON_ENDINGS, *TABLE_ENDINGS)))}))"
    r":(?P<columns>[^:]+)",
    re.IGNORECASE,
)
"""A file, and columns of it."""
LEVEL_FORMS = (
    "levels:FILE:LARGEST,...,SMALLEST with columns of a table, levels:codes:2,5,11 "
    "with lengths of codes, or levels:h3:5,7 with resolutions; LEVEL*4 for one that "
    "counts four times"
)


def columns_in(words: str) -> tuple[Path, list[str]] | None:
    """Return the file and the columns of ``FILE:COLUMN,COLUMN``; None for other words.

    Parameters
    ----------
    words : str
        What was typed.

    Returns
    -------
    tuple of Path and list of str, or None
        The file and the names of its columns.
    """
    stated = COLUMN_OF.fullmatch(words.strip())
    if stated is None:
        return None
    columns = [name.strip() for name in stated["columns"].split(",")]
    return Path(stated["file"]), columns


def public_columns(path: Path, names: Sequence[str]) -> dict[str, list[Any]]:
    """Read columns of a public table with a first line of names, or of polygons.

    Parameters
    ----------
    path : Path
        A CSV file, or a file of polygons.
    names : sequence of str
        The columns.

    Returns
    -------
    dict[str, list]
        Texts of a CSV file; of polygons whatever their file holds.

    Raises
    ------
    InputError
        If the file cannot be read, or lacks a column.
    """
    if path.suffix.lower() in POLYGON_ENDINGS:
        return read_columns(path, names)
    head, *rows = rows_of(path, "a line of names, then a line for each district")
    lacking = [name for name in names if name not in head]
    if lacking:
        raise InputError(
            f"{path} has no column {lacking[0]!r}{nearest(lacking[0], head)}; its "
            f"first line names {', '.join(head)}"
        )
    odd = [row for row in rows if len(row) != len(head)]
    if odd or not rows:
        raise InputError(
            f"each line of {path} has {len(head)} fields, as the first one",
            received=repr(",".join(odd[0])) if odd else "no other line",
        )
    return {name: [row[head.index(name)] for row in rows] for name in names}


def parse_levels(setting: str, domain: Domain) -> LevelTotals:
    """Return the totals of levels of districts, by their importance.

    Parameters
    ----------
    setting : str
        What stands behind ``levels:``.
    domain : Domain
        A column whose values are the smallest districts.

    Returns
    -------
    LevelTotals
        The totals, over `domain`.

    Raises
    ------
    InputError
        If the words are none of the forms, or do not fit the domain.
    """
    kind, _, listed = setting.strip().partition(":")
    in_file = columns_in(setting)
    if in_file is not None:
        path, parts = in_file
        names, importance = _weighed(parts, setting)
        return _over(_of_table(path, names, domain), domain, importance)
    if kind not in ("codes", "h3") or not listed.strip():
        raise InputError(
            f"levels of districts are {LEVEL_FORMS}", received=f"levels:{setting}"
        )
    names, importance = _weighed(listed.split(","), setting)
    if not all(re.fullmatch("[0-9]{1,3}", name) for name in names):
        raise InputError(
            f"levels of {kind} are whole numbers, the largest districts first",
            received=f"levels:{setting}",
        )
    numbers = [int(name) for name in names]
    ids = _smallest(domain)
    if kind == "h3":
        nest = Nesting.from_h3(ids, numbers)
    else:
        levels = Nesting.from_codes(map(str, ids), numbers).names[-len(numbers) :]
        table: dict[str, list[Any]] = {
            level: [str(id)[:number] for id in ids]
            for level, number in zip(levels, numbers, strict=True)
        }
        nest = Nesting.from_columns(table | {levels[-1]: ids}, levels)
    by_level = zip(nest.names[-len(numbers) :], importance.values(), strict=True)
    return _over(nest, domain, dict(by_level))


def _weighed(parts: Sequence[str], words: str) -> tuple[list[str], dict[str, float]]:
    """Part the names of levels from their importance."""
    names, importance = [], {}
    for part in parts:
        name, mark, weight = part.strip().rpartition("*")
        if not mark or not is_number(weight):
            name, weight = part.strip(), "1"
        names.append(name.strip())
        importance[names[-1]] = float(weight)
    if len(importance) < len(names) or "" in importance:
        raise InputError(
            "levels are named once each, the largest districts first",
            received=f"levels:{words}",
        )
    return names, importance


def _of_table(path: Path, names: list[str], domain: Domain) -> Nesting:
    columns = public_columns(path, names)
    return Nesting.from_columns(
        columns | {names[-1]: _as_cells(columns[names[-1]], domain)}, names
    )


def _as_cells(column: Sequence[Any], domain: Domain) -> list[Any]:
    """Return districts by the ids that the domain has; files hold texts for numbers."""
    own = {str(id): id for id in _smallest(domain)}
    return [own.get(str(id), id) for id in column]


def _smallest(domain: Domain) -> list[Any]:
    attribute = domain.attributes[0]
    if domain.ndim != 1 or attribute.levels is None:
        raise InputError(
            "levels are those of one column of districts",
            received=repr(domain),
            way_out="State it as NAME=categories:@FILE:COLUMN, or as "
            "NAME=polygons:FILE:ID",
        )
    return list(attribute.levels[: attribute.regular])


def _over(
    nest: Nesting, domain: Domain, importance: Mapping[str, float]
) -> LevelTotals:
    """Return the levels over the cells of the release, in their order."""
    listed, cells = {*nest.levels[-1].ids}, {*_smallest(domain)}
    if listed != cells:
        odd = sorted(map(str, listed ^ cells))
        raise InputError(
            "the districts of the last level are the cells of the release",
            received=f"{len(odd)} that stand on one side alone, such as {odd[0]!r}",
            way_out="Name the same table in both: NAME=categories:@FILE:COLUMN",
        )
    return LevelTotals(nest.over(domain), dict(importance))


def district_labels(path: Path, columns: Sequence[str], domain: Domain) -> IntArray:
    """Return the block of each cell: the district of a column of a public table.

    Parameters
    ----------
    path : Path
        A table of districts, or a file of polygons.
    columns : sequence of str
        The column of the blocks, and that of the cells; the second may be left out
        where it is called as the column of the domain is.
    domain : Domain
        A column whose values are the smallest districts.

    Returns
    -------
    ndarray of int64, shape (cells,)
        A number for each cell.

    Raises
    ------
    InputError
        If a cell has no block, or two.
    """
    names = [*columns, str(domain.column_names[0])][:2]
    read = public_columns(path, names)
    block_of: dict[Any, Any] = {}
    cells = _as_cells(read[names[1]], domain)
    for cell, block in zip(cells, read[names[0]], strict=True):
        if block_of.setdefault(cell, block) != block:
            raise InputError(
                f"{path} puts {cell!r} into two blocks, {block_of[cell]!r} and "
                f"{block!r}; a district is in one"
            )
    lacking = [cell for cell in _smallest(domain) if cell not in block_of]
    if lacking:
        raise InputError(
            f"{path} must give each {names[1]} a {names[0]}, and has none for "
            f"{', '.join(map(str, lacking[:5]))}"
        )
    blocks = [str(block_of[cell]) for cell in _smallest(domain)]
    return np.unique(blocks, return_inverse=True)[1].reshape(-1).astype(np.int64)

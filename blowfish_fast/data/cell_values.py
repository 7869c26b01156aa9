"""What cells stand for: edges, levels, dates, and a value for each.

cell_columns    of a set of cells, the columns that describe them in a table
representatives one public number per cell, for sums: middles of the cells
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.errors import DomainError

from .axes import Axis, as_dates
from .domain import Attributes


def column_name(domain: Attributes, axis: int) -> str:
    """Return the attribute's name, or "axis0", "axis1", ... where it has none."""
    return domain.names[axis] or f"axis{axis}"


def cell_columns(domain: Attributes, places: list[IntArray]) -> dict[str, AnyArray]:
    """Return columns that describe cells, given their places along each axis.

    Levels and cell numbers have one column, by the attribute's name. Cells between
    edges have two, ``_from`` and ``_to``, and one more, ``_cell``, where the attribute
    has cells without a place on the axis.
    """
    columns: dict[str, AnyArray] = {}
    for axis, (attribute, place) in enumerate(
        zip(domain.attributes, places, strict=True)
    ):
        name = column_name(domain, axis)
        if attribute.levels is not None:
            columns[name] = as_array(attribute.levels)[place]
        elif attribute.cuts is not None:
            cuts = cut_values(attribute)
            blank = np.array([_blank(cuts)] * len(attribute.extras), dtype=cuts.dtype)
            columns[f"{name}_from"] = np.concatenate([cuts[:-1], blank])[place]
            columns[f"{name}_to"] = np.concatenate([cuts[1:], blank])[place]
        else:
            columns[name] = place
        if attribute.extras and attribute.levels is None:
            words = np.array(["", *attribute.extras], dtype=object)
            columns[f"{name}_cell"] = words[
                np.maximum(place - attribute.regular + 1, 0)
            ]
    return columns


def cut_values(attribute: Axis) -> AnyArray:
    """Return edges as numbers or dates."""
    assert attribute.cuts is not None
    if attribute.unit is not None:
        return as_dates(attribute.cuts, attribute.unit)
    return np.array(attribute.cuts, dtype=np.float64)


def _blank(cuts: AnyArray) -> Any:
    return np.datetime64("NaT") if cuts.dtype.kind == "M" else np.nan


def as_array(levels: tuple[Any, ...]) -> AnyArray:
    """Return levels as an array: numbers where all are, else objects."""
    if all(type(one) is int for one in levels) or all(
        type(one) is float for one in levels
    ):
        return np.array(levels)
    array = np.empty(len(levels), dtype=object)
    array[:] = levels
    return array


def representatives(attribute: Axis) -> FloatArray:
    """Return a public number for each regular cell, or refuse.

    The middle of a cell between edges, the cell number where there are none, the
    level itself where levels are numbers.
    """
    called = attribute.name or "this attribute"
    if attribute.unit is not None:
        raise DomainError(
            f"{called} holds dates, which have no sum; count them, or group by them"
        )
    if attribute.levels is not None:
        plain = attribute.levels[: attribute.regular]
        if any(isinstance(one, bool | str) for one in plain):
            raise DomainError(
                f"{called} has levels, which have no sum",
                way_out="Count them, group by them, or give their public values: "
                "sum(name, values=[...])",
                code="levels_have_no_sum",
                column=called,
            )
        return np.array(plain, dtype=np.float64)
    if attribute.cuts is None:
        return np.arange(attribute.regular, dtype=np.float64)
    cuts = np.array(attribute.cuts, dtype=np.float64)
    return cuts[:-1] + (cuts[1:] - cuts[:-1]) / 2

r"""Counts of polygons from a release of a grid, or of these districts themselves.

A district that follows lines of the grid is a union of cells. Any other one cuts cells,
and nobody knows where in a cell its records lie. Then the estimate takes cells by the
part of their area, as if records were spread evenly; the interval needs no such word:
it runs from the lower end of the cells inside to the upper end of all cells that the
district touches, each at half of the miss (Lemma DI3).

    . . . . . .
    . / # # \ .     # inside: counted by the lower end
    . | # # | .     # and / | \ _ touched: counted by the upper end
    . \ _ _ / .

On a grid of lon and lat, places 360 degrees apart are one: cells on both sides of the
date line count for a district that crosses it, on whichever side it was drawn.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.axes import OUTSIDE
from blowfish_fast.data.places.cell_parts import parts_around_globe, parts_of_cells
from blowfish_fast.data.places.districts import Districts
from blowfish_fast.data.places.hexagons import Hexagons
from blowfish_fast.data.places.polygon_files import WGS84
from blowfish_fast.errors import InputError
from blowfish_fast.release.grants import Scope, counted_records
from blowfish_fast.release.group_answers import Claim, GroupedAnswers
from blowfish_fast.release.query_grid import AnswerSource, Held, RowSource
from blowfish_fast.workloads import Linear

from .level_answers import answers_of
from .map_files import grid_axes

CUT_CELLS = (
    "Cells that a border cuts count by the part of their area, as if records were "
    "spread evenly; an interval of the truth reaches from the cells inside to all that "
    "are touched."
)
"""What is said of districts that cut cells."""


class Cut(NamedTuple):
    """Districts over the cells of a grid, a row each.

    Attributes
    ----------
    parts : Linear
        Cells by the part that lies in the district.
    inside : Linear
        Cells that lie in it whole.
    touched : Linear
        Cells that it touches; those of strays, where it reaches beyond the grid.
    """

    parts: Linear
    inside: Linear
    touched: Linear

    @property
    def along_cells(self) -> bool:
        """Whether every district is a union of cells."""
        return bool(self.inside.matrix.nnz == self.touched.matrix.nnz)


def answers_of_polygons(release: AnswerSource, districts: Districts) -> GroupedAnswers:
    """Return the count of every polygon, with intervals that hold the truth.

    Parameters
    ----------
    release : HistogramRelease
        A release of a grid of lon and lat, or x and y; or of these districts.
    districts : Districts
        The polygons, in the reference system of the grid.

    Returns
    -------
    GroupedAnswers
        The counts, by id.

    Raises
    ------
    InputError
        If the release knows nothing of where its cells lie, or in another system.
    """
    attribute = release.domain.attributes[0]
    if release.domain.ndim == 1 and attribute.borders is not None:
        if attribute.borders.digest != districts.digest:
            raise InputError(
                "a release of districts is asked by the same polygons",
                received="polygons with other ids or borders",
                way_out="Name the larger district of each cell: release.of(labels)",
            )
        number = attribute.regular
        own = _rows(
            release, np.arange(number), np.arange(number), np.ones(number), number
        )
        return answers_of(release, own, "district", districts.ids)
    cut = cut_cells(release, districts)
    if cut.along_cells:
        return answers_of(release, cut.parts, "district", districts.ids)
    return GroupedAnswers(
        ["district"],
        [list(districts.ids)],
        "count",
        np.asarray(release.answer(cut.parts), dtype=np.float64).reshape(-1),
        Claim(
            partial(_bounds, release, cut),
            partial(_kind, release, cut),
            release.interval_sentence,
            release,
            counted_records(release),
        ),
        seeded=not release.private,
    )


def cut_cells(release: AnswerSource, districts: Districts) -> Cut:
    """Return which cells of a grid lie in each district, and which it touches.

    Parameters
    ----------
    release : HistogramRelease
        A release of a grid.
    districts : Districts
        The polygons.

    Returns
    -------
    Cut
        The rows.

    Raises
    ------
    InputError
        If the release is of no grid, in another system, or elsewhere; if a district
        covers a place twice, once on each side of the date line, or is a hexagon
        around a pole.
    """
    domain = release.domain
    axes = grid_axes(domain)
    if (axes.system == WGS84) != (districts.system == WGS84):
        raise InputError(
            "districts and grid are in one reference system: lon and lat in WGS 84, x "
            "and y in any other",
            received=f"columns {', '.join(domain.column_names)}, and districts in "
            f"{districts.system}",
            way_out="Transform the polygons",
        )
    around = districts.around_poles() if isinstance(districts, Hexagons) else []
    if around:
        # Straight lines in degrees are far from its sides: cells that lie inside of
        # the outline need not lie in the hexagon.
        raise InputError(
            "a hexagon around a pole has no outline in degrees of lon and lat",
            received=f"{around[0]!r}",
            way_out="Leave it out, or release counts of hexagons themselves: "
            "Domain.from_polygons(hexagons)",
        )
    across, up = (domain.attributes[axis] for axis in axes[:2])
    x, y = (np.asarray(axis.cuts, dtype=np.float64) for axis in (across, up))
    # Longitudes 360 degrees apart are one place: the date line parts no district.
    find = parts_around_globe if axes.system == WGS84 else parts_of_cells
    parts = find(districts.shapes, x, y)
    if not parts.part.size:
        raise InputError(
            "districts lie on the grid",
            received=f"none of {len(districts)} that reaches it",
            way_out="Compare their reference systems",
        )
    places = {axes.east: parts.column, axes.north: parts.row}
    cells = np.ravel_multi_index((places[0], places[1]), domain.shape)
    number = len(districts)
    whole = parts.part == 1.0
    rows = partial(_rows, release, number=number)
    stray_cells = _stray_cells(release)
    out = np.flatnonzero(parts.sticks_out)
    # Whoever was outside the grid may be in a district that reaches there.
    owners = np.concatenate([parts.district, np.repeat(out, stray_cells.size)])
    touched = np.concatenate([cells, np.tile(stray_cells, out.size)])
    return Cut(
        rows(parts.district, cells, parts.part),
        rows(parts.district[whole], cells[whole], np.ones(int(whole.sum()))),
        rows(owners, touched, np.ones(owners.size)),
    )


def _stray_cells(release: AnswerSource) -> IntArray:
    """Return the cells of records that were outside the grid on some axis."""
    domain = release.domain
    stray = np.zeros(domain.shape, dtype=bool)
    for axis, attribute in enumerate(domain.attributes):
        place = attribute.extra_cell(OUTSIDE)
        if place is not None:
            np.moveaxis(stray, axis, 0)[place] = True
    return np.flatnonzero(stray)


def _rows(
    release: AnswerSource,
    owners: IntArray,
    cells: IntArray,
    values: FloatArray,
    number: int,
) -> Linear:
    from scipy import sparse

    shape = (number, release.domain.size)
    matrix = sparse.coo_array((values, (owners, cells)), shape=shape)
    return Linear(release.domain, matrix.tocsr())


def _bounds(release: AnswerSource, cut: Cut, confidence: float, of: Held) -> FloatArray:
    if of == "noise":
        noise: FloatArray = release.intervals(cut.parts, confidence, of="noise")
        return noise
    # Either end may miss: half of the probability each.
    sure = (1.0 + confidence) / 2.0
    ends: list[FloatArray] = []
    for asked, sign in ((cut.inside, -1), (cut.touched, 1)):
        if isinstance(of, RowSource):
            ends.append(of.intervals(asked, sign))
        else:
            ends.append(release.intervals(asked, sure, of=of))
    # A district without a whole cell may be empty, one off the grid is.
    low = np.where(_empty(cut.inside), 0.0, ends[0][:, 0])
    high = np.where(_empty(cut.touched), 0.0, ends[1][:, 1])
    return np.stack([low, high], axis=1)


def _empty(asked: Linear) -> Any:
    return np.diff(asked.matrix.indptr) == 0


def _kind(release: AnswerSource, cut: Cut) -> Scope:
    for asked in (cut.inside, cut.touched):
        if not (release.holds_truth(asked) | _empty(asked)).all():
            return "noise"
    return "truth"

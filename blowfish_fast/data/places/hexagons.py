"""Hexagons of the H3 grid as districts: which one a point lies in, and which are next.

H3 covers the globe by hexagons (and twelve pentagons) of 16 sizes, each with a number
of 64 bits. A point's hexagon follows from H3 itself, not from the outline, which is
drawn with straight lines between corners. Seven hexagons have one parent by their
numbers, and do not lie inside it on the ground.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, Self

import numpy as np

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import as_whole, malformed_as
from blowfish_fast.errors import InputError

from .districts import DEGREE_STEP, Districts
from .polygon_files import WGS84, Polygon, polygons_of

FINEST = 15
"""The last resolution of H3: hexagons of about a square metre."""

MOST_HEXAGONS = 2**22
"""Cells that are listed; a finer resolution of a large area would fill the memory."""


POLE = 90.0
"""Degrees of latitude; no corner of a hexagon of H3 is there."""


class Hexagons(Districts):
    """Hexagons of H3 that touch a public area; they know the hexagon of every point.

    Made by `covering`. The area is public, and must not come from the records.

    Parameters
    ----------
    numbers : sequence of int
        The numbers of the hexagons, all of one resolution.
    resolution : int
        From 0, continents, to 15.

    Examples
    --------
    >>> from importlib.util import find_spec
    >>> import blowfish_fast as bf
    >>> corners = [[[7, 46], [8, 46], [8, 47], [7, 47]]]
    >>> area = {"type": "Polygon", "coordinates": corners}
    >>> if find_spec("h3"):
    ...     hexagons = bf.Hexagons.covering(area, 5)
    ...     assert len(hexagons) == 50
    ...     assert hexagons.locate([7.5, 60.0], [46.5, 46.5])[1] == -1
    """

    def __init__(self, numbers: Any, resolution: int) -> None:
        self._h3 = require("h3", extra="h3", purpose="counting in hexagons")
        self._numbers: IntArray = np.unique(np.asarray(numbers, dtype=np.uint64))
        self.resolution = resolution
        # What they are called everywhere else: fifteen hexadecimal digits.
        self.ids = tuple(f"{number:x}" for number in self._numbers.tolist())
        self.shapes = tuple([[self._outline(id)]] for id in self.ids)
        self.system = WGS84
        self.columns = ("lon", "lat")
        self.step = DEGREE_STEP

    @classmethod
    def covering(cls, area: Any, resolution: int) -> Self:
        """Return all hexagons that touch a public area.

        Parameters
        ----------
        area : mapping or object
            A Polygon or MultiPolygon in WGS 84, as GeoJSON or with
            `__geo_interface__`.
        resolution : int
            How fine: 5 for about 250, 7 for 5, 9 for 0.1 square kilometres each.

        Returns
        -------
        Hexagons
            The hexagons, by their numbers.

        Raises
        ------
        InputError
            If the area is no polygon, the resolution none of H3's, or there would be
            more than 4 million hexagons.
        MissingExtraError
            If h3 is not installed.
        """
        size = as_whole(resolution, "resolution", 0, FINEST)
        h3 = require("h3", extra="h3", purpose="counting in hexagons")
        polygons = polygons_of(area)
        needed = sum(map(_square_kilometres, polygons)) / h3.average_hexagon_area(size)
        if needed > MOST_HEXAGONS:
            raise InputError(
                f"at most {MOST_HEXAGONS:,} hexagons are listed",
                received=f"about {needed:,.0f} of resolution {size}",
                way_out="Choose a smaller resolution, or a smaller area",
            )
        listed: set[str] = set()
        with malformed_as(InputError, "an area is a polygon in WGS 84"):
            for polygon in polygons:
                rings = [ring[:-1, ::-1].tolist() for ring in polygon]
                shape = h3.LatLngPoly(*rings)
                cells = h3.h3shape_to_cells_experimental(shape, size, contain="overlap")
                listed.update(cells)
            if not listed:
                raise ValueError("it touches no hexagon")
        return cls([int(cell, 16) for cell in listed], size)

    def _outline(self, id: str) -> FloatArray:
        corners = np.array(self._h3.cell_to_boundary(id), dtype=np.float64)[:, ::-1]
        ring = np.concatenate([corners, corners[:1]])
        return _without_jumps(ring) if np.ptp(corners[:, 0]) > 180.0 else ring

    @property
    def drawn_shapes(self) -> tuple[list[Polygon], ...]:
        """The outlines on a map; those on both sides of the date line are together."""
        return tuple(
            [[ring]] for ring in _side_by_side([ring for ((ring,),) in self.shapes])
        )

    def around_poles(self) -> list[str]:
        """Return the ids of hexagons around a pole, whose outlines are strips.

        Returns
        -------
        list of str
            None of them, one or two.
        """
        return [
            id
            for id, ((ring,),) in zip(self.ids, self.shapes, strict=True)
            if np.abs(ring[:, 1]).max() == POLE
        ]

    def locate(self, x: Any, y: Any) -> IntArray:
        """Return the place of the hexagon of each point, as H3 says.

        Parameters
        ----------
        x : array-like of float
            Longitudes.
        y : array-like of float
            Latitudes.

        Returns
        -------
        ndarray of int64
            The places; -1 outside, and where a coordinate is missing.

        Raises
        ------
        InputError
            If they are not two lists of numbers of one length.
        """
        with malformed_as(InputError, "coordinates are two lists of numbers"):
            xs, ys = (np.asarray(axis, dtype=np.float64).reshape(-1) for axis in (x, y))
            if xs.shape != ys.shape:
                raise ValueError(f"{xs.size} and {ys.size} of them")
        # What is no place on the globe is outside, without a word about it.
        on_globe = (np.abs(xs) <= 360.0) & (np.abs(ys) <= 90.0)
        cell_at, size = self._h3.latlng_to_cell, self.resolution
        numbers = np.array(
            [
                int(cell_at(lat, lon, size), 16)
                for lon, lat in zip(xs[on_globe], ys[on_globe], strict=True)
            ],
            dtype=np.uint64,
        )
        places = np.full(xs.size, -1, dtype=np.int64)
        last = self._numbers.size - 1
        at = np.minimum(np.searchsorted(self._numbers, numbers), last)
        places[on_globe] = np.where(self._numbers[at] == numbers, at, -1)
        return places

    @cached_property
    def _next_to(self) -> tuple[IntArray, IntArray]:
        """Pairs of hexagons with a common side, and those with one to the outside."""
        place = {id: at for at, id in enumerate(self.ids)}
        pairs, rim = [], []
        for id, at in place.items():
            beside = [place.get(other, -1) for other in self._h3.grid_disk(id, 1)]
            pairs += [(at, other) for other in beside if other > at]
            if -1 in beside:
                rim.append(at)
        joined = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return joined, np.array(rim, dtype=np.int64)

    def neighbouring_pairs(self) -> IntArray:
        """Return the pairs of hexagons that share a side, each once."""
        return self._next_to[0]

    def rim(self) -> IntArray:
        """Return the hexagons with a side to the outside."""
        return self._next_to[1]

    @cached_property
    def digest(self) -> str:
        """A digest of the hexagons: others are another domain."""
        total = hashlib.sha256(f"h3 {self.resolution}".encode())
        total.update(self._numbers.tobytes())
        return total.hexdigest()

    def __repr__(self) -> str:
        return f"Hexagons({len(self.ids):,} of resolution {self.resolution})"


def _without_jumps(ring: FloatArray) -> FloatArray:
    r"""Return an outline whose sides go the short way around the globe.

    Across the date line it is drawn on the eastern side. One around a pole becomes a
    strip from -180 to 180 degrees, between its corners and the pole:

        +90  +-----------------------+
             |                       |
             +\__/\__/\__/\__/\__/\__+    the corners, from west to east
           -180                     180
    """
    steps = np.diff(ring[:, 0])
    jumps = np.concatenate([[0.0], np.cumsum(-360.0 * np.rint(steps / 360.0))])
    if jumps[-1] == 0.0:
        lon = ring[:, 0] + jumps
        return np.column_stack(
            [lon + (360.0 if lon.min() < -180.0 else 0.0), ring[:, 1]]
        )
    corners = ring[:-1][np.argsort(ring[:-1, 0])]
    west, east = corners[-1] - [360.0, 0.0], corners[0] + [360.0, 0.0]
    lon, lat = np.concatenate([[west], corners, [east]]).T
    ends = np.interp([-180.0, 180.0], lon, lat)
    pole = np.copysign(POLE, lat.mean())
    first, last = (-180.0, ends[0]), (180.0, ends[1])
    return np.array([first, *corners, last, (180.0, pole), (-180.0, pole), first])


def _side_by_side(rings: list[FloatArray]) -> list[FloatArray]:
    """Return outlines with longitudes up to 360 where that makes the map narrower.

    An area on both sides of the date line would be torn apart otherwise: half of it at
    180 degrees, half of it at -180.
    """
    east = np.array([360.0, 0.0])
    turned = [ring + east if ring[:, 0].max() < 0.0 else ring for ring in rings]
    return min(rings, turned, key=_width)


def _width(rings: list[FloatArray]) -> float:
    return float(np.ptp(np.concatenate([ring[:, 0] for ring in rings])))


def _square_kilometres(polygon: Polygon) -> float:
    """Return about how large the outer ring is, on a globe of 6371 km."""
    lon, lat = np.radians(polygon[0]).T
    height = np.sin(lat)
    twice = float(np.sum(np.diff(lon) * (height[1:] + height[:-1])))
    return 6371.0**2 * abs(twice) / 2.0

"""Public districts: polygons in whole steps, their ids, and which point lies where.

Coordinates are rounded to whole steps (1e-7 degrees, about a centimetre, or a
millimetre; coarser where products would not fit 64 bits), so that every decision is
exact. Districts may leave gaps, which count as outside, and must neither overlap nor
touch a border of another where that one has no corner:

    +-----+-----+        +-----+-----+
    |  A  |  B  |  fine  |  A  |  B  |   the corner of B and C lies inside an edge of A:
    +-----+-----+        |     +-----+   a T-junction, after rounding a gap or an
    |     C     |        |     |  C  |   overlap; put the corner into A
    +-----------+        +-----+-----+
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_positive, malformed_as, read_only
from blowfish_fast.errors import DomainError, InputError

from .nearest_districts import NearestDistricts
from .polygon_files import (
    WGS84,
    NamedShapes,
    Polygon,
    known_system,
    polygons_of,
    read_polygons,
    transformation,
)

DEGREE_STEP = 1e-7
"""What degrees are rounded to, about a centimetre, unless a step is stated."""
METRE_STEP = 1e-3
"""The same for coordinates in metres: a millimetre; in feet, a thousandth of one."""
LARGEST_PRODUCT = 2.0**62
"""Products of coordinate differences stay below 2^63, with room for rounding."""

LARGEST_ID = 2**52
"""Whole numbers below it are exact as floats, one more among them."""

FULL_TURN = 360.0
"""Degrees: longitudes so far apart are one place."""

STRAY = "(outside)"
"""Stands in a column of ids where a point lies in no district."""


class Districts:
    """Public polygons with ids, which know the district of every point.

    Made by `from_file` or `from_shapes`. Borders are public, and must not come from the
    records: no hulls of the data, no clusters.

    Parameters
    ----------
    named : NamedShapes
        Ids, polygons and reference system.
    columns : tuple of two str
        The columns of records that hold coordinates: longitude, then latitude; or x,
        then y.
    step : float, optional
        What coordinates are rounded to, as in `from_file`.

    Examples
    --------
    >>> square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1]]]}
    >>> right = {"type": "Polygon", "coordinates": [[[1, 0], [2, 0], [2, 1], [1, 1]]]}
    >>> districts = Districts.from_shapes([square, right], ["A", "B"])
    >>> districts.locate([0.5, 1.0, 5.0], [0.5, 0.5, 0.5])
    array([ 0,  1, -1])
    >>> districts.neighbouring_pairs().tolist()
    [[0, 1]]
    """

    def __init__(
        self,
        named: NamedShapes,
        columns: tuple[str, str],
        step: float | None = None,
    ) -> None:
        self.ids = tuple(named.ids)
        self.shapes: tuple[list[Polygon], ...] = tuple(named.shapes)
        self.system = named.system or WGS84
        self.columns = columns
        # The system is not asked for its unit: coordinates that could all be degrees
        # get the finer step.
        usual = DEGREE_STEP if _beyond_degrees(named) is None else METRE_STEP
        rounding = usual if step is None else as_positive(step, "step")
        self.step, self._edges, self._owners = self._rounded(rounding)
        self._check()

    @classmethod
    @malformed_as(InputError, "a file of districts has a path and a column of ids")
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        id: str | None = None,
        system: str | None = None,
        columns: Sequence[str] | None = None,
        step: float | None = None,
    ) -> Districts:
        """Read districts from GeoJSON, GeoPackage, a shapefile or whatever GDAL reads.

        GeoJSON needs no other package; everything else the extra ``geo``.

        Parameters
        ----------
        path : str or PathLike
            The file.
        id : str
            The column that names districts; whoever states none is told all columns.
        system : str, optional
            The reference system of the coordinates, such as "EPSG:2056", where the file
            does not state one. GeoJSON without one is WGS 84.
        columns : sequence of two str, optional
            The columns of records that hold coordinates; ("lon", "lat") for WGS 84,
            ("x", "y") for any other system.
        step : float, optional
            What borders and points are rounded to, in units of the system: 1e-7 degrees
            or a millimetre. A coarser one, such as 1e-3 degrees, closes slivers between
            borders that were drawn twice.

        Returns
        -------
        Districts
            The districts.

        Raises
        ------
        InputError
            If the file has no such column or no system, or districts overlap.
        """
        named = read_polygons(path, id)
        if named.system is None and system is None:
            raise InputError(
                "a file of districts states its reference system",
                received=f"none in {os.fspath(path)!r}",
                way_out='Say which: system="EPSG:4326" for degrees of WGS 84',
            )
        return cls._stated(named, system, columns, step)

    @classmethod
    @malformed_as(InputError, "shapes and ids are lists of the same length")
    def from_shapes(
        cls,
        shapes: Iterable[Any],
        ids: Iterable[Any],
        *,
        system: str | None = None,
        columns: Sequence[str] | None = None,
        step: float | None = None,
    ) -> Districts:
        """Take polygons that are there already: shapely objects, or GeoJSON.

        Parameters
        ----------
        shapes : iterable
            Polygons or several polygons each, as GeoJSON or with `__geo_interface__`.
        ids : iterable
            The id of each.
        system : str, optional
            Their reference system. Without one it is that of a series of geopandas, and
            WGS 84 of everything else.
        columns : sequence of two str, optional
            The columns of records that hold coordinates, as in `from_file`.
        step : float, optional
            What borders and points are rounded to, as in `from_file`.

        Returns
        -------
        Districts
            The districts.

        Raises
        ------
        InputError
            If there are not as many ids as shapes, or districts overlap.
        """
        own = getattr(shapes, "crs", None)
        named = NamedShapes(
            list(ids),
            [polygons_of(shape) for shape in shapes],
            None if own is None else known_system(own.to_string()),
        )
        usual = WGS84 if own is None else None
        return cls._stated(named, system or usual, columns, step)

    @classmethod
    def _stated(
        cls,
        named: NamedShapes,
        system: str | None,
        columns: Sequence[str] | None,
        step: float | None,
    ) -> Districts:
        stated = known_system(system)
        if stated is not None and named.system not in (None, stated):
            raise InputError(
                "system is that of the file, or left out",
                received=f"{system!r}, and the file says {named.system!r}",
            )
        ids = named.ids
        if not ids or len(ids) != len(named.shapes) or len(set(ids)) != len(ids):
            raise InputError(
                "each district has an id of its own",
                received=f"{len(ids)} ids, {len(set(ids))} of them different, and "
                f"{len(named.shapes)} shapes{_first_repeated(ids)}",
                way_out="Name another column, or merge districts of one id",
            )
        read = named._replace(system=named.system or stated)
        degrees = read.system == WGS84
        beyond = _beyond_degrees(read) if degrees else None
        if beyond is not None:
            # Metres or feet that are called degrees: every point would lie outside.
            name, (x, y) = beyond
            raise InputError(
                "coordinates of WGS 84 are degrees, longitudes up to 360 and latitudes "
                "up to 90",
                received=f"({x:g}, {y:g}) of {name!r}",
                way_out="Say which system the file is in, such as "
                'system="EPSG:3435"; .in_system("EPSG:4326") then makes degrees of it',
            )
        names = columns or (("lon", "lat") if degrees else ("x", "y"))
        if isinstance(names, str) or len(names) != 2:
            raise InputError("columns names two columns", received=repr(columns))
        if not degrees and {"lon", "lat"} & set(names):
            raise InputError(
                "columns lon and lat are degrees of WGS 84, and these districts are "
                f"stated in {read.system}",
                way_out='Transform the districts, .in_system("EPSG:4326"), or the '
                "points, and call their columns x and y",
            )
        # Also where hexagons are asked to read: what others drew are districts.
        return Districts(read, (str(names[0]), str(names[1])), step)

    def in_system(
        self,
        system: str,
        *,
        columns: Sequence[str] | None = None,
        step: float | None = None,
    ) -> Districts:
        """Return the same districts in another reference system; needs pyproj.

        Corners are transformed, and borders between them are straight in the new
        system. Districts that share corners share them afterwards.

        Parameters
        ----------
        system : str
            The new system, such as "EPSG:4326", the degrees of GPS.
        columns : sequence of two str, optional
            The columns of records that hold coordinates, as in `from_file`.
        step : float, optional
            What borders and points are rounded to, as in `from_file`.

        Returns
        -------
        Districts
            The districts, with the same ids.

        Raises
        ------
        InputError
            If there is no such system, or a corner has no place in it.
        MissingExtraError
            If pyproj is not installed.
        """
        target = str(known_system(system))
        if target == self.system:
            shapes = list(self.shapes)
        else:
            move = transformation(self.system, target)
            shapes = [
                [[move(ring) for ring in polygon] for polygon in polygons]
                for polygons in self.shapes
            ]
        named = NamedShapes(list(self.ids), shapes, target)
        return Districts._stated(named, None, columns, step)

    def _rounded(self, step: float) -> tuple[float, IntArray, IntArray]:
        """Return the step, edges in doubled steps, and the district of each edge.

        An edge is a row x1, y1, x2, y2, from one corner of a ring to the next. With a
        step of 0.1 the edge from (0, 0.2) to (0.3, 0.2) is 0, 4, 6, 4. Edges whose ends
        are rounded to the same corner are left out.
        """
        rings, owners = [], []
        for number, polygons in enumerate(self.shapes):
            for polygon in polygons:
                for ring in polygon:
                    rings.append(ring)
                    owners.append(number)
        lengths = np.array([len(ring) - 1 for ring in rings])
        starts = np.concatenate([ring[:-1] for ring in rings])
        ends = np.concatenate([ring[1:] for ring in rings])
        owner = np.repeat(np.array(owners, dtype=np.int64), lengths)
        size = starts.max(axis=0) - starts.min(axis=0)
        reach = np.abs(ends - starts).max(axis=0)
        # On which side of an edge a point lies is the sign of a difference of products:
        # of its distance along one axis, at most the size of the map, and of the length
        # of the edge along the other.
        product = max(size[0] * reach[1], size[1] * reach[0], 1e-12)
        # Doubled, so that the middle of an edge is a whole number too.
        while 4.0 * product / step**2 >= LARGEST_PRODUCT:
            step *= 10.0
        edges = np.concatenate([starts, ends], axis=1)
        whole = 2 * np.rint(edges / step).astype(np.int64)
        real = (whole[:, :2] != whole[:, 2:]).any(axis=1)
        lost = np.setdiff1d(np.arange(len(self.ids)), owner[real])
        if lost.size:
            raise DomainError(
                f"district {self.ids[lost[0]]!r} is smaller than a step of {step:g}"
            )
        return step, read_only(whole[real]), read_only(owner[real])

    @cached_property
    def _index(self) -> Any:
        return kernels.edge_index(self._edges, self._owners)

    def _check(self) -> None:
        """Refuse districts that cross, overlap, or meet at a T-junction: Lemma DI2."""
        # 2 where edges cross, 1 where an end lies inside another edge, 0 for neither.
        kind, first, second = kernels.first_clash(self._index)
        names = [self.ids[self._owners[edge]] for edge in (first, second)]
        if kind == 2:
            raise DomainError(
                "districts do not overlap, nor cross their own border",
                received=f"borders of {names[0]!r} and {names[1]!r} that cross",
                way_out="Repair the polygons, with QGIS or shapely's coverage tools; "
                f"slivers vanish where borders are rounded to more than {self.step:g}, "
                "step=...",
            )
        if kind == 1:
            raise DomainError(
                "where districts meet, both have the corner: no T-junctions",
                received=f"a corner inside a border of {names[0]!r} and {names[1]!r}",
                way_out="Put the corner into both: cut all borders at all corners with "
                "shapely.polygonize of the union of boundaries, or QGIS, Snap "
                f"geometries; or round borders to more than {self.step:g}, step=...",
            )
        # A ring that crosses no other may still lie inside another district: then the
        # middle of an edge lies in two.
        middles = (self._edges[:, :2] + self._edges[:, 2:]) // 2
        placed = kernels.locate_points(middles[:, 0], middles[:, 1], self._index)
        overlapping = np.flatnonzero(placed == kernels.OVERLAPPING)
        if overlapping.size:
            name = self.ids[self._owners[overlapping[0]]]
            raise DomainError(
                "districts do not overlap",
                received=f"{name!r} lies over another",
                way_out="Cut it out of the one below, or leave it away",
            )

    def locate(self, x: Any, y: Any) -> IntArray:
        """Return the number of the district of each point: exact, each in one.

        A point on a border belongs to the district to its right, or above it. In
        degrees longitudes 360 apart are one place: where a point lies in no district as
        it was stated, it is looked for on the other side of the date line.

        Parameters
        ----------
        x : array-like of float
            Longitudes, or x, in the system of the districts.
        y : array-like of float
            Latitudes, or y.

        Returns
        -------
        ndarray of int64
            The numbers; -1 outside, and where a coordinate is missing.

        Raises
        ------
        InputError
            If they are not two lists of numbers of one length.
        """
        with malformed_as(InputError, "coordinates are two lists of numbers"):
            xs, ys = (np.asarray(axis, dtype=np.float64).reshape(-1) for axis in (x, y))
            if xs.shape != ys.shape:
                raise ValueError(f"{xs.size} and {ys.size} of them")
        placed = self._placed(xs, ys)
        for turn in (FULL_TURN, -FULL_TURN) if self.system == WGS84 else ():
            astray = np.flatnonzero(placed == -1)
            west, east = self._sides
            around = xs[astray] + turn
            # Nobody far from the map is looked for again, nor who is nowhere.
            within = (around >= west) & (around <= east)
            astray, around = astray[within], around[within]
            if astray.size:
                placed[astray] = self._placed(around, ys[astray])
        return placed

    @cached_property
    def _sides(self) -> tuple[float, float]:
        """The least and the largest x of the map."""
        along = self._edges[:, [0, 2]] / 2 * self.step
        return float(along.min()) - self.step, float(along.max()) + self.step

    def _placed(self, xs: FloatArray, ys: FloatArray) -> IntArray:
        """Return the number of the district of each point, as it is stated."""
        ends = self._edges.reshape(-1, 2)
        low, high = ends.min(axis=0) - 2, ends.max(axis=0) + 2
        whole = []
        inside = np.isfinite(xs) & np.isfinite(ys)
        for at, axis in enumerate((xs, ys)):
            steps = np.where(inside, axis, 0.0) / self.step
            # Far away is outside, without a product that would not fit.
            clipped = np.clip(np.rint(steps), low[at] / 2 - 2, high[at] / 2 + 2)
            whole.append(2 * clipped.astype(np.int64))
        places_x, places_y = whole
        placed = kernels.locate_points(places_x, places_y, self._index)
        return np.where(inside, placed, -1)

    def nearest(self, x: Any, y: Any) -> IntArray:
        """Return the number of the district that holds a point, or else is nearest.

        A public function of the point alone: Lemma DI4. In degrees distances are those
        on the ground near the point, and longitudes 360 degrees apart are one place.
        Which of two districts at the same distance is nearest is decided by floats, the
        same way every time; of equal ones it is the first.

        Parameters
        ----------
        x : array-like of float
            Longitudes, or x, in the system of the districts.
        y : array-like of float
            Latitudes, or y.

        Returns
        -------
        ndarray of int64
            The numbers; -1 where a coordinate is missing.

        Raises
        ------
        InputError
            If they are not two lists of numbers of one length.

        Examples
        --------
        >>> def square(x):
        ...     ring = [[x, 0], [x + 1, 0], [x + 1, 1], [x, 1]]
        ...     return {"type": "Polygon", "coordinates": [ring]}
        >>> districts = Districts.from_shapes([square(0), square(1)], ["A", "B"])
        >>> districts.nearest([0.5, 1.2, -7.0], [0.5, 9.0, 0.5])
        array([0, 1, 0])
        """
        placed = self.locate(x, y)
        xs, ys = (np.asarray(axis, dtype=np.float64).reshape(-1) for axis in (x, y))
        astray = np.flatnonzero((placed == -1) & np.isfinite(xs) & np.isfinite(ys))
        if astray.size:
            around = self._nearest.next_to_the_map(xs[astray])
            there = self.locate(around, ys[astray])
            nearest = self._nearest.of_points(around, ys[astray])
            placed[astray] = np.where(there >= 0, there, nearest)
        return placed

    @cached_property
    def _nearest(self) -> NearestDistricts:
        step, edges, owners = self._rounded(self.step)
        return NearestDistricts(edges, owners, step, degrees=self.system == WGS84)

    def joining_pairs(self) -> IntArray:
        """Return the pairs of districts that connect parts without a common border.

        The two nearest parts of the map are joined at their nearest districts, until
        one part is left; none where the map is in one piece.
        """
        on_rim = np.zeros(len(self.ids), dtype=np.bool_)
        on_rim[self.rim()] = True
        return self._nearest.joining_pairs(self.neighbouring_pairs(), on_rim)

    def column(self, x: Any, y: Any, *, nearest: bool = False) -> AnyArray:
        """Return the id of the district of each point, as a column of records.

        Parameters
        ----------
        x : array-like of float
            Longitudes, or x.
        y : array-like of float
            Latitudes, or y.
        nearest : bool, default False
            Whether a point outside has the id of the nearest district.

        Returns
        -------
        ndarray of object
            The ids; "(outside)" outside all districts, None without coordinates.
        """
        placed = self.nearest(x, y) if nearest else self.locate(x, y)
        # Outside is number -1, the last entry.
        named = np.empty(len(self.ids) + 1, dtype=object)
        named[:-1] = self.ids
        named[-1] = STRAY
        ids: AnyArray = named[placed]
        placeable = np.isfinite(np.asarray(x, float)) & np.isfinite(
            np.asarray(y, float)
        )
        ids[~placeable.reshape(-1)] = None
        return ids

    def numbered_column(
        self, x: Any, y: Any, *, nearest: bool = False
    ) -> AnyArray | None:
        """Return ids that are numbers as an array of numbers, which is counted sooner.

        Parameters
        ----------
        x : array-like of float
            Longitudes, or x.
        y : array-like of float
            Latitudes, or y.
        nearest : bool, default False
            Whether a point outside has the id of the nearest district.

        Returns
        -------
        ndarray of int64 or float64, or None
            The ids; a number that is none of them outside all districts, NaN without
            coordinates. None where ids are no numbers, or too large for floats.
        """
        plain = all(type(id) is int and abs(id) < LARGEST_ID for id in self.ids)
        if not plain:
            return None
        # The last entry, number -1, is an id that no district has.
        named = np.array([*self.ids, max(self.ids) + 1], dtype=np.int64)
        placed = self.nearest(x, y) if nearest else self.locate(x, y)
        ids: AnyArray = named[placed]
        placeable = np.isfinite(np.asarray(x, float)) & np.isfinite(
            np.asarray(y, float)
        )
        if placeable.all():
            return ids
        return np.where(placeable.reshape(-1), ids, np.nan)

    @cached_property
    def _undirected(self) -> IntArray:
        """Edges with the left end first, the lower one where they go straight up."""
        ends = self._edges.reshape(-1, 2, 2)
        later = (ends[:, 0, 0] > ends[:, 1, 0]) | (
            (ends[:, 0, 0] == ends[:, 1, 0]) & (ends[:, 0, 1] > ends[:, 1, 1])
        )
        return np.where(later[:, None, None], ends[:, ::-1], ends).reshape(-1, 4)

    @cached_property
    def _shared_edges(self) -> tuple[IntArray, IntArray]:
        """Pairs of districts that have an edge in common, and edges of a single one."""
        sorted_ends = self._undirected
        order = np.lexsort(sorted_ends.T)
        along = sorted_ends[order]
        twice = (along[1:] == along[:-1]).all(axis=1)
        owners = self._owners[order]
        pairs = np.stack([owners[:-1][twice], owners[1:][twice]], axis=1)
        alone = np.ones(order.size, dtype=bool)
        alone[:-1] &= ~twice
        alone[1:] &= ~twice
        return pairs, order[alone]

    def neighbouring_pairs(self) -> IntArray:
        """Return the pairs of districts that share a piece of border, each once.

        Returns
        -------
        ndarray of int64, shape (pairs, 2)
            The numbers of two districts, the smaller one first.
        """
        pairs = np.sort(self._shared_edges[0], axis=1)
        different = pairs[pairs[:, 0] != pairs[:, 1]]
        return np.unique(different, axis=0).reshape(-1, 2)

    def rim(self) -> IntArray:
        """Return the districts with a border that no other district shares.

        Returns
        -------
        ndarray of int64
            Their numbers, rising.
        """
        return np.unique(self._owners[self._shared_edges[1]])

    @cached_property
    def digest(self) -> str:
        """A digest of ids, borders and system: other borders are another domain."""
        total = hashlib.sha256(repr((self.ids, self.system, self.step)).encode())
        # Files differ in the direction of rings, which means nothing.
        order = np.lexsort((*self._undirected.T, self._owners))
        total.update(np.ascontiguousarray(self._undirected[order]).tobytes())
        total.update(np.ascontiguousarray(self._owners[order]).tobytes())
        return total.hexdigest()

    @property
    def drawn_shapes(self) -> tuple[list[Polygon], ...]:
        """The polygons of each district as files and pictures of maps show them."""
        return self.shapes

    def outlines(self, number: int) -> list[FloatArray]:
        """Return the rings of a district, as they were stated."""
        return [ring for polygon in self.shapes[number] for ring in polygon]

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return (
            f"Districts({len(self.ids):,} in {self.system}, {len(self._edges):,} edges)"
        )


def _beyond_degrees(named: NamedShapes) -> tuple[Any, FloatArray] | None:
    """Return a district and a corner of it that cannot be degrees; None without one.

    Longitudes may run from -180 to 180 or, around the Pacific, from 0 to 360.
    """
    for name, polygons in zip(named.ids, named.shapes, strict=True):
        for polygon in polygons:
            for ring in polygon:
                beyond = (np.abs(ring) > (360.0, 90.0)).any(axis=1)
                if beyond.any():
                    return name, ring[beyond][0]
    return None


def _first_repeated(ids: Sequence[Any]) -> str:
    """Return words about the first id that occurs again; none where all differ."""
    listed: set[Any] = set()
    for id in ids:
        if id in listed:
            return f"; {id!r} again"
        listed.add(id)
    return ""


class Borders:
    """What a domain knows of its polygons: their digest, and where points stand.

    Parameters
    ----------
    digest : str
        That of the districts.
    columns : tuple of two str
        The columns with coordinates.
    districts : Districts, optional
        The polygons; a domain that was read from a file has none.
    clamped : bool, default False
        Whether a point outside stands for the nearest district. It belongs to the way
        records are counted, not to the cells, so equal borders may differ in it.
    """

    def __init__(
        self,
        digest: str,
        columns: tuple[str, str],
        districts: Districts | None = None,
        *,
        clamped: bool = False,
    ) -> None:
        self.digest = digest
        self.columns = columns
        self._districts = districts
        self._clamped = clamped

    def clamping(self) -> Borders:
        """Return the same borders, under which a point outside has the nearest one."""
        return Borders(self.digest, self.columns, self._districts, clamped=True)

    @property
    def districts(self) -> Districts | None:
        """The polygons; None where the domain was read from a file."""
        return self._districts

    def column(self, x: Any, y: Any) -> AnyArray:
        """Return the id of the district of each point.

        Parameters
        ----------
        x : array-like of float
            Longitudes, or x.
        y : array-like of float
            Latitudes, or y.

        Returns
        -------
        ndarray
            The ids; outside all districts something that is none of them, and None
            or NaN without coordinates.

        Raises
        ------
        DomainError
            If the polygons are not at hand.
        """
        if self._districts is None:
            raise DomainError(
                "points are counted with the polygons of their districts, which a file "
                "of a domain does not hold",
                way_out="Build it again: Domain.from_polygons(districts)",
            )
        terms = {"nearest": self._clamped}
        numbers = self._districts.numbered_column(x, y, **terms)
        return self._districts.column(x, y, **terms) if numbers is None else numbers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Borders):
            return NotImplemented
        return (self.digest, self.columns) == (other.digest, other.columns)

    def __hash__(self) -> int:
        return hash((self.digest, self.columns))

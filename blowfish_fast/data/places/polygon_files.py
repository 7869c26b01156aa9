"""Polygons out of files: GeoJSON by itself, everything else through pyogrio.

A polygon is a list of rings, each an array of x and y; a district has one or several
polygons. Holes are rings like others: what lies in a hole is crossed twice.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import malformed_as
from blowfish_fast.errors import InputError

WGS84 = "EPSG:4326"
"""Degrees of longitude and latitude, the system of GeoJSON without another."""

SAME_AS_WGS84 = ("EPSG:4326", "OGC:CRS84", "URN:OGC:DEF:CRS:OGC:1.3:CRS84", "CRS84")

Polygon = list[FloatArray]
"""The rings of one polygon."""


class NamedShapes(NamedTuple):
    """What a file of districts holds.

    Attributes
    ----------
    ids : list
        The id of each district.
    shapes : list of lists of polygons
        The polygons of each.
    system : str or None
        The reference system that the file states.
    """

    ids: list[Any]
    shapes: list[list[Polygon]]
    system: str | None


EPSG_NAMES = ("EPSG:", "URN:OGC:DEF:CRS:EPSG:")
"""How names begin that end in a number of EPSG; GeoJSON of ogr2ogr has the second."""


def known_system(name: Any) -> str | None:
    """Return the name of a reference system; all names of one of EPSG are one."""
    if name is None:
        return None
    text = str(name).strip()
    plain = text.upper().replace("::", ":")
    if plain in SAME_AS_WGS84:
        return WGS84
    code = plain.rpartition(":")[2]
    return f"EPSG:{code}" if plain.startswith(EPSG_NAMES) and code.isdecimal() else text


def transformation(source: str, target: str) -> Callable[[FloatArray], FloatArray]:
    """Return what moves points from one reference system to another.

    Parameters
    ----------
    source : str
        The system of the points.
    target : str
        The system they are wanted in.

    Returns
    -------
    callable
        Takes and returns points, one per row: longitude, then latitude; or x, then y.

    Raises
    ------
    InputError
        If pyproj knows no such system; when called, if a point has no place in it.
    MissingExtraError
        If pyproj is not installed.
    """
    pyproj = require("pyproj", extra="geo", purpose="change the reference system")
    try:
        transformer = pyproj.Transformer.from_crs(source, target, always_xy=True)
    except pyproj.exceptions.ProjError as problem:
        raise InputError(
            "a reference system is one that pyproj knows, such as EPSG:4326",
            received=f"{source!r} and {target!r}",
        ) from problem

    def move(points: FloatArray) -> FloatArray:
        moved: FloatArray = np.column_stack(
            transformer.transform(points[:, 0], points[:, 1])
        )
        if not np.isfinite(moved).all():
            x, y = points[~np.isfinite(moved).all(axis=1)][0]
            raise InputError(
                f"every corner has a place in {target}",
                received=f"({x:g}, {y:g}) of {source}, which has none",
                way_out="State the system that the file is really in",
            )
        return moved

    return move


def polygons_of(shape: Any) -> list[Polygon]:
    """Return the polygons of a geometry: GeoJSON, or whatever has `__geo_interface__`.

    Raises `InputError` where it is neither a polygon nor several.
    """
    geometry = getattr(shape, "__geo_interface__", shape)
    if isinstance(geometry, Mapping) and geometry.get("type") == "Feature":
        geometry = geometry.get("geometry")
    kind = geometry.get("type") if isinstance(geometry, Mapping) else None
    if kind not in ("Polygon", "MultiPolygon"):
        raise InputError(
            "a district is a Polygon or a MultiPolygon",
            received=repr(kind or type(shape).__name__),
        )
    with malformed_as(InputError, "a polygon is a list of rings of coordinates"):
        listed = geometry["coordinates"]
        parts = [listed] if kind == "Polygon" else listed
        return [[_ring(ring) for ring in part] for part in parts]


def _ring(points: Any) -> FloatArray:
    ring = np.array([tuple(point)[:2] for point in points], dtype=np.float64)
    if ring.ndim != 2 or len(ring) < 4 or not np.isfinite(ring).all():
        raise InputError(
            "a ring has four points or more, the last one like the first",
            received=f"{len(ring)} points",
        )
    if not np.array_equal(ring[0], ring[-1]):
        ring = np.concatenate([ring, ring[:1]])
    return ring


def read_polygons(path: str | os.PathLike[str], id: str | None) -> NamedShapes:
    """Read the districts of a file.

    Parameters
    ----------
    path : str or PathLike
        GeoJSON (``.geojson``, ``.json``), or any file that pyogrio reads.
    id : str or None
        The column, or property, that names districts.

    Returns
    -------
    NamedShapes
        The districts.

    Raises
    ------
    InputError
        If the file cannot be read, or has no such column.
    MissingExtraError
        If the file needs pyogrio, and it is not installed.
    """
    if Path(path).suffix.lower() in (".geojson", ".json"):
        return _read_geojson(path, id)
    require("pyogrio", extra="geo", purpose="read districts from such a file")
    from pyogrio.errors import DataSourceError
    from pyogrio.raw import read

    try:
        about, _, geometry, columns = read(os.fspath(path))
    except DataSourceError as problem:
        raise InputError(
            "districts are read from a file", received=str(problem)
        ) from problem
    names = [str(name) for name in about["fields"]]
    if id not in names:
        raise _no_column(id, names)
    ids = [_plain(value) for value in columns[names.index(id)]]
    shapes = [_from_wkb(bytes(shape)) for shape in geometry]
    return NamedShapes(ids, shapes, known_system(about.get("crs")))


def read_columns(
    path: str | os.PathLike[str], names: Sequence[str]
) -> dict[str, list[Any]]:
    """Read what a file of polygons says about each, beside where it lies.

    Parameters
    ----------
    path : str or PathLike
        GeoJSON, or any file that pyogrio reads.
    names : sequence of str
        The columns, or properties.

    Returns
    -------
    dict[str, list]
        The values of each column, one for each polygon.

    Raises
    ------
    InputError
        If the file cannot be read, or has no such column.
    MissingExtraError
        If the file needs pyogrio, and it is not installed.
    """
    return {name: list(read_polygons(path, name).ids) for name in names}


def read_area(path: str | os.PathLike[str]) -> list[Polygon]:
    """Read a public area from GeoJSON: all polygons of the file, in WGS 84.

    Parameters
    ----------
    path : str or PathLike
        A geometry, a feature, or a collection of features.

    Returns
    -------
    list of polygons
        The polygons.

    Raises
    ------
    InputError
        If the file is no GeoJSON with polygons in degrees.
    """
    content = _read_json(path)
    members = content.get("features", [content])
    stated = content.get("crs")
    with malformed_as(InputError, "an area is GeoJSON in WGS 84"):
        if stated and known_system(stated["properties"]["name"]) != WGS84:
            raise ValueError(f"it states {stated['properties']['name']!r}")
        return [polygon for member in members for polygon in polygons_of(member)]


def _no_column(id: str | None, names: Sequence[str]) -> InputError:
    return InputError(
        "id names a column of the file, by which districts are called",
        received="no id" if id is None else repr(id),
        way_out=f"Its columns are {', '.join(names) or 'none'}",
    )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InputError(
            "a file of GeoJSON holds a FeatureCollection", received=str(problem)
        ) from problem
    return content if isinstance(content, dict) else {}


def _read_geojson(path: str | os.PathLike[str], id: str | None) -> NamedShapes:
    content = _read_json(path)
    features = content.get("features")
    if not isinstance(features, list) or not features:
        raise InputError(
            "a file of GeoJSON holds a FeatureCollection with features",
            received=f"none in {os.fspath(path)!r}",
        )
    ids, shapes = named_features(features, id)
    stated = content.get("crs")
    system = WGS84
    if stated is not None:
        with malformed_as(InputError, 'the member "crs" names a reference system'):
            system = known_system(stated["properties"]["name"]) or WGS84
    return NamedShapes(ids, shapes, system)


def named_features(
    features: Sequence[Any], id: str | None
) -> tuple[list[Any], list[list[Polygon]]]:
    """Return the ids and the polygons of features of GeoJSON.

    Parameters
    ----------
    features : sequence of mapping
        Features with properties and a geometry.
    id : str or None
        The property that names districts.

    Returns
    -------
    tuple of two lists
        The id of each feature, and its polygons.

    Raises
    ------
    InputError
        If a feature is none, lacks the property, or is no polygon.
    """
    ids, shapes = [], []
    for feature in features:
        with malformed_as(InputError, "a feature of GeoJSON has properties"):
            properties = dict(feature.get("properties") or {})
        if id not in properties:
            raise _no_column(id, [str(name) for name in properties])
        ids.append(properties[id])
        shapes.append(polygons_of(feature))
    return ids, shapes


def _from_wkb(content: bytes) -> list[Polygon]:
    """Return the polygons of a geometry in well-known binary, of two axes or more."""
    polygons: list[Polygon] = []
    with malformed_as(InputError, "a district is a Polygon or a MultiPolygon"):
        _read_wkb(content, 0, polygons)
    return polygons


def _read_wkb(content: bytes, at: int, polygons: list[Polygon]) -> int:
    order = "<" if content[at] == 1 else ">"
    (code,) = struct.unpack_from(f"{order}I", content, at + 1)
    at += 5
    if code & 0x20000000:
        at += 4
    base = code & 0x1FFFFFFF
    axes = 2 + (base // 1000 in (1, 2)) + 2 * (base // 1000 == 3)
    axes += bool(code & 0x80000000) + bool(code & 0x40000000)
    (count,) = struct.unpack_from(f"{order}I", content, at)
    at += 4
    if base % 1000 == 6:
        for _ in range(count):
            at = _read_wkb(content, at, polygons)
        return at
    if base % 1000 != 3:
        raise ValueError(f"geometry of kind {base % 1000}")
    rings = []
    for _ in range(count):
        (points,) = struct.unpack_from(f"{order}I", content, at)
        numbers = np.frombuffer(content, f"{order}f8", points * axes, at + 4)
        rings.append(_ring(numbers.reshape(points, axes)[:, :2]))
        at += 4 + 8 * points * axes
    polygons.append(rings)
    return at

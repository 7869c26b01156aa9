"""A release as a file that opens on a map: GeoPackage with its style, or GeoJSON.

Both hold, for each cell, its id, the estimate and the ends of its interval; what was
promised stands in the file. A GeoPackage is an SQLite file, which Python writes by
itself; its style colours by estimate and hatches where an interval is wide:

    gpkg_contents  gpkg_spatial_ref_sys  gpkg_geometry_columns   what a reader looks at
    LAYER          fid, geom, ID, estimate, low, high            a row per cell
    layer_styles                                                 what QGIS applies

Districts inside districts have a layer for each level, from the smallest up. A cell
without a place on the map, such as "(outside)", has a row without geometry.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_confidence
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.places.cell_parts import turned_ring
from blowfish_fast.data.places.districts import Districts
from blowfish_fast.data.places.polygon_files import WGS84, Polygon, known_system
from blowfish_fast.data.places.union_outlines import merged_shapes
from blowfish_fast.errors import InputError
from blowfish_fast.release.file import write_bytes
from blowfish_fast.release.grants import BOUND_NAMES
from blowfish_fast.release.query_grid import AnswerSource
from blowfish_fast.workloads import Identity, Workload
from blowfish_fast.workloads.districts import level_workload

from .level_answers import cell_ids
from .map_classes import class_breaks, colour_classes
from .reference_systems import ALWAYS_LISTED, PLANE, written_system

WIDE = 1.0
"""An interval wider than this many times the estimate is hatched."""

MOST_DIGITS = 7
"""Digits of degrees in GeoJSON: about a centimetre."""

EAST = ("lon", "longitude", "x")
NORTH = ("lat", "latitude", "y")

UNDEFINED = "undefined"
"""The system of a grid of x and y of which nobody says more."""


class MapRows(NamedTuple):
    """What a file of a map holds.

    Attributes
    ----------
    layer : str
        What a district is called; the name of the layer.
    ids : list
        The id of each cell.
    shapes : list
        The polygons of each; an empty list for a cell without a place.
    columns : dict[str, ndarray of float64]
        Estimate and interval, by name.
    system : str
        The reference system.
    promise : str
        What was promised, and what intervals hold.
    """

    layer: str
    ids: list[Any]
    shapes: list[list[Polygon]]
    columns: dict[str, FloatArray]
    system: str
    promise: str


def map_rows(
    release: AnswerSource,
    districts: Districts | None,
    confidence: float,
    system: str | None = None,
) -> MapRows:
    """Return the rows of a map: cells of a release, with polygons.

    Parameters
    ----------
    release : HistogramRelease
        Counts of districts, or of a grid of two axes.
    districts : Districts or None
        The polygons of the cells; None for a grid whose axes are lon and lat, or x and
        y.
    confidence : float
        How surely intervals hold.
    system : str, optional
        The reference system of a grid of x and y.

    Returns
    -------
    MapRows
        The rows.

    Raises
    ------
    InputError
        If cells and polygons do not belong together, or the system is another one.
    """
    sure = as_confidence(confidence)
    if districts is None:
        layer, ids, shapes, own = _boxes(release)
    else:
        layer, ids, shapes, own = _polygons(release, districts)
    columns, promise = interval_columns(release, sure)
    return MapRows(layer, ids, shapes, columns, map_system(own, system), promise)


def stated_system(own: str, system: str | None) -> str:
    """Return the reference system of a map; refuse one that contradicts its cells.

    Parameters
    ----------
    own : str
        That of the polygons, or of a grid: WGS 84 for lon and lat, "undefined" for x
        and y.
    system : str or None
        What is stated; None for nothing.

    Returns
    -------
    str
        The system.

    Raises
    ------
    InputError
        If both are known, and differ.
    """
    stated = known_system(system)
    if stated is None or stated == own:
        return own
    if own != UNDEFINED:
        raise InputError(
            "a map is in the system of its cells: degrees of WGS 84 for lon and lat, "
            "that of their polygons for districts",
            received=f"system={system!r}, and cells in {own}",
            way_out="Leave it out; columns of a grid in another system are x and y",
        )
    return stated


def map_system(own: str, system: str | None) -> str:
    """Return the reference system of a GeoPackage; refuse one that nobody knows.

    Parameters
    ----------
    own : str
        That of the polygons or the grid, as in `stated_system`.
    system : str or None
        What is stated; None for nothing.

    Returns
    -------
    str
        The system.

    Raises
    ------
    InputError
        If both are known and differ, or the stated one is no system.
    """
    stated = stated_system(own, system)
    if system is not None and written_system(stated) == PLANE:
        raise InputError(
            'a reference system is stated by a number, such as "EPSG:2056", or as '
            "well-known text",
            received=repr(system),
            way_out="Leave it out, and state it where the file is opened; names of "
            "other registries, such as ESRI:102003, need pyproj, from the extra geo",
        )
    return stated


def map_layers(
    release: AnswerSource,
    districts: Districts | None,
    confidence: float,
    system: str | None = None,
) -> list[MapRows]:
    """Return the rows of all layers: cells, and the levels above where there are any.

    Parameters
    ----------
    release : HistogramRelease
        Counts of districts, or of a grid of two axes.
    districts : Districts or None
        The polygons of the cells; None for a grid.
    confidence : float
        How surely intervals hold, each for itself.
    system : str, optional
        The reference system of a grid of x and y.

    Returns
    -------
    list of MapRows
        The cells, then each level above from the smallest districts up. A level that
        nothing measured tells apart is left out, cells among them.

    Raises
    ------
    InputError
        If cells and polygons do not belong together.
    """
    levels = release.details.get("levels")
    if not isinstance(levels, list) or districts is None:
        return [map_rows(release, districts, confidence, system)]
    sure = as_confidence(confidence)
    _, cells, cell_shapes, own = _polygons(release, districts)
    whole = map_system(own, system)
    layers = []
    for name in reversed(levels):
        labels = release.details["districts"].get(name)
        numbers = np.arange(len(cells)) if labels is None else np.asarray(labels)
        asked = level_workload(release.domain, numbers.astype(np.int64))
        if not release.holds_truth(asked).all():
            continue
        ids, shapes = cells, cell_shapes
        if labels is not None:
            ids = list(release.details["district_ids"][name])
            shapes = merged_shapes(cell_shapes, numbers, len(ids), districts.step)
        columns, promise = interval_columns(release, sure, asked)
        layers.append(MapRows(name, ids, shapes, columns, whole, promise))
    return layers


def interval_columns(
    release: AnswerSource, confidence: float, asked: Workload | None = None
) -> tuple[dict[str, FloatArray], str]:
    """Return estimates and ends of intervals of cells or districts, and their promise.

    Parameters
    ----------
    release : HistogramRelease
        The release.
    confidence : float
        How surely intervals hold.
    asked : Workload, optional
        A query per district; every cell by default.

    Returns
    -------
    columns : dict[str, ndarray of float64]
        "estimate", and the ends by their names; a number for each query, cells in C
        order.
    promise : str
        The guarantee, and what the intervals hold.
    """
    asked = Identity(release.domain) if asked is None else asked
    kind = release.interval_kind(asked, confidence)
    low, high = release.intervals(asked, confidence, of=kind).T
    names = BOUND_NAMES[kind]
    estimate = np.asarray(release.answer(asked), dtype=np.float64).reshape(-1)
    columns = {"estimate": estimate, names[0]: low, names[1]: high}
    sentence = release.interval_sentence(kind, confidence, asked)
    return columns, f"{release.guarantee} {sentence}"


def _polygons(
    release: AnswerSource, districts: Districts
) -> tuple[str, list[Any], list[list[Polygon]], str]:
    if not isinstance(districts, Districts):
        raise InputError(
            "a map needs Districts, such as Districts.from_file(path, id=...)",
            received=type(districts).__name__,
        )
    ids = list(cell_ids(release.domain))
    shape_of = dict(zip(districts.ids, districts.drawn_shapes, strict=True))
    attribute = release.domain.attributes[0]
    lacking = [id for id in ids[: attribute.regular] if id not in shape_of]
    borders = attribute.borders
    moved = borders is not None and borders.digest != districts.digest
    if release.domain.ndim != 1 or lacking or moved:
        raise InputError(
            "the cells of the release are districts with these borders",
            received="other borders" if moved else repr(lacking[:3] or release.domain),
            way_out="Hand over the Districts that the domain was made from",
        )
    shapes = [shape_of.get(id, []) for id in ids]
    return release.domain.column_names[0], ids, shapes, districts.system


class GridAxes(NamedTuple):
    """Where the axes of a grid are, and in which system they count.

    Attributes
    ----------
    east : int
        The axis of longitudes, or of x.
    north : int
        The axis of latitudes, or of y.
    system : str
        WGS 84 for lon and lat, "undefined" for x and y.
    """

    east: int
    north: int
    system: str


def grid_axes(domain: Domain) -> GridAxes:
    """Return which axis of a grid goes east, and which goes north.

    Parameters
    ----------
    domain : Domain
        Two axes with edges, called lon and lat, or x and y, in either order.

    Returns
    -------
    GridAxes
        The axes.

    Raises
    ------
    InputError
        If the domain is no such grid.
    """
    names = [str(name).lower() for name in domain.column_names]
    east = [axis for axis, name in enumerate(names) if name in EAST]
    north = [axis for axis, name in enumerate(names) if name in NORTH]
    cut = all(axis.cuts is not None for axis in domain.attributes)
    if domain.ndim != 2 or len(east) != 1 or len(north) != 1 or not cut:
        raise InputError(
            "a map is a grid of two axes, lon and lat or x and y, or has Districts",
            received=repr(domain),
            way_out="Hand over the polygons of the cells, or build the grid with "
            "Domain.from_box",
        )
    degrees = names[east[0]] != "x"
    return GridAxes(east[0], north[0], WGS84 if degrees else UNDEFINED)


def _boxes(release: AnswerSource) -> tuple[str, list[Any], list[list[Polygon]], str]:
    domain = release.domain
    axes = grid_axes(domain)
    places = np.indices(domain.shape).reshape(2, -1)
    at_x, at_y = places[axes.east], places[axes.north]
    across, up = (domain.attributes[axis] for axis in axes[:2])
    x, y = (np.asarray(axis.cuts, dtype=np.float64) for axis in (across, up))
    # Cells of stray values come last on their axis, and lie nowhere.
    placed = (at_x < across.regular) & (at_y < up.regular)
    at_x, at_y = np.where(placed, at_x, 0), np.where(placed, at_y, 0)
    corners = np.stack([x[at_x], y[at_y], x[at_x + 1], y[at_y + 1]], axis=1)
    shapes: list[list[Polygon]] = [
        [[np.array([(w, s), (e, s), (e, n), (w, n), (w, s)])]] if inside else []
        for (w, s, e, n), inside in zip(corners, placed, strict=True)
    ]
    return "cell", list(range(domain.size)), shapes, axes.system


def write_geojson(rows: MapRows, path: str | os.PathLike[str]) -> None:
    """Write a map as GeoJSON, with what was promised as a member of the collection.

    Parameters
    ----------
    rows : MapRows
        The rows.
    path : str or PathLike
        The file.

    Raises
    ------
    InputError
        If the map is not in WGS 84, the only system of GeoJSON.
    """
    if rows.system != WGS84:
        raise InputError(
            "GeoJSON is in WGS 84, degrees of longitude and latitude",
            received=rows.system,
            way_out="Write a GeoPackage: release.to_geopackage(path, districts)",
        )
    features = [
        {
            "type": "Feature",
            "properties": {rows.layer: id}
            | {name: float(column[at]) for name, column in rows.columns.items()},
            "geometry": _geometry(rows.shapes[at]),
        }
        for at, id in enumerate(rows.ids)
    ]
    whole = {
        "type": "FeatureCollection",
        "name": rows.layer,
        "promise": rows.promise,
        "features": features,
    }
    write_bytes(json.dumps(whole).encode(), path)


def write_style(rows: MapRows, path: str | os.PathLike[str]) -> None:
    """Write the style of a map beside it: NAME.qml, which QGIS applies by itself.

    Parameters
    ----------
    rows : MapRows
        The rows.
    path : str or PathLike
        The file of the map.
    """
    write_bytes(map_style(rows).encode(), Path(path).with_suffix(".qml"))


def _geometry(polygons: list[Polygon]) -> dict[str, Any] | None:
    if not polygons:
        return None
    turned = [
        [turned_ring(ring, outer=at == 0) for at, ring in enumerate(polygon)]
        for polygon in polygons
    ]
    listed = [
        [np.round(ring, MOST_DIGITS).tolist() for ring in polygon] for polygon in turned
    ]
    return {"type": "MultiPolygon", "coordinates": listed}


def write_geopackage(layers: Sequence[MapRows], path: str | os.PathLike[str]) -> None:
    """Write a map as a GeoPackage that QGIS opens in colours, hatched where unsure.

    Parameters
    ----------
    layers : sequence of MapRows
        The rows of each layer, all of one reference system.
    path : str or PathLike
        The file.
    """
    file = sqlite3.connect(":memory:")
    try:
        _write_head(file, layers[0].system)
        taken = {"layer_styles"}
        for rows in layers:
            name = _layer_name(rows.layer, taken)
            taken.add(name.lower())
            _write_layer(file, rows, name)
        file.commit()
        write_bytes(file.serialize(), path)
    finally:
        file.close()


def _write_head(file: sqlite3.Connection, system: str) -> None:
    """Write the tables that every GeoPackage has, and that of styles."""
    file.executescript(TABLES)
    stated = written_system(system)
    listed = [*ALWAYS_LISTED, *(() if stated in ALWAYS_LISTED else (stated,))]
    file.executemany("INSERT INTO gpkg_spatial_ref_sys VALUES (?,?,?,?,?,NULL)", listed)
    file.execute(
        "INSERT INTO gpkg_contents (table_name, data_type, identifier, description) "
        "VALUES ('layer_styles','attributes','layer_styles','styles')"
    )


def _layer_name(stated: str, taken: set[str]) -> str:
    """Return the name of a layer: its own, unless a table of the file has it.

    SQLite tells no capitals from small letters, and keeps names that begin with
    "sqlite_" or "gpkg_" for tables of its own or of the standard.
    """
    plain = stated.replace('"', "'") or "layer"
    if plain.lower().startswith(("sqlite_", "gpkg_", "rtree_")):
        plain = f"level_{plain}"
    name, number = plain, 1
    while name.lower() in taken:
        number += 1
        name = f"{plain}_{number}"
    return name


def _write_layer(file: sqlite3.Connection, rows: MapRows, layer: str) -> None:
    number = written_system(rows.system).number
    reached = [ring for shape in rows.shapes for polygon in shape for ring in polygon]
    points = np.concatenate(reached)
    box = [float(end) for end in (*points.min(axis=0), *points.max(axis=0))]
    named = ", ".join(f'"{name}" REAL' for name in rows.columns)
    kind = "TEXT" if any(isinstance(id, str) for id in rows.ids) else "INTEGER"
    file.execute(
        f'CREATE TABLE "{layer}" (fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, '
        f'geom MULTIPOLYGON, "id" {kind}, {named})'
    )
    marks = ",".join("?" * (2 + len(rows.columns)))
    lines = zip(
        (_blob(shape, number) for shape in rows.shapes),
        rows.ids,
        *(column.tolist() for column in rows.columns.values()),
        strict=True,
    )
    names = ", ".join(f'"{name}"' for name in rows.columns)
    file.executemany(
        f'INSERT INTO "{layer}" (geom, "id", {names}) VALUES ({marks})', lines
    )
    file.execute(
        "INSERT INTO gpkg_contents (table_name, data_type, identifier, description, "
        "min_x, min_y, max_x, max_y, srs_id) VALUES (?,'features',?,?,?,?,?,?,?)",
        (layer, layer, rows.promise, *box, number),
    )
    file.execute(
        "INSERT INTO gpkg_geometry_columns VALUES (?,'geom','MULTIPOLYGON',?,0,0)",
        (layer, number),
    )
    file.execute(
        "INSERT INTO layer_styles (f_table_catalog, f_table_schema, f_table_name, "
        "f_geometry_column, styleName, styleQML, styleSLD, useAsDefault, description, "
        "owner) VALUES ('','',?,'geom','release',?,'',1,?,'')",
        (layer, map_style(rows), rows.promise),
    )


TABLES = """
PRAGMA application_id = 1196444487;
PRAGMA user_version = 10200;
CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT NOT NULL,
    srs_id INTEGER NOT NULL PRIMARY KEY, organization TEXT NOT NULL,
    organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL,
    description TEXT);
CREATE TABLE gpkg_contents (table_name TEXT NOT NULL PRIMARY KEY,
    data_type TEXT NOT NULL, identifier TEXT UNIQUE, description TEXT DEFAULT '',
    last_change DATETIME NOT NULL DEFAULT '1970-01-01T00:00:00.000Z',
    min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER);
CREATE TABLE gpkg_geometry_columns (table_name TEXT NOT NULL,
    column_name TEXT NOT NULL, geometry_type_name TEXT NOT NULL,
    srs_id INTEGER NOT NULL, z TINYINT NOT NULL, m TINYINT NOT NULL,
    PRIMARY KEY (table_name, column_name));
CREATE TABLE layer_styles (id INTEGER PRIMARY KEY AUTOINCREMENT,
    f_table_catalog TEXT(256), f_table_schema TEXT(256), f_table_name TEXT(256),
    f_geometry_column TEXT(256), styleName TEXT(30), styleQML TEXT, styleSLD TEXT,
    useAsDefault BOOLEAN, description TEXT, owner TEXT(30), ui TEXT(30),
    update_time DATETIME DEFAULT '1970-01-01T00:00:00.000Z');
"""


def _blob(polygons: list[Polygon], number: int) -> bytes | None:
    """Return a geometry as GeoPackages hold it: a head, its box, well-known binary."""
    if not polygons:
        return None
    points = np.concatenate([ring for polygon in polygons for ring in polygon])
    (west, south), (east, north) = points.min(axis=0), points.max(axis=0)
    head = struct.pack("<2sBBi4d", b"GP", 0, 3, number, west, east, south, north)
    parts = [struct.pack("<BII", 1, 6, len(polygons))]
    for polygon in polygons:
        parts.append(struct.pack("<BII", 1, 3, len(polygon)))
        for ring in polygon:
            parts.append(struct.pack("<I", len(ring)))
            parts.append(np.ascontiguousarray(ring, dtype="<f8").tobytes())
    return head + b"".join(parts)


def placed_estimates(rows: MapRows) -> FloatArray:
    """Return the estimates of the cells that have a place on the map."""
    placed = np.array([bool(shape) for shape in rows.shapes])
    estimates: FloatArray = rows.columns["estimate"][placed]
    return estimates


def interval_names(rows: MapRows) -> tuple[str, str]:
    """Return the columns of the lower and the upper ends of intervals."""
    low, high = [name for name in rows.columns if name != "estimate"]
    return low, high


def map_style(rows: MapRows) -> str:
    """Return a style of QGIS: colours by estimate, lines where it is not sure."""
    low, high = interval_names(rows)
    classes = colour_classes(class_breaks(placed_estimates(rows)))
    rules, symbols = [], []
    for at, (begin, end, colour, label) in enumerate(classes):
        # All digits: the cell with which a class begins is in it.
        terms = [f'"estimate" >= {begin!r}'] if at else []
        terms += [f'"estimate" < {end!r}'] if at < len(classes) - 1 else []
        rules.append(_rule(at, " AND ".join(terms), label))
        red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
        fill = {
            "color": f"{red},{green},{blue},255",
            "outline_color": "255,255,255,255",
            "outline_width": "0.1",
            "style": "solid",
        }
        symbols.append(_symbol(at, "SimpleFill", fill))
    last = len(classes)
    unsure = f'"{high}" - "{low}" > {WIDE:g} * "estimate"'
    rules.append(_rule(last, unsure, "interval wider than the count: do not read"))
    lines = {
        "angle": "45",
        "distance": "1.2",
        "color": "60,60,60,255",
        "line_width": "0.2",
    }
    symbols.append(_symbol(last, "LinePatternFill", lines))
    return (
        "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>"
        '<qgis version="3.22" styleCategories="Symbology"><renderer-v2 '
        'type="RuleRenderer" symbollevels="0" enableorderby="0" forceraster="0">'
        f'<rules key="{_key("rules")}">{"".join(rules)}</rules>'
        f"<symbols>{''.join(symbols)}</symbols></renderer-v2></qgis>"
    )


def _key(text: str) -> str:
    return f"{{{uuid.uuid5(uuid.NAMESPACE_OID, text)}}}"


def _rule(number: int, terms: str, label: str) -> str:
    return (
        f'<rule key="{_key(f"{number} {terms}")}" symbol="{number}" '
        f"filter={quoteattr(terms)} label={quoteattr(label)}/>"
    )


def _symbol(number: int, kind: str, options: dict[str, str]) -> str:
    listed = "".join(
        f'<Option name="{name}" type="QString" value="{value}"/>'
        for name, value in options.items()
    )
    return (
        f'<symbol type="fill" name="{number}" alpha="1"><layer class="{kind}" '
        f'enabled="1"><Option type="Map">{listed}</Option></layer></symbol>'
    )

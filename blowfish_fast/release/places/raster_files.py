"""A grid as a GeoTIFF: bands of estimates and of the ends of their intervals.

Such a file is a head, the numbers, and a directory of tags that say what these are:

    II*  place of the directory               8 bytes
    band estimate | band low | band high      float32, rows from north to south
    number of tags, a tag of 12 bytes each    width, height, where it lies, ...
    values of tags that are longer than four bytes

Only what every reader takes is written: one strip a band, no compression.
"""

from __future__ import annotations

import os
import struct
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_confidence
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.places.polygon_files import WGS84
from blowfish_fast.errors import InputError
from blowfish_fast.release.file import write_bytes
from blowfish_fast.release.query_grid import AnswerSource

from .map_files import (
    UNDEFINED,
    grid_axes,
    interval_columns,
    stated_system,
)
from .reference_systems import system_number

EVEN = 1e-9
"""Relative difference of widths below which cells are equally wide."""

LARGEST_CODE = 65535
"""Systems are stated in 16 bits."""

SHORT, LONG, DOUBLE, TEXT = 3, 4, 12, 2
"""Kinds of values of a tag."""
PACKED = {SHORT: "H", LONG: "I", DOUBLE: "d"}

WIDTH, HEIGHT, BITS, COMPRESSION, MEANING, STRIPS = 256, 257, 258, 259, 262, 273
BANDS, ROWS_OF_STRIP, BYTES_OF_STRIP, PLANES = 277, 278, 279, 284
EXTRA_BANDS, NUMBER_FORMAT = 338, 339
CELL_SIZE, CORNER, GEOGRAPHIC_KEYS = 33550, 33922, 34735
BAND_NAMES, NO_VALUE = 42112, 42113
"""Numbers of tags. The last two are GDAL's, and everybody reads them."""


def write_geotiff(
    release: AnswerSource,
    path: str | os.PathLike[str],
    *,
    system: str | None,
    confidence: float,
) -> None:
    """Write a release of a grid as a GeoTIFF.

    Parameters
    ----------
    release : HistogramRelease
        Counts of a grid; cells of stray values have no place and are left out.
    path : str or PathLike
        The file.
    system : str or None
        The reference system of a grid of x and y; None for lon and lat.
    confidence : float
        How surely intervals hold.

    Raises
    ------
    InputError
        If the release is no such grid, or its cells are not of one size.
    """
    domain = release.domain
    axes = grid_axes(domain)
    code = system_code(axes.system, system)
    west, step_x = _origin(domain.attributes[axes.east])
    south, step_y = _origin(domain.attributes[axes.north])
    columns, promise = interval_columns(release, as_confidence(confidence))
    placed = tuple(slice(axis.regular) for axis in domain.attributes)
    bands = []
    for column in columns.values():
        grid = column.reshape(domain.shape)[placed]
        upright = grid if axes.north == 0 else grid.T
        bands.append(upright[::-1])
    north = south + step_y * bands[0].shape[0]
    content = geotiff_bytes(
        np.stack(bands), (west, north), (step_x, step_y), [*columns], promise, code
    )
    write_bytes(content, path)


def system_code(own: str, system: str | None) -> int | None:
    """Return the number by which a GeoTIFF states the reference system of a grid.

    Parameters
    ----------
    own : str
        WGS 84 for lon and lat, "undefined" for x and y.
    system : str or None
        What is stated; None for nothing.

    Returns
    -------
    int or None
        The number; None where nobody states a system.

    Raises
    ------
    InputError
        If the system has no such number, or the grid has another one.
    """
    stated = stated_system(own, system)
    if stated == UNDEFINED:
        return None
    code = system_number(stated)
    if not 0 < code <= LARGEST_CODE:
        raise InputError(
            'a GeoTIFF states its system by a number, such as "EPSG:2056"',
            received=repr(system),
            way_out="Leave system out, and state it where the file is opened",
        )
    return code


def cell_sizes(domain: Domain) -> tuple[float, float]:
    """Return width and height of the cells of a grid; refuse those of several sizes.

    Parameters
    ----------
    domain : Domain
        A grid of lon and lat, or x and y.

    Returns
    -------
    tuple[float, float]
        Width and height.

    Raises
    ------
    InputError
        If it is no such grid, or its cells are not of one size.
    """
    axes = grid_axes(domain)
    width, height = (_origin(domain.attributes[axis])[1] for axis in axes[:2])
    return width, height


def _origin(axis: Any) -> tuple[float, float]:
    """Return where an axis begins, and the width of its cells."""
    cuts = np.asarray(axis.cuts, dtype=np.float64)
    widths = np.diff(cuts)
    if np.ptp(widths) > EVEN * widths.max():
        raise InputError(
            "cells of a GeoTIFF have one size",
            received=f"widths from {widths.min():g} to {widths.max():g} of {axis.name}",
            way_out="Write a GeoPackage, which has a polygon for each cell: "
            "release.to_geopackage(path)",
        )
    return float(cuts[0]), float((cuts[-1] - cuts[0]) / widths.size)


def geotiff_bytes(
    bands: FloatArray,
    corner: tuple[float, float],
    size: tuple[float, float],
    names: list[str],
    promise: str,
    code: int | None,
) -> bytes:
    """Return bands as the bytes of a GeoTIFF.

    Parameters
    ----------
    bands : ndarray of float64, shape (bands, rows, columns)
        The numbers, rows from north to south; written as float32.
    corner : tuple[float, float]
        The place of the upper left corner of the map.
    size : tuple[float, float]
        Width and height of a cell.
    names : list of str
        The name of each band.
    promise : str
        What was promised.
    code : int or None
        The number of the reference system; None where nobody states one.

    Returns
    -------
    bytes
        The content of the file.
    """
    numbers = np.ascontiguousarray(bands, dtype="<f4")
    count, height, width = numbers.shape
    strip = 4 * height * width
    items = "".join(
        f'<Item name="DESCRIPTION" sample="{at}" role="description">{escape(name)}'
        "</Item>"
        for at, name in enumerate(names)
    )
    about = (
        f'<GDALMetadata>{items}<Item name="promise">{escape(promise)}</Item>'
        "</GDALMetadata>"
    )
    # A key is a number, where its value stands (here), how many, and the value.
    keys = [(1025, 0, 1, 1)]
    if code is not None:
        degrees = code == system_number(WGS84)
        model, kind = (2, 2048) if degrees else (1, 3072)
        keys = [(1024, 0, 1, model), *keys, (kind, 0, 1, code)]
    listed = [1, 1, 0, len(keys), *(number for key in keys for number in key)]
    tags: list[tuple[int, int, Any]] = [
        (WIDTH, LONG, [width]),
        (HEIGHT, LONG, [height]),
        (BITS, SHORT, [32] * count),
        (COMPRESSION, SHORT, [1]),
        (MEANING, SHORT, [1]),
        (STRIPS, LONG, [8 + at * strip for at in range(count)]),
        (BANDS, SHORT, [count]),
        (ROWS_OF_STRIP, LONG, [height]),
        (BYTES_OF_STRIP, LONG, [strip] * count),
        (PLANES, SHORT, [2]),
        (EXTRA_BANDS, SHORT, [0] * (count - 1)),
        (NUMBER_FORMAT, SHORT, [3] * count),
        (CELL_SIZE, DOUBLE, [*size, 0.0]),
        (CORNER, DOUBLE, [0.0, 0.0, 0.0, *corner, 0.0]),
        (GEOGRAPHIC_KEYS, SHORT, listed),
        (BAND_NAMES, TEXT, about.encode() + b"\0"),
        (NO_VALUE, TEXT, b"nan\0"),
    ]
    begin = 8 + numbers.nbytes
    longer_at = begin + 2 + 12 * len(tags) + 4
    entries, longer = [], b""
    for tag, kind, values in tags:
        packed = (
            bytes(values)
            if kind == TEXT
            else struct.pack(f"<{len(values)}{PACKED[kind]}", *values)
        )
        head = struct.pack("<HHI", tag, kind, len(values))
        if len(packed) <= 4:
            entries.append(head + packed.ljust(4, b"\0"))
        else:
            entries.append(head + struct.pack("<I", longer_at + len(longer)))
            # Values begin at even places.
            longer += packed + b"\0" * (len(packed) % 2)
    return b"".join(
        [
            b"II*\0",
            struct.pack("<I", begin),
            numbers.tobytes(),
            struct.pack("<H", len(tags)),
            *entries,
            b"\0\0\0\0",
            longer,
        ]
    )

"""Cells as datasets of xarray: centres, bounds, and where on the earth they lie.

edges          5.9       6.0       6.1
lon                5.95      6.05               the coordinate: centres of cells
lon_bounds     [5.9, 6.0] [6.0, 6.1]            its bounds
spatial_ref    EPSG:4326                        what the numbers refer to
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from blowfish_fast._support.typing import AnyArray
from blowfish_fast.errors import InputError, MissingExtraError

from .domain import Domain
from .frames import cell_columns

DEGREES_CRS = "EPSG:4326"
DEGREES = {
    name: {"standard_name": standard, "units": units}
    for standard, units, several in (
        ("longitude", "degrees_east", ("lon", "longitude")),
        ("latitude", "degrees_north", ("lat", "latitude")),
    )
    for name in several
}
"""Sides of a map that are degrees, and what CF notes of them."""


def labelled_arrays(
    domain: Domain,
    values: Mapping[str, AnyArray],
    attributes: Mapping[str, str],
    crs: Any = None,
) -> Any:
    """Return an xarray dataset: a dimension per attribute, with what its cells are.

    Cells between edges are labelled by their centres, and the edges are their bounds,
    as the conventions for climate and forecast data (CF) have it. So a map that is
    drawn from the dataset lies where the cells lie.

    Parameters
    ----------
    domain : Domain
        The cells.
    values : mapping from str to ndarray
        One number per cell, in C order.
    attributes : mapping from str to str
        What is noted of the whole dataset.
    crs : optional
        The reference system of a map: anything that `pyproj.CRS` takes, such as 2056 or
        "EPSG:2056". Sides called lon and lat, or longitude and latitude, are degrees
        (EPSG:4326) where nothing is said.

    Returns
    -------
    xarray.Dataset
        The values; coordinates; bounds, in variables ``NAME_bounds``; and the reference
        system, where one is known, in the variable ``spatial_ref``.

    Raises
    ------
    MissingExtraError
        xarray is not installed.
    InputError
        There is no such reference system, or pyproj, which knows them, is not there.
    """
    try:
        xarray = importlib.import_module("xarray")
    except ImportError as problem:
        raise MissingExtraError(
            "a dataset of xarray needs xarray, which is not installed; install it "
            "with: pip install xarray"
        ) from problem
    names = domain.column_names
    coordinates: dict[str, Any] = {}
    for axis, (name, attribute) in enumerate(
        zip(names, domain.attributes, strict=True)
    ):
        cells = cell_columns(domain.marginal(axis), [np.arange(domain.shape[axis])])
        if attribute.cuts is None:
            coordinates |= {column: (name, along) for column, along in cells.items()}
            continue
        low, high = (cells.pop(f"{name}_{end}") for end in ("from", "to"))
        if attribute.unit is not None:
            # Half a day is no whole number of days.
            low, high = (one.astype("datetime64[us]") for one in (low, high))
        about = {"bounds": f"{name}_bounds", **DEGREES.get(name, {})}
        coordinates[name] = (name, low + (high - low) / 2, about)
        coordinates[f"{name}_bounds"] = ((name, "bounds"), np.stack([low, high], -1))
        coordinates |= {column: (name, along) for column, along in cells.items()}
    if crs is None and {"longitude", "latitude"} <= {
        DEGREES.get(name, {}).get("standard_name") for name in names
    }:
        crs = DEGREES_CRS
    mapped = {} if crs is None else {"grid_mapping": "spatial_ref"}
    if crs is not None:
        coordinates["spatial_ref"] = ((), 0, _reference_system(crs))
    return xarray.Dataset(
        {
            key: (names, one.reshape(domain.shape), mapped)
            for key, one in values.items()
        },
        coords=coordinates,
        attrs=dict(attributes),
    )


def _reference_system(crs: Any) -> dict[str, Any]:
    """Return what CF notes of a reference system; its name alone without pyproj."""
    try:
        pyproj = importlib.import_module("pyproj")
    except ImportError:
        if crs == DEGREES_CRS:
            return {"grid_mapping_name": "latitude_longitude", "spatial_ref": crs}
        raise MissingExtraError(
            "reference systems are known to pyproj, which is not installed; install "
            "it with: pip install pyproj"
        ) from None
    try:
        system = pyproj.CRS(crs)
    except pyproj.exceptions.CRSError:
        raise InputError(
            f"{crs!r} is no reference system that pyproj knows",
            way_out='Name one by its number, as in crs=2056 or "EPSG:2056"',
        ) from None
    with warnings.catch_warnings():
        # What has no word of its own in CF is in the text that stands beside it.
        warnings.simplefilter("ignore")
        known: dict[str, Any] = system.to_cf()
    return {**known, "spatial_ref": known["crs_wkt"]}

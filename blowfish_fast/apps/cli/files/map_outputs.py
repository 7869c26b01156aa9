"""Maps that commands write, checked before anything is charged: by ending and place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blowfish_fast.apps.cli.options import refuse_existing
from blowfish_fast.apps.cli.parsing.domain import names_polygons, parse_polygons
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.data.domain import is_wide
from blowfish_fast.data.places.districts import Districts
from blowfish_fast.data.places.polygon_files import WGS84
from blowfish_fast.errors import InputError
from blowfish_fast.release.places.map_files import (
    MapRows,
    grid_axes,
    map_system,
    write_geojson,
    write_geopackage,
)
from blowfish_fast.release.places.raster_files import cell_sizes, system_code
from blowfish_fast.release.release import HistogramRelease

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENDINGS = (".gpkg", ".geojson", ".tif", ".tiff")
RASTERS = (".tif", ".tiff")


def with_map_named(job: Job) -> Job:
    """Return a job whose ``--out map.gpkg`` is a map, beside the release itself."""
    assert job.release is not None, "its ending is that of a map"
    out = job.release
    if job.map is not None:
        raise InputError(
            "a release is written as .blowfish, and a map by --map",
            received=f"--out {out} --map {job.map}",
            way_out="Leave one of them out",
        )
    return replace(job, map=out, release=str(Path(out).with_suffix(".blowfish")))


def checked_map(path: Path, domain: Any, system: str | None) -> Districts | None:
    """Return the polygons of a stated domain; refuse a map that cannot be written.

    Parameters
    ----------
    path : Path
        The file of the map.
    domain : Domain or WideDomain
        The cells of the release.
    system : str or None
        The reference system that is stated for a grid of x and y.

    Returns
    -------
    Districts or None
        The polygons of its cells; None for a grid.

    Raises
    ------
    InputError
        If the ending does not fit, or cells have no place.
    """
    borders = domain.attributes[0].borders if domain.ndim == 1 else None
    districts = None if borders is None else borders.districts
    check_map(path, domain, districts, system)
    return districts


def check_map(
    path: Path, domain: Any, districts: Districts | None, system: str | None
) -> None:
    """Refuse, before anything is paid, a map that could not be written.

    Parameters
    ----------
    path : Path
        The file.
    domain : Domain or WideDomain
        The cells of the release.
    districts : Districts or None
        Their polygons; None for a grid.
    system : str or None
        The reference system that is stated for a grid of x and y.

    Raises
    ------
    InputError
        If the ending does not fit, cells have no place, or the system is none.
    """
    suffix = path.suffix.lower()
    if suffix not in ENDINGS:
        raise InputError(
            f"a map is written as {', '.join(ENDINGS)}; received {path.name!r}"
        )
    if is_wide(domain):
        raise InputError(
            "a map shows all cells of a release", received=f"{domain.size:,} cells"
        )
    own = grid_axes(domain).system if districts is None else districts.system
    whole = map_system(own, system)
    if suffix == ".geojson" and whole != WGS84:
        raise InputError(
            "GeoJSON is in WGS 84, degrees of longitude and latitude",
            received=f"a map in {whole}",
            way_out="Write a .gpkg",
        )
    if suffix in RASTERS and districts is not None:
        raise InputError(
            "a GeoTIFF is made of a grid, and these cells are polygons",
            received=path.name,
            way_out="Write a .gpkg or a .geojson",
        )
    if suffix in RASTERS:
        cell_sizes(domain)
        system_code(own, system)


def write_map(
    release: Any,
    path: Path,
    districts: Districts | None,
    confidence: float,
    system: str | None,
) -> None:
    """Write the map of a release, by the ending of its file.

    Parameters
    ----------
    release : HistogramRelease
        The release.
    path : Path
        The file.
    districts : Districts or None
        The polygons of its cells; None for a grid.
    confidence : float
        Of the intervals.
    system : str or None
        The reference system that is stated for a grid of x and y.

    Raises
    ------
    InputError
        If this is no release of a map.
    """
    if not isinstance(release, HistogramRelease):
        raise InputError(
            "a map is written of a release of all cells",
            received=type(release).__name__,
        )
    suffix = path.suffix.lower()
    if suffix in RASTERS:
        release.to_geotiff(path, system=system, confidence=confidence)
    elif suffix == ".gpkg":
        terms: Any = {"system": system, "confidence": confidence}
        release.to_geopackage(path, districts, **terms)
    else:
        release.to_geojson(path, districts, confidence=confidence)


def write_answers(
    columns: dict[str, Any], words: str, path: Path, promise: str
) -> None:
    """Write counts of polygons, as they were asked of a release, as a map.

    Parameters
    ----------
    columns : dict[str, ndarray]
        The district, its count and the ends of its interval.
    words : str
        The file of the polygons, FILE or FILE:ID.
    path : Path
        The map, .gpkg or .geojson.
    promise : str
        The guarantee, and what intervals hold.

    Raises
    ------
    InputError
        If the answers have no intervals, by which a map is hatched.
    """
    named, count, *ends = columns
    if len(ends) != 2:
        raise InputError(
            "a map is hatched by its intervals, and these answers have none",
            way_out="Write a table, .csv",
        )
    districts = parse_polygons(words, "id")
    numbers = {
        "estimate" if name == count else name: np.asarray(columns[name], dtype=float)
        for name in (count, *ends)
    }
    shapes = list(districts.shapes)
    ids = list(districts.ids)
    rows = MapRows(named, ids, shapes, numbers, districts.system, promise)
    if path.suffix.lower() == ".gpkg":
        write_geopackage([rows], path)
    else:
        write_geojson(rows, path)


def check_map_of_answers(path: Path | None, by: list[str], *, overwrite: bool) -> bool:
    """Return whether answers are written as a map; refuse one that cannot be.

    Parameters
    ----------
    path : Path or None
        Where answers are written.
    by : list of str
        What they are broken down by.
    overwrite : bool
        Whether a file that exists may be replaced.

    Returns
    -------
    bool
        Whether it is the name of a map.

    Raises
    ------
    InputError
        If a map is named, and answers are not by polygons, or it exists already.
    """
    if path is None or path.suffix.lower() not in ENDINGS:
        return False
    if path.suffix.lower() in RASTERS or not any(map(names_polygons, by)):
        raise InputError(
            "answers are a map where they are by polygons, .gpkg or .geojson",
            received=path.name,
            way_out="State --by FILE:ID with a file of polygons, or write a table",
        )
    refuse_existing(path, overwrite=overwrite)
    return True


def polygons_of_cells(release: Any, words: str | None) -> Districts | None:
    """Read the polygons of the cells of a release; None for a grid.

    Parameters
    ----------
    release : Release
        The release.
    words : str or None
        ``FILE`` or ``FILE:ID``; without an id, that of the column of the release.

    Returns
    -------
    Districts or None
        The polygons.

    Raises
    ------
    InputError
        If cells are districts, and nobody says where they lie.
    """
    domain = release.domain
    if words is not None:
        return parse_polygons(words, str(domain.column_names[0]))
    if domain.ndim == 1:
        raise InputError(
            "the file of a release holds no polygons",
            received="no --districts",
            way_out="Name the file of the polygons of its cells: --districts FILE:ID",
        )
    return None


def map_axes(release: Any, districts: Districts | None, confidence: float) -> Axes:
    """Draw a release as a map in classes of colours, hatched where it is not sure.

    Parameters
    ----------
    release : HistogramRelease
        The release.
    districts : Districts or None
        The polygons of its cells.
    confidence : float
        Of the intervals.

    Returns
    -------
    matplotlib Axes
        The axes.
    """
    from blowfish_fast import plotting

    return plotting.choropleth(release, districts, confidence=confidence)

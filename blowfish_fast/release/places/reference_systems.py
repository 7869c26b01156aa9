"""How a file of a map states its reference system: by a number, and in words.

A GeoPackage has a line for each system it uses. Readers that know the registry of EPSG
need its number alone; any other system, such as an equal-area projection of ESRI, has
to be written out as well-known text:

    srs_id   organization   code     definition
    4326     EPSG           4326     GEOGCS["WGS 84", ...
    2056     EPSG           2056     PROJCS["CH1903+ / LV95", ...
    102003   ESRI           102003   PROJCS["USA_Contiguous_Albers_Equal_Area", ...

The text comes from pyproj where that is installed, or is what a file of polygons
stated itself.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

from blowfish_fast.data.places.polygon_files import WGS84

WGS84_TEXT = (
    'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],'
    'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433],'
    'AUTHORITY["EPSG","4326"]]'
)

NO_SYSTEM = -1
"""The number of a plane about which nothing else is said."""

FIRST_OWN_NUMBER = 100_000
"""Systems that nobody has numbered are numbered from here, as GDAL does."""

BEGINNINGS = ("GEOGC", "PROJC", "GEODC", "BOUNDCRS", "COMPD", "ENGCRS", "LOCAL_CS")
"""How well-known text of a reference system begins."""


class WrittenSystem(NamedTuple):
    """A line of `gpkg_spatial_ref_sys`.

    Attributes
    ----------
    name : str
        What people call it.
    number : int
        Its number in the file.
    organization : str
        Who numbered it; "NONE" where nobody did.
    code : int
        Its number there.
    definition : str
        Well-known text; "undefined" where nothing is known but the number.
    """

    name: str
    number: int
    organization: str
    code: int
    definition: str


PLANE = WrittenSystem("Undefined Cartesian", NO_SYSTEM, "NONE", NO_SYSTEM, "undefined")
GLOBE = WrittenSystem("Undefined geographic", 0, "NONE", 0, "undefined")
DEGREES = WrittenSystem("WGS 84", 4326, "EPSG", 4326, WGS84_TEXT)
ALWAYS_LISTED = (PLANE, GLOBE, DEGREES)
"""Systems that every GeoPackage lists."""


def system_number(system: str) -> int:
    """Return the number of a system of EPSG; -1 for any other."""
    organization, _, number = system.partition(":")
    if organization.upper() == "EPSG" and number.isdecimal():
        return int(number)
    return NO_SYSTEM


def written_system(system: str) -> WrittenSystem:
    """Return how a GeoPackage states a reference system.

    Parameters
    ----------
    system : str
        Its name, such as "EPSG:2056" or "ESRI:102003", or well-known text.

    Returns
    -------
    WrittenSystem
        Its line. A name that says nothing to anybody is the undefined plane.
    """
    if system == WGS84:
        return DEGREES
    number = system_number(system)
    text = _well_known_text(system)
    if number > 0:
        return WrittenSystem(system, number, "EPSG", number, text or "undefined")
    if text is None:
        return PLANE
    organization, _, code = system.partition(":")
    if code.isdecimal() and organization.isalnum():
        own = int(code)
        return WrittenSystem(system, own, organization.upper(), own, text)
    title = text.partition('"')[2].partition('"')[0] or "custom"
    return WrittenSystem(title, FIRST_OWN_NUMBER, "NONE", FIRST_OWN_NUMBER, text)


def _well_known_text(system: str) -> str | None:
    """Return the text of a system; None where nothing here knows it."""
    if find_spec("pyproj") is not None:
        import pyproj

        try:
            described = pyproj.CRS.from_user_input(system)
        except pyproj.exceptions.CRSError:
            return None
        try:
            # The older form is what the standard asks for.
            return str(described.to_wkt("WKT1_GDAL"))
        except pyproj.exceptions.CRSError:
            return str(described.to_wkt())
    return system if system.upper().startswith(BEGINNINGS) else None

"""How a GeoPackage states a reference system, with pyproj and without."""

from __future__ import annotations

import pytest

from blowfish_fast.data.places.polygon_files import known_system
from blowfish_fast.release.places import reference_systems
from blowfish_fast.release.places.reference_systems import (
    DEGREES,
    PLANE,
    written_system,
)

LOCAL = (
    'PROJCS["My own plane",GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,'
    '298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],'
    'PROJECTION["Transverse_Mercator"],PARAMETER["latitude_of_origin",0],'
    'PARAMETER["central_meridian",24],PARAMETER["scale_factor",1],'
    'PARAMETER["false_easting",5000],PARAMETER["false_northing",0],UNIT["metre",1]]'
)


@pytest.fixture
def no_pyproj(monkeypatch):
    monkeypatch.setattr(reference_systems, "find_spec", lambda name: None)


def test_names_of_one_system_are_one_name():
    for name in ("EPSG:25832", "epsg:25832", "urn:ogc:def:crs:EPSG::25832"):
        assert known_system(name) == "EPSG:25832"
    for name in ("urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:EPSG::4326"):
        assert known_system(name) == "EPSG:4326"
    assert known_system("urn:ogc:def:crs:EPSG:9.8:2056") == "EPSG:2056"
    assert known_system(" ESRI:102003") == "ESRI:102003"
    assert known_system(None) is None


def test_a_number_of_epsg_is_enough(no_pyproj):
    assert written_system("EPSG:4326") == DEGREES
    line = written_system("EPSG:2056")
    assert line[1:] == (2056, "EPSG", 2056, "undefined")


def test_well_known_text_is_kept(no_pyproj):
    line = written_system(LOCAL)
    assert (line.name, line.organization) == ("My own plane", "NONE")
    assert line.number >= 100_000
    assert line.definition == LOCAL


def test_what_nobody_knows_is_the_undefined_plane(no_pyproj):
    assert written_system("undefined") == PLANE
    assert written_system("ESRI:102003") == PLANE


def test_other_registries_are_written_out_where_pyproj_knows_them():
    pytest.importorskip("pyproj")
    assert written_system("EPSG:2056").definition.startswith('PROJCS["CH1903+')
    line = written_system("ESRI:102003")
    assert line[1:4] == (102003, "ESRI", 102003)
    assert "Albers" in line.definition
    assert written_system("nowhere") == PLANE
    assert written_system(LOCAL).name == "My own plane"

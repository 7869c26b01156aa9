"""Grids as GeoTIFF: what the bytes say, and what a reader of rasters finds."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError

GRID = bf.Domain.from_box((2, 3), lat=(46, 48), lon=(7, 10))
COUNTS = np.arange(6).reshape(2, 3) * 100


def released(grid, counts, seed=1):
    return bf.Laplace(bf.policies.AddRemove(grid), epsilon=1).release(counts, rng=seed)


def tags_of(content):
    """Return the values of all tags, read as the standard says."""
    assert content[:4] == b"II*\0"
    (at,) = struct.unpack_from("<I", content, 4)
    (many,) = struct.unpack_from("<H", content, at)
    values = {}
    for entry in range(many):
        place = at + 2 + 12 * entry
        tag, kind, count = struct.unpack_from("<HHI", content, place)
        code, size = {2: ("s", 1), 3: ("H", 2), 4: ("I", 4), 12: ("d", 8)}[kind]
        start = place + 8
        if count * size > 4:
            (start,) = struct.unpack_from("<I", content, start)
        values[tag] = struct.unpack_from(f"<{count}{code}", content, start)
    assert [*values] == sorted(values)
    return values


def bands_of(content):
    tags = tags_of(content)
    shape = tags[257][0], tags[256][0]
    return [
        np.frombuffer(content, "<f4", shape[0] * shape[1], start).reshape(shape)
        for start in tags[273]
    ]


def test_rows_run_from_north_to_south_and_bands_have_names(tmp_path):
    release = released(GRID, COUNTS)
    release.to_geotiff(tmp_path / "grid.tif")
    content = (tmp_path / "grid.tif").read_bytes()
    tags = tags_of(content)
    estimate, low, high = bands_of(content)
    np.testing.assert_array_equal(estimate, release.estimate[::-1].astype("f4"))
    assert (low <= estimate).all()
    assert (estimate <= high).all()
    assert tags[33550] == (1.0, 1.0, 0.0)
    assert tags[33922] == (0.0, 0.0, 0.0, 7.0, 48.0, 0.0)
    # Geographic, cells are areas, WGS 84.
    assert tags[34735][4:] == (1024, 0, 1, 2, 1025, 0, 1, 1, 2048, 0, 1, 4326)
    about = tags[42112][0].decode()
    assert 'sample="2" role="description">high<' in about
    assert "An experiment that protects nobody" in about


def test_the_axes_may_come_in_either_order(tmp_path):
    turned = bf.Domain.from_box((3, 2), lon=(7, 10), lat=(46, 48))
    released(turned, COUNTS.T).to_geotiff(tmp_path / "turned.tif")
    estimate = bands_of((tmp_path / "turned.tif").read_bytes())[0]
    np.testing.assert_allclose(estimate, COUNTS[::-1], atol=40)
    assert estimate.shape == (2, 3)


def test_stray_values_have_no_place(tmp_path):
    grid = GRID.with_extra_cells(outside=True)
    counts = np.full(grid.shape, 5000)
    counts[:2, :3] = COUNTS
    release = released(grid, counts)
    release.to_geotiff(tmp_path / "grid.tif")
    estimate = bands_of((tmp_path / "grid.tif").read_bytes())[0]
    np.testing.assert_array_equal(estimate, release.estimate[1::-1, :3].astype("f4"))
    release.to_geojson(tmp_path / "grid.geojson")
    assert (tmp_path / "grid.geojson").read_text().count('"geometry": null') == 6


def test_a_system_is_stated_where_columns_do_not_say_it(tmp_path):
    plain = bf.Domain.from_box((2, 3), y=(1e6, 1.2e6), x=(2e6, 2.3e6))
    release = released(plain, COUNTS)
    release.to_geotiff(tmp_path / "plain.tif")
    assert tags_of((tmp_path / "plain.tif").read_bytes())[34735][3] == 1
    release.to_geotiff(tmp_path / "swiss.tif", system="EPSG:2056")
    keys = tags_of((tmp_path / "swiss.tif").read_bytes())[34735]
    assert keys[-4:] == (3072, 0, 1, 2056)
    assert keys[4:8] == (1024, 0, 1, 1)
    with pytest.raises(InputError, match="by a number"):
        release.to_geotiff(tmp_path / "swiss.tif", system="my own")
    with pytest.raises(InputError, match="degrees of WGS 84"):
        released(GRID, COUNTS).to_geotiff(tmp_path / "a.tif", system="EPSG:2056")


def test_cells_of_several_sizes_are_refused(tmp_path):
    uneven = bf.Domain.product(
        bf.Domain.from_edges([0, 1, 3], name="lat"),
        bf.Domain.from_edges([0, 1, 2, 3], name="lon"),
    )
    with pytest.raises(InputError, match="one size"):
        released(uneven, COUNTS).to_geotiff(tmp_path / "a.tif")
    with pytest.raises(InputError, match="a grid of two axes"):
        released(bf.Domain(4), [1, 2, 3, 4]).to_geotiff(tmp_path / "a.tif")
    assert not (tmp_path / "a.tif").exists()


def test_a_reader_of_rasters_opens_it(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    release = released(GRID, COUNTS)
    release.to_geotiff(tmp_path / "grid.tif")
    with rasterio.open(tmp_path / "grid.tif") as raster:
        assert raster.crs.to_epsg() == 4326
        assert tuple(raster.bounds) == (7.0, 46.0, 10.0, 48.0)
        assert raster.descriptions == ("estimate", "low", "high")
        assert raster.tags()["promise"].startswith("An experiment")
        np.testing.assert_array_equal(
            raster.read(1), release.estimate[::-1].astype("f4")
        )
        # The cell around 46.5 degrees north and 9.5 east.
        row, column = raster.index(9.5, 46.5)
        assert raster.read(1)[row, column] == np.float32(release.estimate[0, 2])

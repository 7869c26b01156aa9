"""Releases: public values, answers, files."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import stat
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.errors import (
    DomainError,
    InputError,
    IntervalError,
    ReleaseFileError,
    SeededWarning,
)
from blowfish_fast.mechanisms.registry import MECHANISMS
from tests.generated import example_count


def pickled(release):
    return pickle.loads(pickle.dumps(release))


GRID = bf.Domain((6, 7), names=("north", "east"))
ASKED = bf.workloads.Rectangles.random(GRID, 20, rng=1)
COUNTS = np.arange(42).reshape(6, 7)


@pytest.fixture(scope="module")
def release():
    return bf.Dawa(
        bf.policies.Full(GRID), ASKED, epsilon=0.7, fit="non_negative"
    ).release(COUNTS, rng=1)


@pytest.fixture(scope="module")
def saved(release, tmp_path_factory):
    path = tmp_path_factory.mktemp("releases") / "city.release"
    release.save(path)
    return path


def test_a_saved_release_answers_as_before(release, saved):
    again = bf.Release.load(saved)
    assert (again.estimate == release.estimate).all()
    assert (
        again.intervals(ASKED, of="noise") == release.intervals(ASKED, of="noise")
    ).all()
    assert (again.standard_errors(ASKED) == release.standard_errors(ASKED)).all()
    assert again.guarantee == release.guarantee
    assert again.domain == GRID
    assert dict(again.details).keys() == dict(release.details).keys()
    assert str(again.guarantee.epsilon) == "7/10"
    assert not again.private


def test_the_file_holds_no_pickle_and_no_true_count(saved):
    with zipfile.ZipFile(saved) as archive:
        for name in archive.namelist():
            if name.endswith(".npy"):
                array = np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
                assert array.dtype.kind in "ifb"
                assert array.shape != COUNTS.shape or (array != COUNTS).any()


def test_plain_data_goes_through_json(release):
    data = json.loads(json.dumps(release.to_dict()))
    assert data["mechanism"] == "dawa"
    assert "eps = 0.7" in data["promise"]
    assert np.shape(data["estimate"]) == (6, 7)


def test_estimates_cannot_be_changed(release):
    with pytest.raises(ValueError, match="read-only"):
        release.estimate[0, 0] = 1
    with pytest.raises(TypeError):
        release.details["edges"] = 1


def test_misfits_are_refused(release):
    with pytest.raises(DomainError, match=r"over release\.domain"):
        release.answer(bf.workloads.Identity(bf.Domain((6, 7))))
    with pytest.raises(DomainError, match="ask a workload"):
        release.answer([1, 2])
    with pytest.raises(bf.BlowfishError, match="confidence"):
        release.intervals(ASKED, confidence=1.5)


def test_releases_of_one_mechanism_have_the_intervals_of_each_alone():
    line = bf.Domain(8)
    full, cells = bf.policies.Full(line), bf.workloads.Identity(line)
    shared = bf.Laplace(full, cells, epsilon=1)
    asked = [cells, bf.workloads.Prefixes(line), cells]
    for seed, workload in enumerate(asked):
        for confidence in (0.9, 0.99, 0.9):
            own = bf.Laplace(full, cells, epsilon=1).release(range(8), rng=seed)
            again = shared.release(range(8), rng=seed)
            expected = own.intervals(workload, confidence)
            assert np.array_equal(again.intervals(workload, confidence), expected)


def test_a_release_that_covers_nothing_has_no_intervals(release):
    from dataclasses import replace

    with pytest.raises(IntervalError, match="no interval"):
        replace(release, interval_scope="nothing").intervals(ASKED)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ReleaseFileError, match="no release file"):
        bf.Release.load(tmp_path / "none")


def test_a_newer_format_is_refused(saved, tmp_path):
    path = _changed(saved, tmp_path, lambda content: content.update(format=99))
    with pytest.raises(ReleaseFileError, match="format 99"):
        bf.Release.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("domain"),
        lambda content: content.update(interval_scope="everything"),
        lambda content: content.update(estimate=[1, 2]),
        lambda content: content["measurements"][0].update(kind="spell"),
        lambda content: content["measurements"][0].update(unit=0),
        lambda content: content["measurements"][0].update(edges=[0, 3]),
        lambda content: content["measurements"][0].update(rates={"array": "../x"}),
        lambda content: content["guarantee"].update(epsilon="1/0"),
        lambda content: content["domain"]["attributes"][0].update(size=2**40),
        lambda content: content.update(unfitted=[3]),
        lambda content: content["measurements"][0].update(order=[0] * 42),
    ],
)
def test_damaged_files_are_refused(saved, tmp_path, change):
    with pytest.raises(ReleaseFileError):
        bf.Release.load(_changed(saved, tmp_path, change))


@settings(max_examples=example_count(60))
@given(st.data())
def test_flipped_bytes_never_crash(saved, tmp_path_factory, data):
    content = bytearray(saved.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "file"
    path.write_bytes(bytes(content))
    try:
        loaded = bf.Release.load(path)
    except ReleaseFileError:
        return
    assert loaded.estimate.shape == loaded.domain.shape


def test_a_failed_save_leaves_the_old_file(release, saved, tmp_path, monkeypatch):
    path = tmp_path / "kept.release"
    release.save(path)
    before = path.read_bytes()
    monkeypatch.setattr("blowfish_fast.release.file._packing", _fail)
    with pytest.raises(OSError, match="disk full"):
        release.save(path)
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", _fail)
    with pytest.raises(ReleaseFileError, match="cannot be written: disk full"):
        release.save(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["kept.release"]


def test_only_regular_files_are_replaced(release, tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link, tmp_path, "/dev/null"):
        with pytest.raises(ReleaseFileError, match="in place of a regular one"):
            release.save(path)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    for path in (pipe, link, tmp_path, "/dev/full"):
        with pytest.raises(ReleaseFileError, match="read from a regular file"):
            bf.Release.load(path)
    for bad in (7.5, "a\0b", tmp_path / "no" / "folder"):
        with pytest.raises(ReleaseFileError, match="cannot be written"):
            release.save(bad)
    kept = tmp_path / "kept"
    link.unlink()
    link.symlink_to(kept)
    release.save(link)
    assert link.is_symlink()
    assert (bf.Release.load(kept).estimate == release.estimate).all()


def test_a_seeded_release_stays_marked_wherever_it_goes(release, tmp_path):
    assert str(release.guarantee).startswith("An experiment that protects nobody")
    with pytest.warns(SeededWarning, match="an experiment that protects nobody"):
        release.save(tmp_path / "seeded")
    assert not bf.Release.load(tmp_path / "seeded").private
    assert release.to_pandas().attrs == {"experiment": "seeded noise: protects nobody"}
    assert b"experiment" in release.to_arrow().schema.metadata
    assert "experiment" in release.to_polars().columns
    assert release.sample(3, rng=1).experiment
    release.to_table().to_csv(tmp_path / "cells.csv")
    header, first, *_ = (tmp_path / "cells.csv").read_text().splitlines()
    assert header.endswith(",experiment")
    assert first.endswith(",seeded noise: protects nobody")


def test_a_secure_release_carries_no_mark(tmp_path):
    line = bf.Domain(4)
    asked = bf.workloads.Identity(line)
    mechanism = bf.Laplace(bf.policies.Full(line), asked, epsilon=1)
    release = mechanism.release([1, 2, 3, 4])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeededWarning)
        release.save(tmp_path / "secure")
    assert str(release.guarantee).startswith("With eps = 1")
    assert release.to_pandas().attrs == {}
    assert "experiment" not in release.to_polars().columns
    assert "experiment" not in release.to_table().to_dict()


def _fail(*arguments, **settings):
    raise OSError("disk full")


def _changed(saved, folder, change):
    path = folder / "changed.release"
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "release.json":
                plain = json.loads(content)
                change(plain)
                content = json.dumps(plain).encode()
            new.writestr(name, content)
    return path


def test_the_table_of_cells_holds_estimates_and_intervals(release):
    table = release.to_table(confidence=0.9)
    assert list(table.columns) == [
        "north",
        "east",
        "estimate",
        "low",
        "high",
    ]
    assert table["north"][8] == 1
    assert table["east"][8] == 1
    assert (table["estimate"] == release.estimate.reshape(-1)).all()
    bounds = release.intervals(bf.workloads.Identity(GRID), 0.9, of="noise")
    assert (table["low"] == np.maximum(bounds[:, 0], 0.0)).all()
    assert list(release.to_table(confidence=None).columns)[-1] == "estimate"
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    assert release.to_pandas().shape == (42, 5)
    assert release.to_arrow(None).num_columns == 3
    pytest.importorskip("polars")
    assert release.to_polars(None).width == 4


def test_a_release_that_covers_nothing_has_a_table_without_intervals():
    release = bf.mechanisms.Mwem(bf.policies.Full(GRID), ASKED, epsilon=1).release(
        COUNTS, rng=1
    )
    assert list(release.to_table().columns) == ["north", "east", "estimate"]


def test_notebooks_show_the_promise(release):
    shown = release._repr_html_()
    assert "eps = 0.7" in shown
    assert "<b>HistogramRelease(dawa" in shown


def test_loaded_releases_are_asked_and_sampled_as_before(release, saved):
    again = bf.Release.load(saved)
    here, there = (one.where(north=slice(1, 3.5)) for one in (release, again))
    assert here.count() == there.count()
    assert here.count().interval(of="noise") == there.count().interval(of="noise")
    assert release.sample(rng=3).to_dict() == again.sample(rng=3).to_dict()


def test_quantiles_leave_out_cells_without_a_place_on_the_axis():
    ages = bf.Domain.from_edges([0, 10, 20], name="age").with_extra_cells(missing=True)
    release = bf.Laplace(
        bf.policies.Full(ages), bf.workloads.Identity(ages), epsilon=1
    ).release([300, 400, 5000], rng=1)
    for refused in (release.cdf, release.cdf_intervals):
        with pytest.raises(DomainError, match="no place on it"):
            refused()
    first, second = release.estimate[:2]
    middle = 10 + 10 * ((first + second) / 2 - first) / second
    np.testing.assert_allclose(release.quantile([0.0, 0.5, 1.0]), [0.0, middle, 20.0])
    assert release.quantile(0.5) == release.where().quantile("age")
    bounds = release.quantile_intervals([0.25, 0.5], 0.9)
    # Each of two misses half as often, so that they hold together.
    apart = [release.where().quantile("age", q).interval(0.95) for q in (0.25, 0.5)]
    np.testing.assert_array_equal(bounds, apart)
    assert release.quantile_intervals(0.5).shape == (2,)
    with pytest.raises(bf.BlowfishError, match="edges"):
        bf.policies.Threshold(ages, theta=5, unit="value")


def test_a_saved_release_can_be_read_like_any_new_file(release, tmp_path):
    release.save(tmp_path / "release.blowfish")
    (tmp_path / "plain").touch()
    modes = [one.stat().st_mode for one in tmp_path.iterdir()]
    assert len(modes) == 2
    assert modes[0] == modes[1]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("name", ["kmeans", "kd_tree", "laplace", "mwem"])
def test_releases_can_be_copied_and_pickled(name, copied):
    grid = bf.Domain((4, 4))
    mechanism, data = MECHANISMS[name].example(grid, bf.policies.Full(grid), 1)
    release = mechanism.release(data, rng=1)
    again = copied(release)
    assert type(again) is type(release)
    assert again.to_bytes() == release.to_bytes()


def test_what_was_measured_cannot_be_written_over(release):
    with pytest.raises(ValueError, match="read-only"):
        release.measurements[0].noisy[0] = 0


def test_a_promise_prints_shortly_on_many_cells():
    line = bf.Domain.from_edges(range(2**16 + 1), name="value")
    laplace = bf.Laplace(
        bf.policies.Full(line), bf.workloads.Identity(line), epsilon=0.5
    )
    release = laplace.release(np.zeros(line.size, dtype=int), rng=1)
    assert repr(release.guarantee) == (
        "Guarantee(eps = 0.5, full, seeded: an experiment)"
    )
    assert len(release._repr_html_()) < 5000


@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - {"kmeans"}))
def test_intervals_of_public_totals_are_these_totals(name):
    domain = bf.Domain(700)
    counts = np.random.default_rng(3).integers(0, 10**6, 700)
    total = bf.workloads.Total(domain)
    for policy in (
        bf.policies.Full(domain),
        bf.policies.Blocks(domain, np.arange(700) // 7),
    ):
        mechanism, _ = MECHANISMS[name].example(domain, policy, 1)
        found = mechanism.release(counts, rng=1)
        if found.interval_scope == "nothing" or len(found.measurements) != 1:
            continue
        low, high = found.intervals(total, of="noise")[0]
        assert low <= counts.sum() <= high
        if high - low < 1e-6:
            assert low == high == counts.sum() == found.answer(total)[0]


def test_a_release_becomes_a_dataset_of_xarray_by_attribute():
    xarray = pytest.importorskip("xarray")
    box = bf.Domain.from_box((3, 2), lon=(0, 3), lat=(0, 2))
    people = bf.Domain.product(box, bf.Domain.from_levels(["F", "M"], name="sex"))
    cells = bf.workloads.Identity(people)
    laplace = bf.Laplace(bf.policies.AddRemove(people), cells, epsilon=1)
    release = laplace.release(np.zeros((3, 2, 2), int), rng=1)
    found = release.to_xarray()
    assert isinstance(found, xarray.Dataset)
    assert dict(found.sizes) == {"lon": 3, "lat": 2, "sex": 2, "bounds": 2}
    assert found.lon.values.tolist() == [0.5, 1.5, 2.5], "a map lies where its cells do"
    linear = release.to_xarray(None).estimate
    assert linear.sel(lon=1.5, lat=0.5, sex="M") == release.estimate[1, 0, 1]
    assert (found.low <= found.estimate).all()
    assert found.lon.attrs["bounds"] == "lon_bounds"
    assert found.lon_bounds.dims == ("lon", "bounds")
    assert found.lon_bounds.values.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert found.lat.attrs["units"] == "degrees_north"
    assert "eps = 1" in found.attrs["promise"]


def test_a_dataset_of_xarray_names_the_reference_system():
    pytest.importorskip("xarray")
    pyproj = pytest.importorskip("pyproj")
    degrees = bf.Domain.from_box((3, 2), lon=(0, 3), lat=(0, 2))
    metres = bf.Domain.from_box((3, 2), x=(2_600_000, 2_603_000), y=(0, 2000))
    for box, stated, wanted in (
        (degrees, None, 4326),
        (metres, None, None),
        (metres, "EPSG:2056", 2056),
    ):
        made = bf.Laplace(bf.policies.Full(box), bf.workloads.Identity(box), epsilon=1)
        release = made.release(np.zeros((3, 2), int))
        found = release.to_xarray(crs=stated)
        assert ("spatial_ref" in found) == (wanted is not None)
        if wanted is not None:
            known = pyproj.CRS.from_cf(found.spatial_ref.attrs)
            assert known.to_epsg() == wanted
            assert found.estimate.attrs["grid_mapping"] == "spatial_ref"
    with pytest.raises(InputError, match="no reference system"):
        release.to_xarray(crs="nowhere")


def test_dates_and_extra_cells_of_a_dataset_have_centres_too():
    pytest.importorskip("xarray")
    days = bf.Domain.from_dates(["2024-01-01", "2024-01-02", "2024-01-05"], name="day")
    days = days.with_extra_cells(missing=True)
    policy, asked = bf.policies.Full(days), bf.workloads.Identity(days)
    release = bf.Laplace(policy, asked, epsilon=1).release([1, 2, 3], rng=1)
    found = release.to_xarray()
    assert found.day.values[:2].astype(str).tolist() == [
        "2024-01-01T12:00:00.000000",
        "2024-01-03T12:00:00.000000",
    ]
    assert np.isnat(found.day.values[2])
    assert found.day_cell.values.tolist() == ["", "", "(missing)"]


def test_without_xarray_the_way_to_it_is_told(monkeypatch):
    import sys

    from blowfish_fast.errors import MissingExtraError

    line = bf.Domain(3)
    laplace = bf.Laplace(
        bf.policies.AddRemove(line), bf.workloads.Identity(line), epsilon=1
    )
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(MissingExtraError, match="pip install xarray"):
        laplace.release([1, 2, 3], rng=1).to_xarray()

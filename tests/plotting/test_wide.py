"""Windows of wide domains: lines in steps, maps in colours with outlines of boxes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import blowfish_fast as bf
from blowfish_fast.errors import InputError
from blowfish_fast.plotting import wide


def released(records=4000, epsilon=1):
    time = bf.WideDomain.from_steps(
        start="2024-01-01", step="1s", cells=2**30, name="time"
    )
    east = bf.WideDomain.from_steps(start=500, cells=2**30, name="east")
    land = bf.WideDomain.product(time, east)
    at = np.arange(records)
    columns = {
        "time": np.datetime64("2024-02-01", "s") + at % 3000,
        "east": 10_000 + at % 700,
    }
    data = bf.SparseHistogram.from_records(land, columns)
    asked = bf.workloads.Rectangles(land, [[0, 0]], [[2**29, 2**29]])
    mechanism = bf.Dawa(bf.policies.Full(land), asked, epsilon=epsilon)
    return mechanism.release(data, rng=1)


def test_a_map_is_drawn_where_its_records_are_and_zooms():
    release = released()
    axes = bf.plotting.buckets(release)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("east", "time")
    low, high = axes.get_xlim()
    assert 500 <= low < 10_000 < high
    assert len(axes.collections) == 2
    part = {"time": slice("2024-02-01", "2024-02-02"), "east": slice(10_000, 11_000)}
    zoomed = bf.plotting.buckets(release, part=part)
    assert zoomed.get_xlim() == (10_000, 11_000)
    assert zoomed.collections[0].get_array().sum() > 0
    same = bf.plotting.buckets(release, part=part, axes=axes)
    assert same is axes


def test_maps_of_many_boxes_have_colours_alone(monkeypatch):
    monkeypatch.setattr(wide, "MOST_OUTLINES", 0)
    assert len(bf.plotting.buckets(released()).collections) == 1


def test_an_empty_map_is_drawn_whole():
    axes = bf.plotting.buckets(released(records=0))
    assert axes.get_xlim() == (500, 500 + 2**30)


def test_other_releases_are_refused():
    with pytest.raises(InputError, match="ranges of a wide domain"):
        bf.plotting.buckets("a release")

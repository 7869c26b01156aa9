"""Pictures of groups hold every answer, its interval and its name."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError

PEOPLE = bf.Domain.product(
    bf.Domain.from_edges(range(0, 101, 20), name="age"),
    bf.Domain.from_levels(["Bern", "Chur", "Zug"], name="town"),
    bf.Domain.from_dates(["2022-01-01", "2023-01-01", "2024-01-01"], name="day"),
)


def test_ranges_are_lines_with_bands(plain):
    answers = plain(PEOPLE).group_by("age").count()
    axes = bf.plotting.groups(answers)
    (lines,) = axes.collections
    drawn = np.array(lines.get_segments())
    np.testing.assert_allclose(drawn[:, 0, 1], answers.values_array)
    np.testing.assert_allclose(drawn[:, :, 0], [[a, a + 20] for a in range(0, 100, 20)])
    bands = [
        (one.get_y(), one.get_y() + one.get_height()) for one in axes.containers[0]
    ]
    np.testing.assert_allclose(bands, answers.intervals())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "records")
    assert axes.get_ylim()[0] <= 0
    assert "seeded: an experiment" in axes.get_title()


def test_names_are_dots_and_a_second_attribute_lines_of_their_own(plain, legend, texts):
    answers = plain(PEOPLE).group_by("town", age=[0, 40, 100]).mean("age")
    axes = bf.plotting.groups(answers)
    heights = np.array([one.get_ydata() for one in axes.lines])
    np.testing.assert_allclose(heights.T.reshape(-1), answers.values_array)
    assert legend(axes) == ["0 to 40", "40 to 100"]
    assert {"Bern", "Chur", "Zug", "mean of age"} <= set(texts(axes))


def test_dates_stand_along_an_axis_of_dates(plain, texts):
    axes = bf.plotting.groups(plain(PEOPLE).group_by("day", "town").count())
    assert {"2022", "2023", "2024"} <= set(texts(axes))
    days = [np.datetime64(f"{year}-07-01") for year in (2022, 2023)]
    named = bf.plotting.groups(plain(PEOPLE).group_by(day=days).count())
    assert len(named.collections[0].get_segments()) == 1


def test_what_cannot_be_drawn_is_refused_with_a_way_out(plain):
    release = plain(PEOPLE)
    with pytest.raises(InputError, match="received a HistogramRelease"):
        bf.plotting.groups(release)
    with pytest.raises(InputError, match=r"release\.where"):
        bf.plotting.groups(release.group_by("age", "town", "day").count())
    wide = plain(bf.Domain.product(bf.Domain(8, names=["a"]), bf.Domain(9)))
    with pytest.raises(InputError, match="at most 7"):
        bf.plotting.groups(wide.group_by("a", 1).count())
    long = plain(bf.Domain(100, names=["cell"]))
    with pytest.raises(InputError, match="at most 60"):
        bf.plotting.groups(long.group_by("cell").count())
    with pytest.raises(InputError, match=r"plotting\.groups"):
        bf.plotting.grid_map(release)
    with pytest.raises(InputError, match="grid_map"):
        bf.plotting.density(release)


def test_a_release_without_intervals_is_drawn_without_bands():
    line = bf.Domain.product(bf.Domain(4, names=["a"]), bf.Domain(4, names=["b"]))
    mwem = bf.mechanisms.Mwem(
        bf.policies.AddRemove(line), bf.workloads.Identity(line), epsilon=1, rounds=2
    )
    axes = bf.plotting.groups(
        mwem.release(np.ones((4, 4), int), rng=1).group_by("a").count()
    )
    assert not axes.collections
    assert len(axes.lines) == 1


def test_crowded_names_of_a_narrow_map_are_turned(plain):
    towns = bf.Domain.from_levels(["Fribourg", "Lausanne", "Lugano"], name="town")
    tall = bf.Domain.product(bf.Domain(30, names=["cell"]), towns)
    axes = bf.plotting.grid_map(plain(tall))
    assert {one.get_rotation() for one in axes.get_xticklabels()} == {40.0}

"""Pictures of answers hold each answer, its interval and its name."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError

AGES = bf.Domain.from_edges(range(0, 101, 10), name="age")
ASKED = bf.workloads.Ranges(AGES, [0, 2], [2, 7])


def names(axes):
    return [one.get_text() for one in axes.get_yticklabels()]


def test_answers_intervals_and_reference_are_drawn(plain, legend):
    release = plain(AGES)
    axes = bf.plotting.answers(
        release, ASKED, reference=np.full(10, 3), reference_name="census"
    )
    points = {one.get_label(): one for one in axes.lines}
    shown = np.maximum(release.answer(ASKED), 0)
    assert (points["answer"].get_xdata() == shown).all()
    assert points["census (public)"].get_xdata().tolist() == [6, 15]
    (bars,) = axes.collections
    drawn = np.array(bars.get_segments())[:, :, 0]
    np.testing.assert_allclose(drawn, np.maximum(release.intervals(ASKED), 0))
    assert set(legend(axes)) == {"answer", "holds the truth, 95 %", "census (public)"}
    assert axes.get_ylim() == (1.5, -0.5)
    assert "seeded" in axes.get_title()


def test_ranges_are_named_by_their_values(plain):
    assert names(bf.plotting.answers(plain(AGES), ASKED)) == [
        "age 0 to 20",
        "age 20 to 70",
    ]
    given = bf.plotting.answers(plain(AGES), ASKED, names=["young", "older"])
    assert names(given) == ["young", "older"]


@pytest.mark.parametrize(
    ("domain", "start", "end", "name"),
    [
        (bf.Domain(9), 2, 5, "cells 2 to 5"),
        (bf.Domain.from_levels(["F", "M", "X"], name="sex"), 1, 2, "sex M"),
        (bf.Domain.from_levels(["F", "M", "X"], name="sex"), 0, 2, "sex F to M"),
        (
            bf.Domain.from_dates(["2024-01-01", "2024-02-01", "2024-03-01"]),
            0,
            2,
            "2024-01-01 to 2024-03-01",
        ),
        (AGES.with_extra_cells(missing=True), 10, 11, "age (missing)"),
    ],
    ids=["numbers", "level", "levels", "dates", "extra"],
)
def test_ranges_are_named_by_what_cells_stand_for(plain, domain, start, end, name):
    asked = bf.workloads.Ranges(domain, [start], [end])
    assert names(bf.plotting.answers(plain(domain), asked)) == [name]


def test_rectangles_totals_and_the_rest_have_names(plain):
    grid = bf.Domain.product(AGES, bf.Domain.from_levels(["F", "M"], name="sex"))
    boxes = bf.workloads.Rectangles(grid, [[0, 0], [0, 0.5]], [[2.5, 1], [1, 1.5]])
    release = plain(grid)
    assert names(bf.plotting.answers(release, boxes)) == [
        "age 0 to 25, sex F",
        "age 0 to 10, sex F to M",
    ]
    assert names(bf.plotting.answers(release, bf.workloads.Total(grid))) == [
        "all records"
    ]
    by_sex = bf.workloads.Marginals(grid, ["sex"])
    assert names(bf.plotting.answers(release, by_sex)) == ["query 0", "query 1"]
    towns = bf.Domain.from_levels(["Bern", "Chur"], name="town")
    cells = bf.workloads.Identity(towns)
    assert names(bf.plotting.answers(plain(towns), cells)) == [
        "town Bern",
        "town Chur",
    ]


def test_a_release_without_intervals_shows_its_answers(legend):
    mwem = bf.mechanisms.Mwem(
        bf.policies.Full(AGES), bf.workloads.AllRanges(AGES), epsilon=1
    )
    axes = bf.plotting.answers(mwem.release([3] * 10, rng=1), ASKED)
    assert legend(axes) == ["answer"]


def test_other_things_are_refused(plain):
    release = plain(AGES)
    with pytest.raises(InputError, match="1 to 60 queries"):
        bf.plotting.answers(release, bf.workloads.Ranges.random(AGES, 61, rng=1))
    with pytest.raises(InputError, match="one name per query"):
        bf.plotting.answers(release, ASKED, names=["one"])
    with pytest.raises(InputError, match="name the public source"):
        bf.plotting.answers(release, ASKED, reference=np.zeros(10))
    with pytest.raises(InputError, match="does not fit"):
        bf.plotting.answers(
            release, ASKED, reference=np.zeros(9), reference_name="census"
        )
    with pytest.raises(InputError, match="draws a release that answers"):
        bf.plotting.answers(AGES, ASKED)

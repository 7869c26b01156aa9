"""Pictures of one attribute show estimate, intervals, buckets and references."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast._support import palette
from blowfish_fast.errors import InputError
from blowfish_fast.plotting.histograms import MOST_BARS, bar_cuts, bucket_starts

AGES = bf.Domain.from_edges(range(21), name="age")


def stairs(axes):
    return [one.get_data() for one in axes.patches if hasattr(one, "get_data")]


def test_estimate_interval_and_reference_are_drawn(plain, legend):
    release = plain(AGES)
    axes = bf.plotting.histogram(
        release, reference=np.arange(20), reference_name="census"
    )
    assert legend(axes) == ["estimate", "holds the truth, 95 %", "census (public)"]
    estimate, band, reference = stairs(axes)
    shown = np.maximum(release.estimate, 0)
    assert (estimate.values == shown).all(), "nobody counts less than nobody"
    bounds = release.intervals(bf.workloads.Identity(AGES))
    low, high = np.maximum(bounds, 0).T
    assert (band.values == high).all()
    assert (band.baseline == low).all()
    assert (reference.values == np.arange(20)).all()
    assert (estimate.edges == np.arange(21)).all()
    assert axes.get_xlim() == (0, 20)
    assert axes.get_xlabel() == "age"
    assert axes.get_ylabel() == "records"


def test_intervals_of_noise_alone_are_hatched_and_labelled(legend):
    line = bf.Domain(16)
    release = bf.mechanisms.StructureFirst(
        bf.policies.AddRemove(line), bf.workloads.Identity(line), epsilon=1, buckets=3
    ).release([5] * 8 + [90] * 8, rng=1)
    axes = bf.plotting.histogram(release)
    assert "noise only, 95 %" in legend(axes)
    assert "///" in {one.get_hatch() for one in axes.patches}


def test_seeded_releases_are_marked_and_secure_ones_are_not(plain):
    assert "seeded: an experiment" in bf.plotting.histogram(plain(AGES)).get_title()
    secure = bf.plotting.histogram(plain(AGES, rng=None))
    assert secure.get_title() == "laplace, eps = 1"


def test_the_confidence_sets_the_band(plain, legend):
    release = plain(AGES)
    axes = bf.plotting.histogram(release, confidence=0.5)
    assert "holds the truth, 50 %" in legend(axes)
    band = stairs(axes)[1]
    bounds = release.intervals(bf.workloads.Identity(AGES), 0.5)
    low, high = np.maximum(bounds, 0).T
    assert (band.values - band.baseline == high - low).all()


def test_another_release_is_a_reference_without_a_name(plain, legend):
    axes = bf.plotting.histogram(plain(AGES), reference=plain(AGES, rng=2))
    assert legend(axes)[-1] == "laplace, a release"


@pytest.mark.parametrize(
    ("reference", "name", "words"),
    [
        (np.zeros(20), None, "name the public source"),
        (np.zeros(20), "  ", "name the public source"),
        (bf.Histogram(AGES, np.zeros(20)), "last year", "true counts"),
        (np.zeros(19), "census", "does not fit"),
        (["a"] * 20, "census", "array of numbers"),
    ],
    ids=["unnamed", "blank", "histogram", "shape", "texts"],
)
def test_what_may_be_true_data_is_refused(plain, reference, name, words):
    with pytest.raises(InputError, match=words):
        bf.plotting.histogram(plain(AGES), reference=reference, reference_name=name)


def test_many_cells_are_drawn_as_ranges_of_equal_width(plain):
    axes = bf.plotting.histogram(plain(bf.Domain(4096)))
    estimate = stairs(axes)[0]
    assert estimate.values.size == 1024
    assert set(np.diff(estimate.edges)) == {4.0}
    assert axes.get_ylabel() == "records per 4 cells"
    assert axes.get_xlabel() == "cell"


@pytest.mark.parametrize("cells", [1, 2, 1023, 1024, 1025, 1500, 2049, 99991, 2**20])
def test_bars_cover_all_cells_and_are_few(cells):
    together, cuts = bar_cuts(cells)
    assert cuts[0] == 0
    assert cuts[-1] == cells
    assert cuts.size - 1 <= MOST_BARS
    assert (np.diff(cuts)[:-1] == together).all()
    assert 0 < cuts[-1] - cuts[-2] <= together


def test_categories_have_bars_whiskers_and_names(plain, legend, texts):
    towns = bf.Domain.from_levels(["Bern", "Chur", "Basel"], name="town")
    release = plain(towns, [40, 10, 80])
    axes = bf.plotting.histogram(
        release, reference=[41, 12, 79], reference_name="census"
    )
    heights = [one.get_height() for one in axes.containers[0]]
    assert heights == release.estimate.tolist()
    (whiskers,) = (one for one in axes.containers if hasattr(one, "has_yerr"))
    drawn = np.array(whiskers.lines[2][0].get_segments())[:, :, 1]
    np.testing.assert_allclose(drawn, release.intervals(bf.workloads.Identity(towns)))
    assert {"Bern", "Chur", "Basel"} <= set(texts(axes))
    assert legend(axes)[0] == "estimate"
    assert len(legend(axes)) == 3


def test_of_many_categories_some_are_named(plain, texts):
    codes = bf.Domain.from_levels([f"code {one}" for one in range(200)], name="code")
    axes = bf.plotting.histogram(plain(codes))
    named = [one for one in texts(axes) if one.startswith("code ")]
    assert 10 <= len(named) <= 24
    assert axes.get_xticklabels()[0].get_rotation() == 40


def test_dates_are_written_as_dates(plain, texts):
    days = np.arange("2024-01-01", "2024-12-31", dtype="M8[D]")
    axes = bf.plotting.histogram(plain(bf.Domain.from_dates(days, name="day")))
    shown = texts(axes)
    assert "2024" in shown
    assert "Jul" in shown


def test_cells_without_a_place_stand_apart_by_name(plain, texts):
    extended = AGES.with_extra_cells(missing=True, outside=True)
    axes = bf.plotting.histogram(plain(extended))
    assert {"(missing)", "(outside)"} <= set(texts(axes))
    ticks = [float(one) for one in axes.get_xticks()]
    assert max(ticks) > 20 >= max(ticks[:-2])
    assert any((one.get_xdata()[0] == 20) for one in axes.lines)


def bucketed(counts, **options):
    line = bf.Domain(len(counts))
    mechanism = bf.mechanisms.StructureFirst(
        bf.policies.AddRemove(line), bf.workloads.Identity(line), epsilon=5, **options
    )
    return mechanism.release(counts, rng=1)


def test_bucket_boundaries_are_marked_where_buckets_begin(legend):
    release = bucketed([5] * 32 + [90] * 32, buckets=4)
    axes = bf.plotting.histogram(release)
    (rug,) = axes.collections
    drawn = [segment[0][0] for segment in rug.get_segments()]
    assert drawn == release.details["edges"][1:-1].tolist()
    assert "3 bucket boundaries" in legend(axes)
    without = bf.plotting.histogram(release, buckets=False)
    assert not without.collections


def test_a_single_boundary_is_counted_as_one(legend):
    axes = bf.plotting.histogram(bucketed([5] * 32 + [900] * 32, buckets=2))
    assert "bucket boundary" in legend(axes)


def test_scattered_buckets_begin_where_the_label_changes():
    line = bf.Domain(32)
    ahp = bf.mechanisms.Ahp(
        bf.policies.AddRemove(line), bf.workloads.Identity(line), epsilon=5
    )
    release = ahp.release([5, 90] * 16, rng=1)
    labels = release.details["labels"]
    expected = [cell for cell in range(1, 32) if labels[cell] != labels[cell - 1]]
    assert bucket_starts(release).tolist() in (expected, [])


def test_cells_alone_have_no_boundaries(plain):
    assert bucket_starts(plain(AGES)).size == 0


def test_counts_of_many_sizes_may_be_drawn_in_steps_of_ten(plain):
    axes = bf.plotting.histogram(plain(AGES), logarithmic=True)
    assert axes.get_yscale() == "symlog"


def test_a_release_without_intervals_shows_its_estimate(legend):
    line = bf.Domain(16)
    mwem = bf.mechanisms.Mwem(
        bf.policies.Full(line), bf.workloads.AllRanges(line), epsilon=1
    )
    axes = bf.plotting.histogram(mwem.release([3] * 16, rng=1))
    assert legend(axes) == ["estimate"]
    assert axes.get_ylim()[0] == 0


def test_given_axes_are_drawn_on_and_no_figure_is_opened(plain):
    from matplotlib import pyplot

    _, axes = pyplot.subplots()
    assert bf.plotting.histogram(plain(AGES), axes=axes) is axes
    assert len(pyplot.get_fignums()) == 1


def test_other_things_are_refused(plain):
    with pytest.raises(InputError, match="one attribute"):
        bf.plotting.histogram(plain(bf.Domain((2, 2))))
    with pytest.raises(InputError, match="draws a release of a histogram"):
        bf.plotting.histogram(bf.Histogram(AGES, np.zeros(20)))


def test_lines_side_by_side_differ_in_more_than_colour():
    assert len({palette.series(one) for one in range(7)}) == 7
    for part in (0, 1):
        assert len({palette.series(one)[part] for one in range(7)}) == 7

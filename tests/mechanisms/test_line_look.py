"""Which share a line's partition gets after a look, and what the look costs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast import kernels
from blowfish_fast.kernels.fitting import neighbour_prior
from blowfish_fast.kernels.window_costs import rectangle_costs
from blowfish_fast.measure.handle import Handle
from blowfish_fast.mechanisms import dawa as recipe

LINE = bf.Domain(1024)
ASKED = bf.workloads.Ranges.random(LINE, 20, rng=1)
AT = np.arange(1024)
LINES = {
    "smooth": np.where(AT < 512, 300, 10),
    "uneven": 4000 * (AT // 16 % 2) + AT % 2,
    "rough": 4000 * (AT // 4 % 2) + AT % 2,
    "rugged": 30_000 * (AT % 2) + 7_000 * (AT // 2 % 3),
}


def release_and_prices(mechanism, counts, monkeypatch):
    """Return a release, and what each choice and measurement of it was given."""
    prices = []
    for name in ("select", "measure"):
        right = getattr(Handle, name)

        def noted(self, asked, *, budget, right=right, name=name):
            if not self.dry_run:
                prices.append((name, self._read(budget).amount))
            return right(self, asked, budget=budget)

        monkeypatch.setattr(Handle, name, noted)
    return mechanism.release(counts, rng=1), prices


@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
@pytest.mark.parametrize(
    ("name", "grade", "share"),
    [
        ("smooth", 0, Fraction(1, 5)),
        ("uneven", 1, Fraction(1, 10)),
        ("rough", 2, Fraction(1, 20)),
        ("rugged", 3, 0),
    ],
)
def test_the_grade_decides_what_the_partition_gets(
    policy, name, grade, share, monkeypatch
):
    mechanism = bf.Dawa(policy(LINE), ASKED, epsilon=1)
    release, prices = release_and_prices(mechanism, LINES[name], monkeypatch)
    look = Fraction(20, 1024)
    left = 1 - look
    # An uneven or rough line is asked whether its pairs differ, for as much again.
    pairs = [("select", look * left)] if grade in (1, 2) else []
    left -= look * left if pairs else 0
    partition = [("select", share * left)] if share else []
    assert prices == [
        ("select", look),
        *pairs,
        *partition,
        ("measure", left - share * left),
    ]
    assert release.details["roughness"] == grade
    assert (release.details["buckets"] == 1024) is (grade == 3)
    assert release.guarantee.epsilon == 1


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1, "share": "1/5"},
        {"epsilon": 1, "partition": None},
        {"epsilon": 1, "partition": bf.partitions.DyadicTree()},
        {"rho": 1},
    ],
)
def test_what_was_stated_is_not_looked_for(options):
    mechanism = bf.Dawa(bf.policies.AddRemove(LINE), ASKED, **options)
    assert not mechanism.looks_first
    assert "roughness" not in mechanism.release(LINES["smooth"], rng=1).details


def test_short_lines_maps_and_totals_are_not_looked_at():
    short, grid = bf.Domain(1023), bf.Domain((32, 32))
    for asked in (
        bf.workloads.Ranges.random(short, 20, rng=1),
        bf.workloads.Rectangles.random(grid, 20, rng=1),
        bf.workloads.Identity(grid),
    ):
        policy = bf.policies.AddRemove(asked.domain)
        assert not bf.Dawa(policy, asked, epsilon=1).looks_first
    for asked in (bf.workloads.Prefixes(LINE), bf.workloads.Identity(LINE)):
        assert bf.Dawa(bf.policies.AddRemove(LINE), asked, epsilon=1).looks_first


@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
@pytest.mark.parametrize(
    ("name", "grade"), [("smooth", 0), ("steps", 2), ("rugged", 3)]
)
def test_cells_have_bounds_of_their_own(policy, name, grade):
    # Steps of two cells: half as many buckets as cells, each of them certain.
    counts = {**LINES, "steps": 9_000 + 30_000 * (AT // 2 % 2)}[name]
    asked = bf.workloads.Identity(LINE)
    release = bf.Dawa(policy(LINE), asked, epsilon=1).release(counts, rng=1)
    assert release.details["roughness"] == grade
    assert (release.details["buckets"] == 1024) is (grade == 3)


def test_no_cells_are_uneven_without_being_rough():
    # Two bounds that are equal leave no grade between them, whatever the noise.
    assert recipe.CELLS_LOOK.uneven == recipe.CELLS_LOOK.rough
    test = recipe.RoughnessTest([1.0] * 3, price=1.0, steps=recipe.CELLS_LOOK.steps)
    policy, noise = bf.policies.AddRemove(bf.Domain(4)), np.arange(-(2**22), 2**22, 997)
    grades = test.decide(np.array([90, 0, 70, 20]), policy, noise.reshape(-1, 1))
    assert set(grades.tolist()) == {0, 2, 3}


def test_recipes_that_do_not_look_keep_their_options():
    policy = bf.policies.AddRemove(LINE)
    plain = bf.Dawa(policy, ASKED, epsilon=1, partition=None).to_dict()["options"]
    assert "looks_first" not in plain
    assert bf.Dawa(policy, ASKED, epsilon=1).to_dict()["options"]["looks_first"] is True


@pytest.mark.parametrize("refused", ["can_select", "partition"])
def test_what_cannot_be_drawn_is_not_looked_for(refused, monkeypatch):
    if refused == "can_select":
        monkeypatch.setattr(recipe, "can_select", lambda *_: False)
    else:
        monkeypatch.setattr(recipe.Dawa, "_can_divide", lambda *_: False)
    mechanism = bf.Dawa(bf.policies.AddRemove(LINE), ASKED, epsilon=1)
    release = mechanism.release(LINES["rough"], rng=1)
    # Nor is the partition drawn then: cell by cell, as ever.
    assert "roughness" not in release.details
    assert release.details["buckets"] == 1024


def test_intervals_of_a_line_that_kept_its_cells_hold_the_truth():
    mechanism = bf.Dawa(bf.policies.AddRemove(LINE), ASKED, epsilon=1)
    release = mechanism.release(LINES["rugged"], rng=4)
    low, high = release.intervals(ASKED, confidence=0.999).T
    true = ASKED.answer(LINES["rugged"])
    assert ((low <= true) & (true <= high)).all()


def sorts_noted(monkeypatch):
    """Return a list that gets the largest count of every sort of dyadic windows."""
    sorts = []
    right = rectangle_costs.dyadic_rectangle_costs

    def noted(counts, *quantile, threads=1):
        sorts.append(int(counts.max()))
        return right(counts, *quantile, threads=threads)

    monkeypatch.setattr(rectangle_costs, "dyadic_rectangle_costs", noted)
    return sorts


@pytest.mark.parametrize("name", LINES)
def test_look_and_partition_sort_the_counts_once(name, monkeypatch):
    sorts = sorts_noted(monkeypatch)
    mechanism = bf.Dawa(bf.policies.AddRemove(LINE), ASKED, epsilon=1)
    once = mechanism.release(LINES[name], rng=1)
    assert sorts == [LINES[name].max()]
    # As if nothing were shared, every choice sorts for itself: no bit changes.
    monkeypatch.setattr(recipe.RoughnessTest, "sharing", lambda self, _: self)
    monkeypatch.setattr(recipe.DyadicTree, "sharing", lambda self, _: self)
    again = mechanism.release(LINES[name], rng=1)
    assert len(sorts) == (2 if name == "rugged" else 3)
    assert again.estimate.tobytes() == once.estimate.tobytes()


def test_counts_that_the_look_cuts_are_sorted_for_each_choice(monkeypatch):
    sorts = sorts_noted(monkeypatch)
    # The look cuts counts at 2^42 over the cells, the partition at more.
    counts = LINES["smooth"] << 30
    bf.Dawa(bf.policies.AddRemove(LINE), ASKED, epsilon=1).release(counts, rng=1)
    assert sorts in ([2**32, counts.max()], [2**32])


def test_a_map_is_sorted_once_for_the_test_and_the_rectangles(monkeypatch):
    sorts = sorts_noted(monkeypatch)
    grid = bf.Domain((64, 64))
    boxes = bf.workloads.Rectangles.random(grid, 20, rng=1)
    counts = np.repeat([[0] * 32 + [4000] * 32], 64, axis=0)
    mechanism = bf.Dawa(bf.policies.AddRemove(grid), boxes, epsilon=1)
    release = mechanism.release(counts, rng=1)
    assert release.details["chosen"] == "dyadic_rectangles"
    assert len(sorts) == 1


def test_costs_are_freed_where_no_choice_follows(monkeypatch):
    held = []
    right = Handle.measure

    def noted(self, strategy, *, budget):
        held.append(self._shared)
        return right(self, strategy, budget=budget)

    monkeypatch.setattr(Handle, "measure", noted)
    mechanism = bf.Dawa(bf.policies.AddRemove(LINE), ASKED, epsilon=1)
    mechanism.release(LINES["rugged"], rng=1)
    assert held == [None]


CELLS = bf.workloads.Identity(LINE)
LOOK = Fraction(20, 1024)
SPIKES = {
    "spikes": np.where(AT % 16 == 5, 4_000, 0),
    "few spikes": np.where(AT % 171 == 77, 900, 0),
    "smooth": LINES["smooth"],
}


@pytest.mark.parametrize(
    ("name", "again", "kept"),
    [("spikes", False, True), ("few spikes", True, True), ("smooth", False, False)],
)
def test_cells_are_kept_where_records_stand_in_spikes(name, again, kept, monkeypatch):
    mechanism = bf.Dawa(bf.policies.AddRemove(LINE), CELLS, epsilon=1)
    release, prices = release_and_prices(mechanism, SPIKES[name], monkeypatch)
    left = 1 - LOOK
    spent = left * (LOOK + (Fraction(1, 20) if again else 0))
    tests = [("select", LOOK), ("select", left * LOOK)]
    if again:
        tests.append(("select", left / 20))
    assert prices[: len(tests)] == tests
    assert sum(price for _, price in prices) == 1
    if kept:
        assert prices[len(tests) :] == [("measure", left - spent)]
        assert release.details["chosen"] == "cells"
        assert release.details["fit"] == "medians"
        assert release.details["buckets"] == 1024
        assert (release.estimate[SPIKES[name] == 0] == 0).mean() > 0.99
        assert np.array_equal(release.estimate, fitted(release, kernels.median_cells))
    else:
        assert "chosen" not in release.details
        assert release.details["fit"] != "medians"


def fitted(release, fit):
    """Return cells that are fitted from what was published of them, and no more."""
    measured = release.measurements[0]
    return fit(measured.noisy[:1024], float(measured.scales.widths[0]))


@pytest.mark.long
@pytest.mark.parametrize("gain", [30.0, np.inf])
def test_cells_that_share_no_height_are_fitted_by_their_neighbours(gain, monkeypatch):
    monkeypatch.setattr(neighbour_prior, "LEAST_GAIN", gain)
    rng = np.random.default_rng(5)
    counts = np.where(AT < 700, 0, rng.geometric(0.02, 1024) * (rng.random(1024) < 0.5))
    policy = bf.policies.AddRemove(LINE)
    release = bf.Dawa(policy, CELLS, epsilon=0.1, partition=None).release(counts, rng=3)
    assert release.details["fit"] == "shrink"
    assert np.array_equal(release.estimate, fitted(release, kernels.mean_cells))
    plain = bf.Dawa(
        policy, CELLS, epsilon=0.1, partition=None, strategy="cells", fit="shrink"
    ).release(counts, rng=3)
    off = [np.abs(each.estimate - counts).mean() for each in (release, plain)]
    assert off[0] == pytest.approx(off[1]) if gain == np.inf else off[0] < 0.9 * off[1]


@pytest.mark.parametrize("rough", [True, False])
def test_a_rough_line_in_doubt_keeps_its_cells_and_a_smooth_one_is_asked_again(
    rough, monkeypatch
):
    monkeypatch.setattr(recipe.RoughnessTest, "select", lambda *_, **__: 2 * int(rough))
    answers = {2: 1, 1: 0}
    monkeypatch.setattr(
        recipe.SpikeTest,
        "select",
        lambda self, *_, **__: answers[len(self.steps)],
    )
    mechanism = bf.Dawa(bf.policies.AddRemove(LINE), CELLS, epsilon=1)
    release, prices = release_and_prices(mechanism, SPIKES["spikes"], monkeypatch)
    assert (release.details.get("chosen") == "cells") is rough
    assert (("select", (1 - LOOK) / 20) in prices) is not rough
    assert sum(price for _, price in prices) == 1


def test_shrunk_cells_of_spikes_have_the_same_noise():
    policy = bf.policies.AddRemove(LINE)
    default = bf.Dawa(policy, CELLS, epsilon=1).release(SPIKES["spikes"], rng=3)
    shrunk = bf.Dawa(policy, CELLS, epsilon=1, strategy="cells", fit="shrink")
    other = shrunk.release(SPIKES["spikes"], rng=3)
    assert other.details["fit"] == "shrink"
    np.testing.assert_array_equal(
        default.measurements[-1].noisy, other.measurements[-1].noisy
    )
    with pytest.warns(bf.errors.ShrunkCellsWarning):
        default.answer(ASKED)


@pytest.mark.parametrize("asked", [CELLS, ASKED])
def test_no_spikes_are_looked_for_under_moves_or_for_ranges(asked, monkeypatch):
    policies = bf.policies
    policy = policies.Full(LINE) if asked is CELLS else policies.AddRemove(LINE)
    mechanism = bf.Dawa(policy, asked, epsilon=1)
    asked_for = []
    right = Handle.select

    def noted(self, test, *, budget):
        asked_for.append(test.name)
        return right(self, test, budget=budget)

    monkeypatch.setattr(Handle, "select", noted)
    mechanism.release(SPIKES["spikes"], rng=1)
    assert "roughness" in asked_for
    assert "spikes" not in asked_for


def test_spikes_are_not_looked_for_where_the_test_cannot_be_drawn(monkeypatch):
    right = recipe.can_select

    def refused(selector, *rest):
        return selector.name != "spikes" and right(selector, *rest)

    monkeypatch.setattr(recipe, "can_select", refused)
    mechanism = bf.Dawa(bf.policies.AddRemove(LINE), CELLS, epsilon=1)
    release = mechanism.release(SPIKES["spikes"], rng=1)
    assert "chosen" not in release.details
    assert "roughness" in release.details


@pytest.mark.parametrize("name", SPIKES)
def test_tests_for_spikes_share_the_sort_of_the_look(name, monkeypatch):
    sorts = sorts_noted(monkeypatch)
    mechanism = bf.Dawa(bf.policies.AddRemove(LINE), CELLS, epsilon=1)
    once = mechanism.release(SPIKES[name], rng=1)
    assert len(sorts) == 1
    for kind in (recipe.RoughnessTest, recipe.SpikeTest, recipe.DyadicTree):
        monkeypatch.setattr(kind, "sharing", lambda self, _: self)
    again = mechanism.release(SPIKES[name], rng=1)
    assert len(sorts) > 2
    assert again.estimate.tobytes() == once.estimate.tobytes()

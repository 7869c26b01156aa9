"""Which way of dividing a map is chosen, and what the choice costs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.mechanisms import dawa as recipe
from blowfish_fast.mechanisms.dawa import RHO_BYTES, _settings, asks_boxes


@pytest.mark.parametrize("name", ["add_remove", "full"])
def test_a_map_pays_for_count_test_and_what_is_chosen(name):
    grid = bf.Domain((32, 32))
    policy = {"add_remove": bf.policies.AddRemove, "full": bf.policies.Full}[name](grid)
    asked = bf.workloads.Rectangles.random(grid, 20, rng=1)
    seen = set()
    scattered = np.random.default_rng(1).poisson(0.9, (32, 32))
    corner = np.zeros((32, 32), dtype=int)
    corner[:8, :8] = 800
    for counts in (scattered, corner):
        dawa = bf.Dawa(policy, asked, epsilon=0.2)
        release = dawa.release(counts, rng=2)
        seen.add(release.details["chosen"])
        assert release.guarantee.epsilon == Fraction(1, 5)
    assert seen == {"adaptive_grid", "dyadic_rectangles"}


def test_few_records_are_counted_again_and_divided_into_few_parts(monkeypatch):
    shares = []
    right = recipe.rough_total

    def counted(private, records, *, budget):
        if not private.dry_run:
            shares.append(budget.amount * 5)
        return right(private, records, budget=budget)

    monkeypatch.setattr(recipe, "rough_total", counted)
    grid = bf.Domain((32, 32))
    asked = bf.workloads.Rectangles.random(grid, 20, rng=1)
    few = np.zeros((32, 32), dtype=int)
    few[3, 4] = 30
    dawa = bf.Dawa(bf.policies.AddRemove(grid), asked, epsilon=0.2)
    release = dawa.release(few, rng=1)
    assert shares == [Fraction(1, 100), Fraction(5, 100)]
    assert release.details["chosen"] == "adaptive_grid"
    assert release.details["parts"].tolist() == [1, 1]
    assert release.guarantee.epsilon == Fraction(1, 5)
    few[3, 4] = 400
    # 307 were counted: 61 times epsilon, less 40, twice the scale of the second count.
    assert dawa.release(few, rng=5).details["parts"].tolist() == [4, 4]
    # Where the number is public nothing is bought, and it may still be small.
    full = bf.Dawa(bf.policies.Full(grid), asked, epsilon=0.2).release(few, rng=3)
    assert full.details["parts"].tolist() == [6, 6]


def test_rectangles_asked_by_name_are_not_tested():
    grid = bf.Domain((16, 16))
    asked = bf.workloads.Rectangles.random(grid, 20, rng=1)
    policy = bf.policies.AddRemove(grid)
    named = bf.Dawa(
        policy, asked, epsilon=2, partition=bf.partitions.DyadicRectangles()
    )
    assert "chosen" not in named.release(np.ones((16, 16), dtype=int), rng=1).details
    cells = bf.Dawa(policy, bf.workloads.Identity(grid), epsilon=2)
    assert not cells.tests_scatter


@pytest.mark.parametrize("mass", [0.0, 1.0, 194.0, 5506.0, 1e5, 1e9])
def test_share_and_threshold_stay_within_their_bounds(mass):
    share, threshold = _settings(mass)
    assert Fraction(1, 501) < share <= Fraction(6, 100)
    assert share.denominator <= 2**20
    assert 0.002 <= threshold <= 0.25


def test_dense_maps_have_a_lower_threshold():
    assert _settings(39_999)[1] == pytest.approx(2 / math.sqrt(39_999))
    assert _settings(40_000)[1] == pytest.approx(1.2 / 200)
    assert _settings(400_000)[1] == 0.002


def test_only_rectangles_are_asked_about():
    grid = bf.Domain((4, 4))
    boxes = bf.workloads.Rectangles.random(grid, 3, rng=1)
    assert asks_boxes(boxes | boxes)
    assert not asks_boxes(boxes | bf.workloads.Identity(grid))


def test_the_memory_of_the_dearer_way_is_asked_for():
    grid = bf.Domain((64, 64))
    boxes = bf.workloads.Rectangles.random(grid, 3, rng=1)
    policy = bf.policies.AddRemove(grid)
    dawa = bf.Dawa(policy, boxes, epsilon=1)
    assert dawa.memory_needed() >= bf.AdaptiveGrid.cell_bytes * grid.size
    in_rho = bf.Dawa(policy, boxes, rho=1)
    assert in_rho.tests_scatter
    assert in_rho.memory_needed() >= RHO_BYTES * grid.size

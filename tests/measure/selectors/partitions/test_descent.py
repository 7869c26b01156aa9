"""Buckets by descent: the exact price, the law of its trees, public limits."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import special

import blowfish_fast as bf
from blowfish_fast.data.sparse import FilledCells
from blowfish_fast.errors import InputError
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import descent
from blowfish_fast.measure.selectors.partitions.descent import (
    Descent,
    calibrated,
    price,
)
from blowfish_fast.measure.selectors.partitions.uneven_scores import (
    NodeScores,
    ends_of_loss,
    log_above,
    near_loss,
)
from tests.reference.descent import ratio
from tests.reference.descent import tree_law as all_trees
from tests.reference.node_unevenness import pinball_cost, unevenness

PLACE = 5


def worst(scale, bias, fan_out, bug="", score=sum):
    """Return the largest log-ratios of one record more, and of one that moves."""
    tree_law = partial(all_trees, score=score)
    added = moved = 0.0
    for here in range(0, 12, 1):
        for beside, far in ((0, 0), (3, 9)):
            counts = [0] * 16
            counts[PLACE], counts[6], counts[12] = here, beside, far
            before = tree_law(counts, scale, bias, fan_out, bug)
            counts[PLACE] += 1
            after = tree_law(counts, scale, bias, fan_out, bug)
            added = max(added, ratio(before, after))
            for other in (6, 12):
                counts[PLACE] -= 1
                counts[other] += 1
                elsewhere = tree_law(counts, scale, bias, fan_out, bug)
                counts[PLACE] += 1
                counts[other] -= 1
                moved = max(moved, ratio(after, elsewhere))
    return added, moved


@pytest.mark.parametrize(("scale", "fan_out"), [(1.5, 2), (3.0, 2), (2.0, 4)])
def test_the_price_covers_every_tree(scale, fan_out):
    bias = math.ceil(scale * math.log(fan_out))
    stated = float(price(Fraction(scale), bias))
    added, moved = worst(scale, bias, fan_out)
    assert 0.9 * stated < added <= stated + 1e-12
    assert moved <= stated + 1 / scale + 1e-12
    # A move at the price of one record would be too cheap.
    assert moved > stated


@pytest.mark.parametrize("bug", ["no bias by depth", "no clamp", "strict"])
def test_planted_bugs_cost_more(bug):
    added, _ = worst(3.0, 3, 2, bug)
    assert added > 1.2 * float(price(Fraction(3), 3))


def test_the_price_is_that_of_the_series():
    for scale, bias in (
        (Fraction(3, 2), 2),
        (Fraction(40), 56),
        (Fraction(999), 1385),
    ):
        a, wanted = math.exp(-1 / scale), 1 / float(scale)
        for level in range(200):
            w = level * bias
            wanted += math.log(
                (1 - a ** (w + 2) / (1 + a)) / (1 - a ** (w + 1) / (1 + a))
            )
        found = float(price(scale, bias))
        assert found == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("epsilon", ["0.0001", "0.01", "1", "7.3", "100"])
def test_scales_are_the_least_that_fit(epsilon, moves):
    goal = Fraction(epsilon)
    scale, bias = calibrated(goal, 4, moves=moves)
    more = 1 if moves else 0
    assert price(scale, bias) + more / scale <= goal
    smaller = scale - Fraction(1, 1024)
    if smaller > 0:
        less = max(math.ceil(float(smaller) * math.log(4)), 1)
        cost = price(smaller, less) + more / smaller
        assert cost > goal * (1 - Fraction(1, 10**9))


def test_scales_are_those_of_the_proof_page():
    for moves, wanted in ((False, 2.17), (True, 3.18)):
        scale, _ = calibrated(Fraction(1, 100), 4, moves=moves)
        assert float(scale) / 100 == pytest.approx(wanted, abs=0.006)


@pytest.mark.long
@pytest.mark.parametrize(("fan_out", "cells"), [(2, 8), (4, 16)])
def test_trees_follow_their_law(fan_out, cells):
    policy = bf.policies.AddRemove(bf.Domain(cells))
    counts = np.zeros(cells, dtype=np.int64)
    counts[[1, 6]] = [6, 2]
    epsilon, draws = Fraction(3, 2), 1500
    scale, bias = calibrated(epsilon, fan_out, moves=False)
    law = all_trees(counts.tolist(), float(scale), bias, fan_out)
    chosen, rng = Descent(fan_out=fan_out), Randomness(1)
    seen = Counter(
        tuple(chosen.select(counts, policy=policy, epsilon=epsilon, rng=rng).edges[:-1])
        for _ in range(draws)
    )
    assert {tuple(map(int, one)) for one in seen} <= law.keys()
    often = [one for one in law if law[one] * draws >= 8]
    rest = 1 - sum(law[one] for one in often)
    square = sum((seen[o] - draws * law[o]) ** 2 / (draws * law[o]) for o in often)
    left = draws - sum(seen[one] for one in often)
    square += (left - draws * rest) ** 2 / max(draws * rest, 1e-9)
    assert special.chdtrc(len(often), square) > 1e-4


@pytest.mark.parametrize("cells", [1, 2, 3, 5, 37, 64])
def test_buckets_cover_domains_of_any_size(cells):
    policy = bf.policies.AddRemove(bf.Domain(cells))
    for seed in range(5):
        edges = (
            Descent()
            .select(
                np.full(cells, 40),
                policy=policy,
                epsilon=Fraction(2),
                rng=Randomness(seed),
            )
            .edges
        )
        assert edges[0] == 0
        assert edges[-1] == cells
        assert (np.diff(edges) > 0).all()


def test_filled_cells_and_all_cells_give_the_same_buckets():
    counts = np.zeros(1000, dtype=np.int64)
    counts[[3, 500, 501]] = [90, 70, 800]
    policy = bf.policies.AddRemove(bf.Domain(1000))
    given = {"policy": policy, "epsilon": Fraction(1)}
    dense = Descent().select(counts, rng=Randomness(2), **given)
    filled = Descent().select(FilledCells.of(counts), rng=Randomness(2), **given)
    np.testing.assert_array_equal(dense.edges, filled.edges)


def test_a_single_filled_cell_of_a_wide_domain_is_drawn_for():
    # One filled cell is no domain of one cell: what was chosen must vary.
    wide = bf.policies.AddRemove(bf.WideDomain(2**20))
    filled = FilledCells(np.array([7]), np.array([2]))
    found = {
        Descent()
        .select(filled, policy=wide, epsilon=Fraction(1), rng=Randomness(seed))
        .count
        for seed in range(30)
    }
    assert len(found) > 1


def test_buckets_have_a_public_limit():
    wide = bf.policies.AddRemove(bf.WideDomain(2**62))
    rng = np.random.default_rng(1)
    keys = np.unique(rng.integers(0, 2**62, 20_000))
    filled = FilledCells(keys, np.full(keys.size, 50))
    for most in (1, 64, 1000):
        buckets = Descent(most_buckets=most).select(
            filled, policy=wide, epsilon=Fraction(1), rng=Randomness(1)
        )
        assert buckets.count <= max(most, 1)
        assert buckets.edges[-1] == 2**62


def test_a_policy_without_edges_draws_nothing():
    still = bf.policies.Graph(bf.Domain(9), np.zeros((0, 2), dtype=int))
    buckets = Descent().select(
        np.arange(9), policy=still, epsilon=Fraction(1), rng=Randomness(1)
    )
    assert buckets.count == 1


@pytest.mark.parametrize("fan_out", [0, 3, 32, 2.5, "two"])
def test_other_fan_outs_are_refused(fan_out):
    with pytest.raises(InputError):
        Descent(fan_out=fan_out)


def test_calibration_is_remembered():
    descent.calibrated.cache_clear()
    calibrated(Fraction(1, 7), 4, moves=False)
    calibrated(Fraction(1, 7), 4, moves=False)
    assert descent.calibrated.cache_info().hits == 1


def test_fractions_decide_where_floats_propose_too_little(monkeypatch):
    from fractions import Fraction

    from blowfish_fast.measure.selectors.partitions import descent

    right = descent.calibrated.__wrapped__(Fraction(1), 4, moves=False)
    near = descent._near
    monkeypatch.setattr(descent, "_near", lambda *given: 0.999 * near(*given))
    assert descent.calibrated.__wrapped__(Fraction(1), 4, moves=False) == right


def uneven(counts):
    return unevenness(list(counts), 2, 1)


@pytest.mark.parametrize("scale", [4.0, 9.0])
def test_the_price_by_unevenness_covers_every_tree(scale):
    bias = math.ceil(scale * math.log(2))
    up, down = map(float, ends_of_loss(Fraction(scale), bias))
    added, moved = worst(scale, bias, 2, score=uneven)
    assert 0.3 * max(up, down) < added <= max(up, down) + 1e-12
    assert added < moved <= up + down + 1e-12


def test_scores_that_are_not_cut_off_cost_more_by_unevenness():
    honest, _ = worst(4.0, 3, 2, score=uneven)
    added, _ = worst(4.0, 3, 2, "no clamp", score=uneven)
    assert added > 1.1 * honest


def test_scores_never_grow_downwards_though_costs_do():
    counts = [40, 0] * 16

    def own(part):
        width = max(len(part) // 4, 1)
        return pinball_cost(
            [sum(part[at : at + width]) for at in range(0, len(part), width)]
        )

    assert own(counts) == 0 < own(counts[:2])
    sizes = (32, 16, 8, 4, 2)
    scores = [uneven(counts[:size]) for size in sizes]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 3), Fraction(40)])
@pytest.mark.parametrize("moves", [False, True])
def test_scales_by_unevenness_are_the_least_that_fit(epsilon, moves):
    scale, bias = calibrated(epsilon, 4, moves=moves, score="unevenness")

    def cost(one, short):
        ends = ends_of_loss(one, short)
        return sum(ends) if moves else max(ends)

    assert cost(scale, bias) <= epsilon
    less = scale - Fraction(1, descent.SCALE_STEPS)
    assert cost(less, max(math.ceil(float(less) * math.log(4)), 1)) > epsilon
    near = near_loss(float(scale), bias)
    assert near == pytest.approx([float(one) for one in ends_of_loss(scale, bias)])
    assert scale > calibrated(epsilon, 4, moves=moves)[0]


def test_logarithms_are_rounded_up(monkeypatch):
    for excess in (Fraction(1, 10**20), Fraction(1, 3), Fraction(10**9)):
        assert 0 <= float(log_above(excess)) - math.log1p(excess) < 1e-10
    monkeypatch.setattr(math, "log1p", lambda value: 0.999999999 * np.log1p(value))
    assert float(log_above(Fraction(1))) >= math.log(2)


@pytest.mark.parametrize("fan_out", [2, 4])
def test_scores_of_nodes_are_those_of_the_definition(fan_out):
    rng, bits = np.random.default_rng(4), fan_out.bit_length() - 1
    counts = rng.integers(0, 5, 64) * (rng.random(64) < 0.4)
    heights = list(range(6, 0, -bits))
    scores = NodeScores(FilledCells.of(counts), heights)
    for height in heights:
        begin = np.arange(0, 64, 2**height)
        known = scores.of(begin, begin + 2**height, height)
        nodes = counts.reshape(-1, 2**height).tolist()
        assert known.tolist() == [unevenness(one, 6, bits) for one in nodes]


def test_even_regions_stay_whole_by_unevenness():
    counts = np.full(1024, 30)
    counts[700] = 900
    policy = bf.policies.AddRemove(bf.Domain(1024))
    given = {"policy": policy, "epsilon": Fraction(1), "rng": Randomness(1)}
    by_records = Descent().select(counts, **given)
    by_unevenness = Descent(score="unevenness").select(counts, **given)
    assert 4 * by_unevenness.count < by_records.count
    assert 700 in by_unevenness.edges
    with pytest.raises(InputError, match="score"):
        Descent(score="weight")

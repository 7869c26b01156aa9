"""Oracles of the DAWA partition: numbers worked out by hand from the paper.

The greedy ones (G1, G2) stand beside their kernel, D3 beside the buckets, D4 beside the
ranges.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from blowfish_fast import kernels
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError
from blowfish_fast.kernels.window_costs.all_intervals import least_cost_partition_all
from blowfish_fast.measure.selectors.partitions import (
    LeastCost,
    cost_bound,
    partition_cost,
)

CELLS = [2, 3, 8, 1, 0, 2, 0, 4, 2, 4]
PAPER = Buckets(np.array([0, 2, 3, 7, 10]))
GRID = 2.0**-16


def deviation(cells):
    mean = Fraction(sum(cells), len(cells))
    return sum(abs(one - mean) for one in cells)


def total(edges, epsilon):
    return partition_cost(CELLS, Buckets(edges), epsilon=epsilon)


def test_d1_deviations_of_the_papers_buckets():
    cuts = [(0, 2), (2, 3), (3, 7), (7, 10)]
    for (start, end), expected in zip(cuts, [1, 0, 3, 8 / 3], strict=True):
        found = kernels.window_deviations(CELLS, end - start)[start]
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("epsilon", "papers", "single"), [("1", 32 / 3, 18.2), ("0.1", 140 / 3, 27.2)]
)
def test_d2_costs_of_partitions(epsilon, papers, single):
    assert partition_cost(CELLS, PAPER, epsilon=epsilon) == pytest.approx(papers)
    assert total(np.array([0, 10]), epsilon) == pytest.approx(single)


@pytest.mark.parametrize(
    ("epsilon", "every", "powers"),
    [("1", 10, 10), ("0.5", 44 / 3, 16), ("0.2", 22.2, 27), ("0.1", 27.2, 37)],
)
def test_d2b_optima_over_all_and_power_of_two_lengths(epsilon, every, powers):
    price = 1 / float(epsilon)
    best = least_cost_partition_all(np.array(CELLS), price, step=GRID)
    assert total(best, epsilon) == pytest.approx(every, abs=1e-3)
    prices = np.full(4, price)
    short = kernels.least_cost_partition(np.array(CELLS), prices, step=GRID)
    assert total(short, epsilon) == pytest.approx(powers, abs=1e-3)


def test_d2b_the_papers_partition_is_not_optimal_at_one():
    best = least_cost_partition_all(np.array(CELLS), 1.0, step=GRID)
    assert best.tolist() == [0, 2, 3, 7, 8, 9, 10]
    half = least_cost_partition_all(np.array(CELLS), 2.0, step=GRID)
    assert half.tolist() == PAPER.edges.tolist()


@pytest.mark.parametrize(
    ("length", "change"), [(2, 1), (3, Fraction(4, 3)), (4, Fraction(3, 2)), (5, 1.6)]
)
def test_d5_one_record_changes_a_deviation_by_at_most_two_less_two_over_length(
    length, change
):
    worst = max(
        abs(deviation([*cells[:j], cells[j] + 1, *cells[j + 1 :]]) - deviation(cells))
        for cells in itertools.product(range(4 if length < 5 else 3), repeat=length)
        for j in range(length)
    )
    assert worst == pytest.approx(float(change))
    own, largest = LeastCost("all")._sensitivities([length])
    assert own == [largest]
    assert float(largest) == pytest.approx(float(change))


def test_d5_a_move_inside_a_bucket_changes_it_by_two():
    worst = 0
    for cells in itertools.product(range(4), repeat=4):
        for source, target in itertools.permutations(range(4), 2):
            if cells[source]:
                moved = list(cells)
                moved[source] -= 1
                moved[target] += 1
                worst = max(worst, abs(deviation(moved) - deviation(cells)))
    assert worst == 2


def survival(threshold, scale):
    """Return P(Laplace noise > threshold)."""
    if threshold >= 0:
        return 0.5 * math.exp(-threshold / scale)
    return 1 - 0.5 * math.exp(threshold / scale)


def public_log_ratio(cells, epsilon2=0.01):
    """Return the log-ratio of all singletons under the public code's noise."""
    zero = [0] * cells
    one = list(zero)
    one[cells // 4 if cells == 4 else cells // 2] = 1
    logs = []
    for counts in (zero, one):
        log = 0.0
        length = 2
        while length <= cells:
            scale = 2 - 1 / length - 1 / cells
            for start in range(cells - length + 1):
                gap = (length - 1) / epsilon2 - float(
                    deviation(counts[start : start + length])
                )
                log += (
                    math.log(0.5) - gap / scale
                    if gap >= 0
                    else math.log(survival(gap, scale))
                )
            length *= 2
        logs.append(log)
    return abs(logs[0] - logs[1])


def test_d7_public_code_leaves_singletons_without_noise():
    assert public_log_ratio(4) == pytest.approx(2.6)
    assert public_log_ratio(64) == pytest.approx(60.69, abs=0.01)


def test_d8_the_right_noise_on_two_cells_stays_within_epsilon():
    # P(two singletons) = P(cost of the pair > cost of both), exactly, by convolution of
    # the geometric laws of the scales that LeastCost declares.
    noise = LeastCost().noise(2, Fraction(1))
    single, pair = noise.scales / 0.125
    values = np.arange(6000)
    law = [
        np.exp(-values / scale) * (1 - np.exp(-1 / scale)) for scale in (single, pair)
    ]
    both = np.convolve(law[0], law[0])[:6000]

    def split(gap):
        # Noisy: two singletons win iff 2 c - G1 - G2 < d + c - G, in eighths.
        steps = 8 * gap - 8 * 2
        tail = np.array([both[max(-steps + g + 1, 0) :].sum() for g in values])
        return float((law[1] * tail).sum())

    chances = [split(gap) for gap in range(6)]
    ratios = [abs(math.log(a / b)) for a, b in itertools.pairwise(chances)]
    assert max(ratios) <= 1 + 1e-6


def test_d9_clamping_alone_breaks_the_promise():
    def clamped(cells, changed):
        largest = 2 - 2 / cells
        loss, length = 0.0, 2
        while length <= cells:
            holding = sum(i <= changed < i + length for i in range(cells - length + 1))
            own = 2 - 2 / length
            loss += holding * own / (largest + own)
            length *= 2
        return loss

    assert clamped(4, 1) == pytest.approx(1.3)


def test_d10_the_bound_of_theorem_1():
    assert cost_bound(10, 55, delta=0.05, epsilon=1) == pytest.approx(560.245, abs=1e-3)
    with pytest.raises(InputError, match="at least 1"):
        cost_bound(0, 55, delta=0.05, epsilon=1)
    with pytest.raises(InputError, match="delta must lie below 1"):
        cost_bound(10, 55, delta=1.5, epsilon=1)

"""Distances of published tables: their sums, and how far one record moves them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast import policies as P
from blowfish_fast.data.tables.merged_tables import CountedTables
from blowfish_fast.errors import EpsilonError
from blowfish_fast.measure.strategies.tables.model_distance import (
    FINE,
    FURTHEST,
    MOST_IN_CELL,
    ModelDistance,
    distance,
)
from blowfish_fast.measure.tails import one_sided_margin

SMALL = bf.Domain((2, 3, 2), names=["a", "b", "c"])
COUNTED = CountedTables((2, 3, 2), list(combinations(range(3), 2)))
TABLES = [(0,), (1,), (0, 1), (0, 2), (1, 2)]


def some_statistic(seed):
    source = np.random.default_rng(seed)
    cells = source.uniform(0, 6, SMALL.shape)

    def estimate(axes):
        return cells.sum(axis=tuple({0, 1, 2} - {*axes}))

    return ModelDistance(COUNTED, TABLES, estimate)


def test_rows_are_the_largest_distance_and_the_mean_of_all():
    statistic, counts = some_statistic(1), np.arange(12) % 5
    cells = counts.reshape(SMALL.shape)
    slow = []
    for axes in TABLES:
        true = cells.sum(axis=tuple({0, 1, 2} - {*axes}))
        whole = np.rint(FINE * statistic.estimate(axes))
        slow.append(sum(abs(FINE * true - whole).ravel().tolist()))
    largest, mean = statistic.rows(COUNTED.of_cells(counts)).tolist()
    assert largest == max(slow)
    assert mean == sum(map(int, slow)) // len(slow)
    assert statistic.rounding().max() <= 6 * 0.5 / FINE


@pytest.mark.parametrize(
    ("policy", "cells"),
    [
        (P.AddRemove(SMALL), 1),
        (P.Full(SMALL), 2),
        (P.TablePolicy(SMALL, {}), 2),
        (P.TablePolicy(SMALL, {}, presence=2), 2),
    ],
)
def test_one_record_moves_both_rows_by_no_more_than_is_stated(policy, cells):
    widest = 0
    for seed in range(4):
        statistic, source = some_statistic(seed), np.random.default_rng(seed)
        background = source.integers(0, 5, 12)
        moved = np.repeat(background[None], 13, axis=0)
        moved[np.arange(12), np.arange(12)] += 1
        rows = np.array([statistic.rows(COUNTED.of_cells(one)) for one in moved])
        # The last has no record more: it is the side of somebody absent.
        sides = [12] if cells == 1 else range(12)
        for side in sides:
            widest = max(widest, int(np.abs(rows - rows[side]).sum(axis=1).max()))
    assert widest <= statistic.move(policy) == 2 * cells * FINE
    assert widest > 0.6 * statistic.move(policy)


def test_no_sum_leaves_its_bits_and_cells_are_cut_alike():
    most = np.full(4, 2**62, dtype=np.int64)
    assert distance(most, np.zeros(4, dtype=np.int64)) == 4 * FINE * MOST_IN_CELL
    huge = ModelDistance(CountedTables((4,), [(0,)]), [(0,)], lambda axes: np.zeros(4))
    assert huge.rows(most).tolist() == [FURTHEST, FURTHEST]
    far = ModelDistance(huge.counted, [(0,)], lambda axes: np.full(4, 1e300))
    assert far.whole((0,)).max() == FINE * MOST_IN_CELL


def test_nothing_is_drawn_where_nothing_moves_and_too_little_is_refused():
    statistic = some_statistic(1)
    sides = [
        bf.Domain(size, names=[name])
        for name, size in zip("abc", (2, 3, 2), strict=True)
    ]
    nobody = [P.Graph(side, np.zeros((0, 2), dtype=int)) for side in sides]
    still = P.TablePolicy(SMALL, dict(zip("abc", nobody, strict=True)))
    assert statistic.move(still) == 0
    # Exact rows have no noise, and no margin.
    assert one_sided_margin(statistic.scales(still, Fraction(1)), 0.05) == 0
    with pytest.raises(EpsilonError, match=r"moves by 4 records is more than can"):
        statistic.scales(P.Full(SMALL), Fraction(1, 2**60))

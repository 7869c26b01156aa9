"""The score of a table: surplus over an estimate, in whole numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.tables.merged_tables import CountedTables, Grouping, MergedTable
from blowfish_fast.errors import InputError
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.worst_table import (
    LARGEST_ESTIMATE,
    UNIT,
    TableChoices,
    WorstTable,
    in_units,
)

COUNTED = CountedTables((2, 3), [(0, 1)])
PAIR = MergedTable((0, 1), (Grouping([0, 1]), Grouping([0, 1, 2])))
LEVELS = ((Grouping([0, 1]),), (Grouping([0, 1, 2]), Grouping([0, 1, 1])))


def test_scores_are_surpluses_at_each_level_less_penalties():
    estimate = np.array([[64, 64, 64], [0, 0, 640]])
    choice = TableChoices(PAIR, LEVELS, estimate, [32, 8], weight=32)
    selector = WorstTable(COUNTED, [choice])
    counts = np.array([3, 0, 2, 1, 0, 4])
    # Surplus 2 + 1 + 1 = 4 records; with the last two merged 2 + 0 + 1 = 3.
    assert (-selector.costs(counts)).tolist() == [4 * 32 - 32, 3 * 32 - 8]
    tables = selector.candidates()
    assert [one.shape for one in tables] == [(2, 3), (2, 2)]


def test_huge_counts_and_estimates_do_not_overflow():
    estimate = np.full((2, 3), 2**62)
    choice = TableChoices(PAIR, LEVELS, estimate, [0, 2**62])
    counts = np.full(6, 2**60)
    costs = WorstTable(COUNTED, [choice]).costs(counts)
    assert np.abs(costs).max() < 2**61
    assert in_units(1e300) == LARGEST_ESTIMATE == -in_units(-np.inf)
    assert in_units(1.5) == 96


def test_without_edges_the_worst_table_is_taken():
    choice = TableChoices(PAIR, LEVELS, np.zeros((2, 3), dtype=int), [9 * UNIT, 0])
    selector = WorstTable(COUNTED, [choice])
    still = bf.policies.Graph(bf.Domain((2, 3)), np.zeros((0, 2), dtype=int))
    terms = {"policy": still, "epsilon": Fraction(1), "rng": Randomness(1)}
    assert selector.sensitivity(still) == 0
    assert selector.select(np.ones(6, dtype=int), **terms) == 1


def test_what_cannot_be_chosen_from_is_refused():
    with pytest.raises(InputError, match="at least one"):
        WorstTable(COUNTED, [])
    negative = TableChoices(PAIR, LEVELS, np.full((2, 3), -1), [0, 0])
    with pytest.raises(InputError, match="not be negative"):
        WorstTable(COUNTED, [negative])
    heavy = TableChoices(PAIR, LEVELS, np.zeros((2, 3), dtype=int), [0, 0], 65)
    with pytest.raises(InputError, match="from 1 to 64"):
        WorstTable(COUNTED, [heavy])

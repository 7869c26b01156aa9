"""Records exchanged until their tables match."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.fitting.record_exchange import exchange_records

pytestmark = pytest.mark.kernel

SIZES = (3, 2, 2)
PAIRS = ((0, 1), (0, 2), (1, 2))


def tables_of(columns):
    found = []
    for one in PAIRS:
        counts = np.zeros([SIZES[axis] for axis in one])
        np.add.at(counts, tuple(columns[list(one)]), 1)
        found.append(counts.reshape(-1))
    return found


def records(generator, count):
    return np.array([generator.integers(0, size, count) for size in SIZES], np.int32)


def test_tables_of_other_records_are_reached(generator):
    columns, wanted = records(generator, 60), records(generator, 60)
    wanted[1] = wanted[0] % 2
    goals = tables_of(wanted)
    before = sum(
        np.abs(a - b).sum() for a, b in zip(tables_of(columns), goals, strict=True)
    )
    exchange_records(columns, SIZES, PAIRS, goals, sweeps=25, seed=3)
    after = sum(
        np.abs(a - b).sum() for a, b in zip(tables_of(columns), goals, strict=True)
    )
    assert after < before / 4
    assert (columns >= 0).all()
    assert (columns < np.array(SIZES)[:, None]).all()


def test_records_that_fit_stay_as_they_are(generator):
    columns = records(generator, 40)
    kept = columns.copy()
    exchange_records(columns, SIZES, PAIRS, tables_of(columns), sweeps=5, seed=1)
    assert (columns == kept).all()


def test_no_sweep_takes_tables_away_from_their_goals(generator):
    columns, wanted = records(generator, 50), records(generator, 50)
    wanted[2] = wanted[1]
    goals = [one + 0.3 for one in tables_of(wanted)]

    def distance():
        pairs = zip(tables_of(columns), goals, strict=True)
        return sum(np.mean((one - other) ** 2) for one, other in pairs)

    seen = [distance()]
    for seed in range(6):
        exchange_records(columns, SIZES, PAIRS, goals, sweeps=1, seed=seed)
        seen.append(distance())
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] < seen[0] / 4


def test_values_that_no_record_holds_are_reached():
    columns = np.zeros((3, 60), dtype=np.int32)
    goals = [np.full(6, 10.0), np.full(6, 10.0), np.full(4, 15.0)]
    exchange_records(columns, SIZES, PAIRS, goals, sweeps=20, seed=2)
    for found, goal in zip(tables_of(columns), goals, strict=True):
        assert np.abs(found - goal).max() <= 2


def test_tables_of_one_and_three_attributes_are_goals_too(generator):
    columns, wanted = records(generator, 40), records(generator, 40)
    single = np.bincount(wanted[0], minlength=3).astype(float)
    triple = np.zeros(SIZES)
    np.add.at(triple, tuple(wanted), 1)
    goals = [single, triple.reshape(-1)]
    exchange_records(columns, SIZES, ((0,), (0, 1, 2)), goals, sweeps=20, seed=1)
    found = np.zeros(SIZES)
    np.add.at(found, tuple(columns), 1)
    assert np.abs(found - triple).sum() <= 4


def test_without_tables_or_records_nothing_happens(generator):
    columns = records(generator, 5)
    kept = columns.copy()
    exchange_records(columns, SIZES, (), [], sweeps=2, seed=1)
    none = records(generator, 0)
    exchange_records(none, SIZES, PAIRS, [np.ones(6), np.ones(6), np.ones(4)], 2, 1)
    assert (columns == kept).all()


def test_a_seed_repeats_the_records(generator):
    first = records(generator, 40)
    goals = tables_of(records(generator, 40))
    second, third = first.copy(), first.copy()
    for columns, seed in ((first, 5), (second, 5), (third, 6)):
        exchange_records(columns, SIZES, PAIRS, goals, sweeps=4, seed=seed)
    assert (first == second).all()
    assert (first != third).any()


def test_goals_of_another_shape_are_refused(generator):
    columns = records(generator, 4)
    with pytest.raises(InputError, match="needs 6 counts"):
        exchange_records(columns, SIZES, PAIRS[:1], [np.zeros(5)], sweeps=1, seed=1)
    with pytest.raises(InputError, match="needs 6 counts"):
        exchange_records(columns, SIZES, PAIRS[:1], [-np.ones(6)], sweeps=1, seed=1)
    with pytest.raises(InputError, match="one contiguous row"):
        exchange_records(columns[:2], SIZES, PAIRS[:1], [np.ones(6)], 1, 1)

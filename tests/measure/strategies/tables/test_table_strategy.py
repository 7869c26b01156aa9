"""Measured tables: estimates, files, and the policies they are priced for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, PolicyError, ReleaseFileError
from blowfish_fast.measure.strategies.tables.table_strategy import (
    TableStrategy,
    check_shape,
)

SIZES = (3, 2)
TABLES = [(0,), (0, 1)]


def test_measured_tables_are_estimated_together_and_others_stay_empty():
    policy = bf.policies.AddRemove(bf.Domain(SIZES))
    counts = np.arange(6)
    true = [1, 5, 9, *counts]
    strategy = TableStrategy(SIZES, TABLES, [1.0, 1.0])
    scales = strategy.scales(policy, Fraction(1))
    estimate = strategy.infer(strategy.rows(strategy.tables_of(counts)), scales)
    np.testing.assert_allclose(estimate, true, atol=1e-12)
    # Noise in one table is shared with the other, so that both add up alike.
    noisy = np.array(true) + np.array([3, 0, 0, 0, 0, 0, 0, 0, 0])
    ages, cells = np.split(strategy.infer(noisy, scales), [3])
    np.testing.assert_allclose(cells.reshape(SIZES).sum(axis=1), ages)
    alone = TableStrategy(SIZES, TABLES, [0.0, 1.0])
    scales = alone.scales(policy, Fraction(1))
    estimate = alone.infer(np.array(true), scales)
    np.testing.assert_allclose(estimate, [0, 0, 0, *counts], atol=1e-12)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"tables": [[0], [0, 2]]}, "attributes that are not there"),
        ({"tables": [[0], [-1]]}, "attributes that are not there"),
        ({"tables": [[0], [1, 0]]}, "attributes that are not there"),
        ({"tables": [[0], [1, 1]]}, "attributes that are not there"),
        ({"sizes": [], "tables": [[], []]}, "do not fit together"),
        ({"sizes": [3, 0]}, "do not fit together"),
        ({"shares": [1.0]}, "do not fit together"),
        ({"shares": [1.0, 1.5]}, "outside 0 to 1"),
        ({"shares": [1.0, float("nan")]}, "outside 0 to 1"),
        ({"sizes": [2**30, 2**11]}, "larger than any that are written"),
    ],
)
def test_tables_in_a_file_are_checked(changed, reason):
    packed = TableStrategy(SIZES, TABLES, [1.0, 0.5]).pack()
    assert TableStrategy.unpack(packed).tables == tuple(TABLES)
    with pytest.raises(ReleaseFileError, match=reason):
        TableStrategy.unpack({**packed, **changed})


def test_tables_are_priced_for_single_records_over_their_own_attributes():
    domain = bf.Domain(SIZES)
    full = bf.policies.Full(domain)
    check_shape(full, SIZES)
    known = full.with_constraints(bf.policies.MarginalConstraints(domain, 0))
    with pytest.raises(PolicyError, match="move one at a time"):
        check_shape(known, SIZES)
    with pytest.raises(DomainError, match="attributes of"):
        check_shape(full, (2, 3))

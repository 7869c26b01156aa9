"""Non-negative tables from the top down."""

from __future__ import annotations

import math

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.release.synthetic import FittedTables


@pytest.fixture(name="noisy")
def noisy_tables(generator):
    counts = generator.integers(0, 30, (4, 3, 2)).astype(float)
    tables = {}
    for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        dropped = tuple(axis for axis in range(3) if axis not in axes)
        clean = counts.sum(axis=dropped)
        tables[axes] = clean + generator.normal(0, 25, clean.shape)
    return tables, counts.sum()


def fitted(tables, total, information):
    domain = bf.Domain((4, 3, 2))
    return FittedTables(domain, (), total, tables.get, information, lambda axes: 25.0)


def test_tables_have_no_negatives_and_the_margins_of_smaller_ones(noisy):
    tables, total = noisy
    raked = fitted(tables, total, lambda axes: 1.0)
    three = raked.table((0, 1, 2))
    assert (three >= 0).all()
    assert three.sum() == pytest.approx(total)
    assert np.allclose(three.sum(axis=2), raked.table((0, 1)), atol=total / 100)
    assert raked.table((0, 1)) is raked.table((0, 1))


def test_exact_tables_stay_as_they_are(noisy):
    tables, total = noisy
    tables[0, 1] = np.arange(12.0).reshape(4, 3)
    known = fitted(tables, total, lambda axes: math.inf if axes == (0, 1) else 1.0)
    assert (known.table((0, 1)) == tables[0, 1]).all()


def test_nobody_leaves_empty_tables(noisy):
    tables, _ = noisy
    empty = fitted(tables, 0.0, lambda axes: 1.0)
    assert not empty.table((0, 1)).any()

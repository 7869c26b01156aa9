"""Moments of queries over running totals, against dense rows."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.kernels.graph.edge_line_noise import border_moments, range_borders

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("seed", range(5))
def test_moments_are_those_of_dense_rows(seed):
    rng = np.random.default_rng(seed)
    rows = rng.choice([-1.0, 0.0, 1.0, 0.5], (20, 9), p=[0.2, 0.5, 0.25, 0.05])
    widths = np.where(rng.random(9) < 0.8, 3.0, rng.choice([0.0, 7.0], 9))
    variances = 1.9 * widths**2
    query, borders = np.nonzero(rows)
    pointers = np.append(0, np.cumsum(np.bincount(query, minlength=20)))
    moments, terms = border_moments(
        pointers, borders, rows[query, borders], variances, widths, 3.0
    )
    np.testing.assert_allclose(moments[0], rows**2 @ variances)
    np.testing.assert_allclose(moments[1], rows**2 @ widths**2)
    np.testing.assert_allclose(moments[2], (np.abs(rows) * widths).max(axis=1))
    np.testing.assert_allclose(moments[3], rows**2 @ np.sign(widths))
    drawn = (rows != 0) & (widths > 0)
    equal = (~drawn | ((np.abs(rows) == 1.0) & (widths == 3.0))).all(axis=1)
    assert terms.tolist() == np.where(equal, drawn.sum(axis=1), -1).tolist()


def test_a_query_without_borders_has_no_noise():
    none = np.zeros(0, dtype=np.int64)
    moments, terms = border_moments(
        np.zeros(2, dtype=np.int64), none, np.zeros(0), np.ones(3), np.ones(3), 1.0
    )
    assert moments.sum() == 0.0
    assert terms.tolist() == [0]


def test_ranges_take_the_totals_at_their_ends():
    # All ranges of four cells, whose end cells count by 1 / 2 and by 1 / 4.
    first, last = np.triu_indices(4)
    parts = np.full(first.size, 0.5), np.full(first.size, 0.25)
    pointers, borders, values = range_borders(first, parts[0], last, parts[1])
    for query, (left, right) in enumerate(zip(first, last, strict=True)):
        dense = np.zeros(4)
        dense[left : right + 1] = 1.0
        dense[right] = 0.25
        dense[left] = 0.5
        own = slice(pointers[query], pointers[query + 1])
        totals = np.zeros(5)
        np.add.at(totals, borders[own], values[own])
        # A coefficient is what all totals up to later borders add up to.
        assert np.cumsum(totals[::-1])[::-1][1:].tolist() == dense.tolist()
        used = borders[own][values[own] != 0.0]
        assert used.size == np.unique(used).size

"""Knots equal dense least squares; a gain is the error of leaving one out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.measure.strategies.prefix_sums import (
    Totals,
    _between_knots,
    _running_moments,
)
from tests.generated import example_count

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else example_count(80)


def dense(values, known, knots):
    """Return heights by dense least squares over hat functions, and the error."""
    places = np.append(0, knots)
    hats = np.array(
        [
            np.interp(np.arange(1, values.size + 1), places, np.eye(places.size)[one])
            for one in range(1, places.size)
        ]
    ).T
    fixed = known[knots - 1]
    heights = np.where(fixed, values[knots - 1], 0.0)
    rest = values - hats @ heights
    if not fixed.all():
        heights[~fixed] = np.linalg.lstsq(hats[:, ~fixed], rest, rcond=None)[0]
    return heights, float(((values - hats @ heights) ** 2).sum())


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(2, 30), st.integers(0, 2**32))
def test_equals_dense_least_squares(cells, seed):
    rng = np.random.default_rng(seed)
    values = np.cumsum(rng.poisson(4, cells)) + rng.normal(size=cells)
    known = rng.random(cells) < 0.1
    known[-1] = True
    kept = known | (rng.random(cells) < 0.4)
    knots = np.flatnonzero(kept) + 1
    totals = Totals(values, known, 1.0, 1.0, 3.0)
    heights, gains = _between_knots(totals, knots, _running_moments(values))
    expected, error = dense(values, known, knots)
    np.testing.assert_allclose(heights, expected, atol=1e-7)
    for place, knot in enumerate(knots):
        if known[knot - 1]:
            assert gains[place] == np.inf
        else:
            _, without = dense(values, known, np.delete(knots, place))
            assert gains[place] == pytest.approx(without - error, abs=1e-6, rel=1e-6)

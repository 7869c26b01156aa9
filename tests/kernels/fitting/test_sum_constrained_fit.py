from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.fitting.isotonic import non_negative_with_totals
from tests.generated import example_count
from tests.reference import sum_constrained_fit as reference

pytestmark = pytest.mark.kernel

EXAMPLES = 40 if config.DISABLE_JIT else example_count(200)


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 20), st.integers(1, 4), st.randoms(use_true_random=False))
def test_equals_bisection(size, groups, shuffler):
    values = np.array([shuffler.uniform(-9, 9) for _ in range(size)])
    parts = np.array([shuffler.randrange(groups) for _ in range(size)])
    totals = np.array([float(shuffler.randint(0, 12)) for _ in range(groups)])
    found = non_negative_with_totals(values, parts, totals)
    expected = reference.non_negative_with_totals(values, parts, totals)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    held = np.unique(parts)
    sums = np.bincount(parts, found, minlength=groups)
    np.testing.assert_allclose(sums[held], totals[held], atol=1e-9)
    assert (found >= 0).all()


def test_never_moves_away_from_counts_with_that_total():
    generator = np.random.default_rng(1)
    parts = np.zeros(50, dtype=np.int64)
    for _ in range(50):
        counts = generator.poisson(2, 50)
        noisy = counts + generator.laplace(scale=5, size=50)
        fitted = non_negative_with_totals(noisy, parts, [counts.sum()])
        before, after = noisy - counts, fitted - counts
        assert after @ after <= before @ before + 1e-9


def test_what_does_not_fit_is_refused():
    parts = np.zeros(2, dtype=np.int64)
    with pytest.raises(InputError, match="its part"):
        non_negative_with_totals(np.ones(3), parts, np.ones(1))
    with pytest.raises(InputError, match="numbered from 0"):
        non_negative_with_totals(np.ones(2), parts + 1, np.ones(1))
    with pytest.raises(InputError, match="negative total"):
        non_negative_with_totals(np.ones(2), parts, np.array([-1.0]))

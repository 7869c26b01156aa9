from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.transform.haar_moments import haar_total_variance
from tests.reference.haar_spread import haar_spread

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else 60


def queries_over(edges, kind):
    """List every range or prefix of cells, as shares of the leaves between edges."""
    cells = int(edges[-1])
    cuts = np.arange(cells + 1)
    starts, ends = (
        np.triu_indices(cells + 1, 1) if kind == "all_ranges" else (0 * cuts, cuts)
    )
    low, high = edges[:-1], edges[1:]
    covered = np.minimum(ends[:, None], high) - np.maximum(starts[:, None], low)
    return np.maximum(covered, 0) / (high - low)


@settings(deadline=None, max_examples=EXAMPLES)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=14),
    kind=st.sampled_from(["all_ranges", "prefixes"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_the_sum_over_all_queries(sizes, kind, seed):
    edges = np.append(0, np.cumsum(sizes))
    variances = np.random.default_rng(seed).uniform(0, 2, len(sizes))
    listed, *_ = haar_spread(variances, variances, queries_over(edges, kind))
    found = haar_total_variance(variances, kind, edges)
    assert found == pytest.approx(listed.sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("variances", "kind", "edges"),
    [
        (np.ones(2), "identity", np.arange(3)),
        (np.ones(2), "prefixes", np.arange(4)),
        (np.ones(2), "prefixes", np.array([0, 2, 2])),
        (np.ones(2), "prefixes", np.array([1, 2, 3])),
        (np.ones((2, 2)), "prefixes", np.arange(5)),
    ],
)
def test_arrays_that_do_not_fit_are_refused(variances, kind, edges):
    with pytest.raises(InputError):
        haar_total_variance(variances, kind, edges)

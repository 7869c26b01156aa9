"""The noise of answers from an irregular tree equals dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.tree.parent_spread import parent_tree_spread
from blowfish_fast.kernels.tree.parent_tree import tree_of_parents
from tests.reference import parent_tree as reference
from tests.reference.tree_spread import rows_of_pieces

pytestmark = pytest.mark.kernel

EXAMPLES = 20 if config.DISABLE_JIT else 80


def random_pieces(generator, leaves, queries):
    pointers, starts, ends, values = [0], [], [], []
    for _ in range(queries):
        cuts = np.flatnonzero(generator.random(leaves + 1) < 0.4)
        for start, end in zip(cuts[::2], cuts[1::2], strict=False):
            starts.append(start)
            ends.append(end)
            values.append(generator.choice([1.0, 0.25, -2.0]))
        pointers.append(len(starts))
    whole = [np.array(one, dtype=np.int64) for one in (pointers, starts, ends)]
    return *whole, np.array(values, dtype=np.float64)


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.integers(1, 16), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2, 0.7]))
def test_equals_dense_algebra(leaves, seed, unmeasured):
    generator = np.random.default_rng(seed)
    parents = reference.random_parents(generator, leaves)
    variances = generator.uniform(0.5, 3.0, parents.size)
    variances[generator.random(parents.size) < unmeasured] = np.inf
    scales = generator.uniform(0.5, 2.0, parents.size)
    pieces = random_pieces(generator, leaves, 6)
    found = parent_tree_spread(variances, scales, tree_of_parents(parents), *pieces)
    noisy = np.isfinite(variances)
    fits = [
        reference.dense_fit(one, variances, parents) for one in np.eye(parents.size)
    ]
    weights = rows_of_pieces(leaves, *pieces) @ np.stack(fits, axis=1)[:, noisy]
    scaled = weights * scales[noisy]
    expected = (
        (weights**2 * variances[noisy]).sum(axis=1),
        (scaled**2).sum(axis=1),
        np.abs(scaled).max(axis=1, initial=0.0),
    )
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)


def test_pieces_and_values_must_match():
    tree = tree_of_parents(np.array([2, 2, -1]))
    one = np.array([0]), np.array([1])
    with pytest.raises(InputError, match="one value"):
        parent_tree_spread(
            np.ones(3), np.ones(3), tree, np.array([0, 1]), *one, np.ones(2)
        )
    with pytest.raises(InputError, match="lie within"):
        parent_tree_spread(
            np.ones(3), np.ones(3), tree, np.array([0, 1]), one[0], one[1] + 2, one[0]
        )

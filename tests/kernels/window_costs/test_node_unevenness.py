from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.errors import InputError
from blowfish_fast.kernels.window_costs.node_unevenness import (
    MOST_COUNTED,
    raise_scores,
)
from tests.reference.node_unevenness import unevenness

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize("resolution", [1, 2, 6])
def test_scores_are_those_of_the_definition(bits, resolution):
    rng = np.random.default_rng(1)
    for height in (2, 4, 6):
        for filled in (0.1, 0.5, 1.0):
            counts = rng.integers(0, 6, 2**height) * (rng.random(2**height) < filled)
            keys = np.flatnonzero(counts)
            raised = np.zeros(keys.size, dtype=np.int64)
            for level in range(height % bits or bits, height + 1, bits):
                firsts, scores = raise_scores(
                    keys, counts[keys], raised, level, resolution
                )
                nodes = counts.reshape(-1, 2**level)
                wanted = [unevenness(one.tolist(), resolution, bits) for one in nodes]
                held = (nodes > 0).sum(axis=1)
                many = np.flatnonzero(held > 1)
                assert scores.tolist() == [wanted[at] for at in many]
                assert (keys[firsts] >> level).tolist() == many.tolist()
                lone = np.flatnonzero(np.isin(keys >> level, np.flatnonzero(held == 1)))
                expected = [wanted[at] for at in keys[lone] >> level]
                assert raised[lone].tolist() == expected


def test_one_record_changes_scores_by_minus_one_to_three_on_its_path():
    rng = np.random.default_rng(2)
    for _ in range(60):
        counts = rng.integers(0, 4, 16)
        more = counts.copy()
        more[rng.integers(0, 16)] += 1
        before, after = (unevenness(one.tolist(), 2, 1) for one in (counts, more))
        assert -1 <= after - before <= 3


def test_huge_counts_do_not_overflow():
    keys, counts = np.arange(64), np.full(64, 2**62)
    counts[7] = 1
    raised = np.zeros(64, dtype=np.int64)
    _, scores = raise_scores(keys, counts, raised, 6)
    assert scores.tolist() == [MOST_COUNTED - 1]
    far = np.array([2**61, 2**61 + 2**40])
    _, scores = raise_scores(far, counts[:2], np.zeros(2, dtype=np.int64), 62)
    assert scores.tolist() == [3 * MOST_COUNTED]


def test_arrays_of_other_lengths_are_refused():
    with pytest.raises(InputError, match="as many"):
        raise_scores(np.arange(3), np.arange(2), np.zeros(3, dtype=np.int64), 2)

"""Totals spread over cells are those of the definition, whoever fills which piece."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from blowfish_fast.data import buckets
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.kernels.space import even_cells
from blowfish_fast.kernels.space.even_cells import spread_evenly
from tests.generated import example_count
from tests.reference import even_cells as definition

pytestmark = pytest.mark.kernel

EXAMPLES = 15 if config.DISABLE_JIT else example_count(80)
SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=30)


@settings(deadline=None, max_examples=EXAMPLES)
@given(SIZES, st.integers(0, 10**6), st.sampled_from([1, 2, 5]), st.integers(1, 50))
def test_equals_the_definition_to_the_last_bit(sizes, seed, threads, piece):
    edges = np.concatenate([[0], np.cumsum(sizes)])
    totals = np.random.default_rng(seed).normal(0, 1e3, len(sizes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(even_cells, "PIECE_CELLS", piece)
        cells = spread_evenly(totals, edges, threads=threads)
    expected = definition.spread_evenly(totals, edges)
    assert cells.tobytes() == expected.tobytes()


@pytest.mark.parametrize("order", [None, np.arange(90)[::-1]])
def test_few_and_many_cells_are_expanded_to_the_same_bits(order, monkeypatch):
    generator = np.random.default_rng(1)
    edges = np.unique(np.append(generator.integers(1, 90, 20), [0, 90]))
    totals = generator.normal(0, 50, edges.size - 1)
    expanded = [Buckets(edges, order).expand(totals)]
    monkeypatch.setattr(buckets, "MANY_CELLS", 90)
    monkeypatch.setattr(even_cells, "PIECE_CELLS", 16)
    for threads in (1, 3):
        monkeypatch.setattr(buckets, "threads_for", lambda _, count=threads: count)
        expanded.append(Buckets(edges, order).expand(totals))
    assert len({cells.tobytes() for cells in expanded}) == 1

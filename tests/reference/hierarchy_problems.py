"""Random shapes and variances of ordered hierarchies."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from blowfish_fast.kernels.tree.block_trees import trees_over_blocks

from .ordered_hierarchy import dense_rows


@st.composite
def problems(draw):
    sizes = draw(st.lists(st.integers(1, 8), min_size=1, max_size=5))
    edges = np.append(0, np.cumsum(sizes))
    fan_outs = np.full(len(sizes), draw(st.integers(2, 4)))
    trees = trees_over_blocks(edges, fan_outs)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    variances = rng.uniform(0.1, 5.0, trees.rows)
    exact = draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    variances[: len(sizes)][np.array(exact)] = 0.0
    return trees, dense_rows(edges, fan_outs), variances

"""The summed variance of all ranges or prefixes answered from noisy Haar rows.

Serves the predicted total error of Privelet: n cells have n (n + 1) / 2 ranges, and
this takes a few steps per node. Rows are those of `haar_transform`, along one axis; the
leaves are buckets of cells, uniform inside.

The cells before a cut cover more and more of a node as the cut moves through it. The
row of the node enters the prefix that ends there with half the difference of what is
covered of its children:

    cuts     |---- left child ----|---- right child ----|
    covered  0   ->    1/2        ->          1             of the node
    row      0   ->    1/2        ->          0             enters, 0 outside

and a range with the difference at its two ends. So sums and sums of squares over cuts
are enough: over all pairs of N + 1 cuts, squared differences add up to
(N + 1) (sum of squares) - (sum)^2.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .haar_transform import deepest_leaves

KINDS = ("all_ranges", "prefixes")


@kernel
def _total_over_cuts(
    variances: FloatArray, edges: IntArray, first: int, deepest: int, pairs: bool
) -> float:
    leaves = variances.size
    size = np.empty(2 * leaves)
    # Sums over the cuts from behind the first cell of a node to behind its last.
    covered = np.empty(2 * leaves)
    squared = np.empty(2 * leaves)
    cuts = edges[leaves] + 1.0
    for leaf in range(leaves):
        node = first + leaf if leaf < deepest else leaves + leaf - deepest
        width = float(edges[leaf + 1] - edges[leaf])
        size[node] = width
        covered[node] = 0.5 * (width + 1.0)
        squared[node] = (width + 1.0) * (2.0 * width + 1.0) / (6.0 * width)
    total = 0.0
    for node in range(leaves - 1, -1, -1):
        if node > 0:
            left, right = 2 * node, 2 * node + 1
            size[node] = size[left] + size[right]
            covered[node] = 0.5 * (covered[left] + size[right] + covered[right])
            squared[node] = 0.25 * (
                squared[left] + size[right] + 2.0 * covered[right] + squared[right]
            )
            entering = 0.5 * (covered[left] + size[right] - covered[right])
            squares = 0.25 * (
                squared[left] + size[right] - 2.0 * covered[right] + squared[right]
            )
        else:
            entering, squares = covered[1], squared[1]
        if pairs:
            squares = cuts * squares - entering * entering
        total += variances[node] * squares
    return total


def haar_total_variance(variances: FloatArray, kind: str, edges: IntArray) -> float:
    """Return the sum of the variances of all ranges, or of all prefixes, in O(leaves).

    Parameters
    ----------
    variances : (leaves,) float64
        Variance of each row; 0: exact.
    kind : {"all_ranges", "prefixes"}
        The queries: every range of cells, or every range from the first cell on.
    edges : (leaves + 1,) int64
        Cell edges of the leaves, rising from 0.

    Examples
    --------
    Two cells from rows of variance 4: each cell has (4 + 4) / 4, both together 4.

    >>> haar_total_variance(np.array([4.0, 4.0]), "all_ranges", np.array([0, 1, 2]))
    8.0
    """
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}; received {kind!r}")
    rows = np.ascontiguousarray(variances, dtype=np.float64)
    edges = np.ascontiguousarray(edges, dtype=np.int64)
    if rows.ndim != 1 or rows.size == 0 or edges.shape != (rows.size + 1,):
        raise InputError(
            f"n rows go with n + 1 edges; received arrays of shape {rows.shape} and "
            f"{edges.shape}"
        )
    if edges[0] != 0 or np.diff(edges).min() < 1:
        raise InputError("edges rise from 0 on, in whole numbers")
    first, deepest = deepest_leaves(rows.size)
    return float(_total_over_cuts(rows, edges, first, deepest, kind == "all_ranges"))

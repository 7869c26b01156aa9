"""Squared sensitivity: the largest weighted sum of squared changes along one edge.

Prices what is paid in rho. An edge that moves row i by m_i pays sum w_i m_i^2:

    exact        rows of 0 and 1, which an edge moves by 0 or 1 (as for L1); few edges
    a bound      else: 2 or 4 times the heaviest column, or the L1 price times the
                 largest move of one row, whichever is less
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.policies import ABSENT, Policy
from blowfish_fast.workloads import Linear

from .policy import sensitivity

LISTED_EDGES = 2**16
LISTED_ENTRIES = 2**24
EXACT = 2.0**52


def worst_squares(matrix: Any, weights: IntArray, policy: Policy) -> int:
    """Return the largest sum of weights times squared changes, or a bound above it.

    Lemma ZC4. `matrix` is sparse, (rows, cells) of whole numbers; weights are not
    negative; the policy is without constraints.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> from scipy import sparse
    >>> rows = sparse.csr_array(np.array([[3, 1, 0], [0, 1, 1]]))
    >>> worst_squares(rows, np.array([1, 1]), bf.policies.Full(bf.Domain(3)))
    10
    """
    kept = np.flatnonzero(weights)
    if not kept.size:
        return 0
    shared = reduce(math.gcd, weights[kept].tolist())
    small = (weights[kept] // shared).astype(np.float64)
    rows = matrix.tocsr()[kept].astype(np.float64)
    rows.eliminate_zeros()
    if not rows.nnz:
        return 0
    if _moves_by_one(rows):
        from scipy import sparse

        scaled = sparse.dia_array((small[None], [0]), shape=(small.size,) * 2) @ rows
        moved = sensitivity(policy, Linear(policy.domain, scaled))
        return int(shared) * math.ceil(float(moved))
    edges = policy.edges_up_to(LISTED_EDGES)
    mean = rows.nnz / rows.shape[1]
    if edges is not None and edges * (mean + 1) <= LISTED_ENTRIES:
        return int(shared) * _listed(rows, small, policy)
    return int(shared) * _bound(rows, small, policy)


def _moves_by_one(rows: Any) -> bool:
    """Return whether every row has coefficients 0 and 1, or 0 and -1, alone."""
    least, most = rows.min(axis=1).toarray(), rows.max(axis=1).toarray()
    return bool(((most - least) <= 1.0).all() and (np.abs(rows.data) <= 1.0).all())


def _listed(rows: Any, weights: FloatArray, policy: Policy) -> int:
    columns = rows.tocsc()
    worst = 0.0
    for edges in policy.edges():
        heads, tails = edges[:, 0], edges[:, 1]
        moved = _columns(columns, heads) - _columns(columns, tails)
        worst = max(worst, float((weights @ moved.multiply(moved)).max(initial=0.0)))
    return _whole(worst)


def _columns(columns: Any, cells: IntArray) -> Any:
    """Return the columns of cells; zeros for "absent"."""
    found = columns[:, np.where(cells == ABSENT, 0, cells)]
    from scipy import sparse

    present = (cells != ABSENT).astype(np.float64)
    return found @ sparse.dia_array((present[None], [0]), shape=(cells.size,) * 2)


def _bound(rows: Any, weights: FloatArray, policy: Policy) -> int:
    heaviest = float((weights @ rows.multiply(rows)).max(initial=0.0))
    if not policy.has_moves:
        return _whole(heaviest)
    # (a - b)^2 is at most a^2 + b^2 where both have one sign, else 2 a^2 + 2 b^2.
    one_sign = bool((rows.data >= 0).all() or (rows.data <= 0).all())
    by_columns = heaviest * (2.0 if one_sign else 4.0)
    least, most = rows.min(axis=1).toarray(), rows.max(axis=1).toarray()
    if policy.has_bottom:
        # Whoever is absent stands at 0.
        least, most = np.minimum(least, 0.0), np.maximum(most, 0.0)
    largest = float((most - least).max(initial=0.0))
    sums = float((weights @ abs(rows)).max(initial=0.0))
    return _whole(min(by_columns, largest * 2.0 * sums))


def _whole(value: float) -> int:
    """Return a whole number not below the sum that a float stands for."""
    return math.ceil(value if value < EXACT else value * (1.0 + 1e-9))

"""How good a partition is: its cost on known data, and the bound that is promised.

For research and tests: both read or assume true counts and belong to no release.
"""

from __future__ import annotations

import math
from typing import Any

from blowfish_fast import kernels
from blowfish_fast._support.validation import as_counts, as_epsilon
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError


def partition_cost(counts: Any, buckets: Buckets, *, epsilon: Any) -> float:
    """Return the cost of a partition (Definition 5 of the DAWA paper).

    The deviation of the cells from their bucket's mean, plus the mean absolute noise
    1/epsilon of each bucket.

    Examples
    --------
    >>> import numpy as np
    >>> partition_cost([5, 7, 1, 1], Buckets(np.array([0, 2, 4])), epsilon=1)
    4.0
    """
    exact = as_counts(counts, (buckets.cells,))
    along = exact if buckets.order is None else exact[buckets.order]
    return kernels.partition_cost(along, buckets.edges) + buckets.count / float(
        as_epsilon(epsilon)
    )


def cost_bound(cells: int, candidates: int, *, delta: float, epsilon: Any) -> float:
    """Bound how far a private partition's cost lies above the optimum (Theorem 1).

    With probability 1 - delta the excess is at most
    4 D n ln(candidates / delta) / epsilon, where D = 2 bounds the sensitivity of a
    bucket's cost and epsilon is the part spent on the partition.

    Examples
    --------
    >>> round(cost_bound(1024, 11 * 1024, delta=0.05, epsilon=0.5))
    201934
    """
    if cells < 1 or candidates < 1 or not 0 < delta < 1:
        raise InputError(
            "cells and candidates must be at least 1 and delta in (0, 1); received "
            f"{cells}, {candidates}, {delta}"
        )
    return 8.0 * cells * math.log(candidates / delta) / float(as_epsilon(epsilon))

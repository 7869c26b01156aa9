"""One public order of the cells of a domain, along which stretches are compact.

Serves every mechanism that works on a line and is asked about a grid: one attribute
keeps its own order, several are walked along a Hilbert curve.

    0 1 2 3 ...        1 2        cell at each position of the curve
                       0 3
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from blowfish_fast import kernels

from .buckets import Buckets
from .domain import Domain


def cell_order(domain: Domain) -> Buckets:
    """Return the cells of a domain in the order in which stretches are compact.

    The result is kept for the last few shapes. O(cells).
    """
    return _cell_order(domain.shape)


@lru_cache(maxsize=4)
def _cell_order(shape: tuple[int, ...]) -> Buckets:
    cells = int(np.prod(shape))
    if len(shape) == 1:
        return Buckets.single_cells(cells)
    return Buckets.single_cells(
        cells, kernels.hilbert_order(shape), curve=len(shape) == 2
    )

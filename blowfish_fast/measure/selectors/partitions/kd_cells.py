"""Buckets of a kd-tree over cells that are noisy already.

Plain functions, not selectors: they read published values and public facts only, so
they cost nothing and need no policy. `kernels.kd_gain` and `kernels.kd_split` build the
tree; what is decided here is when a box is uneven or crowded, given the noise in it.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.noise import laplace_mean_size, laplace_variance

Rule = Literal["gain", "or", "and", "uniformity"]

SIGNIFICANT = 2.0
"""Standard deviations of noise by which an uneven box must exceed what noise gives."""


class Boxes(NamedTuple):
    """Corners of boxes that cover a grid, half-open, shape (boxes, axes)."""

    lows: IntArray
    highs: IntArray


def default_depth(cells: int) -> int:
    """Return how deep a tree over so many cells may be: four times a balanced one."""
    return 4 * max(cells.bit_length(), 1)


def paying_boxes(
    cells: FloatArray,
    *,
    width: float,
    bucket_variance: float,
    price: float,
    caution: float,
    depth: int,
) -> Boxes:
    """Return boxes whose cuts gain more than the noise of another count.

    Parameters
    ----------
    cells : float64 of the domain's shape
        Noisy counts.
    width : float
        Scale of their noise; 0 for none.
    bucket_variance : float
        Variance of a fresh count.
    price : float
        Price of a box, in variances of a fresh count.
    caution, depth
        See `kernels.kd_gain.gain_boxes`.
    """
    variance = float(laplace_variance(width)) if width else 0.0
    return Boxes(
        *kernels.gain_boxes(
            cells,
            cell_variance=variance,
            price=price * bucket_variance,
            caution=caution,
            depth=depth,
        )
    )


def uniform_boxes(
    cells: FloatArray,
    *,
    width: float,
    mode: Literal["or", "and", "uniformity"],
    uniformity: float | None,
    count: float,
    depth: int,
) -> Boxes:
    """Return boxes cut at medians until they are uniform, or hold few records.

    Parameters
    ----------
    cells : float64 of the domain's shape
        Noisy counts.
    width : float
        Scale of their noise; 0 for none.
    mode : {"or", "and", "uniformity"}
        Which of the two thresholds must be passed.
    uniformity : float, optional
        A box is uneven if its cells deviate from their mean by this many times what
        noise alone gives; None: by two standard deviations more than noise gives.
    count : float
        A box is crowded if it holds this part of the noisy total.
    depth : int
        Most cuts above a box.
    """
    mean = laplace_mean_size(width)
    variance = float(laplace_variance(width)) if width else 0.0
    level, slack = mean, SIGNIFICANT * math.sqrt(max(variance - mean**2, 0.0))
    if uniformity is not None:
        level, slack = uniformity * mean, 0.0
    return Boxes(
        *kernels.median_boxes(
            cells,
            level=level,
            slack=slack,
            count=count * max(float(cells.sum()), 0.0),
            mode=mode,
            depth=depth,
        )
    )


def box_buckets(
    boxes: Boxes, shape: tuple[int, ...], parts: IntArray | None
) -> Buckets:
    """Return boxes as buckets, each within one connected part of the policy.

    The total of a part may be public, so no bucket reaches from one to another; those
    of one part stand together.

    Parameters
    ----------
    parts : (cells,) int64, optional
        Part of each cell; None when there is just one.
    """
    order, edges = kernels.box_order(boxes.lows, boxes.highs, shape)
    if parts is None:
        return Buckets(edges, order)
    box = np.empty(order.size, dtype=np.int64)
    box[order] = np.repeat(np.arange(edges.size - 1), np.diff(edges))
    keys = parts.astype(np.int64) * np.int64(edges.size - 1) + box
    return Buckets.from_labels(np.unique(keys, return_inverse=True)[1])

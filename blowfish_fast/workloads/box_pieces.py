"""Boxes as runs of buckets, along whatever order the buckets have."""

from __future__ import annotations

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain

from .base import Pieces


def rectangle_pieces(
    domain: Domain, lows: FloatArray, highs: FloatArray, buckets: Buckets
) -> Pieces:
    """Cut boxes into runs of positions along the buckets' order, then of buckets.

    Buckets that are boxes themselves are compared corner by corner. Otherwise, along a
    space-filling curve only the outline of a box is visited; along any other order each
    of its cells is.
    """
    if buckets.order is not None and not buckets.curve:
        boxes = kernels.bucket_boxes(buckets.order, buckets.edges, domain.shape)
        if boxes is not None:
            return Pieces(*kernels.boxes_to_pieces(lows, highs, boxes))

    order = buckets.position if buckets.order is None else buckets.order
    intervals = kernels.rectangle_intervals(
        order, buckets.position, domain.shape, lows, highs
    )
    if buckets.are_single_cells:
        return Pieces(*intervals)
    return Pieces(*kernels.intervals_to_pieces(*intervals, buckets.edges))

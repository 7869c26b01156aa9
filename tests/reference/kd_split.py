"""A kd-tree with cuts at medians, by plain recursion on slices."""

from __future__ import annotations

import math

import numpy as np


def median_cut(marginal):
    """Return after how many slabs half of what is positive is reached."""
    positive = np.maximum(marginal, 0.0)
    if positive.sum() <= 0:
        return len(marginal) // 2
    reached = 0.0
    for place in range(len(marginal) - 1):
        reached += positive[place]
        if 2 * reached >= positive.sum():
            return place + 1
    return len(marginal) - 1


def median_boxes(cells, *, level, slack, count, mode, depth):
    """Return the boxes as pairs of corners, in the order of the tree."""
    cells = np.asarray(cells, dtype=float)

    def below(low, high, cuts):
        box = cells[tuple(slice(*ends) for ends in zip(low, high, strict=True))]
        uneven = np.abs(box - box.mean()).sum() > level * box.size + slack * math.sqrt(
            box.size
        )
        crowded = box.sum() > count
        split = {
            "or": uneven or crowded,
            "and": uneven and crowded,
            "uniformity": uneven,
        }
        if box.size == 1 or cuts == depth or not split[mode]:
            return [(low, high)]
        axis = int(np.argmax(box.shape))
        others = tuple(other for other in range(box.ndim) if other != axis)
        border = low[axis] + median_cut(box.sum(axis=others))
        middle = (*high[:axis], border, *high[axis + 1 :])
        start = (*low[:axis], border, *low[axis + 1 :])
        return below(low, middle, cuts + 1) + below(start, high, cuts + 1)

    return below((0,) * cells.ndim, cells.shape, 0)

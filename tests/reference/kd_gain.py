"""A kd-tree whose cuts must pay, by plain recursion: every box down to single cells."""

from __future__ import annotations

import math

import numpy as np


def gain_boxes(cells, *, cell_variance, price, caution, depth):
    """Return the boxes as pairs of corners, in the order of the tree."""
    cells = np.asarray(cells, dtype=float)

    def cuts_of(box):
        for axis, length in enumerate(box.shape):
            step = max(length // 4, 1)
            others = tuple(other for other in range(box.ndim) if other != axis)
            running = np.cumsum(box.sum(axis=others))
            for place in range(step, length, step):
                part = place / length
                contrast = running[place - 1] - part * box.sum()
                reach = box.size * part * (1 - part)
                weight = length / cells.shape[axis]
                yield contrast**2 / reach, reach * weight, weight, axis, place

    def below(low, high, depth):
        box = cells[tuple(slice(*ends) for ends in zip(low, high, strict=True))]
        if box.size == 1 or depth == 0:
            return 0.0, [(low, high)]
        found = list(cuts_of(box))
        square, reach, _, axis, place = max(found, key=lambda one: one[0] * one[2])
        border = low[axis] + place
        middle = (*high[:axis], border, *high[axis + 1 :])
        start = (*low[:axis], border, *low[axis + 1 :])
        left, first = below(low, middle, depth - 1)
        right, second = below(start, high, depth - 1)
        noise = cell_variance * (1 + math.log(len(found)))
        gain = max(square - caution * noise, 0.0) * reach - price + left + right
        return (gain, first + second) if gain > 0 else (0.0, [(low, high)])

    return below((0,) * cells.ndim, cells.shape, depth)[1]

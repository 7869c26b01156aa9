"""Boxes cut into parts, by loops over parts and cells."""

from __future__ import annotations

from itertools import product

import numpy as np


def children(lows, highs, parts):
    """Return owner, low and high corner of every part, in C order."""
    found = []
    for box, (low, high, cut) in enumerate(zip(lows, highs, parts, strict=True)):
        borders = [
            [
                int(start - (-place * (end - start) // count))
                for place in range(count + 1)
            ]
            for start, end, count in zip(
                low.tolist(), high.tolist(), cut.tolist(), strict=True
            )
        ]
        for place in product(*(range(count) for count in cut.tolist())):
            corner = [one[at] for one, at in zip(borders, place, strict=True)]
            end = [one[at + 1] for one, at in zip(borders, place, strict=True)]
            found.append((box, corner, end))
    return tuple(zip(*found, strict=True))


def cells(lows, highs, shape):
    """Return where boxes begin, and the cells in C order, box by box."""
    edges, order = [0], []
    for low, high in zip(lows.tolist(), highs.tolist(), strict=True):
        for place in product(*map(range, low, high)):
            order.append(int(np.ravel_multi_index(place, shape)))
        edges.append(len(order))
    return edges, order

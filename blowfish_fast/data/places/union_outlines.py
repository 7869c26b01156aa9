"""Districts that are unions of smaller ones: outlines without the borders inside.

Rings are walked with the inside on the left, so that a border between two parts of one
district is walked twice, once in each direction, and vanishes:

    +--<--+--<--+        +--<-----<--+
    |  a  |  b  |        |           |     what is left at a corner is followed by the
    v     ^v    ^   ->   v   a + b   ^     sharpest turn to the left, and a corner that
    |     ||    |        |           |     is met again ends a ring of its own: rings
    +-->--+-->--+        +-->----->--+     touch, and never cross
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray

from .cell_parts import turned_ring
from .polygon_files import Polygon


def merged_shapes(
    shapes: Sequence[list[Polygon]], labels: IntArray, count: int, step: float
) -> list[list[Polygon]]:
    """Return the outlines of unions of districts.

    Parameters
    ----------
    shapes : sequence of lists of polygons
        The polygons of the smallest districts. Where two of them meet, both have the
        corners, as `Districts` makes sure of.
    labels : ndarray of int64, shape (districts,)
        The number of the union that each lies in, -1 for none.
    count : int
        How many unions there are.
    step : float
        Corners that are the same when rounded to it are one.

    Returns
    -------
    list of lists of polygons
        The polygons of each union: a ring against the clock, then its holes.
    """
    rings, owners = [], []
    for polygons, label in zip(shapes, labels.tolist(), strict=True):
        if label < 0:
            continue
        for polygon in polygons:
            rings += [
                turned_ring(ring, outer=not at) for at, ring in enumerate(polygon)
            ]
            owners += [label] * len(polygon)
    merged: list[list[Polygon]] = [[] for _ in range(count)]
    if not rings:
        return merged
    starts = np.concatenate([ring[:-1] for ring in rings])
    ends = np.concatenate([ring[1:] for ring in rings])
    owner = np.repeat(owners, [len(ring) - 1 for ring in rings])
    whole = np.rint(np.concatenate([starts, ends]) / step).astype(np.int64)
    corners, first, numbers = np.unique(
        whole, axis=0, return_index=True, return_inverse=True
    )
    tails, heads = numbers.reshape(2, -1)
    places = np.concatenate([starts, ends])[first]
    left = _edges_left(owner, tails, heads, len(corners))
    for label in np.unique(owner[left]).tolist():
        own = left[owner[left] == label]
        loops = _loops(tails[own].tolist(), heads[own].tolist(), places)
        merged[label] = _polygons([places[[*loop, loop[0]]] for loop in loops])
    return merged


def _edges_left(
    owner: IntArray, tails: IntArray, heads: IntArray, corners: int
) -> IntArray:
    """Return the edges of each union that it does not also walk the other way."""
    ways = np.concatenate([tails * corners + heads, heads * corners + tails])
    listed, numbers = np.unique(ways, return_inverse=True)
    forth, back = owner * listed.size + numbers.reshape(2, -1)
    # An edge that was rounded to a point is its own way back.
    return np.flatnonzero(~np.isin(forth, back))


def _loops(tails: list[int], heads: list[int], places: FloatArray) -> list[list[int]]:
    """Follow edges, inside on the left, until none is left; corners of each ring."""
    onwards: dict[int, list[int]] = defaultdict(list)
    for tail, head in zip(tails, heads, strict=True):
        onwards[tail].append(head)
    loops = []
    for begin in tails:
        path, place_in_path = [begin], {begin: 0}
        while onwards[path[-1]]:
            before = path[-2] if len(path) > 1 else None
            head = _sharpest(onwards[path[-1]], path[-1], before, places)
            onwards[path[-1]].remove(head)
            at = place_in_path.setdefault(head, len(path))
            if at == len(path):
                path.append(head)
                continue
            # A corner that is met again closes a ring.
            loops.append(path[at:])
            for corner in path[at + 1 :]:
                del place_in_path[corner]
            del path[at + 1 :]
    return loops


def _sharpest(
    heads: list[int], corner: int, before: int | None, places: FloatArray
) -> int:
    """Return where the sharpest turn to the left leads, coming from a corner."""
    if len(heads) == 1 or before is None:
        return heads[0]
    back = math.atan2(*(places[before] - places[corner])[::-1])

    def turned(head: int) -> float:
        angle = math.atan2(*(places[head] - places[corner])[::-1])
        return (back - angle) % (2.0 * math.pi)

    return min(heads, key=turned)


def _polygons(rings: list[FloatArray]) -> list[Polygon]:
    """Put rings against the clock first, and each hole into the least around it."""
    areas = [_area(ring) for ring in rings]
    outer = [at for at, area in enumerate(areas) if area > 0.0]
    outer.sort(key=lambda at: areas[at])
    polygons: dict[int, Polygon] = {at: [rings[at]] for at in outer}
    for at, area in enumerate(areas):
        if area >= 0.0:
            continue
        middle = (rings[at][0] + rings[at][1]) / 2.0
        around = [shell for shell in outer if areas[shell] > -area]
        holding = [shell for shell in around if _holds(rings[shell], middle)]
        if holding:
            polygons[holding[0]].append(rings[at])
    return list(polygons.values())


def _area(ring: FloatArray) -> float:
    x, y = (ring - ring[0]).T
    return float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) / 2.0


def _holds(ring: FloatArray, point: FloatArray) -> bool:
    """Return whether a point lies inside: a ray from it crosses an odd number."""
    (x, y), (ahead_x, ahead_y) = ring[:-1].T, ring[1:].T
    high = (y > point[1]) != (ahead_y > point[1])
    rise = np.where(ahead_y == y, 1.0, ahead_y - y)
    right = x + (point[1] - y) * (ahead_x - x) / rise > point[0]
    return bool(np.count_nonzero(high & right) % 2)

"""Space-filling walks by recursion over lists of coordinates."""

from __future__ import annotations

import numpy as np


def even_half(cells):
    """Return the even number nearest to half, the larger one if two are as near."""
    return min(range(0, cells + 1, 2), key=lambda even: (abs(2 * even - cells), -even))


def moved(walk, along, across):
    return [(i + along, j + across) for i, j in walk]


def turned(walk):
    return [(j, i) for i, j in walk]


def block(length, width):
    """Return the walk from (0, 0) to (length - 1, 0) through a block."""
    if width == 1:
        return [(i, 0) for i in range(length)]
    if width == 2:
        pairs = range(0, length, 2)
        return [(i + a, b) for i in pairs for a, b in ((0, 0), (0, 1), (1, 1), (1, 0))]
    if 2 * length > 3 * width:
        cut = even_half(length)
        return block(cut, width) + moved(block(length - cut, width), cut, 0)
    cut, half = even_half(width), length // 2
    up = turned(block(cut, half))
    forth = moved(block(length, width - cut), 0, cut)
    down = [(length - 1 - i, cut - 1 - j) for i, j in turned(block(cut, length - half))]
    return up + forth + down


def to_opposite_corner(length, width):
    """Return the walk from (0, 0) to (length - 1, width - 1); odd times even."""
    if length == 1:
        return [(0, j) for j in range(width)]
    if length > width:
        cut = even_half(length)
        rest = to_opposite_corner(length - cut, width)
        return block(cut, width) + moved(rest, cut, 0)
    cut = even_half(width)
    rest = to_opposite_corner(length, width - cut)
    return turned(block(cut, length)) + moved(rest, 0, cut)


def plane_order(rows, columns):
    """Return the cells of a plane in the order of the walk."""
    length, width = max(rows, columns), min(rows, columns)
    if length % 2 == 0 or width % 2 == 1:
        walk = block(length, width)
    elif 2 * length <= 3 * width:
        walk = turned(block(width, length))
    else:
        walk = to_opposite_corner(length, width)
    if rows < columns:
        walk = turned(walk)
    return np.array([row * columns + column for row, column in walk])


def hilbert_point(step, side):
    """Return column and row of a step of Hilbert's curve, by the quadrants it lies in.

    The textbook conversion, from the smallest quadrant to the largest.
    """
    x = y = 0
    size = 1
    while size < side:
        right = step // 2 % 2
        up = (step ^ right) % 2
        if not up:
            if right:
                x, y = size - 1 - x, size - 1 - y
            x, y = y, x
        x, y = x + size * right, y + size * up
        step //= 4
        size *= 2
    return x, y


def symmetries(points, side):
    """Yield the eight rotations and reflections of a walk over a square."""
    for x, y in (points.T, points.T[::-1]):
        for mirror_x in (False, True):
            for mirror_y in (False, True):
                yield np.stack(
                    [side - 1 - x if mirror_x else x, side - 1 - y if mirror_y else y],
                    axis=1,
                )


def parts_stay_together(order, axes, levels):
    """Tell whether every aligned part of a cube is visited without interruption."""
    coordinates = np.stack(np.unravel_index(order, (2**levels,) * axes))
    for level in range(1, levels + 1):
        parts = (coordinates >> level).T.reshape(-1, 2 ** (axes * level), axes)
        if (parts != parts[:, :1]).any():
            return False
    return True

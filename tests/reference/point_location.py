"""Points in districts, edge by edge in Python's own integers."""

from __future__ import annotations

from fractions import Fraction


def holders(x, y, edges, owners):
    """Return the districts whose edges the ray to the right crosses an odd number."""
    odd = set()
    for (x1, y1, x2, y2), owner in zip(edges, owners, strict=True):
        if y1 > y2:
            x1, y1, x2, y2 = x2, y2, x1, y1
        if y1 <= y < y2 and (x - x1) * (y2 - y1) < (y - y1) * (x2 - x1):
            odd ^= {owner}
    return odd


def squared_distance(x, y, stretch, edge):
    """Return the squared distance of a point from an edge, as a fraction."""
    x1, y1, x2, y2 = map(Fraction, edge)
    stretch = Fraction(stretch)
    ax, ay = (x1 - x) * stretch, y1 - y
    along = ((x2 - x1) * stretch, y2 - y1)
    foot = -(ax * along[0] + ay * along[1])
    part = min(max(foot / (along[0] ** 2 + along[1] ** 2), 0), 1)
    return (ax + part * along[0]) ** 2 + (ay + part * along[1]) ** 2

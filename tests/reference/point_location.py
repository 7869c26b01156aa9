"""Points in districts, edge by edge in Python's own integers."""

from __future__ import annotations


def holders(x, y, edges, owners):
    """Return the districts whose edges the ray to the right crosses an odd number."""
    odd = set()
    for (x1, y1, x2, y2), owner in zip(edges, owners, strict=True):
        if y1 > y2:
            x1, y1, x2, y2 = x2, y2, x1, y1
        if y1 <= y < y2 and (x - x1) * (y2 - y1) < (y - y1) * (x2 - x1):
            odd ^= {owner}
    return odd

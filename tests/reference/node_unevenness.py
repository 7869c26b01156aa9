"""How uneven a node of a tree is, from the definition."""

from __future__ import annotations

from collections.abc import Sequence


def pinball_cost(totals: Sequence[int]) -> int:
    """Return the least cost of one height for all: 3 a record above it, 1 below."""
    return min(
        sum(3 * max(total - one, 0) + max(one - total, 0) for total in totals)
        for one in totals
    )


def unevenness(counts: Sequence[int], resolution: int, bits: int) -> int:
    """Return the largest cost of a node of 2^h cells and of all nodes below it."""
    cells = len(counts)
    if cells == 1:
        return 0
    width = max(cells >> resolution, 1)
    own = pinball_cost([sum(counts[at : at + width]) for at in range(0, cells, width)])
    part = max(cells >> bits, 1)
    parts = [counts[at : at + part] for at in range(0, cells, part)]
    return max(own, *(unevenness(one, resolution, bits) for one in parts))

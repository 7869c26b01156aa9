"""The largest sum of a rectangle, from the definition."""

from __future__ import annotations

import itertools


def largest_rectangle_sum(cells):
    rows, columns = cells.shape
    spans = [
        list(itertools.combinations(range(side + 1), 2)) for side in (rows, columns)
    ]
    return max(
        abs(int(cells[top:bottom, left:right].sum()))
        for (top, bottom), (left, right) in itertools.product(*spans)
    )

"""Pinball cost of dyadic rectangles, one rectangle at a time."""

from __future__ import annotations

from .aligned_costs import pinball_cost


def rectangle_costs(counts, numerator, denominator):
    """Return, by levels, the cost of every rectangle that has a cell."""
    rows, columns = counts.shape
    return [
        [
            [
                [
                    pinball_cost(
                        counts[top : top + tall, left : left + wide].ravel().tolist(),
                        numerator,
                        denominator,
                    )
                    for left in range(0, columns, wide)
                ]
                for top in range(0, rows, tall)
            ]
            for wide in powers(columns)
        ]
        for tall in powers(rows)
    ]


def powers(side):
    """Return 1, 2, 4 .. up to the first that is not below `side`."""
    found = [1]
    while found[-1] < side:
        found.append(2 * found[-1])
    return found

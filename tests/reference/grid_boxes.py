"""Boxes written out as arrays."""

from __future__ import annotations

import numpy as np


def written_out(pointers, lows, highs, values, shape):
    """Return what the boxes of each query add up to, shape (queries, *shape)."""
    tables = np.zeros((len(pointers) - 1, *shape))
    for query in range(len(pointers) - 1):
        for box in range(pointers[query], pointers[query + 1]):
            inside = tuple(map(slice, lows[box], highs[box]))
            tables[(query, *inside)] += values[box]
    return tables


def runs_of(tables):
    """Return the queries of shape (queries, *shape) as runs of equal value."""
    pointers, starts, ends, values = [0], [], [], []
    for table in tables:
        flat = table.reshape(-1)
        begin = 0
        for cell in range(1, flat.size + 1):
            if cell == flat.size or flat[cell] != flat[begin]:
                if flat[begin] != 0:
                    starts.append(begin)
                    ends.append(cell)
                    values.append(flat[begin])
                begin = cell
        pointers.append(len(starts))
    whole = [np.array(one, dtype=np.int64) for one in (pointers, starts, ends)]
    return (*whole, np.array(values, dtype=np.float64))

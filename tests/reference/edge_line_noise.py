"""Blocks of edges along the lines of a grid, one edge at a time."""

from __future__ import annotations

import numpy as np


def lines_of(grid, across):
    """Return what a query takes from every edge that steps along an axis, by line."""
    return np.diff(-grid, axis=across) if across == 0 else np.diff(-grid, axis=1).T


def line_energies(grid, across):
    """Return, per level, the energies and largest values of sums and differences."""
    lines = lines_of(grid, across)
    length = grid.shape[1 - across]
    padded = 1
    while padded < length:
        padded *= 2
    found = []
    for level in range(padded.bit_length()):
        size = 2**level
        sums, turns = [0.0], [0.0]
        for line in lines:
            full = np.zeros(padded)
            full[:length] = line
            for start in range(0, padded, size):
                block = full[start : start + size]
                sums.append(block.sum() / size)
                if size > 1:
                    first, second = block[: size // 2], block[size // 2 :]
                    turns.append((first.sum() - second.sum()) / size)
        found.append(
            (
                np.square(sums).sum(),
                np.square(turns).sum(),
                np.abs(sums).max(),
                np.abs(turns).max(),
            )
        )
    return np.array(found).T

"""Cells that follow neighbouring buckets, by scipy's monotone cubic curve."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import PchipInterpolator

FEWEST = 4
PRIOR = 0.1


def curve(totals, edges):
    """Return running totals at every place by a monotone cubic through the edges."""
    running = np.concatenate([[0.0], np.cumsum(totals)])
    return PchipInterpolator(edges, running)(np.arange(edges[-1] + 1))


def joined_halves(totals, edges):
    """Return totals and edges with halves joined, and the first half of each pair."""
    new_totals, new_edges, pairs = [], [0], []
    bucket = 0
    while bucket < len(totals):
        length = edges[bucket + 1] - edges[bucket]
        last = bucket
        if bucket + 1 < len(totals):
            next_length = edges[bucket + 2] - edges[bucket + 1]
            if next_length == length and edges[bucket] % (2 * length) == 0:
                last = bucket + 1
                pairs.append(bucket)
        new_totals.append(sum(totals[bucket : last + 1]))
        new_edges.append(edges[last + 1])
        bucket = last + 1
    return np.array(new_totals), np.array(new_edges), pairs


def part_that_came_true(totals, edges, width):
    """Return the regression of differences between halves on those foretold."""
    known = PRIOR * width * edges[-1]
    came = foretold = known
    new_totals, new_edges, pairs = joined_halves(totals, edges)
    if len(new_totals) > 1:
        running = curve(new_totals, new_edges)
        for pair in pairs:
            begin, middle, end = edges[pair : pair + 3]
            total = totals[pair] + totals[pair + 1]
            if end - begin < FEWEST or total <= 0:
                continue
            told = 2 * running[middle] - running[begin] - running[end]
            weight = (end - begin) / (total + width)
            came += weight * told * (totals[pair] - totals[pair + 1])
            foretold += weight * told * told
    return float(np.clip(came / foretold, 0, 1)) if foretold > 0 else 1.0


def smooth_buckets(totals, edges, width, most_uneven=np.inf):
    """Return the cells, bucket by bucket."""
    sizes = np.diff(edges)
    even = np.repeat(np.asarray(totals) / sizes, sizes)
    if len(totals) == 1:
        return even
    part = part_that_came_true(totals, edges, width)
    moves = part * (np.diff(curve(totals, edges)) - even)
    uneven = np.add.reduceat(np.abs(moves), edges[:-1])
    kept = np.minimum(1, most_uneven / np.maximum(uneven, 1e-300))
    kept[sizes < FEWEST] = 0
    return even + np.repeat(kept, sizes) * moves

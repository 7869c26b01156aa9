"""Ranges and values along a line, pair by pair."""

from __future__ import annotations


def pairs_within(far):
    return [(u, v) for u in range(len(far)) for v in range(u + 1, far[u] + 1)]


def separated(starts, ends, u, v):
    """Return how many ranges hold exactly one of two cells."""
    ranges = list(zip(starts, ends, strict=True))
    return sum((a <= u < b) != (a <= v < b) for a, b in ranges)


def largest_separation(starts, ends, pairs):
    return max((separated(starts, ends, u, v) for u, v in pairs), default=0)


def coverage(starts, ends, cells):
    ranges = list(zip(starts, ends, strict=True))
    return [sum(a <= cell < b for a, b in ranges) for cell in range(cells)]


def largest_change(lines, pairs):
    changes = (abs(line[u] - line[v]) for line in lines for u, v in pairs)
    return max(changes, default=0.0)

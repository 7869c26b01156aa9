r"""How many edges queries cut, in closed form, where edges join all cells of a band.

    i . . j . far[i]      every cell i is joined to all cells up to far[i], which never
                          decreases: lines, thresholds, blocks, any two values

A query sees the draws on the edges that it cuts, one end inside and one outside. An
edge of length d is cut by d of all prefixes and by d (n + 1 - d) of all ranges of n
cells; an edge from cell i to "absent" by n - i prefixes and (i + 1) (n - i) ranges. A
range cuts the degrees of its cells, added up, less twice the edges inside it.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Form, Fractions, Implicit


def cut_edges(policy: Policy, form: Form) -> float | None:
    """Return how many edges are cut, summed over all queries of single cells.

    None without a closed form: other edges, weighted queries, or buckets.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> from blowfish_fast.data.buckets import Buckets
    >>> line = bf.Domain(4)
    >>> asked = bf.workloads.Prefixes(line).form(Buckets.single_cells(4))
    >>> cut_edges(bf.policies.Threshold(line, theta=2), asked)
    7.0
    """
    cells = policy.domain.size
    far = _band(policy)
    if far is None:
        return None
    at = np.arange(cells, dtype=np.float64)
    length = far - at
    absent = policy.bottom_cells().astype(np.float64)
    if isinstance(form, Implicit):
        if form.edges.size != cells + 1 or form.edges[-1] != cells:
            return None
        return _cut_by_all(form.kind, at, length, absent)
    whole = isinstance(form, Fractions) and bool(
        (form.first_fraction == 1.0).all() and (form.last_fraction == 1.0).all()
    )
    if not whole or not isinstance(form, Fractions):
        return None
    return _cut_by_ranges(form.first, form.last + 1, far, length, absent)


def is_forest(policy: Policy) -> bool:
    """Return whether no edges close a circle, so that a spanning tree keeps them all.

    True only for policies that `cut_edges` knows.
    """
    if not policy.has_moves:
        return True
    far = None if policy.has_bottom else _band(policy)
    return far is not None and bool((far - np.arange(far.size) <= 1).all())


def _band(policy: Policy) -> IntArray | None:
    cells = policy.domain.size
    if not policy.has_moves:
        return np.arange(cells)
    band = policy.bandwidth() if policy.domain.ndim == 1 else None
    return band.far if band is not None and band.all_between else None


def _cut_by_all(
    kind: str, at: FloatArray, length: FloatArray, absent: FloatArray
) -> float:
    cells = at.size
    # Sums over the edges that begin at a cell, of lengths 1 .. length.
    lengths = length * (length + 1.0) / 2.0
    if kind == "identity":
        return float(2.0 * length.sum() + absent.sum())
    if kind == "total":
        return float(absent.sum())
    if kind == "prefixes":
        return float(lengths.sum() + ((cells - at) * absent).sum())
    squares = lengths * (2.0 * length + 1.0) / 3.0
    moves = (cells + 1.0) * lengths - squares
    return float(moves.sum() + ((at + 1.0) * (cells - at) * absent).sum())


def _cut_by_ranges(
    starts: IntArray,
    ends: IntArray,
    far: IntArray,
    length: FloatArray,
    absent: FloatArray,
) -> float:
    before = np.concatenate([[0.0], np.cumsum(length)])
    # Edges that come from the left: those that begin earlier and reach the cell.
    cells = np.arange(far.size)
    back = cells - np.searchsorted(far, cells)
    degrees = np.concatenate([[0.0], np.cumsum(length + np.maximum(back, 0) + absent)])
    # From this cell on, edges would reach beyond the last cell of the range.
    turn = np.maximum(starts, np.searchsorted(far, ends))
    turn = np.minimum(turn, ends)
    left = (ends - turn).astype(np.float64)
    inside = before[turn] - before[starts] + left * (left - 1.0) / 2.0
    return float((degrees[ends] - degrees[starts] - 2.0 * inside).sum())

"""What queries see of noise that lies on the edges of a graph.

A draw on edge (u, v) enters a query with the difference of its coefficients at u and v.
Listed queries are followed cell by cell; those of a whole kind have closed forms.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import SizeError
from blowfish_fast.measure.linear_strategy import LinearStrategy, StrategyNoise
from blowfish_fast.measure.noise import Spread
from blowfish_fast.policies import ABSENT, Policy
from blowfish_fast.workloads import Form, Fractions, Implicit, Pieces
from blowfish_fast.workloads.base import as_pieces, covers_whole

MOST_COVERED = 2**30
"""Most cells, summed over queries, that are followed one by one."""


class EdgeDraws(LinearStrategy):
    """Draws on edges: each is added to the cell `heads` and taken from `tails`."""

    cells: int
    heads: IntArray
    tails: IntArray

    def _spread(self, form: Fractions | Pieces, law: StrategyNoise) -> Spread:
        """Return the law of each query's noise: one coefficient per edge it cuts."""
        draws = law.scales.variances, law.scales.widths
        return cut_spread(form, self.cells, self.heads, self.tails, *draws)

    def _implicit_variance(self, form: Implicit, law: StrategyNoise) -> float:
        variances = law.scales.variances
        return cut_variance(form, self.cells, self.heads, self.tails, variances)


def ends_of_edges(policy: Policy) -> tuple[IntArray, IntArray]:
    """Return the two ends of every edge, "absent" second."""
    chunks = list(policy.edges())
    edges = np.concatenate(chunks) if chunks else np.empty((0, 2), np.int64)
    first = edges[:, 0] == ABSENT
    heads = np.where(first, edges[:, 1], edges[:, 0])
    tails = np.where(first, ABSENT, edges[:, 1])
    return heads.astype(np.int64), tails.astype(np.int64)


def cut_spread(
    form: Fractions | Pieces,
    cells: int,
    heads: IntArray,
    tails: IntArray,
    variances: FloatArray,
    widths: FloatArray,
) -> Spread:
    """Return the law of each query's noise, where draws lie on edges.

    Parameters
    ----------
    form : Fractions or Pieces
        The queries over the cells.
    cells : int
        Number of cells.
    heads : ndarray of int64, shape (edges,)
        The cell that gets the draw of each edge.
    tails : ndarray of int64, shape (edges,)
        The cell that it is taken from; -1 is "absent".
    variances : ndarray of float64, shape (edges,)
        Variance of each draw.
    widths : ndarray of float64, shape (edges,)
        Scale of each draw.

    Returns
    -------
    Spread
        What is known of the noise in each answer.
    """
    least = float(widths.min(where=widths > 0, initial=np.inf))
    draws = heads, tails, variances, widths
    drawn = (tails != ABSENT) | (variances > 0.0)
    if not drawn.all():
        draws = tuple(array[drawn] for array in draws)
    runs = as_runs(form, kernels.longest_edge(*draws[:2], cells))
    moments = kernels.cut_variances(*runs, *draws, cells)
    return Spread(*moments)._replace(least=least if least < np.inf else 0.0)


def cut_variance(
    form: Form,
    cells: int,
    heads: IntArray,
    tails: IntArray,
    variances: FloatArray,
) -> float:
    """Return the variance summed over all queries, in closed form if implicit.

    Parameters
    ----------
    form : Form
        The queries over the cells.
    cells : int
        Number of cells.
    heads : ndarray of int64, shape (edges,)
        The cell that gets the draw of each edge.
    tails : ndarray of int64, shape (edges,)
        The cell that it is taken from; -1 is "absent".
    variances : ndarray of float64, shape (edges,)
        Variance of each draw.

    Returns
    -------
    float
        The sum.
    """
    if not isinstance(form, Implicit):
        return float(
            cut_spread(form, cells, heads, tails, variances, variances).variance.sum()
        )
    return float(_edge_energies(form, heads, tails) @ variances)


def _edge_energies(form: Implicit, heads: IntArray, tails: IntArray) -> FloatArray:
    """Return, for each edge, the squares of what all queries see of it, summed."""
    sizes = np.diff(form.edges).astype(np.float64)
    gone = tails == ABSENT
    if form.kind == "identity":
        # Each of m cells is 1/m of its bucket: m / m^2 in all.
        shares = 1.0 / sizes
        both: FloatArray = shares[heads] + np.where(gone, 0.0, shares[tails])
        return both
    if form.kind == "total":
        return np.where(gone, 1.0, 0.0)
    first = np.where(gone, heads, np.minimum(heads, tails))
    last = np.where(gone, sizes.size, np.maximum(heads, tails))
    rise = sizes[first]
    # "absent" comes after all cells, and nothing falls there.
    fall = np.append(sizes, 1.0)[last]
    level = (form.edges[last] - form.edges[first + 1]).astype(np.float64)
    # Sums over t = 1 .. m of (t/m)^2, and over t = 0 .. m - 1.
    squares: FloatArray = (
        (rise + 1.0) * (2.0 * rise + 1.0) / (6.0 * rise)
        + level
        + (fall - 1.0) * (2.0 * fall - 1.0) / (6.0 * fall)
    )
    if form.kind == "prefixes":
        return squares
    sums = 0.5 * (rise + 1.0) + level + 0.5 * (fall - 1.0)
    # Over all pairs of cuts: cuts * (sum of squares) - (sum)^2.
    ranges: FloatArray = (float(form.edges[-1]) + 1.0) * squares - sums**2
    return ranges


def as_runs(form: Fractions | Pieces, reach: int = MOST_COVERED) -> Pieces:
    """Write queries as runs of cells with one value each, none of them 0.

    Parameters
    ----------
    form : Fractions or Pieces
        The queries over the cells.
    reach : int, default MOST_COVERED
        How far an edge leads: only cells so near to an end of their run are followed.

    Returns
    -------
    Pieces
        The runs.

    Raises
    ------
    SizeError
        If too many cells would be followed.
    """
    pieces = as_pieces(form)
    rows = np.diff(pieces.pointers)
    covered = int(np.minimum(pieces.ends - pieces.starts, 2 * reach).sum())
    if covered > MOST_COVERED:
        raise SizeError(
            f"these queries cover {covered:,} cells in all; at most 2^30 = "
            f"{MOST_COVERED:,} are followed along the edges of a policy. Ask fewer "
            "queries at a time"
        )
    if pieces.values.all():
        return pieces
    some = pieces.values != 0.0
    query = np.repeat(np.arange(rows.size), rows)[some]
    pieces_upto = np.cumsum(np.bincount(query, minlength=rows.size))
    return Pieces(
        np.append(0, pieces_upto),
        pieces.starts[some],
        pieces.ends[some],
        pieces.values[some],
    )


def cut_edges(policy: Policy, form: Form) -> float | None:
    """Return how many edges are cut, summed over all queries of single cells.

    Parameters
    ----------
    policy : Policy
        The policy whose edges carry the noise.
    form : Form
        The queries over the cells.

    Returns
    -------
    float or None
        The number; None without a closed form: other edges, weighted queries, or
        buckets.
    """
    if not isinstance(form, Implicit):
        each = cuts_by_query(policy, form)
        return None if each is None else float(each.sum())
    cells = policy.domain.size
    far = _band(policy)
    if far is None or form.edges.size != cells + 1 or form.edges[-1] != cells:
        return None
    at = np.arange(cells, dtype=np.float64)
    absent = policy.bottom_cells().astype(np.float64)
    return _cut_by_all(form.kind, at, far - at, absent)


def cuts_by_query(policy: Policy, form: Fractions | Pieces) -> FloatArray | None:
    """Return how many edges each range of cells cuts.

    Parameters
    ----------
    policy : Policy
        The policy whose edges carry the noise.
    form : Fractions or Pieces
        The queries over the cells.

    Returns
    -------
    ndarray of float64 or None
        The numbers; None without a closed form.
    """
    far = _band(policy)
    if far is None or not isinstance(form, Fractions) or not covers_whole(form):
        return None
    length = far - np.arange(far.size, dtype=np.float64)
    absent = policy.bottom_cells().astype(np.float64)
    return _cut_by_ranges(form.first, form.last + 1, far, length, absent)


def is_forest(policy: Policy) -> bool:
    """Return whether a band, which `cut_edges` knows, has no circle."""
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
) -> FloatArray:
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
    cut: FloatArray = degrees[ends] - degrees[starts] - 2.0 * inside
    return cut

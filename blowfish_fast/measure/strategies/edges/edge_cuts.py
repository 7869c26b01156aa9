r"""What queries see of noise that lies on the edges of a graph.

A draw on edge (u, v) enters a query with the difference of its coefficients at u and v.
Queries that are listed are followed cell by cell (``kernels.cut_variance``); queries of
a whole kind have closed forms:

    cuts between cells    0 . . . . . . . N      part of bucket u before cut t:
    bucket u                  /~~~~~~~~~         0, then rising evenly, then 1
    bucket v                        /~~~
    difference                /~~\___             what prefix t sees of edge (u, v)

A range between two cuts sees the difference of two such values.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import SizeError
from blowfish_fast.measure.noise import Spread
from blowfish_fast.policies import ABSENT, Policy
from blowfish_fast.workloads import Form, Fractions, Implicit, Pieces

MOST_COVERED = 2**30
"""Most cells, summed over queries, that are followed one by one."""


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
    """Return the law of each query's noise, exactly.

    Each draw, of its own variance and width, is added to the cell `heads` and taken
    from the cell `tails`, where -1 is "absent".
    """
    pieces = as_runs(form)
    least = float(widths.min(where=widths > 0, initial=np.inf))
    moments = kernels.cut_variances(*pieces, heads, tails, variances, widths, cells)
    return Spread(*moments)._replace(least=least if least < np.inf else 0.0)


def cut_variance(
    form: Form,
    cells: int,
    heads: IntArray,
    tails: IntArray,
    variances: FloatArray,
) -> float:
    """Return the variance summed over all queries, in closed form if implicit."""
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


def as_runs(form: Fractions | Pieces) -> Pieces:
    """Write queries as runs of cells with one value each, none of them 0."""
    if isinstance(form, Pieces):
        pieces, rows = form, np.diff(form.pointers)
    else:
        one = form.first == form.last
        queries = form.first.size
        between = form.last > form.first + 1
        kept = np.stack([np.full(queries, True), between, ~one], axis=1)
        starts = np.stack([form.first, form.first + 1, form.last], axis=1)[kept]
        ends = np.stack([form.first + 1, form.last, form.last + 1], axis=1)[kept]
        values = np.stack(
            [form.first_fraction, np.ones(queries), form.last_fraction], axis=1
        )[kept]
        rows = kept.sum(axis=1)
        pieces = Pieces(_pointers(rows), starts, ends, values)
    covered = int((pieces.ends - pieces.starts).sum())
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
    return Pieces(
        _pointers(np.bincount(query, minlength=rows.size)),
        pieces.starts[some],
        pieces.ends[some],
        pieces.values[some],
    )


def _pointers(rows: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)

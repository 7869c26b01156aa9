"""Cut variance: the noise on the edges of a graph that reaches each query.

Serves strategies that put noise on policy edges. The draw of edge (u, v) enters a query
with the difference of its coefficients at u and at v, so a set of cells pays only for
the edges that leave it.

    query    0   1   1   0          draws seen    a: -1    b: 0    c: +1
    cells    0 a 1 b 2 c 3

A query is a few runs of cells with one value each. The kernel writes its values into a
row of zeros, walks the edges at the cells it covers, each once, and wipes the row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .graph_distance import check_runs


@kernel
def _edges_at(
    heads: IntArray, tails: IntArray, cells: int
) -> tuple[IntArray, IntArray]:
    pointers = np.zeros(cells + 1, dtype=np.int64)
    for edge in range(heads.size):
        pointers[heads[edge] + 1] += 1
        if tails[edge] >= 0:
            pointers[tails[edge] + 1] += 1
    for cell in range(cells):
        pointers[cell + 1] += pointers[cell]
    slot = pointers[:-1].copy()
    edges = np.empty(pointers[cells], dtype=np.int64)
    for edge in range(heads.size):
        edges[slot[heads[edge]]] = edge
        slot[heads[edge]] += 1
        if tails[edge] >= 0:
            edges[slot[tails[edge]]] = edge
            slot[tails[edge]] += 1
    return pointers, edges


class _Runs(NamedTuple):
    """Queries as runs of cells with one value each."""

    pointers: IntArray
    starts: IntArray
    ends: IntArray
    values: FloatArray


class _EdgeNoise(NamedTuple):
    """Edges with their noise, and the edges at each cell."""

    heads: IntArray
    tails: IntArray
    variances: FloatArray
    widths: FloatArray
    at: IntArray
    edges: IntArray


@kernel
def _moments(runs: _Runs, noise: _EdgeNoise, cells: int, moments: FloatArray) -> None:
    pointers, starts, ends, values = runs.pointers, runs.starts, runs.ends, runs.values
    heads, tails, at, edges = noise.heads, noise.tails, noise.at, noise.edges
    variances, widths = noise.variances, noise.widths
    row = np.zeros(cells)
    for query in range(pointers.size - 1):
        begin, end = pointers[query], pointers[query + 1]
        for piece in range(begin, end):
            for cell in range(starts[piece], ends[piece]):
                row[cell] += values[piece]
        variance = 0.0
        square = 0.0
        largest = 0.0
        steps = 0.0
        width = 0.0
        for piece in range(begin, end):
            for cell in range(starts[piece], ends[piece]):
                for entry in range(at[cell], at[cell + 1]):
                    edge = edges[entry]
                    head, tail = heads[edge], tails[edge]
                    other = 0.0
                    if tail >= 0:
                        other = row[tail]
                        # Both ends covered: the head counts the edge.
                        if cell == tail and row[head] != 0.0:
                            continue
                    amount = row[head] - other
                    size = abs(amount) * widths[edge]
                    variance += amount * amount * variances[edge]
                    square += size * size
                    steps += amount * amount * (widths[edge] > 0.0)
                    if size > largest:
                        largest = size
                        width = widths[edge]
        moments[0, query] = variance
        moments[1, query] = square
        moments[2, query] = largest
        moments[3, query] = steps
        moments[4, query] = width
        for piece in range(begin, end):
            for cell in range(starts[piece], ends[piece]):
                row[cell] = 0.0


def cut_variances(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    heads: IntArray,
    tails: IntArray,
    variances: FloatArray,
    widths: FloatArray,
    cells: int,
) -> FloatArray:
    """Return (5, queries) moments of the noise that each query gets from edges it cuts.

    Query q has ``values[i]``, not 0, on the cells ``starts[i] .. ends[i]`` of its
    pieces i, which are disjoint. The draw of an edge is added to its head and taken
    from its tail (-1: no cell). Moments: variance; sum of (coefficient * width)^2;
    largest of these, in size; sum of squared coefficients of noisy edges; width of the
    largest.
    """
    check_runs(pointers, starts, ends, values, cells)
    if (
        not heads.size == tails.size == variances.size == widths.size
        or (heads.size and (heads.min() < 0 or heads.max() >= cells))
        or (tails.size and (tails.min() < -1 or tails.max() >= cells))
    ):
        raise InputError(
            f"edges must join cells from 0 to {cells - 1}, each with its own noise"
        )
    at, edges = _edges_at(heads, tails, cells)
    moments = np.empty((5, pointers.size - 1))
    runs = _Runs(pointers, starts, ends, values)
    noise = _EdgeNoise(heads, tails, variances, widths, at, edges)
    _moments(runs, noise, cells, moments)
    return moments

"""Cheapest pairing over any candidates: maximum-weight matching, ties by a fixed order.

The proof of the matching partition asks for the exact minimum of a fixed total order
on pairings, and the blossom algorithm promises only *a* minimum. So the first
solution is made slightly dearer and the problem solved again: only a unique minimum
comes back. If it was not unique, mates are settled cell by cell.

    a pair saves     cost alone + cost alone - cost as a pair      only gains matter
    order            total cost, then mate of cell 0, of cell 1, ...; alone comes first

Pieces: ``rustworkx.max_weight_matching``, exact on 128-bit integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import AnyArray, IntArray

# The solver adds a few weights; far below 127 bits none of its sums overflows.
WEIGHT_BITS = 116


def rustworkx_module() -> Any:
    """Return rustworkx, or say which extra brings it."""
    return require(
        "rustworkx", extra="matching", purpose="the best pairing of any two cells"
    )


def cheapest_mates(
    alone: AnyArray, first: IntArray, second: IntArray, paired: AnyArray
) -> IntArray:
    """Return the mate of each cell in the cheapest pairing; a cell alone is its own.

    Among pairings of equal cost the one whose cell 0 is alone, or has the nearest
    mate, is preferred; then cell 1, and so on.

    Parameters
    ----------
    alone : (cells,) integers of any size
        Cost of each cell by itself.
    first, second : (candidates,) int64
        Cells that may be paired, ``first < second``, each pair once.
    paired : (candidates,) integers of any size
        Cost of each pair.
    """
    alone = np.asarray(alone, dtype=object)
    savings = alone[first] + alone[second] - np.asarray(paired, dtype=object)
    cells = alone.size
    assert savings.size == 0 or (cells + 1) * abs(savings).max() < 2**WEIGHT_BITS
    mates = _most_saving(cells, first, second, savings)
    # Each bucket of this pairing becomes dearer by 1 and costs are spread by more than
    # its number of buckets: any other pairing of equal cost is now cheaper.
    single = (mates == np.arange(cells)).astype(object)
    chosen = (mates[first] == second).astype(object)
    spread = (cells + 1) * savings + single[first] + single[second] - chosen
    if (mates == _most_saving(cells, first, second, spread)).all():
        return mates
    return _settle_in_order(cells, first, second, savings)


def _settle_in_order(
    cells: int, first: IntArray, second: IntArray, savings: AnyArray
) -> IntArray:
    """Settle the mate of one cell after the other, each as near as the minimum allows.

    One more solution per cell; ties are rare where every candidate carries noise.
    """
    settled = np.arange(cells)
    waiting = np.ones(cells, dtype=bool)
    for cell in range(cells):
        if not waiting[cell]:
            continue
        left = waiting[first] & waiting[second]
        first, second, savings = first[left], second[left], savings[left]
        distance = np.where(first == cell, second - cell, 0).astype(object)
        mates = _most_saving(cells, first, second, (cells + 1) * savings - distance)
        mate = mates[cell]
        settled[cell], settled[mate] = mate, cell
        waiting[cell] = waiting[mate] = False
    return settled


def _most_saving(
    cells: int, first: IntArray, second: IntArray, savings: AnyArray
) -> IntArray:
    """Return the mates of one pairing that saves the most."""
    rustworkx = rustworkx_module()
    gains = np.flatnonzero(savings > 0)
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(cells))
    graph.add_edges_from(
        list(
            zip(
                first[gains].tolist(),
                second[gains].tolist(),
                savings[gains].tolist(),
                strict=True,
            )
        )
    )
    # The solver proves each optimum by its dual, which takes no time beside finding it.
    found = rustworkx.max_weight_matching(graph, weight_fn=int, verify_optimum=True)
    mates = np.arange(cells)
    for one, other in found:
        mates[one], mates[other] = other, one
    return mates

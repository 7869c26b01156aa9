r"""The exact variance of any query answered from a chain of block trees.

Serves predicted errors and intervals of the ordered hierarchical mechanism: it says,
before anything is measured, how noisy the least-squares answer of each query is.

A query is a sum of *cuts*: a cut at cell c with fraction p takes all cells before c
and p of cell c, and a range is one cut less another. Inside its block a cut covers each
node by some part, 1 to its left, 0 to its right, and in between the average over the
children, weighed by their variances:

    coverage    node 0.6            The variance of a query splits: at each node on the
              /   |   \             way up, children that are covered differently from
             1   0.4   0            their parent add variance * (difference)^2, and the
                                    borders of the block carry the rest.

So a cut costs one climb from its cell to the root. Two cuts in one block climb
together from where they meet; a block with more cuts is swept as a whole. Along the
chain the borders form a Markov sequence: the covariance of two of them is the variance
of the right one times the product of the `follow` factors in between, which running
sums of logarithms give at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .block_trees import BlockTrees
from .ordered_hierarchy_inference import (
    ChainVariances,
    TreeVariances,
    chain_variances,
    tree_variances,
)


class BlockCuts(NamedTuple):
    """Where cuts lie, which part of that cell each takes, and how often it counts."""

    cells: IntArray
    fractions: FloatArray
    amounts: FloatArray


@kernel
def _one_step(
    node: int,
    parent: int,
    part: float,
    known: FloatArray,
    family: FloatArray,
    before: FloatArray,
) -> tuple[float, float]:
    """Return how much of `parent` a cut covers, and the variance that adds."""
    whole = family[parent]
    left = before[node]
    own = known[node]
    right = max(whole - left - own, 0.0)
    covered = (left + own * part) / whole
    rest = 1.0 - covered
    change = part - covered
    added = left * rest * rest + own * change * change + right * covered * covered
    return covered, added


@kernel
def _joint_step(
    first: int,
    last: int,
    parent: int,
    parts: FloatArray,
    amounts: FloatArray,
    known: FloatArray,
    family: FloatArray,
    before: FloatArray,
) -> float:
    """Move two cuts to the parent they share; return the variance that adds.

    `parts` holds what each covers and is updated; `first` lies left of `last`, or is
    the same child.
    """
    whole = family[parent]
    first_part = parts[0]
    last_part = parts[1]
    parts[0] = (before[first] + known[first] * first_part) / whole
    parts[1] = (before[last] + known[last] * last_part) / whole
    mean = amounts[0] * parts[0] + amounts[1] * parts[1]
    left = amounts[0] + amounts[1] - mean
    added: float = before[first] * left * left
    right = max(whole - before[last] - known[last], 0.0)
    added += right * mean * mean
    if first == last:
        both = amounts[0] * first_part + amounts[1] * last_part - mean
        added += known[first] * both * both
        return added
    between = max(before[last] - before[first] - known[first], 0.0)
    near = amounts[0] * first_part + amounts[1] - mean
    middle = amounts[1] - mean
    distant = amounts[1] * last_part - mean
    added += known[first] * near * near + between * middle * middle
    added += known[last] * distant * distant
    return added


@kernel
def _one_cut(
    node: int,
    root: int,
    part: float,
    known: FloatArray,
    family: FloatArray,
    before: FloatArray,
    parents: IntArray,
) -> tuple[float, float]:
    """Climb with one cut; return coverage of the block and variance inside it."""
    inside = 0.0
    while node != root:
        parent = parents[node]
        part, added = _one_step(node, parent, part, known, family, before)
        inside += added
        node = parent
    return part, inside


@kernel
def _two_cuts(
    first: int,
    last: int,
    root: int,
    parts: FloatArray,
    amounts: FloatArray,
    known: FloatArray,
    family: FloatArray,
    before: FloatArray,
    parents: IntArray,
) -> tuple[float, float]:
    """Climb with two cuts, the later node first; join them below one parent."""
    inside = 0.0
    while first != root:
        # Of two nodes under different parents, the one with the larger number lies at
        # least as deep as the other, so it cannot climb past the parent they share.
        if parents[first] == parents[last]:
            parent = parents[first]
            inside += _joint_step(
                first, last, parent, parts, amounts, known, family, before
            )
            first = parent
            last = parent
            continue
        side = 0 if first > last else 1
        node = first if first > last else last
        parent = parents[node]
        parts[side], added = _one_step(node, parent, parts[side], known, family, before)
        inside += amounts[side] * amounts[side] * added
        first = parent if side == 0 else first
        last = parent if side == 1 else last
    return amounts[0] * parts[0] + amounts[1] * parts[1], inside


@kernel
def _many_cuts(
    cuts: BlockCuts,
    block: int,
    known: FloatArray,
    family: FloatArray,
    trees: BlockTrees,
    coverage: FloatArray,
) -> tuple[float, float]:
    """Sweep all nodes of a block that holds many cuts; `coverage` is working space."""
    cells, fractions, amounts = cuts.cells, cuts.fractions, cuts.amounts
    begin, root, past = trees.edges[block], trees.roots[block], trees.roots[block + 1]
    leaves = trees.leaves[begin : trees.edges[block + 1]]
    parents = trees.parents
    coverage[: past - root] = 0.0
    taken = 0.0
    cut = cells.size - 1
    for place in range(leaves.size - 1, -1, -1):
        while cut >= 0 and cells[cut] > begin + place:
            taken += amounts[cut]
            cut -= 1
        part = taken
        same = cut
        while same >= 0 and cells[same] == begin + place:
            part += amounts[same] * fractions[same]
            same -= 1
        coverage[leaves[place] - root] = part
    for node in range(past - 1, root, -1):
        parent = parents[node]
        share = known[node] / family[parent]
        coverage[parent - root] += share * coverage[node - root]
    inside = 0.0
    for node in range(root + 1, past):
        change = coverage[node - root] - coverage[parents[node] - root]
        inside += known[node] * (change * change)
    return coverage[0], inside


@kernel
def _variances(
    pointers: IntArray,
    cuts: BlockCuts,
    inside_trees: TreeVariances,
    chain: ChainVariances,
    block_of: IntArray,
    trees: BlockTrees,
) -> FloatArray:
    cells, fractions, amounts = cuts.cells, cuts.fractions, cuts.amounts
    known, family, before = inside_trees.known, inside_trees.family, inside_trees.before
    smoothed, follow = chain.smoothed, chain.follow
    edges, roots = trees.edges, trees.roots
    parents, leaves = trees.parents, trees.leaves
    blocks = edges.size - 1
    # Logarithms of the products of `follow` up to each border, and how many of the
    # factors were 0: nothing passes an exact border.
    logarithms = np.zeros(blocks + 1)
    stops = np.zeros(blocks + 1, dtype=np.int64)
    widest = 1
    for block in range(blocks):
        factor = follow[block]
        stops[block + 1] = stops[block] + (1 if factor == 0.0 else 0)
        logarithms[block + 1] = logarithms[block]
        if factor > 0.0:
            logarithms[block + 1] += np.log(factor)
        widest = max(widest, roots[block + 1] - roots[block])
    coverage = np.empty(widest)
    parts = np.empty(2)
    pair = np.empty(2)
    result = np.empty(pointers.size - 1)
    for query in range(pointers.size - 1):
        variance = 0.0
        # Borders `at` and `at + 1` wait with the amounts `here` and `ahead`; `passed`
        # is what all borders before these sum to, as felt at border `last`.
        at = 0
        here = 0.0
        ahead = 0.0
        last = 0
        passed = 0.0
        cut = pointers[query]
        stop = pointers[query + 1]
        while True:
            block = block_of[cells[cut]] if cut < stop else blocks + 1
            while at < block and (here != 0.0 or ahead != 0.0):
                if stops[at] > stops[last]:
                    passed = 0.0
                elif at == last + 1:
                    passed *= follow[last]
                else:
                    passed *= np.exp(logarithms[at] - logarithms[last])
                variance += smoothed[at] * here * (here + 2.0 * passed)
                passed += here
                last = at
                at += 1
                here = ahead
                ahead = 0.0
            if cut == stop:
                break
            at = block
            past = cut + 1
            plain = amounts[cut]
            if block == blocks:
                # The end of the line: nothing of it lies inside a block.
                while past < stop:
                    plain += amounts[past]
                    past += 1
                here += plain
                cut = past
                continue
            while past < stop and cells[past] < edges[block + 1]:
                plain += amounts[past]
                past += 1
            root = roots[block]
            if past == cut + 1:
                covered, inside = _one_cut(
                    leaves[cells[cut]],
                    root,
                    fractions[cut],
                    known,
                    family,
                    before,
                    parents,
                )
                covered *= plain
                inside *= plain * plain
            elif past == cut + 2:
                for side in range(2):
                    parts[side] = fractions[cut + side]
                    pair[side] = amounts[cut + side]
                covered, inside = _two_cuts(
                    leaves[cells[cut]],
                    leaves[cells[cut + 1]],
                    root,
                    parts,
                    pair,
                    known,
                    family,
                    before,
                    parents,
                )
            else:
                own = BlockCuts(cells[cut:past], fractions[cut:past], amounts[cut:past])
                covered, inside = _many_cuts(own, block, known, family, trees, coverage)
            variance += inside
            here += plain - covered
            ahead += covered
            cut = past
        result[query] = max(variance, 0.0)
    return result


def hierarchy_variances(
    variances: FloatArray,
    trees: BlockTrees,
    pointers: IntArray,
    cells: IntArray,
    fractions: FloatArray,
    amounts: FloatArray,
) -> FloatArray:
    """Return the exact variance of least-squares answers.

    Costs O(levels) for each block in which a query has one or two cuts, and as many
    steps as it has nodes for a block with more.

    Parameters
    ----------
    variances : (rows,) float64
        Variance of each row, borders first; infinity: not measured, 0: exact.
    trees : BlockTrees
        The shape.
    pointers : (queries + 1,) int64
        Query `i` owns the cuts ``pointers[i]`` up to ``pointers[i + 1]``.
    cells : (cuts,) int64
        Where each cut lies; not decreasing within a query. The number of cells stands
        for the end of the line.
    fractions : (cuts,) float64
        Part of that cell which is taken, in [0, 1).
    amounts : (cuts,) float64
        How often the query takes the cells before the cut.

    Returns
    -------
    (queries,) float64

    Examples
    --------
    >>> from blowfish_fast.kernels.tree.block_trees import trees_over_blocks
    >>> trees = trees_over_blocks(np.array([0, 2, 4]), np.array([2, 2]))
    >>> exact_total = np.array([1.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    >>> half = np.array([0, 1]), np.array([2]), np.zeros(1), np.ones(1)
    >>> hierarchy_variances(exact_total, trees, *half)
    array([0.5])
    """
    count = trees.leaves.size
    pointers = np.ascontiguousarray(pointers, dtype=np.int64)
    cells = np.ascontiguousarray(cells, dtype=np.int64)
    fractions = np.ascontiguousarray(fractions, dtype=np.float64)
    amounts = np.ascontiguousarray(amounts, dtype=np.float64)
    if cells.ndim != 1 or {fractions.shape, amounts.shape} != {cells.shape}:
        raise InputError(
            "cuts come as three arrays of one length; got shapes "
            f"{cells.shape}, {fractions.shape} and {amounts.shape}"
        )
    owned = pointers.ndim == 1 and pointers.size > 0 and pointers[0] == 0
    if not owned or (np.diff(pointers) < 0).any() or pointers[-1] != cells.size:
        raise InputError(
            f"pointers share out {cells.size} cuts, rising from 0; got {pointers[:5]}"
        )
    if cells.size and (cells.min() < 0 or cells.max() > count):
        raise InputError(
            f"cuts lie within 0..{count}; got {cells.min()} to {cells.max()}"
        )
    inside = tree_variances(variances, trees)
    chain = chain_variances(variances, trees, inside)
    # The end of the line lies in a block of its own.
    sizes = np.append(np.diff(trees.edges), 1)
    block_of = np.repeat(np.arange(trees.blocks + 1), sizes)
    cuts = BlockCuts(cells, fractions, amounts)
    return _variances(pointers, cuts, inside, chain, block_of, trees)

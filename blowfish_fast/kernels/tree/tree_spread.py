"""The exact spread of the noise in any query answered from a fitted tree.

Serves predicted errors, confidence intervals and the way from accuracy to epsilon:
before anything is measured it says how the noise of every node enters an answer.
Nodes are laid out as in `tree_shape`, the fit is that of `tree_inference`.

Two numbers per node give the coefficient of its noise in one answer. Its *coverage*
is what the query takes of it: 1 inside, 0 outside, and for a parent the average of
its children, weighed by their shares of a surplus. Its *pull* is how far the answer
follows the node's total beyond what the ancestors already say:

    pull(root)  = coverage(root)
    pull(child) = keep(parent) * pull(parent) + coverage(child) - coverage(parent)
    coefficient = (1 - keep) * pull

where keep is the weight the parent's fit gives to its children rather than to its
own measurement. A node that the query covers wholly or not at all passes its pull
down multiplied by keeps alone, so one row of sums stands for its whole subtree, and
a query only visits the nodes around its ends:

    row of a node:  share  keep | variance  square  largest  | variance  square  largest
                                  of its own noise alone       of its whole subtree

The three columns are the sum of variances, the sum of squared scales and the largest
scale, of the noise that a pull of 1 lets through.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel
from blowfish_fast.kernels.space.interval_pieces import checked_pieces

from .tree_inference import node_array, subtree_variances
from .tree_shape import shift_of, tree_levels

SHARE = 0
KEEP = 1
OWN = 2
WHOLE = 5
COLUMNS = 8


@kernel
def _noise_rows(
    variances: FloatArray,
    scales: FloatArray,
    known: FloatArray,
    offsets: IntArray,
    branching: int,
) -> FloatArray:
    """Return the row of every node, shape (nodes, 8); see the module docstring."""
    rows = np.zeros((variances.size, COLUMNS))
    rows[variances.size - 1, SHARE] = 1.0
    leaves = offsets[1]
    width = 1
    for level in range(offsets.size - 1):
        for index in range(offsets[level + 1] - offsets[level]):
            node = offsets[level] + index
            own = variances[node]
            measured = 0.0 < own < np.inf
            gain = 1.0
            keep = 0.0
            variance = 0.0
            square = 0.0
            largest = 0.0
            if level > 0:
                first = offsets[level - 1] + index * branching
                end = min(first + branching, offsets[level])
                spread = 0.0
                free = 0.0
                for child in range(first, end):
                    if known[child] < 0.0:
                        free -= known[child]
                    else:
                        spread += known[child]
                    variance += rows[child, WHOLE]
                    square += rows[child, WHOLE + 1]
                    largest = max(largest, rows[child, WHOLE + 2])
                begin = index * branching * width
                covered = min(begin + branching * width, leaves) - begin
                for child in range(first, end):
                    # The same shares as in the fit: free leaves take everything,
                    # else variances decide, else (all exact) the number of leaves.
                    if free > 0.0:
                        rows[child, SHARE] = max(-known[child], 0.0) / free
                    elif spread > 0.0:
                        rows[child, SHARE] = known[child] / spread
                    else:
                        part = min(width, leaves - begin - (child - first) * width)
                        rows[child, SHARE] = part / covered
                if own == np.inf:
                    keep = 1.0
                elif own > 0.0 and free == 0.0:
                    keep = own / (own + spread)
                    gain = spread / (own + spread)
            if measured:
                rows[node, OWN] = gain * gain * own
                rows[node, OWN + 1] = (gain * scales[node]) ** 2
                rows[node, OWN + 2] = gain * scales[node]
            rows[node, KEEP] = keep
            rows[node, WHOLE] = rows[node, OWN] + keep * keep * variance
            rows[node, WHOLE + 1] = rows[node, OWN + 1] + keep * keep * square
            rows[node, WHOLE + 2] = max(rows[node, OWN + 2], keep * largest)
        if level > 0:
            width *= branching
    return rows


@kernel
def _covered(
    child: int, left: int, right: int, left_part: float, right_part: float
) -> float:
    """Return how much of a node a range covers whose end nodes are `left`, `right`.

    Selections rather than branches: which child holds an end is a coin toss.
    """
    part = 1.0 if child > left else 0.0
    part = part if child < right else 0.0
    part = right_part if child == right else part
    return left_part if child == left else part


@kernel
def _range_spreads(
    rows: FloatArray,
    offsets: IntArray,
    branching: int,
    shift: int,
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Climb with the two end nodes to the root for coverages, come back for pulls."""
    levels = offsets.size - 1
    variances = np.empty(first.size)
    squares = np.empty(first.size)
    largests = np.empty(first.size)
    ends = np.empty((levels, 2), dtype=np.int64)
    coverage = np.empty((levels, 2))
    pulls = np.empty(2)
    for query in range(first.size):
        left = first[query]
        right = last[query]
        left_part = first_fraction[query]
        right_part = last_fraction[query] if left < right else left_part
        ends[0, 0] = left
        ends[0, 1] = right
        coverage[0, 0] = left_part
        coverage[0, 1] = right_part
        for level in range(1, levels):
            below = offsets[level - 1]
            size = offsets[level] - below
            for side in range(2):
                end = right if side == 1 else left
                parent = end >> shift if shift > 0 else end // branching
                ends[level, side] = parent
                if side == 1 and parent == ends[level, 0]:
                    coverage[level, 1] = coverage[level, 0]
                    break
                begin = parent * branching
                total = 0.0
                for child in range(begin, min(begin + branching, size)):
                    part = _covered(child, left, right, left_part, right_part)
                    total += rows[below + child, SHARE] * part
                coverage[level, side] = total
            left = ends[level, 0]
            right = ends[level, 1]
            left_part = coverage[level, 0]
            right_part = coverage[level, 1]
        root = rows.shape[0] - 1
        pull = coverage[levels - 1, 0]
        for side in range(2):
            pulls[side] = pull
        variance = rows[root, OWN] * pull * pull
        square = rows[root, OWN + 1] * pull * pull
        largest = rows[root, OWN + 2] * abs(pull)
        for level in range(levels - 1, 0, -1):
            below = offsets[level - 1]
            size = offsets[level] - below
            left = ends[level - 1, 0]
            right = ends[level - 1, 1]
            left_part = coverage[level - 1, 0]
            right_part = coverage[level - 1, 1]
            left_pull = 0.0
            right_pull = 0.0
            for side in range(2):
                parent = ends[level, side]
                if side == 1 and parent == ends[level, 0]:
                    break
                passed = rows[offsets[level] + parent, KEEP] * pulls[side]
                above = coverage[level, side]
                begin = parent * branching
                for child in range(begin, min(begin + branching, size)):
                    part = _covered(child, left, right, left_part, right_part)
                    pull = passed + (part - above)
                    left_pull = pull if child == left else left_pull
                    right_pull = pull if child == right else right_pull
                    column = OWN if (child == left) | (child == right) else WHOLE
                    node = below + child
                    variance += rows[node, column] * (pull * pull)
                    square += rows[node, column + 1] * (pull * pull)
                    reach = rows[node, column + 2] * abs(pull)
                    largest = reach if reach > largest else largest
            pulls[0] = left_pull
            pulls[1] = right_pull
        variances[query] = variance
        squares[query] = square
        largests[query] = largest
    return variances, squares, largests


@kernel
def _piece_spreads(
    rows: FloatArray,
    offsets: IntArray,
    branching: int,
    shift: int,
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Walk each query up and down; level by level it is a list of runs.

    A run is either several nodes that the query covers with one value throughout, or
    one *mixed* node, which holds a border of some piece inside.
    """
    levels = offsets.size - 1
    queries = pointers.size - 1
    variances = np.zeros(queries)
    squares = np.zeros(queries)
    largests = np.zeros(queries)
    most = 0
    for query in range(queries):
        most = max(most, pointers[query + 1] - pointers[query])
    capacity = 0
    for level in range(levels):
        # Per piece at most one run and two mixed nodes.
        capacity += min(3 * most, offsets[level + 1] - offsets[level])
    run_start = np.empty(capacity, dtype=np.int64)
    run_end = np.empty(capacity, dtype=np.int64)
    coverage = np.empty(capacity)
    pulls = np.empty(capacity)
    mixed = np.empty(capacity, dtype=np.bool_)
    level_runs = np.zeros(levels + 1, dtype=np.int64)
    for query in range(queries):
        count = 0
        for piece in range(pointers[query], pointers[query + 1]):
            if starts[piece] < ends[piece]:
                run_start[count] = starts[piece]
                run_end[count] = ends[piece]
                coverage[count] = values[piece]
                mixed[count] = False
                count += 1
        level_runs[1] = count
        if count == 0:
            continue
        for level in range(1, levels):
            below = offsets[level - 1]
            size = offsets[level] - below
            run = level_runs[level - 1]
            stop = level_runs[level]
            position = run_start[run]
            while run < stop:
                parent = position >> shift if shift > 0 else position // branching
                begin = parent * branching
                end = min(begin + branching, size)
                run_start[count] = parent
                run_end[count] = parent + 1
                if not mixed[run] and position == begin and run_end[run] >= end:
                    if run_end[run] < size:
                        run_end[count] = run_end[run] // branching
                    else:
                        run_end[count] = offsets[level + 1] - offsets[level]
                    coverage[count] = coverage[run]
                    mixed[count] = False
                    position = min(run_end[count] * branching, size)
                    if position == run_end[run]:
                        run += 1
                        if run < stop:
                            position = run_start[run]
                else:
                    total = 0.0
                    while run < stop and position < end:
                        share = 0.0
                        for child in range(position, min(run_end[run], end)):
                            share += rows[below + child, SHARE]
                        total += share * coverage[run]
                        if run_end[run] > end:
                            position = end
                        else:
                            run += 1
                            if run < stop:
                                position = run_start[run]
                    coverage[count] = total
                    mixed[count] = True
                count += 1
            level_runs[level + 1] = count
        # The last run is the root.
        pull = coverage[count - 1]
        pulls[count - 1] = pull
        column = OWN if mixed[count - 1] else WHOLE
        root = rows.shape[0] - 1
        variance = rows[root, column] * pull * pull
        square = rows[root, column + 1] * pull * pull
        largest = rows[root, column + 2] * abs(pull)
        for level in range(levels - 1, 0, -1):
            below = offsets[level - 1]
            size = offsets[level] - below
            run = level_runs[level - 1]
            stop = level_runs[level]
            for above in range(level_runs[level], level_runs[level + 1]):
                if not mixed[above]:
                    continue
                parent = run_start[above]
                passed = rows[offsets[level] + parent, KEEP] * pulls[above]
                begin = parent * branching
                for child in range(begin, min(begin + branching, size)):
                    while run < stop and run_end[run] <= child:
                        run += 1
                    column = WHOLE
                    pull = passed - coverage[above]
                    if run < stop and run_start[run] <= child:
                        pull = passed + (coverage[run] - coverage[above])
                        if mixed[run]:
                            column = OWN
                            pulls[run] = pull
                    node = below + child
                    variance += rows[node, column] * pull * pull
                    square += rows[node, column + 1] * pull * pull
                    largest = max(largest, rows[node, column + 2] * abs(pull))
        variances[query] = variance
        squares[query] = square
        largests[query] = largest
    return variances, squares, largests


def _rows_of_tree(
    variances: FloatArray, scales: FloatArray, leaves: int, branching: int
) -> tuple[FloatArray, IntArray]:
    sizes, offsets = tree_levels(leaves, branching)
    variances = node_array(variances, int(offsets[-1]), "variances")
    scales = node_array(scales, int(offsets[-1]), "scales")
    known = subtree_variances(variances, sizes, offsets, branching)
    return _noise_rows(variances, scales, known, offsets, branching), offsets


def tree_spread_ranges(
    variances: FloatArray,
    scales: FloatArray,
    leaves: int,
    branching: int,
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the noise profile of ranges of leaves, in O(branching log leaves) each.

    The answer of a query is its true value plus the sum, over the nodes, of a
    coefficient times the noise of that node.

    Parameters
    ----------
    variances : (nodes,) float64
        Variance of each measurement; infinity: not measured, 0: exact.
    scales : (nodes,) float64
        Laplace scale of each measurement; ignored where exact or not measured.
    leaves, branching : int
        The shape of the tree.
    first, last : (queries,) int64
        The leaves that hold the two ends of each range; all between are covered.
    first_fraction, last_fraction : (queries,) float64
        How much of these two is covered; where ``first == last`` the first counts.

    Returns
    -------
    variance : (queries,) float64
        Sum of squared coefficients times variances: the exact variance.
    square : (queries,) float64
        Sum of (coefficient times scale) squared.
    largest : (queries,) float64
        Largest absolute coefficient times scale.

    Examples
    --------
    The sum of two leaves, each measured alone, and their exact total:

    >>> ones = np.ones(3)
    >>> end, whole = np.array([1]), np.array([1.0])
    >>> tree_spread_ranges(ones * [1, 1, 0], ones, 2, 2, end * 0, whole, end, whole)
    (array([0.]), array([0.]), array([0.]))
    """
    rows, offsets = _rows_of_tree(variances, scales, leaves, branching)
    first = np.ascontiguousarray(first, dtype=np.int64)
    last = np.ascontiguousarray(last, dtype=np.int64)
    first_fraction = np.ascontiguousarray(first_fraction, dtype=np.float64)
    last_fraction = np.ascontiguousarray(last_fraction, dtype=np.float64)
    shapes = {first.shape, last.shape, first_fraction.shape, last_fraction.shape}
    if len(shapes) != 1 or first.ndim != 1:
        raise InputError(
            "ranges come as four arrays of one length, got shapes "
            f"{first.shape}, {first_fraction.shape}, {last.shape}, "
            f"{last_fraction.shape}"
        )
    if first.size and (first.min() < 0 or last.max() >= leaves or (first > last).any()):
        raise InputError(
            f"a range runs from its first to its last leaf within 0..{leaves - 1}, got "
            f"first leaves from {first.min()} and last leaves up to {last.max()}"
        )
    return _range_spreads(
        rows,
        offsets,
        branching,
        shift_of(int(branching)),
        first,
        first_fraction,
        last,
        last_fraction,
    )


def tree_spread_pieces(
    variances: FloatArray,
    scales: FloatArray,
    leaves: int,
    branching: int,
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the noise profile of piecewise constant queries over the leaves.

    Costs O(branching log leaves) per piece.

    Parameters
    ----------
    variances, scales, leaves, branching
        As for `tree_spread_ranges`.
    pointers : (queries + 1,) int64
        Query `i` owns the pieces ``pointers[i]`` up to ``pointers[i + 1]``.
    starts, ends : (pieces,) int64
        Half-open runs of leaves, sorted and disjoint within a query.
    values : (pieces,) float64
        Coefficient of the query on each leaf of the piece; 0 outside all pieces.

    Returns
    -------
    variance, square, largest : (queries,) float64
        As for `tree_spread_ranges`.

    Examples
    --------
    Two leaves measured alone, and a query that takes the first off the second:

    >>> alone = np.array([8.0, 8.0, np.inf])
    >>> query = np.array([0, 2]), np.array([0, 1]), np.array([1, 2])
    >>> tree_spread_pieces(alone, np.full(3, 2.0), 2, 2, *query, np.array([-1.0, 1.0]))
    (array([16.]), array([8.]), array([2.]))
    """
    rows, offsets = _rows_of_tree(variances, scales, leaves, branching)
    pointers, starts, ends = checked_pieces(pointers, starts, ends, leaves)
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.shape != starts.shape:
        raise InputError(
            f"each of the {starts.size} pieces has one value, got an array of shape "
            f"{values.shape}"
        )
    return _piece_spreads(
        rows,
        offsets,
        branching,
        shift_of(int(branching)),
        pointers,
        starts,
        ends,
        values,
    )

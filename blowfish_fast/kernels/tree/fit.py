"""Fits of noisy totals on a tree: least squares, non-negative ones, even ones.

Least squares. Going up, the totals of a node's children add, and the sum is averaged
with the node's own measurement, each weighed by the other's variance. Going down, what
a parent knows better than its children is shared among them by variance.

    noisy     0          up    1/3         down    1/3       every variance 1:
           .5   .5           .5   .5            1/6   1/6    (2 * 0 + 1 * 1) / 3 = 1/3

A variance of infinity means "not measured", zero "known exactly". A subtree that its
measurements do not fix has free leaves, which take up the remainder of the nearest
ancestor that is fixed; it carries *minus the number of its free leaves* as a variance.

Non-negative totals. Going up is the same. Going down, the children of a node whose
total f is settled are the closest that add up to it and stay above their bounds, which
are what exact nodes say below them, 0 without any (Lemma TD2,
``docs/proofs/top_down.md``):

    minimise   sum_i (y_i - up_i)^2 / V_i      over   y_i >= low_i,  sum_i y_i = f
    solution   y_i = max(low_i, up_i + t V_i)

Even totals. `pruned_leaves` spreads the total of a sparse node over its cells. All of
this takes linear time.

Threads. A level of the tree is cut into runs; what hangs below a run is one job, on the
way up and on the way down (`shape.cut_tree`). One thread does the few nodes above:

    above the cut              6              up:    a, b at once, then 6
    the cut             4             5       down:  6, then a, b at once
                     0     1       2     3
                     '-- a --'     '-- b --'

Every node is worked out by the same steps whoever does it: the bits are the same. One
kernel for each step is called for the whole tree, for what lies above the cut, and for
every level of a slab: what would only hand on its arguments is not compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast.kernels._arguments import refuse_infinite, refuse_odd_variances
from blowfish_fast.kernels._jit import kernel

from .shape import Slab, Tree, cut_tree, level_runs

FREE = 2.0**200
"""Variance of a leaf that nothing fixes: it takes up what is left."""


@kernel
def _deepest_nodes(first_child: IntArray) -> int:
    """Return how many nodes come before the first one that has children."""
    low, high = 0, first_child.size
    while low < high:
        middle = (low + high) // 2
        if first_child[middle] == 0:
            low = middle + 1
        else:
            high = middle
    return low - 1


def subtree_variances(variances: FloatArray, first_child: IntArray) -> FloatArray:
    """Return the variance of each total given all measurements at and below it.

    O(nodes).

    Parameters
    ----------
    variances : ndarray of float64, shape (nodes,)
        Variance of each node's own measurement; infinity: not measured.
    first_child : ndarray of int64, shape (nodes + 1,)
        Where the children of each node begin, as `Tree.first_child`.

    Returns
    -------
    ndarray of float64, shape (nodes,)
        The variances; minus the number of its free leaves at a node that its subtree
        does not fix.
    """
    below = np.empty(variances.size)
    fill_variances(variances, first_child, 0, variances.size, below)
    return below


@kernel
def fill_variances(
    variances: FloatArray,
    first_child: IntArray,
    first: int,
    last: int,
    below: FloatArray,
) -> None:
    """Write what `subtree_variances` returns for some nodes, in their order.

    Parameters
    ----------
    variances : ndarray of float64, shape (nodes,)
        Variance of each node's own measurement; infinity: not measured.
    first_child : ndarray of int64, shape (nodes + 1,)
        Where the children of each node begin.
    first : int
        The first of the nodes; what hangs below them is filled in already.
    last : int
        The node after the last.
    below : ndarray of float64, shape (nodes,)
        Receives the variances.
    """
    deepest = _deepest_nodes(first_child)
    for leaf in range(first, min(last, deepest)):
        own = variances[leaf]
        below[leaf] = own if own < np.inf else -1.0
    for node in range(max(first, deepest), last):
        own = variances[node]
        begin, end = first_child[node], first_child[node + 1]
        if begin == end:
            below[node] = own if own < np.inf else -1.0
            continue
        spread = 0.0
        free = 0.0
        for child in range(begin, end):
            if below[child] < 0.0:
                free -= below[child]
            else:
                spread += below[child]
        if free > 0.0:
            below[node] = own if own < np.inf else -free
        elif own < np.inf and own + spread > 0.0:
            # The smaller of the two is multiplied by a number in [1/2, 1], so
            # neither a huge nor a tiny partner costs a digit.
            low = min(own, spread)
            below[node] = low * (max(own, spread) / (own + spread))
        else:
            below[node] = spread


@kernel
def fit_upward(
    noisy: FloatArray,
    variances: FloatArray,
    below: FloatArray,
    first_child: IntArray,
    first: int,
    last: int,
    fit: FloatArray,
) -> None:
    """Estimate nodes from their own subtrees alone; free leaves count as 0. O(nodes).

    Parameters
    ----------
    noisy : ndarray of float64, shape (nodes,)
        Measured totals; ignored where not measured.
    variances : ndarray of float64, shape (nodes,)
        Variance of each measurement; infinity: not measured, 0: exact.
    below : ndarray of float64, shape (nodes,)
        What `subtree_variances` returned.
    first_child : ndarray of int64, shape (nodes + 1,)
        Where the children of each node begin.
    first : int
        The first of the nodes; what hangs below them is filled in already.
    last : int
        The node after the last.
    fit : ndarray of float64, shape (nodes,)
        Receives the estimates.
    """
    deepest = _deepest_nodes(first_child)
    for leaf in range(first, min(last, deepest)):
        fit[leaf] = noisy[leaf] if below[leaf] >= 0.0 else 0.0
    for node in range(max(first, deepest), last):
        begin, end = first_child[node], first_child[node + 1]
        if begin == end:
            fit[node] = noisy[node] if below[node] >= 0.0 else 0.0
            continue
        spread = 0.0
        total = 0.0
        free = False
        for child in range(begin, end):
            total += fit[child]
            spread += below[child]
            free |= below[child] < 0.0
        own = variances[node]
        if own == np.inf:
            fit[node] = total
        elif free or own == 0.0:
            fit[node] = noisy[node]
        else:
            weight = own + spread
            fit[node] = noisy[node] * (spread / weight) + total * (own / weight)


@kernel
def _leaves_below(node: int, first_child: IntArray) -> int:
    """Count the leaves below a node, level by level."""
    begin, end = node, node + 1
    leaves = 0
    while begin < end:
        for node_below in range(begin, end):
            if first_child[node_below] == first_child[node_below + 1]:
                leaves += 1
        begin, end = first_child[begin], first_child[end]
    return leaves


@kernel
def fit_downward(
    fit: FloatArray, below: FloatArray, first_child: IntArray, first: int, last: int
) -> None:
    """Share, in place, what each parent knows better than the sum of its children.

    O(nodes).

    Parameters
    ----------
    fit : ndarray of float64, shape (nodes,)
        What `fit_upward` wrote; it becomes the least-squares fit.
    below : ndarray of float64, shape (nodes,)
        What `subtree_variances` returned.
    first_child : ndarray of int64, shape (nodes + 1,)
        Where the children of each node begin.
    first : int
        The first of the parents.
    last : int
        The node after the last parent; what lies above them is settled.
    """
    lowest = max(first, _deepest_nodes(first_child))
    for node in range(last - 1, lowest - 1, -1):
        begin, end = first_child[node], first_child[node + 1]
        if begin == end:
            continue
        spread = 0.0
        free = 0.0
        total = 0.0
        loosest = begin
        largest = below[begin]
        for child in range(begin, end):
            variance = below[child]
            total += fit[child]
            if variance < 0.0:
                free -= variance
            else:
                spread += variance
            # Which child is loosest is a coin toss: select rather than branch.
            loosest = child if variance > largest else loosest
            largest = variance if variance > largest else largest
        surplus = fit[node] - total
        if free > 0.0:
            # Fixed children are already at their best: the free leaves fit any
            # remainder, and equal parts have the least norm.
            for child in range(begin, end):
                if below[child] < 0.0:
                    fit[child] += surplus * (-below[child] / free)
        elif spread > 0.0:
            # The loosest child takes the remainder. Its own estimate and its share
            # may be huge and of opposite sign; their sum would lose the digits.
            rest = 0.0
            for child in range(begin, end):
                value = fit[child] + surplus * (below[child] / spread)
                fit[child] = value
                rest += value if child != loosest else 0.0
            fit[loosest] = fit[node] - rest
        elif surplus != 0.0:
            # Exact children contradict an exact ancestor, or differ by a rounding:
            # the ancestor wins, leaf by leaf.
            covered = _leaves_below(node, first_child)
            for child in range(begin, end):
                part = _leaves_below(child, first_child)
                fit[child] += surplus * (part / covered)


Work = Callable[[int, int], None]
"""What is done from one node to before another."""


class _Jobs(NamedTuple):
    """Where a tree is cut, and threads for its slabs."""

    slabs: list[Slab]
    above: int
    """The first node above the cut; 0 if there is no cut."""
    pool: ThreadPoolExecutor | None

    def _each(self, work: Callable[[Slab], None]) -> None:
        """Do some work for every slab."""
        if self.pool is not None:
            for _ in self.pool.map(work, self.slabs):
                pass

    def upward(self, tree: Tree, work: Work) -> None:
        """Do some work for every level of every slab, the lowest first, and above."""

        def climb(slab: Slab) -> None:
            for first, last in reversed(level_runs(tree.first_child, slab)):
                work(first, last)

        self._each(climb)
        work(self.above, tree.nodes)

    def downward(self, tree: Tree, work: Work) -> None:
        """Do some work above the cut, and then for every slab, the highest first."""

        def descend(slab: Slab) -> None:
            for first, last in level_runs(tree.first_child, slab):
                work(first, last)

        work(self.above, tree.nodes)
        self._each(descend)


@contextmanager
def _jobs(tree: Tree, threads: int) -> Iterator[_Jobs]:
    """Offer threads for the slabs of a tree; none where one thread serves as well."""
    slabs, above = cut_tree(tree, threads)
    if not slabs:
        yield _Jobs([], 0, None)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield _Jobs(slabs, above, pool)


def _go_up(
    noisy: FloatArray, variances: FloatArray, tree: Tree, jobs: _Jobs
) -> tuple[FloatArray, FloatArray]:
    """Return `subtree_variances`, and what `fit_upward` makes of them."""
    children = tree.first_child
    below, fit = np.empty(tree.nodes), np.empty(tree.nodes)

    def estimate(first: int, last: int) -> None:
        fill_variances(variances, children, first, last, below)
        fit_upward(noisy, variances, below, children, first, last, fit)

    jobs.upward(tree, estimate)
    return below, fit


def tree_fit(
    noisy: AnyArray, variances: FloatArray, tree: Tree, *, threads: int = 1
) -> FloatArray:
    """Return the least-squares estimate of every node, consistent, in O(nodes).

    Leaves that the measurements leave open share the remainder of their nearest fixed
    ancestor equally, or are 0 without one: the solution of least norm.

    Parameters
    ----------
    noisy : ndarray, shape (nodes,)
        Measured totals, by row; ignored where not measured.
    variances : ndarray of float64, shape (nodes,)
        Variance of each measurement, by row. Infinity means not measured, 0 exact. Of
        exact values that contradict each other the ancestor wins.
    tree : Tree
        The shape.
    threads : int, default 1
        How many threads to use; the result does not depend on it.

    Returns
    -------
    ndarray of float64, shape (nodes,)
        The estimates, by row; each parent is the sum of its children.

    Raises
    ------
    InputError
        If a variance is negative or nan, a measured total is not finite, or an array
        does not hold one number per node.

    Examples
    --------
    >>> from blowfish_fast.kernels import regular_tree
    >>> tree_fit(np.array([1.0, 0.0, 0.0]), np.ones(3), regular_tree(2, 2)).round(3)
    array([ 0.667, -0.333,  0.333])
    """
    noisy = tree.numbers(noisy, "noisy")
    variances = tree.numbers(variances, "variances")
    refuse_odd_variances(variances)
    refuse_infinite(noisy, "measured totals", variances)
    with _jobs(tree, threads) as jobs:
        below, fit = _go_up(noisy, variances, tree, jobs)
        jobs.downward(tree, partial(fit_downward, fit, below, tree.first_child))
    return tree.by_row(fit)


@kernel
def settle_family(
    fit: FloatArray,
    below: FloatArray,
    low: FloatArray,
    total: float,
    begin: int,
    end: int,
) -> None:
    """Move the siblings `begin` to `end`, in place, to the closest with this total.

    A child that falls below its bound is set to it. That only lowers the others, so the
    child never comes back. O(children) a round.

    Parameters
    ----------
    fit : ndarray of float64, shape (nodes,)
        Estimates from below; those of the siblings are changed.
    below : ndarray of float64, shape (nodes,)
        Variances of these estimates, none negative.
    low : ndarray of float64, shape (nodes,)
        The least that each node may be.
    total : float
        What the siblings have to add up to.
    begin : int
        The first sibling.
    end : int
        The node after the last sibling.
    """
    left = total
    spread = 0.0
    loosest = begin
    largest = -1.0
    falls = False
    for child in range(begin, end):
        left -= fit[child]
        spread += below[child]
        loosest = child if below[child] > largest else loosest
        largest = below[child] if below[child] > largest else largest
    if spread == 0.0:
        if left != 0.0:
            _scale_to(fit, total, begin, end)
        return
    rest = 0.0
    for child in range(begin, end):
        value = fit[child] + left * (below[child] / spread)
        rest += value if child != loosest else 0.0
        falls |= child != loosest and value < low[child]
    if not falls and total - rest >= low[loosest]:
        # Least squares as it is; the loosest child takes the remainder.
        for child in range(begin, end):
            fit[child] += left * (below[child] / spread)
        fit[loosest] = total - rest
        return
    least = 0.0
    for child in range(begin, end):
        least += low[child]
    if least >= total:
        for child in range(begin, end):
            fit[child] = low[child]
        if least > total:
            _scale_to(fit, total, begin, end)
        return
    _project(fit, below, low, total, begin, end)


@kernel
def _project(
    fit: FloatArray,
    below: FloatArray,
    low: FloatArray,
    total: float,
    begin: int,
    end: int,
) -> None:
    """Find the children that rest on their bounds, and share what is left.

    The variance of a child that rests on its bound is negative meanwhile: a mark that
    needs no array of its own.
    """
    falls = True
    while falls:
        falls = False
        left = total
        spread = 0.0
        for child in range(begin, end):
            if below[child] <= 0.0:
                left -= low[child]
            else:
                left -= fit[child]
                spread += below[child]
        for child in range(begin, end):
            if below[child] <= 0.0:
                continue
            if fit[child] + left * (below[child] / spread) < low[child]:
                below[child] = -below[child]
                falls = True
    loosest = -1
    rest = 0.0
    for child in range(begin, end):
        if below[child] <= 0.0:
            fit[child] = low[child]
            below[child] = -below[child]
        else:
            fit[child] += left * (below[child] / spread)
            if loosest < 0 or below[child] > below[loosest]:
                loosest = child
    for child in range(begin, end):
        rest += fit[child] if child != loosest else 0.0
    if loosest >= 0:
        # Its estimate and its share may be huge and of opposite sign.
        fit[loosest] = max(low[loosest], total - rest)


@kernel
def _scale_to(fit: FloatArray, total: float, begin: int, end: int) -> None:
    """Scale exact siblings that contradict an exact ancestor: the ancestor wins."""
    sum_of_siblings = 0.0
    for child in range(begin, end):
        sum_of_siblings += fit[child]
    for child in range(begin, end):
        if sum_of_siblings > 0.0:
            fit[child] *= total / sum_of_siblings
        else:
            fit[child] = total / (end - begin)


@kernel
def _bounds(
    low: FloatArray,
    fit: FloatArray,
    below: FloatArray,
    first_child: IntArray,
    first: int,
    last: int,
) -> None:
    """Write to `low` what exact nodes at and below each node say, 0 without any."""
    for node in range(first, last):
        least = 0.0
        if below[node] == 0.0:
            least = max(fit[node], 0.0)
        else:
            for child in range(first_child[node], first_child[node + 1]):
                least += low[child]
        low[node] = least


@kernel
def _settle(
    fit: FloatArray,
    below: FloatArray,
    low: FloatArray,
    first_child: IntArray,
    first: int,
    last: int,
) -> None:
    """Settle the children of the nodes before `last` down to `first`."""
    for child in range(first_child[first], first_child[last]):
        if below[child] < 0.0:
            below[child] *= -FREE
    for node in range(last - 1, first - 1, -1):
        begin, end = first_child[node], first_child[node + 1]
        if begin < end:
            settle_family(fit, below, low, fit[node], begin, end)


def lower_bounds(noisy: AnyArray, variances: FloatArray, tree: Tree) -> FloatArray:
    """Return the least that exact nodes allow for each node, in O(nodes).

    Parameters
    ----------
    noisy : ndarray, shape (nodes,)
        Measured totals, by row.
    variances : ndarray of float64, shape (nodes,)
        Variance of each measurement, by row; 0 means exact.
    tree : Tree
        The shape.

    Returns
    -------
    ndarray of float64, shape (nodes,)
        The bounds, by row; 0 where no exact node lies at or below the node.
    """
    measured = tree.numbers(noisy, "noisy"), tree.numbers(variances, "variances")
    low = np.empty(tree.nodes)
    _bounds(low, *measured, tree.first_child, 0, tree.nodes)
    return tree.by_row(low)


def top_down_fit(
    noisy: AnyArray,
    variances: FloatArray,
    tree: Tree,
    settled: tuple[IntArray, FloatArray] | None = None,
    *,
    threads: int = 1,
) -> FloatArray:
    """Return non-negative, consistent totals of every node, settled from the root down.

    It takes O(nodes) for each round of a family; there are few.

    Parameters
    ----------
    noisy : ndarray, shape (nodes,)
        Measured totals, by row; ignored where not measured.
    variances : ndarray of float64, shape (nodes,)
        Variance of each measurement, by row, as for `tree_fit`.
    tree : Tree
        The shape.
    settled : tuple of (ndarray of int64, ndarray of float64), optional
        Rows that are decided already, and their totals: the root and nodes that hang
        below each other, none below its `lower_bounds`. Without it the root becomes the
        larger of its least-squares total and what exact nodes say.
    threads : int, default 1
        How many threads to use; the result does not depend on it.

    Returns
    -------
    ndarray of float64, shape (nodes,)
        The totals, by row.
    """
    noisy = tree.numbers(noisy, "noisy")
    variances = tree.numbers(variances, "variances")
    children = tree.first_child
    with _jobs(tree, threads) as jobs:
        below, fit = _go_up(noisy, variances, tree, jobs)
        del noisy, variances  # on many leaves a seventh of what a release holds
        low = np.empty(tree.nodes)
        jobs.upward(tree, partial(_bounds, low, fit, below, children))
        fit[-1] = max(fit[-1], low[-1])
        if settled is not None:
            rows, totals = settled
            fit[rows] = low[rows] = totals
            below[rows] = 0.0
        jobs.downward(tree, partial(_settle, fit, below, low, children))
    return tree.by_row(fit)


@kernel
def _prune(
    fit: FloatArray,
    thresholds: FloatArray,
    parents: IntArray,
    children: IntArray,
    leaf_nodes: IntArray,
    sizes: IntArray,
) -> FloatArray:
    nodes = parents.size
    highest = np.zeros(nodes)
    for leaf in range(leaf_nodes.size):
        highest[leaf_nodes[leaf]] = thresholds[leaf]
    for node in range(nodes - 1):
        highest[parents[node]] = max(highest[parents[node]], highest[node])
    values = fit.copy()
    cut = np.zeros(nodes, dtype=np.bool_)
    for node in range(nodes - 1, -1, -1):
        above = parents[node]
        if above >= 0 and cut[above]:
            cut[node] = True
            values[node] = values[above] * (sizes[node] / sizes[above])
        elif children[node] < children[node + 1] and values[node] < highest[node]:
            cut[node] = True
    return values[leaf_nodes]


def pruned_leaves(
    fit: FloatArray, thresholds: FloatArray, tree: Tree, edges: IntArray
) -> FloatArray:
    """Return the leaves of a fitted tree, even below every node of a small total.

    O(nodes).

    A box with few records holds little that its children could tell beyond their noise.
    So a node is cut if its total lies below the largest threshold among its leaves, and
    its cells share the total.

    Parameters
    ----------
    fit : ndarray of float64, shape (nodes,)
        Consistent totals, by row.
    thresholds : ndarray of float64, shape (leaves,)
        The least total that each leaf asks of a node above it.
    tree : Tree
        The shape.
    edges : ndarray of int64, shape (leaves + 1,)
        Cell edges of the leaves, rising from 0.

    Returns
    -------
    ndarray of float64, shape (leaves,)
        The total of each leaf.
    """
    fit = tree.numbers(fit, "fit")
    sizes = edges[tree.ends] - edges[tree.starts]
    return _prune(
        fit, thresholds, tree.parents, tree.first_child, tree.leaf_nodes, sizes
    )

"""Graphs from lists of pairs, their connected parts, and the steps between two nodes.

A graph is two arrays in compressed rows, both directions of an edge stored. Two
counting sorts put every row in order, so repeated pairs lie side by side and are
dropped:

    pairs  (0, 2) (1, 2) (0, 2)        pointers    0 1 2 4
                                       neighbours  2 | 2 | 0 1

Explicit graphs are searched breadth first; where each node is joined to the nodes after
it, up to a furthest one that never decreases, hops are counted with jump pointers in
logarithmic time:

    node       0  1  2  3  4  5        furthest   2  2  4  5  5  5
    hops from 0 to 5:  0 -> 2 -> 4 -> 5
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.kernels._arguments import rises
from blowfish_fast.kernels._jit import kernel

NO_PARENT = -1


@kernel
def breadth_first(
    pointers: IntArray, neighbours: IntArray, starts: IntArray
) -> tuple[IntArray, IntArray, int]:
    """Search a graph breadth first. O(nodes + edges).

    Parameters
    ----------
    pointers : ndarray of int64, shape (nodes + 1,)
        Node v has the neighbours ``neighbours[pointers[v] : pointers[v + 1]]``.
    neighbours : ndarray of int64
        The neighbours of each node, one node after the other.
    starts : ndarray of int64
        Where the search begins, in this order; nodes that were reached before are
        skipped.

    Returns
    -------
    parents : ndarray of int64, shape (nodes,)
        The node from which each was reached; -1 where a search began.
    labels : ndarray of int64, shape (nodes,)
        The number of the search that reached each node; -1 for none.
    count : int
        How many searches began.
    """
    nodes = pointers.size - 1
    parents = np.full(nodes, NO_PARENT, dtype=np.int64)
    labels = np.full(nodes, -1, dtype=np.int64)
    queue = np.empty(nodes, dtype=np.int64)
    count = 0
    for start in starts:
        if labels[start] >= 0:
            continue
        labels[start] = count
        queue[0] = start
        head, tail = 0, 1
        while head < tail:
            node = queue[head]
            head += 1
            for entry in range(pointers[node], pointers[node + 1]):
                other = neighbours[entry]
                if labels[other] < 0:
                    labels[other] = count
                    parents[other] = node
                    queue[tail] = other
                    tail += 1
        count += 1
    return parents, labels, count


def component_labels(pointers: IntArray, neighbours: IntArray) -> tuple[IntArray, int]:
    """Return the connected part of each node, numbered by first node, and their number.

    Parameters
    ----------
    pointers : ndarray of int64, shape (nodes + 1,)
        A symmetric graph in compressed rows, as from `adjacency`.
    neighbours : ndarray of int64
        The neighbours of each node.

    Returns
    -------
    labels : ndarray of int64, shape (nodes,)
        The part of each node.
    count : int
        The number of parts.

    Raises
    ------
    InputError
        If the rows are no graph.
    """
    check_graph(pointers, neighbours)
    starts = np.arange(pointers.size - 1)
    _, labels, count = breadth_first(pointers, neighbours, starts)
    return labels, int(count)


@kernel
def _search(
    pointers: IntArray, neighbours: IntArray, sources: IntArray, targets: IntArray
) -> FloatArray:
    """Search from each source once; equal sources stand side by side."""
    nodes = pointers.size - 1
    answers = np.empty(sources.size)
    depth = np.full(nodes, -1, dtype=np.int64)
    wanted = np.zeros(nodes, dtype=np.bool_)
    queue = np.empty(nodes, dtype=np.int64)
    begin = 0
    while begin < sources.size:
        end = begin
        missing = 0
        while end < sources.size and sources[end] == sources[begin]:
            if not wanted[targets[end]]:
                wanted[targets[end]] = True
                missing += 1
            end += 1
        queue[0] = sources[begin]
        depth[sources[begin]] = 0
        head, tail = 0, 1
        missing -= wanted[sources[begin]]
        while head < tail and missing > 0:
            node = queue[head]
            head += 1
            for entry in range(pointers[node], pointers[node + 1]):
                other = neighbours[entry]
                if depth[other] < 0:
                    depth[other] = depth[node] + 1
                    queue[tail] = other
                    tail += 1
                    missing -= wanted[other]
        for pair in range(begin, end):
            reached = depth[targets[pair]]
            answers[pair] = np.inf if reached < 0 else float(reached)
        for pair in range(begin, end):
            wanted[targets[pair]] = False
        for place in range(tail):
            depth[queue[place]] = -1
        begin = end
    return answers


def pair_distances(
    pointers: IntArray, neighbours: IntArray, sources: IntArray, targets: IntArray
) -> FloatArray:
    """Return the number of edges between pairs of nodes.

    One breadth-first search is made for each different source. It stops when the
    targets of that source are reached.

    Parameters
    ----------
    pointers : ndarray of int64, shape (nodes + 1,)
        A symmetric graph in compressed rows, as from `adjacency`.
    neighbours : ndarray of int64
        The neighbours of each node.
    sources : ndarray of int64, shape (pairs,)
        One node of each pair.
    targets : ndarray of int64, shape (pairs,)
        The other one.

    Returns
    -------
    ndarray of float64, shape (pairs,)
        The distances; infinity where no path leads.

    Raises
    ------
    InputError
        If the rows are no graph, or a pair names no node.
    """
    check_graph(pointers, neighbours)
    check_nodes(sources, targets, pointers.size - 1)
    order = np.argsort(sources, kind="stable")
    answers = np.empty(sources.size)
    answers[order] = _search(pointers, neighbours, sources[order], targets[order])
    return answers


@kernel
def jump_pointers(parents: IntArray, order: IntArray) -> tuple[IntArray, IntArray]:
    """Return depth and jump of each node of a forest.

    One more node lies above all roots. A node jumps to its parent, unless two jumps of
    equal length follow each other above it: these are joined into one. So any ancestor
    is O(log depth) jumps away.

    Parameters
    ----------
    parents : ndarray of int64, shape (nodes,)
        The node above each node; -1 at a root.
    order : ndarray of int64, shape (nodes,)
        The nodes, each after its parent.

    Returns
    -------
    depth : ndarray of int64, shape (nodes + 1,)
        Steps to the node above all roots.
    jump : ndarray of int64, shape (nodes + 1,)
        Where each node jumps to.
    """
    nodes = parents.size
    depth = np.zeros(nodes + 1, dtype=np.int64)
    jump = np.full(nodes + 1, nodes, dtype=np.int64)
    for place in range(nodes):
        node = order[place]
        parent = parents[node] if parents[node] >= 0 else nodes
        depth[node] = depth[parent] + 1
        middle = jump[parent]
        if depth[parent] - depth[middle] == depth[middle] - depth[jump[middle]]:
            jump[node] = jump[middle]
        else:
            jump[node] = parent
    return depth, jump


@kernel
def _hop(far: IntArray, lower: IntArray, upper: IntArray) -> FloatArray:
    answers = np.empty(lower.size)
    nodes = np.arange(far.size)
    parents = np.where(far == nodes, NO_PARENT, far)
    hops, jump = jump_pointers(parents, nodes[::-1].copy())
    for pair in range(lower.size):
        node, goal = lower[pair], upper[pair]
        steps = 0
        while node < goal:
            if jump[node] < goal and jump[node] > node:
                steps += hops[node] - hops[jump[node]]
                node = jump[node]
            elif far[node] > node:
                steps += 1
                node = far[node]
            else:
                steps = -1
                break
        answers[pair] = np.inf if steps < 0 else float(steps)
    return answers


def band_distances(far: IntArray, first: IntArray, second: IntArray) -> FloatArray:
    """Return the hops between nodes that are joined up to a furthest one.

    O(log nodes) each.

    Parameters
    ----------
    far : ndarray of int64, shape (nodes,)
        Node i is joined to i + 1 .. far[i]; `far` is not below i and never decreases.
    first : ndarray of int64, shape (pairs,)
        One node of each pair.
    second : ndarray of int64, shape (pairs,)
        The other one.

    Returns
    -------
    ndarray of float64, shape (pairs,)
        The hops; infinity where no path leads.

    Raises
    ------
    InputError
        If `far` falls, or a pair names no node.
    """
    check_far(far)
    check_nodes(first, second, far.size)
    return _hop(far, np.minimum(first, second), np.maximum(first, second))


@kernel
def _spread(shape: IntArray, steps: IntArray, cells: int) -> IntArray:
    axes = shape.size
    depth = np.full(cells, -1, dtype=np.int64)
    queue = np.empty(cells, dtype=np.int64)
    depth[0] = 0
    queue[0] = 0
    head, tail = 0, 1
    place = np.zeros(axes, dtype=np.int64)
    while head < tail:
        cell = queue[head]
        head += 1
        rest = cell
        for axis in range(axes - 1, -1, -1):
            place[axis] = rest % shape[axis]
            rest //= shape[axis]
        for step in range(steps.shape[0]):
            target = 0
            for axis in range(axes):
                moved = place[axis] + steps[step, axis]
                if moved >= shape[axis]:
                    target = -1
                    break
                target = target * shape[axis] + moved
            if target >= 0 and depth[target] < 0:
                depth[target] = depth[cell] + 1
                queue[tail] = target
                tail += 1
    return depth


def corner_distances(shape: tuple[int, ...], steps: IntArray) -> IntArray:
    """Return the steps from the first corner of a grid to each cell.

    Parameters
    ----------
    shape : tuple[int, ...]
        Cells of each axis.
    steps : ndarray of int64, shape (moves, axes)
        The allowed moves, none negative on any axis.

    Returns
    -------
    ndarray of int64, shape (cells,)
        The least number of steps, in C order; -1 where none lead.

    Raises
    ------
    InputError
        If a move has another number of axes, or goes back.
    """
    steps = np.ascontiguousarray(steps, dtype=np.int64)
    if steps.ndim != 2 or steps.shape[1] != len(shape) or (steps < 0).any():
        raise InputError(
            f"steps must be moves along {len(shape)} axes, none negative; received "
            f"shape {steps.shape}"
        )
    sides = np.array(shape, dtype=np.int64)
    return _spread(sides, steps, int(np.prod(sides)))


def check_runs(
    pointers: IntArray, starts: IntArray, ends: IntArray, values: FloatArray, cells: int
) -> None:
    """Refuse queries that are not runs of cells in compressed rows.

    Parameters
    ----------
    pointers : ndarray of int64, shape (queries + 1,)
        The first run of each query.
    starts : ndarray of int64, shape (runs,)
        The first cell of each run.
    ends : ndarray of int64, shape (runs,)
        The cell after its last.
    values : ndarray of float64, shape (runs,)
        The coefficient of each run.
    cells : int
        Number of cells.

    Raises
    ------
    InputError
        If sizes do not fit, or a run leaves the cells.
    """
    fits = rises(pointers, starts.size) and ends.size == values.size == starts.size
    if not fits or (starts.size and (starts.min() < 0 or ends.max() > cells)):
        raise InputError(
            f"queries must be runs of cells from 0 to {cells}, one pointer per query "
            "and one more"
        )


def check_graph(pointers: IntArray, neighbours: IntArray) -> None:
    """Refuse compressed rows that a kernel could not walk safely.

    Parameters
    ----------
    pointers : ndarray of int64, shape (nodes + 1,)
        Where the neighbours of each node begin.
    neighbours : ndarray of int64
        The neighbours.

    Raises
    ------
    InputError
        If pointers do not rise to the number of neighbours, or a neighbour is no node.
    """
    fits = neighbours.ndim == 1 and rises(pointers, neighbours.size)
    nodes = pointers.size - 1
    if not fits or ((neighbours < 0) | (neighbours >= nodes)).any():
        raise InputError(
            "a graph is given as pointers from 0 to the number of neighbours, and "
            "neighbours among its nodes; graph_distance.adjacency builds it"
        )


def check_far(far: IntArray) -> None:
    """Refuse furthest neighbours that lie behind their node or outside the line."""
    inside = far.ndim == 1 and bool((far >= np.arange(far.size)).all())
    if not inside or (far >= far.size).any() or (np.diff(far) < 0).any():
        raise InputError(
            "the furthest neighbour of each node must not lie before it, must stay "
            "on the line and must never decrease along it"
        )


def check_nodes(first: IntArray, second: IntArray, nodes: int, least: int = 0) -> None:
    """Refuse pairs that are not two rows of nodes.

    Parameters
    ----------
    first : ndarray of int64, shape (pairs,)
        One node of each pair.
    second : ndarray of int64, shape (pairs,)
        The other one.
    nodes : int
        Number of nodes.
    least : int, default 0
        The smallest number that may stand for a node; -1 where "above all" may be
        named.

    Raises
    ------
    InputError
        If lengths differ, or a number is no node.
    """
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(
            "pairs must be two arrays of one length; received shapes "
            f"{first.shape} and {second.shape}"
        )
    both = np.concatenate([first, second])
    if ((both < least) | (both >= nodes)).any():
        raise InputError(
            f"pairs must name nodes from {least} to {nodes - 1}; received {both.min()} "
            f"to {both.max()}"
        )


PAIRS_AT_ONCE = 2**22
"""Pairs of bins that are listed before they are merged."""


@kernel
def _rows(first: IntArray, second: IntArray, nodes: int) -> tuple[IntArray, IntArray]:
    pointers = np.zeros(nodes + 1, dtype=np.int64)
    for pair in range(first.size):
        pointers[first[pair] + 1] += 1
        pointers[second[pair] + 1] += 1
    for node in range(nodes):
        pointers[node + 1] += pointers[node]
    slot = pointers[:-1].copy()
    mixed = np.empty(2 * first.size, dtype=np.int64)
    for pair in range(first.size):
        low, high = first[pair], second[pair]
        mixed[slot[low]] = high
        slot[low] += 1
        mixed[slot[high]] = low
        slot[high] += 1
    # Handing each node to its neighbours, in order, leaves every row sorted.
    for node in range(nodes):
        slot[node] = pointers[node]
    ordered = np.empty(2 * first.size, dtype=np.int64)
    for node in range(nodes):
        for entry in range(pointers[node], pointers[node + 1]):
            neighbour = mixed[entry]
            ordered[slot[neighbour]] = node
            slot[neighbour] += 1
    entries = 0
    begin = 0
    for node in range(nodes):
        end = pointers[node + 1]
        for entry in range(begin, end):
            if entry == begin or ordered[entry] != ordered[entry - 1]:
                mixed[entries] = ordered[entry]
                entries += 1
        begin = end
        pointers[node + 1] = entries
    return pointers, mixed[:entries].copy()


def adjacency(
    first: IntArray, second: IntArray, nodes: int
) -> tuple[IntArray, IntArray]:
    """Return pointers and neighbours of a graph: sorted, symmetric, without repeats.

    Parameters
    ----------
    first : ndarray of int64, shape (pairs,)
        One node of each pair.
    second : ndarray of int64, shape (pairs,)
        The other one, a different node.
    nodes : int
        Number of nodes.

    Returns
    -------
    pointers : ndarray of int64, shape (nodes + 1,)
        Where the neighbours of each node begin.
    neighbours : ndarray of int64
        The neighbours, rising within a node.

    Raises
    ------
    InputError
        If a pair names no node.
    """
    first = np.ascontiguousarray(first, dtype=np.int64)
    second = np.ascontiguousarray(second, dtype=np.int64)
    check_nodes(first, second, nodes)
    return _rows(first, second, nodes)


def upper_pairs(pointers: IntArray, neighbours: IntArray) -> tuple[IntArray, IntArray]:
    """Return each edge of a graph once, as its lower and its higher node.

    Parameters
    ----------
    pointers : ndarray of int64, shape (nodes + 1,)
        A symmetric graph in compressed rows.
    neighbours : ndarray of int64
        The neighbours of each node.

    Returns
    -------
    lower : ndarray of int64, shape (edges,)
        The lower node of each edge.
    higher : ndarray of int64, shape (edges,)
        The higher one.
    """
    nodes = np.arange(pointers.size - 1, dtype=np.int64)
    lower = np.repeat(nodes, np.diff(pointers))
    once = lower < neighbours
    return lower[once], neighbours[once]


def group_members(
    groups: IntArray, labels: IntArray, bins: int
) -> tuple[IntArray, IntArray]:
    """Return the different bins of each group of cells, in compressed rows.

    Parameters
    ----------
    groups : ndarray of int64, shape (cells,)
        The group of each cell, numbered from 0.
    labels : ndarray of int64, shape (cells,)
        The bin of each cell, numbered from 0.
    bins : int
        Number of bins.

    Returns
    -------
    pointers : ndarray of int64, shape (groups + 1,)
        Where the bins of each group begin.
    members : ndarray of int64
        The bins, rising within a group.
    """
    keys = np.unique(groups * np.int64(bins) + labels)
    count = int(keys[-1] // bins) + 1 if keys.size else 0
    pointers = np.searchsorted(keys, np.arange(count + 1, dtype=np.int64) * bins)
    return pointers.astype(np.int64), keys % bins


def _is_news(pointers: IntArray, members: IntArray) -> BoolArray:
    """Mark groups that hold two bins or more and differ from the group before."""
    groups = np.arange(pointers.size - 1)
    same: BoolArray = repeats(groups, pointers, members, members)
    return ~same & (np.diff(pointers) > 1)


@kernel
def _clique_keys(
    pointers: IntArray, members: IntArray, chosen: IntArray, total: int, bins: int
) -> IntArray:
    keys = np.empty(total, dtype=np.int64)
    slot = 0
    for index in range(chosen.size):
        begin, end = pointers[chosen[index]], pointers[chosen[index] + 1]
        for low in range(begin, end):
            for high in range(low + 1, end):
                keys[slot] = members[low] * bins + members[high]
                slot += 1
    return keys


def clique_pairs(
    pointers: IntArray, members: IntArray, bins: int, most: int
) -> Iterator[IntArray]:
    """Yield every pair of bins that share a group, some million pairs at a time.

    Groups equal to the one before are skipped: all lines of a grid look alike when bins
    are slabs of it.

    Parameters
    ----------
    pointers : ndarray of int64, shape (groups + 1,)
        Where the bins of each group begin, as from `group_members`.
    members : ndarray of int64
        The bins.
    bins : int
        Number of bins.
    most : int
        The largest number of pairs that may be listed.

    Yields
    ------
    ndarray of int64
        Keys ``low * bins + high`` of pairs.

    Raises
    ------
    SizeError
        If there would be more than `most` pairs.
    """
    chosen = np.flatnonzero(_is_news(pointers, members))
    sizes = pointers[chosen + 1] - pointers[chosen]
    upto = np.cumsum(sizes * (sizes - 1) // 2)
    if upto.size and upto[-1] > most:
        raise SizeError(
            f"the groups hold {int(upto[-1]):,} pairs of bins; at most {most:,} are "
            "listed"
        )
    begin = 0
    while begin < chosen.size:
        done = int(upto[begin - 1]) if begin else 0
        end = int(np.searchsorted(upto, done + PAIRS_AT_ONCE, side="right"))
        end = max(end, begin + 1)
        total = int(upto[end - 1]) - done
        yield _clique_keys(pointers, members, chosen[begin:end], total, bins)
        begin = end


@kernel
def repeats(
    order: IntArray, pointers: IntArray, rows: IntArray, values: AnyArray
) -> BoolArray:
    """Mark, along `order`, the rows or columns that equal the one before.

    Parameters
    ----------
    order : ndarray of int64
        Rows or columns in the order in which they are compared.
    pointers : ndarray of int64
        Where the entries of each begin.
    rows : ndarray of int64
        The place of each entry.
    values : ndarray
        The entries.

    Returns
    -------
    ndarray of bool
        One mark for each place of `order`; False at the first.
    """
    same = np.zeros(order.size, dtype=np.bool_)
    for place in range(1, order.size):
        before, here = pointers[order[place - 1]], pointers[order[place]]
        size = pointers[order[place] + 1] - here
        if pointers[order[place - 1] + 1] - before != size:
            continue
        equal = True
        for entry in range(size):
            if (
                rows[before + entry] != rows[here + entry]
                or values[before + entry] != values[here + entry]
            ):
                equal = False
                break
        same[place] = equal
    return same


@kernel
def group_rows(codes: IntArray, groups: int) -> tuple[IntArray, IntArray]:
    """Return the rows group by group, each group in its old order. O(rows + groups).

    Counting is faster than a stable sort of the codes, which would take O(rows log
    rows).

    Parameters
    ----------
    codes : ndarray of int64, shape (rows,)
        The group of each row, from 0 on.
    groups : int
        Number of groups.

    Returns
    -------
    starts : ndarray of int64, shape (groups + 1,)
        Where each group starts.
    rows : ndarray of int64, shape (rows,)
        The rows.
    """
    starts = np.zeros(groups + 1, dtype=np.int64)
    for row in range(codes.size):
        starts[codes[row] + 1] += 1
    for group in range(groups):
        starts[group + 1] += starts[group]
    place = starts[:-1].copy()
    rows = np.empty(codes.size, dtype=np.int64)
    for row in range(codes.size):
        rows[place[codes[row]]] = row
        place[codes[row]] += 1
    return starts, rows

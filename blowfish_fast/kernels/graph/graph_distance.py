"""Steps between two nodes of a graph, and its connected parts.

Serves policies: values d edges apart are protected by a factor e^(eps * d). Explicit
graphs are searched breadth first; where each node is joined to the nodes after it, up
to a furthest one, hops are counted with jump pointers in logarithmic time:

    node       0  1  2  3  4  5        furthest   2  2  4  5  5  5
    hops from 0 to 5:  0 -> 2 -> 4 -> 5

The furthest node never decreases along the line, so hopping as far as possible is
never worse than any other walk.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

NO_PARENT = -1


@kernel
def breadth_first(
    pointers: IntArray, neighbours: IntArray, starts: IntArray
) -> tuple[IntArray, IntArray, int]:
    """Return parents and parts of all nodes, searched from `starts`, and how many."""
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

    A symmetric graph in compressed rows, as from ``quotient_graph.adjacency``.
    """
    check_graph(pointers, neighbours)
    starts = np.arange(pointers.size - 1)
    _, labels, count = breadth_first(pointers, neighbours, starts)
    return labels, int(count)


@kernel
def _search(
    pointers: IntArray,
    neighbours: IntArray,
    sources: IntArray,
    targets: IntArray,
    answers: FloatArray,
) -> None:
    """Search from each source once; equal sources stand side by side."""
    nodes = pointers.size - 1
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
        if wanted[sources[begin]]:
            missing -= 1
        while head < tail and missing > 0:
            node = queue[head]
            head += 1
            for entry in range(pointers[node], pointers[node + 1]):
                other = neighbours[entry]
                if depth[other] < 0:
                    depth[other] = depth[node] + 1
                    queue[tail] = other
                    tail += 1
                    if wanted[other]:
                        missing -= 1
        for pair in range(begin, end):
            reached = depth[targets[pair]]
            answers[pair] = np.inf if reached < 0 else float(reached)
        for pair in range(begin, end):
            wanted[targets[pair]] = False
        for place in range(tail):
            depth[queue[place]] = -1
        begin = end


def pair_distances(
    pointers: IntArray, neighbours: IntArray, sources: IntArray, targets: IntArray
) -> FloatArray:
    """Return the number of edges between pairs of nodes; infinite where none lead.

    One breadth-first search of a symmetric graph per different source, stopped when its
    targets are found.
    """
    check_graph(pointers, neighbours)
    check_nodes(sources, targets, pointers.size - 1)
    order = np.argsort(sources, kind="stable")
    found = np.empty(sources.size)
    _search(pointers, neighbours, sources[order], targets[order], found)
    answers = np.empty(sources.size)
    answers[order] = found
    return answers


@kernel
def jump_pointers(parents: IntArray, order: IntArray) -> tuple[IntArray, IntArray]:
    """Return depth and jump of each node of a tree, whose parents come first in order.

    One more node lies above all roots. Jumps are skew-binary: two of equal length are
    joined into one.
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
def _hop(far: IntArray, lower: IntArray, upper: IntArray, answers: FloatArray) -> None:
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


def band_distances(far: IntArray, first: IntArray, second: IntArray) -> FloatArray:
    """Return the hops between nodes that are joined up to a furthest one.

    Node i is joined to i + 1 .. far[i]; `far` is not below i and never decreases.
    """
    check_far(far)
    check_nodes(first, second, far.size)
    answers = np.empty(first.size)
    _hop(far, np.minimum(first, second), np.maximum(first, second), answers)
    return answers


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
    """Return the steps from the first corner of a grid to each cell; -1 if none lead.

    In C order; `steps` (moves, axes) holds the allowed moves, none negative on any
    axis.
    """
    steps = np.ascontiguousarray(steps, dtype=np.int64)
    if steps.ndim != 2 or steps.shape[1] != len(shape) or (steps < 0).any():
        raise InputError(
            f"steps must be moves along {len(shape)} axes, none negative; received "
            f"shape {steps.shape}"
        )
    sides = np.array(shape, dtype=np.int64)
    return _spread(sides, steps, int(np.prod(sides)))


def rises_to(pointers: IntArray, entries: int) -> bool:
    """Return whether pointers of compressed rows rise from 0 to so many entries."""
    return (
        pointers.ndim == 1
        and pointers.size > 0
        and pointers[0] == 0
        and pointers[-1] == entries
        and bool((np.diff(pointers) >= 0).all())
    )


def check_runs(
    pointers: IntArray, starts: IntArray, ends: IntArray, values: FloatArray, cells: int
) -> None:
    """Refuse queries that are not runs of cells in compressed rows."""
    fits = rises_to(pointers, starts.size) and ends.size == values.size == starts.size
    if not fits or (starts.size and (starts.min() < 0 or ends.max() > cells)):
        raise InputError(
            f"queries must be runs of cells from 0 to {cells}, one pointer per query "
            "and one more"
        )


def check_graph(pointers: IntArray, neighbours: IntArray) -> None:
    """Refuse compressed rows that a kernel could not walk safely."""
    fits = neighbours.ndim == 1 and rises_to(pointers, neighbours.size)
    if fits and neighbours.size:
        fits = neighbours.min() >= 0 and neighbours.max() < pointers.size - 1
    if not fits:
        raise InputError(
            "a graph is given as pointers from 0 to the number of neighbours, and "
            "neighbours among its nodes; quotient_graph.adjacency builds it"
        )


def check_far(far: IntArray) -> None:
    """Refuse furthest neighbours that lie behind their node or outside the line."""
    fits = far.ndim == 1
    if fits and far.size:
        fits = bool((far >= np.arange(far.size)).all()) and far[-1] < far.size
        fits = fits and bool((np.diff(far) >= 0).all())
    if not fits:
        raise InputError(
            "the furthest neighbour of each node must not lie before it, must stay "
            "on the line and must never decrease along it"
        )


def check_nodes(first: IntArray, second: IntArray, nodes: int, least: int = 0) -> None:
    """Refuse pairs that are not two rows of nodes, from `least` on."""
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(
            "pairs must be two arrays of one length; received shapes "
            f"{first.shape} and {second.shape}"
        )
    if first.size:
        low = min(int(first.min()), int(second.min()))
        high = max(int(first.max()), int(second.max()))
        if low < least or high >= nodes:
            raise InputError(
                f"pairs must name nodes from {least} to {nodes - 1}; received {low} to "
                f"{high}"
            )

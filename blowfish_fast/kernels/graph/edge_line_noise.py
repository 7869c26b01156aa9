"""The noise on edges of a graph, or on lines of edges of a grid, that queries get.

The draw of edge (u, v) enters a query with the difference of its coefficients at u and
at v, so a set of cells pays only for the edges that leave it.

    query    0   1   1   0          draws seen    a: -1    b: 0    c: +1
    cells    0 a 1 b 2 c 3

A query is a few runs of cells with one value each. The kernel writes its values into a
row of zeros, walks the edges at the cells it covers, each once, and wipes the row.

On a grid all edges between two neighbouring columns form a line, and a rectangle cuts a
line in one run. Along each line, edges are joined in pairs, pairs of pairs and so on.
For every size the squares of the sums, and of the differences of the two halves, say
what noise on such blocks does to a query.

    line of edges     0  1  1  1      what a query takes from each draw of an edge
    sums              0  1  1  1   |  1  2  |  3
    differences                    | -1  0  | -1
    energy, size 2    sums (1 + 4) / 4      differences (1 + 0) / 4

Only edges that a query cuts are followed upwards, level by level.

The edges of one line are the borders between its cells: noise on them is noise on
running totals, of which a query takes the total at a border as often as its
coefficients fall there:

    coefficients      0  0  1  1  1  0        values   -1 at border 2, +1 at border 5
    borders          0  1  2  3  4  5  6
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import InputError
from blowfish_fast.kernels._jit import kernel

from .graph_distance import check_runs, group_rows


def longest_edge(heads: IntArray, tails: IntArray, cells: int) -> int:
    """Return how far apart the two ends of an edge lie at most.

    Parameters
    ----------
    heads : ndarray of int64, shape (edges,)
        One end of each edge.
    tails : ndarray of int64, shape (edges,)
        The other end; -1 for none.
    cells : int
        Number of cells.

    Returns
    -------
    int
        The largest distance along the line of cells; `cells` if an edge has no tail.
    """
    loose = cells if tails.min(initial=0) < 0 else 0
    return max(loose, int(np.abs(heads - tails).max(initial=0)))


class _Runs(NamedTuple):
    """Queries as runs of cells with one value each."""

    pointers: IntArray
    starts: IntArray
    ends: IntArray
    values: FloatArray


class _EdgeNoise(NamedTuple):
    """Edges with their noise, the edges at each cell, and how far the longest leads."""

    heads: IntArray
    tails: IntArray
    variances: FloatArray
    widths: FloatArray
    at: IntArray
    edges: IntArray
    reach: int


@kernel
def _near_end(runs: _Runs, half: int, reach: int) -> tuple[int, int]:
    """Return the cells near the begin (even `half`) or end of a run, each once."""
    first, last = runs.starts[half // 2], runs.ends[half // 2]
    near = min(first + reach, last)
    return (first, near) if half % 2 == 0 else (max(near, last - reach), last)


@kernel
def _moments(runs: _Runs, noise: _EdgeNoise, cells: int) -> FloatArray:
    moments = np.empty((5, runs.pointers.size - 1))
    pointers, values = runs.pointers, runs.values
    heads, tails, at, edges = noise.heads, noise.tails, noise.at, noise.edges
    variances, widths, reach = noise.variances, noise.widths, noise.reach
    row = np.zeros(cells)
    for query in range(pointers.size - 1):
        begin, end = pointers[query], pointers[query + 1]
        for half in range(2 * begin, 2 * end):
            first, last = _near_end(runs, half, 2 * reach)
            row[first:last] += values[half // 2]
        variance = square = largest = steps = width = 0.0
        for half in range(2 * begin, 2 * end):
            # Edges further inside a run join cells of one value.
            first, last = _near_end(runs, half, reach)
            for cell in range(first, last):
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
                    if size == largest:
                        width = min(width, widths[edge])
                    elif size > largest:
                        largest = size
                        width = widths[edge]
        moments[0, query], moments[1, query] = variance, square
        moments[2, query], moments[3, query] = largest, steps
        moments[4, query] = width
        for half in range(2 * begin, 2 * end):
            first, last = _near_end(runs, half, 2 * reach)
            row[first:last] = 0.0
    return moments


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
    """Return five moments of the noise that each query gets from edges that it cuts.

    Parameters
    ----------
    pointers : ndarray of int64, shape (queries + 1,)
        Query `q` owns the runs ``pointers[q]`` up to ``pointers[q + 1]``.
    starts : ndarray of int64, shape (runs,)
        The first cell of each run; runs of a query are disjoint.
    ends : ndarray of int64, shape (runs,)
        The cell after the last one of each run.
    values : ndarray of float64, shape (runs,)
        Coefficient on each cell of the run, not 0.
    heads : ndarray of int64, shape (edges,)
        The cell that gets the draw of each edge.
    tails : ndarray of int64, shape (edges,)
        The cell that it is taken from; -1 for none.
    variances : ndarray of float64, shape (edges,)
        Variance of the noise of each edge.
    widths : ndarray of float64, shape (edges,)
        Laplace scale of the noise of each edge; 0 where there is none.
    cells : int
        Number of cells.

    Returns
    -------
    ndarray of float64, shape (5, queries)
        Variance; sum of (coefficient * width)^2; the largest coefficient * width; sum
        of squared coefficients of noisy edges; width of the edge with the largest.

    Raises
    ------
    InputError
        If a run or an edge leaves the cells, or arrays do not fit each other.
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
    ends_of_edges = np.stack([heads, tails], axis=1).reshape(-1)
    # Edges without a tail are sorted behind all cells.
    at, places = group_rows(
        np.where(ends_of_edges < 0, cells, ends_of_edges), cells + 1
    )
    runs = _Runs(pointers, starts, ends, values)
    edges, reach = (heads, tails, variances, widths), longest_edge(heads, tails, cells)
    noise = _EdgeNoise(*edges, at, places // 2, reach)
    return _moments(runs, noise, cells)


class Energies(NamedTuple):
    """What each query takes from the blocks of each size.

    All arrays have the shape (queries, levels); level l has blocks of 2^l edges. A
    query's *amount* is what it takes from the draw of an edge.

    Attributes
    ----------
    sums : ndarray of float64
        Squares of (sum of the amounts in a block) / 2^l, added up over the blocks.
    differences : ndarray of float64
        Squares of (first half of a block less second half) / 2^l, added up.
    largest_sum : ndarray of float64
        The largest absolute value among the sums.
    largest_difference : ndarray of float64
        The largest absolute value among the differences.
    """

    sums: FloatArray
    differences: FloatArray
    largest_sum: FloatArray
    largest_difference: FloatArray


@kernel
def _row_runs(
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    begin: int,
    end: int,
    columns: int,
    runs: IntArray,
    levels: FloatArray,
) -> int:
    """Cut the pieces of a query at the ends of rows: row, first and last column."""
    count = 0
    for piece in range(begin, end):
        start = starts[piece]
        while start < ends[piece]:
            row = start // columns
            stop = min(ends[piece], (row + 1) * columns)
            runs[count, 0] = row
            runs[count, 1] = start - row * columns
            runs[count, 2] = stop - row * columns
            levels[count] = values[piece]
            count += 1
            start = stop
    # A run in no row ends every search.
    runs[count, 0] = -1
    return count


@kernel
def _cut_within_rows(
    runs: IntArray,
    levels: FloatArray,
    count: int,
    columns: int,
    padded: int,
    sums: FloatArray,
    marks: IntArray,
) -> int:
    """List the edges between neighbouring columns that a query cuts."""
    count_of_marks = 0
    for run in range(count):
        row, first, last = runs[run, 0], runs[run, 1], runs[run, 2]
        if first > 0:
            before = 0.0
            if run > 0 and runs[run - 1, 0] == row and runs[run - 1, 2] == first:
                before = levels[run - 1]
            sums[(first - 1) * padded + row] = before - levels[run]
            marks[count_of_marks] = (first - 1) * padded + row
            count_of_marks += 1
        touches = runs[run + 1, 0] == row and runs[run + 1, 1] == last
        if last < columns and not touches:
            sums[(last - 1) * padded + row] = levels[run]
            marks[count_of_marks] = (last - 1) * padded + row
            count_of_marks += 1
    return count_of_marks


@kernel
def _cut_between_rows(
    runs: IntArray,
    levels: FloatArray,
    count: int,
    shape: IntArray,
    padded: int,
    sums: FloatArray,
    marks: IntArray,
) -> int:
    """List the edges between neighbouring rows that a query cuts."""
    rows, columns = shape[0], shape[1]
    count_of_marks = 0
    upper = 0
    while upper < count:
        row = runs[upper, 0]
        lower = upper
        while runs[lower, 0] == row:
            lower += 1
        following = lower
        # A row above without runs of its own is met with nothing in it.
        first = row if upper > 0 and runs[upper - 1, 0] == row - 1 else row - 1
        for line in range(max(first, 0), min(row, rows - 2) + 1):
            upper_run, lower_run = upper, lower
            if line < row:
                upper_run, lower_run = count, upper
            column = 0
            while column < columns:
                while runs[upper_run, 0] == line and runs[upper_run, 2] <= column:
                    upper_run += 1
                while runs[lower_run, 0] == line + 1 and runs[lower_run, 2] <= column:
                    lower_run += 1
                change = columns
                amount = 0.0
                if runs[upper_run, 0] == line:
                    if runs[upper_run, 1] <= column:
                        amount += levels[upper_run]
                        change = min(change, runs[upper_run, 2])
                    else:
                        change = min(change, runs[upper_run, 1])
                if runs[lower_run, 0] == line + 1:
                    if runs[lower_run, 1] <= column:
                        amount -= levels[lower_run]
                        change = min(change, runs[lower_run, 2])
                    else:
                        change = min(change, runs[lower_run, 1])
                if amount != 0.0:
                    for along in range(column, change):
                        place = line * padded + along
                        sums[place] = amount
                        marks[count_of_marks] = place
                        count_of_marks += 1
                column = change
        upper = following
    return count_of_marks


@kernel
def _follow(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    shape: IntArray,
    across: int,
    levels: int,
    energies: FloatArray,
) -> None:
    padded = 1 << (levels - 1)
    places = max(shape[across] - 1, 0) * padded
    longest = 0
    for query in range(pointers.size - 1):
        longest = max(longest, pointers[query + 1] - pointers[query])
    runs = np.empty((longest + shape[0] + 1, 3), dtype=np.int64)
    heights = np.empty(longest + shape[0] + 1)
    sums = np.zeros(places)
    above = np.zeros(places // 2 + 1)
    turns = np.zeros(places // 2 + 1)
    seen = np.zeros(places // 2 + 1, dtype=np.int64)
    marks = np.empty(places, dtype=np.int64)
    next_marks = np.empty(places // 2 + 1, dtype=np.int64)
    stamp = 0
    for query in range(pointers.size - 1):
        begin, end = pointers[query], pointers[query + 1]
        number = _row_runs(starts, ends, values, begin, end, shape[1], runs, heights)
        if across == 0:
            count = _cut_between_rows(runs, heights, number, shape, padded, sums, marks)
        else:
            count = _cut_within_rows(
                runs, heights, number, shape[1], padded, sums, marks
            )
        size = 1.0
        for level in range(levels):
            energy = largest = 0.0
            for entry in range(count):
                amount = abs(sums[marks[entry]]) / size
                energy += amount * amount
                largest = max(largest, amount)
            energies[0, query, level] = energy
            energies[2, query, level] = largest
            if level == levels - 1:
                break
            stamp += 1
            count_of_parents = 0
            for entry in range(count):
                place = marks[entry]
                parent = place >> 1
                if seen[parent] != stamp:
                    seen[parent] = stamp
                    above[parent] = turns[parent] = 0.0
                    next_marks[count_of_parents] = parent
                    count_of_parents += 1
                above[parent] += sums[place]
                turns[parent] += -sums[place] if place & 1 else sums[place]
            size *= 2.0
            energy = largest = 0.0
            for entry in range(count_of_parents):
                parent = next_marks[entry]
                amount = abs(turns[parent]) / size
                energy += amount * amount
                largest = max(largest, amount)
                marks[entry] = parent
                sums[parent] = above[parent]
            energies[1, query, level + 1] = energy
            energies[3, query, level + 1] = largest
            count = count_of_parents


def line_energies(
    pointers: IntArray,
    starts: IntArray,
    ends: IntArray,
    values: FloatArray,
    shape: tuple[int, int],
    across: int,
) -> Energies:
    """Return what queries take from blocks of edges that step along one axis.

    Parameters
    ----------
    pointers : ndarray of int64, shape (queries + 1,)
        Query `q` owns the runs ``pointers[q]`` up to ``pointers[q + 1]``.
    starts : ndarray of int64, shape (runs,)
        The first cell of each run, in C order; runs of a query are sorted and disjoint.
    ends : ndarray of int64, shape (runs,)
        The cell after the last one of each run.
    values : ndarray of float64, shape (runs,)
        Coefficient on each cell of the run.
    shape : tuple[int, int]
        Rows and columns of the grid.
    across : int
        The axis that edges step along, 0 or 1; their lines run along the other one.

    Returns
    -------
    Energies
        The energies, up to a block that holds a whole line.

    Raises
    ------
    InputError
        If a run leaves the grid, or the axis is another number.
    """
    check_runs(pointers, starts, ends, values, shape[0] * shape[1])
    if across not in (0, 1):
        raise InputError(f"edges step along axis 0 or 1; received {across}")
    levels = line_levels(shape[1 - across])
    energies = np.zeros((4, pointers.size - 1, levels))
    sides = np.array(shape, dtype=np.int64)
    _follow(pointers, starts, ends, values, sides, across, levels, energies)
    return Energies(*energies)


def line_levels(length: int) -> int:
    """Return how many sizes of blocks a line has: 1, 2, 4 ... up to all of it."""
    return (length - 1).bit_length() + 1


@kernel
def border_moments(
    pointers: IntArray,
    borders: IntArray,
    values: FloatArray,
    variances: FloatArray,
    widths: FloatArray,
    least: float,
) -> tuple[FloatArray, IntArray]:
    """Return moments of each query over noisy running totals, and its number of draws.

    Parameters
    ----------
    pointers : ndarray of int64, shape (queries + 1,)
        Query `i` owns the borders ``pointers[i]`` up to ``pointers[i + 1]``.
    borders : ndarray of int64
        Borders; those of one query are distinct.
    values : ndarray of float64
        How often the query takes the total up to each border.
    variances : ndarray of float64
        Variance of the noise at each border of the line.
    widths : ndarray of float64
        Laplace scale of that noise.
    least : float
        The scale of a draw that `terms` counts.

    Returns
    -------
    moments : ndarray of float64, shape (4, queries)
        Variance, sum of (value * width)^2, the largest value * width, and the sum of
        squared values at noisy borders.
    terms : ndarray of int64, shape (queries,)
        The number of draws, if all of them have the scale `least` and count once, up to
        their sign; otherwise -1.
    """
    queries = pointers.size - 1
    moments = np.zeros((4, queries))
    terms = np.zeros(queries, dtype=np.int64)
    for query in range(queries):
        for at in range(pointers[query], pointers[query + 1]):
            size, width = abs(values[at]), widths[borders[at]]
            if size == 0.0 or width == 0.0:
                continue
            moments[0, query] += size * size * variances[borders[at]]
            moments[1, query] += (size * width) ** 2
            moments[2, query] = max(moments[2, query], size * width)
            moments[3, query] += size * size
            if size != 1.0 or width != least:
                terms[query] = -1
            elif terms[query] >= 0:
                terms[query] += 1
    return moments, terms


@kernel
def range_borders(
    first: IntArray,
    first_fraction: FloatArray,
    last: IntArray,
    last_fraction: FloatArray,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return ranges whose end cells count in part, as `border_moments` takes queries.

    A range takes the totals before and after its first cell and its last one.

    Parameters
    ----------
    first : ndarray of int64, shape (queries,)
        The first cell of each range.
    first_fraction : ndarray of float64, shape (queries,)
        The part of it that counts.
    last : ndarray of int64, shape (queries,)
        The last cell, not before the first.
    last_fraction : ndarray of float64, shape (queries,)
        The part of it that counts; where the two cells are one, the first fraction
        counts instead.

    Returns
    -------
    pointers : ndarray of int64, shape (queries + 1,)
        Four borders a query.
    borders : ndarray of int64, shape (4 * queries,)
        The borders.
    values : ndarray of float64, shape (4 * queries,)
        How often the total up to each border is taken; 0 where two of the four borders
        are the same.
    """
    pointers = np.arange(0, 4 * first.size + 1, 4)
    borders = np.empty(4 * first.size, dtype=np.int64)
    values = np.empty(4 * first.size)
    for query in range(first.size):
        at, start, end = 4 * query, first_fraction[query], last_fraction[query]
        left, right = first[query], last[query]
        borders[at], borders[at + 1] = left, left + 1
        borders[at + 2], borders[at + 3] = right, right + 1
        # Where the ends are one cell or neighbours, the two inner borders are one.
        apart = right > left + 1
        inner = 1.0 if apart else (end if right > left else 0.0)
        values[at], values[at + 1] = -start, start - inner
        values[at + 2] = 1.0 - end if apart else 0.0
        values[at + 3] = end if right > left else 0.0
    return pointers, borders, values

"""Policy-specific sensitivity: the largest change of answers along one policy edge.

It is exact, or says that it is an upper bound; it is never below the truth. The
cheapest rule that applies is used. What is paid in rho is priced by *squared* changes.
Proofs: ``docs/proofs/sensitivity.md``, ``docs/proofs/zcdp.md``.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast._support.validation import float_above
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, PolicyError, SizeError, WorkloadError
from blowfish_fast.policies import (
    ABSENT,
    Blocks,
    Change,
    Full,
    Graph,
    Line,
    Policy,
    Threshold,
)
from blowfish_fast.workloads import (
    AllRanges,
    Identity,
    Linear,
    Marginals,
    Prefixes,
    Ranges,
    Rectangles,
    Sum,
    Total,
    Workload,
)

from .columns import (
    MOST_EDGES,
    MOST_ENTRIES,
    column_moves,
    longest_column,
    rectangle_moves,
    rectangles_over,
    workload_columns,
)

LISTED_EDGES = 2**16
LISTED_ENTRIES = 2**24
EXACT = 2.0**52


class Sensitivity(float):
    """A sensitivity, usable as a number, that knows `how` it was found.

    If `exact`, some edge reaches it; otherwise it is an upper bound. A sum of
    coefficients that are not whole numbers is rounded up in its last digits.
    """

    exact: bool
    how: str

    def __new__(cls, value: float, *, exact: bool = True, how: str = "") -> Sensitivity:
        """Take a number, and whether an edge reaches it."""
        number = super().__new__(cls, value)
        number.exact = exact
        number.how = how
        return number

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:
        return (float(self),), {"exact": self.exact, "how": self.how}

    def __repr__(self) -> str:
        kind = "" if self.exact else ", upper bound"
        return f"Sensitivity({float(self):.12g}{kind}: {self.how})"

    __str__ = __repr__


def sensitivity(policy: Policy, workload: Workload) -> Sensitivity:
    """Return the largest change of the answers along one edge of the policy: Lemma SE1.

    Changes are summed in absolute value over all answers (the L1 sensitivity).

    Parameters
    ----------
    policy : Policy
        What is secret.
    workload : Workload
        What is asked, over the same domain.

    Returns
    -------
    Sensitivity
        The sensitivity, a number that says how it was worked out and whether it is
        exact.

    Raises
    ------
    DomainError
        If the two lie over different domains.

    Examples
    --------
    >>> from blowfish_fast import Domain, policies, workloads
    >>> line = Domain(12)
    >>> ranges = workloads.AllRanges(line)
    >>> float(sensitivity(policies.Line(line), ranges))
    12.0
    >>> float(sensitivity(policies.Full(line), ranges))
    42.0
    """
    check_question(policy, workload)
    persons = policy.person_rule
    if policy.has_constraints or persons is not None:
        single = sensitivity(policy.unconstrained, workload)
        if persons is not None and persons.count == "persons":
            how = f"each person counts once: {single.how}"
            return Sensitivity(single, exact=single.exact, how=how)
        # So many records move with one under constraints, which the triangle inequality
        # bounds; all records of a person may move along the worst edge.
        times = policy.group_size
        how = f"{times} records of a person, each: {single.how}"
        if persons is None:
            how = f"{times} times the sensitivity without constraints"
        return Sensitivity(
            single * times, exact=single.exact and persons is not None, how=how
        )
    parts = [Change(0, True, "no edge of the policy changes an answer")]
    if workload.queries and policy.has_bottom:
        parts.append(_absent(policy, workload))
    if workload.queries and policy.has_moves:
        parts.append(_moves(policy, workload))
    # Among equals an exact part wins: an edge reaches the value.
    best = max(parts, key=lambda part: (part.value, part.exact))
    return Sensitivity(float_above(best.value), exact=best.exact, how=best.how)


def check_question(policy: Policy, workload: Workload) -> None:
    """Refuse what is no policy, no workload, or not over one domain.

    Parameters
    ----------
    policy : Policy
        What is secret.
    workload : Workload
        What is asked.

    Raises
    ------
    PolicyError
        If the first is no policy.
    WorkloadError
        If the second is no workload.
    DomainError
        If the two lie over different domains.
    """
    if not isinstance(policy, Policy):
        raise PolicyError(
            "state the policy first, such as policies.Full(domain)",
            received=repr(policy),
        )
    if not isinstance(workload, Workload):
        raise WorkloadError(
            "state the workload second, such as workloads.Identity(domain)",
            received=repr(workload),
        )
    if workload.domain != policy.domain:
        raise DomainError(
            "policy and workload must share one domain",
            received=f"{policy.domain!r} and {workload.domain!r}",
        )


def _absent(policy: Policy, workload: Workload) -> Change:
    """Return the largest change when a record appears or vanishes."""
    marked = policy.bottom_cells()
    cells, count = np.flatnonzero(marked), workload.domain.size
    if isinstance(workload, Identity | Total | Marginals):
        return Change(1, True, "closed form: a record counts in one answer")
    if isinstance(workload, Prefixes):
        how = "closed form: prefixes that hold a cell"
        return Change(count - int(cells[0]), True, how)
    if isinstance(workload, AllRanges):
        # The cells next to the middle of the line, on either side.
        place = int(np.searchsorted(cells, count // 2))
        central = cells[max(0, place - 1) : place + 1].tolist()
        ways = [(cell + 1) * (count - cell) for cell in central]
        return Change(max(ways), True, "closed form: ranges that hold a cell")
    if isinstance(workload, Sum):
        value = float(np.abs(workload.weights[cells]).max())
        return Change(value, True, "the largest absolute weight")
    if isinstance(workload, Ranges):
        coverage = kernels.range_coverage(workload.starts, workload.ends, count)
        return Change(int(coverage[cells].max()), True, "the most ranges over one cell")
    if isinstance(workload, Rectangles):
        return rectangles_over(workload, marked)
    return longest_column(workload_columns(workload), cells)


def _moves(policy: Policy, workload: Workload) -> Change:
    """Return the largest change when a record moves from cell to cell."""
    if isinstance(workload, Identity):
        return Change(2, True, "closed form: a move changes two cells")
    if isinstance(workload, Total):
        return Change(0, True, "closed form: a move keeps the total")
    if isinstance(workload, Marginals):
        changed = policy.project(workload.labels).has_moves
        return Change(
            2 * changed, True, "closed form: whether a move changes the entry"
        )
    if isinstance(workload, Sum):
        value, exact, _ = policy.largest_change(workload.weights[None])
        whole = bool((np.floor(workload.weights) == workload.weights).all())
        if not (whole and value < 2.0**53) and value > 0:
            value = math.nextafter(value, math.inf)
        return Change(value, exact, "the largest change of weight along an edge")
    if isinstance(workload, Prefixes):
        how = "closed form: the longest edge, in cells"
        return Change(policy.longest_edge(), True, how)
    if isinstance(workload, AllRanges):
        return all_range_moves(policy, workload.domain.size)
    if isinstance(workload, Ranges):
        return range_moves(policy, workload.starts, workload.ends)
    if isinstance(workload, Rectangles):
        if workload.whole_cells and workload.domain.ndim == 1:
            lows, highs = (side[:, 0] for side in (workload.starts, workload.ends))
            return range_moves(policy, lows.astype(np.int64), highs.astype(np.int64))
        return rectangle_moves(policy, workload)
    return column_moves(policy, workload_columns(workload))


def all_range_moves(policy: Policy, cells: int) -> Change:
    """Return the most ranges that hold one of two joined cells: Lemma SE2.

    Cells d apart are separated by d (cells + 1 - d) ranges: most at half the line.

    Parameters
    ----------
    policy : Policy
        The policy, without constraints.
    cells : int
        Number of cells of the line.

    Returns
    -------
    Change
        The change.
    """
    longest, half = policy.longest_edge(), (cells + 1) // 2
    how = "closed form: ranges that hold one of two cells"
    short = longest <= half or isinstance(policy, Full | Threshold)
    band = None if short else policy.bandwidth()
    if short or (band is not None and band.all_between):
        length = min(longest, half)
        return Change(length * (cells + 1 - length), True, how)
    if isinstance(policy, Blocks):
        lengths = _near_half(policy, half)
        return Change(int((lengths * (cells + 1 - lengths)).max()), True, how)
    try:
        if policy.edge_count <= MOST_EDGES:
            best = 0
            for chunk in policy.edges():
                lengths = np.abs(np.diff(chunk[(chunk != ABSENT).all(axis=1)]))
                ways = lengths * (cells + 1 - lengths)
                best = max(best, int(ways.max(initial=0)))
            return Change(best, True, "edge by edge")
    except SizeError:
        pass
    return Change(half * (cells + 1 - half), False, "as if all lengths were joined")


def _near_half(policy: Blocks, half: int) -> IntArray:
    """Return, for each cell, the edges whose ends lie around half a line further."""
    cells = policy.labels.size
    # Block after block, each on a stretch of its own, so one search serves all.
    places = np.arange(cells) + policy.labels * np.int64(3 * cells)
    places.sort()
    after = np.searchsorted(places, places + half)
    around = np.stack([np.maximum(after - 1, 0), np.minimum(after, cells - 1)])
    lengths = np.abs(places[around] - places)
    inside = lengths < cells
    nearest: IntArray = lengths[inside]
    return nearest


def range_moves(policy: Policy, starts: IntArray, ends: IntArray) -> Change:
    """Return the most listed ranges that hold one of two joined cells: Lemma SE5.

    Parameters
    ----------
    policy : Policy
        The policy, without constraints.
    starts : ndarray of int64, shape (ranges,)
        The first cell of each range.
    ends : ndarray of int64, shape (ranges,)
        The cell after its last.

    Returns
    -------
    Change
        The change.
    """
    cells = policy.domain.size
    if isinstance(policy, Line):
        bounds = np.bincount(starts, minlength=cells + 1)
        bounds += np.bincount(ends, minlength=cells + 1)
        most = int(bounds[1:cells].max(initial=0))
        return Change(most, True, "the most range ends between two adjacent cells")
    band = policy.bandwidth()
    if band is not None and band.all_between:
        return _sweep_ranges(policy, starts, ends)
    if isinstance(policy, Blocks) and starts.size * policy.sizes.size <= MOST_ENTRIES:
        return _sweep_blocks(policy, starts, ends)
    return _walk_edges(policy, starts, ends)


def _sweep_ranges(policy: Policy, starts: IntArray, ends: IntArray) -> Change:
    cells = policy.domain.size
    bound = np.zeros(cells + 1, dtype=np.bool_)
    bound[[0, cells]] = True
    bound[starts] = True
    bound[ends] = True
    number = np.cumsum(bound) - 1
    stretches = Buckets(np.flatnonzero(bound))
    band = policy.project(stretches).bandwidth()
    assert band is not None, "contiguous bins of a line form a line"
    assert band.all_between, "contiguous bins of a line form a line"
    most = kernels.largest_separation(number[starts], number[ends], band.far)
    return Change(most, True, "sweep over the ranges")


def _sweep_blocks(policy: Blocks, starts: IntArray, ends: IntArray) -> Change:
    """Sweep along the cells block after block: in each, a range is a range again."""
    cells, blocks = policy.domain.size, policy.sizes.size
    order = policy.order
    places = np.arange(cells)[order] + policy.labels[order] * np.int64(cells + 1)
    shift = np.arange(blocks) * np.int64(cells + 1)
    first = np.searchsorted(places, (starts[:, None] + shift).reshape(-1))
    last = np.searchsorted(places, (ends[:, None] + shift).reshape(-1))
    size = np.broadcast_to(policy.sizes, (starts.size, blocks)).reshape(-1)
    # Ranges that hold none or all of a block tell no two of its cells apart.
    split = (first < last) & (last - first < size)
    band = policy.bandwidth(order)
    assert band is not None, "blocks reach their last cell along any order"
    most = kernels.largest_separation(first[split], last[split], band.far)
    return Change(most, True, "sweep over the ranges, block by block")


def _walk_edges(policy: Policy, starts: IntArray, ends: IntArray) -> Change:
    cells = policy.domain.size
    try:
        if policy.edge_count > MOST_EDGES // 8:
            raise SizeError(f"{policy.edge_count:,} edges are too many to list")
        if isinstance(policy, Graph):
            graph = policy
        else:
            graph = Graph(policy.domain, np.concatenate(list(policy.edges())))
        most = kernels.largest_edge_separation(*graph.rows, starts, ends, cells)
        return Change(most, True, "edge by edge")
    except SizeError:
        coverage = kernels.range_coverage(starts, ends, cells)
        most = int(np.partition(coverage, -2)[-2:].sum())
        return Change(
            min(most, starts.size), False, "the two most covered cells together"
        )


def worst_moves(matrix: Any, weights: IntArray, policy: Policy, power: int) -> int:
    """Return the largest sum of weights times |change|^power, or a bound: Lemma ZC4.

    Weights are divided by what they share, so that sums are exact.

    Parameters
    ----------
    matrix : scipy sparse array, shape (rows, cells)
        Whole numbers.
    weights : ndarray of int64, shape (rows,)
        Whole weight of each row.
    policy : Policy
        The policy, without constraints.
    power : int
        1 for epsilon, 2 for rho.

    Returns
    -------
    int
        The sum.

    Raises
    ------
    SizeError
        If sums could not be exact.
    """
    weighted = np.flatnonzero(weights)
    if not weighted.size:
        return 0
    shared = reduce(math.gcd, weights[weighted].tolist())
    small = (weights[weighted] // shared).astype(np.float64)
    rows = matrix.tocsr()[weighted].astype(np.float64)
    rows.eliminate_zeros()
    if not rows.nnz:
        return 0
    if power == 1 or _moves_by_one(rows):
        from scipy import sparse

        scaled = sparse.dia_array((small[None], [0]), shape=(small.size,) * 2) @ rows
        if abs(scaled).sum(axis=0).max(initial=0.0) >= EXACT:
            raise SizeError(
                "the columns of the strategy matrix add up to more than 2^52; use "
                "smaller whole numbers or a larger step"
            )
        moved = sensitivity(policy, Linear(policy.domain, scaled))
        return int(shared) * math.ceil(float(moved))
    edges = policy.edges_up_to(LISTED_EDGES)
    mean = rows.nnz / rows.shape[1]
    if edges is not None and edges * (mean + 1) <= LISTED_ENTRIES:
        return int(shared) * _listed(rows, small, policy)
    return int(shared) * _bound(rows, small, policy)


def _moves_by_one(rows: Any) -> bool:
    """Return whether every row has coefficients 0 and 1, or 0 and -1, alone."""
    least, most = rows.min(axis=1).toarray(), rows.max(axis=1).toarray()
    return bool(((most - least) <= 1.0).all() and (np.abs(rows.data) <= 1.0).all())


def _listed(rows: Any, weights: FloatArray, policy: Policy) -> int:
    from scipy import sparse

    # "absent", the cell -1, has zeros: the last column.
    columns = sparse.hstack([rows, sparse.csr_array((rows.shape[0], 1))]).tocsc()
    worst = 0.0
    for edges in policy.edges():
        moved = columns[:, edges[:, 0]] - columns[:, edges[:, 1]]
        worst = max(worst, float((weights @ moved.multiply(moved)).max(initial=0.0)))
    return _whole(worst)


def _bound(rows: Any, weights: FloatArray, policy: Policy) -> int:
    heaviest = float((weights @ rows.multiply(rows)).max(initial=0.0))
    if not policy.has_moves:
        return _whole(heaviest)
    # (a - b)^2 is at most a^2 + b^2 where both have one sign, else 2 a^2 + 2 b^2.
    one_sign = bool((rows.data >= 0).all() or (rows.data <= 0).all())
    by_columns = heaviest * (2.0 if one_sign else 4.0)
    least, most = rows.min(axis=1).toarray(), rows.max(axis=1).toarray()
    if policy.has_bottom:
        # Whoever is absent stands at 0.
        least, most = np.minimum(least, 0.0), np.maximum(most, 0.0)
    largest = float((most - least).max(initial=0.0))
    sums = float((weights @ abs(rows)).max(initial=0.0))
    return _whole(min(by_columns, largest * 2.0 * sums))


def _whole(value: float) -> int:
    """Return a whole number not below the sum that a float stands for."""
    return math.ceil(value if value < EXACT else value * (1.0 + 1e-9))

"""Policy meets workload: how much one record, moved along one edge, changes answers.

The sensitivity is the largest sum of absolute changes over all answers, over all
edges of the policy graph. It is exact, or says that it is an upper bound; it is never
below the truth. The cheapest rule that applies is used:

    closed form       cells, totals, prefixes, all ranges, marginals, sums
    sweep             listed ranges along a line       line_sensitivity
    step by step      rectangles on a grid             rectangle_sensitivity
    edge by edge      any sparse queries               column_sensitivity

Policies and workloads meet only here and in these files. Queries that cannot tell
some cells apart are first laid over bins of such cells, together with the policy: that
keeps the sensitivity (``docs/proofs/sensitivity.md``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.errors import DomainError, PolicyError, WorkloadError
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import (
    AllRanges,
    Identity,
    Marginals,
    Prefixes,
    Ranges,
    Rectangles,
    Sum,
    Total,
    Workload,
)

from .columns import Part, column_moves, longest_column, workload_columns
from .line import all_range_moves, range_moves
from .rectangles import rectangle_moves, rectangles_over


class Sensitivity(float):
    """A sensitivity, usable as a number, that knows how it was found.

    Attributes
    ----------
    exact : bool
        Whether some edge reaches it; an upper bound otherwise. A sum of coefficients
        that are not whole numbers is rounded up in its last digits.
    how : str
        The rule that gave it.
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
    """Return the largest change of the answers along one edge of the policy.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable.
    workload : Workload
        What is asked, over the same domain.

    Returns
    -------
    Sensitivity
        A float with `exact` and `how`. Changes are summed in absolute value over all
        answers (the L1 sensitivity).

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
    if isinstance(policy, Policy) and policy.has_constraints:
        # One move brings at most `group_size` moves with it, so the triangle inequality
        # gives a bound above.
        single = sensitivity(policy.unconstrained, workload)
        return Sensitivity(
            single * policy.group_size,
            exact=False,
            how=f"{policy.group_size} times the sensitivity without constraints",
        )
    _check(policy, workload)
    parts = [Part(0, True, "no edge of the policy changes an answer")]
    if workload.queries and policy.has_bottom:
        parts.append(_absent(policy, workload))
    if workload.queries and policy.has_moves:
        parts.append(_moves(policy, workload))
    return _largest(parts)


def record_sum_sensitivity(
    policy: Policy, weights: Any, *, values: Any = None
) -> Sensitivity:
    """Return the sensitivity of a sum of records, each with a public weight.

    For the sum of ``weights[i] * t[i]`` over records with values t[i]: the largest
    absolute weight times the longest edge in value units.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable.
    weights : array_like
        One finite, public weight per record (or any set of numbers that holds them
        all). Only the largest absolute value matters.
    values : array_like, optional
        The value of a record in each cell. By default a record may lie anywhere in
        its cell, between the edges of a single attribute, or has the cell's number
        where the attribute has no edges.

    Examples
    --------
    >>> from blowfish_fast import Domain, policies
    >>> ages = Domain.from_edges(range(0, 101, 5))
    >>> float(record_sum_sensitivity(policies.Full(ages), [0.5, -2.0]))
    200.0
    """
    _check_policy(policy)
    heaviest = _heaviest(weights)
    domain = policy.domain
    if values is None and domain.ndim != 1:
        raise WorkloadError(
            f"on {domain.ndim} attributes give the value of each cell that is summed: "
            "values=..."
        )
    extras = domain.attributes[0].extras if values is None else ()
    if extras:
        raise WorkloadError(
            f"records in the cells {list(extras)} have no value on the axis; say what "
            "each cell counts as in the sum: values=..."
        )
    edges = domain.attributes[0].edges
    if values is not None or edges is None:
        given = np.arange(domain.size) if values is None else values
        longest = sensitivity(policy, Sum(domain, given))
    else:
        longest = _largest(_anywhere_in_cells(policy, np.array(edges)))
    value = Fraction(heaviest) * Fraction(float(longest))
    return _largest([Part(_float_above(value), longest.exact, longest.how)])


def _anywhere_in_cells(policy: Policy, edges: FloatArray) -> list[Part]:
    """Return the longest moves when a record may lie anywhere in its cell."""
    parts = [Part(0, True, "no edge of the policy changes the sum")]
    size = np.maximum(np.abs(edges[1:]), np.abs(edges[:-1]))[policy.bottom_cells()]
    if size.size:
        parts.append(Part(float(size.max()), True, "the largest value that may vanish"))
    if policy.has_moves:
        band = policy.bandwidth()
        if band is None:
            span, exact = edges[-1] - edges[0], False
        else:
            joined = band.far > np.arange(band.far.size)
            span = (edges[1:][band.far] - edges[:-1])[joined].max()
            exact = True
        above = math.nextafter(float(span), math.inf)
        whole = bool((np.floor(edges) == edges).all()) and abs(span) < 2.0**53
        how = "the longest edge, from the low end of a cell to the high end of another"
        parts.append(Part(float(span) if whole else above, exact, how))
    return parts


def _check_policy(policy: Policy) -> None:
    if not isinstance(policy, Policy):
        raise PolicyError(
            "state the policy first, such as policies.Full(domain); received "
            f"{policy!r}"
        )
    if policy.has_constraints:
        raise PolicyError(
            "under constraints one move brings others with it, so edges alone do not "
            "give the sensitivity; use the constrained sensitivity of the policy"
        )


def _check(policy: Policy, workload: Workload) -> None:
    _check_policy(policy)
    if not isinstance(workload, Workload):
        raise WorkloadError(
            "state the workload second, such as workloads.Identity(domain); received "
            f"{workload!r}"
        )
    if workload.domain != policy.domain:
        raise DomainError(
            f"policy and workload must share one domain; received {policy.domain!r} "
            f"and {workload.domain!r}"
        )


def _heaviest(weights: Any) -> float:
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise WorkloadError("weights must be numbers, one per record") from None
    if array.size == 0 or not np.isfinite(array).all():
        raise WorkloadError(
            "weights must be finite numbers, one per record; received "
            f"{array.size} of them"
        )
    return float(np.abs(array).max())


def _float_above(value: int | float | Fraction) -> float:
    """Return the least float that is not below `value`."""
    number = float(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)


def _largest(parts: Iterable[Part]) -> Sensitivity:
    # Among equals an exact part wins: an edge reaches the value.
    best = max(parts, key=lambda part: (part.value, part.exact))
    return Sensitivity(_float_above(best.value), exact=best.exact, how=best.how)


def _absent(policy: Policy, workload: Workload) -> Part:
    """Return the largest change when a record appears or vanishes."""
    marked = policy.bottom_cells()
    cells, count = np.flatnonzero(marked), workload.domain.size
    if isinstance(workload, Identity | Total | Marginals):
        return Part(1, True, "closed form: a record counts in one answer")
    if isinstance(workload, Prefixes):
        how = "closed form: prefixes that hold a cell"
        return Part(count - int(cells[0]), True, how)
    if isinstance(workload, AllRanges):
        ways = [(cell + 1) * (count - cell) for cell in _central(cells, count)]
        return Part(max(ways), True, "closed form: ranges that hold a cell")
    if isinstance(workload, Sum):
        value = float(np.abs(workload.weights[cells]).max())
        return Part(value, True, "the largest absolute weight")
    if isinstance(workload, Ranges):
        coverage = kernels.range_coverage(workload.starts, workload.ends, count)
        return Part(int(coverage[cells].max()), True, "the most ranges over one cell")
    if isinstance(workload, Rectangles):
        return rectangles_over(workload, marked)
    return longest_column(workload_columns(workload), cells)


def _central(cells: IntArray, count: int) -> list[int]:
    """Return the cells next to the middle of the line, on either side."""
    place = int(np.searchsorted(cells, count // 2))
    return [int(cell) for cell in cells[max(0, place - 1) : place + 1]]


def _moves(policy: Policy, workload: Workload) -> Part:
    """Return the largest change when a record moves from cell to cell."""
    if isinstance(workload, Identity):
        return Part(2, True, "closed form: a move changes two cells")
    if isinstance(workload, Total):
        return Part(0, True, "closed form: a move keeps the total")
    if isinstance(workload, Marginals):
        changed = policy.project(workload.labels).has_moves
        return Part(2 * changed, True, "closed form: whether a move changes the entry")
    if isinstance(workload, Sum):
        change = policy.largest_change(workload.weights[None])
        whole = bool((np.floor(workload.weights) == workload.weights).all())
        value = change.value
        if not (whole and value < 2.0**53) and value > 0:
            value = math.nextafter(value, math.inf)
        return Part(value, change.exact, "the largest change of weight along an edge")
    if isinstance(workload, Prefixes):
        how = "closed form: the longest edge, in cells"
        return Part(policy.longest_edge(), True, how)
    if isinstance(workload, AllRanges):
        return all_range_moves(policy, workload.domain.size)
    if isinstance(workload, Ranges):
        return range_moves(policy, workload.starts, workload.ends)
    if isinstance(workload, Rectangles):
        return rectangle_moves(policy, workload)
    return column_moves(policy, workload_columns(workload))

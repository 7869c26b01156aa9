"""Sensitivity of a sum over records, each with a public weight.

sum of  weights[i] * t[i]      one record moves from cell to cell, and its value
from anywhere in the one to anywhere in the other
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.errors import WorkloadError
from blowfish_fast.policies import Change, Policy
from blowfish_fast.workloads import Sum

from .policy import Sensitivity, check_policy, largest_of, round_up, sensitivity


def record_sum_sensitivity(
    policy: Policy, weights: Any, *, values: Any = None
) -> Sensitivity:
    """Return the sensitivity of a sum of records, each with a public weight: Lemma SE2.

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
    check_policy(policy)
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
        longest = largest_of(_anywhere_in_cells(policy, np.array(edges)))
    value = Fraction(heaviest) * Fraction(float(longest))
    return largest_of([Change(round_up(value), longest.exact, longest.how)])


def _anywhere_in_cells(policy: Policy, edges: FloatArray) -> list[Change]:
    """Return the longest moves when a record may lie anywhere in its cell."""
    parts = [Change(0, True, "no edge of the policy changes the sum")]
    size = np.maximum(np.abs(edges[1:]), np.abs(edges[:-1]))[policy.bottom_cells()]
    if size.size:
        parts.append(
            Change(float(size.max()), True, "the largest value that may vanish")
        )
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
        parts.append(Change(float(span) if whole else above, exact, how))
    return parts


def _heaviest(weights: Any) -> float:
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise WorkloadError("weights must be numbers, one per record") from None
    if array.size == 0 or not np.isfinite(array).all():
        raise WorkloadError(
            "weights must be finite numbers, one per record",
            received=f"{array.size} of them",
        )
    return float(np.abs(array).max())

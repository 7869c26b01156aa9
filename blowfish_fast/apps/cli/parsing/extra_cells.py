"""Policies over domains with cells for missing values and values outside.

    0 - 1 - 2 - 3          a line of ages
    |   |   |   |
      (missing)            whether an age is missing is as secret as the age

Such a cell has no place along its axis. It is joined to every value and to the other
extra cells, which protects most: no policy that speaks of distances says less.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from blowfish_fast.data.axes import Attribute
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError, SizeError
from blowfish_fast.policies import Graph, Policy, Product

from .words import KNOWN_TOTALS, knowing, parsed_policy

WHOLE_RECORDS = ("add_remove", "full", "attribute")
"""Policies that treat all cells alike."""

MOST_EDGES = 2**22


def policy_over(words: str, domain: Domain) -> Policy:
    """Return the policy in words, with every extra cell joined to all values.

    Examples
    --------
    >>> ages = Domain.from_edges([0, 18, 65, 120], name="age")
    >>> policy_over("line", ages.with_extra_cells(missing=True)).edge_count
    5
    """
    words, _, known = words.strip().partition(KNOWN_TOTALS)
    if known:
        return knowing(policy_over(words, domain), known, domain)
    name, _, setting = words.partition(":")
    if name in WHOLE_RECORDS or not any(one.extras for one in domain.attributes):
        return parsed_policy(words, domain)
    if domain.ndim > 1:
        parts = setting.split(",")
        if name == "product" and len(parts) == domain.ndim:
            factors = [
                policy_over(one, domain.marginal(axis))
                for axis, one in enumerate(parts)
            ]
            return Product(*factors, domain=domain)
        raise InputError(
            f"cells for missing values or values outside have no place in {words!r} "
            "over several columns; use product:POLICY,POLICY, full or attribute, or "
            "clamp such values"
        )
    (axis,) = domain.attributes
    inner = parsed_policy(words, Domain._of([_regular(axis)]))
    if inner.edge_count > MOST_EDGES:
        raise SizeError(
            f"{words!r} has {inner.edge_count:,} edges, and with a cell for missing "
            "values or values outside at most 2^22 are listed; use coarser cells, "
            "full, or clamp such values"
        )
    parts_of_edges = list(inner.edges())
    for extra in range(axis.regular, domain.size):
        others = np.arange(extra)
        parts_of_edges.append(np.column_stack([others, np.full(extra, extra)]))
    return Graph(domain, np.concatenate(parts_of_edges))


def _regular(axis: Attribute) -> Attribute:
    levels = None if axis.levels is None else axis.levels[: axis.regular]
    return replace(axis, size=axis.regular, levels=levels, extras=())

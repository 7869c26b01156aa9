"""Which questions, partitions and fits recipes for wide domains take.

A wide domain has up to 2^62 cells, which nobody lists: what needs its cells one by one
is refused here, before any data are looked at.
"""

from __future__ import annotations

from typing import Any

from blowfish_fast.data.domain import KeyDomain, is_wide
from blowfish_fast.data.wide.map_curve import MapCurve
from blowfish_fast.errors import DomainError, InputError, WorkloadError
from blowfish_fast.measure.handle import policy_along
from blowfish_fast.measure.selectors.partitions import Descent
from blowfish_fast.workloads import Identity, Ranges, Rectangles, Workload

MOST_CELLS = 2**62
"""Cells are numbered in 64 bits."""

LONGEST_SIDE = 2**50
"""Cells of a side of a map: parts of it are told apart by doubles."""


def check_wide(policy: Any, workload: Workload, partition: Any) -> Descent:
    """Return the partition of a wide domain; refuse what needs its cells one by one.

    Parameters
    ----------
    policy : Policy
        Over a wide domain of one attribute, or a map of two; of a map, every two cells
        are joined, or none is.
    workload : Workload
        Ranges of a line, rectangles of a map.
    partition : "best" or Descent
        How buckets are chosen.

    Returns
    -------
    Descent
        The one that was stated, or a plain one.
    """
    domain = policy.domain
    if isinstance(domain, KeyDomain):
        raise DomainError(
            "Dawa answers ranges, and words have none: they are numbered by their "
            "length and symbols, and neighbours are not alike",
            received=repr(domain),
            way_out="List the frequent words with SparseLaplace; where codes are "
            "numbers or times state them so, WideDomain.from_steps",
        )
    curve = MapCurve(*domain.shape) if domain.ndim == 2 else None
    line = domain.size if curve is None else curve.cells
    if domain.ndim > 2 or line > MOST_CELLS or max(domain.shape[-2:]) > MOST_CELLS:
        raise DomainError(
            "ranges of a wide domain are those of one attribute, or rectangles of two, "
            "each side of a map filled up to a power of two, of at most 2^62 cells",
            received=f"{domain.ndim} attributes, {domain.size:,} cells",
            way_out="Take a marginal, list heavy cells with SparseLaplace, or publish "
            "tables with Contingency",
        )
    asked, name = (Ranges, "Ranges") if curve is None else (Rectangles, "Rectangles")
    if not isinstance(workload, asked):
        raise WorkloadError(
            f"of a wide domain {name.lower()} are asked, which are listed",
            received=repr(workload),
            way_out=f"Write workloads.{name}(domain, starts, ends)",
        )
    if curve is not None:
        check_map(policy, curve)
    if isinstance(partition, str) and partition == "best":
        partition = Descent()
    if not isinstance(partition, Descent):
        raise InputError(
            "cells of a wide domain are divided from its root, by partitions.Descent",
            received=repr(partition),
            way_out="Leave partition out, or state partitions.Descent(fan_out=...)",
        )
    return partition if curve is None else partition.on_map(curve)


def check_map(policy: Any, curve: MapCurve) -> None:
    """Refuse a map whose sides doubles do not count, or whose policy has distances.

    Parameters
    ----------
    policy : Policy
        Over the cells of the map.
    curve : MapCurve
        Its sides.

    Raises
    ------
    DomainError
        If a side has more than 2^50 cells.
    PolicyError
        If the policy is not the same on any numbering of the cells.
    """
    if max(curve) > LONGEST_SIDE:
        raise DomainError(
            "a side of a map has at most 2^50 cells",
            received=f"{max(curve):,}",
            way_out="Take longer steps",
        )
    policy_along(policy.unconstrained, curve)


def check_unfitted(fit: Any) -> None:
    """Refuse fits of single cells, which a wide domain does not list."""
    if fit not in ("best", None):
        raise InputError(
            "estimates of a wide domain are totals of buckets, which no fit changes",
            received=f"fit={fit!r}",
            way_out="Leave fit out",
        )


def refuse_wide_advice(policy: Any, workload: Any) -> None:
    """Refuse to weigh or to try mechanisms where there is only one.

    Parameters
    ----------
    policy : Policy
        Over any domain; anything else is left to others to refuse.
    workload : Workload
        What is asked of it. Tables of a wide domain are weighed as usual.

    Raises
    ------
    DomainError
        If single cells or ranges of a wide domain are asked.
    """
    domain = getattr(policy, "domain", None)
    listed = Ranges | Rectangles | Identity
    if not is_wide(domain) or not isinstance(workload, listed):
        return
    lists = isinstance(workload, Identity)
    use = (
        "SparseLaplace, in rho SparseGaussian; their threshold is free to ask"
        if lists
        else "Dawa; how far an answer is off depends on the data, and its intervals "
        "hold the truth"
    )
    raise DomainError(
        "over a wide domain one mechanism serves what is asked, and none is weighed "
        "against it",
        received=repr(domain),
        way_out=f"Use {use}",
    )

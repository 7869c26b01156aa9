"""Disjoint regions of one domain, and the edges that join two of them.

    cells     0 1 2 3 | 4 5 6 7 | 8 9      regions 0 and 1, and the rest
    policy    0-1-2-3   4-5-6-7   8-9      no edge crosses: the largest cost counts
              0-1-2-3 - 4-5-6-7   8-9      3-4 crosses: a move changes two parts

Without crossing edges every neighbouring database changes one region only, along an
edge that lies inside it. So each part needs the edges inside its own region, and the
parts together cost no more than the largest. Proof: ``docs/proofs/composition.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray
from blowfish_fast._support.validation import as_integers
from blowfish_fast.errors import DomainError, PolicyError, SizeError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.policies import ABSENT, Full, Policy

from .composition import Cost, constraints_bind, currency_of, parallel_by_regions

MOST_WALKED = 2**24
"""Most edges that are compared one by one, for a region."""


class Region(NamedTuple):
    """Cells of a whole domain, and the policy and budget of what measures them."""

    cells: Any
    policy: Policy
    budget: Budget


def check_regions(regions: Sequence[Region], whole: Policy) -> None:
    """Refuse regions that some edge of `whole` joins, and policies that lack an edge.

    Afterwards the regions together cost the largest of their budgets under `whole`.
    """
    if constraints_bind(whole):
        raise PolicyError(
            "under count constraints a neighbouring database may change several "
            "regions at once",
            way_out="Release them one after the other",
        )
    cells, labels = region_labels([one.cells for one in regions], whole)
    crossings = crossing_regions(whole, labels)
    protected = [
        protects_region(one.policy, whole, inside)
        for one, inside in zip(regions, cells, strict=True)
    ]
    if crossings:
        price = _price(regions, protected, crossings, labels, whole)
        raise PolicyError(
            f"edges of the ledger's policy join {len(crossings)} pairs of regions (the "
            f"first: {crossings[0]}; {len(regions)} stands for the rest of the domain),"
            f" so one record changes two parts at once. Together they cost {price}, "
            "not the largest of them; release them one after the other, or choose "
            "regions that no edge joins. Nothing was charged"
        )
    if not all(protected):
        number = protected.index(False)
        raise PolicyError(
            f"region {number} has {cells[number].size} cells, and "
            f"{regions[number].policy!r} is not known to have, over as many cells, all "
            "edges that the ledger's policy has inside the region. policies.Full over "
            "the region covers every move. Nothing was charged"
        )


def region_labels(
    regions: Sequence[Any], policy: Policy
) -> tuple[list[IntArray], IntArray]:
    """Read regions as cell numbers, and number the region of every cell.

    A region is a list of cell numbers in C order, in the order in which its mechanism
    knows them, or a mask of the domain's shape. Cells of no region share the number
    after the last.
    """
    domain = policy.domain
    labels = np.full(domain.size, -1, dtype=np.int64)
    cells = [_cell_numbers(region, policy) for region in regions]
    for number, region in enumerate(cells):
        if (labels[region] != -1).any() or np.unique(region).size != region.size:
            raise DomainError(
                f"regions must be disjoint; region {number} names a cell again",
                way_out="Release overlapping regions one after the other",
            )
        labels[region] = number
    labels[labels == -1] = len(cells)
    return cells, labels


def _cell_numbers(region: Any, policy: Policy) -> IntArray:
    domain = policy.domain
    given: AnyArray = np.asarray(region)
    if given.dtype.kind == "b":
        if given.shape not in (domain.shape, (domain.size,)):
            raise DomainError(
                f"a mask must have the shape of the domain, {domain.shape}",
                received=given.shape,
            )
        given = np.flatnonzero(given.reshape(-1))
    cells = as_integers(given, "cells of a region", DomainError).reshape(-1)
    if cells.size == 0 or cells.min() < 0 or cells.max() >= domain.size:
        raise DomainError(
            f"a region needs at least one cell, numbered 0 to {domain.size - 1}",
            received=f"{cells[:5]} ...",
        )
    return cells


def crossing_regions(policy: Policy, labels: IntArray) -> list[tuple[int, int]]:
    """Return the pairs of regions that an edge of `policy` joins.

    Linear in the cells where no edge crosses, for the built-in policies.
    """
    quotient = policy.project(labels)
    if not quotient.has_moves:
        return []
    pairs = np.concatenate(list(quotient.edges()))
    moves = pairs[(pairs != ABSENT).all(axis=1)]
    return [(int(one), int(two)) for one, two in moves]


def protects_region(policy: Policy, whole: Policy, cells: IntArray) -> bool:
    """Return whether `policy` has every edge that `whole` has inside a region.

    `policy` lies over as many cells as the region has, in the order of `cells`, or is a
    projection of such a policy; constraints of `whole`, if any, do not bind.
    """
    if policy.person_rule != whole.person_rule:
        return False
    link: Policy | None = policy.unconstrained
    while link is not None:
        if link.domain.size == cells.size and _has_edges_inside(link, whole, cells):
            return True
        link = link.parent
    return False


def _has_edges_inside(policy: Policy, whole: Policy, cells: IntArray) -> bool:
    hidden = whole.bottom_cells()[cells]
    if not policy.bottom_cells()[hidden].all():
        return False
    if not whole.has_moves or isinstance(policy, Full):
        return True
    place = np.full(whole.domain.size, ABSENT, dtype=np.int64)
    place[cells] = np.arange(cells.size)
    try:
        if whole.edge_count > MOST_WALKED:
            return False
        for chunk in whole.edges():
            moves = chunk[(chunk != ABSENT).all(axis=1)]
            ends = place[moves]
            ends = ends[(ends != ABSENT).all(axis=1)]
            if not policy.joins(ends[:, 0], ends[:, 1]).all():
                return False
    except SizeError:
        return False
    return True


def presence_cost(policy: Policy, budget: Budget) -> Cost:
    """Return what it costs that a record enters or leaves, at `budget` per edge."""
    if not policy.has_bottom:
        return math.inf
    try:
        steps = policy.distance(np.arange(policy.domain.size), ABSENT).max()
    except SizeError:
        return math.inf
    return budget.at_distance(int(steps)).amount if math.isfinite(steps) else math.inf


def _price(
    regions: Sequence[Region],
    protected: Sequence[bool],
    crossings: Sequence[tuple[int, int]],
    labels: IntArray,
    whole: Policy,
) -> str:
    """Say what regions that edges cross would cost together."""
    presence = [presence_cost(one.policy, one.budget) for one in regions]
    power = regions[0].budget.power
    # A move that no edge inside protects is one record leaving and one entering.
    inside: list[Cost] = [
        one.budget.amount if ok else 2**power * entering
        for one, ok, entering in zip(regions, protected, presence, strict=True)
    ]
    hidden = np.unique(labels[whole.bottom_cells()]).tolist()
    entering = [*presence, Fraction(0)]
    price = parallel_by_regions(inside, entering, crossings, bottom=hidden)
    if price == math.inf:
        return "more than any budget (some part gives the number of its records away)"
    return f"up to {currency_of(power).short} = {float(price):g}"

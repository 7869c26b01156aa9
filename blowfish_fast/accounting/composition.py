"""Composition: what several releases cost together (``docs/proofs/composition.md``).

    one after the other      the sum of the costs
    different people         the largest cost             parallel_by_ids
    different regions of     the largest cost, if no      check_regions
    the domain               edge joins two regions;
                             otherwise, see below         parallel_by_regions

Two regions, and a policy in which neighbouring values are joined:

    ages      0-17   |   18-99          a record that moves from 17 to 18 leaves the
    costs      1/2   |    1/3           first region and enters the second: 1/2 + 1/3
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import as_integers, as_truth
from blowfish_fast.errors import DomainError, EpsilonError, PolicyError, SizeError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.policies import ABSENT, Constrained, Full, Policy

MOST_WALKED = 2**24
"""Edges of a policy up to which they are compared one by one."""

Cost = Fraction | float
"""An exact cost, or infinity where nothing bounds it."""


class Currency(NamedTuple):
    """What a ledger counts: epsilon in billionths, or rho in trillionths.

    A ledger holds whole units, so that its sums are exact.

    Attributes
    ----------
    name : str
        "epsilon" or "rho".
    short : str
        The same in messages: "eps" or "rho".
    units : int
        How many units make an epsilon, or a rho, of 1.
    power : int
        1 for epsilon, 2 for rho: the price of a move over d edges is d to this power
        times that of one edge.
    """

    name: str
    short: str
    units: int
    power: int

    def charged(self, amount: Fraction) -> int:
        """Return a cost in whole units, rounded up."""
        return math.ceil(amount * self.units)

    def granted(self, amount: Fraction) -> int:
        """Return a budget in whole units, rounded down; refuse what a file cannot hold.

        Raises
        ------
        EpsilonError
            If it is 2^63 units or more.
        """
        units = math.floor(amount * self.units)
        if units >= 2**63:
            raise EpsilonError(
                f"a ledger counts less than {2**63 // self.units:,} of {self.name}",
                received=f"{float(amount):g}",
                way_out="A budget of that size protects nobody; state a smaller one",
            )
        return units

    def amount(self, units: int) -> Fraction:
        """Return what whole units stand for."""
        return Fraction(units, self.units)

    def text(self, units: int) -> str:
        """Write units as a decimal number, exactly."""
        return format((Decimal(units) / self.units).normalize(), "f")

    def words(self, units: int) -> str:
        """Write units as messages do: "eps = 0.3"."""
        return f"{self.short} = {self.text(units)}"


EPSILON = Currency("epsilon", "eps", 10**9, 1)
RHO = Currency("rho", "rho", 10**12, 2)


def currency_of(power: int) -> Currency:
    """Return the currency of budgets of a power."""
    return EPSILON if power == 1 else RHO


def parallel_by_ids(
    costs: Sequence[Fraction], policy: Policy, *, scoped: bool = False
) -> Fraction:
    """Return what releases about disjoint sets of people cost together: the largest.

    A record that changes belongs to one person, so it changes the data of one release
    (Lemma CO3). Publicly known counts can break this: if one person's record moves,
    another person's may have to move as well to keep the count. Such a policy is
    refused.

    Parameters
    ----------
    costs : Sequence[Fraction]
        The cost of each release, all in one currency.
    policy : Policy
        What is secret.
    scoped : bool, default False
        The caller's word that each known count is about people of one part only.

    Returns
    -------
    Fraction
        The largest cost.

    Raises
    ------
    PolicyError
        If constraints tie the parts to each other.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.Full(bf.Domain(4))
    >>> float(parallel_by_ids([Fraction(1, 4), Fraction(1, 2)], policy))
    0.5
    """
    if not as_truth(scoped, "scoped") and constraints_bind(policy):
        raise PolicyError(
            "this policy has count constraints, which tie the people of different "
            "parts to each other, so their costs add up",
            way_out="Release the parts one after the other, or pass scoped=True if "
            "each constraint counts people of one part only",
        )
    return max(costs)


def constraints_bind(policy: Policy) -> bool:
    """Return whether a record that moves along some edge changes a known count.

    `cell_kinds` groups cells that lie in the same known counts: a move within a kind
    changes none of them, and a move between two kinds changes one.
    """
    if not isinstance(policy, Constrained):
        return False
    if policy.constraints.domain != policy.domain:
        return True
    kinds = policy.constraints.cell_kinds
    if policy.unconstrained.project(kinds.labels).has_moves:
        return True
    # Pointers delimit the known counts of each kind. A record that enters or leaves a
    # cell of some known count changes it.
    is_counted = np.diff(kinds.pointers)[kinds.labels] > 0
    return bool(policy.bottom_cells()[is_counted].any())


def parallel_by_regions(
    inside: Sequence[Cost],
    presence: Sequence[Cost],
    crossings: Iterable[tuple[int, int]],
    *,
    bottom: Iterable[int] = (),
) -> Cost:
    """Return the exact price of releases about disjoint regions of the domain.

    One record changes, along one edge (Lemma CO4):

        inside region i                  inside[i]
        from region i to region j        presence[i] + presence[j]
        from region i to "absent"        presence[i]

    The price is the largest of these over all edges of the policy.

    Parameters
    ----------
    inside : Sequence[Cost]
        For each region: its cost when a record moves inside it.
    presence : Sequence[Cost]
        For each region: its cost when a record enters or leaves it; infinite where the
        number of its records is released exactly.
    crossings : Iterable[tuple[int, int]]
        Pairs of regions that edges join, by number.
    bottom : Iterable[int], default ()
        Regions with an edge to "absent", by number.

    Returns
    -------
    Cost
        The price; infinite if no price protects.

    Examples
    --------
    >>> half, third = Fraction(1, 2), Fraction(1, 3)
    >>> float(parallel_by_regions([half, third], [half, third], crossings=[]))
    0.5
    >>> joined = parallel_by_regions([half, third], [half, third], crossings=[(0, 1)])
    >>> str(joined)
    '5/6'
    """
    moves = [presence[first] + presence[second] for first, second in crossings]
    return max([*inside, *(presence[first] for first in bottom), *moves], default=0.0)


class Region(NamedTuple):
    """Cells of a whole domain, and the policy and budget of what measures them.

    Attributes
    ----------
    cells : array_like of int
        The numbers of its cells in the whole domain.
    policy : Policy
        The policy of its release, over these cells in their order.
    budget : Budget
        What its release spends.
    """

    cells: Any
    policy: Policy
    budget: Budget


def check_regions(regions: Sequence[Region], whole: Policy) -> None:
    """Refuse regions that an edge of `whole` joins, and policies that lack an edge.

    Parameters
    ----------
    regions : Sequence[Region]
        The regions.
    whole : Policy
        The policy over the whole domain.

    Raises
    ------
    PolicyError
        If releases of these regions do not compose in parallel.
    """
    if constraints_bind(whole):
        raise PolicyError(
            "under count constraints a neighbouring database may change several "
            "regions at once",
            way_out="Release them one after the other",
        )
    cells, labels = region_labels([region.cells for region in regions], whole)
    crossings = crossing_regions(whole, labels)
    protected = [
        protects_region(region.policy, whole, inside)
        for region, inside in zip(regions, cells, strict=True)
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
    """Read the cells of regions, and number the region of every cell, the rest last.

    Parameters
    ----------
    regions : Sequence[object]
        The cells of each region.
    policy : Policy
        The policy over the whole domain.

    Returns
    -------
    cells : list[ndarray of int64]
        The cells of each region.
    labels : ndarray of int64, shape (cells,)
        The region of every cell.

    Raises
    ------
    DomainError
        If regions overlap, are empty, or leave the domain.
    """
    labels = np.full(policy.domain.size, -1, dtype=np.int64)
    listed = [
        as_integers(region_cells, "cells of a region", DomainError)
        for region_cells in regions
    ]
    cells = [region_cells.reshape(-1) for region_cells in listed]
    for number, region in enumerate(cells):
        if region.size == 0 or region.min() < 0 or region.max() >= labels.size:
            raise DomainError(
                f"a region needs at least one cell, numbered 0 to {labels.size - 1}",
                received=f"{region[:5]} ...",
            )
        if (labels[region] != -1).any() or np.unique(region).size != region.size:
            raise DomainError(
                f"regions must be disjoint; region {number} names a cell again",
                way_out="Release overlapping regions one after the other",
            )
        labels[region] = number
    labels[labels == -1] = len(cells)
    return cells, labels


def crossing_regions(policy: Policy, labels: IntArray) -> list[tuple[int, int]]:
    """Return the pairs of regions that an edge of `policy` joins.

    Parameters
    ----------
    policy : Policy
        The policy over the whole domain.
    labels : ndarray of int64, shape (cells,)
        The region of every cell.

    Returns
    -------
    list[tuple[int, int]]
        The pairs.
    """
    quotient = policy.project(labels)
    if not quotient.has_moves:
        return []
    pairs = np.concatenate(list(quotient.edges()))
    moves = pairs[(pairs != ABSENT).all(axis=1)]
    return [(int(first), int(second)) for first, second in moves]


def protects_region(policy: Policy, whole: Policy, cells: IntArray) -> bool:
    """Return whether a policy over a region has all edges of the whole inside it.

    Parameters
    ----------
    policy : Policy
        The policy over the region's cells.
    whole : Policy
        The policy over the whole domain.
    cells : ndarray of int64, shape (cells of the region,)
        The numbers of the region's cells in the whole domain.

    Returns
    -------
    bool
        False also where there are too many edges to compare them.
    """
    if policy.person_rule != whole.person_rule:
        return False
    # The policy may be one over bins, the quotient of a finer policy (its `parent`). If
    # that one is over the cells of the region, its edges are compared.
    ancestor: Policy | None = policy.unconstrained
    while ancestor is not None:
        fits = ancestor.domain.size == cells.size
        if fits and _has_edges_inside(ancestor, whole, cells):
            return True
        ancestor = ancestor.parent
    return False


def _has_edges_inside(policy: Policy, whole: Policy, cells: IntArray) -> bool:
    """Compare edges one by one: those to "absent", then those between two cells."""
    has_absent_edge = whole.bottom_cells()[cells]
    if not policy.bottom_cells()[has_absent_edge].all():
        return False
    if not whole.has_moves or isinstance(policy, Full):
        return True
    # The number of each cell inside the region; ABSENT for cells outside.
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
    """Return what it costs that a record enters or leaves, at `budget` per edge.

    Parameters
    ----------
    policy : Policy
        The policy of a region.
    budget : Budget
        What an edge costs.

    Returns
    -------
    Cost
        The cost; infinite where nothing protects presence.
    """
    if not policy.has_bottom:
        return math.inf
    try:
        steps = policy.distance(np.arange(policy.domain.size), ABSENT).max()
    except SizeError:
        return math.inf
    if not math.isfinite(steps):
        return math.inf
    return budget.at_distance(Fraction(steps)).amount


def _price(
    regions: Sequence[Region],
    protected: Sequence[bool],
    crossings: Sequence[tuple[int, int]],
    labels: IntArray,
    whole: Policy,
) -> str:
    """Say what regions that edges cross would cost together."""
    presence = [presence_cost(region.policy, region.budget) for region in regions]
    power = regions[0].budget.power
    # Where the region's policy lacks an edge, a move is one record leaving and another
    # entering: two steps, which cost 2 times as much in epsilon and 4 times in rho.
    inside: list[Cost] = [
        region.budget.amount if ok else 2**power * entering
        for region, ok, entering in zip(regions, protected, presence, strict=True)
    ]
    with_absent = np.unique(labels[whole.bottom_cells()]).tolist()
    # Of the rest of the domain nothing is released: entering and leaving it is free.
    entering_each = [*presence, Fraction(0)]
    price = parallel_by_regions(inside, entering_each, crossings, bottom=with_absent)
    if price == math.inf:
        return "more than any budget (some part gives the number of its records away)"
    return f"up to {currency_of(power).short} = {float(price):g}"

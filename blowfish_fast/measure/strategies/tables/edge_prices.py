"""What an edge of a policy moves in contingency tables, kind by kind.

A record that moves in some attributes leaves one cell and enters another in every
table that holds one of them, and changes nothing in the others; a record that appears
adds one to one cell of every table.

    edge               (age)  (sex)  (age, sex)  (region)
    age 30 -> 31         2      0        2           0
    absent -> record     1      1        1           1
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from blowfish_fast.errors import DomainError, PolicyError
from blowfish_fast.policies import (
    Attribute,
    Full,
    Policy,
    Product,
    TablePolicy,
    WithAbsent,
)

AxisSet = tuple[int, ...]
"""Attributes of a table, by number, increasing."""

MOST_EDGES = 2**20
"""Edges that are listed to see which attributes they change together."""


class EdgeKind(NamedTuple):
    """Edges that move a record in some attributes at once, or in or out of the data.

    `axes` are the attributes in which the record moves; None where it appears.
    `length`: how many edges away "absent" is stated to be; 1 for moves.
    """

    axes: frozenset[int] | None
    length: Fraction = Fraction(1)

    def moves(self, table: AxisSet) -> bool:
        """Return whether such an edge changes a table."""
        return self.axes is None or not self.axes.isdisjoint(table)

    @property
    def cells(self) -> int:
        """Cells that change in each table that is moved."""
        return 1 if self.axes is None else 2


def edge_kinds(policy: Policy) -> tuple[EdgeKind, ...]:
    """Return the kinds of edges of an unconstrained policy; none if nothing moves.

    Exact for `AddRemove`, `Full`, `Attribute`, `TablePolicy`, products, and graphs of
    at most 2^20 edges; for others all attributes are taken to move at once.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> survey = bf.WideDomain.product(bf.Domain(9, names="a"), bf.Domain(2, names="b"))
    >>> [sorted(one.axes) for one in edge_kinds(bf.policies.Full(survey))]
    [[0, 1]]
    >>> [sorted(one.axes) for one in edge_kinds(bf.policies.TablePolicy(survey, {}))]
    [[0], [1]]
    """
    kinds = [EdgeKind(frozenset(one)) for one in _moved_axes(policy) if one]
    if policy.has_bottom:
        far = policy.absent_length if isinstance(policy, WithAbsent) else Fraction(1)
        kinds.append(EdgeKind(None, far))
    return tuple(kinds)


def _moved_axes(policy: Policy) -> Iterable[Iterable[int]]:
    shape = policy.domain.shape
    several = [axis for axis, size in enumerate(shape) if size > 1]
    if isinstance(policy, WithAbsent):
        return _moved_axes(policy.base)
    if isinstance(policy, TablePolicy) and policy.has_moves:
        stated = policy.by_attribute
        if stated is None:
            return [several]
        names = policy.domain.names
        return [
            [axis]
            for axis in several
            if names[axis] not in stated or stated[str(names[axis])].has_moves
        ]
    if isinstance(policy, Attribute):
        return [[axis] for axis in several]
    if isinstance(policy, Product):
        found: list[list[int]] = []
        first = 0
        for factor in policy.factors:
            inner = (sorted(one) for one in _moved_axes(factor))
            found += [[first + axis for axis in one] for one in inner]
            first += factor.domain.ndim
        return found
    if not policy.has_moves:
        return []
    full = isinstance(policy, Full) or len(several) < 2
    if full or policy.edges_up_to(MOST_EDGES) is None:
        return [several]
    return largest_sets(_supports(policy))


def _supports(policy: Policy) -> set[AxisSet]:
    """Return the sets of attributes that edges change, by listing the edges."""
    shape, found = policy.domain.shape, set()
    bits = 1 << np.arange(len(shape))
    for chunk in policy.edges():
        moves = chunk[(chunk >= 0).all(axis=1)]
        ends = [np.stack(np.unravel_index(one, shape), axis=1) for one in moves.T]
        found.update(np.unique((ends[0] != ends[1]) @ bits).tolist())
    return {
        tuple(axis for axis in range(len(shape)) if one >> axis & 1) for one in found
    }


def largest_sets(sets: Iterable[AxisSet]) -> list[AxisSet]:
    """Return the sets that no other contains, in their order."""
    known = [(one, frozenset(one)) for one in sets]
    # A larger set is looked for among those that share the first attribute.
    sharing: dict[int | None, list[frozenset[int]]] = {None: [own for _, own in known]}
    for _, own in known:
        for axis in own:
            sharing.setdefault(axis, []).append(own)
    return [
        one
        for one, own in known
        if not any(own < other for other in sharing[one[0] if one else None])
    ]


def heaviest_edge(
    weights: Sequence[int],
    tables: Sequence[AxisSet],
    kinds: Sequence[EdgeKind],
    power: int = 1,
) -> int:
    """Return the largest sum of table weights over what one edge moves, rounded up.

    Weights are per cell of a table; cells move by 1, so both powers are alike, but for
    an "absent" l edges away, which may cost l times as much in epsilon and l^2 in rho.
    O(kinds x tables), in whole numbers.
    """
    dearest = 0
    for kind in kinds:
        pairs = zip(weights, tables, strict=True)
        moved = sum(weight for weight, table in pairs if kind.moves(table))
        cost = Fraction(kind.cells * moved) / kind.length**power
        dearest = max(dearest, math.ceil(cost))
    return dearest


def is_exact(table: AxisSet, kinds: Sequence[EdgeKind]) -> bool:
    """Return whether no edge changes a table: it is published without noise."""
    return not any(one.moves(table) for one in kinds)


def check_shape(policy: Policy, sizes: tuple[int, ...]) -> None:
    """Refuse a policy over other attributes, or one that moves records together."""
    if policy.has_constraints:
        raise PolicyError(
            "tables are priced for records that move one at a time",
            received=repr(policy),
            way_out="State the policy without constraints",
        )
    if policy.domain.shape != sizes:
        raise DomainError(
            f"the tables lie over attributes of {sizes} cells",
            received=repr(policy.domain),
        )

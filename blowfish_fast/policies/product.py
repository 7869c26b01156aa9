"""One policy per attribute, composed: one attribute moves along one of its edges."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import AxisView, Domain, WideDomain
from blowfish_fast.errors import PolicyError

from .base import PUBLIC_TOTAL, Policy, from_dict
from .blocks import Full
from .projection import Projection, clique_bins, labels_along, only_axis
from .protocol import (
    CHUNK,
    Bandwidth,
    Change,
    Components,
    PolicyGraph,
    Spent,
    at_distance,
    beyond,
    bin_keys,
    refuse_long_walk,
)


def by_attribute(budget: Spent | None) -> str:
    """Return how a promise begins that is made attribute by attribute."""
    return (
        "two people who differ in one attribute along one edge of its policy cannot be "
        f"told apart {beyond(budget)}; with d edges in all, {at_distance(budget)}. By "
        "attribute: "
    )


class Product(Policy):
    """Cells are joined when exactly one factor moves, along one of its edges.

    Distances add up over the factors. The product of `Full` policies is `Attribute`,
    not `Full`: state `Full` over the product domain where whole records are secret.

    Parameters
    ----------
    *factors : Policy
        One policy per group of attributes, none with "absent".
    domain : Domain, optional
        The cells; the product of the factors' domains by default.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> from blowfish_fast.policies import Line
    >>> Product(Line(Domain(3)), Full(Domain(4))).edge_count
    26
    """

    kind = "product"
    neighbours = "one record moves in one attribute, along one edge of its policy"

    def __init__(self, *factors: Policy, domain: Domain | None = None) -> None:
        if not factors:
            raise PolicyError("a product needs at least one policy", received="none")
        for number, factor in enumerate(factors):
            if not isinstance(factor, Policy):
                raise PolicyError("each factor must be a policy", received=repr(factor))
            if factor.has_constraints or factor.person_rule is not None:
                raise PolicyError(
                    f"factor {number} speaks about whole records or persons, and a "
                    "factor about one attribute of a record",
                    way_out="State constraints and per_person on the product, or on "
                    "the TablePolicy",
                )
            if factor.has_bottom:
                raise PolicyError(
                    f'factor {number} joins values to "absent", but a person is absent '
                    "as a whole, not in one attribute",
                    way_out="Use a factor without it, or policies.AddRemove over the "
                    "product domain",
                    code="absent_in_one_factor",
                    data={"factor": number},
                )
        joint = Domain.product(*(factor.domain for factor in factors))
        shape = getattr(domain, "shape", None)
        if domain is not None and joint.shape != shape:
            raise PolicyError(
                f"the factors span a domain of shape {joint.shape}",
                received=f"a domain of shape {shape}",
                way_out="Give one factor per attribute, in order",
            )
        super().__init__(joint if domain is None else domain)
        self.factors = factors

    @property
    def _shape(self) -> tuple[int, ...]:
        return tuple(factor.domain.size for factor in self.factors)

    @property
    def has_moves(self) -> bool:
        """Whether some factor can move."""
        return any(factor.has_moves for factor in self.factors)

    def components(self) -> Components:
        """Return the products of the factors' components."""
        parts = [factor_or_part.components() for factor_or_part in self.factors]
        count = math.prod(factor_or_part.count for factor_or_part in parts)
        if count == 1:
            return super().components()
        labels = np.zeros(1, dtype=np.int64)
        for factor_or_part, size in zip(parts, self._shape, strict=True):
            along = (
                np.zeros(size, np.int64)
                if factor_or_part.labels is None
                else factor_or_part.labels
            )
            labels = (labels[:, None] * factor_or_part.count + along).reshape(-1)
        return Components(labels, np.zeros(count, dtype=np.bool_))

    def _edges(self) -> Iterator[IntArray]:
        for axis, factor in enumerate(self.factors):
            after = math.prod(self._shape[axis + 1 :])
            size = factor.domain.size
            others = np.arange(self.domain.size // size)
            corners = others // after * (after * size) + others % after
            for low in range(0, corners.size, CHUNK):
                part = corners[low : low + CHUNK]
                for moves in factor.edges(max(1, CHUNK // part.size)):
                    ends = part[:, None, None] + moves * after
                    yield ends.reshape(-1, 2)

    @property
    def edge_count(self) -> int:
        """Summed over factors, their edges times the cells of the others."""
        cells = self.domain.size
        return sum(
            factor.edge_count * (cells // factor.domain.size) for factor in self.factors
        )

    def _bandwidth(self, order: IntArray | None) -> Bandwidth | None:
        if max(self._shape) < self.domain.size:
            return None
        return self.factors[self._shape.index(self.domain.size)]._bandwidth(order)

    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        ones = np.unravel_index(first, self._shape)
        others = np.unravel_index(second, self._shape)
        steps = np.zeros(first.shape)
        for factor, start, end in zip(self.factors, ones, others, strict=True):
            steps += factor._distance(start.astype(np.int64), end.astype(np.int64))
        return steps

    def _largest_change(self, lines: FloatArray) -> Change:
        grid = lines.reshape(-1, *self._shape)
        changes = []
        for axis, factor_or_change in enumerate(self.factors):
            along = np.moveaxis(grid, axis + 1, -1).reshape(
                -1, factor_or_change.domain.size
            )
            changes.append(
                factor_or_change._largest_change(np.ascontiguousarray(along))
            )
        value = max(factor_or_change.value for factor_or_change in changes)
        # A bound from one factor may hide behind the exact change of another.
        return Change(
            value,
            any(
                factor_or_change.exact and factor_or_change.value == value
                for factor_or_change in changes
            ),
        )

    def _grid_moves(self, shape: tuple[int, ...], most: int) -> IntArray | None:
        parts, first = [], 0
        for factor in self.factors:
            last = first + factor.domain.ndim
            steps = factor._grid_moves(shape[first:last], most)
            if steps is None:
                return None
            most -= len(steps)
            beside = (first, len(shape) - last)
            parts.append(np.pad(steps, ((0, 0), beside)))
            first = last
        return np.concatenate(parts) if most >= 0 else None

    def _includes(self, other: PolicyGraph) -> bool | None:
        if isinstance(other, Attribute):
            return all(
                _at_least(factor, Attribute(factor.domain)) for factor in self.factors
            )
        if isinstance(other, Product) and other._shape == self._shape:
            pairs = zip(self.factors, other.factors, strict=True)
            return all(
                factor.domain.shape == other_factor.domain.shape
                and _at_least(factor, other_factor)
                for factor, other_factor in pairs
            )
        if isinstance(other, Full) and max(self._shape) < self.domain.size:
            return False
        return None

    def _lies_within(self, other: PolicyGraph) -> bool | None:
        along_axes = isinstance(other, Attribute) and all(
            Attribute(factor.domain).implies(factor) for factor in self.factors
        )
        return True if along_axes else None

    def _seen_through(
        self, columns: list[AxisView], domain: Domain | WideDomain
    ) -> Policy | None:
        if len(self.factors) < self.domain.ndim or not isinstance(domain, Domain):
            return super()._seen_through(columns, domain)
        return seen_by_factors(self, self.factors, columns, domain)

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        axis = only_axis(buckets.labels, self._shape)
        if axis is None:
            return Projection(self, buckets)
        labels = labels_along(buckets.labels, self._shape, axis)
        return self.factors[axis]._quotient(Buckets.from_labels(labels), domain)

    def _bin_pairs(self, labels: IntArray, bins: int) -> Iterator[IntArray]:
        grid = labels.reshape(self._shape)
        for axis, factor in enumerate(self.factors):
            size = factor.domain.size
            lines = np.moveaxis(grid, axis, -1).reshape(-1, size)
            if isinstance(factor, Full):
                groups = np.arange(lines.size) // size
                yield from clique_bins(groups, lines.reshape(-1), bins)
                continue
            refuse_long_walk(factor.edge_count * lines.shape[0])
            for moves in factor.edges(max(1, 2**22 // lines.shape[0])):
                first, second = lines[:, moves[:, 0]], lines[:, moves[:, 1]]
                yield bin_keys(first.reshape(-1), second.reshape(-1), bins)

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        parts: list[str] = []
        own = iter(self.domain.names)
        for factor in self.factors:
            # Factors may be of bins, and the domain of bins with names.
            pairs = [(name, next(own)) for name in factor.domain.names]
            names = [name or other or "" for name, other in pairs if name or other]
            who = " and ".join(names) or f"attribute {len(parts) + 1}"
            parts.append(f"in {who}, {factor.describe_secrets(budget)}")
        return by_attribute(budget) + "; ".join(parts)

    def describe_totals(self) -> str:
        """Say which totals are public."""
        return PUBLIC_TOTAL

    def _parameters(self) -> dict[str, Any]:
        return {"factors": [factor.to_dict() for factor in self.factors]}

    @classmethod
    def _from_parameters(cls, domain: Domain, data: dict[str, Any]) -> Self:
        return cls(*(from_dict(factor) for factor in data["factors"]), domain=domain)

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        return (self.domain, self.factors)

    def __repr__(self) -> str:
        return f"Product({', '.join(repr(factor) for factor in self.factors)})"


class Attribute(Product):
    """Cells that differ in exactly one coordinate are joined: a product of `Full`.

    Records that differ in d attributes are d edges apart, so this is weaker than
    `Full` on several attributes: a factor e^(eps * d) instead of e^eps.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> Attribute(Domain((3, 4))).edge_count, Full(Domain((3, 4))).edge_count
    (30, 66)
    """

    kind = "attribute"
    neighbours = "one record changes the value of one attribute"

    def __init__(self, domain: Domain) -> None:
        Policy.__init__(self, domain)
        self.factors = tuple(
            Full(Domain._of([attribute])) for attribute in domain.attributes
        )

    def _seen_through(
        self, columns: list[AxisView], domain: Domain | WideDomain
    ) -> Policy | None:
        if not isinstance(domain, Domain):
            return None
        return Attribute(domain).derive_from(self)

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        names = [name for name in self.domain.names if name is not None]
        listed = f" ({', '.join(names)})" if names else ""
        return (
            f"two people who differ in a single attribute{listed} cannot be told apart "
            f"{beyond(budget)}, whatever its two values; in d attributes, "
            f"{at_distance(budget)}"
        )

    _parameters = Policy._parameters
    _identity = Policy._identity
    __repr__ = Policy.__repr__
    _from_parameters = Policy.__dict__["_from_parameters"]


def seen_by_factors(
    policy: Policy, factors: Sequence[Policy], columns: list[AxisView], domain: Domain
) -> Policy:
    """Return a policy with a factor per attribute, seen through some of them.

    Parameters
    ----------
    policy : Policy
        The policy over all attributes.
    factors : Sequence[Policy]
        Its factors, one per attribute.
    columns : list[AxisView]
        The attributes that are seen, and the bin of each of their cells.
    domain : Domain
        The cells that are seen.

    Returns
    -------
    Policy
        The policy over `domain`.
    """
    seen = []
    for attribute, (axis, labels) in zip(domain.attributes, columns, strict=True):
        factor, cells = copy.copy(factors[axis]), Domain._of([attribute])
        coarser = labels.size > attribute.size
        if coarser:
            factor = factor._quotient(Buckets.from_labels(labels), cells)
        seen.append(factor)
    seen_policy = seen[0] if len(seen) == 1 else Product(*seen, domain=domain)
    return seen_policy.derive_from(policy)


def _at_least(policy: Policy, other: Policy) -> bool:
    """Compare factors by their edges alone: names do not matter inside a product."""
    if policy.domain == other.domain:
        return policy.implies(other)
    return policy == other or not other.has_moves

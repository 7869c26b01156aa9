"""A policy over all attributes of a table, whose cells nobody could list.

A ledger kept under it accepts the policies seen `TablePolicy.through` some attributes,
so questions over different ones add up to one guarantee for whole records.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NoReturn, Self

import numpy as np

from blowfish_fast._support.validation import malformed_as
from blowfish_fast.data.axes import Axis
from blowfish_fast.data.domain import AxisView, Domain, WideDomain
from blowfish_fast.errors import PolicyError

from .base import PUBLIC_TOTAL, AddRemove, Policy, from_dict
from .blocks import Blocks, Full
from .graph import Graph, join_extra_cells
from .presence import WithAbsent, appearing_words, as_length, presence_words
from .product import Product, by_attribute, seen_by_factors
from .projection import Band
from .protocol import PolicyGraph, Spent, at_length, beyond_factor
from .threshold import Threshold


def _unlisted(what: str) -> Any:
    """Return an attribute or method that would list the cells of a whole table."""

    def refuse(table: TablePolicy) -> NoReturn:
        raise PolicyError(
            f"{what} of a whole table would list its {table.domain.size:,} cells; ask "
            "through(names) for the policy of the attributes that a question touches"
        )

    return property(refuse)


class TablePolicy(Policy):
    """Whole records are secret, or each attribute moves along a policy of its own.

    Parameters
    ----------
    domain : Domain or WideDomain
        All attributes of the table, each with a name.
    by_attribute : mapping from name to Policy, optional
        The policies of attributes, composed as in `Product`; others may take any value.
        Left out, any two records are joined (`Full`), which protects more.
    presence : {False, True, number, "only"}
        Whether someone is in the table at all. False: the number of records is public.
        True: protected as a move is. A number of 1 or more: told apart by at most
        e^(presence * eps). "only": one record is added or removed, at half the noise,
        and a change of values is told apart by at most e^(2 eps).
    words : mapping from name to str, optional
        Which two values of an attribute cannot be told apart, as `describe` says it:
        "values that differ by at most 5 years" where it would speak of cells. No edge
        depends on them: policies with other words are equal.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> from blowfish_fast.policies import Threshold
    >>> ages, towns = Domain(100, names=["age"]), Domain(2000, names=["town"])
    >>> table = WideDomain.product(ages, towns)
    >>> policy = TablePolicy(table, {"age": Threshold(ages, theta=5)})
    >>> policy.through(["age"])
    Threshold(Domain(age: 100 cells), theta=5)
    """

    kind = "table"
    domain: Domain

    def __init__(
        self,
        domain: Domain | WideDomain,
        by_attribute: Mapping[str, Policy] | None = None,
        presence: Any = False,
        *,
        words: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(domain, Domain | WideDomain) or None in domain.names:
            raise PolicyError(
                "a table is a Domain or WideDomain whose attributes all have names",
                received=repr(domain),
            )
        # Nothing below lists cells, so a wide domain serves every table.
        wide: Any = WideDomain._of(domain.attributes)
        self.domain = wide
        self.parent = None
        self.buckets = None
        with malformed_as(PolicyError, "by_attribute maps names to policies"):
            self._stated = None if by_attribute is None else dict(by_attribute)
        self.presence = _as_presence(presence)
        if self.presence == "only" and self._stated is not None:
            raise PolicyError(
                'presence="only" protects whole records that appear or disappear; it '
                "leaves no policies of attributes",
                way_out="Leave by_attribute out, or state presence=True",
            )
        for name, policy in (self._stated or {}).items():
            self._check(name, policy)
        self._words = dict(words or {})

    @property
    def by_attribute(self) -> dict[str, Policy] | None:
        """The policies of attributes; None where whole records are secret."""
        return None if self._stated is None else dict(self._stated)

    def _check(self, name: str, policy: Policy) -> None:
        axis = self.domain.axis(name)
        attribute = self.domain.attributes[axis]
        if not isinstance(policy, Policy) or policy.domain.attributes != (attribute,):
            raise PolicyError(
                f"the policy of {name!r} must be stated over that attribute alone",
                received=repr(policy),
            )
        # The product's own rules: no constraints, nobody absent in one attribute.
        Product(policy)

    def through(self, names: Sequence[str]) -> Policy:
        """Return the policy seen through some attributes, in the table's order."""
        axes = sorted(self.domain.axes(names))
        if any(self.domain.attributes[axis].keys is not None for axis in axes):
            return self._through_words(axes)
        domain = Domain._of(self.domain.attributes[axis] for axis in axes)
        columns = [AxisView(axis, np.arange(self.domain.shape[axis])) for axis in axes]
        return self._seen_through(columns, domain)

    def _through_words(self, axes: list[int]) -> Policy:
        """Return the policy seen through a column of words, any two of them joined."""
        if len(axes) > 1:
            raise PolicyError(
                "a column of words nobody listed is seen by itself",
                received=f"{len(axes)} attributes",
            )
        words: Any = WideDomain._of([self.domain.attributes[axes[0]]])
        if self.presence == "only":
            return AddRemove(words).derive_from(self)
        if self.absent_length is None:
            return Full(words).derive_from(self)
        return WithAbsent(Full(words), self.absent_length).derive_from(self)

    def filtered(self, *names: str) -> TablePolicy:
        """Return the policy of the rows that pass a filter on some attributes.

        A row that moves across the filter enters or leaves what is counted, one edge
        away, however far "absent" was stated to be.

        Examples
        --------
        >>> from blowfish_fast import Domain
        >>> people = TablePolicy(Domain((3, 2), names=["age", "sex"]), {}, presence=4)
        >>> people.filtered("sex").absent_length, people.filtered("sex").implies(people)
        (Fraction(1, 1), True)
        """
        factors = self._factors
        moving = any(factors[axis].has_moves for axis in self.domain.axes(names))
        if self.presence == "only" or not moving:
            return self
        return TablePolicy(self.domain, self._stated, presence=True).derive_from(self)

    def _seen_through(
        self, columns: list[AxisView], domain: Domain | WideDomain
    ) -> Policy:
        if not isinstance(domain, Domain):
            return self._restricted(columns, domain)
        if self.presence == "only":
            return AddRemove(domain).derive_from(self)
        if self.absent_length is not None:
            # Moves come from a table without presence, so they do not imply this one.
            moves = TablePolicy(self.domain, self._stated)
            seen = moves._seen_through(columns, domain)
            return WithAbsent(seen, self.absent_length).derive_from(self)
        if self._stated is None:
            return Full(domain).derive_from(self)
        return seen_by_factors(self, self._factors, columns, domain)

    def _restricted(self, columns: list[AxisView], domain: WideDomain) -> Policy:
        if self.by_attribute is None:
            return TablePolicy(domain, presence=self.presence).derive_from(self)
        factors = self._factors
        stated = {
            str(attribute.name): seen_by_factors(
                self, factors, [column], Domain._of([attribute])
            )
            for attribute, column in zip(domain.attributes, columns, strict=True)
        }
        return TablePolicy(domain, stated, self.presence).derive_from(self)

    @property
    def absent_length(self) -> Fraction | None:
        """How many edges away "absent" is; None where presence is no secret."""
        if self.presence is False:
            return None
        return self.presence if isinstance(self.presence, Fraction) else Fraction(1)

    @property
    def _factors(self) -> list[Policy]:
        """The policy of each attribute: the stated one, or any value to any other."""
        stated: Mapping[Any, Policy] = self._stated or {}
        return [
            copy.copy(stated.get(attribute.name) or _any_value(attribute))
            for attribute in self.domain.attributes
        ]

    @property
    def has_bottom(self) -> bool:
        """Whether presence is a secret; if not, the number of records is public."""
        return self.presence is not False

    @property
    def has_moves(self) -> bool:
        """Whether some record can change."""
        return self.presence != "only" and any(
            factor.has_moves for factor in self._factors
        )

    def _includes(self, other: PolicyGraph) -> bool | None:
        if not isinstance(other, TablePolicy):
            return False
        if other.has_bottom:
            mine, theirs = self.absent_length, other.absent_length
            if mine is None or theirs is None or mine > theirs:
                return False
        if "only" in (self.presence, other.presence):
            return not other.has_moves
        if self.by_attribute is None:
            return True
        return other.by_attribute is not None and all(
            map(Policy.implies, self._factors, other._factors)
        )

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        if self.presence == "only":
            return (
                f"nobody can tell, {beyond_factor(budget)}, whether any one person is "
                f"in the data at all, nor, beyond {at_length(budget, 2)}, which of any "
                "two records she has (unbounded differential privacy)"
            )
        if self.absent_length is None:
            return self._describe_moves(budget)
        presence = presence_words(self.absent_length, budget)
        return f"{self._describe_moves(budget)}; {presence}"

    def describe_totals(self) -> str:
        """Say which totals are public."""
        if self.presence == "only" or self.absent_length is not None:
            return ""
        whole = " (bounded differential privacy)" if self._stated is None else ""
        return f"{PUBLIC_TOTAL}{whole}"

    def _describe_moves(self, budget: Spent | None) -> str:
        if self.by_attribute is None:
            return (
                f"nobody can tell, {beyond_factor(budget)}, which of any two records a "
                "person has"
            )
        parts = [
            f"in {name}, {self._moves_in(name, policy, budget)}"
            for name, policy in self.by_attribute.items()
        ]
        others = [name for name in self.domain.names if name not in self.by_attribute]
        if others:
            parts.append(f"in {', '.join(map(str, others))}, any value to any other")
        return by_attribute(budget) + "; ".join(parts)

    def _moves_in(self, name: str, policy: Policy, budget: Spent | None) -> str:
        if not policy.has_moves:
            return "values are public"
        return self._words.get(name) or policy.describe_secrets(budget)

    @property
    def neighbours(self) -> str:
        """Say how two neighbouring databases differ."""
        if self.presence == "only":
            return "one record is added or removed"
        moves = (
            "one record changes to any other"
            if self.by_attribute is None
            else "one record moves in one attribute, along one edge of its policy"
        )
        far = self.absent_length
        return moves if far is None else f"{moves}, or {appearing_words(far)}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        stated: Any = self.by_attribute
        if stated is not None:
            stated = {name: policy.to_dict() for name, policy in stated.items()}
        far = isinstance(self.presence, Fraction)
        return {
            "kind": self.kind,
            "domain": self.domain.to_dict(),
            "by_attribute": stated,
            "presence": str(self.presence) if far else self.presence,
        }

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Self:
        stated = data["by_attribute"]
        if stated is not None:
            stated = {name: from_dict(policy) for name, policy in stated.items()}
        return cls(WideDomain.from_dict(data["domain"]), stated, data["presence"])

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        stated = self.by_attribute
        return (
            self.domain.attributes,
            None if stated is None else tuple(sorted(stated.items())),
            self.presence,
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.domain.attributes))

    def __repr__(self) -> str:
        stated = "whole records" if self.by_attribute is None else self.by_attribute
        there = "" if self.presence is False else f", presence={self.presence}"
        return f"TablePolicy({self.domain!r}, {stated}{there})"

    components = _unlisted("the components")
    _edges = _unlisted("the edges")
    edge_count = _unlisted("the number of edges")
    _largest_change = _unlisted("sensitivities")
    _distance = _unlisted("distances")
    _quotient = _unlisted("a quotient")


def _any_value(attribute: Axis) -> Policy:
    """Return the policy of an attribute that may take any value."""
    kind: Any = Domain if attribute.keys is None else WideDomain
    return Full(kind._of([attribute]))


def _as_presence(presence: Any) -> Any:
    """Read what is promised about presence: False, "only", or a distance in edges."""
    if presence is False or (isinstance(presence, str) and presence == "only"):
        return presence
    return Fraction(1) if presence is True else as_length(presence)


def beside_extra_cells(
    inner: Policy, domain: Domain, joined: Literal["all", "end", "apart"] = "all"
) -> Policy:
    """Return the policy of a column with its cells for missing and stray values.

    The drawing is of a line of three values with a cell for missing values, m:

        all      0 - 1 - 2, and m joined to each of them
        end      0 - 1 - 2 - m
        apart    0 - 1 - 2    m

    Parameters
    ----------
    inner : Policy
        The policy over ``domain.without_extra_cells()``, which is one column.
    domain : Domain
        The column with its extra cells. Without any, `inner` is the answer.
    joined : {"all", "end", "apart"}
        What the extra cells are joined to: every value, the last values of an order, or
        nothing, which makes public who has such a value. A policy without an order
        joins them to every value where the last ones are stated.

    Returns
    -------
    Policy
        The policy over all cells; Lemmas N1 to N3 of docs/proofs/policies.md.

    Raises
    ------
    SizeError
        If there are too many edges to list.

    Examples
    --------
    >>> from blowfish_fast.policies import Line
    >>> ages = Domain(3, names=["age"]).with_extra_cells(missing=True)
    >>> line = Line(ages.without_extra_cells())
    >>> [beside_extra_cells(line, ages, way).edge_count for way in ("all", "end")]
    [5, 3]
    """
    (axis,) = domain.attributes
    if not axis.extras:
        return inner
    if joined == "apart":
        return _with_cells_apart(inner, domain)
    if isinstance(inner, Full):
        return Full(domain)
    if joined == "end" and isinstance(inner, Threshold):
        # An ordered policy carries on over the extra cells at the end.
        return Threshold(domain, theta=max(1, inner.longest_edge()))
    return join_extra_cells(inner, domain)


def _with_cells_apart(inner: Policy, domain: Domain) -> Policy:
    """Return the policy whose extra cells no edge meets: Lemma N3."""
    extras = np.arange(inner.domain.size, domain.size)
    if isinstance(inner, Threshold):
        reach = inner.bandwidth()
        assert reach is not None
        return Band(domain, np.concatenate([reach.far, extras]))
    if not isinstance(inner, Full | Blocks):
        return Graph(domain, np.concatenate([*inner.edges()]))
    labels = inner.components().labels
    inner_labels = np.zeros(inner.domain.size, np.int64) if labels is None else labels
    return Blocks(
        domain, np.concatenate([inner_labels, inner_labels.max() + 1 + extras])
    )

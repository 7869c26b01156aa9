"""Policies over another one: presence beside its moves, persons with all their records.

Presence alone is `AddRemove`, the plainest policy. What is private at
eps / k for records is private at eps for persons of whom at most k records are counted;
where each person counts once, lcm(1..k) takes the place of k
(``docs/proofs/persons.md``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_fraction
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import AxisView, Domain, WideDomain
from blowfish_fast.data.persons import Bound, read_at_most, units_per_person
from blowfish_fast.errors import PolicyError

from .base import AddRemove, Policy, from_dict
from .protocol import (
    ABSENT,
    PersonRule,
    PolicyGraph,
    Spent,
    at_length,
    beyond_factor,
    implies,
)


def _of_base(name: str) -> Any:
    """Return an attribute or method that is the one of `base`."""
    return property(lambda self: getattr(self.base, name))


class SameGraph(Policy):
    """A policy with the graph of another, that of single records; neighbours differ."""

    def __init__(self, base: Policy) -> None:
        super().__init__(base.domain)
        self.base = base

    @property
    def unconstrained(self) -> Policy:
        """The policy of single records."""
        return self.base

    def _parameters(self) -> dict[str, Any]:
        return {"base": self.base.to_dict()} | super()._parameters()

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Self:
        kind: Any = cls
        stated = {name: data[name] for name in cls.stated}
        policy: Self = kind(from_dict(data["base"]), **stated)
        return policy

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        return (self.base, *super()._identity[1:])

    has_bottom = _of_base("has_bottom")
    has_moves = _of_base("has_moves")
    components = _of_base("components")
    _edges = _of_base("_edges")
    edge_count = _of_base("edge_count")
    bottom_cells = _of_base("bottom_cells")
    _bandwidth = _of_base("_bandwidth")
    longest_edge = _of_base("longest_edge")
    _largest_change = _of_base("_largest_change")
    _grid_moves = _of_base("_grid_moves")
    _distance = _of_base("_distance")
    _joined = _of_base("_joined")
    _bin_pairs = _of_base("_bin_pairs")


class OverAnyGraph(SameGraph):
    """A policy over any graph; seen through bins, it is itself over the quotient."""

    @abstractmethod
    def _over(self, base: Policy) -> Policy:
        """Return the same policy with the graph of another."""

    def _seen_through(
        self, columns: list[AxisView], domain: Domain | WideDomain
    ) -> Policy | None:
        base = self.base._seen_through(columns, domain)
        return None if base is None else self._over(base).derive_from(self)

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        return self._over(self.base.project(buckets))


class WithAbsent(OverAnyGraph):
    """The moves of a policy, and presence, some edges away.

    Presence is told apart by a factor of at most e^(length * eps), moves of `base` by
    e^eps per edge; the number of records is private. Mechanisms measure as if the
    length were 1, which is safe; only `Contingency` gains by a longer one.

    Parameters
    ----------
    base : Policy
        The policy of moves.
    length : number, str or Fraction
        How many edges away presence is, at least 1.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = WithAbsent(bf.policies.Line(bf.Domain(9)), length=2)
    >>> policy.distance(0, [1, 8, -1]).tolist(), policy.edge_count
    ([1.0, 4.0, 2.0], 17)
    >>> policy.implies(bf.policies.Line(bf.Domain(9)))
    True
    """

    kind = "with_absent"
    takes_wide = True
    stated = ("length",)

    def __init__(self, base: Policy, length: Any = 1) -> None:
        single = isinstance(base, Policy) and not base.has_constraints
        if not single or base.person_rule is not None or base.has_bottom:
            raise PolicyError(
                "presence is added to a policy of moves alone",
                received=repr(base),
                way_out="Use a policy without constraints, persons and edges to "
                '"absent"; call per_person on the outcome',
            )
        super().__init__(base)
        self.length = self.absent_length = as_length(length)

    @property
    def unconstrained(self) -> Policy:
        """The policy itself: it is about single records."""
        return self

    # One component, which holds "absent", as every cell does.
    has_bottom = True
    components = Policy.components
    bottom_cells = Policy.bottom_cells

    def _edges(self) -> Iterator[IntArray]:
        yield from self.base._edges()
        yield from AddRemove(self.domain)._edges()

    @property
    def edge_count(self) -> int:
        """Moves, and one edge per cell."""
        return self.base.edge_count + self.domain.size

    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        length = float(self.absent_length)
        absent = (first == ABSENT) | (second == ABSENT)
        steps = np.where(first == second, 0.0, length)
        inside = ~absent
        moved = self.base._distance(first[inside], second[inside])
        steps[inside] = np.minimum(moved, 2 * length)
        return steps

    def _joined(self, first: IntArray, second: IntArray) -> BoolArray:
        joined: BoolArray = (first == ABSENT) | (second == ABSENT)
        inside = ~joined
        joined[inside] = self.base._joined(first[inside], second[inside])
        return joined

    def _includes(self, other: PolicyGraph) -> bool | None:
        if isinstance(other, WithAbsent):
            near = self.absent_length <= other.absent_length
            return near and implies(self.base, other.base)
        if not other.has_bottom:
            return implies(self.base, other)
        if self.absent_length > 1:
            return False
        return None if other.has_moves else True

    def _over(self, base: Policy) -> WithAbsent:
        return WithAbsent(base, self.absent_length)

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        moves = self.base.describe_secrets(budget)
        return f"{moves}; {presence_words(self.absent_length, budget)}"

    @property
    def neighbours(self) -> str:
        """Say how two neighbouring databases differ."""
        return f"{self.base.neighbours}, or {appearing_words(self.absent_length)}"

    def _parameters(self) -> dict[str, Any]:
        return {"base": self.base.to_dict(), "length": str(self.absent_length)}

    def __repr__(self) -> str:
        far = "" if self.absent_length == 1 else f", length={self.absent_length}"
        return f"WithAbsent({self.base!r}{far})"


def as_length(length: Any) -> Fraction:
    """Read how many edges away "absent" is; at least 1."""
    far = as_fraction(length, "the distance of presence")
    if far < 1:
        raise PolicyError('"absent" lies at least one edge away', received=repr(length))
    return far


def appearing_words(length: Fraction) -> str:
    """Say that somebody comes or goes, and how many steps that is where not one."""
    steps = "" if length == 1 else f", which counts as {float(length):g} steps"
    return f"is added or removed{steps}"


def presence_words(length: Fraction, budget: Spent | None = None) -> str:
    """Say what is promised about someone's presence.

    Parameters
    ----------
    length : Fraction
        How many edges away "absent" is.
    budget : Spent, optional
        What is spent; None where only the policy is described.

    Returns
    -------
    str
        A part of a sentence.
    """
    limit = beyond_factor(budget)
    if length != 1:
        in_epsilon = budget is None or budget.power == 1
        factor = "a factor " if in_epsilon else ""
        limit = f"beyond {factor}{at_length(budget, length)}"
    return (
        f"whether a person is in the data at all cannot be told {limit}, and the "
        "number of people is not public"
    )


class PerPerson(OverAnyGraph):
    """One person's records are the secret.

    Made by `Policy.per_person`. Neighbours: record keys are fixed, and two databases
    differ in one person only. Every record of hers stays or moves along one edge, or,
    where an edge leads to "absent", all her records appear or disappear; records that
    appear one by one cost up to twice as much. Without edges to "absent" the number of
    a person's records is no secret, so totals of counted records are exact.

    Parameters
    ----------
    base : Policy
        The policy of single records.
    at_most : int, optional
        How many records of a person are counted at most.
    person : str, optional
        The column that names the person.
    count : str, default 'records'
        "records", or "persons" where each person counts once.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.policies.Line(bf.Domain(6))
    >>> line.per_person(5).group_size, line.per_person(5, count="persons").group_size
    (5, 60)
    >>> line.implies(line.per_person(5)), line.per_person(5).implies(line.per_person())
    (False, True)
    """

    kind = "per_person"
    takes_wide = True
    stated = ("at_most", "person", "count")

    def __init__(
        self,
        base: Policy,
        at_most: int | None = None,
        *,
        person: str | None = None,
        count: str = "records",
    ) -> None:
        if not isinstance(base, Policy) or base.has_constraints:
            raise PolicyError(
                "persons are protected under a policy without known counts",
                received=repr(base),
                way_out="State the policy of single records, such as AddRemove(domain)",
            )
        if base.person_rule is not None:
            raise PolicyError(
                f"{base!r} is about persons already",
                way_out="Call per_person on the policy of single records",
            )
        number = read_at_most(1 if at_most is None else at_most, count, PolicyError)
        if person is not None and (not isinstance(person, str) or not person):
            raise PolicyError(
                "person is the name of a column, or left out", received=repr(person)
            )
        super().__init__(base)
        self.at_most = None if at_most is None else number
        self.person = person
        self.count = count

    @property
    def person_rule(self) -> PersonRule:
        """The column of persons, and how they count."""
        return PersonRule(self.person, self.count)

    @property
    def units(self) -> int:
        """Units in which counts are kept: Q where a person counts once, else 1."""
        if self.count != "persons" or self.at_most is None:
            return 1
        return units_per_person(self.at_most)

    @property
    def group_size(self) -> int:
        """Most records, or unit records, in which neighbours differ."""
        if self.at_most is None:
            raise PolicyError(
                "this policy says nothing of how many records of a person are counted, "
                "so no noise can be calibrated to it",
                received=repr(self),
                way_out="State it for the mechanism, policy.per_person(5); a policy "
                "without it is for a ledger",
            )
        return self.units if self.count == "persons" else self.at_most

    def through(self, names: Sequence[str]) -> Policy:
        """Return the policy of persons seen through some attributes of a table."""
        base: Any = self.base
        if not hasattr(base, "through"):
            raise PolicyError("only a TablePolicy is seen through some attributes")
        return self._over(base.through(names)).derive_from(self)

    def _over(self, base: Policy) -> PerPerson:
        return PerPerson(base, self.at_most, person=self.person, count=self.count)

    def with_at_most(self, at_most: int) -> PerPerson:
        """Return the same policy with a number of records that are counted."""
        return PerPerson(self.base, at_most, person=self.person, count=self.count)

    def _check_bound(self, bound: Bound | None) -> None:
        # Refused here, too, where the policy does not state it.
        most = self.group_size if self.at_most is None else self.at_most
        if bound is None:
            raise PolicyError(
                "the policy protects persons with all their records, and the data do "
                "not say how many records of a person they hold",
                way_out="Count with Histogram.from_records(..., person=, record=, "
                f"at_most={most}); counts that are bounded already say so: "
                f"Histogram(domain, counts, at_most={most})",
                code="unbounded_persons",
            )
        once = self.count == "persons"
        if bound.count != self.count or (once and bound.at_most != most):
            raise PolicyError(
                'data and policy count by one rule, and with count="persons" they have '
                "the same at_most",
                received=f"data: {bound.words()}; policy: {self!r}",
            )
        if bound.at_most > most:
            raise PolicyError(
                f"the policy counts at most {most:,} records of a person",
                received=f"data with {bound.words()}",
                way_out=f"State policy.per_person({bound.at_most}), or count fewer",
                code="too_many_records",
            )
        if self.person is not None and bound.person != self.person:
            raise PolicyError(
                f"the policy protects whom the column {self.person!r} names",
                received=f"data with {bound.words()}",
            )

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        name = "" if self.person is None else f" (column {self.person})"
        if self.at_most is None:
            counted = "however many these are"
        else:
            counted = f"at most {self.at_most:,} records of a person were counted"
        if self.count == "persons":
            counted += ", and each person counts once"
        public = "; how many records a person has is public"
        return (
            f"{self.base.describe(budget)}; this holds for one person{name} with all "
            f"her records: {counted}{'' if self.has_bottom else public}"
        )

    @property
    def neighbours(self) -> str:
        """Say how two neighbouring databases differ."""
        ways = []
        if self.has_moves:
            moves = self.base.base if isinstance(self.base, WithAbsent) else self.base
            ways.append(
                "every record of one person stays or changes along one edge "
                f"({moves.neighbours}), their number and keys unchanged"
            )
        if self.has_bottom:
            ways.append("one person with all her records is added or removed")
        most = "" if self.at_most is None else f"; at most {self.at_most:,} are counted"
        return ", or ".join(ways or ["nothing differs"]) + most

    def __repr__(self) -> str:
        stated = [] if self.at_most is None else [str(self.at_most)]
        stated += [] if self.person is None else [f"person={self.person!r}"]
        stated += [] if self.count == "records" else [f"count={self.count!r}"]
        return f"{self.base!r}.per_person({', '.join(stated)})"


def refuse_units(policy: Policy, what: str) -> None:
    """Refuse a policy whose counts are parts of persons; say what to ask instead.

    Parameters
    ----------
    policy : Policy
        The policy.
    what : str
        What was asked, for the message.

    Raises
    ------
    PolicyError
        If persons count once.
    """
    if policy.units > 1:
        raise PolicyError(
            f"{what} is not known for persons who count once",
            received=repr(policy),
            way_out="Ask under the policy of single records, policy.unconstrained: the "
            "noise in persons is that of one record",
            code="parts_of_persons",
        )

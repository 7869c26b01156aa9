"""User-level privacy: a person is protected with all her records.

What is private at eps / k for records is private at eps for persons of whom at most k
records are counted; where each person counts once, lcm(1..k) takes the place of k
(``docs/proofs/persons.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blowfish_fast.data.persons import Bound, read_at_most, units_per_person
from blowfish_fast.errors import PolicyError

from .base import OverAnyGraph, Policy
from .presence import WithAbsent
from .protocol import PersonRule


class PerPerson(OverAnyGraph):
    """One person's records, at most `at_most` of which are counted, are the secret.

    Made by `Policy.per_person`. Neighbours: record keys are fixed, and two databases
    differ in one person only. Every record of hers stays or moves along one edge, or,
    where an edge leads to "absent", all her records appear or disappear; records that
    appear one by one cost up to twice as much. Without edges to "absent" the number of
    a person's records is no secret, so totals of counted records are exact.

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

    def describe(self) -> str:
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
            f"{self.base.describe()}; this holds for one person{name} with all her "
            f"records: {counted}{'' if self.has_bottom else public}"
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
    """Refuse a policy whose counts are parts of persons; say what to ask instead."""
    if policy.units > 1:
        raise PolicyError(
            f"{what} is not known for persons who count once",
            received=repr(policy),
            way_out="Ask under the policy of single records, policy.unconstrained: the "
            "noise in persons is that of one record",
            code="parts_of_persons",
        )


def check_bound(policy: Policy, bound: Bound | None) -> None:
    """Refuse data whose `bound`, if they state one, is not what the policy says."""
    if not isinstance(policy, PerPerson):
        if bound is not None:
            raise PolicyError(
                "these counts were bounded by person, and the policy protects single "
                "records: a record that appears can take the place of another",
                received=f"{bound.words()}, under {policy!r}",
                way_out=f"State policy.per_person({bound.at_most}), or count all "
                "records without person=",
                code="persons_under_records",
            )
        return
    # Refused here, too, where the policy does not state it.
    most = policy.group_size if policy.at_most is None else policy.at_most
    if bound is None:
        raise PolicyError(
            "the policy protects persons with all their records, and the data do not "
            "say how many records of a person they hold",
            way_out="Count with Histogram.from_records(..., person=, record=, "
            f"at_most={most}); counts that are bounded already say so: "
            f"Histogram(domain, counts, at_most={most})",
            code="unbounded_persons",
        )
    once = policy.count == "persons"
    if bound.count != policy.count or (once and bound.at_most != most):
        raise PolicyError(
            'data and policy count by one rule, and with count="persons" they have the '
            "same at_most",
            received=f"data: {bound.words()}; policy: {policy!r}",
        )
    if bound.at_most > most:
        raise PolicyError(
            f"the policy counts at most {most:,} records of a person",
            received=f"data with {bound.words()}",
            way_out=f"State policy.per_person({bound.at_most}), or count fewer",
            code="too_many_records",
        )
    if policy.person is not None and bound.person != policy.person:
        raise PolicyError(
            f"the policy protects whom the column {policy.person!r} names",
            received=f"data with {bound.words()}",
        )

"""Presence as the secret: alone, or beside the moves of another policy."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_fraction
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import PolicyError

from .base import OverAnyGraph, Policy, moves_words
from .protocol import ABSENT, CHUNK, Bandwidth, Change, Components, PolicyGraph, implies


class AddRemove(Policy):
    """Every cell is joined to "absent": adding or removing one record stays hidden.

    A mechanism that is private under `AddRemove` at eps / 2 is private at eps under
    every policy without "absent": a move is a removal and an addition.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> AddRemove(Domain(8)).has_bottom
    True
    >>> AddRemove(Domain(8)).distance(2, [2, 5, -1])
    array([0., 2., 1.])
    """

    kind = "add_remove"
    takes_wide = True

    has_bottom = True
    has_moves = False
    neighbours = "one record is added or removed"

    def _edges(self) -> Iterator[IntArray]:
        for start in range(0, self.domain.size, CHUNK):
            cells = np.arange(start, min(start + CHUNK, self.domain.size))
            yield np.column_stack([cells, np.full(cells.size, ABSENT)])

    @property
    def edge_count(self) -> int:
        """One per cell."""
        return self.domain.size

    def bottom_cells(self) -> BoolArray:
        """Mark every cell."""
        return np.ones(self.domain.size, dtype=np.bool_)

    def _bandwidth(self, order: IntArray | None) -> Bandwidth | None:
        return Bandwidth(np.arange(self.domain.size), True)

    def longest_edge(self) -> int:
        """Return 0: no edge joins two cells."""
        return 0

    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        through = np.where((first == ABSENT) | (second == ABSENT), 1.0, 2.0)
        return np.where(first == second, 0.0, through)

    def _largest_change(self, lines: FloatArray) -> Change:
        return Change(0.0, True)

    def _includes(self, other: PolicyGraph) -> bool | None:
        return not other.has_moves

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        return AddRemove(domain)

    def describe(self) -> str:
        """Say in plain words what stays indistinguishable."""
        return (
            "nobody can tell, beyond a factor e^eps, whether any one person is in the "
            "data at all (unbounded differential privacy)"
        )


class WithAbsent(OverAnyGraph):
    """The moves of a policy, and presence, `length` edges away.

    Presence is told apart by a factor of at most e^(length * eps), moves of `base` by
    e^eps per edge; the length is at least 1, and the number of records is private.
    Mechanisms measure as if the length were 1, which is safe; only `Contingency` gains
    by a longer one.

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

    has_bottom = True

    def components(self) -> Components:
        """Return the single component, which holds "absent"."""
        return Policy.components(self)

    def _edges(self) -> Iterator[IntArray]:
        yield from self.base._edges()
        yield from AddRemove(self.domain)._edges()

    @property
    def edge_count(self) -> int:
        """Moves, and one edge per cell."""
        return self.base.edge_count + self.domain.size

    def bottom_cells(self) -> BoolArray:
        """Mark every cell."""
        return np.ones(self.domain.size, dtype=np.bool_)

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

    def describe(self) -> str:
        """Say in plain words what stays indistinguishable."""
        return f"{moves_words(self.base)}; {presence_words(self.absent_length)}"

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


def presence_words(length: Fraction) -> str:
    """Say what is promised about someone's presence."""
    factor = "e^eps" if length == 1 else f"e^({float(length):g}*eps)"
    return (
        "whether a person is in the data at all cannot be told beyond a factor "
        f"{factor}, and the number of people is not public"
    )

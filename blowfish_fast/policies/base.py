"""What everybody asks of a policy: distance, implication, projection, plain words.

A policy is a graph on the cells of a domain and, where presence is a secret, "absent".
Neighbouring databases differ in one record that moves along one edge. A family states
its graph (`protocol`) and its quotients; the rest follows. A policy never sees data.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Self, final

import numpy as np

from blowfish_fast._support.html import graph, panel
from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import (
    as_integers,
    as_whole,
    malformed_as,
    quoted,
)
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import AxisView, Domain, WideDomain, is_wide
from blowfish_fast.data.persons import Bound
from blowfish_fast.errors import DomainError, PolicyError, SizeError

from .constraints import Constraints
from .drawing import draw_graph, is_small
from .protocol import (
    ABSENT,
    CHUNK,
    Bandwidth,
    Change,
    PolicyGraph,
    Spent,
    as_keys,
    beyond_factor,
    implies,
    read_cells,
)

PUBLIC_TOTAL = "; the number of people is public"
"""How a sentence ends where nobody comes or goes."""

POLICIES: dict[str, type[Policy]] = {}
"""Every kind of policy and its class; a class enters when it is defined."""


class Policy(PolicyGraph):
    """A graph of values that must stay indistinguishable, over a domain.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.Threshold(bf.Domain(6), theta=2)
    >>> policy.edge_count, policy.distance(0, 5).tolist()
    (9, 3.0)
    >>> policy.edges_up_to(9), policy.edges_up_to(8)
    (9, None)
    >>> policy.implies(bf.policies.Line(bf.Domain(6)))
    True
    >>> policy.describe_secrets()[:43], policy.describe_totals()
    ('two people whose values lie at most 2 cells', '; the number of people is public')
    """

    parent: Policy | None
    takes_wide: ClassVar[bool] = False
    """Whether it can be stated over a `WideDomain`, whose cells nobody lists."""
    same_on_bins: ClassVar[bool] = False
    """Whether it is the same policy through any bins of any attributes."""
    stated: ClassVar[tuple[str, ...]] = ()
    """What is stated beside the domain: names of parameters, kept as attributes."""

    def __init__(self, domain: Domain) -> None:
        wide = self.takes_wide and is_wide(domain)
        if not wide and not isinstance(domain, Domain):
            raise PolicyError(
                "a policy is stated over a Domain",
                received=quoted(domain),
                way_out="Write policies.Full(Domain(n))",
            )
        self.domain = domain
        self.parent = None
        self.buckets = None

    def __setattr__(self, name: str, value: Any) -> None:
        # What was derived from the old value, noise among it, would outlive it.
        if name in self.__dict__:
            raise PolicyError(
                f"a policy does not change once it is stated; {name!r} cannot be set",
                way_out=f"Make another {type(self).__name__}(...)",
            )
        object.__setattr__(self, name, value)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            POLICIES[cls.kind] = cls

    @abstractmethod
    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        """Return the policy on the buckets, laid over `domain`."""

    def distance(self, first: Any, second: Any) -> FloatArray:
        """Return the number of edges between cells; infinite where no path leads.

        Values d edges apart are told apart by a factor of at most e^(eps * d).

        Parameters
        ----------
        first : int or array-like of int
            Cells, numbered in C order; -1 is "absent".
        second : int or array-like of int
            Cells; the two are broadcast.

        Returns
        -------
        ndarray of float64
            The distances, in the broadcast shape.

        Raises
        ------
        PolicyError
            If a number is no cell.
        """
        first_cells, second_cells, shape = self._pairs(first, second)
        absent = (first_cells == ABSENT) | (second_cells == ABSENT)
        if self.has_bottom or not absent.any():
            return self._distance(first_cells, second_cells).reshape(shape)
        steps = np.where(first_cells == second_cells, 0.0, np.inf)
        steps[~absent] = self._distance(first_cells[~absent], second_cells[~absent])
        return steps.reshape(shape)

    def joins(self, first: Any, second: Any) -> BoolArray:
        """Return whether an edge joins two cells (or a cell and "absent", -1).

        Parameters
        ----------
        first : int or array-like of int
            Cells, numbered in C order; -1 is "absent".
        second : int or array-like of int
            Cells; the two are broadcast.

        Returns
        -------
        ndarray of bool
            One answer per pair, in the broadcast shape.

        Raises
        ------
        PolicyError
            If a number is no cell.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> policy = bf.policies.Threshold(bf.Domain(6), theta=2)
        >>> policy.joins(0, [1, 2, 3]).tolist(), policy.longest_edge()
        ([True, True, False], 2)
        >>> policy.has_moves, policy.has_bottom, policy.bottom_cells().sum().item()
        (True, False, 0)
        >>> print(policy.neighbours)
        one record moves to a cell at most 2 away
        """
        first_cells, second_cells, shape = self._pairs(first, second)
        asked = first_cells != second_cells
        if not self.has_bottom:
            asked &= (first_cells != ABSENT) & (second_cells != ABSENT)
        joined = np.zeros(first_cells.size, dtype=np.bool_)
        joined[asked] = self._joined(first_cells[asked], second_cells[asked])
        return joined.reshape(shape)

    def _pairs(
        self, first: Any, second: Any
    ) -> tuple[IntArray, IntArray, tuple[int, ...]]:
        """Return pairs of cells, flat, and the shape in which they were asked for."""
        cells_of_both = [read_cells(cells, self.domain) for cells in (first, second)]
        with malformed_as(PolicyError, "cells are compared one by one, or with one"):
            first_cells, second_cells = np.broadcast_arrays(*cells_of_both)
        return (
            first_cells.reshape(-1).copy(),
            second_cells.reshape(-1).copy(),
            first_cells.shape,
        )

    def longest_edge(self) -> int:
        """Return how many cells the longest move spans along one ordered attribute."""
        on_one_axis(self.domain, "the longest edge")
        lines = np.arange(self.domain.size, dtype=np.float64)[None]
        return int(self._largest_change(lines).value)

    def edges(self, chunk: int = CHUNK) -> Iterator[IntArray]:
        """Yield the edges in arrays of shape (at most `chunk`, 2); -1 is "absent"."""
        return _cut(self._edges(), as_whole(chunk, "chunk", 1))

    def edges_up_to(self, most: int) -> int | None:
        """Return the number of edges; None above `most`, or if too long to count."""
        return self._edges_up_to(as_whole(most, "most"))

    def _edges_up_to(self, most: int) -> int | None:
        with contextlib.suppress(SizeError):
            return count if (count := self.edge_count) <= most else None
        return None

    def largest_change(self, lines: FloatArray) -> Change:
        """Return the largest change, along a move, of values of shape (lines, cells).

        Examples
        --------
        >>> import numpy as np
        >>> import blowfish_fast as bf
        >>> values = np.array([[0.0, 1.0, 3.0, 4.0]])
        >>> bf.policies.Line(bf.Domain(4)).largest_change(values)
        Change(value=2.0, exact=True, how='')
        """
        rule = f"values must be finite numbers, of shape (lines, {self.domain.size})"
        with malformed_as(PolicyError, rule):
            array: AnyArray = np.asarray(lines)
        if array.dtype.kind in "iuf" and array.ndim == 2 and array.size:
            values = array.astype(np.float64, copy=False)
            if values.shape[1] == self.domain.size and np.isfinite(values).all():
                return self._largest_change(values)
        raise PolicyError(rule, received=f"shape {array.shape}, {array.dtype}")

    def bandwidth(self, order: IntArray | None = None) -> Bandwidth | None:
        """Return how far edges reach along an order of the cells.

        Parameters
        ----------
        order : ndarray of int64, shape (cells,), optional
            The cells in their order; their numbers by default.

        Returns
        -------
        Bandwidth or None
            None if the policy has no such bound.

        Raises
        ------
        PolicyError
            If the order does not name each cell once.
        """
        if order is None:
            return self._bandwidth(None)
        along, cells = as_integers(order, "cells", PolicyError), self.domain.size
        if along.shape != (cells,) or (np.sort(along) != np.arange(cells)).any():
            raise PolicyError(
                f"an order names each of the {cells} cells once",
                received=f"shape {along.shape}",
            )
        return self._bandwidth(along)

    def grid_moves(self, shape: tuple[int, ...], most: int) -> IntArray | None:
        """Return half of the moves as steps on a grid, if all cells look alike.

        Parameters
        ----------
        shape : tuple[int, ...]
            The domain's own shape, or that of the grid after neighbouring slabs were
            merged.
        most : int
            How many steps may be listed.

        Returns
        -------
        ndarray of int64, shape (steps, axes), or None
            The steps; None where the graph has no such form, or more than `most` steps.

        Raises
        ------
        PolicyError
            If the shape has other axes or more cells than the domain.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> near = bf.policies.Threshold(bf.Domain((4, 4)), theta=1, metric="l1")
        >>> near.grid_moves((4, 4), 9).tolist()
        [[0, 1], [1, 0]]
        """
        sides = as_integers(shape, "a shape", PolicyError)
        own = self.domain.shape
        if sides.shape != (len(own),) or (sides < 1).any() or (sides > own).any():
            raise PolicyError(
                f"a shape has sides of 1 to {own}", received=quoted(shape)
            )
        return self._grid_moves(tuple(sides.tolist()), as_whole(most, "most"))

    @final
    def implies(self, other: Policy) -> bool:
        """Return whether this policy surely protects at least what `other` does."""
        if not isinstance(other, PolicyGraph):
            raise PolicyError("policies are compared", received=quoted(other))
        return implies(self, other)

    def project(self, labels: AnyArray | Buckets) -> Policy:
        """Return the quotient on bins, joined where some edge joins their cells.

        Parameters
        ----------
        labels : Buckets or array-like of int, shape (cells,)
            The bin of each cell.

        Returns
        -------
        Policy
            The policy over a domain with a cell for each bin.

        Raises
        ------
        DomainError
            If there is not one whole number for each cell.
        """
        buckets = labels
        if not isinstance(buckets, Buckets):
            with malformed_as(DomainError, "labels must be whole numbers"):
                buckets = Buckets.from_labels(buckets)
        if buckets.cells != self.domain.size:
            raise DomainError(
                f"labels must name a bin for each of the {self.domain.size} cells",
                received=buckets.cells,
            )
        return self._quotient(buckets, Domain(buckets.count)).derive_from(self, buckets)

    def _seen_through(
        self, columns: list[AxisView], domain: Domain | WideDomain
    ) -> Policy | None:
        """Return the policy on some attributes, in coarser cells; None if it has none.

        `columns` says which attribute each one of `domain` is, and how its cells are
        joined. Attributes that are not among them are left out of the quotient.
        """
        kind: Any = type(self)
        if self.same_on_bins:
            seen: Policy = kind(domain).derive_from(self)
            return seen
        if not isinstance(domain, Domain) or is_wide(self.domain):
            return None
        places = np.indices(self.domain.shape, sparse=True)
        labels = np.ravel_multi_index(
            [column.labels[places[column.axis]] for column in columns], domain.shape
        )
        whole = np.broadcast_to(labels, self.domain.shape).reshape(-1)
        buckets = Buckets.from_labels(whole)
        quotient = self._quotient(buckets, domain)
        return (
            quotient.derive_from(self, buckets) if quotient.domain == domain else None
        )

    def derive_from(self, parent: Policy, buckets: Buckets | None = None) -> Self:
        """Record which policy this is the quotient of; said once, by its maker.

        Parameters
        ----------
        parent : Policy
            The policy over the finer cells.
        buckets : Buckets, optional
            Which cells share a bin; None where attributes were left out instead.

        Returns
        -------
        Self
            The same policy.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> fine, halves = (bf.policies.Full(bf.Domain(size)) for size in (4, 2))
        >>> halves.derive_from(fine).parent == fine
        True
        """
        object.__setattr__(self, "parent", parent)
        object.__setattr__(self, "buckets", buckets)
        return self

    @property
    def unconstrained(self) -> Policy:
        """The policy of single records."""
        return self

    def _check_bound(self, bound: Bound | None) -> None:
        """Refuse data whose `bound`, if they state one, is not what the policy says."""
        if bound is not None:
            raise PolicyError(
                "these counts were bounded by person, and the policy protects single "
                "records: a record that appears can take the place of another",
                received=f"{bound.words()}, under {self!r}",
                way_out=f"State policy.per_person({bound.at_most}), or count all "
                "records without person=",
                code="persons_under_records",
            )

    def with_constraints(self, constraints: Constraints) -> Policy:
        """Return this policy towards someone who knows the counts of `constraints`."""
        # Its class is built from other policies, so it is found by name.
        restricted: Any = POLICIES["constrained"]
        policy: Policy = restricted(self, constraints)
        return policy

    def per_person(
        self,
        at_most: int | None = None,
        *,
        person: str | None = None,
        count: str = "records",
    ) -> Policy:
        """Return this policy for persons with all their records, not for one record.

        Parameters
        ----------
        at_most : int, optional
            How many records of a person are counted; `Histogram.from_records` chooses
            them. Left out for a ledger, whose releases each state their own.
        person : str, optional
            The column that says whose record it is. Releases under policies that name
            different columns are never added up in one ledger.
        count : {"records", "persons"}
            Whether a person counts as often as she has records, or once: each of her m
            records weighs 1/m, and the noise does not grow with `at_most`.

        Returns
        -------
        Policy
            The policy for persons, a `PerPerson`.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> visits = bf.policies.AddRemove(bf.Domain(4)).per_person(5, person="patient")
        >>> visits.group_size
        5
        >>> print(visits.neighbours)
        one person with all her records is added or removed; at most 5 are counted
        """
        persons: Any = POLICIES["per_person"]
        policy: Policy = persons(self, at_most, person=person, count=count)
        return policy

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        wide = {"wide": True} if is_wide(self.domain) else {}
        stated = {"kind": self.kind, "domain": self.domain.to_dict()}
        return stated | wide | self._parameters()

    def _parameters(self) -> dict[str, Any]:
        """Return what `to_dict` needs beyond the domain."""
        values = {name: getattr(self, name) for name in self.stated}
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in values.items()
        }

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Self:
        kind: Any = WideDomain if data.get("wide") else Domain
        return cls._from_parameters(kind.from_dict(data["domain"]), data)

    @classmethod
    def _from_parameters(cls, domain: Domain, data: dict[str, Any]) -> Self:
        return cls(domain, **{name: data[name] for name in cls.stated})

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        """What makes two policies of one kind equal."""
        return as_keys(self.domain, *(getattr(self, name) for name in self.stated))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return self.kind == other.kind and self._identity == other._identity

    def __hash__(self) -> int:
        return hash((self.kind, self._identity))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r})"

    def _repr_html_(self) -> str:
        words = self.describe()
        rows = [("neighbours", f"two databases are, when {self.neighbours}")]
        # Some graphs are too large to be walked, even to count their edges.
        with contextlib.suppress(SizeError):
            rows.append(("edges", f"{self.edge_count:,}"))
            rows.append(("connected parts", f"{self.components().count:,}"))
        drawing = ""
        if is_small(self.domain):
            _, nodes, labels, curves, absent, spokes = draw_graph(self)
            drawing = graph(nodes, curves, labels, absent, spokes)
        return panel(
            repr(self),
            rows,
            sentence=f"{words[0].upper()}{words[1:]}.",
            drawing=drawing,
        )


def _cut(parts: Iterator[IntArray], most: int) -> Iterator[IntArray]:
    for part in parts:
        for start in range(0, len(part), most):
            yield part[start : start + most]


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
    same_on_bins = True

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

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        return (
            f"nobody can tell, {beyond_factor(budget)}, whether any one person is in "
            "the data at all (unbounded differential privacy)"
        )


@malformed_as(PolicyError, "a policy is read from what its to_dict returned")
def from_dict(data: dict[str, Any]) -> Policy:
    """Rebuild a policy from ``Policy.to_dict``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.Threshold(bf.Domain(6), theta=2)
    >>> from_dict(policy.to_dict()) == policy
    True
    """
    kind = data.get("kind")
    if kind not in POLICIES:
        raise PolicyError("there is no such kind of policy", received=repr(kind))
    return POLICIES[kind]._from_dict(data)


def on_one_axis(domain: Domain, name: str) -> None:
    """Refuse domains of several attributes where cells must be in one order.

    Parameters
    ----------
    domain : Domain
        The domain.
    name : str
        Who asks, for the message.

    Raises
    ------
    PolicyError
        If there are several attributes.
    """
    if domain.ndim != 1:
        raise PolicyError(
            f"{name} asks for one ordered attribute",
            received=f"a domain of {domain.ndim} attributes",
            way_out="Use policies.Threshold or Product on several attributes",
            code="policy_needs_one_attribute",
            data={"attributes": domain.ndim},
        )


def values_name(domain: Domain) -> str:
    """Return what to call the values of a domain: the attribute's name, or "values"."""
    named = [name for name in domain.names if name is not None]
    return f"{named[0]} values" if domain.ndim == 1 and named else "values"

"""What every policy answers: edges, components, distance, projection, plain words.

A policy is a graph. Its nodes are the cells of the domain and, where someone's
presence is itself a secret, one more node "absent". An edge joins two values that
must stay indistinguishable: neighbouring databases differ in one record that moves
along one edge. A policy never sees data.

    Line       0 -- 1 -- 2 -- 3       values d edges apart are protected by a factor
                                      e^(eps * d); without a path, not at all
    AddRemove  0    1    2    3
               |____|____|____|___ absent
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_integers, malformed_as, quoted
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import DomainError, InputError, PolicyError, SizeError

if TYPE_CHECKING:
    from .constraints import Constraints

ABSENT = -1
"""The number of the node "absent" in edge lists."""

MOST_LISTED = 2**27
"""Most edges that are walked one by one, for a quotient or a sensitivity."""

POLICIES: dict[str, type[Policy]] = {}
"""Every kind of policy and its class; a class enters when it is defined."""


class Components(NamedTuple):
    """Connected parts of the policy graph.

    `labels` gives the component of each cell, or None when there is just one;
    `private` marks the components that hold the node "absent". The number of records
    in any other component is public, since no edge changes it.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> blocks = bf.policies.Blocks(bf.Domain(4), [0, 0, 1, 1])
    >>> blocks.components().labels.tolist(), blocks.components().private.tolist()
    ([0, 0, 1, 1], [False, False])
    """

    labels: IntArray | None
    private: BoolArray

    @property
    def count(self) -> int:  # type: ignore[override]
        """Number of components."""
        return self.private.size


class Bandwidth(NamedTuple):
    """The bandwidth of the graph along a line: how far the neighbours of a cell go.

    The neighbours of position i that come after it lie in ``i + 1 .. far[i]``; with
    `all_between` they are all of these. `far` never decreases then.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> bf.policies.Threshold(bf.Domain(5), theta=2).bandwidth()
    Bandwidth(far=array([2, 3, 4, 4, 4]), all_between=True)
    """

    far: IntArray
    all_between: bool


class Change(NamedTuple):
    """The largest change of a value along an edge; a bound above if not `exact`."""

    value: float
    exact: bool


class Policy(ABC):
    """A graph of values that must stay indistinguishable, over a domain.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> policy = bf.policies.Threshold(bf.Domain(6), theta=2)
    >>> policy.edge_count, policy.max_degree, policy.distance(0, 5).tolist()
    (9, 4, 3.0)
    >>> policy.edges_up_to(9), policy.edges_up_to(8)
    (9, None)
    >>> policy.implies(bf.policies.Line(bf.Domain(6)))
    True
    """

    kind: ClassVar[str]
    has_constraints: ClassVar[bool] = False

    def __init__(self, domain: Domain, *, parent: Policy | None = None) -> None:
        if not isinstance(domain, Domain):
            raise PolicyError(
                f"a policy is stated over a Domain; received {quoted(domain)}. "
                "Write policies.Full(Domain(n))"
            )
        self.domain = domain
        self.parent = parent
        self.buckets: Buckets | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        # What was derived from the old value, noise among it, would outlive it.
        if name in self.__dict__:
            raise PolicyError(
                f"a policy does not change once it is stated; {name!r} cannot be set "
                f"again. Make another {type(self).__name__}(...)"
            )
        object.__setattr__(self, name, value)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            POLICIES[cls.kind] = cls

    @property
    @abstractmethod
    def has_bottom(self) -> bool:
        """Whether some edge reaches "absent": someone's presence is a secret."""

    @property
    @abstractmethod
    def has_moves(self) -> bool:
        """Whether some edge joins two cells: a record may change its value."""

    @abstractmethod
    def components(self) -> Components:
        """Return the connected parts of the graph."""

    @abstractmethod
    def edges(self, chunk: int = 2**20) -> Iterator[IntArray]:
        """Yield the edges in arrays of shape (at most `chunk`, 2); -1 is "absent"."""

    @property
    @abstractmethod
    def edge_count(self) -> int:
        """Number of edges."""

    @property
    @abstractmethod
    def max_degree(self) -> int:
        """Largest number of edges at one cell."""

    @abstractmethod
    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return distances between cells; with "absent" only if `has_bottom`."""

    @abstractmethod
    def _largest_change(self, lines: FloatArray) -> Change:
        """Return the largest change of values along an edge between two cells.

        `lines` has shape (lines, cells): several sets of values at once.
        """

    @abstractmethod
    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        """Return the policy on the buckets, laid over `domain`."""

    @abstractmethod
    def describe(self) -> str:
        """Say in plain words what stays indistinguishable."""

    @property
    @abstractmethod
    def neighbours(self) -> str:
        """Say in plain words how two neighbouring databases differ."""

    def distance(self, first: Any, second: Any) -> FloatArray:
        """Return the number of edges between cells; infinite where no path leads.

        Values d edges apart are told apart by a factor of at most e^(eps * d).

        Parameters
        ----------
        first, second : array_like of int
            Cell numbers in C order, -1 for "absent"; broadcast against each other.
        """
        one, two = np.broadcast_arrays(self._cells(first), self._cells(second))
        shape = one.shape
        one, two = one.reshape(-1).copy(), two.reshape(-1).copy()
        absent = (one == ABSENT) | (two == ABSENT)
        if self.has_bottom or not absent.any():
            return self._distance(one, two).reshape(shape)
        steps = np.where(one == two, 0.0, np.inf)
        steps[~absent] = self._distance(one[~absent], two[~absent])
        return steps.reshape(shape)

    def joins(self, first: Any, second: Any) -> BoolArray:
        """Return whether an edge joins two cells (or a cell and "absent", -1).

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
        joined: BoolArray = self.distance(first, second) == 1
        return joined

    def bottom_cells(self) -> BoolArray:
        """Mark the cells that are joined to "absent"."""
        return np.zeros(self.domain.size, dtype=np.bool_)

    def bandwidth(self, order: IntArray | None = None) -> Bandwidth | None:
        """Return the bandwidth along a line: how far the neighbours of a cell go.

        Parameters
        ----------
        order : (cells,) int64, optional
            The cell at each position of the line; None for the cells' own order.

        Returns
        -------
        Bandwidth or None
            None when the graph has no such form along that order. Edges to "absent"
            are not part of it.
        """
        return None

    def longest_edge(self) -> int:
        """Return how many cells the longest edge spans along one ordered attribute.

        Edges to "absent" are not part of it.
        """
        on_one_axis(self.domain, "the longest edge")
        lines = np.arange(self.domain.size, dtype=np.float64)[None]
        return int(self._largest_change(lines).value)

    def edges_up_to(self, most: int) -> int | None:
        """Return the number of edges; None above `most`, or if too long to count."""
        with contextlib.suppress(SizeError):
            return count if (count := self.edge_count) <= most else None
        return None

    def implies(self, other: Policy) -> bool:
        """Return whether this policy protects at least what `other` does.

        True for the same policy, for one with at least its edges, and for a
        projection of such a policy; False where that is not known.
        """
        if self._implied_by_parent(other):
            return True
        if self == other:
            return True
        if self.domain != other.domain or other.has_constraints:
            return False
        if not (other.has_moves or other.has_bottom):
            return True
        return self._implies(other)

    def _implied_by_parent(self, other: Policy) -> bool:
        """Return whether the policy that this is a projection of implies `other`.

        Not where cells were only put in another order and both domains look alike:
        nobody could tell counts in the old order from counts in the new one.
        """
        if self.parent is None or not self.parent.implies(other):
            return False
        bins = self.buckets
        reordered = bins is not None and bins.order is not None
        return not (reordered and self.domain == other.domain)

    def _implies(self, other: Policy) -> bool:
        """Compare edges, for another policy over the same domain."""
        if other.has_bottom and not self.has_bottom:
            return False
        if other._is_within(self):
            return True
        mine, theirs = self.bandwidth(), other.bandwidth()
        if not other.has_bottom and mine is not None and theirs is not None:
            reaches = bool((mine.far >= theirs.far).all())
            if mine.all_between and (reaches or theirs.all_between):
                return reaches
        try:
            if other.edge_count > MOST_LISTED // 8:
                return False
            return all(self.joins(*chunk.T).all() for chunk in other.edges())
        except SizeError:
            return False

    def _is_within(self, other: Policy) -> bool:
        """Return True where a closed rule shows that `other` has all these edges."""
        return False

    def project(self, labels: AnyArray | Buckets) -> Policy:
        """Return the quotient policy on bins of cells; it remembers its parent.

        Two bins are joined where some edge joins their cells. Edges inside a bin
        leave its count unchanged and vanish.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> ages = bf.policies.Threshold(bf.Domain(6), theta=2)
        >>> ages.project([0, 0, 1, 1, 2, 2]).distance(0, 2).tolist()
        2.0
        """
        buckets = labels if isinstance(labels, Buckets) else Buckets.from_labels(labels)
        if buckets.cells != self.domain.size:
            raise DomainError(
                f"labels must name a bin for each of the {self.domain.size} cells; "
                f"received {buckets.cells}"
            )
        return self._quotient(buckets, Domain(buckets.count))._seen_from(self, buckets)

    def _seen_from(self, parent: Policy, buckets: Buckets | None = None) -> Self:
        """Remember which policy this is the quotient of; said once, by its maker."""
        object.__setattr__(self, "parent", parent)
        object.__setattr__(self, "buckets", buckets)
        return self

    def _bin_pairs(self, labels: IntArray, bins: int) -> Iterator[IntArray]:
        """Yield the pairs of different bins that edges join.

        As keys ``low * bins + high``, with repeats; refused where there are too many
        edges to walk. Never called with "absent" among the ends.
        """
        if self.edge_count > MOST_LISTED:
            raise SizeError(
                f"the bins inherit their edges from {self.edge_count:,} edges; at most "
                f"2^27 = {MOST_LISTED:,} are walked",
                way_out="policies.Full over the bins has more edges and protects at "
                "least as much; fewer, larger cells help too",
                code="quotient_too_large",
            )
        for chunk in self.edges():
            yield bin_keys(labels[chunk[:, 0]], labels[chunk[:, 1]], bins)

    def _steps(self, shape: tuple[int, ...], most: int) -> IntArray | None:
        """Return half of the moves as steps on a grid, if all cells look alike.

        `shape` is the domain's own, or that of the grid after neighbouring slabs were
        merged; None where the graph has no such form, or more than `most` steps.
        """
        return None

    def _cells(self, cells: Any) -> IntArray:
        try:
            numbers = as_integers(cells, "cells")
        except InputError as problem:
            raise PolicyError(str(problem)) from None
        if numbers.size and (
            numbers.min() < ABSENT or numbers.max() >= self.domain.size
        ):
            raise PolicyError(
                f"cells are numbered from 0 to {self.domain.size - 1}, and -1 is "
                f'"absent"; received {numbers.min()} to {numbers.max()}'
            )
        return numbers

    @property
    def group_size(self) -> int:
        """Most records in which neighbours differ: 1 without constraints."""
        return 1

    @property
    def unconstrained(self) -> Policy:
        """The policy without constraints, along whose edges single records move."""
        return self

    def with_constraints(self, constraints: Constraints) -> Policy:
        """Return this policy towards someone who knows the counts of `constraints`.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> policy = bf.policies.Full(bf.Domain(4))
        >>> rows = [[True, True, False, False]]
        >>> known = bf.policies.CountConstraints(policy.domain, rows)
        >>> constrained = policy.with_constraints(known)
        >>> constrained.has_constraints, constrained.unconstrained == policy
        (True, True)
        """
        from .constrained import Constrained

        return Constrained(self, constraints)

    def _parameters(self) -> dict[str, Any]:
        """Return what `to_dict` needs beyond the domain."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {
            "kind": self.kind,
            "domain": self.domain.to_dict(),
            **self._parameters(),
        }

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `to_dict`."""
        return cls._from_parameters(Domain.from_dict(data["domain"]), data)

    @classmethod
    def _from_parameters(cls, domain: Domain, data: dict[str, Any]) -> Self:
        return cls(domain)

    def _identity(self) -> tuple[Any, ...]:
        """Return what makes two policies of one kind equal."""
        return (self.domain,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return self.kind == other.kind and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((self.kind, self._identity()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r})"

    def _repr_html_(self) -> str:
        """Say in a notebook what stays indistinguishable, and draw small graphs."""
        from blowfish_fast._support.html import graph, panel

        from .layout import is_small, laid_out

        words = self.describe()
        rows = [("neighbours", f"two databases are, when {self.neighbours}")]
        # Some graphs are too large to be walked, even to count their edges.
        with contextlib.suppress(SizeError):
            rows.append(("edges", f"{self.edge_count:,}"))
            rows.append(("at one cell", f"at most {self.max_degree:,}"))
            rows.append(("connected parts", f"{self.components().count:,}"))
        drawing = ""
        if is_small(self.domain):
            _, nodes, labels, curves, absent, spokes = laid_out(self)
            drawing = graph(nodes, curves, labels, absent, spokes)
        return panel(
            repr(self),
            rows,
            sentence=f"{words[0].upper()}{words[1:]}.",
            drawing=drawing,
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
        raise PolicyError(
            f"there is no policy of kind {kind!r}; known kinds: {sorted(POLICIES)}"
        )
    return POLICIES[kind]._read(data)


def one_component(*, private: bool) -> Components:
    """Return the components of a connected graph."""
    return Components(None, np.array([private]))


def bin_keys(first: IntArray, second: IntArray, bins: int) -> IntArray:
    """Return the keys ``low * bins + high`` of the pairs of different bins."""
    differ = first != second
    one, two = first[differ], second[differ]
    keys: IntArray = np.minimum(one, two) * np.int64(bins) + np.maximum(one, two)
    return keys


def on_one_axis(domain: Domain, name: str) -> None:
    """Refuse domains of several attributes where cells must be in one order."""
    if domain.ndim != 1:
        raise PolicyError(
            f"{name} asks for one ordered attribute",
            received=f"a domain of {domain.ndim} attributes",
            way_out="Use policies.Threshold or Product on several attributes",
            code="policy_needs_one_attribute",
            attributes=domain.ndim,
        )


def values_name(domain: Domain) -> str:
    """Return what to call the values of a domain: the attribute's name, or "values"."""
    named = [name for name in domain.names if name is not None]
    return f"{named[0]} values" if domain.ndim == 1 and named else "values"

"""What a family of policies states about its graph, and when one implies another.

An edge (u, v) takes one record from u and adds one to v; (u, "absent") only takes one.
What is said of moves (`bandwidth`, `largest_change`, `grid_moves`) leaves "absent" out,
and whoever prices an edge takes the larger kind.

The words in which families describe their promises stand at the end. Sentences are put
together from these words and never edited afterwards, since names of columns stand in
them, and a column may be called anything.

    in epsilon             in rho
    beyond e^eps           beyond what rho allows
    e^(eps*d)              rho d^2                   d steps apart
    e^(2*eps)              4 rho                     2 steps apart
    eps / 3                rho / 3^2                 3 records move together
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast._support.validation import NamingRightWords, as_integers
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import AxisView, Domain, WideDomain
from blowfish_fast.errors import PolicyError, SizeError

ABSENT = -1
"""The number of the node "absent" in edge lists."""

CHUNK = 2**20
"""Edges that are listed at once, unless stated otherwise."""

MOST_LISTED = 2**27
"""Most edges that are walked one by one, for a quotient or a sensitivity."""

MOST_COMPARED = MOST_LISTED // 8
"""Most edges that are looked up one by one, to see whether another policy has them."""


class Components(NamedTuple):
    """Connected parts of the policy graph.

    Attributes
    ----------
    labels : ndarray of int64 or None, shape (cells,)
        The part of each cell; None when there is just one.
    private : ndarray of bool, shape (parts,)
        Parts with "absent". The number of records is public in all others.
    """

    labels: IntArray | None
    private: BoolArray

    @property
    def count(self) -> int:  # type: ignore[override]
        """Number of components."""
        return self.private.size


class Bandwidth(NamedTuple):
    """The bandwidth of the graph along a line: how far the neighbours of a cell go.

    Attributes
    ----------
    far : ndarray of int64, shape (cells,)
        The neighbours of position i that come after it lie in ``i + 1 .. far[i]``.
    all_between : bool
        Whether they are all of these; `far` never decreases then.
    """

    far: IntArray
    all_between: bool


class Change(NamedTuple):
    """The largest change along some edges, or a bound above.

    Attributes
    ----------
    value : float
        The change.
    exact : bool
        Whether some edge reaches it.
    how : str, default ''
        The rule by which it was worked out.
    """

    value: float
    exact: bool
    how: str = ""


class PersonRule(NamedTuple):
    """How a policy protects persons with several records.

    Attributes
    ----------
    person : str or None
        The column of persons, if stated.
    count : str
        Whether "records" or "persons" count.
    """

    person: str | None
    count: str  # type: ignore[assignment]


class PolicyGraph(NamingRightWords, ABC):
    """The graph of a policy: connected and without "absent" unless stated otherwise."""

    kind: ClassVar[str]
    has_constraints: ClassVar[bool] = False
    domain: Domain
    parent: PolicyGraph | None
    buckets: Buckets | None

    @property
    def has_bottom(self) -> bool:
        """Whether some edge leads to "absent": someone's presence is a secret."""
        return False

    @property
    def has_moves(self) -> bool:
        """Whether some edge joins two cells: a record may change its value."""
        return self.domain.size > 1

    def components(self) -> Components:
        """Return the connected parts of the graph; by default there is one."""
        return Components(None, np.array([self.has_bottom]))

    @abstractmethod
    def _edges(self) -> Iterator[IntArray]:
        """Yield the edges in arrays of shape (some, 2); -1 is "absent"."""

    @property
    @abstractmethod
    def edge_count(self) -> int:
        """Number of edges."""

    @abstractmethod
    def _largest_change(self, lines: FloatArray) -> Change:
        """Return the largest change along a move, of values of shape (lines, cells)."""

    @abstractmethod
    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say what stays indistinguishable, in the currency of a budget."""

    def describe_totals(self) -> str:
        """Say which totals are public, as the end of a sentence; "" for none."""
        return ""

    def describe(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable, and which totals are public.

        Without a budget it is said in epsilon; what was paid in rho promises rho.
        """
        return self.describe_secrets(budget) + self.describe_totals()

    @property
    @abstractmethod
    def neighbours(self) -> str:
        """Say in plain words how two neighbouring databases differ."""

    @abstractmethod
    def _distance(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return distances between cells; with "absent" only if `has_bottom`."""

    def _joined(self, first: IntArray, second: IntArray) -> BoolArray:
        """Return whether edges join cells; with "absent" only if `has_bottom`."""
        joined: BoolArray = self._distance(first, second) == 1
        return joined

    def bottom_cells(self) -> BoolArray:
        """Mark the cells that are joined to "absent": by default all or none."""
        return np.full(self.domain.size, self.has_bottom)

    def _bandwidth(self, order: IntArray | None) -> Bandwidth | None:
        """Return the bandwidth along an order of the cells; None if it has none."""
        return None

    def _grid_moves(self, shape: tuple[int, ...], most: int) -> IntArray | None:
        """Return half of the moves as steps on a grid; None without such a form."""
        return None

    def _includes(self, other: PolicyGraph) -> bool | None:
        """Return whether a closed rule finds all edges of `other` here; None if none.

        Both lie over one domain, without constraints; "absent" is no obstacle.
        """
        return None

    def _lies_within(self, other: PolicyGraph) -> bool | None:
        """Return whether a closed rule finds all these edges in `other`; else None."""
        return None

    def _seen_through(
        self, columns: list[AxisView], domain: Domain | WideDomain
    ) -> PolicyGraph | None:
        """Return this graph seen through some attributes; None if it has no form."""
        return None

    def _bin_pairs(self, labels: IntArray, bins: int) -> Iterator[IntArray]:
        """Yield the `bin_keys` that moves join, with repeats; there is no "absent"."""
        refuse_long_walk(self.edge_count)
        for chunk in self._edges():
            yield bin_keys(labels[chunk[:, 0]], labels[chunk[:, 1]], bins)

    @property
    def group_size(self) -> int:
        """Most records in which neighbours differ: 1 without constraints or persons."""
        return 1

    @property
    def units(self) -> int:
        """Parts of a record or person in which counts are kept; 1 but for persons."""
        return 1

    @property
    def person_rule(self) -> PersonRule | None:
        """Who is protected with all her records; None where single records are."""
        return None

    @property
    def unconstrained(self) -> PolicyGraph:
        """The policy of single records, along whose edges each of them moves."""
        return self


def as_keys(*values: Any) -> tuple[Any, ...]:
    """Return values that can be hashed, arrays by their digest."""
    return tuple(
        hashlib.sha256(value.tobytes()).digest()
        if isinstance(value, np.ndarray)
        else value
        for value in values
    )


def read_cells(cells: Any, domain: Domain) -> IntArray:
    """Read numbers of cells, -1 for "absent".

    Parameters
    ----------
    cells : int or array-like of int
        The numbers.
    domain : Domain
        The cells.

    Returns
    -------
    ndarray of int64
        The numbers.

    Raises
    ------
    PolicyError
        If a number is no cell.
    """
    numbers = as_integers(cells, "cells", PolicyError)
    if numbers.size and (numbers.min() < ABSENT or numbers.max() >= domain.size):
        raise PolicyError(
            f'cells are numbered from 0 to {domain.size - 1}, and -1 is "absent"',
            received=f"{numbers.min()} to {numbers.max()}",
        )
    return numbers


def refuse_quotient(rule: str) -> NoReturn:
    """Refuse a quotient with more edges than can be walked or held."""
    raise SizeError(
        rule,
        way_out="Use larger bins, or policies.Full over the bins, which has more edges "
        "and protects at least as much",
        code="quotient_too_large",
    )


def refuse_long_walk(edges: int) -> None:
    """Refuse to walk more than 2^27 edges, one by one."""
    if edges > MOST_LISTED:
        refuse_quotient(
            f"the bins inherit their edges from {edges:,} edges; at most 2^27 = "
            f"{MOST_LISTED:,} are walked"
        )


def bin_keys(first: IntArray, second: IntArray, bins: int) -> IntArray:
    """Return the keys ``low * bins + high`` of the pairs of different bins.

    Parameters
    ----------
    first : ndarray of int64
        One bin of each pair.
    second : ndarray of int64
        The other one.
    bins : int
        Number of bins.

    Returns
    -------
    ndarray of int64
        The keys.
    """
    differ = first != second
    first_bins, second_bins = first[differ], second[differ]
    keys: IntArray = np.minimum(first_bins, second_bins) * np.int64(bins) + np.maximum(
        first_bins, second_bins
    )
    return keys


def implies(policy: PolicyGraph, other: PolicyGraph) -> bool:
    """Return whether `policy` surely implies `other` (``docs/proofs/policies.md``).

    Parameters
    ----------
    policy : PolicyGraph
        The policy that a release was made under.
    other : PolicyGraph
        The policy that is asked about.

    Returns
    -------
    bool
        Whether everything private under the first is private under the second.
    """
    # The one door between persons and records: neither implies the other, not even
    # with one record each, for a record that appears can take the place of another.
    if policy.person_rule != other.person_rule:
        return False
    if _implied_by_parent(policy, other) or policy == other:
        return True
    if policy.person_rule is not None:
        # Every release checks that its data hold no more records of a person than its
        # policy says, so how many these are does not matter here.
        return implies(policy.unconstrained, other.unconstrained)
    if other.group_size > policy.group_size:
        return False
    if policy.has_constraints:
        return implies(policy.unconstrained, other.unconstrained)
    if other.has_constraints:
        return False
    if policy.domain != other.domain:
        return _implied_through_attributes(policy, other)
    return _includes(policy, other)


def extends(policy: PolicyGraph, other: PolicyGraph) -> bool:
    """Return whether a policy is another one with more columns, or finer cells.

    On the columns of the other it has the same edges, so that whatever is private
    under one of them, and shows these columns alone, is private under both
    (``docs/proofs/composition.md``, Lemma CO14).

    Parameters
    ----------
    policy : PolicyGraph
        The policy over more columns.
    other : PolicyGraph
        The policy over some of them.

    Returns
    -------
    bool
        Whether that is sure.
    """
    if policy.person_rule != other.person_rule:
        return False
    if policy.person_rule is not None:
        # A ledger of persons need not say how many records of each are counted: the
        # lemma holds for every number, and each release states its own.
        if getattr(policy, "at_most", None) != getattr(other, "at_most", None):
            return False
    elif policy.group_size != other.group_size:
        return False
    if policy.has_constraints or other.has_constraints:
        return False
    columns = policy.domain.columns_for(other.domain)
    seen = None if columns is None else policy._seen_through(columns, other.domain)
    if seen is None or seen.domain != other.domain:
        return False
    return implies(other, seen) and implies(seen, other)


def _implied_by_parent(policy: PolicyGraph, other: PolicyGraph) -> bool:
    """Return whether the policy that `policy` is a projection of implies `other`."""
    if policy.parent is None or not implies(policy.parent, other):
        return False
    # Nobody could tell counts in the old order from counts in the new one.
    reordered = policy.buckets is not None and policy.buckets.order is not None
    return not (reordered and policy.domain == other.domain)


def _implied_through_attributes(policy: PolicyGraph, other: PolicyGraph) -> bool:
    """Return whether `policy` protects all that its attributes show of a table."""
    columns = other.domain.columns_for(policy.domain)
    seen = None if columns is None else other._seen_through(columns, policy.domain)
    return seen is not None and seen.domain == policy.domain and implies(policy, seen)


def _includes(policy: PolicyGraph, other: PolicyGraph) -> bool:
    if not (other.has_moves or other.has_bottom):
        return True
    if other.has_bottom and not policy.has_bottom:
        return False
    for answer in (policy._includes(other), other._lies_within(policy)):
        if answer is not None:
            return answer
    mine, theirs = policy._bandwidth(None), other._bandwidth(None)
    if not other.has_bottom and mine is not None and theirs is not None:
        as_far = bool((mine.far >= theirs.far).all())
        if mine.all_between and (as_far or theirs.all_between):
            return as_far
    try:
        if other.edge_count > MOST_COMPARED:
            return False
        return all(policy._joined(*chunk.T.copy()).all() for chunk in other._edges())
    except SizeError:
        return False


class Spent(Protocol):
    """What a budget says of its currency."""

    @property
    def power(self) -> int:
        """1 for epsilon, 2 for rho."""


def _in_rho(budget: Spent | None) -> bool:
    """Return whether a promise is made in rho; without a budget it is in epsilon."""
    return budget is not None and budget.power == 2


def beyond(budget: Spent | None) -> str:
    """Say how far two values one step apart can be told apart at most."""
    return "beyond what rho allows" if _in_rho(budget) else "beyond e^eps"


def beyond_factor(budget: Spent | None) -> str:
    """Say the same as `beyond`, where the factor is named as one."""
    return "beyond what rho allows" if _in_rho(budget) else "beyond a factor e^eps"


def at_distance(budget: Spent | None) -> str:
    """Say what holds for values d steps apart."""
    return "rho d^2" if _in_rho(budget) else "e^(eps*d)"


def at_length(budget: Spent | None, length: Fraction | int) -> str:
    """Say what holds for two values that lie a known number of steps apart.

    Parameters
    ----------
    budget : Spent or None
        What is spent; None where only the policy is described.
    length : Fraction or int
        How many steps lie between the two values.

    Returns
    -------
    str
        A part of a sentence.
    """
    if _in_rho(budget):
        return f"{float(length) ** 2:g} rho"
    return f"e^({float(length):g}*eps)"


def shared(budget: Spent | None, group_size: int) -> str:
    """Say what is spent where so many records move together.

    Parameters
    ----------
    budget : Spent or None
        What is spent; None where only the policy is described.
    group_size : int
        How many records move together.

    Returns
    -------
    str
        A part of a sentence.
    """
    if _in_rho(budget):
        return f"rho / {group_size:,}^2"
    return f"eps / {group_size:,}"

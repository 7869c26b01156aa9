"""What a family of policies states about its graph, and the terms it is stated in.

A policy is a graph. Its nodes are the cells of the domain and, where presence is a
secret, one more node "absent". Neighbouring databases differ in one record that moves
along one edge. A policy never sees data.

    edge            histograms of neighbours differ by      said by
    (u, v)          one record less in u, one more in v     has_moves
    (u, absent)     one record less in u                    has_bottom, bottom_cells

Both kinds may stand in one graph, as in ``Graph(domain, [[0, 1], [0, -1]])``. What is
said of moves (`bandwidth`, `largest_change`, `grid_moves`) then leaves "absent" out,
and whoever prices an edge takes the larger of the two kinds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, NamedTuple, NoReturn

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import AxisView, Domain, WideDomain
from blowfish_fast.errors import SizeError

ABSENT = -1
"""The number of the node "absent" in edge lists."""

MOST_LISTED = 2**27
"""Most edges that are walked one by one, for a quotient or a sensitivity."""


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
    """The largest change along some edges; a bound above it if not `exact`.

    `how` names the rule that gave it, where there are several.

    Examples
    --------
    >>> import numpy as np
    >>> import blowfish_fast as bf
    >>> values = np.array([[0.0, 1.0, 3.0, 4.0]])
    >>> bf.policies.Line(bf.Domain(4)).largest_change(values)
    Change(value=2.0, exact=True, how='')
    """

    value: float
    exact: bool
    how: str = ""


class PersonRule(NamedTuple):
    """Who is protected where a person may have several records.

    `person` names the column that says whose record it is, None where it is not named;
    `count` is "records" or "persons": whether a person counts once.


    Examples
    --------
    >>> import blowfish_fast as bf
    >>> visits = bf.policies.Full(bf.Domain(3))
    >>> visits.per_person(5, person="patient").person_rule
    PersonRule(person='patient', count='records')
    """

    person: str | None
    count: str  # type: ignore[assignment]


class PolicyGraph(ABC):
    """The graph of a policy: what each family states, in closed form where it can.

    What is abstract must be stated. Unless a family states otherwise its graph is
    connected and without "absent", as those of `Full`, `Line` and thresholds are.
    """

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
    def largest_change(self, lines: FloatArray) -> Change:
        """Return the largest change of values along an edge between two cells.

        `lines` has shape (lines, cells): several sets of values at once.
        """

    @abstractmethod
    def describe(self) -> str:
        """Say in plain words what stays indistinguishable."""

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
        """Mark the cells that are joined to "absent"."""
        return np.full(self.domain.size, False)

    def bandwidth(self, order: IntArray | None = None) -> Bandwidth | None:
        """Return the bandwidth along a line: how far the neighbours of a cell go.

        `order` has the cell at each position of the line; None is the cells' own order.
        None comes back where the graph has no such form along it. Edges to "absent" are
        not part of it.
        """
        return None

    def grid_moves(self, shape: tuple[int, ...], most: int) -> IntArray | None:
        """Return half of the moves as steps on a grid, if all cells look alike.

        `shape` is the domain's own, or that of the grid after neighbouring slabs were
        merged; None where the graph has no such form, or more than `most` steps.

        Examples
        --------
        >>> import blowfish_fast as bf
        >>> near = bf.policies.Threshold(bf.Domain((4, 4)), theta=1, metric="l1")
        >>> near.grid_moves((4, 4), 9).tolist()
        [[0, 1], [1, 0]]
        """
        return None

    def _includes(self, other: PolicyGraph) -> bool | None:
        """Return whether a closed rule finds all edges of `other` here; None if none.

        Both lie over one domain, neither has constraints, and "absent" is no obstacle.
        """
        return None

    def _lies_within(self, other: PolicyGraph) -> bool | None:
        """Return whether a closed rule finds all these edges in `other`; else None."""
        return None

    def _seen_through(
        self, columns: list[AxisView], domain: Domain | WideDomain
    ) -> PolicyGraph | None:
        """Return this graph seen through some attributes, over `domain`.

        None where it cannot be written down.
        """
        return None

    def _bin_pairs(self, labels: IntArray, bins: int) -> Iterator[IntArray]:
        """Yield the pairs of different bins that moves join.

        As keys ``low * bins + high``, with repeats; refused where there are too many
        edges to walk. Asked only of graphs without "absent".
        """
        refuse_long_walk(self.edge_count)
        for chunk in self.edges():
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
    """Return the keys ``low * bins + high`` of the pairs of different bins."""
    differ = first != second
    one, two = first[differ], second[differ]
    keys: IntArray = np.minimum(one, two) * np.int64(bins) + np.maximum(one, two)
    return keys

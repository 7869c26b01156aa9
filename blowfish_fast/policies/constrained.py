"""A policy together with counts that everybody knows, and how many records then move.

Neighbouring databases keep the known counts, so several records move at once. The
longest cycles and paths of moves bound how many (Blowfish, Theorem 8.2, for edge-closed
neighbours; ``docs/proofs/constraints.md``).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import BoolArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import PolicyError, SizeError

from .base import Policy, from_dict
from .blocks import Full
from .constraints import Constraints, MarginalConstraints, RectangleConstraints
from .presence import SameGraph
from .product import Attribute
from .projection import Band
from .protocol import ABSENT, Spent, as_keys, shared
from .threshold import Threshold

EXACT_QUERIES = 20
"""Largest connected set of queries that is searched exactly."""

MOST_SUBSETS = 2**24
"""Subsets of queries that are walked in all, over several connected sets."""

MOST_WALKED = 2**24

PAIRS_AT_ONCE = 2**20


class QueryGraph(NamedTuple):
    """Which known counts one move lowers and lifts.

    Attributes
    ----------
    pairs : ndarray of int64, shape (pairs, 2)
        Counts such that one move lowers the first and lifts the second.
    open : ndarray of bool, shape (counts,)
        Counts that one move can touch alone.
    exact : bool
        If not, there may be fewer pairs and fewer open counts.
    """

    pairs: IntArray
    open: BoolArray
    exact: bool


class Chains(NamedTuple):
    """How many moves the longest chains have.

    Attributes
    ----------
    cycle : int
        Moves of the longest cycle; 0 for none.
    path : int
        Moves of the longest path.
    exact : bool
        If not, both are bounds.
    """

    cycle: int
    path: int
    exact: bool

    @property
    def group_size(self) -> int:
        """Most records in which neighbouring databases differ."""
        return max(self.cycle, self.path, 1)


class Constrained(SameGraph):
    """The edges of a policy, and public counts that neighbours must agree on.

    Made by `Policy.with_constraints`; no move along an edge may lower or lift more than
    one of the counts. Neighbours are edge-closed: both databases have the known counts,
    every record that differs moves along an edge of `base`, and no smaller non-empty
    set of these moves keeps the counts. This is weaker than the printed Definition 4.1,
    where records may also move along non-edges and for which the printed bound fails;
    under `Full` the two agree (``docs/proofs/constraints.md``).

    Parameters
    ----------
    base : Policy
        The policy of single records.
    constraints : Constraints
        The known counts.

    Examples
    --------
    >>> from blowfish_fast import Domain
    >>> from blowfish_fast.policies import Full, MarginalConstraints
    >>> grid = Domain((2, 3))
    >>> policy = Full(grid).with_constraints(MarginalConstraints(grid, 0))
    >>> policy.group_size
    2
    """

    kind = "constrained"
    has_constraints = True

    def __init__(self, base: Policy, constraints: Constraints) -> None:
        if not isinstance(constraints, Constraints):
            raise PolicyError(
                "known counts are Constraints", received=repr(constraints)
            )
        if not isinstance(base, Policy) or base.has_constraints:
            raise PolicyError(
                "all counts that are known beside a policy are stated at once",
                received=repr(base),
                way_out="State them as one CountConstraints",
            )
        if base.person_rule is not None:
            raise PolicyError(
                "a person's records and known counts cannot be combined: databases "
                "between two neighbours need not have the known counts",
                received=repr(base),
                way_out="State the counts on the policy of single records, or leave "
                "them out",
            )
        if base.domain != constraints.domain:
            raise PolicyError(
                "policy and constraints must share one domain",
                received=f"{base.domain!r} and {constraints.domain!r}",
            )
        super().__init__(base)
        self.constraints = constraints
        self.chains: Chains = chains(constraints, base)
        self._whole = self
        self._bins: Buckets | None = None

    @property
    def group_size(self) -> int:
        """Most records in which neighbours differ, or a bound above; at least 1."""
        return self.chains.group_size

    def _quotient(self, buckets: Buckets, domain: Domain) -> Policy:
        inner = buckets if self._bins is None else self._bins.then(buckets)
        seen, whole = Constrained.__new__(Constrained), self._whole
        SameGraph.__init__(seen, whole.base.project(inner))
        seen.constraints, seen.chains = whole.constraints, whole.chains
        seen._whole, seen._bins = whole, inner
        return seen

    def describe_secrets(self, budget: Spent | None = None) -> str:
        """Say in plain words what stays indistinguishable."""
        bound = "" if self.chains.exact else " (a bound)"
        together = (
            "no other record has to move along"
            if self.group_size == 1
            else f"up to {self.group_size:,} records{bound} then move together"
        )
        return (
            f"{self.base.describe(budget)}; all this also towards someone who knows "
            f"{self.constraints.describe()}: {together}, and every release spends "
            f"{shared(budget, self.group_size)} on the policy without that knowledge"
        )

    @property
    def neighbours(self) -> str:
        """Say how two neighbouring databases differ."""
        return (
            f"both have the known counts ({self.constraints.describe()}), every record "
            f"that differs does so along an edge of the policy ({self.base.neighbours})"
            ", and no fewer of these changes keep the counts (edge-closed neighbours, "
            "weaker than the printed Blowfish Definition 4.1, where other records may "
            "change along non-edges)"
        )

    def _parameters(self) -> dict[str, Any]:
        bins = self._bins
        return {
            "base": self._whole.base.to_dict(),
            "constraints": self.constraints.to_dict(),
            "labels": None if bins is None else bins.labels.tolist(),
        }

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Self:
        constraints = Constraints.from_dict(data["constraints"])
        policy = cls(from_dict(data["base"]), constraints)
        if data["labels"] is None:
            return policy
        seen = policy.project(data["labels"])
        assert isinstance(seen, cls), "a projection keeps its constraints"
        return seen

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        bins = None if self._bins is None else self._bins.labels
        return as_keys(self._whole.base, self.constraints, bins)

    def __repr__(self) -> str:
        seen = "" if self._bins is None else f", seen through {self._bins!r}"
        return f"Constrained({self._whole.base!r}, {self.constraints!r}{seen})"


def chains(constraints: Constraints, policy: Policy) -> Chains:
    """Return the longest chains of moves.

    Parameters
    ----------
    constraints : Constraints
        The known counts.
    policy : Policy
        The policy of single records.

    Returns
    -------
    Chains
        The lengths of the chains.

    Raises
    ------
    PolicyError
        If one move lowers or lifts two counts, or that cannot be checked.
    """
    if isinstance(constraints, MarginalConstraints):
        one_full = isinstance(policy, Full) and constraints.are_disjoint
        apart = isinstance(policy, Attribute) and constraints.share_no_attribute
        if one_full or apart:
            # Complete graphs, and products of complete graphs, have a cycle through
            # all their nodes; a marginal counts every record, so no path is open.
            sizes = constraints.marginal_sizes()
            return Chains(max(n if n > 1 else 0 for n in sizes), 1, True)
    try:
        return longest_chains(build_query_graph(constraints, policy))
    except SizeError as problem:
        if constraints.are_disjoint:
            return _ceiling(constraints, policy)
        raise PolicyError(
            f"{constraints!r} overlap, and whether one move lowers or lifts several of "
            f"them cannot be checked: {problem}. State fewer, or disjoint queries"
        ) from None


def _ceiling(constraints: Constraints, policy: Policy) -> Chains:
    """Bound chains by the number of queries; the paper forgets open paths."""
    queries = constraints.queries
    may_open = policy.has_bottom or not constraints.cover
    return Chains(queries if queries > 1 else 0, queries + 1 if may_open else 1, False)


def build_query_graph(constraints: Constraints, policy: Policy) -> QueryGraph:
    """Return the graph on queries, from the edges between kinds of cells.

    Parameters
    ----------
    constraints : Constraints
        The known counts.
    policy : Policy
        The policy of single records.

    Returns
    -------
    QueryGraph
        The graph.

    Raises
    ------
    SizeError
        If there are too many edges to walk.
    """
    if (
        isinstance(constraints, RectangleConstraints)
        and isinstance(policy, Threshold | Band)
        and (constraints.queries > EXACT_QUERIES or policy.edge_count > MOST_WALKED)
        and constraints.are_disjoint
    ):
        # A rectangle walled in by others is not open; few are, and open is safe.
        is_open = np.full(constraints.queries, not constraints.cover)
        return QueryGraph(_near_rectangles(constraints, policy), is_open, False)
    quotient = policy.project(constraints.cell_kinds.labels)
    if quotient.edge_count > MOST_WALKED:
        raise SizeError(
            f"the policy has {quotient.edge_count:,} edges between kinds of cells, and "
            f"at most 2^24 = {MOST_WALKED:,} are walked"
        )
    return _walk_edges(constraints, policy, quotient)


def _walk_edges(
    constraints: Constraints, policy: Policy, quotient: Policy
) -> QueryGraph:
    kinds = constraints.cell_kinds
    is_open = np.zeros(constraints.queries, dtype=np.bool_)
    keys: list[IntArray] = [np.zeros(0, dtype=np.int64)]
    for edges in quotient.edges():
        ends = np.where(edges == ABSENT, kinds.absent, edges)
        heads, tails = np.ascontiguousarray(ends.T)
        lowered, lifted = kernels.edge_changes(
            kinds.pointers, kinds.members, heads, tails
        )
        several = (lowered == kernels.SEVERAL) | (lifted == kernels.SEVERAL)
        if several.any():
            first = edges[np.flatnonzero(several)[0]]
            _refuse(constraints, policy, *(int(kind) for kind in first))
        both = (lowered >= 0) & (lifted >= 0)
        low = np.minimum(lowered[both], lifted[both])
        high = np.maximum(lowered[both], lifted[both])
        keys.append(np.unique(low * constraints.queries + high))
        is_open[lowered[(lowered >= 0) & ~both]] = True
        is_open[lifted[(lifted >= 0) & ~both]] = True
    pairs = np.column_stack(
        np.divmod(np.unique(np.concatenate(keys)), constraints.queries)
    )
    return QueryGraph(pairs, is_open, True)


def _refuse(
    constraints: Constraints, policy: Policy, first_kind: int, second_kind: int
) -> NoReturn:
    labels = constraints.cell_kinds.labels
    cells = [
        ABSENT if kind == ABSENT else int(np.argmax(labels == kind))
        for kind in (first_kind, second_kind)
    ]
    start, end = ('"absent"' if cell == ABSENT else f"cell {cell}" for cell in cells)
    lowered = constraints.lowers(*cells).tolist()
    lifted = constraints.lifts(*cells).tolist()
    raise PolicyError(
        f"these constraints are not sparse for {policy!r}: a record between values "
        f"like {start} and {end} would lower queries {lowered[:5]} and lift "
        f"{lifted[:5]}, and at most one of each is allowed. No bound on the noise is "
        "known then but the number of records; state disjoint queries, or a policy "
        "with fewer edges"
    )


def _near_rectangles(constraints: RectangleConstraints, policy: Policy) -> IntArray:
    """Return the pairs of disjoint rectangles that some edge of a threshold joins."""
    order = np.argsort(constraints.starts[:, 0], kind="stable")
    lows, lasts = constraints.starts[order], constraints.ends[order] - 1
    band = policy.bandwidth()
    if band is not None and policy.domain.ndim == 1:
        furthest = band.far[lasts[:, 0]]
    else:
        assert isinstance(policy, Threshold)
        furthest = lasts[:, 0] + math.ceil(policy.theta)
    ends = np.searchsorted(lows[:, 0], furthest, side="right")
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    first = np.arange(order.size)
    widths = np.maximum(ends - first - 1, 0)
    stops = np.cumsum(widths)
    start = 0
    while start < order.size:
        base = stops[start] - widths[start]
        stop = max(start + 1, int(np.searchsorted(stops, base + PAIRS_AT_ONCE)))
        earlier = np.repeat(first[start:stop], widths[start:stop])
        offset = np.repeat(stops[start:stop] - widths[start:stop], widths[start:stop])
        two = earlier + 1 + (np.arange(earlier.size) + base - offset)
        closest = np.clip(lows[two], lows[earlier], lasts[earlier])
        facing = np.clip(closest, lows[two], lasts[two])
        shape = policy.domain.shape
        joined = policy.joins(
            np.ravel_multi_index(tuple(closest.T), shape),
            np.ravel_multi_index(tuple(facing.T), shape),
        )
        pairs.append(np.column_stack([order[earlier[joined]], order[two[joined]]]))
        start = stop
    return np.concatenate(pairs)


def longest_chains(graph: QueryGraph) -> Chains:
    """Return the longest cycle and path; sets of over 20 queries by their size."""
    sources, targets = np.ascontiguousarray(graph.pairs.T)
    rows = kernels.adjacency(sources, targets, graph.open.size)
    labels, _ = kernels.component_labels(*rows)
    sizes = np.bincount(labels)
    is_open = np.bincount(labels, weights=graph.open) > 0
    cycle, path, exact, subsets = 0, 1, graph.exact, 0
    for part in np.argsort(-sizes, kind="stable").tolist():
        size = int(sizes[part])
        longest = size if size > 1 else 0
        opened = size + 1 if is_open[part] else 1
        if longest <= cycle and opened <= path:
            continue
        subsets += 1 << min(size, EXACT_QUERIES + 5)
        if size <= EXACT_QUERIES and subsets <= MOST_SUBSETS:
            bits, starts = _as_bits(graph, np.flatnonzero(labels == part))
            longest = kernels.longest_cycle(bits)
            opened = 1 + kernels.longest_open_path(bits, starts) if starts else 1
        else:
            exact = False
        cycle, path = max(cycle, longest), max(path, opened)
    return Chains(cycle, path, exact)


def _as_bits(graph: QueryGraph, nodes: IntArray) -> tuple[IntArray, int]:
    """Return the neighbours of each node of one connected set, and the open ones."""
    place = {int(node): number for number, node in enumerate(nodes)}
    bits = np.zeros(nodes.size, dtype=np.int64)
    for source, target in graph.pairs[np.isin(graph.pairs[:, 0], nodes)].tolist():
        bits[place[source]] |= 1 << place[target]
        bits[place[target]] |= 1 << place[source]
    starts = sum(1 << number for number, node in enumerate(nodes) if graph.open[node])
    return bits, starts

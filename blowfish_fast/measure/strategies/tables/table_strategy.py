"""Measure whole contingency tables, each with noise of one scale.

Nobody lists the domain: `counts` are the cells of table 1, of table 2, ... A record
that moves in some attributes leaves one cell and enters another in every table that
holds one of them; a record that appears adds one to a cell of every table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.errors import DomainError, PolicyError, ReleaseFileError
from blowfish_fast.measure.linear_strategy import LinearStrategy
from blowfish_fast.measure.noise import Scales, integer_weights
from blowfish_fast.policies import (
    Attribute,
    Full,
    Policy,
    Product,
    TablePolicy,
    WithAbsent,
)

from .residuals import AxisSet, NoisyTables, ResidualFit, cell_count

MOST_EDGES = 2**20
"""Edges that are listed to see which attributes they change together."""


class TableStrategy(LinearStrategy):
    """Contingency tables of a wide domain, a rate for each.

    Parameters
    ----------
    sizes : tuple[int, ...]
        Cells along each attribute of the domain.
    tables : Sequence[AxisSet]
        Sets of attributes, by increasing number.
    shares : Sequence[float]
        Relative rates from 0 to 1; 0 leaves a table out unless no edge of the policy
        moves it.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> strategy = TableStrategy((2, 3), [(0,), (0, 1)], [0.5, 1.0])
    >>> policy = bf.policies.AddRemove(bf.Domain((2, 3)))
    >>> strategy.weights().size, strategy.worst_edge(strategy.weights(), policy) / 2**30
    (8, 1.5)
    """

    kind = "tables"
    no_answers = (
        'queries are asked of one table at a time. Write release.table("age", "sex") '
        "first"
    )

    def __init__(
        self,
        sizes: tuple[int, ...],
        tables: Sequence[AxisSet],
        shares: Sequence[float],
    ) -> None:
        self.sizes = tuple(sizes)
        self.tables: tuple[AxisSet, ...] = tuple(tables)
        self.shares = np.asarray(shares, dtype=np.float64)
        cells = [cell_count(self.sizes, table) for table in self.tables]
        self.cells = np.array(cells, dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.cells)]).astype(np.int64)
        # Entries of `counts`: the cells of all tables.
        self.size = int(self.starts[-1])

    def tables_of(self, counts: IntArray) -> IntArray:
        """Return what `rows` takes, from counts of all cells of a small domain."""
        grid, every = counts.reshape(self.sizes), range(len(self.sizes))
        parts = [
            grid.sum(axis=tuple(axis for axis in every if axis not in table))
            for table in self.tables
        ]
        return np.concatenate([np.asarray(part).reshape(-1) for part in parts])

    def rows(self, counts: IntArray) -> IntArray:
        """Return the cells themselves."""
        return counts.copy()

    def weights(self) -> IntArray:
        """Give every cell of a table the table's weight."""
        return np.repeat(integer_weights(self.shares), self.cells)

    def exact_rows(self, policy: Policy) -> BoolArray:
        """Mark tables of public attributes where nobody is absent: Lemma CT4."""
        check_shape(policy, self.sizes)
        kinds = edge_kinds(policy)
        exact = np.array([is_exact(table, kinds) for table in self.tables])
        return np.repeat(exact, self.cells)

    def worst_edge(self, weights: IntArray, policy: Policy, power: int = 1) -> int:
        """Return two cells of every table moved, one if absent: Lemma CT3.

        Exact where all cells of a table weigh the same; a bound above otherwise.

        Parameters
        ----------
        weights : ndarray of int64, shape (rows,)
            Whole weight of each cell, table after table.
        policy : Policy
            The policy, without constraints.
        power : int, default 1
            1 for epsilon, 2 for rho.

        Returns
        -------
        int
            The sum, or a bound above it.
        """
        check_shape(policy, self.sizes)
        heaviest = np.maximum.reduceat(weights, self.starts[:-1])
        return heaviest_edge(heaviest.tolist(), self.tables, edge_kinds(policy), power)

    def measured(self, scales: Scales) -> NoisyTables:
        """Return the noise of each table."""
        return NoisyTables.of(self.sizes, self.tables, scales, self.starts[:-1])

    def fit(self, noisy: IntArray, scales: Scales) -> ResidualFit:
        """Return the least squares fit of everything that was measured.

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            The cells of all tables.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ResidualFit
            The fit.
        """
        parts = np.split(noisy, self.starts[1:-1])
        shapes = (
            [self.sizes[axis] for axis in table_or_part]
            for table_or_part in self.tables
        )
        values = [
            table_or_part.reshape(shape)
            for table_or_part, shape in zip(parts, shapes, strict=True)
        ]
        return ResidualFit(self.measured(scales), values)

    def infer(self, noisy: IntArray, scales: Scales) -> FloatArray:
        """Return the estimate of every measured table, one after the other.

        Parameters
        ----------
        noisy : ndarray of int64, shape (rows,)
            The measured cells, table after table.
        scales : Scales
            The noise of each row.

        Returns
        -------
        ndarray of float64, shape (rows,)
            The estimates, in the same order.
        """
        fit = self.fit(noisy, scales)
        is_finite = np.isfinite(fit.measured.variances)
        tables = zip(self.tables, is_finite, self.cells, strict=True)
        return np.concatenate(
            [
                fit.table(table).reshape(-1) if measured else np.zeros(cells)
                for table, measured, cells in tables
            ]
        )

    def pack(self) -> dict[str, Any]:
        """Return sizes, tables and their shares."""
        return {
            "sizes": list(self.sizes),
            "tables": [list(table) for table in self.tables],
            "shares": self.shares,
        }

    @classmethod
    def unpack(cls, data: dict[str, Any]) -> Self:
        """Rebuild from `pack`."""
        sizes = tuple(int(size) for size in data["sizes"])
        tables = [tuple(int(axis) for axis in table) for table in data["tables"]]
        shares = np.asarray(data["shares"], dtype=np.float64)
        for table in tables:
            inside = all(0 <= axis < len(sizes) for axis in table)
            if not inside or list(table) != sorted(set(table)):
                raise ReleaseFileError("a table names attributes that are not there")
        if not sizes or min(sizes) < 1 or shares.shape != (len(tables),):
            raise ReleaseFileError("tables, sizes and shares do not fit together")
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ReleaseFileError("a table's share lies outside 0 to 1")
        if sum(cell_count(sizes, table) for table in tables) > 2**40:
            raise ReleaseFileError("the tables are larger than any that are written")
        return cls(sizes, tables, shares.tolist())


class EdgeKind(NamedTuple):
    """Edges that move a record in some attributes at once, or in or out of the data.

    Attributes
    ----------
    axes : frozenset[int] or None
        The attributes; None where the record appears.
    length : Fraction, default Fraction(1)
        How many edges away "absent" is stated to be.
    """

    axes: frozenset[int] | None
    length: Fraction = Fraction(1)

    def moves(self, table: AxisSet) -> bool:
        """Return whether such an edge changes a table."""
        return self.axes is None or not self.axes.isdisjoint(table)

    @property
    def cells(self) -> int:
        """Cells that change in each table that is moved."""
        return 1 if self.axes is None else 2


def edge_kinds(policy: Policy) -> tuple[EdgeKind, ...]:
    """Return the kinds of edges of an unconstrained policy; none if nothing moves.

    Exact for `AddRemove`, `Full`, `Attribute`, `TablePolicy`, products, and graphs of
    at most 2^20 edges; for others all attributes are taken to move at once.
    """
    kinds = [EdgeKind(frozenset(axes)) for axes in _moved_axes(policy) if axes]
    if policy.has_bottom:
        far = Fraction(1)
        if isinstance(policy, WithAbsent | TablePolicy):
            far = policy.absent_length or far
        kinds.append(EdgeKind(None, far))
    return tuple(kinds)


def longest_moves(policy: Policy) -> tuple[int, ...]:
    """Return how many cells an edge spans along each attribute, at most: Lemma DC11.

    Exact for `TablePolicy` with policies of attributes and for products of policies of
    one attribute each; for others an edge is taken to lead from end to end.

    Parameters
    ----------
    policy : Policy
        The policy, without constraints.

    Returns
    -------
    tuple of int
        From 0 to one less than the cells of the attribute.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages, towns = bf.Domain(90, names=["age"]), bf.Domain(7, names=["town"])
    >>> near = {"age": bf.policies.Threshold(ages, theta=2)}
    >>> longest_moves(bf.policies.TablePolicy(bf.Domain.product(ages, towns), near))
    (2, 6)
    """
    if isinstance(policy, WithAbsent):
        return longest_moves(policy.base)
    longest = [size - 1 for size in policy.domain.shape]
    by_axis: dict[int, Policy] = {}
    if isinstance(policy, TablePolicy) and policy.by_attribute is not None:
        for name, own in policy.by_attribute.items():
            by_axis[policy.domain.axis(name)] = own
    elif isinstance(policy, Product) and all(
        factor.domain.ndim == 1 for factor in policy.factors
    ):
        by_axis = dict(enumerate(policy.factors))
    for axis, own in by_axis.items():
        longest[axis] = min(own.longest_edge(), longest[axis]) if own.has_moves else 0
    return tuple(longest)


def _moved_axes(policy: Policy) -> Iterable[Iterable[int]]:
    shape = policy.domain.shape
    several = [axis for axis, size in enumerate(shape) if size > 1]
    if isinstance(policy, WithAbsent):
        return _moved_axes(policy.base)
    if isinstance(policy, TablePolicy) and policy.has_moves:
        stated = policy.by_attribute
        if stated is None:
            return [several]
        names = policy.domain.names
        return [
            [axis]
            for axis in several
            if names[axis] not in stated or stated[str(names[axis])].has_moves
        ]
    if isinstance(policy, Attribute):
        return [[axis] for axis in several]
    if isinstance(policy, Product):
        moved: list[list[int]] = []
        first = 0
        for factor in policy.factors:
            inner = (sorted(axes) for axes in _moved_axes(factor))
            moved += [[first + axis for axis in axes] for axes in inner]
            first += factor.domain.ndim
        return moved
    if not policy.has_moves:
        return []
    full = isinstance(policy, Full) or len(several) < 2
    if full or policy.edges_up_to(MOST_EDGES) is None:
        return [several]
    return largest_sets(_supports(policy))


def _supports(policy: Policy) -> set[AxisSet]:
    """Return the sets of attributes that edges change, by listing the edges."""
    shape, supports = policy.domain.shape, set()
    bits = 1 << np.arange(len(shape))
    for chunk in policy.edges():
        moves = chunk[(chunk >= 0).all(axis=1)]
        ends = [np.stack(np.unravel_index(cells, shape), axis=1) for cells in moves.T]
        supports.update(np.unique((ends[0] != ends[1]) @ bits).tolist())
    return {
        tuple(axis for axis in range(len(shape)) if support >> axis & 1)
        for support in supports
    }


def largest_sets(sets: Iterable[AxisSet]) -> list[AxisSet]:
    """Return the sets that no other contains, in their order."""
    pairs = [(candidate, frozenset(candidate)) for candidate in sets]
    # A larger set is looked for among those that share the first attribute.
    sharing: dict[int | None, list[frozenset[int]]] = {None: [own for _, own in pairs]}
    for _, own in pairs:
        for axis in own:
            sharing.setdefault(axis, []).append(own)
    return [
        candidate
        for candidate, own in pairs
        if not any(
            own < other for other in sharing[candidate[0] if candidate else None]
        )
    ]


def heaviest_edge(
    weights: Sequence[int],
    tables: Sequence[AxisSet],
    kinds: Sequence[EdgeKind],
    power: int = 1,
) -> int:
    """Return the largest sum of table weights over what one edge moves, rounded up.

    An "absent" l edges away may cost l times as much in epsilon and l^2 in rho.

    Parameters
    ----------
    weights : Sequence[int]
        Whole weight of each table.
    tables : Sequence[AxisSet]
        The attributes of each table.
    kinds : Sequence[EdgeKind]
        Kinds of edges of the policy.
    power : int, default 1
        1 for epsilon, 2 for rho.

    Returns
    -------
    int
        The sum.
    """
    dearest = 0
    for kind in kinds:
        pairs = zip(weights, tables, strict=True)
        moved = sum(weight for weight, table in pairs if kind.moves(table))
        cost = Fraction(kind.cells * moved) / kind.length**power
        dearest = max(dearest, math.ceil(cost))
    return dearest


def is_exact(table: AxisSet, kinds: Sequence[EdgeKind]) -> bool:
    """Return whether no edge changes a table: it is published without noise.

    Parameters
    ----------
    table : AxisSet
        Its attributes.
    kinds : Sequence[EdgeKind]
        Kinds of edges of the policy.

    Returns
    -------
    bool
        Whether it is exact.
    """
    return not any(kind.moves(table) for kind in kinds)


def check_shape(policy: Policy, sizes: tuple[int, ...]) -> None:
    """Refuse a policy over other attributes, or one that moves records together.

    Parameters
    ----------
    policy : Policy
        The policy.
    sizes : tuple[int, ...]
        Cells along each attribute.

    Raises
    ------
    PolicyError
        If it has constraints.
    DomainError
        If it lies over other attributes.
    """
    if policy.has_constraints:
        raise PolicyError(
            "tables are priced for records that move one at a time",
            received=repr(policy),
            way_out="State the policy without constraints",
        )
    if policy.domain.shape != sizes:
        raise DomainError(
            f"the tables lie over attributes of {sizes} cells",
            received=repr(policy.domain),
        )

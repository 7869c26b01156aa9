"""Counts that everybody knows, such as the number of patients in each ward.

Constraints state which counts are known, never what they are: what a release costs must
not depend on the data. A known count ties records together. Whoever moves one record
out of a ward must move another one in, or the count would be wrong, so that neighbours
differ in several records at once:

    known: two records in ward A, one in ward B

        A   o o          A   o x      x came over from B,
        B   x      ->    B   o        so an o had to go there

`policies.constrained` bounds how many records move in such a cycle; here are the
questions, and which of them hold which cells.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, IntArray
from blowfish_fast._support.validation import (
    NamingRightWords,
    as_integers,
    as_whole,
    malformed_as,
)
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import DomainError, PolicyError

from .protocol import ABSENT, read_cells


class CellKinds(NamedTuple):
    """Cells grouped by the queries that hold them; the kind after the last is "absent".

    Attributes
    ----------
    labels : ndarray of int64, shape (cells,)
        The kind of each cell.
    pointers : ndarray of int64, shape (kinds + 1,)
        The queries of kind i are ``members[pointers[i] : pointers[i + 1]]``.
    members : ndarray of int64
        The queries, increasing within a kind.
    """

    labels: IntArray
    pointers: IntArray
    members: IntArray

    @property
    def absent(self) -> int:
        """The kind of "absent"; the kinds of cells come before it."""
        return self.pointers.size - 2


class Constraints(NamingRightWords, ABC):
    """Count queries over a domain whose answers are public.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> known = bf.policies.CountConstraints(bf.Domain(4), [[1, 1, 0, 0]])
    >>> isinstance(known, Constraints)
    True
    """

    kind: ClassVar[str]

    def __init__(self, domain: Domain) -> None:
        if not isinstance(domain, Domain):
            raise DomainError(
                "constraints are stated over a Domain", received=repr(domain)
            )
        self.domain = domain

    @property
    @abstractmethod
    def queries(self) -> int:
        """Number of count queries."""

    @cached_property
    @abstractmethod
    def cell_kinds(self) -> CellKinds:
        """Cells grouped by the queries that hold them."""

    @abstractmethod
    def describe(self) -> str:
        """Say in plain words what everybody knows."""

    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """Return what `to_dict` needs beyond the domain."""

    @classmethod
    def _from_parameters(cls, domain: Domain, data: dict[str, Any]) -> Self:
        return cls(domain, **data)

    @property
    def are_disjoint(self) -> bool:
        """Whether no cell lies in two queries; then every policy finds them sparse."""
        return bool((np.diff(self.cell_kinds.pointers) <= 1).all())

    @property
    def cover(self) -> bool:
        """Whether every cell lies in some query."""
        return bool((np.diff(self.cell_kinds.pointers)[:-1] > 0).all())

    def lifts(self, start: int, end: int) -> IntArray:
        """Return the queries that gain the record when it moves.

        Parameters
        ----------
        start : int
            The cell that it leaves; -1 is "absent".
        end : int
            The cell that it goes to; -1 is "absent".

        Returns
        -------
        ndarray of int64
            The numbers of the queries.
        """
        return np.setdiff1d(self._holding(end), self._holding(start))

    def lowers(self, start: int, end: int) -> IntArray:
        """Return the queries that lose the record when it moves.

        Parameters
        ----------
        start : int
            The cell that it leaves; -1 is "absent".
        end : int
            The cell that it goes to; -1 is "absent".

        Returns
        -------
        ndarray of int64
            The numbers of the queries.
        """
        return self.lifts(end, start)

    def _holding(self, cell: int) -> IntArray:
        kinds = self.cell_kinds
        read = read_cells(as_whole(cell, "a cell"), self.domain)
        kind = kinds.absent if read == ABSENT else kinds.labels[read]
        return kinds.members[kinds.pointers[kind] : kinds.pointers[kind + 1]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        facts = {"kind": self.kind, "domain": self.domain.to_dict()}
        return facts | self._parameters()

    @staticmethod
    @malformed_as(PolicyError, "constraints are read from what their to_dict returned")
    def from_dict(data: dict[str, Any]) -> Constraints:
        """Rebuild constraints from `to_dict`."""
        stated = dict(data)
        kind, domain = stated.pop("kind", None), stated.pop("domain", None)
        if kind not in CONSTRAINTS:
            raise PolicyError("there are no such constraints", received=repr(kind))
        return CONSTRAINTS[kind]._from_parameters(Domain.from_dict(domain), stated)

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        digest = hashlib.sha256(repr(self._parameters()).encode()).digest()
        return self.kind, self.domain, digest

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraints):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r}, {self.queries:,} queries)"


class CountConstraints(Constraints):
    """The number of records in each of some sets of cells is known.

    Parameters
    ----------
    domain : Domain
        The cells.
    masks : array-like of bool, shape (queries, cells)
        Mark the cells of each set, flat in C order or in the domain's shape.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> known = CountConstraints(Domain(4), [[1, 1, 0, 0]])
    >>> known.lifts(0, 2), known.lowers(0, 2)
    (array([], dtype=int64), array([0]))
    >>> bf.policies.Full(Domain(4)).with_constraints(known).group_size
    2
    """

    kind = "counts"

    def __init__(self, domain: Domain, masks: Any) -> None:
        super().__init__(domain)
        shapes = ((domain.size,), domain.shape)
        rule = (
            f"masks must have shape (queries, {domain.size}), or one mask of shape "
            f"{domain.shape} per query"
        )
        with malformed_as(PolicyError, rule):
            rows: AnyArray = np.asarray(masks)
        if rows.ndim < 2 or rows.shape[0] == 0 or rows.shape[1:] not in shapes:
            raise PolicyError(rule, received=rows.shape)
        whole = rows.dtype.kind in "iu" and bool(((rows == 0) | (rows == 1)).all())
        if rows.dtype.kind != "b" and not whole:
            raise PolicyError(
                "masks must mark cells with True and False",
                received=f"dtype {rows.dtype}",
                way_out="Write mask = values >= 10, or the like",
            )
        self.masks: BoolArray = rows.reshape(rows.shape[0], -1).astype(np.bool_)
        self.masks.flags.writeable = False

    @property
    def queries(self) -> int:
        """One per mask."""
        return len(self.masks)

    @cached_property
    def cell_kinds(self) -> CellKinds:
        """Cells grouped by the masks that mark them. O(marked cells)."""
        flat = np.zeros(self.domain.size, dtype=np.int64)
        return _refine(flat, iter(self.masks))

    def describe(self) -> str:
        """Say in plain words what everybody knows."""
        counts = "1 count" if self.queries == 1 else f"{self.queries:,} counts"
        return f"{counts} of the records in sets of cells"

    def _parameters(self) -> dict[str, Any]:
        return {"runs": [_runs(mask) for mask in self.masks]}

    @classmethod
    def _from_parameters(cls, domain: Domain, data: dict[str, Any]) -> Self:
        masks = np.zeros((len(data["runs"]), domain.size), dtype=np.bool_)
        for mask, runs in zip(masks, data["runs"], strict=True):
            for start, end in runs:
                mask[start:end] = True
        return cls(domain, masks)


class MarginalConstraints(Constraints):
    """Every count of one or more marginals is known.

    Parameters
    ----------
    domain : Domain
        The cells.
    axes : int, str or sequence
        The attributes of the marginal, by number or name; or a sequence of several
        marginals, each a sequence: ``[(0, 1), (2,)]``.

    Examples
    --------
    >>> MarginalConstraints(Domain((2, 2, 3)), (0, 1)).queries
    4
    >>> MarginalConstraints(Domain((2, 2, 3)), [(0, 1), (2,)]).queries
    7
    """

    kind = "marginals"

    def __init__(self, domain: Domain, axes: Any) -> None:
        super().__init__(domain)
        with malformed_as(PolicyError, "a marginal names attributes"):
            self.marginals = tuple(
                domain.axes(marginal) for marginal in _split_marginals(axes)
            )

    def marginal_sizes(self) -> tuple[int, ...]:
        """Return the number of counts of each marginal."""
        shape = self.domain.shape
        return tuple(
            math.prod(shape[axis] for axis in marginal) for marginal in self.marginals
        )

    @property
    def share_no_attribute(self) -> bool:
        """Whether each attribute belongs to at most one marginal."""
        used = [axis for marginal in self.marginals for axis in marginal]
        return len(set(used)) == len(used)

    @property
    def queries(self) -> int:
        """One per count, marginal after marginal, each in C order."""
        return sum(self.marginal_sizes())

    @property
    def are_disjoint(self) -> bool:
        """Whether there is one marginal."""
        return len(self.marginals) == 1

    @property
    def cover(self) -> bool:
        """A marginal counts every record."""
        return True

    @cached_property
    def cell_kinds(self) -> CellKinds:
        """Cells grouped by the attributes that occur in a marginal. O(cells)."""
        shape = self.domain.shape
        used = sorted({axis for marginal in self.marginals for axis in marginal})
        kinds = np.arange(math.prod(shape[axis] for axis in used), dtype=np.int64)
        values = dict(
            zip(used, np.unravel_index(kinds, [shape[a] for a in used]), strict=True)
        )
        firsts = np.cumsum((0, *self.marginal_sizes()))
        members = [
            first
            + np.ravel_multi_index(
                [values[a] for a in marginal], [shape[a] for a in marginal]
            )
            for first, marginal in zip(firsts, self.marginals, strict=False)
        ]
        grid = kinds.reshape([n if a in used else 1 for a, n in enumerate(shape)])
        pointers = np.arange(kinds.size + 2, dtype=np.int64) * len(members)
        pointers[-1] = pointers[-2]
        return CellKinds(
            np.broadcast_to(grid, shape).reshape(-1),
            pointers,
            np.stack(members, axis=1).reshape(-1),
        )

    def describe(self) -> str:
        """Say in plain words what everybody knows."""
        named = ", ".join(
            " x ".join(
                self.domain.names[axis] or f"attribute {axis}" for axis in marginal
            )
            for marginal in self.marginals
        )
        word = "marginal" if len(self.marginals) == 1 else "marginals"
        return f"the exact {word} over {named} ({self.queries:,} counts)"

    def _parameters(self) -> dict[str, Any]:
        return {"axes": [list(marginal) for marginal in self.marginals]}


class RectangleConstraints(Constraints):
    """The number of records in each of some rectangles is known.

    Parameters
    ----------
    domain : Domain
        The cells.
    starts : array-like of int, shape (queries, axes)
        The first cell of each rectangle along each axis; on one attribute (queries,)
        will do.
    ends : array-like of int, shape (queries, axes)
        The cell after its last.

    Examples
    --------
    >>> RectangleConstraints(Domain((8, 8)), [[0, 0], [4, 0]], [[4, 4], [8, 8]])
    RectangleConstraints(Domain(8 cells x 8 cells), 2 queries)
    """

    kind = "rectangles"

    def __init__(self, domain: Domain, starts: Any, ends: Any) -> None:
        super().__init__(domain)
        self.starts = _corners(domain, starts, "starts")
        self.ends = _corners(domain, ends, "ends")
        if self.starts.shape != self.ends.shape or self.starts.shape[0] == 0:
            raise PolicyError(
                "give one start and one end per rectangle",
                received=f"{self.starts.shape[0]} starts and {self.ends.shape[0]} ends",
            )
        inside = (self.starts >= 0) & (self.ends <= domain.shape)
        bad = ~(inside & (self.starts < self.ends)).all(axis=1)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            corners = [corner[first].tolist() for corner in (self.starts, self.ends)]
            raise PolicyError(
                f"each rectangle holds a cell and lies in the domain of {domain.shape}",
                received=f"rectangle {first}, from {corners[0]} to {corners[1]}",
            )

    @property
    def queries(self) -> int:
        """One per rectangle."""
        return len(self.starts)

    @cached_property
    def cell_kinds(self) -> CellKinds:
        """Cells grouped by the rectangles over them. O(cells in rectangles)."""
        grid = np.zeros(self.domain.shape, dtype=np.int64)
        boxes = (
            tuple(slice(*side) for side in zip(start, end, strict=True))
            for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        )
        return _refine(grid, boxes)

    def describe(self) -> str:
        """Say in plain words what everybody knows."""
        word = "rectangle" if self.queries == 1 else "rectangles"
        return f"the exact number of records in {self.queries:,} {word}"

    def _parameters(self) -> dict[str, Any]:
        return {"starts": self.starts.tolist(), "ends": self.ends.tolist()}


CONSTRAINTS: dict[str, type[Constraints]] = {
    family.kind: family
    for family in (CountConstraints, MarginalConstraints, RectangleConstraints)
}


def _refine(labels: IntArray, regions: Iterator[Any]) -> CellKinds:
    """Split kinds region by region: the cells inside become kinds of their own."""
    queries_of: list[tuple[int, ...]] = [()]
    for query, region in enumerate(regions):
        inside = labels[region]
        split = np.unique(inside)
        labels[region] = len(queries_of) + np.searchsorted(split, inside)
        queries_of.extend((*queries_of[old], query) for old in split.tolist())
    # Kinds that were split up entirely have no cells left.
    used, final = np.unique(labels.reshape(-1), return_inverse=True)
    lists: Iterable[tuple[int, ...]] = [queries_of[old] for old in used.tolist()]
    lengths = [len(queries) for queries in lists]
    pointers = np.cumsum([0, *lengths, 0])
    members = np.array(
        [query for queries in lists for query in queries], dtype=np.int64
    )
    return CellKinds(final.reshape(-1).astype(np.int64), pointers, members)


def _runs(mask: BoolArray) -> list[list[int]]:
    """Return the stretches of marked cells, half-open."""
    steps = np.diff(mask.astype(np.int8), prepend=0, append=0)
    starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    return [list(run) for run in zip(starts.tolist(), ends.tolist(), strict=True)]


def _split_marginals(axes: Any) -> list[Any]:
    if _is_single(axes):
        return [(axes,)]
    listed = list(axes)
    return [listed] if all(_is_single(axis) for axis in listed) else listed


def _is_single(axis: Any) -> bool:
    return isinstance(axis, str) or not isinstance(axis, Iterable)


def _corners(domain: Domain, listed: Any, name: str) -> IntArray:
    corners = as_integers(listed, name, PolicyError)
    if domain.ndim == 1 and corners.ndim == 1:
        corners = corners[:, None]
    if corners.ndim != 2 or corners.shape[1] != domain.ndim:
        raise PolicyError(
            f"{name} must have shape (rectangles, {domain.ndim})",
            received=corners.shape,
        )
    corners.flags.writeable = False
    return corners

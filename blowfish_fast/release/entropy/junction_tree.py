"""A junction tree: a law of all attributes from factors on a few of them at a time.

Attributes are joined where a factor holds both. Eliminating them one after another
gives cliques, and the cliques form a tree in which neighbours share a separator:

    factors   (age, job)  (job, pay)  (pay, sex)  (age, pay)

    cliques   age job pay ------- pay sex
                           pay                    the separator

A law that is a product of factors has, with the beliefs B of the cliques, the form

    p(all) = product of B(clique) / product of B(separator)

so any table follows exactly without anybody listing all cells. Sums run in a fixed
order and no product of matrices is left to a threaded library: the same factors give
the same tables, which decide what is measured next.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.tables.merged_tables import sum_down

AxisSet = tuple[int, ...]
"""Attributes, by number, increasing."""

Factors = Mapping[AxisSet, FloatArray]
"""Logarithms of factors by the attributes that they hold."""

Beliefs = list[FloatArray]
"""The table of every clique; each sums to 1."""

Messages = dict[tuple[int, int, int], tuple[AxisSet, FloatArray]]
"""What a clique says to a neighbour of one attribute behind it, with its axes."""

_Layout = list[list[tuple[AxisSet, list[int]]]]
"""For each attribute of a clique the factors that end there, and their wide shapes."""

_Sum = tuple[AxisSet, AxisSet]
"""A table, and a smaller one that is summed from it."""

_PlannedSums = tuple[int, list[AxisSet], list[_Sum]]
"""A clique, the tables that it is asked for, and how they are summed."""

LEAST_WEIGHT = 1e-200
"""Where all weights of a clique are smaller than this, logarithms are added."""

MOST_AT_ONCE = 2**22
"""Cells of an intermediate table of `JunctionTree.table`; larger ones are cut."""


def cliques_of(sizes: Sequence[int], scopes: Iterable[AxisSet]) -> list[AxisSet]:
    """Return the cliques that a greedy elimination of the attributes leads to.

    The attribute whose clique has the fewest cells goes next; ties by number.

    Parameters
    ----------
    sizes : sequence of int
        Cells along each attribute.
    scopes : iterable of tuples of int
        Sets of attributes that some clique has to hold.

    Returns
    -------
    list of tuples of int
        Cliques of which none holds another, in the order of elimination.

    Examples
    --------
    >>> cliques_of((2, 2, 2, 2), [(0, 1), (1, 2), (2, 3), (0, 3)])
    [(0, 1, 3), (1, 2, 3)]
    """
    near: list[set[int]] = [set() for _ in sizes]
    for scope in scopes:
        for first, second in combinations(scope, 2):
            near[first].add(second)
            near[second].add(first)
    # What is left, as the cells of its clique and its number.
    left = {
        axis: (size * math.prod([sizes[other] for other in near[axis]]), axis)
        for axis, size in enumerate(sizes)
    }
    cliques: list[frozenset[int]] = []
    while left:
        _, axis = min(left.values())
        around = near[axis]
        clique = frozenset((axis, *around))
        if not any(clique <= other for other in cliques):
            cliques.append(clique)
        del left[axis]
        for neighbour in around:
            own = near[neighbour]
            own |= around
            own -= {neighbour, axis}
            cells = sizes[neighbour] * math.prod([sizes[other] for other in own])
            left[neighbour] = cells, neighbour
    return [tuple(sorted(clique)) for clique in cliques]


def tree_cells(sizes: Sequence[int], scopes: Iterable[AxisSet]) -> int:
    """Return how many cells all cliques of a junction tree have together.

    Parameters
    ----------
    sizes : sequence of int
        Cells along each attribute.
    scopes : iterable of tuples of int
        Sets of attributes that factors will stand on.

    Returns
    -------
    int
        The sum over cliques, which is the memory that the tree takes, in numbers.
    """
    cliques = cliques_of(sizes, scopes)
    return sum(math.prod(sizes[axis] for axis in clique) for clique in cliques)


class JunctionTree:
    """Cliques of some scopes, joined to a tree.

    Parameters
    ----------
    sizes : sequence of int
        Cells along each attribute.
    scopes : iterable of tuples of int
        Sets of attributes that factors will stand on.

    Examples
    --------
    >>> tree = JunctionTree((2, 2, 2), [(0, 1), (1, 2)])
    >>> tree.cliques, tree.separators
    ([(0, 1), (1, 2)], [(), (1,)])
    >>> alike = np.log(np.array([[0.4, 0.1], [0.1, 0.4]]))
    >>> beliefs = tree.beliefs({(0, 1): alike, (1, 2): alike})
    >>> tree.table(beliefs, (0, 2)).round(2).tolist()
    [[0.34, 0.16], [0.16, 0.34]]
    """

    def __init__(self, sizes: Sequence[int], scopes: Iterable[AxisSet]) -> None:
        self.sizes = tuple(sizes)
        self.cliques = cliques_of(self.sizes, scopes)
        count = len(self.cliques)
        self.parents = [-1] * count
        self.separators: list[AxisSet] = [()] * count
        self.order = [0]
        """Cliques from the root on: every parent stands before its children."""
        sets = [set(clique) for clique in self.cliques]
        # The clique that shares most with the tree comes next: a spanning tree of the
        # largest separators, which makes every attribute's cliques connected.
        best = {other: (len(sets[0] & sets[other]), 0) for other in range(1, count)}
        while best:
            clique = max(best, key=lambda number: (best[number][0], -number))
            _, parent = best.pop(clique)
            self.parents[clique] = parent
            self.separators[clique] = tuple(sorted(sets[parent] & sets[clique]))
            self.order.append(clique)
            for other in best:
                shared = len(sets[clique] & sets[other])
                if shared > best[other][0]:
                    best[other] = shared, clique
        self.neighbours: list[list[int]] = [[] for _ in range(count)]
        for clique in self.order[1:]:
            self.neighbours[clique].append(self.parents[clique])
            self.neighbours[self.parents[clique]].append(clique)
        self._homes: dict[AxisSet, int] = {}
        self._sides: dict[tuple[int, int], frozenset[int]] = {}
        # Fits ask for the same factors and sums hundreds of times.
        self._layouts: dict[tuple[AxisSet, ...], list[_Layout]] = {}
        self._plans: dict[tuple[AxisSet, ...], list[_PlannedSums]] = {}

    @property
    def cells(self) -> int:
        """Cells of all cliques together."""
        return sum(math.prod(self._shape(clique, clique)) for clique in self.cliques)

    def home(self, scope: AxisSet) -> int | None:
        """Return the smallest clique that holds some attributes; None if none does."""
        if scope not in self._homes:
            wanted = set(scope)
            holding = [
                (math.prod(self._shape(clique, clique)), number)
                for number, clique in enumerate(self.cliques)
                if wanted.issubset(clique)
            ]
            self._homes[scope] = min(holding)[1] if holding else -1
        home = self._homes[scope]
        return None if home < 0 else home

    def _shape(self, clique: AxisSet, scope: Iterable[int]) -> list[int]:
        """Return the shape of a table over `scope` with an axis for all of `clique`."""
        return [self.sizes[axis] if axis in scope else 1 for axis in clique]

    def beliefs(self, factors: Factors) -> Beliefs | None:
        """Return the table of every clique under a product of factors.

        Messages go up to the root and back down once.

        Parameters
        ----------
        factors : mapping from attributes to arrays
            Natural logarithms; every scope lies in a clique.

        Returns
        -------
        list of arrays, or None
            One for each clique, summing to 1; None where all weights are too small.
        """
        # Everything happens in place: cliques are large, and new ones cost more time
        # than what is computed in them.
        tables = self._weights(factors)
        upward: dict[int, FloatArray] = {}
        for number in reversed(self.order[1:]):
            message = self._down(tables[number], number, number)
            if not message.sum() > 0.0:
                return None
            parent = self.parents[number]
            upward[number] = message
            largest = float(message.max())
            tables[parent] *= self._wide(message / largest, parent, number)
        total = tables[self.order[0]].sum()
        if not 0.0 < total < math.inf:
            return None
        tables[self.order[0]] /= total
        for number in self.order[1:]:
            parent = self.parents[number]
            message = self._down(tables[parent], parent, number)
            below = upward[number]
            # What the message up said of the separator is divided out again. The table
            # summed to `below` there, so it sums to the message from now on.
            ratio = np.divide(
                message, below, out=np.zeros_like(message), where=below > 0
            )
            if not np.isfinite(ratio).all():
                return None
            tables[number] *= self._wide(ratio, number, number)
        return tables

    def _weights(self, factors: Factors) -> Beliefs:
        """Return the product of the factors of each clique, before any message."""
        scopes = tuple(factors)
        if scopes not in self._layouts:
            self._layouts[scopes] = self._layout(scopes)
        return [
            self._product(clique, layout, factors)
            for clique, layout in zip(self.cliques, self._layouts[scopes], strict=True)
        ]

    def _layout(self, scopes: Sequence[AxisSet]) -> list[_Layout]:
        """Return which factors each clique multiplies at each of its attributes."""
        homed: list[list[AxisSet]] = [[] for _ in self.cliques]
        for scope in scopes:
            home = self.home(scope)
            assert home is not None, "factors stand on scopes of the tree"
            homed[home].append(scope)
        layouts: list[_Layout] = []
        for clique, own in zip(self.cliques, homed, strict=True):
            # Small factors first: the product stays small for longer.
            ordered = sorted(
                own, key=lambda scope: math.prod(self._shape(scope, scope))
            )
            layouts.append(
                [
                    [
                        (scope, self._shape(clique[: at + 1], scope))
                        for scope in ordered
                        if scope[-1:] == (axis,)
                    ]
                    for at, axis in enumerate(clique)
                ]
            )
        return layouts

    def _product(
        self, clique: AxisSet, layout: _Layout, factors: Factors
    ) -> FloatArray:
        """Multiply factors to a table of a clique, the largest weight 1 or so.

        Attribute by attribute: a factor is multiplied in at its last one, where the
        table is still small. Exponentials are taken of factors alone. Only where
        weights are too small for that are logarithms added in the whole table.
        """
        table = np.ones(())
        for axis, own in zip(clique, layout, strict=True):
            part = np.ones(self.sizes[axis])
            for number, (scope, wide) in enumerate(own):
                factor = factors[scope]
                weights = np.exp(factor - factor.max()).reshape(wide)
                part = part * weights if number else weights
            table = table[..., None] * part
        largest = float(table.max())
        if largest > LEAST_WEIGHT:
            return table
        logs = np.zeros(self._shape(clique, clique))
        for scope in (scope for own in layout for scope, _ in own):
            logs += factors[scope].reshape(self._shape(clique, scope))
        logs -= logs.max()
        return np.asarray(np.exp(logs, out=logs))

    def _down(self, table: FloatArray, clique: int, separator: int) -> FloatArray:
        """Sum the table of a clique down to the separator above another one."""
        onto = self.separators[separator]
        return np.asarray(sum_down(table, self.cliques[clique], onto))

    def _wide(self, message: FloatArray, clique: int, separator: int) -> FloatArray:
        """Give a message over a separator the axes of a clique."""
        shape = self._shape(self.cliques[clique], self.separators[separator])
        return message.reshape(shape)

    def table(
        self, beliefs: Beliefs, axes: AxisSet, messages: Messages | None = None
    ) -> FloatArray:
        """Return the table of any attributes, which sums to 1.

        The clique that holds most of them is the root; messages towards it keep those
        asked attributes that lie behind them.

        Parameters
        ----------
        beliefs : list of arrays
            What `beliefs` returned.
        axes : tuple of int
            Attributes, by increasing number.
        messages : dict, optional
            Takes messages that other tables of the same beliefs can use, and gives them
            back; empty for the first table.

        Returns
        -------
        float64 with an axis for each attribute
            Shares of all records.
        """
        home = self.home(axes)
        if home is not None:
            return np.asarray(sum_down(beliefs[home], self.cliques[home], axes))
        widest = max(
            self.separators,
            key=lambda separator: math.prod(self._shape(separator, separator)),
        )
        together = math.prod(self._shape(axes, axes) + self._shape(widest, widest))
        if together <= MOST_AT_ONCE:
            return self._collected(beliefs, axes, {}, messages)
        # Cell by cell of the longest attribute, so that memory stays bounded.
        longest = max(axes, key=lambda axis: self.sizes[axis])
        parts = [
            self._collected(beliefs, axes, {longest: cell})
            for cell in range(self.sizes[longest])
        ]
        return np.concatenate(parts, axis=axes.index(longest))

    def tables(
        self, beliefs: Beliefs, scopes: Iterable[AxisSet]
    ) -> dict[AxisSet, FloatArray]:
        """Return the tables of several sets of attributes that cliques hold.

        Large tables are summed as seldom as possible: see `_sums`.

        Parameters
        ----------
        beliefs : list of arrays
            What `beliefs` returned.
        scopes : iterable of tuples of int
            Attributes, by increasing number; a clique holds each of them.

        Returns
        -------
        dict from tuples of int to float64 arrays
            Shares of all records.
        """
        every = tuple(dict.fromkeys(scopes))
        if every not in self._plans:
            self._plans[every] = self._planned_sums(every)
        sums: dict[AxisSet, FloatArray] = {}
        for home, own, steps in self._plans[every]:
            between = {self.cliques[home]: beliefs[home]}
            for source, onto in steps:
                between[onto] = np.asarray(sum_down(between[source], source, onto))
            sums |= {scope: between[scope] for scope in own}
        return sums

    def _planned_sums(self, scopes: Sequence[AxisSet]) -> list[_PlannedSums]:
        """Return from which clique, and by way of which tables, scopes are summed."""
        homed: dict[int, list[AxisSet]] = {}
        for scope in scopes:
            home = self.home(scope)
            assert home is not None, "a clique holds each scope"
            homed.setdefault(home, []).append(scope)
        return [
            (home, own, _sums(self.cliques[home], self.sizes, own))
            for home, own in homed.items()
        ]

    def _collected(
        self,
        beliefs: Beliefs,
        axes: AxisSet,
        fixed: Mapping[int, int],
        messages: Messages | None = None,
    ) -> FloatArray:
        """Return a table; of an attribute in `fixed`, for this cell alone."""
        wanted = set(axes)
        root = max(
            range(len(self.cliques)),
            key=lambda number: (
                len(wanted.intersection(self.cliques[number])),
                -number,
            ),
        )
        names, table = self._collect(beliefs, root, -1, wanted, fixed, messages)
        wanted_names = [name for name in names if name in wanted]
        summed = np.asarray(sum_down(table, names, wanted))
        return summed.transpose(np.argsort(wanted_names))

    def _collect(
        self,
        beliefs: Beliefs,
        clique: int,
        came: int,
        wanted: set[int],
        fixed: Mapping[int, int],
        messages: Messages | None,
    ) -> tuple[AxisSet, FloatArray]:
        """Return the table of the wanted attributes in and behind a clique.

        Cut the edge between this clique and the clique `came`; the cliques on this side
        are those behind it. Seen from here, a neighbour behind brings

            p(wanted attributes behind it, separator) / p(separator)

        which is multiplied with the table of this clique. What neither is wanted nor
        joins a later neighbour is summed out at once, so that tables stay small.

        Parameters
        ----------
        beliefs : list of arrays
            What `beliefs` returned.
        clique : int
            The clique.
        came : int
            The neighbour that asks; -1 at the root.
        wanted : set of int
            Attributes of the final table.
        fixed : mapping from int to int
            Attributes of which one cell alone is computed.
        messages : dict or None
            What was returned before, for the same beliefs.

        Returns
        -------
        names : tuple of int
            The attributes of the table's axes: wanted ones, and those that this clique
            shares with `came`.
        table : ndarray of float64
            Their probabilities.
        """
        further = [
            neighbour
            for neighbour in self.neighbours[clique]
            if neighbour != came
            and wanted & (self._behind(neighbour, clique) - {*self.cliques[clique]})
        ]
        shares = [self._shared(clique, neighbour) for neighbour in (*further, came)]
        # What nobody asks for goes first, so that all that follows is small.
        every = wanted.union(*shares)
        names = tuple(name for name in self.cliques[clique] if name in every)
        table = np.asarray(sum_down(beliefs[clique], self.cliques[clique], every))
        table = _fixed(table, names, fixed)
        for number, other in enumerate(further):
            shared = shares[number]
            far_names, far = self._message(
                beliefs, other, clique, wanted, fixed, messages
            )
            # The separator's own table has its axes by increasing number; `far` may
            # have them in another order, between axes that the separator lacks.
            separator = _fixed(
                np.asarray(sum_down(beliefs[other], self.cliques[other], shared)),
                tuple(sorted(shared)),
                fixed,
            )
            ranks = np.argsort(
                np.argsort([axis for axis in far_names if axis in shared])
            )
            separator = separator.transpose(ranks).reshape(
                [
                    size if name in shared else 1
                    for name, size in zip(far_names, far.shape, strict=True)
                ]
            )
            # p(what lies behind | separator), times what is here.
            far = np.divide(far, separator, out=np.zeros_like(far), where=separator > 0)
            needed = wanted.union(*shares[number + 1 :])
            names, table = _joined(names, table, far_names, far, needed)
        open_names = tuple(
            name for name in names if name in wanted or name in shares[-1]
        )
        return open_names, np.asarray(sum_down(table, names, open_names))

    def _message(
        self,
        beliefs: Beliefs,
        clique: int,
        came: int,
        wanted: set[int],
        fixed: Mapping[int, int],
        messages: Messages | None,
    ) -> tuple[AxisSet, FloatArray]:
        """Return what `_collect` does, made once for each single attribute behind."""
        # Attributes of the separator are in the message whether or not they are wanted.
        behind = wanted & (self._behind(clique, came) - {*self.cliques[came]})
        if messages is None or fixed or len(behind) > 1:
            return self._collect(beliefs, clique, came, wanted, fixed, messages)
        (axis,) = behind
        key = clique, came, axis
        if key not in messages:
            messages[key] = self._collect(
                beliefs, clique, came, wanted, fixed, messages
            )
        return messages[key]

    def _shared(self, clique: int, other: int) -> set[int]:
        """Return the attributes that two cliques share; none with no clique."""
        return set() if other < 0 else {*self.cliques[clique]} & {*self.cliques[other]}

    def _behind(self, clique: int, came: int) -> frozenset[int]:
        """Return the attributes in and behind a clique, seen from a neighbour."""
        key = clique, came
        if key not in self._sides:
            further = (
                self._behind(other, clique)
                for other in self.neighbours[clique]
                if other != came
            )
            self._sides[key] = frozenset(self.cliques[clique]).union(*further)
        return self._sides[key]

    def pairs(self, beliefs: Beliefs) -> dict[AxisSet, FloatArray]:
        """Return the tables of all pairs of attributes.

        Pairs that a clique holds are sums of its table. For the others p(a, separator)
        is sent through the tree once for each attribute a, and meets sums of cliques
        down to few attributes, which are made once for all a.

        Parameters
        ----------
        beliefs : list of arrays
            What `beliefs` returned.

        Returns
        -------
        dict from pairs of int to float64 arrays
            Shares of all records.
        """
        every = combinations(range(len(self.sizes)), 2)
        homed = [pair for pair in every if self.home(pair) is not None]
        tables = self.tables(beliefs, homed)
        links: dict[tuple[int, int, AxisSet], FloatArray] = {}
        for first in range(len(self.sizes)):
            self._send(beliefs, first, tables, links)
        return tables

    def _send(
        self,
        beliefs: Beliefs,
        first: int,
        tables: dict[AxisSet, FloatArray],
        links: dict[tuple[int, int, AxisSet], FloatArray],
    ) -> None:
        """Add the tables of an attribute and later ones that are missing.

        Parameters
        ----------
        beliefs : list of arrays
            What `beliefs` returned.
        first : int
            The attribute.
        tables : dict from pairs of int to arrays
            Tables that are known; takes the others.
        links : dict
            p(attributes | separator), as `_passed` makes them.
        """
        home = self.home((first,))
        assert home is not None, "every attribute is in a clique"
        waiting: list[tuple[int, int, FloatArray | None]] = [(home, -1, None)]
        while waiting:
            clique, came, message = waiting.pop()
            for further in self.neighbours[clique]:
                missing = [
                    other
                    for other in self._behind(further, clique)
                    if other > first and (first, other) not in tables
                ]
                if further == came or not missing:
                    continue
                if first in self.cliques[further]:
                    waiting.append((further, clique, None))
                    continue
                shared = tuple(sorted(self._shared(clique, further)))
                if message is None:
                    joint = sum_down(
                        beliefs[clique], self.cliques[clique], {first, *shared}
                    )
                    place = sum(axis < first for axis in shared)
                    sent: FloatArray = np.moveaxis(np.asarray(joint), place, 0)
                else:
                    sent = self._passed(beliefs, message, came, clique, shared, links)
                for other in missing:
                    if other in self.cliques[further]:
                        tables[first, other] = self._passed(
                            beliefs, sent, clique, further, (other,), links
                        )
                waiting.append((further, clique, sent))

    def _passed(
        self,
        beliefs: Beliefs,
        message: FloatArray,
        came: int,
        clique: int,
        onto: AxisSet,
        links: dict[tuple[int, int, AxisSet], FloatArray],
    ) -> FloatArray:
        """Return p(first, onto) from p(first, separator), for attributes of a clique.

        Parameters
        ----------
        beliefs : list of arrays
            What `beliefs` returned.
        message : float64
            p(first, separator), `first` along the first axis.
        came, clique : int
            The cliques before and after the separator.
        onto : tuple of int
            Attributes of `clique`.
        links : dict
            Takes p(onto | separator), for the next attribute.

        Returns
        -------
        float64
            `first` along the first axis, then those of `onto`.
        """
        shared = tuple(sorted(self._shared(came, clique)))
        held = {*shared, *onto}
        key = came, clique, onto
        if key not in links:
            joint = np.asarray(sum_down(beliefs[clique], self.cliques[clique], held))
            dropped = tuple(
                at for at, axis in enumerate(sorted(held)) if axis not in shared
            )
            margin = joint.sum(axis=dropped, keepdims=True)
            links[key] = np.divide(
                joint, margin, out=np.zeros_like(joint), where=margin > 0
            )
        # The attribute that is sent lies in no clique behind: -1 is nobody's number.
        names, passed = _joined(
            (-1, *shared), message, tuple(sorted(held)), links[key], {-1, *onto}
        )
        return passed.transpose(np.argsort(names))

    def sample(
        self, beliefs: Beliefs, count: int, generator: np.random.Generator
    ) -> IntArray:
        """Draw records, clique by clique from the root, evenly inside separators.

        Parameters
        ----------
        beliefs : list of arrays
            What `beliefs` returned.
        count : int
            Number of records.
        generator : numpy.random.Generator
            Public randomness; nothing private depends on it.

        Returns
        -------
        (attributes, count) int64
            Cell numbers.
        """
        records = np.zeros((len(self.sizes), count), dtype=np.int64)
        for number in self.order:
            clique, separator = self.cliques[number], self.separators[number]
            front = [at for at, axis in enumerate(clique) if axis in separator]
            rest = [at for at, axis in enumerate(clique) if axis not in separator]
            rows = math.prod(self.sizes[axis] for axis in separator)
            table = beliefs[number].transpose(front + rest).reshape(rows, -1)
            group = np.zeros(count, dtype=np.int64)
            for axis in separator:
                group = group * self.sizes[axis] + records[axis]
            drawn = draw_columns(table, group, generator)
            shape = [self.sizes[clique[at]] for at in rest]
            for at, cells in zip(rest, np.unravel_index(drawn, shape), strict=True):
                records[clique[at]] = cells
        return records


def _sums(
    names: AxisSet, sizes: Sequence[int], scopes: Sequence[AxisSet]
) -> list[_Sum]:
    """Say how a table is summed down to several, by way of tables in between.

    The attribute that fewest of the scopes hold is summed out for all others at once,
    as long as some are left: (a, b), (b, c) and (c, d) of a table (a, b, c, d) come
    from one sum over d, one over a.

    Parameters
    ----------
    names : tuple of int
        The attributes of the table.
    sizes : sequence of int
        Cells along every attribute.
    scopes : sequence of tuples of int
        The smaller tables, by their attributes, all among `names`.

    Returns
    -------
    list of pairs of tuples of int
        A table and a smaller one that is summed from it, in order.
    """
    steps: list[_Sum] = []
    left = [scope for scope in scopes if scope != names]
    while left:
        # Ties: the longest axis, whose sum leaves the least to do.
        axis = min(
            names,
            key=lambda name: (sum(name in scope for scope in left), -sizes[name]),
        )
        without = [scope for scope in left if axis not in scope]
        if len(without) < 2:
            return steps + [(names, scope) for scope in left]
        rest = tuple(name for name in names if name != axis)
        steps += [(names, rest), *_sums(rest, sizes, without)]
        left = [scope for scope in left if axis in scope]
    return steps


def _fixed(table: FloatArray, names: AxisSet, fixed: Mapping[int, int]) -> FloatArray:
    """Return the part of a table at fixed cells of some attributes, all axes kept."""
    for axis, cell in fixed.items():
        if axis in names:
            table = table.take([cell], axis=names.index(axis))
    return table


def _joined(
    names: AxisSet,
    table: FloatArray,
    other_names: AxisSet,
    other: FloatArray,
    result_names: set[int],
) -> tuple[AxisSet, FloatArray]:
    """Multiply two tables and sum out what is not kept.

    ``einsum`` without optimisation adds in a fixed order, in one thread.
    """
    every = (*names, *(name for name in other_names if name not in names))
    result = tuple(name for name in every if name in result_names)
    numbers = {name: at for at, name in enumerate(every)}
    einsum: Any = np.einsum
    product = einsum(
        table,
        [numbers[name] for name in names],
        other,
        [numbers[name] for name in other_names],
        [numbers[name] for name in result],
        optimize=False,
    )
    return result, product


def draw_columns(
    table: FloatArray, rows: IntArray, generator: np.random.Generator
) -> IntArray:
    """Draw a column for each record given its row, by systematic sampling.

    Inside a row with k records the shares of the columns are met up to one record.

    Parameters
    ----------
    table : (rows, columns) float64
        Weights, not negative; a row without weights is even.
    rows : (records,) int64
        The row of each record.
    generator : numpy.random.Generator
        Public randomness.

    Returns
    -------
    (records,) int64
        The column of each record.
    """
    weights = np.where(table.sum(axis=1, keepdims=True) > 0, table, 1.0)
    shares = np.cumsum(weights, axis=1)
    shares = shares / shares[:, -1:]
    order = np.lexsort(np.stack([generator.random(rows.size), rows]))
    counts = np.bincount(rows, minlength=len(table))
    firsts = np.cumsum(counts) - counts
    ranked = rows[order]
    place = np.arange(rows.size) - firsts[ranked]
    offset = generator.random(len(table))[ranked]
    quantile = np.minimum((place + offset) / counts[ranked], 1.0 - 1e-12)
    steps = (shares + np.arange(len(table))[:, None]).reshape(-1)
    places = np.searchsorted(steps, ranked + quantile, side="right")
    drawn = np.empty(rows.size, dtype=np.int64)
    drawn[order] = np.clip(places - ranked * table.shape[1], 0, table.shape[1] - 1)
    return drawn

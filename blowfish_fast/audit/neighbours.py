"""Neighbouring databases to try a promise on: policies, pairs, records moving together.

A pair is a background and an edge: the same counts, with one record at either end. From
the best of the chosen pairs a search goes on to more telling ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from blowfish_fast import policies
from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.domain import Domain
from blowfish_fast.policies import ABSENT, PerPerson, Policy
from blowfish_fast.policies.constrained import Constrained


def policy_families(domain: Domain) -> dict[str, Policy]:
    """Return policies of every built-in family that fit a small `domain`.

    Examples
    --------
    >>> sorted(policy_families(Domain(4)))[:4]
    ['add_remove', 'blocks', 'constrained', 'full']
    """
    cells = domain.size
    ring = np.column_stack([np.arange(cells), (np.arange(cells) + 1) % cells])
    families: dict[str, Policy] = {
        "add_remove": policies.AddRemove(domain),
        "full": policies.Full(domain),
        "blocks": policies.Blocks(domain, np.arange(cells) // 3),
    }
    if cells > 2:
        families["graph"] = policies.Graph(domain, ring)
        every_other = [[cell, ABSENT] for cell in range(0, cells, 2)]
        families["graph_absent"] = policies.Graph(
            domain, np.concatenate([ring, every_other])
        )
        reach = 2 if domain.ndim == 1 else 1
        near = policies.Threshold(domain, theta=reach, metric="l1").edges()
        leaving = [[cell, ABSENT] for cell in range(cells)]
        families["threshold_absent"] = policies.Graph(
            domain, np.concatenate([*near, leaving])
        )
    if cells > 3:
        half = (np.arange(cells) < cells // 2).reshape(domain.shape)
        public_counts = policies.CountConstraints(domain, [half])
        families["constrained"] = policies.Full(domain).with_constraints(public_counts)
    if domain.ndim == 1:
        families["line"] = policies.Line(domain)
        families["threshold"] = policies.Threshold(
            domain, theta=min(3, max(cells - 1, 1))
        )
    else:
        families["attribute"] = policies.Attribute(domain)
        families["threshold_l1"] = policies.Threshold(domain, theta=1, metric="l1")
        families["threshold_linf"] = policies.Threshold(domain, theta=1, metric="linf")
        if domain == Domain(domain.shape):
            lines = [policies.Line(Domain(size)) for size in domain.shape]
            families["product"] = policies.Product(*lines)
    return families


MOST_RECORDS = 60
"""Largest count of a random background."""


class Pair(NamedTuple):
    """Counts of two neighbours: a background with one record at either end.

    Attributes
    ----------
    background : tuple[int, ...]
        The counts without that record.
    edge : tuple[int, int]
        The two cells; -1 is "absent".
    """

    background: tuple[int, ...]
    edge: tuple[int, int]

    @property
    def sides(self) -> tuple[IntArray, IntArray]:
        """The two vectors of counts."""
        return self._with_record(0), self._with_record(1)

    def _with_record(self, end: int) -> IntArray:
        counts = np.array(self.background, dtype=np.int64)
        if self.edge[end] != ABSENT:
            counts[self.edge[end]] += 1
        return counts

    def __str__(self) -> str:
        return " | ".join(str(side.tolist()) for side in self.sides)


def all_edges(policy: Policy) -> list[tuple[int, int]]:
    """Return every edge of a small policy."""
    return [(int(start), int(end)) for edges in policy.edges() for start, end in edges]


def steps_along(policy: Policy, cells: Iterable[int]) -> Fraction:
    """Return as how many edges an edge counts: "absent" may lie farther away.

    Parameters
    ----------
    policy : Policy
        What is secret.
    cells : Iterable[int]
        The cells of the edge.

    Returns
    -------
    Fraction
        The number.
    """
    far = getattr(policy.unconstrained, "absent_length", None)
    return far if far is not None and ABSENT in cells else Fraction(1)


def standard_pairs(policy: Policy, heights: Iterable[int] = (8,)) -> list[Pair]:
    """Return neighbours along every edge of a small policy, on telling backgrounds.

    Parameters
    ----------
    policy : Policy
        What is secret.
    heights : Iterable[int], default (8,)
        Heights of the backgrounds; they should hold the price of a bucket, where a
        choice by cost hangs in the balance.

    Returns
    -------
    list[Pair]
        The pairs.
    """
    cells = policy.domain.size
    place = np.arange(cells)
    shapes = [
        place * 0,
        place * 0 + 1,
        (2 * place >= cells).astype(np.int64),
        place % 2,
        (place == cells - 1).astype(np.int64),
    ]
    backgrounds = {
        tuple((height * shape).tolist()) for height in heights for shape in shapes
    }
    return [
        Pair(background, edge)
        for background in sorted(backgrounds)
        for edge in all_edges(policy)
    ]


def pairs_at_random(
    policy: Policy, count: int, generator: np.random.Generator
) -> list[Pair]:
    """Return neighbours along random edges, on random backgrounds: dense and sparse.

    Parameters
    ----------
    policy : Policy
        What is secret.
    count : int
        How many.
    generator : numpy.random.Generator
        Draws them.

    Returns
    -------
    list[Pair]
        The pairs.
    """
    edges = all_edges(policy)
    if not edges:
        return []
    largest = generator.integers(0, MOST_RECORDS, size=(count, 1), endpoint=True)
    drawn = generator.integers(
        0, largest, size=(count, policy.domain.size), endpoint=True
    )
    taken = generator.integers(0, len(edges), size=count)
    return [
        Pair(tuple(background), edges[edge])
        for background, edge in zip(drawn.tolist(), taken.tolist(), strict=True)
    ]


def search_worst_pair(
    start: Pair,
    policy: Policy,
    apart: Callable[[Pair], float],
    heights: Iterable[int],
    steps: int,
    seed: int = 0,
) -> Pair:
    """Climb to a pair further apart; counts step by one or become a height.

    Parameters
    ----------
    start : Pair
        Where the climb begins.
    policy : Policy
        What is secret.
    apart : Callable[[Pair], float]
        Says how far the two sides of a pair are apart.
    heights : Iterable[int]
        Heights that counts may become.
    steps : int
        How many steps are tried.
    seed : int, default 0
        Where chance begins.

    Returns
    -------
    Pair
        The best pair.
    """
    edges, generator = all_edges(policy), np.random.default_rng(seed)
    levels = sorted({0, *heights, *(height // 2 for height in heights)})
    best, reached = start, apart(start)
    for _ in range(steps):
        other = _vary(best, edges, levels, generator)
        distance = apart(other)
        if distance > reached:
            best, reached = other, distance
    return best


def _vary(
    pair: Pair,
    edges: list[tuple[int, int]],
    levels: list[int],
    generator: np.random.Generator,
) -> Pair:
    """Return the pair with another edge, or another count in one cell."""
    if generator.random() < 0.3:
        return pair._replace(edge=edges[generator.integers(len(edges))])
    background = list(pair.background)
    cell = int(generator.integers(len(background)))
    near = [background[cell] + 1, max(background[cell] - 1, 0)]
    options = [*levels, *near]
    background[cell] = options[generator.integers(len(options))]
    return pair._replace(background=tuple(background))


MOST_MOVES = 4
"""Moves that are tried together; tiny domains with few known counts need no more."""

Move = tuple[int, int]
Change = tuple[int, ...]


def joint_moves(policy: Policy, most: int = MOST_MOVES) -> Iterator[list[Move]]:
    """Yield sets of moves in which neighbours differ by definition, smaller first.

    Known counts make records move together, along edges of the policy that keep every
    known count and of which no smaller part does.

    Parameters
    ----------
    policy : Policy
        What is secret.
    most : int, default MOST_MOVES
        The most moves of a set.

    Yields
    ------
    list[Move]
        The moves of one set.
    """
    if isinstance(policy, PerPerson):
        yield from _persons(policy)
        return
    if not isinstance(policy, Constrained):
        yield from ([edge] for edge in all_edges(policy))
        return
    by_change: dict[Change, list[Move]] = {}
    for move in _both_ways(policy):
        by_change.setdefault(_change(policy, move), []).append(move)
    for size in range(1, most + 1):
        for changes in itertools.combinations_with_replacement(sorted(by_change), size):
            if _holds_together(changes):
                yield from (
                    list(moves)
                    for moves in itertools.product(
                        *(by_change[change] for change in changes)
                    )
                )


def _persons(policy: PerPerson) -> Iterator[list[Move]]:
    """Yield what may happen to one person's records that are counted.

    Each of m records moves along an edge, or all appear, in units that make one person.
    """
    both = list(_both_ways(policy))
    moves = [move for move in both if ABSENT not in move]
    appear = [move for move in both if move[0] == ABSENT]
    for size in range(policy.at_most or 1, 0, -1):
        stands_for = max(policy.units // size, 1)
        for kinds in (moves, appear):
            for chosen in itertools.combinations_with_replacement(kinds, size):
                yield [move for move in chosen for _ in range(stands_for)]


def _both_ways(policy: Policy) -> Iterator[Move]:
    for start, end in all_edges(policy):
        yield from ((start, end), (end, start))


def _change(policy: Constrained, move: Move) -> Change:
    change = np.zeros(policy.constraints.queries, dtype=np.int64)
    change[policy.constraints.lifts(*move)] += 1
    change[policy.constraints.lowers(*move)] -= 1
    return tuple(change.tolist())


def _holds_together(changes: tuple[Change, ...]) -> bool:
    """Whether the changes add up to nothing, and no smaller part of them does."""
    if any(map(sum, zip(*changes, strict=True))):
        return False
    return not any(
        not any(map(sum, zip(*part, strict=True)))
        for size in range(1, len(changes))
        for part in itertools.combinations(changes, size)
    )


def most_moves(policy: Policy) -> tuple[int, list[Move]]:
    """Return the largest number of records that move together, and an example."""
    largest: list[Move] = []
    for moves in joint_moves(policy):
        if len(moves) > len(largest):
            largest = moves
    return len(largest), largest

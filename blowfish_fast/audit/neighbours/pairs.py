"""Neighbouring pairs along policy edges: chosen, drawn at random, and searched for.

A pair is a background and an edge: the same counts, with one record at either end.

    background   0 0 8 8        pair   1 0 8 8  |  0 0 9 8      edge (0, 2)

An audit is as good as the pair it looks at, so the chosen ones are a start: from the
best of them a search changes one cell of the background or takes another edge, and
keeps what tells the two sides further apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.policies import ABSENT, Policy

MOST_RECORDS = 60
"""Largest count of a random background."""


class Pair(NamedTuple):
    """Counts of two neighbours: a background with one record at either end."""

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


def standard_pairs(policy: Policy, heights: Iterable[int] = (8,)) -> list[Pair]:
    """Return neighbours along every edge of a small policy, on telling backgrounds.

    Nothing, a plain, a step, teeth and a spike, each with one record that moves. A
    choice by cost hangs in the balance where a step is about as high as a bucket is
    dear, so `heights` should hold that price.
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
    """Return neighbours along random edges, on random backgrounds: dense and sparse."""
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
    *,
    heights: Iterable[int],
    steps: int,
    generator: np.random.Generator,
) -> Pair:
    """Climb from `start` to a pair that is further apart, in so many random steps.

    Parameters
    ----------
    apart : callable
        How far apart the two sides are; larger is better.
    heights : iterable of int
        Counts that a cell may be given, besides one more and one less.
    """
    edges = all_edges(policy)
    levels = sorted({0, *heights, *(height // 2 for height in heights)})
    best, reached = start, apart(start)
    for _ in range(steps):
        other = _vary(best, edges, levels, generator)
        found = apart(other)
        if found > reached:
            best, reached = other, found
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

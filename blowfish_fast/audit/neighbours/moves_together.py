"""Neighbours under constraints, from the definition.

Known counts make records move together: neighbours differ by moves along edges of the
policy that keep every known count, and of which no smaller part does. So a set of
moves is a list of what each lifts and lowers: it adds up to nothing, and no part does.

    known: 3 records in {0, 1}        a move 0 -> 2 lowers it, a move 3 -> 1 lifts it
                                      alone neither may happen; together they do
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from blowfish_fast.audit.measurements import RowPrices
from blowfish_fast.audit.neighbours.pairs import all_edges
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.policies import ABSENT, PerPerson, Policy
from blowfish_fast.policies.constrained import Constrained

MOST_MOVES = 4
"""Moves that are tried together; tiny domains with few known counts need no more."""

MOST_PRICED = 4096

Move = tuple[int, int]
Change = tuple[int, ...]


def joint_moves(policy: Policy, most: int = MOST_MOVES) -> Iterator[list[Move]]:
    """Yield sets of moves in which neighbours differ, smaller ones first."""
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
                    for moves in itertools.product(*(by_change[one] for one in changes))
                )


def _persons(policy: PerPerson) -> Iterator[list[Move]]:
    """Yield what may happen to one person's records that are counted.

    Each of m records moves along an edge, or all appear; where a person counts once,
    each stands for as many units as make a person with m of them.
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


def price_together(measurement: Measurement, policy: Policy) -> Fraction | float:
    """Return the largest exact price of a set of moves; 0 where draws share rows."""
    prices = RowPrices(measurement)
    if not prices.own_draws:
        return Fraction(0)
    worst: Fraction | float = Fraction(0)
    for moves in itertools.islice(joint_moves(policy), MOST_PRICED):
        changes = [prices.rows(end) - prices.rows(start) for start, end in moves]
        worst = max(worst, prices.price(np.sum(changes, axis=0)))
    return worst

"""The matching choice on a tiny domain, from its definition and many times at once.

A plain twin of ``partitions.matching_pairs``: every pairing of a handful of cells is
written out, and noise of the scales that the partition declares is drawn in one batch.

    cells 0 1 2     pairings   {0}{1}{2}   {0 1}{2}   {0 2}{1}   {1 2}{0}
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from .._typing import IntArray
from ..errors import SizeError
from ..partitions.base import record_distance
from ..partitions.matching_pairs import Matching, pair_deviations
from ..policies import Policy
from ..randomness import Randomness

MOST_CELLS = 6
CHUNK = 2**16

Pairing = tuple[tuple[int, ...], ...]


def pairings(cells: tuple[int, ...]) -> Iterator[Pairing]:
    """Yield every way to put cells into groups of one or two.

    Examples
    --------
    >>> list(pairings((0, 1)))
    [((0,), (1,)), ((0, 1),)]
    """
    if not cells:
        yield ()
        return
    first, rest = cells[0], cells[1:]
    for others in pairings(rest):
        yield ((first,), *others)
    for place, mate in enumerate(rest):
        for others in pairings(rest[:place] + rest[place + 1 :]):
            yield ((first, mate), *others)


def matching_choices(
    partition: Matching,
    counts: IntArray,
    *,
    policy: Policy,
    epsilon: Fraction,
    samples: int,
    rng: Randomness,
) -> IntArray:
    """Return the number of the pairing chosen in each of `samples` runs of one round."""
    cells = counts.size
    if cells > MOST_CELLS or partition.rounds != 1:
        raise SizeError(
            f"pairings are written out for at most {MOST_CELLS} cells and one round; "
            f"received {cells} cells and {partition.rounds} rounds"
        )
    alone = np.ones(cells, dtype=np.int64)
    noise = partition.noise(cells, epsilon / record_distance(policy), alone)
    first, second = np.triu_indices(cells, 1)
    near = second - first <= (partition.window or cells)
    first, second = first[near], second[near]
    totals = np.minimum(counts, noise.cap)
    deviations = pair_deviations(totals, alone, first, second, noise.grid)
    groups: list[tuple[int, ...]] = [(cell,) for cell in range(cells)]
    groups += list(zip(first.tolist(), second.tolist(), strict=True))
    costs = [noise.price] * cells
    costs += [int(one) + noise.pair_price for one in deviations]
    scales = [noise.single] * cells + [noise.pair] * first.size
    place = {group: number for number, group in enumerate(groups)}
    offered = [one for one in pairings(tuple(range(cells))) if place.keys() >= set(one)]
    member = np.zeros((len(offered), len(groups)), dtype=np.int64)
    for row, pairing in enumerate(offered):
        member[row, [place[group] for group in pairing]] = 1
    chosen = np.empty(samples, dtype=np.int64)
    for begin in range(0, samples, CHUNK):
        size = min(CHUNK, samples - begin)
        noisy = np.empty((size, len(groups)), dtype=np.int64)
        for column, (cost, scale) in enumerate(zip(costs, scales, strict=True)):
            drawn = rng.geometric(scale.numerator, scale.denominator, size=size)
            noisy[:, column] = cost - drawn
        chosen[begin : begin + size] = (noisy @ member.T).argmin(axis=1)
    return chosen

"""Choices of least noisy cost on a tiny domain, from their definition.

Plain twins of ``partitions.least_cost`` and ``partitions.matching_pairs``: every
candidate is written out with its exact cost and the noise scale that the partition
declares, and every way to cover the cells by candidates is a choice. With noise drawn
in one batch the twin chooses a million times at once; with the noise that a real run
drew it says what that run had to choose. Tests hold the compiled kernels equal to such
twins.

    cells 0 1 2     intervals   {0}{1}{2}   {0 1}{2}   {0}{1 2}   {0 1 2}
                    pairings    {0}{1}{2}   {0 1}{2}   {0 2}{1}   {1 2}{0}
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.audit.witness import Draw, Note, WatchedRandomness
from blowfish_fast.errors import SizeError
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions.base import (
    connected_parts,
    record_distance,
)
from blowfish_fast.measure.selectors.partitions.least_cost import QUANTILE, LeastCost
from blowfish_fast.measure.selectors.partitions.matching_pairs import (
    MatchingPairs,
    pair_deviations,
)

from .case import Case

MOST_CELLS = 8
CHUNK = 2**16

Cells = tuple[int, ...]


class Offered(NamedTuple):
    """Every candidate by its cells, with cost and noise scale in steps."""

    candidates: list[Cells]
    costs: IntArray
    scales: list[Fraction]

    def member(self) -> IntArray:
        """Return a row of zeros and ones per choice: the candidates it is made of."""
        cells = tuple(sorted(set().union(*self.candidates)))
        if len(cells) > MOST_CELLS:
            raise SizeError(
                f"choices are written out for at most {MOST_CELLS} cells; received "
                f"{len(cells)}"
            )
        covers = list(covers_of(cells, self.candidates))
        rows = np.zeros((len(covers), len(self.candidates)), dtype=np.int64)
        for row, cover in zip(rows, covers, strict=True):
            row[[self.candidates.index(one) for one in cover]] = 1
        return rows


def covers_of(cells: Cells, candidates: list[Cells]) -> Iterator[list[Cells]]:
    """Yield every way to put each of `cells` into one candidate."""
    if not cells:
        yield []
    for one in candidates:
        if cells and one[0] == cells[0] and set(one) <= set(cells):
            rest = tuple(cell for cell in cells if cell not in one)
            yield from ([one, *others] for others in covers_of(rest, candidates))


def intervals_offered(case: Case, counts: IntArray) -> Offered:
    """Write out every interval of a `LeastCost`, with its cost from exact fractions."""
    partition, cells = case.selector, counts.size
    noise = partition.noise(cells, case.epsilon / record_distance(case.policy))
    powers = partition.lengths == "powers"
    lengths = [2**power for power in range(cells.bit_length())]
    offered = Offered([], np.empty(0, dtype=np.int64), [])
    costs = []
    for length in lengths if powers else range(1, cells + 1):
        scale = float(noise.scales[length.bit_length() - 1 if powers else length])
        price = round((partition.bucket_cost + partition.offset * scale) / noise.step)
        for start in range(cells - length + 1):
            cost = _cost(partition, counts[start : start + length].tolist())
            costs.append(math.floor(cost / Fraction(noise.step)) + price)
            offered.candidates.append(tuple(range(start, start + length)))
            offered.scales.append(Fraction(scale) / Fraction(noise.step))
    return offered._replace(costs=np.array(costs, dtype=np.int64))


def _cost(partition: LeastCost, cells: list[int]) -> Fraction:
    if partition.cost == "deviation":
        mean = Fraction(sum(cells), len(cells))
        return sum((abs(one - mean) for one in cells), Fraction(0))
    quantile = Fraction(*QUANTILE)
    return min(
        sum(
            (
                quantile * max(one - centre, 0) + (1 - quantile) * max(centre - one, 0)
                for one in cells
            ),
            Fraction(0),
        )
        for centre in cells
    )


def groups_offered(case: Case, counts: IntArray) -> Offered:
    """Write out every group of the first round of a `MatchingPairs`."""
    partition, policy, cells = case.selector, case.policy, counts.size
    alone = np.ones(cells, dtype=np.int64)
    granted = case.epsilon / record_distance(policy) / partition.rounds
    noise = partition.noise(cells, granted, alone)
    first, second = np.triu_indices(cells, 1)
    parts = connected_parts(policy)
    near = second - first <= (partition.window or cells)
    # Cells of different connected parts are never paired.
    near &= parts[first] == parts[second]
    first, second = first[near], second[near]
    totals = np.minimum(counts, noise.cap)
    deviations = pair_deviations(totals, alone, first, second, noise.grid)
    groups: list[Cells] = [(cell,) for cell in range(cells)]
    groups += list(zip(first.tolist(), second.tolist(), strict=True))
    pairs = [int(one) + noise.pair_price for one in deviations]
    return Offered(
        groups,
        np.array([noise.price] * cells + pairs, dtype=np.int64),
        [noise.single] * cells + [noise.pair] * first.size,
    )


CANDIDATES: dict[type, Callable[[Case, IntArray], Offered]] = {
    LeastCost: intervals_offered,
    MatchingPairs: groups_offered,
}
"""Choices of the least noisy cost, and what they choose from."""


def cheapest_choices(
    case: Case, counts: IntArray, samples: int, rng: Randomness
) -> Counter[Hashable]:
    """Return how often each choice has the least noisy cost in so many runs.

    Geometric noise is subtracted from the cost of every candidate; a choice costs what
    its candidates cost together. Choices are numbered as in `Offered.member`.
    """
    _, costs, scales = offered = CANDIDATES[type(case.selector)](case, counts)
    if getattr(case.selector, "rounds", 1) != 1:
        raise SizeError(f"one round is written out; received {case.selector.rounds}")
    member = offered.member()
    chosen = np.zeros(len(member), dtype=np.int64)
    for begin in range(0, samples, CHUNK):
        size = min(CHUNK, samples - begin)
        noise = [
            rng.geometric(scale.numerator, scale.denominator, size=size)
            for scale in scales
        ]
        cheapest = (member @ (costs[:, None] - np.array(noise))).argmin(axis=0)
        chosen += np.bincount(cheapest, minlength=chosen.size)
    return Counter(dict(enumerate(chosen.tolist())))


def inexact_matchings(case: Case, counts: IntArray, runs: int, seed: int = 0) -> int:
    """Return in how many real runs a cheaper pairing than the one chosen existed.

    The proof covers the exact minimum of the noisy costs alone, so one such run is one
    too many. For matchings that draw their noise group by group (no window, or one too
    wide for a dynamic programme).
    """
    offered = groups_offered(case, counts)
    member = offered.member()
    wrong = 0
    for number in range(runs):
        diary: list[Note] = []
        chosen = case.select(counts, WatchedRandomness(seed + number, diary))
        drawn = np.concatenate([one.values for one in diary if isinstance(one, Draw)])
        costs = offered.costs - drawn
        groups = {
            tuple(np.flatnonzero(chosen.labels == label).tolist())
            for label in chosen.labels
        }
        mine = sum(costs[offered.candidates.index(one)] for one in groups)
        wrong += bool(mine > (member @ costs).min())
    return wrong

"""The matching choice on a tiny domain, from its definition.

A plain twin of ``partitions.matching_pairs``: every pairing of a handful of cells is
written out with its exact cost. With noise of the scales that the partition declares,
drawn in one batch, it is chosen a million times at once; with the noise that a real run
drew it says what that run had to choose.

    cells 0 1 2     pairings   {0}{1}{2}   {0 1}{2}   {0 2}{1}   {1 2}{0}
"""

from __future__ import annotations

from collections.abc import Iterator
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
from blowfish_fast.measure.selectors.partitions.matching_pairs import (
    MatchingPairs,
    pair_deviations,
)
from blowfish_fast.policies import Policy

from .cheapest import sample_cheapest

MOST_CELLS = 6

Pairing = tuple[tuple[int, ...], ...]


class MatchingGroups(NamedTuple):
    """Every group that a pairing may use, with cost and noise scale, in steps."""

    groups: list[tuple[int, ...]]
    costs: IntArray
    scales: list[Fraction]


class MatchingCandidates(NamedTuple):
    """Groups that a pairing may use, and the pairings made of them.

    `member` has a row per pairing: 1 for each of its groups.
    """

    costs: IntArray
    scales: list[Fraction]
    pairings: list[Pairing]
    member: IntArray


def all_pairings(cells: tuple[int, ...]) -> Iterator[Pairing]:
    """Yield every way to put cells into groups of one or two."""
    if not cells:
        yield ()
        return
    first, rest = cells[0], cells[1:]
    for others in all_pairings(rest):
        yield ((first,), *others)
    for place, mate in enumerate(rest):
        for others in all_pairings(rest[:place] + rest[place + 1 :]):
            yield ((first, mate), *others)


def all_groups(
    partition: MatchingPairs, counts: IntArray, policy: Policy, epsilon: Fraction
) -> MatchingGroups:
    """Write out every group of the first round."""
    cells = counts.size
    alone = np.ones(cells, dtype=np.int64)
    granted = epsilon / record_distance(policy) / partition.rounds
    noise = partition.noise(cells, granted, alone)
    first, second = np.triu_indices(cells, 1)
    parts = connected_parts(policy)
    near = second - first <= (partition.window or cells)
    # Cells of different connected parts are never paired.
    near &= parts[first] == parts[second]
    first, second = first[near], second[near]
    totals = np.minimum(counts, noise.cap)
    deviations = pair_deviations(totals, alone, first, second, noise.grid)
    groups: list[tuple[int, ...]] = [(cell,) for cell in range(cells)]
    groups += list(zip(first.tolist(), second.tolist(), strict=True))
    pairs = [int(one) + noise.pair_price for one in deviations]
    return MatchingGroups(
        groups,
        np.array([noise.price] * cells + pairs, dtype=np.int64),
        [noise.single] * cells + [noise.pair] * first.size,
    )


def candidates(
    partition: MatchingPairs, counts: IntArray, policy: Policy, epsilon: Fraction
) -> MatchingCandidates:
    """Write out every group and every pairing of one round."""
    cells = counts.size
    if cells > MOST_CELLS or partition.rounds != 1:
        raise SizeError(
            f"pairings are written out for at most {MOST_CELLS} cells and one round; "
            f"received {cells} cells and {partition.rounds} rounds"
        )
    groups, costs, scales = all_groups(partition, counts, policy, epsilon)
    place = {group: number for number, group in enumerate(groups)}
    offered = [
        one for one in all_pairings(tuple(range(cells))) if place.keys() >= set(one)
    ]
    member = np.zeros((len(offered), len(groups)), dtype=np.int64)
    for row, pairing in enumerate(offered):
        member[row, [place[group] for group in pairing]] = 1
    return MatchingCandidates(costs, scales, offered, member)


def sample_matchings(
    partition: MatchingPairs,
    counts: IntArray,
    *,
    policy: Policy,
    epsilon: Fraction,
    samples: int,
    rng: Randomness,
) -> IntArray:
    """Return the number of the pairing chosen in each of `samples` runs."""
    offered = candidates(partition, counts, policy, epsilon)
    return sample_cheapest(offered.costs, offered.scales, offered.member, samples, rng)


def inexact_matchings(
    partition: MatchingPairs,
    counts: IntArray,
    *,
    policy: Policy,
    epsilon: Fraction,
    runs: int,
    seed: int = 0,
) -> int:
    """Return in how many real runs a cheaper pairing than the one chosen existed.

    The proof covers the exact minimum of the noisy costs alone, so one such run is one
    too many. For matchings that draw their noise group by group (no window, or one too
    wide for a dynamic programme).
    """
    offered = candidates(partition, counts, policy, epsilon)
    wrong = 0
    for number in range(runs):
        diary: list[Note] = []
        rng = WatchedRandomness(seed + number, diary)
        chosen = partition.select(counts, policy=policy, epsilon=epsilon, rng=rng)
        drawn = np.concatenate([one.values for one in diary if isinstance(one, Draw)])
        totals = offered.member @ (offered.costs - drawn)
        labels = chosen.labels.tolist()
        groups = {
            tuple(cell for cell, label in enumerate(labels) if label == one)
            for one in labels
        }
        mine = [set(one) == groups for one in offered.pairings].index(True)
        wrong += bool(totals[mine] > totals.min())
    return wrong

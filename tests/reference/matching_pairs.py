"""Pairings of a tiny domain, all written out; the cheapest, and its law by sampling."""

from __future__ import annotations

import numpy as np


def pairings(cells, window=None):
    """Return every way to pair cells or leave them alone, as the mate of each.

    In the order by which ties are settled: cell 0 alone, with the next cell, with the
    one after it; then likewise the first cell that is left.
    """

    def of(left):
        if not left:
            yield {}
            return
        cell, *rest = left
        for mate in left:
            if window is None or mate - cell <= window:
                for others in of([one for one in rest if one != mate]):
                    yield {**others, cell: mate, mate: cell}

    return [tuple(found[i] for i in range(cells)) for found in of(list(range(cells)))]


def candidates(cells, window=None):
    """Return the pairs that may be chosen."""
    return [
        (i, j)
        for i in range(cells)
        for j in range(i + 1, cells)
        if window is None or j - i <= window
    ]


def total(mates, alone, paired):
    """Return the cost of a pairing; `paired` maps pairs to costs."""
    return sum(
        alone[i] if mate == i else paired[i, mate]
        for i, mate in enumerate(mates)
        if mate >= i
    )


def cheapest(alone, paired):
    """Return the first of the cheapest pairings in the order of `pairings`."""
    cells = len(alone)
    possible = [
        mates
        for mates in pairings(cells)
        if all((i, mate) in paired for i, mate in enumerate(mates) if mate > i)
    ]
    return min(possible, key=lambda mates: total(mates, alone, paired))


def noisy_costs(noise, counts, samples, rng, window=None):
    """Return `samples` rows of noisy costs: the cells alone, then the pairs."""
    counts = [min(int(one), noise.cap) for one in counts]
    exact = [noise.price] * len(counts)
    for i, j in candidates(len(counts), window):
        gap = abs(counts[i] - counts[j])
        exact.append((gap << -noise.grid) + noise.price)
    costs = np.empty((samples, len(exact)), dtype=np.int64)
    for column, cost in enumerate(exact):
        scale = noise.single if column < len(counts) else noise.pair
        drawn = rng.geometric(scale.numerator, scale.denominator, size=samples)
        costs[:, column] = cost - drawn
    return costs


def exact_choices(costs, cells, window=None):
    """Return the number of the cheapest pairing in each row of noisy costs."""
    column = {pair: cells + k for k, pair in enumerate(candidates(cells, window))}
    members = np.zeros((len(pairings(cells, window)), costs.shape[1]), dtype=np.int64)
    for row, mates in enumerate(pairings(cells, window)):
        for i, mate in enumerate(mates):
            if mate >= i:
                members[row, i if mate == i else column[i, mate]] = 1
    return (costs @ members.T).argmin(axis=1)


def greedy_choices(costs, cells):
    """Return what taking the pair that saves most, again and again, would choose.

    The number of each choice is that of `exact_choices`.
    """
    pairs = candidates(cells)
    savings = np.stack(
        [
            costs[:, i] + costs[:, j] - costs[:, cells + k]
            for k, (i, j) in enumerate(pairs)
        ],
        axis=1,
    )
    mates = np.tile(np.arange(cells), (len(costs), 1))
    ends = np.array(pairs)
    clash = (ends[:, None, :, None] == ends[None, :, None, :]).any(axis=(2, 3))
    rows = np.arange(len(costs))
    spent = np.iinfo(np.int64).min
    for _ in range(cells // 2):
        best = savings.argmax(axis=1)
        gains = savings[rows, best] > 0
        one, other = ends[best].T
        mates[rows[gains], one[gains]] = other[gains]
        mates[rows[gains], other[gains]] = one[gains]
        savings[clash[best]] = spent
    number = {mate: row for row, mate in enumerate(pairings(cells))}
    found, inverse = np.unique(mates, axis=0, return_inverse=True)
    numbers = np.array([number[tuple(one)] for one in found.tolist()])
    return numbers[inverse.reshape(-1)]

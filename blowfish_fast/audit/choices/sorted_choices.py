"""Choices that read noisy counts alone, many times at once.

Serves the partitions that add noise to the counts and then sort, cut or cluster: they
declare that noise (``noise(policy, epsilon)`` returns a `CellNoise`). The noise of all
runs is drawn in one batch; the partition itself then runs once per noisy count vector,
with the draws that made it handed out instead of fresh ones.

    noisy counts   runs       chosen
    3 0 9 8         412   ->  {0} {1} {2 3}

That equal noisy counts give equal choices, whatever the true counts, is part of the
promise; it is tried again on a few vectors for every data set.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Hashable

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions.noisy_sort import CellNoise, on_cells

from .case import Case

CHUNK = 2**18
TRIED_AGAIN = 20
"""Vectors whose choice is known already and found anew, per data set."""


class _Handed(Randomness):
    """Randomness whose next draws are known."""

    __slots__ = ("draws",)

    def __init__(self, draws: IntArray) -> None:
        super().__init__(0)
        self.draws = draws

    def laplace(
        self,
        numerators: int | IntArray,
        denominators: int | IntArray,
        size: int | None = None,
        threads: int | None = None,
    ) -> IntArray:
        """Hand out what was drawn before."""
        assert size == self.draws.size, "the partition draws what it declares"
        return self.draws


def noise_on_cells(case: Case) -> CellNoise | None:
    """Return the noise that a selector declares to add to the counts, if it does."""
    declared = getattr(case.selector, "noise", None)
    if not callable(declared):
        return None
    if next(iter(inspect.signature(declared).parameters)) != "policy":
        return None
    noise = declared(case.policy, case.epsilon)
    drawn = isinstance(noise, CellNoise) and bool(noise.scales.rates[0])
    return noise if drawn else None


def noisy_count_choices(
    case: Case, counts: IntArray, samples: int, rng: Randomness
) -> Counter[Hashable]:
    """Return how often each choice is made in `samples` runs.

    The case remembers the choices of noisy counts met before. A choice that depends on
    more than noisy counts is named after the true ones, which no other data set can
    share.
    """
    known, noise = case.memory, noise_on_cells(case)
    assert noise is not None, "the selector declares its noise"
    scales, edges = noise
    # One draw at a time moves cells by known amounts: noise is linear in draws.
    unit = np.eye(scales.rates.size, dtype=np.int64)
    spread = np.array([on_cells(one, edges, counts.size) for one in unit])
    rate = int(scales.rates[0])
    again = TRIED_AGAIN
    made: Counter[Hashable] = Counter()
    for begin in range(0, samples, CHUNK):
        size = min(CHUNK, samples - begin)
        drawn = rng.laplace(scales.unit, rate, size=size * scales.rates.size)
        rows = drawn.reshape(size, -1)
        for place, number in _distinct(rows):
            draws = rows[place]
            noisy = (counts + draws @ spread).tobytes()
            if noisy not in known or again > 0:
                chosen = case.choose(counts, _Handed(draws))
                again -= noisy in known
                if known.setdefault(noisy, chosen) != chosen:
                    made[("depends on", *counts.tolist())] += number
                    continue
            made[known[noisy]] += number
    return made


def _distinct(rows: IntArray) -> list[tuple[int, int]]:
    """Return where each distinct row is first met, and how often it occurs."""
    lowest = rows.min(axis=0)
    spans = [int(one) for one in rows.max(axis=0) - lowest + 1]
    if math.prod(spans) < 2**62:
        # Rows as single numbers are sorted several times faster.
        places = np.array([math.prod(spans[:i]) for i in range(len(spans))])
        key: IntArray = (rows - lowest) @ places
        _, first, numbers = np.unique(key, return_index=True, return_counts=True)
    else:
        _, first, numbers = np.unique(
            rows, axis=0, return_index=True, return_counts=True
        )
    return list(zip(first.tolist(), numbers.tolist(), strict=True))

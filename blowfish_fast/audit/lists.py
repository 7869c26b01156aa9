"""Audits of lists of cells: their noise, their price, and their whole law.

A list is a function of noisy counts of all cells, so its price is that of the noise:
the measurement of all cells that a list stands for is priced edge by edge. Whether what
was drawn is that function's law is seen by enumeration: on a few cells the probability
of every list is a product over cells (`list_law`), and drawn lists are held beside it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.sparse import FilledCells
from blowfish_fast.measure.handle import Measurement
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.strategies.cells import Cells
from blowfish_fast.measure.strategies.cells_above import CellsAbove, ListedCells

from .witness import Draw, Step

HEIGHTS = 3
"""Listed counts that are told apart: T, T + 1, and all above."""

LEAST_CHANCE = 1e-8
"""Lists that lie so far from their law do not follow it."""

List = tuple[int, ...]
"""For each cell 0 if it is not listed, else how far above T - 1, at most `HEIGHTS`."""


def noise_of_list(step: Step) -> Step:
    """Return the step that measures all cells with the noise of a list, for a price."""
    listed: ListedCells = step.result
    cells = listed.cells
    rates = np.append(np.full(cells, listed.scales.rates[0]), 0)
    exact = np.zeros(cells + 1, dtype=np.bool_)
    scales = Scales(rates, listed.scales.unit, exact, listed.scales.power)
    noisy = np.zeros(cells + 1, dtype=np.int64)
    every = Measurement(
        Cells(cells).with_noise(scales), noisy, Buckets.single_cells(cells)
    )
    return step._replace(result=every)


def undeclared_noise(step: Step) -> str:
    """Say what a list did otherwise than it declared; "" if nothing is wrong."""
    listed: ListedCells = step.result
    counts: FilledCells = step.counts
    scale = Fraction(listed.scales.unit, int(listed.scales.rates[0]))
    law = "laplace" if listed.scales.power == 1 else "gaussian"
    own = [note for note in step.diary if isinstance(note, Draw) and note.law == law]
    for note in own:
        drawn = Fraction(int(note.numerators), int(note.denominators))
        if drawn * listed.scales.power != scale:
            return "drew noise of another scale than it declared"
    noise = np.concatenate(
        [np.zeros(0, dtype=np.int64), *(note.values for note in own)]
    )
    if noise.size != counts.keys.size:
        return "did not draw noise for each of the filled cells"
    noisy = counts.counts + noise
    above = noisy >= listed.threshold
    filled = np.isin(listed.keys, counts.keys)
    wanted = counts.keys[above][counts.keys[above] < listed.told]
    if not np.array_equal(listed.keys[filled], wanted):
        return "listed other filled cells than those that reach the threshold"
    if not np.array_equal(listed.noisy[filled], noisy[above][: wanted.size]):
        return "listed other counts than the noisy ones"
    if listed.keys.size and (np.diff(listed.keys) <= 0).any():
        return "listed cells in another order than that of the domain"
    return "" if (listed.noisy >= listed.threshold).all() else "listed a lower count"


def list_law(counts: IntArray, scales: Scales, threshold: int) -> dict[List, float]:
    """Return the probability of every list of a few cells, from the definition.

    Parameters
    ----------
    counts : (cells,) int64
        True counts.
    scales : Scales
        The declared law of the noise; all cells have that of the first.
    threshold : int
        T: the least noisy count that is listed.

    Returns
    -------
    dict from `List` to float
        All ``4^cells`` lists; the probabilities add up to 1.
    """
    laws = [_cell_law(int(count), scales, threshold) for count in counts]
    return {
        heights: math.prod(law[at] for law, at in zip(laws, heights, strict=True))
        for heights in itertools.product(range(HEIGHTS + 1), repeat=len(laws))
    }


def _cell_law(count: int, scales: Scales, threshold: int) -> list[float]:
    """Return P(not listed), P(T), P(T + 1), P(more) for a cell of `count` records."""
    width = float(scales.widths[0])
    reach = math.ceil(60.0 * width) + threshold + 60
    place = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = (
        np.exp(-np.abs(place) / width)
        if scales.power == 1
        else np.exp(-0.5 * np.square(place / width))
    )
    weights /= weights.sum()
    noisy = np.arange(-reach, reach + 1) + count
    steps = np.clip(noisy - threshold + 1, 0, HEIGHTS)
    chances: list[float] = np.bincount(steps, weights, HEIGHTS + 1).tolist()
    return chances


class LawTest(NamedTuple):
    """Lists drawn, beside their law: how likely they lie so far from it, or farther.

    Parameters
    ----------
    lists : int
        The number of lists.
    chance : float
        The probability of lists as far from their law, or farther.
    """

    lists: int
    chance: float

    @property
    def passed(self) -> bool:
        """Whether the lists may follow their law."""
        return self.chance >= LEAST_CHANCE

    def __str__(self) -> str:
        return (
            f"{self.lists:,} lists lie as far from their law, or farther, with a "
            f"chance of {self.chance:.2g}"
        )


def compare_with_law(
    lister: CellsAbove, counts: IntArray, scales: Scales, lists: int, seed: Any
) -> LawTest:
    """Draw lists of a few cells and hold their frequencies against the law.

    Parameters
    ----------
    lister : CellsAbove
        What draws lists.
    counts : (cells,) int64
        True counts of a few cells.
    scales : Scales
        The law of the noise that the lister is given.
    lists : int
        How many lists are drawn.
    seed : int or None
        The seed of the noise, so that a test can be repeated.

    Returns
    -------
    LawTest
        The chance of lying so far from the law, by a chi-square test.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> from blowfish_fast.measure.strategies.cells_above import cell_scales
    >>> scales = cell_scales(bf.policies.AddRemove(bf.Domain(3)), Fraction(1))
    >>> lister, counts = CellsAbove(3, threshold=2, most=9), np.array([0, 2, 0])
    >>> compare_with_law(lister, counts, scales, lists=500, seed=1).passed
    True
    """
    law = list_law(counts, scales, lister.threshold)
    rng, filled = Randomness(seed), FilledCells.of(counts)
    seen: Counter[List] = Counter()
    for _ in range(lists):
        listed = lister.draw(filled, scales, rng)
        heights = np.zeros(counts.size, dtype=np.int64)
        heights[listed.keys] = listed.noisy - lister.threshold + 1
        seen[tuple(np.minimum(heights, HEIGHTS).tolist())] += 1
    # Rare lists are counted together, so that the statistic is nearly normal.
    often = [drawn for drawn, chance in law.items() if chance * lists >= 8.0]
    chances = np.array([law[drawn] for drawn in often])
    counted = np.array([seen[drawn] for drawn in often], dtype=np.float64)
    rest = 1.0 - chances.sum()
    if rest * lists >= 1.0:
        chances = np.append(chances, rest)
        counted = np.append(counted, lists - counted.sum())
    if chances.size < 2:
        return LawTest(lists, 1.0)
    square = float((np.square(counted - lists * chances) / (lists * chances)).sum())
    from scipy import special

    return LawTest(lists, float(special.chdtrc(chances.size - 1, square)))

"""Noise on every cell, and only those published whose noisy count reaches a threshold.

The list is drawn without visiting the empty cells (``docs/proofs/sparse_laplace.md``):

    filled cells    3   910   7        each has its own noise, and is listed from T on
    lifted places     ^     ^     ^    drawn as if all cells were empty; those that are
                                       filled cells are dropped
    list              .  910  .   .    both, in the order of the domain
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray
from blowfish_fast.data.sparse import FilledCells
from blowfish_fast.errors import PolicyError, PrivacyError
from blowfish_fast.kernels._arguments import RESOLVER_BASE, RESOLVER_BITS
from blowfish_fast.kernels.sampling.decimal_bounds import exponential_bounds
from blowfish_fast.kernels.sampling.gap_digits import GapDigits, lifted_places
from blowfish_fast.kernels.sampling.tail_bounds import (
    gaussian_tail,
    laplace_tail,
    least_gaussian_threshold,
    least_laplace_threshold,
)
from blowfish_fast.kernels.sampling.word_sources import WordStream
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.noise import WEIGHT_BITS, Scales, scales_within
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.policies import Policy

FILLED_AT_ONCE = 2**18
"""Filled cells whose noise is held at a time; their number is private."""

SHARE_BITS = 128
"""Of how likely a cell is lifted, for the number that is told."""

DOUBTFUL = 2.0**-36
"""How close a word may come to a probability in floats before fractions decide."""


class CellClass(NamedTuple):
    """Consecutive cells with one public threshold.

    Attributes
    ----------
    first : int
        The number of the first cell.
    cells : int
        How many there are.
    threshold : int
        The least noisy count that is listed.
    """

    first: int
    cells: int
    threshold: int


class ListedCells(NamedTuple):
    """Cells whose noisy counts reached a threshold, in the order of the domain; public.

    `told` is the first cell of which nothing is said: the number of cells, unless the
    list was cut after as many as were allowed. `classes` are consecutive cells with
    thresholds of their own; `threshold` is then the largest of these.

    Parameters
    ----------
    keys : ndarray of int64, shape (listed,)
        The numbers of the cells.
    noisy : ndarray of int64, shape (listed,)
        Their noisy counts.
    threshold : int
        The least noisy count that is listed; the largest one if there are classes.
    scales : Scales
        The noise of a count.
    cells : int
        The number of cells of the domain.
    told : int
        The first cell of which nothing is said.
    classes : tuple[CellClass, ...]
        Consecutive cells with thresholds of their own.
    """

    keys: IntArray
    noisy: IntArray
    threshold: int
    scales: Scales
    cells: int
    told: int
    classes: tuple[CellClass, ...] = ()

    @property
    def false_cells(self) -> Fraction:
        """How many cells noise alone lifts so far if all are empty, rounded up."""
        own = self.classes or (CellClass(0, self.cells, self.threshold),)
        return sum(
            (
                false_mean(self.scales, cell_class.cells, cell_class.threshold)
                for cell_class in own
            ),
            Fraction(0),
        )

    def thresholds_of(self, keys: IntArray) -> IntArray:
        """Return the threshold of each cell, by number."""
        if not self.classes:
            return np.full(len(keys), self.threshold, dtype=np.int64)
        firsts = [cell_class.first for cell_class in self.classes]
        places = [bisect_right(firsts, int(key)) - 1 for key in keys]
        thresholds = np.array(
            [cell_class.threshold for cell_class in self.classes], dtype=np.int64
        )
        return thresholds[np.array(places, dtype=np.int64)]


class CellsAbove:
    """The list of cells at or above a public threshold, all cells with the same noise.

    Parameters
    ----------
    cells : int
        Number of cells of the domain.
    threshold : int
        Whole, and at least 1. It is a public number, and never follows the data.
    most : int
        How many cells are listed at most; further ones are cut off, in their order.
    """

    kind = "cells above"

    def __init__(self, cells: int, threshold: int, most: int) -> None:
        if type(threshold) is not int or threshold < 1 or most < 1:
            raise PrivacyError(
                "a list begins at a whole count of at least 1, and holds at least one",
                received=f"{threshold!r}, {most!r}",
            )
        self.cells, self.threshold, self.most = cells, threshold, most

    def scales(self, policy: Policy, budget: Budget | Fraction) -> Scales:
        """Return the noise of one cell, which all cells share: Lemma SL5.

        It is that of `Cells` on a domain of any size, without a rate for each of its
        cells.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        budget : Budget or Fraction
            What the list may cost on any edge.

        Returns
        -------
        Scales
            The scales.
        """
        return cell_scales(policy, budget)

    def cost(self, policy: Policy, scales: Scales) -> Fraction:
        """Return what the worst edge costs in the currency of the noise: Lemma SL5.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        scales : Scales
            The noise of one cell.

        Returns
        -------
        Fraction
            The cost.
        """
        return Fraction(moved_cells(policy) * int(scales.rates[0]), scales.unit)

    def cost_in_rho(self, policy: Policy, scales: Scales) -> Fraction:
        """Return the rho of the list, or a bound above it: Lemma SL5.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        scales : Scales
            The noise of one cell.

        Returns
        -------
        Fraction
            The rho.
        """
        if scales.power == 2:
            return self.cost(policy, scales)
        rate = Fraction(int(scales.rates[0]), scales.unit)
        return moved_cells(policy) * rate**2 / 2

    def nothing(self, scales: Scales) -> ListedCells:
        """Return a list without cells, for a dry run."""
        none = np.zeros(0, dtype=np.int64)
        return ListedCells(none, none, self.threshold, scales, self.cells, self.cells)

    def draw(self, filled: FilledCells, scales: Scales, rng: Randomness) -> ListedCells:
        """Draw the list from true counts, exactly: Lemma SL4.

        Nothing here fails because of what was drawn: the list is cut, in the order of
        the domain, where it would grow beyond `most`.

        Parameters
        ----------
        filled : FilledCells
            The cells that hold records, and their true counts.
        scales : Scales
            The noise of one cell.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        ListedCells
            The list; public.
        """
        if scales.rates[0] <= 0:
            raise PrivacyError("a list needs noise on every cell; nothing was drawn")
        # Streams open in this order whatever the data are.
        places = lifted_places(
            rng.stream(), self.cells, _gap_law(scales, self.threshold, self.cells),
            self.most + 1,
        )  # fmt: skip
        places = places[~_among(places, filled.keys)]
        heights = self.threshold + _excess(scales, self.threshold, places.size, rng)
        reached = self._filled_above(filled, scales, rng)
        keys = np.concatenate([reached.keys, places])
        order = np.argsort(keys, kind="stable")
        noisy = np.concatenate([reached.counts, heights])[order]
        keys = keys[order]
        told = self.cells if keys.size <= self.most else int(keys[self.most])
        listed = slice(0, self.most)
        threshold = self.threshold
        return ListedCells(
            keys[listed], noisy[listed], threshold, scales, self.cells, told
        )

    def _filled_above(
        self, filled: FilledCells, scales: Scales, rng: Randomness
    ) -> FilledCells:
        """Return the first filled cells that reach the threshold, and their counts."""
        keys: list[IntArray] = [np.zeros(0, dtype=np.int64)]
        counts: list[IntArray] = [np.zeros(0, dtype=np.int64)]
        listed = 0
        for start in range(0, filled.keys.size, FILLED_AT_ONCE):
            part = slice(start, start + FILLED_AT_ONCE)
            noisy = filled.counts[part] + _noise(scales, filled.counts[part].size, rng)
            above = noisy >= self.threshold
            keys.append(filled.keys[part][above])
            counts.append(noisy[above])
            listed += keys[-1].size
            # What follows lies behind the cut, whatever it is.
            if listed > self.most:
                break
        return FilledCells(np.concatenate(keys), np.concatenate(counts))


class ClassesAbove(CellsAbove):
    """The list of cells at or above a threshold that differs from class to class.

    Classes are consecutive cells, public as their thresholds are: words by length,
    for instance. All cells have the same noise: Lemma SL10.

    Parameters
    ----------
    classes : sequence of CellClass
        In the order of the domain, which they make up.
    most : int
        How many cells are listed at most; further ones are cut off, in their order.
    """

    kind = "cells above, by class"

    def __init__(self, classes: Sequence[CellClass], most: int) -> None:
        self.classes = tuple(classes)
        last = self.classes[-1]
        highest = max(cell_class.threshold for cell_class in self.classes)
        super().__init__(last.first + last.cells, highest, most)
        for cell_class in self.classes:
            CellsAbove(cell_class.cells, cell_class.threshold, most)

    def nothing(self, scales: Scales) -> ListedCells:
        """Return a list without cells, for a dry run."""
        return super().nothing(scales)._replace(classes=self.classes)

    def draw(self, filled: FilledCells, scales: Scales, rng: Randomness) -> ListedCells:
        """Draw the lists of all classes, one after the other: Lemma SL10.

        Once the list is full nothing more is drawn: what follows lies behind the cut.

        Parameters
        ----------
        filled : FilledCells
            The cells that hold records, and their true counts.
        scales : Scales
            The noise of one cell.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        ListedCells
            The list; public.
        """
        keys: list[IntArray] = []
        noisy: list[IntArray] = []
        room, told = self.most, self.cells
        for cell_class in self.classes:
            if room == 0:
                told = cell_class.first
                break
            lister = CellsAbove(cell_class.cells, cell_class.threshold, room)
            listed = lister.draw(_within(filled, cell_class), scales, rng)
            own = listed.keys if self.cells <= 2**62 else listed.keys.astype(object)
            keys.append(own + cell_class.first)
            noisy.append(listed.noisy)
            room -= listed.keys.size
            if listed.told < cell_class.cells:
                told = cell_class.first + listed.told
                break
        return ListedCells(
            np.concatenate(keys),
            np.concatenate(noisy),
            self.threshold,
            scales,
            self.cells,
            told,
            self.classes,
        )


def _within(filled: FilledCells, part: CellClass) -> FilledCells:
    """Return the filled cells of a class, numbered from its first cell on."""
    start = bisect_left(filled.keys, part.first)
    stop = bisect_left(filled.keys, part.first + part.cells)
    keys = filled.keys[start:stop] - part.first
    if part.cells <= 2**62:
        keys = keys.astype(np.int64)
    return FilledCells(keys, filled.counts[start:stop])


def moved_cells(policy: Policy) -> int:
    """Return how many cells the worst edge changes by one record: Lemma SL5."""
    if policy.has_moves:
        return 2
    return 1 if policy.has_bottom else 0


def cell_scales(policy: Policy, budget: Budget | Fraction) -> Scales:
    """Return the scale that `Cells` gives to every cell, as one row: Lemma SL5.

    Parameters
    ----------
    policy : Policy
        The policy, without constraints.
    budget : Budget or Fraction
        What the list may cost on any edge.

    Returns
    -------
    Scales
        The scales.

    Raises
    ------
    PolicyError
        If the policy hides nothing.
    """
    moved = moved_cells(policy)
    if moved == 0:
        raise PolicyError(
            "a list of cells hides records that move, come or go, and under this "
            "policy none does",
            received=repr(policy),
            way_out="Publish the counts as they are: nothing about them is secret",
        )
    weight = np.array([2**WEIGHT_BITS], dtype=np.int64)
    none = np.zeros(1, dtype=np.bool_)
    return scales_within(weight, moved * 2**WEIGHT_BITS, budget, none)


def least_threshold(scales: Scales, cells: int, false_cells: Fraction) -> int:
    """Return the least threshold that noise alone lifts so few empty cells to.

    It is public: it follows from scale, number of cells and the mean number asked for.

    Parameters
    ----------
    scales : Scales
        The noise of one cell.
    cells : int
        Number of cells of the domain.
    false_cells : Fraction
        How many empty cells may be listed, on average.

    Returns
    -------
    int
        The threshold.
    """
    spread = _rate(scales) if scales.power == 1 else _variance(scales)
    return _least_threshold(scales.power, spread, cells, Fraction(false_cells))


@lru_cache(maxsize=256)
def _least_threshold(
    power: int, spread: Fraction, cells: int, false_cells: Fraction
) -> int:
    """Return `least_threshold`; public values alone decide what is remembered.

    Lists of words ask for it once per length, and again for every column of a table.
    """
    kind = least_laplace_threshold if power == 1 else least_gaussian_threshold
    return kind(spread, cells, false_cells)


@lru_cache(maxsize=256)
def _tail(power: int, spread: Fraction, threshold: int, bits: int) -> tuple[int, int]:
    kind = laplace_tail if power == 1 else gaussian_tail
    return kind(spread, threshold, bits)


def false_mean(scales: Scales, cells: int, threshold: int) -> Fraction:
    """Return how many of so many empty cells noise lifts so far, rounded up.

    Parameters
    ----------
    scales : Scales
        The noise of one cell.
    cells : int
        Number of empty cells.
    threshold : int
        The threshold.

    Returns
    -------
    Fraction
        The mean.
    """
    spread = _rate(scales) if scales.power == 1 else _variance(scales)
    # As many bits behind the point of the mean, however many cells there are.
    bits = SHARE_BITS * (1 + cells.bit_length() // SHARE_BITS)
    return Fraction(cells * _tail(scales.power, spread, threshold, bits)[1], 2**bits)


def _gap_law(scales: Scales, threshold: int, cells: int) -> GapDigits:
    spread = _rate(scales) if scales.power == 1 else _variance(scales)
    levels = max((cells - 1).bit_length(), 1)
    return _digits(scales.power, spread, threshold, levels)


@lru_cache(maxsize=64)
def _digits(power: int, spread: Fraction, threshold: int, levels: int) -> GapDigits:
    return GapDigits(partial(_tail, power, spread, threshold), levels)


def _rate(scales: Scales) -> Fraction:
    return Fraction(int(scales.rates[0]), scales.unit)


def _variance(scales: Scales) -> Fraction:
    return Fraction(scales.unit, 2 * int(scales.rates[0]))


def _noise(scales: Scales, size: int, rng: Randomness) -> IntArray:
    rate = int(scales.rates[0])
    if scales.power == 1:
        return rng.laplace(scales.unit, rate, size=size)
    return rng.gaussian(scales.unit, 2 * rate, size=size)


def _among(places: IntArray, keys: IntArray) -> BoolArray:
    """Mark the places that are keys; both ascend."""
    if keys.size == 0:
        return np.zeros(places.size, dtype=np.bool_)
    nearest = np.minimum(np.searchsorted(keys, places), keys.size - 1)
    among: BoolArray = keys[nearest] == places
    return among


def _excess(scales: Scales, threshold: int, size: int, rng: Randomness) -> IntArray:
    """Draw Z - T given Z >= T, T at least 1, so often: Lemma SL6."""
    rate = int(scales.rates[0])
    if scales.power == 1:
        return rng.geometric(scales.unit, rate, size=size)
    # A geometric proposal at the slope of the law in T, kept as often as it falls
    # faster: exp(-(T + g)^2 / 2v) = exp(-T^2 / 2v) exp(-g T / v) exp(-g^2 / 2v).
    words, position = rng.stream(), 0
    excesses = [np.zeros(0, dtype=np.int64)]
    missing = size
    while missing > 0:
        proposed = rng.geometric(
            scales.unit, 2 * rate * threshold, size=missing + missing // 2 + 8
        )
        accepted = _with_chances(words, position, proposed, _variance(scales))
        position += proposed.size
        excesses.append(proposed[accepted][:missing])
        missing -= excesses[-1].size
    return np.concatenate(excesses)


def _with_chances(
    words: WordStream, position: int, gaps: IntArray, variance: Fraction
) -> BoolArray:
    """Mark each gap g with probability exp(-g^2 / 2v), exactly: Lemma SL6."""
    drawn = words(position, gaps.size).astype(np.float64) * 2.0**-64
    wide: FloatArray = gaps.astype(np.float64)
    chance = np.exp(-wide * wide / (2.0 * float(variance)))
    marked: BoolArray = drawn < chance
    for at in np.flatnonzero(np.abs(drawn - chance) <= DOUBTFUL).tolist():
        exponent = Fraction(int(gaps[at]) ** 2) / (2 * variance)
        marked[at] = _keeps(words, position + at, exponent)
    return marked


def _keeps(words: WordStream, position: int, exponent: Fraction) -> bool:
    """Return whether the number that begins at `position` lies below exp(-exponent)."""
    word, bits = int(words(position, 1)[0]), 64
    further = RESOLVER_BASE + (position << RESOLVER_BITS)
    while True:
        low, high = exponential_bounds(exponent, bits // 3 + 8)
        if word + 1 <= math.floor(low * (1 << bits)):
            return True
        if word >= math.ceil(high * (1 << bits)):
            return False
        word, bits = word << 64 | int(words(further, 1)[0]), bits + 64
        further += 1

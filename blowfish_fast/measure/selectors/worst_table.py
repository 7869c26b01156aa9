"""Choose a table, and how finely to measure it, by what an estimate of it misses.

The score of a candidate is its surplus: how many records lie in cells above what a
public estimate expects there, in whole numbers of 1/64 record, less a public penalty
for the noise that its measurement would carry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.data.tables.merged_tables import CountedTables, Grouping, MergedTable
from blowfish_fast.errors import InputError
from blowfish_fast.policies import Policy

from .selections import ByCost

UNIT = 64
"""Estimates, scores and weights are whole numbers of 1/64."""

MOST_RECORDS = 2**50
"""Records that a table may show; cells are cut so that no sum exceeds 64 bits."""

LARGEST_ESTIMATE = 2**56
"""In 1/64 record; an estimate, or a penalty, above it is cut."""


class TableChoices(NamedTuple):
    """One table as a candidate at several resolutions; everything in it is public.

    Attributes
    ----------
    table : MergedTable
        The attributes, and the finest merged cells that may be measured.
    levels : tuple of tuples of Grouping
        For each attribute, groupings of its merged cells into fewer.
    estimate : int64 of ``table.shape``
        What is expected in each merged cell, in 1/64 record, not negative.
    penalties : list of int
        For each combination of levels, the last attribute's changing fastest: what is
        taken off its score, in 1/64 record.
    weight : int
        How much the table counts, from 1 to 64 for 1/64 to 1.
    """

    table: MergedTable
    levels: tuple[tuple[Grouping, ...], ...]
    estimate: IntArray
    penalties: list[int]
    weight: int = UNIT

    def resolutions(self) -> list[MergedTable]:
        """Return the candidates in their order, as tables of single cells merged."""
        merged = [
            [grouping.then(level) for level in levels]
            for grouping, levels in zip(self.table.groupings, self.levels, strict=True)
        ]
        return [
            MergedTable(self.table.axes, groupings) for groupings in product(*merged)
        ]

    def resolution(self, number: int) -> MergedTable:
        """Return one of the candidates, by its place among `resolutions`."""
        shape = [len(levels) for levels in self.levels]
        places = np.unravel_index(number, shape)
        groupings = tuple(
            grouping.then(levels[int(place)])
            for grouping, levels, place in zip(
                self.table.groupings, self.levels, places, strict=True
            )
        )
        return MergedTable(self.table.axes, groupings)


class WorstTable(ByCost):
    """Choose a table, at one of its resolutions, that an estimate misses by much.

    Parameters
    ----------
    counted : CountedTables
        Where the tables stand in the counts.
    choices : sequence of TableChoices
        At least one; candidates are numbered choice by choice, level by level.

    Raises
    ------
    InputError
        If there is nothing to choose from, or an estimate is negative.

    Notes
    -----
    Guarantee: epsilon-private choice of a candidate under the policy it is given.
    Neighbours: one record moves along one edge of the policy.
    Sensitivity: a record that appears raises every score by 0 to 1 record; one that
        moves changes it by -1 to 1. The rate is epsilon over the length of that
        interval: 1 or 2 records, Lemma DC2. Proof: ``docs/proofs/chosen_tables.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> counted = CountedTables((2, 2), [(0, 1)])
    >>> pair = MergedTable((0, 1), (Grouping([0, 1]), Grouping([0, 1])))
    >>> levels = ((Grouping([0, 1]),), (Grouping([0, 1]), Grouping([0, 0])))
    >>> even = np.full((2, 2), 64 * 5)
    >>> choice = WorstTable(counted, [TableChoices(pair, levels, even, [0, 0])])
    >>> (-choice.costs(np.array([9, 1, 1, 9])) / 64).tolist()
    [8.0, 0.0]
    >>> choice.rate(bf.policies.AddRemove(bf.Domain((2, 2))), Fraction(1))
    Fraction(1, 64)
    >>> choice.rate(bf.policies.Full(bf.Domain((2, 2))), Fraction(1))
    Fraction(1, 128)
    """

    name = "worst_table"

    def __init__(self, counted: CountedTables, choices: Sequence[TableChoices]) -> None:
        if not choices:
            raise InputError("there is no table to choose from; offer at least one")
        if any((choice.estimate < 0).any() for choice in choices):
            raise InputError("an estimate of a table must not be negative")
        if any(not 1 <= choice.weight <= UNIT for choice in choices):
            raise InputError(f"weights of tables are whole numbers from 1 to {UNIT}")
        self.counted = counted
        self.choices = tuple(choices)

    def candidates(self) -> list[MergedTable]:
        """Return every candidate by its number."""
        return [
            resolution for choice in self.choices for resolution in choice.resolutions()
        ]

    def candidate(self, number: int) -> MergedTable:
        """Return one candidate, without making all others.

        Parameters
        ----------
        number : int
            Its number, as `select` returns it.

        Returns
        -------
        MergedTable
            What ``candidates()[number]`` is.
        """
        for choice in self.choices:
            if number < len(choice.penalties):
                return choice.resolution(number)
            number -= len(choice.penalties)
        raise InputError("there is no candidate of this number")

    def sensitivity(self, policy: Policy) -> int:
        """Return how far one edge moves a score, in 1/64 record; 0 without edges."""
        return UNIT if policy.has_moves or policy.has_bottom else 0

    def interval(self, policy: Policy) -> Fraction:
        """Return the length of the interval that holds all changes: Lemma DC2.

        In 1/64 record and per edge: an "absent" l edges away may cost l times as much.
        """
        moved = Fraction(2 * UNIT if policy.has_moves else 0)
        if not policy.has_bottom:
            return moved
        length = getattr(policy, "absent_length", None) or Fraction(1)
        return max(moved, UNIT / Fraction(length))

    def rate(self, policy: Policy, epsilon: Fraction) -> Fraction:
        """Return how fast weights fall with costs: Lemmas EC2 and DC2.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What the choice may use.

        Returns
        -------
        Fraction
            The rate.
        """
        return epsilon / self.interval(policy)

    def costs(self, counts: IntArray) -> IntArray:
        """Return the score of each candidate with a minus sign, in 1/64 record."""
        return np.array(
            [
                cost
                for choice in self.choices
                for cost in self._costs_of(choice, counts)
            ],
            dtype=np.int64,
        )

    def _costs_of(self, choice: TableChoices, counts: IntArray) -> Iterator[int]:
        table = choice.table
        true = table.sum(self.counted.table(counts, table.axes))
        # One record more in a cell is at most one more below the cut: Lemma DC2.
        true = np.minimum(true, MOST_RECORDS // max(table.cells, 1))
        guess = np.minimum(choice.estimate, LARGEST_ESTIMATE)
        surpluses = _surpluses(true, guess, choice.levels, 0)
        for surplus, penalty in zip(surpluses, choice.penalties, strict=True):
            # Rounded down after the weight, which is at most 1: Lemma DC3.
            yield min(penalty, LARGEST_ESTIMATE) - choice.weight * surplus // UNIT


def _surpluses(
    true: IntArray,
    guess: IntArray,
    levels: Sequence[Sequence[Grouping]],
    axis: int,
) -> Iterator[int]:
    """Yield the surplus at every combination of levels from `axis` on."""
    if axis == len(levels):
        yield int(np.maximum(UNIT * true - guess, 0).sum())
        return
    for level in levels[axis]:
        merged = level.sum(true, axis), level.sum(guess, axis)
        yield from _surpluses(*merged, levels, axis + 1)


def in_units(records: float) -> int:
    """Return a public number of records in 1/64, rounded, cut at `LARGEST_ESTIMATE`."""
    if not abs(records) < LARGEST_ESTIMATE / UNIT:
        return LARGEST_ESTIMATE if records > 0 else -LARGEST_ESTIMATE
    return round(records * UNIT)

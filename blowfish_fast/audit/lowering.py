"""Noise that was lowered later, drawn again row by row from what a watched run noted.

Written from the definition, one row at a time, and without the arrays of
`blowfish_fast.measure.refinement`: four geometric numbers of the rates that the two
measurements declare, and nothing else, must give the rows that were published.
"""

from __future__ import annotations

import numpy as np

from blowfish_fast._support.typing import BoolArray, IntArray
from blowfish_fast.measure.handle import Measurement

from .witness import Draw, Step

ROLES = ("near", "across", "stay", "beyond")
"""The geometric numbers in the order in which they are drawn."""


def undeclared_lowering(step: Step) -> str:
    """Say how a step that lowered noise departs from its declared rates.

    Parameters
    ----------
    step : Step
        A noted step of kind "refine".

    Returns
    -------
    str
        What is wrong; empty if nothing is.
    """
    before: Measurement = step.asked
    after: Measurement = step.result
    unit = after.scales.unit
    times = unit // before.scales.unit
    slow = [int(rate) * times for rate in before.scales.rates]
    fast = [int(rate) for rate in after.scales.rates]
    if unit != times * before.scales.unit or any(
        new < old for old, new in zip(slow, fast, strict=True)
    ):
        return "made rows noisier than they were"
    grown = np.array([old < new for old, new in zip(slow, fast, strict=True)])
    is_measured = np.array([old > 0 for old in slow])
    draws = [note for note in step.diary if isinstance(note, Draw)]
    wanted = _wanted(slow, fast, grown, is_measured)
    if [note.law for note in draws] != [law for law, _ in wanted]:
        return f"drew {[note.law for note in draws]} to lower the noise of rows"
    for note, (_, rates) in zip(draws, wanted, strict=True):
        if note.values.size != len(rates):
            return f"lowered {note.values.size} rows where {len(rates)} were declared"
        units = np.broadcast_to(np.asarray(note.numerators), len(rates))
        drawn = np.broadcast_to(np.asarray(note.denominators), len(rates))
        if any(
            int(top) * rate != int(below) * unit
            for top, below, rate in zip(units, drawn, rates, strict=True)
        ):
            return "drew noise of other scales than it declared"
    rows = before.strategy.rows(step.counts)
    expected = _lowered_rows(before.noisy, rows, grown, is_measured, draws)
    if not np.array_equal(expected, after.noisy):
        return "published something else than its rows with the noise drawn"
    return ""


def _wanted(
    slow: list[int], fast: list[int], grown: BoolArray, is_measured: BoolArray
) -> list[tuple[str, list[int]]]:
    """Return law and rates of every draw that the two measurements declare."""
    fresh = [fast[row] for row in np.flatnonzero(grown & ~is_measured)]
    pairs = [(slow[row], fast[row]) for row in np.flatnonzero(grown & is_measured)]
    wanted = [("laplace", fresh)] if fresh else []
    if pairs:
        both = [old + new for old, new in pairs]
        gaps = [new - old for old, new in pairs]
        twice = [2 * old for old, _ in pairs]
        wanted += [("geometric", rates) for rates in (gaps, both, twice, both)]
    return wanted


def _lowered_rows(
    noisy: IntArray,
    rows: IntArray,
    grown: BoolArray,
    is_measured: BoolArray,
    draws: list[Draw],
) -> IntArray:
    """Return what the draws make of rows measured before, row by row."""
    published = noisy.copy()
    fresh, again = (
        np.flatnonzero(grown & ~is_measured),
        np.flatnonzero(grown & is_measured),
    )
    if fresh.size:
        published[fresh] = rows[fresh] + draws[0].values
    for place, row in enumerate(again.tolist()):
        near, across, stay, beyond = (
            int(note.values[place]) for note in draws[-len(ROLES) :]
        )
        first = int(noisy[row] - rows[row])
        size, side = abs(first), -1 if first < 0 else 1
        if near - across <= size:
            new = near - across
        elif near - across - size - 1 >= stay:
            new = size
        else:
            new = size + 1 + beyond
        published[row] = rows[row] + side * new
    return published

"""Runs of nearly empty cells, and the few cells among them that stand alone.

A spike between zeros takes a split at every height to isolate, and each costs a little
of the prior and a bucket. In a run each cell is one of the rest, at the price of its
records, or an outlier with a bucket of its own, whatever its neighbours are:

    . . . . 9 . . . . . . 7 . .      one run, two outliers
    [     ][ ][         ][ ][  ]     five buckets
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.kernels._arguments import Words
from blowfish_fast.kernels.sampling.exponential_choice import choose, weigh_rows

from .rectangle_prior import FixedPoint, logarithm

_KEPT, _ALONE = 0, 1
_HOPELESS = 64  # nats; a cell that far below standing alone is never kept


class Outliers(NamedTuple):
    """Which part of a run's cells may stand alone; public.

    A run of each share has the prior `weight`, in addition to those of other choices,
    from nodes of 2**height cells on; `height` is at least 2.
    """

    shares: tuple[Fraction, ...] = (
        Fraction(1, 16),
        Fraction(1, 128),
        Fraction(1, 1024),
    )
    weight: float = 0.02
    height: int = 4


OUTLIERS = Outliers()
"""Weighed as all equal cuts together; shares chosen on generated histograms."""


class OutlierWeights(NamedTuple):
    """What a cell weighs in runs, in the units of `TreeWeights`, by share."""

    height: int
    prior: int
    kept: tuple[int, ...]
    alone: tuple[int, ...]
    record: int
    """Taken from the log-weight of a cell that is kept, for each of its records."""
    most: int
    """More records of a cell change nothing."""


def deepest_sum(levels: int, outliers: Outliers) -> int:
    """Return how many nats the cells of a run add up to at most, prices apart."""
    return (1 << levels) * (ceil(-logarithm(min(outliers.shares))) + 1)


def outlier_weights(
    outliers: Outliers, fixed: FixedPoint, quantile: tuple[int, int]
) -> OutlierWeights:
    """Return the fixed-point constants of runs; a record's part is rounded down."""
    bits, unit, penalty = fixed
    scale = 1 << bits
    record = int(unit / quantile[1]) * quantile[0]
    # Relative to single cells: a kept cell saves a bucket, and one alone cuts its run.
    kept = [penalty + round(logarithm(1 - one) * scale) for one in outliers.shares]
    alone = [round(logarithm(one) * scale) - penalty for one in outliers.shares]
    farthest = kept[-1] - min(alone) + _HOPELESS * scale
    return OutlierWeights(
        outliers.height,
        round(logarithm(Fraction(outliers.weight)) * scale) - penalty,
        tuple(kept),
        tuple(alone),
        record,
        farthest // record + 1 if record else 0,
    )


def _cell_rows(x: IntArray, weights: OutlierWeights, share: int) -> IntArray:
    """Return the log-weights of each cell, kept and alone."""
    rows = np.empty((x.size, 2), dtype=np.int64)
    records = np.clip(x, 0, weights.most)
    np.subtract(weights.kept[share], weights.record * records, out=rows[:, _KEPT])
    rows[:, _ALONE] = weights.alone[share]
    return rows


def run_totals(x: IntArray, weights: OutlierWeights, fraction_bits: int) -> IntArray:
    """Return logarithms of what cells weigh in runs, either way, added up by node.

    (nodes, shares), for the nodes that are halves of the smallest runs.
    """
    # Equal counts weigh the same: most histograms have few different ones.
    most = min(weights.most, int(x.max()))
    listed = most < x.size
    counts = np.arange(most + 1) if listed else x
    places = np.clip(x, 0, most) if listed else None
    silent = np.zeros(counts.size, dtype=np.uint64)
    scratch = np.empty((3, counts.size), dtype=np.int64)
    nodes = np.arange(0, x.size, 1 << (weights.height - 1))
    totals = np.empty((nodes.size, len(weights.kept)), dtype=np.int64)
    for share in range(totals.shape[1]):
        rows = _cell_rows(counts, weights, share)
        weigh_rows(rows, silent, fraction_bits, *scratch)
        each = scratch[1] if places is None else scratch[1][places]
        totals[:, share] = np.add.reduceat(each, nodes)
    return totals


def cut_out(
    boundaries: IntArray,
    runs: IntArray,
    x: IntArray,
    weights: OutlierWeights,
    words: Words,
    fraction_bits: int,
) -> IntArray:
    """Draw the outliers of every run (start, end, share), and cut around them.

    Cell i reads the word at its number in the heap, 2**levels + i.
    """
    leaves = 1 << (x.size - 1).bit_length()
    places = [boundaries]
    for start, end, share in runs.tolist():
        rows = _cell_rows(x[start:end], weights, share)
        drawn = choose(words, leaves + start, rows, fraction_bits)
        found = start + np.flatnonzero(drawn == _ALONE)
        places += [found, found + 1]
    return np.unique(np.concatenate(places)) if runs.size else boundaries

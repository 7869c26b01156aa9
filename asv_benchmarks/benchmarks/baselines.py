"""The competing methods of the papers: their kernels, and whole releases.

Classes stand method by method: Privelet, MWEM, P-HP, StructureFirst, EFPA, NoiseFirst,
AHP, then releases of all of them with secure noise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from blowfish_fast import kernels, policies
from blowfish_fast.kernels.window_costs.baseline_costs import (
    AFTER,
    BEFORE,
    part_clusters,
    sweep_clusters,
)
from blowfish_fast.mechanisms.registry import MECHANISMS

from .common import (
    EPSILON,
    QUERIES,
    SMALL,
    Call,
    Timed,
    counts,
    line,
    ranges,
    sizes,
    words,
)

METHODS = [
    *("ahp", "efpa", "hierarchy", "mwem", "noise_first"),
    *("php", "privelet", "structure_first"),
]
LARGE = sizes(20, smallest=12) if SMALL else [2**12, 2**16, 2**20]
# Each combination costs a process; the small form shows only that all of it runs.
CLUSTERS = [64] if SMALL else [1, 64]
STATED = ["add_remove"] if SMALL else ["add_remove", "full"]
FREQUENCIES = 64
NOISE = 14.0  # what epsilon 0.1 makes of a cell


def random_boxes(side: int) -> tuple[np.ndarray, ...]:
    """Return one box per query over a square, in the layout of sums of boxes."""
    corners = np.sort(
        np.random.default_rng(2).integers(0, side, size=(2, QUERIES, 2)), axis=0
    )
    return np.arange(QUERIES + 1), corners[0], corners[1] + 1, np.ones(QUERIES)


def noisy_counts(kind: str, cells: int) -> np.ndarray:
    """Return counts with the noise that a first step leaves on them."""
    return counts(kind, cells) + np.random.default_rng(3).laplace(0, 10, size=cells)


class HaarTransform(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["rows", "cells", "paths", "move"]]

    def prepare(self, cells: int, kernel: str) -> Call:
        x = counts("dense", cells)
        found: dict[str, Call] = {
            "rows": lambda: kernels.haar_rows(x),
            "cells": lambda: kernels.haar_cells(x.astype(np.float64)),
            "paths": lambda: kernels.haar_path_sums(x),
            "move": lambda: kernels.haar_worst_move(x),
        }
        return found[kernel]


class HaarSpread(Timed):
    params: ClassVar[list[Any]] = [sizes(10, smallest=6)]

    def prepare(self, side: int) -> Call:
        shape = (side, side)
        one = np.ones(side * side)
        boxes = random_boxes(side)
        return lambda: kernels.haar_spread_boxes(one, one, shape, *boxes)


class HaarTotalVariance(Timed):
    def prepare(self, cells: int) -> Call:
        variances, edges = np.ones(cells), np.arange(cells + 1)
        return lambda: kernels.haar_total_variance(variances, "all_ranges", edges)


class PulledMasses(Timed):
    """MWEM's updates: a hundred passes over the answers known so far."""

    params: ClassVar[list[Any]] = [[16] if SMALL else [4, 16, 64, 150]]

    def prepare(self, answers: int) -> Call:
        generator = np.random.default_rng(4)
        pieces = 2 * answers + 1
        ends = np.sort(generator.integers(0, pieces, size=(2, answers)), axis=0)
        masses = generator.exponential(size=pieces)
        targets = generator.random(answers) * masses.sum()
        known = (np.arange(answers + 1), ends[0], ends[1] + 1, np.ones(answers))
        total = float(masses.sum())
        return lambda: kernels.multiplicative_update(
            masses, *known, targets, total=total, step=2.0, passes=100
        )


class BisectionSweep(Timed):
    """P-HP: the costs of all cuts of one level."""

    params: ClassVar[list[Any]] = [sizes(), CLUSTERS, ["dense", "distinct"]]

    def prepare(self, cells: int, clusters: int, data: str) -> Call:
        bits, cap = kernels.bisection_grid(cells)
        values = np.minimum(counts(data, cells), cap)
        ranked = np.argsort(values, kind="stable")
        edges = np.arange(clusters + 1) * cells // clusters
        starts, ends = edges[:-1].copy(), edges[1:].copy()
        for middle in range(1, clusters):
            # Ranks of a cluster stand together, as after the cuts above it.
            begin, stop = np.array([edges[middle - 1]]), np.array([cells])
            part_clusters(ranked, begin, np.array([edges[middle]]), stop)
        sides = np.full(clusters, BEFORE | AFTER)
        before, after = np.empty((2, cells), dtype=np.int64)
        return lambda: sweep_clusters(
            values, ranked, starts, ends, sides, bits, before, after
        )


class SplitTable(Timed):
    params: ClassVar[list[Any]] = [sizes(), CLUSTERS]

    def prepare(self, cells: int, clusters: int) -> Call:
        before, after = np.random.default_rng(5).integers(0, 2**40, size=(2, cells))
        edges = np.arange(clusters + 1) * cells // clusters
        return lambda: kernels.split_table(before, after, edges[:-1], edges[1:], 1000)


class ChooseByCost(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["one row", "rows of 16"]]

    def prepare(self, candidates: int, table: str) -> Call:
        shape = (1, candidates) if table == "one row" else (candidates // 16, 16)
        costs = np.random.default_rng(6).integers(0, 2**20, size=shape)
        source, rate = words(), Fraction(1, 2**16)
        return lambda: kernels.choose_by_cost(source, 0, costs, rate)


class KBucketCosts(Timed):
    """StructureFirst: errors of all buckets, then of the best k of them."""

    params: ClassVar[list[Any]] = [sizes(10, smallest=6), ["errors", "heads"]]

    def prepare(self, borders: int, kernel: str) -> Call:
        values = np.minimum(counts("dense", 4 * borders), 1000)
        bits = kernels.squares_grid(values.size, 1000)
        places = 4 * np.arange(borders + 1)
        if kernel == "errors":
            return lambda: kernels.bucket_errors(values, places, bits)
        errors = kernels.bucket_errors(values, places, bits)
        return lambda: kernels.best_heads(errors, borders // 4)


class FourierRows(Timed):
    """EFPA: sums of the lowest frequencies, and what one record moves in them."""

    params: ClassVar[list[Any]] = [sizes(), ["sums", "column", "turn"]]

    def prepare(self, cells: int, kernel: str) -> Call:
        x = counts("dense", cells)
        found: dict[str, Call] = {
            "sums": lambda: kernels.circle_sums(x, FREQUENCIES),
            "column": lambda: kernels.heaviest_column(cells, FREQUENCIES),
            "turn": lambda: kernels.largest_turn(cells, FREQUENCIES, 64),
        }
        return found[kernel]


class MergeBuckets(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["dense", "sparse"]]

    def prepare(self, cells: int, data: str) -> Call:
        noisy = noisy_counts(data, cells)
        return lambda: kernels.merge_buckets(noisy, 2 * NOISE**2)


class GroupSorted(Timed):
    """AHP by squares, noisy sort by distances."""

    params: ClassVar[list[Any]] = [sizes(), ["squares", "distances"]]

    def prepare(self, cells: int, cost: str) -> Call:
        noisy = np.maximum(np.rint(noisy_counts("sparse", cells)), 0)
        ascending = np.sort(noisy).astype(np.int64)
        if cost == "squares":
            return lambda: kernels.group_squares(ascending, NOISE**2, 30 * NOISE**2)
        return lambda: kernels.group_sorted(ascending, NOISE)


class Release(Timed):
    """2000 ranges of a line, secure noise, defaults."""

    params: ClassVar[list[Any]] = [METHODS, LARGE, STATED]

    def prepare(self, mechanism: str, cells: int, policy: str) -> Call:
        domain, data = line(cells, "sparse")
        stated = policies.POLICIES[policy](domain)
        asked = ranges(domain)
        recipe = MECHANISMS[mechanism](stated, asked, epsilon=EPSILON)
        return lambda: recipe.release(data)

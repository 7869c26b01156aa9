"""A plain twin of ``partitions.descent``: every node of a small tree, and its odds.

    nodes of 8 cells at fan-out 2, level by level

    level 0   [ 0                 8 )
    level 1   [ 0     4 )[ 4      8 )
    level 2   [0 2)[2 4)[4 6)[6 8)           single cells are never divided

A node is divided if its weight and fresh noise reach 0, so that a tree of buckets has
the product of such chances as its probability; scale and bias are those that the
descent declares. Runs of the descent itself are repeated with the noise they drew.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, IntArray
from blowfish_fast.audit.witness import Draw, Note, WatchedRandomness
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import SizeError
from blowfish_fast.kernels.window_costs.node_unevenness import RESOLUTION
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import descent
from blowfish_fast.measure.selectors.partitions.base import record_distance
from blowfish_fast.policies import Policy

from .many_draws import Law, public_key

MOST_CELLS = 16
"""Cells whose trees are written out: at fan-out 2 there are 677 of 16."""

CHUNK = 2**16


class Node(NamedTuple):
    """A node that can be divided.

    Attributes
    ----------
    begin : int
        Its first cell.
    weight : int
        Its score less the bias of its depth, and at least minus the bias.
    parts : list of Node or int
        What it is divided into; a number is a single cell.
    """

    begin: int
    weight: int
    parts: list[Node | int]


class DescentTwin:
    """The choices of a `Descent` on a few cells, written out from the definition.

    Parameters
    ----------
    selector : Descent
        What chooses.
    counts : ndarray of int64, shape (cells,)
        True counts.
    policy : Policy
        What is secret.
    epsilon : Fraction
        What the choice may use.

    Raises
    ------
    SizeError
        If there are too many trees, or buckets could reach their limit.
    """

    def __init__(
        self,
        selector: descent.Descent,
        counts: IntArray,
        *,
        policy: Policy,
        epsilon: Fraction,
    ) -> None:
        self.selector, self.counts = selector, counts
        self.policy, self.epsilon = policy, epsilon
        self.cells = counts.size
        if self.cells > MOST_CELLS or (
            selector.most_buckets < self.cells * selector.fan_out
        ):
            raise SizeError(
                f"trees are written out for at most {MOST_CELLS} cells, where no limit "
                f"on buckets is reached; received {self.cells} cells and "
                f"{selector.most_buckets} buckets"
            )
        distance = record_distance(policy)
        self.root: Node | int = 0
        self.scale, self.bias = Fraction(1), 1
        if self.cells > 1 and distance > 0:
            self.scale, self.bias = descent.calibrated(
                epsilon,
                selector.fan_out,
                moves=distance == 2,
                score=selector.score,
            )
            self.root = self._node(0, (self.cells - 1).bit_length(), 0)

    def _node(self, begin: int, height: int, depth: int) -> Node | int:
        if height == 0:
            return begin
        score = self._score(begin, height)
        below = max(height - self.selector.fan_out.bit_length() + 1, 0)
        starts = range(begin, min(begin + 2**height, self.cells), 2**below)
        return Node(
            begin,
            max(score - depth * self.bias, -self.bias),
            [self._node(start, below, depth + 1) for start in starts],
        )

    def _score(self, begin: int, height: int) -> int:
        """Return what decides whether a node is divided, from the definition."""
        inside = self.counts[begin : begin + 2**height]
        if self.selector.score == "records":
            return int(inside.sum())
        if height == 0:
            return 0
        windows = 2 ** min(height, RESOLUTION)
        # Behind the last cell there is nobody.
        cells = np.append(inside, np.zeros(2**height - inside.size, dtype=np.int64))
        totals = cells.reshape(windows, -1).sum(axis=1)
        own = min(
            int(np.where(totals > total, 3 * (totals - total), total - totals).sum())
            for total in totals
        )
        below = max(height - self.selector.fan_out.bit_length() + 1, 0)
        parts = range(begin, begin + 2**height, 2**below)
        return max(own, *(self._score(part, below) for part in parts))

    def law(self) -> Law:
        """Return the probability of every choice of buckets."""
        law: Law = {}
        # A last node of one cell may be divided or not: the buckets are the same.
        for starts, chance in self._trees(self.root).items():
            key = self._key(starts)
            law[key] = law.get(key, 0.0) + chance
        return law

    def _trees(self, node: Node | int) -> dict[tuple[int, ...], float]:
        if isinstance(node, int):
            return {(node,): 1.0}
        divided = self._chance_to_divide(node.weight)
        trees: dict[tuple[int, ...], float] = {(): divided}
        for part in node.parts:
            below = self._trees(part)
            trees = {
                left + right: chance * other
                for left, chance in trees.items()
                for right, other in below.items()
            }
        whole = (node.begin,)
        trees[whole] = trees.get(whole, 0.0) + self._chance_to_divide(-node.weight - 1)
        return trees

    def _chance_to_divide(self, weight: int) -> float:
        """Return P(Z >= -weight); P(Z < -weight) is that of -weight - 1."""
        fade = math.exp(-1.0 / float(self.scale))
        if weight < 0:
            return float(fade ** (-weight) / (1.0 + fade))
        return float(1.0 - fade ** (weight + 1) / (1.0 + fade))

    def _key(self, starts: tuple[int, ...]) -> Hashable:
        return public_key(Buckets(np.array([*starts, self.cells])))

    def choices(self, samples: int, rng: Randomness) -> Counter[Hashable]:
        """Return how often each choice is made with the noise of the real sampler.

        Parameters
        ----------
        samples : int
            How many choices.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        Counter
            How often each choice was made.
        """
        tallied: Counter[Hashable] = Counter()
        for begin in range(0, samples, CHUNK):
            size = min(CHUNK, samples - begin)
            starting = np.zeros((size, self.cells), dtype=np.bool_)
            self._mark(self.root, np.ones(size, dtype=np.bool_), starting, rng)
            codes = starting @ (1 << np.arange(self.cells))
            _, places, numbers = np.unique(codes, return_index=True, return_counts=True)
            for place, number in zip(places, numbers.tolist(), strict=True):
                starts = tuple(np.flatnonzero(starting[place]).tolist())
                tallied[self._key(starts)] += number
        return tallied

    def _mark(
        self, node: Node | int, reached: BoolArray, starting: BoolArray, rng: Randomness
    ) -> None:
        """Mark where buckets begin in the runs that reach a node."""
        if isinstance(node, int):
            starting[:, node] |= reached
            return
        scale = self.scale
        noise = rng.laplace(scale.numerator, scale.denominator, size=reached.size)
        divided = node.weight + noise >= 0
        starting[:, node.begin] |= reached & ~divided
        for part in node.parts:
            self._mark(part, reached & divided, starting, rng)

    def differs(self, runs: int, seed: int = 0) -> bool:
        """Whether real runs draw or divide otherwise than was declared.

        Parameters
        ----------
        runs : int
            How many runs are repeated.
        seed : int, default 0
            Where chance begins.

        Returns
        -------
        bool
            True if one run drew noise of another scale, or chose other buckets than
            follow from what it drew.
        """
        for number in range(runs):
            diary: list[Note] = []
            chosen = self.selector.select(
                self.counts,
                policy=self.policy,
                epsilon=self.epsilon,
                rng=WatchedRandomness(seed + number, diary),
            )
            draws = [note for note in diary if isinstance(note, Draw)]
            scales = {
                Fraction(int(note.numerators), int(note.denominators)) for note in draws
            }
            drawn = [int(value) for note in draws for value in note.values]
            if scales - {self.scale} or self._repeated(drawn) != public_key(chosen):
                return True
        return False

    def _repeated(self, drawn: list[int]) -> Hashable:
        """Return the choice that follows from noise in the order of the levels."""
        level, starts, place = [self.root], [], 0
        while level:
            following: list[Node | int] = []
            for node in level:
                if isinstance(node, int):
                    starts.append(node)
                    continue
                if place == len(drawn):
                    return "fewer draws than nodes"
                if node.weight + drawn[place] >= 0:
                    following += node.parts
                else:
                    starts.append(node.begin)
                place += 1
            level = following
        if place < len(drawn):
            return "more draws than nodes"
        return self._key(tuple(sorted(starts)))

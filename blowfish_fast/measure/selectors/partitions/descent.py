"""Buckets by descent: a node is divided where it holds enough records, noise added.

    depth 0   [ 0 .................................. 4^k )        divided
    depth 1   [ bucket )[ divided        )[ bucket )[ bucket )
    depth 2              [b)[b)[divided)[b)

A node of depth d needs about d D records to be divided, D public: so noise seldom goes
on dividing where nobody is, and a record pays for few nodes of its path. Nothing below
a bucket is looked at, so a domain of 2^62 cells takes as long as its filled cells.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Literal, Self, get_args

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import as_choice, as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.sparse import FilledCells
from blowfish_fast.data.wide.map_curve import MapBuckets, MapCurve
from blowfish_fast.errors import InputError
from blowfish_fast.kernels.sampling.decimal_bounds import exponential_bounds
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.policies import Policy

from .base import Partition, record_distance
from .uneven_scores import NodeScores, ends_of_loss, near_loss

Score = Literal["records", "unevenness"]

SCALE_STEPS = 1024
"""Scales of noise are whole multiples of one over this."""

WORK_BITS = 96
"""Of the fractions in which a price is added up."""

DIGITS = 50
LOG_TERMS = 15
"""Of the series of ln(1 + v), an odd number: what is left out is negative."""


class Descent(Partition):
    """Divide nodes of a regular tree from the root, where noisy counts are high.

    Parameters
    ----------
    fan_out : {2, 4, 8, 16}
        Into how many parts a node is divided.
    score : {"records", "unevenness"}
        What decides: how many records a node holds, or how uneven it is, or anything
        below it. By unevenness even regions stay whole, at more noise a comparison;
        clustered records are divided better by their number.
    most_buckets : int
        The descent ends where it could lead to more buckets than this.

    Notes
    -----
    Guarantee: epsilon-private choice of buckets under the policy it is given.
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: a record that is added changes the noisy comparisons on its path alone;
        their log-odds, added up for the worst path, are at most epsilon, and a move
        costs as much and one comparison more. By unevenness a record changes scores by
        -1 to 3, and the log-odds are added up for these.
    Complexity: O(k log(filled cells)) time for k buckets; by unevenness one pass over
        the filled cells for each level of the tree.
    Source: J. Zhang, X. Xiao, X. Xie. PrivTree: a differentially private algorithm for
        hierarchical decompositions. SIGMOD 2016; with discrete noise, an exact price
        and moves; proof in ``docs/proofs/dawa.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> policy, asked = bf.policies.AddRemove(line), bf.workloads.Ranges(line, [0], [9])
    >>> mechanism = bf.Dawa(policy, asked, epsilon=1, partition=Descent())
    >>> mechanism.release([0] * 48 + [500] * 16, rng=2).details["edges"].tolist()[:3]
    [0, 16, 32]
    """

    name = "descent"
    curve: MapCurve | None = None
    """Along which the cells of a map are numbered; None for a line."""

    def __init__(
        self,
        *,
        fan_out: int = 4,
        score: Score = "records",
        most_buckets: int = 2**19,
    ) -> None:
        self.fan_out = as_whole(fan_out, "fan_out", 2)
        if self.fan_out not in (2, 4, 8, 16):
            raise InputError(
                "nodes are divided into 2, 4, 8 or 16 parts", received=repr(fan_out)
            )
        self.score = as_choice(score, "score", get_args(Score))
        self.most_buckets = as_whole(most_buckets, "most_buckets", 1)

    @property
    def default_share(self) -> Fraction:
        """A third of epsilon, chosen on generated addresses and moments."""
        return Fraction(1, 3)

    def on_map(self, curve: MapCurve) -> Self:
        """Return the same descent through the boxes of a map; public."""
        other = copy.copy(self)
        other.curve = curve
        return other

    def _buckets(self, starts: IntArray, cells: int) -> Buckets:
        edges = np.append(starts, cells)
        return Buckets(edges) if self.curve is None else MapBuckets(edges, self.curve)

    def _inside(self, begin: IntArray, cells: int) -> IntArray:
        """Return the nodes that hold a cell; the others are public, and left out."""
        if self.curve is None:
            return begin[begin < cells]
        # A node begins at the lower corner of its box.
        return begin[self.curve.holds(begin)]

    def select(
        self,
        counts: IntArray | FilledCells,
        *,
        policy: Policy,
        epsilon: Fraction,
        rng: Randomness,
    ) -> Buckets:
        """Return buckets, epsilon-private under `policy`: Lemma DS3.

        The counts are those of all cells, or of the filled ones of a wide domain.

        Parameters
        ----------
        counts : ndarray of int64 or FilledCells
            True counts of all cells, or of the filled ones of a wide domain.
        policy : Policy
            The policy, without constraints.
        epsilon : Fraction
            What the choice may use.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        Buckets
            The buckets; public.
        """
        return self._choose(counts, policy, epsilon, rng)

    def _choose(
        self,
        counts: IntArray | FilledCells,
        policy: Policy,
        epsilon: Fraction,
        rng: Randomness,
    ) -> Buckets:
        cells = policy.domain.size
        filled = counts if isinstance(counts, FilledCells) else FilledCells.of(counts)
        distance = record_distance(policy)
        if cells == 1 or distance == 0:
            # Public: no edge changes anything, or there is nothing to divide.
            return self._buckets(np.zeros(1, dtype=np.int64), cells)
        scale, bias = calibrated(
            epsilon, self.fan_out, moves=distance == 2, score=self.score
        )
        starts = self._descend(filled, cells, (scale, bias), rng)
        return self._buckets(starts, cells)

    def _scorer(
        self, filled: FilledCells, height: int
    ) -> Callable[[IntArray, IntArray, int], IntArray]:
        """Return what scores nodes, given their first cells, ends and height."""
        if self.score == "unevenness":
            bits = self.fan_out.bit_length() - 1
            return NodeScores(filled, list(range(height, 0, -bits))).of
        totals = np.zeros(filled.counts.size + 1, dtype=np.int64)
        np.cumsum(filled.counts, out=totals[1:])

        def records(begin: IntArray, end: IntArray, _: int) -> IntArray:
            inside = totals[np.searchsorted(filled.keys, end)]
            return np.asarray(inside - totals[np.searchsorted(filled.keys, begin)])

        return records

    def _descend(
        self,
        filled: FilledCells,
        cells: int,
        noise: tuple[Fraction, int],
        rng: Randomness,
    ) -> IntArray:
        """Return where buckets begin, ascending; every limit is public: Lemma DS4."""
        scale, bias = noise
        bits = self.fan_out.bit_length() - 1
        height = max((cells - 1).bit_length(), 1)
        score = self._scorer(filled, height)
        begin = np.zeros(1, dtype=np.int64)
        leaves: list[IntArray] = []
        settled, depth = 0, 0
        while begin.size:
            full = settled + self.fan_out * begin.size > self.most_buckets
            if height == 0 or full:
                leaves.append(begin)
                break
            # The last node may reach beyond the domain, where nobody can be.
            end = np.minimum(begin + (1 << height), cells)
            weight = np.maximum(score(begin, end, height) - depth * bias, -bias)
            drawn = rng.laplace(scale.numerator, scale.denominator, size=begin.size)
            divided = weight + drawn >= 0
            leaves.append(begin[~divided])
            settled += leaves[-1].size
            step = min(bits, height)
            height -= step
            parts = np.arange(1 << step, dtype=np.int64) << height
            begin = (begin[divided][:, None] + parts).reshape(-1)
            begin = self._inside(begin, cells)
            depth += 1
        return np.sort(np.concatenate(leaves))


def price(scale: Fraction, bias: int) -> Fraction:
    """Return what a record that is added costs at most, rounded up: Lemma DS2.

    Parameters
    ----------
    scale : Fraction
        Of the noise, b.
    bias : int
        By how much a node must hold more records than its parent's parent, D.

    Returns
    -------
    Fraction
        1/b and the sum over j of ln P(Z >= -jD - 1) / P(Z >= -jD).
    """
    fade_low, _ = exponential_bounds(1 / scale, DIGITS)
    _, shrink = exponential_bounds(bias / scale, DIGITS)
    total, level = 1 / scale, 0
    while True:
        _, power = exponential_bounds((level * bias + 1) / scale, DIGITS)
        excess = power * (1 - fade_low) / (1 + fade_low - power)
        excess = Fraction(math.ceil(excess * 2**WORK_BITS), 2**WORK_BITS)
        if excess <= total / 2**60:
            # What follows falls by `shrink` at least, and ln(1 + v) <= v.
            return total + excess / (1 - shrink)
        total += _log_above(excess)
        level += 1


def _log_above(excess: Fraction) -> Fraction:
    """Return ln(1 + v), 0 <= v < 1, rounded up."""
    terms = ((-1) ** (k + 1) * excess**k / k for k in range(1, LOG_TERMS + 1))
    total = sum(terms, Fraction(0))
    return Fraction(math.ceil(total * 2**WORK_BITS), 2**WORK_BITS)


@lru_cache(maxsize=64)
def calibrated(
    epsilon: Fraction, fan_out: int, *, moves: bool, score: Score = "records"
) -> tuple[Fraction, int]:
    """Return the least scale, and its bias, that cost at most `epsilon`: Lemma DS3.

    By unevenness: Lemma DS10.

    Parameters
    ----------
    epsilon : Fraction
        What the choice may cost.
    fan_out : int
        Into how many parts a node is divided.
    moves : bool
        Whether a record may move, which costs both ends of what an added one changes.
    score : {"records", "unevenness"}
        What decides where a node is divided.

    Returns
    -------
    tuple of Fraction and int
        Scale b of the noise, and the bias D.
    """

    def fits(steps: int) -> bool:
        scale, bias = _at(steps, fan_out)
        if score == "unevenness":
            ends = ends_of_loss(scale, bias)
            return (sum(ends) if moves else max(ends)) <= epsilon
        return price(scale, bias) + (1 / scale if moves else 0) <= epsilon

    near = _near if score == "records" else _near_uneven
    # Floats propose, fractions decide.
    high = 1
    while near(high, fan_out, moves) > float(epsilon):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        enough = near(middle, fan_out, moves) <= float(epsilon)
        low, high = (low, middle) if enough else (middle, high)
    while not fits(high):
        high += 1
    return _at(high, fan_out)


def _near(steps: int, fan_out: int, moves: bool) -> float:
    """Return the price in floats, which may be a little off."""
    scale, bias = _at(steps, fan_out)
    width = float(scale)
    fade, total, level = math.exp(-1.0 / width), (1.0 + moves) / width, 0
    while True:
        power = math.exp(-(level * bias + 1) / width)
        step = math.log1p(power * (1.0 - fade) / (1.0 + fade - power))
        total += step
        level += 1
        if step <= 1e-15 * total:
            return total


def _near_uneven(steps: int, fan_out: int, moves: bool) -> float:
    """Return the price by unevenness in floats."""
    scale, bias = _at(steps, fan_out)
    ends = near_loss(float(scale), bias)
    return sum(ends) if moves else max(ends)


def _at(steps: int, fan_out: int) -> tuple[Fraction, int]:
    scale = Fraction(steps, SCALE_STEPS)
    return scale, max(math.ceil(float(scale) * math.log(fan_out)), 1)

"""Many independent choices from one preparation, and the exact law of a choice.

For audits. Steering ``kernels.exponential_choice.weigh_block``, through which every row
of log-weights goes, walks the tree of all decisions; each leaf is a choice of known
probability. A selector that draws noise of its own has no such tree.
"""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypedDict, Unpack

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray, WordArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import SizeError
from blowfish_fast.kernels.sampling.word_sources import WordStream
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions.least_cost import LeastCost
from blowfish_fast.measure.selectors.selections import NoisyComparison
from blowfish_fast.policies import Policy

MOST_LEAVES = 50_000
"""Decisions that are written out; a larger tree is sampled run by run."""

CHUNK = 2**16

Law = dict[Hashable, float]


class ChoiceTerms(TypedDict):
    """The policy and the epsilon under which a selector chooses.

    Attributes
    ----------
    policy : Policy
        Which histograms are neighbours.
    epsilon : Fraction
        What the choice may spend.
    """

    policy: Policy
    epsilon: Fraction


class _NoiseDrawnError(Exception):
    """The selector reads random words outside the exponential mechanism."""


@dataclass
class _Steering:
    """Decisions to repeat, and the rows met along the way."""

    path: list[int]
    rows: list[tuple[IntArray, int]] = field(default_factory=list)
    inside: bool = False
    generator: np.random.Generator | None = None

    def choose(self, table: IntArray, bits: int) -> IntArray:
        """Follow the path; beyond its end, take the first candidate or draw one."""
        choices = np.empty(len(table), dtype=np.int64)
        for number, row in enumerate(table):
            place = len(self.rows)
            self.rows.append((row.copy(), bits))
            if place == len(self.path):
                self.path.append(self._next(row, bits))
            choices[number] = self.path[place]
        return choices

    def _next(self, row: IntArray, bits: int) -> int:
        if self.generator is None:
            return int(np.flatnonzero(row != kernels.ABSENT)[0])
        return int(self.generator.choice(row.size, p=_chances(row, bits)))


class _Steered(Randomness):
    """Randomness whose streams serve the steered chooser and nothing else."""

    __slots__ = ("steering",)

    def __init__(self, steering: _Steering) -> None:
        super().__init__(0)
        self.steering = steering

    def stream(self) -> WordStream:
        words = super().stream()
        steering = self.steering

        def guard(position: int, count: int) -> WordArray:
            if not steering.inside:
                raise _NoiseDrawnError
            return words(position, count)

        return guard  # type: ignore[return-value]


def exact_law(
    selector: Any, counts: IntArray, **terms: Unpack[ChoiceTerms]
) -> Law | None:
    """Return the probability of every choice; None if the selector draws noise.

    Parameters
    ----------
    selector : Selector
        What chooses.
    counts : ndarray of int64, shape (cells,)
        True counts.
    **terms : ChoiceTerms
        The policy and the epsilon under which it chooses.

    Returns
    -------
    dict or None
        The probability of each choice.
    """
    law: Law = {}
    try:
        for choice, steering in _leaves(selector, counts, terms):
            chance = 1.0
            for (row, bits), taken in zip(steering.rows, steering.path, strict=True):
                chance *= float(_chances(row, bits)[taken])
            law[choice] = law.get(choice, 0.0) + chance
    except _NoiseDrawnError:
        return None
    return law


def path_log_ratio(
    selector: Any,
    sides: tuple[IntArray, IntArray],
    *,
    generator: np.random.Generator,
    **terms: Unpack[ChoiceTerms],
) -> float | None:
    """Return the log of how much likelier one side makes a random run.

    A path is drawn on the first side and repeated on the second, which need not be
    enumerated.

    Parameters
    ----------
    selector : Selector
        What chooses.
    sides : tuple[ndarray of int64, ndarray of int64]
        Counts on either side of an edge.
    generator : numpy.random.Generator
        Draws the path; for audits only.
    **terms : ChoiceTerms
        The policy and the epsilon under which it chooses.

    Returns
    -------
    float or None
        The log ratio; infinite if the second side cannot take that path, None if the
        selector draws noise.
    """
    met: list[_Steering] = []
    for counts in sides:
        path = met[0].path if met else []
        steering = _Steering(list(path), generator=None if met else generator)
        try:
            with _steer(steering):
                selector.select(counts, rng=_Steered(steering), **terms)
        except _NoiseDrawnError:
            return None
        met.append(steering)
    first, second = met
    if first.path != second.path:
        return math.inf
    total = 0.0
    for (row, bits), (other, _), taken in zip(
        first.rows, second.rows, first.path, strict=True
    ):
        if taken >= other.size or not (chance := _chances(other, bits)[taken]):
            return math.inf
        total += math.log(_chances(row, bits)[taken] / chance)
    return abs(total)


def select_many(
    selector: Any,
    counts: IntArray,
    *,
    draws: int,
    rng: Randomness,
    **terms: Unpack[ChoiceTerms],
) -> Counter[Hashable]:
    """Return how often each `public_key` is chosen in many independent choices.

    Parameters
    ----------
    selector : Selector
        What chooses.
    counts : ndarray of int64, shape (cells,)
        True counts.
    draws : int
        How many choices.
    rng : Randomness
        The source of all noise.
    **terms : ChoiceTerms
        The policy and the epsilon under which it chooses.

    Returns
    -------
    Counter
        The number of draws of each key.
    """
    if draws_at_once(selector):
        return _drawn_at_once(selector, counts, draws, rng, terms)
    choices = sample_choices(selector, counts, samples=draws, rng=rng, **terms)
    if choices is None:
        # One source for all runs: every call opens streams of its own.
        runs = (selector.select(counts, rng=rng, **terms) for _ in range(draws))
        choices = Counter(map(public_key, runs))
    return choices


def draws_at_once(selector: Any) -> bool:
    """Return whether the noise of many choices is drawn in one call."""
    if isinstance(selector, LeastCost):
        return bool(selector.lengths == "powers")
    return isinstance(selector, NoisyComparison)


def _drawn_at_once(
    selector: Any, counts: IntArray, draws: int, rng: Randomness, terms: ChoiceTerms
) -> Counter[Hashable]:
    policy, epsilon = terms["policy"], terms["epsilon"]
    if isinstance(selector, NoisyComparison):
        noise = selector.noise(counts.size, policy, epsilon, draws=draws, rng=rng)
        return Counter(selector.decide(counts, policy, noise).tolist())
    (cut, prices, scales), options = selector.candidates(counts, policy, epsilon)
    cuts = kernels.least_cost_partitions(
        cut, prices, scales, rng.stream(), draws, **options
    )
    different_cuts, numbers = np.unique(cuts, return_counts=True)
    labels = np.cumsum(
        (different_cuts[:, None] << 1 >> np.arange(counts.size)) & 1, axis=1
    )
    keys = map(tuple, labels.tolist())
    return Counter(dict(zip(keys, numbers.tolist(), strict=True)))


def sample_choices(
    selector: Any,
    counts: IntArray,
    *,
    samples: int,
    rng: Randomness,
    **terms: Unpack[ChoiceTerms],
) -> Counter[Hashable] | None:
    """Return how often each choice is made in many runs, by the tree of decisions.

    Parameters
    ----------
    selector : Selector
        What chooses.
    counts : ndarray of int64, shape (cells,)
        True counts.
    samples : int
        How many runs.
    rng : Randomness
        The source of all noise.
    **terms : ChoiceTerms
        The policy and the epsilon under which it chooses.

    Returns
    -------
    Counter or None
        The number of runs of each choice; None if the selector draws noise.
    """
    choices: Counter[Hashable] = Counter()
    runs: dict[tuple[int, ...], int] = {(): samples}

    def split(path: tuple[int, ...], row: IntArray, bits: int) -> None:
        if path not in runs:
            return
        for taken, number in _decide_row(row, bits, runs.pop(path), rng).items():
            runs[(*path, taken)] = number

    try:
        for choice, steering in _leaves(selector, counts, terms, split):
            choices[choice] += runs.pop(tuple(steering.path), 0)
    except _NoiseDrawnError:
        return None
    return choices


def _decide_row(row: IntArray, bits: int, runs: int, rng: Randomness) -> Counter[int]:
    """Let the sampler decide for many runs at one row."""
    words = rng.stream()
    taken: Counter[int] = Counter()
    for start in range(0, runs, CHUNK):
        size = min(CHUNK, runs - start)
        drawn = kernels.choose(words, start, np.tile(row, (size, 1)), bits)
        taken.update(dict(enumerate(np.bincount(drawn).tolist())))
    return Counter({choice: number for choice, number in taken.items() if number})


def _leaves(
    selector: Any,
    counts: IntArray,
    terms: ChoiceTerms,
    split: Callable[[tuple[int, ...], IntArray, int], None] | None = None,
) -> Iterator[tuple[Hashable, _Steering]]:
    """Run the selector once for every path of decisions, depth first."""
    path: list[int] = []
    for _ in range(MOST_LEAVES):
        steering = _Steering(list(path))
        with _steer(steering):
            chosen = selector.select(counts, rng=_Steered(steering), **terms)
        if split is not None:
            for place, (row, bits) in enumerate(steering.rows):
                split(tuple(steering.path[:place]), row, bits)
        yield public_key(chosen), steering
        path = steering.path
        while path:
            row, _ = steering.rows[len(path) - 1]
            later = np.flatnonzero(row != kernels.ABSENT)
            later = later[later > path[-1]]
            if later.size:
                path[-1] = int(later[0])
                break
            path.pop()
        if not path:
            return
    raise SizeError(
        f"{selector.name} makes more than {MOST_LEAVES:,} different runs here; audit "
        "it on fewer cells"
    )


@contextlib.contextmanager
def _steer(steering: _Steering) -> Iterator[None]:
    """Let `steering` decide wherever the exponential mechanism is drawn from."""
    from blowfish_fast.kernels.sampling import exponential_choice

    genuine = exponential_choice.weigh_block

    def weigh_block(
        words: Any, start: int, log_weights: IntArray, fraction_bits: int
    ) -> tuple[IntArray, IntArray]:
        steering.inside = True
        try:
            # Totals are part of the selector's arithmetic and stay as they are.
            _, totals = genuine(words, start, log_weights, fraction_bits)
        finally:
            steering.inside = False
        return steering.choose(log_weights, fraction_bits), totals

    loaded = len(sys.modules)
    homes = _homes(genuine, loaded)
    for home in homes:
        home.weigh_block = weigh_block
    try:
        yield
    finally:
        if len(sys.modules) != loaded:
            # A module that was first needed now has taken over the steered function.
            homes = _homes(weigh_block, len(sys.modules))
        for home in homes:
            home.weigh_block = genuine


@functools.lru_cache(maxsize=4)
def _homes(function: Any, loaded: int) -> list[Any]:
    """Return the modules that draw by this function, kept until more are loaded."""
    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("blowfish_fast.")
        and vars(module).get("weigh_block") is function
    ]


def _chances(row: IntArray, bits: int) -> FloatArray:
    there = row != kernels.ABSENT
    gaps = np.where(there, row - row[there].max(), 0).astype(np.float64)
    weights = np.where(there, np.exp(gaps * 2.0**-bits), 0.0)
    chances: FloatArray = weights / weights.sum()
    return chances


def public_key(chosen: Any) -> Hashable:
    """Return something that is equal for equal choices, and can be printed."""
    if isinstance(chosen, Buckets):
        return tuple(chosen.labels.tolist())
    if isinstance(chosen, np.ndarray):
        return tuple(chosen.reshape(-1).tolist())
    if isinstance(chosen, np.generic):
        return public_key(chosen.item())
    if isinstance(chosen, list | tuple):
        return tuple(public_key(part) for part in chosen)
    if isinstance(chosen, dict):
        return tuple((key, public_key(part)) for key, part in sorted(chosen.items()))
    if hasattr(chosen, "__dict__"):
        return public_key(vars(chosen))
    return chosen if isinstance(chosen, Hashable) else repr(chosen)

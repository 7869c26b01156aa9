"""A selector under a policy at an epsilon, and twins that choose many times at once.

Twins of ``partitions.least_cost`` and ``partitions.matching_pairs`` write out every
candidate with its exact cost and the noise scale declared; every way to cover the cells
by candidates is a choice. Partitions that read noisy counts alone run themselves, once
for each distinct vector of noisy counts.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.audit.witness import Draw, Note, WatchedRandomness
from blowfish_fast.errors import SizeError
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions.base import (
    connected_parts,
    record_distance,
)
from blowfish_fast.measure.selectors.partitions.descent import Descent
from blowfish_fast.measure.selectors.partitions.least_cost import QUANTILE, LeastCost
from blowfish_fast.measure.selectors.partitions.matching_pairs import (
    MatchingPairs,
    pair_deviations,
)
from blowfish_fast.measure.selectors.partitions.noisy_sort import CellNoise, on_cells
from blowfish_fast.measure.selectors.worst_table import WorstTable
from blowfish_fast.policies import Policy

from .descent_twin import DescentTwin
from .many_draws import (
    ChoiceTerms,
    Law,
    exact_law,
    public_key,
    select_many,
)


@dataclass(frozen=True)
class Case:
    """A selector under a policy at an epsilon.

    Attributes
    ----------
    selector : object
        What chooses.
    policy : Policy
        What is secret.
    epsilon : Fraction
        What the choice may use.
    memory : dict[bytes, Hashable], optional
        What was made of noisy counts before.
    laws : dict[bytes, Law or None], optional
        Exact laws that were worked out before.
    """

    selector: Any
    policy: Policy
    epsilon: Fraction
    memory: dict[bytes, Hashable] = field(default_factory=dict)
    """What a twin has worked out before."""
    laws: dict[bytes, Law | None] = field(default_factory=dict)

    def at(self, epsilon: Fraction) -> Case:
        """Return the same choice at another epsilon; nothing is remembered."""
        return Case(self.selector, self.policy, epsilon)

    @property
    def terms(self) -> ChoiceTerms:
        """Policy and epsilon, as selectors take them."""
        return {"policy": self.policy, "epsilon": self.epsilon}

    @property
    def heights(self) -> tuple[int, ...]:
        """Counts that tell: about as high as a bucket is dear."""
        price = min(max(round(getattr(self.selector, "bucket_cost", 8.0)), 1), 1000)
        return tuple(sorted({8, price}))

    def select(self, counts: IntArray, rng: Randomness) -> Any:
        """Return what the selector chooses.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        object
            The choice.
        """
        return self.selector.select(counts, rng=rng, **self.terms)

    def law(self, counts: IntArray) -> Law | None:
        """Return the exact law of the choice; None where nobody writes it out."""
        key = counts.tobytes()
        if key not in self.laws:
            self.laws[key] = None
            with suppress(SizeError):
                if isinstance(self.selector, Descent):
                    self.laws[key] = self.descent(counts).law()
                else:
                    self.laws[key] = exact_law(self.selector, counts, **self.terms)
        return self.laws[key]

    def descent(self, counts: IntArray) -> DescentTwin:
        """Return the twin of a `Descent`; a `SizeError` where trees are too many."""
        return DescentTwin(self.selector, counts, **self.terms)


class OverCells:
    """A choice of tables that is asked with counts of all cells of a small domain.

    Parameters
    ----------
    selector : WorstTable
        It chooses by the counts of tables.
    """

    def __init__(self, selector: WorstTable) -> None:
        self.selector = selector
        self.name = selector.name
        self.loss_range = selector.loss_range

    def select(self, counts: IntArray, **terms: Any) -> int:
        """Count the tables, and choose among them.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts of all cells.
        **terms : object
            Policy, epsilon and source of noise, as `WorstTable.select` takes them.

        Returns
        -------
        int
            The number of the chosen table.
        """
        return self.selector.select(self.selector.counted.of_cells(counts), **terms)


def over_cells(selector: Any) -> Any:
    """Return a selector that takes counts of all cells, as neighbours are stated."""
    return OverCells(selector) if isinstance(selector, WorstTable) else selector


Tally = Callable[[Case, IntArray, int, Randomness], "Counter[Hashable]"]
"""Counts the choices of many runs."""


def in_batches(
    case: Case, counts: IntArray, samples: int, rng: Randomness
) -> Counter[Hashable]:
    """Choose so many times from one preparation.

    Parameters
    ----------
    case : Case
        What chooses.
    counts : ndarray of int64, shape (cells,)
        True counts.
    samples : int
        How many choices.
    rng : Randomness
        The source of all noise.

    Returns
    -------
    Counter
        How often each choice was made.
    """
    return select_many(case.selector, counts, draws=samples, rng=rng, **case.terms)


def one_by_one(
    case: Case, counts: IntArray, samples: int, rng: Randomness
) -> Counter[Hashable]:
    """Choose so many times; every call opens streams of its own.

    Parameters
    ----------
    case : Case
        What chooses.
    counts : ndarray of int64, shape (cells,)
        True counts.
    samples : int
        How many choices.
    rng : Randomness
        The source of all noise.

    Returns
    -------
    Counter
        How often each choice was made.
    """
    return Counter(public_key(case.select(counts, rng)) for _ in range(samples))


def descents(
    case: Case, counts: IntArray, samples: int, rng: Randomness
) -> Counter[Hashable]:
    """Descend so many times, by the twin with the noise of the real sampler.

    Parameters
    ----------
    case : Case
        What chooses.
    counts : ndarray of int64, shape (cells,)
        True counts.
    samples : int
        How many choices.
    rng : Randomness
        The source of all noise.

    Returns
    -------
    Counter
        How often each choice was made.
    """
    return case.descent(counts).choices(samples, rng)


MOST_CELLS = 8
CHUNK = 2**16

Cells = tuple[int, ...]


class Offered(NamedTuple):
    """Every candidate by its cells, with cost and noise scale in steps.

    Attributes
    ----------
    candidates : list[Cells]
        The cells of each candidate.
    costs : ndarray of int64
        The cost of each.
    scales : list[Fraction]
        The noise scale of each.
    """

    candidates: list[Cells]
    costs: IntArray
    scales: list[Fraction]

    def member(self) -> IntArray:
        """Return a row of zeros and ones per choice: the candidates it is made of."""
        cells = tuple(sorted(set().union(*self.candidates)))
        if len(cells) > MOST_CELLS:
            raise SizeError(
                f"choices are written out for at most {MOST_CELLS} cells; received "
                f"{len(cells)}"
            )
        covers = list(covers_of(cells, self.candidates))
        rows = np.zeros((len(covers), len(self.candidates)), dtype=np.int64)
        for row, cover in zip(rows, covers, strict=True):
            row[[self.candidates.index(candidate) for candidate in cover]] = 1
        return rows


def covers_of(cells: Cells, candidates: list[Cells]) -> Iterator[list[Cells]]:
    """Yield every way to put each of some cells into one candidate.

    Parameters
    ----------
    cells : Cells
        The cells.
    candidates : list[Cells]
        The cells of each candidate.

    Yields
    ------
    list[Cells]
        The candidates of one way.
    """
    if not cells:
        yield []
    for candidate in candidates:
        if cells and candidate[0] == cells[0] and set(candidate) <= set(cells):
            rest = tuple(cell for cell in cells if cell not in candidate)
            yield from ([candidate, *others] for others in covers_of(rest, candidates))


def intervals_offered(case: Case, counts: IntArray) -> Offered:
    """Write out every interval of a `LeastCost`, with its cost from exact fractions.

    Parameters
    ----------
    case : Case
        What chooses.
    counts : ndarray of int64, shape (cells,)
        True counts.

    Returns
    -------
    Offered
        The candidates.
    """
    partition, cells = case.selector, counts.size
    noise = partition.noise(cells, case.epsilon / record_distance(case.policy))
    powers = partition.lengths == "powers"
    lengths = [2**power for power in range(cells.bit_length())]
    offered = Offered([], np.empty(0, dtype=np.int64), [])
    costs = []
    for length in lengths if powers else range(1, cells + 1):
        scale = float(noise.scales[(length.bit_length() if powers else length) - 1])
        price = round((partition.bucket_cost + partition.offset * scale) / noise.step)
        for start in range(cells - length + 1):
            cost = _cost(partition, counts[start : start + length].tolist())
            costs.append(math.floor(cost / Fraction(noise.step)) + price)
            offered.candidates.append(tuple(range(start, start + length)))
            offered.scales.append(Fraction(scale) / Fraction(noise.step))
    return offered._replace(costs=np.array(costs, dtype=np.int64))


def _cost(partition: LeastCost, cells: list[int]) -> Fraction:
    if partition.cost == "deviation":
        mean = Fraction(sum(cells), len(cells))
        return sum((abs(count - mean) for count in cells), Fraction(0))
    quantile = Fraction(*QUANTILE)
    return min(
        sum(
            (
                quantile * max(count - centre, 0)
                + (1 - quantile) * max(centre - count, 0)
                for count in cells
            ),
            Fraction(0),
        )
        for centre in cells
    )


def groups_offered(case: Case, counts: IntArray) -> Offered:
    """Write out every group of the first round of a `MatchingPairs`.

    Parameters
    ----------
    case : Case
        What chooses.
    counts : ndarray of int64, shape (cells,)
        True counts.

    Returns
    -------
    Offered
        The candidates.
    """
    partition, policy, cells = case.selector, case.policy, counts.size
    alone = np.ones(cells, dtype=np.int64)
    granted = case.epsilon / record_distance(policy) / partition.rounds
    noise = partition.noise(cells, granted, alone)
    first, second = np.triu_indices(cells, 1)
    parts = connected_parts(policy)
    near = second - first <= (partition.window or cells)
    # Cells of different connected parts are never paired.
    near &= parts[first] == parts[second]
    first, second = first[near], second[near]
    totals = np.minimum(counts, noise.cap)
    deviations = pair_deviations(totals, alone, first, second, noise.grid)
    groups: list[Cells] = [(cell,) for cell in range(cells)]
    groups += list(zip(first.tolist(), second.tolist(), strict=True))
    pairs = [int(deviation) + noise.price for deviation in deviations]
    return Offered(
        groups,
        np.array([noise.price] * cells + pairs, dtype=np.int64),
        [noise.single] * cells + [noise.pair] * first.size,
    )


CANDIDATES: dict[type, Callable[[Case, IntArray], Offered]] = {
    LeastCost: intervals_offered,
    MatchingPairs: groups_offered,
}
"""Choices of the least noisy cost, and what they choose from."""


def cheapest_choices(
    case: Case, counts: IntArray, samples: int, rng: Randomness
) -> Counter[Hashable]:
    """Return how often each choice of `Offered.member` has the least noisy cost.

    Parameters
    ----------
    case : Case
        What chooses.
    counts : ndarray of int64, shape (cells,)
        True counts.
    samples : int
        How many choices.
    rng : Randomness
        The source of all noise.

    Returns
    -------
    Counter
        How often each choice was made.

    Raises
    ------
    SizeError
        If there are several rounds.
    """
    _, costs, scales = offered = CANDIDATES[type(case.selector)](case, counts)
    if getattr(case.selector, "rounds", 1) != 1:
        raise SizeError(f"one round is written out; received {case.selector.rounds}")
    member = offered.member()
    chosen = np.zeros(len(member), dtype=np.int64)
    for begin in range(0, samples, CHUNK):
        size = min(CHUNK, samples - begin)
        noise = [
            rng.geometric(scale.numerator, scale.denominator, size=size)
            for scale in scales
        ]
        cheapest = (member @ (costs[:, None] - np.array(noise))).argmin(axis=0)
        chosen += np.bincount(cheapest, minlength=chosen.size)
    return Counter(dict(enumerate(chosen.tolist())))


def inexact_matchings(case: Case, counts: IntArray, runs: int, seed: int = 0) -> int:
    """Return in how many real runs a cheaper pairing than the one chosen existed.

    Matchings need to have no window; the proof covers the exact minimum alone.

    Parameters
    ----------
    case : Case
        What chooses.
    counts : ndarray of int64, shape (cells,)
        True counts.
    runs : int
        How many runs.
    seed : int, default 0
        Where chance begins.

    Returns
    -------
    int
        The number of runs.
    """
    offered = groups_offered(case, counts)
    member = offered.member()
    wrong = 0
    for number in range(runs):
        diary: list[Note] = []
        chosen = case.select(counts, WatchedRandomness(seed + number, diary))
        drawn = np.concatenate(
            [item.values for item in diary if isinstance(item, Draw)]
        )
        costs = offered.costs - drawn
        groups = {
            tuple(np.flatnonzero(chosen.labels == label).tolist())
            for label in chosen.labels
        }
        mine = sum(costs[offered.candidates.index(item)] for item in groups)
        wrong += bool(mine > (member @ costs).min())
    return wrong


CELL_CHUNK = 2**18
TRIED, SAMPLES_PER_TRY = 20, 10_000
"""Draws that the selector itself is given, per data set, and one more for so many."""


class _Handed(Randomness):
    """Randomness whose next draws are known."""

    __slots__ = ("draws",)

    def __init__(self, draws: IntArray) -> None:
        super().__init__(0)
        self.draws = draws

    def _draw(self, *asked: Any) -> IntArray:
        """Hand out what was drawn before."""
        assert asked[3] == self.draws.size, "the partition draws what it declares"
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
    """Return how often each choice is made in many runs.

    The selector groups all distinct noisy counts at once, and the case remembers what
    it made of them. Some draws are given to the selector itself: a choice that depends
    on more than noisy counts is named after the true ones.

    Parameters
    ----------
    case : Case
        What chooses.
    counts : ndarray of int64, shape (cells,)
        True counts.
    samples : int
        How many runs.
    rng : Randomness
        The source of all noise.

    Returns
    -------
    Counter
        How often each choice was made.
    """
    remembered, noise = case.memory, noise_on_cells(case)
    assert noise is not None, "the selector declares its noise"
    scales, edges = noise
    # One draw at a time moves cells by known amounts: noise is linear in draws.
    unit = np.eye(scales.rates.size, dtype=np.int64)
    spread = np.array(
        [on_cells(draw_or_row, edges, counts.size) for draw_or_row in unit]
    )
    rate = int(scales.rates[0])
    tries = TRIED + samples // SAMPLES_PER_TRY
    choices: Counter[Hashable] = Counter()
    strange = ("depends on", *counts.tolist())
    for begin in range(0, samples, CELL_CHUNK):
        size = min(CELL_CHUNK, samples - begin)
        drawn = rng.laplace(scales.unit, rate, size=size * scales.rates.size)
        rows = drawn.reshape(size, -1)
        places, numbers = _distinct(rows)
        noisy = counts + rows[places] @ spread
        keys = [draw_or_row.tobytes() for draw_or_row in noisy]
        fresh = {key: at for at, key in enumerate(keys) if key not in remembered}
        if fresh:
            groups = case.selector.group(
                noisy[list(fresh.values())], case.policy, noise
            )
            remembered.update(zip(fresh, map(tuple, groups.tolist()), strict=True))
        wrong = set()
        for draws in rows[:tries]:
            key = (counts + draws @ spread).tobytes()
            if public_key(case.select(counts, _Handed(draws))) != remembered[key]:
                wrong.add(key)
        tries = max(tries - size, 0)
        for key, number in zip(keys, numbers, strict=True):
            choices[strange if key in wrong else remembered[key]] += number
    return choices


def _distinct(rows: IntArray) -> tuple[IntArray, list[int]]:
    """Return where each distinct row is first met, and how often it occurs."""
    lowest = rows.min(axis=0)
    spans = [int(span) for span in rows.max(axis=0) - lowest + 1]
    if math.prod(spans) < 2**62:
        # Rows as single numbers are sorted several times faster.
        places = np.array([math.prod(spans[:i]) for i in range(len(spans))])
        key: IntArray = (rows - lowest) @ places
        _, first, numbers = np.unique(key, return_index=True, return_counts=True)
    else:
        _, first, numbers = np.unique(
            rows, axis=0, return_index=True, return_counts=True
        )
    return first, numbers.tolist()

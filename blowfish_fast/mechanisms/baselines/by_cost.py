"""Baselines that choose by cost what to measure: queries, or low frequencies.

MWEM asks the query that is answered worst, learns from its noisy answer, and repeats.
EFPA chooses how many low frequencies to keep, and puts noise on these.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, FloatArray, IntArray
from blowfish_fast._support.validation import as_share, as_whole
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram
from blowfish_fast.errors import EpsilonError
from blowfish_fast.measure.budgets import Budget, equal_noise_epsilon
from blowfish_fast.measure.handle import (
    Handle,
    Measurement,
    Rehearsal,
    check_selector,
)
from blowfish_fast.measure.selectors.selections import KeptFrequencies, Runs, WorstQuery
from blowfish_fast.measure.strategies import Answers, Fourier
from blowfish_fast.measure.strategies.cells import bucket_counts
from blowfish_fast.measure.strategies.fourier import typical_reach
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import Example, striped
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Linear, Workload

TOTAL_SHARE = Fraction(1, 20)
"""Part of epsilon that buys the number of records where it is private."""

FIRST_TOTAL_SHARE = Fraction(1, 50)
"""The same where each round measures the number of records once more."""

FEWEST_ROUNDS = 2
"""Rounds where next to no record is expected."""

MOST_ROUNDS = 150
"""Rounds beyond which each gets too little of the budget to tell anything."""

STEP = 2.0
"""Step of the updates: four times the paper's, so that few passes settle them."""


class Mwem(Mechanism):
    """Release a histogram by multiplicative weights on the worst queries (MWEM).

    Queries need whole coefficients.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload
        What will be asked; answers to other queries are possible too.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    rounds : int, optional
        Number of queries asked; None for .72 times the cube root of epsilon times the
        (public or noisy) number of records, which served best on the benchmark data.
    share : number in (0, 1), optional
        Part of each round spent on choosing the query. None for 1/2, or 2/5 where
        records are only added or removed, since answers say more there.
    passes : int
        How often the answers known so far pull the histogram after each round.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`, by sequential composition of the rounds
        and, where the number of records is private, of the share that buys it.
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: an edge (u, v) moves a query q by |q_u - q_v|: by 1 for ranges and
        other counts, whether a record is added, removed or moved. Where records are
        only added or removed, what lies outside a count is measured with it: a record
        is in one place, so the sensitivity stays 1.
    Error: depends on the data; not predicted, and no intervals are known.
    Complexity: O(n + m) for n cells and m queries, plus `passes` times the pieces
        between the ends of queries asked, in each round.
    Source: M. Hardt, K. Ligett, F. McSherry. A simple and practical algorithm for
        differentially private data release. NIPS 2012; with departures stated beside
        the proof in ``docs/proofs/fits_of_the_literature.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    >>> mwem = bf.mechanisms.Mwem(bf.policies.Full(line), ranges, epsilon=1, rounds=5)
    >>> release = mwem.release([5] * 32 + [90] * 32, rng=1)
    >>> release.details["rounds"], float(release.estimate.sum().round(6))
    (5, 3040.0)
    """

    name = "mwem"
    cell_bytes = 96
    example_case = Example(
        partial(striped, stripes=3, height=9), {"rounds": 3}, cells=True
    )

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        rounds: int | None = None,
        share: Any = None,
        passes: int = 100,
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self.rounds = None if rounds is None else as_whole(rounds, "rounds", 1)
        self.share = (
            (Fraction(1, 2) if policy.has_moves else Fraction(2, 5))
            if share is None
            else as_share(share, "share")
        )
        self.passes = as_whole(passes, "passes", 1)
        self.selector = WorstQuery(workload)

    def _run(self, private: Handle) -> Outcome:
        total, measurements = self._total(private)
        rounds = min(self.rounds or self._rounds(total.value), self.workload.queries)
        budget = private.remaining
        pieces = _Pieces(self.domain.size, total)
        queries: list[int] = []
        for done in range(rounds):
            each = budget * _round_share(done, rounds)
            query = private.select(
                self._worst_query(pieces, queries), budget=each * self.share
            )
            last = done == rounds - 1
            rest = private.remaining if last else each * (1 - self.share)
            rows, measured = _measure_query(private, self.selector.runs(query), rest)
            pieces.learn(rows, measured, self.passes)
            measurements.append(measured)
            queries.append(query)
        total_now = pieces.total.value
        details = {"rounds": rounds, "queries": np.array(queries), "total": total_now}
        return Outcome(pieces.cells(), measurements, details, interval_scope="nothing")

    def _rehearse(self, private: Rehearsal) -> None:
        """Check the first of most rounds, which gets the least of the budget."""
        super()._rehearse(private)
        rounds = min(self.rounds or MOST_ROUNDS, self.workload.queries)
        least = self.budget * (1 - TOTAL_SHARE) * _round_share(0, rounds)
        each = least.over(self.policy.group_size)
        chosen = each * self.share
        check_selector(self.selector, private.policy, self.domain.size, chosen)
        _check_noise(each - chosen, self.selector.sensitivity(private.policy))

    def _worst_query(self, pieces: _Pieces, before: list[int]) -> WorstQuery:
        """Return the choice of a query that the pieces answer badly, not asked yet."""
        answers = self.workload.answer(pieces.cells().reshape(self.domain.shape))
        asked = np.zeros(self.workload.queries, dtype=np.bool_)
        asked[before] = True
        return self.selector.against(answers, asked)

    def _total(self, private: Handle) -> tuple[_Total, list[Measurement]]:
        policy = private.policy
        if not policy.components().private.any():
            return _Total(float(private.public_totals.sum()), math.inf), []
        share = TOTAL_SHARE if policy.has_moves else FIRST_TOTAL_SHARE
        whole = Buckets(np.array([0, self.domain.size]))
        bought = bucket_counts(private, whole, budget=share * self.budget)
        variance = float(bought.scales.variances[0])
        return _Total.measured(float(bought.noisy[0]), variance), [bought]

    def _rounds(self, total: float) -> int:
        # Constraints make the noise of every answer larger by the group size.
        each = equal_noise_epsilon(self.budget.over(self.policy.group_size))
        root = (total * each) ** (1 / 3)
        return int(np.clip(round(0.72 * root), FEWEST_ROUNDS, MOST_ROUNDS))


class _Total(NamedTuple):
    """The number of records as far as it is known.

    Parameters
    ----------
    estimate : float
        The number, which noise may have made negative.
    precision : float
        1 over its variance: infinite if it is public, 0 if nothing was measured.
    """

    estimate: float
    precision: float

    @classmethod
    def measured(cls, estimate: float, variance: float) -> Self:
        return cls(estimate, 1.0 / variance if variance > 0 else math.inf)

    @property
    def value(self) -> float:
        """At least one record, so that there is something to share out."""
        return max(self.estimate, 1.0)

    def combined(self, other: _Total) -> _Total:
        """Weigh two independent measurements by their precision."""
        if math.isinf(self.precision):
            return self
        if math.isinf(other.precision):
            return other
        precision = self.precision + other.precision
        if precision == 0.0:
            # Neither was measured: so small a budget buys nothing.
            return self
        part = other.precision / precision
        moved = part * (other.estimate - self.estimate)
        return _Total(self.estimate + moved, precision)


class _Pieces:
    """A histogram that is constant between the ends of the queries asked so far.

    After the query "cells 2 to 4" over eight cells there are three pieces:

        cells     0  1 | 2  3  4 | 5  6  7
        edges     0      2         5          8
        masses     m0       m1         m2          records of each piece, estimated

    `rows`, `values` and `targets` hold what was measured: the cells of each row, its
    coefficients, scaled to at most 1, and its noisy answer on that scale.
    """

    def __init__(self, cells: int, total: _Total) -> None:
        self.total = total
        self.edges = np.array([0, cells])
        self.masses = np.array([total.value])
        self.rows: list[Runs] = []
        self.values: list[FloatArray] = []
        self.targets: list[float] = []

    def cells(self) -> FloatArray:
        return Buckets(self.edges).expand(self.masses)

    def learn(self, rows: list[Runs], measured: Measurement, passes: int) -> None:
        """Cut at the ends of the rows, then pull towards all answers known."""
        ends = [end for runs in rows for end in (runs.starts, runs.ends)]
        edges = np.unique(np.concatenate([self.edges, *ends]))
        parent = np.searchsorted(self.edges, edges[:-1], side="right") - 1
        share = np.diff(edges) / np.diff(self.edges)[parent]
        self.masses, self.edges = self.masses[parent] * share, edges
        # Cells carry the total of each part behind them, which is not measured here.
        answers = measured.noisy[: len(rows)]
        for runs, target in zip(rows, answers.tolist(), strict=True):
            # Multiplicative weights want coefficients of at most 1.
            size = max(int(np.abs(runs.values).max(initial=0)), 1)
            self.rows.append(runs)
            self.values.append(runs.values / size)
            self.targets.append(target / size)
        if len(rows) > 1:
            # The rows share out all cells, so they add up to the number of records.
            variance = float(measured.scales.variances[: len(rows)].sum())
            once_more = _Total.measured(float(answers.sum()), variance)
            self.total = self.total.combined(once_more)
        lengths = [runs.starts.size for runs in self.rows]
        self.masses = kernels.multiplicative_update(
            self.masses,
            np.concatenate([[0], np.cumsum(lengths)]),
            self._at(np.concatenate([runs.starts for runs in self.rows])),
            self._at(np.concatenate([runs.ends for runs in self.rows])),
            np.concatenate(self.values),
            np.array(self.targets),
            total=self.total.value,
            step=STEP,
            passes=passes,
        )

    def _at(self, cells: IntArray) -> AnyArray:
        return np.searchsorted(self.edges, cells)


def _round_share(done: int, rounds: int) -> Fraction:
    """Return the part of the budget of a round; the last has nearly twice the first."""
    return Fraction(2 * (rounds + done), rounds * (3 * rounds - 1))


def _check_noise(budget: Budget, moved: int) -> None:
    """Refuse a budget at which an answer that an edge moves so far is not measured.

    `Answers` measures up to noise of 2^40; half of it leaves room for its rounding.
    """
    if Fraction(moved) ** budget.power > budget.amount * 2 ** (40 * budget.power - 1):
        raise EpsilonError(
            f"a round of Mwem may get {budget.words()}, and noise for answers that one "
            f"policy edge moves by {moved:,} would exceed 2^39. Raise the budget, or "
            "make fewer rounds"
        )


def _measure_query(
    private: Handle, runs: Runs, budget: Budget
) -> tuple[list[Runs], Measurement]:
    """Measure one query and, where it is free, what lies outside, on a few buckets."""
    size = private.policy.domain.size
    edges = np.unique(np.concatenate([[0], runs.starts, runs.ends, [size]]))
    buckets = Buckets(edges)
    bucketed = private.coarsened(buckets)
    rows = [runs]
    if not bucketed.policy.has_moves and (runs.values == 1).all():
        # A record that comes or goes is in one row only: all rows for the price of one.
        if runs.starts.size == 1:
            ones = np.ones(1, dtype=np.int64)
            rows = [
                Runs(low * ones, high * ones, ones) for low, high in pairwise(edges)
            ]
            return rows, bucket_counts(private, buckets, budget=budget)
        rows += _outside(runs, size)
    matrix = np.zeros((len(rows), edges.size - 1))
    for row, own in zip(matrix, rows, strict=True):
        for start, end, value in zip(*own, strict=True):
            first, last = np.searchsorted(edges, [start, end])
            row[first:last] = value
    # Buckets of one cell each leave the handle as it is, on a domain of several axes.
    asked = Linear(bucketed.policy.domain, matrix)
    strategy = Answers.under(bucketed.policy, asked)
    return rows, bucketed.measure(strategy, budget=budget)


def _outside(runs: Runs, size: int) -> list[Runs]:
    """Return the cells that a count of several runs leaves out, as one row or none."""
    order = np.argsort(runs.starts)
    starts = np.concatenate([[0], runs.ends[order]])
    ends = np.concatenate([runs.starts[order], [size]])
    gaps = starts < ends
    if not gaps.any():
        return []
    return [Runs(starts[gaps], ends[gaps], np.ones(int(gaps.sum()), dtype=np.int64))]


class Efpa(Mechanism):
    """Release a histogram by the lowest frequencies of its Fourier transform.

    Takes one ordered attribute; the workload changes nothing.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload, optional
        What will be asked, by default every single cell. It changes nothing in the
        release.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    share : number in (0, 1)
        Part of the budget spent on choosing how many frequencies are kept.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the choice and the coefficients share
        epsilon (sequential composition).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: of the choice, 1 when a record is added or removed and the root of 2
        when it moves (L2); of the coefficients, the largest sum of absolute values of
        the kept cosines and sines over cells, counted exactly, or what a move of the
        longest edge turns them by. The total is exact where it is public.
    Error: the noise of the kept coefficients, known once their number is, plus the
        coefficients that were dropped, which depend on the data.
    Complexity: O(n log n) for the choice, O(n k) for k frequencies; at most 2^29
        products, which bounds k on more than 2^15 cells.
    Source: the paper of `Php`, section 4, with a real transform of unit length and
        noise on all that is published; public code released phases exactly. Proof in
        ``docs/proofs/fits_of_the_literature.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    >>> efpa = bf.mechanisms.Efpa(bf.policies.AddRemove(line), ranges, epsilon=2)
    >>> wave = (100 + 80 * np.cos(np.arange(64) * np.pi / 32)).round()
    >>> efpa.release(wave, rng=1).details["frequencies"] >= 1
    True
    """

    cells_by_default = True
    name = "efpa"
    cell_bytes = 128
    example_case = Example(lambda domain: _wave(domain))

    def __init__(
        self,
        policy: Policy,
        workload: Workload | None = None,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        share: Any = Fraction(1, 2),
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self._require_one_attribute("transforms")
        self.share = as_share(share, "share")

    def _run(self, private: Handle) -> Outcome:
        share = self.share * self.budget
        # Constraints make all noise larger by the group size.
        left = (self.budget - share).over(self.policy.group_size)
        # About the L2 norm of the noise, for each number of frequencies.
        reach = _reach(self.domain.size, private.policy)
        rows = 2.0 * np.arange(reach.size) + private.policy.has_bottom
        noise = reach / equal_noise_epsilon(left) * np.sqrt(2.0 * rows)
        last_frequency = private.select(KeptFrequencies(noise), budget=share)
        strategy = Fourier(self.domain.size, last_frequency)
        measurement = private.measure(strategy, budget=private.remaining)
        return Outcome.of(measurement, {"frequencies": last_frequency})


@lru_cache(maxsize=16)
def _reach(cells: int, policy: Policy) -> FloatArray:
    """Return `typical_reach`, which is the larger part of a release, once."""
    return typical_reach(cells, policy)


def _wave(domain: Domain) -> Histogram:
    angles = 2.0 * np.pi * np.arange(domain.size) / max(domain.size, 1)
    counts = np.rint(20 + 18 * np.cos(angles)).astype(np.int64)
    return Histogram(domain, counts.reshape(domain.shape))

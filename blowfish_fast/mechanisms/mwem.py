"""MWEM: ask the query that is answered worst, learn from its noisy answer, repeat.

Pieces: choice of queries ``selections.queries``, noise on one answer
``strategies.answers``, updates from ``kernels.multiplicative_weights``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np

from .._typing import AnyArray, FloatArray, IntArray
from .._validation import as_integers, as_share
from ..buckets import Buckets
from ..domain import Domain
from ..errors import InputError
from ..handle import Handle, Measurement
from ..histogram import Histogram
from ..policies import Policy
from ..selections import WorstQuery
from ..selections.queries import Runs
from ..strategies import Answers, Cells
from ..workloads import Identity, Linear, Workload
from .base import Mechanism, Outcome

TOTAL_SHARE = Fraction(1, 20)
"""Part of epsilon that buys the number of records where it is private."""

FEWEST_ROUNDS, MOST_ROUNDS = 2, 150

STEP = 2.0
"""Step of the updates: four times the paper's, so that few passes settle them."""


class Mwem(Mechanism):
    """Release a histogram that agrees with the noisy answers to a few queries.

    Parameters
    ----------
    policy, workload, epsilon
        See `Mechanism`. Queries need whole coefficients; the ones that are asked are
        chosen from the workload.
    rounds : int, optional
        Number of queries asked, fixed in advance; None for .72 times the cube root of
        epsilon times the number of records (public, or the noisy number that was
        bought), which served best on the benchmark data.
    choice_share : number in (0, 1)
        Part of each round spent on choosing the query; the rest goes to its answer.
    passes : int
        How often the answers known so far pull the histogram after each round.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`, by sequential composition of the rounds
        and, where the number of records is private, of the share that buys it.
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: an edge (u, v) moves a query q by |q_u - q_v|: by 1 for ranges and
        other counts, whether a record is added, removed or moved.
    Error: depends on the data; not predicted, and no intervals are known.
    Complexity: O(n + m) for n cells and m queries, plus `passes` times the pieces
        between the ends of queries asked, in each round.
    Source: [1]_, with updates on pieces, and the number of records bought where it is
        not public; proof in ``docs/proofs/mwem.md``.

    References
    ----------
    .. [1] M. Hardt, K. Ligett, F. McSherry. A simple and practical algorithm for
       differentially private data release. NIPS 2012.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    >>> mwem = bf.Mwem(bf.policies.Full(line), ranges, epsilon=1, rounds=5)
    >>> release = mwem.release([5] * 32 + [90] * 32, rng=1)
    >>> release.details["rounds"], float(release.estimate.sum().round(6))
    (5, 3040.0)
    """

    name = "mwem"

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        epsilon: Any,
        rounds: int | None = None,
        choice_share: Any = Fraction(1, 2),
        passes: int = 100,
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon)
        self.rounds = None if rounds is None else _at_least_one(rounds, "rounds")
        self.choice_share = as_share(choice_share, "choice_share")
        self.passes = _at_least_one(passes, "passes")
        self.selector = WorstQuery(workload)

    def _run(self, private: Handle) -> Outcome:
        total, measurements = self._total(private)
        rounds = min(self.rounds or self._rounds(total), self.workload.queries)
        each = private.remaining / rounds
        pieces = _Pieces(self.domain.size, total)
        asked = np.zeros(self.workload.queries, dtype=np.bool_)
        queries: list[int] = []
        for done in range(rounds):
            answers = self.workload.answer(pieces.cells().reshape(self.domain.shape))
            selector = self.selector.against(answers, asked)
            query = private.select(selector, epsilon=each * self.choice_share)
            last = done == rounds - 1
            epsilon = private.remaining if last else each * (1 - self.choice_share)
            runs = self.selector.runs(query)
            measured = _measured(private, runs, epsilon)
            pieces.learn(runs, float(measured.noisy[0]), self.passes)
            measurements.append(measured)
            queries.append(query)
            asked[query] = True
        details = {"rounds": rounds, "queries": np.array(queries), "total": total}
        return Outcome(pieces.cells(), measurements, details, covers="nothing")

    def _total(self, private: Handle) -> tuple[float, list[Measurement]]:
        """Return the number of records, at least 1: public, or bought."""
        if not private.policy.components().private.any():
            return max(float(private.public_totals.sum()), 1.0), []
        whole = private.on(Buckets(np.array([0, self.domain.size])))
        bought = whole.measure(
            Cells.under(whole.policy), epsilon=TOTAL_SHARE * self.epsilon
        )
        return max(float(bought.noisy[0]), 1.0), [bought]

    def _rounds(self, total: float) -> int:
        """Return the number of rounds for a public number of records."""
        root = (total * float(self.epsilon)) ** (1 / 3)
        return int(np.clip(round(0.72 * root), FEWEST_ROUNDS, MOST_ROUNDS))

    @classmethod
    def example(
        cls, domain: Domain, policy: Policy, epsilon: Any
    ) -> tuple[Self, Histogram]:
        """Return three rounds over all cells, with a step in the counts."""
        counts = (np.arange(domain.size) * 3 // max(domain.size, 1) % 2 * 9).reshape(
            domain.shape
        )
        mechanism = cls(policy, Identity(domain), epsilon=epsilon, rounds=3)
        return mechanism, Histogram(domain, counts)


class _Pieces:
    """A histogram that is constant between the ends of the queries asked so far."""

    def __init__(self, cells: int, total: float) -> None:
        self.total = total
        self.edges = np.array([0, cells])
        self.masses = np.array([total])
        self.known: list[Runs] = []
        self.values: list[FloatArray] = []
        self.targets: list[float] = []

    def cells(self) -> FloatArray:
        """Return the mass of every cell."""
        return Buckets(self.edges).expand(self.masses)

    def learn(self, runs: Runs, target: float, passes: int) -> None:
        """Cut at the ends of a query, then pull towards all answers known."""
        from ..kernels.multiplicative_weights import pulled_masses

        edges = np.unique(np.concatenate([self.edges, runs.starts, runs.ends]))
        parent = np.searchsorted(self.edges, edges[:-1], side="right") - 1
        share = np.diff(edges) / np.diff(self.edges)[parent]
        self.masses, self.edges = self.masses[parent] * share, edges
        # Multiplicative weights want coefficients of at most 1.
        size = max(int(np.abs(runs.values).max(initial=0)), 1)
        self.known.append(runs)
        self.values.append(runs.values / size)
        self.targets.append(target / size)
        lengths = [one.starts.size for one in self.known]
        self.masses = pulled_masses(
            self.masses,
            np.concatenate([[0], np.cumsum(lengths)]),
            self._at(np.concatenate([one.starts for one in self.known])),
            self._at(np.concatenate([one.ends for one in self.known])),
            np.concatenate(self.values),
            np.array(self.targets),
            total=self.total,
            step=STEP,
            passes=passes,
        )

    def _at(self, cells: IntArray) -> AnyArray:
        """Return the piece that begins at each cell."""
        return np.searchsorted(self.edges, cells)


def _measured(private: Handle, runs: Runs, epsilon: Fraction) -> Measurement:
    """Measure one query, on buckets inside which it is constant."""
    size = private.policy.domain.size
    edges = np.unique(np.concatenate([[0], runs.starts, runs.ends, [size]]))
    row = np.zeros(edges.size - 1)
    for start, end, value in zip(*runs, strict=True):
        first, last = np.searchsorted(edges, [start, end])
        row[first:last] = value
    bucketed = private.on(Buckets(edges))
    strategy = Answers.under(bucketed.policy, Linear(Domain(edges.size - 1), row[None]))
    return bucketed.measure(strategy, epsilon=epsilon)


def _at_least_one(number: Any, name: str) -> int:
    whole = int(as_integers(number, name))
    if whole < 1:
        raise InputError(f"{name} must be at least 1; received {number!r}")
    return whole

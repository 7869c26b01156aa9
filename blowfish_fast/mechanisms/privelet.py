"""Privelet: noise on the Haar wavelet coefficients of a histogram.

Pieces: strategy ``strategies.haar``, transform from ``kernels.haar_transform``, noise
from ``kernels.discrete_laplace``.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, Unpack

from blowfish_fast._support.validation import as_choice
from blowfish_fast.measure.budgets import BudgetTerms
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.strategies.transforms.haar import Haar
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

from .base import Mechanism, Outcome
from .example_data import Example, repeated
from .fits import asks_ranges, halved_non_negative


class Privelet(Mechanism):
    """Release ranges or boxes from noisy Haar wavelet coefficients.

    A coefficient is the sum of a node's cells, or the difference of its halves.

    Parameters
    ----------
    policy, workload, epsilon
        See `Mechanism`; any number of ordered attributes. The workload does not change
        the noise.
    fit : {"best", None, "non_negative"}
        What is done to the estimate afterwards, at no cost. "non_negative": no cell is
        below 0, and totals are shared among halves, so that sums stay; "best" does so
        for ranges and cells of one attribute.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; differential privacy under `AddRemove`
        (unbounded) and `Full` (bounded, the total is public and exact).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: with m_i = ceil(log2 side_i), the product of the (m_i + 1) when a
        record is added or removed; when it moves, 2 m on a line and twice the product
        less 2^d on a grid with d sides above 1. The exact worst edge is found in
        integers; other policies are charged as if a record could move anywhere.
    Error: at most 2 (product of (m_i + 1))^2 / epsilon^2 per cell, of the order
        log^3 of each side for a range or box; the prediction is exact.
    Complexity: O(n) time and memory; the product of 2 m_i + 1 per box for its
        predicted error.
    Source: [1]_, with differences of sums in place of weighted averages, which leaves
        the noise on the integers, and a tree of nearly equal halves in place of empty
        cells up to a power of two; proof in ``docs/proofs/privelet.md``.

    References
    ----------
    .. [1] X. Xiao, G. Wang, J. Gehrke. Differential privacy via wavelet transforms.
       ICDE 2010.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(1000)
    >>> ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    >>> policy = bf.policies.AddRemove(line)
    >>> privelet = bf.mechanisms.Privelet(policy, ranges, epsilon=0.5)
    >>> release = privelet.release([3] * 1000, rng=1)
    >>> release.answer(ranges).shape
    (100,)
    """

    name = "privelet"
    cell_bytes = 96
    example_case = Example(partial(repeated, period=11, height=3))

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        fit: Literal["best", "non_negative"] | None = "best",
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, **budget)
        self.fit = as_choice(fit, "fit", ("best", None, "non_negative"))
        if fit == "best":
            self.fit = "non_negative" if asks_ranges(workload) else None

    def _run(self, private: Handle) -> Outcome:
        strategy = Haar(self.domain.shape)
        measurement = private.measure(strategy, budget=private.remaining)
        fits = self.fit is not None and not private.dry_run
        fit = partial(halved_non_negative, domain=self.domain) if fits else None
        return Outcome.of(measurement, {"fit": self.fit}, fit=fit)

"""Ordered mechanism: noisy running totals along one ordered attribute.

Pieces: strategy ``strategies.prefix_sums``, noise from ``kernels.discrete_laplace``,
monotone fit from ``kernels.isotonic_stretches``, piecewise-linear fit from
``kernels.piecewise_fit``.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, Unpack

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_choice
from blowfish_fast.errors import InputError
from blowfish_fast.measure.budgets import BudgetTerms
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.strategies import PrefixSums
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

from .base import Mechanism, Outcome
from .example_data import Example, stepped

Fit = Literal["isotonic", "piecewise"]


class Ordered(Mechanism):
    """Release ranges from noisy cumulative counts along an ordered attribute.

    Parameters
    ----------
    policy, workload, epsilon
        See `Mechanism`; over one ordered attribute. The workload does not change the
        noise.
    fit : {"isotonic", "piecewise", None}
        What is done to the noisy totals afterwards, at no cost. "isotonic": the
        closest totals that never decrease and stay between 0 and the public number of
        records. "piecewise": a penalised piecewise-linear fit first, more accurate
        where neighbouring cells are alike or epsilon is small, less where the counts
        are rough; for policies without "absent". None: nothing, so that answers are
        free of bias.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`. The total is published exactly where it is
        public, and so is the number of records of every stretch of the line that no
        record can leave; with "absent" the total is measured like all others.
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: the longest edge, in cells: 1 for `Line`, theta for `Threshold`, n - 1
        for `Full`; an edge from cell u to "absent" counts n - u.
    Error: twice the variance of the noise for a range, once for a prefix, before the
        fit; none for the whole line where its total is public.
    Complexity: O(n) time and memory; O(n log n) time for the piecewise fit.
    Source: [1]_, section 7.1, with noise on the integers and totals bounded below by 0;
        proof in ``docs/proofs/ordered.md``.

    References
    ----------
    .. [1] X. He, A. Machanavajjhala, B. Ding. Blowfish privacy: tuning privacy-utility
       trade-offs using policies. SIGMOD 2014.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ages = bf.Domain(100)
    >>> ranges = bf.workloads.Ranges(ages, [0, 20], [20, 65])
    >>> ordered = bf.Ordered(bf.policies.Line(ages), ranges, epsilon=1)
    >>> ordered.expected_error().round(4)
    array([1.8413, 3.6827])
    >>> ordered.release([10] * 100, rng=1).estimate.sum()
    np.float64(1000.0)
    """

    name = "ordered"
    cell_bytes = 128
    example_case = Example(partial(stepped, steps=2, height=5))

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        fit: Fit | None = "isotonic",
        **budget: Unpack[BudgetTerms],
    ) -> None:
        super().__init__(policy, workload, **budget)
        self._require_one_attribute("sums along")
        self.fit = as_choice(fit, "fit", (None, "isotonic", "piecewise"))
        if fit == "piecewise" and policy.has_bottom:
            raise InputError(
                'fit="piecewise" runs between totals that are known exactly, and under '
                f"this policy the total is private ({policy.neighbours}): reading it "
                'would cost infinitely much. Use fit="isotonic"'
            )

    def _run(self, private: Handle) -> Outcome:
        strategy = PrefixSums(self.domain.size)
        measured = private.measure(strategy, budget=private.remaining)
        if self.fit is None or private.dry_run:
            return Outcome.of(measured)
        totals = strategy.totals(measured.noisy, measured.scales)
        if self.fit == "piecewise":
            totals = self._piecewise(totals, measured)
        known = measured.scales.exact
        fitted = kernels.isotonic_fit(totals, known, low=0.0)
        return Outcome.of(measured, fit=lambda linear: np.diff(fitted, prepend=0.0))

    def _piecewise(self, totals: FloatArray, measured: Measurement) -> FloatArray:
        """Fit each stretch between exact totals; a parameter costs ln(cells) variances.

        The variance is that of the law that was drawn; cells are those of the stretch.
        """
        noisy = measured.scales.measured
        if not noisy.any():
            return totals
        ends = np.flatnonzero(measured.scales.exact)
        starts = np.append(0, ends[:-1] + 1)
        variance = float(measured.scales.variances[noisy].max())
        penalties = variance * np.log(ends - starts + 1.0)
        return kernels.piecewise_linear(totals, starts, ends, penalties)

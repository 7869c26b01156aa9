"""Noisy running totals along one ordered attribute: of cells, or of blocks of them."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np

from blowfish_fast._support.validation import as_choice, as_whole, read_only
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import InputError
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.strategies.hierarchy_plan import best_hierarchy
from blowfish_fast.measure.strategies.ordered_hierarchy import OrderedHierarchy
from blowfish_fast.measure.strategies.prefix_sums import (
    PrefixSums,
    monotone_buckets,
    straight_pieces,
)
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload

from .base import Mechanism, Outcome
from .example_data import Example, stepped

Fit = Literal["isotonic", "piecewise"]


class Ordered(Mechanism):
    """Release ranges from noisy cumulative counts along an ordered attribute.

    Takes one ordered attribute; the workload does not change the noise.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload
        What will be asked; answers to other queries are possible too.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    fit : {"isotonic", "piecewise", None}
        "isotonic": the closest totals that never decrease and stay between 0 and the
        public number of records. "piecewise": a penalised piecewise-linear fit first,
        more accurate where neighbouring cells are alike or epsilon is small, less where
        counts are rough; for policies without "absent". None: answers without bias.

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
    Source: X. He, A. Machanavajjhala, B. Ding. Blowfish privacy: tuning privacy-utility
        trade-offs using policies. SIGMOD 2014; section 7.1, with noise on the integers
        and totals bounded below by 0; proof in ``docs/proofs/ordered.md``.

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
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        fit: Fit | None = "isotonic",
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
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
        prepared = self._hold(private, lambda: strategy)
        measured = private.measure(prepared, budget=private.remaining)
        if self.fit is None or private.dry_run:
            return Outcome.of(measured)
        totals = strategy.totals(measured.noisy, measured.scales)
        if self.fit == "piecewise" and totals.variance:
            totals = straight_pieces(totals)
        cells = monotone_buckets(totals)
        return Outcome.of(measured, fit=lambda linear: cells)


class OrderedHierarchical(Mechanism):
    """Release ranges under a threshold policy: running totals of blocks, trees inside.

    Takes one ordered attribute. The structure is chosen for random ranges under
    `policy`, or under `Full` or `AddRemove` where that promises less error for the
    workload, after the fit where there is one.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload
        What will be asked; answers to other queries are possible too.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    fan_out : int, optional
        Most children of a node. None: the number from 2 to 64 of least predicted error.
    fit : {"isotonic", None}
        "isotonic": the totals at the ends of blocks are fitted as in `Ordered` and
        shared from the root of each tree down, so that no cell is negative. None:
        answers without bias.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`. Totals that are public are published
        exactly, as in `Ordered`; with "absent" the total is measured too.
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: an edge of at most theta cells crosses one end of a block and changes
        two ways down the trees. The exact worst edge is found in integers.
    Error: c1 / (epsilon of the borders)^2 + c2 / (epsilon of the trees)^2 at most for a
        random range (``strategies.hierarchy_plan``), less what least squares gains; the
        prediction is exact.
    Complexity: O(n) time and memory; O(log theta) per range for its predicted error.
    Source: the paper of `Ordered`, section 7.2, with the same noise in the first block
        as in all others (as printed, a move across its end costs up to 1.25 epsilon),
        exact least squares and noise on the integers; proof in
        ``docs/proofs/ordered.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(1000)
    >>> ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    >>> policy = bf.policies.Threshold(line, theta=50)
    >>> mechanism = bf.mechanisms.OrderedHierarchical(policy, ranges, epsilon=0.5)
    >>> release = mechanism.release([3] * 1000, rng=1)
    >>> release.details["fan_outs"], release.details["blocks"]
    ([8], 20)
    """

    name = "ordered_hierarchical"
    cell_bytes = 256
    example_case = Example(partial(stepped, steps=2, height=5))

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        fan_out: int | None = None,
        fit: Literal["isotonic"] | None = "isotonic",
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self._require_one_attribute("sums along")
        self.fit = as_choice(fit, "fit", (None, "isotonic"))
        if fan_out is not None:
            chosen = "None chooses it by predicted error"
            fan_out = as_whole(fan_out, "fan_out", 2, way_out=chosen)
        self.fan_out = fan_out

    def _run(self, private: Handle) -> Outcome:
        policy, budget = private.policy, private.remaining

        def plan() -> OrderedHierarchy:
            form = self.workload.form(Buckets.single_cells(self.domain.size))
            fitted = self.fit is not None
            chosen = best_hierarchy(policy, form, budget, self.fan_out, fitted=fitted)
            for array in chosen.pack().values():
                read_only(array)
            return chosen

        measured = private.measure(self._hold(private, plan), budget=budget)
        strategy = measured.strategy
        assert isinstance(strategy, OrderedHierarchy)
        details = {
            "blocks": strategy.blocks,
            "block_edges": strategy.edges,
            "fan_outs": np.unique(strategy.fan_outs).tolist(),
        }
        if self.fit is None or private.dry_run:
            return Outcome.of(measured, details)
        cells = strategy.increasing(measured.noisy, measured.scales)
        return Outcome.of(measured, details, fit=lambda _: cells)

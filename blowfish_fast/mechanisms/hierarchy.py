"""Two mechanisms for ranges: noisy totals of a tree, and noisy Haar coefficients.

Both measure sums over ever shorter stretches of cells, here over four cells a b c d:

    Hierarchy      a+b+c+d                      Privelet     a+b+c+d
                 a+b     c+d                                (a+b) - (c+d)
                a   b   c   d                               a - b    c - d

A range of many cells is then the sum of few noisy numbers. `Hierarchy` measures more
rows than there are cells and reconciles them by least squares; the rows of `Privelet`
are as many as the cells and have one solution.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, get_args

from blowfish_fast._support.validation import as_choice, as_number, as_whole
from blowfish_fast.data.buckets import cell_order
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.strategies import Haar
from blowfish_fast.measure.strategies.hierarchy_plan import tree_depth
from blowfish_fast.measure.strategies.trees.tree import (
    TreeStrategy,
    halved_non_negative,
    non_negative_cells,
)
from blowfish_fast.measure.strategies.trees.tree_weights import (
    FLOOR,
    level_tree,
    tuned_tree,
)
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Workload, asks_ranges

from .base import Mechanism, Outcome
from .example_data import Example, repeated, striped

Weights = Literal["uniform", "geometric", "greedy"]
Fit = Literal["best", "non_negative"]

NODE_BYTES = 128
"""Bytes that a node of a tree takes while intervals are asked for the first time."""

ROW_BYTES = 192
"""Bytes that are kept of a node besides, unless nodes that are alike share them."""


class Hierarchy(Mechanism):
    """Release ranges by a hierarchical histogram: noisy totals of all nodes of a tree.

    On several attributes the tree stands over the cells along a Hilbert curve.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload
        What will be asked; answers to other queries are possible too.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    strategy : {"uniform", "geometric", "greedy"}
        How the budget is shared along a path from the root to a leaf. "uniform": each
        level has an equal part. "geometric": parts grow by the cube root of two from
        each level to the one below, by the square root of two in rho. "greedy": parts
        are scaled to the workload.
    fan_out : int, optional
        Children of a node. By default that of `best_fan_out`; for "greedy" the one of
        least predicted error on the workload, among several that are tried.
    floor : number in [0, 1]
        Least weight of a leaf of a "greedy" tree: no cell has more than (1 + floor) /
        floor times the noise of `Laplace`, whatever was declared; 0 switches it off.
    fit : {"best", None, "non_negative"}
        "non_negative": each total is shared among the children of its node, from the
        root down, so that no cell is below 0 and children still add up to their node.
        "best" does so where cells of one attribute are asked, or ranges that do not all
        begin at the first cell. None publishes the least squares as they are.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; differential privacy under `AddRemove`
        (unbounded) and `Full` (bounded, the total is public and exact).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: one root-to-leaf path when a record is added or removed, h + 1 nodes
        for h levels below the root; two paths without the root when it moves, 2 h at
        most. The worst edge of any policy is found exactly, in integers; nodes that no
        edge crosses are published as they are.
    Error: with equal shares the mean squared error of a random range grows about in
        proportion to (f - 1) h^3 - 2 (f + 1) h^2 / 3, where f is the fan-out and h the
        number of levels below the root; the prediction is exact for every query.
    Complexity: O(n) time and memory; "greedy" O((m + n) log n) for m ranges.
    Source: [1]_, with any fan-out, chosen as in [2]_, geometric shares as in the paper
        of `QuadTree`, greedy scaling as in that of `Dawa`, exact least squares for all
        of them and noise on the integers; proof in ``docs/proofs/hierarchy.md``.

    References
    ----------
    .. [1] M. Hay, V. Rastogi, G. Miklau, D. Suciu. Boosting the accuracy of
       differentially private histograms through consistency. PVLDB 3(1), 2010.
    .. [2] W. Qardaji, W. Yang, N. Li. Understanding hierarchical methods for
       differentially private histograms. PVLDB 6(14), 2013.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(4096)
    >>> ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    >>> tree = bf.Hierarchy(bf.policies.AddRemove(line), ranges, epsilon=0.1)
    >>> tree.release([3] * 4096, rng=1).details["fan_out"]
    16
    """

    name = "hierarchy"
    cell_bytes = 256
    example_case = Example(partial(striped, stripes=3, height=7), {"fan_out": 2})

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        strategy: Weights = "uniform",
        fan_out: int | None = None,
        floor: Any = FLOOR,
        fit: Fit | None = "best",
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self.strategy = as_choice(strategy, "strategy", get_args(Weights))
        self.floor = as_number(floor, "floor", 0, 1)
        self.fit = best_fit(fit, workload)
        if fan_out is not None:
            fan_out = as_whole(fan_out, "fan_out", 2, way_out="None chooses it")
        self.fan_out = fan_out

    def _kept_bytes(self) -> int:
        # Totals that are public have no noise, and make their subtrees unlike others.
        parts = self.policy.components()
        alike = parts.count == 1 or bool(parts.private.all())
        # The least fan-out that may be chosen has the most nodes: a greedy tree may be
        # binary, and `best_fan_out` returns 3 or more on three cells and more.
        least = 2 if self.strategy == "greedy" else 3
        fan_out = self.fan_out or least
        nodes = self.domain.size * fan_out // (fan_out - 1) + 64
        return nodes * (NODE_BYTES if alike else NODE_BYTES + ROW_BYTES)

    def _run(self, private: Handle) -> Outcome:
        along = private.coarsened(cell_order(self.domain))
        prepared = self._hold(along, lambda: self._plan(along))
        measurement = along.measure(prepared, budget=along.remaining)
        tree = prepared.strategy
        assert isinstance(tree, TreeStrategy)
        details = {"fan_out": tree.fan_out, "fit": self.fit}
        fits = self.fit is not None and not private.dry_run
        fit = partial(non_negative_cells, measurement) if fits else None
        return Outcome.of(measurement, details, fit=fit)

    def _plan(self, along: Handle) -> TreeStrategy:
        """Return the tree over the cells in their order along the line."""
        policy, budget, cells = along.policy, along.remaining, self.domain.size
        if self.strategy == "greedy":
            return tuned_tree(
                self.workload.form(along.buckets),
                policy,
                budget=budget,
                fan_out=self.fan_out,
                floor=self.floor,
                public_form=True,
            )
        return level_tree(
            cells,
            self.fan_out or best_fan_out(cells),
            root_exact=not policy.has_bottom,
            geometric=self.strategy == "geometric",
            power=budget.power,
        )


class Privelet(Mechanism):
    """Release ranges or boxes from noisy Haar wavelet coefficients.

    A coefficient is the sum of all cells, or the sum over one half of a node's cells
    less that over the other half. The domain may have any number of ordered
    attributes. The workload does not change the noise.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload
        What will be asked; answers to other queries are possible too.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    fit : {"best", None, "non_negative"}
        As for `Hierarchy`; each total is shared among the parts that halving every axis
        makes.

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
    Source: X. Xiao, G. Wang, J. Gehrke. Differential privacy via wavelet transforms.
        ICDE 2010; with differences of sums in place of weighted averages, which leaves
        the noise on the integers, and a tree of nearly equal halves in place of empty
        cells up to a power of two; proof in ``docs/proofs/hierarchy.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(1000)
    >>> ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    >>> policy = bf.policies.AddRemove(line)
    >>> privelet = bf.mechanisms.Privelet(policy, ranges, epsilon=0.5)
    >>> privelet.release([3] * 1000, rng=1).answer(ranges).shape
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
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        fit: Fit | None = "best",
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self.fit = best_fit(fit, workload)

    def _run(self, private: Handle) -> Outcome:
        prepared = self._hold(private, lambda: Haar(self.domain.shape))
        measurement = private.measure(prepared, budget=private.remaining)
        fits = self.fit is not None and not private.dry_run
        fit = partial(halved_non_negative, domain=self.domain) if fits else None
        return Outcome.of(measurement, {"fit": self.fit}, fit=fit)


def best_fan_out(cells: int) -> int:
    """Return the fan-out f of least (f - 1) h^3 - 2 (f + 1) h^2 / 3: Lemma HI8.

    Here h is the number of levels below the root of a tree over so many cells, and the
    formula the mean variance of a random range, but for a factor.
    """
    if cells < 3:
        return 2
    offered = {_least_root(cells, levels) for levels in range(1, cells.bit_length())}

    def variance(fan_out: int) -> int:
        levels = tree_depth(cells, fan_out)
        return 3 * (fan_out - 1) * levels**3 - 2 * (fan_out + 1) * levels**2

    return min(sorted(offered), key=variance)


def _least_root(cells: int, levels: int) -> int:
    """Return the least fan-out, 2 or more, whose tree of `levels` covers `cells`."""
    # The root in floating point is only a guess, which whole powers correct: the third
    # root of 125 is 4.999999999999999 there.
    root: int = max(2, round(cells ** (1.0 / levels)))
    while root > 2 and (root - 1) ** levels >= cells:
        root -= 1
    while root**levels < cells:
        root += 1
    return root


def best_fit(fit: Any, workload: Workload) -> Any:
    """Read the argument `fit` of a mechanism that offers "non_negative" and no other.

    Parameters
    ----------
    fit : "best", "non_negative" or None
        What the caller gave.
    workload : Workload
        The queries.

    Returns
    -------
    "non_negative" or None
        The fit; "best" stands for "non_negative" where `asks_ranges` says so.
    """
    chosen = as_choice(fit, "fit", ("best", None, "non_negative"))
    if chosen == "best":
        return "non_negative" if asks_ranges(workload) else None
    return chosen

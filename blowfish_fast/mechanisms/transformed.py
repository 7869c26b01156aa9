"""Buckets first, then the best strategy on the collapsed policy graph.

    cells       0 - 1 - 2 - 3 - 4 - 5      a policy graph: neighbours are joined
    buckets     [ 0 ][   1   ][   2  ]     chosen privately, for a part of the budget
    quotient      0 --- 1 --- 2            buckets that an edge joins are joined
    measured    the strategy of least predicted error on the quotient, for the rest
    estimate    each bucket is spread evenly over its cells

`Transformed` takes any partition; `Matching` groups cells of similar counts, wherever
they lie.
"""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_choice, as_share
from blowfish_fast.data.buckets import cell_order
from blowfish_fast.errors import (
    BlowfishError,
    EpsilonError,
    InputError,
    PolicyError,
    SizeError,
)
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import (
    Handle,
    Measurable,
    Measurement,
    Rehearsal,
    can_select,
)
from blowfish_fast.measure.linear_strategy import PreparedStrategy
from blowfish_fast.measure.selectors.partitions import (
    DyadicTree,
    LeastCost,
    MatchingPairs,
    NoisySort,
    Partition,
)
from blowfish_fast.measure.selectors.partitions.dyadic import SHORTEST_LIMIT
from blowfish_fast.measure.selectors.partitions.matching_pairs import MOST_CELLS
from blowfish_fast.measure.strategies import Cells, Explicit, PrefixSums
from blowfish_fast.measure.strategies.cells import mean_noise
from blowfish_fast.measure.strategies.edge_lines import grid_shape
from blowfish_fast.measure.strategies.ordered_hierarchy import OrderedHierarchy
from blowfish_fast.measure.strategies.prefix_sums import (
    SINGLE_CELLS,
    monotone_buckets,
    smoothed_cells,
)
from blowfish_fast.measure.strategies.strategy_choice import (
    MOST_WEIGHED,
    NAMES,
    Name,
    all_choices,
    best_choice,
    build_strategy,
    mean_difference_size,
    predicted_variance,
)
from blowfish_fast.measure.strategies.trees.tree import halved_non_negative
from blowfish_fast.policies import Policy
from blowfish_fast.release.grants import BEFORE_DATA
from blowfish_fast.workloads import Workload

from .base import Mechanism, Outcome, read_partition
from .dawa import LONGEST, asks_stretches
from .example_data import Example, repeated, striped

ON_GRIDS: tuple[Name, ...] = ("cells", "edges", "tree", "edge_lines")
"""Strategies that need no order of the cells."""

SMALL_PART = 0.01
"""On a grid, buckets are left out if without them the predicted error of a query is at
most this part of the number of all records."""

MOST_COEFFICIENTS = 2**24
"""Coefficients of queries, which scattered buckets need cell by cell, up to which they
are listed to predict an error. Beyond this, noise is put on the buckets untried."""

SHARES = {
    "dyadic_tree": Fraction(1, 4),
    "least_cost": Fraction(1, 2),
    "noisy_sort": Fraction(7, 10),
}
"""Parts of epsilon for the partition that served best on the benchmark data."""


class Chosen(NamedTuple):
    """Where a strategy is measured, and which.

    Attributes
    ----------
    handle : Handle
        Access to the counts of its cells.
    strategy : LinearStrategy or PreparedStrategy
        The strategy, with its noise where the choice has worked that out.
    """

    handle: Handle
    strategy: Measurable


class Transformed(Mechanism):
    """Release a histogram under any policy graph: buckets, then the best strategy.

    Cells are grouped privately; the policy graph is collapsed onto the groups; what is
    measured there is chosen by predicted error; groups are expanded evenly.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload
        What will be asked; answers to other queries are possible too.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    partition : "best", None or Partition
        How buckets are chosen. None keeps every cell. "best": under a line policy no
        buckets but a smooth fit of the running totals; where rectangles are asked on a
        grid of joined neighbours, none if the noise along its lines is small beside the
        public number of records; `DyadicTree` everywhere else, with no bucket above a
        sixteenth of the line where ranges of one attribute are asked, but none where
        epsilon is too small for its sampler, which public values tell.
    strategy : str or strategies.Explicit
        "best" for least predicted error on the workload, or a name of
        ``strategies.strategy_choice``; or a matrix, without a partition.
    share : number in (0, 1), optional
        The part of the budget that the partition gets. By default it is a half with
        `LeastCost` and a quarter with `DyadicTree`.
    fit : {"best", None}
        "best": running totals that never decrease where totals were measured; where
        single cells are asked, the closest counts that are not negative; public totals
        of the policy's connected parts.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the partition and the measurement share
        epsilon (sequential composition, the second step on the quotient policy).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: that of the partition, which is halved where records move; then the
        exact worst edge of the quotient policy. Totals that no edge changes are exact.
    Error: the noise of the strategy, 4 / epsilon^2 per bucket on a line, 2 deg /
        epsilon^2 on edges, and the deviation of the data from means of buckets.
    Complexity: that of the partition, O(n log n); near-linear in the edges of the
        policy for its quotient, in the edges of the quotient for the choice.
    Source: the paper of `Matching`, with a private first step halved for moves, the
        price of a bucket that of the noise in use and noise on the integers; proof in
        ``docs/proofs/transformed.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> ring = bf.Domain(8)
    >>> policy = bf.policies.Graph(ring, [[i, (i + 1) % 8] for i in range(8)])
    >>> cells = bf.workloads.Identity(ring)
    >>> bucketed = bf.Transformed(policy, cells, epsilon=1)
    >>> bucketed.release([5] * 4 + [90] * 4, rng=1).estimate.sum().round(6)
    np.float64(380.0)
    """

    name = "transformed"
    example_case = Example(
        partial(striped, stripes=4, height=9), {"partition": LeastCost()}, cells=True
    )

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        partition: Literal["best"] | Partition | None = "best",
        strategy: Literal["best"] | Name | Explicit = "best",
        share: Any = None,
        fit: Literal["best"] | None = "best",
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        # `compare` has built the strategy to predict its error, and leaves it here with
        # the power of its budget, so that it is not built again. It follows from the
        # other arguments, and so is no part of what identifies a request.
        self._compared: tuple[int, PreparedStrategy] | None = None
        self.strategy = _checked_strategy(strategy, policy)
        self.fit = as_choice(fit, "fit", ("best", None))
        # As for `Dawa`: a partition that was asked for by name is refused where it
        # cannot be drawn; the best one is none there.
        self._takes_best = isinstance(partition, str)
        # On a line the fit finds the buckets by itself.
        self.smoothed = (
            isinstance(partition, str)
            and fit == "best"
            and strategy in ("best", "ordered")
            and is_line(policy)
        )
        whole = isinstance(strategy, Explicit) or strategy == "edge_lines"
        self.partition, self.share = self._checked_partition(partition, share, whole)
        # On a grid the choice waits for the number of records, which is public there.
        self.weighed = (
            isinstance(partition, str)
            and self.partition is not None
            and strategy == "best"
            and workload.mean_cells() > SINGLE_CELLS
            and is_grid(policy.unconstrained)
        )

    def _checked_partition(
        self, partition: Any, share: Any, whole: bool
    ) -> tuple[Partition | None, Fraction | None]:
        if isinstance(partition, str) and partition == "best":
            cells = self.workload.mean_cells()
            # In a domain of few cells the length of buckets is not limited.
            is_limited = self.domain.size > SHORTEST_LIMIT
            is_limited = is_limited and asks_stretches(self.workload)
            tree = DyadicTree(
                query_cells=cells,
                dimensions=self.domain.ndim,
                longest=LONGEST if is_limited else None,
            )
            partition = None if whole or self.smoothed else tree
        elif partition is not None and whole:
            raise InputError(
                "this strategy is laid over all cells; it goes with partition=None"
            )
        return read_partition(partition, share, SHARES)

    def _run(self, private: Handle) -> Outcome:
        # On a grid that is weighed, the number of records decides whether there are
        # buckets. It is public there, and still a fact about the data.
        chosen = self._whole_grid(private) if self.weighed else None
        is_public_choice = not self.weighed and not self._divides(private)
        if chosen is None and not self._divides(private):
            chosen = self._over_cells(private)
        elif chosen is None:
            chosen = self._over_buckets(private)
        measured = chosen.handle.measure(chosen.strategy, budget=private.remaining)
        buckets = measured.buckets
        details: dict[str, Any] = {
            "strategy": chosen.strategy.kind,
            "buckets": buckets.count,
        }
        if not buckets.are_single_cells:
            details["labels"] = buckets.labels
        if is_public_choice:
            # Nothing about the data decided what is measured. Intervals about a
            # population, of which the records are a sample, rest on that.
            details["laid_out"] = BEFORE_DATA
        fits = self.fit is not None and not private.dry_run
        fit = partial(self._fitted, private, measured) if fits else None
        return Outcome.of(measured, details, fit=fit)

    def _over_cells(self, private: Handle) -> Chosen:
        """Choose among strategies over all cells, in their own order or on a curve."""
        budget = private.remaining.over(self.policy.group_size)
        if isinstance(self.strategy, Explicit):
            return Chosen(private, self.strategy.under(private.policy))
        form = self.workload.form(private.buckets)
        if self.domain.ndim == 1:
            return self._best(private, form, budget, NAMES)
        if self.strategy in ON_GRIDS:
            return Chosen(private, self._named(private, form))
        along = private.coarsened(cell_order(self.domain))
        if self.strategy != "best":
            line_form = self.workload.form(along.buckets)
            return Chosen(along, self._named(along, line_form))
        if self.workload.mean_cells() <= SINGLE_CELLS or is_grid(private.policy):
            return self._best(private, form, budget, ON_GRIDS)
        line_form = self.workload.form(along.buckets)
        tuned: tuple[Name, ...] = ("tuned_tree",)
        offered = [
            (handle, choice)
            for handle, asked, names in (
                (private, form, ON_GRIDS),
                (along, line_form, tuned),
            )
            for choice in all_choices(
                handle.policy, asked, budget, names=names, hurried=True
            )
        ]
        handle, best = min(offered, key=lambda offer: offer[1].variance)
        assert best.prepared is not None, "noise on cells is always admitted"
        return Chosen(handle, best.prepared)

    def _named(self, handle: Handle, form: Any) -> Measurable:
        """Return the strategy that was asked for by name."""
        power = handle.remaining.power
        if self._compared is not None and self._compared[0] == power:
            return self._compared[1]
        assert not isinstance(self.strategy, Explicit)
        assert self.strategy != "best"
        return build_strategy(self.strategy, handle.policy, form, power)

    def _named_on_buckets(self, handle: Handle, form: Any) -> Measurable:
        """Return the strategy over buckets, or noise on these if it does not fit them.

        Which buckets there are is a private choice, and after it nothing may fail.
        """
        try:
            return handle.prepare(self._named(handle, form), budget=handle.remaining)
        except BlowfishError:
            return Cells.under(handle.policy)

    def _whole_grid(self, private: Handle) -> Chosen | None:
        """Return noise along the lines of a grid if it is small beside the records."""
        form = self.workload.form(private.buckets)
        budget = private.remaining.over(self.policy.group_size)
        lines = build_strategy("edge_lines", private.policy, form, budget.power)
        try:
            variance = predicted_variance(lines, private.policy, form, budget)
        except EpsilonError:
            # Noise along the lines would not fit 64 bits: far too large anyway.
            return None
        error = math.sqrt(variance / max(self.workload.queries, 1))
        if error > SMALL_PART * float(private.public_totals.sum()):
            return None
        return Chosen(private, lines)

    def _priced(self) -> tuple[Partition, Budget]:
        """Return the partition with the price of a bucket, and what it may spend."""
        assert self.partition is not None
        assert self.share is not None
        share = self.share * self.budget
        return self.partition.priced(self._bucket_price(self.budget - share)), share

    def _divides(self, private: Handle) -> bool:
        """Return whether there are buckets; public values alone decide."""
        if self.partition is None or not self._takes_best:
            return self.partition is not None
        priced, share = self._priced()
        each = share.over(self.policy.group_size)
        return can_select(priced, private.policy, self.domain.size, each)

    def _rehearse(self, private: Rehearsal) -> None:
        """Try both ways that a release on a grid may take; see `_whole_grid`.

        Which of them it takes depends on the number of records, which a rehearsal does
        not have. Whatever could fail must fail here, before anything is drawn.
        """
        super()._rehearse(private)
        if self.weighed:
            other = copy.copy(self)
            other.weighed = False
            Mechanism._rehearse(other, private)

    def _over_buckets(self, private: Handle) -> Chosen:
        """Choose buckets privately, then a strategy over them from public facts."""
        priced, share = self._priced()
        along = private.coarsened(cell_order(self.domain))
        bucketed = along.coarsened(along.select(priced, budget=share))
        form = self.workload.form(bucketed.buckets)
        offered = tuple(name for name in NAMES if name != "edge_lines")
        budget = private.remaining.over(self.policy.group_size)
        return self._best(bucketed, form, budget, offered)

    def _best(
        self, handle: Handle, form: Any, budget: Budget, names: tuple[Name, ...]
    ) -> Chosen:
        """Return the strategy that was asked for, or the one of least predicted error.

        The error is predicted from the workload (`form`), the budget and the policy of
        the handle; no counts are read.
        """
        if self.smoothed:
            return Chosen(handle, PrefixSums(handle.policy.domain.size))
        assert not isinstance(self.strategy, Explicit)
        if self.strategy != "best" and handle.buckets.are_single_cells:
            return Chosen(handle, self._named(handle, form))
        if self.strategy != "best":
            return Chosen(handle, self._named_on_buckets(handle, form))
        choices = all_choices(handle.policy, form, budget, names=names, hurried=True)
        best = choices[0].prepared
        return Chosen(handle, Cells.under(handle.policy) if best is None else best)

    def _bucket_price(self, budget: Budget) -> float:
        """Return the mean absolute noise of one bucket in the second step."""
        # On a line a bucket of neighbouring cells is measured as the difference of two
        # noisy running totals, one at each of its ends.
        is_contiguous = isinstance(self.partition, DyadicTree | LeastCost)
        by_totals = self.strategy in ("best", "ordered", "edges", "tree")
        if is_contiguous and by_totals and is_line(self.policy):
            if budget.power == 1:
                return mean_difference_size(self.policy.group_size / float(budget))
            each = float(budget.over(self.policy.group_size))
            # The difference of two totals of variance 1 / (2 rho) is normal with
            # variance 1 / rho; its mean size is sqrt(2 / pi) standard deviations.
            return math.sqrt(2.0 / (math.pi * each))
        return mean_noise(self.policy, budget)

    def _fitted(
        self, private: Handle, measured: Measurement, linear: FloatArray
    ) -> FloatArray:
        """Return the estimate after the fit, from what was published and public totals.

        Running totals must not decrease; single cells must not be negative; connected
        parts of the policy have public totals, which the estimate must meet.
        """
        strategy = measured.strategy
        if isinstance(strategy, PrefixSums | OrderedHierarchy):
            totals = strategy.totals(measured.noisy, measured.scales)
            buckets = (
                smoothed_cells(totals, self.workload.mean_cells())
                if self.smoothed
                else monotone_buckets(totals)
            )
            return _with_totals(private, measured.buckets.expand(buckets))
        if self.workload.mean_cells() <= SINGLE_CELLS:
            return _non_negative(private, linear)
        return _with_totals(private, linear)

    def _pieces(self) -> int:
        if self.strategy not in ("best", "edges", "tree"):
            # Only these list the policy's edges.
            return super()._pieces()
        try:
            edges = self.policy.edge_count
        except SizeError:
            edges = MOST_WEIGHED
        # The best strategy is sought among those with few edges.
        if self.strategy == "best":
            edges = min(edges, MOST_WEIGHED)
        return edges + super()._pieces()


def _checked_strategy(strategy: Any, policy: Policy) -> Any:
    """Return the strategy; refuse unknown names, and what the policy does not admit."""
    if isinstance(strategy, Explicit):
        return strategy.under(policy)
    if strategy != "best" and strategy not in get_args(Name):
        names = ", ".join(f'"{name}"' for name in ("best", *NAMES))
        raise InputError(
            f"strategy must be one of {names}, or strategies.Explicit(matrix); "
            f"received {strategy!r}"
        )
    if strategy == "h_theta" and policy.has_bottom:
        raise InputError(
            "h_theta reads the number of records, which is private under this policy "
            f"({policy.neighbours}); use ordered_hierarchical"
        )
    if strategy == "edge_lines":
        # Raises PolicyError unless the policy joins neighbours on a grid.
        grid_shape(policy.unconstrained)
    return strategy


def is_grid(policy: Policy) -> bool:
    """Return whether records move only between neighbouring cells of a grid."""
    try:
        grid_shape(policy)
    except PolicyError:
        return False
    return policy.has_moves


def is_line(policy: Policy) -> bool:
    """Return whether records move only between neighbours of one ordered attribute."""
    if policy.domain.ndim != 1 or policy.has_bottom or not policy.has_moves:
        return False
    # For each cell, the farthest cell that an edge joins to it.
    band = policy.unconstrained.bandwidth()
    return band is not None and bool((band.far - np.arange(band.far.size)).max() <= 1)


def _non_negative(private: Handle, linear: FloatArray) -> FloatArray:
    """Return the closest counts of 0 or more that meet all public totals."""
    components = private.policy.components()
    if components.private.any():
        return halved_non_negative(linear, private.policy.domain)
    labels = components.labels
    parts = np.zeros(linear.size, dtype=np.int64) if labels is None else labels
    return kernels.non_negative_with_totals(linear, parts, private.public_totals)


def _with_totals(private: Handle, estimate: FloatArray) -> FloatArray:
    """Meet the public totals of connected parts, which buckets may have mixed."""
    components = private.policy.components()
    labels = components.labels
    if labels is None or components.private.any():
        return estimate
    totals = private.public_totals
    missing = totals - np.bincount(labels, estimate, minlength=totals.size)
    if (np.abs(missing) <= 1e-6 + 1e-9 * totals).all():
        return estimate
    if (estimate >= 0.0).all():
        return _non_negative(private, estimate)
    shifted: FloatArray = estimate + (missing / np.bincount(labels))[labels]
    return shifted


class Matching(Mechanism):
    """Release a histogram by clustering cells of similar counts, wherever they lie.

    Suits counts that repeat in no order: categories, or spikes of a few heights. Where
    neighbouring cells are alike, `Dawa` and `Transformed` are more accurate.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable. There is no default.
    workload : Workload
        What will be asked; answers to other queries are possible too.
    epsilon, rho, delta : number
        The budget that one release spends: `epsilon` alone for Laplace noise, `rho`
        alone for Gaussian noise, or `epsilon` with `delta`; see `Mechanism`.
    partition : "best", MatchingPairs or NoisySort
        How like cells are found. "best" compares every pair of up to 512 cells
        (`MatchingPairs`, with the extra ``matching``), and groups more cells by noisy
        counts (`NoisySort`).
    share : number in (0, 1), optional
        Part of the budget spent on the partition; None for its own default.

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the partition and the measurement share
        epsilon (sequential composition, the second step on the quotient policy).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: that of the partition; then 1 or 2 on buckets, or 1 on each edge of
        the quotient policy, whichever gives the queries less noise.
    Error: the noise of the buckets, and the deviation of the data from their means.
        Pairs divide the variance of a cell's noise by at most 4.
    Complexity: that of the partition, O(n^3) for all pairs and O(n log n) for noisy
        counts, and near-linear in the edges of the policy for its quotient.
    Source: A. Anuarbek. Data-dependent Blowfish private algorithm for histogram
        queries; sections 4 and 5.2, with half of epsilon under moves and exact discrete
        noise; proof in ``docs/proofs/buckets_of_equals.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(6)
    >>> matching = bf.mechanisms.Matching(
    ...     bf.policies.Full(line), bf.workloads.Identity(line), epsilon=1
    ... )
    >>> matching.release([3, 900, 3, 900, 50, 3], rng=3).details["labels"]
    array([0, 1, 0, 1, 2, 3])
    """

    name = "matching"
    example_case = Example(partial(repeated, period=3, height=40), cells=True)

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        partition: Literal["best"] | MatchingPairs | NoisySort = "best",
        share: Any = None,
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        if isinstance(partition, str) and partition == "best":
            few = self.domain.size <= MOST_CELLS
            partition = MatchingPairs() if few else NoisySort()
        if not isinstance(partition, MatchingPairs | NoisySort):
            raise InputError(
                'partition must be "best", partitions.MatchingPairs() or '
                f"partitions.NoisySort(); received {partition!r}. Transformed takes "
                "other partitions"
            )
        self.partition = partition
        self.share = as_share(share, "share", partition.default_share)

    def _run(self, private: Handle) -> Outcome:
        share = self.share * self.budget
        price = mean_noise(self.policy, self.budget - share)
        buckets = private.select(self.partition.priced(price), budget=share)
        bucketed = private.coarsened(buckets)
        left = private.remaining.over(self.policy.group_size)
        strategy = self._strategy(bucketed, left)
        measurement = bucketed.measure(strategy, budget=private.remaining)
        details = {
            "labels": buckets.labels,
            "buckets": buckets.count,
            "strategy": strategy.kind,
        }
        return Outcome.of(measurement, details)

    def _strategy(self, bucketed: Handle, budget: Budget) -> Measurable:
        """Put noise on buckets or on edges; this reads public facts only."""
        covered = self.workload.queries * self.workload.mean_cells()
        scattered = bucketed.buckets.order is not None
        try:
            if not scattered or covered <= MOST_COEFFICIENTS:
                form = self.workload.form(bucketed.buckets)
                return best_choice(
                    bucketed.policy, form, budget, names=("cells", "edges")
                )
        except SizeError:
            pass
        return Cells.under(bucketed.policy)

    def _pieces(self) -> int:
        # Buckets of scattered cells turn every cell of a query into a piece.
        covered = self.workload.queries * self.workload.mean_cells()
        return int(min(covered, MOST_COEFFICIENTS)) + super()._pieces()

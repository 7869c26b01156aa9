"""DAWA: buckets chosen from the data, then a tree tuned to the workload.

Rectangles of a map follow evenness, an adaptive grid follows density; neither serves
scattered and concentrated data alike, so a private test chooses (Lemma SC5). On a line
a test that costs next to nothing says how rough it is, and so what buckets are worth
(Lemma SC7); where cells are asked, another says whether records stand in spikes, which
single cells show and buckets lose (Lemma SC9).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray
from blowfish_fast._support.validation import as_choice, as_number
from blowfish_fast.data.buckets import Buckets, cell_order
from blowfish_fast.data.domain import is_wide
from blowfish_fast.data.wide.map_curve import MapBuckets
from blowfish_fast.errors import InputError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle, Measurement, can_select
from blowfish_fast.measure.selectors.partitions import (
    Descent,
    DyadicRectangles,
    DyadicTree,
    Partition,
)
from blowfish_fast.measure.selectors.partitions.dyadic import SHORTEST_LIMIT
from blowfish_fast.measure.selectors.selections import (
    PairTest,
    RoughnessTest,
    ScatterTest,
    SpikeTest,
)
from blowfish_fast.measure.strategies import Cells, LinearStrategy, TreeStrategy
from blowfish_fast.measure.strategies.cells import mean_noise
from blowfish_fast.measure.strategies.trees.box_tree import count_epsilon, rough_total
from blowfish_fast.measure.strategies.trees.tree import (
    halved_non_negative,
    monotone_cells,
    non_negative_cells,
)
from blowfish_fast.measure.strategies.trees.tree_weights import (
    FLOOR,
    MOST_PAIRED,
    level_tree,
    tuned_tree,
)
from blowfish_fast.policies import AddRemove, Full, Line, Policy
from blowfish_fast.release.file import Release
from blowfish_fast.release.guarantee import Guarantee, new_identity
from blowfish_fast.release.wide.ranges_release import RangesRelease
from blowfish_fast.workloads import (
    Form,
    Identity,
    Ranges,
    Rectangles,
    Union,
    Workload,
    asks_ranges,
)

from .base import PIECE_BYTES, Mechanism, Outcome, _version, read_partition
from .example_data import Example, striped
from .maps.grids import AdaptiveGrid
from .wide_questions import check_unfitted, check_wide

StrategyName = Literal["greedy", "uniform", "geometric", "cells"]
Fit = Literal["best", "non_negative", "isotonic", "shrink", "runs"]

MOST_MAP_PIECES = 2**21
"""Runs of buckets of a wide map that the tree is tuned to; a box cuts any number."""

# Beyond, rectangles would declare more than 10 GiB, and a bucket for every one of 2^26
# cells took 187 CPU seconds.
MOST_RECTANGLE_CELLS = 2**26
"""Cells of a map that is divided into rectangles by default."""
# The grid takes more than twice the memory of rectangles, and which of both it will be
# is not known beforehand.
MOST_GRID_CELLS = 2**24
"""Cells of a map on which a test may choose the adaptive grid instead."""

# How many buckets there are is drawn, so every cell counts as one. Measured where each
# is: designs in rho took 417 bytes a cell; on lines where trees are tuned one by one,
# single cells took 141 at most, ranges under the first two of the plain policies 125,
# and other stretches 146. Rectangles of a map took 125 beside the pieces of queries.
RHO_BYTES = 512
CELLS_BYTES = 160
STRETCHES_BYTES = 192
RANGES_BYTES = 152
RECTANGLES_BYTES = 136
PLAIN_POLICIES = (AddRemove, Full, Line)

LONGEST = Fraction(1, 16)
"""Part of a line that a bucket covers at most, where ranges are asked."""

# The constants of the look were chosen on the seven given histograms and on six
# generated lines of 4,096 cells (steps, hills, shuffled ranks, a comb), none on the
# sets by which ``docs/explanation/how_the_defaults_were_chosen.md`` judges.
FEWEST_CELLS = 1024
"""A shorter line is not looked at: what the look costs would not be little."""
LOOK_CELLS = 20
"""The look gets this over the number of cells of the budget."""
ROUGH_SHARE = Fraction(1, 20)
"""Part of the budget for the partition of a rough line."""
# Chosen, with its bound, on the given histograms, on those of "long buckets" on that
# page, and on 44 generated lines of other seeds, heaped numbers and spikes among them.
UNEVEN_SHARE = Fraction(1, 10)
"""Part of the budget for the partition of an uneven line, between smooth and rough."""

# Chosen on the seven given histograms, on fifteen generated lines of 4,096 cells and on
# level steps, all with seeds of their own.
MOST_UNEVEN = 8.0
"""Cells of a bucket that follow its neighbours deviate from even ones by at most so
many times the noise of a count at the budget of the partition."""

LEAST_VARIANCE = 2.0**-6
"""With less noise than this a total is as good as known, and told by no neighbour."""


class LookSettings(NamedTuple):
    """How a line is looked at.

    Attributes
    ----------
    price : float
        Price of a bucket in the look, in units of the mean noise of a count.
    uneven : float
        Roughness from which on a line needs more buckets than a smooth one.
    rough : float
        Roughness from which on it needs many, which little budget finds.
    rugged : float
        Roughness from which on no buckets are looked for.
    """

    price: float
    uneven: float
    rough: float
    rugged: float

    @property
    def steps(self) -> tuple[float, ...]:
        """The bounds between the grades: smooth, uneven, rough, rugged."""
        return self.uneven, self.rough, self.rugged


RANGES_LOOK = LookSettings(price=3.0, uneven=0.035, rough=0.1, rugged=0.5)
"""For ranges and prefixes: the noise of a bucket is in many answers."""
# Nothing lies between smooth and rough: another share was not measured for cells.
CELLS_LOOK = LookSettings(price=1.0, uneven=0.2, rough=0.2, rugged=0.55)
"""For single cells."""

# The constants below were chosen on the seven given histograms and on generated lines
# of 4,096 cells with seeds of their own (steps, hills, ranks, spikes, islands, a comb).
DOUBT = 0.1
"""Up to this grade of spikes, either way, a second test is bought: twice the noise."""
SPIKE_SHARE = Fraction(1, 20)
"""Part of the budget that buys the second test."""

# Chosen on the seven given histograms and on ten generated lines of 4,096 cells (7 to
# 400 spikes of equal and other heights, clumps, ranks).
PAIRS_DIFFER = 1.7
"""Differences inside pairs, in noise of a count for each cell, from which on buckets of
two cells are cut where ranges are asked of an uneven or rough line."""
FEWEST_IN_BUCKET = 3
"""Cells of a bucket there; shorter ones are cut into single cells."""

# The constants below were chosen on four maps, thinned and blurred; none was chosen on
# the fresh maps by which ``docs/explanation/how_the_defaults_were_chosen.md`` judges.
RECORDS_SHARE = Fraction(1, 100)
"""Part of the budget that buys the number of records, where that is private."""
AGAIN_SHARE = Fraction(5, 100)
"""Part that buys it a second time, where the first answer is lost in its noise."""
THRESHOLD = 2.0
"""Data count as scattered above this over the root of records times epsilon."""
LEAST_THRESHOLD = 0.002
"""The least part of all records at which the test for scatter is set."""
MOST_THRESHOLD = 0.25
"""The largest such part: the test knows no larger one."""
DENSE_MASS = 40_000
"""Records times epsilon from which on a map is dense, which suits a grid."""
DENSE_THRESHOLD = 1.2
"""Takes the place of `THRESHOLD` on dense maps."""
SHARE = 3.0
"""The test gets this over the root of records times epsilon of the budget."""
LEAST_SHARE = 0.002
"""The least part of the budget that the test gets."""
MOST_SHARE = 0.06
"""The largest part of the budget that the test gets."""
# What the number of records, asked twice, and the test leave at least.
LEAST_LEFT = 1 - RECORDS_SHARE - AGAIN_SHARE - Fraction(MOST_SHARE)
PRICE = 0.3
"""Price of a bucket in the test, as a part of its price in the partition."""
SHARE_BITS = 20
"""Parts of the budget are rounded down to so many binary digits."""
FEWEST_PARTS = 10
"""An adaptive grid has at least so many parts per axis, if there are records enough."""


class Dawa(Mechanism):
    """Release ranges of a histogram by a data- and workload-aware algorithm (DAWA).

    Cells of similar counts are merged privately into buckets; the buckets are measured
    by a tree whose noise is tuned to the workload, and expanded. Suits counts
    with flat stretches, and small epsilons.

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
        How buckets are chosen; "best", fixed on the benchmark data, is
        `DyadicRectangles` on two attributes of at most 2^26 cells, and `DyadicTree`
        otherwise, along a Hilbert curve where there are several, and with no bucket
        above a sixteenth of the line where ranges of one attribute are asked, or, for
        an epsilon, above an eighth where longer ones, as drawn, cover two thirds of it
        beside short ones; on a `WideDomain` of one attribute, or of two, it is
        `Descent`, which alone serves there, along boxes of a map. Where
        ranges or cells of a line of 1,024 cells or more are asked for an epsilon, it
        first spends 20 over the number of cells of epsilon on a private test how rough
        the line is (``details["roughness"]``): a smooth line (0) gets 1/5 for its
        partition, an uneven one (1) gets 1/10, a rough one (2) gets 1/20, a rugged one
        (3) keeps its cells. Of an uneven or rough line of which ranges are asked, a
        test of the same price says whether neighbours differ much; then buckets of two
        cells are cut. Where cells are asked, lines are smooth, rough or rugged, and
        none is uneven; under `AddRemove`, as much again, and 5 % of epsilon where a
        smooth line leaves doubt, buys a private test whether records stand in spikes;
        then cells are kept, too (``details["chosen"]`` is "cells"). Where
        rectangles of a map of at most 2^24 cells are asked, it first spends 1 to 7 %
        of epsilon, 12 % where there are few records, on a private test whether the
        data are scattered, and releases an `AdaptiveGrid` if they are
        (``details["chosen"]``), which joins boxes that seem alike
        (``details["joined"]`` regions). Where epsilon is too small for the sampler,
        which public values tell, such a map is released by the grid without a test,
        and other domains cell by cell. None keeps every cell.
    strategy : {"greedy", "uniform", "geometric", "cells"}
        Weights of the tree: scaled to the workload (with the fan-out of least
        predicted error), equal by level, growing towards the leaves, or no tree.
    share : number in (0, 1), optional
        Part of the budget spent on the partition; None for its own default, or for what
        a test of the line says. A share that is stated is spent without a test.
    sweeps : bool
        Whether greedy weights for ranges are improved by sweeps that see the whole
        tree; queries that were not declared are safeguarded.
    floor : number in [0, 1]
        Least weight of a leaf of a "greedy" tree, as for `Hierarchy`.
    fit : {"best", None, "non_negative", "isotonic", "shrink", "runs"}
        "non_negative": as for `Hierarchy`. "isotonic", on one attribute: the closest
        running totals that never decrease, which are off by no more than without it,
        on average over all of them, in any release. "shrink", for cells and not for
        ranges: noisy buckets shrink towards 0 as much as all of them together suggest;
        ranges asked of it give a `ShrunkCellsWarning`. "runs": neighbouring buckets
        whose noisy totals suggest one height are drawn towards it, where that is
        clearly likelier than heights of their own, and buckets shrink where it is not;
        ``details["fit"]`` says which; single cells of a line under `AddRemove` shrink
        as their neighbours suggest, too, and cells of spikes are medians of what each
        may be, given all of them ("medians"). "best": "runs" for `Identity` of a line
        under `AddRemove`, "isotonic" for `Prefixes` under `AddRemove`, `Full` and
        `Line`, "non_negative" for other ranges and cells of one attribute; where
        buckets of ranges are fitted so by default for an epsilon alone, cells of four
        or more in a bucket follow the buckets beside it, as far as all of them suggest
        ("smooth").

    Notes
    -----
    Guarantee: epsilon-Blowfish for `policy`; the partition and the measurement share
        epsilon (sequential composition, the second step on the quotient policy), on
        maps with the number of records and the test, on lines with the test
        (``docs/proofs/dawa.md``).
    Neighbours: one record moves along one edge of `policy`.
    Sensitivity: that of the partition, and one root-to-leaf path of the tree (two
        where records move), exactly for every policy; nodes that no edge crosses, the
        root where the total is public among them, are published as they are.
    Error: the noise of the tree, and the deviation of the data from means of buckets.
    Complexity: O(n log n) for the partition, O(n log^2 n) for rectangles,
        O((m + k) log k) for m ranges on k buckets; memory O(n + m).
    Source: C. Li, M. Hay, G. Miklau, Y. Wang. A data- and workload-aware algorithm for
        range queries under differential privacy. PVLDB 7(5), 2014; with a private first
        stage in place of the published one, wider trees and exact discrete noise; proof
        in ``docs/proofs/dawa.md``.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(64)
    >>> ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    >>> dawa = bf.Dawa(bf.policies.AddRemove(line), ranges, epsilon=0.5)
    >>> dawa.release([5] * 32 + [90] * 32, rng=1).answer(ranges).shape
    (100,)
    """

    name = "dawa"
    takes_wide = True
    # Only where it is True an instance has its own: all others keep the fingerprint
    # that ledgers know.
    looks_first: bool = False
    """Whether a test of the line comes before its partition."""
    keeps_even: bool = False
    """Whether buckets stay even: only where "non_negative" was asked for by name."""
    takes_medians: bool = False
    """Whether cells are posterior medians: only after a test has found spikes."""
    example_case = Example(partial(striped, stripes=4, height=9))

    def __init__(
        self,
        policy: Policy,
        workload: Workload,
        *,
        epsilon: Any = None,
        rho: Any = None,
        delta: Any = None,
        partition: Literal["best"] | Partition | None = "best",
        strategy: StrategyName = "greedy",
        share: Any = None,
        sweeps: bool = True,
        floor: Any = FLOOR,
        fit: Fit | None = "best",
    ) -> None:
        super().__init__(policy, workload, epsilon=epsilon, rho=rho, delta=delta)
        self.tests_scatter = False
        # A partition that was asked for by name is refused where it cannot be drawn;
        # the best one is another there.
        wide = is_wide(self.domain)
        self._takes_best = isinstance(partition, str) and partition == "best"
        self._takes_best = self._takes_best and not wide
        if wide:
            partition = check_wide(policy, workload, partition)
            check_unfitted(fit)
            fit = None
        elif self._takes_best:
            typical = workload.mean_cells()
            if self.domain.ndim == 2 and self.domain.size <= MOST_RECTANGLE_CELLS:
                partition = DyadicRectangles(query_cells=typical)
            else:
                dimensions = self.domain.ndim
                # Of fewer cells no bucket is cut.
                cut = self.domain.size > SHORTEST_LIMIT and asks_stretches(workload)
                partition = DyadicTree(
                    query_cells=typical,
                    dimensions=dimensions,
                    longest=LONGEST if cut else None,
                    # In rho it was not measured.
                    loosens=cut and self.budget.power == 1,
                )
            # The rectangles are one of two ways to divide a map; a test chooses.
            on_map = isinstance(partition, DyadicRectangles) and asks_boxes(workload)
            on_map = on_map and self.domain.size <= MOST_GRID_CELLS
            self.tests_scatter = on_map and (policy.has_bottom or policy.has_moves)
            looked_at = self.domain.size >= FEWEST_CELLS and self.budget.power == 1
            on_line = asks_stretches(workload) or asks_cells(workload)
            if looked_at and share is None and on_line:
                self.looks_first = True
        self.partition, self.share = read_partition(partition, share)
        if isinstance(partition, DyadicRectangles):
            partition.check_grid(self.domain)
        strategy = as_choice(strategy, "strategy", get_args(StrategyName))
        self.fit = as_choice(fit, "fit", ("best", None, *get_args(Fit)[1:]))
        if fit == "best":
            self.fit = "non_negative" if asks_ranges(workload) else None
            if type(policy) in PLAIN_POLICIES and workload.closed_form == "prefixes":
                self.fit = "isotonic"
            tuned = strategy in ("greedy", "cells") and self.budget.power == 1
            single = asks_cells(workload)
            if tuned and single and isinstance(policy.unconstrained, AddRemove):
                # A tree that is scaled to single cells measures these alone.
                strategy, self.fit = "cells", "runs"
        elif fit == "non_negative":
            self.keeps_even = True
        if fit in ("shrink", "runs") and strategy != "cells":
            raise InputError(
                f'fit="{fit}" improves single cells and harms ranges; it goes with '
                f'strategy="cells", received {strategy!r}'
            )
        if fit == "isotonic" and self.domain.ndim > 1:
            received = f"{self.domain.ndim} attributes; use fit='non_negative'"
            raise InputError(f"fit='isotonic' is for one attribute, not {received}")
        self.strategy = strategy
        self.sweeps = sweeps
        self.floor = as_number(floor, "floor", 0, 1)

    def _run(self, private: Handle) -> Outcome:
        if self.looks_first:
            return self._looked(private)
        if not self.tests_scatter:
            return self._divided(private)
        assert isinstance(self.partition, DyadicRectangles)
        assert self.share is not None
        can_divide = self._can_divide(private, LEAST_LEFT * private.remaining)
        chosen = chosen_map(
            private, self.partition, self.policy, self.share, test=can_divide
        )
        # What is left follows noisy numbers that are paid for. The sampler's rounding
        # need not shrink with it, so this is asked once more: no draw may fail.
        if chosen.scattered or not self._can_divide(private, private.remaining):
            name, outcome = AdaptiveGrid.name, self._refined(private, chosen)
        else:
            rectangles = self.at(private.remaining)
            name, outcome = self.partition.name, rectangles._divided(private)
        measurements = [*chosen.bought, *outcome.measurements]
        details = {**outcome.details, "chosen": name}
        measurement = outcome.published[0]
        return replace(
            outcome, measurements=measurements, details=details, stacked=measurement
        )

    def _looked(self, private: Handle) -> Outcome:
        """Grade the line, then divide it as suits the grade: Lemma SC7."""
        assert isinstance(self.partition, DyadicTree)
        budget = private.remaining
        part = Fraction(LOOK_CELLS, self.domain.size)
        set_to = CELLS_LOOK if asks_cells(self.workload) else RANGES_LOOK
        look = RoughnessTest(
            self.partition.length_weights(self.domain.size),
            price=set_to.price * mean_noise(self.policy, budget),
            steps=set_to.steps,
        )
        rough = self._with_share(ROUGH_SHARE)
        each = (part * budget).over(self.policy.group_size)
        # Both are public: what could not be drawn is not looked for.
        if not can_select(look, private.policy, self.domain.size, each) or (
            not rough._can_divide(private, budget - part * budget)
        ):
            return self._divided(private)
        grade = private.select(look, budget=part * budget)
        uneven = self._with_share(UNEVEN_SHARE)
        ways = (self, uneven, rough, self._with_share(None))
        way, chosen = ways[grade], {}
        rugged = len(ways) - 1
        if grade < rugged and self._in_spikes(private, look, rough=grade > 0):
            way, chosen = self._with_share(None), {"chosen": "cells"}
            way.takes_medians = self.fit == "runs"
        elif 0 < grade < rugged and self._pairs_differ(private, rough):
            way.partition = self.partition.without_shorter(FEWEST_IN_BUCKET)
        if way.partition is None:
            private.end_choices()
        outcome = way.at(private.remaining)._divided(private)
        details = {**outcome.details, "roughness": grade, **chosen}
        return replace(outcome, details=details)

    def _in_spikes(self, private: Handle, look: RoughnessTest, *, rough: bool) -> bool:
        """Ask whether single cells tell more than buckets: Lemma SC9.

        On a smooth line in doubt it is asked again; a rough one in doubt keeps cells.
        """
        alone = asks_cells(self.workload) and self.strategy == "cells"
        if not alone or not isinstance(self.policy.unconstrained, AddRemove):
            return False
        budget, size = private.remaining, self.domain.size
        part = Fraction(LOOK_CELLS, size)
        tests = [
            SpikeTest(
                look.level_weights[0],
                price=look.price,
                largest=math.ceil(look.price),
                steps=steps,
            )
            for steps in ((-DOUBT, DOUBT), (0.0,))
        ]
        shares = [part * budget, SPIKE_SHARE * budget]
        least = budget - shares[0] - shares[1]
        drawable = [
            can_select(test, private.policy, size, share.over(self.policy.group_size))
            for test, share in zip(tests, shares, strict=True)
        ]
        # All of this is public: what could not be drawn is not asked for.
        divided = self._with_share(ROUGH_SHARE)
        if not all(drawable) or not divided._can_divide(private, least):
            return False
        grade = private.select(tests[0], budget=shares[0])
        if grade == 1 and not rough:
            return bool(private.select(tests[1], budget=shares[1]))
        return bool(grade > 0)

    def _pairs_differ(self, private: Handle, rough: Self) -> bool:
        """Ask whether the pairs of a line differ too much: Lemma SC11."""
        if not asks_stretches(self.workload):
            return False
        budget, size = private.remaining, self.domain.size
        share = Fraction(LOOK_CELLS, size) * budget
        test = PairTest(steps=(PAIRS_DIFFER * mean_noise(self.policy, budget),))
        each = share.over(self.policy.group_size)
        # All of this is public: what could not be drawn is not asked for.
        if not can_select(test, private.policy, size, each) or (
            not rough._can_divide(private, budget - share)
        ):
            return False
        return bool(private.select(test, budget=share))

    def _with_share(self, share: Fraction | None) -> Self:
        """Return the same recipe with another share; None keeps every cell."""
        other = copy.copy(self)
        other.share = share
        other.partition = self.partition if share is not None else None
        # The price of a bucket follows the share.
        for memo in ("_price", "_priced", "_smoothing"):
            other.__dict__.pop(memo, None)
        return other

    def _refined(self, private: Handle, chosen: MapChoice) -> Outcome:
        private.end_choices()
        grid = AdaptiveGrid(
            self.policy,
            self.workload,
            records=round(chosen.records),
            fewest_parts=chosen.fewest_parts,
            joins=True,
            epsilon=private.remaining,
        )
        return grid._run(private)

    def _divided(self, private: Handle) -> Outcome:
        """Divide into buckets by the partition, and measure these."""
        # Rectangles are chosen on the grid itself, everything else along its curve.
        on_grid = isinstance(self.partition, DyadicRectangles)
        if isinstance(self.partition, Descent) and self.partition.curve is not None:
            along = private.along(self.partition.curve)
        elif on_grid or is_wide(self.domain):
            along = private
        else:
            along = private.coarsened(cell_order(self.domain))
        buckets = self._buckets(along)
        bucketed = along.coarsened(buckets)
        details: dict[str, Any] = {
            "edges": buckets.edges,
            "buckets": buckets.count,
            "fit": "smooth" if self._follows(buckets) else self.fit,
        }
        if on_grid and buckets.order is not None:
            details["boxes"] = None
        strategy = self._strategy(bucketed)
        measurement = bucketed.measure(strategy, budget=private.remaining)
        if isinstance(strategy, TreeStrategy):
            details["fan_out"] = strategy.fan_out
        if is_wide(self.domain):
            totals = measurement.strategy.infer(measurement.noisy, measurement.scales)
            return Outcome(totals, [measurement], details)
        fit = self._fit(measurement)
        if self.takes_medians:
            details["fit"] = "medians"
            fit = partial(_medians, measurement)
        elif self.fit == "runs":
            in_runs = _in_runs(measurement)
            details["fit"] = "shrink" if in_runs is None else "runs"
            if in_runs is None and self._keeps_alike(measurement):
                fit = partial(_means, measurement)
            fit = (lambda _: in_runs) if in_runs is not None else fit
        outcome = Outcome.of(measurement, details, fit=fit)
        if on_grid and buckets.order is not None:
            # Last of all: corners take as much memory as two numbers for each bucket.
            details["boxes"] = kernels.bucket_corners(
                buckets.order, buckets.edges, self.domain.shape
            )
        return outcome

    def _can_divide(self, private: Handle, budget: Budget) -> bool:
        """Return whether the partition can be drawn for its share of `budget`."""
        if self.partition is None or self.share is None:
            return False
        # The price at the mechanism's own budget is worked out once, not per release.
        spender = self if budget == self.budget else self.at(budget)
        priced = spender._priced
        each = (self.share * budget).over(self.policy.group_size)
        return can_select(priced, private.policy, self.domain.size, each)

    def _buckets(self, along: Handle) -> Buckets:
        if self.partition is None or self.share is None:
            return Buckets.single_cells(self.domain.size)
        if self._takes_best and not self._can_divide(along, self.budget):
            on_grid = isinstance(self.partition, DyadicRectangles)
            walk = cell_order(self.domain).order if on_grid else None
            return Buckets.single_cells(self.domain.size, walk, curve=on_grid)
        return along.select(self._priced, budget=self.share * self.budget)

    @cached_property
    def _price(self) -> float:
        """What one more bucket costs; public, and the same for every release."""
        return mean_noise(self.policy, (1 - (self.share or 0)) * self.budget)

    @cached_property
    def _priced(self) -> Partition:
        """The partition at that price; public, too."""
        assert self.partition is not None
        return self.partition.priced(self._price)

    @property
    def _smooths(self) -> bool:
        """Whether cells follow the buckets beside theirs, where ranges are asked."""
        by_default = self.fit == "non_negative" and not self.keeps_even
        # In rho nothing looks at the line first, and on level steps more was lost than
        # other lines gained.
        in_epsilon = self.budget.power == 1
        cut = self.partition is not None and self._asks_stretches
        return by_default and in_epsilon and cut

    def _follows(self, buckets: Buckets) -> bool:
        """Return whether cells follow the buckets beside theirs, of those drawn."""
        # Buckets of cells that lie apart have no neighbours.
        in_line = buckets.order is None and not buckets.are_single_cells
        return self._smooths and in_line

    @cached_property
    def _smoothing(self) -> tuple[float, float]:
        """Noise of a count, and how uneven buckets may become; both are public."""
        noise = mean_noise(self.policy, self.budget)
        return noise, MOST_UNEVEN * noise / float(self.share or 1)

    @cached_property
    def _asks_stretches(self) -> bool:
        """Whether ranges or prefixes of a line are asked, not cells alone."""
        return asks_stretches(self.workload)

    @cached_property
    def _asks_line(self) -> bool:
        """Whether stretches or cells of a line are asked, and nothing else."""
        return self._asks_stretches or asks_cells(self.workload)

    def _strategy(self, bucketed: Handle) -> LinearStrategy:
        if self.strategy == "cells":
            return Cells.under(bucketed.policy)
        policy, budget = bucketed.policy, bucketed.remaining
        if self.strategy == "greedy":
            form = self._form(bucketed.buckets)
            return tuned_tree(
                form,
                policy,
                budget=budget,
                sweeps=self.sweeps,
                floor=self.floor,
                public_work=self.domain.size + self.workload.queries,
            )
        return level_tree(
            policy.domain.size,
            2,
            root_exact=not policy.has_bottom,
            geometric=self.strategy == "geometric",
            power=budget.power,
        )

    def _form(self, buckets: Buckets) -> Form:
        """Return the queries that the tree is tuned to: of a wide map, as many as fit.

        A box may cut as many runs as there are buckets, and their number is drawn:
        boxes are cut while there is room, so that nothing fails because of it.
        """
        if not isinstance(buckets, MapBuckets):
            return self.workload.form(buckets)
        assert isinstance(self.workload, Rectangles)
        most = max(MOST_MAP_PIECES, buckets.count)
        return self.workload.first_pieces(buckets, most)

    def _fit(self, measured: Measurement) -> Callable[[FloatArray], FloatArray] | None:
        if self.fit == "non_negative":
            fitted = self._smooth if self._smooths else self._non_negative
            return partial(fitted, measured)
        if self.fit == "isotonic":
            return partial(monotone_cells, total_known=not self.policy.has_bottom)
        if self.fit in ("shrink", "runs"):
            return lambda _: _shrink_buckets(measured)
        return None

    def _keeps_alike(self, measured: Measurement) -> bool:
        """Return whether single cells of a line were measured with the same noise."""
        buckets = measured.buckets
        if buckets.order is not None or buckets.count < self.domain.size:
            return False
        widths = measured.scales.widths[: buckets.count]
        alike = widths.min() == widths.max() > 0
        return bool(alike) and isinstance(self.policy.unconstrained, AddRemove)

    def _non_negative(self, measured: Measurement, linear: FloatArray) -> FloatArray:
        if self.domain.ndim > 1:
            # Families of a tree over rectangles are no neighbours on the map.
            return halved_non_negative(linear, self.domain)
        return non_negative_cells(measured, linear)

    def _smooth(self, measured: Measurement, linear: FloatArray) -> FloatArray:
        """Let cells follow the buckets beside theirs: Lemma DA14."""
        cells = self._non_negative(measured, linear)
        buckets = measured.buckets
        if not self._follows(buckets):
            return cells
        # A sum of what is not negative is not negative either, in doubles, too.
        totals = np.add.reduceat(cells, buckets.edges[:-1])
        return kernels.smooth_buckets(totals, buckets.edges, *self._smoothing)

    def _cells(self) -> int:
        if is_wide(self.domain) and isinstance(self.partition, Descent):
            return min(self.domain.size, self.partition.most_buckets)
        return super()._cells()

    def _bytes_per_cell(self) -> int:
        if self.budget.power == 2:
            return RHO_BYTES
        measured = (
            self._takes_best
            and self.domain.ndim == 1
            and self.strategy in ("greedy", "cells")
            and type(self.policy) in PLAIN_POLICIES
            and self._asks_line
        )
        # On fewer cells two trees are tuned at a time, and memory is no concern.
        if self.domain.size <= MOST_PAIRED:
            return self.cell_bytes
        if self._cuts_boxes():
            return RECTANGLES_BYTES
        if not measured:
            return self.cell_bytes
        if asks_cells(self.workload):
            return CELLS_BYTES
        listed = isinstance(self.workload, Ranges) and type(self.policy) is not Line
        return RANGES_BYTES if listed else STRETCHES_BYTES

    def _cuts_boxes(self) -> bool:
        """Whether a map is cut into rectangles to answer such, whatever the data."""
        return (
            isinstance(self.partition, DyadicRectangles)
            and not self.tests_scatter
            and self.strategy == "greedy"
            and type(self.policy) is AddRemove
            # A fit by halves of the map took 175 bytes a cell.
            and self.fit is None
            and asks_boxes(self.workload)
        )

    def _published(self, outcome: Outcome, guarantee: Guarantee) -> Release:
        if not is_wide(self.domain):
            return super()._published(outcome, guarantee)
        wide: Any = self.domain
        return RangesRelease(
            domain=wide,
            measurement=outcome.measurements[0],
            mechanism=self.name,
            guarantee=guarantee,
            details=outcome.details,
            version=_version(),
            units=self.policy.units,
            identity=new_identity(guarantee),
        )

    def _pieces(self) -> int:
        if is_wide(self.domain) and isinstance(self.workload, Rectangles):
            most = max(MOST_MAP_PIECES, self._cells())
            return min(most, self.workload.queries * self._cells())
        if not self.tests_scatter:
            return super()._pieces()
        # The dearer of the two ways to divide a map: in rho that is not the grid.
        more = max(AdaptiveGrid.cell_bytes - self._bytes_per_cell(), 0)
        return super()._pieces() + more * self.domain.size // PIECE_BYTES


def _shrink_buckets(measured: Measurement) -> FloatArray:
    """Draw noisy buckets towards 0 as much as all of them together suggest."""
    buckets = measured.buckets
    noisy = measured.strategy.infer(measured.noisy, measured.scales)
    widths = measured.scales.widths[: noisy.size]
    return buckets.expand(kernels.shrink_towards_zero(noisy, widths, buckets.sizes))


def _medians(measured: Measurement, linear: FloatArray) -> FloatArray:
    """Return the posterior median of each noisy cell: Lemma DA11."""
    # Every record may be absent, so that all cells have the same noise.
    return kernels.median_cells(linear, float(measured.scales.widths[0]))


def _means(measured: Measurement, linear: FloatArray) -> FloatArray:
    """Return the posterior mean of each noisy cell: Lemma DA12."""
    return kernels.mean_cells(linear, float(measured.scales.widths[0]))


def _in_runs(measured: Measurement) -> FloatArray | None:
    """Draw neighbouring buckets towards heights that they seem to share: Lemma DA10.

    None where they seem to share none.
    """
    buckets = measured.buckets
    noisy = measured.strategy.infer(measured.noisy, measured.scales)
    variances = measured.scales.variances[: noisy.size]
    # Buckets along a line, all measured alike: what is known exactly is no noisy total.
    alike = variances.size and variances.min() == variances.max() >= LEAST_VARIANCE
    if buckets.order is not None or not alike:
        return None
    width, variance = float(measured.scales.widths[0]), float(variances[0])
    return kernels.fit_level_runs(noisy, buckets.sizes, width, variance)


class MapChoice(NamedTuple):
    """Whether a map is scattered, how many records it has, and what that cost.

    Attributes
    ----------
    scattered : bool
        Whether an adaptive grid is to be used.
    records : float
        The number of records, public or noisy.
    fewest_parts : int
        Into how many parts an axis is cut at least.
    bought : list[Measurement]
        The measurements that were paid for.
    """

    scattered: bool
    records: float
    fewest_parts: int
    bought: list[Measurement]


def asks_stretches(workload: Workload) -> bool:
    """Return whether ranges or prefixes of a line are asked, not cells alone."""
    if workload.domain.ndim != 1:
        return False
    if isinstance(workload, Union):
        return all(asks_stretches(part) for part in workload.parts)
    if isinstance(workload, Ranges):
        return workload.mean_cells() > 1
    return workload.closed_form in ("all_ranges", "prefixes")


def asks_cells(workload: Workload) -> bool:
    """Return whether the single cells of a line are asked, and nothing else."""
    return isinstance(workload, Identity) and workload.domain.ndim == 1


def asks_boxes(workload: Workload) -> bool:
    """Return whether all queries are rectangles, for which the choice was measured."""
    if isinstance(workload, Union):
        return all(asks_boxes(part) for part in workload.parts)
    return isinstance(workload, Rectangles)


def chosen_map(
    private: Handle,
    partition: DyadicRectangles,
    policy: Policy,
    share: Fraction,
    *,
    test: bool = True,
) -> MapChoice:
    """Count the records if their number is private, and test for scatter: Lemma SC5.

    Parameters
    ----------
    private : Handle
        Access to the counts.
    partition : DyadicRectangles
        The rectangles that the map would be cut into.
    policy : Policy
        What is secret.
    share : Fraction
        The part of the budget that goes to the partition.
    test : bool, default True
        Whether the map is tested for scatter.

    Returns
    -------
    MapChoice
        What was chosen.
    """
    budget = private.remaining
    scale = count_epsilon(policy, budget)
    records, bought = rough_total(private, None, budget=RECORDS_SHARE * budget)
    # Twice the scale of its noise: of less, next to nothing is known.
    off = 2 / RECORDS_SHARE if bought else Fraction(0)
    if bought and records * scale < off:
        records, more = rough_total(private, None, budget=AGAIN_SHARE * budget)
        bought, off = bought + more, 2 / AGAIN_SHARE
    mass = records * scale
    # A grid of more boxes has fewer records in a box than the scale of its noise.
    parts = min(math.isqrt(max(int(mass - off), 1)), FEWEST_PARTS)
    part, threshold = _settings(mass)
    noise = mean_noise(policy, budget - share * budget)
    scatter = ScatterTest(
        partition.level_weights(private.policy.domain.shape),
        price=PRICE * partition.price * noise,
        threshold=threshold,
    )
    each = (part * budget).over(policy.group_size)
    if (
        not test
        # The noise of the test is above its threshold: it could not tell.
        or scatter.threshold * mass * part <= scatter.sensitivity(policy)
        or not can_select(scatter, private.policy, policy.domain.size, each)
    ):
        return MapChoice(True, records, parts, bought)
    scattered = private.select(scatter, budget=part * budget)
    return MapChoice(scattered, records, parts, bought)


def _settings(mass: float) -> tuple[Fraction, float]:
    """Return share and threshold for a number of records times epsilon; public."""
    root = math.sqrt(max(mass, 1.0))
    share = min(max(SHARE / root, LEAST_SHARE), MOST_SHARE)
    wanted = (THRESHOLD if mass < DENSE_MASS else DENSE_THRESHOLD) / root
    threshold = min(max(wanted, LEAST_THRESHOLD), MOST_THRESHOLD)
    return Fraction(math.floor(share * 2**SHARE_BITS), 2**SHARE_BITS), threshold

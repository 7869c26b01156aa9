"""One release of tables that the data choose: the recipe, step by step.

    records -> single tables -> merged cells -> choice, table, fit -> ... -> model

A *table* is the histogram of one, two or three attributes (axes of the domain), and the
*model* is one law of all attributes together that follows the measured tables. A *goal*
is a measured table as the model is asked to follow it.

Only `Handle.measure` and `Handle.select` see true counts. Everything between two of
their calls reads what was published before, and nothing of it can fail or be refused:
sizes were checked before the first draw, and tables that do not fit are left out.

Errors in the notes on constants are the part of all records that lie in a wrong cell of
a table, averaged over the tables that were asked for. Names such as Adult and gpa2 are
those of the public data sets that they were measured on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any, NamedTuple, NoReturn

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import Attributes
from blowfish_fast.data.tables.merged_tables import CountedTables, Grouping, MergedTable
from blowfish_fast.errors import DataDependentError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.selectors.worst_table import (
    UNIT,
    TableChoices,
    WorstTable,
    in_units,
)
from blowfish_fast.measure.strategies.tables.merged_tables import MergedTables
from blowfish_fast.measure.strategies.tables.model_distance import FINE, ModelDistance
from blowfish_fast.measure.strategies.tables.residuals import AxisSet
from blowfish_fast.measure.strategies.tables.table_strategy import (
    TableStrategy,
    is_exact,
)
from blowfish_fast.release.entropy.entropy_fit import EntropyFit, TableGoal
from blowfish_fast.release.entropy.entropy_model import MODEL_CELLS, EntropyModel
from blowfish_fast.release.entropy.junction_tree import Messages, tree_cells

from .base import Outcome
from .tables.demanded_tables import planned_rounds
from .tables.impossible_cells import ImpossibleCells
from .tables.pooled_tables import POOL_ROUNDS, POOL_SIDE, POOL_SINGLES, PooledPair
from .tables.prior_tables import PriorTables
from .tables.table_merging import (
    LEAST_DEVIATIONS,
    MOST_MERGED,
    cells_of_totals,
    coarser_levels,
    likely_cells,
    merged_cells,
    smoothed_totals,
)
from .tables.table_rules import SCREEN_SIDE, TableRules

TOTAL_SHARE = Fraction(1, 50)
"""Part of the budget that buys the number of records where it is private."""

SYMBOLIC_SHARE = Fraction(1, 2**20)
"""What a step is charged that publishes only what is public: more than nothing."""

CERTIFICATE = "certificate"
"""The step that measures how far the model is off; it comes last."""

PENALTY = 0.6
"""Part of the noise of a table that is taken off its score when tables are chosen.

It was chosen on Adult.
"""

FIRST_STEPS = 60
"""Steps of mirror descent once single tables are measured."""

ROUND_STEPS = 20
"""Steps after each round that chooses one table (`_measure_rounds`).

Adult at epsilon 1 has an error of .0362; with 10 steps it has .0375.
"""

BATCH_STEPS = 40
"""Steps after each batch of several tables (`_measure_batches`).

With 20 steps the error grew by .001 on Adult. Steps after batches and the last ones
have momentum where all pairs are screened. Steps after rounds have none: Adult at
epsilon 1 has an error of .0361 without momentum and .0368 with it, under `Full` .0463
and .0470, means of seeds 3 to 10 with standard errors of .0002 to .0004.
"""

LAST_STEPS = 120
"""Steps at the end, when all tables are measured."""

MOST_TOTAL = 2.0**50
"""Records that a model holds, at most: sums in 1/64 record stay below 64 bits."""

EXACT_VARIANCE = 1.0 / 12.0
"""The variance that an exact count has in the fit, at least: that of a rounding."""

EXACT_PART = 16.0
"""Exact counts weigh so many times as much as the least noisy ones, at most.

More would make the steps of mirror descent too short for all other tables.
"""

CLIQUE_SIDE = 8
"""Merged cells along each attribute of a triple, at most, if a clique of the tree holds
all three attributes already; other triples have `SCREEN_SIDE`."""

MOVED_SIDES = range(3, 9)
"""Cells along an attribute at the coarser levels of a pair, under policies of moves.

The finest level is a candidate beside them. One record changes scores by twice as much
there, and a choice among fewer candidates is surer. With levels of 16 and of 2 cells a
pair was chosen at a level that told less than another, and had to be measured again.
Errors of `Full` at epsilon 1, means of seeds 100 to 107 on Adult, on which it was
found, and of seeds 100 to 103 elsewhere:

    data set      Adult     HI   cps91  rwm5yr  happiness
    all levels    .0458  .0289   .0997   .0255      .0401
    these levels  .0446  .0281   .0961   .0260      .0405
"""

WIDE_LOOK = 5
"""In every fifth round all triples that fit are candidates, in the others only those
that a clique of the tree holds.

Errors over all tables of three on Adult, seed 0:

                          epsilon 1    in rho
    every fifth round         .0903     .0775
    never                     .0922     .0776
    pairs alone               .0920     .0782
"""

PRIOR_PART = 8
"""A prior takes at most an eighth of the model's cells; the rest is for the data."""


class ChoicePlan(NamedTuple):
    """What a release is told before it begins; all of it is public.

    Attributes
    ----------
    domain : Attributes
        All attributes.
    rules : TableRules
        Shares of the budget, and how many tables.
    counted : CountedTables
        Where tables stand in the counts.
    weights : dict from pairs to int
        How much each pair counts, in 1/64.
    records : int or None
        A stated number of records for the rules.
    group_size : int
        Records of one person that may move together.
    certify : Fraction
        Part of the budget that buys a certificate of the model's tables; 0 for none.
    certified : tuple of tuples of int
        The tables that it is about.
    impossible : ImpossibleCells or None
        Cells in which no record can be.
    prior : PriorTables or None
        Tables of another survey, in whose dependences the model begins.
    always : tuple of tuples of int
        Tables that are measured whatever the data choose.
    rounds : int or None
        How often a table is chosen; None where public numbers say it.
    cells : int
        Cells of the model, at most.
    """

    domain: Attributes
    rules: TableRules
    counted: CountedTables
    weights: dict[AxisSet, int]
    records: int | None
    group_size: int
    certify: Fraction = Fraction(0)
    certified: tuple[AxisSet, ...] = ()
    impossible: ImpossibleCells | None = None
    prior: PriorTables | None = None
    always: tuple[AxisSet, ...] = ()
    rounds: int | None = None
    cells: int = MODEL_CELLS


def refuse_prediction() -> NoReturn:
    """Stop where the error is asked for before the data were seen."""
    raise DataDependentError(
        "the data choose which tables are measured, so the error cannot be predicted "
        'before the release; choose="plan" measures what public sizes say'
    )


class MergedAttribute(NamedTuple):
    """What noisy single tables say of one attribute; public.

    Attributes
    ----------
    cells : ndarray of float64, shape (cells,)
        Expected records in each single cell.
    grouping : Grouping
        Which single cells are followed as one merged cell.
    levels : tuple of Grouping
        Ever coarser groupings of the merged cells. Pairs of attributes are screened at
        the finest level that has few enough cells.
    ordered : bool
        Whether the cells have an order. Only neighbours are merged then.
    """

    cells: FloatArray
    grouping: Grouping
    levels: tuple[Grouping, ...]
    ordered: bool

    @property
    def inside(self) -> FloatArray:
        """The share of each cell in its merged cell."""
        # A little everywhere, so that no merged cell is empty.
        even = self.cells + 1e-9 * max(float(self.cells.sum()), 1.0) / self.cells.size
        return even / self.grouping.spread(self.grouping.sum(even, 0), 0)


class TablesRun:
    """One release: what was measured so far, and the model of it.

    Parameters
    ----------
    plan : ChoicePlan
        What is public before the release begins.
    private : Handle
        The only way to true counts: it measures and selects, and charges for both.

    Attributes
    ----------
    total : float
        The number of records, as far as it is known; 1 at least.
    measurements : list of Measurement
        All that was measured, in order.
    singles : dict from int to (ndarray, float)
        Once single tables are measured: the estimated counts of each attribute's cells,
        and the variance of one of them.
    attributes : list of MergedAttribute
        From then on: how the cells of each attribute are merged.
    fit : EntropyFit
        From then on: the model and the goals that it follows.
    least_variance : float
        From then on: the variance that a count has in the fit, at least.
    screened : dict from pairs to (MergedTable, ndarray, float)
        Once pairs are screened: each with its few cells, their noisy counts and the
        variance of one.
    """

    def __init__(self, plan: ChoicePlan, private: Handle) -> None:
        self.plan = plan
        self.private = private
        self.rules = plan.rules
        self.sizes = plan.domain.shape
        self.total = 1.0
        self.measurements: list[Measurement] = []
        self.steps: list[str] = []
        """What each measurement was for."""
        self.reserved = private.remaining * plan.certify
        """What is left for the certificate, whatever is drawn before."""

    @property
    def left(self) -> Budget:
        """What may still be spent on tables and choices."""
        return self.private.remaining - self.reserved

    def _measure(
        self,
        step: str,
        tables: Sequence[MergedTable],
        shares: Sequence[float],
        budget: Budget,
        running: Sequence[int] = (),
    ) -> list[tuple[IntArray, float]]:
        """Measure a batch; return the noisy rows and the variance of each table."""
        strategy = MergedTables(self.plan.counted, tables, shares, running)
        measurement = self.private.measure(strategy, budget=budget)
        self.measurements.append(measurement)
        self.steps.append(step)
        variances = measurement.scales.variances[strategy.starts[:-1]].tolist()
        return list(zip(strategy.split(measurement.noisy), variances, strict=True))

    def _single_cells(self, axes: AxisSet) -> MergedTable:
        return MergedTable(
            axes, tuple(Grouping.single_cells(self.sizes[axis]) for axis in axes)
        )

    def follow_plan(self, planned: TableStrategy, kind: str) -> Outcome:
        """Measure what `Contingency` plans with all that is left.

        Parameters
        ----------
        planned : TableStrategy
            Its tables and their rates.
        kind : str
            The name of its plan.

        Returns
        -------
        Outcome
            The measurements, the planned one last, and ``details["plan"]``. There is no
            estimate of single cells.
        """
        tables = [self._single_cells(table) for table in planned.tables]
        self._measure("plan", tables, planned.shares.tolist(), self.private.remaining)
        # The rows are the same; the release reads them as `Contingency` does.
        measured = self.measurements[-1]
        as_planned = measured._replace(
            law=planned.with_noise(measured.scales),
            buckets=Buckets.single_cells(planned.size),
        )
        details = {"plan": kind}
        return Outcome(np.zeros(0), [*self.measurements[:-1], as_planned], details)

    def buy_total(self) -> None:
        """Learn the number of records: stated, public, or bought."""
        private, stated = self.private, self.plan.records
        if stated is not None:
            self.total = max(float(stated), 1.0)
            return
        bought = any(kind.axes is None for kind in self.rules.kinds)
        share = TOTAL_SHARE if bought else SYMBOLIC_SHARE
        # The table of no attribute has one cell: all records.
        all_records = MergedTable((), ())
        ((noisy, _),) = self._measure(
            "records", [all_records], [1.0], share * self.left
        )
        if private.dry_run:
            refuse_prediction()
        self.total = max(float(noisy.reshape(-1)[0]), 1.0)

    def choose_tables(self, *, pooled: bool = False) -> Outcome:
        """Measure single tables, then what the data choose, and fit the model.

        Parameters
        ----------
        pooled : bool, default False
            Whether all pairs are measured together in place of choices.

        Returns
        -------
        Outcome
            The measurements, and the model among the details.
        """
        rules, budget = self.rules, self.left
        if pooled:
            self._measure_singles(budget * POOL_SINGLES)
            self._measure_pool()
            return self._modelled(carried=True)
        planned = planned_rounds(
            rules, self.total, budget, self.plan.always, self.plan.rounds
        )
        self._measure_singles(budget * planned.singles)
        if planned.rounds and rules.screens:
            self._screen(budget * rules.screen_share(planned.singles))
        if planned.demanded:
            self._measure_demanded(self.left * planned.demanded_share)
        if planned.rounds and rules.screens:
            self._measure_batches(planned.rounds)
        elif planned.rounds:
            self._measure_rounds(planned.rounds)
        # Screens are many tables of much noise, which the law has to balance.
        return self._modelled(carried=rules.screens)

    def _modelled(self, *, carried: bool) -> Outcome:
        """Fit the model for the last time, and buy its certificate."""
        self.fit.improve(LAST_STEPS, 1e-7, carried=carried)
        model = EntropyModel(
            [attribute.grouping for attribute in self.attributes],
            [attribute.inside for attribute in self.attributes],
            self.fit.factors,
            self.total,
        )
        details = {"choose": "data", "model": model.pack()}
        if self.plan.certify:
            details["certificate"] = self._certify(model)
        details["steps"] = list(self.steps)
        return Outcome(np.zeros(0), self.measurements, details)

    def _certify(self, model: EntropyModel) -> dict[str, Any]:
        """Measure how far the final model's tables are off: Lemma DC7."""
        statistic = ModelDistance(self.plan.counted, self.plan.certified, model.table)
        strategy: Any = statistic
        measured = self.private.measure(strategy, budget=self.reserved)
        self.measurements.append(measured)
        self.steps.append(CERTIFICATE)
        rounding = statistic.rounding()
        return {
            "tables": [list(axes) for axes in statistic.tables],
            "noisy": measured.noisy.tolist(),
            "rates": measured.scales.rates.tolist(),
            "unit": measured.scales.unit,
            "power": measured.scales.power,
            "parts": FINE,
            "rounding": [float(rounding.max()), float(rounding.mean())],
        }

    def _measure_singles(self, budget: Budget) -> None:
        """Measure single and exact tables; merge cells by what they show."""
        rules = self.rules
        demanded = [axes for axes in self.plan.always if is_exact(axes, rules.kinds)]
        listed = [*rules.exact_pairs, *rules.exact_triples, *demanded]
        exact = list(dict.fromkeys(listed))
        every = [(), *((axis,) for axis in rules.singles), *exact]
        tables = [self._single_cells(axes) for axes in every]
        # Tables of share 0 are published only where no edge moves them.
        shares = [0.0, *rules.single_shares(), *([0.0] * len(exact))]
        running = [
            place
            for place, axes in enumerate(every)
            if len(axes) == 1 and axes[0] in rules.running
        ]
        singles = self._measure("single", tables, shares, budget, running)
        if self.private.dry_run:
            refuse_prediction()
        for place in running:
            # Nobody appears: the number of all records stands first, and is exact.
            singles[place] = cells_of_totals(*singles[place], int(singles[0][0].sum()))
        # Whole numbers at first; pooled with a second measurement they are fractions.
        self.singles: dict[int, tuple[AnyArray, float]] = {
            axes[0]: single
            for axes, single in zip(every, singles, strict=True)
            if len(axes) == 1
        }
        by_axis = dict(zip(every, singles, strict=True))
        self.total = self._pooled_total(by_axis)
        self.attributes = [
            self._merge(axis, *by_axis[axis,])
            if (axis,) in by_axis
            else self._unasked(axis)
            for axis in range(len(self.sizes))
        ]
        self.fit = EntropyFit(
            [attribute.grouping.count for attribute in self.attributes]
        )
        self.fit.begin(
            [
                attribute.grouping.sum(attribute.cells, 0) / self.total
                for attribute in self.attributes
            ]
        )
        for pair, mask in self._impossible_cells().items():
            self.fit.forbid(pair, mask)
        # Demanded tables have their place before anything else may fill the model.
        self.fit.suppose(
            {
                axes: np.zeros([self.fit.sizes[axis] for axis in axes])
                for axes in self.plan.always
            }
        )
        self.fit.suppose(self._prior_ratios())
        of_noise = [variance for _, variance in singles if 0.0 < variance < math.inf]
        self.least_variance = max(
            EXACT_VARIANCE, min(of_noise, default=0.0) / EXACT_PART
        )
        for table, (noisy, variance) in zip(tables[1:], singles[1:], strict=True):
            if len(table.axes) == 1 or self._fits(table.axes):
                self._add_goal(table, noisy, variance)
        self.fit.improve(FIRST_STEPS)

    def _impossible_cells(self) -> dict[AxisSet, BoolArray]:
        """Return the merged cells of each pair in which no record can be."""
        stated = self.plan.impossible
        if stated is None:
            return {}
        return {
            pair: stated.merged(pair, [self.attributes[a].grouping for a in pair])
            for pair in stated.pairs
        }

    def _prior_ratios(self) -> dict[AxisSet, FloatArray]:
        """Return the dependences with which the model begins: Lemma DC9."""
        if self.plan.prior is None:
            return {}
        groupings = [attribute.grouping for attribute in self.attributes]
        ratios = self.plan.prior.log_ratios(groupings, self.plan.cells // PRIOR_PART)
        fitting: dict[AxisSet, FloatArray] = {}
        for pair, logs in ratios.items():
            scopes = [*self.fit.scopes, *fitting, pair]
            if tree_cells(self.fit.sizes, scopes) <= self.plan.cells:
                fitting[pair] = logs
        return fitting

    def _pooled_total(self, by_axis: dict[AxisSet, tuple[IntArray, float]]) -> float:
        """Return the number of records: exact, or from sums of single tables.

        Sums are weighed by their noise; where nothing was measured, the number stays
        what it was.
        """
        sums, weights = [], []
        for axes, (noisy, variance) in by_axis.items():
            if variance == 0.0:
                return min(max(float(noisy.sum()), 1.0), MOST_TOTAL)
            if len(axes) == 1 and math.isfinite(variance):
                sums.append(float(noisy.sum()))
                weights.append(1.0 / (variance * noisy.size))
        pooled = float(np.average(sums, weights=weights)) if sums else self.total
        return min(max(pooled, 1.0), MOST_TOTAL)

    def _smoothed(self, axis: int, noisy: AnyArray, variance: float) -> FloatArray:
        """Return expected records in each cell of an attribute, from noisy counts."""
        attribute = self.plan.domain.attributes[axis]
        regular = attribute.regular if attribute.levels is None else None
        values = noisy.astype(np.float64)
        if axis in self.rules.running and regular == values.size:
            return smoothed_totals(values, variance)
        return likely_cells(values, variance, self.total, regular)

    def _merge(self, axis: int, noisy: IntArray, variance: float) -> MergedAttribute:
        """Merge the cells of an attribute as far as its noisy single table says."""
        attribute = self.plan.domain.attributes[axis]
        ordered = attribute.levels is None
        cells = self._smoothed(axis, noisy, variance)
        least = LEAST_DEVIATIONS * math.sqrt(min(variance, 2.0**200))
        grouping = merged_cells(cells, ordered, MOST_MERGED, least)
        if self.plan.impossible is not None:
            grouping = self.plan.impossible.kept_apart(axis, grouping)
        levels = coarser_levels(grouping.sum(cells, 0), ordered)
        return MergedAttribute(cells, grouping, levels, ordered)

    def _unasked(self, axis: int) -> MergedAttribute:
        """Return an attribute that no asked table holds: even, and of one cell."""
        size = self.sizes[axis]
        merged = Grouping(np.zeros(size, dtype=np.int64))
        even = np.full(size, self.total / size)
        if self.plan.impossible is not None:
            merged = self.plan.impossible.kept_apart(axis, merged)
        levels = (Grouping.single_cells(merged.count),)
        return MergedAttribute(even, merged, levels, True)

    def _add_goal(
        self, table: MergedTable, noisy: IntArray | FloatArray, variance: float
    ) -> None:
        """Let the model follow a table, at merged cells of the model or coarser.

        Parameters
        ----------
        table : MergedTable
            The table as it was measured.
        noisy : ndarray, shape (one side for each attribute of the table)
            Its noisy counts.
        variance : float
            The variance of one of them; infinite for a table that was not measured.
        """
        if not math.isfinite(variance):
            return
        # Of each cell of the goal: how many noisy counts were added up for it.
        groupings, sizes = [], np.ones(())
        merged: Any = noisy.astype(np.float64)
        for at, (axis, own) in enumerate(zip(table.axes, table.groupings, strict=True)):
            model = self.attributes[axis].grouping
            if own.count > model.count or own.is_single_cells:
                # Measured more finely than the model: its cells are added up.
                merged = model.sum(merged, at)
                groupings.append(Grouping.single_cells(model.count))
                sizes = np.multiply.outer(sizes, self._terms(table, model))
            else:
                groupings.append(_between(model, own))
                sizes = np.multiply.outer(sizes, np.ones(own.count))
        noise = np.maximum(variance * sizes, self.least_variance)
        goal = TableGoal(
            table.axes, tuple(groupings), merged / self.total, self.total**2 / noise
        )
        self.fit.add(goal)

    def _terms(self, table: MergedTable, model: Grouping) -> FloatArray:
        """Return how many cells' noise each merged cell of a measured table holds."""
        if len(table.axes) > 1 or table.axes[0] not in self.rules.running:
            return model.sizes.astype(np.float64)
        # Of running totals, those at its borders: two are the noise of a cell. No goal
        # weighs more than a cell would, for mirror descent takes steps of that length.
        left, right = model.labels[:-1], model.labels[1:]
        borders = np.bincount(left[left != right], minlength=model.count)
        borders += np.bincount(right[left != right], minlength=model.count)
        return np.maximum(borders / 2.0, self.rules.cells_over_totals(table.axes[0]))

    def _fits(self, axes: AxisSet) -> bool:
        """Whether the model may hold a table beside all that it holds."""
        fit = self.fit
        if fit.tree.home(axes) is not None:
            return True
        return tree_cells(fit.sizes, [*fit.scopes, axes]) <= self.plan.cells

    def _open_pairs(self) -> list[AxisSet]:
        """Return the pairs that can be measured and followed, of two cells and more."""
        counts = self.fit.sizes
        several = (
            pair for pair in self.rules.pairs if min(counts[a] for a in pair) > 1
        )
        return [pair for pair in several if self._fits(pair)]

    def _open_triples(self, number: int) -> list[AxisSet]:
        """Return the triples that can be measured in a round, of two cells and more.

        Most of what a triple tells beyond its pairs lies among attributes that depend
        on each other, which a clique of the tree holds: those cost no cells of the
        model. All others that fit are looked at in some rounds, as each makes the
        choice less sure and takes time: Lemma DC10.

        Parameters
        ----------
        number : int
            The number of the round, from 0.

        Returns
        -------
        list of tuples of int
            Their attributes.
        """
        counts, home = self.fit.sizes, self.fit.tree.home
        several = [
            axes for axes in self.rules.triples if min(counts[a] for a in axes) > 1
        ]
        if (number + 1) % WIDE_LOOK:
            return [axes for axes in several if home(axes) is not None]
        return [axes for axes in several if self._fits(axes)]

    def _per_record(self, budget: Budget) -> Budget:
        """Return what one record of a person may cost of a budget."""
        return budget.over(self.plan.group_size)

    def _measure_demanded(self, budget: Budget) -> None:
        """Measure tables that nobody has to choose, cell by cell: Lemma DC12."""
        kinds = self.rules.kinds
        demanded = [axes for axes in self.plan.always if not is_exact(axes, kinds)]
        tables = [self._single_cells(axes) for axes in demanded]
        measured = self._measure("always", tables, [1.0] * len(tables), budget)
        for table, (noisy, variance) in zip(tables, measured, strict=True):
            self._add_goal(table, noisy, variance)
        self.fit.improve(BATCH_STEPS)

    def _measure_rounds(self, rounds: int) -> None:
        """Choose a table, measure it, and fit the model, in each of some rounds."""
        private = self.private
        each = self.left / rounds
        share = self.rules.choice_share
        choice, price = each * share, each * (1 - share)
        if self._per_record(choice).for_choice(1) <= 0:
            # So little that no choice has an epsilon: single tables say what is known.
            return
        for number in range(rounds):
            offered = [*self._open_pairs(), *self._open_triples(number)]
            selector = self._selector(offered, price)
            if selector is None:
                return
            chosen = selector.candidate(private.select(selector, budget=choice))
            last = number + 1 == rounds
            (noisy,) = self._measure(
                "chosen", [chosen], [1.0], self.left if last else price
            )
            self._add_goal(chosen, *noisy)
            self.fit.improve(ROUND_STEPS)

    def _selector(self, tables: Sequence[AxisSet], price: Budget) -> WorstTable | None:
        """Return the choice among tables at all their levels; None without one."""
        model = self.fit.tree.pairs(self.fit.beliefs)
        messages: Messages = {}
        choices = []
        for axes in tables:
            noise = self.rules.noise(self.rules.price([axes]), self._per_record(price))
            attributes = [self.attributes[axis] for axis in axes]
            levels = self._levels(axes)
            law = model.get(axes)
            if law is None:
                law = self.fit.tree.table(self.fit.beliefs, axes, messages)
            # At most 2^50 records: estimates stay far below 64 bits.
            estimate = np.rint(law * (self.total * UNIT)).astype(np.int64)
            # A score is the surplus of records in cells above the model, so that noise
            # adds half of its mean size for each cell.
            penalties = [
                in_units(PENALTY * 0.5 * noise * self._cells_of(axes, groupings))
                for groupings in product(*levels)
            ]
            table = MergedTable(
                axes, tuple(attribute.grouping for attribute in attributes)
            )
            choices.append(
                TableChoices(table, levels, estimate, penalties, self._weight(axes))
            )
        return WorstTable(self.plan.counted, choices) if choices else None

    def _levels(self, axes: AxisSet) -> tuple[tuple[Grouping, ...], ...]:
        """Return the levels of each attribute at which a table is a candidate."""
        levels = [self.attributes[axis].levels for axis in axes]
        if len(axes) == 2 and not self.rules.moves:
            return tuple(levels)
        if len(axes) == 2:
            return tuple(
                (own[0], *(level for level in own[1:] if level.count in MOVED_SIDES))
                for own in levels
            )
        inside = self.fit.tree.home(axes) is not None
        most = CLIQUE_SIDE if inside else SCREEN_SIDE
        return tuple(
            tuple(level for level in own if level.count <= most) or own[-1:]
            for own in levels
        )

    def _weight(self, axes: AxisSet) -> int:
        """Return how much a table counts: one of three as its heaviest pair."""
        return max(self.plan.weights[pair] for pair in combinations(axes, 2))

    def _cells_of(self, axes: AxisSet, groupings: Sequence[Grouping]) -> int:
        """Return how many cells of a table can hold records, at some levels."""
        forbidden = [
            pair for pair in combinations(axes, 2) if pair in self.fit.impossible
        ]
        if not forbidden:
            return math.prod(grouping.count for grouping in groupings)
        possible = np.ones([self.fit.sizes[axis] for axis in axes], dtype=np.int64)
        for pair in forbidden:
            wide = [self.fit.sizes[axis] if axis in pair else 1 for axis in axes]
            possible *= ~self.fit.impossible[pair].reshape(wide)
        for at, grouping in enumerate(groupings):
            possible = grouping.sum(possible, at)
        return int(np.count_nonzero(possible))

    def _screen(self, budget: Budget) -> None:
        """Measure all pairs at few cells along each attribute."""
        pairs = self._pairs_of_several()
        self.screened: dict[AxisSet, tuple[MergedTable, IntArray, float]] = {}
        if not pairs:
            return
        tables = [
            MergedTable(
                pair, tuple(self._few_cells(axis, SCREEN_SIDE) for axis in pair)
            )
            for pair in pairs
        ]
        screens = self._measure("screen", tables, [1.0] * len(tables), budget)
        for table, (noisy, variance) in zip(tables, screens, strict=True):
            self.screened[table.axes] = table, noisy, variance

    def _pairs_of_several(self) -> list[AxisSet]:
        counts = self.fit.sizes
        return [pair for pair in self.rules.pairs if min(counts[a] for a in pair) > 1]

    def _few_cells(self, axis: int, most: int) -> Grouping:
        """Return the finest level of an attribute of at most so many cells."""
        attribute = self.attributes[axis]
        level = next(
            (grouping for grouping in attribute.levels if grouping.count <= most),
            attribute.levels[-1],
        )
        return attribute.grouping.then(level)

    def _measure_pool(self) -> None:
        """Measure all pairs at one rate; follow what exceeds noise: Lemma DC13."""
        pairs = self._pairs_of_several()
        if not pairs:
            return
        tables = [
            MergedTable(pair, tuple(self._few_cells(axis, POOL_SIDE) for axis in pair))
            for pair in pairs
        ]
        measured = self._measure("screen", tables, [1.0] * len(tables), self.left)
        waiting = {
            table.axes: PooledPair(table, noisy, variance)
            for table, (noisy, variance) in zip(tables, measured, strict=True)
        }
        for _ in range(POOL_ROUNDS):
            targets = self._strongest(waiting)
            if not targets:
                break
            for pair, target in targets.items():
                own = waiting.pop(pair)
                self._add_goal(own.table, target, own.variance)
            self.fit.improve(BATCH_STEPS, carried=True)

    def _strongest(
        self, waiting: Mapping[AxisSet, PooledPair]
    ) -> dict[AxisSet, FloatArray]:
        """Return what the model should follow next: half as many as attributes."""
        model = self.fit.tree.pairs(self.fit.beliefs)
        options = []
        for pair, own in waiting.items():
            law = _model_cells(own.table, model[pair], self.attributes)
            evidence, target = own.beyond_noise(self.total * law)
            if evidence > 0.0:
                weighed = self.plan.weights[pair] * evidence
                options.append((-weighed, pair, target))
        options.sort(key=lambda option: option[:2])
        scopes = list(self.fit.scopes)
        targets: dict[AxisSet, FloatArray] = {}
        for _, pair, target in options:
            if len(targets) == max(len(self.sizes) // 2, 1):
                break
            if tree_cells(self.fit.sizes, [*scopes, pair]) <= self.plan.cells:
                scopes.append(pair)
                targets[pair] = target
        return targets

    def _measure_batches(self, batches: int) -> None:
        """Measure batches in which every attribute stands at most once: Lemma DC5.

        Attributes that no pair needs are measured alone. When they were left out, or
        joined to a pair whatever its noise, one attribute at a time at epsilon 1 had
        .0287 in place of .0274 on Adult (seeds 100 to 105), .0445 and .0426 on gpa2,
        .0339 and .0323 on crime1, .0502 and .0510 on fertil2, .0309 and .0305 on injury
        (seeds 200 to 202).
        """
        taken: dict[AxisSet, int] = {}
        for number in range(batches):
            price = self.left / (batches - number)
            batch = self._matching(price, taken)
            if not batch:
                break
            measured = self._measure_batch(batch, price)
            for table, (noisy, variance) in zip(batch, measured, strict=True):
                if len(table.axes) == 1:
                    self._improve_single(table.axes[0], noisy, variance)
                elif table.axes not in taken:
                    self._add_goal(*self.screened[table.axes])
                taken[table.axes] = taken.get(table.axes, 0) + 1
                self._add_goal(table, noisy, variance)
            self.fit.improve(BATCH_STEPS, carried=True)

    def _measure_batch(
        self, batch: Sequence[MergedTable], price: Budget
    ) -> list[tuple[IntArray, float]]:
        """Measure a batch at one rate; single tables among it as they were at first."""
        running = [
            place
            for place, table in enumerate(batch, 1)
            if len(table.axes) == 1 and table.axes[0] in self.rules.running
        ]
        if not running:
            return self._measure("chosen", batch, [1.0] * len(batch), price)
        # Running totals end in the number of records, which stands first, exactly.
        tables = [MergedTable((), ()), *batch]
        shares = [0.0, *([1.0] * len(batch))]
        for place in running:
            # A long move changes many totals, and would make all others noisier.
            shares[place] = min(1.0, 2.0 / self.rules.spans[batch[place - 1].axes[0]])
        measured = self._measure("chosen", tables, shares, price, running)
        records = int(measured[0][0].sum())
        for place in running:
            measured[place] = cells_of_totals(*measured[place], records)
        return measured[1:]

    def _improve_single(self, axis: int, noisy: IntArray, variance: float) -> None:
        """Estimate cells anew from all measurements of a single table, by their noise.

        Merged cells stay as they are: tables were measured at them.
        """
        if not math.isfinite(variance):
            return
        before, own = self.singles[axis]
        # Of the inverse variances, so that a table without any budget weighs nothing.
        first, second = (
            1.0 / max(spread, EXACT_VARIANCE) for spread in (own, variance)
        )
        pooled = (first * before + second * noisy) / (first + second)
        self.singles[axis] = pooled, 1.0 / (first + second)
        cells = self._smoothed(axis, *self.singles[axis])
        self.attributes[axis] = self.attributes[axis]._replace(cells=cells)

    def _matching(self, price: Budget, taken: dict[AxisSet, int]) -> list[MergedTable]:
        """Return tables of separate attributes whose screens lie off the model.

        Attributes of which no pair is worth its noise stand alone.
        """
        model = self.fit.tree.pairs(self.fit.beliefs)
        options = []
        for pair, (table, noisy, variance) in self.screened.items():
            away = noisy - self.total * _model_cells(
                table, model[pair], self.attributes
            )
            excess = float((away**2).sum()) - variance * noisy.size
            # Records that the model misplaces: half the sum of what cells are off by,
            # told from the sum of squares, less what noise alone explains of that.
            misfit = 0.5 * math.sqrt(noisy.size * max(excess, 0.0))
            # The screen stays what it was; each measurement has told some of it.
            misfit *= 0.5 ** taken.get(pair, 0)
            finest = self._finest(pair, misfit, price)
            if finest is not None:
                options.append((-misfit, pair, finest))
        options.sort(key=lambda option: option[:2])
        used: set[int] = set()
        batch: list[MergedTable] = []
        scopes = list(self.fit.scopes)
        for _, pair, table in options:
            if used.isdisjoint(pair) and (
                pair in scopes
                or tree_cells(self.fit.sizes, [*scopes, pair]) <= self.plan.cells
            ):
                used.update(pair)
                scopes.append(pair)
                batch.append(table)
        # An attribute that no pair needs has paid all the same: its own table has it.
        alone = [
            self._single_cells((axis,))
            for axis in self.rules.singles
            if axis not in used and not is_exact((axis,), self.rules.kinds)
        ]
        return [*batch, *alone]

    def _finest(
        self, pair: AxisSet, misfit: float, price: Budget
    ) -> MergedTable | None:
        """Return the finest table whose noise is below a misfit; None without one.

        Parameters
        ----------
        pair : tuple of int
            Its attributes.
        misfit : float
            Records that the model misplaces in it.
        price : Budget
            What its measurement may cost.

        Returns
        -------
        MergedTable or None
            The table.
        """
        noise = self.rules.noise(self.rules.price([pair]), self._per_record(price))
        # Noise misplaces half of its mean size in each cell.
        room = 2.0 * misfit / max(noise, 1e-300)
        first, second = (self.attributes[axis] for axis in pair)
        best: tuple[int, Grouping, Grouping] | None = None
        for first_level in first.levels:
            for other in second.levels:
                cells = first_level.count * other.count
                if cells <= room and (best is None or cells > best[0]):
                    best = cells, first_level, other
        if best is None:
            return None
        groupings = first.grouping.then(best[1]), second.grouping.then(best[2])
        return MergedTable(pair, groupings)


def _between(model: Grouping, measured: Grouping) -> Grouping:
    """Return the measured cell of each merged cell of the model."""
    labels = np.zeros(model.count, dtype=np.int64)
    labels[model.labels] = measured.labels
    return Grouping(labels)


def _model_cells(
    table: MergedTable, law: FloatArray, attributes: Sequence[MergedAttribute]
) -> FloatArray:
    """Return the law of merged cells at the cells of a coarser table."""
    for at, (axis, own) in enumerate(zip(table.axes, table.groupings, strict=True)):
        law = _between(attributes[axis].grouping, own).sum(law, at)
    return law

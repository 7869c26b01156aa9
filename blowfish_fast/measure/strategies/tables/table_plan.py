"""Which contingency tables to measure, and at which rates: by predicted error.

From public sizes alone, three kinds of plans are tried: maximal asked tables at equal
rates; all asked tables at optimised rates; and larger blocks that each cover many asked
tables. Privacy never depends on the choice: the strategy is scaled to its worst edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray, IntArray

from .residuals import AxisSet, cell_count, closure, subsets
from .table_strategy import EdgeKind, is_exact, largest_sets

PlanKind = Literal["best", "maximal", "weights", "blocks"]

BLOCK_CELLS = (2**10, 2**14, 2**17)
"""Largest cells of a covering block, tried in turn."""

STARTS = 4
"""Uncovered tables from which the next block is grown; the best one is kept."""

ROUNDS = 400
LEAST_SHARE = 1e-4
"""Tables below this rate tell nothing; they are left out, or raised if needed."""


class TablePlan(NamedTuple):
    """Tables to be measured, their relative rates, and what they lead to.

    Attributes
    ----------
    kind : str
        Which way of planning it came from.
    tables : tuple[AxisSet, ...]
        The attributes of each table.
    shares : ndarray of float64, shape (tables,)
        Relative rates.
    objective : float
        The weighted mean variance of a cell of the asked tables where the worst edge
        costs 1, for continuous noise.
    """

    kind: str
    tables: tuple[AxisSet, ...]
    shares: FloatArray
    objective: float


class AskedTables(NamedTuple):
    """What is asked, and under which edges.

    A table at rate w has variance 2 / w^2 (`power` 1, epsilon) or 1 / (2 w) (2, rho).

    Attributes
    ----------
    sizes : tuple[int, ...]
        Cells of each attribute.
    tables : tuple[AxisSet, ...]
        The asked tables.
    weights : tuple[float, ...]
        How much each counts.
    kinds : tuple[EdgeKind, ...]
        Kinds of edges of the policy.
    power : int, default 1
        1 for epsilon, 2 for rho.
    """

    sizes: tuple[int, ...]
    tables: tuple[AxisSet, ...]
    weights: tuple[float, ...]
    kinds: tuple[EdgeKind, ...]
    power: int = 1


def plan_tables(asked: AskedTables, kind: PlanKind = "best") -> TablePlan:
    """Return the plan with the least predicted error.

    Parameters
    ----------
    asked : AskedTables
        What is asked.
    kind : PlanKind, default 'best'
        Which ways of planning are tried.

    Returns
    -------
    TablePlan
        The plan.
    """
    exact = [
        table_or_plan
        for table_or_plan in closure(asked.tables)
        if is_exact(table_or_plan, asked.kinds)
    ]
    exact_tables = largest_sets(exact)
    largest = largest_sets(asked.tables)
    noisy = [
        table_or_plan
        for table_or_plan in largest
        if not is_exact(table_or_plan, asked.kinds)
    ]
    if not noisy:
        return TablePlan("exact", tuple(exact_tables), np.zeros(len(exact_tables)), 0.0)
    problem = _Problem(asked, exact)
    plans = []
    if kind in ("best", "maximal", "blocks"):
        plans.append(problem.evenly("maximal", noisy))
    if kind in ("best", "weights"):
        all_asked = [
            table_or_plan
            for table_or_plan in asked.tables
            if not is_exact(table_or_plan, asked.kinds)
        ]
        if not is_exact((), asked.kinds):
            all_asked.append(())
        plans.append(problem.optimised("weights", all_asked, noisy))
    if kind in ("best", "blocks"):
        for blocks in _coverings(asked.sizes, noisy):
            plans.append(problem.evenly("blocks", blocks))
            if plans[-1].objective < 1.3 * min(
                table_or_plan.objective for table_or_plan in plans
            ):
                joined = [
                    *blocks,
                    *(
                        table_or_plan
                        for table_or_plan in noisy
                        if table_or_plan not in set(blocks)
                    ),
                ]
                plans.append(problem.optimised("blocks", joined, blocks))
    best = min(plans, key=lambda table_or_plan: table_or_plan.objective)
    return best._replace(
        tables=(*exact_tables, *best.tables),
        shares=np.concatenate([np.zeros(len(exact_tables)), best.shares]),
    )


ONE_CELL = 1e-6
"""What a residual along an attribute of one cell counts: more than nothing."""


class _Problem:
    """The objective of rates: sum over residuals of c_S / I_S, worst edge at cost 1."""

    def __init__(self, asked: AskedTables, exact: Sequence[AxisSet]) -> None:
        self.asked = asked
        self.parts = closure(asked.tables)
        self.place = {part: at for at, part in enumerate(self.parts)}
        self.ways = max(map(len, asked.tables))
        self.costs = np.zeros(len(self.parts))
        flat = [self._flat(part) for part in self.parts]
        for table, weight in zip(asked.tables, asked.weights, strict=True):
            cells = cell_count(asked.sizes, table)
            for part in subsets(table):
                at = self.place[part]
                share = cell_count(asked.sizes, part) / cells
                self.costs[at] += weight * flat[at] * share**2
        self.costs /= sum(asked.weights)
        self.costs[[self.place[part] for part in exact]] = 0.0

    def _flat(self, part: AxisSet) -> float:
        """Return the part of a table's cells that a residual is about.

        An attribute of one cell has no residual, and yet tables with it are asked: it
        counts next to nothing, so that some measured table holds each of them.
        """
        sizes = (self.asked.sizes[axis] for axis in part)
        return float(np.prod([1.0 - 1.0 / side or ONE_CELL for side in sizes]))

    def evenly(self, kind: str, tables: Sequence[AxisSet]) -> TablePlan:
        """Measure tables at equal rates."""
        incidence = _Incidence(self, tables)
        shares = np.ones(len(tables))
        objective = incidence.objective(shares / incidence.worst(shares))[0]
        return TablePlan(kind, tuple(tables), shares, objective)

    def optimised(
        self, kind: str, tables: Sequence[AxisSet], first: Sequence[AxisSet]
    ) -> TablePlan:
        """Measure tables at the better of the rates that two starts lead to."""
        incidence = _Incidence(self, tables)
        chosen = set(first)
        focused = np.array([1.0 if table in chosen else 1e-2 for table in tables])
        ends = [incidence.descend(start) for start in (focused, np.ones(len(tables)))]
        shares = incidence.rounded(min(ends, key=lambda end: end[1])[0])
        objective = incidence.objective(shares / incidence.worst(shares))[0]
        measured = np.flatnonzero(shares).tolist()
        return TablePlan(
            kind, tuple(tables[at] for at in measured), shares[measured], objective
        )


class _Incidence:
    """Which residuals each table informs, how much, and which edges move it."""

    def __init__(self, problem: _Problem, tables: Sequence[AxisSet]) -> None:
        sizes = problem.asked.sizes
        table_of, part_of, share = [], [], []
        for number, table in enumerate(tables):
            cells = cell_count(sizes, table)
            for part in _small_subsets(table, problem.ways):
                if part in problem.place:
                    table_of.append(number)
                    part_of.append(problem.place[part])
                    share.append(cell_count(sizes, part) / cells)
        self.table_of: IntArray = np.array(table_of)
        self.part_of: IntArray = np.array(part_of)
        self.share = np.array(share)
        self.costs = problem.costs
        self.needed: BoolArray = self.costs > 0
        self.prices = np.array(
            [
                [
                    kind.cells / float(kind.length) ** problem.asked.power
                    if kind.moves(table)
                    else 0.0
                    for table in tables
                ]
                for kind in problem.asked.kinds
            ]
        )
        self.power = problem.asked.power

    def worst(self, shares: FloatArray) -> float:
        """Return the cost of the worst edge."""
        return float((self.prices @ shares).max())

    def information(self, rates: FloatArray) -> FloatArray:
        """Return I_S from the variances that rates stand for."""
        inverse = rates * rates / 2.0 if self.power == 1 else 2.0 * rates
        shares = self.share * inverse[self.table_of]
        information = np.bincount(self.part_of, shares, self.costs.size)
        return information.astype(np.float64)

    def objective(self, rates: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and minus its derivative by the logarithm of rates."""
        information = self.information(rates)
        if (information[self.needed] <= 0).any():
            return np.inf, rates
        slopes = np.zeros(self.costs.size)
        needed = information[self.needed]
        slopes[self.needed] = self.costs[self.needed] / needed**2
        pull = np.bincount(self.table_of, self.share * slopes[self.part_of], rates.size)
        steep = rates**2 if self.power == 1 else 2.0 * rates
        return float((self.costs[self.needed] / needed).sum()), pull * steep

    def descend(self, shares: FloatArray) -> tuple[FloatArray, float]:
        """Follow the optimality conditions: pulls in proportion to prices."""
        rates, multipliers = shares.copy(), np.ones(len(self.prices))
        best, best_rates = np.inf, rates
        for _ in range(ROUNDS):
            cost = self.prices @ rates
            rates = rates / cost.max()
            value, pull = self.objective(rates)
            if not np.isfinite(value):
                break
            if value < best:
                best, best_rates = value, rates
            multipliers = multipliers * (cost / cost.max()) ** 2
            multipliers = np.maximum(multipliers / multipliers.max(), 1e-9)
            spent = (self.prices.T @ multipliers) * rates
            ratio = np.where(rates > 0, pull / np.where(spent > 0, spent, 1.0), 0.0)
            rates = rates * (ratio / ratio.max()) ** (self.power / 4)
            rates[rates < 1e-7 * rates.max()] = 0.0
        return best_rates, best

    def rounded(self, rates: FloatArray) -> FloatArray:
        """Leave out tables of next to no rate, and raise those that are needed."""
        shares = rates / rates.max()
        small = shares < LEAST_SHARE
        trimmed = np.where(small, 0.0, shares)
        if np.isfinite(self.objective(trimmed / self.worst(trimmed))[0]):
            return trimmed
        return np.where(small & (rates > 0), LEAST_SHARE, shares)


def _small_subsets(table: AxisSet, most: int) -> list[AxisSet]:
    """Return the subsets of at most some attributes: a block has too many in all."""
    sizes = range(min(most, len(table)) + 1)
    return [subset for size in sizes for subset in combinations(table, size)]


def _coverings(
    sizes: tuple[int, ...], tables: Sequence[AxisSet]
) -> list[list[AxisSet]]:
    """Return greedy covers of the tables by blocks (PriView), where they are fewer."""
    coverings: list[list[AxisSet]] = []
    for most in BLOCK_CELLS:
        blocks = _cover(sizes, tables, most)
        if len(blocks) < 0.95 * len(tables) and blocks not in coverings:
            coverings.append(blocks)
    return coverings


def _cover(
    sizes: tuple[int, ...], tables: Sequence[AxisSet], most: int
) -> list[AxisSet]:
    # Whole numbers, held as floats: their products are exact, and faster.
    holds = np.zeros((len(tables), len(sizes)))
    for number, table in enumerate(tables):
        holds[number, list(table)] = 1
    cost = np.log(np.array(sizes) + 1.0)
    logs = np.log(np.array(sizes, dtype=np.float64))
    left, blocks = np.ones(len(tables), dtype=np.bool_), []
    while left.any():
        uncovered = holds[left]
        # Tables of many cells first: they leave the least room for others.
        order = np.argsort(-(uncovered @ logs), kind="stable")
        tries = order[:: max(1, order.size // STARTS)][:STARTS]
        grown = [_grow(uncovered, uncovered[at], cost, logs, most) for at in tries]
        block = max(
            grown, key=lambda attributes: int((uncovered @ (1 - attributes) == 0).sum())
        )
        blocks.append(tuple(np.flatnonzero(block).tolist()))
        left &= holds @ (1 - block) > 0
    return blocks


def _grow(
    uncovered: FloatArray,
    start: FloatArray,
    cost: FloatArray,
    logs: FloatArray,
    most: int,
) -> FloatArray:
    """Add attributes to a block while it fits, those that cover most tables first."""
    block = start.copy()
    room = np.log(most) + 1e-9
    while True:
        outside = 1 - block
        lacking = uncovered @ outside
        # Tables that lack one attribute are covered as soon as it is added; the rest
        # count a little, so that a block of pairs grows from a single attribute too.
        near = ((lacking == 1) @ uncovered) * outside
        later = ((lacking > 1) @ uncovered) * outside
        gain = (near + 1e-3 * later) / cost
        gain[block @ logs + logs > room] = 0.0
        if gain.max() <= 0:
            return block
        block[int(gain.argmax())] = 1

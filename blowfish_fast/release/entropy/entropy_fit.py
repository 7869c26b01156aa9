"""The law of greatest entropy that follows noisy tables, by mirror descent.

Each measured table is a goal: sums of the law over its merged cells should be the noisy
shares, as closely as its noise allows. The law is a product of one factor for each set
of attributes that was measured, so all of it stays on a junction tree. A step changes
the logarithms of the factors against the gradient of

    loss = sum over goals of weight / 2 * |merged table of the law - target|^2

and is halved until the loss falls by half of what the gradient promised. Where it is
asked for, steps carry on in the direction of those before (Nesterov's momentum, in the
logarithms): a third of the passes leads as far. Where the loss would rise, momentum
ends, and a plain step begins it anew. Everything here reads published numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import BoolArray, FloatArray
from blowfish_fast.data.tables.merged_tables import Grouping

from .junction_tree import AxisSet, Beliefs, JunctionTree

LEAST_LOG = -40.0
"""Logarithms of factors end here, below the largest: a share of 4e-18."""

IMPOSSIBLE_LOG = -80.0
"""The logarithm of an impossible cell: a share of 2e-35, whatever is measured."""

MOST_HALVINGS = 40
GROWTH = 1.5
"""A step that was taken at once is made longer by this."""

SOON = 4
"""Momentum that is lost after fewer steps than these was lost to too long a step."""

FEWEST_STEPS = 6
"""Steps that are made before the gain of one is looked at."""


class TableGoal(NamedTuple):
    """What one measured table says of the law.

    Attributes
    ----------
    axes : tuple of int
        The attributes.
    groupings : tuple of Grouping
        From cells of the law to measured cells, for each attribute.
    target : float64
        Noisy shares of all records, in the shape of the measured table.
    weight : float64
        One over the variance of each share; a number, or one per measured cell.
    """

    axes: AxisSet
    groupings: tuple[Grouping, ...]
    target: FloatArray
    weight: FloatArray

    def merged(self, table: FloatArray) -> FloatArray:
        """Return the measured cells of a table of the law."""
        for axis, grouping in enumerate(self.groupings):
            table = grouping.sum(table, axis)
        return table

    def spread(self, values: FloatArray) -> FloatArray:
        """Return values of measured cells at every cell of the law inside them."""
        for axis, grouping in enumerate(self.groupings):
            values = grouping.spread(values, axis)
        return values


class _Position(NamedTuple):
    """Factors, the law that they make, its loss and the gradient of that."""

    factors: dict[AxisSet, FloatArray]
    beliefs: Beliefs
    loss: float
    gradients: dict[AxisSet, FloatArray]
    tables: dict[AxisSet, FloatArray]


class _Momentum(NamedTuple):
    """Where the last step led before it was carried on, and how far that goes."""

    factors: dict[AxisSet, FloatArray]
    speed: float
    steps: int


class EntropyFit:
    """A law of attributes that is fitted to more and more noisy tables.

    Parameters
    ----------
    sizes : sequence of int
        Cells of the law along each attribute.

    Examples
    --------
    >>> fit = EntropyFit((2, 2))
    >>> one = Grouping.single_cells(2)
    >>> wanted = np.array([[0.4, 0.1], [0.2, 0.3]])
    >>> fit.add(TableGoal((0, 1), (one, one), wanted, np.full((2, 2), 1e4)))
    >>> fit.improve(200)
    >>> fit.tree.table(fit.beliefs, (0, 1)).round(3).tolist()
    [[0.4, 0.1], [0.2, 0.3]]
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.scopes: list[AxisSet] = []
        """Sets of two and more attributes that were measured, in their order."""
        self.goals: list[TableGoal] = []
        self.impossible: dict[AxisSet, BoolArray] = {}
        """Cells that hold nobody, by attributes."""
        self.tree = JunctionTree(self.sizes, [])
        self.factors: dict[AxisSet, FloatArray] = {}
        self.beliefs = self._even()
        self.step = 0.0
        self.settled = False
        """Whether a step was ever too long: before, plain steps grow faster."""

    def _even(self) -> Beliefs:
        beliefs = self.tree.beliefs({})
        assert beliefs is not None, "without factors all cells weigh the same"
        return beliefs

    def add(self, *goals: TableGoal) -> None:
        """Add what tables said; the tree grows where it holds no clique for them."""
        for goal in goals:
            self.goals.append(goal)
            shape = [self.sizes[axis] for axis in goal.axes]
            self.factors.setdefault(goal.axes, np.zeros(shape))
            if len(goal.axes) > 1 and goal.axes not in self.scopes:
                self.scopes.append(goal.axes)
        if any(self.tree.home(goal.axes) is None for goal in goals):
            self.tree = JunctionTree(self.sizes, self.scopes)
        beliefs = self.tree.beliefs(self.factors)
        if beliefs is None:
            # Weights too small to be told from 0: begin again, evenly.
            self.factors = {
                axes: self._kept(axes, np.zeros_like(factor))
                for axes, factor in self.factors.items()
            }
            beliefs = self.tree.beliefs(self.factors)
        self.beliefs = self._even() if beliefs is None else beliefs

    def forbid(self, axes: AxisSet, impossible: BoolArray) -> None:
        """Let no record be in some cells, whatever tables say.

        Parameters
        ----------
        axes : tuple of int
            The attributes.
        impossible : bool
            In the shape of their cells; True where nobody is.
        """
        self.impossible[axes] = impossible
        before = self.factors.get(axes, np.zeros(impossible.shape))
        self.factors[axes] = self._kept(axes, before)
        if axes not in self.scopes:
            self.scopes.append(axes)
        self.tree = JunctionTree(self.sizes, self.scopes)
        self.add()

    def suppose(self, log_ratios: Mapping[AxisSet, FloatArray]) -> None:
        """Begin with public dependences, until tables say otherwise: Lemma DC9.

        Parameters
        ----------
        log_ratios : mapping from attributes to float64 arrays
            How much more often cells meet than if attributes were independent, as a
            logarithm, in the shape of their cells.
        """
        for axes, logs in log_ratios.items():
            before = self.factors.get(axes, np.zeros(logs.shape))
            self.factors[axes] = self._kept(axes, before + logs)
            if axes not in self.scopes:
                self.scopes.append(axes)
        if log_ratios:
            self.tree = JunctionTree(self.sizes, self.scopes)
            self.add()

    def _kept(self, axes: AxisSet, factor: FloatArray) -> FloatArray:
        """Return a factor within bounds, and without its impossible cells."""
        bounded: FloatArray = np.maximum(factor - factor.max(), LEAST_LOG)
        impossible = self.impossible.get(axes)
        if impossible is None:
            return bounded
        return np.where(impossible, IMPOSSIBLE_LOG, bounded)

    def begin(self, shares: Sequence[FloatArray]) -> None:
        """Begin with independent attributes, of which the shares of cells are known.

        That is where single tables alone lead, found at once.

        Parameters
        ----------
        shares : sequence of (cells,) float64
            One for each attribute; those that are 0 are taken as next to nothing.
        """
        for axis, own in enumerate(shares):
            self.factors[axis,] = self._kept((axis,), np.log(np.maximum(own, 1e-17)))
        self.add()

    def improve(
        self, steps: int, tolerance: float = 1e-5, *, carried: bool = False
    ) -> None:
        """Make some steps of mirror descent.

        Parameters
        ----------
        steps : int
            Most steps.
        tolerance : float
            Where a step lowers the loss by less than this part of it, it is the last.
        carried : bool, default False
            Whether steps have the momentum of those before, which leads further: for
            many tables that hold each other in check. A law that is fitted to few
            tables comes nearer to their noise by it, and stays nearer to the law before
            without.
        """
        here = self._position(self.factors, self.beliefs)
        if not here.gradients:
            return
        # A step of this length is never too long. Where the law was at its best, steps
        # were halved for nothing, and no goal that is added later would be followed.
        heaviest = sum(float(np.max(goal.weight)) for goal in self.goals)
        self.step = max(self.step, 0.5 / max(heaviest, 1e-300))
        momentum: _Momentum | None = None
        for number in range(steps):
            before = here
            if momentum is not None:
                here, momentum = self._carried(here, momentum)
            else:
                position = self._descend(here)
                if position is None:
                    break
                here = position
                if carried and self.settled:
                    momentum = _Momentum(here.factors, 1.0, 0)
            gain = before.loss - here.loss
            # Where momentum has just ended nothing is gained; a plain step is next.
            tried = here is not before
            if tried and number + 1 >= FEWEST_STEPS and gain < tolerance * here.loss:
                break
        self.factors, self.beliefs = here.factors, here.beliefs

    def _carried(
        self, here: _Position, momentum: _Momentum
    ) -> tuple[_Position, _Momentum | None]:
        """Return the next position with the momentum of those before.

        Where the loss does not fall there, all stays, and momentum is gone; the step is
        halved where that happened soon.
        """
        stepped = self._stepped(here)
        speed = 0.5 + math.sqrt(0.25 + momentum.speed**2)
        carry = (momentum.speed - 1.0) / speed
        factors = {
            axes: self._kept(axes, factor + carry * (factor - momentum.factors[axes]))
            if axes in here.gradients
            else factor
            for axes, factor in stepped.items()
        }
        beliefs = self.tree.beliefs(factors)
        if beliefs is not None:
            position = self._position(factors, beliefs)
            if position.loss < here.loss:
                return position, _Momentum(stepped, speed, momentum.steps + 1)
        if momentum.steps < SOON:
            self.step *= 0.5
        return here, None

    def _stepped(self, here: _Position) -> dict[AxisSet, FloatArray]:
        """Return the factors a step against the gradient."""
        return {
            axes: self._kept(axes, factor - self.step * here.gradients[axes])
            if axes in here.gradients
            else factor
            for axes, factor in here.factors.items()
        }

    def _descend(self, here: _Position) -> _Position | None:
        """Return the next position; None where no step lowers the loss."""
        for halvings in range(MOST_HALVINGS):
            factors = self._stepped(here)
            beliefs = self.tree.beliefs(factors)
            if beliefs is not None:
                position = self._position(factors, beliefs)
                promised = sum(
                    float(
                        (gradient * (here.tables[axes] - position.tables[axes])).sum()
                    )
                    for axes, gradient in here.gradients.items()
                )
                if position.loss <= here.loss - 0.5 * promised and promised > 0.0:
                    if halvings == 0:
                        self.step *= GROWTH
                    return position
            self.step *= 0.5
            self.settled = True
        return None

    def _position(
        self, factors: dict[AxisSet, FloatArray], beliefs: Beliefs
    ) -> _Position:
        loss = 0.0
        gradients: dict[AxisSet, FloatArray] = {}
        tables = self.tree.tables(beliefs, [goal.axes for goal in self.goals])
        for goal in self.goals:
            away: Any = goal.merged(tables[goal.axes]) - goal.target
            pull = goal.weight * away
            loss += 0.5 * float((pull * away).sum())
            gradient = goal.spread(pull)
            before = gradients.get(goal.axes)
            gradients[goal.axes] = gradient if before is None else before + gradient
        return _Position(factors, beliefs, loss, gradients, tables)

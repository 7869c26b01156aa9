"""The only way to true counts.

A mechanism never holds counts: it asks a `Handle`, which charges one account before it
looks, draws all noise itself after checking the exact cost of what was asked, records
every call for audits, and gives back public values only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, Self, TypeVar

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import FloatArray, IntArray
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.data.domain import WideDomain
from blowfish_fast.data.sparse import FilledCells
from blowfish_fast.data.wide.map_curve import MapCurve
from blowfish_fast.errors import (
    BudgetError,
    DataDependentError,
    EpsilonError,
    InputError,
    PolicyError,
    PrivacyError,
)
from blowfish_fast.policies import Policy

from .budgets import Budget
from .linear_strategy import LinearStrategy, PreparedStrategy, StrategyNoise
from .noise import Scales, measured_rows
from .refinement import lowered_noise, lowered_scales

if TYPE_CHECKING:
    from blowfish_fast.kernels.window_costs.rectangle_costs import SharedCosts

    from .randomness import Randomness

Chosen = TypeVar("Chosen", covariant=True)
Progress = Callable[[str], None]
Measurable = LinearStrategy | PreparedStrategy


class DryRunEnded(Exception):
    """A dry run has come to a step whose outcome decides what follows.

    This is no error, and nobody reads it: whoever started the dry run takes it for the
    end (`Mechanism._rehearse`, `Pricing.in_rho`). A person who asks for what only the
    data can tell is answered by a `DataDependentError`, which says why.
    """


class Selector(Protocol[Chosen]):
    """Chooses something public from true counts, calibrated to the given policy."""

    @property
    def name(self) -> str:
        """Name in the record of calls."""

    def select(
        self, counts: IntArray, *, policy: Policy, epsilon: Fraction, rng: Randomness
    ) -> Chosen:
        """Return a choice that is epsilon-private under `policy`.

        Parameters
        ----------
        counts : ndarray of int64, shape (cells,)
            True counts.
        policy : Policy
            The policy, without its constraints.
        epsilon : Fraction
            What the choice may use.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        Chosen
            The choice; public.
        """


class Lister(Protocol[Chosen]):
    """Lists cells whose noisy counts reach a public threshold."""

    @property
    def kind(self) -> str:
        """Name in the record of calls."""

    def scales(self, policy: Policy, budget: Budget | Fraction) -> Scales:
        """Return the noise of one cell, which all cells share.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        budget : Budget or Fraction
            What the list may cost on any edge.

        Returns
        -------
        Scales
            The scales.
        """

    def cost(self, policy: Policy, scales: Scales) -> Fraction:
        """Return what the worst edge costs in the currency of the noise.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        scales : Scales
            The noise of one cell.

        Returns
        -------
        Fraction
            The cost.
        """

    def cost_in_rho(self, policy: Policy, scales: Scales) -> Fraction:
        """Return the rho of the list, or a bound above it.

        Parameters
        ----------
        policy : Policy
            The policy, without constraints.
        scales : Scales
            The noise of one cell.

        Returns
        -------
        Fraction
            The rho.
        """

    def nothing(self, scales: Scales) -> Chosen:
        """Return a list without cells, for a dry run."""

    def draw(self, filled: FilledCells, scales: Scales, rng: Randomness) -> Chosen:
        """Draw the list; it never fails because of what is drawn.

        Parameters
        ----------
        filled : FilledCells
            The cells that hold records, and their true counts.
        scales : Scales
            The noise of one cell.
        rng : Randomness
            The source of all noise.

        Returns
        -------
        Chosen
            The list; public.
        """


def check_selector(
    selector: Any, policy: Policy, cells: int, budget: Budget
) -> Fraction:
    """Refuse, by public values alone, a choice that could not be made: Lemma HA5.

    A selector that says what it needs has a method ``check_feasible(policy, cells,
    epsilon)``, which raises where it could not choose from any counts of so many cells.

    Parameters
    ----------
    selector : Selector
        What would choose.
    policy : Policy
        The policy, without constraints, under which it would choose.
    cells : int
        The number of cells that it would choose from.
    budget : Budget
        What the choice may cost on one edge, in either currency.

    Returns
    -------
    Fraction
        The epsilon at which it would choose.
    """
    epsilon = choice_epsilon(selector, budget, cells)
    check = getattr(selector, "check_feasible", None)
    if check is not None:
        check(policy, cells, epsilon)
    return epsilon


def can_select(selector: Any, policy: Policy, cells: int, budget: Budget) -> bool:
    """Return whether `check_selector` finds nothing against a choice; all is public.

    Parameters
    ----------
    selector : Selector
        What chooses.
    policy : Policy
        The policy, without constraints.
    cells : int
        Number of counts.
    budget : Budget
        What it may spend.

    Returns
    -------
    bool
        False where the budget is too small, or too large, for the sampler. A recipe
        that has another way goes it then, and none of its draws fails.
    """
    try:
        check_selector(selector, policy, cells, budget)
    except InputError:
        return False
    return True


class Measurement(NamedTuple):
    """Noisy rows of a strategy on buckets of the domain's cells; public.

    Attributes
    ----------
    law : StrategyNoise
        What was measured, with the noise of its rows.
    noisy : ndarray of int64, shape (rows,)
        The rows with their noise.
    buckets : Buckets
        Which cells lie in which bucket.
    """

    law: StrategyNoise
    noisy: IntArray
    buckets: Buckets

    @property
    def strategy(self) -> LinearStrategy:
        """What was measured."""
        return self.law.strategy

    @property
    def scales(self) -> Scales:
        """The noise of each row."""
        return self.law.scales

    def with_scales(self, scales: Scales) -> Self:
        """Return the same rows as if they had other noise, for audits that try it."""
        return self._replace(law=StrategyNoise(self.strategy, scales))

    def estimate(self) -> FloatArray:
        """Return the linear estimate of every cell, in C order."""
        return self.buckets.expand(self.strategy.infer(self.noisy, self.scales))


class LawAlone(Measurement):
    """A measurement of which only the law is asked: its rows have no values."""

    __slots__ = ()

    def estimate(self) -> FloatArray:
        """Return zeros, which nobody reads."""
        return np.zeros(self.buckets.cells)


class Call(NamedTuple):
    """One entry of the record: what was drawn, at which price.

    Attributes
    ----------
    kind : str
        "select", "measure", "list", "resume" for a measurement that an earlier release
        published, or "refine" for noise that was lowered later.
    name : str
        Name of the selector, or kind of the strategy.
    budget : Budget
        What was charged; for noise that was lowered, what was charged in addition.
    scales : Scales or None
        The noise of a measurement; None for a choice.
    """

    kind: str
    name: str
    budget: Budget
    scales: Scales | None


class Refinable(NamedTuple):
    """A measurement whose noise may be lowered once, and what it was drawn from.

    Attributes
    ----------
    measurement : Measurement
        The measurement, the last one of its chain.
    paid : Budget
        What the chain has cost so far.
    counts : object
        The true counts, to be the same ones later; never read here.
    """

    measurement: Measurement
    paid: Budget
    counts: Any


@dataclass
class Account:
    """Budget of one release: what was granted, what was spent, on which calls.

    Its currency, epsilon or rho, decides which noise is drawn.

    Attributes
    ----------
    granted : Budget
        What the release may spend.
    calls : list[Call], optional
        What was drawn so far.
    refinable : list[Refinable], optional
        Measurements whose noise may be lowered: the last one of each chain.
    """

    granted: Budget
    calls: list[Call] = field(default_factory=list)
    refinable: list[Refinable] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.granted = Budget.of(self.granted)
        self.spent = self.granted * 0

    def charge(self, call: Call) -> None:
        """Charge before anything is drawn; refuse what the grant does not cover."""
        if call.budget.amount <= 0:
            raise EpsilonError(
                f"a step must cost more than 0; received {call.budget.amount}"
            )
        spent = self.spent + call.budget
        if spent > self.granted:
            raise BudgetError(
                f"{call.name} asks for {float(call.budget):g} and only "
                f"{float(self.granted - self.spent):g} of {float(self.granted):g} is "
                "left; give the last step private.remaining"
            )
        self.spent = spent
        self.calls.append(call)


class Handle:
    """Access to counts under one policy and one account.

    Strategies and selectors see the policy without its constraints. Constraints make
    several records move together, so the handle lets what is drawn cost only what was
    charged over the group size (`Budget.over`).

    Parameters
    ----------
    counts : ndarray of int64 or FilledCells or None, shape (cells,)
        True counts; None for a dry run, which draws nothing.
    policy : Policy
        What is secret.
    account : Account
        What may be spent, and what was.
    rng : Randomness or None
        The source of all noise; None for a dry run.
    buckets : Buckets, optional
        Which cells share a row; single cells by default.
    group_size : int, optional
        How many records move together; that of the policy by default.
    cells : int, optional
        Number of counts, where these are not the cells of the domain: tables of a wide
        domain are counted instead of its cells.
    """

    def __init__(
        self,
        counts: IntArray | FilledCells | None,
        policy: Policy,
        account: Account,
        rng: Randomness | None,
        *,
        buckets: Buckets | None = None,
        group_size: int | None = None,
        cells: int | None = None,
    ) -> None:
        self._counts = counts
        self._account = account
        self._rng = rng
        self._group_size = policy.group_size if group_size is None else group_size
        self.policy = policy.unconstrained
        # Tables of a wide domain are counted instead of its cells.
        self._cells = policy.domain.size if cells is None else cells
        self.buckets = buckets or Buckets.single_cells(self._cells)
        self._shared: SharedCosts | None = None

    @classmethod
    def over(cls, handle: Handle, **more: Any) -> Self:
        """Return a handle of this kind with all that another one has, and `more`.

        Parameters
        ----------
        handle : Handle
            The other one.
        **more : object
            Fields that are different.

        Returns
        -------
        Self
            The handle.
        """
        own = cls.__new__(cls)
        own.__dict__.update(handle.__dict__, **more)
        return own

    @property
    def remaining(self) -> Budget:
        """Budget that is left."""
        return self._account.granted - self._account.spent

    def split(self, parts: int) -> list[Self]:
        """Return handles that share what is left equally, whatever will be drawn."""
        whole, share = self._account, self.remaining / parts
        whole.spent = whole.granted
        parts_of_handle = [self.over(self, _account=copy(whole)) for _ in range(parts)]
        for part in parts_of_handle:
            part._account.granted, part._account.spent = share, share * 0
            part._account.refinable = []
        return parts_of_handle

    @property
    def dry_run(self) -> bool:
        """Whether there are no counts: a dry run that predicts the error."""
        return self._counts is None

    def refuse_dry_run(self, reason: str) -> None:
        """Stop a dry run where the recipe goes on from noisy values."""
        if self.dry_run:
            raise DataDependentError(reason)

    @property
    def public_totals(self) -> IntArray:
        """Number of records of each component; refused where it is private."""
        components = self.policy.components()
        if components.private.any():
            raise PrivacyError(
                "the number of records is private under this policy "
                f"({self.policy.neighbours}); measure it instead of reading it"
            )
        if self._counts is None:
            return np.zeros(components.count, dtype=np.int64)
        if components.labels is None:
            held = self._counts
            counts = held.counts if isinstance(held, FilledCells) else held
            return np.array([counts.sum()])
        totals = np.zeros(components.count, dtype=np.int64)
        np.add.at(totals, components.labels, self._listed_counts())
        return totals

    def _listed_counts(self) -> IntArray:
        """Return the count of every cell, or bucket; a wide domain has none listed."""
        if self._counts is None or isinstance(self._counts, FilledCells):
            raise PrivacyError(
                "cells of a wide domain are measured as totals of buckets, or listed "
                "above a threshold; nothing was drawn"
            )
        return self._counts

    def select(
        self, selector: Selector[Chosen], *, budget: Budget | Fraction
    ) -> Chosen:
        """Charge, then let `selector` choose at its `choice_epsilon`.

        Parameters
        ----------
        selector : Selector[Chosen]
            What chooses.
        budget : Budget or Fraction
            The price.

        Returns
        -------
        Chosen
            What was chosen.

        Raises
        ------
        DataDependentError
            In a dry run, which has no data to choose from.
        """
        if self._counts is None or self._rng is None:
            raise DataDependentError(
                f"{selector.name} chooses from the data, so the error of this "
                "mechanism cannot be predicted before it is released"
            )
        price = self._read(budget)
        # The number of cells, never of filled ones, which is private.
        each = price.over(self._group_size)
        drawn_at = check_selector(selector, self.policy, self._cells, each)
        self._account.charge(Call("select", selector.name, price, None))
        counts: Any = self._counts
        # What one choice works out of the counts another may need; both are charged.
        sharing = getattr(selector, "sharing", None)
        self._shared = self._shared or (sharing and kernels.SharedCosts())
        chooser = selector if sharing is None else sharing(self._shared)
        chosen: Chosen = chooser.select(
            counts, policy=self.policy, epsilon=drawn_at, rng=self._rng
        )
        return chosen

    def end_choices(self) -> None:
        """Free what choices from these counts share: no further one is made."""
        self._shared = None

    def prepare(
        self, strategy: Measurable, *, budget: Budget | Fraction
    ) -> PreparedStrategy:
        """Return a strategy with the noise that `measure` would draw; all is public.

        Parameters
        ----------
        strategy : LinearStrategy or PreparedStrategy
            What would be measured.
        budget : Budget or Fraction
            The price.

        Returns
        -------
        PreparedStrategy
            The strategy under this handle's policy, for its part of the price.
        """
        each = self._read(budget).over(self._group_size)
        return strategy.prepare(self.policy, each)

    def measure(
        self, strategy: Measurable, *, budget: Budget | Fraction
    ) -> Measurement:
        """Charge, then add noise to the strategy's rows.

        Parameters
        ----------
        strategy : LinearStrategy or PreparedStrategy
            What is measured. One that was prepared for this policy and this price is
            taken as it is, and priced again before anything is drawn.
        budget : Budget or Fraction
            The price.

        Returns
        -------
        Measurement
            The noisy rows.

        Raises
        ------
        PrivacyError
            If the strategy's noise would cost more on some edge than was granted.
        """
        price = self._read(budget)
        prepared = self._priced(strategy, price)
        rows_of, scales = prepared.strategy, prepared.scales
        self._account.charge(Call("measure", rows_of.kind, price, scales))
        counts: IntArray
        if self._counts is None or self._rng is None:
            counts = np.zeros(self._cells, dtype=np.int64)
            noise = np.zeros(scales.rates.size, dtype=np.int64)
        else:
            counts = self._listed_counts()
            noise = _draw(scales, self._rng)
        noisy = rows_of.published(rows_of.rows(counts), noise, scales)
        return Measurement(prepared, noisy, self.buckets)

    def measure_roughly(
        self, strategy: LinearStrategy, *, budget: Budget | Fraction
    ) -> Measurement:
        """Measure as `measure` does, and remember it: `refine` may lower its noise.

        Parameters
        ----------
        strategy : LinearStrategy
            What is measured.
        budget : Budget or Fraction
            The price.

        Returns
        -------
        Measurement
            The noisy rows, which cannot be written to.

        Raises
        ------
        PrivacyError
            If published rows are not rows with a draw each, or the budget is rho.
        """
        price = self._read(budget)
        _refuse_chain(strategy, price)
        measurement = self.measure(strategy, budget=price)
        measurement.noisy.setflags(write=False)
        held = Refinable(measurement, price, self._counts)
        self._account.refinable.append(held)
        return measurement

    def resume(self, measurement: Measurement, *, paid: Budget | Fraction) -> None:
        """Take up a chain that an earlier release began: `refine` may go on with it.

        What it has cost is charged to this account again, so that the account says what
        all noise of the chain costs; a ledger charges the difference. **The counts must
        be the very ones that were measured then** (Lemma RF3), which nobody can see
        from here: `Ledger.refine` asks for it.

        Parameters
        ----------
        measurement : Measurement
            The noisy rows of single cells as they were published.
        paid : Budget or Fraction
            What the chain has cost so far.

        Raises
        ------
        PrivacyError
            If the noise cannot be lowered, or cost more than `paid`.
        """
        price = self._read(paid)
        strategy = measurement.strategy
        _refuse_chain(strategy, price)
        if not measurement.buckets.are_single_cells:
            raise PrivacyError(
                "noise of buckets that were chosen from the data is not lowered later: "
                "the choice was paid for beside it. Nothing was drawn"
            )
        self._check_cost(strategy, measurement.scales, price)
        self._account.charge(Call("resume", strategy.kind, price, measurement.scales))
        self._account.refinable.append(Refinable(measurement, price, self._counts))

    def refine(
        self, measurement: Measurement, wanted: Scales, *, budget: Budget | Fraction
    ) -> Measurement:
        """Charge the difference, then lower the noise of rows: Lemma RF3.

        Rows that `wanted` would make noisier stay as they are. A measurement is refined
        once; its successor may be refined again.

        Parameters
        ----------
        measurement : Measurement
            What `measure_roughly`, or `refine`, returned last, on this handle.
        wanted : Scales
            The noise that the rows shall have; it may follow from noisy values.
        budget : Budget or Fraction
            The price of all noise of these rows, what was paid before included.

        Returns
        -------
        Measurement
            The same rows of the same counts with less noise.

        Raises
        ------
        PrivacyError
            If the measurement is not the last one of a chain on these very counts, or
            the noise would cost more than `budget` on some edge.
        """
        price = self._read(budget)
        held = self._last_of_chain(measurement)
        scales = lowered_scales(measurement.scales, wanted)
        strategy = measurement.strategy
        self._check_cost(strategy, scales, price)
        more = price - held.paid
        self._account.charge(Call("refine", strategy.kind, more, scales))
        if self._counts is None or self._rng is None:
            noisy = np.zeros_like(measurement.noisy)
        else:
            rows = strategy.rows(self._listed_counts())
            first = measurement.noisy - rows
            noise = lowered_noise(first, measurement.scales, scales, self._rng)
            noisy = strategy.published(rows, noise, scales)
        refined = measurement.with_scales(scales)._replace(noisy=noisy)
        self._replace_last(held, refined, price)
        return refined

    def _last_of_chain(self, measurement: Measurement) -> Refinable:
        """Return what is remembered of a measurement; refuse all that is not."""
        for held in self._account.refinable:
            if held.measurement is measurement and held.counts is self._counts:
                return held
        raise PrivacyError(
            "a measurement is refined once, on the handle that measured it roughly: "
            "two successors of one draw, or other counts, would cost more than the "
            "difference. Nothing was drawn"
        )

    def _replace_last(
        self, held: Refinable, refined: Measurement, paid: Budget
    ) -> None:
        """Let the refined measurement take the place of the one before it."""
        refined.noisy.setflags(write=False)
        # By identity: entries hold arrays, which have no truth value.
        places = [entry is held for entry in self._account.refinable]
        self._account.refinable[places.index(True)] = Refinable(
            refined, paid, held.counts
        )

    def list_above(
        self, lister: Lister[Chosen], *, budget: Budget | Fraction
    ) -> Chosen:
        """Charge, then list the cells whose noisy counts reach a public threshold.

        Lemma SL1: the list is a function of what `Cells` would publish.

        Parameters
        ----------
        lister : Lister[Chosen]
            What lists them.
        budget : Budget or Fraction
            The price.

        Returns
        -------
        Chosen
            The list.
        """
        price = self._read(budget)
        scales = lister.scales(self.policy, price.over(self._group_size))
        self._refuse_above(price, lister, scales)
        self._account.charge(Call("list", lister.kind, price, scales))
        if self._counts is None or self._rng is None:
            return lister.nothing(scales)
        counts = self._counts
        filled = counts if isinstance(counts, FilledCells) else FilledCells.of(counts)
        return lister.draw(filled, scales, self._rng)

    def _priced(self, asked: Measurable, price: Budget) -> PreparedStrategy:
        """Return the noise that `asked` chose; refuse what costs more than `price`."""
        prepared = self.prepare(asked, budget=price)
        self._refuse_above(price, prepared.strategy, prepared.scales)
        return prepared

    def _refuse_above(
        self, price: Budget, asked: LinearStrategy | Lister[Any], scales: Scales
    ) -> None:
        """Work out what the worst edge costs, whoever chose the noise: Lemma HA1."""
        if scales.power != price.power:
            raise PrivacyError(
                f"{asked.kind} was granted {price.words()} and chose noise of the "
                "other currency; nothing was drawn"
            )
        self._check_cost(asked, scales, price)

    def _check_cost(
        self, asked: LinearStrategy | Lister[Any], scales: Scales, price: Budget
    ) -> None:
        """Refuse noise whose worst edge costs more than `price`."""
        edge = Budget(asked.cost(self.policy, scales), price.power)
        cost = edge.at_distance(self._group_size)
        if cost > price:
            raise PrivacyError(
                f"{asked.kind} would cost {float(cost):g} on the worst edge and was "
                f"granted {float(price):g}; its scales are wrong, nothing was drawn"
            )

    def along(self, curve: MapCurve) -> Self:
        """Return the same account with the cells of a wide map along a curve.

        Lemma DS8: other names for cells, and names that no cell has, change nothing.

        Parameters
        ----------
        curve : MapCurve
            Which number each cell has along a line.

        Returns
        -------
        Self
            The handle over the line, under the same policy.

        Raises
        ------
        PolicyError
            If the policy is not the same on any numbering of the cells.
        """
        policy = policy_along(self.policy, curve)
        counts = self._counts
        assert counts is None or isinstance(counts, FilledCells)
        numbered = Handle(
            None if counts is None else counts.along(curve),
            policy,
            self._account,
            self._rng,
            group_size=self._group_size,
        )
        return self.over(self, **vars(numbered))

    def coarsened(self, buckets: Buckets) -> Self:
        """Return the same account on bucket totals, under the quotient policy."""
        counts = self._counts
        plain = buckets.are_single_cells and buckets.order is None
        if plain and not isinstance(counts, FilledCells):
            return self
        totals = None
        if counts is not None:
            totals = (
                counts.within(buckets.edges)
                if isinstance(counts, FilledCells)
                else buckets.sum(counts)
            )
        coarse = Handle(
            totals,
            self.policy.project(buckets),
            self._account,
            self._rng,
            buckets=self.buckets.then(buckets),
            group_size=self._group_size,
        )
        return self.over(self, **vars(coarse))

    def _law_alone(self, prepared: PreparedStrategy, price: Budget) -> Measurement:
        """Charge for a measurement of which nobody reads a row."""
        scales = prepared.scales
        self._account.charge(Call("measure", prepared.kind, price, scales))
        unread = np.zeros(scales.rates.size, dtype=np.int64)
        return LawAlone(prepared, unread, self.buckets)

    def _read(self, budget: Budget | Fraction) -> Budget:
        """Return a price in the account's currency; a plain number is one too."""
        if isinstance(budget, Budget):
            return budget
        return Budget(Fraction(budget), self._account.granted.power)


def policy_along(policy: Policy, curve: MapCurve) -> Policy:
    """Return the policy of a wide map on the line along which its cells are numbered.

    Parameters
    ----------
    policy : Policy
        The policy of single records on the map.
    curve : MapCurve
        Which number each cell has.

    Returns
    -------
    Policy
        The same one over the line.

    Raises
    ------
    PolicyError
        If it is not the same on any numbering of the cells.
    """
    along = policy._seen_through([], WideDomain(curve.cells))
    if along is None:
        raise PolicyError(
            "on a wide map every two cells are joined, or none is",
            received=repr(policy),
            way_out="Use AddRemove or Full, or coarser cells of a Domain",
        )
    return along


class Forecast(Handle):
    """A dry run for the law of the noise: nothing is inferred, and no cost checked."""

    def measure(
        self, strategy: Measurable, *, budget: Budget | Fraction
    ) -> Measurement:
        """Charge, and return the scales of the noise that would be drawn.

        Parameters
        ----------
        strategy : LinearStrategy or PreparedStrategy
            What is measured.
        budget : Budget or Fraction
            The price.

        Returns
        -------
        Measurement
            The law of the noise; it holds no row that may be read.
        """
        prepared = self.prepare(strategy, budget=budget)
        return self._law_alone(prepared, self._read(budget))


class Rehearsal(Handle):
    """A dry run that finds out whether a release could be carried out: Lemma HA5.

    Every measurement is priced, and every choice checked, by public values alone. What
    follows a choice depends on it, so the rehearsal of a recipe ends there; a recipe
    that asks for more behind a draw rehearses that too (`Mechanism._rehearse`).
    """

    def select(self, selector: Selector[Chosen], *, budget: Budget | Fraction) -> Any:
        """Check that `selector` could choose, charge, and end the rehearsal.

        Parameters
        ----------
        selector : Selector[Chosen]
            What chooses.
        budget : Budget or Fraction
            The price.

        Returns
        -------
        Chosen
            Nothing is ever returned.

        Raises
        ------
        DryRunEnded
            Always, at the end: what follows depends on the choice.
        """
        price = self._read(budget)
        each = price.over(self._group_size)
        check_selector(selector, self.policy, self._cells, each)
        self._account.charge(Call("select", selector.name, price, None))
        raise DryRunEnded

    def measure(
        self, strategy: Measurable, *, budget: Budget | Fraction
    ) -> Measurement:
        """Price the measurement, charge, and return the law of its noise alone.

        Parameters
        ----------
        strategy : LinearStrategy or PreparedStrategy
            What is measured.
        budget : Budget or Fraction
            The price.

        Returns
        -------
        Measurement
            The law of the noise; it holds no row that may be read.
        """
        price = self._read(budget)
        return self._law_alone(self._priced(strategy, price), price)

    @property
    def public_totals(self) -> IntArray:
        """End the rehearsal: what follows depends on the data, though in public."""
        raise DryRunEnded


class Pricing(Handle):
    """A dry run up to the first draw, and what is then left on which account.

    A recipe may follow what was drawn before, or a total that is public: a dry run
    knows neither, so nothing behind them has a price of its own (Lemma ZC8).

    ::

        account   [ first step | the rest ]   half of the square of each, added up
    """

    accounts: list[Account]
    """The accounts of all parts; what is left on them is charged as it is."""
    prices: list[Fraction]
    """The rho of the first step."""

    @classmethod
    def in_rho(cls, handle: Handle, recipe: Callable[[Handle], object]) -> Fraction:
        """Return what a recipe costs in rho, from public values alone: Lemma ZC8.

        Parameters
        ----------
        handle : Handle
            A handle without counts, which holds the budget.
        recipe : callable
            What would be run with it.

        Returns
        -------
        Fraction
            The price.
        """
        accounts, prices = [handle._account], list[Fraction]()
        with suppress(DryRunEnded, DataDependentError):
            recipe(cls.over(handle, accounts=accounts, prices=prices))
        left = [(account.granted - account.spent).rho for account in accounts]
        return sum([*prices, *left], Fraction(0))

    @property
    def public_totals(self) -> NoReturn:
        """Stop: a price is fixed before any total is read."""
        raise DryRunEnded

    def split(self, parts: int) -> list[Self]:
        """Split the budget, and remember each part's account."""
        handles = super().split(parts)
        self.accounts.extend(handle._account for handle in handles)
        return handles

    def select(self, selector: Selector[Any], *, budget: Budget | Fraction) -> NoReturn:
        """Charge a choice, and stop.

        Parameters
        ----------
        selector : Selector
            What would choose.
        budget : Budget or Fraction
            What it may cost.

        Raises
        ------
        DryRunEnded
            Always: what follows a draw has no price of its own.
        """
        charged = self._read(budget)
        self._account.charge(Call("select", selector.name, charged, None))
        loss_range, parts = stated_losses(selector, self.buckets.count)
        self._stop(charged.choice_rho(loss_range, parts))

    def list_above(self, lister: Lister[Any], *, budget: Budget | Fraction) -> NoReturn:
        """Charge a list, and stop.

        Parameters
        ----------
        lister : Lister
            What would be listed.
        budget : Budget or Fraction
            What it may cost.

        Raises
        ------
        DryRunEnded
            Always: what follows a draw has no price of its own.
        """
        listed = super().list_above(lister, budget=budget)
        edge = Budget(lister.cost_in_rho(self.policy, listed.scales), 2)
        rho = edge.at_distance(self._group_size).amount
        self._stop(min(self._read(budget).rho, rho))

    def measure(self, strategy: Measurable, *, budget: Budget | Fraction) -> NoReturn:
        """Charge a measurement, and stop.

        Parameters
        ----------
        strategy : LinearStrategy or PreparedStrategy
            What would be measured.
        budget : Budget or Fraction
            What it may cost.

        Raises
        ------
        DryRunEnded
            Always: what follows a draw has no price of its own.
        """
        measurement = super().measure(strategy, budget=budget)
        rho, rows_of = self._read(budget).rho, measurement.strategy
        if isinstance(rows_of, LinearStrategy):
            edge = Budget(rows_of.cost_in_rho(self.policy, measurement.scales), 2)
            rho = min(rho, edge.at_distance(self._group_size).amount)
        self._stop(rho)

    def measure_roughly(
        self, strategy: LinearStrategy, *, budget: Budget | Fraction
    ) -> NoReturn:
        """Stop before anything is charged.

        Squares of the steps of a chain do not add up to the square of their sum: all
        that is left is charged as one pure release (Lemma RF4).

        Parameters
        ----------
        strategy : LinearStrategy
            What would be measured.
        budget : Budget or Fraction
            What it may cost.

        Raises
        ------
        DryRunEnded
            Always: noise that is lowered later has no price of its own.
        """
        raise DryRunEnded

    def _stop(self, rho: Fraction) -> NoReturn:
        self.prices.append(rho)
        raise DryRunEnded


def choice_epsilon(selector: Any, budget: Budget, cells: int) -> Fraction:
    """Return the epsilon at which a selector chooses for `budget`: Lemma ZC7.

    Parameters
    ----------
    selector : Selector
        What chooses.
    budget : Budget
        What it may spend.
    cells : int
        Number of counts.

    Returns
    -------
    Fraction
        The epsilon.

    Raises
    ------
    EpsilonError
        If the budget leaves no epsilon.
    """
    epsilon = budget.for_choice(*stated_losses(selector, cells))
    if epsilon <= 0 < budget.amount:
        raise EpsilonError(
            f"{budget.words()} leaves no epsilon for {selector.name}; raise it"
        )
    return epsilon


def stated_losses(selector: Any, cells: int) -> tuple[int, tuple[Fraction, ...]]:
    """Return what a selector states about its loss.

    Parameters
    ----------
    selector : Selector
        What chooses.
    cells : int
        Number of counts.

    Returns
    -------
    loss_range : int
        Its `loss_range`; 2 if it does not state one.
    parts : tuple[Fraction, ...]
        Its `parts`; empty if it does not state any.
    """
    parts = selector.parts(cells) if hasattr(selector, "parts") else ()
    return getattr(selector, "loss_range", 2), parts


def _refuse_chain(strategy: LinearStrategy, price: Budget) -> None:
    """Refuse rows whose first draw is not known from what they publish, and rho."""
    if type(strategy).published is not LinearStrategy.published:
        raise PrivacyError(
            f"{strategy.kind} publishes something else than rows with a draw each, "
            "from which a first draw cannot be told; nothing was drawn"
        )
    if price.power != 1:
        raise PrivacyError(
            "only noise that is paid in epsilon is lowered later; in rho measure "
            "twice, precisions add. Nothing was drawn"
        )


def _draw(scales: Scales, rng: Randomness) -> IntArray:
    """Return one exact draw per measured scale, 0 elsewhere: Laplace, or Gaussian."""
    measured = measured_rows(scales)
    rates = scales.rates[measured]
    if rates.size == 0:
        return np.zeros(scales.rates.size, dtype=np.int64)
    # One shared scale is the faster path of the sampler.
    shared = bool((rates == rates[0]).all())
    draw = rng.laplace
    if scales.power == 2:
        # Variance unit / (2 rate).
        draw, rates = rng.gaussian, 2 * rates
    draws = (
        draw(scales.unit, int(rates[0]), size=rates.size)
        if shared
        else draw(scales.unit, rates)
    )
    if draws.size == scales.rates.size:
        return draws
    noise = np.zeros(scales.rates.size, dtype=np.int64)
    noise[measured] = draws
    return noise

"""A handle that is watched: every step of a recipe, in the order in which it happened.

A `Witness` stands where a `Handle` would and notes what was asked, charged, opened and
drawn. A `Replay` hands the noted results out again without any counts, so a recipe that
makes the same release from it has used nothing else.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import BlowfishError, PrivacyError
from blowfish_fast.kernels.sampling.word_sources import WordStream
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import (
    Account,
    Call,
    Chosen,
    Handle,
    Lister,
    Measurable,
    Measurement,
    Selector,
)
from blowfish_fast.measure.noise import Scales
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.mechanisms.base import Mechanism, Outcome
from blowfish_fast.mechanisms.example_data import data_for
from blowfish_fast.policies import Policy

FINGERPRINT_WORDS = 4


class Opened(NamedTuple):
    """A stream of words was opened; its first words tell it from others."""

    fingerprint: bytes


class Draw(NamedTuple):
    """Noise was drawn: its law, the scales asked for, and the values.

    Attributes
    ----------
    law : str
        The law.
    numerators : int or ndarray of int64
        Numerators of the scales.
    denominators : int or ndarray of int64
        Denominators of the scales.
    values : ndarray of int64
        The values.
    """

    law: str
    """"laplace", "geometric" or "gaussian"."""
    numerators: int | IntArray
    denominators: int | IntArray
    values: IntArray


Note = Call | Opened | Draw


StepKind = Literal["select", "measure", "refine", "list", "totals"]


class Step(NamedTuple):
    """One call on the handle, with everything that it saw. It holds private counts.

    Attributes
    ----------
    kind : StepKind
        What was called.
    asked : object
        The selector or strategy; the earlier measurement, where noise was lowered.
    charged : Budget
        What was charged.
    calibrated : Fraction or None
        The epsilon that a selector got.
    result : object
        What came back.
    diary : tuple[Note, ...]
        What was charged, opened and drawn meanwhile.
    policy : Policy
        The policy of the handle.
    group_size : int
        How many records move together.
    counts : object
        The true counts.
    """

    kind: StepKind
    asked: Any
    charged: Budget
    calibrated: Fraction | None
    """The epsilon that a selector was given; None for a measurement."""
    result: Any
    diary: tuple[Note, ...]
    policy: Policy
    group_size: int
    counts: Any


class WatchedRandomness(Randomness):
    """Randomness that notes every stream it opens and every draw it makes.

    Parameters
    ----------
    seed : int or numpy.random.Generator or None
        Where chance begins; None for secure noise.
    diary : list[Note]
        Where it notes them.
    """

    __slots__ = ("diary",)

    def __init__(
        self, seed: int | np.random.Generator | None, diary: list[Note]
    ) -> None:
        super().__init__(seed)
        self.diary = diary

    def stream(self) -> WordStream:
        """Open the next stream and note how it begins."""
        words = super().stream()
        self.diary.append(Opened(words(0, FINGERPRINT_WORDS).tobytes()))
        return words

    def _draw(self, kind: Callable[..., IntArray], *asked: Any) -> IntArray:
        values = super()._draw(kind, *asked)
        numerators, denominators, *_ = asked
        self.diary.append(Draw(kind.__name__, numerators, denominators, values))
        return values


class WatchedAccount(Account):
    """An account that notes its charges in the diary, among the draws."""

    diary: list[Note]

    def charge(self, call: Call) -> None:
        """Charge as usual, and note it."""
        super().charge(call)
        self.diary.append(call)


class _Overheard:
    """A selector that notes the epsilon it is given."""

    def __init__(self, selector: Any) -> None:
        self.selector = selector
        self.as_it_was = _copy(selector)
        self.name: str = selector.name
        self.loss_range: int = getattr(selector, "loss_range", 2)
        self.parts = getattr(selector, "parts", lambda _cells: ())
        self.given: Fraction | None = None

    def select(self, counts: IntArray, **terms: Any) -> Any:
        self.given = terms["epsilon"]
        return self.selector.select(counts, **terms)


def _copy(selector: Any) -> Any:
    """Copy a selector with its arrays, which a recipe may change between rounds."""
    other = copy.copy(selector)
    for name, value in vars(selector).items():
        if isinstance(value, np.ndarray):
            setattr(other, name, value.copy())
    return other


class Witness(Handle):
    """A handle that keeps its steps."""

    steps: list[Step]
    diary: list[Note]

    @property
    def public_totals(self) -> IntArray:
        """Totals that are public, noted because a recipe may use them."""
        totals = super().public_totals
        self._keep("totals", None, self.remaining * 0, None, totals, len(self.diary))
        return totals

    def select(
        self, selector: Selector[Chosen], *, budget: Budget | Fraction
    ) -> Chosen:
        """Select as usual, and note it.

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
        """
        begin = len(self.diary)
        heard = _Overheard(selector)
        chosen: Chosen = super().select(heard, budget=budget)
        charged = self._read(budget)
        self._keep("select", heard.as_it_was, charged, heard.given, chosen, begin)
        return chosen

    def measure(
        self, strategy: Measurable, *, budget: Budget | Fraction
    ) -> Measurement:
        """Measure as usual, and note it.

        Parameters
        ----------
        strategy : LinearStrategy or PreparedStrategy
            What is measured.
        budget : Budget or Fraction
            The price.

        Returns
        -------
        Measurement
            The noisy rows.
        """
        begin = len(self.diary)
        measurement = super().measure(strategy, budget=budget)
        self._keep(
            "measure",
            measurement.strategy,
            self._read(budget),
            None,
            measurement,
            begin,
        )
        return measurement

    def refine(
        self, measurement: Measurement, wanted: Scales, *, budget: Budget | Fraction
    ) -> Measurement:
        """Lower noise as usual, and note it with what was charged in addition.

        Parameters
        ----------
        measurement : Measurement
            What was measured before.
        wanted : Scales
            The noise that the rows shall have.
        budget : Budget or Fraction
            The price of all noise of these rows, what was paid before included.

        Returns
        -------
        Measurement
            The same rows with less noise.
        """
        begin = len(self.diary)
        refined = super().refine(measurement, wanted, budget=budget)
        more = self._account.calls[-1].budget
        self._keep("refine", measurement, more, None, refined, begin)
        return refined

    def list_above(
        self, lister: Lister[Chosen], *, budget: Budget | Fraction
    ) -> Chosen:
        """List as usual, and note it.

        Parameters
        ----------
        lister : Lister[Chosen]
            What lists.
        budget : Budget or Fraction
            The price.

        Returns
        -------
        Chosen
            What was listed.
        """
        begin = len(self.diary)
        listed = super().list_above(lister, budget=budget)
        self._keep("list", lister, self._read(budget), None, listed, begin)
        return listed

    def _keep(
        self,
        kind: StepKind,
        asked: Any,
        charged: Budget,
        calibrated: Fraction | None,
        result: Any,
        begin: int,
    ) -> None:
        seen = charged, calibrated, result, tuple(self.diary[begin:])
        rules = self.policy, self._group_size
        self.steps.append(Step(kind, asked, *seen, *rules, self._counts))


class Replay(Handle):
    """A handle without counts that hands out results noted before, in their order."""

    noted: Iterator[Step]

    @property
    def dry_run(self) -> bool:
        """Never: the recipe shall do what it did."""
        return False

    @property
    def public_totals(self) -> IntArray:
        """The totals that were read."""
        totals: IntArray = self._next("totals", None).result
        return totals

    def select(
        self, selector: Selector[Chosen], *, budget: Budget | Fraction
    ) -> Chosen:
        """Return what was chosen.

        Parameters
        ----------
        selector : Selector[Chosen]
            What the recipe chooses with, by its name alone.
        budget : Budget or Fraction
            The price.

        Returns
        -------
        Chosen
            The choice that was noted.
        """
        chosen: Chosen = self._again("select", selector.name, budget)
        return chosen

    def measure(
        self, strategy: Measurable, *, budget: Budget | Fraction
    ) -> Measurement:
        """Return what was measured.

        Parameters
        ----------
        strategy : LinearStrategy or PreparedStrategy
            What the recipe measures, by its kind alone.
        budget : Budget or Fraction
            The price.

        Returns
        -------
        Measurement
            The noisy rows that were noted.
        """
        measurement: Measurement = self._again("measure", strategy.kind, budget)
        return measurement

    def refine(
        self, measurement: Measurement, wanted: Scales, *, budget: Budget | Fraction
    ) -> Measurement:
        """Return what was measured with less noise.

        Parameters
        ----------
        measurement : Measurement
            What was measured before.
        wanted : Scales
            The noise that the rows shall have.
        budget : Budget or Fraction
            The price of all noise of these rows, what was paid before included.

        Returns
        -------
        Measurement
            The rows with less noise that were noted.
        """
        price, held = self._read(budget), self._last_of_chain(measurement)
        more, kind = price - held.paid, measurement.strategy.kind
        refined: Measurement = self._again("refine", kind, more)
        self._replace_last(held, refined, price)
        return refined

    def list_above(
        self, lister: Lister[Chosen], *, budget: Budget | Fraction
    ) -> Chosen:
        """Return what was listed.

        Parameters
        ----------
        lister : Lister[Chosen]
            What the recipe lists with, by its kind alone.
        budget : Budget or Fraction
            The price.

        Returns
        -------
        Chosen
            The list that was noted.
        """
        listed: Chosen = self._again("list", lister.kind, budget)
        return listed

    def _again(self, kind: StepKind, name: str, budget: Budget | Fraction) -> Any:
        charged = self._read(budget)
        self._account.charge(Call(kind, name, charged, None))
        return self._next(kind, charged).result

    def _next(self, kind: str, budget: Budget | None) -> Step:
        step = next(self.noted, None)
        if step is None or step.kind != kind or budget not in (None, step.charged):
            raise PrivacyError(
                f"a replay asked for {kind} at {budget} where the release had "
                f"{step and (step.kind, step.charged)}: the recipe depends on counts "
                "that it did not get from its handle"
            )
        return step


@dataclass(frozen=True)
class Testimony:
    """A watched run: what the recipe handed back and how it came about.

    Attributes
    ----------
    mechanism : Mechanism
        The mechanism.
    counts : object
        The true counts.
    outcome : Outcome
        What the recipe handed back.
    account : Account
        What was charged.
    steps : list[Step]
        The calls on the handle.
    diary : list[Note]
        What was charged, opened and drawn.
    """

    mechanism: Mechanism
    counts: Any
    outcome: Outcome
    account: Account
    steps: list[Step]
    diary: list[Note]

    @property
    def measured(self) -> list[Step]:
        """The steps that added noise to rows."""
        return [step for step in self.steps if step.kind == "measure"]

    @property
    def refined(self) -> list[Step]:
        """The steps that lowered the noise of rows measured before."""
        return [step for step in self.steps if step.kind == "refine"]

    def whole_price(self, step: Step) -> Budget:
        """Return what all noise of refined rows has cost, from the first draw on."""
        total = step.charged
        while step.kind == "refine":
            (step,) = (
                earlier for earlier in self.steps if earlier.result is step.asked
            )
            total = total + step.charged
        return total

    @property
    def listed(self) -> list[Step]:
        """The steps that listed cells above a threshold."""
        return [step for step in self.steps if step.kind == "list"]

    @property
    def selected(self) -> list[Step]:
        """The steps that chose something."""
        return [step for step in self.steps if step.kind == "select"]


def is_admitted(kind: type[Mechanism], policy: Policy, epsilon: Any) -> bool:
    """Return whether public values admit the example of a mechanism under a policy.

    Nothing is drawn: a release that fails later was admitted, and fails the audit.

    Parameters
    ----------
    kind : type of Mechanism
        The mechanism.
    policy : Policy
        The policy of the stop.
    epsilon : number or Budget
        What the example may cost.

    Returns
    -------
    bool
        False where the example, a rehearsal or the reading of its data refuses.
    """
    try:
        mechanism, data = kind.example(policy.domain, policy, epsilon)
        mechanism.check_feasible()
        mechanism._counts(data_for(policy, data))
    except BlowfishError:
        return False
    return True


def watch_example(
    kind: type[Mechanism], policy: Policy, epsilon: Any, seed: int = 0
) -> Testimony:
    """Run the example of a mechanism under watch, its people bounded as needed.

    Parameters
    ----------
    kind : type[Mechanism]
        The class of the mechanism.
    policy : Policy
        What is secret.
    epsilon : number, str, Fraction or Budget
        The budget.
    seed : int, default 0
        Where chance begins.

    Returns
    -------
    Testimony
        The testimony.
    """
    mechanism, data = kind.example(policy.domain, policy, epsilon)
    return watch(mechanism, data_for(policy, data), seed)


def watch(
    mechanism: Mechanism, data: Any, seed: int | np.random.Generator | None = 0
) -> Testimony:
    """Run the recipe of a mechanism once under watch.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    data : Histogram or array-like
        The counts.
    seed : int or numpy.random.Generator or None, default 0
        Where chance begins; None for secure noise.

    Returns
    -------
    Testimony
        The testimony.
    """
    diary: list[Note] = []
    steps: list[Step] = []
    account = WatchedAccount(mechanism.budget)
    account.diary = diary
    counts = mechanism._counts(data)
    handle = mechanism._handle(counts, account, WatchedRandomness(seed, diary))
    outcome = mechanism._run(Witness.over(handle, steps=steps, diary=diary))
    return Testimony(mechanism, counts, outcome, account, steps, diary)


def replay(testimony: Testimony) -> Outcome:
    """Run the recipe again on what was noted, without counts and without noise."""
    mechanism = testimony.mechanism
    handle = mechanism._handle(None, Account(mechanism.budget), None)
    return mechanism._run(Replay.over(handle, noted=iter(testimony.steps)))

"""How many records of a person to count, and what counting no more loses; paid for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import (
    as_confidence,
    as_counts,
    as_integers,
    as_whole,
    malformed_as,
    naming_right_words,
)
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import CountsError, InputError
from blowfish_fast.measure.budgets import Budget, HasBudget
from blowfish_fast.measure.selectors.selections import FirstBelow
from blowfish_fast.mechanisms import Gaussian, Laplace, Mechanism
from blowfish_fast.mechanisms.around_releases.contribution_choice import (
    ContributionChoice,
)
from blowfish_fast.mechanisms.example_data import data_for
from blowfish_fast.policies import AddRemove, Policy
from blowfish_fast.release.file import Release
from blowfish_fast.workloads import Identity, Ranges

from .ledger import Ledger
from .request import RandomLike

STEP = 1.25
LAST = 1000
"""Candidates are 1.25^j, rounded, up to about this many records."""


def candidates() -> IntArray:
    """Return the public numbers of records that are considered: 1, 2, ... 7, 9, ..."""
    steps = math.ceil(math.log(LAST) / math.log(STEP)) + 1
    return np.unique(np.rint(STEP ** np.arange(steps)).astype(np.int64))


class AtMost(HasBudget, int):
    """A number of records of a person; what it cost, and who is protected as what."""

    budget: Budget
    sentence: str

    def __new__(cls, value: int, budget: Budget, sentence: str) -> Self:
        """Keep how a number was found beside it."""
        own = super().__new__(cls, value)
        own.budget = budget
        own.sentence = sentence
        return own


@naming_right_words
def choose_at_most(
    records_per_person: Any,
    *,
    cells: int,
    then: Any,
    policy: Policy | None = None,
    ledger: Ledger | None = None,
    request: str | None = None,
    rng: RandomLike | None = None,
    epsilon: Any = None,
    rho: Any = None,
    delta: Any = None,
) -> AtMost:
    """Choose privately how many records of a person to count.

    The first k of 1, 2, 3, 4, 5, 6, 7, 9, 12, ... with at most ``ceil(cells / then)``
    persons above it is returned, both sides noisy; the last one if there is none. What
    is lost by counting no more than k records of a person is private and not reported;
    `truncation_loss` estimates it, for a charge of its own.

    Where `then` is rho, ``ceil(cells / sqrt(pi then))`` takes the place of that number:
    noise of either kind is then as far off on average. Where no edge of the policy
    leads to "absent", the number of a person's records is no secret: the choice is
    exact and free, and says so.

    Parameters
    ----------
    records_per_person : array-like of int
        How many records each person has; true, and seen by nobody.
    cells : int
        The size of the domain that will be released; public, never taken from the data.
    then : number, str or Fraction
        What the release that follows will cost: in epsilon beside ``epsilon=``, in rho
        beside ``rho=``.
    policy : Policy, optional
        What is secret. Left out, it is that of the ledger; without either, every
        person is.
    ledger : Ledger, optional
        What pays. It is kept under a policy of persons. Without one nothing is charged.
    request : str, optional
        Name of this question in the ledger. Asked again, the stored answer comes back.
    rng : int or numpy Generator, optional
        A seed, for experiments; None draws secure noise.
    epsilon, rho, delta : number, str or Fraction
        What the choice costs: `epsilon`, or `rho`, or `epsilon` with `delta`.

    Returns
    -------
    AtMost
        The number, as an int that knows its budget and says a sentence.

    Raises
    ------
    InputError
        If the ledger is one of single records.
    CountsError
        If `records_per_person` are no whole numbers from 0 on.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> visits = [1] * 5000 + [2] * 3000 + [3] * 1500 + [8] * 20
    >>> k = bf.choose_at_most(visits, cells=100, epsilon="0.5", then="0.5", rng=1)
    >>> int(k), float(k.epsilon)
    (3, 0.5)
    >>> line = bf.policies.Line(bf.Domain(100)).per_person()
    >>> free = bf.choose_at_most(
    ...     visits, cells=100, epsilon="0.5", then="0.5", policy=line
    ... )
    >>> int(free), float(free.epsilon)
    (3, 0.0)
    """
    held = _as_held(records_per_person)
    budget = Budget.stated(epsilon=epsilon, rho=rho, delta=delta)
    if rho is None:
        spent = Budget.stated(epsilon=then, delta=delta)
    else:
        spent = Budget.stated(rho=then, delta=delta)
    rate = spent.amount if spent.power == 1 else math.sqrt(math.pi * spent.amount)
    bar = math.ceil(as_whole(cells, "cells", 1) / rate)
    grid = candidates()
    profile = Domain(grid.size + 1)
    counts = np.bincount(np.searchsorted(grid, held), minlength=profile.size)
    if _is_public(policy, ledger):
        tails = FirstBelow(bar).tails(counts)
        below = np.flatnonzero(tails <= bar)
        chosen = int(grid[below[0]]) if below.size else int(grid[-1])
        return AtMost(
            chosen,
            budget * 0,
            f"at most {chosen} records of a person are counted: chosen from the data, "
            "free, because how many records a person has is no secret of the policy",
        )
    # Each person is one record of the profile, whatever records she has.
    asked = _payable(AddRemove(profile), 1, ledger)
    choice = ContributionChoice(asked, bar=bar, epsilon=budget)
    release = _pay(choice, counts, ledger, request, rng)
    chosen = int(grid[int(release.details["place"])])
    return AtMost(
        chosen,
        budget,
        f"at most {chosen} records of a person are counted: chosen privately, at "
        f"{budget.in_short()} for one person",
    )


class LostRecords(NamedTuple):
    """How many records are not counted with at most so many of a person.

    The interval holds the true number with at least the stated confidence.

    Attributes
    ----------
    at_most : int
        How many records of a person are counted.
    up_to : int
        Records after a person's number so many are nowhere in it.
    estimate : float
        The estimated number.
    low : float
        The lower end of the interval.
    high : float
        The upper end.
    confidence : float
        How surely it holds.
    budget : Budget
        What was paid once for all numbers that were asked together; 0 where the answer
        is exact.
    """

    at_most: int
    up_to: int
    estimate: float
    low: float
    high: float
    confidence: float
    budget: Budget

    @property
    def epsilon(self) -> Fraction:
        """What was paid, where it is epsilon."""
        return self.budget.epsilon

    @property
    def sentence(self) -> str:
        """Say in plain words what is lost, and at which price it is known."""
        counted = (
            f"at most {self.at_most:,} records of a person are counted; of those up to "
            f"a person's number {self.up_to:,}"
        )
        if self.budget.amount == 0:
            return (
                f"{counted}, {self.estimate:,.0f} are not: exact and free, because how "
                "many records a person has is no secret of the policy"
            )
        return (
            f"{counted}, between {self.low:,.0f} and {self.high:,.0f} are not "
            f"(confidence {self.confidence:g}; {self.budget.in_short()} for one "
            "person)"
        )


@naming_right_words
def truncation_loss(
    records_per_person: Any,
    *,
    at_most: Any,
    up_to: int,
    confidence: float = 0.95,
    policy: Policy | None = None,
    ledger: Ledger | None = None,
    request: str | None = None,
    rng: RandomLike | None = None,
    epsilon: Any = None,
    rho: Any = None,
    delta: Any = None,
) -> tuple[LostRecords, ...]:
    """Estimate privately how many records are lost by counting at most k of a person.

    The records of a person are numbered, and only those up to number `up_to` are looked
    at. One person with any number of records then changes the loss by at most
    ``up_to - k``, to which the noise is scaled (Lemma PE7). What is exact and free for
    `choose_at_most` is exact and free here.

    Parameters
    ----------
    records_per_person : array-like of int
        How many records each person has; true, and seen by nobody.
    at_most : int, or list of int
        The numbers k of records of a person that may be counted; several share the
        price. They are public, never taken from the data.
    up_to : int
        The last record of each person that is looked at, above every k; public.
    confidence : float
        How surely each interval holds its number.
    policy : Policy, optional
        What is secret. Left out, it is that of the ledger; without either, every
        person is.
    ledger : Ledger, optional
        What pays. It is kept under a policy of persons. Without one nothing is charged.
    request : str, optional
        Name of this question in the ledger. Asked again, the stored answer comes back.
    rng : int or numpy Generator, optional
        A seed, for experiments; None draws secure noise.
    epsilon, rho, delta : number, str or Fraction
        What all numbers cost together: `epsilon`, or `rho`, or `epsilon` with `delta`.

    Returns
    -------
    tuple of LostRecords
        One for each k, in the order of `at_most`.

    Raises
    ------
    InputError
        If some k is below 1 or not below `up_to`, or if the ledger is one of single
        records or of persons that count once.
    CountsError
        If `records_per_person` are no whole numbers from 0 on.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> visits = [1] * 5000 + [2] * 3000 + [3] * 1500 + [8] * 90 + [40] * 10
    >>> few, more = bf.truncation_loss(
    ...     visits, at_most=[2, 5], up_to=20, epsilon="0.5", rng=1
    ... )
    >>> few.low <= 1500 + 90 * 6 + 10 * 18 <= few.high
    True
    >>> more.low <= 90 * 3 + 10 * 15 <= more.high, float(more.epsilon)
    (True, 0.5)
    """
    held = _as_held(records_per_person)
    numbers = np.atleast_1d(as_integers(at_most, "at_most", InputError))
    last, price = (
        as_whole(up_to, "up_to", 1),
        Budget.stated(epsilon=epsilon, rho=rho, delta=delta),
    )
    sure = as_confidence(confidence)
    if (
        numbers.ndim != 1
        or not numbers.size
        or numbers.min() < 1
        or numbers.max() >= last
    ):
        raise InputError(
            "at_most is a number of records from 1 to below up_to, or a list of them",
            received=f"at_most={at_most!r} and up_to={up_to!r}",
        )
    borders = np.unique(np.append(numbers, last))
    ranks = Domain(borders.size - 1)
    counts = _records_between(held, borders)
    places = np.searchsorted(borders, numbers)
    tails = Ranges(ranks, places, np.full(places.size, ranks.size))
    if _is_public(policy, ledger):
        lost = tails.answer(counts)
        bounds = np.column_stack([lost, lost])
        price *= 0
    else:
        asked = _payable(AddRemove(ranks), last - int(borders[0]), ledger)
        noise = Laplace if price.power == 1 else Gaussian
        release = _pay(
            noise(asked, Identity(ranks), epsilon=price), counts, ledger, request, rng
        )
        lost = release.answer(tails)
        bounds = release.intervals(tails, sure, of="truth")
    return tuple(
        LostRecords(k, last, float(estimate), low, high, sure, price)
        for k, estimate, (low, high) in zip(
            numbers.tolist(), lost, bounds.tolist(), strict=True
        )
    )


def _records_between(held: IntArray, borders: IntArray) -> IntArray:
    """Count records, numbered for each person by itself, from border to border."""
    return np.diff([np.minimum(held, border).sum() for border in borders])


def _is_public(policy: Policy | None, ledger: Ledger | None) -> bool:
    """Return whether no policy at hand hides how many records a person has."""
    candidates = [policy, None if ledger is None else ledger.policy]
    stated = [policy for policy in candidates if policy is not None]
    return bool(stated) and not any(policy.has_bottom for policy in stated)


def _payable(base: Policy, at_most: int, ledger: Ledger | None) -> Policy:
    """Return a policy of numbers about persons, as a ledger can charge it."""
    if ledger is None:
        return base if at_most == 1 else base.per_person(at_most)
    rule = ledger.policy.person_rule
    if rule is None:
        raise InputError(
            "a ledger of single records cannot pay for a choice about persons",
            received=repr(ledger.policy),
            way_out="Keep the ledger under policy.per_person()",
        )
    if at_most > 1 and rule.count == "persons":
        raise InputError(
            "where each person counts once, no count is lost with her further records",
            received=repr(ledger.policy),
        )
    asked = base.per_person(at_most, person=rule.person, count=rule.count)
    return asked.derive_from(ledger.policy)


def _pay(
    mechanism: Mechanism,
    counts: IntArray,
    ledger: Ledger | None,
    request: str | None,
    rng: RandomLike | None,
) -> Release:
    data = data_for(mechanism.policy, counts)
    if ledger is None:
        return mechanism.release(data, rng)
    return ledger.release(mechanism, data, request, rng)


def _as_held(records_per_person: Any) -> IntArray:
    with malformed_as(CountsError, "records_per_person are whole numbers"):
        shape = np.shape(records_per_person)
    return as_counts(records_per_person, shape).reshape(-1)

"""How many records of a person to count: free, or chosen privately."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Self

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast._support.validation import as_counts, as_epsilon, as_whole
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import InputError
from blowfish_fast.measure.handle import Handle
from blowfish_fast.measure.selectors.selections.comparisons import FirstBelow
from blowfish_fast.mechanisms import Mechanism
from blowfish_fast.mechanisms.base import Outcome, made_up, stepped
from blowfish_fast.policies import AddRemove, Policy
from blowfish_fast.workloads import Identity

from .ledger import Ledger
from .request import RandomLike

STEP = 1.25
LAST = 1000
"""Candidates are 1.25^j, rounded, up to about this many records."""


def candidates() -> IntArray:
    """Return the public numbers of records that are considered: 1, 2, ... 7, 9, ..."""
    steps = math.ceil(math.log(LAST) / math.log(STEP)) + 1
    return np.unique(np.rint(STEP ** np.arange(steps)).astype(np.int64))


class AtMost(int):
    """A number of records of a person; what it cost, and who is protected as what."""

    epsilon: Fraction
    sentence: str

    def __new__(cls, value: int, epsilon: Fraction, sentence: str) -> Self:
        """Keep how a number was found beside it."""
        own = super().__new__(cls, value)
        own.epsilon = epsilon
        own.sentence = sentence
        return own


class ContributionChoice(Mechanism):
    """Choose how many records of a person to count, by the sparse vector technique.

    `policy` lies over the profile, one cell per candidate and one for more, in which a
    person lies by her number of records; `bar` persons may have more than are counted.

    Notes
    -----
    Guarantee: epsilon for one person, whatever happens to her records.
    Neighbours: those of the policy; her records may also appear one by one.
    Sensitivity: a person changes every number of persons above k by 0 or 1, all in one
        direction (`FirstBelow`).
    Error: see `choose_at_most`.
    Complexity: O(persons).
    Source: Lyu, Su and Li 2017 (sparse vector, monotone queries); the bar is
        Amin, Kulesza, Munoz and Vassilvitskii 2019, for mean absolute error per cell.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> profile = bf.Domain(4)
    >>> choice = ContributionChoice(bf.policies.AddRemove(profile), bar=10, epsilon=9)
    >>> choice.release([900, 90, 9, 1], rng=1).details["place"]
    1
    """

    name = "choose_at_most"

    def __init__(self, policy: Policy, *, bar: int, epsilon: Any) -> None:
        super().__init__(policy, Identity(policy.domain), epsilon=epsilon)
        self.bar = as_whole(bar, "bar", 0)

    def _run(self, private: Handle) -> Outcome:
        place = private.select(FirstBelow(self.bar), budget=private.remaining)
        chosen = np.zeros(self.domain.size)
        chosen[place] = 1.0
        return Outcome(chosen, [], {"place": place}, interval_scope="nothing")

    @classmethod
    def example(cls, domain: Domain, policy: Policy, epsilon: Any) -> tuple[Self, Any]:
        """Return a choice on a profile that rises in steps."""
        data = made_up(policy, stepped(domain, 2, height=5))
        return cls(policy, bar=3, epsilon=epsilon), data


def choose_at_most(
    records_per_person: Any,
    *,
    cells: int,
    epsilon: Any,
    then: Any,
    policy: Policy | None = None,
    ledger: Ledger | None = None,
    request: str | None = None,
    rng: RandomLike | None = None,
) -> AtMost:
    """Choose privately how many records of a person to count.

    The first k of 1, 2, 3, 4, 5, 6, 7, 9, 12, ... with at most ``ceil(cells / then)``
    persons above it is returned, both sides noisy; the last one if there is none. What
    is lost by counting no more than k records of a person is private and not reported.

    `cells` is the size of the domain that will be released, never taken from the data;
    `then` is what the release that follows will cost. The policy is by default that of
    the `ledger`, which is kept under a policy of persons and pays. Where no edge leads
    to "absent", the number of a person's records is no secret: the choice is exact and
    free, and says so.

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
    held = as_counts(records_per_person, np.shape(records_per_person)).reshape(-1)
    bar = math.ceil(as_whole(cells, "cells", 1) / as_epsilon(then))
    protected = ledger.policy if policy is None and ledger is not None else policy
    grid = candidates()
    profile = Domain(grid.size + 1)
    counts = np.bincount(np.searchsorted(grid, held), minlength=profile.size)
    if protected is not None and not protected.has_bottom:
        tails = FirstBelow(bar).tails(counts)
        below = np.flatnonzero(tails <= bar)
        chosen = int(grid[below[0]]) if below.size else int(grid[-1])
        return AtMost(
            chosen,
            Fraction(0),
            f"at most {chosen} records of a person are counted: chosen from the data, "
            "free, because how many records a person has is no secret of the policy",
        )
    asked: Policy = AddRemove(profile)
    if ledger is not None:
        rule = ledger.policy.person_rule
        if rule is None:
            raise InputError(
                "a ledger of single records cannot pay for a choice about persons",
                received=repr(ledger.policy),
                way_out="Keep the ledger under policy.per_person()",
            )
        # Each person is one record of the profile, whatever records she has.
        asked = asked.per_person(1, person=rule.person, count=rule.count)
        asked = asked.derive_from(ledger.policy)
    choice = ContributionChoice(asked, bar=bar, epsilon=epsilon)
    data = made_up(asked, counts)
    release = (
        choice.release(data, rng)
        if ledger is None
        else ledger.release(choice, data, request, rng)
    )
    chosen = int(grid[int(release.details["place"])])
    return AtMost(
        chosen,
        as_epsilon(epsilon),
        f"at most {chosen} records of a person are counted: chosen privately, at eps = "
        f"{float(as_epsilon(epsilon)):g} for one person",
    )

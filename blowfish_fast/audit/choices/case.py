"""A selector under a policy at an epsilon: what every audit of choices is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from blowfish_fast._support.typing import IntArray
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.many_draws import (
    Law,
    exact_law,
    public_key,
    select_many,
)
from blowfish_fast.policies import Policy


@dataclass(frozen=True)
class Case:
    """A selector under a policy at an epsilon."""

    selector: Any
    policy: Policy
    epsilon: Fraction
    memory: dict[bytes, Hashable] = field(default_factory=dict)
    """What a twin has worked out before."""

    def at(self, epsilon: Fraction) -> Case:
        """Return the same choice at another epsilon; nothing is remembered."""
        return Case(self.selector, self.policy, epsilon)

    @property
    def heights(self) -> tuple[int, ...]:
        """Counts that tell: about as high as a bucket is dear."""
        price = min(max(round(getattr(self.selector, "bucket_cost", 8.0)), 1), 1000)
        return tuple(sorted({8, price}))

    def choose(self, counts: IntArray, rng: Randomness) -> Hashable:
        """Choose once, and return what names the choice."""
        return public_key(self.select(counts, rng))

    def select(self, counts: IntArray, rng: Randomness) -> Any:
        """Return what the selector chooses."""
        return self.selector.select(
            counts, policy=self.policy, epsilon=self.epsilon, rng=rng
        )

    def law(self, counts: IntArray) -> Law | None:
        """Return the exact law of the choice; None where there is none."""
        return exact_law(
            self.selector, counts, policy=self.policy, epsilon=self.epsilon
        )


Tally = Callable[[Case, IntArray, int, Randomness], "Counter[Hashable]"]
"""Counts the choices of many runs."""


def in_batches(
    case: Case, counts: IntArray, samples: int, rng: Randomness
) -> Counter[Hashable]:
    """Choose so many times from one preparation."""
    return select_many(
        case.selector,
        counts,
        policy=case.policy,
        epsilon=case.epsilon,
        draws=samples,
        rng=rng,
    )


def one_by_one(
    case: Case, counts: IntArray, samples: int, rng: Randomness
) -> Counter[Hashable]:
    """Choose so many times; every call opens streams of its own."""
    return Counter(case.choose(counts, rng) for _ in range(samples))

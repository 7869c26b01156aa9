"""A least-cost choice on one pair of neighbours, as its plain twin makes it."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np

from blowfish_fast.audit.confidence import Finding, evidence_from_counts
from blowfish_fast.audit.many_choices.choice_twins import (
    Case,
    cheapest_choices,
    intervals_offered,
)
from blowfish_fast.measure.randomness import Randomness


def audit_least_cost(partition, policy, pair, *, epsilon, samples, tally=None):
    """Compare the choices on two neighbouring vectors of counts."""
    case = Case(partition, policy, Fraction(epsilon))
    pilots, counted = (
        tuple(
            (tally or cheapest_choices)(case, counts, size, Randomness(first + side))
            for side, counts in enumerate(pair)
        )
        for first, size in ((2, samples // 4), (0, samples - samples // 4))
    )
    evidence = evidence_from_counts(pilots, counted)
    return Finding(partition.name, case.epsilon, evidence, samples)


def clamped_choices(case, counts, samples, rng):
    """Cut noisy costs off at the price of a bucket, as public code does."""
    floors = intervals_offered(case, np.zeros_like(counts)).costs
    _, costs, scales = offered = intervals_offered(case, counts)
    noise = [
        rng.geometric(scale.numerator, scale.denominator, size=samples)
        for scale in scales
    ]
    noisy = np.maximum(costs[:, None] - np.array(noise), floors[:, None])
    chosen = np.bincount((offered.member() @ noisy).argmin(axis=0))
    return Counter(dict(enumerate(chosen.tolist())))

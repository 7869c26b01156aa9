"""How strong the audit of choices is: a planted excess, and how often it is seen.

Few pairs attain what a proof allows, so a selector given 5 % too much epsilon may still
keep its promise. What is planted is a loss that is 5 % above epsilon for certain: the
selector is given as much more as makes the log-ratio of its most visible event, on the
worst pair known, exceed epsilon by 5 %.

    loss on the pair at epsilon e        L(e) <= e       exact, or from many draws
    planted                              the e* with L(e*) = 1.05 e
    seen                                 the exact ratio, or a bound from so many draws
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from blowfish_fast.audit.neighbours.pairs import Pair, search_worst_pair, standard_pairs
from blowfish_fast.audit.sampling.confidence import evidence_from_counts
from blowfish_fast.audit.sampling.power import EXCESS, Power
from blowfish_fast.policies import Policy

from .case import Case
from .search import batch_tally, exact_loss, tally_both_sides, visible_loss

STEPS = 40
ROUNDS = 8
PILOT = 400_000
"""Draws that find the loss where it has no exact law."""


def selector_power(
    selector: Any,
    policy: Policy,
    *,
    samples: int,
    trials: int,
    epsilon: Fraction = Fraction(1),
    excess: Fraction = EXCESS,
    confidence: float = 0.999,
) -> Power | None:
    """Plant an excess `trials` times; None where choices are not made in batches.

    An enumerated law shows it at once; else it is seen in as many draws, or is not.
    """
    case = Case(selector, policy, epsilon)
    pairs = standard_pairs(policy, case.heights)
    if not pairs or batch_tally(case) is None:
        return None
    pair = _most_visible_pair(case, pairs, samples)
    goal = float(epsilon * (1 + excess))
    bad = case.at(_planted_epsilon(case, pair, goal, samples))
    exact = exact_loss(bad, pair)
    if exact is not None:
        return Power(trials * (exact > float(epsilon)), trials, 0, excess)
    seen = 0
    for trial in range(trials):
        found = tally_both_sides(bad, pair, samples, 1000 + trial)
        evidence = evidence_from_counts(*found, confidence=confidence)
        seen += evidence.log_ratio > float(epsilon)
    return Power(seen, trials, samples, excess)


def _most_visible_pair(case: Case, pairs: list[Pair], samples: int) -> Pair:
    def apart(pair: Pair) -> float:
        return visible_loss(case, pair, samples, PILOT // 20)[1]

    best = max(pairs, key=apart)
    return search_worst_pair(
        best,
        case.policy,
        apart,
        heights=case.heights,
        steps=STEPS,
        generator=np.random.default_rng(0),
    )


def _planted_epsilon(case: Case, pair: Pair, goal: float, samples: int) -> Fraction:
    """Return an epsilon at which the visible loss is `goal`, by the rule of three."""
    planted = case.epsilon
    for _ in range(ROUNDS):
        loss, _ = visible_loss(case.at(planted), pair, samples, PILOT)
        if loss <= 0 or abs(loss / goal - 1) < 0.002:
            break
        step = min(max(goal / loss, 0.5), 2.0)
        planted = Fraction(float(planted) * step).limit_denominator(10**6)
    return planted

"""The exponential mechanism over costs, from its definition."""

from __future__ import annotations

import mpmath

from blowfish_fast.kernels.sampling.exponential_choice import NO_CANDIDATE


def law(costs, rate):
    """Return the probability of each candidate: exp(-rate * cost), normalised."""
    least = min(costs)
    with mpmath.workprec(200):
        step = mpmath.mpf(rate.numerator) / rate.denominator
        weights = [
            mpmath.mpf(0)
            if cost == NO_CANDIDATE
            else mpmath.exp(-step * (int(cost) - int(least)))
            for cost in costs
        ]
        total = mpmath.fsum(weights)
        return [weight / total for weight in weights]


def largest_log_ratio(first, second):
    """Return the largest |log P - log Q| over events that either law can produce."""
    with mpmath.workprec(200):
        return max(
            abs(mpmath.log(one) - mpmath.log(two))
            for one, two in zip(first, second, strict=True)
            if one or two
        )

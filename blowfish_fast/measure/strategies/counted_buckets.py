"""Counts of buckets: what one costs in noise, and how they are measured.

Serves the recipes that choose buckets first and count them with what remains.
"""

from __future__ import annotations

from fractions import Fraction

from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.noise import noise_mean_size
from blowfish_fast.policies import Policy

from .cells import Cells


def mean_noise(policy: Policy, budget: Budget | Fraction) -> float:
    """Return the mean absolute noise on a count: what one more bucket costs.

    Constraints of the policy make it larger. For Gaussian noise it is that of a normal
    variable, sigma sqrt(2 / pi).

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> round(mean_noise(bf.policies.Full(bf.Domain(9)), Fraction(1, 10)), 2)
    19.99
    """
    each = Budget.of(budget).over(policy.group_size)
    width = float(Cells(2).scales(policy.unconstrained, each).widths[0])
    return noise_mean_size(width, each.power)


def bucket_counts(
    private: Handle, buckets: Buckets, *, budget: Budget | Fraction | None = None
) -> Measurement:
    """Measure the number of records in each bucket, with all that remains or less."""
    bucketed = private.coarsened(buckets)
    return bucketed.measure(
        Cells.under(bucketed.policy),
        budget=private.remaining if budget is None else budget,
    )

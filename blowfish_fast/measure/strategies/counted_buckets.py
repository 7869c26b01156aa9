"""Counts of buckets: what one costs in noise, and how they are measured.

Serves the recipes that choose buckets first and count them with what remains.
"""

from __future__ import annotations

from fractions import Fraction

from blowfish_fast.data.buckets import Buckets
from blowfish_fast.measure.handle import Handle, Measurement
from blowfish_fast.measure.noise import laplace_mean_size
from blowfish_fast.policies import Policy

from .cells import Cells


def mean_noise(policy: Policy, epsilon: Fraction) -> float:
    """Return the mean absolute noise on a count: what one more bucket costs.

    Constraints of the policy make it larger by the group size.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> round(mean_noise(bf.policies.Full(bf.Domain(9)), Fraction(1, 10)), 2)
    19.99
    """
    scales = Cells(2).scales(policy.unconstrained, epsilon / policy.group_size)
    return laplace_mean_size(float(scales.widths[0]))


def bucket_counts(
    private: Handle, buckets: Buckets, *, epsilon: Fraction | None = None
) -> Measurement:
    """Measure the number of records in each bucket, with all that remains or less."""
    bucketed = private.coarsened(buckets)
    return bucketed.measure(
        Cells.under(bucketed.policy),
        epsilon=private.remaining if epsilon is None else epsilon,
    )

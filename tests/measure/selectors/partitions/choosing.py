"""One choice of a partition, for tests that care about what is chosen."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from blowfish_fast import Domain
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.policies import AddRemove, Policy


def chosen(partition, counts, policy=AddRemove, epsilon=1, seed=1):
    """Return the buckets chosen on counts; a kind of policy is put over their grid."""
    counts = np.asarray(counts)
    if not isinstance(policy, Policy):
        policy = policy(Domain(counts.shape))
    return partition.select(
        counts.reshape(-1),
        policy=policy,
        epsilon=Fraction(epsilon),
        rng=Randomness(seed),
    )

"""The price of a measurement by walking every edge of a policy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def worst_edge_cost(strategy, policy, scales):
    """Return the costliest edge; fail where one moves a row published exactly."""
    cells = policy.domain.size
    worst = 0
    for edges in policy.edges():
        for start, end in edges.tolist():
            record = np.zeros(cells + 1, dtype=np.int64)
            record[start] += 1
            # Number -1, "absent", is the entry that is cut off.
            record[end] -= 1
            change = np.abs(strategy.rows(record[:cells]))
            assert not change[scales.exact].any()
            moves = change.astype(object) ** scales.power
            worst = max(worst, int((moves * scales.rates.astype(object)).sum()))
    return Fraction(worst, scales.unit)

"""How much the best weights of wavelet rows could still gain in rho, for ranges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import blowfish_fast as bf

CELLS, RHO = 256, 0.01
LEVELS = int(np.log2(CELLS))


def _coefficients():
    """Return the sum over all ranges of squared coefficients: the total, each level."""
    found = []
    for level in range(-1, LEVELS):
        size = CELLS >> max(level, 0)
        signs = np.ones(size)
        if level >= 0:
            signs[size // 2 :] = -1.0
        # A range from a to b takes F(b) - F(a) of a row; all rows of a level are alike.
        part = np.append(0.0, np.cumsum(signs)) / size
        rows = CELLS // size
        squares, total = (part**2).sum(), part.sum()
        if level < 0:
            found.append((CELLS + 1) * squares - total**2)
        else:
            found.append(rows * ((CELLS + 1) * squares - total**2))
    return np.array(found)


def _least(costs, spent):
    """Return the least sum of costs over rates where no edge spends more than 1."""
    start = np.full(costs.size, 0.5 / spent(np.ones(costs.size)).max())
    found = minimize(
        lambda rates: (costs / rates).sum() / (costs / start).sum(),
        start,
        bounds=[(1e-9, 1.0)] * costs.size,
        constraints={"type": "ineq", "fun": lambda rates: 1.0 - spent(rates)},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success
    return found.fun * (costs / start).sum()


def _one_record(rates):
    """One record is counted by the total and a row of each level."""
    return np.array([rates.sum()])


def _one_move(rates):
    """A move changes the row where its cells part by two, two rows of each below."""
    below = np.append(np.cumsum(rates[::-1])[::-1][1:], 0.0)
    return 4 * rates + 2 * below


@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_better_weights_would_gain_less_than_two_hundredths(policy):
    line = bf.Domain(CELLS)
    asked = bf.workloads.AllRanges(line)
    ours = bf.mechanisms.Privelet(policy(line), asked, rho=RHO).expected_total_error()
    costs = _coefficients()
    if policy is bf.policies.Full:
        best = _least(costs[1:], _one_move)
    else:
        best = _least(costs, _one_record)
        assert best == pytest.approx(np.sqrt(costs).sum() ** 2, rel=1e-3)
    # Rows of one level cost alike, so that by convexity levels need one rate each.
    assert 1.0 - 1e-3 <= ours / (best / (2 * RHO)) < 1.02

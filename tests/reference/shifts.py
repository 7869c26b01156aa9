"""The price of an edge found anew: the cheapest integer shift of the draws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp


def edge_price(strategy, scales, policy, edge):
    """Return the cost of the cheapest shift that hides a move along `edge`.

    What is published from one neighbour and from the other must agree after the draws
    are shifted; found by an integer programme, without the strategy's own rules.
    """
    cells = policy.domain.size
    change = _seen(strategy, scales, _record(edge[0], cells)) - _seen(
        strategy, scales, _record(edge[1], cells)
    )
    if not change.any():
        return Fraction(0)
    blank = np.zeros(cells, dtype=np.int64)
    draws = np.flatnonzero(scales.measured)
    effect = np.zeros((change.size, draws.size))
    for column, draw in enumerate(draws):
        noise = np.zeros(scales.rates.size, dtype=np.int64)
        noise[draw] = 1
        effect[:, column] = _seen(strategy, scales, blank, noise)
    rates = scales.rates[draws].astype(np.float64)
    found = milp(
        np.concatenate([rates, rates]),
        constraints=LinearConstraint(
            np.concatenate([effect, -effect], axis=1), change, change
        ),
        integrality=np.ones(2 * draws.size),
        bounds=Bounds(0, 8),
    )
    assert found.success, "no shift of the draws hides this edge"
    shift = np.rint(found.x).astype(np.int64)
    shift = shift[: draws.size] - shift[draws.size :]
    np.testing.assert_array_equal(np.rint(effect @ shift), change)
    return Fraction(int(np.abs(shift) @ scales.rates[draws]), scales.unit)


def worst_price(strategy, scales, policy):
    edges = [pair for chunk in policy.edges() for pair in chunk.tolist()]
    return max(edge_price(strategy, scales, policy, edge) for edge in edges)


def _record(cell, cells):
    counts = np.zeros(cells, dtype=np.int64)
    if cell >= 0:
        counts[cell] = 1
    return counts


def _seen(strategy, scales, counts, noise=None):
    """Return what is published, as exact numbers in units small enough."""
    if noise is None:
        noise = np.zeros(scales.rates.size, dtype=np.int64)
    published = strategy.published(strategy.rows(counts), noise, scales)
    if strategy.kind == "edge_lines":
        whole, rest = published[: counts.size], published[counts.size :]
        return whole * 2 ** max(strategy.tops) + rest
    return published

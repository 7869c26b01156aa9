"""Weighed epochs, enumerated: every record, edge and person on tiny series.

Rows are linear, so what a neighbour moves can be written down exactly. The price that
is charged, `Weights.price` times that of one unit, is compared with the worst of all
neighbours, and bugs that are planted into the counting must exceed it.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.series.weights import Weights

EPOCHS, CELLS = 5, 3
POLICIES = {
    "line": [(0, 1), (1, 2)],
    "full": [(0, 1), (1, 2), (0, 2)],
    "add_remove": [(0, None), (1, None), (2, None)],
}
WEIGHTS = [(4, 2, 1), (3, 3, 3, 1), (16, 8, 6, 5, 4), (1,), (5, 5, 5, 5, 5)]


def _unit(edge):
    """Return what one unit moved along an edge changes in the cells."""
    move = np.zeros(CELLS, dtype=np.int64)
    for sign, cell in zip((1, -1), edge, strict=True):
        if cell is not None:
            move[cell] += sign
    return move


def _rows(weights, epochs):
    """Return all rows of a series of histograms."""
    return np.array([weights.weigh(epochs[: t + 1]) for t in range(len(epochs))])


def _distance(rows, power):
    """Return what rows that moved so far cost, one unit of price each."""
    return int((np.abs(rows) ** power).sum())


def _worst_record(weights, edges, power, count=_rows):
    worst = 0
    for arrival, edge in itertools.product(range(EPOCHS), edges):
        epochs = np.zeros((EPOCHS, CELLS), dtype=np.int64)
        epochs[arrival] = _unit(edge)
        worst = max(worst, _distance(count(weights, epochs), power))
    return worst


@pytest.mark.parametrize("values", WEIGHTS)
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_worst_record_costs_the_price_of_the_weights(values, power, policy):
    weights, edges = Weights(values), POLICIES[policy]
    cells = max(_distance(_unit(edge), power) for edge in edges)
    found = _worst_record(weights, edges, power)
    assert found <= weights.price(power) * cells
    if weights.band <= EPOCHS:
        assert found == weights.price(power) * cells


@pytest.mark.long
@pytest.mark.parametrize("values", WEIGHTS)
@pytest.mark.parametrize("epochs_at_most", [1, 2, 3])
def test_the_dearest_person_is_in_neighbouring_epochs(values, epochs_at_most):
    weights = Weights(values)
    edges = POLICIES["add_remove"]
    for power in (1, 2):
        worst = 0
        for arrivals in itertools.combinations(range(EPOCHS), epochs_at_most):
            for moves in itertools.product(edges, (1, -1), repeat=epochs_at_most):
                epochs = np.zeros((EPOCHS, CELLS), dtype=np.int64)
                for place, arrival in enumerate(arrivals):
                    edge, sign = moves[2 * place], moves[2 * place + 1]
                    epochs[arrival] = sign * _unit(edge)
                worst = max(worst, _distance(_rows(weights, epochs), power))
        assert worst <= weights.price(power, epochs_at_most)


def test_versions_of_a_record_cost_no_more_while_its_arrival_stays():
    rng = np.random.default_rng(5)
    weights = Weights((8, 4, 3, 2))
    edges = POLICIES["full"]
    for _ in range(300):
        arrival = int(rng.integers(EPOCHS))
        rows = np.zeros((EPOCHS, CELLS), dtype=np.int64)
        for t in range(arrival, EPOCHS):
            age = t - arrival
            # In each row both versions are absent, equal, or joined by some edge.
            if age < weights.band and rng.random() < 0.7:
                rows[t] = weights.values[age] * _unit(edges[rng.integers(3)])
        assert _distance(rows, 2) <= weights.price(2) * 2


# --- planted -----------------------------------------------------------------------


def _dated_anew(weights, epochs):
    """Count every record as new in every row after it arrived: a planted bug."""
    return np.array(
        [weights.values[0] * epochs[: t + 1].sum(axis=0) for t in range(len(epochs))]
    )


def _growing(weights, epochs):
    """Count with weights that rise with age: a planted bug."""
    rising = list(itertools.accumulate(weights.values))
    return np.array(
        [
            sum(rising[age] * epochs[t - age] for age in range(min(t + 1, len(rising))))
            for t in range(len(epochs))
        ]
    )


def _unpaid_scale(weights, epochs):
    """Count by finer weights than were priced: a planted bug."""
    return 4 * _rows(weights, epochs)


@pytest.mark.parametrize("bug", [_dated_anew, _growing, _unpaid_scale])
@pytest.mark.parametrize("power", [1, 2])
def test_planted_bugs_exceed_the_price(bug, power):
    weights = Weights((8, 4, 3, 2))
    found = _worst_record(weights, POLICIES["add_remove"], power, bug)
    assert found > weights.price(power)


def test_a_persons_choice_that_is_drawn_again_for_each_row_exceeds_the_price():
    weights, epochs_at_most = Weights((8, 8, 8, 8)), 1
    # In each row the newest epoch of a person counts, in place of her first.
    rows = np.full((EPOCHS, 1), weights.values[0])
    assert _distance(rows, 2) > weights.price(2, epochs_at_most)


def test_the_audit_of_a_row_sees_too_little_noise():
    """Drawn at the full price, not at that over the weights, a row tells records."""
    ages = bf.Domain(2, names=["age"])
    policy = bf.policies.AddRemove(ages)
    weights = Weights((4, 2, 1))
    full = bf.Gaussian(policy, bf.workloads.Identity(ages), rho=1)
    right = full.at(full.budget / weights.price(2))
    for mechanism, within in ((right, True), (full, False)):
        spread = mechanism.release([0, 0], rng=1).standard_errors(full.workload)[0]
        # Rows are Gaussian: half the squared distance over the variance is the rho.
        moved = _worst_record(weights, POLICIES["add_remove"], 2)
        assert (moved / (2 * spread**2) <= 1 + 1e-6) == within

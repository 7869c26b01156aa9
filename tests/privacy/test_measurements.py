"""Grey box: the noise declared, against every edge of the policy, by definition."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements, policy_families
from blowfish_fast.measure.selectors.partitions import LeastCost
from blowfish_fast.measure.strategies import Cells, TreeStrategy
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.registry import MECHANISMS

POLICIES = [bf.policies.AddRemove, bf.policies.Full]
HISTOGRAM_MECHANISMS = sorted(
    name for name, kind in MECHANISMS.items() if issubclass(kind, Mechanism)
)


FAMILIES = [
    (shape, family)
    for shape in (1, 2, 7, (3, 4))
    for family in policy_families(bf.Domain(shape))
]


@pytest.mark.parametrize(("shape", "family"), FAMILIES)
@pytest.mark.parametrize("name", HISTOGRAM_MECHANISMS)
def test_no_edge_costs_more_than_was_charged(name, shape, family):
    domain = bf.Domain(shape)
    policy = policy_families(domain)[family]
    refusals = []
    try:
        mechanism, data = MECHANISMS[name].example(domain, policy, "0.7")
        for seed in range(3):
            for price in audit_measurements(mechanism, data, seed=seed):
                assert price.passed, price
    except bf.BlowfishError as refusal:
        refusals.append(refusal)
    # Mechanisms for one ordered attribute refuse grids, with a reason.
    assert domain.ndim > 1 or not refusals


@pytest.mark.parametrize(("shape", "family"), FAMILIES)
@pytest.mark.parametrize("on", ["cells", "edges", "queries"])
def test_noise_anywhere_pays_for_every_edge(on, shape, family):
    domain = bf.Domain(shape)
    policy = policy_families(domain)[family]
    laplace = bf.Laplace(
        policy, bf.workloads.Identity(domain), epsilon="0.7", strategy=on
    )
    counts = np.arange(domain.size).reshape(domain.shape)
    assert all(price.passed for price in audit_measurements(laplace, counts))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("strategy", ["greedy", "uniform", "geometric", "cells"])
@pytest.mark.parametrize("partition", [None, "best", LeastCost()])
def test_every_variant_of_dawa_pays_for_its_worst_edge(policy, strategy, partition):
    line = bf.Domain(9)
    dawa = bf.Dawa(
        policy(line),
        bf.workloads.Ranges.random(line, 20, rng=1),
        epsilon="0.3",
        strategy=strategy,
        partition=partition,
    )
    counts = np.array([0, 0, 5, 5, 5, 9, 0, 1, 40])
    for seed in range(5):
        prices = audit_measurements(dawa, counts, seed=seed)
        assert all(price.passed for price in prices)
        assert prices[-1].worst == Fraction(3, 10)


def spent(mechanism, counts):
    return [price.passed for price in audit_measurements(mechanism, counts)]


def test_halved_noise_is_caught(monkeypatch):
    original = Cells.scales

    def halved(self, policy, epsilon):
        scales = original(self, policy, epsilon)
        return scales._replace(rates=2 * scales.rates)

    monkeypatch.setattr(Cells, "scales", halved)
    monkeypatch.setattr(Cells, "cost", lambda self, policy, scales: Fraction(0))
    line = bf.Domain(4)
    laplace = bf.Laplace(
        bf.policies.AddRemove(line), bf.workloads.Identity(line), epsilon=1
    )
    assert not all(spent(laplace, [1, 2, 3, 4]))


def test_forgetting_that_a_move_changes_two_paths_is_caught(monkeypatch):
    path_only = TreeStrategy.worst_edge

    def wrong(self, weights, policy, power=1):
        return path_only(self, weights, bf.policies.AddRemove(policy.domain), power)

    monkeypatch.setattr(TreeStrategy, "worst_edge", wrong)
    line = bf.Domain(8)
    dawa = bf.Dawa(
        bf.policies.Full(line),
        bf.workloads.AllRanges(line),
        epsilon=1,
        partition=None,
    )
    assert not all(spent(dawa, np.arange(8)))


def test_an_exact_total_under_add_remove_is_caught(monkeypatch):
    def leaking(self, policy):
        exact = np.zeros(self.cells + 1, dtype=bool)
        exact[-1] = True
        return exact

    monkeypatch.setattr(Cells, "exact_rows", leaking)
    line = bf.Domain(4)
    laplace = bf.Laplace(
        bf.policies.AddRemove(line), bf.workloads.Identity(line), epsilon=1
    )
    price = audit_measurements(laplace, [1, 2, 3, 4])[0]
    assert price.worst == np.inf
    assert not price.passed

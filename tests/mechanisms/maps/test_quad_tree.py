"""QuadTree end to end: any shape, geometric shares, error as predicted, pruning."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.measure.strategies import TreeStrategy
from blowfish_fast.release.grants import with_answers

POLICIES = [bf.policies.AddRemove, bf.policies.Full]
GRID = bf.Domain((5, 7))
BOXES = bf.workloads.Rectangles.random(GRID, 12, rng=1)
COUNTS = np.arange(35).reshape(5, 7) * 3 % 17


@pytest.mark.parametrize("shape", [(1,), (9,), (1, 9), (3, 50), (16, 16), (3, 4, 5)])
def test_large_epsilon_gives_back_any_shape(shape, generator):
    """Public code takes the side from the square root of the cells."""
    domain = bf.Domain(shape)
    counts = generator.integers(0, 30, shape)
    for policy in POLICIES:
        mechanism = bf.mechanisms.QuadTree(
            policy(domain), bf.workloads.Identity(domain), epsilon=10_000
        )
        release = mechanism.release(counts, rng=1)
        np.testing.assert_allclose(release.estimate, counts, atol=1e-6)
        # Halved until sides are single cells.
        assert 2 ** release.details["levels"] >= max(shape)
        assert 2 ** release.details["levels"] < 2 * max(shape)


@pytest.mark.long
def test_b3_shares_are_geometric():
    domain = bf.Domain((1024, 1024))
    policy = bf.policies.AddRemove(domain)
    mechanism = bf.mechanisms.QuadTree(policy, bf.workloads.Total(domain), epsilon=1)
    scales = (
        mechanism.release(np.zeros((1024, 1024), int), rng=1).measurements[0].scales
    )
    shares = scales.rates / scales.unit
    assert shares[0] == pytest.approx(0.223933, abs=1e-6)
    assert shares[-1] == pytest.approx(0.022217, abs=1e-6)


def test_under_full_the_total_is_exact_and_a_move_pays_twice():
    release = bf.mechanisms.QuadTree(bf.policies.Full(GRID), BOXES, epsilon=1).release(
        COUNTS, rng=1
    )
    assert release.estimate.sum() == pytest.approx(COUNTS.sum())
    scales = release.measurements[0].scales
    assert scales.exact.tolist() == [False] * (scales.exact.size - 1) + [True]
    strategy = release.measurements[0].strategy
    cost = strategy.cost(bf.policies.Full(bf.Domain(35)), scales)
    assert 0.999 < float(cost) <= 1.0


def test_variances_are_propagated(monkeypatch):
    """Public code averages with the raw budgets of the levels: more error."""
    mechanism = bf.mechanisms.QuadTree(
        bf.policies.AddRemove(bf.Domain((16, 16))),
        bf.workloads.Rectangles.random(bf.Domain((16, 16)), 60, rng=2),
        epsilon=1,
        fit=None,
    )
    counts = np.full((16, 16), 3)
    truth = mechanism.workload.answer(counts)

    def error():
        found = [
            mechanism.release(counts, rng=seed).answer(mechanism.workload) - truth
            for seed in range(60)
        ]
        return np.square(found).mean()

    exact = error()

    def equal(self, noisy, scales):
        return TreeStrategy.fit(
            self, noisy, scales._replace(rates=np.ones_like(scales.rates))
        )[: self.leaves]

    monkeypatch.setattr(TreeStrategy, "infer", equal)
    assert exact < error()


def test_pruning_helps_on_a_sparse_map_and_keeps_the_linear_answer(generator):
    domain = bf.Domain((64, 64))
    counts = np.zeros((64, 64), int)
    counts[10:14, 20:24] = generator.poisson(400, (4, 4))
    asked = bf.workloads.Rectangles.random(domain, 200, rng=1)
    policy = bf.policies.AddRemove(domain)
    truth = asked.answer(counts)
    pruned = bf.mechanisms.QuadTree(policy, asked, epsilon="0.1")
    linear = bf.mechanisms.QuadTree(policy, asked, epsilon="0.1", fit=None)
    releases = pruned.release(counts, rng=5), linear.release(counts, rng=5)
    far = [np.abs(one.answer(asked) - truth).mean() for one in releases]
    assert far[0] < far[1] / 3
    np.testing.assert_allclose(
        with_answers(releases[0].intervals(asked), releases[1].answer(asked)),
        with_answers(releases[1].intervals(asked), releases[0].answer(asked)),
    )
    assert releases[0].estimate.sum() == pytest.approx(releases[1].estimate.sum())

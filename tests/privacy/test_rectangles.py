"""Sampled rectangles on neighbouring counts: within epsilon, planted bugs caught."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
import blowfish_fast.measure.selectors.partitions.dyadic as home
from blowfish_fast.audit import audit_release
from blowfish_fast.audit.choices import audit_selector
from blowfish_fast.audit.many_choices.many_draws import exact_law, sample_choices
from blowfish_fast.audit.neighbours import policy_families
from blowfish_fast.audit.plan import QUICK, tasks
from blowfish_fast.kernels.partition.rectangle_prior import fixed_point_weights
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import DyadicRectangles
from blowfish_fast.policies import ABSENT
from tests.kernels.partition.test_rectangle_lattice import stored_law
from tests.reference.rectangle_partition import intended_law, largest_log_ratio

pytestmark = pytest.mark.audit

FAMILIES = ["add_remove", "full", "blocks", "attribute", "threshold_l1", "product"]


def enumerated_loss(partition, policy, epsilon, backgrounds, edges=12):
    """Return the largest exact log-ratio over some edges of a policy."""
    listed = np.concatenate(list(policy.edges()))
    chosen = listed[:: max(1, len(listed) // edges)]
    laws = {}

    def law_of(counts):
        key = counts.tobytes()
        if key not in laws:
            laws[key] = exact_law(partition, counts, policy=policy, epsilon=epsilon)
        return laws[key]

    worst = 0.0
    for background in backgrounds:
        for start, end in chosen:
            pair = []
            for cell in (start, end):
                counts = np.array(background, dtype=np.int64).reshape(-1)
                if cell != ABSENT:
                    counts[cell] += 1
                pair.append(law_of(counts))
            worst = max(worst, largest_log_ratio(*pair))
    return worst


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("price", [1.0, 40.0])
def test_two_by_two_grids_stay_within_epsilon(family, price):
    policy = policy_families(bf.Domain((2, 2)))[family]
    backgrounds = [[0, 0, 8, 8], [0, 0, 0, 9], [3, 40, 3, 3]]
    partition = DyadicRectangles().priced(price)
    assert enumerated_loss(partition, policy, Fraction(2), backgrounds) <= 2


@pytest.mark.parametrize("family", ["add_remove", "full", "threshold_l1"])
@pytest.mark.parametrize("query_cells", [1.0, 6.0])
def test_two_by_four_grids_stay_within_epsilon(family, query_cells):
    policy = policy_families(bf.Domain((2, 4)))[family]
    partition = DyadicRectangles(query_cells=query_cells).priced(8.0)
    backgrounds = [[[0, 0, 9, 9], [0, 0, 9, 0]]]
    loss = enumerated_loss(partition, policy, Fraction(1), backgrounds, edges=4)
    assert loss <= 1


@pytest.mark.parametrize("family", ["add_remove", "full"])
def test_three_by_three_grids_stay_within_epsilon(family):
    policy = policy_families(bf.Domain((3, 3)))[family]
    partition = DyadicRectangles(query_cells=2.0).priced(8.0)
    backgrounds = [[[9, 9, 0], [9, 9, 0], [0, 0, 30]]]
    loss = enumerated_loss(partition, policy, Fraction(1), backgrounds, edges=2)
    assert loss <= 1


# A record where the likely partition has it below its quantile and a rare one above.
CORNER = np.zeros((4, 4), dtype=np.int64)
CORNER[:2, 0] = 5, 9


@pytest.mark.parametrize(
    ("moves", "epsilon"), [(1, 1), (1, 4), (2, 4)], ids=["low", "added", "moved"]
)
def test_four_by_four_grids_stay_within_epsilon(moves, epsilon):
    partition = DyadicRectangles(query_cells=4.0).priced(15.0)
    rate = partition.rate((4, 4), Fraction(epsilon, moves))
    weights = fixed_point_weights(
        (4, 4),
        rate=rate,
        penalty=partition.price * partition.bucket_cost,
        level_weights=tuple(map(tuple, partition.level_weights((4, 4)))),
    )
    other = CORNER.copy()
    other[0, 0] += 1
    if moves == 2:
        other[1, 0] -= 1
    loss = largest_log_ratio(stored_law(CORNER, weights), stored_law(other, weights))
    assert loss <= epsilon


def test_the_walked_law_is_the_intended_one():
    grid = bf.Domain((2, 3))
    policy = bf.policies.AddRemove(grid)
    partition = DyadicRectangles(price=1.0).priced(2.0)
    counts = np.array([[4, 4, 0], [4, 5, 1]])
    rate = float(partition.rate((2, 3), Fraction(1, 2)))
    expected = intended_law(
        counts, rate, 2.0, level_weights=partition.level_weights((2, 3))
    )
    walked = exact_law(
        partition, counts.reshape(-1), policy=policy, epsilon=Fraction(1, 2)
    )
    assert len(walked) == len(expected)
    assert sorted(walked.values()) == pytest.approx(sorted(expected.values()))
    drawn = sample_choices(
        partition,
        counts.reshape(-1),
        policy=policy,
        epsilon=Fraction(1, 2),
        samples=100_000,
        rng=Randomness(1),
    )
    for choice, chance in walked.items():
        spread = 5 * (chance * (1 - chance) / 100_000) ** 0.5
        assert abs(drawn[choice] / 100_000 - chance) <= spread + 1e-4


def test_the_walk_audits_rectangles_without_being_told():
    listed = [task for task in tasks(QUICK) if task.name == "dyadic_rectangles"]
    assert {task.family for task in listed if task.shape == (2, 2)} == {
        "add_remove",
        "full",
    }
    for family in ("add_remove", "full"):
        policy = policy_families(bf.Domain((2, 2)))[family]
        found = list(
            audit_selector(
                DyadicRectangles().priced(8.0),
                policy,
                epsilon=Fraction(1),
                samples=100_000,
                runs=0,
            )
        )
        assert [one.subject for one in found] == [
            "dyadic_rectangles, enumerated",
            "dyadic_rectangles, in batches",
        ]
        assert all(one.passed for one in found)


def caught(partition, family, epsilon):
    policy = policy_families(bf.Domain((2, 2)))[family]
    findings = audit_selector(
        partition, policy, epsilon=epsilon, samples=200_000, runs=0
    )
    return not all(one.passed for one in findings)


def test_a_doubled_rate_is_caught(monkeypatch):
    right = DyadicRectangles.rate
    partition = DyadicRectangles().priced(40.0)
    assert not caught(partition, "add_remove", Fraction(4))
    monkeypatch.setattr(
        DyadicRectangles,
        "rate",
        lambda self, shape, epsilon: 2 * right(self, shape, epsilon),
    )
    assert caught(partition, "add_remove", Fraction(4))


def test_a_forgotten_half_under_moves_is_caught(monkeypatch):
    partition = DyadicRectangles().priced(40.0)
    assert not caught(partition, "full", Fraction(4))
    monkeypatch.setattr(home, "record_distance", lambda policy: 1)
    assert caught(partition, "full", Fraction(4))


@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_whole_releases_stay_within_epsilon(policy):
    grid = bf.Domain((2, 2))
    asked = bf.workloads.Rectangles(grid, [[0, 0], [0, 1]], [[1, 2], [2, 2]])
    dawa = bf.Dawa(policy(grid), asked, epsilon=1)
    assert isinstance(dawa.partition, DyadicRectangles)
    one = np.array([[1, 0], [8, 8]])
    other = np.array([[0, 0], [8, 8]])
    if policy is bf.policies.Full:
        other = np.array([[0, 0], [9, 8]])

    def event(release):
        measurement = release.measurements[0]
        first = int(measurement.noisy[0]) // 4
        labels = tuple(measurement.buckets.labels.tolist())
        return labels, min(max(first, -2), 4)

    finding = audit_release(dawa, (one, other), event=event, samples=600)
    assert finding.passed, str(finding)

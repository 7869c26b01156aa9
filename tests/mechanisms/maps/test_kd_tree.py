"""The two-step kd-tree: rules, limits, totals, intervals, accuracy."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DataDependentError, InputError

GRID = bf.Domain((24, 32))
ASKED = bf.workloads.Rectangles.random(GRID, 60, rng=2)
COUNTS = np.zeros((24, 32), dtype=np.int64)
COUNTS[4:12, 8:24] = 60
COUNTS[20, 3] = 500
RULES = ["gain", "or", "and", "uniformity"]


def tree(policy=bf.policies.AddRemove, epsilon="0.5", **given):
    return bf.KdTree(policy(GRID), ASKED, epsilon=epsilon, **given)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("fit", ["uniform", None, "shrink"])
def test_every_rule_releases_what_was_asked(rule, fit):
    release = tree(rule=rule, fit=fit).release(COUNTS, rng=1)
    assert release.estimate.shape == (24, 32)
    assert release.guarantee.epsilon * 2 == 1
    assert release.details["lows"].shape == (release.details["buckets"], 2)
    intervals = release.intervals(ASKED, of="noise")
    assert (intervals[:, 0] <= intervals[:, 1]).all()


def test_more_epsilon_recovers_the_counts():
    release = tree(epsilon=1000).release(COUNTS, rng=1)
    np.testing.assert_allclose(release.estimate, COUNTS, atol=1.0)


def test_boxes_follow_the_data():
    release = tree(epsilon=20).release(COUNTS, rng=1)
    lows, highs = release.details["lows"], release.details["highs"]
    for low, high in zip(lows, highs, strict=True):
        assert np.ptp(COUNTS[low[0] : high[0], low[1] : high[1]]) == 0


@pytest.mark.parametrize("policy", [bf.policies.Full, bf.policies.Attribute])
def test_public_totals_stay_exact(policy):
    for fit in ("uniform", None, "shrink"):
        release = tree(policy, fit=fit).release(COUNTS, rng=3)
        assert release.estimate.sum() == pytest.approx(COUNTS.sum())


def test_the_totals_of_all_parts_stay_exact():
    labels = np.arange(GRID.size) % 32 // 11
    blocks = bf.policies.Blocks(GRID, labels)
    release = bf.KdTree(blocks, ASKED, epsilon=1).release(COUNTS, rng=1)
    for part in range(3):
        inside = (labels == part).reshape(COUNTS.shape)
        assert release.estimate[inside].sum() == pytest.approx(COUNTS[inside].sum())


def test_cells_alone_are_the_laplace_mechanism():
    cells = tree(rule=None)
    laplace = bf.Laplace(bf.policies.AddRemove(GRID), ASKED, epsilon="0.5")
    np.testing.assert_allclose(cells.expected_error(), laplace.expected_error())
    np.testing.assert_array_equal(
        cells.release(COUNTS, rng=4).estimate, laplace.release(COUNTS, rng=4).estimate
    )


def test_the_error_depends_on_the_data():
    with pytest.raises(DataDependentError, match="rule=None"):
        tree().expected_error()


def test_steps_share_epsilon():
    release = tree(epsilon="0.7", share="0.25").release(COUNTS, rng=1)
    (both,) = release.measurements
    cells, buckets = both.scales.widths[0], both.scales.widths[GRID.size]
    assert cells == pytest.approx(1 / (0.7 * 0.25), rel=1e-6)
    assert buckets == pytest.approx(1 / (0.7 * 0.75), rel=1e-6)


def coverage(fit, truth_of):
    mechanism, hit = tree(fit=fit, epsilon=2), []
    for seed in range(40):
        release = mechanism.release(COUNTS, rng=seed)
        truth = ASKED.answer(truth_of(release))
        low, high = release.intervals(ASKED, confidence=0.9, of="noise").T
        hit.append(((low <= truth) & (truth <= high)).mean())
    return float(np.mean(hit))


def test_least_squares_intervals_hold_the_true_answers():
    assert coverage(None, lambda release: COUNTS) >= 0.9


def test_uniform_intervals_hold_the_answers_over_uniform_boxes():
    def averaged(release):
        even = np.empty(COUNTS.shape)
        corners = zip(release.details["lows"], release.details["highs"], strict=True)
        for low, high in corners:
            box = tuple(slice(*ends) for ends in zip(low, high, strict=True))
            even[box] = COUNTS[box].mean()
        return even

    assert coverage("uniform", averaged) >= 0.9


def test_shrinking_keeps_the_totals_of_the_boxes():
    squares = tree(fit=None).release(COUNTS, rng=1)
    shrunk = tree(fit="shrink").release(COUNTS, rng=1)
    for low, high in zip(
        squares.details["lows"], squares.details["highs"], strict=True
    ):
        box = tuple(slice(*ends) for ends in zip(low, high, strict=True))
        assert shrunk.estimate[box].sum() == pytest.approx(squares.estimate[box].sum())
        assert np.ptp(shrunk.estimate[box]) <= np.ptp(squares.estimate[box]) + 1e-9
    np.testing.assert_allclose(shrunk.unfitted, squares.estimate)


def test_boxes_beat_cells_on_rectangles():
    errors = {}
    for rule in ("gain", "uniformity", None):
        mechanism = tree(rule=rule, epsilon="0.1")
        errors[rule] = np.mean(
            [
                np.abs(
                    mechanism.release(COUNTS, rng=seed).answer(ASKED)
                    - ASKED.answer(COUNTS)
                ).mean()
                for seed in range(8)
            ]
        )
    assert errors["gain"] < 0.8 * errors[None]
    assert errors["gain"] < errors["uniformity"]


@pytest.mark.parametrize("shape", [(1,), (50,), (6, 5, 4), (5, 3, 4, 6)])
def test_any_number_of_attributes(shape):
    domain = bf.Domain(shape)
    asked = bf.workloads.Rectangles.random(domain, 10, rng=1)
    policy = bf.policies.AddRemove(domain)
    counts = np.arange(domain.size).reshape(shape)
    release = bf.KdTree(policy, asked, epsilon=1).release(counts, rng=1)
    assert release.intervals(asked, of="noise").shape == (10, 2)


def test_no_records_and_no_noise():
    empty = tree().release(np.zeros((24, 32), dtype=int), rng=1)
    assert np.abs(empty.answer(ASKED)).mean() < 500
    still = bf.policies.Graph(GRID, np.empty((0, 2), dtype=np.int64))
    exact = bf.KdTree(still, ASKED, epsilon=1).release(COUNTS, rng=1)
    np.testing.assert_allclose(exact.estimate, COUNTS, atol=1e-9)


def test_shares_that_leave_a_step_next_to_nothing_are_refused():
    with pytest.raises(InputError, match=r"between 0\.001 and 0\.999"):
        tree(share="0.0001")

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfish_fast.policies import grid_steps
from blowfish_fast.policies.grid_steps import Ball
from tests.generated import example_count

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)
BALLS = st.builds(
    Ball, st.sampled_from(["l1", "l2", "linf"]), st.integers(min_value=1, max_value=9)
)


def inside(ball, step):
    if ball.metric == "l1":
        return sum(abs(move) for move in step) <= ball.limit
    if ball.metric == "l2":
        return sum(move * move for move in step) <= ball.limit
    return max(abs(move) for move in step) <= ball.limit


def all_steps(shape, ball):
    sides = [range(-side + 1, side) for side in shape]
    return [step for step in itertools.product(*sides) if inside(ball, step)]


@given(SHAPES, BALLS)
def test_half_a_ball_has_one_of_each_step_and_its_opposite(shape, ball):
    steps = {tuple(step) for step in grid_steps.half_ball(shape, ball, 10**6).tolist()}
    opposite = {tuple(-move for move in step) for step in steps}
    zero = (0,) * len(shape)
    assert not steps & opposite
    assert steps | opposite | {zero} == set(all_steps(shape, ball))


@given(SHAPES, BALLS)
def test_a_ball_too_large_is_not_listed(shape, ball):
    count = (len(all_steps(shape, ball)) - 1) // 2
    assert grid_steps.half_ball(shape, ball, count).shape == (count, len(shape))
    if count:
        assert grid_steps.half_ball(shape, ball, count - 1) is None


@settings(max_examples=example_count(60))
@given(SHAPES, BALLS)
def test_pairs_equal_the_definition(shape, ball):
    cells = list(itertools.product(*(range(side) for side in shape)))
    pairs = [
        (one, two)
        for one, two in itertools.combinations(cells, 2)
        if inside(ball, [a - b for a, b in zip(one, two, strict=True)])
    ]
    assert grid_steps.pairs_in_ball(shape, ball) == len(pairs)


@settings(max_examples=example_count(80))
@given(SHAPES, BALLS, st.integers(0, 2**32 - 1), st.sampled_from([0, 2**28]))
def test_the_largest_change_equals_the_definition(shape, ball, seed, most):
    cells = list(itertools.product(*(range(side) for side in shape)))
    lines = np.random.default_rng(seed).integers(-9, 9, (2, len(cells))).astype(float)
    expected = max(
        (
            abs(line[u] - line[v])
            for line in lines
            for u, v in itertools.combinations(range(len(cells)), 2)
            if inside(ball, [a - b for a, b in zip(cells[u], cells[v], strict=True)])
        ),
        default=0.0,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid_steps, "MOST_SHIFTED", most)
        change = grid_steps.largest_change_in_ball(lines, shape, ball)
    if change.exact:
        assert change.value == expected
    else:
        assert most == 0
        assert change.value >= expected


def test_roots_are_exact_for_large_squares():
    ball = Ball("l2", (2**27) ** 2)
    lengths = np.array([0, 1, 2**54 - (2**27 - 1) ** 2, 2**54, 2**54 + 1])
    expected = [2**27, 2**27 - 1, 2**27 - 1, 0, -1]
    assert ball.left_over(lengths).tolist() == expected

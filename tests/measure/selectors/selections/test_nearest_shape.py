"""NearestShape: whole costs from the definition, calibrated to the policy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blowfish_fast as bf
from blowfish_fast.errors import InputError
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.selections import NearestShape

EVEN, STEP, SPIKE = [5] * 6, [0, 0, 0, 10, 10, 10], [30, 0, 0, 0, 0, 0]
SHAPES = NearestShape(np.array([EVEN, STEP, SPIKE]))
LINE = bf.Domain(6)
COUNTS = st.lists(st.integers(0, 40), min_size=6, max_size=6)


def slow_cost(counts, shape):
    steps = [
        sorted(abs(a - b) for a, b in zip(one[1:], one, strict=False))
        for one in (counts, shape)
    ]
    heights = zip(sorted(counts), sorted(shape), strict=True)
    rough = zip(*steps, strict=True)
    return 2 * sum(abs(a - b) for a, b in heights) + sum(abs(a - b) for a, b in rough)


@settings(deadline=None, max_examples=80)
@given(COUNTS)
def test_costs_are_those_of_the_definition(counts):
    expected = [slow_cost(counts, shape) for shape in (EVEN, STEP, SPIKE)]
    assert SHAPES.costs(np.array(counts)).tolist() == expected


@settings(deadline=None, max_examples=80)
@given(COUNTS, st.integers(0, 5), st.integers(0, 5))
def test_a_record_moves_costs_as_far_as_is_declared(counts, start, end):
    base = SHAPES.costs(np.array(counts))
    added = np.array(counts)
    added[start] += 1
    assert np.abs(SHAPES.costs(added) - base).max() <= 4
    moved = np.array(counts)
    moved[end] += 1
    assert np.abs(SHAPES.costs(added) - SHAPES.costs(moved)).max() <= 8


@pytest.mark.parametrize(
    ("policy", "sensitivity"),
    [
        (bf.policies.AddRemove(LINE), 4),
        (bf.policies.Full(LINE), 8),
        (bf.policies.Line(LINE), 8),
        (bf.policies.Blocks(LINE, np.arange(6)), 0),
    ],
)
def test_it_is_calibrated_to_the_policy(policy, sensitivity):
    assert SHAPES.sensitivity(policy) == sensitivity
    if sensitivity:
        assert SHAPES.rate(policy, Fraction(1)) == Fraction(1, 2 * sensitivity)


@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Full])
def test_a_large_epsilon_finds_the_likeness_wherever_records_lie(policy):
    for counts, nearest in (
        ([6, 5, 4, 5, 5, 5], 0),
        ([10, 10, 10, 0, 0, 0], 1),
        ([0, 0, 0, 0, 29, 1], 2),
    ):
        chosen = SHAPES.select(
            np.array(counts),
            policy=policy(LINE),
            epsilon=Fraction(1000),
            rng=Randomness(1),
        )
        assert chosen == nearest


def test_without_edges_the_nearest_is_public():
    alone = bf.policies.Blocks(LINE, np.arange(6))
    given = {"policy": alone, "epsilon": Fraction(1), "rng": Randomness(1)}
    assert SHAPES.select(np.array(STEP), **given) == 1


def test_giant_counts_do_not_overflow():
    giant = np.full(6, 2**62)
    costs = SHAPES.costs(giant)
    assert (costs >= 0).all()
    assert costs.max() < 2**60


def test_bad_shapes_are_refused():
    for shapes in (np.zeros(3, np.int64), np.zeros((0, 3), np.int64), -np.eye(2)):
        with pytest.raises(InputError, match="one row of counts"):
            NearestShape(shapes)
    with pytest.raises(InputError, match="6 cells"):
        SHAPES.costs(np.zeros(5, dtype=np.int64))

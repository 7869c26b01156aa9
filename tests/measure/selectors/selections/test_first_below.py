"""The first tail below a bar: which it is, and the noise that finds it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit.witness import Draw, WatchedRandomness
from blowfish_fast.errors import EpsilonError
from blowfish_fast.measure.selectors.selections import FirstBelow, ScatterTest
from tests.reference.handed import Handed

LINE = bf.Domain(5)
COUNTS = np.array([900, 49, 29, 9, 3])
TAILS = [90, 41, 12, 3]


def first(bar, noise, policy=None, epsilon=Fraction(1)):
    rng = Handed(noise)
    policy = bf.policies.Full(LINE) if policy is None else policy
    return FirstBelow(bar).select(COUNTS, policy=policy, epsilon=epsilon, rng=rng)


def test_tails_count_the_cells_that_follow():
    assert FirstBelow(0).tails(COUNTS).tolist() == TAILS


@pytest.mark.parametrize(
    ("bar", "noise", "found"),
    [
        # The bar's noise comes first, then one for each tail.
        (12, [0, 0, 0, 0, 0], 2),
        (11, [0, 0, 0, 0, 0], 3),
        (11, [1, 0, 0, 0, 0], 2),
        (11, [0, 0, 0, -1, 0], 2),
        (12, [0, -78, 0, 0, 0], 0),
        (12, [0, -77, 0, 0, 0], 2),
        (12, [-9, 0, 0, 0, 0], 3),
        # None lies below: the last.
        (2, [0, 0, 0, 0, 0], 3),
        (2, [0, 0, 0, 0, 99], 3),
        (95, [0, 0, 0, 0, 0], 0),
    ],
)
def test_the_first_noisy_tail_at_most_the_noisy_bar_is_found(bar, noise, found):
    assert first(bar, noise) == found


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 3), Fraction(7, 2)])
@pytest.mark.parametrize("kind", [bf.policies.AddRemove, bf.policies.Full])
def test_bar_and_tails_take_noise_of_twice_the_inverse_of_epsilon(kind, epsilon):
    diary = []
    FirstBelow(10).select(
        COUNTS, policy=kind(LINE), epsilon=epsilon, rng=WatchedRandomness(1, diary)
    )
    (drawn,) = (one for one in diary if isinstance(one, Draw))
    assert drawn.law == "laplace"
    assert Fraction(drawn.numerators, drawn.denominators) == 2 / epsilon
    assert drawn.values.size == len(TAILS) + 1


def test_no_noise_is_drawn_where_everything_is_public():
    alone = bf.policies.Blocks(LINE, np.arange(5))
    rng = Handed([0])
    chosen = FirstBelow(12).select(COUNTS, policy=alone, epsilon=Fraction(1), rng=rng)
    assert (chosen, rng.asked) == (2, [])


def test_many_choices_draw_noise_for_each():
    rng = Handed([0, 0, 0, 0, 0, 0, -78, 0, 0, 0, 0, 0, 0, 0, 0])
    policy, test = bf.policies.Full(LINE), FirstBelow(12)
    noise = test.noise(COUNTS.size, policy, Fraction(1), draws=3, rng=rng)
    assert sorted(test.decide(COUNTS, policy, noise)) == [0, 2, 2]
    assert rng.asked == [(2, 1, 15)]


def test_where_nothing_moves_any_epsilon_serves():
    square = bf.Domain((2, 2))
    still = bf.policies.Graph(square, np.zeros((0, 2), dtype=int))
    tiny = Fraction(1, 2**80)
    FirstBelow(3).check_feasible(still, 4, tiny)
    test = ScatterTest(np.ones((2, 2)), price=0.2, threshold=0.25)
    if test.sensitivity(still) == 0:
        test.check_feasible(still, 4, tiny)
    with pytest.raises(EpsilonError):
        FirstBelow(3).check_feasible(bf.policies.AddRemove(square), 4, tiny)

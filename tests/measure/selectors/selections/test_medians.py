"""Private medians: the law of the cuts, their neighbours, their limits."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from blowfish_fast import Domain
from blowfish_fast.audit import policy_families
from blowfish_fast.audit.many_choices.many_draws import exact_law
from blowfish_fast.audit.neighbours import search_worst_pair, standard_pairs
from blowfish_fast.errors import DomainError, InputError
from blowfish_fast.kernels.sampling.exponential_choice import NO_CANDIDATE
from blowfish_fast.kernels.space.summed_area import summed_area_table
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions.kd_cells import median_costs
from blowfish_fast.measure.selectors.selections import Medians
from blowfish_fast.policies import AddRemove, Graph

EPSILON = Fraction(3, 2)


def law(counts, shape=(4,), levels=2, policy=AddRemove):
    selector = Medians(shape, levels)
    domain = Domain(shape)
    found = exact_law(
        selector, np.asarray(counts), policy=policy(domain), epsilon=EPSILON
    )
    assert found is not None
    assert sum(found.values()) == pytest.approx(1.0)
    return found


def test_costs_are_differences_of_the_two_sides(generator):
    counts = generator.integers(0, 9, (5, 4))
    lows, highs = np.array([[0, 0], [1, 2]]), np.array([[5, 4], [3, 4]])
    costs = median_costs(summed_area_table(counts), lows, highs, np.array([0, 1]))
    first = [abs(counts[:cut].sum() - counts[cut:].sum()) for cut in range(1, 5)]
    assert costs[0].tolist() == first
    part = counts[1:3, 2:4]
    assert costs[1, 0] == abs(part[:, 0].sum() - part[:, 1].sum())
    assert (costs[1, 1:] == NO_CANDIDATE).all()


def test_one_cut_follows_the_exponential_law():
    counts = [3, 0, 1, 7]
    rate = float(EPSILON) / 2
    costs = np.array([abs(2 * sum(counts[:cut]) - 11) for cut in (1, 2, 3)])
    weights = np.exp(-rate * costs)
    found = law(counts, levels=1)
    # The choice is keyed by parents, lows and highs; highs[1] is the cut.
    chances = {key[2][1]: chance for key, chance in found.items()}
    for cut, weight in zip((1, 2, 3), weights / weights.sum(), strict=True):
        assert chances[cut] == pytest.approx(weight, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("family", ["add_remove", "full", "threshold_absent"])
@pytest.mark.parametrize(
    ("shape", "levels", "reached"), [((4,), 1, 0.9), ((4,), 2, 0.5), ((3, 2), 2, 0.2)]
)
def test_no_neighbours_that_a_search_finds_exceed_epsilon(
    shape, levels, reached, family
):
    """From telling pairs the search climbs to those that are told apart most."""
    policy = policy_families(Domain(shape))[family]
    known = cache(lambda counts: law(counts, shape, levels, lambda domain: policy))

    def apart(pair):
        first, second = (known(tuple(side.tolist())) for side in pair.sides)
        assert first.keys() == second.keys()
        return max(abs(math.log(first[one] / second[one])) for one in first)

    start = max(standard_pairs(policy, (4,)), key=apart)
    worst = search_worst_pair(start, policy, apart, heights=(4, 12), steps=60, seed=1)
    assert apart(worst) <= float(EPSILON) * (1 + 1e-9)
    # The search finds bad pairs: a promise broken by much would be seen.
    assert apart(worst) > reached * float(EPSILON), (worst, apart(worst))


def test_the_bound_is_nearly_reached():
    first, second = law([0, 4, 0, 2], levels=1), law([1, 4, 0, 2], levels=1)
    worst = max(abs(math.log(first[one] / second[one])) for one in first)
    assert 0.85 * float(EPSILON) < worst <= float(EPSILON)


def test_a_rate_without_the_factor_two_is_caught(monkeypatch):
    """Planted: the score of the printed rule moves by 1/2 and its weight by 2."""
    monkeypatch.setattr(
        Medians, "rate", lambda self, policy, epsilon: epsilon / self.levels
    )
    first, second = law([0, 4, 0, 2], levels=1), law([1, 4, 0, 2], levels=1)
    worst = max(abs(math.log(first[one] / second[one])) for one in first)
    assert worst > float(EPSILON)


def test_without_edges_the_median_is_exact():
    policy = Graph(Domain(5), np.empty((0, 2), int))
    chosen = Medians((5,), 1).select(
        np.array([1, 1, 5, 1, 0]), policy=policy, epsilon=EPSILON, rng=Randomness(1)
    )
    assert chosen.highs[1].tolist() == [2]


@pytest.mark.parametrize("shape", [(1,), (2,), (6, 5), (2, 3, 4)], ids=str)
def test_boxes_of_every_level_fill_their_parents(shape, generator):
    counts = generator.integers(0, 9, shape)
    boxes = Medians(shape, 12).select(
        counts.reshape(-1),
        policy=AddRemove(Domain(shape)),
        epsilon=EPSILON,
        rng=Randomness(1),
    )
    volumes = np.prod(boxes.highs - boxes.lows, axis=1)
    inner = np.unique(boxes.parents[1:])
    for parent in inner:
        assert volumes[boxes.parents == parent].sum() == volumes[parent]
    leaves = np.setdiff1d(np.arange(boxes.parents.size), inner)
    assert (volumes[leaves] >= 1).all()
    assert volumes[leaves].sum() == np.prod(shape)


def test_large_epsilon_finds_the_median(generator):
    counts = generator.integers(1, 50, 64)
    boxes = Medians((64,), 1).select(
        counts, policy=AddRemove(Domain(64)), epsilon=Fraction(100), rng=Randomness(1)
    )
    left = np.cumsum(counts)
    assert boxes.highs[1, 0] == 1 + np.argmin(np.abs(2 * left[:-1] - left[-1]))


def test_wrong_sizes_are_refused():
    with pytest.raises(InputError, match="levels"):
        Medians((4,), -1)
    with pytest.raises(DomainError, match="6 cells"):
        Medians((2, 3), 1).select(
            np.zeros(5, int),
            policy=AddRemove(Domain(5)),
            epsilon=EPSILON,
            rng=Randomness(1),
        )


def test_no_level_leaves_one_box_and_every_level_gets_an_equal_part():
    none = Medians((4,), 0)
    boxes = none.select(
        np.arange(4),
        policy=AddRemove(Domain(4)),
        epsilon=EPSILON,
        rng=Randomness(0),
    )
    assert (boxes.lows.tolist(), boxes.highs.tolist()) == ([[0]], [[4]])
    assert none.parts(4) == (Fraction(1),)
    assert Medians((4,), 1).parts(4) == (Fraction(1),)
    assert Medians((4,), 3).parts(4) == (Fraction(1, 3),) * 3


def test_a_box_is_cut_while_any_side_is_wider_than_a_cell():
    row = Medians((1, 5), 3)
    boxes = row.select(
        np.array([1, 1, 1, 1, 1]),
        policy=AddRemove(Domain((1, 5))),
        epsilon=EPSILON,
        rng=Randomness(0),
    )
    assert boxes.parents.size > 1
    assert boxes.highs[:, 0].tolist() == [1] * boxes.parents.size

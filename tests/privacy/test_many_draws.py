"""Laws and batches of selectors whose decisions are written down beside them."""

from __future__ import annotations

import math
import sys
import types
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import blowfish_fast as bf
from blowfish_fast import kernels
from blowfish_fast.audit.many_choices import many_draws
from blowfish_fast.audit.many_choices.many_draws import (
    exact_law,
    path_log_ratio,
    public_key,
    sample_choices,
    select_many,
)
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import SizeError
from blowfish_fast.kernels.sampling import exponential_choice
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions.least_cost import LeastCost
from blowfish_fast.measure.selectors.selections import FirstBelow

BITS = 8
CASE = {"policy": bf.policies.AddRemove(bf.Domain(3)), "epsilon": Fraction(1)}


class Decisions:
    """Take one candidate from each row, which `rows` makes of the counts."""

    name = "decisions"

    def __init__(self, rows):
        self.rows = rows

    def select(self, counts, *, policy, epsilon, rng):
        taken = []
        for row in self.rows(counts):
            table = np.array([row], dtype=np.int64)
            taken.append(int(kernels.choose(rng.stream(), 0, table, BITS)[0]))
        return taken


def weights(*logarithms):
    """Return a row of weights; None for a candidate that is not there."""
    return [
        kernels.ABSENT if one is None else round(one * 2**BITS) for one in logarithms
    ]


def test_the_law_is_the_product_of_the_decisions():
    two = Decisions(lambda counts: [weights(0, 1), weights(None, -2, 0.5, 0)])
    law = exact_law(two, np.zeros(3, dtype=int), **CASE)
    first = np.exp([0, 1]) / np.exp([0, 1]).sum()
    second = np.array([0, *np.exp([-2, 0.5, 0])]) / np.exp([-2, 0.5, 0]).sum()
    expected = {(i, j): first[i] * second[j] for i in range(2) for j in (1, 2, 3)}
    assert law == pytest.approx(expected, rel=1e-12)


def test_equal_choices_of_different_paths_add_up():
    folded = Decisions(lambda counts: [weights(0, 1, 2)])
    plain = folded.select

    class Parity(Decisions):
        def select(self, counts, **case):
            return plain(counts, **case)[0] % 2

    law = exact_law(Parity(folded.rows), np.zeros(3, dtype=int), **CASE)
    chances = np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum()
    assert law == pytest.approx({0: chances[0] + chances[2], 1: chances[1]})


def test_batches_follow_the_law_in_every_chunk(monkeypatch):
    monkeypatch.setattr(many_draws, "CHUNK", 1000)
    two = Decisions(lambda counts: [weights(0, 1), weights(None, -2, 0.5, 0)])
    counts = np.zeros(3, dtype=int)
    made = sample_choices(two, counts, samples=20_500, rng=Randomness(1), **CASE)
    law = exact_law(two, counts, **CASE)
    assert sum(made.values()) == 20_500
    assert set(made) == set(law)
    expected = [20_500 * law[one] for one in law]
    assert stats.chisquare([made[one] for one in law], expected).pvalue > 1e-4


def test_runs_of_one_row_read_words_of_their_own(monkeypatch):
    # Chunks that began at the same word would repeat each other's choices.
    monkeypatch.setattr(many_draws, "CHUNK", 50)
    even = Decisions(lambda counts: [weights(*[0] * 1000)])
    counts = np.zeros(3, dtype=int)
    made = sample_choices(even, counts, samples=200, rng=Randomness(2), **CASE)
    assert len(made) > 150


@pytest.mark.parametrize(
    ("first", "second", "ratio"),
    [
        ([weights(0, 1)], [weights(0, 1)], 0.0),
        # One candidate is certain on the first side.
        ([weights(None, 0)], [weights(0, 0)], math.log(2)),
        ([weights(None, 0)], [weights(3, 0)], math.log(1 + math.exp(3))),
        # The second side cannot take it: absent, too short a row, further decisions.
        ([weights(None, 0)], [weights(0, None)], math.inf),
        ([weights(None, 0)], [weights(0)], math.inf),
        ([weights(None, None, 0)], [weights(0)], math.inf),
        ([weights(0)], [weights(0), weights(0)], math.inf),
        # Losses of several decisions add up with their signs.
        (
            [weights(None, 0), weights(0, None)],
            [weights(0, 0), weights(0, 0)],
            math.log(4),
        ),
    ],
)
def test_a_run_is_priced_row_by_row(first, second, ratio):
    choice = Decisions(lambda counts: second if counts[0] else first)
    sides = np.array([0, 0, 0]), np.array([1, 0, 0])
    found = path_log_ratio(choice, sides, generator=np.random.default_rng(0), **CASE)
    assert found == pytest.approx(ratio, abs=1e-12)


def test_a_run_follows_its_law():
    # Three of four runs take the second candidate: their ratio is that of its chances.
    choice = Decisions(
        lambda counts: [weights(0, 0) if counts[0] else weights(0, math.log(3))]
    )
    sides = np.array([0, 0, 0]), np.array([1, 0, 0])
    generator = np.random.default_rng(5)
    found = [
        path_log_ratio(choice, sides, generator=generator, **CASE) for _ in range(400)
    ]
    common = np.isclose(found, math.log(1.5), atol=0.01)
    assert np.isclose(np.array(found)[~common], math.log(2), atol=0.01).all()
    assert 270 < common.sum() < 330


def test_noise_outside_the_choice_leaves_no_law():
    class Noisy(Decisions):
        def select(self, counts, *, policy, epsilon, rng):
            return int(rng.laplace(3, 1, size=1)[0] > 0)

    noisy = Noisy(None)
    counts = np.zeros(3, dtype=int)
    assert exact_law(noisy, counts, **CASE) is None
    assert sample_choices(noisy, counts, samples=9, rng=Randomness(0), **CASE) is None
    sides = counts, counts
    generator = np.random.default_rng(0)
    assert path_log_ratio(noisy, sides, generator=generator, **CASE) is None
    made = select_many(noisy, counts, draws=40, rng=Randomness(0), **CASE)
    assert sum(made.values()) == 40
    assert set(made) == {0, 1}


def test_noise_after_a_decision_leaves_no_law():
    class Late(Decisions):
        def select(self, counts, *, rng, **case):
            taken = super().select(counts, rng=rng, **case)
            return taken, int(rng.laplace(3, 1, size=1)[0] > 0)

    late = Late(lambda counts: [weights(0, 1)])
    assert exact_law(late, np.zeros(3, dtype=int), **CASE) is None


def test_weights_of_any_size_have_a_law():
    # Exponentials of these overflow; only their differences matter.
    for row in (weights(2000, 2001), weights(-2001, -2000), weights(0, 1)):
        law = exact_law(Decisions(lambda _, row=row: [row]), np.zeros(3), **CASE)
        assert law[(1,)] == pytest.approx(1 / (1 + math.exp(-1)))
    law = exact_law(Decisions(lambda _: [weights(0, 1000)]), np.zeros(3), **CASE)
    assert law == {(0,): 0.0, (1,): 1.0}


def test_what_no_run_has_chosen_is_not_counted():
    rare = Decisions(lambda counts: [weights(0, -60)])
    counts = np.zeros(3, dtype=int)
    made = sample_choices(rare, counts, samples=500, rng=Randomness(3), **CASE)
    assert +made == {(0,): 500}


def test_noise_of_many_choices_is_drawn_at_once_where_the_kernel_can():
    counts = np.array([0, 0, 8])
    assert not many_draws.draws_at_once(LeastCost("all"))
    assert many_draws.draws_at_once(FirstBelow(2))
    made = select_many(
        LeastCost().priced(2.0), counts, draws=60, rng=Randomness(1), **CASE
    )
    assert sum(made.values()) == 60
    for labels in made:
        assert labels[0] == 0
        assert set(np.diff(labels)) <= {0, 1}


def holders():
    """Return the modules that hold the sampler, genuine or not."""
    return {
        name: vars(module)["weigh_block"]
        for name, module in sys.modules.items()
        if "weigh_block" in vars(module)
    }


def test_a_module_first_needed_by_a_choice_gets_the_sampler_back(monkeypatch):
    before = holders()
    name = "blowfish_fast.first_needed"
    late = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, late)
    del sys.modules[name]

    class Importing(Decisions):
        def select(self, counts, **case):
            late.weigh_block = exponential_choice.weigh_block
            sys.modules[name] = late
            return super().select(counts, **case)

    exact_law(Importing(lambda counts: [weights(0)]), np.zeros(3, dtype=int), **CASE)
    assert late.weigh_block is exponential_choice.weigh_block
    assert holders() == {**before, name: exponential_choice.weigh_block}


def test_too_many_runs_are_refused(monkeypatch):
    monkeypatch.setattr(many_draws, "MOST_LEAVES", 3)
    three = Decisions(lambda counts: [weights(0, 0, 0)])
    assert len(exact_law(three, np.zeros(3, dtype=int), **CASE)) == 3
    four = Decisions(lambda counts: [weights(0, 0, 0, 0)])
    with pytest.raises(SizeError, match="decisions makes more than 3 different runs"):
        exact_law(four, np.zeros(3, dtype=int), **CASE)


class Pair:
    def __init__(self):
        self.one, self.two = np.int64(1), [2.5, None]


def test_choices_have_names_that_are_equal_for_equal_choices():
    assert public_key(Buckets.single_cells(3)) == (0, 1, 2)
    assert public_key(np.array([[1, 2], [3, 4]])) == (1, 2, 3, 4)
    assert public_key(np.float64(2.0)) == 2.0
    assert public_key({"b": [1], "a": np.array([2])}) == (("a", (2,)), ("b", (1,)))
    assert public_key(Pair()) == (("one", 1), ("two", (2.5, None)))
    assert public_key({1}) == "{1}"

"""Choices: exact laws, batches and twins agree with what selectors do."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import blowfish_fast as bf
from blowfish_fast.audit import audit_selector, policy_families
from blowfish_fast.audit.choices import (
    batch_tally,
    instances,
    selector_names,
    selector_power,
    visible_loss,
)
from blowfish_fast.audit.many_choices.choice_twins import (
    Case,
    _Handed,
    cheapest_choices,
    covers_of,
    groups_offered,
    inexact_matchings,
    intervals_offered,
    noisy_count_choices,
)
from blowfish_fast.audit.many_choices.many_draws import (
    exact_law,
    path_log_ratio,
    public_key,
    sample_choices,
    select_many,
)
from blowfish_fast.audit.neighbours import (
    Pair,
    joint_moves,
    most_moves,
    pairs_at_random,
    search_worst_pair,
    standard_pairs,
)
from blowfish_fast.audit.plan import LONG, tasks
from blowfish_fast.audit.verdicts import _is_sampled, _selects
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import SizeError
from blowfish_fast.kernels.sampling import exponential_choice
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import (
    DyadicTree,
    LeastCost,
    NoisySort,
    ThresholdedSort,
)
from blowfish_fast.measure.selectors.partitions.matching_pairs import MatchingPairs
from blowfish_fast.measure.selectors.selections import FirstBelow
from tests.reference.constraints import neighbours
from tests.reference.dyadic_partition import intended_law

LINE = bf.Domain(4)
ADD_REMOVE = bf.policies.AddRemove(LINE)
STEP = np.array([0, 1, 8, 8])
MATCHING = Case(MatchingPairs().priced(4.0), ADD_REMOVE, Fraction(1))


def labels_of(starts, cells):
    inside = np.zeros(cells, dtype=int)
    inside[list(starts)] = 1
    return tuple((np.cumsum(inside) - 1).tolist())


def test_the_enumerated_law_is_the_documented_one():
    tree = DyadicTree().priced(3.0)
    law = exact_law(tree, STEP, policy=ADD_REMOVE, epsilon=Fraction(1))
    intended = intended_law(
        STEP.tolist(),
        tree.rate(4, Fraction(1)),
        tree.price * tree.bucket_cost,
        length_weights=tree.length_weights(4),
    )
    expected = {labels_of(starts, 4): float(p) for starts, p in intended.items()}
    assert law.keys() == expected.keys()
    assert law == pytest.approx(expected, rel=1e-9)
    assert sum(law.values()) == pytest.approx(1)


def test_batches_follow_the_law_and_so_do_single_runs():
    tree = DyadicTree().priced(3.0)
    case = {"policy": ADD_REMOVE, "epsilon": Fraction(1)}
    law = exact_law(tree, STEP, **case)
    batch = sample_choices(tree, STEP, samples=50_000, rng=Randomness(1), **case)
    single = Counter(
        public_key(tree.select(STEP, rng=Randomness(seed), **case))
        for seed in range(1000)
    )
    for seen, total in ((batch, 50_000), (single, 1000)):
        observed = [seen[one] for one in law]
        assert sum(observed) == total
        expected = [total * chance for chance in law.values()]
        assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_steering_leaves_the_sampler_as_it_was():
    before = exponential_choice.weigh_block
    exact_law(DyadicTree(), STEP, policy=ADD_REMOVE, epsilon=Fraction(1))
    assert exponential_choice.weigh_block is before


def test_a_selector_with_noise_of_its_own_has_no_tree():
    case = {"policy": ADD_REMOVE, "epsilon": Fraction(1)}
    for selector in (LeastCost(), MatchingPairs()):
        assert exact_law(selector, STEP, **case) is None
        rng = Randomness(0)
        assert sample_choices(selector, STEP, samples=9, rng=rng, **case) is None


@pytest.mark.parametrize("family", ["add_remove", "full", "line", "graph_absent"])
def test_pairs_are_neighbours(family):
    policy = policy_families(LINE)[family]
    chosen = standard_pairs(policy)
    assert len(chosen) >= policy.edge_count
    generator = np.random.default_rng(1)
    searched = search_worst_pair(
        chosen[0],
        policy,
        lambda pair: pair.sides[0].max(),
        heights=(8, 3),
        steps=30,
        seed=1,
    )
    drawn = pairs_at_random(policy, 50, generator)
    assert len({pair.background for pair in drawn}) > 30
    for pair in (*chosen, searched, *drawn):
        change = pair.sides[0] - pair.sides[1]
        assert np.abs(change).sum() in (1, 2)
        assert pair.sides[0].min() >= 0
        ends = np.flatnonzero(change)
        joined = policy.joins(ends[0], ends[1] if ends.size == 2 else -1)
        assert np.all(joined)


@pytest.mark.long
def test_a_search_finds_a_worse_pair():
    policy = ADD_REMOVE
    tree = DyadicTree().priced(3.0)

    def apart(pair):
        laws = [
            exact_law(tree, side, policy=policy, epsilon=Fraction(1))
            for side in pair.sides
        ]
        return max(abs(math.log(laws[0][one] / laws[1][one])) for one in laws[0])

    start = Pair((40, 40, 40, 40), (0, -1))
    settings = {"heights": (3, 8), "seed": 3}
    found = search_worst_pair(start, policy, apart, steps=60, **settings)
    assert apart(found) > apart(start) + 0.03
    assert search_worst_pair(start, policy, apart, steps=0, **settings) == start


def test_a_policy_without_edges_has_no_pairs():
    alone = bf.policies.Blocks(LINE, np.arange(4))
    assert standard_pairs(alone) == []
    assert pairs_at_random(alone, 5, np.random.default_rng(0)) == []


def test_neighbours_differ_on_flat_stepped_jagged_and_ending_backgrounds():
    found = standard_pairs(bf.policies.Line(bf.Domain(5)), (0, 8))
    assert {one.background for one in found} == {
        (0, 0, 0, 0, 0),
        (8, 8, 8, 8, 8),
        (0, 0, 0, 8, 8),
        (0, 8, 0, 8, 0),
        (0, 0, 0, 0, 8),
    }


def test_a_run_has_the_probability_that_the_law_says():
    # One decision of two candidates on two cells: the path is the choice.
    two = bf.Domain(2)
    policy = bf.policies.AddRemove(two)
    tree = DyadicTree().priced(3.0)
    sides = (np.array([0, 4]), np.array([0, 5]))
    case = {"policy": policy, "epsilon": Fraction(1)}
    laws = [exact_law(tree, side, **case) for side in sides]
    ratios = {abs(math.log(laws[0][one] / laws[1][one])) for one in laws[0]}
    generator = np.random.default_rng(0)
    seen = {path_log_ratio(tree, sides, generator=generator, **case) for _ in range(30)}
    assert len(seen) == len(ratios)
    for one in seen:
        assert min(abs(one - other) for other in ratios) < 1e-9
    assert path_log_ratio(LeastCost(), sides, generator=generator, **case) is None


@pytest.mark.long
def test_the_twin_of_noisy_sort_follows_its_law():
    sort = NoisySort().priced(4.0)
    for policy in (ADD_REMOVE, bf.policies.Line(LINE)):
        case = {"policy": policy, "epsilon": Fraction(1)}
        twin = noisy_count_choices(Case(sort, **case), STEP, 40_000, Randomness(3))
        assert sum(twin.values()) == 40_000
        real = Counter(
            public_key(sort.select(STEP, rng=Randomness(seed), **case))
            for seed in range(1500)
        )
        often = [one for one, number in twin.items() if number > 300]
        table = np.array([[twin[one] for one in often], [real[one] for one in often]])
        assert stats.chi2_contingency(table).pvalue > 1e-4


def test_there_are_ten_pairings_of_four_cells():
    groups = groups_offered(MATCHING, STEP).candidates
    made = {tuple(one) for one in covers_of((0, 1, 2, 3), groups)}
    assert len(made) == len(groups_offered(MATCHING, STEP).member()) == 10
    assert all(sorted(sum(one, ())) == [0, 1, 2, 3] for one in made)


@pytest.mark.long
def test_the_twin_of_matching_follows_its_law():
    twin = cheapest_choices(MATCHING, STEP, 40_000, Randomness(3))
    real = Counter(
        public_key(MATCHING.select(STEP, Randomness(seed))) for seed in range(1500)
    )
    names = [
        tuple(
            next(i for i, group in enumerate(sorted(one)) if cell in group)
            for cell in range(4)
        )
        for one in covers_of((0, 1, 2, 3), groups_offered(MATCHING, STEP).candidates)
    ]
    often = np.array([twin[number] for number in range(10)])
    table = np.array([often, [real[name] for name in names]])
    table = table[:, often > 300]
    assert stats.chi2_contingency(table).pvalue > 1e-4


def test_matchings_are_the_cheapest():
    assert inexact_matchings(MATCHING, STEP, runs=40) == 0
    nine = Case(MatchingPairs(), bf.policies.AddRemove(bf.Domain(9)), Fraction(1))
    with pytest.raises(SizeError, match="at most 8 cells; received 9"):
        inexact_matchings(nine, np.arange(9), runs=40)
    twice = Case(MatchingPairs(rounds=2).priced(4.0), ADD_REMOVE, Fraction(1))
    with pytest.raises(SizeError, match="one round is written out; received 2"):
        cheapest_choices(twice, STEP, 10, Randomness(0))


def test_pairings_stay_inside_connected_parts():
    blocks = bf.policies.Blocks(LINE, [0, 0, 0, 1])
    case = Case(MatchingPairs().priced(4.0), blocks, Fraction(1))
    assert inexact_matchings(case, STEP, runs=20) == 0
    assert set(cheapest_choices(case, STEP, 1000, Randomness(3))) == {0, 1, 2, 3}


@pytest.mark.parametrize("cost", ["deviation", "pinball"])
def test_costs_of_the_twin_are_those_of_the_best_centre(cost):
    partition = LeastCost(cost=cost, offset=0).priced(1.0)
    offered = intervals_offered(Case(partition, ADD_REMOVE, Fraction(1)), STEP)
    step = partition.noise(4, Fraction(1)).step
    for cells, found in zip(offered.candidates, offered.costs, strict=True):
        values = STEP[list(cells)]
        off = values - np.linspace(0, 10, 2001)[:, None]
        above, below = np.maximum(off, 0).sum(axis=1), np.maximum(-off, 0).sum(axis=1)
        exact = np.abs(values - values.mean()).sum()
        wanted = exact if cost == "deviation" else (0.75 * above + 0.25 * below).min()
        assert (found * step - 1.0) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.long
def test_findings_say_how_they_were_made():
    settings = {"epsilon": Fraction(1), "samples": 2000, "runs": 50, "steps": 3}
    found = list(audit_selector(DyadicTree(), ADD_REMOVE, **settings))
    assert [str(one).split(":")[0] for one in found] == [
        "dyadic_tree, enumerated",
        "dyadic_tree, in batches",
    ]
    assert [one.samples for one in found] == [0, 2000]
    found = list(audit_selector(LeastCost(), ADD_REMOVE, **settings))
    assert [str(one).split(":")[0] for one in found] == [
        "least_cost, in batches",
        "least_cost, run by run",
    ]
    assert found[0].pairs == len(standard_pairs(ADD_REMOVE, (1, 8))) + 3
    found = list(audit_selector(NoisySort(), ADD_REMOVE, **settings))
    assert str(found[0]).startswith("noisy_sort, in batches")


class Deterministic:
    """A choice without noise: what must not exist."""

    name = "deterministic"

    def select(self, counts, *, policy, epsilon, rng):
        return int(counts[0] > 0)


def test_a_choice_without_noise_has_an_infinite_ratio():
    found = list(
        audit_selector(
            Deterministic(), ADD_REMOVE, epsilon=Fraction(1), samples=100, runs=100
        )
    )
    assert found[0].evidence.log_ratio == math.inf
    assert not found[0].passed


@pytest.mark.parametrize(
    ("known", "most"), [([[1, 1, 0, 0]], 2), ([[1, 0, 0, 0], [0, 1, 0, 0]], 3)]
)
def test_moves_under_constraints_are_those_of_the_definition(known, most):
    policy = bf.policies.Full(LINE).with_constraints(
        bf.policies.CountConstraints(LINE, known)
    )
    number, moves = most_moves(policy)
    assert number == most == len(moves) <= policy.group_size
    queries = [{cell for cell, one in enumerate(row) if one} for row in known]
    edges = np.concatenate(list(policy.edges()))
    slow = neighbours(4, 3, edges, queries)
    differing = {
        tuple(sorted((a, b) for a, b in zip(one, other, strict=True) if a != b))
        for one, other in slow
    }
    quick = {tuple(sorted(moves)) for moves in joint_moves(policy, most=3)}
    assert differing == quick


@pytest.mark.long
@pytest.mark.parametrize("settings", [{}, {"cost": "pinball"}], ids=str)
def test_many_choices_from_one_preparation_follow_the_law_of_single_ones(settings):
    partition = LeastCost(offset=0, **settings).priced(4.0)
    case = {"policy": ADD_REMOVE, "epsilon": Fraction(1)}
    many = select_many(partition, STEP, draws=40_000, rng=Randomness(4), **case)
    assert sum(many.values()) == 40_000
    single = Counter(
        public_key(partition.select(STEP, rng=Randomness(seed), **case))
        for seed in range(1500)
    )
    often = [one for one, number in many.items() if number > 300]
    table = np.array([[seen[one] for one in often] for seen in (many, single)])
    assert stats.chi2_contingency(table).pvalue > 1e-4


@pytest.mark.long
@pytest.mark.parametrize("name", selector_names())
@pytest.mark.parametrize("family", ["add_remove", "full"])
def test_every_selector_makes_many_choices(name, family):
    policy = policy_families(bf.Domain((2, 2)))[family]
    case = {"policy": policy, "epsilon": Fraction(1)}
    for selector in instances(name, policy):
        made = select_many(selector, STEP, draws=50, rng=Randomness(1), **case)
        assert sum(made.values()) == 50
        assert batch_tally(Case(selector, policy, Fraction(1))) is not None


def test_many_choices_differ_from_each_other_and_repeat_with_their_seed():
    case = {"policy": ADD_REMOVE, "epsilon": Fraction(1), "draws": 500}
    first, again, other = (
        select_many(LeastCost().priced(1.0), STEP, rng=Randomness(seed), **case)
        for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len(first) > 1


@pytest.mark.long
@pytest.mark.parametrize("name", selector_names())
def test_an_excess_is_planted_where_a_selector_has_a_choice(name):
    stops = [
        one
        for one in tasks(LONG)
        if (one.kind, one.name) == ("selector power", name)
        and _is_sampled(one, LONG, _selects)
    ]
    assert [one.family for one in stops] == list(LONG.thorough)
    for stop in stops:
        case = Case(instances(name, stop.policy)[0], stop.policy, Fraction(1))
        pairs = standard_pairs(stop.policy, case.heights)
        assert any(visible_loss(case, one, 1000)[0] > 0 for one in pairs)


@pytest.mark.audit
@pytest.mark.parametrize(
    "selector",
    [DyadicTree().priced(8.0), LeastCost(offset=0).priced(8.0), FirstBelow(bar=8)],
)
def test_an_excess_of_five_percent_planted_in_a_choice_is_seen(selector):
    # Where a law is enumerated at once; where noise is drawn, in enough draws.
    power = selector_power(selector, ADD_REMOVE, samples=1_000_000, trials=2)
    assert power.share == 1
    fair = selector_power(
        selector, ADD_REMOVE, samples=100_000, trials=2, excess=Fraction(-1, 10)
    )
    assert fair.share == 0


@pytest.mark.long
@pytest.mark.parametrize("sort", [NoisySort(), NoisySort(2), ThresholdedSort()])
@pytest.mark.parametrize("family", ["add_remove", "blocks", "graph", "line"])
def test_many_noisy_counts_are_grouped_as_each_by_itself(sort, family):
    policy = policy_families(bf.Domain(5))[family]
    # A price that is no sum of powers of two: what other rows cost must not matter.
    sort, generator = sort.priced(2.3), np.random.default_rng(5)
    noise = sort.noise(policy, Fraction(1))
    rows = generator.integers(-3, 12, (60, 5))
    groups = sort.group(rows, policy, noise)
    for noisy, labels in zip(rows, groups, strict=True):
        alone = sort.group(noisy[None], policy, noise)[0]
        np.testing.assert_array_equal(labels, alone)
        draws = np.zeros(noise.scales.rates.size, dtype=np.int64)
        chosen = sort.select(
            noisy, policy=policy, epsilon=Fraction(1), rng=_Handed(draws)
        )
        assert public_key(chosen) == tuple(labels.tolist())


def test_a_choice_that_reads_more_than_noisy_counts_is_named_after_the_true_ones():
    class Peeking(NoisySort):
        def _choose(self, counts, policy, epsilon, rng):
            found = super()._choose(counts, policy, epsilon, rng)
            return Buckets.single_cells(4) if counts[1] % 2 else found

    case = Case(Peeking().priced(4.0), ADD_REMOVE, Fraction(1))
    odd, even = np.array([8, 9, 8, 8]), np.array([8, 8, 8, 8])
    made = [
        noisy_count_choices(case, counts, 20_000, Randomness(1))
        for counts in (odd, even)
    ]
    assert made[0]["depends on", 8, 9, 8, 8] > 50
    assert not any("depends on" in one for one in made[1])
    (found, *_) = audit_selector(
        case.selector, ADD_REMOVE, epsilon=Fraction(1), samples=40_000, runs=0
    )
    assert not found.passed

"""Promises about persons against a direct computation, on tiny domains.

An attacker knows everybody else's records; one person has none, one or two of her own.
Every set of them that she may have is listed, and what noisy answers say about it.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.advice.posterior_belief import most_steps
from blowfish_fast.apps.interop.other_libraries import as_measurement

CELLS = bf.Domain(4)
EPSILON = 1.5
LINE, FULL = bf.policies.Line(CELLS), bf.policies.Full(CELLS)
BASES = {
    "line": LINE,
    "full": FULL,
    "add_remove": bf.policies.AddRemove(CELLS),
    "full_or_absent": bf.policies.WithAbsent(FULL),
    "line_or_absent": bf.policies.WithAbsent(LINE),
    "line_or_far": bf.policies.WithAbsent(LINE, 2),
    "line_or_a_part": bf.policies.WithAbsent(LINE, "1.25"),
    "two_steps": bf.policies.Threshold(CELLS, theta=2),
}
MECHANISMS = {"laplace": bf.Laplace, "hierarchy": bf.Hierarchy, "ordered": bf.Ordered}
CASES = [
    (name, kind)
    for name, kind in itertools.product(sorted(BASES), sorted(MECHANISMS))
    # Running totals are for moves along a line.
    if kind != "ordered" or name in ("line", "two_steps")
]


def record_sets(base):
    """Return all records that a person may have: cells, by the keys of records."""
    numbers = (0, 1, 2) if base.has_bottom else (2,)
    return [one for m in numbers for one in itertools.product(range(4), repeat=m)]


def single_steps(base, held):
    """Return the steps between sets that differ by R1 or R2, infinite for others."""
    steps = np.full((len(held), len(held)), np.inf)
    for (at, one), (to, two) in itertools.product(enumerate(held), repeat=2):
        if len(one) == len(two):
            pairs = zip(one, two, strict=True)
            if all(a == b or bool(base.joins(a, b)) for a, b in pairs):
                steps[at, to] = float(one != two)
        elif not one or not two:
            far = base.distance(list(one or two), -1)
            if (base.joins(list(one or two), -1)).all():
                steps[at, to] = far.max()
    return steps


def shortest(steps):
    """Return the steps along the shortest chains of neighbours."""
    known = steps.copy()
    for by in range(len(known)):
        known = np.minimum(known, known[:, by : by + 1] + known[by])
    return known


def released(base, kind="laplace"):
    """Return the mechanism, and the rows of every set, in units of their noise."""
    policy = base.per_person(2)
    mechanism = MECHANISMS[kind](policy, bf.workloads.Identity(CELLS), epsilon=EPSILON)
    data = bf.Histogram(CELLS, [1, 1, 1, 1], at_most=2)
    (measurement,) = mechanism.release(data, rng=1).measurements
    noisy = measurement.scales.measured
    rows = np.array(
        [
            measurement.strategy.rows(np.bincount(one, minlength=4).astype(np.int64))
            for one in (np.array(held, dtype=np.int64) for held in record_sets(base))
        ]
    )
    exact = rows[:, measurement.scales.exact]
    assert (exact == exact[0]).all()
    return mechanism, rows[:, noisy], measurement.scales.widths[noisy]


def losses(rows, widths):
    """Return the largest log ratios of answers between every two sets."""
    return (np.abs(rows[:, None] - rows[None]) / widths).sum(axis=2)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_chains_of_neighbours_cost_what_the_adapter_says(name, kind):
    base = BASES[name]
    mechanism, rows, widths = released(base, kind)
    chains = shortest(single_steps(base, record_sets(base)))
    lost = losses(rows, widths)
    measurement = as_measurement(mechanism)
    for steps in np.unique(chains[np.isfinite(chains)]):
        bound = measurement.map(math.ceil(steps))
        assert lost[chains == steps].max() <= bound + 1e-9
    assert lost[np.isinf(chains)].size == 0


@pytest.mark.parametrize("mine", sorted(BASES))
def test_an_implied_policy_of_persons_is_kept(mine):
    lost = losses(*released(BASES[mine])[1:])
    held = record_sets(BASES[mine])
    implied = 0
    for theirs in BASES.values():
        if not BASES[mine].per_person(2).implies(theirs.per_person()):
            continue
        implied += 1
        steps = single_steps(theirs, held)
        near = np.isfinite(steps)
        assert (lost[near] <= EPSILON * steps[near] + 1e-9).all()
    assert implied >= 1


@pytest.mark.parametrize("name", sorted(BASES))
def test_a_release_about_records_breaks_the_promise_to_persons(name):
    # Neither policy implies the other; this is what a person with two would lose.
    base = BASES[name]
    _, rows, widths = released(base)
    assert not base.implies(base.per_person(2))
    lost = losses(rows, widths / 2)
    steps = single_steps(base, record_sets(base))
    near = np.isfinite(steps)
    assert (lost[near] > EPSILON * steps[near] + 1e-9).any()


def tied_priors(held):
    """Yield priors over sets: even, random, and second records that tell the first."""
    rng = np.random.default_rng(5)
    yield np.full(len(held), 1 / len(held))
    yield rng.dirichlet(np.full(len(held), 0.3))
    for _ in range(6):
        prior = np.full(len(held), 1e-9)
        prior[rng.choice(len(held), 3, replace=False)] = rng.random(3)
        yield prior / prior.sum()
    for one, two in (((1, 0), (0, 3)), ((1, 0), (2, 3))):
        prior = np.full(len(held), 1e-9)
        prior[[held.index(one), held.index(two)]] = 0.5
        yield prior / prior.sum()


def beliefs(base, kind):
    """Yield the prior and the largest posterior belief in the first record's value."""
    held = record_sets(base)
    _, rows, widths = released(base, kind)
    answers = np.array(list(itertools.product(range(-1, 4), repeat=rows.shape[1])))
    apart = (np.abs(answers[:, None] - rows[None]) / widths).sum(axis=2)
    likely = np.exp(-apart)
    for joint in tied_priors(held):
        present = np.array([float(bool(one)) for one in held])
        shares = likely * (joint * present)
        first = np.array([one[0] if one else 0 for one in held])
        mass = np.column_stack([shares[:, first == cell].sum(1) for cell in range(4)])
        known = joint * present / (joint @ present)
        prior = np.array([known[first == cell].sum() for cell in range(4)])
        yield prior, (mass / mass.sum(axis=1, keepdims=True)).max(axis=0)


@pytest.mark.parametrize(
    ("name", "kind"), [one for one in CASES if one[1] != "hierarchy"]
)
def test_no_posterior_about_a_person_exceeds_the_risk(name, kind):
    base = BASES[name]
    policy = base.per_person(2)
    for prior, posterior in beliefs(base, kind):
        bounds = bf.risk(prior, epsilon=EPSILON, policy=policy)
        assert (posterior <= bounds + 1e-9).all()
        for cell in range(4):
            single = bf.risk(min(prior[cell], 1.0), epsilon=EPSILON, policy=policy)
            assert posterior[cell] <= single + 1e-9


def test_distances_of_cells_do_not_bound_beliefs_about_persons():
    exceeded = [
        (posterior > bf.risk(prior, epsilon=EPSILON, policy=LINE) + 1e-6).any()
        for prior, posterior in beliefs(LINE, "ordered")
    ]
    assert any(exceeded)


@pytest.mark.parametrize("name", sorted(BASES))
def test_no_two_sets_of_records_are_farther_apart_than_the_most_steps(name):
    base = BASES[name]
    chains = shortest(single_steps(base, record_sets(base)))
    sets = np.array([bool(one) for one in record_sets(base)])
    longest = chains[np.ix_(sets, sets)].max()
    if name == "full_or_absent":
        # Records that appear beside others are one step here, too.
        longest = 1
    assert most_steps(base.per_person(2)) == math.ceil(longest)


def test_a_part_of_a_step_is_not_rounded_away():
    near = bf.policies.WithAbsent(bf.policies.Line(bf.Domain(9)), "1.25")
    assert most_steps(near) == 3

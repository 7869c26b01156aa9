"""Zero-concentrated privacy by enumeration: Renyi divergences of tiny releases.

D_a of what is published on two neighbouring databases, summed over all outcomes, must
be at most a * rho for every order a. Planted bugs are the traps of docs/proofs/zcdp.md.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from scipy import stats

import blowfish_fast as bf
from blowfish_fast.audit import audit_invariants, audit_noise
from blowfish_fast.audit.confidence import tail_evidence
from blowfish_fast.audit.grey_box import (
    audit_measurements,
    edge_cost,
    observe_measurement,
    price_edges,
)
from blowfish_fast.audit.many_choices.many_draws import exact_law
from blowfish_fast.audit.witness import watch
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Account, Handle, choice_epsilon
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import (
    Bisection,
    DyadicTree,
    KBuckets,
    LeastCost,
)
from blowfish_fast.measure.selectors.selections import KeptFrequencies, Medians
from blowfish_fast.measure.strategies import Cells, Haar, TreeStrategy
from blowfish_fast.mechanisms.example_data import data_for
from blowfish_fast.mechanisms.registry import MECHANISMS
from tests.reference.table_algebra import table_matrix

pytestmark = pytest.mark.audit

ORDERS = (1.01, 1.5, 2.0, 8.0, 32.0)
RHO = Budget(Fraction(1, 5), 2)


def divergence(first, second, order):
    """D_a of two laws over the same outcomes."""
    both = (first > 0) & (second > 0)
    assert (first[~both] < 1e-200).all()
    logs = order * np.log(first[both]) + (1 - order) * np.log(second[both])
    top = logs.max()
    return (top + math.log(np.exp(logs - top).sum())) / (order - 1)


def gaussian_law(variance, shift, reach):
    place = np.arange(-reach, reach + 1, dtype=np.float64)
    logs = -((place - shift) ** 2) / (2 * variance)
    weights = np.exp(logs)
    return weights / np.exp(-(place**2) / (2 * variance)).sum()


def joint_law(variances, shifts):
    """The law of independent rows, as one array over all their values."""
    reach = [int(16 * math.sqrt(v)) + 8 for v in variances]
    laws = [gaussian_law(*row) for row in zip(variances, shifts, reach, strict=True)]
    joint = laws[0]
    for law in laws[1:]:
        joint = np.multiply.outer(joint, law).reshape(-1)
    return joint


def rows_between(strategy, start, end, cells):
    record = np.zeros(cells + 1, dtype=np.int64)
    record[start] += 1
    record[end] -= 1
    return strategy.rows(record[:cells])


@pytest.mark.parametrize("policy", ["full", "add_remove", "line"])
def test_whole_releases_keep_rho_at_every_order(policy):
    """Three cells and a tree with weights of its own: two and more sigmas at once."""
    domain = bf.Domain(3)
    over = {
        "full": bf.policies.Full(domain),
        "add_remove": bf.policies.AddRemove(domain),
        "line": bf.policies.Line(domain),
    }[policy]
    budget = Budget(Fraction(2), 2)
    from blowfish_fast import kernels

    tree = kernels.regular_tree(3, 2)
    weights = np.linspace(0.3, 1.0, tree.nodes)
    for strategy in (Cells.under(over), TreeStrategy(tree, weights), Haar((3,))):
        scales = strategy.scales(over, budget)
        noisy = np.flatnonzero(scales.measured)
        variances = scales.unit / (2.0 * scales.rates[noisy])
        worst = 0.0
        for edges in over.edges():
            for start, end in edges.tolist():
                moved = rows_between(strategy, start, end, 3)
                assert not moved[scales.exact].any()
                # Rows that an edge leaves alone are the same on both sides.
                kept = moved[noisy] != 0
                one = joint_law(variances[kept], 0 * moved[noisy][kept])
                two = joint_law(variances[kept], moved[noisy][kept])
                for order in ORDERS:
                    here = divergence(two, one, order)
                    assert here <= order * float(budget.amount) * (1 + 1e-9)
                    worst = max(worst, here / order)
        assert worst > 0.3 * float(budget.amount)


def test_a_group_of_two_needs_the_square():
    """Two records along one edge move a row by 2: rho / 4 is enough, rho / 2 is not."""
    rho = Fraction(1, 2)
    for given, passes in ((Budget(rho, 2).over(2).amount, True), (rho / 2, False)):
        variance = 1 / (2 * float(given))
        apart = divergence(
            joint_law([variance], [2]), joint_law([variance], [0]), order=2.0
        )
        assert (apart <= 2.0 * float(rho) * (1 + 1e-9)) == passes


def constrained():
    domain = bf.Domain((2, 2))
    known = bf.policies.MarginalConstraints(domain, 0)
    return bf.policies.Full(domain).with_constraints(known)


def test_constraints_are_paid_by_the_square_of_the_group():
    policy = constrained()
    cells = bf.workloads.Identity(policy.domain)
    mechanism = bf.Gaussian(policy, cells, rho="0.1")
    prices = audit_measurements(mechanism, np.arange(4).reshape(2, 2))
    assert all(one.passed for one in prices)
    assert policy.group_size > 1

    def linear(self, group_size):
        return Budget(self.amount / group_size, self.power)

    # Planted bug: the group size in place of its square. Scales and price would
    # agree if both forgot it, so the price of the audit must not.
    with (
        patch.object(Budget, "over", linear),
        pytest.raises(bf.BlowfishError, match="scales are wrong"),
    ):
        audit_measurements(mechanism, np.arange(4).reshape(2, 2))

    def forgetful(self, steps):
        return Budget(self.amount * steps, self.power)

    with (
        patch.object(Budget, "over", linear),
        patch.object(Budget, "at_distance", forgetful),
    ):
        measured = mechanism.release(np.arange(4).reshape(2, 2), rng=1).measurements[0]
    pair = max(
        edge_cost(measured, start, end)
        for edges in policy.unconstrained.edges()
        for start, end in edges.tolist()
    )
    assert pair * policy.group_size**2 > Fraction(1, 10)


SELECTORS = [
    ("dyadic", lambda: DyadicTree().priced(1.0), (4,)),
    ("bisection", lambda: Bisection(levels=2).priced(1.0), (4,)),
    ("k_buckets", lambda: KBuckets(3, largest_count=6), (4,)),
    ("frequencies", lambda: KeptFrequencies(np.array([0.5, 1.0, 2.0])), (4,)),
    ("medians", lambda: Medians((1, 4), 2), (1, 4)),
]


@pytest.mark.parametrize(("name", "make", "shape"), SELECTORS)
@pytest.mark.parametrize("family", [bf.policies.AddRemove, bf.policies.Full])
def test_choices_keep_rho_with_the_range_and_parts_that_they_state(
    name, make, shape, family
):
    policy, selector = family(bf.Domain(shape)), make()
    budget = Budget(Fraction(1), 2)
    epsilon = choice_epsilon(selector, budget, 4)
    assert epsilon >= budget.for_choice(2)
    seen = 0.0
    for counts in ([0, 0, 0, 0], [0, 1, 4, 4], [5, 0, 1, 0], [2, 2, 3, 1]):
        before = np.array(counts)
        law = exact_law(selector, before, policy=policy, epsilon=epsilon)
        for after in neighbours_of(before, policy):
            other = exact_law(selector, after, policy=policy, epsilon=epsilon)
            keys = sorted(set(law) | set(other), key=repr)
            one = np.array([float(law.get(key, 0.0)) for key in keys])
            two = np.array([float(other.get(key, 0.0)) for key in keys])
            for order in ORDERS:
                here = divergence(one, two, order)
                assert here <= order * float(budget.amount) * (1 + 1e-6), (name, order)
                seen = max(seen, here / order)
    assert seen > 0.0


def neighbours_of(counts, policy):
    for cell in range(counts.size):
        if policy.has_bottom:
            more = counts.copy()
            more[cell] += 1
            yield more
            continue
        for other in range(counts.size):
            if other != cell and counts[other] > 0:
                moved = counts.copy()
                moved[other] -= 1
                moved[cell] += 1
                yield moved


def test_the_least_of_noisy_costs_has_no_range_of_one():
    """Planted bug: epsilon^2 / 8 for LeastCost. Two cells, exact laws: 1.07 epsilon."""
    epsilon = 1.0
    assert LeastCost.loss_range == 2
    terms = int(60 / epsilon)
    single, pair = math.exp(-epsilon), math.exp(-epsilon / 2)
    one = (1 - single) * single ** np.arange(terms)
    both = np.convolve(one, one)
    law = np.convolve((1 - pair) * pair ** np.arange(2 * terms), both[::-1])
    middle = both.size - 1

    def chances(threshold):
        at = max(middle + threshold, 0)
        return np.array([law[at:].sum(), law[:at].sum()])

    widest = max(np.ptp(np.log(chances(t) / chances(t + 1))) for t in range(-12, 12))
    assert pytest.approx(widest / epsilon, abs=1e-3) == 1.0715
    # And nothing is above the range of 2 that is charged.
    assert widest <= LeastCost.loss_range * epsilon


def test_ranges_of_single_draws_are_at_most_epsilon():
    epsilon = Fraction(1)
    kept = KeptFrequencies(np.array([0.5, 1.0, 2.0]))
    policy = bf.policies.AddRemove(bf.Domain(4))
    for selector in (DyadicTree().priced(1.0), kept):
        widest = 0.0
        for counts in itertools.product(range(3), repeat=4):
            before = np.array(counts)
            law = exact_law(selector, before, policy=policy, epsilon=epsilon)
            after = before + np.eye(4, dtype=int)[sum(counts) % 4]
            other = exact_law(selector, after, policy=policy, epsilon=epsilon)
            keys = [key for key in law if float(law[key]) > 0]
            loss = [math.log(float(law[key]) / float(other[key])) for key in keys]
            widest = max(widest, max(loss) - min(loss))
        assert widest <= float(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_recipe_keeps_the_rules_of_the_handle_in_rho(name):
    for domain in (bf.Domain(8), bf.Domain((4, 4))):
        try:
            mechanism, data = MECHANISMS[name].example(
                domain, bf.policies.AddRemove(domain), Fraction(1)
            )
        except bf.BlowfishError:
            continue
        in_rho = mechanism.at(RHO)
        assert audit_invariants(in_rho, data) == []
        assert all(one.passed for one in audit_measurements(in_rho, data))
        return
    pytest.fail(f"{name} has no example on these domains")


def test_noise_of_the_wrong_currency_is_refused():
    class Careless(Cells):
        def scales(self, policy, budget):
            return super().scales(policy, Budget.of(budget).amount)

    policy = bf.policies.Full(bf.Domain(4))
    handle = Handle(np.arange(4), policy, Account(RHO), Randomness(1))
    with pytest.raises(bf.BlowfishError, match="noise of the other currency"):
        handle.measure(Careless(4), budget=RHO)


def test_sums_of_discrete_gaussians_are_not_one():
    """Why draws are never added up and called one draw of the summed variance."""
    one = gaussian_law(0.2, 0, 40)
    both = np.convolve(one, one)
    alone = gaussian_law(0.4, 0, 80)
    assert np.abs(both - alone).max() > 1e-2


def test_the_guarantee_says_what_rho_means_and_survives_files(tmp_path):
    policy = bf.policies.Line(bf.Domain(4))
    asked = bf.workloads.Prefixes(policy.domain)
    release = bf.Ordered(policy, asked, epsilon=1, delta="1e-9").release([3, 1, 0, 2])
    words = str(release.guarantee)
    assert words.startswith("With rho = 0.0149731:")
    assert "e^eps" not in words
    assert "with a probability of at most 1e-09" in words
    assert "d steps apart in the policy count as rho d^2" in words
    release.save(tmp_path / "kept")
    again = bf.Release.load(tmp_path / "kept")
    assert again.guarantee == release.guarantee
    assert again.guarantee.rho == Fraction("0.014973057673")
    assert "epsilon" not in again.guarantee.to_dict()
    scales = again.measurements[0].scales
    assert scales.power == 2
    assert np.array_equal(again.intervals(asked), release.intervals(asked))


def gaussian_step(policy, budget):
    """What a histogram with Gaussian noise measures, and its dearest edge."""
    mechanism = bf.Gaussian(
        policy, bf.workloads.Identity(policy.domain), rho=budget.amount
    )
    kept = mechanism.release(np.arange(policy.domain.size), rng=1).measurements[0]
    edge = max(
        np.concatenate(list(policy.edges())).tolist(),
        key=lambda one: edge_cost(kept, *one),
    )
    return kept, tuple(edge)


@pytest.mark.parametrize("family", ["add_remove", "full"])
def test_the_black_box_sees_noise_beyond_what_rho_implies(family):
    policy = {
        "add_remove": bf.policies.AddRemove(bf.Domain(3)),
        "full": bf.policies.Full(bf.Domain(3)),
    }[family]
    kept, edge = gaussian_step(policy, RHO)
    settings = {"budget": RHO, "samples": 100_000}
    right = audit_noise("gaussian", kept, edge, **settings)
    assert right.passed, str(right)
    assert right.evidence.log_ratio > 0.4 * float(right.epsilon)
    assert "delta = 0.01" in str(right)
    # Planted bug: half of sigma, as where a price forgets to square.
    bare = kept.with_scales(kept.scales._replace(rates=4 * kept.scales.rates))
    wrong = audit_noise("gaussian", bare, edge, **settings)
    assert not wrong.passed, str(wrong)


def test_tails_bound_epsilon_from_below_and_never_above_it():
    """Randomised response at delta 0: P = 3/4, Q = 1/4, epsilon ln 3."""
    sides = np.array([1000, 3000]), np.array([3000, 1000])
    more = tuple(30 * side for side in sides)
    found = tail_evidence(sides, more, delta=0.0, confidence=0.999)
    assert 1.0 < found.log_ratio < math.log(3)
    # With delta the same counts prove less: ln((3/4 - 1/2) / (1/4)) = 0.
    assert tail_evidence(sides, more, delta=0.5).log_ratio < 0.05


def test_a_tail_is_cut_where_three_errors_leave_most():
    # One block alone promises 1.05 less its error, two of them 1.02; six errors would
    # choose the second.
    pilots = np.array([1000, 3000, 5900, 100]), np.array([3000, 5000, 1985, 15])
    found = tail_evidence(pilots, pilots, delta=0.0, confidence=0.5)
    assert found.event == "upper tail, 1 blocks"


@pytest.mark.parametrize("variance", [Fraction(3, 10), Fraction(2)])
def test_a_rounded_continuous_gaussian_has_another_law(variance):
    """Planted bug: np.rint of a normal draw has variance v + 1/12, and no proof."""
    reach = np.arange(-8, 9)
    law = gaussian_law(float(variance), 0, 8)
    size = 200_000
    drawn = Randomness(5).gaussian(variance.numerator, variance.denominator, size=size)
    normal = np.random.default_rng(5).normal(0, math.sqrt(variance), size)

    def pvalue(values):
        counts = np.array([np.count_nonzero(values == one) for one in reach])
        often = law * size > 20
        rest = [size - counts[often].sum(), max(size * (1 - law[often].sum()), 1e-9)]
        observed = [*counts[often], rest[0]]
        expected = np.array([*(law[often] * size), rest[1]])
        return stats.chisquare(observed, expected * size / expected.sum()).pvalue

    assert pvalue(drawn) > 1e-4
    assert pvalue(np.rint(normal)) < 1e-9


def test_effective_resistance_does_not_price_discrete_noise():
    """Planted bug: 2/3 of the price on a triangle, as for continuous noise on edges."""
    sigma, reach = 0.5, 6
    span = np.arange(-reach, reach + 1)
    z = np.stack(np.meshgrid(span, span, span, indexing="ij")).reshape(3, -1)
    weights = np.exp(-(z**2).sum(axis=0) / (2 * sigma**2))
    weights /= weights.sum()
    # Edges 0-1, 1-2, 2-0: what two of the three cells publish.
    cells = np.stack([z[0] - z[2], z[1] - z[0]])

    def law(shift):
        table = {}
        for place, weight in zip((cells.T + shift).tolist(), weights, strict=True):
            table[tuple(place)] = table.get(tuple(place), 0.0) + weight
        return table

    here, there = law([0, 0]), law([1, -1])
    both = sorted(here.keys() & there.keys())
    both = [one for one in both if max(map(abs, one)) <= reach - 2]
    one, two = (np.array([side[place] for place in both]) for side in (here, there))
    rho = 1 / (2 * sigma**2)
    worst = max(divergence(two, one, order) / order for order in ORDERS)
    assert worst <= rho * (1 + 1e-9)
    assert worst > (2 / 3) * rho * 1.05


@pytest.mark.parametrize("at_most", [1, 2, 3])
def test_persons_pay_rho_by_the_square_of_their_records(at_most):
    policy = bf.policies.Full(bf.Domain(4)).per_person(at_most)
    mechanism = bf.Gaussian(policy, bf.workloads.Identity(policy.domain), rho="0.2")
    data = data_for(policy, np.arange(4))
    prices = audit_measurements(mechanism, data)
    assert all(one.passed for one in prices)
    assert prices[0].worst > RHO.amount * Fraction(99, 100)
    kept = mechanism.release(data, rng=1).measurements[0]
    worst = max(edge_cost(kept, *edge) for edge in itertools.combinations(range(4), 2))
    assert worst * at_most**2 <= RHO.amount < worst * (at_most + 1) ** 2


@pytest.mark.parametrize("family", [bf.policies.Full, bf.policies.AddRemove])
def test_all_tables_of_a_survey_keep_rho_on_every_edge(family):
    sizes = (2, 3, 2)
    domain = bf.Domain(sizes, names=["a", "b", "c"])
    asked = bf.workloads.Tables(domain, ways=2)
    mechanism = bf.Contingency(family(domain), asked, rho="0.2")
    kept = mechanism._dry_run.measurements[0]
    scales = kept.scales
    assert scales.power == 2
    rows = np.concatenate([table_matrix(sizes, one) for one in kept.strategy.tables])
    worst = Fraction(0)
    for edges in mechanism.policy.edges():
        for one, two in edges.tolist():
            moved = np.abs(rows[:, one] - (rows[:, two] if two >= 0 else 0)).astype(int)
            assert not moved[scales.exact].any()
            cost = int((moved**2 * scales.rates.astype(object)).sum())
            worst = max(worst, Fraction(cost, scales.unit))
    assert RHO.amount * Fraction(9, 10) < worst <= RHO.amount
    assert kept.strategy.cost(mechanism.policy, scales) >= worst


@pytest.mark.parametrize("length", [1, 3, Fraction(5, 2)])
@pytest.mark.parametrize("budget", [{"epsilon": "0.5"}, {"rho": "0.2"}])
def test_presence_some_steps_away_is_audited_at_its_distance(length, budget):
    """A record that appears may cost l epsilon, or l^2 rho, and no more than that."""
    domain = bf.Domain((2, 3), names=["a", "b"])
    policy = bf.policies.WithAbsent(bf.policies.Full(domain), length=length)
    asked = bf.workloads.Tables(domain, ways=1)
    mechanism = bf.Contingency(policy, asked, **budget)
    data = bf.Histogram(domain, np.arange(6).reshape(2, 3))
    (step,) = watch(mechanism, data).measured
    price = price_edges("tables", step.result, step.charged, policy)
    assert price.passed
    assert price.worst > Fraction(9, 10) * price.charged
    pairs = {"pairs": 40, "generator": np.random.default_rng(1)}
    assert observe_measurement(step.result, policy, price.charged, **pairs).passed
    # Planted bug: rates of a presence that lies half a step farther away.
    scales = step.result.scales
    farther = Fraction(Fraction(length) + Fraction(1, 2), length) ** scales.power
    louder = (scales.rates * farther).astype(np.int64)
    wrong = step.result.with_scales(scales._replace(rates=louder))
    assert not price_edges("tables", wrong, step.charged, policy).passed
    assert not observe_measurement(wrong, policy, price.charged, **pairs).passed

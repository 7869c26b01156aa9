"""From accuracy to epsilon: promises are kept, cheapest first, and nothing is read."""

from __future__ import annotations

import math

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.advice import calibration as translation
from blowfish_fast.advice import least_epsilon
from blowfish_fast.errors import EpsilonError, InputError

LINE = bf.Domain(40)
PREFIXES = bf.workloads.Prefixes(LINE)
CELLS = bf.workloads.Identity(LINE)


def misses(mechanism, workload, alpha, releases=150):
    """Return how often the largest error of a release exceeds alpha."""
    data = np.arange(LINE.size) * 3
    truth = workload.answer(data)
    missed = 0
    for seed in range(releases):
        answer = mechanism.release(data, rng=seed).answer(workload)
        missed += np.abs(answer - truth).max() > alpha
    return missed


@pytest.mark.long
@pytest.mark.parametrize("samples", [0, 1000], ids=["bound", "simulation"])
@pytest.mark.parametrize("workload", [PREFIXES, CELLS], ids=["prefixes", "cells"])
@pytest.mark.parametrize("policy", ["line", "threshold", "full", "add_remove"])
def test_a_promise_is_kept_and_costs_little_more_than_needed(policy, workload, samples):
    over = {
        "line": bf.policies.Line(LINE),
        "threshold": bf.policies.Threshold(LINE, theta=5),
        "full": bf.policies.Full(LINE),
        "add_remove": bf.policies.AddRemove(LINE),
    }[policy]
    found = bf.translate(over, workload, alpha=30, beta=0.1, samples=samples)
    missed = misses(found.best.mechanism, workload, 30)
    assert missed <= 15 + 3 * math.sqrt(150 * 0.1 * 0.9)
    # At two thirds of the epsilon the promise of a simulation would be broken.
    if samples:
        less = found.best.mechanism.at_epsilon(found.best.epsilon * 2 / 3)
        assert misses(less, workload, 30) > 15


def test_the_single_draw_needs_the_epsilon_of_its_law():
    one = bf.Domain(2)
    total = bf.workloads.Ranges(one, [0], [1])
    found = bf.translate(bf.policies.Line(one), total, alpha=100, beta=0.05)
    # P(|Z| > 100) = 2 q^101 / (1 + q) <= .05 just at epsilon.
    decay = math.exp(-float(found.epsilon))
    assert 2 * decay**101 / (1 + decay) <= 0.05
    less = math.exp(-float(found.epsilon) * 0.98)
    assert 2 * less**101 / (1 + less) > 0.05


def test_per_query_promises_are_cheaper_than_simultaneous_ones():
    full = bf.policies.Full(LINE)
    each = bf.translate(full, CELLS, alpha=20, beta=0.05, scope="per_query")
    together = bf.translate(full, CELLS, alpha=20, beta=0.05)
    assert each.epsilon < together.epsilon / 2


def test_simulation_never_costs_more_than_the_bound():
    full = bf.policies.Full(LINE)
    bound = bf.translate(full, PREFIXES, alpha=20, beta=0.05)
    drawn = bf.translate(full, PREFIXES, alpha=20, beta=0.05, samples=1500)
    assert drawn.epsilon < bound.epsilon
    assert drawn.best.found_by == "simulation"
    assert (
        drawn.epsilon
        == bf.translate(full, PREFIXES, alpha=20, beta=0.05, samples=1500).epsilon
    ), "the same whoever asks"


def test_two_are_simulated_however_far_apart_their_bounds():
    known = translation.Calibration(bf.policies.Full(LINE), PREFIXES)
    bounds = known.least(20, 0.05, near=1.0)
    assert [one.found_by for one in bounds[:2]] == ["bound", "scaling"]
    drawn = known.least(20, 0.05, samples=1500, near=1.0)
    found_by = [one.found_by for one in drawn if one.budget is not None]
    assert found_by[:3] == ["simulation", "simulation", "scaling"]


def test_costs_fall_with_the_policy():
    costs = [
        bf.translate(policy, PREFIXES, alpha=20, beta=0.05).epsilon
        for policy in (
            bf.policies.Line(LINE),
            bf.policies.Threshold(LINE, theta=4),
            bf.policies.Full(LINE),
        )
    ]
    assert costs == sorted(costs)
    assert costs[0] < costs[1] < costs[2]


def test_public_answers_are_free_and_say_so():
    blocks = bf.policies.Blocks(LINE, np.arange(40) // 10)
    sums = bf.workloads.Ranges(LINE, [0, 10, 0], [10, 30, 40])
    found = bf.translate(blocks, sums, alpha=1, beta=0.01)
    assert found.free
    assert found.epsilon == 0
    assert "exact and free" in str(found)
    with pytest.raises(EpsilonError, match="no mechanism is needed"):
        _ = found.best


def test_mechanisms_that_choose_from_the_data_promise_nothing():
    found = bf.translate(bf.policies.Full(LINE), CELLS, alpha=20, beta=0.05)
    dawa = next(one for one in found if one.name == "dawa")
    assert dawa.epsilon is None
    assert "depends on the data" in dawa.reason
    table = str(found)
    assert "no promise" in table
    assert found.rows[0]["epsilon"] == float(found.epsilon)


def test_constraints_raise_the_price_by_the_group_size():
    free = bf.policies.Full(LINE)
    halves = bf.policies.CountConstraints(LINE, [np.arange(40) < 20])
    known = free.with_constraints(halves)
    plain = bf.translate(free, CELLS, alpha=20, beta=0.05)
    dear = bf.translate(known, CELLS, alpha=20, beta=0.05)
    by_name = {one.name: one.epsilon for one in plain}
    cells = next(one for one in dear if one.name == "cells")
    assert cells.epsilon == pytest.approx(by_name["cells"] * known.group_size, rel=1e-3)


def test_the_rank_covers_the_quantile_with_the_confidence_stated():
    from scipy.stats import binom

    for samples, beta in ((1000, 0.05), (3000, 0.02), (10_000, 0.05)):
        rank = least_epsilon.lowest_safe_rank(samples, beta, 8)
        below = 1 - beta * 0.99
        assert binom.sf(rank - 1, samples, below) <= beta * 0.01 / 8
        assert binom.sf(rank - 2, samples, below) > beta * 0.01 / 8
    assert least_epsilon.lowest_safe_rank(50, 0.01, 8) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"alpha": 0}, "alpha, the largest error, must be a positive number"),
        ({"alpha": math.nan}, "alpha, the largest error, must be a positive number"),
        ({"alpha": "much"}, "alpha, the largest error, must be a positive number"),
        ({"beta": 0}, "beta, the probability .* must be a positive number"),
        ({"beta": 1.5}, "strictly between 0 and 1"),
        ({"beta": None}, "beta, the probability .* must be a positive number"),
        ({"scope": "each"}, 'scope must be "simultaneous" or'),
        ({"samples": -1}, "samples must be at least 0; received -1"),
        ({"samples": 2.5}, "samples must be one whole number"),
    ],
    ids=str,
)
def test_bad_input_gets_the_rule_and_the_value(change, words):
    asked = {"alpha": 10, "beta": 0.05, **change}
    with pytest.raises(InputError, match=words):
        bf.translate(bf.policies.Full(LINE), CELLS, **asked)


def _policies(cells):
    line, side = bf.Domain(cells), round(cells**0.5)
    ring = np.arange(cells)
    return {
        "full": bf.policies.Full(line),
        "add_remove": bf.policies.AddRemove(line),
        "line": bf.policies.Line(line),
        "threshold": bf.policies.Threshold(line, theta=7),
        "blocks": bf.policies.Blocks(line, ring // 8),
        "ring": bf.policies.Graph(line, np.column_stack([ring, np.roll(ring, -1)])),
        "grid": bf.policies.Threshold(bf.Domain((side, side)), theta=1),
        "attribute": bf.policies.Attribute(bf.Domain((side, side))),
    }


FAMILIES = tuple(_policies(16))


def _asked(domain, kind):
    if kind == "cells":
        return bf.workloads.Identity(domain)
    if domain.ndim == 1:
        return bf.workloads.Ranges.random(domain, 40, rng=3)
    return bf.workloads.Rectangles.random(domain, 40, rng=3)


@pytest.mark.long
@pytest.mark.parametrize("currency", ["epsilon", "rho"])
@pytest.mark.parametrize("kind", ["cells", "ranges"])
@pytest.mark.parametrize("cells", [16, 100])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_holds_at_an_epsilon_is_never_refused_there_or_above(
    family, cells, kind, currency
):
    policy = _policies(cells)[family]
    asked = _asked(policy.domain, kind)
    power = 1 if currency == "epsilon" else 2
    known = translation.Calibration(policy, asked, power)
    for root in (1e-5, 0.7, 900.0):
        epsilon = least_epsilon.round_up(root)
        for one in known._calibrated:
            # What the law promises at this epsilon, which it must then find.
            widest = one.law.widest(one.law.scales(epsilon), 0.05 / asked.queries)
            if not 0.0 < widest < math.inf:
                continue
            wanted = least_epsilon.LeastEpsilon(
                widest, 0.05, "simultaneous", asked.queries
            )
            found = wanted.least(one.law, one.start(wanted))
            # At its least epsilon, or one whose half-width is nearly what is wanted.
            there = one.law.widest(one.law.scales(found), 0.05 / asked.queries)
            near = there >= widest * (1 - 2**-10)
            assert near or float(found) <= root * (1 + 2**-9) + 2e-9, one.name


@pytest.mark.parametrize("first_that_holds", [1e-9, 0.003, 0.9, 77.0, 999.5])
@pytest.mark.parametrize("slope", [0.0, 1e-9, 0.01, 1.0])
def test_a_search_without_guidance_still_ends_at_the_least_epsilon(
    first_that_holds, slope
):
    """Half-widths that hardly tell how far away the least epsilon is."""

    def widest(scales, _miss):
        gap = math.log(max(first_that_holds / scales, 1.0))
        return 10.0 * (0.9 if gap == 0.0 else 1.0 + 1e-6 + slope * gap)

    law = least_epsilon.ErrorLaw(float, None, widest, None)
    wanted = least_epsilon.LeastEpsilon(10.0, 0.05, "per_query", 1)
    for start in (1e-9, 0.02, 5000.0):
        found = float(wanted.least(law, start))
        assert first_that_holds <= found <= first_that_holds * (1 + 2**-9) + 2e-9


def test_an_accuracy_that_the_largest_epsilon_fails_is_found_below_it():
    def widest(scales, _miss):
        return 9.5 if 20.0 <= scales <= 60.0 else 10.5

    law = least_epsilon.ErrorLaw(float, None, widest, None)
    wanted = least_epsilon.LeastEpsilon(10.0, 0.05, "per_query", 1)
    found = float(wanted.least(law, 2000.0))
    assert 20.0 <= found <= 20.0 * (1 + 2**-9) + 2e-9


def test_an_accuracy_is_refused_only_where_no_epsilon_holds():
    law = least_epsilon.ErrorLaw(float, None, lambda scales, miss: 11.0, None)
    wanted = least_epsilon.LeastEpsilon(10.0, 0.05, "per_query", 1)
    with pytest.raises(EpsilonError, match="no epsilon up to 1000 promises"):
        wanted.least(law, 0.5)


@pytest.mark.parametrize("family", ["line", "threshold", "ring"])
def test_noise_on_many_edges_is_priced_as_if_they_were_few(family, monkeypatch):
    policy = _policies(144)[family]
    asked = _asked(policy.domain, "ranges")
    few = bf.translate(policy, asked, alpha=60, beta=0.05)
    monkeypatch.setattr(translation, "_LAST", [])
    monkeypatch.setattr(translation, "MOST_COEFFICIENTS", 1)
    many = bf.translate(policy, asked, alpha=60, beta=0.05)
    prices = [
        next(one.epsilon for one in found if one.name == "edges")
        for found in (few, many)
    ]
    assert float(prices[1]) == pytest.approx(float(prices[0]), rel=1e-8)
    monkeypatch.setattr(translation, "_LAST", [])
    monkeypatch.setattr(translation, "MOST_FOLLOWED", 1)
    refused = bf.translate(policy, asked, alpha=60, beta=0.05)
    reason = next(one.reason for one in refused if one.name == "edges")
    # Edges along a line are counted, not followed.
    assert ("most 2^27" in reason) == (family == "ring")


def test_gaussian_noise_of_a_tree_is_priced_by_its_own_tails():
    line = bf.Domain(256)
    asked = bf.workloads.Ranges.random(line, 50, rng=2)
    found = bf.translate(
        bf.policies.Full(line), asked, alpha=100, beta=0.05, currency="rho"
    )
    tree = next(one for one in found if one.name == "hierarchy")
    measured = tree.mechanism._dry_run.measurements[0]
    form = asked.form(measured.buckets)
    widths = measured.strategy.half_widths(form, measured.scales, 0.05 / 50)
    # Tails that are added up may promise a little more than each half-width.
    assert 98 <= widths.max() <= 103


def test_blocks_of_single_cells_are_priced_as_the_running_totals_that_they_are():
    found = bf.translate(bf.policies.Line(LINE), PREFIXES, alpha=50, beta=0.05)
    prices = {one.name: one.epsilon for one in found}
    assert prices["ordered"] == prices["ordered_hierarchical"] == prices["h_theta"]

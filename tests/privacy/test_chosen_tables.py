"""The price of tables that data choose: scores, batches, whole transcripts, bugs."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit.choices import audit_selector
from blowfish_fast.audit.grey_box import RowPrices
from blowfish_fast.audit.invariants import audit_testimony
from blowfish_fast.audit.many_choices.choice_twins import over_cells
from blowfish_fast.audit.many_choices.many_draws import exact_law
from blowfish_fast.audit.neighbours import all_edges, steps_along
from blowfish_fast.audit.plan import QUICK, AuditTask
from blowfish_fast.audit.walk import examine
from blowfish_fast.audit.witness import Replay, watch
from blowfish_fast.data.tables.merged_tables import CountedTables, Grouping, MergedTable
from blowfish_fast.errors import BudgetError
from blowfish_fast.kernels.sampling.exponential_choice import integer_rate
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.handle import Account
from blowfish_fast.measure.selectors.worst_table import (
    UNIT,
    TableChoices,
    WorstTable,
)
from blowfish_fast.measure.strategies.tables.merged_tables import MergedTables
from blowfish_fast.measure.strategies.tables.model_distance import FINE, ModelDistance
from blowfish_fast.mechanisms import chosen_tables, chosen_tables_run
from blowfish_fast.mechanisms.chosen_tables_run import TablesRun
from blowfish_fast.mechanisms.tables.prior_tables import PriorTables
from blowfish_fast.policies import ABSENT

P = bf.policies
SMALL = bf.Domain((2, 3, 2), names=["a", "b", "c"])
PARTS = [SMALL.marginal(name) for name in "abc"]
STILL = P.Graph(PARTS[0], np.zeros((0, 2), dtype=int))
POLICIES = {
    "add_remove": P.AddRemove(SMALL),
    "full": P.Full(SMALL),
    "attribute": P.Attribute(SMALL),
    "blocks": P.Blocks(SMALL, np.arange(12) // 4),
    "threshold": P.Threshold(SMALL, theta=1),
    "graph": P.Graph(SMALL, [[0, 11], [3, 4], [4, 7], [1, 2]]),
    "lines": P.Product(*(P.Line(one) for one in PARTS)),
    "public": P.Product(STILL, P.Full(PARTS[1]), P.Line(PARTS[2])),
    "presence": P.WithAbsent(P.Attribute(SMALL), 2),
    "full_absent": P.WithAbsent(P.Full(SMALL), 1),
}
COUNTED = CountedTables((2, 3, 2), list(combinations(range(3), 2)))
TINY = CountedTables((2, 2), [(0, 1)])
"""So few cells that the audit works out the law on every standard pair in no time."""


def some_choices(generator, weights=(64,), shape=SMALL.shape, most=2):
    """Return tables of up to `most` attributes, at random levels and estimates."""
    choices, places = [], range(len(shape))
    ways = range(1, most + 1)
    for axes in [axes for size in ways for axes in combinations(places, size)]:
        sizes = [shape[axis] for axis in axes]
        table = MergedTable(axes, tuple(map(Grouping.single_cells, sizes)))
        levels = tuple(
            (Grouping.single_cells(size), Grouping(np.arange(size) // 2))
            for size in sizes
        )
        estimate = generator.integers(0, 6 * UNIT, table.shape)
        penalties = generator.integers(0, 3 * UNIT, 2 ** len(axes)).tolist()
        weight = int(generator.choice(weights))
        choices.append(TableChoices(table, levels, estimate, penalties, weight))
    return choices


def sides_of(policy, background):
    """Yield every pair of neighbours over a background, with the edge's length."""
    for edge in all_edges(policy):
        first, second = background.copy(), background.copy()
        for counts, cell in zip((first, second), edge, strict=True):
            if cell != ABSENT:
                counts[cell] += 1
        yield first, second, steps_along(policy, edge)


@pytest.mark.long
@pytest.mark.parametrize("weights", [(64,), (64, 16, 5)])
@pytest.mark.parametrize("name", sorted(POLICIES))
def test_changes_of_all_scores_lie_in_the_stated_interval(name, weights, generator):
    policy, widest = POLICIES[name], Fraction(0)
    for _ in range(2):
        selector = WorstTable(COUNTED, some_choices(generator, weights))
        background = generator.integers(0, 5, 12)
        for first, second, steps in sides_of(policy, background):
            change = selector.costs(COUNTED.of_cells(first))
            change = change - selector.costs(COUNTED.of_cells(second))
            span = Fraction(int(change.max()) - int(change.min()))
            widest = max(widest, span / steps)
            assert np.abs(change).max() <= UNIT
    assert widest <= selector.interval(policy)
    if not policy.has_moves:
        assert selector.interval(policy) == UNIT
    else:
        assert selector.interval(policy) == 2 * UNIT
        assert widest > UNIT or name in ("graph", "public", "attribute", "lines")


@pytest.mark.parametrize("name", ["add_remove", "full", "presence", "blocks"])
def test_the_exact_law_of_a_choice_costs_at_most_epsilon(name, generator):
    policy, epsilon, worst = POLICIES[name], Fraction(1), 0.0
    selector = WorstTable(COUNTED, some_choices(generator, (64, 30))[3:])
    background = generator.integers(0, 5, 12)
    sides = list(sides_of(policy, background))
    for first, second, steps in sides[:: max(1, len(sides) // 8)]:
        laws = [
            exact_law(selector, COUNTED.of_cells(one), policy=policy, epsilon=epsilon)
            for one in (first, second)
        ]
        apart = max(abs(math.log(laws[0][one] / laws[1][one])) for one in laws[0])
        worst = max(worst, apart / float(steps))
    assert 0.3 < worst <= 1


class PricedAsAppearances(WorstTable):
    """A planted bug: moves cost what a record that appears costs."""

    def interval(self, policy):
        return Fraction(UNIT)


class SixtyFourTimes(WorstTable):
    """A planted bug: weights in 1/64 are not divided out again."""

    def _costs_of(self, choice, counts):
        whole = choice._replace(weight=UNIT)
        for cost in super()._costs_of(whole, counts):
            yield cost * choice.weight


class FarFromEither(WorstTable):
    """A planted bug: twice the surplus, as a distance has it, at the surplus's rate."""

    def _costs_of(self, choice, counts):
        below = counts.sum() // 3 * UNIT - int(choice.estimate.sum())
        for cost in super()._costs_of(choice, counts):
            yield 2 * cost + below


class ScaledByTheTruth(WorstTable):
    """A planted bug: estimates are scaled to the true number of records."""

    def _costs_of(self, choice, counts):
        total = int(counts.sum()) // 3
        guess = choice.estimate * UNIT * total // max(int(choice.estimate.sum()), 1)
        return super()._costs_of(choice._replace(estimate=guess), counts)


def largest_loss(kind, policy, generator, weights=(64,), counted=COUNTED, most=2):
    worst = 0.0
    for _ in range(4):
        selector = kind(counted, some_choices(generator, weights, most=most))
        background = generator.integers(0, 4, 12)
        for first, second, steps in sides_of(policy, background):
            logs = [log_law(selector, one, policy) for one in (first, second)]
            worst = max(worst, float(np.abs(logs[0] - logs[1]).max()) / float(steps))
    return worst


def log_law(selector, cells, policy, epsilon=Fraction(1)):
    """Return the logarithm of each candidate's probability, from its definition."""
    number, bits = integer_rate(selector.rate(policy, epsilon))
    costs = selector.costs(selector.counted.of_cells(cells))
    nats = -(costs - costs.min()) * (number * 2.0**-bits)
    return nats - np.log(np.exp(nats).sum())


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "name", "weights"),
    [
        (PricedAsAppearances, "full", (64,)),
        (SixtyFourTimes, "add_remove", (64, 16)),
        (FarFromEither, "full", (64,)),
        (ScaledByTheTruth, "add_remove", (64,)),
    ],
)
def test_planted_bugs_in_the_choice_are_caught_by_its_exact_law(
    kind, name, weights, generator
):
    assert largest_loss(WorstTable, POLICIES[name], generator, weights) <= 1
    assert largest_loss(kind, POLICIES[name], generator, weights) > 1


def test_the_audit_of_choices_passes_the_genuine_one_and_catches_a_bug(generator):
    choices = some_choices(generator, shape=TINY.sizes)
    policy = P.Full(bf.Domain(TINY.sizes))
    terms = {"epsilon": Fraction(1), "samples": 1000, "runs": 0, "steps": 0}
    for kind, fair in ((WorstTable, True), (PricedAsAppearances, False)):
        selector = over_cells(kind(TINY, choices))
        found = list(audit_selector(selector, policy, **terms))
        assert found[0].subject == "worst_table, enumerated"
        assert found[0].passed == fair


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_price_of_merged_tables_covers_every_listed_edge(name, power, generator):
    policy = POLICIES[name]
    tables = [
        MergedTable((), ()),
        MergedTable((1,), (Grouping([0, 1, 1]),)),
        MergedTable((0, 1), (Grouping([0, 1]), Grouping([0, 0, 1]))),
        MergedTable((1, 2), (Grouping([1, 0, 1]), Grouping([0, 0]))),
    ]
    strategy = MergedTables(COUNTED, tables, generator.uniform(0.1, 1, 4).tolist())

    budget = Budget(Fraction(1, 3), power)
    scales = strategy.scales(policy, budget)
    worst = Fraction(0)
    for edge in all_edges(policy):
        ends = []
        for cell in edge:
            counts = np.zeros(12, dtype=np.int64)
            if cell != ABSENT:
                counts[cell] = 1
            ends.append(strategy.tables_of(counts))
        moved = np.abs(ends[0] - ends[1]).astype(object) ** power
        assert not moved[scales.exact].any()
        cost = Fraction(int((moved * scales.rates.astype(object)).sum()), scales.unit)
        worst = max(worst, cost / Fraction(steps_along(policy, edge)) ** power)
    assert worst <= strategy.cost(policy, scales) <= budget.amount


class MovesAsAppearances(ModelDistance):
    """A planted bug: a record that moves changes two cells, and pays for one."""

    def move(self, policy):
        return 2 * FINE


class OneOfTwoRows(ModelDistance):
    """A planted bug: the noise covers the largest distance, and not the mean."""

    def move(self, policy):
        return super().move(policy) // 2


class ScaledModel(ModelDistance):
    """A planted bug: published tables are scaled to the true number of records."""

    def rows(self, counts):
        total = int(counts.sum()) / 3
        guess = self.estimate

        def scaled(axes):
            table = guess(axes)
            return table * total / table.sum()

        return ModelDistance(self.counted, self.tables, scaled).rows(counts)


def certificate_loss(kind, policy, generator):
    """Return the largest log ratio of a certificate's law, for epsilon 1."""
    worst = 0.0
    for _ in range(3):
        cells = generator.uniform(0, 5, SMALL.shape)

        def estimate(axes, cells=cells):
            return cells.sum(axis=tuple({0, 1, 2} - {*axes}))

        statistic = kind(COUNTED, [(0, 1), (0, 2), (1, 2)], estimate)
        rate = float(statistic.scales(policy, Fraction(1)).rates[0])
        rate /= statistic.scales(policy, Fraction(1)).unit
        background = generator.integers(0, 4, 12)
        for first, second, steps in sides_of(policy, background):
            rows = [statistic.rows(COUNTED.of_cells(one)) for one in (first, second)]
            apart = int(np.abs(rows[0] - rows[1]).sum())
            worst = max(worst, rate * apart / float(steps))
    return worst


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_certificates_cost_at_most_epsilon_on_every_edge(name, generator):
    assert certificate_loss(ModelDistance, POLICIES[name], generator) <= 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (MovesAsAppearances, "full"),
        (OneOfTwoRows, "add_remove"),
        (ScaledModel, "add_remove"),
    ],
)
def test_planted_bugs_in_certificates_are_caught(kind, name, generator):
    assert certificate_loss(kind, POLICIES[name], generator) > 1


@pytest.mark.long
def test_transcripts_with_a_certificate_cost_no_more_than_was_granted():
    policy = POLICIES["add_remove"]
    testimony, told = watched(policy, 1, certify="0.3")
    assert testimony.measured[-1].result.strategy.kind == "model_distance"
    assert audit_testimony(testimony) == []
    assert max(transcript_losses(told, policy)) <= 4


@pytest.mark.long
@pytest.mark.parametrize("name", ["add_remove", "attribute"])
def test_transcripts_with_demanded_tables_cost_no_more_than_was_granted(name):
    policy = POLICIES[name]
    for seed in range(2):
        testimony, told = watched(policy, seed, always=[("a", "c")], rounds=2)
        tables = [step.result.strategy.tables for step in testimony.measured]
        assert [table.axes for table in tables[-3]] == [(0, 2)]
        assert audit_testimony(testimony) == []
        assert 0.5 < max(transcript_losses(told, policy)) <= 4


class EachAtTheWholePrice(TablesRun):
    """A planted bug: every demanded table has the noise of one that is alone."""

    paid_once = "always"

    def _measure(self, step, tables, shares, budget, running=()):
        if step != self.paid_once:
            return super()._measure(step, tables, shares, budget, running)
        alone = [
            super(EachAtTheWholePrice, self)._measure(step, [table], [1.0], budget)
            for table in tables
        ]
        return [rows for (rows,) in alone]


def test_demanded_tables_that_are_paid_once_for_all_are_refused(monkeypatch):
    # The account takes every step: whoever measures more than was planned is stopped.
    monkeypatch.setattr(chosen_tables, "TablesRun", EachAtTheWholePrice)
    with pytest.raises(BudgetError):
        watched(POLICIES["add_remove"], 1, always=[("a", "b"), ("a", "c")], rounds=0)


def test_tables_with_presence_have_the_interval_of_moves():
    selector = WorstTable(COUNTED, some_choices(np.random.default_rng(1)))
    for presence in (False, True, 4):
        policy = P.TablePolicy(SMALL, {}, presence=presence)
        assert selector.interval(policy) == 128
    assert selector.interval(P.AddRemove(SMALL)) == 64


def test_nothing_is_exact_where_presence_is_secret():
    tables = [MergedTable((0,), (Grouping.single_cells(2),)), MergedTable((), ())]
    strategy = MergedTables(COUNTED, tables, [1.0, 1.0])
    public = P.TablePolicy(SMALL, {"a": STILL})
    assert strategy.exact_rows(public).all()
    secret = P.TablePolicy(SMALL, {"a": STILL}, presence=3)
    assert not strategy.exact_rows(secret).any()


def transcript_losses(testimony, policy):
    """Yield the exact log ratio of one whole transcript for some neighbours.

    Steps are known with everything that was asked of them, so the ratio of a measured
    row follows from its noise, and that of a choice from its exact law.
    """
    cells = np.asarray(testimony.cells)
    edges = all_edges(policy)
    for edge in edges[:: max(1, len(edges) // 16)]:
        other = cells.copy()
        if edge[0] != ABSENT:
            if not other[edge[0]]:
                continue
            other[edge[0]] -= 1
        if edge[1] != ABSENT:
            other[edge[1]] += 1
        loss = 0.0
        for step in testimony.steps:
            if step.kind == "measure":
                loss += measured_loss(step.result, cells, other)
            else:
                loss += chosen_loss(step, cells, other)
        yield abs(loss) / float(steps_along(policy, edge))


def measured_loss(measurement, first, second):
    if isinstance(measurement.strategy, ModelDistance):
        return distance_loss(measurement, first, second)
    prices, scales = RowPrices(measurement), measurement.scales
    one, two = map(prices.rows_of, (first, second))
    if (one != two)[~scales.measured & scales.exact].any():
        return math.inf
    away = np.abs(measurement.noisy - two) - np.abs(measurement.noisy - one)
    shown = scales.measured
    return float((away[shown] * scales.rates[shown]).sum()) / scales.unit


def distance_loss(measurement, first, second):
    statistic, scales = measurement.strategy, measurement.scales
    one, two = (
        statistic.rows(statistic.counted.of_cells(cells)) for cells in (first, second)
    )
    away = np.abs(measurement.noisy - two) - np.abs(measurement.noisy - one)
    return float((away * scales.rates).sum()) / scales.unit


def chosen_loss(step, first, second):
    """Return the log ratio of one choice: weights are exp(-rate * cost) exactly."""
    terms = step.policy, step.calibrated
    laws = [log_law(step.asked, cells, *terms) for cells in (first, second)]
    return float(laws[0][step.result] - laws[1][step.result])


class Told:
    """A testimony with the counts of all cells that it is about."""

    def __init__(self, testimony, cells):
        self.steps, self.cells = testimony.steps, cells


def watched(policy, seed, epsilon=4, ways=2, **more):
    asked = bf.workloads.Tables(SMALL, ways=ways)
    mechanism = bf.ChosenTables(policy, asked, choose="data", epsilon=epsilon, **more)
    counts = np.random.default_rng(seed).integers(0, 90, SMALL.shape)
    if ways == 2:
        counts[0, 0] += 300
    else:
        # Every two attributes are independent of each other, and all three are not.
        counts[0, :2, 0] += 400
        counts[1, :2, 1] += 400
        counts[0, 2, 1] += 800
        counts[1, 2, 0] += 800
    testimony = watch(mechanism, bf.Histogram(SMALL, counts), seed)
    return testimony, Told(testimony, counts.reshape(-1))


@pytest.mark.long
@pytest.mark.parametrize("name", ["add_remove", "attribute", "presence", "public"])
def test_whole_transcripts_cost_at_most_what_was_granted(name):
    policy, worst = POLICIES[name], 0.0
    for seed in range(1):
        testimony, told = watched(policy, seed)
        assert testimony.selected
        worst = max(worst, *transcript_losses(told, policy))
        # The fit again, to the last bit, from what the handle gave alone.
        assert audit_testimony(testimony) == []
    assert 1.0 < worst <= 4


@pytest.mark.long
def test_half_the_noise_is_seen_in_whole_transcripts(monkeypatch):
    genuine = MergedTables.worst_edge

    def one_cell(self, weights, policy, power=1):
        return -(-genuine(self, weights, policy, power) // 2)

    monkeypatch.setattr(MergedTables, "worst_edge", one_cell)
    policy = POLICIES["full"]
    losses = [
        max(transcript_losses(watched(policy, seed)[1], policy)) for seed in range(4)
    ]
    assert max(losses) > 4


def test_persons_with_two_records_are_paid_for_twice():
    policy = P.AddRemove(SMALL).per_person(2)
    asked = bf.workloads.Tables(SMALL, ways=2)
    mechanism = bf.ChosenTables(policy, asked, choose="data", epsilon=2)
    counts = np.random.default_rng(1).integers(0, 90, SMALL.shape)
    data = bf.Histogram(SMALL, counts, at_most=2)
    testimony = watch(mechanism, data, 1)
    assert testimony.selected
    for step in testimony.selected:
        assert step.calibrated == step.charged.amount / 2
    for step in testimony.measured:
        cost = step.result.strategy.cost(policy.unconstrained, step.result.scales)
        assert 2 * cost <= step.charged.amount


class Puppet(Replay):
    """A handle with counts of its own that hands out what was published before."""

    def select(self, selector, *, budget):
        self.selectors.append(selector)
        return super().select(selector, budget=budget)


def selectors_seen(testimony, counts):
    """Return the choices that a recipe offers on these counts, all else published."""
    mechanism = testimony.mechanism
    own = mechanism._counts(bf.Histogram(SMALL, counts))
    handle = mechanism._handle(own, Account(mechanism.budget), None)
    selectors, noted = [], iter(testimony.steps)
    mechanism._run(Puppet.over(handle, noted=noted, selectors=selectors))
    assert selectors
    return [
        (one.table.axes, one.estimate.tolist(), one.penalties, one.weight)
        for selector in selectors
        for one in selector.choices
    ]


@pytest.mark.long
def test_equal_published_tables_lead_to_equal_choices_whatever_the_truth():
    testimony, told = watched(POLICIES["add_remove"], 1)
    truth = told.cells.reshape(SMALL.shape)
    moved = truth[::-1].copy()
    assert selectors_seen(testimony, truth) == selectors_seen(testimony, moved)


@pytest.mark.long
def test_an_estimate_from_true_single_tables_is_caught(monkeypatch):
    # No enumeration of losses on few cells sees this bug: it needs two databases.
    genuine = TablesRun._selector

    def from_the_truth(self, pairs, price):
        selector = genuine(self, pairs, price)
        counted, counts = selector.counted, self.private._counts
        choices = []
        for one in selector.choices:
            singles = [
                grouping.sum(counted.table(counts, (axis,)), 0)
                for axis, grouping in zip(*one.table, strict=True)
            ]
            product = np.multiply.outer(*singles) / max(singles[0].sum(), 1)
            estimate = np.rint(UNIT * product).astype(np.int64)
            choices.append(one._replace(estimate=estimate))
        return WorstTable(counted, choices)

    testimony, told = watched(POLICIES["add_remove"], 1)
    truth = told.cells.reshape(SMALL.shape)
    moved = truth.copy()
    moved[0, 0, 0] += 40
    assert selectors_seen(testimony, truth) == selectors_seen(testimony, moved)
    monkeypatch.setattr(chosen_tables_run.TablesRun, "_selector", from_the_truth)
    assert selectors_seen(testimony, truth) != selectors_seen(testimony, moved)


def forbidden():
    """Return a mask of the first two attributes with one impossible cell."""
    mask = np.zeros(SMALL.shape[:2], dtype=bool)
    mask[1, 1] = True
    return {(0, 1): mask}


@pytest.mark.long
def test_impossible_cells_leave_the_price_and_the_choices_as_they_are():
    policy = POLICIES["add_remove"]
    testimony, told = watched(policy, 1, impossible=forbidden())
    assert testimony.selected
    assert max(transcript_losses(told, policy)) <= 4
    assert audit_testimony(testimony) == []
    truth = told.cells.reshape(SMALL.shape)
    # Records of the true table move into and out of the impossible cell.
    moved = truth[::-1].copy()
    assert selectors_seen(testimony, truth) == selectors_seen(testimony, moved)


@pytest.mark.long
def test_impossible_cells_that_the_data_name_are_caught(monkeypatch):
    def where_nobody_is(self):
        counted, counts = self.plan.counted, self.private._counts
        groupings = [self.attributes[axis].grouping for axis in (0, 1)]
        table = counted.table(counts, (0, 1))
        for at, grouping in enumerate(groupings):
            table = grouping.sum(table, at)
        return {(0, 1): table < 60}

    testimony, told = watched(POLICIES["add_remove"], 1, impossible=forbidden())
    truth = told.cells.reshape(SMALL.shape)
    emptied = truth.copy()
    emptied[0, 1] = 0
    assert selectors_seen(testimony, truth) == selectors_seen(testimony, emptied)
    monkeypatch.setattr(TablesRun, "_impossible_cells", where_nobody_is)
    assert selectors_seen(testimony, truth) != selectors_seen(testimony, emptied)


def other_survey():
    """Return tables of pairs in which the first two attributes depend strongly."""
    return {(0, 1): [[90, 10, 10], [5, 60, 80]], (1, 2): [[40, 9], [9, 40], [20, 20]]}


@pytest.mark.long
def test_a_prior_leaves_the_price_and_the_choices_as_they_are():
    policy = POLICIES["add_remove"]
    testimony, told = watched(policy, 1, prior=other_survey())
    assert testimony.selected
    assert max(transcript_losses(told, policy)) <= 4
    assert audit_testimony(testimony) == []
    truth = told.cells.reshape(SMALL.shape)
    moved = truth[::-1].copy()
    assert selectors_seen(testimony, truth) == selectors_seen(testimony, moved)
    plain, _ = watched(policy, 1)
    assert selectors_seen(testimony, truth) != selectors_seen(plain, truth)


@pytest.mark.long
def test_a_prior_that_is_counted_from_the_data_is_caught(monkeypatch):
    def from_the_truth(self):
        counted, counts = self.plan.counted, self.private._counts
        pairs = {pair: counted.table(counts, pair) for pair in [(0, 1), (1, 2)]}
        groupings = [attribute.grouping for attribute in self.attributes]
        return PriorTables(SMALL, [], pairs).log_ratios(groupings, 1000)

    testimony, told = watched(POLICIES["add_remove"], 1, prior=other_survey())
    truth = told.cells.reshape(SMALL.shape)
    moved = truth[::-1].copy()
    monkeypatch.setattr(TablesRun, "_prior_ratios", from_the_truth)
    assert selectors_seen(testimony, truth) != selectors_seen(testimony, moved)


@pytest.mark.audit
@pytest.mark.parametrize("family", ["full"])
def test_the_walk_of_the_audit_passes(family):
    few = {"batch": 4000, "runs": 10, "releases": 10, "noise": 2000, "pairs": 16}
    plan = QUICK._replace(sampled=((2, 2),), **few)
    task = AuditTask("mechanism", "chosen_tables", (2, 2), family)
    found = examine(task, plan, bf.Ledger)
    assert {"prices", "invariants", "sensitivity", "choice", "budget"} <= {
        one.check for one in found
    }
    assert [one.note for one in found if not one.passed] == []

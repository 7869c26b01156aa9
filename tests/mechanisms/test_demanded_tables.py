"""Tables that are always measured, stated rounds and the size of the model.

The rule that shares the budget out is ``mechanisms.tables.demanded_tables``.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.fingerprint import question_digest
from blowfish_fast.errors import InputError, SizeError, WorkloadError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.mechanisms.tables.demanded_tables import planned_rounds
from blowfish_fast.mechanisms.tables.table_rules import TableRules
from blowfish_fast.release.chosen_release import read_tables
from blowfish_fast.workloads import Identity, Tables

P = bf.policies
SIZES = (9, 4, 5, 3)
SURVEY = bf.WideDomain.product(
    *(bf.Domain(size, names=[name]) for name, size in zip("abcd", SIZES, strict=True))
)
STILL = P.Graph(SURVEY.marginal(["c"]), np.zeros((0, 2), dtype=int))
POLICIES = {
    "add_remove": P.AddRemove(SURVEY),
    "full": P.TablePolicy(SURVEY),
    "attribute": P.TablePolicy(SURVEY, {}),
    "presence": P.TablePolicy(SURVEY, {}, presence=3),
}


def people(records=4000):
    source = np.random.default_rng(6)
    cells = np.array([source.integers(0, size, records) for size in SIZES])
    cells[1] = np.minimum(cells[0] // 2, 3)
    return cells


def released(policy, records=4000, seed=1, ways=2, **terms):
    mechanism = bf.ChosenTables(
        policy,
        Tables(SURVEY, ways=ways),
        choose="data",
        **({"epsilon": 1} if "rho" not in terms else {}),
        **terms,
    )
    blocks = [people(records).astype(np.int32)]
    data = bf.TableCounts.from_cells(SURVEY, mechanism.measured_tables, blocks)
    return mechanism.release(data, rng=seed)


def true_table(axes, records=4000):
    counts = np.zeros([SIZES[axis] for axis in axes])
    np.add.at(counts, tuple(people(records)[axis] for axis in axes), 1)
    return counts


@pytest.mark.long
@pytest.mark.parametrize("terms", [{}, {"rho": "0.02"}])
@pytest.mark.parametrize("name", sorted(POLICIES))
def test_demanded_tables_are_measured_cell_by_cell_with_intervals(name, terms):
    # Nobody would choose these: their attributes are independent.
    out = released(POLICIES[name], always=[("d", "c"), ("a", "d")], **terms)
    rows = zip(out.measured["table"], out.measured["step"], strict=True)
    demanded = [table for table, step in rows if step == "always"]
    assert demanded == ["c x d", "a x d"]
    for axes, names in (((2, 3), "cd"), ((0, 3), "ad")):
        table = out.table(*names)
        assert table.details["cells"] == [SIZES[axis] for axis in axes]
        bounds = table.intervals(Identity(table.domain), 0.99, of="truth")
        true = true_table(axes).reshape(-1)
        assert ((bounds[:, 0] <= true) & (true <= bounds[:, 1])).mean() > 0.9
    assert "chosen" in out.measured["step"].tolist()
    again = read_tables(out.to_bytes())
    assert again.measured["step"].tolist() == out.measured["step"].tolist()


def test_the_model_follows_a_demanded_table():
    plain = released(POLICIES["add_remove"], rounds=0)
    demanded = released(POLICIES["add_remove"], rounds=0, always=[("a", "b")])
    true = true_table((0, 1))
    off = [
        np.abs(out.fitted("a", "b").estimate - true).sum() / 8000
        for out in (plain, demanded)
    ]
    assert off[0] > 0.4
    assert off[1] < 0.1
    assert plain.measured["step"].tolist() == ["single"] * 4
    assert demanded.measured["step"].tolist() == ["single"] * 4 + ["always"]


def test_few_records_leave_room_for_demanded_tables_alone():
    assert set(released(POLICIES["full"], 50).measured["step"]) == {"single"}
    out = released(POLICIES["full"], 50, always=[("a", "b")])
    assert set(out.measured["step"]) == {"single", "always"}
    assert out.guarantee.budget.amount == 1


def test_larger_and_exact_tables_may_be_demanded():
    out = released(POLICIES["add_remove"], ways=3, always=[("a", "b", "d")])
    assert out.table("a", "b", "d").details["cells"] == [9, 4, 3]
    public = P.TablePolicy(
        SURVEY,
        {"c": STILL, "d": P.Graph(SURVEY.marginal(["d"]), np.zeros((0, 2), dtype=int))},
    )
    exact = released(public, always=[("c", "d"), ("a", "c")])
    assert (exact.table("c", "d").estimate == true_table((2, 3))).all()
    rows = zip(exact.measured["table"], exact.measured["step"], strict=True)
    assert [table for table, step in rows if step == "always"] == ["a x c"]


@pytest.mark.parametrize(("name", "step"), [("full", "chosen"), ("attribute", None)])
def test_rounds_say_how_often_a_table_is_chosen(name, step):
    out = released(POLICIES[name], rounds=2)
    steps = out.details["steps"]
    assert steps.count("chosen") == 2
    assert (step is None) == ("screen" in steps)
    with pytest.raises(InputError, match="rounds must lie"):
        released(POLICIES[name], rounds=1001)


def test_cells_bound_the_model_and_what_does_not_fit_is_refused():
    cells = [9 + 4 + 5 + 3, 9 * 4 + 5 + 3]
    small = released(POLICIES["add_remove"], cells=cells[0])
    assert set(small.measured["step"]) == {"single"}
    larger = released(POLICIES["add_remove"], cells=cells[1])
    assert "a x b" in larger.measured["table"].tolist()
    assert larger.model.tree.cells <= cells[1]
    terms = {"epsilon": 1, "choose": "data"}
    asked, policy = Tables(SURVEY, ways=2), POLICIES["add_remove"]
    with pytest.raises(SizeError, match="always measured and pairs"):
        bf.ChosenTables(policy, asked, cells=cells[0], always=[("a", "b")], **terms)
    with pytest.raises(InputError, match="cells must lie"):
        bf.ChosenTables(policy, asked, cells=2**21, **terms)
    usual = bf.ChosenTables(policy, asked, **terms).memory_needed()
    wide = bf.ChosenTables(policy, asked, cells=2**20, **terms).memory_needed()
    assert wide > usual + 2**28


def test_a_prior_leaves_room_for_demanded_tables():
    prior = {("a", "c"): np.outer(np.arange(1, 10), [9, 1, 1, 1, 1])}
    prior["a", "c"][5:] = prior["a", "c"][5:, ::-1]
    cells = 9 * 4 + 5 + 3
    out = released(
        POLICIES["add_remove"], prior=prior, always=[("a", "b")], cells=8 * cells
    )
    assert {(0, 1), (0, 2)} <= {*out.model.factors}
    tight = released(
        POLICIES["add_remove"], prior=prior, always=[("a", "b")], cells=cells
    )
    assert tight.model.tree.cells <= cells
    assert "a x b" in tight.measured["table"].tolist()


@pytest.mark.parametrize(
    ("always", "error", "text"),
    [
        ([("a",)], InputError, "measured first anyway"),
        ([("a", "b", "c")], InputError, "Ask for this table in the workload"),
        ([("a", "z")], bf.errors.BlowfishError, "z"),
        ("ab", WorkloadError, "a list of sets"),
        ([("a", "b"), ("b", "a")], WorkloadError, "once"),
    ],
)
def test_tables_that_cannot_be_demanded_are_refused(always, error, text):
    with pytest.raises(error, match=text):
        released(POLICIES["full"], always=always)


@pytest.mark.parametrize(
    "stated", [{"always": [("a", "b")]}, {"rounds": 3}, {"cells": 2**18}]
)
def test_plans_take_none_of_them(stated):
    terms = {"choose": "plan", "epsilon": 1}
    with pytest.raises(InputError, match="about tables that the data choose"):
        bf.ChosenTables(POLICIES["full"], Tables(SURVEY, ways=2), **terms, **stated)


def test_questions_differ_by_what_was_stated_and_old_ones_stay_as_they_were():
    def of(**more):
        return question_digest(
            bf.ChosenTables(
                POLICIES["full"],
                Tables(SURVEY, ways=2),
                choose="data",
                epsilon=1,
                **more,
            )
        )

    plain = of()
    assert of(always=None, rounds=None, cells=None) == plain == of(always=[])
    others = [of(always=[("a", "b")]), of(rounds=3), of(cells=2**18)]
    assert len({plain, *others}) == 4


def test_demanded_tables_cost_the_rounds_that_an_edge_pays_for():
    pairs = [(0, 1), (0, 2), (1, 2)]
    sizes, budget = (9, 9, 9), Budget.of(1)

    def plan(policy, always, stated=None, records=10**5):
        kinds = bf.measure.strategies.tables.table_strategy.edge_kinds(policy)
        rules = TableRules(sizes, pairs, [0, 1, 2], kinds)
        return planned_rounds(rules, records, budget, always, stated)

    domain = bf.Domain(sizes, names=["a", "b", "c"])
    together, apart = P.AddRemove(domain), P.TablePolicy(domain, {})
    assert plan(together, pairs).demanded == 3
    assert plan(apart, pairs).demanded == 2
    assert plan(apart, pairs[:1]).demanded == 1
    usual = plan(together, ())
    assert usual.demanded_share == 0
    assert plan(together, pairs).rounds == usual.rounds - 3
    assert plan(together, pairs, 6).demanded_share == Fraction(1, 3)
    assert plan(together, (), 0) == (1, 0, 0)
    assert plan(together, pairs[:1], records=5).rounds == 0
    assert plan(together, pairs[:1], records=5).singles < 1

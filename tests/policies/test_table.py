"""Policies of whole tables: seen through attributes, never listed."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.domain import WideDomain
from blowfish_fast.errors import PolicyError
from blowfish_fast.measure.strategies.tables.table_strategy import (
    edge_kinds,
    heaviest_edge,
)
from blowfish_fast.policies import TablePolicy, from_dict

AGES = bf.Domain(6, names=["age"])
PAY = bf.Domain.from_edges(range(0, 9), name="pay")
SEX = bf.Domain.from_levels(["f", "m"], name="sex")
SMALL = bf.Domain.product(AGES, PAY, SEX)
AGE_POLICY = bf.policies.Threshold(AGES, theta=2)
PAY_POLICY = bf.policies.Line(PAY)


def edges_of(policy):
    found = set()
    for chunk in policy.edges():
        found |= {tuple(sorted(pair)) for pair in chunk.tolist()}
    return found


def seen_by_definition(policy, axes):
    """Project every edge of the whole product onto some axes."""
    shape = np.array(SMALL.shape)
    kept = shape[list(axes)]
    found = set()
    for chunk in policy.edges():
        ends = [np.array(np.unravel_index(chunk[:, side], shape)) for side in (0, 1)]
        cells = [np.ravel_multi_index(end[list(axes)], kept) for end in ends]
        for one, other in zip(*cells, strict=True):
            if one != other:
                found.add(tuple(sorted((int(one), int(other)))))
    return found


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (1, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("stated", ["whole", "some", "all"])
def test_through_equals_the_definition(stated, axes):
    by_attribute = {
        "whole": None,
        "some": {"age": AGE_POLICY},
        "all": {
            "age": AGE_POLICY,
            "pay": PAY_POLICY,
            "sex": bf.policies.Full(SEX),
        },
    }[stated]
    table = TablePolicy(SMALL, by_attribute)
    whole = (
        bf.policies.Full(SMALL)
        if by_attribute is None
        else bf.policies.Product(
            *(
                by_attribute.get(name, bf.policies.Full(one))
                for name, one in (("age", AGES), ("pay", PAY), ("sex", SEX))
            ),
            domain=SMALL,
        )
    )
    names = [SMALL.names[axis] for axis in axes]
    seen = table.through(names)
    assert seen.domain == SMALL.marginal(names)
    assert edges_of(seen) == seen_by_definition(whole, axes)


def test_a_ledger_of_a_table_accepts_what_is_seen_through_it(tmp_path):
    large = [bf.Domain(1000, names=[f"a{at}"]) for at in range(6)]
    table = TablePolicy(WideDomain.product(*large))
    with bf.Ledger(tmp_path / "ledger", epsilon=1, policy=table) as ledger:
        seen = table.through(["a3"])
        cells = bf.workloads.Identity(seen.domain)
        ledger.release(bf.Laplace(seen, cells, epsilon=0.5), np.zeros(1000, int))
        bins = seen.project(np.arange(1000) // 10)
        coarse = bf.workloads.Identity(bins.domain)
        ledger.release(bf.Laplace(bins, coarse, epsilon=0.25), np.zeros(100, int))
        stranger = bf.policies.Full(bf.Domain(999, names=["a3"]))
        with pytest.raises(PolicyError, match="neither the same nor unions"):
            ledger.release(
                bf.Laplace(
                    stranger, bf.workloads.Identity(stranger.domain), epsilon=0.1
                ),
                np.zeros(1000, int),
            )
    with bf.Ledger(tmp_path / "ledger") as again:
        assert again.policy == table


def test_another_table_is_not_implied():
    weak = TablePolicy(SMALL, {"age": AGE_POLICY})
    strong = TablePolicy(SMALL)
    assert strong.implies(weak)
    assert not weak.implies(strong)
    assert weak.implies(TablePolicy(SMALL, {"age": bf.policies.Line(AGES)}))
    assert not TablePolicy(SMALL, {"age": bf.policies.Line(AGES)}).implies(weak)


@pytest.mark.parametrize("by_attribute", [None, {"age": AGE_POLICY}], ids=["-", "age"])
def test_survives_json(by_attribute):
    table = TablePolicy(SMALL, by_attribute)
    again = from_dict(json.loads(json.dumps(table.to_dict())))
    assert again == table
    assert hash(again) == hash(table)
    assert "cannot be told apart" in again.describe() or by_attribute is None


@pytest.mark.parametrize(
    "use",
    [
        lambda one: one.components(),
        lambda one: next(iter([one.edges()])),
        lambda one: one.edge_count,
        lambda one: one.project(np.zeros(one.domain.size, int)),
    ],
    ids=["components", "edges", "edge_count", "project"],
)
def test_nothing_lists_the_cells(use):
    with pytest.raises(PolicyError, match="through"):
        use(TablePolicy(SMALL))


def test_policies_must_fit_their_attributes():
    with pytest.raises(PolicyError, match="over that attribute alone"):
        TablePolicy(SMALL, {"age": PAY_POLICY})
    with pytest.raises(PolicyError, match="all have names"):
        TablePolicy(bf.Domain(4))


def test_the_policies_of_attributes_do_not_change_in_place():
    table = TablePolicy(SMALL, {"age": AGE_POLICY})
    before = table.through(["age"])
    table.by_attribute.clear()
    assert table == TablePolicy(SMALL, {"age": AGE_POLICY})
    assert table.through(["age"]) == before


TABLE = TablePolicy(SMALL, {"age": AGE_POLICY, "pay": PAY_POLICY})
COARSE_PAY = bf.Domain.from_edges([0, 4, 8], name="pay")


@pytest.mark.parametrize(
    ("whole", "stated", "covered"),
    [
        (bf.policies.Full(SMALL), bf.policies.Full(AGES), True),
        (bf.policies.Full(SMALL), bf.policies.Line(AGES), False),
        (bf.policies.AddRemove(SMALL), bf.policies.AddRemove(AGES), True),
        (bf.policies.AddRemove(SMALL), bf.policies.Full(AGES), False),
        (bf.policies.Full(SMALL), bf.policies.AddRemove(AGES), False),
        (bf.policies.Attribute(SMALL), bf.policies.Full(SEX), True),
        (TABLE, bf.policies.Threshold(AGES, theta=2), True),
        (TABLE, bf.policies.Threshold(AGES, theta=3), True),
        (TABLE, bf.policies.Threshold(AGES, theta=1), False),
        (TABLE, bf.policies.Full(bf.Domain.product(SEX, AGES)), True),
        (TABLE, bf.policies.Attribute(bf.Domain.product(SEX, PAY)), True),
        (TABLE, bf.policies.Line(COARSE_PAY), True),
        (TABLE, bf.policies.Full(bf.Domain.from_edges([0, 9], name="pay")), False),
        (TABLE, bf.policies.Full(bf.Domain(6, names=["years"])), False),
        (TABLE, bf.policies.Full(bf.Domain(6)), False),
        (TABLE, bf.policies.Full(bf.Domain(7, names=["age"])), False),
        (TablePolicy(SMALL), TablePolicy(bf.Domain.product(AGES, SEX)), True),
        (TablePolicy(SMALL), TABLE, False),
        (TABLE, TablePolicy(bf.Domain.product(AGES), {"age": AGE_POLICY}), True),
        (
            TablePolicy(SMALL),
            TablePolicy(bf.Domain.product(AGES, SEX), {"age": AGE_POLICY}),
            False,
        ),
    ],
    ids=str,
)
def test_a_policy_of_some_columns_implies_what_is_seen_of_the_table(
    whole, stated, covered
):
    assert stated.implies(whole) is covered


@pytest.mark.parametrize("names", [["age"], ["sex", "pay"], ["pay", "age"]], ids=str)
def test_columns_in_any_order_are_priced_by_definition(names):
    """The rule says yes exactly where the edges of the view are among those stated."""
    domain = bf.Domain.product(
        *({"age": AGES, "pay": PAY, "sex": SEX}[name] for name in names)
    )
    whole = bf.policies.Product(AGE_POLICY, PAY_POLICY, bf.policies.Full(SEX))
    seen = seen_by_definition(whole, [SMALL.axis(name) for name in names])
    for stated in (
        bf.policies.Full(domain),
        bf.policies.Attribute(domain),
        bf.policies.Threshold(domain, theta=2),
        bf.policies.Threshold(domain, theta=1),
    ):
        assert stated.implies(whole) == (seen <= edges_of(stated))
        assert stated.implies(TABLE) == (seen <= edges_of(stated))


def test_a_filter_brings_absent_one_edge_near():
    """Enumerate what one edge moves in a table of the rows that pass a filter."""
    ages, sexes = bf.Domain(3, names=["age"]), bf.Domain(2, names=["sex"])
    fixed = bf.policies.Blocks(ages, [0, 1, 2])
    table = bf.WideDomain.product(ages, sexes)
    stated = bf.policies.TablePolicy(table, {"age": fixed}, presence=4)
    rows = [(age, sex) for age in range(3) for sex in range(2)]
    costs = []
    for _, sex in rows:
        # Where sex = 0 is counted by age at rate 10: along the edge, and to "absent".
        costs.append(Fraction(10 * abs((sex == 0) - (sex == 1)), 1))
        costs.append(Fraction(10 * (sex == 0), 4))
    assert max(costs) == 10
    prices = [
        heaviest_edge([10], [(0,)], edge_kinds(policy.through(["age", "sex"])))
        for policy in (stated, stated.filtered("sex"))
    ]
    assert prices == [3, 10], "the price of appearing alone is 10 / 4, rounded up"
    assert stated.filtered("age") is stated
    assert stated.filtered("sex").implies(stated)
    assert not stated.implies(stated.filtered("sex"))
    only = bf.policies.TablePolicy(table, presence="only")
    assert only.filtered("sex") is only


def test_an_attribute_is_told_in_words_of_its_own_and_no_edge_changes():
    ages = bf.Domain.from_edges(range(0, 101, 5), name="age")
    stated = {"age": bf.policies.Line(ages)}
    plain = bf.policies.TablePolicy(ages, stated)
    told = bf.policies.TablePolicy(ages, stated, words={"age": "two ages of a decade"})
    assert told == plain
    assert "in age, two ages of a decade" in told.describe()
    assert "in age, two ages of a decade" not in plain.describe()
    assert told.per_person(2).describe().count("two ages of a decade") == 1

"""Contingency tables over sets of attributes."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, WorkloadError
from blowfish_fast.workloads import Marginals, Tables, Union
from blowfish_fast.workloads.tables import table_names

SMALL = bf.Domain((3, 2, 4), names=["age", "sex", "region"])
WIDE = bf.WideDomain.product(*(bf.Domain(100, names=[f"a{i}"]) for i in range(20)))


def test_all_ways_count_every_set_of_attributes():
    asked = Tables(WIDE, ways=3)
    assert len(asked.tables) == 20 + 190 + 1140
    assert asked.queries == 20 * 100 + 190 * 10**4 + 1140 * 10**6
    assert asked.names(25) == ("a0", "a6")


def test_tables_are_named_in_any_order_and_kept_in_the_domains():
    asked = Tables(SMALL, [("sex", "age"), "region", 0], weights=[1, 3, 1])
    assert asked.tables == ((0, 1), (2,), (0,))
    assert asked.weights == (1.0, 3.0, 1.0)
    assert asked.shapes == ((3, 2), (4,), (3,))
    assert table_names(bf.Domain((2, 2)), (1,)) == (1,)


def test_over_a_domain_they_are_the_marginals_one_after_the_other(generator):
    asked = Tables(SMALL, ways=2)
    counts = generator.integers(0, 9, SMALL.shape)
    parts = [Marginals(SMALL, one) for one in asked.tables]
    expected = np.concatenate([one.answer(counts) for one in parts])
    assert (asked.answer(counts) == expected).all()
    laplace = bf.Laplace(bf.policies.AddRemove(SMALL), asked, epsilon=1)
    same = laplace.expected_error(Union(*parts))
    assert np.allclose(laplace.expected_error(), same)
    assert asked.mean_cells() == pytest.approx(6 * 24 / asked.queries)


def test_unions_of_tables_add_weights():
    both = Tables(SMALL, ["age", "sex"]) | Tables(SMALL, ["sex", ("age", "region")])
    assert isinstance(both, Tables)
    assert both.tables == ((0,), (1,), (0, 2))
    assert both.weights == (1.0, 2.0, 1.0)
    other = Tables(SMALL, ways=1) | bf.workloads.Total(SMALL)
    assert isinstance(other, Union)
    assert other.queries == 10


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "say which tables"),
        ({"tables": [], "ways": None}, "at least one table"),
        ({"tables": ["age"], "ways": 1}, "say which tables"),
        ({"tables": "age"}, "a list of sets"),
        ({"tables": [("age", "sex"), ("sex", "age")]}, "name each table once"),
        ({"ways": 4}, "at most the 3 attributes"),
        ({"tables": ["age"], "weights": [1, 2]}, "one weight per table"),
    ],
)
def test_what_is_no_list_of_tables_is_refused(arguments, reason):
    with pytest.raises(WorkloadError, match=reason):
        Tables(SMALL, **arguments)


def test_tables_of_a_wide_domain_are_never_listed():
    with pytest.raises(WorkloadError, match="never listed cell by cell"):
        Tables(WIDE, ways=1).explicit_form(None)
    with pytest.raises(DomainError, match="a table holds at most"):
        Tables(WIDE, [tuple(f"a{i}" for i in range(5))])
    with pytest.raises(WorkloadError, match="at most 2\\^16"):
        Tables(WIDE, ways=12)
    with pytest.raises(DomainError, match="lists the cells of the domain"):
        bf.Laplace(bf.policies.AddRemove(WIDE), Tables(WIDE, ways=1), epsilon=1)


def test_plain_data_names_tables_by_axes():
    plain = Tables(SMALL, ["sex"], weights=[2]).to_dict()
    assert plain["tables"] == [[1]]
    assert plain["weights"] == [2.0]

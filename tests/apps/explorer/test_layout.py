"""Bins, policies and queries of a question equal their definition."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.explorer import TableSpec, read_question
from blowfish_fast.apps.explorer.layout import cell_of, lay_out
from blowfish_fast.errors import CatalogError, QuestionError, SizeError

SMALL = TableSpec(
    name="t",
    attributes=[
        {"name": "a", "cells": {"start": 0, "stop": 6, "width": 1}, "missing": "none"},
        {"name": "b", "cells": {"start": 0, "stop": 4, "width": 1}},
        {"name": "s", "levels": ["x", "y"]},
    ],
)
POLICIES = {
    "whole": {},
    "line": {"a": {"kind": "line"}},
    "both": {"a": {"kind": "threshold", "theta": 2}, "b": {"kind": "line"}},
    "blocks": {"s": {"kind": "blocks", "blocks": [["x"], ["y"]]}},
}
SPEND = {"epsilon": 1}
QUESTIONS = {
    "histogram": {"kind": "histogram", "attribute": "a", "width": 2},
    "with extras": {"kind": "histogram", "attribute": "b"},
    "filtered": {
        "kind": "cumulative",
        "attribute": "a",
        "filters": [{"attribute": "s", "values": ["y"]}],
    },
    "filtered by itself": {
        "kind": "histogram",
        "attribute": "b",
        "filters": [{"attribute": "b", "low": 1, "high": 3}],
    },
    "two": {"kind": "histogram2d", "attributes": ["b", "a"], "granularity": [1, 3]},
    "two, filtered": {
        "kind": "marginal",
        "attributes": ["s", "a"],
        "filters": [{"attribute": "b", "high": 2}],
    },
    "ranges": {"kind": "ranges", "attribute": "a", "ranges": [[0, 4], [2, 6]]},
    "ranges beside extras": {
        "kind": "ranges",
        "attribute": "b",
        "ranges": [[0, 4], [1, 2]],
    },
    "boxes": {
        "kind": "rectangles",
        "attributes": ["a", "b"],
        "granularity": [2, 1],
        "rectangles": [[[0, 4], [1, 3]], [[2, 6], [0, 4]], [[4, 6], [3, 4]]],
    },
    "boxes, filtered": {
        "kind": "rectangles",
        "attributes": ["a", "b"],
        "rectangles": [[[1, 5], [0, 2]], [[0, 6], [2, 3]]],
        "filters": [{"attribute": "s", "values": ["x"]}],
    },
}


def laid(name, policies):
    table = SMALL.with_policies(
        {key: bf.explorer.PolicySpec(**one) for key, one in POLICIES[policies].items()}
    )
    question = read_question({**QUESTIONS[name], "table": "t", "cost": SPEND})
    return table, lay_out(table, question)


def bins_of_all_cells(table, layout):
    """Return the final bin of every cell of the whole table, one by one."""
    domain = table.domain()
    cells = np.array(np.unravel_index(np.arange(domain.size), domain.shape))
    number = np.zeros(domain.size, dtype=np.int64)
    for axis in layout.axes:
        at = domain.axis(axis.spec.name)
        number = number * axis.bins + axis.labels[cells[at]]
    return number if layout.labels is None else layout.labels[number]


def whole_policy(table):
    domain = bf.Domain.product(table.domain())
    if not table.policies:
        return bf.policies.Full(domain)
    factors = []
    for one in table.attributes:
        stated = table.policies.get(one.name)
        factors.append(
            bf.policies.Full(one.domain()) if stated is None else stated.over(one)
        )
    return bf.policies.Product(*factors, domain=domain)


@pytest.mark.parametrize("policies", POLICIES)
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_policy_on_the_bins_is_the_quotient_of_the_whole_table(name, policies):
    table, layout = laid(name, policies)
    labels = bins_of_all_cells(table, layout)
    assert set(labels) == set(range(layout.bins))
    found = layout.policy(table.policy())
    expected = set()
    for chunk in whole_policy(table).edges():
        for one, other in labels[chunk]:
            if one != other:
                expected.add((min(one, other), max(one, other)))
    edges = set()
    for chunk in found.edges():
        edges |= {(min(pair), max(pair)) for pair in chunk.tolist()}
    assert edges == expected
    assert found.implies(table.policy())


@pytest.mark.parametrize("name", QUESTIONS)
def test_queries_count_what_the_question_says(name):
    table, layout = laid(name, "whole")
    labels = bins_of_all_cells(table, layout)
    rng = np.random.default_rng(5)
    records = rng.integers(0, table.domain().size, 400)
    counts = np.bincount(labels[records], minlength=layout.bins)
    policy = layout.policy(table.policy())
    answers = layout.workload(policy.domain).answer(counts.reshape(policy.domain.shape))
    cells = np.array(np.unravel_index(records, table.domain().shape))
    a, b, s = cells
    expected = {
        "histogram": [((a // 2) == at).sum() for at in range(3)],
        "with extras": [(b == at).sum() for at in range(4)],
        "filtered": [((a <= at) & (s == 1)).sum() for at in range(6)],
        "filtered by itself": [(b == at).sum() for at in (1, 2)],
        "two": [
            ((b == one) & (a // 3 == two)).sum() for one in range(4) for two in range(2)
        ],
        "two, filtered": [
            ((s == one) & (a == two) & (b < 2)).sum()
            for one in range(2)
            for two in range(6)
        ],
        "ranges": [(a < 4).sum(), (a >= 2).sum()],
        "ranges beside extras": [(b < 4).sum(), (b == 1).sum()],
        "boxes": [
            ((a < 4) & (b >= 1) & (b < 3)).sum(),
            ((a >= 2) & (b < 4)).sum(),
            ((a >= 4) & (b == 3)).sum(),
        ],
        "boxes, filtered": [
            ((a >= 1) & (a < 5) & (b < 2) & (s == 0)).sum(),
            ((b == 2) & (s == 0)).sum(),
        ],
    }[name]
    assert answers.tolist() == expected


def test_all_records_that_fail_a_filter_are_one_bin():
    _, layout = laid("two, filtered", "whole")
    assert layout.bins == 12 + 12 + 1
    assert (layout.labels == layout.bins - 1).sum() == 4 * 6


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"attribute": "z"}, CatalogError, "no attribute 'z'"),
        ({"attribute": "a", "width": 7}, QuestionError, "wider than 'a'"),
        ({"attribute": "s", "kind": "cumulative"}, QuestionError, "needs an ordered"),
        ({"attribute": "s", "width": 2}, QuestionError, "single levels"),
        (
            {"attribute": "a", "filters": [{"attribute": "b", "low": 0.5}]},
            QuestionError,
            "at the edges of its cells only",
        ),
        (
            {"attribute": "a", "filters": [{"attribute": "b", "values": [1]}]},
            QuestionError,
            "filter it by low and high",
        ),
        (
            {"attribute": "a", "filters": [{"attribute": "s", "low": 1}]},
            QuestionError,
            "filter it by values",
        ),
        (
            {"attribute": "a", "filters": [{"attribute": "s", "values": ["'; --"]}]},
            QuestionError,
            "none of its levels",
        ),
        (
            {"attribute": "a", "kind": "ranges", "ranges": [[0, 3]], "width": 2},
            QuestionError,
            "begin and end where its bins do",
        ),
        (
            {"attribute": "a", "kind": "ranges", "ranges": [[3, 3]]},
            QuestionError,
            "end after it begins",
        ),
        (
            {"attribute": "a", "filters": [{"attribute": "b"}]},
            QuestionError,
            "or by missing",
        ),
        ({"attribute": "a", "cost": {"alpha": -1}}, QuestionError, "above 0"),
        ({"attribute": "a", "cost": {}}, QuestionError, "alpha"),
        ({"attribute": "a", "surprise": 1}, QuestionError, "surprise"),
    ],
    ids=str,
)
def test_questions_that_do_not_fit_are_refused_with_the_rule(change, error, words):
    asked = {"kind": "histogram", "table": "t", "cost": SPEND, **change}
    with pytest.raises(error, match=words):
        lay_out(SMALL, read_question(asked))


def square(side):
    """Return a table of two attributes with as many cells each."""
    cells = {"start": 0, "stop": side, "width": 1}
    return TableSpec(
        name="t", attributes=[{"name": name, "cells": cells} for name in "ab"]
    )


def test_too_many_bins_are_refused_with_their_number():
    wide = square(4096)
    asked = {
        "kind": "histogram2d",
        "table": "t",
        "attributes": ["a", "b"],
        "cost": SPEND,
    }
    with pytest.raises(SizeError, match="16,785,409 bins"):
        lay_out(wide, read_question(asked))


def test_boxes_that_hold_too_many_bins_are_refused_before_they_are_listed():
    maps = square(1024)
    asked = {
        "kind": "rectangles",
        "table": "t",
        "attributes": ["a", "b"],
        "rectangles": [[[0, 1024], [0, 1024]]] * 17,
        "cost": SPEND,
    }
    layout = lay_out(maps, read_question(asked))
    with pytest.raises(SizeError, match="17,825,792 bins together"):
        layout.workload(layout.policy(maps.policy()).domain)


def test_a_table_of_any_size_is_never_listed():
    wide = TableSpec(
        name="t",
        attributes=[
            {"name": f"a{at}", "cells": {"start": 0, "stop": 1000, "width": 1}}
            for at in range(6)
        ],
        policies={"a1": {"kind": "threshold", "theta": 10}},
    )
    asked = {"kind": "histogram", "table": "t", "attribute": "a1", "cost": SPEND}
    layout = lay_out(wide, read_question(asked))
    policy = layout.policy(wide.policy())
    assert policy.domain.size == 1001
    assert policy.implies(wide.policy())


def test_edges_of_dates_are_days_without_a_time_zone():
    days = np.arange("2024-01-01", "2024-01-05", dtype="M8[D]")
    (attribute,) = bf.Domain.from_dates(days, name="day").attributes
    assert cell_of(attribute, "2024-01-02") == 1
    for value in ("2024-01-02T00:00:00+02:00", "2024-01-02T06:00:00", "soon"):
        with pytest.raises(QuestionError):
            cell_of(attribute, value)


@pytest.mark.parametrize(
    ("stated", "near"),
    [
        ("2026-03-10", "2026-03-01 and 2026-04-01"),
        ("2025-12-24", "near 2026-01-01"),
        ("2027-01-05", "near 2026-07-01"),
    ],
)
def test_a_date_that_is_no_edge_is_refused_with_the_nearest_edges(stated, near):
    months = [f"2026-0{month}-01" for month in range(1, 8)]
    table = TableSpec(name="visits", attributes=[{"name": "day", "dates": months}])
    asked = {"kind": "histogram", "table": "visits", "attribute": "day"}
    cost = {"cost": {"alpha": 20}}
    for low, high in ((stated, "2026-07-01"), ("2026-01-01", stated)):
        within = {"attribute": "day", "low": low, "high": high}
        with pytest.raises(QuestionError, match=near):
            lay_out(table, read_question({**asked, **cost, "filters": [within]}))

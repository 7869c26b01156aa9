"""Squared sensitivities: exact where stated, never below the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import blowfish_fast as bf
from blowfish_fast.measure.sensitivity import policy as squares
from blowfish_fast.measure.sensitivity.policy import worst_moves
from tests.generated import example_count
from tests.reference.policy_examples import on_a_line


def by_definition(matrix, weights, policy):
    """Return the largest sum of weights times squared changes over all edges."""
    columns = np.hstack([matrix, np.zeros((len(matrix), 1), dtype=np.int64)])
    worst = 0
    for chunk in policy.edges():
        for one, two in chunk.tolist():
            change = columns[:, one] - columns[:, two]
            worst = max(worst, int((weights * change * change).sum()))
    return worst


def matrices(cells, values):
    row = st.lists(st.sampled_from(values), min_size=cells, max_size=cells)
    return st.lists(row, min_size=1, max_size=4).map(np.array)


@settings(deadline=None, max_examples=example_count(80))
@given(st.data(), on_a_line())
def test_few_edges_are_priced_as_defined(data, policy):
    matrix = data.draw(matrices(policy.domain.size, [0, 0, 1, 1, 2, -3]))
    weights = np.array(
        data.draw(
            st.lists(st.integers(0, 2**30), min_size=len(matrix), max_size=len(matrix))
        )
    )
    found = worst_moves(sparse.csr_array(matrix), weights, policy, 2)
    assert found == by_definition(matrix, weights, policy)


@settings(deadline=None, max_examples=example_count(60))
@given(st.data(), on_a_line())
def test_where_edges_are_not_listed_the_price_is_never_too_low(data, policy):
    matrix = data.draw(matrices(policy.domain.size, [0, 1, 2, -3]))
    weights = np.arange(1, len(matrix) + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(squares, "LISTED_EDGES", -1)
        found = worst_moves(sparse.csr_array(matrix), weights, policy, 2)
    assert found >= by_definition(matrix, weights, policy)


def test_whoever_is_absent_stands_at_zero_in_the_bound(monkeypatch):
    domain = bf.Domain(3)
    rows = sparse.csr_array(np.full((1, 3), 2))
    monkeypatch.setattr(squares, "LISTED_EDGES", -1)
    policy = bf.policies.Full(domain)
    assert worst_moves(rows, np.array([5]), policy, 2) == 0
    assert worst_moves(rows, np.array([5]), bf.policies.WithAbsent(policy), 2) >= 20


def test_nothing_to_move_costs_nothing():
    policy = bf.policies.Full(bf.Domain(3))
    empty = sparse.csr_array(np.zeros((2, 3)))
    assert worst_moves(empty, np.array([1, 1]), policy, 2) == 0
    assert worst_moves(empty, np.array([0, 0]), policy, 2) == 0

"""The matrix mechanism with any matrix."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import blowfish_fast as bf
from blowfish_fast.audit import audit_measurements
from blowfish_fast.data.buckets import Buckets
from blowfish_fast.errors import DomainError, InputError, IntervalError, SizeError
from blowfish_fast.measure.strategies import Explicit
from blowfish_fast.measure.strategies import explicit as explicit_module
from tests.generated import example_count
from tests.reference.draws import spread_by_draws
from tests.reference.policy_examples import any_policy
from tests.reference.spread import assert_same_spread

LINE = bf.Domain(4)
IDENTITY = np.eye(4)
PREFIXES = np.tril(np.ones((4, 4)))[:3]


def worst(matrix, weights, policy):
    """Return the largest weighted change of the rows along one edge."""
    found = 0
    for chunk in policy.edges():
        for u, v in chunk.tolist():
            one = matrix[:, u] if u >= 0 else 0 * matrix[:, 0]
            two = matrix[:, v] if v >= 0 else 0 * matrix[:, 0]
            found = max(found, int(weights @ abs(one - two)))
    return found


@settings(deadline=None, max_examples=example_count(80))
@given(any_policy(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_the_worst_edge_and_exact_rows_equal_the_definition(policy, rows, shuffler):
    cells = policy.domain.size
    entries = [[shuffler.choice([0, 0, 1, 1, -3, 2]) for _ in range(cells)]]
    entries += [
        [shuffler.choice([0, 1]) for _ in range(cells)]
        if shuffler.random() < 0.7
        else [2] * cells
        for _ in range(rows - 1)
    ]
    matrix = np.array(entries)
    strategy = Explicit(matrix).under(policy)
    weights = np.array([shuffler.randint(0, 9) for _ in range(rows)])
    padded = np.append(weights, np.zeros(strategy.part_sizes.size, dtype=np.int64))
    assert strategy.worst_edge(padded, policy) == worst(matrix, weights, policy)
    alone = np.eye(rows, dtype=np.int64)
    still = [worst(matrix, one, policy) == 0 for one in alone]
    assert strategy.exact_rows(policy)[:rows].tolist() == still
    components = policy.components()
    if policy.has_moves or policy.has_bottom:
        public = (~components.private).tolist()
        assert strategy.exact_rows(policy)[rows:].tolist() == public


@pytest.mark.parametrize(
    "policy",
    [
        bf.policies.Line(LINE),
        bf.policies.Full(LINE),
        bf.policies.AddRemove(LINE),
        bf.policies.Blocks(LINE, [0, 0, 1, 1]),
        bf.policies.Graph(LINE, [[0, 1], [1, -1], [2, 3]]),
        bf.policies.Graph(LINE, []),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "matrix", [IDENTITY, np.concatenate([IDENTITY, np.ones((1, 4)), PREFIXES])], ids=len
)
def test_spread_and_audit_equal_the_definition(policy, matrix):
    strategy = Explicit(matrix).under(policy)
    scales = strategy.scales(policy, Fraction(1))
    cells = Buckets.single_cells(4)
    for workload in (
        bf.workloads.AllRanges(LINE),
        bf.workloads.Prefixes(LINE),
        bf.workloads.Identity(LINE),
        bf.workloads.Total(LINE),
    ):
        form = workload.explicit_form(cells)
        expected = spread_by_draws(strategy, scales, form, 4)
        assert_same_spread(strategy.spread(form, scales), expected)
        total = strategy.total_variance(workload.form(cells), scales)
        assert total == pytest.approx(expected.variance.sum(), abs=1e-9)
    mechanism = bf.Transformed(
        policy, bf.workloads.AllRanges(LINE), epsilon="0.7", strategy=Explicit(matrix)
    )
    prices = audit_measurements(mechanism, [3, 0, 2, 5])
    assert all(price.passed for price in prices)
    if policy.edge_count:
        assert prices[0].worst > Fraction(699, 1000)


def test_it_is_w_times_the_inverse_of_a():
    # BlowfishDB, equation 1: under add-remove nothing is exact.
    policy = bf.policies.AddRemove(LINE)
    matrix = np.concatenate([IDENTITY, np.ones((1, 4))])
    strategy = Explicit(matrix).under(policy)
    scales = strategy.scales(policy, Fraction(1))
    noisy = np.append(strategy.rows(np.array([3, 0, 2, 5])), 0)[:6]
    noisy[:5] += np.array([1, -2, 0, 4, 7])
    expected = np.linalg.pinv(matrix) @ noisy[:5]
    np.testing.assert_allclose(strategy.infer(noisy, scales), expected)
    # Without noise the counts come back.
    clean = strategy.rows(np.array([3, 0, 2, 5]))
    np.testing.assert_allclose(strategy.infer(clean, scales), [3, 0, 2, 5], atol=1e-9)


def test_prefixes_on_a_line_match_the_ordered_mechanism():
    asked = bf.workloads.AllRanges(LINE)
    line = bf.policies.Line(LINE)
    explicit = bf.Transformed(line, asked, epsilon=1, strategy=Explicit(PREFIXES))
    ordered = bf.Ordered(line, asked, epsilon=1)
    np.testing.assert_allclose(
        explicit.expected_error(), ordered.expected_error(), atol=1e-9
    )


def test_other_entries_are_rounded_to_a_public_step():
    with pytest.raises(InputError, match="public step"):
        Explicit([[0.5, 1.0]])
    halves = Explicit([[0.5, 1.0], [0.24, -1.1]], step=0.5)
    assert halves.matrix.toarray().tolist() == [[1, 2], [0, -2]]
    doubled = Explicit(sparse.csr_array([[1.0, 2.0]]))
    assert doubled.matrix.toarray().tolist() == [[1, 2]]


def test_queries_that_the_rows_do_not_determine_are_refused():
    policy = bf.policies.AddRemove(LINE)
    halves = Explicit([[1, 1, 0, 0], [0, 0, 1, 1]])
    cells = bf.workloads.Identity(LINE)
    mechanism = bf.Transformed(policy, cells, epsilon=1, strategy=halves)
    for ask in (mechanism.expected_error, mechanism.expected_total_error):
        with pytest.raises(IntervalError, match="does not determine"):
            ask()
    release = mechanism.release([4, 4, 0, 0], rng=1)
    assert release.estimate.shape == (4,)
    with pytest.raises(IntervalError, match="does not determine"):
        release.intervals(cells, of="noise")
    ranges = bf.workloads.Ranges(LINE, [0, 2], [2, 4])
    assert mechanism.expected_error(ranges).round(4).tolist() == [1.8413, 1.8413]


def test_releases_survive_saving(tmp_path):
    asked = bf.workloads.AllRanges(LINE)
    policy = bf.policies.Blocks(LINE, [0, 0, 1, 1])
    release = bf.Transformed(
        policy, asked, epsilon=1, strategy=Explicit(IDENTITY)
    ).release([1, 2, 3, 4])
    release.save(tmp_path / "matrix")
    again = bf.Release.load(tmp_path / "matrix")
    assert (
        again.intervals(asked, of="noise") == release.intervals(asked, of="noise")
    ).all()
    with pytest.raises(ValueError, match="number each of the 4 cells"):
        Explicit.unpack(
            {**Explicit(IDENTITY).pack(), "parts": np.zeros(3, dtype=np.int64)}
        )


def test_what_cannot_be_done_is_refused():
    line = bf.policies.Line(LINE)
    with pytest.raises(SizeError, match="dense entries"):
        Explicit(sparse.eye_array(5000).tocsr())
    for wrong in ("text", [[np.nan]], [[2.0**40]], np.zeros((2, 0))):
        with pytest.raises(InputError):
            Explicit(wrong)
    with pytest.raises(InputError, match="positive"):
        Explicit(IDENTITY, step=0)
    with pytest.raises(DomainError, match="4 columns"):
        Explicit(IDENTITY).under(bf.policies.Line(bf.Domain(5)))
    with pytest.raises(InputError, match="partition=None"):
        bf.Transformed(
            line,
            bf.workloads.Identity(LINE),
            epsilon=1,
            strategy=Explicit(IDENTITY),
            partition=bf.partitions.LeastCost(),
        )
    with pytest.raises(InputError, match="exactly or not at all"):
        Explicit(IDENTITY).worst_edge(np.ones(5, dtype=np.int64), line)
    huge = Explicit(np.full((1, 4), 2.0**30))
    many = bf.policies.Full(LINE)
    weights = np.array([2**29 + 1, 0])
    assert huge.worst_edge(weights, many) == 0
    uneven = Explicit([[2**30, 0, 0, 0], [1, 0, 0, 0]])
    with pytest.raises(SizeError, match=r"2\^52"):
        uneven.worst_edge(np.array([2**30 + 1, 2**30, 0]), many)


@pytest.mark.parametrize("most", [5, 11])
def test_more_queries_than_a_matrix_follows_are_refused(monkeypatch, most):
    domain = bf.Domain(4)
    strategy = Explicit(np.eye(4, dtype=np.int64))
    scales = strategy.scales(bf.policies.AddRemove(domain), Fraction(1))
    asked = bf.workloads.Ranges(domain, [0, 0, 1], [2, 2, 3])
    form = asked.explicit_form(Buckets.single_cells(4))
    assert strategy.spread(form, scales).variance.size == 3
    monkeypatch.setattr(explicit_module, "MOST_ENTRIES", most)
    with pytest.raises(SizeError, match="too many to follow"):
        strategy.spread(form, scales)

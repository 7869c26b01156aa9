"""Advice for wide domains and long lines: what serves, from which numbers on."""

from __future__ import annotations

from fractions import Fraction

import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, InputError

P, W = bf.policies, bf.workloads
TIME = bf.WideDomain(2**60, names="time")
WORDS = bf.KeyDomain("a-z", longest=2, name="word")
LINE = bf.Domain(2**16)
RANGES = W.Ranges.random(LINE, 50, rng=1)


def test_single_cells_of_a_wide_domain_are_listed_from_a_threshold_on():
    policy = P.AddRemove(TIME)
    advice = bf.recommend(policy, W.Identity(TIME), epsilon=1)
    assert isinstance(advice.best.mechanism, bf.SparseLaplace)
    assert "about 42 records or more" in str(advice)
    both = bf.recommend(policy, W.Identity(TIME), epsilon=1, delta="1e-9")
    assert [line.name for line in both] == ["sparse_laplace", "sparse_gaussian (rho)"]
    assert "about 52 records" in both.because[1]
    in_rho = bf.recommend(P.AddRemove(WORDS), W.Identity(WORDS), rho="0.1")
    assert in_rho.best.name == "sparse_gaussian"


def test_ranges_of_a_wide_domain_are_served_by_dawa():
    asked = W.Ranges(TIME, [0], [2**40])
    advice = bf.recommend(P.Full(TIME), asked, epsilon=1, records=10**6)
    assert isinstance(advice.best.mechanism, bf.Dawa)
    assert advice.best.kind == "untried"
    table = bf.compare(P.Full(TIME), asked, epsilon=1, delta="1e-9")
    assert [line.name for line in table] == ["dawa", "dawa (rho)"]
    assert table.best.data_dependent
    assert not table.best.admissible
    assert "hold the truth" in table.best.reason
    with pytest.raises(DomainError, match="one mechanism serves"):
        bf.translate(P.Full(TIME), asked, alpha=10, beta=0.1)


@pytest.mark.parametrize("option", [{"trials": 1}, {"mechanisms": ["laplace"]}])
def test_nothing_is_tried_or_weighed_on_a_wide_domain(option):
    with pytest.raises(DomainError, match="one mechanism serves"):
        bf.recommend(
            P.AddRemove(TIME), W.Identity(TIME), epsilon=1, records=9, **option
        )


def test_named_mechanisms_are_not_compared_on_a_wide_domain():
    with pytest.raises(DomainError, match="one mechanism serves"):
        bf.compare(
            P.AddRemove(TIME), W.Identity(TIME), epsilon=1, mechanisms=["laplace"]
        )
    with pytest.raises(DomainError, match="share one domain"):
        bf.recommend(P.AddRemove(TIME), W.Identity(WORDS), epsilon=1)
    with pytest.raises(DomainError, match="one mechanism serves"):
        bf.plotting.error_against_epsilon(P.AddRemove(TIME), W.Identity(TIME), [1, 2])


@pytest.mark.long
@pytest.mark.parametrize("domain", [TIME, WORDS])
@pytest.mark.parametrize("currency", ["epsilon", "rho"])
@pytest.mark.parametrize("scope", ["simultaneous", "per_query"])
def test_the_least_budget_of_a_list_keeps_the_promise(domain, currency, scope):
    policy, each = P.AddRemove(domain), scope == "per_query"
    found = bf.translate(
        policy,
        W.Identity(domain),
        alpha=300,
        beta=0.05,
        scope=scope,
        currency=currency,
    )
    least = found.best.mechanism
    assert least.largest_error(Fraction(1, 20), each=each) <= 300
    less = type(least)(policy, **{currency: found.best.amount * Fraction(99, 100)})
    assert less.largest_error(Fraction(1, 20), each=each) > 300


@pytest.mark.long
def test_the_least_budget_of_a_list_has_ends():
    policy, asked = P.AddRemove(WORDS), W.Identity(WORDS)
    exact = bf.translate(policy, asked, alpha=0.5, beta=0.05)
    assert exact.best.mechanism.largest_error("0.05") == 0
    any_error = bf.translate(policy, asked, alpha=1e300, beta=0.05)
    assert any_error.epsilon < Fraction(1, 2**20)
    both = bf.translate(policy, asked, alpha=100, beta=0.05, delta="1e-9")
    assert both.in_rho.best.name == "sparse_gaussian"
    with pytest.raises(InputError, match="strictly between"):
        exact.best.mechanism.largest_error(1)


def test_the_largest_error_is_that_of_the_definition():
    heavy = bf.SparseLaplace(P.AddRemove(LINE), epsilon=1, threshold=7)
    # P(Z >= h + 1) = a^(h + 1) / (1 + a), a = 1/e: twice that, times cells.
    ratio = 0.36787944117144233
    for each, cells in ((True, 1), (False, LINE.size)):
        half = next(
            h for h in range(100) if cells * 2 * ratio ** (h + 1) / (1 + ratio) <= 0.05
        )
        assert heavy.largest_error("0.05", each=each) == 7 - 1 + half


def test_clustered_records_of_a_long_line_are_divided_by_descent():
    policy = P.AddRemove(LINE)
    stated = {"epsilon": "0.1", "records": 10**6}
    first = bf.recommend(policy, RANGES, filled=0.02, **stated)
    assert first.best.name == "dawa (descent)"
    assert isinstance(first.best.mechanism.partition, bf.partitions.Descent)
    assert "few cells hold the records" in first.because[0]
    assert isinstance(first["dawa"].mechanism.partition, bf.partitions.DyadicTree)
    for other in (
        bf.recommend(policy, RANGES, **stated),
        bf.recommend(policy, RANGES, filled=0.5, **stated),
        # Few records in each of the filled cells.
        bf.recommend(policy, RANGES, epsilon="0.1", records=10**4, filled=0.05),
    ):
        assert [line.name for line in other][:2] == ["dawa", "dawa (descent)"]
    true = bf.recommend(policy, RANGES, filled=0.02, intervals="truth", **stated)
    assert true.best.name == "hierarchy"
    both = bf.recommend(policy, RANGES, filled=0.02, delta="1e-9", **stated)
    assert "dawa (descent) (rho)" in [line.name for line in both]
    with pytest.raises(InputError, match="filled must lie between"):
        bf.recommend(policy, RANGES, filled=1.5, **stated)


def test_short_lines_and_other_questions_have_no_descent():
    short = bf.Domain(2**12)
    for policy, asked in (
        (P.AddRemove(short), W.Ranges.random(short, 50, rng=1)),
        (P.AddRemove(LINE), W.Identity(LINE)),
        (P.Line(LINE), RANGES),
    ):
        advice = bf.recommend(policy, asked, epsilon=1, records=10**6, filled=0.01)
        assert not any("descent" in line.name for line in advice)

"""Lists of heavy cells: thresholds, false cells, ledgers, bad input, large domains."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.composition import RHO
from blowfish_fast.accounting.request import price_in
from blowfish_fast.data.sparse import FilledCells
from blowfish_fast.errors import (
    DomainError,
    EpsilonError,
    InputError,
    NoEstimateError,
    PolicyError,
    SizeError,
)

WIDE = bf.WideDomain.product(
    bf.Domain(2**28, names=["address"]), bf.Domain(2**28, names=["second"])
)
POLICY = bf.policies.AddRemove(WIDE)
LINE = bf.Domain(1000)


def counted(address, second, times=1):
    columns = {"address": np.repeat(address, times), "second": np.repeat(second, times)}
    return bf.SparseHistogram.from_records(WIDE, columns)


@pytest.mark.parametrize(
    ("cells", "epsilon", "thresholds"),
    [
        (2**32, 1, (15, 22, 27)),
        (2**40, 1, (21, 28, 33)),
        (2**60, 1, (35, 42, 46)),
        (2**32, "0.1", (147, 216, 262)),
        (2**40, "0.1", (202, 271, 317)),
        (2**60, "0.1", (341, 410, 456)),
    ],
)
def test_thresholds_are_those_of_the_guide(cells, epsilon, thresholds):
    half = bf.Domain(2**20, names=["a"])
    rest = cells // 2**20
    parts = [bf.Domain(min(rest, 2**20), names=["b"])]
    parts += [bf.Domain(rest // 2**20, names=["c"])] if rest > 2**20 else []
    policy = bf.policies.AddRemove(bf.WideDomain.product(half, *parts))
    for mean, wanted in zip((1000, 1, "0.01"), thresholds, strict=True):
        made = bf.SparseLaplace(policy, epsilon=epsilon, false_cells=mean)
        assert made.threshold == wanted
        assert made.expected_false_cells <= Fraction(mean)


def test_moves_and_persons_raise_the_threshold():
    plain = bf.SparseLaplace(POLICY, epsilon=1).threshold
    moves = bf.SparseLaplace(bf.policies.Full(WIDE), epsilon=1).threshold
    three = bf.SparseLaplace(POLICY.per_person(3), epsilon=1).threshold
    once = POLICY.per_person(3, count="persons")
    assert plain in (39, 40)
    assert abs(moves - 2 * plain) <= 2
    assert abs(three - 3 * plain) <= 3
    # In units of a sixth of a person the noise is six times as wide.
    assert bf.SparseLaplace(once, epsilon=1).threshold == pytest.approx(plain, abs=1)


def test_each_person_once_is_listed_in_persons():
    once = POLICY.per_person(2, count="persons")
    columns = {"address": [5] * 200, "second": [7] * 200, "who": np.arange(200)}
    data = bf.SparseHistogram.from_records(
        WIDE, columns, person="who", at_most=2, count="persons"
    )
    made = bf.SparseLaplace(once, epsilon=2, false_cells="1e-9")
    listed = made.release(data, rng=1).cells()
    assert listed["address"].tolist() == [5]
    assert listed["low"][0] <= 200 <= listed["high"][0]
    assert listed["count"][0] == pytest.approx(200, abs=10)


def test_false_cells_are_as_many_as_stated():
    empty = counted([0][:0], [0][:0])
    made = bf.SparseLaplace(POLICY, epsilon="0.1", false_cells=50)
    mean = float(made.expected_false_cells)
    found = [len(made.release(empty, rng=seed)) for seed in range(40)]
    assert 45 < mean <= 50
    assert abs(np.mean(found) - mean) < 4 * np.sqrt(mean / 40)


def test_heavy_cells_are_listed_and_light_ones_are_not():
    data = counted([3, 2**27, 9], [4, 1, 1], [5000, 800, 3])
    made = bf.SparseLaplace(POLICY, epsilon=1, false_cells="1e-6")
    release = made.release(data, rng=1)
    table = release.cells()
    assert table["address"].tolist() == [3, 2**27]
    assert table["second"].tolist() == [4, 1]
    assert (table["low"] <= [5000, 800]).all()
    assert (table["high"] >= [5000, 800]).all()
    assert list(table) == ["address", "second", "count", "low", "high"]


def test_the_order_of_records_makes_no_difference():
    made = bf.SparseLaplace(POLICY, epsilon=1, false_cells=20)
    address, second = np.arange(50) % 7, np.arange(50) % 5
    one = made.release(counted(address, second, 20), rng=4)
    other = made.release(counted(address[::-1], second[::-1], 20), rng=4)
    assert one.to_bytes() == other.to_bytes()


def test_a_list_is_the_dense_release_cut_at_the_threshold():
    # Two samples of the same law: how many cells are listed, and their mean count.
    counts = np.arange(1000) // 50
    policy = bf.policies.AddRemove(LINE)
    sparse = bf.SparseLaplace(policy, epsilon=1, threshold=8)
    dense = bf.Laplace(policy, bf.workloads.Identity(LINE), epsilon=1)
    listed, kept = [], []
    for seed in range(60):
        one = sparse.release(counts, rng=seed).listed.noisy
        other = dense.release(counts, rng=seed).estimate
        other = other[other >= 8]
        listed.append((one.size, one.mean()))
        kept.append((other.size, other.mean()))
    first, second = np.array(listed), np.array(kept)
    error = np.sqrt((first.var(axis=0) + second.var(axis=0)) / 60)
    assert (np.abs(first.mean(axis=0) - second.mean(axis=0)) < 4 * error).all()


@pytest.mark.parametrize("family", ["full", "line", "blocks", "graph_absent"])
def test_any_policy_of_a_dense_domain_is_taken(family):
    from blowfish_fast.audit import policy_families

    policy = policy_families(bf.Domain(8))[family]
    release = bf.SparseLaplace(policy, epsilon=5, threshold=4).release([9] * 8, rng=1)
    assert len(release) == 8


def test_a_ledger_charges_stores_and_returns_a_list(tmp_path):
    data = counted([3], [4], 500)
    made = bf.SparseLaplace(POLICY, epsilon=1)
    path = tmp_path / "ledger"
    with bf.Ledger(path, epsilon=2, policy=POLICY) as ledger:
        first = ledger.release(made, data, request="heavy")
        assert ledger.spent == 1
        again = ledger.release(made, data, request="heavy")
        assert ledger.spent == 1
    with bf.Ledger(path, epsilon=2, policy=POLICY) as ledger:
        kept = ledger.release(made, data, request="heavy")
    assert first.to_bytes() == again.to_bytes() == kept.to_bytes()
    assert isinstance(kept, bf.SparseRelease)
    assert kept.private


def test_a_ledger_in_rho_charges_what_laplace_noise_costs_there():
    made = bf.SparseLaplace(POLICY, epsilon=1)
    moving = bf.SparseLaplace(bf.policies.Full(WIDE), epsilon=1)
    assert price_in(made, RHO) <= Fraction(1, 2)
    assert Fraction(24, 100) < price_in(moving, RHO) <= Fraction(1, 4)
    three = bf.SparseLaplace(POLICY.per_person(3), epsilon=1)
    assert Fraction(49, 100) < price_in(three, RHO) <= Fraction(1, 2)


def test_gaussian_lists_are_paid_in_rho():
    made = bf.SparseGaussian(POLICY, rho="0.01")
    release = made.release(counted([3], [4], 500), rng=2)
    assert release.guarantee.rho == Fraction(1, 100)
    assert made.threshold == 61
    table = release.cells()
    assert table["low"][0] <= 500 <= table["high"][0]
    both = bf.SparseGaussian(POLICY, epsilon=1, delta="1e-9")
    assert both.threshold == pytest.approx(50, abs=2)


def test_what_is_said_beforehand_reads_no_data():
    made = bf.SparseLaplace(POLICY, epsilon=1, most_listed=1000)
    before = made.memory_needed()
    made.release(counted(np.arange(5000), np.arange(5000)), rng=1)
    assert made.memory_needed() == before < 2**26
    assert "counts hidden" in repr(counted([1], [2]))


def test_memory_that_is_not_there_is_refused_before_the_charge(monkeypatch):
    made = bf.SparseLaplace(POLICY, epsilon=1, most_listed=2**40)
    ledger = bf.Ledger(None, epsilon=1, policy=POLICY)
    with pytest.raises(SizeError, match="nothing was charged"):
        ledger.release(made, counted([1], [2]))
    assert ledger.spent == 0


def test_a_list_that_grows_too_long_is_stored_cut_and_says_so():
    made = bf.SparseLaplace(POLICY, epsilon=1, most_listed=10)
    data = counted(np.arange(50), np.arange(50), 500)
    ledger = bf.Ledger(None, epsilon=1, policy=POLICY)
    release = ledger.release(made, data, rng=1)
    assert len(release) == 10
    assert not release.complete
    told = release.at({"address": [9, 10, 60], "second": [9, 10, 60]})
    assert told["listed"].tolist() == [True, False, False]
    assert np.isfinite(told["high"]).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"threshold": 0}, InputError, "threshold"),
        ({"threshold": 2.5}, InputError, "threshold"),
        ({"threshold": 50, "false_cells": 1}, InputError, "Leave one out"),
        ({"false_cells": 0}, InputError, "above 0"),
        ({"false_cells": -1}, InputError, "above 0"),
        ({"false_cells": "many"}, InputError, "false_cells"),
        ({"most_listed": 0}, InputError, "most_listed"),
        ({"threshold": 1}, InputError, "Raise the threshold to 24 or more"),
        ({"false_cells": 2**25}, InputError, "Raise the threshold to 24 or more"),
    ],
    ids=str,
)
def test_bad_options_are_refused_with_a_way_out(options, error, reason):
    with pytest.raises(error, match=reason):
        bf.SparseLaplace(POLICY, epsilon=1, **options)


def test_the_other_currency_is_refused_with_its_twin():
    with pytest.raises(EpsilonError, match=r"Use bf\.SparseGaussian"):
        bf.SparseLaplace(POLICY, rho=1)
    with pytest.raises(EpsilonError, match=r"Use bf\.SparseLaplace"):
        bf.SparseGaussian(POLICY, epsilon=1)


def test_policies_and_domains_that_cannot_be_listed_are_refused():
    three = [bf.Domain(2**28, names=[name]) for name in "abc"]
    with pytest.raises(DomainError, match=r"at most 2\^62 cells"):
        bf.SparseLaplace(
            bf.policies.AddRemove(bf.WideDomain.product(*three)), epsilon=1
        )
    with pytest.raises(PolicyError, match="state the policy first"):
        bf.SparseLaplace(WIDE, epsilon=1)
    one = bf.Domain(1)
    with pytest.raises(PolicyError, match="none does"):
        bf.SparseLaplace(bf.policies.Full(one), epsilon=1)


def test_other_data_are_refused():
    made = bf.SparseLaplace(POLICY, epsilon=1)
    with pytest.raises(InputError, match="those of a SparseHistogram"):
        made.release([1, 2, 3])
    other = bf.WideDomain.product(WIDE.marginal("second"), WIDE.marginal("address"))
    data = bf.SparseHistogram.from_records(other, {"address": [1], "second": [1]})
    with pytest.raises(DomainError, match="build both over one domain"):
        made.release(data)
    with pytest.raises(PolicyError):
        bf.SparseLaplace(POLICY.per_person(2), epsilon=1).release(counted([1], [1]))


def test_errors_of_a_list_are_not_predicted_and_queries_not_answered():
    made = bf.SparseLaplace(bf.policies.AddRemove(LINE), epsilon=1)
    release = made.release(np.zeros(1000, dtype=int), rng=1)
    for ask in (
        lambda: release.answer(bf.workloads.Total(LINE)),
        lambda: release.intervals(bf.workloads.Total(LINE)),
        lambda: release.where({0: 3}),
        lambda: release.estimate,
        lambda: release.sample(),
    ):
        with pytest.raises(NoEstimateError, match="heavy cells"):
            ask()


def test_filled_cells_are_summed_between_edges():
    filled = FilledCells(np.array([1, 5, 2**61]), np.array([3, 4, 5]))
    edges = np.array([0, 5, 6, 2**61, 2**62])
    assert filled.within(edges).tolist() == [3, 4, 0, 5]

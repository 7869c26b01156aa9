"""Matching end to end: both partitions, every policy, one and several attributes."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import policy_families
from blowfish_fast.errors import EpsilonError, InputError
from blowfish_fast.measure.selectors.partitions import (
    LeastCost,
    MatchingPairs,
    NoisySort,
)

LINE = bf.Domain(40)
CELLS = bf.workloads.Identity(LINE)
HEIGHTS = np.arange(40) * 7 % 4 * 300
PARTITIONS = [
    "best",
    MatchingPairs(),
    MatchingPairs(6),
    MatchingPairs(rounds=3),
    NoisySort(),
]
POLICIES = [bf.policies.AddRemove, bf.policies.Full, bf.policies.Line]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("partition", PARTITIONS)
def test_every_variant_finds_the_heights(policy, partition):
    matching = bf.mechanisms.Matching(
        policy(LINE), CELLS, epsilon=3, partition=partition
    )
    release = matching.release(HEIGHTS, rng=2)
    assert np.abs(release.estimate - HEIGHTS).mean() < 10
    assert release.guarantee.epsilon == 3
    assert release.details["labels"].size == 40
    assert release.details["buckets"] == release.details["labels"].max() + 1 < 40


def test_the_default_partition_depends_on_the_number_of_cells():
    for cells, kind in ((512, MatchingPairs), (513, NoisySort)):
        line = bf.Domain(cells)
        matching = bf.mechanisms.Matching(
            bf.policies.Full(line), bf.workloads.Identity(line), epsilon=1
        )
        assert isinstance(matching.partition, kind)
        assert matching.share == kind().default_share


def test_large_domains_work():
    line = bf.Domain(5000)
    ranges = bf.workloads.Ranges.random(line, 100, rng=1)
    counts = np.arange(5000) * 7 % 3 * 500
    release = bf.mechanisms.Matching(bf.policies.Line(line), ranges, epsilon=1).release(
        counts, rng=1
    )
    assert np.abs(release.estimate - counts).mean() < 5
    assert release.intervals(ranges, of="noise").shape == (100, 2)


@pytest.mark.parametrize("shape", [1, 2, 7, (3, 4)])
def test_every_policy_is_served_and_public_totals_stay_exact(shape):
    domain = bf.Domain(shape)
    counts = np.arange(domain.size).reshape(domain.shape) % 3 * 50
    workload = bf.workloads.Identity(domain)
    for policy in policy_families(domain).values():
        for partition in (MatchingPairs(), MatchingPairs(2, rounds=2), NoisySort()):
            matching = bf.mechanisms.Matching(
                policy, workload, epsilon="0.5", partition=partition
            )
            release = matching.release(counts, rng=4)
            assert release.estimate.shape == domain.shape
            components = policy.components()
            labels = components.labels
            if labels is None:
                labels = np.zeros(domain.size, dtype=np.int64)
            sums = np.bincount(labels, release.estimate.reshape(-1))
            known = ~components.private
            truth = np.bincount(labels, counts.reshape(-1))
            np.testing.assert_allclose(sums[known], truth[known], atol=1e-6)


def test_noise_goes_where_the_queries_feel_less():
    used = {}
    for policy in (bf.policies.Line, bf.policies.Full, bf.policies.AddRemove):
        # Contiguous pairs collapse a line to a line, where edges are few.
        matching = bf.mechanisms.Matching(
            policy(LINE), CELLS, epsilon=1, partition=MatchingPairs(1)
        )
        used[policy] = matching.release(HEIGHTS, rng=1).details["strategy"]
    assert used == {
        bf.policies.Line: "edge_noise",
        bf.policies.Full: "cells",
        bf.policies.AddRemove: "cells",
    }


@pytest.mark.parametrize(
    "workload",
    [
        bf.workloads.Prefixes,
        bf.workloads.AllRanges,
        bf.workloads.Total,
        lambda line: bf.workloads.Ranges.random(line, 50, rng=1),
    ],
)
@pytest.mark.parametrize("policy", [bf.policies.AddRemove, bf.policies.Line])
def test_every_workload_is_answered(workload, policy):
    queries = workload(LINE)
    release = bf.mechanisms.Matching(policy(LINE), queries, epsilon=50).release(
        HEIGHTS, rng=1
    )
    errors = np.abs(release.answer(queries) - queries.answer(HEIGHTS))
    assert errors.mean() < 20
    low, high = release.intervals(queries, of="noise").T
    assert (low <= high).all()


def test_queries_too_many_to_follow_leave_the_noise_on_buckets(monkeypatch):
    from blowfish_fast.mechanisms import transformed as module

    matching = bf.mechanisms.Matching(
        bf.policies.Line(LINE), bf.workloads.AllRanges(LINE), epsilon=1
    )
    monkeypatch.setattr(module, "MOST_COEFFICIENTS", 100)
    assert matching.release(HEIGHTS, rng=1).details["strategy"] == "cells"


def test_groups_beat_noise_on_every_cell_where_heights_repeat():
    line = bf.Domain(1000)
    counts = np.arange(1000) * 7 % 5 * 400
    cells = bf.workloads.Identity(line)
    policy = bf.policies.Full(line)
    plain = bf.Laplace(policy, cells, epsilon=0.5).expected_total_error()
    release = bf.mechanisms.Matching(policy, cells, epsilon=0.5).release(counts, rng=1)
    assert np.square(release.estimate - counts).sum() < 0.2 * plain


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"partition": "good"}, InputError, "partition must be"),
        ({"partition": LeastCost()}, InputError, "Transformed takes"),
        ({"partition": None}, InputError, "partition must be"),
        ({"share": 0}, EpsilonError, "strictly between"),
        ({"share": 1}, EpsilonError, "strictly between"),
        ({"epsilon": 0}, EpsilonError, "greater than 0"),
    ],
)
def test_bad_settings_are_refused(settings, kind, words):
    with pytest.raises(kind, match=words):
        bf.mechanisms.Matching(
            bf.policies.Full(LINE), CELLS, **{"epsilon": 1, **settings}
        )

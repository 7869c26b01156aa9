"""Arrays that later releases depend on: nobody who was handed one can change it."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit import policy_families
from blowfish_fast.data.buckets import cell_order

LINE = bf.Domain.from_edges(np.arange(13.0), name="age")
FAMILIES = {
    **policy_families(LINE),
    "values": bf.policies.Threshold(LINE, theta=2.5, unit="value"),
    "projected": bf.policies.Line(LINE).project(np.arange(12) % 5),
    "apart": bf.policies.Graph(LINE, [[0, 1], [4, 5], [7, -1]]),
    "apart, projected": bf.policies.Blocks(LINE, np.arange(12) // 4).project(
        np.arange(12) // 2 % 4
    ),
}


def handed_out(policy):
    """Yield the arrays that anybody can ask a policy for."""
    yield from policy.components()
    yield policy.bottom_cells()
    band = policy.bandwidth()
    yield None if band is None else band.far
    for name in ("far", "labels", "sizes", "order"):
        yield getattr(policy, name, None)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_policy_hands_out_cannot_change_it(family):
    policy = FAMILIES[family]
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 9, (3, policy.domain.size))
    asked = bf.workloads.Linear(policy.domain, rows)
    before = float(bf.sensitivity(policy, asked))
    totals = [one.copy() for one in policy.components() if one is not None]
    for array in handed_out(policy):
        if array is not None and array.flags.writeable:
            array[...] = 0
    assert float(bf.sensitivity(policy, asked)) == before
    after = [one for one in policy.components() if one is not None]
    assert all(map(np.array_equal, totals, after))
    for one in policy.edges():
        assert policy.joins(*one.T).all()


def test_plans_and_orders_that_releases_share_cannot_be_written_to():
    policy = bf.policies.Threshold(bf.Domain(64), theta=9)
    asked = bf.workloads.Prefixes(policy.domain)
    mechanism = bf.mechanisms.OrderedHierarchical(policy, asked, epsilon=1)
    counts = np.arange(64)
    release = mechanism.release(counts, rng=1)
    strategy = release.measurements[0].strategy
    for one in (release.details["block_edges"], *strategy.pack().values()):
        with pytest.raises(ValueError, match="read-only"):
            one[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        cell_order(bf.Domain((4, 4))).order[0] = 3
    grid = bf.KMeans(bf.policies.Full(bf.Domain((4, 4))), 2, epsilon=1).grid
    with pytest.raises(ValueError, match="read-only"):
        grid.coordinates[0] = 3

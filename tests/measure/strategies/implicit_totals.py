"""What every strategy promises of workloads too long to list."""

from __future__ import annotations

import pytest

from blowfish_fast.workloads import AllRanges, Identity, Prefixes, Total


def assert_totals_equal_their_list(strategy, domain, buckets, scales, *, near=1e-9):
    """Compare the total variance of each implicit workload with that of its list."""
    for kind in (Identity, Total, Prefixes, AllRanges):
        workload = kind(domain)
        total = strategy.total_variance(workload.form(buckets), scales)
        listed = strategy.spread(workload.explicit_form(buckets), scales).variance.sum()
        assert total == pytest.approx(listed, rel=1e-9, abs=near), kind.__name__

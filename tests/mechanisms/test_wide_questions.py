"""Wide domains: which of their cells are read, and what is refused."""

from __future__ import annotations

from functools import partial

import pytest

import blowfish_fast as bf
from blowfish_fast.errors import DomainError, WorkloadError

LINE = bf.Domain(6, names=["age"])
OTHER = bf.Domain(6, names=["size"])
WIDE = bf.WideDomain.product(LINE, OTHER)


def test_the_cells_that_hold_records_are_read_in_their_order():
    lists = bf.SparseLaplace(bf.policies.AddRemove(WIDE), epsilon=1)
    records = {"age": [3, 0, 3], "size": [1, 5, 1]}
    cells, counts = lists._counts(bf.SparseHistogram.from_records(WIDE, records))
    assert (list(cells), list(counts)) == ([5, 19], [1, 2])


def test_data_of_another_domain_and_plain_counts_of_a_wide_one_are_refused():
    lists = bf.SparseLaplace(bf.policies.AddRemove(WIDE), epsilon=1)
    other = bf.SparseHistogram.from_records(LINE, {"age": [1]})
    with pytest.raises(bf.errors.DomainError, match="build both over one domain"):
        lists._counts(other)
    with pytest.raises(bf.errors.InputError, match="SparseHistogram"):
        lists._counts([1, 2, 3])


@pytest.mark.parametrize(
    "domain", [bf.WideDomain(2**60, names="time"), bf.KeyDomain("a-z", 14, "word")]
)
def test_advice_names_the_one_mechanism_of_a_wide_domain(domain):
    policy, cells = bf.policies.AddRemove(domain), bf.workloads.Identity(domain)
    named = {"epsilon": 1, "mechanisms": ["laplace"]}
    for ask in (
        partial(bf.compare, policy, cells, **named),
        partial(bf.recommend, policy, cells, records=1000, **named),
    ):
        with pytest.raises(DomainError, match="Use SparseLaplace"):
            ask()
    if isinstance(domain, bf.KeyDomain):
        with pytest.raises(WorkloadError, match="with SparseLaplace"):
            bf.workloads.Ranges(domain, [0], [5])
        return
    ranges = bf.workloads.Ranges(domain, [0], [5])
    with pytest.raises(DomainError, match="Use Dawa"):
        bf.translate(policy, ranges, alpha=10, beta=0.05)

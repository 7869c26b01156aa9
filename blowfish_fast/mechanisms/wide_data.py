"""Where recipes for wide domains have their true counts read: the filled cells."""

from __future__ import annotations

from typing import Any

from blowfish_fast._support.validation import quoted
from blowfish_fast.data.domain import Domain
from blowfish_fast.data.sparse import FilledCells, SparseHistogram
from blowfish_fast.errors import DomainError, InputError

from .base import Mechanism


def filled_cells(mechanism: Mechanism, data: Any) -> FilledCells:
    """Read the cells that hold records, of a wide domain or of one that is listed."""
    domain = mechanism.domain
    if isinstance(data, SparseHistogram):
        if data.domain.attributes != domain.attributes:
            raise DomainError(
                f"the data lies over {data.domain!r} and the mechanism over "
                f"{domain!r}; build both over one domain"
            )
        mechanism.policy._check_bound(data.bound)
        return FilledCells(data.keys, data.counts)
    if isinstance(domain, Domain):
        return FilledCells.of(Mechanism._counts(mechanism, data))
    raise InputError(
        "counts of a wide domain are those of a SparseHistogram",
        received=quoted(data),
        way_out="Write SparseHistogram.from_records(domain, records)",
    )

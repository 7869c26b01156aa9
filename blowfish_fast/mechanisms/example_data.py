"""Made-up counts on which audits, benchmarks and experiments run mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast.data.domain import Domain
from blowfish_fast.data.histogram import Histogram


class Example(NamedTuple):
    """What audits and benchmarks run: made-up counts, options, cells or random boxes.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> bf.Hierarchy.example_case.options, bf.Hierarchy.example_case.cells
    ({'fan_out': 2}, False)
    >>> bf.Hierarchy.example_case.data(bf.Domain(6)).counts
    array([0, 0, 7, 7, 0, 0])
    """

    data: Callable[[Domain], Histogram]
    options: Mapping[str, Any] = MappingProxyType({})
    cells: bool = False


def stepped(domain: Domain, steps: int, *, height: int) -> Histogram:
    """Return made-up counts that rise in equal steps: 0, height, 2 height ..."""
    counts = np.arange(domain.size) * steps // domain.size * height
    return Histogram(domain, counts.reshape(domain.shape))


def striped(domain: Domain, stripes: int, *, height: int) -> Histogram:
    """Return made-up counts of equal stripes, 0 and height in turn."""
    counts = np.arange(domain.size) * stripes // domain.size % 2 * height
    return Histogram(domain, counts.reshape(domain.shape))


def repeated(domain: Domain, period: int, *, height: int) -> Histogram:
    """Return made-up counts 0, height, 2 height ... that begin again and again."""
    counts = np.arange(domain.size) % period * height
    return Histogram(domain, counts.reshape(domain.shape))

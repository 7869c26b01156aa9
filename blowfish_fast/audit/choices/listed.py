"""Every selector that is audited by itself: partitions, medians, private choices.

Small instances for a tiny policy, with settings under which one record tells most.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from blowfish_fast.measure.selectors import partitions
from blowfish_fast.measure.selectors.partitions.base import Partition
from blowfish_fast.measure.selectors.selections import (
    KeptFrequencies,
    Medians,
    ScatterTest,
    WorstQuery,
)
from blowfish_fast.measure.selectors.selections.comparisons import FirstBelow
from blowfish_fast.policies import Policy
from blowfish_fast.workloads import Identity

PRICES = (8.0, 1.0)
"""What a bucket costs when partitions are audited: as much as a step, and little."""

TELLING = {"offset": 0, "largest_count": 8}
"""Settings with which one record tells most, for partitions that have them."""


def _worst_query(policy: Policy) -> WorstQuery:
    asked = WorstQuery(Identity(policy.domain))
    cells = policy.domain.size
    return asked.against(
        np.arange(0.0, 2.0 * cells, 2.0), np.zeros(cells, dtype=np.bool_)
    )


SELECTIONS: dict[str, Callable[[Policy], Any]] = {
    "kept_frequencies": lambda policy: KeptFrequencies(
        np.arange(1.0, policy.domain.size // 2 + 2)
    ),
    "medians": lambda policy: Medians(policy.domain.shape, levels=2),
    "worst_query": _worst_query,
    "first_below": lambda policy: FirstBelow(bar=8),
    "scatter": lambda policy: ScatterTest([[1.0] * 3] * 3, price=1.0, threshold=0.25),
}
"""Private choices that are not partitions, by name."""

ON_GRIDS = ("scatter",)


def selector_names() -> list[str]:
    """Return the names of all selectors that are audited by themselves."""
    return [*sorted(all_partitions()), *SELECTIONS]


def instances(name: str, policy: Policy) -> list[Any]:
    """Return a selector as telling as its settings allow, and a partition by default.

    None where the policy's domain has not the axes that it needs.
    """
    if name in SELECTIONS:
        fits = name not in ON_GRIDS or policy.domain.ndim == 2
        return [SELECTIONS[name](policy)] if fits else []
    made: Callable[..., Partition] = all_partitions()[name]
    known = inspect.signature(made).parameters
    bare = {name: value for name, value in TELLING.items() if name in known}
    return [made(**bare).priced(PRICES[0]), made().priced(PRICES[1])]


def all_partitions() -> dict[str, type[Partition]]:
    """Return every partition class by name."""
    classes = [getattr(partitions, name) for name in partitions.__all__]
    return {
        one.name: one
        for one in (*classes, *_descendants(Partition))
        if isinstance(one, type) and issubclass(one, Partition) and "name" in vars(one)
    }


def _descendants(kind: type[Any]) -> Iterator[type[Any]]:
    for one in kind.__subclasses__():
        if one.__module__.startswith("blowfish_fast."):
            yield one
            yield from _descendants(one)

"""What tables, pictures and sentences call the recipe behind a release: one name.

`Transformed` measures with one of several strategies. Comparisons, dry runs and job
files know the strategy by a name that can be typed; the file of a release keeps what
kind of measurement it was. Here the second leads to the first.
"""

from __future__ import annotations

from typing import Any

STRATEGIES = {
    "cells": "vertex",
    "edge_noise": "edge",
    "ordered_hierarchy": "ordered_hierarchical",
    "prefix_sums": "ordered",
    "spanning_tree": "tree",
    "tree": "tuned_tree",
}
"""From the kind of a strategy to its name, where they differ."""


def recipe_name(release: Any) -> str:
    """Return the name under which the recipe of a release can be asked for again.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(8)
    >>> policy, ranges = bf.policies.Line(line), bf.workloads.AllRanges(line)
    >>> best = bf.compare(policy, ranges, epsilon=1).best
    >>> best.name, recipe_name(best.mechanism.release([5] * 8))
    ('ordered', 'ordered')
    """
    name = str(release.mechanism)
    return strategy_name(release.details) if name == "transformed" else name


def strategy_name(details: Any) -> str:
    """Return the name of the strategy that details of a release tell of."""
    kind = str(details.get("strategy", "transformed"))
    return STRATEGIES.get(kind, kind)

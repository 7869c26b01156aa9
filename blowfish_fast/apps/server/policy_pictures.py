"""A policy graph to be drawn: whole if it is small, a stretch of it otherwise.

nodes 0 .. 23, edges (i, j)       what the page draws on a circle or a line
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfish_fast.apps.explorer.attributes import PolicySpec
from blowfish_fast.apps.explorer.catalog import TableSpec
from blowfish_fast.data.domain import Domain
from blowfish_fast.policies import Full, Policy

MOST_DRAWN = 24
"""Cells of a drawing; larger attributes show their first cells."""


def policy_picture(
    table: TableSpec, attribute: str, stated: PolicySpec | None
) -> dict[str, Any]:
    """Return nodes, edges and words of an attribute's policy."""
    spec = table.attribute(attribute)
    chosen = stated if stated is not None else table.policies.get(attribute)
    policy: Policy = Full(spec.domain()) if chosen is None else chosen.over(spec)
    cells = policy.domain.size
    shown = min(cells, MOST_DRAWN)
    first, second = np.triu_indices(shown, k=1)
    joined = policy.joins(first, second)
    return {
        "attribute": attribute,
        "cells": cells,
        "shown": shown,
        "labels": _labels(spec.domain())[:shown],
        "edges": np.column_stack([first, second])[joined].tolist(),
        "ordered": spec.kind != "category",
        "words": policy.describe(),
        "edge_count": policy.edge_count,
    }


def _labels(domain: Domain) -> list[str]:
    (axis,) = domain.attributes
    if axis.levels is not None:
        return [str(one) for one in axis.levels]
    cuts = axis.cuts or tuple(range(axis.regular + 1))
    return [f"{one:g}" for one in cuts[: axis.regular]] + list(axis.extras)

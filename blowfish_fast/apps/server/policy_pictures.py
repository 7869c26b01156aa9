"""Policy graphs to be drawn: whole if they are small, a part of them otherwise.

Bins of a question are joined if a value of one and a value of the other are (the
projected graph G*). Of several attributes one moves at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from blowfish_fast._support.typing import IntArray
from blowfish_fast.apps.explorer.catalog import AttributeSpec, PolicySpec, TableSpec
from blowfish_fast.apps.explorer.layout import Layout
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import CatalogError
from blowfish_fast.policies import Full, Policy

MOST_DRAWN = 24
"""Cells of a drawing; larger attributes show their first cells."""
SIDE = 5
"""The same for each of the first two attributes of a question."""
MOST_APART = 4
"""Bins for what is missing, outside or filtered out that are drawn."""


def policy_picture(
    table: TableSpec, attribute: str, stated: PolicySpec | None
) -> dict[str, Any]:
    """Return nodes, edges and words of an attribute's policy.

    Parameters
    ----------
    table : TableSpec
        The described table.
    attribute : str
        Which of its attributes.
    stated : PolicySpec or None
        A policy to draw instead of the one in force.

    Returns
    -------
    dict
        Labels of at most 24 cells, edges among them as pairs of places, and what is
        true of the whole graph: its number of cells and edges, and whether records
        may be absent.
    """
    spec = table.attribute(attribute)
    if spec.words is not None:
        raise CatalogError(
            f"{attribute!r} holds words, any two of which are joined; they have no "
            "picture"
        )
    chosen = stated if stated is not None else table.policies.get(attribute)
    policy: Policy = Full(spec.domain()) if chosen is None else chosen.over(spec)
    cells = np.arange(min(policy.domain.size, MOST_DRAWN))
    picture = _picture(policy, cells, _labels(spec.domain())[: cells.size], [[], []])
    words = _words(spec, chosen)
    ordered = spec.kind != "category"
    return {"attribute": attribute, "ordered": ordered, "words": words, **picture}


def question_picture(layout: Layout, policy: Policy) -> dict[str, Any]:
    """Return nodes, edges and words of the policy as a question's bins see it.

    Parameters
    ----------
    layout : Layout
        The bins of the question.
    policy : Policy
        The policy over these bins.

    Returns
    -------
    dict
        As `policy_picture` returns it. Of two attributes a corner of 5 by 5 bins is
        drawn, of further ones the first bin.
    """
    shape = layout.asked_shape
    sides = [MOST_DRAWN - MOST_APART] if len(shape) == 1 else [SIDE] * 2
    drawn = [min(bins, most) for bins, most in zip(shape, sides, strict=False)]
    corner = np.indices(drawn).reshape(len(drawn), -1)
    # Of a third attribute, and further ones, the first bin.
    rest = np.zeros((len(shape) - len(drawn), corner.shape[1]), dtype=np.int64)
    cells = np.ravel_multi_index(tuple(np.concatenate([corner, rest])), shape)
    names = [
        [
            f"{edge:g}" if isinstance(edge, float) else str(edge)
            for edge in axis["edges"]
        ]
        for axis in layout.described
    ]
    labels = [
        ", ".join(name[place] for name, place in zip(names, places, strict=False))
        for places in corner.T
    ]
    regular = math.prod(shape)
    apart = np.arange(regular, min(policy.domain.size, regular + MOST_APART))
    labels += [
        "filtered out"
        if layout.question.filters and cell == policy.domain.size - 1
        else "missing, outside"
        for cell in apart
    ]
    named = [name[:most] for name, most in zip(names, drawn, strict=False)]
    along = named if len(drawn) > 1 else [[], []]
    picture = _picture(policy, np.concatenate([cells, apart]), labels, along)
    stated, specs = layout.table.policies, [axis.spec for axis in layout.axes]
    words = [f"in {spec.name}, {_words(spec, stated.get(spec.name))}" for spec in specs]
    return {"words": "; ".join(words) if stated else "any two records", **picture}


def _picture(
    policy: Policy, cells: IntArray, labels: Sequence[str], sides: list[list[str]]
) -> dict[str, Any]:
    """Return the part of a graph among some cells, and what is true of all of it."""
    first, second = np.triu_indices(cells.size, k=1)
    joined = policy.joins(cells[first], cells[second])
    return {
        "cells": policy.domain.size,
        "shown": cells.size,
        "labels": list(labels),
        "edges": np.column_stack([first, second])[joined].tolist(),
        "sides": sides,
        "absent": bool(policy.has_bottom),
        "edge_count": policy.edge_count,
    }


def _words(spec: AttributeSpec, stated: PolicySpec | None) -> str:
    """Say which values are joined; any two, those missing too, if none is stated."""
    return "any two values" if stated is None else stated.words(spec)


def _labels(domain: Domain) -> list[str]:
    (axis,) = domain.attributes
    if axis.levels is not None:
        return [str(level) for level in axis.levels]
    cuts = axis.cuts or tuple(range(axis.regular + 1))
    return [f"{cut:g}" for cut in cuts[: axis.regular]] + list(axis.extras)

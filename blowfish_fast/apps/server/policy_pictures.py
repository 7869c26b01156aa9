"""Policy graphs to be drawn: nodes and edges if they are small, a matrix otherwise.

Bins of a question are joined if a value of one and a value of the other are (the
projected graph G*). Of several attributes one moves at a time.

A graph of more cells than a circle holds is drawn as a matrix of up to `MOST_SQUARES`
squares a side. A square stands for some cells by some cells, and says which part of
their pairs is joined, from `LOOKED_AT` cells of each side; its first and its last one
are among them, so that a line policy shows however many cells there are::

    threshold 1, 6 cells, 6 squares      threshold 1, 12 cells, 6 squares
        . # . . . .                          + - . . . .
        # . # . . .                          - + - . . .
        . # . # . .      ...                 . - + - . .     ...
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from blowfish_fast._support.typing import BoolArray, IntArray
from blowfish_fast.apps.explorer.catalog import AttributeSpec, PolicySpec, TableSpec
from blowfish_fast.apps.explorer.layout import Layout
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import CatalogError
from blowfish_fast.policies import Full, Policy

MOST_DRAWN = 24
"""Cells on a circle; attributes with more are drawn as a matrix."""
MOST_SQUARES = 48
"""Squares of a matrix, down and across."""
LOOKED_AT = 4
"""Cells of a square's side whose pairs are looked at."""
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
        Labels of the cells, edges among them as pairs of places, and what is true of
        the whole graph: its number of cells and edges, and whether records may be
        absent. Of more than 24 cells, "shares" is a matrix: the part of pairs that is
        joined, of cells that stand together, by rows; labels are those of its rows.
    """
    spec = table.attribute(attribute)
    if spec.words is not None:
        raise CatalogError(
            f"{attribute!r} holds words, any two of which are joined; they have no "
            "picture"
        )
    chosen = stated if stated is not None else table.policies.get(attribute)
    policy: Policy = Full(spec.domain()) if chosen is None else chosen.over(spec)
    cells, labels = np.arange(policy.domain.size), _labels(spec.domain())
    picture = _picture(policy, cells, labels.__getitem__, [[], []])
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
    sides = [shape[0]] if len(shape) == 1 else [SIDE] * 2
    drawn = [min(bins, most) for bins, most in zip(shape, sides, strict=False)]
    corner = np.indices(drawn).reshape(len(drawn), -1)
    # Of a third attribute, and further ones, the first bin.
    rest = np.zeros((len(shape) - len(drawn), corner.shape[1]), dtype=np.int64)
    cells = np.ravel_multi_index(tuple(np.concatenate([corner, rest])), shape)
    regular = math.prod(shape)
    apart = np.arange(regular, min(policy.domain.size, regular + MOST_APART))
    edges = [axis["edges"] for axis in layout.described]
    whole = layout.bins_of_one

    def label(place: int) -> str:
        # Only those that are drawn are written out: a question may have a million bins.
        if place < cells.size:
            steps = zip(edges, corner[:, place], strict=False)
            return ", ".join(_edge_words(names[step]) for names, step in steps)
        if whole is not None:
            # Of one attribute each of these bins has a name of its own.
            return str(whole.name_of(int(apart[place - cells.size])))
        last = place == cells.size + apart.size - 1
        filtered = layout.question.filters and apart[-1] == policy.domain.size - 1
        return "filtered out" if filtered and last else "missing, outside"

    along: list[list[str]] = [[], []]
    if len(drawn) > 1:
        along = [
            [_edge_words(edge) for edge in names[:most]]
            for names, most in zip(edges, drawn, strict=False)
        ]
    picture = _picture(policy, np.concatenate([cells, apart]), label, along)
    stated, specs = layout.table.policies, [axis.spec for axis in layout.axes]
    words = [f"in {spec.name}, {_words(spec, stated.get(spec.name))}" for spec in specs]
    return {"words": "; ".join(words) if stated else "any two records", **picture}


def _edge_words(edge: Any) -> str:
    """Write where a bin begins."""
    return f"{edge:g}" if isinstance(edge, float) else str(edge)


def _picture(
    policy: Policy,
    cells: IntArray,
    label: Callable[[int], str],
    sides: list[list[str]],
) -> dict[str, Any]:
    """Return the part of a graph among some cells, and what is true of all of it."""
    shares: list[list[float]] | None = None
    edges: list[list[int]] = []
    rows = list(range(cells.size))
    if not sides[0] and cells.size > MOST_DRAWN:
        shares, rows = _joined_shares(policy, cells)
    else:
        first, second = np.triu_indices(cells.size, k=1)
        joined = policy.joins(cells[first], cells[second])
        edges = np.column_stack([first, second])[joined].tolist()
    return {
        "cells": policy.domain.size,
        "shown": cells.size,
        "labels": [label(row) for row in rows],
        "edges": edges,
        "shares": shares,
        "sides": sides,
        "absent": bool(policy.has_bottom),
        "edge_count": policy.edge_count,
    }


def _joined_shares(
    policy: Policy, cells: IntArray
) -> tuple[list[list[float]], list[int]]:
    """Return which part of pairs is joined, by squares, and where each row begins."""
    wide = -(-cells.size // MOST_SQUARES)
    starts = np.arange(0, cells.size, wide)
    # Squares of one width, but for the last: uneven ones would be a pattern of its own.
    widths = np.minimum(wide, cells.size - starts)
    count, looked = starts.size, min(LOOKED_AT, wide)
    # From the first cell of a square to its last one; a narrow one repeats some.
    steps = np.linspace(0.0, 1.0, looked) if looked > 1 else np.zeros(1)
    places = starts[:, None] + np.rint(steps * (widths[:, None] - 1)).astype(int)
    seen = cells[places.ravel()]
    first, second = np.repeat(seen, seen.size), np.tile(seen, seen.size)
    apart = first != second
    joined = np.zeros(first.size, dtype=bool)
    joined[apart] = policy.joins(first[apart], second[apart])

    def by_square(values: BoolArray) -> IntArray:
        squares = values.reshape(count, looked, count, looked)
        return np.asarray(squares.sum(axis=(1, 3)), dtype=np.int64)

    shares = by_square(joined) / np.maximum(by_square(apart), 1)
    return np.round(shares, 3).tolist(), starts.tolist()


def _words(spec: AttributeSpec, stated: PolicySpec | None) -> str:
    """Say which values are joined; any two, those missing too, if none is stated."""
    return "any two values" if stated is None else stated.words(spec)


def _labels(domain: Domain) -> list[str]:
    (axis,) = domain.attributes
    if axis.levels is not None:
        return [str(level) for level in axis.levels]
    cuts = axis.cuts or tuple(range(axis.regular + 1))
    return [f"{cut:g}" for cut in cuts[: axis.regular]] + list(axis.extras)

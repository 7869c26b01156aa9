"""The same question in other words is the same question: one form for all of them.

    marginal of ["age"]                    histogram of age
    histogram2d, or ["sex", "age"]         marginal, in the order of the table
    granularity [1, 1]                     no granularity
    filters in another order               filters in the order of the table
    groups in another order, by "ward"     groups in the order of the table, by ["ward"]
    values ["f", "m", "f"]                 levels in their order, each once
    low 20 alone, or "2024-01-01T00"       both edges, as the cells have them
    a filter that lets everything pass     no filter

Answers are stored under the name of this form; whoever asked in other words gets them
in the order asked for. Nothing here looks at records.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np

from blowfish_fast.data.axes import Axis, cut_values

from .amounts import at_least_of
from .answers_given import Answer
from .catalog import TableSpec
from .layout import cell_of, lay_out
from .questions import (
    Accuracy,
    AmountQuestion,
    Filter,
    FrequentQuestion,
    HistogramQuestion,
    MarginalQuestion,
    Question,
    RectanglesQuestion,
    ShareQuestion,
)


def canonical(table: TableSpec, asked: Question) -> Question:
    """Return the form that all wordings of a question share.

    Parameters
    ----------
    table : TableSpec
        The described table.
    asked : Question
        A question in any words.

    Returns
    -------
    Question
        A question with the same numbers, in the order of the table's attributes.

    Raises
    ------
    CatalogError
        If it names an attribute that the table has not.
    QuestionError
        If a filter ends where no cell does.

    Examples
    --------
    >>> from .catalog import as_table
    >>> from .questions import read_question
    >>> ages = {"name": "age", "cells": {"start": 0, "stop": 80, "width": 1}}
    >>> sexes = {"name": "sex", "levels": ["f", "m"]}
    >>> table = as_table({"name": "people", "attributes": [ages, sexes]})
    >>> words = {"table": "people", "cost": {"alpha": 20}}
    >>> turned = {"kind": "histogram2d", "attributes": ["sex", "age"], **words}
    >>> canonical(table, read_question(turned)).axes
    ['age', 'sex']
    """
    if isinstance(asked, FrequentQuestion):
        return asked
    order = {spec.name: at for at, spec in enumerate(table.attributes)}
    added = asked if isinstance(asked, AmountQuestion | ShareQuestion) else None
    values = [] if added is None else [added.attribute]
    stated_names = (stated.attribute for stated in asked.filters)
    for name in (*asked.axes, *values, *stated_names):
        table.attribute(name)
    filters = [
        plain
        for stated in sorted(
            asked.filters, key=lambda question: order[question.attribute]
        )
        for plain in _plain_filter(table, stated)
    ]
    same: dict[str, Any] = {"filters": filters}
    if isinstance(asked, AmountQuestion | ShareQuestion):
        groups = _plain_groups(table, asked, order)
        return _with_size(table, asked.model_copy(update={**same, **groups}))
    if isinstance(asked, MarginalQuestion) and not isinstance(
        asked, RectanglesQuestion
    ):
        if len(asked.attributes) == 1:
            return HistogramQuestion(
                table=asked.table,
                filters=filters,
                cost=asked.cost,
                attribute=asked.attributes[0],
                width=asked.widths[0],
                missing=asked.missing,
            )
        pairs = sorted(
            zip(asked.attributes, asked.widths, strict=True),
            key=lambda pair: order[pair[0]],
        )
        widths = [width for _, width in pairs]
        same["kind"] = "marginal"
        same["attributes"] = [name for name, _ in pairs]
        same["granularity"] = None if set(widths) == {1} else widths
    return asked.model_copy(update=same)


def _plain_groups(
    table: TableSpec, asked: AmountQuestion | ShareQuestion, order: dict[str, int]
) -> dict[str, Any]:
    """Return the groups in the order of the table, and a property by both edges."""
    pairs = sorted(
        zip(asked.axes, asked.widths, strict=True), key=lambda pair: order[pair[0]]
    )
    widths = [width for _, width in pairs]
    same: dict[str, Any] = {
        "by": [name for name, _ in pairs],
        "granularity": None if {*widths} <= {1} else widths,
    }
    if isinstance(asked, ShareQuestion) and not asked.missing:
        for stated in _plain_filter(table, asked.property_):
            ends = {"low": stated.low, "high": stated.high, "values": stated.values}
            same |= ends
    return same


def _with_size(table: TableSpec, asked: Question) -> Question:
    """State the size of groups that an accuracy is about; a sum is about none."""
    size = None
    if isinstance(asked.cost, Accuracy) and asked.kind != "sum":
        size = at_least_of(lay_out(table, asked))
    return asked.model_copy(update={"at_least": size})


def _plain_filter(table: TableSpec, stated: Filter) -> list[Filter]:
    """Return a filter by both edges, or by levels in order; none if all pass."""
    spec = table.attribute(stated.attribute)
    if spec.words is not None:
        return [stated]
    (attribute,) = spec.domain().attributes
    if stated.missing is not None and (
        stated.values is None and stated.low is None and stated.high is None
    ):
        return [stated]
    if stated.values is not None:
        levels = list(attribute.levels or ())[: attribute.regular]
        if any(value not in levels for value in stated.values):
            # The layout says what is wrong with it.
            return [stated]
        chosen = {levels.index(value) for value in stated.values}
        if len(chosen) == attribute.size:
            return []
        values = [levels[at] for at in sorted(chosen)]
        return [stated.model_copy(update={"values": values})]
    if attribute.levels is not None:
        return [stated]
    low = 0 if stated.low is None else cell_of(attribute, stated.low)
    high = attribute.regular if stated.high is None else cell_of(attribute, stated.high)
    if low >= high:
        return [stated]
    if low == 0 and high == attribute.size:
        return []
    ends = {"low": _edge(attribute, low), "high": _edge(attribute, high)}
    return [stated.model_copy(update=ends)]


def _edge(attribute: Axis, cell: int) -> float | str:
    """Return the edge at which a cell begins, in one spelling."""
    place = cut_values(attribute)[cell]
    return float(place) if attribute.unit is None else str(place)


def in_asked_order(answer: Answer, asked: Question) -> Answer:
    """Return an answer with its attributes in the order of whoever asked.

    Parameters
    ----------
    answer : Answer
        The answer to the canonical form.
    asked : Question
        The question in the words of whoever asked.

    Returns
    -------
    Answer
        The same numbers, turned, under the question as it was asked.
    """
    plain = asked.model_dump(mode="json")
    names = [axis["attribute"] for axis in answer.axes]
    if names == asked.axes or len(names) < 2:
        return replace(answer, question=plain)
    turn = [names.index(name) for name in asked.axes]
    intervals = answer.intervals
    if intervals is not None:
        intervals = np.ascontiguousarray(intervals.transpose(*turn, len(turn)))
    raw = None if answer.raw is None else answer.raw.transpose(turn)
    return replace(
        answer,
        question=plain,
        axes=[answer.axes[at] for at in turn],
        values=np.ascontiguousarray(answer.values.transpose(turn)),
        intervals=intervals,
        raw=None if raw is None else np.ascontiguousarray(raw),
    )


def request_name(question: Question) -> str:
    """Return the name that a question shares with identical ones.

    Parameters
    ----------
    question : Question
        A question; the canonical form of it, for one name in all words.

    Returns
    -------
    str
        "q-" and the first 40 digits of a hash of the question as plain data.
    """
    plain = question.model_dump(mode="json")
    text = json.dumps(plain, sort_keys=True, default=str)
    return "q-" + hashlib.sha256(text.encode()).hexdigest()[:40]
